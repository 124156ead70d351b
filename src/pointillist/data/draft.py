"""Draft a schema from data. The values in it are not public knowledge until a person has reviewed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointillist.checks import check
from pointillist.data.columns.types import dtypes_of
from pointillist.data.drafts.columns import draft_column
from pointillist.data.drafts.parts import Drafted
from pointillist.data.files import path_of, private_mode, write_text
from pointillist.data.messages import column_called, fragment
from pointillist.data.schema import (
    DRAFT_NOTICE,
    About,
    Schema,
    check_different,
    comment_of,
    head_of,
    toml_of,
)
from pointillist.data.table import as_arrow
from pointillist.errors import InputError, Shown, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Draft", "draft_from", "draft_schema"]

TYPES_NOTICE = """\
# DRAFT, made from types and declarations alone: no value of the data was read.
# Complete every TODO with what is known without looking at the data, check the rest, then set reviewed = true."""


DIGITS = 18
"""The digits of decimals whose type was found by looking at them, so that larger ones fit."""


@dataclass(frozen=True)
class Draft:
    """A schema that a person has not reviewed, with comments: what was assumed, and what to check.

    Args:
        tables: The ``[[column]]`` tables of the schema file.
        notes: The comment of each column, by its name.
        left_out: Why a column is left out, by its name.
        from_types: Whether it was made from types and declarations alone.
        unfinished: The columns that a person has to complete.
    """

    tables: tuple[Mapping[str, Any], ...]
    notes: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    from_types: bool = False
    unfinished: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema, marked as not reviewed; refuses a draft with columns that are not complete."""
        columns = [dict(table) for table in self.tables]
        read = Schema.from_dict({"format": 1, "reviewed": False, "ignore": list(self.left_out), "column": columns})
        return Schema(read.columns, False, read.ignore, read.extras, read.about, self.notes)

    def to_toml(self) -> str:
        """Return the text of the schema file."""
        reasons = "\n".join(f"left out {fragment(name)}: {why}" for name, why in self.left_out.items())
        notice = TYPES_NOTICE if self.from_types else DRAFT_NOTICE
        notice += f"\n#\n{comment_of(reasons)}".rstrip("\n") if reasons else ""
        return toml_of(self.tables, self.notes, head_of(False, list(self.left_out), notice))

    def save(self, path: str | Path, data: str | Path | None = None) -> None:
        """Write the schema file, all of it or nothing, no more readable than the data; see :meth:`Schema.save`.

        Args:
            path: Where to. A file that is there already is replaced.
            data: The file that the draft was made from.
        """
        like = None if data is None else path_of("data", data)
        there = like is None or like.is_file()
        check(there, "data", str(like), "must be an existing file", "give the file that the draft was made from")
        write_text(path_of("path", path), self.to_toml(), private_mode(like))


def draft_schema(data: Any) -> Schema:
    """Draft a schema that fits a table. It is marked as not reviewed, so it cannot be used as it is.

    Args:
        data: A pandas, polars or Arrow table.
    """
    return draft_from(data).schema


def draft_from(data: Any, ignore: Sequence[str] = ()) -> Draft:
    """Draft a schema that fits a table, with comments. Columns that no schema can hold are left out, and it says why.

    Args:
        data: A pandas, polars or Arrow table.
        ignore: Columns to leave out; their cells are not read.
    """
    mixed = _of_several_types(data)
    table = as_arrow(data, mixed)
    names = [str(name) for name in data.columns] if mixed else table.column_names
    check_different(names)
    check(table.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
    for name in ignore:
        if name not in names:
            rule, hint = "must be a column of the table", nearest(str(name)[:60], names[:100])
            raise InputError("ignore", fragment(name), rule, hint)
    dtypes = dtypes_of(data if hasattr(data, "columns") else table)
    found = {}
    for name in names:
        if name in ignore:
            found[name] = Drafted(None, "as asked")
        elif name in mixed:
            found[name] = Drafted(None, "cells of several types; convert the column to strings or to numbers")
        else:
            found[name] = draft_column(name, table.column(name), dtypes.get(name, "") or _inferred(table, name))
    return _assembled(found, table)


def _of_several_types(data: Any) -> tuple[str, ...]:
    """Return the columns of a pandas table that no type holds, such as numbers and texts in one column."""
    if type(data).__module__.partition(".")[0] != "pandas" or not hasattr(data, "columns"):
        return ()
    check_different([str(name) for name in data.columns])
    found = []
    for name, kind in zip(data.columns, data.dtypes, strict=True):
        if str(kind) == "object":
            try:
                as_arrow(data[[name]])
            except InputError:
                found.append(str(name))
    return () if len(found) == len(data.columns) else tuple(found)


def _inferred(table: pa.Table, name: str) -> str:
    """Return the type of decimals, or of nothing at all, in a column of Python objects; empty for others."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= DIGITS // 2:
        return f"decimal({max(kind.precision, DIGITS)}, {kind.scale})"
    return "null" if pa.types.is_null(kind) else ""


def _assembled(found: Mapping[str, Drafted], table: pa.Table) -> Draft:
    tables, notes, left_out = [], {}, {}
    for name, one in found.items():
        if one.column is None:
            left_out[name] = one.note
            continue
        words = {**(table.schema.field(name).metadata or {})}.get(b"description", b"").decode(errors="replace")
        tables.append(one.column.to_dict() | About(description=words).to_dict())
        notes[name] = one.note
    if not any(hasattr(one.column, "encode") for one in found.values()):
        kinds = {name: one.note if one.column is None else "a constant or identifiers" for name, one in found.items()}
        shown = Shown("; ".join(f"{column_called(name)}: {kind}" for name, kind in kinds.items())[:200])
        rule, hint = "must have a column that a schema can describe", "check the file, or write its schema by hand"
        raise InputError("table", shown, rule, hint)
    return Draft(tuple(tables), notes, left_out)
