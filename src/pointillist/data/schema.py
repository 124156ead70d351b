"""The schema: the values that each column can have. It is public and written before anyone looks at the data.

A schema is a TOML file that people edit by hand::

    format = 1
    reviewed = true               # false in a draft made from data

    [[column]]
    name = "sex"
    type = "categorical"
    values = ["female", "male"]
    missing = true                # missing is a value of its own

    [[column]]
    name = "age"
    type = "numeric"
    edges = [0, 18, 30, 45, 65, 120]
    integer = true                # bins [0, 18), [18, 30), ..., [65, 120]
    decode = "uniform"            # or "midpoint"

:mod:`pointillist.data.columns` has the kinds of columns.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pointillist.checks import check
from pointillist.data.columns import Categorical, Column, Numeric, code_dtype, column_of
from pointillist.data.columns.base import check_flag, check_keys, check_text
from pointillist.data.domain import Domain
from pointillist.data.files import EVERYONE, path_of, private_mode, write_text
from pointillist.data.messages import fragment, reason
from pointillist.errors import InputError, Shown

__all__ = ["Categorical", "Column", "Numeric", "Schema", "code_dtype"]

MOST_BYTES = 100_000_000
"""The largest schema file."""

DRAFT_NOTICE = """\
# DRAFT, made from data: NOT public knowledge until a person has reviewed it.
# Each value and bin edge below was read from the file. Replace everything that is not public by what is known
# without looking at the data (code books, legal limits), then set reviewed = true."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Args:
        columns: The columns, in order.
        reviewed: Whether a person has checked that the schema is public knowledge. A draft is not reviewed.
        ignore: Columns of the data that are left out, such as identifiers and free text.
    """

    columns: tuple[Column, ...]
    reviewed: bool = True
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rule, hint = "must be a list of columns", "give Categorical and Numeric columns"
        check(isinstance(self.columns, list | tuple), "schema: columns", fragment(self.columns), rule, hint)
        others = [column for column in self.columns if not hasattr(column, "encode") or not hasattr(column, "size")]
        check(not others, "schema: columns", fragment(others), rule, hint)
        object.__setattr__(self, "columns", tuple(self.columns))
        check_flag("schema: reviewed", self.reviewed)
        check(len(self.columns) > 0, "schema", Shown("no column"), "must have at least one column", "add columns")
        _ = self.domain  # refuses repeated names
        self._check_ignore()

    def _check_ignore(self) -> None:
        names = isinstance(self.ignore, list | tuple) and all(isinstance(name, str) for name in self.ignore)
        check(names, "schema: ignore", fragment(self.ignore), "must be a list of names", 'write ["name"]')
        object.__setattr__(self, "ignore", tuple(self.ignore))
        for name in self.ignore:
            check_text("schema: ignore", name)
        both = sorted(set(self.ignore) & {column.name for column in self.columns})
        rule, hint = "must not name columns of the schema", "remove one of the two"
        check(not both, "schema: ignore", fragment(both), rule, hint)

    @cached_property
    def domain(self) -> Domain:
        """The names of the columns and their numbers of codes."""
        return Domain(tuple(c.name for c in self.columns), tuple(c.size for c in self.columns))

    def project(self, names: Sequence[str]) -> Schema:
        """Return the schema of the columns ``names``, in that order."""
        columns = tuple(self.columns[self.domain.index(name)] for name in names)
        return Schema(columns, self.reviewed, self.ignore)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a schema file, which :meth:`from_dict` reads."""
        out: dict[str, Any] = {"format": 1, "reviewed": self.reviewed}
        if self.ignore:
            out["ignore"] = list(self.ignore)
        return out | {"column": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Schema:
        """Create a schema from the content of a schema file. A schema that does not say so is not reviewed."""
        check(isinstance(spec, dict), "schema", Shown(type(spec).__name__), "must be a table of entries", "write TOML")
        written = spec.get("format")
        check(
            type(written) is int and written == 1, "schema: format", fragment(written), "must be 1", "write format = 1"
        )
        check_keys("schema", spec, ("format", "reviewed", "ignore", "column"))
        listed, rule = isinstance(spec.get("column"), list), "must have at least one column"
        check(listed, "schema", Shown("no [[column]]"), rule, "add [[column]] tables")
        columns = tuple(column_of(column) for column in spec["column"])
        return cls(columns, spec.get("reviewed", False), spec.get("ignore", []))

    def to_toml(self) -> str:
        """Return the schema as TOML, which :meth:`load` reads."""
        lines = [f"format = 1\nreviewed = {_toml(self.reviewed)}"]
        if not self.reviewed:
            lines.insert(0, DRAFT_NOTICE)
        if self.ignore:
            lines.append(f"ignore = {_toml(list(self.ignore))}  # columns of the file that are left out")
        for column in self.columns:
            pairs = "\n".join(f"{key} = {_toml(value)}" for key, value in column.to_dict().items())
            lines.append(f"\n[[column]]\n{pairs}")
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path, data: str | Path | None = None) -> None:
        """Write the schema to a TOML file, all of it or nothing.

        A draft holds values of the data, so whoever may not read the data may not read it: it gets the mode of the
        data file, or is readable by its owner alone if no data file is named. The umask holds for all schemas.

        Args:
            path: Where to. A file that is there already is replaced.
            data: The file that a draft was made from.
        """
        like = None if data is None else path_of("data", data)
        there = like is None or like.is_file()
        check(there, "data", str(like), "must be an existing file", "give the file that the draft was made from")
        write_text(path_of("path", path), self.to_toml(), EVERYONE if self.reviewed else private_mode(like))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        path = path_of("schema", path)
        hint = "draft one with `pointillist schema DATA`"
        check(os.path.isfile(path), "schema", str(path), "must be an existing file", hint)
        size, rule = path.stat().st_size, f"must be a file of at most {MOST_BYTES:,} bytes"
        check(size <= MOST_BYTES, "schema", str(path), rule, "give the schema, not the table")
        try:
            spec = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, OSError, RecursionError, MemoryError) as error:
            rule = f"must be valid TOML ({_problem(error)})"
            raise InputError("schema", str(path), rule, "correct the file") from None
        return cls.from_dict(spec)

    def require_reviewed(self, name: str) -> None:
        """Refuse a draft: values read from private data are not public knowledge. ``name`` says which schema it is."""
        rule = "must be reviewed by a person before use"
        hint = "check that every value and bin edge in it is public knowledge, then set reviewed = true"
        check(self.reviewed, f"schema {name}", Shown("reviewed = false"), rule, hint)


def _problem(error: BaseException) -> str:
    """Return what is wrong with a TOML file, without its content: the file may be the table by mistake."""
    if isinstance(error, RecursionError):
        return "its lists are nested too deeply"
    if isinstance(error, tomllib.TOMLDecodeError):
        words = re.sub(r"['\"].*['\"]", "...", str(error), flags=re.DOTALL)
        return str(fragment(Shown(words)))
    return "a number is too long" if "integer string" in str(error) else reason(error)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a TOML basic string is a JSON string, except for the DEL character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return repr(value)
