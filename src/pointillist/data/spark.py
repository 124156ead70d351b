"""Rows of a Spark DataFrame, encoded and counted in its partitions: only vectors of counts leave them.

Every partition becomes one vector with the counts of all marginals, by the kernel that counts everywhere
(:func:`~pointillist.data.kernel.partial_counts`). Vectors are added up in groups of ``FAN_IN``, level by level, until
few are left for the driver. No row is collected, and errors in partitions are counted, not quoted.

Where values are to be discovered, partitions give how often each different text occurs in them, and Spark adds these
numbers up by text. Cells of other columns never leave the partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import Columns, in_passes, partial_counts, split_counts
from pointillist.data.messages import column_called
from pointillist.data.neighbours import Unit
from pointillist.data.opening import (
    MOST_DIFFERENT,
    counted_texts,
    discovered_in,
    listed_codes,
    numbered,
    require_few,
    values_among,
)
from pointillist.data.parquet import PIECE_ROWS
from pointillist.data.schema import Schema, check_different
from pointillist.data.sources import MemoryOfRows, in_groups
from pointillist.data.table import ON_BAD_VALUE, check_absent, check_unknown, unread_by
from pointillist.data.texts import bad_cells, different, encode_or_missing, plain
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SparkSource", "is_spark"]

FAN_IN = 8
"""The number of vectors that one task adds up."""
VECTOR_BYTES = 128 << 20
"""The most bytes of the vector of a partition; marginals that need more are counted in several passes."""
SHARE_OF_VECTOR = 1 / 16
"""The share of the memory for the vector of a partition: several tasks run next to each other."""
MOST_TOLD = 100
"""The largest number of bad cells that a message tells: how many more there are could tell the number of rows."""

TEXTS = "place int, text string, number bigint"
"""How often a text occurs in a column that is to be discovered, whose position is its place."""

Task = Callable[[Iterable[Any]], Iterator[Any]]
Coding = Callable[[Iterable[Any]], Iterator[Columns]]


def is_spark(data: Any) -> bool:
    """Return whether a table is a DataFrame of Spark.

    Args:
        data: What was given.
    """
    return type(data).__module__.startswith("pyspark.sql") and hasattr(data, "mapInArrow")


class SparkSource:
    """The rows of a Spark DataFrame. They are never in this process.

    Args:
        frame: The DataFrame. It is evaluated for every pass, and must give the same rows each time.
        schema: The columns to encode, some of which may be to be discovered.
        most_bytes: The memory that counts may take.
        on_bad_value: What is done with values that the schema does not allow, as in ``Table.encode``.

    Attributes:
        rows: the number of rows, as the first pass found it.
        memory: what the rows take here: nothing.
    """

    unit: Unit | None = None

    def __init__(self, frame: Any, schema: Schema, most_bytes: int, on_bad_value: str = "error") -> None:
        check_different(frame.columns)
        check_absent(frame.columns, schema)
        check_unknown(frame.columns, schema)
        unread = unread_by(schema)
        self.schema, self._given, self.memory = schema, schema, MemoryOfRows(most_bytes)
        self._names = [name for name in frame.columns if name not in unread]
        # mapInArrow looks columns up by name, and takes "a.b" for a field of a
        self._frame = frame.selectExpr(*(f"{_quoted(name)} AS c{n}" for n, name in enumerate(self._names)))
        self._on_bad_value = on_bad_value
        self._vector_cells = int(min(VECTOR_BYTES, most_bytes * SHARE_OF_VECTOR)) // 8
        self.rows = self._check()
        self._texts = self._count_texts()

    def _check(self) -> int:
        """Encode all rows for the first time; return their number. Bad cells are counted by column."""
        constants = [one for _, one in self.schema.extras if one.name in self._names]
        columns: list[Any] = [*self.schema.columns, *constants]
        task = _checking(self.schema, constants, self._on_bad_value, self._names)
        found = self._reduced(task, 1 + len(columns))
        rows, bad = int(found[0]), found[1:]
        for column, number in zip(columns, bad.tolist(), strict=True):
            many = f"more than {MOST_TOLD}" if number > MOST_TOLD else f"{number}"
            rule = "must only hold values of the schema"
            hint = "correct the table, change the schema, or take them as missing (on_bad_value)"
            shown = Shown(f"{many} other {'cell' if number == 1 else 'cells'}")
            check(number == 0, column_called(column.name), shown, rule, hint)
        check(rows > 0, "table", Shown("0 rows"), "must have rows", "check the DataFrame")
        return rows

    def _count_texts(self) -> dict[str, tuple[pa.ChunkedArray, np.ndarray]]:
        """Count the different texts of the columns to be discovered, all in one pass: before anything is spent, since
        too many of them are refused. By column, its texts and how many rows have each."""
        import pyarrow.compute as pc

        names = {place: self.schema.columns[place].name for place in discovered_in(self.schema)}
        if not names:
            return {}
        self.memory.readings += 1
        with _readable():
            partial = self._frame.mapInArrow(_counting_texts(self.schema, self._names), TEXTS)
            whole = partial.groupBy("place", "text").sum("number")
            # with one more than all columns may have together, one of them has too many in any case
            table = whole.limit(MOST_DIFFERENT * len(names) + 1).toArrow()
        parts = {name: table.filter(pc.equal(table.column(0), place)) for place, name in names.items()}
        for name, part in parts.items():
            require_few(name, part.num_rows)
        found = {name: (part.column(1), part.column(2).to_numpy()) for name, part in parts.items()}
        same = all(int(counts.sum()) == self.rows for _, counts in found.values())
        rule, hint = "must give the same rows each time that it is evaluated", "save it first, and give what was saved"
        check(same, "table", Shown("others"), rule, hint)
        return found

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """Return the different texts of a column, and how many rows have each. Missing and long ones are left out.

        Args:
            column: The name of the column.
        """
        texts, counts = self._texts[column]
        return values_among(texts.to_pylist(), counts)

    def listed(self, schema: Schema) -> SparkSource:
        """Return the same rows under lists of values, which the partitions encode them by.

        Args:
            schema: The same columns, with lists in place of those that were to be discovered.
        """
        after = copy(self)
        after.schema = schema
        return after

    def batches(self) -> Iterator[Columns]:
        """Refuse: rows are counted in the partitions."""
        raise ValueError("the rows of a Spark DataFrame are counted where they are")

    def counts(
        self, domain: Domain, scopes: Sequence[Attributes], groups: Sequence[np.ndarray | None]
    ) -> list[np.ndarray]:
        """Count the rows in every cell of several marginals, in as many passes as the size of vectors asks for.

        Args:
            domain: The sizes of the columns, in groups.
            scopes: The attributes of each marginal.
            groups: The group of each code, by column; None where codes stay as they are.
        """
        if discovered_in(self.schema):
            raise ValueError("the values of some columns must be discovered before rows are counted")
        coding = _coding(self._given, self.schema, self._on_bad_value, self._names)
        found: list[np.ndarray] = []
        for some in in_passes(domain, scopes, self._vector_cells):
            task = _counting(coding, domain, some, groups)
            self.memory.readings += 1
            cells = sum(map(domain.cells_of, some))
            found += split_counts(self._reduced(task, cells), domain, some)
        return found

    def _reduced(self, task: Task, size: int) -> np.ndarray:
        """Run a task on every partition, and add up the vectors of this size that it gives."""
        with _readable():
            vectors = self._frame.mapInArrow(task, "counts binary")
            parts = self._frame.rdd.getNumPartitions()
            while parts > FAN_IN:
                parts = math.ceil(parts / FAN_IN)
                vectors = vectors.repartition(parts).mapInArrow(_adding(size), "counts binary")
            return _sum((row.counts for row in vectors.collect()), size)


@contextmanager
def _readable() -> Iterator[None]:
    """Refuse a DataFrame that fails inside. Words of Spark may hold cells, if the query computes columns."""
    try:
        yield
    except Exception as error:
        shown, rule = Shown(type(error).__name__), "must be a DataFrame that Spark can read to its end"
        raise InputError("table", shown, rule, "look into the log of Spark") from None


def _quoted(name: str) -> str:
    """Return the name of a column as Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"


def _sum(vectors: Iterable[Any], size: int) -> np.ndarray:
    """Add up vectors, one at a time."""
    total = np.zeros(size, np.int64)
    for vector in vectors:
        total += np.frombuffer(vector, np.int64)
    return total


def _row(vector: np.ndarray) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.record_batch({"counts": pa.array([vector.tobytes()], pa.binary())})


def _adding(size: int) -> Task:
    """Return the task that adds up the vectors of several partitions."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        yield _row(_sum((value.as_buffer() for batch in batches for value in batch.column("counts")), size))

    return task


def _pieces(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """Put the small batches of Spark together, with the names of their columns."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= PIECE_ROWS:
            yield pa.Table.from_batches(waiting).rename_columns(names)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting).rename_columns(names)


def _checking(schema: Schema, constants: Sequence[Any], on_bad_value: str, names: list[str]) -> Task:
    """Return the task that counts the rows of a partition, and the bad cells of each column and constant."""
    lenient = ON_BAD_VALUE[on_bad_value] is encode_or_missing

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        found = np.zeros(1 + len(schema.columns) + len(constants), np.int64)
        for piece in _pieces(batches, names):
            found[0] += piece.num_rows
            for place, column in enumerate((*numbered(schema).columns, *constants), start=1):
                found[place] += _bad(column, piece.column(column.name), lenient)
        yield _row(found)

    return task


def _bad(column: Any, cells: pa.ChunkedArray, lenient: bool) -> int:
    """Return the number of cells that cannot be encoded."""
    try:
        cells = plain(column.name, cells)
        if not hasattr(column, "encode"):  # a constant
            column.check_cells(different(cells))
        elif lenient:
            encode_or_missing(column, cells)
        else:
            return bad_cells(column, cells)
        return 0
    except InputError:  # its words show a cell
        return bad_cells(column, cells) if hasattr(column, "encode") and lenient else len(cells)


def _counting_texts(schema: Schema, names: list[str]) -> Task:
    """Return the task that counts the different texts of the columns to be discovered, piece by piece of a partition:
    Spark adds up what it gives for the same text."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for piece in _pieces(batches, names):
            for place, texts, counts in counted_texts(piece, schema):
                places = pa.array(np.full(len(texts), place, np.int32))
                yield pa.record_batch({"place": places, "text": pa.array(texts, pa.string()), "number": counts})

    return task


def _coding(given: Schema, listed: Schema, on_bad_value: str, names: list[str]) -> Coding:
    """Return what encodes the rows of a partition, with lists in place of columns that were to be discovered."""

    def codes(batches: Iterable[Any]) -> Iterator[Columns]:
        return (listed_codes(piece, given, listed, on_bad_value) for piece in _pieces(batches, names))

    return codes


def _counting(
    coding: Coding,
    domain: Domain,
    scopes: Sequence[Attributes],
    groups: Sequence[np.ndarray | None],
) -> Task:
    """Return the task that turns a partition into one vector of counts."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        try:
            yield _row(partial_counts(in_groups(coding(batches), groups), domain, scopes, threads=1))
        except InputError:
            raise RuntimeError("a row has changed since the table was checked") from None

    return task
