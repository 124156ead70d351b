"""Some of a list of queries: how queries are asked one by one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries, Sensitivity, is_direct, of_records
from pointillist.queries.enumerating import sensitivity_by_enumeration
from pointillist.queries.intervals import Intervals

__all__ = ["Box", "Cells", "box_of", "meet"]

Box = Mapping[int, tuple[int, int]]
"""The records whose code of each named attribute is in the interval (low, high), high excluded."""


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

    @property
    def direct(self) -> bool:
        """Whether records are counted one by one: as for all of the queries."""
        return is_direct(self.whole)

    @cached_property
    def cells(self) -> tuple[int, ...]:
        inside = self.whole.cells
        return self.taken if inside is None else tuple(inside[cell] for cell in self.taken)

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        return self.whole.holds(codes)[:, list(self.taken)]

    def of_records(self, codes: Sequence[np.ndarray], weights: np.ndarray | None = None) -> np.ndarray:
        """The number of records for which each query holds, or the sum of their weights."""
        return of_records(self.whole, codes, weights)[list(self.taken)]

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
        if relation is Relation.REPLACE and self._always:
            return Sensitivity.of_indicators(0)
        if self.whole.partition or self.size == 1:  # the sets have at most one member
            changed = 1 if relation is Relation.ADD_REMOVE or self.size == 1 else 2
            return Sensitivity.of_indicators(changed, exact=self.factors is not None)  # some slabs hold for no record
        found = sensitivity_by_enumeration(self, relation)
        return found if found.exact else Sensitivity.of_indicators(min(found.l1, whole.l1), exact=False)

    @property
    def _always(self) -> bool:
        """Whether this is a single product of intervals that holds for every record."""
        box = box_of(self)
        return box is not None and list(box.values()) == [(0, size) for size in self.shape]

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
