"""The conversion between rho and (epsilon, delta), against dp-accounting and an independent minimisation."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import exact

from pointillist.data.neighbours import Relation
from pointillist.errors import InputError
from pointillist.privacy.budget import Budget, delta_of, epsilon_of, rho_of
from pointillist.privacy.mechanisms import KEPT

EPSILONS = (1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-9, 1e-6, 1e-3, 0.1, 0.5)
RHOS = (1e-6, 1e-4, 0.01, 0.1, 0.5, 1.0, 5.0, 50.0)

epsilons = st.floats(math.log(1e-3), math.log(100)).map(lambda x: min(math.exp(x), 100.0))
deltas = st.floats(math.log(1e-290), math.log(0.5)).map(math.exp)
rhos = st.floats(math.log(1e-8), math.log(100)).map(math.exp)


def log_delta_on_grid(rho: float, epsilon: float) -> float:
    """The minimum over a fine grid of orders, written with alpha - 1 so that nothing cancels near alpha = 1."""
    b = np.logspace(-6, 12, 400_001)  # alpha - 1
    return float(np.min(b * ((1 + b) * rho - epsilon) - np.log(b) + (1 + b) * (np.log(b) - np.log1p(b))))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_is_the_minimum_over_the_orders(rho: float, epsilon: float) -> None:
    on_grid = log_delta_on_grid(rho, epsilon)
    if on_grid < -650:
        assert delta_of(rho, epsilon) <= math.exp(-640)
        return
    assert math.log(delta_of(rho, epsilon)) == pytest.approx(min(0.0, on_grid), abs=1e-6, rel=1e-7)


@pytest.mark.parametrize("delta", [1e-100, 1e-30, 1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("rho", RHOS)
def test_epsilon_agrees_with_dp_accounting(rho: float, delta: float) -> None:
    orders = 1 + np.logspace(-1.9, 8, 50_001)
    theirs, _ = rdp.compute_epsilon(orders, rho * orders, delta)
    ours = epsilon_of(rho, delta)
    assert (
        ours <= theirs * (1 + 1e-8) + 1e-9 or theirs == 0
    )  # dp-accounting has one more bound, which sometimes gives 0
    if theirs > 0:
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-9)


def test_dp_accounting_knows_the_event_by_name() -> None:
    accountant = rdp.RdpAccountant(orders=(1 + np.logspace(-1.9, 5, 5_001)).tolist())
    accountant.compose(dp_accounting.ZCDpEvent(0.1), 5)
    assert epsilon_of(0.5, 1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-5)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("rho", [0.005, 0.1, 1.0])
def test_a_gaussian_of_that_rho_keeps_our_epsilon(rho: float, delta: float) -> None:
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    exact = accountant.get_epsilon(delta)
    assert exact <= epsilon_of(rho, delta)
    assert epsilon_of(rho, delta) <= 1.35 * exact + 1e-3  # and ours is not needlessly loose
    half = pld.PLDAccountant()
    half.compose(dp_accounting.GaussianDpEvent(0.5 / math.sqrt(2 * rho)))
    assert half.get_epsilon(delta) > epsilon_of(rho, delta)  # half the noise would break the promise


@given(rhos, deltas)
def test_never_above_the_loose_closed_form(rho: float, delta: float) -> None:
    assert epsilon_of(rho, delta) <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(epsilons, deltas)
def test_rho_is_never_optimistic_and_nearly_all(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert delta_of(rho * (1 + 1e-6), epsilon) > delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_at_the_extremes(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert float(exact.log_delta(rho * (1 - KEPT), epsilon)) <= math.log(delta)
    loose = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    assert rho >= loose * (1 - 1e-6)  # at least what the loose closed form allows; in particular above 0


@pytest.mark.parametrize("delta", [1e-100, 1e-30, 1e-9])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-6, 1e-5, 1e-4])
def test_a_tiny_epsilon_is_not_overspent(epsilon: float, delta: float) -> None:
    assert delta_of(rho_of(epsilon, delta), epsilon) <= delta


@given(rhos, deltas)
def test_epsilon_is_never_optimistic(rho: float, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    assert delta_of(rho, epsilon) <= delta
    assert epsilon == 0 or delta_of(rho, epsilon * (1 - 1e-6)) > delta


@given(epsilons, st.floats(math.log(1e-200), math.log(1e-3)).map(math.exp))
def test_round_trip(epsilon: float, delta: float) -> None:
    assert epsilon_of(rho_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-6)


@given(epsilons, deltas, st.floats(1.001, 10))
def test_more_epsilon_or_delta_allows_more_rho(epsilon: float, delta: float, factor: float) -> None:
    assert rho_of(epsilon, delta) > rho_of(epsilon / factor, delta)
    assert rho_of(epsilon, delta) > rho_of(epsilon, delta / factor)


@given(rhos, epsilons, st.floats(1.001, 10))
def test_delta_grows_with_rho_and_falls_with_epsilon(rho: float, epsilon: float, factor: float) -> None:
    assert delta_of(rho * factor, epsilon) >= delta_of(rho, epsilon) * (1 - 1e-9)
    assert delta_of(rho, epsilon * factor) <= delta_of(rho, epsilon) * (1 + 1e-9)


def test_a_huge_rho_promises_nothing() -> None:
    assert delta_of(1e4, 1.0) == 1


def test_nothing_spent_costs_nothing() -> None:
    assert delta_of(0.0, 1.0) == 0
    assert epsilon_of(0.0, 1e-9) == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf, 101.0])
def test_epsilons_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be"):
        Budget(epsilon, 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, 2.0, math.nan, math.inf])
def test_deltas_refused(delta: float) -> None:
    with pytest.raises(InputError, match="delta must be above 0 and below 1"):
        Budget(1.0, delta)


def test_every_delta_that_is_accepted_has_a_rho() -> None:
    for delta in (1e-300, 1e-299, 1e-3, 0.5):
        for epsilon in (1e-9, 1.0, 100.0):
            assert Budget(epsilon, delta).rho > 0


def test_budgets_out_of_range_are_refused_in_a_sentence() -> None:
    """An epsilon of 1e-30 used to take for ever."""
    with pytest.raises(InputError, match="epsilon must be at least 1e-09, got 1e-30; nothing can be learned"):
        Budget(1e-30, 1e-9)
    for delta in (5e-324, 1e-310, 0.6, 1 - 1e-12):
        with pytest.raises(InputError, match=r"delta must be in 1e-300 \.\. 0\.5, got"):
            Budget(1.0, delta)


def test_budget_converts_by_the_same_function() -> None:
    budget = Budget(1.0, 1e-9, Relation.ADD_REMOVE)
    assert budget.rho == rho_of(1.0, 1e-9)
    assert budget.relation is Relation.ADD_REMOVE
    assert Budget(1.0, 1e-9).relation is Relation.REPLACE
