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
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pointillist.checks import check, one_of
from pointillist.data.columns import COLUMN_KINDS, Categorical, Column, Numeric, code_dtype
from pointillist.data.columns.base import check_flag, check_keys
from pointillist.data.domain import Domain
from pointillist.errors import InputError, Shown

__all__ = ["Categorical", "Column", "Numeric", "Schema", "code_dtype"]

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
        rule = "must have at least one column"
        check(len(self.columns) > 0, "schema", Shown("no column"), rule, "add columns")
        _ = self.domain  # refuses repeated names
        both = sorted(set(self.ignore) & {column.name for column in self.columns})
        check(not both, "schema: ignore", both, "must not name columns of the schema", "remove one of the two")

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
        check(spec.get("format") == 1, "schema: format", spec.get("format"), "must be 1", "write format = 1")
        check_keys("schema", spec, ("format", "reviewed", "ignore", "column"))
        listed, rule = isinstance(spec.get("column"), list), "must have at least one column"
        check(listed, "schema", Shown("no [[column]]"), rule, "add [[column]] tables")
        reviewed, ignore = spec.get("reviewed", False), spec.get("ignore", [])
        check_flag("schema: reviewed", reviewed)
        names = isinstance(ignore, list) and all(isinstance(name, str) for name in ignore)
        check(names, "schema: ignore", ignore, "must be a list of names", 'write ["name"]')
        return cls(tuple(_column(column) for column in spec["column"]), reviewed, tuple(ignore))

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

    def save(self, path: str | Path) -> None:
        """Write the schema to a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        path = Path(path)
        hint = "draft one with `pointillist schema DATA`"
        check(path.is_file(), "schema", str(path), "must be an existing file", hint)
        try:
            spec = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise InputError("schema", str(path), f"must be valid TOML ({error})", "correct the file") from None
        return cls.from_dict(spec)

    def require_reviewed(self, name: str) -> None:
        """Refuse a draft: values read from private data are not public knowledge. ``name`` says which schema it is."""
        rule = "must be reviewed by a person before use"
        hint = "check that every value and bin edge in it is public knowledge, then set reviewed = true"
        check(self.reviewed, f"schema {name}", Shown("reviewed = false"), rule, hint)


def _column(spec: Any) -> Column:
    named = isinstance(spec, dict) and isinstance(spec.get("name"), str)
    check(named, "schema: column", spec, "must have a name", 'write name = "..."')
    kind = one_of(f"column {spec['name']!r}: type", spec.get("type"), COLUMN_KINDS)
    return COLUMN_KINDS[kind].from_dict(spec)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a TOML basic string is a JSON string, except for the DEL character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
