"""Tables of integer codes over a schema, and their conversion from and to CSV, Parquet, pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Domain
from pointillist.data.schema import Schema, code_dtype
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Table", "as_arrow", "read_file", "to_arrow", "write_file"]

SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, repr=False)
class Table:
    """Rows of integer codes.

    Args:
        schema: The columns.
        codes: One array of codes per column. They are stored in the smallest unsigned type.
    """

    schema: Schema
    codes: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        if len(self.codes) != len(self.schema.columns) or len({len(c) for c in self.codes}) != 1:
            raise ValueError("a table needs one array of codes per column, all of the same length")
        small = []
        for column, codes in zip(self.schema.columns, self.codes, strict=True):
            if len(codes) and (codes.min() < 0 or codes.max() >= column.size):
                rule = f"must have codes in 0 .. {column.size - 1}"
                raise InputError(f"column {column.name!r}", int(codes.max()), rule, "encode the table with its schema")
            small.append(np.ascontiguousarray(codes, dtype=code_dtype(column.size)))
        object.__setattr__(self, "codes", tuple(small))

    def __len__(self) -> int:
        return len(self.codes[0])

    def __repr__(self) -> str:  # without values, because logs and tracebacks may show it
        return f"Table({', '.join(self.domain.names)})"

    @property
    def domain(self) -> Domain:
        """The names of the columns and their numbers of codes."""
        return self.schema.domain

    def project(self, names: Sequence[str]) -> Table:
        """Return the table with the columns ``names``, in that order."""
        return Table(self.schema.project(names), tuple(self.codes[self.domain.index(name)] for name in names))

    def take(self, rows: np.ndarray) -> Table:
        """Return the rows at the given positions, or those where a mask is true."""
        return Table(self.schema, tuple(codes[rows] for codes in self.codes))

    @classmethod
    def read(cls, path: str | Path, schema: Schema) -> Table:
        """Read and encode a file.

        Args:
            path: A file that ends in .csv, .csv.gz or .parquet.
            schema: The columns to encode. The file must not have others, except those in ``schema.ignore``.
        """
        return cls.encode(read_file(path), schema)

    @classmethod
    def encode(cls, data: Any, schema: Schema) -> Table:
        """Encode a table. Values that the schema does not allow are refused.

        Args:
            data: A pandas, polars or Arrow table, with its columns in any order.
            schema: The columns to encode. The table must not have others, except those in ``schema.ignore``.
        """
        arrow = to_arrow(data)
        names = arrow.column_names
        missing = [name for name in schema.domain.names if name not in names]
        rule = "must have every column of the schema (these are absent)"
        check(not missing, "table", missing, rule, "add the columns or take them out of the schema")
        extra = [name for name in names if name not in {*schema.domain.names, *schema.ignore}]
        rule = "must only have columns of the schema (these are not in it)"
        check(not extra, "table", extra, rule, "drop them, or name them under ignore in the schema")
        check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
        columns = [c.encode(arrow.column(c.name).combine_chunks()) for c in schema.columns]
        return cls(schema, tuple(columns))

    def to_arrow(self, seed: int = 0) -> pa.Table:
        """Decode to an Arrow table, with the labels and types of the schema.

        Args:
            seed: The seed with which numbers are drawn from their bins.
        """
        import pyarrow as pa

        rng = np.random.default_rng(seed)
        pairs = zip(self.schema.columns, self.codes, strict=True)
        return pa.table({column.name: column.decode(codes, rng) for column, codes in pairs})

    def to_pandas(self, seed: int = 0) -> Any:
        """Decode to a pandas data frame; see :meth:`to_arrow`."""
        return self.to_arrow(seed).to_pandas()

    def to_polars(self, seed: int = 0) -> Any:
        """Decode to a polars data frame; see :meth:`to_arrow`."""
        import polars

        return polars.from_arrow(self.to_arrow(seed))

    def write(self, path: str | Path, seed: int = 0) -> None:
        """Decode and write to a file.

        Args:
            path: A file that ends in .csv or .parquet.
            seed: The seed with which numbers are drawn from their bins.
        """
        write_file(self.to_arrow(seed), path)


def as_arrow(data: Any) -> pa.Table:
    """Convert a pandas, polars or Arrow table to an Arrow table, with any types."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    shown = Shown(type(data).__name__)
    try:
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            _check_names([str(name) for name in data.columns])
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except pa.ArrowException as error:  # for example numbers and strings in one column
        rule = f"must have columns of one type each ({_one_line(error)})"
        raise InputError("table", shown, rule, "convert the column to strings or to numbers") from None
    rule = "must be a pandas, polars or Arrow table, or a pointillist.Table"
    raise InputError("table", shown, rule, "convert it to one of these")


def to_arrow(data: Any) -> pa.Table:
    """Convert a pandas, polars or Arrow table to an Arrow table of strings, numbers and booleans."""
    import pyarrow as pa

    table = as_arrow(data)
    _check_names(table.column_names)
    return pa.table({name: _plain(name, table.column(name)) for name in table.column_names})


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    check(not twice, "column names", twice, "must be different", "rename the repeated columns")


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column as strings, numbers or booleans, without a dictionary."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        strings = pa.types.is_string_view(column.type.value_type)
        parts = [chunk.dictionary.cast(pa.string()) if strings else chunk.dictionary for chunk in column.chunks]
        taken = [part.take(chunk.indices) for part, chunk in zip(parts, column.chunks, strict=True)]
        column = pa.chunked_array(taken, type=pa.string() if strings else column.type.value_type)
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    simple = (pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    rule, hint = "must hold strings, numbers or booleans", "convert it, for example a date to its year"
    check(any(test(kind) for test in simple), f"column {name!r}", Shown(kind), rule, hint)
    return column


def read_file(path: str | Path, name: str = "data") -> pa.Table:
    """Read a CSV or Parquet file as an Arrow table. Every cell of a CSV file is a string, so "01" stays "01".

    Args:
        path: A file that ends in .csv, .csv.gz or .parquet.
        name: The name of the parameter in error messages.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    path = Path(path)
    shown = str(path)
    rule = "must be an existing file or the name of a dataset"
    check(path.exists(), name, shown, rule, "check the path, or see `pointillist methods --datasets`")
    check(path.is_file(), name, shown, "must be a file, not a folder", "give the path of one file")
    rule = f"must be a file that ends in {', '.join(SUFFIXES)}"
    check(path.name.endswith(SUFFIXES), name, shown, rule, "convert the table to one of these")
    check(path.stat().st_size > 0, name, shown, "must not be an empty file", "check how it was written")
    try:
        if path.name.endswith(".parquet"):
            return parquet.read_table(path)
        parsing = csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(path, parse_options=parsing) as reader:  # also decompresses .gz
            columns = reader.schema.names
        types = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)
        return csv.read_csv(path, parse_options=parsing, convert_options=types)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        rule = f"must be a readable table ({_one_line(error)})"
        raise InputError(name, shown, rule, "check the file") from None


def _one_line(error: Exception) -> str:
    words = " ".join(str(error).split())[:120]
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def write_file(table: pa.Table, path: str | Path) -> None:
    """Write an Arrow table to a file that ends in .csv or .parquet."""
    from pyarrow import csv, parquet

    path = Path(path)
    if path.name.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        check(path.name.endswith(".csv"), "path", str(path), "must end in .csv or .parquet", "rename it")
        csv.write_csv(table.unify_dictionaries(), path, csv.WriteOptions(quoting_style="needed"))
