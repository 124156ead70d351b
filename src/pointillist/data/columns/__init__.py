"""The kinds of columns that a schema can have.

To add a kind, write a class with the members of :class:`Column` in a file of its own and add it to
:data:`COLUMN_KINDS` under the name that schema files use for it.
"""

from __future__ import annotations

from typing import Any

from pointillist.checks import check
from pointillist.data.columns.base import Column, Label, check_word, code_dtype
from pointillist.data.columns.categorical import Categorical
from pointillist.data.columns.merged import Merged
from pointillist.data.columns.numeric import Numeric
from pointillist.data.messages import column_called, fragment

__all__ = [
    "COLUMN_KINDS",
    "Categorical",
    "Column",
    "Label",
    "Merged",
    "Numeric",
    "code_dtype",
    "column_of",
    "text_bytes",
]

COLUMN_KINDS: dict[str, type[Column]] = {"categorical": Categorical, "numeric": Numeric}
"""The class of every kind of column, by the ``type`` of a ``[[column]]`` table in a schema file.

Merged columns are written by releases only."""


LONGEST_NUMBER = 64
"""Bytes of a number, a date or a time as text, at most."""


def text_bytes(column: Column) -> list[int]:
    """Return the length in bytes of each value that a column lists, or of the longest value if it lists none.

    Args:
        column: The column.
    """
    listed = column.base.labels if isinstance(column, Merged) else column.labels
    return [len(str(label).encode()) for label in listed] or [LONGEST_NUMBER]


def column_of(spec: Any) -> Column:
    """Return the column that a ``[[column]]`` table of a schema file describes.

    Args:
        spec: The entries of the table, as plain data.
    """
    named = isinstance(spec, dict) and isinstance(spec.get("name"), str)
    check(named, "schema: column", fragment(spec), "must have a name", 'write name = "..."')
    kind = spec.get("type")
    if kind == "merged":
        return Merged.from_dict(spec)
    check_word(f"{column_called(spec['name'])}: type", kind, list(COLUMN_KINDS))
    return COLUMN_KINDS[kind].from_dict(spec)
