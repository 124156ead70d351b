"""Some of a list of queries: how queries are asked one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.intervals import Intervals

__all__ = ["Box", "Cells", "box_of", "meet"]

Box = Mapping[int, tuple[int, int]]
"""The records whose code of each named attribute is in the interval (low, high), high excluded."""

MOST_ENUMERATED = 10_000_000
"""Sensitivities are found by enumeration up to this number of (cell of the scope, query) pairs."""

MOST_PATTERNS = 4_000
"""And up to this number of different sets of queries that one record can satisfy."""


@dataclass(frozen=True)
class Cells:
    """The queries of ``whole`` at the positions ``taken``."""

    whole: Queries
    taken: tuple[int, ...]

    kind = "cells"
    partition = False

    def __post_init__(self) -> None:
        good = len(self.taken) > 0 and all(0 <= cell < self.whole.size for cell in self.taken)
        check(good, "cells", self.taken[:5], f"must be positions below {self.whole.size}", "name at least one query")
        check(len(set(self.taken)) == len(self.taken), "cells", self.taken[:5], "must be different", "name each once")

    @property
    def scope(self) -> Attributes:
        return self.whole.scope

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.shape

    @property
    def size(self) -> int:
        return len(self.taken)

    @property
    def factors(self) -> tuple[Intervals, ...] | None:
        return self.whole.factors

    @cached_property
    def cells(self) -> tuple[int, ...]:
        inside = self.whole.cells
        return self.taken if inside is None else tuple(inside[cell] for cell in self.taken)

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        return self.whole.holds(codes)[:, list(self.taken)]

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        return self.whole.of_marginal(table)[list(self.taken)]

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        padded = np.zeros(self.whole.size, np.result_type(values))
        padded[list(self.taken)] = values
        return self.whole.to_marginal(padded)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """A single query that holds for some records and not for others changes by 1. For several queries, one person
        adds or removes a set of queries that one record satisfies, or replaces it by another such set: all sets are
        enumerated. Where they are too many, what holds for all queries holds for some of them."""
        whole = self.whole.sensitivity(relation)
        if whole.single > 1:  # not predicates: what holds for all of them holds for some
            return replace(whole, exact=False)
        if self.whole.partition or self.size == 1:  # the sets have at most one member
            return Sensitivity.of_indicators(1 if relation is Relation.ADD_REMOVE or self.size == 1 else 2)
        patterns = self._patterns()
        if patterns is None:
            changed = min(self.size, whole.l1)
            return Sensitivity.of_indicators(changed, exact=False)
        sizes = patterns.sum(axis=1)
        if relation is Relation.ADD_REMOVE:
            return Sensitivity.of_indicators(int(sizes.max()))
        return Sensitivity.of_indicators(int((sizes[:, None] + sizes - 2 * patterns @ patterns.T).max()))

    def _patterns(self) -> np.ndarray | None:
        """The distinct sets of queries that a record can satisfy, as rows of 0 and 1; None if they are too many."""
        if math.prod(self.shape) * self.whole.size > MOST_ENUMERATED:
            return None
        codes = np.indices(self.shape).reshape(len(self.shape), -1)
        everywhere: list[np.ndarray] = [np.zeros(0)] * (max(self.scope) + 1)
        for attribute, values in zip(self.scope, codes, strict=True):
            everywhere[attribute] = values
        patterns: np.ndarray = np.unique(self.holds(everywhere).astype(np.int64), axis=0)
        return patterns if len(patterns) <= MOST_PATTERNS else None

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self.whole, tuple(self.taken[cell] for cell in cells))

    def without(self, attribute: int) -> None:
        return None

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"kind": self.kind, "of": self.whole.to_dict(names), "taken": list(self.taken)}


@lru_cache(maxsize=65536)
def box_of(queries: Queries) -> Box | None:
    """The records for which a single query holds, if it is a product of intervals; None for other queries."""
    if queries.size != 1 or queries.factors is None:
        return None
    widths = [len(factor.bounds) for factor in queries.factors]
    columns = np.unravel_index(0 if queries.cells is None else queries.cells[0], widths)
    bounds = (factor.bounds[int(column)] for factor, column in zip(queries.factors, columns, strict=True))
    return dict(zip(queries.scope, bounds, strict=True))


def meet(first: Box, second: Box) -> Box | None:
    """The box of the records that are in both boxes; None if there are none."""
    both = {}
    for attribute in dict.fromkeys(itertools.chain(first, second)):
        sides = [box[attribute] for box in (first, second) if attribute in box]
        low, high = max(side[0] for side in sides), min(side[1] for side in sides)
        if low >= high:
            return None
        both[attribute] = (low, high)
    return both
