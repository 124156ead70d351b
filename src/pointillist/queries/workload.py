"""A workload Q: the queries whose answers are to be kept, and the groups in which they are asked.

A query is a conjunction of (attribute, value) pairs. The queries are the cells of marginals, laid out one
marginal after the other in one flat answer vector. A *group* is what is selected and measured together: one
query (``by_query``) or all cells of one marginal (``by_marginal``, the paper's marginal trick).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import InputError, check, nearest

__all__ = ["Group", "Grouping", "Workload", "show_bytes"]


class Grouping(StrEnum):
    """What is selected and measured together."""

    QUERY = "query"
    MARGINAL = "marginal"

    @classmethod
    def parse(cls, word: str) -> Grouping:
        known = [g.value for g in cls]
        if word not in known:
            raise InputError("group", word, f"must be one of {', '.join(known)}", nearest(word, known))
        return cls(word)


@dataclass(frozen=True)
class Group:
    """One group: its marginal, its cells in the flat answer vector, and its cells inside the marginal."""

    marginal: int
    flat: slice
    cells: slice


@dataclass(frozen=True)
class Workload:
    """Marginals over a domain, grouped by query or by marginal."""

    domain: Domain
    marginals: tuple[Attributes, ...]
    grouping: Grouping = Grouping.MARGINAL

    def __post_init__(self) -> None:
        check(len(self.marginals) > 0, "workload", 0, "must have at least one marginal", "name some attributes")
        d = len(self.domain)
        for marginal in self.marginals:
            if not marginal or list(marginal) != sorted(set(marginal)) or not all(0 <= i < d for i in marginal):
                raise ValueError(f"{marginal} is not an increasing tuple of attribute positions below {d}")
        if len(set(self.marginals)) < len(self.marginals):
            raise ValueError("a workload must not hold a marginal twice: it would be paid for twice")

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each marginal's cells begin in the flat answer vector; one more entry holds the end."""
        sizes = [self.domain.cells_of(marginal) for marginal in self.marginals]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def queries(self) -> int:
        """|Q|."""
        return int(self.offsets[-1])

    @property
    def groups(self) -> int:
        return self.queries if self.grouping is Grouping.QUERY else len(self.marginals)

    @property
    def answer_bytes(self) -> int:
        """The memory of one answer vector (64-bit numbers)."""
        return 8 * self.queries

    def regroup(self, grouping: Grouping) -> Workload:
        return replace(self, grouping=grouping)

    def group(self, index: int) -> Group:
        """The group with the given number."""
        if self.grouping is Grouping.QUERY:
            marginal = int(np.searchsorted(self.offsets, index, side="right")) - 1
            cell = index - int(self.offsets[marginal])
            return Group(marginal, slice(index, index + 1), slice(cell, cell + 1))
        start, stop = int(self.offsets[index]), int(self.offsets[index + 1])
        return Group(index, slice(start, stop), slice(0, stop - start))

    def values(self, marginal: int, cell: int) -> tuple[int, ...]:
        """The target values y of a cell, one per attribute of its marginal."""
        shape = self.domain.shape(self.marginals[marginal])
        return tuple(int(v) for v in np.unravel_index(cell, shape))

    def fixed(self, query: int) -> dict[int, int]:
        """The attributes that a query fixes, with their values (``query`` numbers the flat answer vector)."""
        marginal = int(np.searchsorted(self.offsets, query, side="right")) - 1
        values = self.values(marginal, query - int(self.offsets[marginal]))
        return dict(zip(self.marginals[marginal], values, strict=True))

    def l2_sensitivity_squared(self, relation: Relation) -> int:
        """The square of the L2 sensitivity of one group's counts.

        Adding or removing a row changes one cell of a marginal by 1. Replacing a row moves 1 from one cell to
        another: a single query changes by 1, a whole marginal by sqrt(1 + 1).
        """
        whole_marginal = self.grouping is Grouping.MARGINAL
        return 2 if relation is Relation.REPLACE and whole_marginal else 1

    def max_per_group(self, values: np.ndarray) -> np.ndarray:
        """The largest entry of each group of a flat vector."""
        if self.grouping is Grouping.QUERY:
            return values
        return np.maximum.reduceat(values, self.offsets[:-1])

    def describe(self) -> str:
        size = show_bytes(self.answer_bytes)
        return f"{len(self.marginals):,} marginals, {self.queries:,} queries ({size} an answer vector)"


def show_bytes(count: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
