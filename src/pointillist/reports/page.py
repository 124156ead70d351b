"""The shell that both pages share: head, banner, contents, sections and foot. Nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from pointillist.reports.charts import PATTERNS
from pointillist.reports.markup import Html, join, raw, tag

__all__ = ["Fact", "Section", "page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser lets the page do: use its own style, and nothing else. No script runs, nothing is loaded."""


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes:
        name: its identifier.
        title: its heading.
        content: what it holds.
    """

    name: str
    title: str
    content: Html

    def to_html(self) -> Html:
        """The section as an element."""
        heading = tag("h2", self.title, id=f"{self.name}-heading")
        return tag("section", heading, self.content, id=self.name, aria_labelledby=f"{self.name}-heading")


@dataclass(frozen=True)
class Fact:
    """A figure at the top of a page.

    Attributes:
        name: what it is.
        value: the figure.
        remark: a few words below it.
    """

    name: str
    value: str
    remark: str = ""

    def to_html(self) -> Html:
        """The figure as an entry of a list."""
        remark = [tag("small", self.remark)] if self.remark else []
        return tag("div", tag("dt", self.name), tag("dd", self.value, *remark))


def page(
    title: str,
    kicker: str,
    lead: str,
    facts: Sequence[Fact],
    sections: Sequence[Section],
    foot: str,
    banner: tuple[str, str] | None = None,
) -> str:
    """A whole page.

    Args:
        title: its title.
        kicker: a line above the title.
        lead: a line below it.
        facts: figures at the top.
        sections: the sections.
        foot: the last line.
        banner: a warning that stays on the screen and is printed on every page: its words, and what follows from them.
    """
    warned = "" if banner is None else f"{banner[0]}: "
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content="pointillist"),
        tag("title", warned + title),
        tag("style", raw(resources.files("pointillist.reports").joinpath("page.css").read_text(encoding="utf-8"))),
    )
    top = tag(
        "header",
        tag(
            "div",
            tag("p", kicker, class_="kicker"),
            tag("h1", title),
            tag("p", lead, class_="lead"),
            tag("dl", *(one.to_html() for one in facts), class_="facts"),
            class_="inner",
        ),
        class_="top",
    )
    links = [tag("li", tag("a", one.title, href=f"#{one.name}")) for one in sections]
    contents = tag(
        "nav", tag("h2", "On this page", id="contents"), tag("ol", *links), class_="toc", aria_labelledby="contents"
    )
    main = tag("main", *(one.to_html() for one in sections), id="main")
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        *_banner(banner),
        PATTERNS,
        top,
        tag("div", contents, main, class_="frame"),
        tag("footer", tag("div", foot, class_="inner")),
        class_=None if banner is None else "private",
    )
    return "<!DOCTYPE html>\n" + join([tag("html", head, body, lang="en")]) + "\n"


def _banner(banner: tuple[str, str] | None) -> list[Html]:
    if banner is None:
        return []
    return [tag("aside", f"{banner[0]} ", tag("span", banner[1]), class_="banner", aria_label="Warning")]
