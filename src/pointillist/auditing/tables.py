"""Made-up neighbouring tables on which one row, or one unit, can be seen as well as possible. No real data is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.queries.base import Queries, answers_of, is_direct, of_records, parts_of
from pointillist.queries.marginal import Marginal

__all__ = ["LEAST_ROWS", "Neighbours", "designs"]

LEAST_ROWS = 10
"""A made-up table has at least this number of rows."""


@dataclass(frozen=True)
class Neighbours:
    """Two tables that differ in one row or unit, as distinct rows and how often each occurs.

    Attributes:
        schema: the columns.
        rows: the distinct rows, one array of codes per column.
        weights: how often each distinct row occurs in the first and in the second table.
    """

    schema: Schema
    rows: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, np.ndarray]
    _counted: dict[Queries, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)

    def tables(self) -> tuple[Table, Table]:
        """Both tables."""
        first, second = (Table(self.schema, tuple(np.repeat(c, w) for c in self.rows)) for w in self.weights)
        return first, second

    def counts(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        """What is asked of both tables, without noise, from their marginals over the attributes of the queries."""
        if queries not in self._counted:
            first, second = self.weights
            self._counted[queries] = self._counts(queries, first), self._counts(queries, second)
        return self._counted[queries]

    def values(self, column: str) -> dict[str, tuple[int, int]]:
        """How often each label of a column occurs in either table.

        Args:
            column: the name of the column.
        """
        place = self.schema.domain.index(column)
        first, second = self.counts(Marginal.of(self.schema.domain, [place]))
        labels = self.schema.columns[place].labels
        return {str(one): (int(a), int(b)) for one, a, b in zip(labels, first, second, strict=False)}

    def _counts(self, queries: Queries, weights: np.ndarray) -> np.ndarray:
        """What is asked of one of the tables."""
        if is_direct(queries):
            return of_records(queries, self.rows, weights.astype(np.float64)).astype(np.int64)
        parts = {part.scope: part.shape for part in parts_of(queries)}
        return answers_of(queries, {scope: self._marginal(scope, shape, weights) for scope, shape in parts.items()})

    def _marginal(self, scope: Attributes, shape: tuple[int, ...], weights: np.ndarray) -> np.ndarray:
        """The flat marginal of one of the tables."""
        marginal = np.zeros(math.prod(shape), np.int64)
        np.add.at(marginal, np.ravel_multi_index([self.rows[i] for i in scope], shape), weights)
        return marginal


def designs(schema: Schema, relation: Relation, rows: int, changed: int = 1) -> list[Neighbours]:
    """Pairs of neighbours, each of which makes one unit plain to see for some workloads.

    Nearly all rows are equal, so that the model is wrong about every query. The row that changes has other values in
    every column, so that every measurement moves by its whole sensitivity. The pairs differ in which scores of a
    selection rise and which fall: a selection tells most if about half of them do each.

    Args:
        schema: the columns.
        relation: which tables are neighbours.
        rows: the number of rows of the larger table.
        changed: the number of rows of the unit that is added, all of them equal; more than 1 under add-remove only.
    """
    domain = schema.domain
    d = len(domain)
    low, high = np.zeros(d, np.int64), np.array(domain.sizes) - 1
    found = []
    for kept in dict.fromkeys((tuple(range(0, d, 2)), tuple(range(d)), tuple(range(d - 1)))):
        inside = np.isin(np.arange(d), kept)
        pair = np.where(inside, low, high), np.where(inside, high, low)
        found.append(_neighbours(schema, relation, [(low, rows - changed)], *pair, changed))
    for size in sorted({1, 2, d // 4, d // 2} & set(range(1, d))):
        third = np.where(np.arange(d) < size, low, high)
        fewer = (rows - changed - 2) // 2  # two rows less than the others together, so that no maximum is a tie
        others = rows - changed - fewer
        base = [(low, fewer), (high, others // 2), (third, others - others // 2)]
        found.append(_neighbours(schema, relation, base, low, high, changed))
    return found


def _neighbours(
    schema: Schema,
    relation: Relation,
    base: Sequence[tuple[np.ndarray, int]],
    first: np.ndarray,
    second: np.ndarray,
    changed: int,
) -> Neighbours:
    """The base with the row ``first`` or ``second``; under add-remove without another row or with ``second``, as often
    as ``changed`` says."""
    rows = np.array([*(row for row, _ in base), first, second])
    common = [times for _, times in base]
    weights = np.array([*common, relation is Relation.REPLACE, 0]), np.array([*common, 0, changed])
    return Neighbours(schema, tuple(rows.T), weights)
