"""Measure pairs in blocks: what auto measures for halfspaces over fine ordered attributes.

The answer to a halfspace depends most of all on how its attributes are distributed, and tied in pairs. It changes only
slowly along an ordered attribute, so that a pair of fine attributes need not be known value by value: with b blocks of
neighbouring values in place of m values, the sums that a halfspace takes have m / b times fewer noisy cells.

There are two rounds:

1. *One-way marginals*, value by value, with a small share of rho.
2. *Pairs* of all attributes, with what is left. Attributes along which scores change slowly are cut into blocks.

*How many blocks.* The noise of a halfspace's answer grows with b sigma, where sigma is the noise of a cell as a
fraction, and what blocks hide falls with a power of b. b = 1.25 sigma^(-1/3), between 4 and 32, was close to the best
on the table that it was developed on, from epsilon = 0.07 to 1.

*Where to cut.* Blocks are those of the smallest sum over the values x of p_x (t_x - mean of t in the block of x)^2,
with p the noisy one-way marginal and t the mean score of the wanted directions along the attribute, each rising. So a
value with many rows gets a narrow block. It is found exactly, by dynamic programming. It uses noisy values only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework import Log, Measure, Step, Strategy
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import to_simplex
from pointillist.queries.product import Product
from pointillist.strategies import noise_of

__all__ = ["MeasureInBlocks", "best_blocks", "lines_of"]

FIRST = 0.1
"""The share of rho for the one-way marginals."""

BLOCKS, POWER = 1.25, 1 / 3
FEWEST, MOST = 4, 32
"""The number of blocks: see above."""

LEAST_MASS = 1e-3
"""Added to every noisy share, so that no value is taken for impossible."""

MOST_VARIATION = 2.0
"""Values are merged where scores move along an attribute by at most this many times their range: 1 if they rise."""

MOST_DIRECTIONS = 256
"""The number of directions that are looked at, evenly chosen."""

Lines = Mapping[int, tuple[float, ...]]
"""For attributes whose values may be merged: the place of each value on a line."""


def lines_of(spaces: Sequence[Halfspaces]) -> dict[int, tuple[float, ...]]:
    """The attributes along which the scores of halfspaces change slowly, with the places of their values: those of
    three values and more, whose neighbours have weights close to each other in most directions.

    Args:
        spaces: the wanted halfspaces.
    """
    count = min(len(spaces), MOST_DIRECTIONS)
    some = [spaces[i * len(spaces) // count] for i in range(count)]
    weights: dict[int, list[np.ndarray]] = {}
    for one in some:
        for i, own in one.added.items():
            weights.setdefault(i, []).append(own)
    found = {}
    for i, many in sorted(weights.items()):
        steps = np.abs(np.diff(np.array(many), axis=1)).mean(axis=0)
        span = float(np.ptp(np.array(many), axis=1).mean())
        if len(steps) > 1 and 0 < steps.sum() <= MOST_VARIATION * span:
            found[i] = tuple(np.concatenate([[0.0], np.cumsum(steps) / span]).tolist())
    return found


def best_blocks(shares: np.ndarray, places: Sequence[float], count: int) -> Intervals:
    """The blocks of neighbouring values with the smallest variance of the places inside them.

    Args:
        shares: the share of each value.
        places: where each value lies, in rising order.
        count: the number of blocks; as many as there are values if these are fewer.
    """
    size = len(shares)
    if size <= count:
        return Intervals.values(size)
    line = np.array(places)
    mass, first, second = (np.concatenate([[0.0], np.cumsum(shares * line**k)]) for k in range(3))
    low, high = np.arange(size + 1)[:, None], np.arange(size + 1)[None, :]
    within = second[high] - second[low] - (first[high] - first[low]) ** 2 / np.maximum(mass[high] - mass[low], 1e-300)
    costs = np.where(low < high, np.maximum(within, 0.0), np.inf)  # of a block from low to high
    least, starts = np.where(np.arange(size + 1) == 0, 0.0, np.inf), []
    for _ in range(count):
        totals = least[:, None] + costs
        starts.append(totals.argmin(axis=0))
        least = totals.min(axis=0)
    cuts = [size]
    for start in reversed(starts):
        cuts.append(int(start[cuts[-1]]))
    return Intervals(size, tuple(itertools.pairwise(cuts[::-1])))


@dataclass(frozen=True)
class MeasureInBlocks:
    """One-way marginals, then pairs in blocks; or the ``otherwise``, where no value would be merged.

    Attributes:
        domain: the attributes.
        used: those that are measured.
        lines: those that may be cut into blocks.
        most_noise: a pair is left out if the squared length of its noise would be larger.
        otherwise: what is measured where nothing is merged, or no pair is worth its noise.
    """

    domain: Domain
    used: tuple[int, ...]
    lines: Lines = field(repr=False)  # a number for every value
    most_noise: float
    otherwise: Strategy

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        if not self.worthwhile(facts):
            return self.otherwise.outline(facts)
        rounds = self._first(facts), self._second(facts, {i: self._even(i, facts) for i in self.used})
        return tuple(Phase(1, len(asked), False, noise_of(asked, facts)) for asked in rounds)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if not self.worthwhile(facts):
            return self.otherwise.step(t, facts, log, family, params)
        if t > 1:
            return None
        return Measure(self._first(facts) if t == 0 else self._second(facts, self._cut(facts, log)))

    def worthwhile(self, facts: Facts) -> bool:
        """Whether some attribute is cut into blocks, and its pairs can be told from noise. It follows from public facts
        and the (noisy) number of rows."""
        merged = {i for i in self.lines if self.domain.sizes[i] > self.blocks(facts)}
        return any(not merged.isdisjoint(pair) for pair in self._pairs(facts))

    def blocks(self, facts: Facts) -> int:
        """The number of blocks.

        Args:
            facts: what is public.
        """
        wanted = BLOCKS * math.pow(self._variance(facts), -POWER / 2)
        return max(FEWEST, min(MOST, round(wanted)))

    def _every(self) -> list[tuple[int, int]]:
        return list(itertools.combinations([i for i in self.used if self.domain.sizes[i] > 1], 2))

    def _variance(self, facts: Facts) -> float:
        """Of a cell, as a fraction, if all pairs are measured alike."""
        pairs = self._every()
        square = square_of_counts(Marginal.of(self.domain, pairs[0]), facts)
        return square * len(pairs) / (2 * facts.rho * (1 - FIRST) * facts.total**2)

    def _pairs(self, facts: Facts) -> list[tuple[int, int]]:
        """Those that are measured."""
        blocks, variance = self.blocks(facts), self._variance(facts)
        cells = {i: min(m, blocks) if i in self.lines else m for i, m in enumerate(self.domain.sizes)}
        return [(i, j) for i, j in self._every() if cells[i] * cells[j] * variance <= self.most_noise]

    def _first(self, facts: Facts) -> tuple[Ask, ...]:
        rho = split(facts.rho * FIRST, len(self.used))
        return tuple(Ask(Marginal.of(self.domain, (i,)), rho) for i in self.used)

    def _second(self, facts: Facts, blocks: Mapping[int, Intervals]) -> tuple[Ask, ...]:
        pairs = self._pairs(facts)
        rho = split(minus(facts.rho, facts.rho * FIRST), len(pairs))
        return tuple(Ask(Product.of(self.domain, {i: blocks[i], j: blocks[j]}), rho) for i, j in pairs)

    def _even(self, attribute: int, facts: Facts) -> Intervals:
        """Blocks as if all values were equally likely: as many as there will be."""
        size = self.domain.sizes[attribute]
        return self._of(attribute, np.full(size, 1 / size), facts)

    def _cut(self, facts: Facts, log: Log) -> dict[int, Intervals]:
        """The blocks of each attribute, by the noisy one-way marginals."""
        shares = {m.queries.scope[0]: to_simplex(m.fractions(log.total)) for m in log.rounds[0].measurements}
        return {i: self._of(i, share, facts) for i, share in shares.items()}

    def _of(self, attribute: int, shares: np.ndarray, facts: Facts) -> Intervals:
        if attribute not in self.lines:
            return Intervals.values(len(shares))
        return best_blocks(shares + LEAST_MASS, self.lines[attribute], self.blocks(facts))
