"""HTML and SVG that cannot hold a text unescaped: elements are made by functions, and every text is escaped.

Names of columns, values and what a holder writes come from others. Only :class:`Html` is taken as it is, and only the
functions of this module make one.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["Html", "clean", "data_table", "disclosure", "join", "paragraphs", "raw", "tag"]

VOID = {"br", "hr", "line", "link", "meta", "path", "rect"}
"""Elements without a content."""


class Html(str):
    """A text that is HTML already."""


def raw(text: str) -> Html:
    """Mark a text of this package, such as its style sheet, as HTML. Never used for a text of others.

    Args:
        text: the HTML.
    """
    return Html(text)


def clean(text: str) -> str:
    """A text without what has no place in a page: control characters, and marks that change the direction of writing.

    Args:
        text: any text.
    """
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _escaped(content: Any) -> str:
    return content if isinstance(content, Html) else html.escape(clean(str(content)))


def tag(element: str, /, *content: Any, **attributes: Any) -> Html:
    """An element.

    Args:
        element: its name.
        content: what it holds: :class:`Html` as it is, anything else as escaped text.
        attributes: its attributes; ``class_`` for ``class``, underscores for hyphens. None leaves one out, True gives
            one without a value.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    parts = [key if value is True else f'{key}="{html.escape(clean(str(value)))}"' for key, value in given.items()]
    start = " ".join([element, *parts])
    if element in VOID:
        return Html(f"<{start}>" if element in ("br", "hr", "link", "meta") else f"<{start}/>")
    return Html(f"<{start}>{''.join(map(_escaped, content))}</{element}>")


def join(parts: Iterable[Any], between: str = "") -> Html:
    """Several parts as one.

    Args:
        parts: :class:`Html`, or texts that are escaped.
        between: a text between them.
    """
    return Html(_escaped(between).join(map(_escaped, parts)))


def paragraphs(text: str) -> Html:
    """A text of several paragraphs, which empty lines separate.

    Args:
        text: the text.
    """
    return join(tag("p", one.strip()) for one in text.strip().split("\n\n") if one.strip())


def data_table(caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], texts: int = 1) -> Html:
    """A table that a keyboard can scroll where it is wider than the screen.

    Args:
        caption: what it shows.
        head: the names of its columns.
        rows: its cells. The first one of a row is its heading.
        texts: the number of columns with texts, which are aligned to the left; the others are numbers.
    """

    def kind(at: int) -> str | None:
        return None if at < texts else "number"

    top = tag("tr", *(tag("th", one, scope="col", class_=kind(at)) for at, one in enumerate(head)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", one, class_=kind(at)) for at, one in enumerate(row[1:], start=1)),
        )
        for row in rows
    ]
    table = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return tag("div", table, class_="scroll", role="region", aria_label=caption, tabindex=0)


def disclosure(summary: Any, *content: Any) -> Html:
    """Details that are shown on request.

    Args:
        summary: what they are about.
        content: the details.
    """
    return tag("details", tag("summary", summary), *content)
