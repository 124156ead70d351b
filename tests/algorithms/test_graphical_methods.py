"""AIM and MST: what their rounds select, measure and spend, and what that reveals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.brute_force import true_sensitivity

from pointillist import InputError, Release, Table, prepare
from pointillist.algorithms.aim import Annealed
from pointillist.algorithms.mst import SpanningTree
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.families.junction import tree_cells
from pointillist.families.markov import Field, Markov
from pointillist.framework import Log, Measure, Round, Select
from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import Pick
from pointillist.queries.kway import all_kway
from pointillist.queries.measurement import Measurement

RELATIONS = list(Relation)


def chain(rows: int = 5000) -> Table:
    """Each column but the last follows the one before it in nine rows of ten; the last one stands alone."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(3, size=rows)]
    for _ in range(3):
        codes.append(np.where(rng.random(rows) < 0.9, codes[-1], rng.integers(3, size=rows)))
    codes.append(rng.integers(3, size=rows))
    return Table(Schema(tuple(Categorical(name, (0, 1, 2)) for name in "abcde")), tuple(codes))


def made(method: str, relation: Relation = Relation.REPLACE, epsilon: float = 2.0, **more: Any) -> tuple[Any, Release]:
    options = {"workload": "marginals:3", "insecure_noise_seed": 0} | more
    job = prepare(chain(), epsilon=epsilon, delta=1e-9, relation=relation, method=method, **options)
    return job, job.run()


@pytest.mark.parametrize("relation", RELATIONS)
def test_aim_spends_all_and_halves_the_noise_where_nothing_is_learned(relation: Relation) -> None:
    job, release = made("aim", relation)
    ledger, (first, *later) = job.curator.ledger, release.log.rounds
    assert ledger.limit * (1 - 1e-9) < ledger.spent <= ledger.limit
    assert [m.queries.scope for m in first.measurements] == [(0,), (1,), (2,), (3,), (4,)]
    assert len(later) < 16 * 5  # annealing made fewer rounds of it
    sigmas = [entry.measurements[0].sigma for entry in later]
    ratios = {round(before / after, 6) for before, after in itertools.pairwise(sigmas[:-1])}
    assert ratios == {1.0, 2.0}
    assert sigmas[-1] <= sigmas[-2] * (1 + 1e-9)  # the last round takes whatever is left
    labels = [entry.label for entry in ledger.entries if entry.label != "number of rows"]
    assert labels == ["measurement"] * 5 + ["selection", "measurement"] * len(later)


def test_aim_finds_the_ties_and_answers_well() -> None:
    _, release = made("aim", epsilon=5.0)
    measured = [set(m.queries.scope) for m in release.log.measurements]
    for tie in ({0, 1}, {1, 2}, {2, 3}):
        assert any(tie <= scope for scope in measured)
    truth = np.concatenate([one.holds(chain().codes).mean(axis=0) for one in release.workload.queries])
    assert np.abs(release.answers() - truth).max() < 0.03


def test_aim_anneals_by_the_change_of_the_model() -> None:
    """Four times the budget if the measured marginal changed by no more than noise explains; the last takes all."""
    queries = all_kway(Domain(("a", "b"), (2, 2)), 2).queries
    strategy = Annealed(queries, (1,), rounds=8, alpha=0.9, most_cells=100)
    family, facts = Markov(Domain(("a", "b"), (2, 2))), Facts(1000, 1.0)
    params = Field(family.domain)  # uniform: the answers are 1/4
    first = strategy.step(0, facts, Log(facts), family, params)
    assert isinstance(first, Select)
    assert first.select_rho + first.measure_rho == pytest.approx(1 / 8)
    assert first.measure_rho == pytest.approx(0.9 / 8)
    threshold = math.sqrt(2 / math.pi) * 10 * 4 / 1000
    for change, factor in ((0.99 * threshold, 4), (1.01 * threshold, 1)):
        before = np.array([0.25 - change / 2, 0.25 + change / 2, 0.25, 0.25])
        entry = Round(
            (Pick(queries[0]),), (Measurement(queries[0], np.zeros(4, int), 10.0),), True, Fraction(1, 8), (before,)
        )
        step = strategy.step(1, facts, Log(facts, [entry]), family, params)
        assert isinstance(step, Select)
        left = 7 / 8
        expected = left if left < 2 * factor / 8 else factor / 8
        assert step.select_rho + step.measure_rho == pytest.approx(expected)


def test_aim_keeps_the_junction_tree_below_its_limit() -> None:
    """And below the share of it that the budget spent so far allows for."""
    limit = 100 * 8 / 2**20  # megabytes of a hundred cells
    _, release = made("aim", settings={"model_size": limit})
    _, free = made("aim")
    sizes, spent = (3,) * 5, Fraction(0)
    scopes: list[tuple[int, ...]] = []
    total = sum(entry.rho for entry in release.log.rounds[1:])
    for entry in release.log.rounds[1:]:
        spent += entry.rho
        scope = entry.measurements[0].queries.scope
        grown = tree_cells(sizes, [*scopes, scope])
        known = len(scope) == 1 or any(set(scope) <= set(other) for other in scopes)
        assert known or grown <= float(spent / total) * 100 * (1 + 1e-6)
        scopes.append(scope)
    assert tree_cells(sizes, scopes) <= 100 < tree_cells(sizes, [m.queries.scope for m in free.log.measurements])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["aim", "mst"])
def test_a_selection_is_charged_for_what_one_person_can_change(method: str, relation: Relation) -> None:
    """The largest weight times the L1 change of a marginal, which brute force over all records confirms."""
    job, _ = made(method, relation)
    workload = all_kway(chain().domain, 3)
    (l1,) = {true_sensitivity(queries, workload.domain, relation).l1 for queries in workload.queries}
    assert l1 == (1 if relation is Relation.ADD_REMOVE else 2)
    # A triple shares 3 attributes with itself, 2 with the 6 others of two of its attributes, 1 with the other 3.
    worst = (3 + 2 * 6 + 3) * l1 if method == "aim" else l1
    for entry in (entry for entry in job.curator.ledger.entries if entry.label == "selection"):
        assert entry.sensitivity <= worst
        assert entry.sensitivity >= (l1 if method == "mst" else 5 * l1)
        assert Fraction(entry.sensitivity) ** 2 <= 2 * Fraction(entry.rho) * Fraction(entry.scale) ** 2


@pytest.mark.parametrize("relation", RELATIONS)
def test_mst_measures_a_spanning_tree(relation: Relation) -> None:
    job, release = made("mst", relation, epsilon=5.0)
    first, *edges, last = release.log.rounds
    assert [m.queries.scope for m in first.measurements] == [(0,), (1,), (2,), (3,), (4,)]
    assert [(len(entry.picks), len(entry.measurements), entry.selected) for entry in edges] == [(1, 0, True)] * 4
    pairs = [m.queries.scope for m in last.measurements]
    assert pairs == [entry.picks[0].queries.scope for entry in edges]
    joined = {0}
    for _ in range(4):
        joined |= {i for pair in pairs if joined & set(pair) for i in pair}
    assert joined == {0, 1, 2, 3, 4}
    assert set(pairs) > {(0, 1), (1, 2), (2, 3)}  # the ties that there are
    ledger = job.curator.ledger
    assert ledger.limit * (1 - 1e-9) < ledger.spent <= ledger.limit


def test_mst_leaves_out_pairs_that_are_too_large() -> None:
    """Two columns of 3 values and one of 2: with room for 6 cells, the pair of the two is never a candidate."""
    domain = Domain(("a", "b", "c"), (3, 3, 2))
    pairs = tuple(queries for queries in all_kway(domain, 2).queries if queries.size <= 6)
    assert SpanningTree(pairs, 0.5).edges == 2
    assert SpanningTree(pairs[:1], 0.5).edges == 1


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-9, 1e3), st.integers(2, 6), st.floats(0.1, 0.9))
def test_the_steps_of_a_tree_never_exceed_rho(rho: float, attributes: int, share: float) -> None:
    domain = Domain(tuple(f"x{i}" for i in range(attributes)), (3,) * attributes)
    facts, strategy = Facts(1000, rho), SpanningTree(all_kway(domain, 2).queries, share)
    log, family, params = Log(facts), Markov(domain), Field(domain)
    spent = Fraction(0)
    while (step := strategy.step(len(log.rounds), facts, log, family, params)) is not None:
        if isinstance(step, Measure):
            spent += sum(Fraction(ask.rho) for ask in step.asked)
            log.rounds.append(Round())
        else:
            assert isinstance(step, Select)
            spent += Fraction(step.select_rho)
            log.rounds.append(Round((Pick(step.candidates[0]),), selected=True))
    assert len(log.rounds) == attributes == sum(phase.rounds for phase in strategy.outline(facts))
    assert Fraction(rho) * Fraction(1 - 1e-9) <= spent <= Fraction(rho)


@pytest.mark.parametrize("method", ["aim", "mst"])
def test_a_table_of_one_column_is_synthesized(method: str) -> None:
    table = chain().project(["a"])
    release = prepare(table, epsilon=5.0, method=method, workload="marginals:1", insecure_noise_seed=0).run()
    assert np.abs(release.answers() - 1 / 3).max() < 0.05


@pytest.mark.parametrize(
    ("method", "wrong", "sentence"),
    [
        ("aim", {"rounds": 0}, "rounds must be at least 1, got 0"),
        ("aim", {"alpha": 1.0}, "alpha must be"),
        ("aim", {"model_size": 0}, "model_size must be"),
        ("aim", {"tolerance": -1}, "tolerance must not be negative, got -1"),
        ("aim", {"t_max": 0}, "t_max must be at least 1, got 0"),
        ("mst", {"select": 0.0}, "select must be"),
        ("mst", {"t_max": 0}, "t_max must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_spent(method: str, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        prepare(chain(), epsilon=1.0, method=method, workload="marginals:2", settings=wrong)
