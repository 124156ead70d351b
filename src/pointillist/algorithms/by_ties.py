"""Measure by ties: rounds of Gaussian noise, each chosen by the ones before. The strategy of auto.

1. *One-way marginals*, with a small share of rho.
2. *Ties*: for every pair of attributes its distance from independence (:class:`~pointillist.queries.tie.Tie`). It is
   one number that one person changes by 1 or 2, so its noise is small against a tie that matters, where the noise on
   all cells of the pair would hide it.
3. *Blocks*, where a run has merged ordered columns, such as numbers or dates: pairs of these in a few blocks of
   neighbouring values. A correlation depends on a contrast of low against high values, and of b blocks on each side it
   has b^2 noisy cells in place of all of them. One pair in 16 x 16 cells needs some 10 times the budget to say it as
   well. The blocks of an attribute have about equal shares of the rows.
4. *Residuals* of marginals of all orders up to the wanted one, with what is left: what each set of attributes says
   beyond its subsets (:mod:`pointillist.queries.residuals`). A marginal would be measured together with all of its
   parts, which other marginals have in common with it; one by one, they cost less and each gets what it deserves. The
   budget is split so that the forecast error of the workload is smallest (:mod:`pointillist.algorithms.forecast`).
   Strong ties get most, attributes without ties nothing. All residuals are one measurement: by replacing a row, nobody
   changes all of them as much as each of them could be changed. Under replace the budget is split so that
   the forecast is smallest for the worst way in which two rows can differ (:func:`against_the_worst`).

Nothing is selected by an exponential mechanism, so that the Gaussian account applies: a measurement may be chosen by
earlier noisy ones at no extra cost. Where the noise on the ties would be larger than any tie, or where the workload is
not one of marginals, everything is measured at once, by public facts alone.

How much of rho each round gets, and how little noise it can have at least, follow from public facts and the (noisy)
number of rows. The shares of residuals are whole numbers of grains, so that rounding elsewhere does not change a plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.algorithms.forecast import ENOUGH, Components, Forecast, likely_distances, shared
from pointillist.algorithms.in_blocks import LEAST_MASS, best_blocks
from pointillist.algorithms.ways import Ways
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.framework import Log, Measure, Step, Strategy
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries.base import Queries
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import to_simplex
from pointillist.queries.product import Product
from pointillist.queries.residuals import Residual, rounded, square_before_rounding
from pointillist.queries.tie import Tie
from pointillist.strategies import noise_of

__all__ = ["MeasureByTies", "marginals_only", "spread"]

FIRST, FIRST_ERROR = 0.15, 0.03
"""One-way marginals get at most this share of rho, and no more than an expected distance of this needs."""

TIES, TIES_ERROR = 0.05, 0.03
"""The same for the ties: the noise on a distance need not be smaller than this."""

BLOCKS, BLOCKS_ERROR = 0.05, 0.003
"""The same for pairs in blocks: the noise on the share of a block."""

PER_SIDE = 5
"""The number of blocks of an attribute. Attributes with no more values than that on their lines are left out."""

MOST_BLOCKS_ERROR = 0.04
"""With more noise on the share of a block no pair is measured in blocks: the standard deviation of a correlation that
follows from 5 x 5 blocks of equal shares is some 5 times this."""

AROUND = 4.0
"""Of an attribute that all wanted marginals have, both errors need be this many times smaller: a value may be rare, and
what it is tied to is judged given that value."""

MOST_TIES_ERROR = 0.5
"""With more noise on the distances, or on the one-way marginals, nothing would be learned from them."""

EVEN = 0.15
"""This share of the last round is spread evenly over what it measures: the forecast is only a model."""

LEAST_SHARE, MOST_NOISE = 2e-5, 0.25
"""The smallest share, and the largest noise as a fraction of the rows, that a residual is measured with."""

GRAINS = 1 << 24
"""Shares are whole multiples of 1 / GRAINS."""

WORST_ROUNDS, WORST_STEPS, WORST_POWER = 25, 10, 8.0
"""Under replace: how often the mixture of ways to differ moves, the steps of the plan in between, and how far it moves
at once: far, since the best plan so far is kept."""

LEAST_COST = 0.05
"""No residual is taken to cost less than this share of its cost under add-remove: a mixture of few ways has some that
cost nothing, and is not the last one."""

LEAST_SQUARE = 4 / 9
"""What rounding leaves at least of the squared weight of a residual that is measured: from 1.5 to 1, squared."""

LAST = "residuals of marginals at most, those that matter by the ties, all together"


@dataclass(frozen=True)
class MeasureByTies:
    """Three or four rounds of measurements, or the ``otherwise`` if too little would be known about ties.

    Attributes:
        domain: the attributes.
        measurable: the wanted marginals, and after them all marginals over parts of their attributes.
        wanted: the number of the wanted ones.
        otherwise: the strategy for very small budgets.
        lines: for every attribute the number of its codes, the first ones, that lie on a line; 0, or nothing at all,
            for attributes without an order.
    """

    domain: Domain
    measurable: tuple[Queries, ...] = field(repr=False)  # thousands of marginals, which a release lists elsewhere
    wanted: int
    otherwise: Strategy
    lines: tuple[int, ...] = ()

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        if not self.worthwhile(facts):
            return self.otherwise.outline(facts)
        first, rho = self._first(facts), self._rest(facts)
        ties = [gaussian_scale(self._tie_rho(times, facts), self._tie_square(facts)) for times in self._ties_by_times]
        return (
            Phase(1, len(first), False, noise_of(first, facts), what="one-way marginals"),
            Phase(1, len(self._tied), False, (min(ties), max(ties)), what="ties, one number for each pair of columns"),
            *self._phase_of_blocks(facts),
            Phase(1, len(self._units), False, self._bounds(rho, facts), None, self._in_rows(rho, facts), LAST),
        )

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if not self.worthwhile(facts):
            return self.otherwise.step(t, facts, log, family, params)
        asked = [lambda: self._first(facts), lambda: self._ties(facts, log)]
        asked += [lambda: self._blocks(facts, log)] if self._cut(facts) else []
        asked += [lambda: self._last(facts, log)]
        return Measure(asked[t]()) if t < len(asked) else None

    def worthwhile(self, facts: Facts) -> bool:
        """Whether ties can be told from noise. It follows from public facts and the (noisy) number of rows."""
        if not self._tied:
            return False
        most = MOST_TIES_ERROR * facts.total
        ties = self._tie_square(facts) / (2 * facts.rho * TIES / len(self._tied))
        singles = self._square(facts) / (2 * facts.rho * FIRST / len(self._singles))
        return math.sqrt(max(ties, singles)) <= most

    @cached_property
    def components(self) -> Components:
        """The components of the wanted marginals."""
        scopes = [queries.scope for queries in self.measurable]
        return Components(self.domain, scopes[: self.wanted], scopes)

    @cached_property
    def _pairs(self) -> tuple[Attributes, ...]:
        return tuple(queries.scope for queries in self.measurable if len(queries.scope) == 2)

    @cached_property
    def _tied(self) -> tuple[Attributes, ...]:
        """The pairs that can be tied: with a single value an attribute is independent of all others."""
        return tuple(scope for scope in self._pairs if min(self.domain.shape(scope)) > 1)

    @cached_property
    def _ordered(self) -> tuple[Attributes, ...]:
        """The pairs that may be cut into blocks: with more values on their lines than blocks."""
        long = {i for i, length in enumerate(self.lines) if length > PER_SIDE}
        return tuple(pair for pair in self._tied if long.issuperset(pair))

    def _cut(self, facts: Facts) -> tuple[Attributes, ...]:
        """The pairs that are cut into blocks: all that may be, if their noise is small enough. It follows from public
        facts and the (noisy) number of rows."""
        if not self._ordered:
            return ()
        variance = self._square(facts) / (2 * self._block_rho(facts))
        return self._ordered if variance <= (MOST_BLOCKS_ERROR * facts.total) ** 2 else ()

    @cached_property
    def _units(self) -> tuple[Residual, ...]:
        """The residuals that may be measured; an attribute with a single value has none."""
        scopes = [queries.scope for queries in self.measurable]
        shapes = [(scope, self.domain.shape(scope)) for scope in scopes]
        return tuple(Residual(scope, shape, 1) for scope, shape in shapes if min(shape) > 1)

    @cached_property
    def _singles(self) -> tuple[Queries, ...]:
        return tuple(queries for queries in self.measurable if len(queries.scope) == 1)

    def _square(self, facts: Facts) -> int:
        """The squared sensitivity of a marginal."""
        return square_of_counts(max(self._singles, key=lambda queries: queries.size), facts)

    def _tie_square(self, facts: Facts) -> int:
        """The squared sensitivity of a tie, which is the same for all pairs that can be tied."""
        first, second = self.domain.shape(self._tied[0])
        return square_of_counts(Tie(self._tied[0], (1,) * first, (1,) * second, 1), facts)

    def _precision(self, rho: float, facts: Facts) -> float:
        """1 / variance, as fractions, that rho buys for each cell of a marginal."""
        return 2 * rho * facts.total**2 / self._square(facts)

    def _first(self, facts: Facts) -> tuple[Ask, ...]:
        """The one-way marginals: equal shares, but no more than each needs."""
        most = split(facts.rho * FIRST, len(self._singles))
        needed = [(self._times(one.scope) * one.size / FIRST_ERROR) ** 2 * 2 / math.pi for one in self._singles]
        unit = self._precision(1.0, facts)
        return tuple(Ask(q, min(most, need / unit)) for q, need in zip(self._singles, needed, strict=True))

    @cached_property
    def _targets(self) -> frozenset[int]:
        return shared([queries.scope for queries in self.measurable[: self.wanted]])

    def _times(self, scope: Attributes) -> float:
        """How many times smaller an error need be."""
        return AROUND if self._targets.intersection(scope) else 1.0

    @cached_property
    def _ties_by_times(self) -> dict[float, list[int]]:
        """The positions of the ties, by how many times smaller their error need be."""
        found: dict[float, list[int]] = {}
        for n, pair in enumerate(self._tied):
            found.setdefault(self._times(pair), []).append(n)
        return found

    def _tie_rho(self, times: float, facts: Facts) -> float:
        """The rho of a tie whose error need be this many times smaller."""
        needed = self._tie_square(facts) / (2 * (TIES_ERROR / times * facts.total) ** 2)
        return min(split(facts.rho * TIES, len(self._tied)), needed)

    def _ties(self, facts: Facts, log: Log) -> tuple[Ask, ...]:
        counts = [tuple(np.rint(share * facts.total).astype(int).tolist()) for share in self._shares(log)]
        ties = {pair: Tie(pair, counts[pair[0]], counts[pair[1]], facts.total) for pair in self._tied}
        return tuple(Ask(tie, self._tie_rho(self._times(pair), facts)) for pair, tie in ties.items())

    def _block_rho(self, facts: Facts) -> float:
        """The rho of a pair in blocks."""
        needed = self._square(facts) / (2 * (BLOCKS_ERROR * facts.total) ** 2)
        return min(split(facts.rho * BLOCKS, len(self._ordered)), needed)

    def _phase_of_blocks(self, facts: Facts) -> tuple[Phase, ...]:
        if not self._cut(facts):
            return ()
        scale = gaussian_scale(self._block_rho(facts), self._square(facts))
        return (Phase(1, len(self._ordered), False, (scale, scale), what="pairs of ordered columns in a few blocks"),)

    def _blocks(self, facts: Facts, log: Log) -> tuple[Ask, ...]:
        shares, rho = self._shares(log), self._block_rho(facts)
        cut = {i: even_blocks(shares[i], self.lines[i]) for pair in self._ordered for i in pair}
        return tuple(Ask(Product.of(self.domain, {i: cut[i], j: cut[j]}), rho) for i, j in self._ordered)

    def _shares(self, log: Log) -> list[np.ndarray]:
        """The one-way marginals of the first round; uniform for attributes that nothing is wanted of."""
        shares = [np.full(size, 1 / size) for size in self.domain.sizes]
        for measurement in log.rounds[0].measurements:
            shares[measurement.queries.scope[0]] = to_simplex(measurement.fractions(log.total))
        return shares

    def _rest(self, facts: Facts) -> float:
        """The rho of the last round."""
        ties = sum(len(some) * Fraction(self._tie_rho(times, facts)) for times, some in self._ties_by_times.items())
        blocks = len(self._ordered) * Fraction(self._block_rho(facts)) if self._cut(facts) else 0
        return minus(facts.rho, sum(Fraction(ask.rho) for ask in self._first(facts)) + ties + blocks)

    def _square_of_all(self, facts: Facts) -> int:
        """The squared sensitivity of all residuals together, at most, where that of a marginal is what they cost under
        add-remove: by replacing a row, they may change by twice as much."""
        return self._square(facts) * (2 if facts.relation is Relation.REPLACE else 1)

    def _least(self, rho: float, facts: Facts) -> float:
        """The smallest useful share of the last round for a residual."""
        return max(LEAST_SHARE, self._square_of_all(facts) / (2 * (MOST_NOISE * facts.total) ** 2) / rho)

    def _bounds(self, rho: float, facts: Facts) -> tuple[float, float]:
        """Bounds on the noise of the last round, whatever its weights are.

        Residuals have the squared sensitivity sum of w^2 c, which is known but for the rounding of the weights. Each
        of them had its part of what is spread evenly (up to a grain of several hundred), and rounding leaves that much
        of it if it leaves anything. No weight is more than doubled, except from 0 to 1 if all would be 0: then w^2 c
        is more than it was. Under replace it is at least twice the sum, and at most four times. A unit of several rows
        multiplies it.
        """
        largest, square = max(unit.square for unit in self._units), square_before_rounding(self._units)
        least, most = 0.99 * EVEN * LEAST_SQUARE * square / len(self._units), 4 * max(4 * square, largest)
        low, high = (gaussian_scale(rho, int(square) * facts.rows_per_unit**2) for square in (least, most))
        return low, high

    def _in_rows(self, rho: float, facts: Facts) -> tuple[float, float]:
        """The noise on a cell, as a number of rows: of one residual that gets everything, and of the smallest share."""
        alone = min(math.prod(1 - 1 / m for m in unit.shape) for unit in self._units)
        least = min(1.0, self._least(rho, facts))
        return math.sqrt(self._square(facts) * alone / (2 * rho)), math.sqrt(
            self._square_of_all(facts) / (2 * rho * least)
        )

    def _last(self, facts: Facts, log: Log) -> tuple[Ask, ...]:
        """The residuals of the last round, by the forecast."""
        rho, (first, second) = self._rest(facts), log.rounds[:2]
        forecast = Forecast(self.components, self._shares(log))
        place = self.components.place
        precision = np.zeros(len(self.measurable))
        for one in first.measurements:
            precision[place[one.queries.scope]] = (facts.total / one.sigma) ** 2
        alone = forecast.errors(precision)
        bias = np.array([math.hypot(alone[place[i,]], alone[place[j,]]) for i, j in self._tied])
        distances = np.array([float(one.counts[0]) for one in second.measurements]) / facts.total
        found = np.zeros(len(distances))
        for some in self._ties_by_times.values():
            noise = second.measurements[some[0]].sigma / facts.total
            found[some] = likely_distances(distances[some], bias[some], noise)
        likely = dict(zip(self._tied, found.tolist(), strict=True))
        forecast.assume(self.components.assumed([likely.get(pair, 0.0) for pair in self._pairs]), facts.total)
        units, more = self._units, self._precision(rho, facts)
        best = forecast.best(precision, more)
        if facts.relation is Relation.REPLACE and Ways.few(units):
            best = against_the_worst(best, forecast, precision, more, units)
        grains = spread(best[[place[unit.scope] for unit in units]], self._least(rho, facts))
        return (Ask(rounded(units, grains / np.array([float(unit.square) for unit in units])), rho),)


def against_the_worst(
    best: np.ndarray, forecast: Forecast, precision: np.ndarray, more: float, units: Sequence[Residual]
) -> np.ndarray:
    """The shares of residuals under replace, where all of them together may change by more than each of them costs.

    Shares x_A buy the weights w_A^2 = x_A / c_A, which some way y in which two records differ makes

        dearer(y) = sum_A w_A^2 (c_A - p_A(y))    (:mod:`pointillist.algorithms.ways`)

    times as dear as under add-remove. That is above 1, the most on tables with few values, whose residuals of two
    attributes change least where those of one or three change most. So the plan is made again for the mean cost of a
    mixture of ways that moves to those that cost most, and the plan with the smallest forecast at its worst way is
    kept.

    Args:
        best: the shares that are best if no way is dearer than others.
        forecast: the forecast.
        precision: of every component, so far.
        more: what can be spent, as in the forecast.
        units: the residuals that may be measured.
    """
    place = np.array([forecast.components.place[unit.scope] for unit in units])
    whole, ways = np.array([float(unit.square) for unit in units]), Ways(units)
    costs = forecast.components.costs[place]

    def seen(share: np.ndarray) -> tuple[float, np.ndarray]:
        """The forecast of some shares at their worst way, and what every way costs."""
        changes, told = ways.changes(share[place] / whole), precision.copy()
        told[place] += share[place] * more / costs / changes.max()
        return forecast.value(told), changes

    share = best
    least, changes = seen(share)
    for _ in range(WORST_ROUNDS):
        ways.shift(changes, WORST_POWER)
        dearer = np.ones(len(share))
        dearer[place] = np.maximum(ways.costs / whole, LEAST_COST)
        share = forecast.best(precision, more, dearer, share, WORST_STEPS) / dearer
        share = share / share.sum()
        value, changes = seen(share)
        if value < least * (1 - ENOUGH):
            best, least = share, value
    return best


def spread(best: np.ndarray, least: float) -> np.ndarray:
    """The shares that are spent, in grains: what is too small is left out, and a part is spread evenly. As many
    residuals are kept as have at least the smallest share then, the best ones first, and one in any case.

    Args:
        best: the shares that the forecast prefers.
        least: the smallest share.
    """
    order = np.argsort(-best, kind="stable")

    def kept(count: int) -> np.ndarray:
        """The grains of the best ones."""
        share = best[order[:count]]
        return np.asarray(np.floor(((1 - EVEN) * share / share.sum() + EVEN / count) * GRAINS))

    low, high = 1, max(1, int(np.count_nonzero(best >= least)))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if kept(middle).min() >= least * GRAINS else (low, middle - 1)
    grains = np.zeros(len(best))
    grains[order[:low]] = kept(low)
    return grains


def even_blocks(shares: np.ndarray, length: int) -> Intervals:
    """Blocks of neighbouring values of about equal shares, and the values after the line one by one.

    Args:
        shares: the estimated share of each value.
        length: the number of values, the first ones, that lie on the line.
    """
    mass = shares[:length] + LEAST_MASS
    ranks = np.cumsum(mass) - mass / 2
    on_line = best_blocks(mass, ranks.tolist(), PER_SIDE)
    return Intervals.blocks(len(shares), on_line.bounds)


def marginals_only(queries: Sequence[Queries]) -> bool:
    """Whether all queries are whole marginals, some of them of two attributes or more."""
    return all(isinstance(one, Marginal) for one in queries) and any(len(one.scope) > 1 for one in queries)
