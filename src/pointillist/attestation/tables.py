"""The two files of rows: they follow the schema, have the stated size, and hold the same cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pointillist.attestation.evidence import Evidence
from pointillist.attestation.findings import Failed, one_line, require
from pointillist.data.columns.clock import Unreadable, from_texts, ticks_of
from pointillist.data.dialects import PLAIN
from pointillist.data.rules import Rules
from pointillist.data.schema import Schema
from pointillist.data.table import Table, read_file
from pointillist.release.folder import ROWS_CSV, ROWS_PARQUET

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_tables", "read_parquet"]

MOST_TEXT = 1 << 20
"""The longest text in a cell that is read, even if the schema lists longer ones."""


def check_tables(evidence: Evidence) -> str:
    """Compare the two files with the schema and with each other."""
    schema, rows = evidence.schema, evidence.about.rows
    texts = read_file(evidence.folder.plain(ROWS_CSV), dialect=PLAIN)
    plain = _encoded(texts, schema, rows, ROWS_CSV)
    arrow = read_parquet(evidence)
    typed = _encoded(arrow, schema, rows, ROWS_PARQUET)
    for column, first, second in zip(schema.columns, plain.codes, typed.codes, strict=True):
        if not np.array_equal(first, second):
            row = int(np.flatnonzero(first != second)[0]) + 1
            raise Failed(f"the two tables differ in row {row:,}, column {one_line(column.name)[:60]!r}")
    for name in schema.names:  # numbers in the same bin must be the same, too
        same = _same(texts.column(name), arrow.column(name))
        require(same, f"the two tables differ in a cell of column {one_line(name)[:60]!r}")
    broken = [rule for rule, times in Rules(schema.rules, schema.columns).violations(arrow).items() if times]
    require(not broken, f"the rows break a rule of the schema: {one_line(broken[0])[:60] if broken else ''}")
    return f"{rows:,} rows and {len(schema.names):,} columns of the schema, the same in both files"


def _encoded(arrow: pa.Table, schema: Schema, rows: int, name: str) -> Table:
    require(arrow.num_rows == rows, f"{name} has {arrow.num_rows:,} rows, but release.json says {rows:,}")
    in_order = arrow.column_names == list(schema.names)
    require(in_order, f"{name} does not have the columns of the schema, in their order")
    return Table.encode(arrow, schema)


def read_parquet(evidence: Evidence) -> pa.Table:
    """The rows of the Parquet file, texts as positions in a list: a few bytes cannot become many gigabytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    schema, rows = evidence.schema, evidence.about.rows
    longest = max(schema.widths)
    with evidence.folder.open(ROWS_PARQUET) as file:
        try:
            found = parquet.ParquetFile(file).schema_arrow
            texts = [one.name for one in found if pa.types.is_string(one.type) or pa.types.is_large_string(one.type)]
            file.seek(0)
            reader = parquet.ParquetFile(file, read_dictionary=texts)
            held = reader.metadata.num_rows
            require(held == rows, f"{ROWS_PARQUET} has {held:,} rows, but release.json says {rows:,}")
            width = len(found)
            require(width == len(schema.names), f"{ROWS_PARQUET} has {width:,} columns, the schema another number")
            table = reader.read()
        except pa.ArrowException as error:
            raise Failed(f"{ROWS_PARQUET} cannot be read ({one_line(error)[:120]})") from None
    for name in table.column_names:
        for chunk in table.column(name).chunks:
            if pa.types.is_dictionary(chunk.type) and pa.types.is_string(chunk.type.value_type):
                most = pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0
                require(most <= min(longest, MOST_TEXT), f"{ROWS_PARQUET} has longer texts than the schema lists")
    return table


def _same(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether a column of CSV cells holds the same values as a typed column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if pa.types.is_large_string(values.type) or pa.types.is_duration(values.type):
        values = pc.cast(values, pa.string())
    if pa.types.is_temporal(values.type):
        return _same_times(texts, values)
    if pa.types.is_string(values.type):
        return bool(pc.fill_null(texts, "").equals(pc.fill_null(values, "")))
    empty = pc.equal(pc.utf8_length(texts), 0)
    try:
        read = pc.cast(pc.if_else(empty, pa.scalar(None, pa.string()), texts), values.type)
    except pa.ArrowException:
        return False
    return bool(read.equals(values))


def _same_times(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether a column of CSV cells holds the same dates or times as a typed column, in whatever unit these are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    word = "date" if pa.types.is_date(kind) else "time" if pa.types.is_time(kind) else "timestamp"
    texts = pc.if_else(pc.equal(pc.utf8_length(texts), 0), pa.scalar(None, pa.string()), texts).combine_chunks()
    array = values.combine_chunks()
    try:
        read = from_texts(texts, word, "", getattr(kind, "tz", None) or "", 1)
    except Unreadable:
        return False
    return bool(texts.is_null().equals(array.is_null())) and np.array_equal(read, ticks_of(array))
