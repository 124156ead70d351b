"""Groups of the values of one attribute: one query for each group, of which exactly one holds for a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Sensitivity, check_scope
from pointillist.queries.cells import Cells

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """The queries g(x_i) = j for j = 0 .. m - 1, where g gives the group of each code of the attribute i.

    Attributes:
        scope: the position of the attribute.
        groups: the group of each of its codes: 0 .. m - 1, each of them at least once.
    """

    scope: Attributes
    groups: tuple[int, ...]

    kind = "groups"
    partition = True
    factors = None
    cells = None

    def __post_init__(self) -> None:
        check_scope(self.scope, 1)
        found = sorted(set(self.groups))
        if found != list(range(len(found))) or not found:
            raise ValueError("the groups must be 0 .. m - 1, each of them at least once")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.groups),)

    @property
    def size(self) -> int:
        return max(self.groups) + 1

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        groups = np.array(self.groups)[np.asarray(codes[self.scope[0]], np.intp)]
        held: np.ndarray = groups[:, None] == np.arange(self.size)
        return held

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        sums = np.zeros(self.size, table.dtype)
        np.add.at(sums, np.array(self.groups), table)
        return sums

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values[np.array(self.groups)])

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Adding or removing a row changes one group by 1; replacing a row moves 1 from one group to another."""
        if relation is Relation.ADD_REMOVE:
            return Sensitivity.of_indicators(1)
        return Sensitivity.of_indicators(2 if self.size > 1 else 0)

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> None:
        """Nothing is left without the only attribute."""

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"kind": self.kind, "attributes": [names[self.scope[0]]], "groups": list(self.groups)}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Groups:
        groups = tuple(map(int, spec["groups"]))
        scope = domain.attributes(spec["attributes"])
        if domain.shape(scope) != (len(groups),):
            raise ValueError("the groups must be those of the codes of the attribute")
        return cls(scope, groups)
