"""The kinds of columns that a schema can have.

To add a kind, write a class with the members of :class:`Column` in a file of its own and add it to
:data:`COLUMN_KINDS` under the name that schema files use for it.
"""

from __future__ import annotations

from pointillist.data.columns.base import Column, Label, code_dtype
from pointillist.data.columns.categorical import Categorical
from pointillist.data.columns.numeric import Numeric

__all__ = ["COLUMN_KINDS", "Categorical", "Column", "Label", "Numeric", "code_dtype"]

COLUMN_KINDS: dict[str, type[Column]] = {"categorical": Categorical, "numeric": Numeric}
"""The class of every kind of column, by the ``type`` of a ``[[column]]`` table in a schema file."""
