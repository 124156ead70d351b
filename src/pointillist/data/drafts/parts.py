"""What all drafts of columns share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointillist.data.columns import Column, Extra
from pointillist.data.texts import encode
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_FEW", "Drafted", "first_that_fits", "named_like_an_id", "own_type"]

MOST_FEW = 20
"""Whole numbers with at most this many different values are listed; with fewer rows nothing is taken for an id."""
ID_NAME = re.compile(r"(^|[\W_])(id|ids|nr|no|index|idx|row|rownames?|rownum|key|uuid|guid)([\W_]|$)")


@dataclass(frozen=True)
class Drafted:
    """A drafted column.

    Args:
        column: The column; None if it is left out.
        note: What was assumed and what to check, or why it is left out.
    """

    column: Column | Extra | None
    note: str


def first_that_fits(cells: pa.ChunkedArray, *attempts: Callable[[], Column]) -> Column | None:
    """Return the first column that can be made and holds all cells; None if there is none.

    Args:
        cells: The cells, in plain types.
        attempts: Functions that make a column, the best one first.
    """
    for attempt in attempts:
        try:
            column = attempt()
            encode(column, cells)
        except InputError:
            continue
        return column
    return None


def own_type(dtype: str, usual: str) -> str:
    """Return a type as a schema states it: empty if a column would have it anyway.

    Args:
        dtype: The type.
        usual: The type that a column has if none is stated.
    """
    return "" if dtype == usual else dtype


def named_like_an_id(name: str) -> bool:
    """Return whether the name of a column says that it holds identifiers or row numbers.

    Args:
        name: The name.
    """
    split = re.sub(r"([a-z])I[dD]$", r"\1_id", name)
    return name == "" or name.startswith("Unnamed:") or ID_NAME.search(split.lower()) is not None
