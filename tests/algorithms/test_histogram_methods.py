"""MWEM and PEP against cases worked by hand, and the theory behind PEP."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from pointillist import Categorical, InputError, Intervals, Product, Schema, Table, prepare
from pointillist.algorithms import METHODS, Task
from pointillist.algorithms.mwem import MultiplicativeWeights
from pointillist.algorithms.pep import EntropyProjection
from pointillist.data.datasets import load
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.families.histogram import FLOOR, Histogram
from pointillist.framework import Log, Round, most_rounds
from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import Pick
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.workload import Workload

TOTAL = 1000


def log_of(*measured: tuple[Queries, Any], total: int = TOTAL, sigma: float = 1.0) -> Log:
    """A log with one round for each of the measured queries."""
    log = Log(Facts(total, rho=1.0))
    for queries, counts in measured:
        measurement = Measurement(queries, np.array(counts), sigma)
        log.rounds.append(Round((Pick(queries),), (measurement,), selected=True))
    return log


def single(domain: Domain, k: int, number: int) -> Queries:
    """One of the cells of all k-way marginals."""
    return Grouping.QUERY.candidates(all_kway(domain, k).queries)[number]


def test_one_mwem_step_by_hand() -> None:
    """Uniform over 2 x 2, the query x = (0, 0) measured at 0.5: weight e^(0.5 (0.5 - 0.25)) against 1."""
    domain = Domain(("a", "b"), (2, 2))
    family = Histogram(domain)
    update = MultiplicativeWeights(family, eta=0.5, past=True)
    log = log_of((single(domain, 2, 0), [500]))
    params, *_ = update(np.random.default_rng(0), family.init(np.random.default_rng(0)), None, log)
    factor = np.exp(0.5 * (0.5 - 0.25))
    expected = np.array([[factor, 1], [1, 1]]) / (factor + 3)
    assert np.allclose(params, expected)


def test_mwem_applies_past_measurements_again_if_their_error_is_half_of_the_new_one() -> None:
    domain = Domain(("a",), (4,))
    family = Histogram(domain)
    start = np.full(4, 0.25)
    # Errors: 0.10 for the new query, 0.06 (applied again) and 0.02 (left alone) for the past ones.
    log = log_of(*((single(domain, 1, n), [count]) for n, count in enumerate((310, 270, 350))))
    with_past, *_ = MultiplicativeWeights(family, 0.5, past=True)(np.random.default_rng(0), start.copy(), None, log)
    first = np.array([1, 1, np.exp(0.5 * 0.1), 1]) * start
    first /= first.sum()
    second = first * np.array([np.exp(0.5 * (0.31 - first[0])), 1, 1, 1])
    assert np.allclose(with_past, second / second.sum())
    without, *_ = MultiplicativeWeights(family, 0.5, past=False)(np.random.default_rng(0), start.copy(), None, log)
    assert np.allclose(without, first)


def test_one_pep_projection_by_hand() -> None:
    """Uniform over 2 x 2, the query a = 0 measured at 0.8: both its cells get 0.4, the others 0.1."""
    domain = Domain(("a", "b"), (2, 2))
    update = EntropyProjection(Histogram(domain), slack=0.0, t_max=25)
    # -lambda = ln(0.8 * 0.5 / (0.2 * 0.5)) = ln 4
    assert np.allclose(update.factors(np.array([0.8]), np.array([0.5]), 0.0), [4.0])
    log = log_of((Marginal.of(domain, ("a",)).take([0]), [800]))
    params, *_ = update(np.random.default_rng(0), np.full((2, 2), 0.25), None, log)
    assert np.allclose(params, [[0.4, 0.4], [0.1, 0.1]])


def test_pep_by_marginal_reaches_consistent_marginals() -> None:
    domain = Domain(("a", "b", "c"), (2, 3, 2))
    queries = all_kway(domain, 2).queries
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    marginals = [truth.sum(2).ravel(), truth.sum(1).ravel(), truth.sum(0).ravel()]
    counts = [np.rint(answers * 10**9).astype(np.int64) for answers in marginals]
    log = log_of(*zip(queries, counts, strict=True), total=10**9)
    update = EntropyProjection(Histogram(domain), 0.0, 500)
    params = np.full((2, 3, 2), 1 / 12)
    for _ in range(100):
        params, *_ = update(rng, params, None, log)
    assert np.allclose(Histogram(domain).answers(params, queries), np.concatenate(marginals), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_projection_meets_its_constraint_and_lowers_the_dual_loss(data: st.DataObject) -> None:
    """With gamma = 0 a step minimises L along one coordinate: L never rises, and the constraint holds after it."""
    sizes = tuple(data.draw(st.lists(st.integers(2, 4), min_size=2, max_size=3)))
    domain = Domain(tuple("abc"[: len(sizes)]), sizes)
    drawn = st.integers(0, all_kway(domain, 2).size - 1)
    queries = [single(domain, 2, n) for n in data.draw(st.lists(drawn, min_size=1, max_size=5, unique=True))]
    answers = [data.draw(st.integers(10, 990)) for _ in queries]
    log = log_of(*((q, [a]) for q, a in zip(queries, answers, strict=True)))
    step = EntropyProjection(Histogram(domain), 0.0, 1)
    targets = np.array(answers) / TOTAL
    indicators = np.concatenate([holds(domain, q) for q in queries]).astype(float)

    def dual(lambdas: np.ndarray) -> float:
        return float(np.log(np.exp(indicators.T @ lambdas - lambdas @ targets).sum()))

    params, lambdas = np.full(sizes, 1 / domain.cells), np.zeros(len(queries))
    for _ in range(10):
        answers_now = indicators @ params.ravel()
        errors = np.abs(answers_now - targets)
        worst = int(np.argmax(errors))
        assume(len(errors) == 1 or np.diff(np.sort(errors))[-1] > 1e-9)  # rounding decides between equal errors
        moved = lambdas.copy()
        moved[worst] += np.log(step.factors(targets[worst : worst + 1], answers_now[worst : worst + 1], 0.0)[0])
        params, *_ = step(np.random.default_rng(0), params, None, log)
        assert dual(moved) <= dual(lambdas) + 1e-9
        lambdas = moved
        weights = np.exp(indicators.T @ lambdas)
        assert np.allclose(params.ravel(), weights / weights.sum(), atol=1e-9)
        assert (indicators[worst] @ params.ravel()) == pytest.approx(targets[worst], abs=1e-9)


def test_pep_leaves_errors_up_to_gamma_alone_and_moves_larger_ones_to_it() -> None:
    """The noise has a standard deviation of 0.001; the largest of two is about 0.0012."""
    domain = Domain(("a",), (2,))
    update = EntropyProjection(Histogram(domain), slack=0.2 / (0.001 * np.sqrt(2 * np.log(2))), t_max=25)
    for counts, expected, projections in (([650], 0.5, 0), ([750], 0.55, 1), ([250], 0.45, 1)):
        log = log_of((single(domain, 1, 0), counts))
        params, _, info = update(np.random.default_rng(0), np.full(2, 0.5), None, log)
        assert np.allclose(params, [expected, 1 - expected])
        assert info["projections"] == projections


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_projection_by_marginal_is_the_nearest_distribution_within_the_tolerance(data: st.DataObject) -> None:
    """No other distribution within gamma of the measurement has a smaller relative entropy to the one before."""
    cells = data.draw(st.integers(2, 6))
    shares = st.lists(st.integers(1, 100), min_size=cells, max_size=cells)
    q, a = (np.array(data.draw(shares), float) for _ in range(2))
    q, a = q / q.sum(), a / a.sum()
    gamma = data.draw(st.sampled_from([0.0, 0.01, 0.05, 0.3]))
    update = EntropyProjection(Histogram(Domain(("a",), (cells,))), slack=1.0, t_max=1)
    b = q * update.factors(a, q, gamma)
    assert b.sum() == pytest.approx(1, abs=1e-9)
    assert np.abs(b - a).max() <= gamma + 1e-9

    def distance(p: np.ndarray) -> float:
        return float(np.sum(p * np.log(p / q)))

    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    tried = 0
    for _ in range(200):  # small moves of mass between two cells that stay within the tolerance
        one, other = rng.choice(cells, 2, replace=False)
        moved = b.copy()
        step = min(rng.choice([1e-4, 1e-3]), moved[one] / 2)
        moved[one] -= step
        moved[other] += step
        if np.abs(moved - a).max() <= gamma:
            tried += 1
            assert distance(moved) >= distance(b) - 1e-9
    assert tried or gamma < 0.3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_measurements_that_contradict_each_other_leave_finite_weights(dtype: type[np.floating[Any]]) -> None:
    """All rows have one value, and some of them another: projections go to and fro and blow the weights up."""
    domain = Domain(("a", "b"), (4, 3))
    first = Marginal.of(domain, ("a",))
    log = log_of((first.take([0]), [1100]), (first.take([1]), [20]), (first.take([2]), [15]))
    params = np.full((4, 3), 1 / 12, dtype)
    update = EntropyProjection(Histogram(domain), 0.0, 25)
    for _ in range(20):
        params, *_ = update(np.random.default_rng(0), params, None, log)
        assert np.isfinite(params).all()
        assert params.min() >= FLOOR * 0.99
        assert params.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("method", "slack"), [("pep", 0.3), ("pep_pub", 0.6)])
def test_by_marginal_pep_allows_for_the_noise_unless_told_otherwise(method: str, slack: float) -> None:
    chosen = METHODS[method]
    table = load("demo")
    public = PublicTable.encode(table, table.schema) if method == "pep_pub" else None
    for grouping, settings_, expected in (
        (Grouping.MARGINAL, {}, slack),
        (Grouping.QUERY, {}, 0.0),
        (Grouping.MARGINAL, {"slack": "0"}, 0.0),
    ):
        task = Task(all_kway(table.domain, 2), grouping, public)
        update = chosen.algorithm(task, chosen.configure(settings_)).update
        assert isinstance(update, EntropyProjection)
        assert update.slack == expected


def test_pep_by_marginal_learns_less_noise_with_slack() -> None:
    """Noise of one standard deviation on every cell of a marginal: the uniform distribution is closer to the truth."""
    domain = Domain(("a", "b"), (10, 10))
    (queries,) = all_kway(domain, 2).queries
    rng = np.random.default_rng(0)
    truth = np.full((10, 10), 0.01)
    truth[0] = 0.03
    truth /= truth.sum()
    sigma, total = 500.0, 100_000
    noisy = np.rint(truth.ravel() * total + sigma * rng.standard_normal(100)).astype(np.int64)
    found = {}
    for slack in (0.0, 0.3):
        log = log_of((queries, noisy), total=total, sigma=sigma)
        params, *_ = EntropyProjection(Histogram(domain), slack, 25)(rng, np.full((10, 10), 0.01), None, log)
        found[slack] = float(np.sqrt(np.mean((params - truth) ** 2)))
    assert found[0.3] < 0.8 * found[0.0]


def holds(domain: Domain, queries: Queries) -> np.ndarray:
    """For each of the queries, whether it holds for each record of the domain: m x cells."""
    return queries.holds(tuple(np.indices(domain.sizes).reshape(len(domain), -1))).T


@pytest.mark.parametrize(("method", "counts"), [("mwem", [50, 80, 105]), ("pep", [20, 40, 45])])
def test_by_marginal_the_rounds_follow_the_budget_within_bounds(method: str, counts: list[int]) -> None:
    chosen = METHODS[method]
    domain = Domain(tuple(f"x{i}" for i in range(15)), (2,) * 15)

    def rounds(rho: float, grouping: Grouping = Grouping.MARGINAL, **settings: int) -> int:
        algorithm = chosen.algorithm(Task(all_kway(domain, 3), grouping), chosen.configure(settings))
        return most_rounds(algorithm.strategy, Facts(10_000, rho))

    assert [rounds(rho) for rho in (1e-9, 1.0, 100.0)] == counts
    assert rounds(1e-9, Grouping.QUERY) == rounds(100.0, Grouping.QUERY)
    assert [rounds(rho, rounds=7) for rho in (1e-9, 100.0)] == [7, 7]


# --- queries that overlap


ORDERED = Domain(("a", "b"), (6, 4))
OVERLAPPING = (
    Product.of(ORDERED, {"a": "prefixes"}),
    Product.of(ORDERED, {"a": "prefixes", "b": "prefixes"}),
    Product.of(ORDERED, {"a": Intervals(6, ((0, 3), (2, 6), (1, 5))), "b": "values"}),
    Product.of(ORDERED, {"a": "prefixes", "b": "values"}).take([0, 5, 9, 22]),
)


@pytest.mark.parametrize("queries", OVERLAPPING)
def test_a_mwem_step_on_overlapping_queries_by_hand(queries: Queries) -> None:
    """Where a record satisfies m of them, at most, each is applied with the step eta / m."""
    rng = np.random.default_rng(0)
    start = rng.dirichlet(np.ones(24))
    matrix = holds(ORDERED, queries)
    counts = rng.integers(0, TOTAL, queries.size)
    most = matrix.sum(axis=0).max()
    assert most > 1
    weights = start * np.exp(1.5 / most * (counts / TOTAL - matrix @ start) @ matrix)
    update = MultiplicativeWeights(Histogram(ORDERED), 1.5, past=False)
    mass = update.step(params := start.reshape(6, 4).copy(), 1.0, Measurement(queries, counts, 1.0), TOTAL)
    assert np.allclose(params.ravel(), weights)
    assert mass == pytest.approx(weights.sum())


@pytest.mark.parametrize("queries", OVERLAPPING)
@pytest.mark.parametrize("seed", range(4))
def test_mwem_steps_on_overlapping_queries_lower_the_error(queries: Queries, seed: int) -> None:
    """Each step does, and many of them leave hardly any of it."""
    rng = np.random.default_rng(seed)
    truth, total = rng.dirichlet(np.ones(24)), 10**9
    matrix = holds(ORDERED, queries)
    family = Histogram(ORDERED)
    update = MultiplicativeWeights(family, eta=2.0, past=True)
    log = log_of((queries, np.rint(matrix @ truth * total).astype(np.int64)), total=total)
    params = family.init(rng)
    errors = [float(np.linalg.norm(family.answers(params, [queries]) - matrix @ truth))]
    for _ in range(1000):
        params, *_ = update(rng, params, None, log)
        errors.append(float(np.linalg.norm(family.answers(params, [queries]) - matrix @ truth)))
    assert all(after < before for before, after in itertools.pairwise(errors[:21]))
    assert errors[-1] < 0.1 * errors[0]


def ordered_table(rows: int = 3000) -> Table:
    rng = np.random.default_rng(0)
    a = rng.binomial(5, 0.3, rows)
    schema = Schema((Categorical("a", tuple(range(6))), Categorical("b", tuple(range(4)))))
    return Table(schema, (a, np.minimum(a, rng.integers(0, 4, rows))))


@pytest.mark.parametrize("grouping", list(Grouping))
def test_a_run_of_mwem_on_overlapping_queries(grouping: Grouping) -> None:
    table = ordered_table()
    workload = Workload(table.domain, OVERLAPPING[:3])
    release = prepare(table, epsilon=5.0, method="mwem", workload=workload, group=grouping, insecure_noise_seed=0,
                      settings={"rounds": 3 if grouping is Grouping.MARGINAL else 30}).run()  # fmt: skip
    truth = np.concatenate([queries.holds(table.codes).mean(axis=0) for queries in workload.queries])
    start = release.family.answers(release.family.init(np.random.default_rng(0)), workload.queries)
    assert np.abs(release.answers() - truth).max() < 0.6 * np.abs(start - truth).max()


@pytest.mark.parametrize("method", ["pep", "pep_pub"])
def test_pep_takes_overlapping_queries_one_by_one_only(method: str) -> None:
    table = ordered_table()
    workload = Workload(table.domain, OVERLAPPING[:3])
    options: dict[str, Any] = {"epsilon": 5.0, "method": method, "workload": workload, "insecure_noise_seed": 0}
    if method == "pep_pub":
        options["public"] = ordered_table(200)
    with pytest.raises(
        InputError, match=r"^group must be 'query' for .+ on queries that overlap, got 'marginal'; use "
    ):
        prepare(table, group="marginal", **options)
    release = prepare(table, group="query", settings={"rounds": 30}, **options).run()
    truth = np.concatenate([queries.holds(table.codes).mean(axis=0) for queries in workload.queries])
    start = release.family.answers(release.family.init(np.random.default_rng(0)), workload.queries)
    assert np.abs(release.answers() - truth).max() < 0.05
    assert method == "pep_pub" or np.abs(start - truth).max() > 0.2


def projected(measured: list[tuple[Queries, float, float]]) -> np.ndarray:
    """PEP's distribution over eight cells, round by round; queries with their target and tolerance as fractions."""
    family, total, rounds = Histogram(EIGHT), 1000, []
    params = family.init(np.random.default_rng(0))
    for queries, target, gamma in measured:
        sigma = gamma * total / math.sqrt(2 * math.log(2))
        rounds.append(Round(measurements=(Measurement(queries, np.array([target * total]), sigma),)))
        log = Log(Facts(total, 1.0), list(rounds))
        for _ in range(50):  # a round makes few projections
            params, *_ = EntropyProjection(family, 1.0, 1000)(np.random.default_rng(0), params, None, log)
    return params.ravel()


EIGHT = Domain(("a", "b", "c"), (2, 2, 2))


def entropy(cells: np.ndarray) -> float:
    return float(-(cells * np.log(cells)).sum())


def most_entropy(measured: list[tuple[Queries, float, float]]) -> float:
    """The largest entropy of eight cells under the constraints, by a general solver."""
    records = [np.array(column) for column in zip(*np.ndindex(2, 2, 2), strict=True)]
    held = [queries.holds(records)[:, 0].astype(float) for queries, _, _ in measured]
    whole = LinearConstraint(np.ones((1, 8)), 1, 1)
    lows, highs = ([target + sign * gamma for _, target, gamma in measured] for sign in (-1, 1))
    found = minimize(lambda p: -entropy(p), np.full(8, 1 / 8), constraints=[whole, LinearConstraint(held, lows, highs)],
                     bounds=[(1e-9, 1)] * 8, method="SLSQP", options={"ftol": 1e-12, "maxiter": 500})  # fmt: skip
    return -float(found.fun)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_pep_ends_at_the_largest_entropy_without_a_tolerance_only(gamma: float) -> None:
    """a = 1 is measured at 0.9 first, then a = b = 1 at 0.85. With a tolerance of 0.1 the second measurement makes the
    first one unnecessary; its factor stays, so that the entropy is smaller than it could be."""
    first = Marginal.of(EIGHT, ["a"]).take([1])
    both = Marginal.of(EIGHT, ["a", "b"]).take([3])
    measured: list[tuple[Queries, float, float]] = [(first, 0.9, gamma), (both, 0.85, gamma)]
    cells = projected(measured)
    for queries, target, tolerance in measured:  # feasible in either case
        records = [np.array(column) for column in zip(*np.ndindex(2, 2, 2), strict=True)]
        assert abs(float(cells @ queries.holds(records)[:, 0]) - target) <= tolerance + 1e-6
    best = most_entropy(measured)
    assert entropy(cells) <= best + 1e-6
    assert (best - entropy(cells) < 1e-4) == (gamma == 0)
