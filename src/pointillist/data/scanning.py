"""Private rows that are read piece by piece: encoded, checked and counted in one reading.

The first reading encodes all rows, so that values which the schema refuses are found before anything is spent. Codes
take a byte or two per cell. As long as they fit into the memory that is allowed, they are kept, and the table is read
once; otherwise every pass of counting reads and encodes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.messages import column_called, fragment
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.sources import Columns, MemoryOfRows
from pointillist.data.streams import Stream
from pointillist.data.table import Table, unread_by
from pointillist.data.texts import plain
from pointillist.data.threads import in_threads
from pointillist.data.units import chosen_positions, require_unpublished
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ScannedSource", "scanned"]

SHARE_OF_ROWS = 0.5
"""The share of the memory for codes that are kept; the rest is for counts and for pieces that are being encoded."""


class ScannedSource:
    """Private rows whose codes are kept, or that are read again for every pass.

    Attributes:
        schema: the columns.
        rows: the number of rows.
        unit: says that there are at most ``unit.max_rows`` rows of each unit; None if units are rows.
        memory: what the rows take.
    """

    def __init__(
        self,
        schema: Schema,
        rows: int,
        kept: list[Columns] | None,
        read: Callable[[], Iterator[Columns]],
        most_bytes: int,
        unit: Unit | None = None,
    ) -> None:
        self.schema, self.rows, self.unit = schema, rows, unit
        self.memory = MemoryOfRows(most_bytes, sum(map(_bytes, kept or ())))
        self._kept, self._read = kept, read

    def batches(self) -> Iterator[Columns]:
        """All rows, in batches."""
        if self._kept is not None:
            return iter(self._kept)
        self.memory.readings += 1
        return self._read()


def scanned(
    stream: Stream,
    schema: Schema,
    most_bytes: int,
    on_bad_value: str = "error",
    unit: Unit | None = None,
    insecure_seed: int | None = None,
) -> ScannedSource:
    """Read a table for the first time: encode and check all of it, and keep the codes if they fit.

    Args:
        stream: The table.
        schema: The columns to encode.
        most_bytes: The memory that rows and counts may take.
        on_bad_value: What is done with values that the schema does not allow, as in ``Table.encode``.
        unit: What is protected as a whole. The codes and the column of the unit must fit into the memory then.
        insecure_seed: Replaces the randomness of the choice among the rows of a unit: for experiments only.
    """
    if unit is not None:
        require_unpublished(unit, schema)
    reading = _Reading(stream, schema, on_bad_value, unit)
    room = int(SHARE_OF_ROWS * most_bytes)
    kept: list[tuple[Columns, Any]] | None = []
    rows = size = 0
    for codes, units in reading.coded():
        rows += len(codes[0])
        size += _bytes(codes) + (0 if units is None else units.nbytes)
        if size > room:
            _require_again(stream, unit, most_bytes)
            kept = None
        if kept is not None:
            kept.append((codes, units))
    check(rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
    if unit is not None:
        batches = _bounded(kept or [], unit, insecure_seed)
        return ScannedSource(schema, sum(len(codes[0]) for codes in batches), batches, reading.codes, most_bytes, unit)
    return ScannedSource(schema, rows, None if kept is None else [c for c, _ in kept], reading.codes, most_bytes)


class _Reading:
    """One way of reading a table: pieces in, codes out, and the column of the unit if there is one."""

    def __init__(self, stream: Stream, schema: Schema, on_bad_value: str, unit: Unit | None) -> None:
        self._stream, self._schema, self._on_bad_value, self._unit = stream, schema, on_bad_value, unit
        self._unread = unread_by(schema) - ({unit.name} if unit is not None else set())

    def coded(self) -> Iterator[tuple[Columns, Any]]:
        return in_threads(self._encode, (piece for piece in self._stream.pieces(self._unread) if piece.num_rows))

    def codes(self) -> Iterator[Columns]:
        return (codes for codes, _ in self.coded())

    def _encode(self, piece: pa.Table) -> tuple[Columns, Any]:
        codes = Table.encode(piece, self._schema, self._on_bad_value).codes
        return codes, None if self._unit is None else _units_in(piece, self._unit)


def _units_in(piece: pa.Table, unit: Unit) -> pa.ChunkedArray:
    """Return the column of the unit, written out."""
    import pyarrow as pa

    rule, hint = "must be a column of the table", "give the column that says to whom a row belongs"
    check(unit.name in piece.column_names, "unit", fragment(unit.name), rule, hint)
    cells = plain(unit.name, piece.column(unit.name))
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _bounded(kept: list[tuple[Columns, Any]], unit: Unit, insecure_seed: int | None) -> list[Columns]:
    """Return the rows that are used, in batches: at most some of each unit."""
    import pyarrow as pa

    kinds = list(dict.fromkeys(units.type for _, units in kept))
    rule, hint = "must be of one type in all files", "write the column in the same way everywhere"
    check(len(kinds) == 1, column_called(unit.name), fragment(Shown(kinds)), rule, hint)
    column = pa.chunked_array([chunk for _, units in kept for chunk in units.chunks])
    used = np.zeros(len(column), bool)
    used[chosen_positions(column, unit, insecure_seed)] = True
    batches: list[Columns] = []
    for codes, units in kept:
        mask, used = used[: len(units)], used[len(units) :]
        batches.append([column[mask] for column in codes])
    return batches


def _require_again(stream: Stream, unit: Unit | None, most_bytes: int) -> None:
    """Refuse a table that does not fit and cannot be read again. How large it is, is not told."""
    rule = f"must fit into half of the memory for rows ({most_bytes:,} bytes in all), encoded, "
    hint = "allow more with memory, or leave columns out"
    if unit is not None:
        rule += "since the rows of a unit are chosen among all of them"
        check(False, "memory", most_bytes, rule, hint)
    rule += "since this stream can be read only once"
    check(stream.again, "memory", most_bytes, rule, "give a file or a dataset, or allow more with memory")


def _bytes(codes: Columns) -> int:
    return sum(column.nbytes for column in codes)
