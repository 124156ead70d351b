"""CSV files, read without losing a row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointillist.data.dialects import COMPRESSED, PLAIN, Dialect, decimal_points

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["csv_pieces", "parsing", "read_csv"]

BLOCK = 1 << 20


def parsing(separator: str = ",") -> Any:
    """Return how CSV files are parsed: cells may hold line breaks, and a blank line is a row of empty cells.

    Args:
        separator: The character between two cells.
    """
    from pyarrow import csv

    return csv.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=False)


def read_csv(path: Path, dialect: Dialect = PLAIN) -> pa.Table:
    """Read a CSV file, every cell as a string. Raises errors of Arrow, which may hold cells of the file.

    Args:
        path: The file; a name that ends in .gz, .bz2 or .zst is decompressed.
        dialect: How it is written, every setting of it.
    """
    with _explained(path, dialect):
        table = _parsed(path, dialect, _texts(path, dialect))
    _require_end(path, dialect, table)
    return _as_written(table, dialect)


def csv_pieces(path: Path, dialect: Dialect = PLAIN) -> Iterator[pa.Table]:
    """Read a CSV file piece by piece, as :func:`read_csv` reads it at once. A piece is a block of the file.

    Args:
        path: The file.
        dialect: How it is written, every setting of it.
    """
    import pyarrow as pa

    last = None
    with _explained(path, dialect), _stream(path, dialect, _texts(path, dialect)) as reader:
        for batch in reader:
            piece = pa.Table.from_batches([batch])
            last = piece if piece.num_rows else last
            yield _as_written(piece, dialect)
    if last is not None:
        _require_end(path, dialect, last)


@contextmanager
def _explained(path: Path, dialect: Dialect) -> Iterator[None]:
    """Read a file; errors say which encoding was meant, or which row is wrong."""
    import pyarrow as pa

    try:
        yield
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise pa.ArrowInvalid(f"text not in the encoding {dialect.encoding}") from None
        if "columns, got" in str(error):  # row by row, the same error knows the number of the row
            with _stream(path, dialect, None) as reader:
                for _ in reader:
                    pass
        raise


def _require_end(path: Path, dialect: Dialect, end: pa.Table) -> None:
    """Refuse a file that ends inside of a cell; ``end`` is the table or its last piece."""
    import pyarrow as pa

    last = end.column(end.num_columns - 1)[-1].as_py() if end.num_rows else ""
    if end.num_rows and _ends_inside_quotes(path, last, dialect.encoding or "utf-8"):
        raise pa.ArrowInvalid("quotation mark without an end")


def _as_written(table: pa.Table, dialect: Dialect) -> pa.Table:
    """Return a table with names for its columns and with decimal points."""
    if not dialect.header:
        table = table.rename_columns([f"column{place + 1}" for place in range(table.num_columns)])
    return decimal_points(table) if dialect.decimal == "," else table


def _texts(path: Path, dialect: Dialect) -> Any:
    """Return that every cell of a file is a text."""
    import pyarrow as pa
    from pyarrow import csv

    with _stream(path, dialect, csv.ConvertOptions()) as reader:
        columns = reader.schema.names
    return csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)


@contextmanager
def _stream(path: Path, dialect: Dialect, types: Any) -> Iterator[Any]:
    """Open a reader of blocks; without ``types``, it works in one thread, whose errors have the numbers of rows."""
    from pyarrow import csv

    reading = _reading(dialect)
    reading.use_threads = types is not None
    with (
        _opened(path) as stream,
        csv.open_csv(stream, reading, parsing(dialect.separator or ","), types) as reader,
    ):
        yield reader


def _parsed(path: Path, dialect: Dialect, types: Any) -> pa.Table:
    from pyarrow import csv

    with _opened(path) as stream:
        return csv.read_csv(stream, _reading(dialect), parsing(dialect.separator or ","), types)


def _reading(dialect: Dialect) -> Any:
    from pyarrow import csv

    encoding = "utf8" if dialect.encoding in (None, "utf-8", "utf-8-sig") else dialect.encoding
    return csv.ReadOptions(encoding=encoding, autogenerate_column_names=dialect.header is False)


def _opened(path: Path) -> Any:
    """Return a stream of the bytes of a file, decompressed as its name says."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="detect")


def _ends_inside_quotes(path: Path, last: str, encoding: str) -> bool:
    """Return whether a file ends in a quotation mark's cell, which Arrow takes for the rest of the file.

    Args:
        path: The file.
        last: Its last cell.
        encoding: Its encoding.
    """
    mark, cell = (text.encode(_without_mark(encoding)) for text in ('"', last.replace('"', '""')))
    tail = _tail(path, len(cell) + 2 * len(mark))
    return tail.endswith(mark + cell) and tail != mark + cell + mark


def _without_mark(encoding: str) -> str:
    """Return the encoding of text in the middle of a file, where no mark of the byte order comes."""
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding)


def _tail(path: Path, size: int) -> bytes:
    """Return the last bytes of a file, decompressed."""
    if path.suffix not in COMPRESSED:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    tail = b""
    with _opened(path) as stream:
        while block := stream.read(max(BLOCK, size)):
            tail = (tail + block)[-size:]
    return tail
