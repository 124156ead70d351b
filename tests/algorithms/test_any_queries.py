"""Every method on workloads of other queries than marginals: it runs, or says in one sentence that it cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.queries.small import DOMAIN, SCHEMA

from pointillist import InputError, Release, Table, Workload, prepare, synthesize
from pointillist.algorithms.measured import _variance, best_intervals, measured_form, tree
from pointillist.algorithms.once import MeasureOnce
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.privacy.facts import Facts
from pointillist.queries import halfspaces as halfspaces_module
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.predicates import Predicates
from pointillist.queries.product import Product
from pointillist.queries.texts import parse_workload

FAST = {"rows": 20, "fits": 1, "t_max": 60, "strength": 1.0}


def people(rows: int = 3000) -> Table:
    """Columns that are tied to each other."""
    rng = np.random.default_rng(0)
    age = rng.integers(4, size=rows)
    sex = (rng.random(rows) < 0.2 + 0.2 * age).astype(int)
    size = np.minimum(2, age + (rng.random(rows) < 0.2))
    return Table(SCHEMA, (age, sex, size, (sex + (rng.random(rows) < 0.1)) % 2))


def mixture() -> Workload:
    found = parse_workload("marginals:1 + prefixes:2@age + halfspaces:6 + conditionals:sex:3", SCHEMA).queries
    return Workload(DOMAIN, (*found, Predicates.of(SCHEMA, 'age < 20 or sex == "f"', "smoker == true")))


@pytest.mark.parametrize(
    ("method", "group", "given"),
    [
        ("auto", None, FAST),
        ("mwem", "query", {"rounds": 30}),
        ("mwem", "marginal", {"rounds": 15}),
        ("pep", "query", {"rounds": 30}),
        ("gem", "marginal", {"rounds": 12, "batch": 40, "inputs": 16, "hidden": "32", "learning_rate": 0.01}),
        ("rap_softmax", "marginal", {"rounds": 3, "rows": 20}),
    ],
)
@pytest.mark.parametrize("direct", [False, True])
def test_methods_take_any_queries(
    monkeypatch: pytest.MonkeyPatch, method: str, group: str | None, given: dict[str, Any], direct: bool, tmp_path: Any
) -> None:
    """With exact counts and by records: the model answers better than chance, and a saved release as before."""
    if direct:
        monkeypatch.setattr(halfspaces_module, "MOST_TABLE", 1)
    table, workload = people(), mixture()
    release = synthesize(
        table, epsilon=20.0, method=method, group=group, workload=workload, settings=given, progress=False
    )
    truth = fractions(table, workload)
    assert compare(workload, truth, release.answers()).mean < 0.05
    release.save(tmp_path / "release")
    again = Release.load(tmp_path / "release")
    assert again.workload == workload
    np.testing.assert_allclose(again.answers(), release.answers(), atol=1e-6)
    outside = parse_workload("halfspaces:3:99 + ranges:1", SCHEMA)
    assert compare(outside, fractions(table, outside), release.answers(outside)).mean < 0.1


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        ("dualquery", {}, "workload must be cells of marginals for an integer program"),
        ("fem", {}, "workload must be cells of marginals for an integer program"),
        ("pep", {"group": "marginal"}, "group must be 'query' for this method on queries that overlap"),
        ("gem", {"group": "query"}, "queries must be products of intervals to be selected one by one on relaxed rows"),
        ("rap", {"group": "query"}, "queries must be products of intervals to be selected one by one"),
    ],
)
def test_what_a_method_cannot_do_is_refused_before_anything_is_spent(
    method: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        prepare(people(50), epsilon=1.0, method=method, workload=mixture(), **options)


@pytest.mark.parametrize("method", ["aim", "mst"])
def test_graphical_models_refuse_wide_queries(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(halfspaces_module, "MOST_TABLE", 1)
    with pytest.raises(InputError, match="workload must be over few columns each for a graphical model, got 9 wide"):
        prepare(people(50), epsilon=1.0, method=method, workload=mixture())


def test_independent_columns_are_answered_for_every_kind() -> None:
    table = people()
    rng = np.random.default_rng(1)
    shuffled = Table(SCHEMA, tuple(rng.permutation(codes) for codes in table.codes))
    expected = independent_columns(table, mixture())
    drawn = compare(mixture(), fractions(table, mixture()), fractions(shuffled, mixture()))
    assert abs(expected.mean - drawn.mean) < 0.01


def test_weights_decide_shares_and_other_methods_refuse_them() -> None:
    members = (Marginal.of(DOMAIN, ("age",)), Predicates.of(SCHEMA, "smoker == true"), Marginal.of(DOMAIN, ("sex",)))
    once = MeasureOnce(members, 3, 1.2, (1.0, 8.0, 1.0))
    facts = Facts(1000, 0.06, prepare(people(50), epsilon=1.0).facts.relation)
    asked = once.asked(facts)
    assert [ask.rho / asked[0].rho for ask in asked] == pytest.approx([1, 4, 1])  # 8^(2/3)
    assert sum(ask.rho for ask in asked) <= facts.rho
    even = replace(once, weights=()).asked(facts)
    assert [ask.rho for ask in even] == pytest.approx([facts.rho / 3] * 3)
    weighted = Workload(DOMAIN, members, (1.0, 8.0, 1.0))
    with pytest.raises(InputError, match="weights must be left out for mwem, which makes no use of them"):
        prepare(people(50), epsilon=1.0, method="mwem", workload=weighted)
    assert prepare(people(50), epsilon=5.0, workload=weighted, settings=FAST).run(progress=False).workload == weighted


def test_too_many_halfspaces_are_measured_in_part() -> None:
    """With much budget some of them, with little none: the pairs of columns are measured in any case."""
    spaces = parse_workload("halfspaces:100", SCHEMA).queries
    for epsilon in (20.0, 0.5):
        job = prepare(people(), epsilon=epsilon, workload="halfspaces:100", settings=FAST)
        measured = [m.queries for m in job.run(progress=False).log.measurements]
        asked = [one for one in measured if isinstance(one, Halfspaces)]
        assert len(asked) == (32 if epsilon > 1 else 0)
        assert set(asked) <= set(spaces)
        assert {one.scope for one in measured if isinstance(one, Marginal)} >= {(0,), (1,)}


# --- what is measured


def test_a_tree_has_every_code_and_parts_of_them() -> None:
    found = tree(7, 3)
    assert found.bounds[:7] == Intervals.values(7).bounds
    assert found.bounds[7:] == ((0, 3), (3, 6))  # the last part is the last code
    assert found.matrix.sum(axis=1).max() == 2


@pytest.mark.parametrize("size", [4, 30, 100])
def test_prefixes_of_fine_columns_are_measured_by_trees(size: int) -> None:
    wanted = Intervals.prefixes(size)
    chosen = best_intervals(wanted)
    variances = {one: _variance(one, wanted) for one in (chosen, wanted, Intervals.values(size))}
    assert variances[chosen] == min(variances.values())
    if size == 100:
        assert chosen not in (wanted, Intervals.values(size))
        assert variances[chosen] < 0.4 * variances[Intervals.values(size)]


def test_the_variance_is_that_of_least_squares() -> None:
    """Against noise that is drawn."""
    wanted, measured = Intervals.prefixes(9), tree(9, 3)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(measured.matrix.shape[1], 20000)) * np.sqrt(measured.matrix.sum(axis=1).max())
    codes = np.linalg.lstsq(measured.matrix.T.astype(float), noise, rcond=None)[0]
    found = (wanted.matrix.T @ codes).var(axis=1).mean()
    assert found == pytest.approx(_variance(measured, wanted), rel=0.05)


def test_forms_determine_what_is_wanted() -> None:
    product = Product.of(DOMAIN, {"age": "prefixes", "sex": "values"})
    form = measured_form(product, DOMAIN)
    assert form.scope == product.scope
    spaces = Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 3]}, [0, 1, 2])
    assert measured_form(spaces, DOMAIN) == spaces.slabs()
    assert measured_form(spaces.slabs(), DOMAIN) == spaces.slabs()
    alone = Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 3]}, 1)
    assert measured_form(alone, DOMAIN) == alone


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_later_rounds_follow_pairs_where_no_halfspace_is_worth_its_noise(relation: str) -> None:
    settings = FAST | {"adaptive_rounds": 1}
    options: dict[str, Any] = {"method": "auto", "workload": "halfspaces:20", "settings": settings}
    release = synthesize(people(50), epsilon=5.0, delta=1e-6, relation=relation, **options)
    first, later = release.log.rounds
    assert {len(one.queries.scope) for one in first.measurements} <= {1, 2}
    assert later.selected
