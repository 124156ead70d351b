"""Small tables with a title: what an evaluation shows, in a terminal, as text or in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """A table with a title.

    Attributes:
        title: what it is about.
        head: the names of its columns.
        rows: its cells.
        note: what to know about it; may be empty.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def lines(self) -> list[str]:
        """The table as text."""
        widths = [max(len(row[n]) for row in (self.head, *self.rows)) for n in range(len(self.head))]
        out = [self.title, *(_line(row, widths) for row in (self.head, *self.rows))]
        return [*out, self.note] if self.note else out

    def to_html(self) -> str:
        """The table as HTML."""
        head = "".join(f"<th>{html.escape(one)}</th>" for one in self.head)
        cells = ("".join(f"<td>{html.escape(one)}</td>" for one in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<h4>{html.escape(self.title)}</h4>{table}{note}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        one.ljust(w) if n == 0 else one.rjust(w) for n, (one, w) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(["", first, *others]).rstrip()
