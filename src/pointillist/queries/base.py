"""Queries: predicates over some attributes, asked together, that state everything about themselves.

A query phi maps a record to 0 or 1; its answer on a table is the number (or the fraction) of the records for which
it holds. :class:`Queries` are m of them over the same attributes S, the *scope*. Marginals are the first kind
(:mod:`pointillist.queries.marginal`), products of intervals the second (:mod:`pointillist.queries.product`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.queries.intervals import Intervals

__all__ = ["Queries", "Sensitivity", "answers_of", "check_scope", "is_direct", "of_records", "parts_of"]


@dataclass(frozen=True)
class Sensitivity:
    """How much one person can change the counts of queries that are asked together.

    Attributes:
        single: the largest change of a single count.
        l1: the largest sum of the changes, in absolute value.
        l2_squared: the largest sum of the squared changes.
        exact: whether some pair of neighbouring tables attains these; if not, they are proved upper bounds.
    """

    single: int
    l1: int
    l2_squared: int
    exact: bool = True

    @classmethod
    def of_indicators(cls, changed: int, exact: bool = True) -> Sensitivity:
        """For 0/1 queries: one person changes at most ``changed`` of the counts, each of them by 1."""
        return cls(min(changed, 1), changed, changed, exact)

    def of_rows(self, rows: int) -> Sensitivity:
        """What ``rows`` rows can change together, if one row can change this much.

        The change of several rows is the sum of their changes, so that no norm of it is above the sum of the norms.
        Rows that are all equal attain it.
        """
        return Sensitivity(rows * self.single, rows * self.l1, rows**2 * self.l2_squared, self.exact)

    @classmethod
    def largest(cls, many: Iterable[Sensitivity]) -> Sensitivity:
        """The largest of each: what holds for every member of a list."""
        found = set(many)
        return cls(
            max(s.single for s in found),
            max(s.l1 for s in found),
            max(s.l2_squared for s in found),
            all(s.exact for s in found),
        )


def check_scope(scope: Attributes, described: int) -> None:
    """Refuse attributes that are not increasing positions, each with its size or factor."""
    good = len(scope) > 0 and scope[0] >= 0 and all(a < b for a, b in itertools.pairwise(scope))
    if not good or described != len(scope):
        raise ValueError(f"{scope} must be increasing positions, one for each of {described} factors")


class Queries(Protocol):
    """m predicates over the attributes of one scope. Equal queries compare and hash as equal."""

    @property
    def scope(self) -> Attributes:
        """The attributes S that the predicates look at."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes |X_i| of the attributes of the scope."""
        ...

    @property
    def size(self) -> int:
        """m, the number of queries."""
        ...

    @property
    def partition(self) -> bool:
        """Whether exactly one of the queries holds for every record, so that their fractions sum to 1."""
        ...

    @property
    def factors(self) -> tuple[Intervals, ...] | None:
        """F_i for each attribute i of the scope, such that phi(x) = prod_i F_i[x_i, j_i]; None if there are none.

        The queries are then cells (j_1, ..., j_k) of the grid of all such products.
        """
        ...

    @property
    def cells(self) -> tuple[int, ...] | None:
        """Which cells of the grid of the factors the queries are, in C order; None for all of them."""
        ...

    def __hash__(self) -> int: ...

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """The definition: rows x m booleans, for records given as one array of codes per attribute of the domain."""
        ...

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The answers, from the flat marginal over the scope (a linear map)."""
        ...

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        """The transpose of :meth:`of_marginal`: for each cell x of the scope the sum of ``values`` over the queries
        that hold for x."""
        ...

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """What one person can change in the counts of these queries."""
        ...

    def take(self, cells: Sequence[int]) -> Queries:
        """Some of the queries, by their positions."""
        ...

    def without(self, attribute: int) -> Queries | None:
        """Queries of the same kind over the scope without ``attribute``, which these determine; None if there are
        none."""
        ...

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """The queries as plain data; ``names`` are those of the domain's attributes."""
        ...


def parts_of(queries: Queries) -> tuple[Any, ...]:
    """What is counted for some queries: each part follows from the marginal over its own scope.

    Most kinds are one part. Those that are asked of many scopes together have an attribute ``parts``.
    """
    parts: tuple[Any, ...] = getattr(queries, "parts", (queries,))
    return parts


def answers_of(queries: Queries, tables: Mapping[Attributes, np.ndarray]) -> np.ndarray:
    """The answers, from the flat marginals over the scopes of the parts.

    Args:
        queries: the queries.
        tables: a marginal for each scope of their parts.
    """
    answers = [part.of_marginal(tables[part.scope]) for part in parts_of(queries)]
    return answers[0] if len(answers) == 1 else np.concatenate(answers)


def is_direct(queries: Queries) -> bool:
    """Whether the answers are counted record by record, since the marginal over the scope would be too large.

    Kinds for which it can be so say it by an attribute ``direct``.
    """
    return bool(getattr(queries, "direct", False))


def of_records(queries: Queries, codes: Sequence[np.ndarray], weights: np.ndarray | None = None) -> np.ndarray:
    """The number of records for which each query holds, or the sum of their weights.

    Args:
        queries: the queries.
        codes: one array of codes per attribute of the domain.
        weights: of the records.
    """
    own = getattr(queries, "of_records", None)
    if own is not None:  # a faster way than by the definition
        return np.asarray(own(codes, weights))
    held = queries.holds(codes)
    return np.asarray(held.sum(axis=0, dtype=np.int64) if weights is None else weights @ held)
