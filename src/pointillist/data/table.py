"""Tables of integer codes over a schema, and their conversion from and to CSV, Parquet, pandas, polars and Arrow."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import at_least, check, one_of, whole
from pointillist.data.columns import Discovered, Grid
from pointillist.data.columns.types import dense, nullable
from pointillist.data.coupling import couple
from pointillist.data.csv_files import read_csv
from pointillist.data.dialects import TEXT_FILES, Dialect, recognise
from pointillist.data.domain import Domain
from pointillist.data.files import path_of
from pointillist.data.formulas import escape, unescape
from pointillist.data.messages import column_called, fragment, reason
from pointillist.data.parquet import memory_here, read_parquet
from pointillist.data.schema import Identifier, Schema, check_different, code_dtype
from pointillist.data.statistics_files import STATISTICS_FILES, read_statistics
from pointillist.data.texts import different, encode, encode_or_missing, plain
from pointillist.errors import InputError, PointillistError, Shown, brief

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ON_BAD_VALUE",
    "SUFFIXES",
    "Table",
    "as_arrow",
    "as_pandas",
    "as_polars",
    "dialect_of",
    "problems_in",
    "read_file",
    "readable",
    "table_file",
    "to_arrow",
    "unread_by",
    "write_file",
]

SUFFIXES = (*TEXT_FILES, ".parquet", *STATISTICS_FILES)
MOST_NAME = 1000
"""The longest name of a column of a file, in characters."""
MOST_LISTED = 50
"""Columns that a notebook shows of a table."""
ON_BAD_VALUE = {"error": encode, "missing": encode_or_missing}
"""What is done with values that a schema does not allow, by name."""


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
                raise InputError(column_called(column.name), int(codes.max()), rule, "encode the table with its schema")
            small.append(np.ascontiguousarray(codes, dtype=code_dtype(column.size)))
        object.__setattr__(self, "codes", tuple(small))

    def __len__(self) -> int:
        return len(self.codes[0])

    def __repr__(self) -> str:  # without values, because logs and tracebacks may show it
        return f"Table({', '.join(self.domain.names)})"

    def _repr_html_(self) -> str:
        """The table in a notebook: what the schema says of its columns, and no row, because rows may be private."""
        columns = self.schema.columns[:MOST_LISTED]
        rows = "".join(f"<tr>{_cells(column.name, _described(column))}</tr>" for column in columns)
        left = len(self.schema.columns) - len(columns)
        more = f"<p>and {left:,} more columns</p>" if left else ""
        head = '<tr><th scope="col">column</th><th scope="col">values</th></tr>'
        caption = "<caption>Table (rows are not shown: they may be private)</caption>"
        return f"<div><table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>{more}</div>"

    @property
    def domain(self) -> Domain:
        """The names of the columns and their numbers of codes."""
        return self.schema.domain

    def project(self, names: Sequence[str]) -> Table:
        """Return the table with the columns ``names``, in that order."""
        schema = self.schema.project(names)
        return Table(schema, tuple(self.codes[self.domain.index(name)] for name in schema.domain.names))

    def take(self, rows: np.ndarray) -> Table:
        """Return the rows at the given positions, or those where a mask is true."""
        return Table(self.schema, tuple(codes[rows] for codes in self.codes))

    @classmethod
    def read(cls, path: str | Path, schema: Schema, most_bytes: int | None = None) -> Table:
        """Read and encode a file.

        Args:
            path: A file as :func:`read_file` reads it.
            schema: The columns to encode. The file must not have others, except those in ``schema.ignore``.
            most_bytes: The most bytes of memory that a Parquet file may take; by default those of this machine.
        """
        return cls.encode(read_file(path, most_bytes=most_bytes), schema)

    @classmethod
    def encode(cls, data: Any, schema: Schema, on_bad_value: str = "error") -> Table:
        """Encode a table. Values that the schema does not allow are refused.

        Args:
            data: A pandas, polars or Arrow table, with its columns in any order.
            schema: The columns to encode. The table must not have others, except those in ``schema.ignore``.
                Constants and identifiers may be absent. Cells of ignored columns and of identifiers are not read.
            on_bad_value: "missing" takes values that the schema does not allow as missing, in columns with
                ``missing = true``.
        """
        hint = "load it with Schema.load(...)"
        check(isinstance(schema, Schema), "schema", brief(schema), "must be a Schema", hint)
        encode_cells = ON_BAD_VALUE[one_of("on_bad_value", on_bad_value, ON_BAD_VALUE)]
        arrow = to_arrow(data, unread_by(schema))
        names = arrow.column_names
        check_absent(names, schema)
        check_unknown(names, schema)
        check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
        for _, constant in schema.extras:
            if constant.name in names:
                constant.check_cells(different(arrow.column(constant.name)))
        return cls(schema, tuple(encode_cells(column, arrow.column(column.name)) for column in schema.columns))

    def to_arrow(self, seed: int = 0) -> pa.Table:
        """Decode to an Arrow table, with the labels and types of the schema.

        Numbers are drawn from their bins so that columns go together as their bins do
        (:mod:`pointillist.data.coupling`), and so that rows obey the rules of the schema, as far as their bins allow
        for it.

        Args:
            seed: The seed with which numbers are drawn from their bins.
        """
        import pyarrow as pa

        rng = np.random.default_rng(seed)
        pairs = zip(self.schema.columns, self.codes, strict=True)
        cells = {column.name: column.decode(codes, rng) for column, codes in pairs}
        couple(self.schema.columns, self.codes, cells, seed)
        for group in self.schema.rule_groups:
            group.settle(cells, [self.codes[n] for n in group.positions], rng)
        cells |= {extra.name: extra.make(len(self), rng) for _, extra in self.schema.extras}
        return pa.table({name: cells[name] for name in self.schema.names})

    def to_pandas(self, seed: int = 0) -> Any:
        """Decode to a pandas data frame; see :meth:`to_arrow`.

        Columns have the nullable types of pandas where the schema says so, and where whole numbers or booleans are
        missing: ``Int64`` and ``boolean``, for example.
        """
        return as_pandas(self.to_arrow(seed), self.schema)

    def head(self, n: int = 5, seed: int = 0) -> Any:
        """Decode and return the first rows as a pandas data frame.

        Args:
            n: The number of rows.
            seed: The seed with which numbers are drawn from their bins.
        """
        return as_pandas(self.to_arrow(seed).slice(0, at_least("n", whole("n", n), 0, 5)), self.schema)

    def to_polars(self, seed: int = 0) -> Any:
        """Decode to a polars data frame; see :meth:`to_arrow`. Columns of the type ``enum`` become an ``Enum``."""
        return as_polars(self.to_arrow(seed), self.schema)

    def write(self, path: str | Path, seed: int = 0) -> None:
        """Decode and write to a file.

        Args:
            path: A file that ends in .csv or .parquet.
            seed: The seed with which numbers are drawn from their bins.
        """
        write_file(self.to_arrow(seed), path, self.schema)


def _cells(*texts: str) -> str:
    """Cells of a row of an HTML table."""
    return "".join(f"<td>{html.escape(text)}</td>" for text in texts)


def _described(column: Any) -> str:
    """What a column can hold, without its name."""
    return str(column.describe()).removeprefix(f"{column.name}: ")


def unread_by(schema: Schema) -> set[str]:
    """Return the columns whose cells are not read: those that a schema leaves out, and identifiers.

    Args:
        schema: The schema.
    """
    return {*schema.ignore, *(extra.name for _, extra in schema.extras if isinstance(extra, Identifier))}


def _dictionary(column: pa.ChunkedArray) -> list[str]:
    return [str(value) for value in column.chunk(0).dictionary.to_pylist()]


def as_pandas(arrow: pa.Table, schema: Schema) -> Any:
    """Convert decoded rows to a pandas data frame, with the nullable types of pandas where they are needed.

    Args:
        arrow: The rows.
        schema: The columns.
    """
    frame = arrow.to_pandas()
    for column in schema.everything:
        cells = arrow.column(column.name)
        kind = nullable(column.output_dtype, cells.null_count > 0)
        if kind is not None:
            frame[column.name] = cells.to_pandas(types_mapper={cells.type: kind}.get)
    return frame


def as_polars(arrow: pa.Table, schema: Schema) -> Any:
    """Convert decoded rows to a polars data frame, with enums where the schema has them.

    Args:
        arrow: The rows.
        schema: The columns.
    """
    import polars

    enums = [
        polars.col(column.name).cast(polars.String).cast(polars.Enum(_dictionary(arrow.column(column.name))))
        for column in schema.everything
        if column.output_dtype == "enum"
    ]
    return polars.DataFrame(polars.from_arrow(arrow)).with_columns(enums)


def check_absent(names: Sequence[str], schema: Schema) -> None:
    """Refuse a table without all columns of a schema; constants and identifiers may be absent.

    Args:
        names: The columns of the table.
        schema: The schema.
    """
    missing = [name for name in schema.domain.names if name not in names]
    rule = "must have every column of the schema (these are absent)"
    check(not missing, "table", fragment(missing), rule, "add the columns or take them out of the schema")


def check_unknown(names: Sequence[str], schema: Schema) -> None:
    """Refuse a table with columns that a schema neither has nor leaves out.

    Args:
        names: The columns of the table.
        schema: The schema.
    """
    extra = [name for name in names if name not in {*schema.names, *schema.ignore}]
    rule = "must only have columns of the schema (these are not in it)"
    check(not extra, "table", fragment(extra), rule, "drop them, or name them under ignore in the schema")


def problems_in(data: Any, schema: Schema) -> list[str]:
    """Return everything that is wrong with a table under a schema, one sentence each, at most one for a column.

    Args:
        data: A pandas, polars or Arrow table.
        schema: The schema.
    """
    table = as_arrow(data, schema.ignore)
    names = table.column_names
    attempts: list[Callable[[], Any]] = [lambda: check_absent(names, schema), lambda: check_unknown(names, schema)]
    for column in schema.everything:
        if names.count(column.name) == 1 and not isinstance(column, Identifier):
            attempts.append(lambda column=column: _check_cells(column, table.column(column.name)))  # type: ignore[misc]
    attempts.append(lambda: check(table.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file"))
    attempts.append(lambda: check_different(names))
    found = []
    for attempt in attempts:
        try:
            attempt()
        except InputError as error:
            found.append(str(error))
    return found


def _check_cells(column: Any, cells: pa.ChunkedArray) -> None:
    cells = plain(column.name, cells)
    if isinstance(column, Discovered):
        return  # any values will do
    if hasattr(column, "encode"):
        encode(column, cells)
    else:
        column.check_cells(different(cells))


def as_arrow(data: Any, unread: Collection[str] = ()) -> pa.Table:
    """Convert a pandas, polars or Arrow table to an Arrow table, with any types.

    Args:
        data: The table.
        unread: Columns of a pandas table that are left out, since their cells may not be of one type.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    shown = fragment(Shown(type(data).__name__))
    try:
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            return _from_pandas(data, unread)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError("table", shown, f"must be smaller ({reason(error)})", "leave columns out") from None
    except UnicodeError:
        hint = "replace the lone surrogates in its names and cells"
        raise InputError("table", shown, "must hold valid Unicode text", hint) from None
    except Exception as error:  # for example numbers and strings in one column; its words may hold cells
        rule = f"must have columns of one type each ({_refused_column(error)})"
        raise InputError("table", shown, rule, "convert the column to strings or to numbers") from None
    rule = "must be a pandas, polars or Arrow table, or a pointillist.Table"
    raise InputError("table", shown, rule, "convert it to one of these")


def _from_pandas(data: Any, unread: Collection[str]) -> pa.Table:
    import pyarrow as pa

    check_different([str(name) for name in data.columns])
    if unread:
        data = data[[name for name in data.columns if str(name) not in unread]]
    return pa.Table.from_pandas(dense(data), preserve_index=False)


def _refused_column(error: Exception) -> str:
    """Return the column that an error of Arrow is about, without the cell that it shows."""
    words = str(error.args[-1]) if error.args else ""
    found = re.search(r"Conversion failed for column (.*) with type", words, re.DOTALL)
    return f"{column_called(found[1])} cannot be converted" if found else "a column cannot be converted"


def to_arrow(data: Any, unread: Collection[str] = ()) -> pa.Table:
    """Convert a pandas, polars or Arrow table to an Arrow table of plain types, as :func:`texts.plain` returns them.

    Args:
        data: The table.
        unread: Columns that are left out; their cells are not looked at and may be of any type.
    """
    import pyarrow as pa

    table = as_arrow(data, unread)
    try:
        names = table.column_names
    except UnicodeError:
        hint = "rename the columns"
        raise InputError("table", Shown("other bytes"), "must have column names in UTF-8", hint) from None
    check_different(names)
    return pa.table({name: plain(name, table.column(name)) for name in names if name not in unread})


def read_file(
    path: str | Path, name: str = "data", most_bytes: int | None = None, dialect: Dialect | None = None
) -> pa.Table:
    """Read a CSV or Parquet file, or one of SPSS, Stata or SAS, as an Arrow table.

    Every cell of a CSV file is a string, so "01" stays "01".

    Every line of a CSV file is a row: a blank one is a row of empty cells. Only the line break at the end of the file
    begins no row. Risky cells lose the apostrophe that :func:`write_file` gives them.

    Args:
        path: A file that ends in .csv, .tsv or .txt, also compressed (.gz, .bz2, .zst), or in .parquet,
            .sav, .zsav, .por, .dta, .sas7bdat or .xpt.
        name: The name of the parameter in error messages.
        most_bytes: The most bytes of memory that a Parquet file may take; by default those of this machine.
        dialect: How a CSV file is written; what it leaves out is recognised from the beginning of the file.
    """
    path = table_file(path, name)
    with readable(path, name):
        if path.name.endswith(".parquet"):
            table = read_parquet(path, name, memory_here() if most_bytes is None else most_bytes)
        elif path.name.endswith(STATISTICS_FILES):
            table = read_statistics(path)
        else:
            table = unescape(read_csv(path, recognise(path, dialect)))
        check_names(table.column_names, name)
    return table


def check_names(names: Sequence[str], name: str) -> None:
    """Refuse columns of a file with names that no column has.

    Args:
        names: The names.
        name: The name of the parameter in error messages.
    """
    longest = max(names, key=len, default="")
    rule = f"must have column names of at most {MOST_NAME} characters"
    check(len(longest) <= MOST_NAME, name, fragment(longest), rule, "check the header for a stray quotation mark")


@contextmanager
def readable(path: Path, name: str) -> Iterator[None]:
    """Read a file inside; what goes wrong is told in one sentence without its content.

    Args:
        path: The file.
        name: The name of the parameter in error messages.
    """
    import pyarrow as pa

    try:
        yield
    except PointillistError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError, OverflowError) as error:
        hint = "check the file, or name its encoding" if "not in the encoding" in str(error) else "check the file"
        raise InputError(name, str(path), f"must be a readable table ({reason(error)})", hint) from None


def dialect_of(path: str | Path, given: Dialect | None = None, name: str = "data") -> Dialect | None:
    """Return the dialect in which :func:`read_file` reads a CSV file; None if it is a file of another kind.

    Args:
        path: The file.
        given: Settings that are known already.
        name: The name of the parameter in error messages.
    """
    import pyarrow as pa

    path = table_file(path, name)
    if not path.name.endswith(TEXT_FILES):
        return None
    try:
        return recognise(path, given)
    except (pa.ArrowException, OSError, ValueError, LookupError, EOFError) as error:
        rule = f"must be a readable table ({reason(error)})"
        raise InputError(name, str(path), rule, "check the file") from None


def table_file(path: str | Path, name: str) -> Path:
    """Return a path; refuse one that is no file with a table.

    Args:
        path: The path.
        name: The name of the parameter in error messages.
    """
    path = path_of(name, path)
    shown = str(path)
    rule = "must be an existing file or the name of a dataset"
    check(os.path.exists(path), name, shown, rule, "check the path, or see `pointillist methods --datasets`")
    check(not path.is_dir(), name, shown, "must be a file, not a folder", "give the path of one file")
    rule = "must be a plain file, not a pipe or a device"
    check(path.is_file(), name, shown, rule, "save the table in a file: a run that is resumed reads it again")
    kinds = ".csv, .tsv, .txt (also .gz, .bz2, .zst), .parquet, .sav, .dta, .sas7bdat or .xpt"
    rule = f"must be a file that ends in {kinds}"
    check(path.name.endswith(SUFFIXES), name, shown, rule, "convert the table to one of these")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(name, shown, f"must be a readable table ({reason(error)})", "check the file") from None
    check(size > 0, name, shown, "must not be an empty file", "check how it was written")
    return path


def write_file(table: pa.Table, path: str | Path, schema: Schema | None = None) -> None:
    """Write an Arrow table to a file that ends in .csv or .parquet.

    Args:
        table: The table.
        path: Where to. In a CSV file, text cells that a spreadsheet would run as a formula, such as ``=A1``, are
            written with an apostrophe before them; :func:`read_file` takes it away. Parquet files hold texts as they
            are.
        schema: The schema of the table, if it is known: it says how many decimals numbers have in a CSV file.
    """
    from pyarrow import csv, parquet

    path = path_of("path", path)
    if path.name.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        check(path.name.endswith(".csv"), "path", str(path), "must end in .csv or .parquet", "rename it")
        for column in () if schema is None else schema.columns:
            if isinstance(number := getattr(column, "base", column), Grid):
                place = table.column_names.index(number.name)
                table = table.set_column(place, number.name, number.for_csv(table.column(place)))
        csv.write_csv(escape(table), path, csv.WriteOptions(quoting_style="needed"))
