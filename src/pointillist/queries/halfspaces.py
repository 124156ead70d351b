"""Halfspaces: thresholds of a linear score of many attributes, and slabs between two thresholds.

The score s(x) = sum_i w_i[x_i] adds up one whole number per attribute, so it is a whole number in 0 .. span. It is an
ordered attribute of its own, which follows from the others: all thresholds of one direction are prefixes of it, and the
slabs between them a partition. That is why sensitivities are exact for any number of attributes, and why a product
distribution answers such queries exactly: the distribution of a sum of independent whole numbers is a convolution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from pointillist.checks import check, whole
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import Shown
from pointillist.queries.base import Sensitivity, check_scope
from pointillist.queries.cells import Cells
from pointillist.queries.enumerating import combinations, most_different
from pointillist.queries.intervals import Intervals

__all__ = ["Halfspaces"]

MOST_SPAN = 20_000
"""The largest score."""

MOST_TABLE = 1_000_000
"""Records are counted one by one where the marginal over the scope has more cells."""


@dataclass(frozen=True)
class Halfspaces:
    """The queries low_j <= s(x) < high_j, for each interval j, crossed with every value of some attributes.

    Attributes:
        scope: increasing positions of all attributes.
        weights: for each of them w_i, whole numbers from 0 on for its codes; or its size (one number), if the queries
            are crossed with its values.
        intervals: of the score, whose codes are 0 .. span.
    """

    scope: Attributes
    weights: tuple[tuple[int, ...] | int, ...]
    intervals: Intervals

    kind = "halfspaces"
    factors = None
    cells = None

    def __post_init__(self) -> None:
        check_scope(self.scope, len(self.weights))
        rule, hint = "must be whole numbers from 0 on, for one attribute or more", "use Halfspaces.of"
        good = bool(self._added) and all(min(weights) == 0 for _, weights in self._added)
        check(good, "weights", Shown("others"), rule, hint)
        rule = f"must lead to scores of at most {MOST_SPAN:,}"
        check(self.span <= MOST_SPAN, "weights", Shown(f"{self.span:,}"), rule, "use smaller weights")
        if self.intervals.size != self.span + 1:
            raise ValueError("the intervals must be those of the scores")

    @classmethod
    def of(
        cls,
        domain: Domain,
        weights: Mapping[Any, Sequence[int]],
        at_most: int | Sequence[int],
        crossed: Sequence[str | int] = (),
    ) -> Halfspaces:
        """The halfspaces sum_i w_i[x_i] <= t for each threshold t.

        Args:
            domain: the attributes and their sizes.
            weights: by name or position, a whole number, of either sign, for every code of some attributes.
            at_most: the thresholds t.
            crossed: attributes with whose values the halfspaces are crossed.
        """
        given = {domain.attributes([name])[0]: [whole("weights", w) for w in many] for name, many in weights.items()}
        rule, hint = "must have one number for every code of its column", "see domain.sizes"
        for i, many in given.items():
            check(len(many) == domain.sizes[i], f"weights of {domain.names[i]!r}", len(many), rule, hint)
        others = domain.attributes(crossed) if len(crossed) else ()
        both = sorted(set(given) & set(others))
        rule = "must not have weights"
        check(not both, "crossed", [domain.names[i] for i in both], rule, "leave them out of one of both")
        scope = tuple(sorted((*given, *others)))
        least = {i: min(many) for i, many in given.items()}
        lowest = sum(least.values())
        added = {i: tuple(w - least[i] for w in many) for i, many in given.items()}
        span = sum(max(many) for many in added.values())
        thresholds = [at_most] if isinstance(at_most, int) else list(at_most)
        ends = [whole("at_most", t) - lowest + 1 for t in thresholds]
        rule = f"must be at least {lowest}, the smallest score, and below {lowest + span}, the largest"
        for threshold, end in zip(thresholds, ends, strict=True):
            check(0 < end <= span, "at_most", threshold, rule, "use a threshold between them")
        intervals = Intervals(span + 1, tuple((0, end) for end in ends))
        return cls(scope, tuple(added.get(i, domain.sizes[i]) for i in scope), intervals)

    def slabs(self) -> Halfspaces:
        """The slabs between neighbouring bounds: a partition, of which these queries are sums."""
        size = self.span + 1
        cuts = sorted({0, size, *(bound for pair in self.intervals.bounds for bound in pair)})
        return Halfspaces(self.scope, self.weights, Intervals(size, tuple(itertools.pairwise(cuts))))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(w if isinstance(w, int) else len(w) for w in self.weights)

    @property
    def crossed(self) -> Attributes:
        """The attributes with whose values the halfspaces are crossed."""
        return tuple(i for i, w in zip(self.scope, self.weights, strict=True) if isinstance(w, int))

    @property
    def _added(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(i, w) for i, w in zip(self.scope, self.weights, strict=True) if not isinstance(w, int)]

    @property
    def added(self) -> dict[int, np.ndarray]:
        """w_i of every attribute that has weights."""
        return {i: np.array(weights, np.int64) for i, weights in self._added}

    @cached_property
    def span(self) -> int:
        """The largest score; the smallest is 0."""
        return sum(max(weights) for _, weights in self._added)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """The number of combinations of crossed values, and of intervals."""
        return math.prod(w for w in self.weights if isinstance(w, int)), len(self.intervals.bounds)

    @property
    def size(self) -> int:
        return math.prod(self.grid)

    @property
    def direct(self) -> bool:
        """Whether records are counted one by one."""
        return math.prod(self.shape) > MOST_TABLE

    @cached_property
    def partition(self) -> bool:
        """Whether the intervals are disjoint and cover all scores."""
        return bool((self.intervals.depth == 1).all())

    def keys(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """The combination of crossed values and the score of each record, as one number."""
        score: Any = 0
        key: Any = 0
        for i, w in zip(self.scope, self.weights, strict=True):
            if isinstance(w, int):
                key = key * w + np.asarray(codes[i], np.intp)
            else:
                score = score + np.array(w, np.intp)[codes[i]]
        keys: np.ndarray = key * (self.span + 1) + score
        return keys

    def _of_keys(self, sums: np.ndarray) -> np.ndarray:
        return self.intervals.sums(sums.reshape(self.grid[0], -1), 1).ravel()

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        key, score = np.divmod(self.keys(codes), self.span + 1)
        inside = self.intervals.matrix.astype(bool)[score]
        own = key[:, None] == np.arange(self.grid[0])
        held: np.ndarray = (own[:, :, None] & inside[:, None, :]).reshape(len(key), -1)
        return held

    def of_records(self, codes: Sequence[np.ndarray], weights: np.ndarray | None = None) -> np.ndarray:
        """The number of records for which each query holds, or the sum of their weights."""
        sums = np.bincount(self.keys(codes), weights, minlength=self.grid[0] * (self.span + 1))
        return self._of_keys(sums.astype(np.int64) if weights is None else sums)

    def of_product(self, ways: Sequence[np.ndarray]) -> np.ndarray:
        """The answers of independent attributes: the score of independent attributes has the convolution of their
        distributions.

        Args:
            ways: the distribution of each attribute of the domain.
        """
        scores = reduce(np.convolve, (np.bincount(w, ways[i], w.max() + 1) for i, w in self.added.items()))
        crossed = reduce(np.multiply.outer, (ways[i] for i in self.crossed), np.ones(()))
        return self._of_keys(np.multiply.outer(crossed.ravel(), scores))

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        sums, start = np.zeros(self.grid[0] * (self.span + 1)), 0
        for codes in combinations(self.scope, self.shape):
            keys = self.keys(codes)
            sums += np.bincount(keys, table[start : start + len(keys)], minlength=len(sums))
            start += len(keys)
        return self._of_keys(sums.astype(table.dtype))  # whole counts below 2^53 are exact

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        spread = self.intervals.spread(values.reshape(self.grid), 1).ravel()
        return np.concatenate([spread[self.keys(codes)] for codes in combinations(self.scope, self.shape)])

    @cached_property
    def _reached(self) -> np.ndarray:
        """The scores that some record has: sums of one weight of each attribute."""
        bits = reduce(lambda bits, many: reduce(int.__or__, (bits << w for w in set(many[1]))), self._added, 1)
        return np.array([score for score in range(self.span + 1) if bits >> score & 1])

    @cached_property
    def _patterns(self) -> np.ndarray:
        """The different sets of intervals that hold a score that is reached. They are kept: there may be many thousand
        halfspaces, and the noise of each is asked for again and again while a budget is planned."""
        return np.unique(self.intervals.matrix[self._reached], axis=0)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """A record with the score s satisfies the a(s) intervals that hold s, for its own crossed values: adding or
        removing it changes that number of counts by 1. Replacing it by one with other crossed values and the score t
        changes a(s) + a(t); with the same ones, those intervals that hold one of both scores. Any code of an attribute
        goes with any of another, so every sum of weights is the score of some record, and the largest of these numbers
        over the scores that are reached is exact."""
        most = int(self._patterns.sum(axis=1).max())
        if relation is Relation.ADD_REMOVE:
            return Sensitivity.of_indicators(most)
        return Sensitivity.of_indicators(2 * most if self.grid[0] > 1 else most_different(self._patterns))

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> None:
        """Nothing of this kind follows from halfspaces over more attributes."""

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attributes": [names[i] for i in self.scope],
            "weights": [None if isinstance(w, int) else list(w) for w in self.weights],
            "intervals": [list(pair) for pair in self.intervals.bounds],
        }

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Halfspaces:
        pairs = sorted(zip(map(domain.index, spec["attributes"]), spec["weights"], strict=True), key=lambda p: p[0])
        scope = tuple(i for i, _ in pairs)
        weights = tuple(domain.sizes[i] if w is None else tuple(map(int, w)) for i, w in pairs)
        if tuple(w if isinstance(w, int) else len(w) for w in weights) != domain.shape(scope):
            raise ValueError("the weights must be those of the codes of the attributes")
        span = sum(max(w) for w in weights if not isinstance(w, int))
        return cls(scope, weights, Intervals(span + 1, tuple((int(a), int(b)) for a, b in spec["intervals"])))
