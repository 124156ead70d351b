"""What a fit aims at: distances and residuals of everything that was measured, and what is given back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pointillist import Intervals, Product, Relation
from pointillist.data.domain import Domain
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residual, Residuals
from pointillist.queries.tie import Tie
from pointillist.updates.target import Measured, one_way

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 30))
TOTAL = 1000
EVERY = tuple(np.indices(DOMAIN.sizes).reshape(4, -1))


def truth(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(DOMAIN.cells)).reshape(DOMAIN.sizes)


def answers(table: np.ndarray, queries: tuple[Queries, ...] | list[Queries]) -> np.ndarray:
    """Fractions of a distribution, of queries that predicates define."""
    return np.concatenate([table.ravel() @ one.holds(EVERY) for one in queries])


def log_of(*measured: Measurement) -> Log:
    return Log(Facts(TOTAL, 1.0, Relation.REPLACE), [Round(measurements=measured)])


def exact(queries: Queries, sigma: float, table: np.ndarray) -> Measurement:
    return Measurement(queries, TOTAL * answers(table, [queries]), sigma)


def several(noise: float = 0.0, seed: int = 0) -> Measured:
    """Marginals, residuals, prefixes, cells of a marginal and a tie."""
    rng, table = np.random.default_rng(seed), truth()
    pair = Marginal.of(DOMAIN, (1, 2))
    residuals = Residuals((Residual((0, 1), (2, 3), 5), Residual((1, 2), (3, 4), 7)))
    tables = {part.scope: TOTAL * answers(table, [Marginal.of(DOMAIN, part.scope)]) for part in residuals.parts}
    counts = np.concatenate([part.of_marginal(tables[part.scope]) for part in residuals.parts])
    found = [
        exact(Marginal.of(DOMAIN, (0,)), 3.0, table),
        exact(Marginal.of(DOMAIN, (1,)), 4.0, table),
        exact(Marginal.of(DOMAIN, (2,)), 4.0, table),
        Measurement(residuals, counts, 50.0),
        exact(Product.of(DOMAIN, {"b": "prefixes", "d": Intervals(30, ((0, 10), (5, 30)))}), 6.0, table),
        exact(pair.take([0, 5]), 2.0, table),
    ]
    noisy = [
        replace(one, counts=one.counts + noise * one.sigma * rng.standard_normal(len(one.counts))) for one in found
    ]
    tie = Tie((0, 1), (500, 500), (300, 300, 400), TOTAL)
    return Measured.of(DOMAIN, log_of(*noisy, Measurement(tie, np.array([123]), 20.0)))


def test_what_is_fitted_are_marginals_pairs_of_ties_and_other_queries() -> None:
    measured = several()
    scopes = [one.scope for one in measured.queries if isinstance(one, Marginal)]
    assert scopes == [(0,), (1,), (2,), (0, 1), (1, 2)]
    assert len(measured.queries) == 7
    assert measured.freedom == 1 + 2 + 3 + 2 + 6 + 6 + 2
    assert measured.ties.scopes == ((0, 1),)
    assert measured.ties.distances.tolist() == [0.123]
    assert measured.ties.sigmas.tolist() == [0.02]
    assert measured.ties.references.tolist() == pytest.approx([0.15, 0.15, 0.2] * 2)


def test_without_noise_the_truth_is_at_no_distance_and_others_are_where_they_should_be() -> None:
    on = several().on(several().queries)
    assert on.distance(answers(truth(), on.queries)) == pytest.approx(0, abs=1e-9)
    other = answers(truth(1), on.queries)
    assert np.allclose(on.standardised(answers(truth(), on.queries)), 0, atol=1e-6)
    off = on.standardised(other)
    parts = on.measured.parts
    sizes = [math.prod(DOMAIN.shape(scope)) for scope in parts.scopes]
    shares = np.repeat([parts.share(scope) for scope in parts.scopes], sizes)
    whole = np.concatenate([off[: sum(sizes)] ** 2 * shares, off[sum(sizes) :] ** 2])
    assert whole.sum() == pytest.approx(on.distance(other))
    assert on.apart(other, answers(truth(), on.queries)) == pytest.approx(on.distance(other))
    assert on.apart(other, other) == 0


def test_rounding_takes_no_distance_below_0() -> None:
    measured = several()
    on = measured.on(measured.queries)
    exact = answers(truth(), on.queries)
    for seed in range(50):
        rounded = exact * (1 + 1e-7 * np.random.default_rng(seed).standard_normal(len(exact)))
        assert on.apart(exact, rounded) > 0  # a sum over marginals with their weights is below 0 here and there
        assert on.distance(rounded) > 0


def test_the_distance_to_the_truth_is_its_number_of_dimensions_on_average() -> None:
    found = [several(1.0, seed) for seed in range(300)]
    distances = [one.on(one.queries).distance(answers(truth(), one.queries)) for one in found]
    assert np.mean(distances) == pytest.approx(found[0].freedom, rel=0.05)
    off = np.array([one.on(one.queries).standardised(answers(truth(), one.queries)) for one in found])
    assert np.allclose((off**2).mean(axis=0), 1, atol=0.45)
    assert (off**2).mean() == pytest.approx(1, abs=0.05)


def test_what_is_given_back_moves_the_targets_by_that_many_standard_deviations() -> None:
    measured = several(1.0)
    on = measured.on(measured.queries)
    model = answers(truth(), on.queries)
    before = on.standardised(model)
    excess = np.zeros(len(before))
    excess[-1] = 2.0  # the last of the cells that were measured one by one
    moved = measured.plus(excess).on(measured.queries)
    assert np.allclose(moved.standardised(model) - before, excess)
    excess = np.zeros(len(before))
    at = 2 + 3 + 4  # the first cell of the part of a and b
    excess[at] = 5.0
    change = measured.plus(excess).on(measured.queries).standardised(model) - before
    share = measured.parts.share((0, 1))
    assert change[at] == pytest.approx(5 * share)  # the rest is taken off the other cells of its row and column
    assert change[at : at + 6].reshape(2, 3).sum(axis=0) == pytest.approx(np.zeros(3))
    assert np.allclose(np.delete(change, range(at, at + 6)), 0)


def test_two_halves_of_the_noise_are_independent() -> None:
    """A model that is the first half is as far from the second as their noise together."""
    measured, rng = several(), np.random.default_rng(0)
    tau, table = 0.7, truth()
    model = answers(table, measured.queries)
    first, second = zip(*(measured.split(rng, tau) for _ in range(400)), strict=True)
    near = [one.on(one.queries).distance(model) for one in first]
    far = [one.on(one.queries).distance(model) for one in second]
    freedom = measured.freedom
    assert np.mean(near) == pytest.approx(freedom * tau**2 / (1 + tau**2), rel=0.1)  # in units of its own noise
    assert np.mean(far) == pytest.approx(freedom / tau**2, rel=0.1)
    assert first[0].spent == pytest.approx(measured.spent / (1 + tau**2))
    assert second[0].spent == measured.spent
    ties = np.array([one.ties.distances[0] for one in first])
    assert ties.std() == pytest.approx(tau * 0.02, rel=0.15)
    assert first[0].ties.sigmas[0] == pytest.approx(0.02 * math.hypot(1, tau))
    assert second[0].ties == measured.ties


def test_the_best_estimates_of_cells_need_all_of_their_parts() -> None:
    measured = several()
    targets, precision = measured.on(measured.queries).best_cells
    assert np.allclose(targets[precision > 0], answers(truth(), measured.queries)[precision > 0])
    assert (precision > 0).all()
    pair, triple = Residual((0, 1), (2, 3), 5), Residual((0, 1, 2), (2, 3, 4), 7)
    ways = [exact(Marginal.of(DOMAIN, (i,)), 3.0, truth()) for i in range(3)]
    lacks = Measured.of(DOMAIN, log_of(*ways, Measurement(Residuals((pair, triple)), np.zeros(30), 9.0)))
    on = lacks.on(lacks.queries)
    queries, above, over = on.estimates(np.zeros(on.size))
    assert [one.scope for one in queries] == [(0,), (1,), (2,), (0, 1)]
    assert len(above) == len(over) == sum(one.size for one in queries)
    deviation = math.sqrt(lacks.parts.variance((0,)))
    assert over[:2] * deviation == pytest.approx(above[:2])


def test_what_was_spent_is_counted_in_marginals() -> None:
    """A residual costs what one record changes."""
    measured = several()
    unit = [(TOTAL / sigma) ** 2 for sigma in (3.0, 4.0, 4.0, 6.0, 2.0)]
    square = 25 * 6 * 2 + 49 * 12 * 6
    assert measured.spent == pytest.approx(sum(unit) + square * (TOTAL / 50.0) ** 2)


# --- one-way marginals


def test_one_way_marginals_are_averaged_by_precision() -> None:
    first, second = np.arange(6) / 15, np.arange(12)[::-1] / 66
    log = log_of(
        Measurement(Marginal.of(DOMAIN, (0, 1)), TOTAL * first, TOTAL / 2.0),
        Measurement(Marginal.of(DOMAIN, (1, 2)), TOTAL * second, TOTAL / 3.0),
    )
    found = one_way(Measured.of(DOMAIN, log))
    one, two = first.reshape(2, 3).sum(axis=0), second.reshape(3, 4).sum(axis=1)
    assert np.allclose(found[1], (one * 4 / 2 + two * 9 / 4) / (4 / 2 + 9 / 4))
    assert np.allclose(found[0], first.reshape(2, 3).sum(axis=1))
    assert np.allclose(found[3], 1 / 30)  # never measured


COARSE = Intervals(30, ((0, 10), (10, 11), (11, 30)))


@pytest.mark.parametrize(
    "asked",
    [
        [{"b": "prefixes"}],
        [{"a": "values", "b": "prefixes"}],
        [{"a": "prefixes", "b": "prefixes", "c": "prefixes"}],
        [{"b": "prefixes", "c": "values", "d": "prefixes"}, {"a": "prefixes", "b": "values"}],
        [{"a": "prefixes", "b": "values", "d": COARSE}],
    ],
)
def test_prefixes_without_noise_give_the_exact_one_way_marginals(asked: list[dict[str | int, Any]]) -> None:
    queries = [Product.of(DOMAIN, factors) for factors in asked]
    found = one_way(Measured.of(DOMAIN, log_of(*(exact(one, 7.0, truth()) for one in queries))))
    seen = {DOMAIN.index(str(name)) for factors in asked for name, given in factors.items() if given is not COARSE}
    for attribute, size in enumerate(DOMAIN.sizes):
        true = truth().sum(axis=tuple(i for i in range(4) if i != attribute))
        if attribute in seen:
            assert np.allclose(found[attribute], true, atol=1e-9)
        elif COARSE in [given for factors in asked for given in factors.values()] and attribute == 3:
            assert np.allclose(found[attribute] @ COARSE.matrix, true @ COARSE.matrix)
        else:
            assert np.allclose(found[attribute], 1 / size)


def test_cells_and_ranges_that_do_not_cover_an_attribute_say_nothing_about_the_others() -> None:
    """Nothing can be summed out by them."""
    part = Product.of(DOMAIN, {"a": "values", "b": Intervals(3, ((0, 1), (2, 3)))})
    some = Product.of(DOMAIN, {"a": "prefixes", "c": "values"}).take([0, 3])
    found = one_way(Measured.of(DOMAIN, log_of(exact(part, 1.0, truth()), exact(some, 1.0, truth()))))
    assert np.allclose(found[0], 0.5)
    assert np.allclose(found[2], 0.25)


def test_what_was_measured_again_counts_with_the_mean() -> None:
    queries = all_kway(DOMAIN, 2).queries[0]
    log = log_of(exact(queries, 2.0, truth()), Measurement(queries, TOTAL * answers(truth(1), [queries]), 4.0))
    measured = Measured.of(DOMAIN, log)
    mean = (4 * answers(truth(), [queries]) + answers(truth(1), [queries])) / 5
    assert np.allclose(measured.parts.marginal(queries.scope), mean)
    assert measured.parts.weights == pytest.approx({queries.scope: TOTAL**2 * (1 / 4 + 1 / 16)})
