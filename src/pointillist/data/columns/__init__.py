"""The kinds of columns that a schema can have.

To add a kind, write a class with the members of :class:`Column` in a file of its own and add it to
:data:`COLUMN_KINDS` under the name that schema files use for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointillist.checks import check
from pointillist.data.columns.base import Column, Label, check_word, code_dtype
from pointillist.data.columns.categorical import Categorical
from pointillist.data.columns.discovered import DISCOVER, Discovered
from pointillist.data.columns.extra import Constant, Extra, Identifier
from pointillist.data.columns.grid import Grid
from pointillist.data.columns.merged import Merged
from pointillist.data.columns.numeric import Numeric
from pointillist.data.columns.temporal import TEMPORAL_KINDS, Temporal
from pointillist.data.messages import column_called, fragment

__all__ = [
    "COLUMN_KINDS",
    "EXTRA_KINDS",
    "Categorical",
    "Column",
    "Constant",
    "Discovered",
    "Extra",
    "Grid",
    "Identifier",
    "Label",
    "Merged",
    "Numeric",
    "Temporal",
    "code_dtype",
    "column_of",
    "listed_labels",
]

COLUMN_KINDS: dict[str, type[Column]] = {
    "categorical": Categorical,
    "numeric": Numeric,
    **dict.fromkeys(TEMPORAL_KINDS, Temporal),
}
"""The class of every kind of column, by the ``type`` of a ``[[column]]`` table in a schema file.

Merged columns are written by releases only."""

EXTRA_KINDS: dict[str, type[Extra]] = {"constant": Constant, "id": Identifier}
"""The class of every kind of column that is no part of the domain, by its ``type`` in a schema file."""


def listed_labels(column: Column) -> tuple[Label, ...]:
    """Return the values that a column lists, merged or not.

    Args:
        column: The column.
    """
    return column.base.labels if isinstance(column, Merged) else column.labels


def column_of(spec: Any, others: Mapping[str, Any] | None = None) -> Any:
    """Return the column that a ``[[column]]`` table of a schema file describes.

    Args:
        spec: The entries of the table, as plain data.
        others: Further kinds that are allowed, by name.
    """
    named = isinstance(spec, dict) and isinstance(spec.get("name"), str)
    check(named, "schema: column", fragment(spec), "must have a name", 'write name = "..."')
    kind = spec.get("type")
    if kind == "merged":
        return Merged.from_dict(spec)
    if kind == "categorical" and spec.get("values") == DISCOVER:
        return Discovered.from_dict(spec)
    kinds: dict[str, Any] = {**COLUMN_KINDS, **(others or {})}
    check_word(f"{column_called(spec['name'])}: type", kind, list(kinds))
    return kinds[kind].from_dict(spec)
