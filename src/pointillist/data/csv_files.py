"""CSV files, read without losing a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["parsing", "read_csv"]

BLOCK = 1 << 20


def parsing() -> Any:
    """Return how CSV files are parsed: cells may hold line breaks, and a blank line is a row of empty cells."""
    from pyarrow import csv

    return csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


def read_csv(path: Path) -> pa.Table:
    """Read a CSV file, every cell as a string. Raises errors of Arrow, which may hold cells of the file.

    Args:
        path: The file; a name that ends in .gz is decompressed.
    """
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = _read(path)
    except pa.ArrowInvalid as error:
        if "columns, got" in str(error):  # row by row, the same error knows the number of the row
            csv.read_csv(path, parse_options=parsing(), read_options=csv.ReadOptions(use_threads=False))
        raise
    if table.num_rows and _ends_inside_quotes(path, table.column(table.num_columns - 1)[-1].as_py()):
        raise pa.ArrowInvalid("quotation mark without an end")
    return table


def _read(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path, parse_options=parsing()) as reader:  # also decompresses .gz
        columns = reader.schema.names
    types = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)
    return csv.read_csv(path, parse_options=parsing(), convert_options=types)


def _ends_inside_quotes(path: Path, last: str) -> bool:
    """Return whether a file ends in a quotation mark's cell, which Arrow takes for the rest of the file.

    Args:
        path: The file.
        last: Its last cell.
    """
    cell = last.replace('"', '""').encode()
    tail = _tail(path, len(cell) + 2)
    return tail.endswith(b'"' + cell) and tail != b'"' + cell + b'"'


def _tail(path: Path, size: int) -> bytes:
    """Return the last bytes of a file, decompressed."""
    import pyarrow as pa

    if path.suffix != ".gz":
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    tail = b""
    with pa.input_stream(str(path)) as stream:
        while block := stream.read(max(BLOCK, size)):
            tail = (tail + block)[-size:]
    return tail
