"""BANDS: how far apart two columns are. A kind of queries to copy.

For two attributes i and j of the same size and some widths w_1 < w_2 < ..., the queries are

    phi_k(x) = 1  if |x_i - x_j| <= w_k.

They are nested, so a record satisfies a number of them: all whose width is at least its distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist import Relation
from pointillist.data.domain import Attributes, Domain
from pointillist.queries.base import Sensitivity
from pointillist.queries.cells import Cells
from pointillist.queries.workload import KINDS

__all__ = ["Bands"]


@dataclass(frozen=True)
class Bands:
    """|x_i - x_j| <= w, for each of the widths w."""

    scope: Attributes
    shape: tuple[int, ...]
    widths: tuple[int, ...]

    kind = "bands"
    partition = False  # not exactly one of them holds
    factors = None  # not a product of one predicate per attribute
    cells = None

    @property
    def size(self) -> int:
        return len(self.widths)

    # The definition. Everything else must agree with it, and the tests compare.
    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        first, second = (np.asarray(codes[i], np.int64) for i in self.scope)
        return np.abs(first - second)[:, None] <= np.array(self.widths)

    # The linear map from the marginal over the scope, and its transpose.
    @cached_property
    def _map(self) -> np.ndarray:
        first, second = np.indices(self.shape).reshape(2, -1)
        return (np.abs(first - second)[:, None] <= np.array(self.widths)).astype(np.int64)

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        return table @ self._map

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        return self._map @ values

    # The sensitivity, with its reason.
    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Adding or removing a record changes all queries that it satisfies. Since the queries are nested, replacing
        one record by another changes the difference of the two numbers."""
        satisfied = self._map.sum(axis=1)
        least = 0 if relation is Relation.ADD_REMOVE else int(satisfied.min())
        return Sensitivity.of_indicators(int(satisfied.max()) - least)

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> None:
        return None  # one column alone says nothing about a distance

    # Plain data, so that releases can be saved and loaded.
    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"kind": self.kind, "attributes": [names[i] for i in self.scope], "widths": list(self.widths)}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Bands:
        scope = domain.attributes(spec["attributes"])
        return cls(scope, domain.shape(scope), tuple(spec["widths"]))


KINDS[Bands.kind] = Bands
