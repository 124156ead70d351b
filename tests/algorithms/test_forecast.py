"""The forecast of the error of a workload, and the best way to spend by it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pointillist.algorithms.forecast import Components, Forecast, likely_distances, shared
from pointillist.data.domain import Attributes, Domain
from pointillist.queries.residuals import Residual

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 8))
ROWS = 10_000


def scopes(order: int) -> list[Attributes]:
    """All subsets of a given number of attributes, and after them all smaller ones."""
    return [scope for k in range(order, 0, -1) for scope in itertools.combinations(range(len(DOMAIN)), k)]


def components(order: int = 3) -> Components:
    every = scopes(order)
    wanted = [scope for scope in every if len(scope) == order]
    return Components(DOMAIN, wanted, every)


def forecast(strong: Attributes = (0, 1), order: int = 3, seed: int = 0) -> Forecast:
    """One pair is strongly tied, the others hardly."""
    parts = components(order)
    rng = np.random.default_rng(seed)
    made = Forecast(parts, [rng.dirichlet(np.ones(size)) for size in DOMAIN.sizes])
    distances = [0.8 if parts.every[n] == strong else 0.01 for n in parts.pairs]
    made.assume(parts.assumed(distances), ROWS)
    return made


def test_every_marginal_has_a_component_for_each_part_of_its_attributes() -> None:
    parts = components()
    needed = parts.needs.toarray()[0]
    assert {parts.every[n] for n in np.flatnonzero(needed)} == {s for s in parts.every if set(s) <= {0, 1, 2}}
    assert needed.sum() == 7


def test_a_component_costs_what_one_record_changes_in_its_residual() -> None:
    parts = components()
    for n, scope in enumerate(parts.every):
        shape = DOMAIN.shape(scope)
        square = Residual(scope, shape, 1).square / np.prod(shape) ** 2
        assert parts.costs[n] == pytest.approx(square)
    single = Domain(("a", "b"), (1, 3))
    assert Components(single, [(0, 1)], [(0, 1), (0,), (1,)]).costs.tolist() == pytest.approx([0, 0, 2 / 3])


def test_nothing_is_spent_on_attributes_with_a_single_value() -> None:
    domain = Domain(("a", "b", "c"), (1, 3, 2))
    every = [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,)]
    parts = Components(domain, every[:1], every)
    made = Forecast(parts, [np.full(size, 1 / size) for size in domain.sizes])
    made.assume(parts.assumed([0.3, 0.3, 0.3]), ROWS)
    share = made.best(np.zeros(len(every)), 1e4)
    assert {every[n] for n in np.flatnonzero(share)} == {(1, 2), (1,), (2,)}
    assert np.isfinite(made.value(np.zeros(len(every))))


def test_higher_orders_are_expected_where_pairs_are_tied() -> None:
    parts = components()
    found = parts.assumed([0.5 if parts.every[n] in ((0, 1), (0, 2)) else 0.0 for n in parts.pairs])
    assert found[parts.place[0, 1, 2]] == pytest.approx(0.3 * 0.5)
    assert found[parts.place[1, 2, 3]] == 0
    assert not found[parts.order == 1].any()
    assert (parts.assumed([0.0] * len(parts.pairs)) == 0).all()


def test_the_forecast_falls_with_the_precision_of_every_marginal() -> None:
    made = forecast()
    some = np.full(len(made.components.every), 100.0)
    value = made.value(some)
    assert 0 < value < made.value(np.zeros_like(some)) < 2
    for n in range(len(some)):
        more = some.copy()
        more[n] *= 2
        assert made.value(more) < value
        assert (made.errors(more) <= made.errors(some)).all()
    assert made.value(some * 1e12) < 1e-4


def test_without_measurements_the_error_is_the_expected_distance() -> None:
    made = forecast()
    parts = made.components
    alone = made.errors(np.zeros(len(parts.every)))
    assert alone[parts.place[0, 1]] == pytest.approx(0.8, rel=0.01)  # and a little for the sampling of rows
    assert alone[parts.place[2, 3]] < 0.1


@pytest.mark.parametrize("order", [2, 3])
def test_the_slopes_are_those_of_finite_differences(order: int) -> None:
    made = forecast(order=order)
    parts = made.components
    precision = np.random.default_rng(1).uniform(10, 1000, len(parts.every))
    errors, slopes = made._errors(precision)
    for n in range(len(parts.every)):
        step = 1e-4 * precision[n]
        moved = precision.copy()
        moved[n] += step
        assert (made.errors(moved)[n] - errors[n]) / step == pytest.approx(slopes[n], rel=1e-3)


def test_the_best_shares_are_a_point_of_the_simplex_and_beat_equal_ones() -> None:
    for strong, more in itertools.product([(0, 1), (2, 3)], [1e3, 1e5, 1e8]):
        made = forecast(strong)
        before = np.where(made.components.order == 1, 50.0, 0.0)
        share = made.best(before, more)
        assert share.sum() == pytest.approx(1)
        assert (share >= 0).all()
        equal = np.full(len(share), 1 / len(share))
        only_wanted = np.where(made.components.order == 3, 1.0, 0.0)
        buys = more / made.components.costs
        found = made.value(before + buys * share)
        assert found < 0.95 * made.value(before + buys * equal)
        assert found < made.value(before + buys * only_wanted / only_wanted.sum())


def test_no_small_move_of_the_budget_is_much_better_than_the_best_shares() -> None:
    made = forecast()
    before, more = np.where(made.components.order == 1, 50.0, 0.0), 1e5
    share, buys = made.best(before, more), more / made.components.costs
    value = made.value(before + buys * share)
    for n, m in itertools.permutations(range(len(share)), 2):
        moved = share.copy()
        step = 0.1 * moved[n]
        moved[n] -= step
        moved[m] += step
        assert made.value(before + buys * moved) > 0.995 * value


def test_a_strong_tie_gets_most() -> None:
    made = forecast((2, 3), order=2)
    parts = made.components
    share = made.best(np.zeros(len(parts.every)), 1e4)
    assert parts.every[int(share.argmax())] == (2, 3)
    assert share[parts.place[2, 3]] > 0.3


@pytest.mark.parametrize("more", [1e2, 1e5])
def test_independent_attributes_get_their_one_way_marginals(more: float) -> None:
    parts = components()
    made = Forecast(parts, [np.full(size, 1 / size) for size in DOMAIN.sizes])
    made.assume(parts.assumed([1e-3] * len(parts.pairs)), 10**6)
    share = made.best(np.zeros(len(parts.every)), more)
    assert share[parts.order == 1].sum() > 0.99


@pytest.mark.parametrize("more", [1e-30, 1e40])
def test_budgets_at_the_limits_give_shares(more: float) -> None:
    made = forecast()
    share = made.best(np.zeros(len(made.components.every)), more)
    assert np.isfinite(share).all()
    assert share.sum() == pytest.approx(1)


def test_likely_distances_are_closer_to_the_truth_than_noisy_ones() -> None:
    rng = np.random.default_rng(0)
    for mean, sigma in itertools.product([0.03, 0.12, 0.4], [0.02, 0.1, 0.3]):
        truth = rng.exponential(mean, 400)
        noisy = truth + sigma * rng.standard_normal(len(truth))
        found = likely_distances(noisy, np.zeros(len(truth)), sigma)
        assert (found > 0).all()
        assert np.abs(found - truth).mean() < np.abs(noisy - truth).mean()
        assert sigma > mean or found.mean() == pytest.approx(truth.mean(), rel=0.3)
        assert (np.diff(found[np.argsort(noisy)]) >= 0).all()


def test_distances_that_noisy_one_way_marginals_explain_are_taken_off() -> None:
    noisy = np.array([0.1, 0.1, 0.5])
    found = likely_distances(noisy, np.array([0.0, 0.1, 0.1]), 0.001)
    assert found[0] == pytest.approx(0.1, abs=0.01)
    assert found[1] < 0.01
    assert found[2] == pytest.approx(np.sqrt(0.24), abs=0.01)


@pytest.mark.parametrize("extreme", [-1e6, -10.0, 0.0, 10.0, 1e9])
def test_whatever_the_noise_a_distance_is_a_number(extreme: float) -> None:
    for sigma in (1e-9, 0.1, 0.5):
        found = likely_distances(np.array([extreme, 0.1]), np.array([0.01, 0.01]), sigma)
        assert np.isfinite(found).all()
        assert (found >= 1e-4).all()


def test_a_target_is_what_all_wanted_marginals_share() -> None:
    assert shared([(0, 1), (0, 2), (0, 3)]) == {0}
    assert not shared([(0, 1), (0, 2), (1, 2)])
    assert not shared([(0, 1)])


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_a_preference_for_the_target_makes_the_wanted_marginals_worse(factor: float) -> None:
    """All wanted marginals have attribute 0, of which one value is rare."""
    every = scopes(3)
    around = [scope for scope in every if len(scope) == 3 and 0 in scope]
    every = [*around, *(scope for scope in every if any(set(scope) < set(other) for other in around))]
    parts = Components(DOMAIN, around, every)
    shares = [np.array([0.95, 0.05]), *(np.full(size, 1 / size) for size in DOMAIN.sizes[1:])]
    made = Forecast(parts, shares)
    made.assume(parts.assumed([0.05] * len(parts.pairs)), ROWS)
    known, more = np.full(len(every), 1e3), 1e6
    best = made.best(known, more)
    other = best * np.where([0 in scope for scope in parts.every], factor, 1.0)
    buys = more / parts.costs
    assert made.value(known + buys * best) < made.value(known + buys * other / other.sum())
