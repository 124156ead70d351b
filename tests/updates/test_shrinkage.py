"""The default's plan of measurements and its fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import nnls

from pointillist import InputError, Relation, Table, all_kway, synthesize
from pointillist.algorithms import get_method
from pointillist.algorithms.auto import MeasureOnce, closure, useful_error
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.evaluation.errors import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.framework import Log, Replay, Round, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Workload
from pointillist.updates.descent import combined, spread_of
from pointillist.updates.shrinkage import KAPPA, Prior, Problem, nonnegative, one_way, restricted

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 30))


def chain(rows: int, seed: int = 0) -> Table:
    """Each column follows the one before it in nine rows of ten."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(4, size=rows)]
    for _ in range(3):
        codes.append(np.where(rng.random(rows) < 0.9, codes[-1], rng.integers(4, size=rows)))
    columns = tuple(Categorical(name, (0, 1, 2, 3)) for name in "abcd")
    return Table(Schema(columns), tuple(codes))


def test_the_closure_holds_the_workload_first_and_every_part_once() -> None:
    workload = Workload(DOMAIN, ((0, 1, 2), (1, 2, 3), (3,)))
    found = closure(workload).marginals
    assert found[:3] == workload.marginals
    parts = {s for m in workload.marginals for k in range(1, len(m) + 1) for s in itertools.combinations(m, k)}
    assert set(found) == parts
    assert len(found) == len(parts)


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1e-4, 1e-2, 1.0])
def test_what_is_measured_is_not_drowned_and_covers_all_attributes(rho: float) -> None:
    workload = all_kway(DOMAIN, 3)
    schedule = MeasureOnce(closure(workload), len(workload.marginals), 1.2)
    spend = schedule.spend(0, rho, 10_000)
    assert spend is not None
    assert spend.groups is not None
    assert schedule.spend(1, rho, 10_000) is None
    assert Fraction(spend.measure_rho) * len(spend.groups) <= Fraction(rho)
    measured = [schedule.closure.marginals[group] for group in spend.groups]
    variance = len(measured) / (rho * 10_000**2)
    assert all(len(m) == 1 or DOMAIN.cells_of(m) * variance <= 1.2 for m in measured)
    assert {i for m in measured for i in m} == {0, 1, 2, 3}


def test_the_plan_falls_back_marginal_by_marginal() -> None:
    workload = all_kway(DOMAIN, 3)
    schedule = MeasureOnce(closure(workload), len(workload.marginals), 1.2)
    orders = []
    for rho in (1.0, 5e-6, 1e-9):
        spend = schedule.spend(0, rho, 10_000)
        assert spend is not None
        assert spend.groups is not None
        orders.append([len(schedule.closure.marginals[group]) for group in spend.groups])
    assert orders[0] == [3, 3, 3, 3]
    assert set(orders[1]) >= {2, 3}  # the marginal without the wide attribute stays whole
    assert orders[2] == [1, 1, 1, 1]


def test_one_way_marginals_are_averaged_by_precision() -> None:
    workload = Workload(DOMAIN, ((0, 1), (1, 2)))
    first, second = np.arange(6) / 15, np.arange(12)[::-1] / 66
    targets = np.concatenate([first, second])
    precision = np.concatenate([np.full(6, 4.0), np.full(12, 9.0)])
    found = one_way(workload, targets, precision)
    one, two = first.reshape(2, 3).sum(axis=0), second.reshape(3, 4).sum(axis=1)
    expected = (one * 4 / 2 + two * 9 / 4) / (4 / 2 + 9 / 4)
    assert np.allclose(found[1], expected)
    assert np.allclose(found[0], first.reshape(2, 3).sum(axis=1))
    assert np.allclose(found[3], 1 / 30)  # never measured


def test_only_what_was_measured_is_fitted() -> None:
    workload = all_kway(DOMAIN, 2)
    counts = (np.arange(8), np.arange(12))
    log = Log(workload, 100, [Round((Pick(1), Pick(3)), counts, 2.0, selected=False)], [{}])
    small = restricted(log)
    assert small.workload.marginals == (workload.marginals[1], workload.marginals[3])
    targets, precision = combined(small)
    assert np.allclose(targets, np.concatenate(counts) / 100)
    assert np.allclose(precision, (100 / 2.0) ** 2)
    more = restricted(log, [workload.marginals[0], workload.marginals[1]])
    assert more.workload.marginals == tuple(workload.marginals[n] for n in (0, 1, 3))
    assert np.allclose(combined(more)[0][6:], targets)
    assert not combined(more)[1][:6].any()


def test_the_spread_is_zero_for_equal_rows_only() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 1).repeat(3, axis=0).astype(np.float32)
    assert float(spread_of(rows)) == pytest.approx(0, abs=1e-12)
    rows[0] = rows[0][::-1]
    mean = rows.mean(axis=0)
    shares = rows.var(axis=0) / (mean * (1 - mean))
    by_hand = np.sum(np.sqrt(mean) * (1 - mean) * 0.3 * np.log(1 + shares / 0.3))
    assert float(spread_of(rows)) == pytest.approx(by_hand, rel=1e-2)


def learn(
    table: Table, epsilon: float, public: Table | None = None, **settings: float
) -> tuple[tuple[float, float, float], Log]:
    workload = all_kway(table.domain, 3)
    method = get_method("auto")
    beside = None if public is None else PublicTable.encode(public, table.schema)
    algorithm = method.algorithm(workload, method.configure(settings), beside)
    budget = Budget(epsilon, 1 / len(table) ** 2)
    assert algorithm.measurable is not None
    curator = Curator.for_schedule(
        TableSource(table), algorithm.measurable, budget, algorithm.schedule, InsecureSeededNoise(2)
    )
    params, log = run(algorithm, curator, 0)
    errors = compare(workload, fractions(table, workload), algorithm.family.answers(params, workload))
    return (errors.max, errors.rmse, errors.tvd), log


def fit(table: Table, epsilon: float, **settings: float) -> tuple[float, float, float]:
    return learn(table, epsilon, **settings)[0]


def test_shrinkage_helps_where_there_is_noise_and_does_no_harm_where_there_is_none() -> None:
    table = chain(3000)
    assert fit(table, 1.0)[1] < 0.95 * fit(table, 1.0, strength=0.0)[1]
    assert fit(table, 10.0)[1] < 1.1 * fit(table, 10.0, strength=0.0)[1]


def test_more_budget_is_better_and_ties_are_kept() -> None:
    table = chain(3000)
    errors = [fit(table, epsilon)[1] for epsilon in (0.01, 0.3, 10.0)]
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
    method = get_method("auto")
    algorithm = method.algorithm(all_kway(table.domain, 3), method.configure({}))
    assert algorithm.measurable is not None
    curator = Curator.for_schedule(
        TableSource(table), algorithm.measurable, Budget(0.2, 1e-9), algorithm.schedule, InsecureSeededNoise(seed)
    )
    params, _ = run(algorithm, curator, 0)
    pair = Workload(table.domain, ((0, 1),))
    assert algorithm.family.answers(params, pair)[-1] > 0.5 * fractions(table, pair)[-1]


def test_a_value_that_seems_to_be_absent_at_the_start_comes_back() -> None:
    """Noise puts the share of a value at 0, as a sum over its cells, though one of them stands out by far."""
    domain = Domain(("a", "b"), (30, 5))
    total, sigma = 10_000, 40.0
    counts = np.full((30, 5), total / 150)
    counts[0] = -110.0
    counts[0, 0] = 400.0
    method = get_method("auto")
    algorithm = method.algorithm(all_kway(domain, 2), method.configure({"strength": 1.0}))
    assert algorithm.measurable is not None
    log = Log(algorithm.measurable, total, [Round((Pick(0),), (counts.ravel().astype(int),), sigma)], [{}])
    targets, precision = combined(log)
    assert one_way(algorithm.measurable, targets, precision)[0][0] == 0.0
    start, _ = algorithm.begin(np.random.default_rng(0))
    params, _ = algorithm.update(np.random.default_rng(0), start, None, log)
    assert algorithm.family.answers(params, all_kway(domain, 2))[0] > 0.01


def test_the_strength_follows_how_strongly_the_columns_are_tied() -> None:
    """Both tables have the same one-way marginals and the same noise."""
    strengths = [learn(table, 0.1)[1].notes[-1]["strength"] for table in (chain(3000), shuffled(chain(3000)))]
    assert strengths[0] < 0.5
    assert strengths[1] >= 1.0


@pytest.mark.parametrize("relation", list(Relation))
def test_a_release_of_the_default(relation: Relation, tmp_path: object) -> None:
    table = chain(1000)
    release = synthesize(
        table, epsilon=0.5, delta=1e-6, relation=relation, settings={"rows": 20, "t_max": 20}, workload="marginals:3"
    )
    spec = release.spec
    assert spec["method"]["name"] == "auto"
    assert release.workload.marginals == all_kway(table.domain, 3).marginals
    assert len(release.log.workload.marginals) > len(release.workload.marginals)
    assert {entry["mechanism"] for entry in spec["privacy"]["ledger"]} == {"discrete Gaussian"}
    assert release.answers().shape == (release.workload.queries,)


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
    assert log.notes[-1]["public"] == KAPPA
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


def test_the_prior_knows_how_far_the_public_table_is() -> None:
    """Its variances are those of the true distances, on the average over the cells."""
    table, rng = chain(20_000), np.random.default_rng(0)
    workload = all_kway(table.domain, 2)
    truth, sigma = fractions(table, workload), 0.01
    for public in (chain(300, seed=1), shuffled(chain(2000, seed=1))):
        encoded = PublicTable.encode(public, table.schema)
        precision = np.full(len(truth), sigma**-2)
        found = []
        for _ in range(20):
            noisy = truth + sigma * rng.standard_normal(len(truth))
            prior = Prior.of(encoded, Problem(Log(workload, 20_000), noisy, precision, sigma))
            assert prior is not None
            found.append(prior.variances.mean())
        distance = np.mean((fractions(public, workload) - truth) ** 2)
        assert np.allclose(prior.fractions, fractions(public, workload))
        assert np.mean(found) == pytest.approx(distance, rel=0.4)


def test_a_prior_needs_a_measured_marginal() -> None:
    table = chain(50)
    workload = Workload(table.domain, ((0, 1), (2, 3)))
    encoded = PublicTable.encode(table.project(["a", "b"]), table.schema)
    precision = np.repeat([0.0, 1.0], 16)
    assert Prior.of(encoded, Problem(Log(workload, 50), np.zeros(32), precision, 1.0)) is None
    prior = Prior.of(encoded, Problem(Log(workload, 50), np.zeros(32), np.ones(32), 1.0))
    assert prior is not None
    assert prior.known.tolist() == [True] * 16 + [False] * 16
    half = np.repeat([1.0, 0.0], 16)
    public = PublicTable.encode(table, table.schema)
    for beside, known in ((frozenset[tuple[int, ...]](), False), (frozenset({(2, 3)}), True)):
        prior = Prior.of(public, Problem(Log(workload, 50), np.zeros(32), half, 1.0, beside))
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
    privacy = release.spec["privacy"]
    assert privacy["accounting"] == "zCDP"
    assert [entry["label"] for entry in privacy["ledger"]].count("selection") == 5
    assert privacy["rho"] * 0.999 <= privacy["rho_spent"] <= privacy["rho"]
    assert [len(entry.picks) for entry in release.log.rounds] == [4, 1, 1, 1, 1, 1]
    assert release.spec["method"]["rule"].startswith("UsefulError(noise=")
    again = synthesize(table, epsilon=1.0, settings={**settings, "adaptive_rounds": 0}, workload="marginals:3")
    assert again.spec["privacy"]["accounting"] == "Gaussian"


def test_the_weights_of_aims_score() -> None:
    workload = Workload(DOMAIN, ((0, 1, 2), (1, 2, 3)))
    rule = useful_error(workload, closure(workload))
    weights = dict(zip(closure(workload).marginals, rule.weights, strict=True))
    assert weights[0, 1, 2] == 5
    assert weights[1, 2] == 4
    assert weights[3,] == 1
    assert rule.sensitivity(Relation.REPLACE) == 10
    assert rule.sensitivity(Relation.ADD_REMOVE) == 5


@pytest.mark.parametrize(("adaptive", "lacks"), [(0, False), (0, True), (3, False), (3, True)])
def test_a_replay_with_public_data_and_adaptive_rounds_is_identical(adaptive: int, lacks: bool) -> None:
    table = chain(800)
    public = chain(500, seed=1).project(["a", "b", "c"]) if lacks else chain(500, seed=1)
    workload, method = all_kway(table.domain, 3), get_method("auto")
    settings = {"rows": 20, "t_max": 20, "adaptive_rounds": adaptive}
    beside = PublicTable.encode(public, table.schema)
    algorithm = method.algorithm(workload, method.configure(settings), beside)
    assert algorithm.measurable is not None
    budget, noise = Budget(0.5, 1e-6), InsecureSeededNoise(2)
    curator = Curator.for_schedule(TableSource(table), algorithm.measurable, budget, algorithm.schedule, noise)
    params, log = run(algorithm, curator, 0)
    again, _ = run(algorithm, Replay(log, curator.planned_rho), 0)
    assert np.array_equal(params["logits"], again["logits"])
    assert len(log.rounds) == 1 + adaptive
