"""Sources of private rows, and counting over them.

A source delivers batches of integer-coded rows, so that rows can come from a table in memory or from anywhere else.
:func:`count` counts any number of marginals in one pass over them (:mod:`pointillist.data.kernel`). Models that are
weighted records add up weights instead (:func:`sum_weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from pointillist.checks import check
from pointillist.data.columns import Merged
from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import Columns, count_cells, visit_keys
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.errors import InputError, Shown

__all__ = [
    "Columns",
    "CountingSource",
    "LaterSource",
    "MemoryOfRows",
    "MergedSource",
    "OpenSource",
    "SameRows",
    "Source",
    "TableSource",
    "UnlistedSource",
    "count",
    "count_batches",
    "distinct_rows",
    "groups_of",
    "in_groups",
    "keys_of",
    "sum_weights",
]

Seen: TypeAlias = "Callable[[Columns, np.ndarray | None], None]"
"""What looks at every batch, and at the weights of its rows if they have any."""
BATCH_ROWS = 1 << 16  # a batch's keys (512 KiB each) stay in the processor's cache


@runtime_checkable
class Source(Protocol):
    """Private rows, as integer codes over a schema.

    A source whose rows are bounded per unit has an attribute ``unit``, a :class:`~pointillist.data.neighbours.Unit`.
    One that is read in pieces has an attribute ``memory``, a :class:`MemoryOfRows`.
    """

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def batches(self) -> Iterator[Columns]:
        """Return all rows, in batches: one array of codes per column of the schema, all of the same length."""


@dataclass
class MemoryOfRows:
    """What rows take that are read in pieces. All but the first field may depend on the number of rows.

    Attributes:
        most: the bytes that rows and counts may take.
        held: the bytes that codes in memory take.
        readings: how often the table was read.
    """

    most: int
    held: int = 0
    readings: int = 1


@runtime_checkable
class OpenSource(Source, Protocol):
    """Private rows that also have columns whose values nobody could list beforehand."""

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """Return the different values of a column, and how many rows have each (int64). A row has one value at most.

        Args:
            column: The name of the column.
        """


@runtime_checkable
class UnlistedSource(OpenSource, Protocol):
    """Private rows whose columns to be discovered get lists of values later."""

    def listed(self, schema: Schema) -> Source:
        """Return the same rows under lists of values.

        Args:
            schema: The same columns, with lists in place of those whose values were to be discovered.
        """


@runtime_checkable
class CountingSource(Protocol):
    """Private rows that are counted where they are: only counts leave the place."""

    def counts(
        self, domain: Domain, scopes: Sequence[Attributes], groups: Sequence[np.ndarray | None]
    ) -> list[np.ndarray]:
        """Count the rows in every cell of several marginals, as :func:`count` does.

        Args:
            domain: The sizes of the columns, in groups.
            scopes: The attributes of each marginal.
            groups: The group of each code, by column; None where codes stay as they are.
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
    """Private rows that are only looked for when they are needed.

    Attributes:
        schema: the columns.
        public_rows: the number of rows, where it is public.
        load: gives the source of the rows; without it they cannot be had.
        unit: says that the table has at most ``unit.max_rows`` rows of each unit; None if units are rows.
    """

    schema: Schema
    public_rows: int | None
    load: Callable[[], Source] | None = None
    unit: Unit | None = None

    @property
    def rows(self) -> int:
        """The number of rows; where it is private, the rows are looked for now."""
        return self._source.rows if self.public_rows is None else self.public_rows

    @cached_property
    def _source(self) -> Source:
        if self.load is None:
            rule = "must be given, since measurements are left to make"
            raise InputError("table", None, rule, "give the private table to resume with")
        source = self.load()
        same = source.schema.columns == self.schema.columns and self.public_rows in (None, source.rows)
        check(same, "table", Shown("another"), "must be the table of the interrupted run", "give the same file")
        return source

    def batches(self) -> Iterator[Columns]:
        """The rows, which are looked for now."""
        return self._source.batches()

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """The different values of a column, which are looked for now.

        Args:
            column: The name of the column.
        """
        return cast(OpenSource, self._source).values_of(column)

    def listed(self, schema: Schema) -> Source:
        """The same rows under lists of values; they are looked for when they are needed.

        Args:
            schema: The same columns, with lists in place of those that were to be discovered.
        """
        load = None if self.load is None else lambda: cast(UnlistedSource, self._source).listed(schema)
        return LaterSource(schema, self.public_rows, load, self.unit)


class SameRows:
    """The rows of another source, in other codes."""

    source: Source

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.source.rows

    @property
    def unit(self) -> Unit | None:
        """What the rows are bounded by: as those of the source."""
        return getattr(self.source, "unit", None)

    @property
    def memory(self) -> MemoryOfRows | None:
        """The memory of rows that are read in pieces: as that of the source."""
        return getattr(self.source, "memory", None)


@dataclass(frozen=True)
class MergedSource(SameRows):
    """The rows of a source in the groups of merged columns.

    Attributes:
        source: the rows, in fine codes.
        schema: the same columns, some of them merged.
    """

    source: Source
    schema: Schema

    def batches(self) -> Iterator[Columns]:
        """The rows, with the groups of merged columns in place of their fine codes."""
        return in_groups(self.source.batches(), groups_of(self.schema))


def groups_of(schema: Schema) -> list[np.ndarray | None]:
    """Return the group of each fine code of merged columns; None for other columns.

    Args:
        schema: The columns.
    """
    return [column.lookup if isinstance(column, Merged) else None for column in schema.columns]


def in_groups(batches: Iterable[Columns], groups: Sequence[np.ndarray | None]) -> Iterator[Columns]:
    """Return rows with groups in place of fine codes.

    Args:
        batches: The rows.
        groups: The group of each code, by column; None where codes stay as they are.
    """
    for batch in batches:
        yield [codes if group is None else group[codes] for codes, group in zip(batch, groups, strict=True)]


def count(source: Source, scopes: Sequence[Attributes], seen: Seen | None = None) -> list[np.ndarray]:
    """Count the rows of a source in every cell of several marginals, in one pass.

    Args:
        source: The rows.
        scopes: The attributes of each marginal, as positions in ``source.schema``.
        seen: Called with every batch, for what is counted row by row.

    Returns one flat int64 array per marginal, with its cells in C order.
    """
    rows = source.source if isinstance(source, MergedSource) else source
    if hasattr(rows, "counts"):  # isinstance would ask for the number of rows
        if seen is not None:
            raise ValueError("rows that are counted where they are cannot be looked at one by one")
        return cast(CountingSource, rows).counts(source.schema.domain, scopes, groups_of(source.schema))
    return count_batches(source.batches(), source.schema.domain, scopes, seen=seen)


def sum_weights(
    codes: Columns, weights: np.ndarray, domain: Domain, marginals: Sequence[Attributes], seen: Seen | None = None
) -> list[np.ndarray]:
    """Return the sum of the weights of the records in each cell of each marginal.

    Args:
        codes: One array of codes per column.
        weights: The weight of each record.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        seen: Called with every batch of records and their weights.
    """
    batches = ([c[part] for c in codes] for part in _parts(len(weights)))
    return count_batches(batches, domain, marginals, (weights[part] for part in _parts(len(weights))), seen)


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


def _shown(batches: Iterable[Columns], seen: Seen) -> Iterator[Columns]:
    """The batches, each of which is shown first."""
    for batch in batches:
        seen([np.asarray(codes, dtype=np.intp) for codes in batch], None)
        yield batch


def count_batches(
    batches: Iterable[Columns],
    domain: Domain,
    marginals: Sequence[Attributes],
    weights: Iterable[np.ndarray] | None = None,
    seen: Seen | None = None,
) -> list[np.ndarray]:
    """Count the rows of batches of codes in every cell of every marginal, or add up their weights.

    Args:
        batches: The rows: one array of codes per column in each batch.
        domain: The sizes of the columns.
        marginals: The attributes of each marginal.
        weights: An array with the weights of the rows for each batch, or None to count rows.
        seen: Called with every batch and its weights.
    """
    if weights is None:
        return count_cells(batches if seen is None else _shown(batches, seen), domain, marginals)
    order = sorted(range(len(marginals)), key=lambda m: marginals[m])
    sums: list[np.ndarray] = [np.zeros(domain.cells_of(marginal)) for marginal in marginals]
    for batch, weight in zip(batches, weights, strict=True):
        columns = [np.asarray(codes, dtype=np.intp) for codes in batch]
        if seen is not None:
            seen(columns, weight)
        keys = visit_keys(columns, domain, (marginals[m] for m in order))
        for m, (_, key) in zip(order, keys, strict=True):
            sums[m] += np.bincount(key, weight, minlength=len(sums[m]))
    return sums
