"""Candidates of a selection: whole members of a list of queries, or its queries one by one.

Selecting whole marginals is the paper's marginal trick. Both kinds number their candidates 0, 1, ... in the order of
the flat answer vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy as np

from pointillist.checks import one_of
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.cells import Cells
from pointillist.queries.workload import offsets_of

__all__ = ["Candidates", "Grouping", "Single", "Whole"]


class Candidates(Protocol):
    """What a selection chooses among. Each candidate is asked as :class:`Queries` of its own."""

    @property
    def queries(self) -> tuple[Queries, ...]:
        """All queries behind the candidates, in the order of the flat answer vector."""
        ...

    @property
    def size(self) -> int:
        """The number of entries of the flat answer vector."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Queries: ...

    def find(self, queries: Queries) -> int | None:
        """The number of the candidate that is ``queries``; None if there is none."""
        ...

    def entries(self, queries: Queries) -> slice:
        """Where the answers of the candidate that is ``queries`` are in the flat answer vector."""
        ...

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest entry of a flat vector in each candidate."""
        ...

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of the entries of a flat vector in each candidate."""
        ...

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """What one person can change in any one candidate: the largest over all of them."""
        ...


@dataclass(frozen=True)
class Whole:
    """Each member of a list of queries is one candidate, selected and measured as a whole."""

    queries: tuple[Queries, ...]

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each member begins in the flat answer vector; one more entry holds the end."""
        return offsets_of(self.queries)

    @property
    def size(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def _places(self) -> dict[Queries, int]:
        return {queries: n for n, queries in enumerate(self.queries)}

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, number: int) -> Queries:
        return self.queries[number]

    def find(self, queries: Queries) -> int | None:
        return self._places.get(queries)

    def entries(self, queries: Queries) -> slice:
        number = self._places[queries]
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))

    def largest(self, values: np.ndarray) -> np.ndarray:
        most: np.ndarray = np.maximum.reduceat(values, self.offsets[:-1])
        return most

    def sums(self, values: np.ndarray) -> np.ndarray:
        sums: np.ndarray = np.add.reduceat(values, self.offsets[:-1])
        return sums

    @cached_property
    def _sensitivities(self) -> dict[Relation, Sensitivity]:
        return {}  # each is computed once: a list may have thousands of members

    def sensitivity(self, relation: Relation) -> Sensitivity:
        if relation not in self._sensitivities:
            found = Sensitivity.largest(queries.sensitivity(relation) for queries in self.queries)
            self._sensitivities[relation] = found
        return self._sensitivities[relation]


@dataclass(frozen=True)
class Single:
    """Each single query of a list is one candidate."""

    queries: tuple[Queries, ...]

    @cached_property
    def whole(self) -> Whole:
        """The same list, member by member."""
        return Whole(self.queries)

    @property
    def size(self) -> int:
        return self.whole.size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> Queries:
        member = int(np.searchsorted(self.whole.offsets, number, side="right")) - 1
        return self.queries[member].take([number - int(self.whole.offsets[member])])

    def find(self, queries: Queries) -> int | None:
        if not isinstance(queries, Cells) or queries.size > 1:
            return None
        starts = zip(self.queries, self.whole.offsets.tolist(), strict=False)
        member = self.whole.find(queries.whole)
        if member is not None:
            return int(self.whole.offsets[member]) + queries.taken[0]
        some = ((one, start) for one, start in starts if isinstance(one, Cells) and one.whole == queries.whole)
        return next((s + one.taken.index(*queries.taken) for one, s in some if queries.taken[0] in one.taken), None)

    def entries(self, queries: Queries) -> slice:
        number = self.find(queries)
        if number is None:
            raise KeyError("no candidate is these queries")
        return slice(number, number + 1)

    def largest(self, values: np.ndarray) -> np.ndarray:
        return values

    def sums(self, values: np.ndarray) -> np.ndarray:
        return values

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One person changes a single count by its largest change: by 1 for predicates."""
        single = max(1, self.whole.sensitivity(relation).single)
        return Sensitivity(single, single, single**2)


class Grouping(StrEnum):
    """The user's word for the candidates: the queries one by one, or whole marginals."""

    QUERY = "query"
    MARGINAL = "marginal"

    @classmethod
    def parse(cls, word: str) -> Grouping:
        """The grouping called ``word``."""
        return cls(one_of("group", word, [g.value for g in cls]))

    def candidates(self, queries: tuple[Queries, ...]) -> Candidates:
        """The candidates that a list of queries gives."""
        return Single(queries) if self is Grouping.QUERY else Whole(queries)
