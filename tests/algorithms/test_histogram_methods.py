"""MWEM and PEP against cases worked by hand, and the theory behind PEP."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pointillist.algorithms.mwem import MultiplicativeWeights
from pointillist.algorithms.pep import EntropyProjection
from pointillist.data.domain import Domain
from pointillist.families.histogram import Histogram
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
    update = EntropyProjection(family, gamma=0.0, t_max=25)
    # -lambda = ln(0.8 * 0.5 / (0.2 * 0.5)) = ln 4
    assert np.allclose(update.factors(np.array([0.8]), np.array([0.5])), [4.0])
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
        moved[worst] += np.log(step.factors(targets[worst : worst + 1], answers_now[worst : worst + 1])[0])
        params, _ = step(np.random.default_rng(0), params, None, log)
        assert dual(moved) <= dual(lambdas) + 1e-9
        lambdas = moved
        weights = np.exp(indicators.T @ lambdas)
        assert np.allclose(params.ravel(), weights / weights.sum(), atol=1e-9)
        assert (indicators[worst] @ params.ravel()) == pytest.approx(targets[worst], abs=1e-9)


def test_pep_leaves_errors_up_to_gamma_alone() -> None:
    domain = Domain(("a",), (2,))
    workload = all_kway(domain, 1, Grouping.QUERY)
    update = EntropyProjection(Histogram(domain), gamma=0.2, t_max=25)
    log = log_of(workload, {0: [650]})
    params, _ = update(np.random.default_rng(0), np.full(2, 0.5), None, log)
    assert np.allclose(params, 0.5)
    assert log.notes[-1]["projections"] == 0


def _indicator(family: Histogram, workload: Workload, query: int) -> np.ndarray:
    ones = np.zeros(family.domain.sizes)
    family._view(ones, workload, query)[...] = 1
    return ones.ravel()
