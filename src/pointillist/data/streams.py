"""Tables that are read piece by piece, and need not fit into memory: files, folders, Arrow datasets, polars LazyFrames.

A stream yields pieces: Arrow tables of some thousand rows each. Nothing here looks at a cell.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from pointillist.checks import check
from pointillist.data.csv_files import csv_pieces
from pointillist.data.dialects import TEXT_FILES, Dialect
from pointillist.data.files import path_of
from pointillist.data.formulas import unescape
from pointillist.data.messages import fragment, reason
from pointillist.data.parquet import PIECE_ROWS, memory_here, parquet_pieces
from pointillist.data.table import SUFFIXES, check_names, dialect_of, read_file, readable, table_file
from pointillist.errors import InputError, PointillistError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batches", "Files", "Once", "Stream", "is_pattern", "relation_batches", "stream_of"]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How the name of a folder says that a value is missing."""


class Stream(Protocol):
    """A table that is read piece by piece."""

    @property
    def again(self) -> bool:
        """Whether the table can be read more than once."""

    def pieces(self, unread: Collection[str] = ()) -> Iterator[pa.Table]:
        """Return all rows, in pieces.

        Args:
            unread: Columns that may be left out.
        """


@dataclass(frozen=True)
class File:
    """One of the files of a table.

    Attributes:
        path: the file.
        values: the columns that the names of its folders give (``year=2024``), as texts; None for missing.
        stamp: the size and the time of the last change.
    """

    path: Path
    values: Mapping[str, str | None]
    stamp: tuple[int, int]

    @classmethod
    def of(cls, path: Path, values: Mapping[str, str | None]) -> File:
        """Return a file as it is now."""
        return cls(path, values, _stamp(path))

    def require_unchanged(self, name: str) -> None:
        """Refuse a file that has changed since it was first seen: counts of two versions do not belong together."""
        rule, hint = "must stay as it is while it is read", "wait until it is written, or give a copy of it"
        check(self.path.is_file() and _stamp(self.path) == self.stamp, name, str(self.path), rule, hint)


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


@dataclass(frozen=True)
class Files:
    """The rows of one or several files, one file after the other.

    Attributes:
        files: the files.
        dialect: how CSV files are written, every setting of it; None if there are none.
        name: the name of the parameter in error messages.
        most_bytes: the most bytes of memory that a piece of a Parquet file may take.
    """

    files: tuple[File, ...]
    dialect: Dialect | None
    name: str
    most_bytes: int

    @classmethod
    def find(cls, data: str | Path, dialect: Dialect | None = None, name: str = "data") -> Files:
        """Find the files of a table.

        Args:
            data: A file, a folder with files, or a pattern such as ``people/*.parquet``. Names of folders such as
                ``year=2024`` below the folder are columns.
            dialect: How CSV files are written; what it leaves out is recognised from the first of them.
            name: The name of the parameter in error messages.
        """
        given = path_of(name, data)
        found = _files_of(given, name)
        files = tuple(File.of(table_file(path, name), values) for path, values in found)
        texts = [file.path for file in files if file.path.name.endswith(TEXT_FILES)]
        return cls(files, dialect_of(texts[0], dialect, name) if texts else None, name, memory_here())

    @property
    def again(self) -> bool:
        """True: files can be read again."""
        return True

    def pieces(self, unread: Collection[str] = ()) -> Iterator[pa.Table]:
        """Return all rows, in pieces. Files that change in between are refused.

        Args:
            unread: Columns that may be left out.
        """
        for file in self.files:
            file.require_unchanged(self.name)
            with readable(file.path, self.name):
                for piece in self._pieces_of(file.path, unread):
                    check_names(piece.column_names, self.name)
                    yield _with_values(piece, file.values)
            file.require_unchanged(self.name)

    def _pieces_of(self, path: Path, unread: Collection[str]) -> Iterator[pa.Table]:
        if path.name.endswith(".parquet"):
            yield from parquet_pieces(path, self.name, self.most_bytes, unread)
        elif self.dialect is not None and path.name.endswith(TEXT_FILES):
            yield from map(unescape, csv_pieces(path, self.dialect))
        else:
            yield read_file(path, self.name, self.most_bytes)


def is_pattern(data: str) -> bool:
    """Return whether a text is a pattern for names of files, not the name of one that exists.

    Args:
        data: What was given.
    """
    return glob.has_magic(data) and not os.path.exists(data)


def _files_of(given: Path, name: str) -> list[tuple[Path, dict[str, str | None]]]:
    """Return the files that a path or a pattern means, in order, and the columns that their folders give."""
    if given.is_dir():
        found, base = _inside(given, name), given
    elif is_pattern(str(given)):
        base = fixed_folder(given)
        _require_readable(given, name)
        matches = [Path(match) for match in sorted(glob.glob(str(given), recursive=True))]
        matches = [match for match in matches if _is_data(match.relative_to(base))]
        found = [path for match in matches for path in (_inside(match, name) if match.is_dir() else [match])]
    else:
        return [(given, {})]
    rule = "must hold files with a table, such as .csv or .parquet"
    check(len(found) > 0, name, str(given), rule, "check the path")
    return [(path, _folder_values(path.relative_to(base))) for path in dict.fromkeys(found)]


def fixed_folder(pattern: Path) -> Path:
    """Return the folder before the first part of a pattern that has a wildcard.

    Args:
        pattern: The pattern.
    """
    return Path(*pattern.parts[: _first_wildcard(pattern)])


def _first_wildcard(pattern: Path) -> int:
    return next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))


def _require_readable(pattern: Path, name: str) -> None:
    """Refuse folders on the way to the files of a pattern that cannot be read: ``glob`` would pass over them, and their
    rows would be left out."""
    for end in range(_first_wildcard(pattern), len(pattern.parts)):
        for place in glob.iglob(str(Path(*pattern.parts[:end])), recursive=True):
            if os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK):
                raise _unreadable(name, place, "permission denied")


def _unreadable(name: str, folder: str, why: str) -> InputError:
    rule = f"must be a folder that can be read ({why})"
    return InputError(name, folder, rule, "check its permissions, or leave it out")


def _inside(folder: Path, name: str) -> list[Path]:
    """Return the tables in a folder and its folders; names that begin with a point or an underscore are no data.
    What cannot be read is refused, and so are links to folders, which may lead back: their rows would be left out."""

    def refuse(error: OSError) -> None:
        raise _unreadable(name, str(error.filename), reason(error)) from None

    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [one for one in folders if _is_data(Path(one))]
        for one in folders:
            rule, hint = "must not hold links to folders", "give a folder with the files themselves"
            check(not Path(place, one).is_symlink(), name, str(Path(place, one)), rule, hint)
        found.extend(Path(place, one) for one in files if _is_data(Path(one)) and one.endswith(SUFFIXES))
    return sorted(found)


def _is_data(path: Path) -> bool:
    """Return whether no name on the way to a file begins with a point or an underscore."""
    return all(part[0] not in "._" for part in path.parts)


def _folder_values(path: Path) -> dict[str, str | None]:
    """Return the columns that the names of folders give."""
    pairs = (part.partition("=") for part in path.parent.parts if "=" in part)
    return {unquote(key): None if value == NO_VALUE else unquote(value) for key, _, value in pairs}


def _with_values(piece: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
    """Return a piece with the columns that the names of its folders give; those of the file come first."""
    import numpy as np
    import pyarrow as pa

    for key, value in values.items():
        if key not in piece.column_names:
            places = np.zeros(piece.num_rows, np.int32)
            piece = piece.append_column(key, pa.DictionaryArray.from_arrays(places, pa.array([value], pa.string())))
    return piece


@dataclass(frozen=True)
class Batches:
    """The rows of a query or a dataset of another library, which is run again for every reading.

    Attributes:
        read: opens it, and gives its pieces: batches of Arrow, or what Arrow can make a table of.
    """

    read: Callable[[], Iterable[Any]]

    @property
    def again(self) -> bool:
        """True: it can be read again."""
        return True

    def pieces(self, unread: Collection[str] = ()) -> Iterator[pa.Table]:
        """Return all rows, in pieces.

        Args:
            unread: Columns that may be left out; here they are not.
        """
        import pyarrow as pa

        with _told():
            for piece in self.read():
                yield pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else pa.table(piece)


@dataclass(frozen=True)
class Once:
    """The rows of an Arrow stream, which can be read a single time.

    Attributes:
        data: an object with the Arrow PyCapsule interface for streams.
    """

    data: Any

    @property
    def again(self) -> bool:
        """False: the stream is at its end then."""
        return False

    def pieces(self, unread: Collection[str] = ()) -> Iterator[pa.Table]:
        """Return all rows, in pieces.

        Args:
            unread: Columns that may be left out; here they are not.
        """
        import pyarrow as pa

        with _told():
            for batch in pa.RecordBatchReader.from_stream(self.data):
                for start in range(0, batch.num_rows, PIECE_ROWS):
                    yield pa.Table.from_batches([batch.slice(start, PIECE_ROWS)])


@contextmanager
def _told() -> Iterator[None]:
    """Read the table of another library inside; its errors, which may quote cells, are told without their words."""
    try:
        yield
    except PointillistError:
        raise
    except Exception as error:  # whatever another library raises
        shown, rule = fragment(Shown(type(error).__name__)), f"must be readable to its end ({reason(error)})"
        raise InputError("table", shown, rule, "check the query or the stream that gives it") from None


def relation_batches(relation: Any) -> Iterable[Any]:
    """Run a DuckDB relation; return its rows in batches.

    Args:
        relation: The relation.
    """
    read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
    batches: Iterable[Any] = read(PIECE_ROWS)
    return batches


def stream_of(data: Any) -> Stream | None:
    """Return the stream of what is read piece by piece; None for tables in memory and everything else.

    Args:
        data: What was given as a table: the path of a file, a folder or a pattern, an Arrow dataset, a polars
            LazyFrame, a DuckDB relation, an object that gives an Arrow stream, or a stream.
    """
    if isinstance(data, Files | Batches | Once):
        return data
    if isinstance(data, str | Path):
        return Files.find(data, name="table")
    library, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if library == "polars" and kind == "LazyFrame":
        return Batches(lambda: data.collect_batches(chunk_size=PIECE_ROWS, maintain_order=False))
    if library in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        return Batches(lambda: relation_batches(data))
    if library == "pyarrow" and kind.endswith("Dataset"):
        return Batches(lambda: data.to_batches(batch_size=PIECE_ROWS))
    in_memory = library in ("pandas", "polars") or hasattr(data, "num_rows")
    return Once(data) if hasattr(data, "__arrow_c_stream__") and not in_memory else None
