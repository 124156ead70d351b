"""Marginals: one query for each combination of values of some attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.data.sources import keys_of
from pointillist.queries.base import Sensitivity, check_scope
from pointillist.queries.cells import Cells
from pointillist.queries.intervals import Intervals

__all__ = ["Marginal"]


@dataclass(frozen=True)
class Marginal:
    """All cells of the marginal over ``scope``: x_S = y for every y. Exactly one of them holds for a record.

    Attributes:
        scope: increasing positions of attributes.
        shape: the size of each.
    """

    scope: Attributes
    shape: tuple[int, ...]

    kind = "marginal"
    partition = True
    cells = None

    def __post_init__(self) -> None:
        check_scope(self.scope, len(self.shape))

    @classmethod
    def of(cls, domain: Domain, scope: Sequence[str | int]) -> Marginal:
        """The marginal over some attributes.

        Args:
            domain: the attributes and their sizes.
            scope: names or positions, in any order.
        """
        attributes = domain.attributes(scope)
        return cls(attributes, domain.shape(attributes))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def factors(self) -> tuple[Intervals, ...]:
        return tuple(map(Intervals.values, self.shape))

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        inside = [np.asarray(codes[i], np.intp) for i in self.scope]
        keys = keys_of(inside, Domain(tuple(map(str, self.scope)), self.shape), tuple(range(len(inside))))
        held: np.ndarray = keys[:, None] == np.arange(self.size)
        return held

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        return table

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        return values

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Adding or removing a row changes one cell by 1; replacing a row moves 1 from one cell to another."""
        if relation is Relation.ADD_REMOVE:
            return Sensitivity.of_indicators(1)
        return Sensitivity.of_indicators(2 if self.size > 1 else 0)

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> Marginal | None:
        kept = [n for n, i in enumerate(self.scope) if i != attribute]
        return Marginal(tuple(self.scope[n] for n in kept), tuple(self.shape[n] for n in kept)) if kept else None

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"kind": self.kind, "attributes": [names[i] for i in self.scope]}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Marginal:
        return cls.of(domain, spec["attributes"])
