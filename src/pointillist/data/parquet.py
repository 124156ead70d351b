"""Parquet files, read only if what they promise fits into memory.

A few bytes of a Parquet file can stand for any number of equal cells. The promise follows from its footer, before any
cell is read. Texts are read as a list of different ones first, so that the size of all of them is known before they
are written out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pointillist.checks import check
from pointillist.data.parquet_footer import Chunk, chunks_of
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["memory_here", "parquet_pieces", "promised_bytes", "read_parquet"]

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 5}
"""Bytes of a cell in memory, by its type in the file; for a text those of its position in a list of different ones."""
NO_PLAIN_TEXT = 2**31 - 1
"""Arrow's usual type for text holds at most this number of bytes in one array."""
PIECE_ROWS = 1 << 16
"""The number of rows of a piece of a file."""


def memory_here() -> int:
    """Return the bytes of memory of this machine, or of the container if that has fewer."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on every system
        found = 2**36
    try:
        return min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        return found


def promised_bytes(path: Path) -> int:
    """Return the bytes of memory that reading a Parquet file takes at most, as its footer says.

    Texts count once for each different one. Libraries raise errors of their own for files that are damaged.

    Args:
        path: The file.
    """
    return sum(map(_promise_of, chunks_of(path)))


def _promise_of(chunk: Chunk) -> int:
    if chunk.kind == "FIXED_LEN_BYTE_ARRAY":
        return chunk.cells * chunk.length
    if chunk.kind != "BYTE_ARRAY" or not (chunk.repeated or chunk.deltas):
        return chunk.cells * WIDTHS[chunk.kind] + chunk.size
    return chunk.cells * chunk.size  # each cell may repeat all others


def read_parquet(path: Path, name: str, most_bytes: int) -> pa.Table:
    """Read a Parquet file; refuse one that takes too much memory.

    Args:
        path: The file.
        name: The name of the parameter in error messages.
        most_bytes: The most bytes of memory that the table may take.
    """
    import pyarrow as pa
    from pyarrow import parquet

    _check_size(name, path, promised_bytes(path), most_bytes)
    kinds, texts = _kinds(path)
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        table = file.read()
    table.validate(full=True)  # before anything follows a damaged position
    sizes = {n: text_bytes(table.column(n)) for n, field in enumerate(kinds) if field.name in texts}
    _check_size(name, path, sum(sizes.values()) + table.nbytes, most_bytes)
    for n, size in sizes.items():
        kind = pa.string() if size <= NO_PLAIN_TEXT else pa.large_string()
        table = table.set_column(n, table.field(n).name, _written_out(table.column(n), kind))
    return table


def parquet_pieces(path: Path, name: str, most_bytes: int, unread: Collection[str] = ()) -> Iterator[pa.Table]:
    """Read a Parquet file piece by piece, with texts as positions in a list; refuse one with pieces of too much memory.

    Args:
        path: The file.
        name: The name of the parameter in error messages.
        most_bytes: The most bytes of memory that a piece may take.
        unread: Columns that are left out.
    """
    import pyarrow as pa
    from pyarrow import parquet

    pieces = [_promise_of(replace(chunk, cells=min(chunk.cells, PIECE_ROWS))) for chunk in chunks_of(path)]
    _check_size(name, path, max(pieces, default=0), most_bytes)
    kinds, texts = _kinds(path)
    kept = [field.name for field in kinds if field.name not in unread]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(PIECE_ROWS, columns=kept):
            piece = pa.Table.from_batches([batch])
            piece.validate(full=True)  # before anything follows a damaged position
            yield piece


def _kinds(path: Path) -> tuple[pa.Schema, list[str]]:
    """Return the columns of a file with their types, and the names of those that hold texts."""
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        kinds = file.schema_arrow
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return kinds, [field.name for field in kinds if any(test(field.type) for test in tests)]


def _check_size(name: str, path: Path, size: int, most_bytes: int) -> None:
    shown = Shown(f"a file that takes {size:,} bytes")
    rule = f"must take at most {most_bytes:,} bytes of memory ({path.name[:60]!r})"
    check(size <= most_bytes, name, shown, rule, "use fewer rows or columns, or a machine with more memory")


def text_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of all texts of a column, given as positions in lists of different texts.

    Args:
        column: A column of a dictionary type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 0
    lengths = (pc.cast(pc.binary_length(chunk.dictionary), pa.int64()).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(many).as_py() or 0 for many in lengths)


def _written_out(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks], kind)
