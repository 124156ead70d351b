"""MWEM and PEP against cases worked by hand, and the theory behind PEP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pointillist.algorithms import METHODS
from pointillist.algorithms.mwem import MultiplicativeWeights
from pointillist.algorithms.pep import EntropyProjection
from pointillist.data.datasets import load
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.families.histogram import FLOOR, Histogram
from pointillist.framework import Log, Round
from pointillist.privacy.scores import Pick
from pointillist.queries.marginals import all_kway
from pointillist.queries.workload import Grouping, Workload

TOTAL = 1000


def log_of(workload: Workload, measured: dict[int, list[int]]) -> Log:
    """A log with one round per measured group."""
    log = Log(workload, TOTAL)
    for group, counts in measured.items():
        log.rounds.append(Round((Pick(group),), (np.array(counts),), sigma=1.0))
        log.notes.append({})
    return log


def test_one_mwem_step_by_hand() -> None:
    """Uniform over 2 x 2, the query x = (0, 0) measured at 0.5: weight e^(0.5 (0.5 - 0.25)) against 1."""
    domain = Domain(("a", "b"), (2, 2))
    workload = all_kway(domain, 2, Grouping.QUERY)
    family = Histogram(domain)
    update = MultiplicativeWeights(family, eta=0.5, past=True)
    params, _ = update(
        np.random.default_rng(0), family.init(np.random.default_rng(0)), None, log_of(workload, {0: [500]})
    )
    factor = np.exp(0.5 * (0.5 - 0.25))
    expected = np.array([[factor, 1], [1, 1]]) / (factor + 3)
    assert np.allclose(params, expected)


def test_mwem_applies_past_measurements_again_if_their_error_is_half_of_the_new_one() -> None:
    domain = Domain(("a",), (4,))
    workload = all_kway(domain, 1, Grouping.QUERY)
    family = Histogram(domain)
    start = np.full(4, 0.25)
    # Errors: 0.10 for the new query, 0.06 (applied again) and 0.02 (left alone) for the past ones.
    log = log_of(workload, {0: [310], 1: [270], 2: [350]})
    with_past, _ = MultiplicativeWeights(family, 0.5, past=True)(np.random.default_rng(0), start.copy(), None, log)
    first = np.array([1, 1, np.exp(0.5 * 0.1), 1]) * start
    first /= first.sum()
    second = first * np.array([np.exp(0.5 * (0.31 - first[0])), 1, 1, 1])
    assert np.allclose(with_past, second / second.sum())
    without, _ = MultiplicativeWeights(family, 0.5, past=False)(np.random.default_rng(0), start.copy(), None, log)
    assert np.allclose(without, first)


def test_one_pep_projection_by_hand() -> None:
    """Uniform over 2 x 2, the query a = 0 measured at 0.8: both its cells get 0.4, the others 0.1."""
    domain = Domain(("a", "b"), (2, 2))
    workload = Workload(domain, ((0,),), Grouping.QUERY)
    family = Histogram(domain)
    update = EntropyProjection(family, slack=0.0, t_max=25)
    # -lambda = ln(0.8 * 0.5 / (0.2 * 0.5)) = ln 4
    assert np.allclose(update.factors(np.array([0.8]), np.array([0.5]), 0.0), [4.0])
    params, _ = update(np.random.default_rng(0), np.full((2, 2), 0.25), None, log_of(workload, {0: [800]}))
    assert np.allclose(params, [[0.4, 0.4], [0.1, 0.1]])


def test_pep_by_marginal_reaches_consistent_marginals() -> None:
    domain = Domain(("a", "b", "c"), (2, 3, 2))
    workload = all_kway(domain, 2, Grouping.MARGINAL)
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    marginals = [truth.sum(2).ravel(), truth.sum(1).ravel(), truth.sum(0).ravel()]
    log = Log(workload, 10**9)
    for group, answers in enumerate(marginals):
        log.rounds.append(Round((Pick(group),), (np.rint(answers * 10**9).astype(np.int64),), 1.0))
        log.notes.append({})
    update = EntropyProjection(Histogram(domain), 0.0, 500)
    params = np.full((2, 3, 2), 1 / 12)
    for _ in range(100):
        params, _ = update(rng, params, None, log)
    assert np.allclose(Histogram(domain).answers(params, workload), np.concatenate(marginals), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_projection_meets_its_constraint_and_lowers_the_dual_loss(data: st.DataObject) -> None:
    """With gamma = 0 a step minimises L along one coordinate: L never rises, and the constraint holds after it."""
    sizes = tuple(data.draw(st.lists(st.integers(2, 4), min_size=2, max_size=3)))
    domain = Domain(tuple("abc"[: len(sizes)]), sizes)
    workload = all_kway(domain, 2, Grouping.QUERY)
    queries = data.draw(st.lists(st.integers(0, workload.queries - 1), min_size=1, max_size=5, unique=True))
    answers = [data.draw(st.integers(10, 990)) for _ in queries]
    log = log_of(workload, {q: [a] for q, a in zip(queries, answers, strict=True)})
    family = Histogram(domain)
    step = EntropyProjection(family, 0.0, 1)
    targets = np.array(answers) / TOTAL
    indicators = np.stack([_indicator(family, workload, q) for q in queries])

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
        params, _ = step(np.random.default_rng(0), params, None, log)
        assert dual(moved) <= dual(lambdas) + 1e-9
        lambdas = moved
        weights = np.exp(indicators.T @ lambdas)
        assert np.allclose(params.ravel(), weights / weights.sum(), atol=1e-9)
        assert (indicators[worst] @ params.ravel()) == pytest.approx(targets[worst], abs=1e-9)


def test_pep_leaves_errors_up_to_gamma_alone_and_moves_larger_ones_to_it() -> None:
    """The noise has a standard deviation of 0.001; the largest of two is about 0.0012."""
    domain = Domain(("a",), (2,))
    workload = all_kway(domain, 1, Grouping.QUERY)
    update = EntropyProjection(Histogram(domain), slack=0.2 / (0.001 * np.sqrt(2 * np.log(2))), t_max=25)
    for counts, expected, projections in (([650], 0.5, 0), ([750], 0.55, 1), ([250], 0.45, 1)):
        log = log_of(workload, {0: counts})
        params, _ = update(np.random.default_rng(0), np.full(2, 0.5), None, log)
        assert np.allclose(params, [expected, 1 - expected])
        assert log.notes[-1]["projections"] == projections


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
    workload = Workload(domain, ((0,),), Grouping.QUERY)
    log = log_of(workload, {0: [1100], 1: [20], 2: [15]})
    params = np.full((4, 3), 1 / 12, dtype)
    update = EntropyProjection(Histogram(domain), 0.0, 25)
    for _ in range(20):
        params, _ = update(np.random.default_rng(0), params, None, log)
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
        workload = all_kway(table.domain, 2, grouping)
        update = chosen.algorithm(workload, chosen.configure(settings_), public).update
        assert isinstance(update, EntropyProjection)
        assert update.slack == expected


def test_pep_by_marginal_learns_less_noise_with_slack() -> None:
    """Noise of one standard deviation on every cell of a marginal: the uniform distribution is closer to the truth."""
    domain = Domain(("a", "b"), (10, 10))
    workload = all_kway(domain, 2, Grouping.MARGINAL)
    rng = np.random.default_rng(0)
    truth = np.full((10, 10), 0.01)
    truth[0] = 0.03
    truth /= truth.sum()
    sigma, total = 500.0, 100_000
    noisy = np.rint(truth.ravel() * total + sigma * rng.standard_normal(100)).astype(np.int64)
    found = {}
    for slack in (0.0, 0.3):
        log = Log(workload, total, [Round((Pick(0),), (noisy,), sigma)], [{}])
        params, _ = EntropyProjection(Histogram(domain), slack, 25)(rng, np.full((10, 10), 0.01), None, log)
        found[slack] = float(np.sqrt(np.mean((params - truth) ** 2)))
    assert found[0.3] < 0.8 * found[0.0]


def _indicator(family: Histogram, workload: Workload, query: int) -> np.ndarray:
    ones = np.zeros(family.domain.sizes)
    family._view(ones, workload, query)[...] = 1
    return ones.ravel()


@pytest.mark.parametrize(("method", "counts"), [("mwem", [50, 80, 105]), ("pep", [20, 40, 45])])
def test_by_marginal_the_rounds_follow_the_budget_within_bounds(method: str, counts: list[int]) -> None:
    chosen = METHODS[method]
    domain = Domain(tuple(f"x{i}" for i in range(15)), (2,) * 15)
    schedule = chosen.algorithm(all_kway(domain, 3), chosen.configure({})).schedule
    assert [schedule.count(rho, 10_000) for rho in (1e-9, 1.0, 100.0)] == counts
    by_query = chosen.algorithm(all_kway(domain, 3, Grouping.QUERY), chosen.configure({})).schedule
    assert by_query.count(1e-9, 10_000) == by_query.count(100.0, 10_000)
    given = chosen.algorithm(all_kway(domain, 3), chosen.configure({"rounds": 7})).schedule
    assert [given.count(rho, 10_000) for rho in (1e-9, 100.0)] == [7, 7]
