"""Many answers as a table: what each is about, its estimate and the ends of its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.answers.intervals import intervals
from pointillist.answers.released import Released
from pointillist.data.columns import Column
from pointillist.data.obeying import spans_of
from pointillist.data.schema import Schema
from pointillist.queries.base import Queries
from pointillist.queries.marginal import Marginal

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AnswerTable", "labels_of", "tabulated"]


@dataclass(frozen=True)
class AnswerTable:
    """Answers to some queries, one per line.

    Attributes:
        asked: what a group of queries is about, such as the columns of a marginal.
        cells: what each answer is about.
        estimate, low, high: fractions of the rows.
        level: how often the intervals hold the answers of the private table.
    """

    asked: tuple[str, ...]
    cells: tuple[str, ...]
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float

    def __len__(self) -> int:
        return len(self.cells)

    def to_arrow(self) -> pa.Table:
        """The answers as an Arrow table with the columns asked, cell, estimate, low and high."""
        import pyarrow as pa

        columns = {"asked": self.asked, "cell": self.cells, "estimate": self.estimate, "low": self.low}
        return pa.table(columns | {"high": self.high})

    def to_pandas(self) -> Any:
        """The answers as a pandas data frame."""
        return self.to_arrow().to_pandas()


def tabulated(release: Released, queries: Sequence[Queries], level: float) -> AnswerTable:
    """Answers to queries with labels and intervals.

    Args:
        release: the release, with replicates.
        queries: the queries.
        level: how often the intervals are to hold the answers of the private table.
    """
    found = intervals(release, queries, level)
    schema, asked, cells = release.schema, [], []
    labels = {i: labels_of(column) for i, column in enumerate(schema.columns)}
    for one in queries:
        asked += [" x ".join(schema.domain.names[i] for i in one.scope)] * one.size
        cells += _cells(one, labels, schema)
    return AnswerTable(tuple(asked), tuple(cells), *found, level)


def _cells(queries: Queries, labels: dict[int, list[str]], schema: Schema) -> list[str]:
    if not isinstance(queries, Marginal):
        return [f"query {n + 1} of {queries.size:,}" for n in range(queries.size)]
    codes = np.indices(queries.shape).reshape(len(queries.scope), -1).T.tolist()
    names = [schema.domain.names[i] for i in queries.scope]
    ways = [labels[i] for i in queries.scope]
    return [", ".join(f"{n} = {way[code]}" for n, way, code in zip(names, ways, row, strict=True)) for row in codes]


def labels_of(column: Column) -> list[str]:
    """A text for each code of a column: its value, the ends of its bin, or ``missing``.

    Args:
        column: the column.
    """
    if column.labels:
        given = [str(label) for label in column.labels]
        return (given + ["missing"] * column.size)[: column.size]
    spans = spans_of(column)
    pairs = zip(spans.low.tolist(), spans.high.tolist(), spans.missing.tolist(), strict=True)
    found = ["missing" if gone else _span(low, high) for low, high, gone in pairs]
    return found if spans.kind == "number" else [f"group {n + 1}" for n in range(column.size)]


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
