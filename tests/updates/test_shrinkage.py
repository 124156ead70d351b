"""The default's plan of measurements and its fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from pointillist import (
    InputError,
    Product,
    Relation,
    Release,
    Table,
    Workload,
    all_kway,
    prepare,
    synthesize,
)
from pointillist.algorithms import Task, get_method
from pointillist.algorithms.auto import useful_error
from pointillist.algorithms.once import MeasureOnce, closure
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Log, Measure, Replay, Round, run
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries, parts_of
from pointillist.queries.candidates import Whole
from pointillist.queries.measurement import Measurement
from pointillist.reporting import steps_of
from pointillist.updates.losses import TiePenalty
from pointillist.updates.shrinkage import KAPPA, TAU, PublicCells, ShrunkenFit, Split, Target, nonnegative
from pointillist.updates.target import Measured, one_way

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 30))


def chain(rows: int, seed: int = 0) -> Table:
    """Each column follows the one before it in nine rows of ten."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(4, size=rows)]
    for _ in range(3):
        codes.append(np.where(rng.random(rows) < 0.9, codes[-1], rng.integers(4, size=rows)))
    columns = tuple(Categorical(name, (0, 1, 2, 3)) for name in "abcd")
    return Table(Schema(columns), tuple(codes))


def auto(workload: Workload, public: PublicTable | None = None, **settings: Any) -> Algorithm[Any]:
    method = get_method("auto")
    return method.algorithm(Task(workload, public=public), method.configure(settings))


def update_of(workload: Workload, **changes: Any) -> ShrunkenFit:
    """The update of auto, with some of its fields changed."""
    update = auto(workload).update
    assert isinstance(update, ShrunkenFit)
    return replace(update, **changes)


def test_columns_that_a_run_merges_into_one_value_each_leave_nothing_to_fit() -> None:
    """Lists of 3,000 values with as many rows, and a budget that tells none of them from the others."""
    rng, labels = np.random.default_rng(0), tuple(range(3000))
    codes = tuple(rng.integers(0, 3000, 3000) for _ in range(2))
    table = Table(Schema((Categorical("a", labels), Categorical("b", labels))), codes)
    release = synthesize(table, epsilon=0.3, delta=1e-6, workload="marginals:2", seed=0, insecure_noise_seed=0)
    assert release.schema.domain.sizes == (1, 1)
    assert release.answers().tolist() == [1.0]
    assert len(release.table) == 3000
    assert len(set(release.table.to_pandas()["a"])) > 1


def asked_by(strategy: MeasureOnce, rho: float) -> tuple[Ask, ...]:
    """What is measured with 10,000 rows, in the only round."""
    facts = Facts(10_000, rho)
    step = strategy.step(0, facts, Log(facts), None, None)
    assert isinstance(step, Measure)
    assert strategy.step(1, facts, Log(facts), None, None) is None
    return step.asked


def test_the_closure_holds_the_workload_first_and_every_part_once() -> None:
    workload = Workload.of(DOMAIN, [(0, 1, 2), (1, 2, 3), (3,)])
    found = closure(workload)
    assert found.queries[:3] == workload.queries
    parts = {s for m in workload.scopes for k in range(1, len(m) + 1) for s in itertools.combinations(m, k)}
    assert set(found.scopes) == parts
    assert len(found.scopes) == len(parts)


def test_the_closure_of_products_holds_products() -> None:
    """Of a query that says nothing about an attribute, only the other factors are left."""
    workload = Workload.of(DOMAIN, [Product.of(DOMAIN, {"b": "prefixes", "c": "values"})])
    found = closure(workload).queries
    parts = [Product.of(DOMAIN, {"b": "prefixes"}), Product.of(DOMAIN, {"c": "values"})]
    assert found[0] == workload.queries[0]
    assert set(found[1:]) == set(parts)


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1e-4, 1e-2, 1.0])
def test_what_is_measured_is_not_drowned_and_covers_all_attributes(rho: float) -> None:
    workload = all_kway(DOMAIN, 3)
    asked = asked_by(MeasureOnce(closure(workload).queries, len(workload.queries), 1.2), rho)
    assert len({ask.rho for ask in asked}) == 1
    assert sum(Fraction(ask.rho) for ask in asked) <= Fraction(rho)
    measured = [ask.queries for ask in asked]
    variance = len(measured) / (rho * 10_000**2)
    assert all(len(m.scope) == 1 or m.size * variance <= 1.2 for m in measured)
    assert {i for m in measured for i in m.scope} == {0, 1, 2, 3}


def test_the_plan_falls_back_marginal_by_marginal() -> None:
    workload = all_kway(DOMAIN, 3)
    strategy = MeasureOnce(closure(workload).queries, len(workload.queries), 1.2)
    orders = [[len(ask.queries.scope) for ask in asked_by(strategy, rho)] for rho in (1.0, 5e-6, 1e-9)]
    assert orders[0] == [3, 3, 3, 3]
    assert set(orders[1]) >= {2, 3}  # the marginal without the wide attribute stays whole
    assert orders[2] == [1, 1, 1, 1]


def test_only_what_was_measured_is_fitted() -> None:
    workload = all_kway(DOMAIN, 2)
    queries = workload.queries
    counts = (np.arange(8), np.arange(12))
    measured = tuple(Measurement(queries[n], values, 2.0) for n, values in zip((1, 3), counts, strict=True))
    log = Log(Facts(100, 1.0), [Round(measurements=measured)])
    small = update_of(workload, measurable=queries).target(log)
    assert small.queries == (queries[1], queries[3])
    targets, weights = small.on.of_marginals
    assert np.allclose(weights, (100 / 2.0) ** 2)
    columns = tuple(
        Categorical(name, tuple(range(size))) for name, size in zip(DOMAIN.names, DOMAIN.sizes, strict=True)
    )
    public = Table(Schema(columns), tuple(np.zeros(3, int) for _ in columns))
    beside = PublicTable.encode(public, public.schema)
    more = update_of(workload, measurable=queries, wanted=queries[:2], public=beside).target(log)
    assert more.queries == tuple(queries[n] for n in (0, 1, 3))
    assert np.allclose(more.on.of_marginals[0][6:], targets)
    assert not more.on.of_marginals[1][:6].any()
    whole = update_of(workload, measurable=queries, whole=True).target(log)
    assert whole.queries == queries
    assert np.count_nonzero(whole.on.of_marginals[1]) == 20


def test_the_spread_is_zero_for_equal_rows_only() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 1).repeat(3, axis=0).astype(np.float32)
    assert float(TiePenalty(0.4).value(rows)) == pytest.approx(0, abs=1e-12)
    rows[0] = rows[0][::-1]
    mean = rows.mean(axis=0)
    shares = rows.var(axis=0) / (mean * (1 - mean))
    by_hand = np.sum(np.sqrt(mean) * (1 - mean) * 0.3 * np.log(1 + shares / 0.3))
    assert float(TiePenalty(0.4).value(rows)) == pytest.approx(by_hand, rel=1e-2)


def released(
    table: Table, epsilon: float, public: Table | None = None, delta: float | None = None, noise: int = 2,
    **settings: Any,
) -> Release:  # fmt: skip
    """Of the whole workload, measured once: these tests are about the fit."""
    return prepare(
        table, epsilon=epsilon, delta=delta, method="auto", workload="marginals:3", public=public,
        settings={"ties": False} | settings, insecure_noise_seed=noise,
    ).run()  # fmt: skip


def learn(
    table: Table, epsilon: float, public: Table | None = None, **settings: float
) -> tuple[tuple[float, float, float], Log]:
    release = released(table, epsilon, public, **settings)
    errors = compare(release.workload, fractions(table, release.workload), release.answers())
    return (errors.max, errors.rmse, errors.tvd), release.log


def fit(table: Table, epsilon: float, **settings: float) -> tuple[float, float, float]:
    return learn(table, epsilon, **settings)[0]


def test_shrinkage_helps_where_there_is_noise_and_does_no_harm_where_there_is_none() -> None:
    table = chain(3000)
    assert fit(table, 1.0)[1] < 0.95 * fit(table, 1.0, strength=0.0)[1]
    chosen, none = (np.mean([fit(table, 10.0, noise=n, **how)[1] for n in range(3)]) for how in ({}, {"strength": 0.0}))
    assert chosen < 1.2 * none


def test_more_budget_is_better_and_ties_are_kept() -> None:
    table = chain(3000)
    for ties in (False, True):
        errors = [fit(table, epsilon, ties=ties)[1] for epsilon in (0.01, 0.3, 10.0)]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.1 * independent_columns(table, all_kway(table.domain, 3)).rmse


@pytest.mark.parametrize("seed", [0, 1])
def test_a_strong_tie_of_rare_values_outlasts_the_shrinkage(seed: int) -> None:
    """Two columns have their last value in the same 6 % of the rows, and nothing else in common."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(7, size=30_000) for _ in range(4)]
    both = rng.random(30_000) < 0.06
    for column in codes[:2]:
        column[both] = 7
    table = Table(Schema(tuple(Categorical(name, tuple(range(8))) for name in "abcd")), tuple(codes))
    release = released(table, 0.2, delta=1e-9, noise=seed)
    pair = Workload.of(table.domain, [(0, 1)])
    assert release.answers(pair)[-1] > 0.5 * fractions(table, pair)[-1]


def test_a_value_that_seems_to_be_absent_at_the_start_comes_back() -> None:
    """Noise puts the share of a value at 0, as a sum over its cells, though one of them stands out by far."""
    domain = Domain(("a", "b"), (30, 5))
    total, sigma = 10_000, 40.0
    counts = np.full((30, 5), total / 150)
    counts[0] = -110.0
    counts[0, 0] = 400.0
    algorithm = auto(all_kway(domain, 2), strength=0.8, ties=False)
    assert isinstance(algorithm.update, ShrunkenFit)
    measurable = algorithm.update.measurable
    measurement = Measurement(measurable[0], counts.ravel().astype(int), sigma)
    log = Log(Facts(total, 1.0), [Round(measurements=(measurement,))])
    assert one_way(Measured.of(domain, log))[0][0] == 0.0
    start, _ = algorithm.begin(np.random.default_rng(0))
    params, *_ = algorithm.update(np.random.default_rng(0), start, None, log)
    assert algorithm.family.answers(params, all_kway(domain, 2).queries)[0] > 0.01


def test_the_strength_follows_how_strongly_the_columns_are_tied() -> None:
    """Both tables have the same one-way marginals and the same noise."""
    strengths = [learn(table, 0.1)[1].info[-1]["strength"] for table in (chain(3000), shuffled(chain(3000)))]
    assert strengths[0] < 0.5
    assert strengths[1] >= 1.0


def test_fits_are_judged_with_the_standard_error_of_what_is_held_out() -> None:
    """Over splits of the noise, the gain of one model over another has the spread that judgements allow for."""
    table = chain(2000)
    workload = all_kway(table.domain, 2)
    update = update_of(workload)
    target = update.target(learn(table, 1.0, strength=1.0)[1])
    rng = np.random.default_rng(0)
    answers = fractions(table, Workload(table.domain, target.queries))
    new, old = (answers + 0.003 * rng.standard_normal(len(answers)) for _ in range(2))
    gains, errors = [], []
    with steps_of("choosing") as made:
        for seed in range(600):
            split = Split(update, np.random.default_rng(seed), target, made, 1)
            held_out, weights = split._held_out, split._relevance
            gains.append(held_out.distance(old, weights) - held_out.distance(new, weights))
            errors.append(split._error(held_out.apart(new, old, split._spread)))
            assert split.better(new, old, 1.0) == (gains[-1] > errors[-1])
    assert np.ptp(errors) < 1e-6 * errors[0]
    # y itself has one draw of noise here; splitting adds tau^-2 times its variance.
    assert np.std(gains) == pytest.approx(errors[0] * math.sqrt(TAU**-2 / (1 + TAU**-2)), rel=0.1)


def test_descents_are_short_where_they_leave_no_more_than_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here small tables may have short descents. A run that repeats another one has what that one had."""
    monkeypatch.setattr("pointillist.updates.shrinkage.SHORT_FROM", 1)
    for table, short, steps in ((shuffled(chain(3000)), 1.0, 200.0), (chain(3000), 0.0, 600.0)):
        log = learn(table, 0.1)[1]
        assert (log.info[-1]["short"], log.info[-1]["steps"]) == (short, steps)
        update, strength = update_of(all_kway(table.domain, 3)), log.info[-1]["strength"]
        kept, less = update.again(log).kept, update.again(log, 0.1).kept
        assert kept is not None
        assert (kept.short, kept.strength) == (short > 0, strength)
        assert less is not None
        assert less.strength == pytest.approx(0.1 * min(1.0, strength))


def test_small_tables_have_long_descents() -> None:
    assert learn(shuffled(chain(3000)), 0.1, t_max=30)[1].info[-1]["steps"] == 30


@pytest.mark.parametrize("relation", list(Relation))
def test_a_release_of_the_default(relation: Relation, tmp_path: object) -> None:
    table = chain(1000)
    release = synthesize(
        table, epsilon=0.5, delta=1e-6, relation=relation, settings={"rows": 20, "t_max": 20}, workload="marginals:3"
    )
    description = release.description
    assert description.method.name == "auto"
    assert release.workload == all_kway(table.domain, 3)
    measurable = closure(release.workload).queries
    assert len(measurable) > len(release.workload.queries)
    scopes = {part.scope for one in release.log.measurements for part in parts_of(one.queries)}
    assert scopes <= {one.scope for one in measurable}
    assert {2, 3} & {len(part.scope) for part in parts_of(release.log.measurements[-1].queries)}
    assert {entry.mechanism for entry in description.privacy.ledger} == {"discrete Gaussian"}
    assert release.answers().shape == (release.workload.size,)


def test_bad_settings_are_named() -> None:
    method = get_method("auto")
    for name, value in (("most_noise", 0.0), ("strength", -1.0), ("adaptive_rounds", -1)):
        with pytest.raises(InputError, match=f"^{name} must"):
            method.configure({name: value})


# --- public data


def shuffled(table: Table) -> Table:
    """Every column by itself: the one-way marginals stay, all ties are lost."""
    rng = np.random.default_rng(4)
    return Table(table.schema, tuple(rng.permutation(codes) for codes in table.codes))


def uniform(table: Table) -> Table:
    rng = np.random.default_rng(4)
    return Table(table.schema, tuple(rng.integers(4, size=len(table)) for _ in table.codes))


@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_near_public_data_helps(epsilon: float) -> None:
    table = chain(3000)
    without, _ = learn(table, epsilon)
    near, log = learn(table, epsilon, chain(2000, seed=1))
    assert log.info[-1]["public"] == KAPPA
    assert near[1] < 0.5 * without[1]
    assert near[2] < 0.5 * without[2]
    lacks = chain(2000, seed=1).project(["a", "b", "c"])  # a column short: of four marginals, it has one
    assert learn(table, epsilon, lacks)[0][1] < without[1]


@pytest.mark.parametrize("far", [shuffled, uniform])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_far_public_data_does_no_harm(far: Callable[[Table], Table], epsilon: float) -> None:
    table = chain(3000)
    without, _ = learn(table, epsilon)
    with_it, _ = learn(table, epsilon, far(chain(2000, seed=1)))
    assert with_it[1] <= 1.1 * without[1]
    assert with_it[2] <= 1.1 * without[2]


def target_of(queries: Sequence[Queries], fractions: np.ndarray, sigma: float) -> Target:
    """What a fit aims at if marginals were measured with this noise."""
    domain = Domain(tuple("abcd"), (4,) * 4)
    parts = np.split(fractions, np.cumsum([one.size for one in queries])[:-1])
    found = tuple(Measurement(one, 1000 * part, 1000 * sigma) for one, part in zip(queries, parts, strict=True))
    log = Log(Facts(1000, 1.0), [Round(measurements=found)])
    return Target(Measured.of(domain, log), tuple(queries), sigma)


def test_the_prior_knows_how_far_the_public_table_is() -> None:
    """Its variances are those of the true distances, on the average over the cells."""
    table, rng = chain(20_000), np.random.default_rng(0)
    workload = all_kway(table.domain, 2)
    truth, sigma = fractions(table, workload), 0.01
    for public in (chain(300, seed=1), shuffled(chain(2000, seed=1))):
        encoded = PublicTable.encode(public, table.schema)
        found = []
        for _ in range(20):
            noisy = truth + sigma * rng.standard_normal(len(truth))
            prior = PublicCells.of(encoded, target_of(workload.queries, noisy, sigma))
            assert prior is not None
            found.append(prior.variances.mean())
        distance = np.mean((fractions(public, workload) - truth) ** 2)
        assert np.allclose(prior.fractions, fractions(public, workload))
        assert np.mean(found) == pytest.approx(distance, rel=0.4)


def test_a_prior_needs_a_measured_marginal() -> None:
    table = chain(50)
    queries = Workload.of(table.domain, [(0, 1), (2, 3)]).queries
    encoded = PublicTable.encode(table.project(["a", "b"]), table.schema)
    assert PublicCells.of(encoded, target_of(queries[1:], np.zeros(16), 1.0)) is None
    prior = PublicCells.of(encoded, target_of(queries, np.zeros(32), 1.0))
    assert prior is not None
    assert prior.known.tolist() == [True] * 16 + [False] * 16
    public = PublicTable.encode(table, table.schema)
    for borrowed, known in ((frozenset[Queries](), False), (frozenset({queries[1]}), True)):
        half = replace(target_of(queries[:1], np.zeros(16), 1.0), queries=queries, borrowed=borrowed)
        prior = PublicCells.of(public, half)
        assert prior is not None
        assert prior.known.tolist() == [True] * 16 + [known] * 16


@pytest.mark.parametrize(
    ("truth", "expected"), [((2.0, 3.0), (2.0, 3.0)), ((2.0, -1.0), None), ((-1.0, 2.0), None), ((-1.0, -1.0), (0, 0))]
)
def test_least_squares_without_negative_coefficients(
    truth: tuple[float, float], expected: tuple[float, float] | None
) -> None:
    rng = np.random.default_rng(0)
    design = rng.random((50, 2))
    values = design @ np.array(truth)
    found = nonnegative(design.T @ design, design.T @ values)
    assert min(found) >= 0
    best, _ = nnls(design, values)
    assert np.allclose(found, best, atol=1e-9)
    if expected is not None:
        assert np.allclose(found, expected)


# --- adaptive rounds


def test_adaptive_rounds_select_by_aims_score_and_keep_to_the_budget() -> None:
    table = chain(2000)
    settings = {"rows": 20, "t_max": 20, "adaptive_rounds": 5}
    release = synthesize(table, epsilon=1.0, settings=settings, workload="marginals:3")
    privacy = release.description.privacy
    assert privacy.accounting == "zCDP"
    assert [entry.label for entry in privacy.ledger].count("selection") == 5
    assert privacy.rho * 0.999 <= privacy.rho_spent <= privacy.rho
    assert [len(entry.measurements) for entry in release.log.rounds] == [4, 1, 1, 1, 1, 1]
    assert [len(entry.picks) for entry in release.log.rounds] == [0, 1, 1, 1, 1, 1]  # the first ones are not chosen
    assert "UsefulError(noise=" in release.description.method.strategy
    again = synthesize(table, epsilon=1.0, settings={**settings, "adaptive_rounds": 0}, workload="marginals:3")
    assert again.description.privacy.accounting == "Gaussian"


def test_the_weights_of_aims_score() -> None:
    workload = Workload.of(DOMAIN, [(0, 1, 2), (1, 2, 3)])
    measurable = closure(workload)
    rule = useful_error(workload, measurable.queries)
    weights = dict(zip(measurable.scopes, rule.weights, strict=True))
    assert weights[0, 1, 2] == 5
    assert weights[1, 2] == 4
    assert weights[3,] == 1
    candidates = Whole(measurable.queries)
    assert rule.sensitivity(candidates, Relation.REPLACE) == 10
    assert rule.sensitivity(candidates, Relation.ADD_REMOVE) == 5


@pytest.mark.parametrize(("adaptive", "lacks"), [(0, False), (0, True), (3, False), (3, True)])
def test_a_replay_with_public_data_and_adaptive_rounds_is_identical(adaptive: int, lacks: bool) -> None:
    table = chain(800)
    public = chain(500, seed=1).project(["a", "b", "c"]) if lacks else chain(500, seed=1)
    job = prepare(
        table, epsilon=0.5, delta=1e-6, method="auto", workload="marginals:3", public=public, insecure_noise_seed=2,
        settings={"rows": 20, "t_max": 20, "adaptive_rounds": adaptive},
    )  # fmt: skip
    release = job.run()
    again, _ = run(job.algorithm, Replay(release.log), 0)
    assert np.array_equal(release.params["logits"], again["logits"])
    assert len(release.log.rounds) == (1 + adaptive if adaptive else 3)


def test_a_program_may_answer_more_than_what_is_fitted() -> None:
    """What counts for nothing changes no distance."""
    domain = Domain(tuple("abc"), (2, 3, 4))
    first, second, third = all_kway(domain, 2).queries
    found = tuple(Measurement(one, np.arange(float(one.size)), 1.0) for one in (third, first))
    measured = Measured.of(domain, Log(Facts(100, 1.0), [Round(measurements=found)]))
    few, many = measured.on((third, first)), measured.on((first, second, third))
    assert not many.of_marginals[1][6:14].any()
    family = Relaxed(SoftmaxRows(domain, 5))
    params = family.init(np.random.default_rng(0))
    distances = [on.distance(family.answers(params, on.queries)) for on in (few, many)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-5)
