"""A table of integer codes over a schema, and the ways in and out: CSV, Parquet, pandas, polars, Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.schema import Schema, code_dtype
from pointillist.errors import InputError, Shown, check

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Table", "as_arrow", "read_file", "to_arrow", "write_file"]

SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, repr=False)
class Table:
    """Rows as integer codes, one array per column, each in the smallest unsigned type."""

    schema: Schema
    codes: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        if len(self.codes) != len(self.schema.columns) or len({len(c) for c in self.codes}) != 1:
            raise ValueError("a table needs one array of codes per column, all of one length")
        small = []
        for column, codes in zip(self.schema.columns, self.codes, strict=True):
            if len(codes) and (codes.min() < 0 or codes.max() >= column.size):
                rule = f"must have codes in 0 .. {column.size - 1}"
                raise InputError(f"column {column.name!r}", int(codes.max()), rule, "encode the table with its schema")
            small.append(np.ascontiguousarray(codes, dtype=code_dtype(column.size)))
        object.__setattr__(self, "codes", tuple(small))

    def __len__(self) -> int:
        return len(self.codes[0])

    def __repr__(self) -> str:  # no values: a log or a traceback may show it
        return f"Table({', '.join(self.domain.names)})"

    @property
    def domain(self) -> Domain:
        return self.schema.domain

    def project(self, names: Sequence[str]) -> Table:
        """The table over the columns ``names``, in that order."""
        return Table(self.schema.project(names), tuple(self.codes[self.domain.index(name)] for name in names))

    def take(self, rows: np.ndarray) -> Table:
        """The rows at the given positions, or where the given mask is true."""
        return Table(self.schema, tuple(codes[rows] for codes in self.codes))

    @classmethod
    def read(cls, path: str | Path, schema: Schema) -> Table:
        """Read a CSV or Parquet file."""
        return cls.encode(read_file(path), schema)

    @classmethod
    def encode(cls, data: Any, schema: Schema) -> Table:
        """Encode a pandas, polars or Arrow table; columns may come in any order."""
        arrow = to_arrow(data)
        names = arrow.column_names
        missing = [name for name in schema.domain.names if name not in names]
        check(not missing, "table", missing, "must have every column of the schema (these are absent)",
              "add the columns or take them out of the schema")  # fmt: skip
        extra = [name for name in names if name not in {*schema.domain.names, *schema.ignore}]
        check(not extra, "table", extra, "must only have columns of the schema (these are not in it)",
              "drop them, or name them under ignore in the schema")  # fmt: skip
        check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
        columns = [c.encode(arrow.column(c.name).combine_chunks()) for c in schema.columns]
        return cls(schema, tuple(columns))

    def to_arrow(self, seed: int = 0) -> pa.Table:
        """The table with its original labels and types; ``seed`` draws numbers inside their bins."""
        import pyarrow as pa

        rng = np.random.default_rng(seed)
        pairs = zip(self.schema.columns, self.codes, strict=True)
        return pa.table({column.name: column.decode(codes, rng) for column, codes in pairs})

    def to_pandas(self, seed: int = 0) -> Any:
        return self.to_arrow(seed).to_pandas()

    def to_polars(self, seed: int = 0) -> Any:
        import polars

        return polars.from_arrow(self.to_arrow(seed))

    def write(self, path: str | Path, seed: int = 0) -> None:
        """Write a CSV or Parquet file, by its ending."""
        write_file(self.to_arrow(seed), path)


def as_arrow(data: Any) -> pa.Table:
    """A pandas, polars or Arrow table as an Arrow table, types as they come."""
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
    except pa.ArrowException as error:  # for example numbers and texts in one column
        rule = f"must have columns of one kind each ({_one_line(error)})"
        raise InputError("table", shown, rule, "convert the column to texts or to numbers") from None
    rule = "must be a pandas, polars or Arrow table, or a pointillist.Table"
    raise InputError("table", shown, rule, "convert it to one of these")


def to_arrow(data: Any) -> pa.Table:
    """An Arrow table from pandas, polars or Arrow, in the few types that the schema knows."""
    import pyarrow as pa

    table = as_arrow(data)
    _check_names(table.column_names)
    return pa.table({name: _plain(name, table.column(name)) for name in table.column_names})


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    check(not twice, "column names", twice, "must be different", "rename the repeated columns")


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
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
    check(any(test(kind) for test in simple), f"column {name!r}", Shown(kind),
          "must hold texts, numbers or true/false", "convert it, for example a date to its year")  # fmt: skip
    return column


def read_file(path: str | Path, name: str = "data") -> pa.Table:
    """A CSV file (every cell as text, so that "01" stays "01") or a Parquet file as an Arrow table.

    ``name`` is the parameter to blame in an error.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    path = Path(path)
    check(path.exists(), name, str(path), "must be an existing file or the name of a dataset",
          "check the path, or see `pointillist methods --datasets`")  # fmt: skip
    check(path.is_file(), name, str(path), "must be a file, not a folder", "give the path of one file")
    check(path.name.endswith(SUFFIXES), name, str(path), f"must be a file that ends in {', '.join(SUFFIXES)}",
          "convert the table to one of these")  # fmt: skip
    check(path.stat().st_size > 0, name, str(path), "must not be an empty file", "check how it was written")
    try:
        if path.name.endswith(".parquet"):
            return parquet.read_table(path)
        parsing = csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(path, parse_options=parsing) as reader:  # ".gz" is unpacked on the way
            columns = reader.schema.names
        types = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)
        return csv.read_csv(path, parse_options=parsing, convert_options=types)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        rule = f"must be a readable table ({_one_line(error)})"
        raise InputError(name, str(path), rule, "check the file") from None


def _one_line(error: Exception) -> str:
    words = " ".join(str(error).split())[:120]
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def write_file(table: pa.Table, path: str | Path) -> None:
    """Write an Arrow table as CSV or Parquet, by the file's ending."""
    from pyarrow import csv, parquet

    path = Path(path)
    if path.name.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        check(path.name.endswith(".csv"), "path", str(path), "must end in .csv or .parquet", "rename it")
        csv.write_csv(table.unify_dictionaries(), path, csv.WriteOptions(quoting_style="needed"))
