"""Sources of private rows, and counting over them.

A source delivers batches of integer-coded rows, so that rows can come from a table in memory or from anywhere else.
:func:`count` counts any number of marginals in one pass over them. Its kernel, :func:`count_batches`, can also add up
weights (:func:`sum_weights`), for models that are weighted records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from pointillist.checks import check
from pointillist.data.columns import Merged
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.errors import InputError, Shown

__all__ = [
    "LaterSource",
    "MergedSource",
    "OpenSource",
    "Source",
    "TableSource",
    "count",
    "count_batches",
    "distinct_rows",
    "keys_of",
    "sum_weights",
]

Columns: TypeAlias = Sequence[np.ndarray]
"""One array of integer codes per column, all of the same length."""
BATCH_ROWS = 1 << 16  # a batch's keys (512 KiB each) stay in the processor's cache


@runtime_checkable
class Source(Protocol):
    """Private rows, as integer codes over a schema.

    A source whose rows are bounded per unit has an attribute ``unit``, a :class:`~pointillist.data.neighbours.Unit`.
    """

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def batches(self) -> Iterator[Columns]:
        """Return all rows, in batches: one array of codes per column of the schema, all of the same length."""


@runtime_checkable
class OpenSource(Source, Protocol):
    """Private rows that also have columns whose values nobody could list beforehand."""

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """Return the different values of a column, and how many rows have each (int64). A row has one value at most.

        Args:
            column: The name of the column.
        """


@dataclass(frozen=True)
class TableSource:
    """The rows of a table in memory.

    Attributes:
        table: the rows.
        unit: says that the table has at most ``unit.max_rows`` rows of each unit; None if units are rows.
    """

    table: Table
    unit: Unit | None = None

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self.table.schema

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return len(self.table)

    def batches(self) -> Iterator[Columns]:
        """Return the rows in batches of ``BATCH_ROWS``."""
        return ([codes[part] for codes in self.table.codes] for part in _parts(len(self.table)))


@dataclass(frozen=True)
class LaterSource:
    """A private table that is only loaded when rows are needed.

    Attributes:
        schema: the columns.
        public_rows: the number of rows, where it is public.
        load: gives the table; without it the rows cannot be had.
        unit: says that the table has at most ``unit.max_rows`` rows of each unit; None if units are rows.
    """

    schema: Schema
    public_rows: int | None
    load: Callable[[], Table] | None = None
    unit: Unit | None = None

    @property
    def rows(self) -> int:
        """The number of rows; where it is private, the table is loaded now."""
        return self._source.rows if self.public_rows is None else self.public_rows

    @cached_property
    def _source(self) -> TableSource:
        if self.load is None:
            rule = "must be given, since measurements are left to make"
            raise InputError("table", None, rule, "give the private table to resume with")
        table = self.load()
        same = table.schema.columns == self.schema.columns and self.public_rows in (None, len(table))
        check(same, "table", Shown("another"), "must be the table of the interrupted run", "give the same file")
        return TableSource(table)

    def batches(self) -> Iterator[Columns]:
        """The rows of the table, which is loaded now."""
        return self._source.batches()


@dataclass(frozen=True)
class MergedSource:
    """The rows of a source in the groups of merged columns.

    Attributes:
        source: the rows, in fine codes.
        schema: the same columns, some of them merged.
    """

    source: Source
    schema: Schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.source.rows

    @property
    def unit(self) -> Unit | None:
        """What the rows are bounded by: as those of the source."""
        return getattr(self.source, "unit", None)

    def batches(self) -> Iterator[Columns]:
        """The rows, with the groups of merged columns in place of their fine codes."""
        lookups = [column.lookup if isinstance(column, Merged) else None for column in self.schema.columns]
        for batch in self.source.batches():
            pairs = zip(batch, lookups, strict=True)
            yield [codes if lookup is None else lookup[codes] for codes, lookup in pairs]


def count(source: Source, scopes: Sequence[Attributes]) -> list[np.ndarray]:
    """Count the rows of a source in every cell of several marginals, in one pass.

    Args:
        source: The rows.
        scopes: The attributes of each marginal, as positions in ``source.schema``.

    Returns one flat int64 array per marginal, with its cells in C order.
    """
    return count_batches(source.batches(), source.schema.domain, scopes)


def sum_weights(
    codes: Columns, weights: np.ndarray, domain: Domain, marginals: Sequence[Attributes]
) -> list[np.ndarray]:
    """Return the sum of the weights of the records in each cell of each marginal."""
    batches = ([c[part] for c in codes] for part in _parts(len(weights)))
    return count_batches(batches, domain, marginals, (weights[part] for part in _parts(len(weights))))


def keys_of(codes: Columns, domain: Domain, marginal: Attributes) -> np.ndarray:
    """Return the cell of a marginal into which each record falls."""
    keys: np.ndarray = np.zeros(len(codes[0]), np.intp)
    for attribute in marginal:
        keys *= domain.sizes[attribute]
        keys += codes[attribute]
    return keys


def distinct_rows(codes: Columns) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Find the distinct rows among rows of codes.

    Returns the codes of the distinct rows, the position of each row's distinct row among them (int64), and how often
    each distinct row occurs (int64). Distinct rows are in the order of their bytes, in the common type of all columns.
    """
    matrix = np.ascontiguousarray(np.stack(codes, axis=1))
    rows = matrix.view(np.dtype((np.void, matrix.itemsize * matrix.shape[1]))).ravel()
    _, first, inverse, counts = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    return tuple(column[first] for column in codes), inverse, counts.astype(np.int64)


def _parts(rows: int) -> list[slice]:
    return [slice(start, start + BATCH_ROWS) for start in range(0, max(rows, 1), BATCH_ROWS)]


def count_batches(
    batches: Iterable[Columns],
    domain: Domain,
    marginals: Sequence[Attributes],
    weights: Iterable[np.ndarray] | None = None,
) -> list[np.ndarray]:
    """Count the rows of batches of codes in every cell of every marginal, or add up their weights.

    The key of a record in the marginal over (i, j, k) is ``(x_i |X_j| + x_j) |X_k| + x_k``. Marginals with a common
    prefix (i, j) share its key, so they are visited in sorted order.

    Args:
        batches: The rows: one array of codes per column in each batch.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        weights: An array with the weights of the rows for each batch, or None to count rows.
    """
    order = sorted(range(len(marginals)), key=lambda m: marginals[m])
    kind = np.int64 if weights is None else np.float64
    counts: list[np.ndarray] = [np.zeros(domain.cells_of(marginal), kind) for marginal in marginals]
    for batch, weight in zip(batches, repeat(None) if weights is None else weights, strict=False):
        columns = [np.asarray(codes, dtype=np.intp) for codes in batch]
        prefix_keys: list[tuple[Attributes, np.ndarray]] = []
        for m in order:
            marginal = marginals[m]
            while prefix_keys and prefix_keys[-1][0] != marginal[: len(prefix_keys[-1][0])]:
                prefix_keys.pop()
            for width in range(len(prefix_keys) + 1, len(marginal) + 1):
                attribute = marginal[width - 1]
                key = columns[attribute]
                if prefix_keys:
                    key = prefix_keys[-1][1] * domain.sizes[attribute] + key
                prefix_keys.append((marginal[:width], key))
            counts[m] += np.bincount(prefix_keys[-1][1], weight, minlength=len(counts[m]))
    return counts
