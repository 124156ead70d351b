"""The ways in which two records can differ, against the definition, and plans that are best against the worst one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pointillist.algorithms.by_ties import against_the_worst
from pointillist.algorithms.forecast import Components, Forecast
from pointillist.algorithms.ways import MOST_ATTRIBUTES, Ways
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.residuals import Residual, Residuals, rounded
from pointillist.updates.parts import subsets

SIZES = [(2, 2), (2, 3, 4), (3, 2, 2, 2)]


def units(sizes: tuple[int, ...], order: int = 3) -> list[Residual]:
    """A residual for every set of at most ``order`` attributes."""
    scopes = [scope for k in range(1, order + 1) for scope in itertools.combinations(range(len(sizes)), k)]
    return [Residual(scope, tuple(sizes[i] for i in scope), 1) for scope in scopes]


def column(residual: Residual, record: tuple[int, ...]) -> np.ndarray:
    """What one record adds to a residual."""
    marginal = np.zeros(residual.shape, np.int64)
    marginal[tuple(record[i] for i in residual.scope)] = 1
    return residual.of_marginal(marginal.ravel())


@pytest.mark.parametrize("sizes", SIZES)
def test_changes_are_those_of_all_pairs_of_records(sizes: tuple[int, ...]) -> None:
    every, rng = units(sizes), np.random.default_rng(0)
    squares = rng.uniform(0.1, 2.0, len(every))
    changes = Ways(every).changes(squares)
    for one, other in itertools.product(itertools.product(*map(range, sizes)), repeat=2):
        differ = tuple(int(a != b) for a, b in zip(one, other, strict=True))
        off = [column(unit, one) - column(unit, other) for unit in every]
        assert 2 * changes[differ] == pytest.approx(sum(w * np.sum(d**2) for w, d in zip(squares, off, strict=True)))


@pytest.mark.parametrize("sizes", SIZES)
def test_the_worst_way_is_the_sensitivity_under_replace(sizes: tuple[int, ...]) -> None:
    residuals = rounded(units(sizes), np.random.default_rng(1).uniform(0.1, 2.0, len(units(sizes))))
    squares = np.array([float(part.weight**2) for part in residuals.parts])
    found = Ways([Residual(part.scope, part.shape, 1) for part in residuals.parts]).changes(squares).max()
    assert residuals.sensitivity(Relation.REPLACE).l2_squared == pytest.approx(2 * found, rel=1e-12)


def test_costs_are_what_the_mixture_changes_on_average() -> None:
    every = units((2, 3, 4))
    ways = Ways(every)
    start = ways.costs
    whole = np.array([float(unit.square) for unit in every])
    # Two random records that differ: of all pairs, prod m_i - 1 of prod m_i differ, and equal ones change nothing.
    assert start == pytest.approx(whole * 24 / 23)
    squares = np.random.default_rng(0).uniform(0.5, 2.0, len(every)) / whole
    changes = ways.changes(squares)
    worst = np.unravel_index(int(changes.argmax()), changes.shape)
    before = float(start @ squares)
    assert ways.shift(changes, 4.0) == pytest.approx(changes.max() / before)
    assert float(ways.costs @ squares) > before
    for _ in range(200):
        ways.shift(changes, 4.0)
    alone = np.zeros(len(every))
    for n in range(len(every)):
        alone[n] = Ways(every).changes(np.eye(len(every))[n])[worst]
    assert ways.costs == pytest.approx(alone, abs=1e-6 * whole.max())


def test_few_ways_are_those_of_few_attributes() -> None:
    assert Ways.few(units((2,) * MOST_ATTRIBUTES, 1))
    assert not Ways.few(units((2,) * (MOST_ATTRIBUTES + 1), 1))


@pytest.mark.parametrize("sizes", [(2,) * 8, (2, 2, 3, 3, 5, 2), (9, 12, 15, 6)])
@pytest.mark.parametrize("more", [1e2, 1e4, 1e6])
def test_a_plan_against_the_worst_way_is_better_there(sizes: tuple[int, ...], more: float) -> None:
    rng = np.random.default_rng(0)
    domain = Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)
    wanted = list(itertools.combinations(range(len(sizes)), 3))
    every = sorted({part for scope in wanted for part in subsets(scope)}, key=lambda scope: (len(scope), scope))
    components = Components(domain, wanted, every)
    forecast = Forecast(components, [rng.dirichlet(np.ones(size)) for size in sizes])
    forecast.assume(components.assumed(rng.exponential(0.1, len(components.pairs)).tolist()), 10_000)
    asked = [Residual(scope, domain.shape(scope), 1) for scope in every]
    precision = np.zeros(len(every))
    plain = forecast.best(precision, more)
    found = against_the_worst(plain, forecast, precision, more, asked)

    def at_the_worst(share: np.ndarray) -> tuple[float, float]:
        """The forecast if noise follows the exact sensitivity, and that over the one where no way is dearer."""
        residuals: Residuals = rounded(asked, share / [float(unit.square) for unit in asked])
        square = sum(part.square for part in residuals.parts)
        dearer = residuals.sensitivity(Relation.REPLACE).l2_squared / (2 * square)
        return forecast.value(share * more / components.costs / dearer), dearer

    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    assert at_the_worst(found)[0] <= at_the_worst(plain)[0] * (1 + 1e-3)  # but for the rounding of weights
    if max(sizes) == 2 and more < 1e6:
        assert at_the_worst(found)[1] < at_the_worst(plain)[1] - 0.02
