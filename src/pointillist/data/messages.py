"""What messages may show of a table: a row number, the name of a column and a fragment of one cell."""

from __future__ import annotations

import os
import re
from typing import Any

from pointillist.errors import Shown

__all__ = ["MOST_SHOWN", "column_called", "fragment", "reason"]

MOST_SHOWN = 60
"""The largest number of characters of a value or a name that a message shows."""

REASONS = (
    (
        r"Row #(\d+): Expected (\d+) columns?, got (\d+)",
        "row {0}, the header being row 1, has {2} cells, not {1}",
    ),
    (r"Expected (\d+) columns?, got (\d+)", "a row has {1} cells, not {0}"),
    (r"quotation mark without an end", "a quotation mark opens a cell that never ends"),
    (r"straddl|out of sync", "a row is longer than 1 MB, as after a stray quotation mark"),
    (r"text not in the encoding (?!utf-8$)(\S+)", "it holds text that is not {0}"),
    (r"(?i)utf-?8|unicode|surrogate", "it holds text that is not UTF-8"),
    (r"Empty CSV", "it has no rows"),
    (r"(?i)magic bytes|footer|file is smaller", "it is not a Parquet file, or not a whole one"),
    (r"(?i)memory|malloc|capacity|too large", "it is too large for this machine"),
)
"""Words of a library's error, and what a message says instead: its own text may hold rows of the table."""


def fragment(value: Any) -> Shown:
    """Return a value as messages show it: at most ``MOST_SHOWN`` characters of it, on one line.

    Args:
        value: Anything: a cell, a name, a list of names.
    """
    if isinstance(value, str) and not isinstance(value, Shown):
        return _quoted(str(value[: MOST_SHOWN + 1]))
    try:
        text = str(value) if isinstance(value, Shown) else repr(value)
    except Exception:  # a number of more than 4,300 digits, a list in itself, an object of someone else
        text = f"a value of type {type(value).__name__}"
    text = "".join(letter if letter.isprintable() else "?" for letter in text[: MOST_SHOWN + 1])
    return Shown(text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "...")


def _quoted(text: str) -> Shown:
    shown = repr(text)
    kept = MOST_SHOWN - 3
    while len(shown) > MOST_SHOWN + 2:  # two for the quotation marks
        shown = repr(text[:kept]) + "..."
        kept -= 1
    return Shown(shown)


def column_called(name: Any) -> str:
    """Return "column" and a name, for messages.

    Args:
        name: The name of the column. A stray quotation mark in a CSV file can make a name of many rows.
    """
    return f"column {fragment(name)}"


def reason(error: BaseException) -> str:
    """Return why a file or a table could not be read, without anything that it holds.

    Args:
        error: What a library or the system raised. Arrow puts whole rows into its messages.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    text = f"{type(error).__name__}: {error}"
    for pattern, words in REASONS:
        if found := re.search(pattern, text):
            return words.format(*found.groups())
    return "it is damaged, or of another format"
