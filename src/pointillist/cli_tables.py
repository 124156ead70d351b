"""Tables named on the command line: files in any dialect, named datasets, and the schema that belongs to them."""

from __future__ import annotations

import json
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pointillist.data import datasets
from pointillist.data.databases import DATABASES
from pointillist.data.dialects import COMPRESSED, PLAIN, Dialect
from pointillist.data.files import path_of
from pointillist.data.streams import Files, fixed_folder, is_pattern
from pointillist.data.table import SUFFIXES, dialect_of, read_file

if TYPE_CHECKING:
    import pyarrow as pa
from pointillist.errors import printable

__all__ = [
    "Decimal",
    "Encoding",
    "Header",
    "Separator",
    "dialect_from",
    "dialect_text",
    "folder_of",
    "is_dataset",
    "load_public",
    "read_table",
    "reads_inside",
    "schema_beside",
    "tell_dialect",
]

notes = Console(stderr=True, highlight=False, soft_wrap=True)

Separator = Annotated[str | None, typer.Option("--separator", help="Of a CSV file: comma, semicolon, tab, pipe.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of a CSV file, for example cp1252.")]
Decimal = Annotated[str | None, typer.Option("--decimal", help='Of a CSV file: "." or ",".')]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether a CSV file has names in its top row.")
]


def is_dataset(data: str) -> bool:
    """Whether a name is that of a dataset: a file comes first, a folder (a release called demo) does not.

    Args:
        data: What was given on the command line.
    """
    return datasets.is_dataset(data) and not Path(data).is_file()


def schema_beside(data: str) -> Path:
    """Return the schema file that belongs to a table: that of a folder or a pattern is beside the folder.

    Args:
        data: The file of the table, a folder or a pattern.
    """
    path = folder_of(data) or Path(data)
    path = path.resolve() if path.name in ("", "..") else path  # the current folder has a name, too
    name = path.name
    for ending in sorted((*SUFFIXES, *DATABASES), key=len, reverse=True):
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    return path.parent / f"{name}.schema.toml"


def folder_of(data: str) -> Path | None:
    """Return the folder of a table of several files; None for a single file.

    Args:
        data: A file, a folder or a pattern.
    """
    if is_pattern(data):
        return fixed_folder(Path(data))
    return Path(data) if Path(data).is_dir() else None


def reads_inside(data: str, out: Path) -> bool:
    """Return whether files that are written into a folder could be taken for files of a table.

    Args:
        data: A file, a folder or a pattern.
        out: The folder, which need not exist.
    """
    folder = folder_of(data)
    if folder is None or not out.resolve().is_relative_to(folder.resolve()):
        return False
    inside = out.resolve().relative_to(folder.resolve()).parts
    if not inside or not is_pattern(data):
        return True
    first = Path(data).parts[len(folder.parts)]
    return first == "**" or fnmatch(inside[0], first)


def read_table(data: str, dialect: Dialect | None = None, name: str = "data") -> pa.Table:
    """Read a file; say in which dialect, unless it is that of the files that this package writes.

    Args:
        data: The file.
        dialect: The settings that were given; the others are recognised.
        name: The name of the parameter in error messages.
    """
    found = dialect_of(data, dialect, name)
    table = read_file(data, name, dialect=found)
    _tell_dialect(path_of(name, data), found)
    return table


def tell_dialect(table: Any) -> None:
    """Say in which dialect files were read, as :func:`read_table` does.

    Args:
        table: The files; nothing is said of other tables.
    """
    if isinstance(table, Files):
        _tell_dialect(table.files[0].path, table.dialect)


def _tell_dialect(path: Path, dialect: Dialect | None) -> None:
    if dialect is not None and dialect != PLAIN:
        packed = [COMPRESSED[path.suffix]] if path.suffix in COMPRESSED else []
        notes.print(printable(f"read {path.name}: {', '.join([dialect.describe(), *packed])}"), markup=False)


def load_public(public: str | None) -> Any:
    """Return a public table: a named dataset, or a file as it is, which the private schema encodes.

    Args:
        public: What was given on the command line; None if nothing was.
    """
    if public is None:
        return None
    return datasets.load(public) if is_dataset(public) else read_table(public, name="public")


def dialect_from(text: str | None) -> Dialect:
    """Return the settings that :func:`dialect_text` wrote; none for None.

    Args:
        text: The text.
    """
    return Dialect() if text is None else Dialect(**json.loads(text))


def dialect_text(dialect: Dialect) -> str | None:
    """Return the settings that were given as a text; None if there are none.

    Args:
        dialect: The settings.
    """
    return json.dumps(asdict(dialect)) if dialect.is_set else None
