"""How far two attributes are from being independent: one number, of which one row can change little.

It is not a count of records, but it can be asked for like one: it follows from a marginal, it is a whole number, and it
states its sensitivity. Its noise is small against what it says. A tie of strength s moves s n rows, however many cells
the marginal has, and one person changes it by 1 or 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Sensitivity, check_scope

__all__ = ["Tie"]


@dataclass(frozen=True)
class Tie:
    """The distance sum_uv |c_uv - r_uv| of the counts c of two attributes from r_uv = a_u b_v / N, rounded.

    Attributes:
        scope: the positions of the two attributes.
        first: a, an estimate of the counts of the first attribute: whole numbers, not below 0.
        second: b, an estimate of those of the second.
        total: N, the number of rows that the estimates are for.
    """

    scope: Attributes
    first: tuple[int, ...]
    second: tuple[int, ...]
    total: int

    kind = "tie"
    size = 1
    partition = False
    factors = None
    cells = None

    def __post_init__(self) -> None:
        check_scope(self.scope, 2)
        counts = (*self.first, *self.second)
        if not (self.first and self.second and self.total > 0 and min(counts) >= 0):
            raise ValueError("the estimates of a tie must be counts of at least one value each, for at least one row")

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.first), len(self.second)

    @cached_property
    def reference(self) -> np.ndarray:
        """r, flat: floor(a_u b_v / N + 1/2), exactly. Where 64 bits may not hold the products, they are Python's."""
        kind = np.int64 if 2 * max(self.first) * max(self.second) + 2 * self.total < 2**63 else object
        products = np.multiply.outer(np.array(self.first, kind), np.array(self.second, kind))
        return np.asarray((2 * products + self.total) // (2 * self.total), np.int64).ravel()

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """No predicate defines a tie."""
        raise ValueError("a tie is a distance between counts: no single record satisfies it")

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The distance of a marginal of whole counts. It is not a linear map."""
        return np.array([np.abs(table - self.reference).sum()])

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        """A tie has no transpose."""
        raise ValueError("a tie is a distance between counts, and no linear map")

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Adding or removing a row changes one c_uv by 1, and so |c_uv - r_uv| by 1, as all of these are whole numbers.
        Replacing a row removes one and adds one: at most 2, by the triangle inequality. It is attained if the row
        leaves a cell that has too many for one that has too few, which no table has if r is 0 everywhere. r is fixed
        before the data is looked at."""
        change = 1 if relation is Relation.ADD_REMOVE else 2 if self.shape != (1, 1) else 0
        return Sensitivity(change, change, change**2, exact=relation is Relation.ADD_REMOVE)

    def take(self, cells: Sequence[int]) -> Tie:
        if list(cells) != [0]:
            raise ValueError("a tie is a single number")
        return self

    def without(self, attribute: int) -> None:
        """Nothing is tied without one of the two."""

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attributes": [names[i] for i in self.scope],
            "first": list(self.first),
            "second": list(self.second),
            "total": self.total,
        }

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Tie:
        places = [domain.index(name) for name in spec["attributes"]]
        counts = [tuple(int(count) for count in spec[side]) for side in ("first", "second")]
        if [domain.sizes[i] for i in places] != [len(side) for side in counts]:
            raise ValueError("the estimates of a tie must be for the codes of its attributes")
        # The columns may have another order than where the tie was written.
        (i, first), (j, second) = sorted(zip(places, counts, strict=True))
        return cls((i, j), first, second, int(spec["total"]))
