"""Charts as inline SVG: bars with error bars, drawn in percent of the width, so that texts keep their size.

A chart is an image to a screen reader, with a title and a description. The same figures are in a table next to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pointillist.reports.markup import Html, join, raw, tag

__all__ = ["PATTERNS", "Bar", "bar_chart", "legend", "parts_chart", "percent", "short"]

LINE = 42
"""The height of a bar with its label."""
THICK = 12
"""The height of the bar alone."""
LETTERS = 26
"""Letters of a label that a chart shows, if nothing else is said."""

PATTERNS = raw(
    '<svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false"><defs>'
    '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" class="hatch-ground"/><rect width="2.5" height="6" class="hatch-line"/>'
    "</pattern></defs></svg>"
)
"""What charts fill uncertain bars with; once on a page."""


@dataclass(frozen=True)
class Bar:
    """A bar of a chart.

    Attributes:
        name: what it stands for.
        value: its length.
        text: the value in words.
        low, high: the ends of the error bar; NaN for none.
        kind: how it is filled: "main", "unsure" or "other".
        second: another length, which is drawn below it; None for none.
    """

    name: str
    value: float
    text: str
    low: float = math.nan
    high: float = math.nan
    kind: str = "main"
    second: float | None = None


def short(text: str, most: int = LETTERS) -> str:
    """A text, cut where it is too long for a chart.

    Args:
        text: the text.
        most: the most letters.
    """
    line = " ".join(text.split()) or "(empty)"
    return line if len(line) <= most else f"{line[: most - 1]}\u2026"


def percent(value: float) -> str:
    """A fraction as people read it.

    Args:
        value: the fraction.
    """
    if not math.isfinite(value):
        return "unknown"
    scaled = 100 * value
    return f"{scaled:.1f} %" if abs(scaled) >= 0.995 else f"{scaled:.2g} %"


def bar_chart(
    name: str, title: str, description: str, bars: Sequence[Bar], most: float | None = None, letters: int = LETTERS
) -> Html:
    """Horizontal bars, each below its label, with error bars.

    Args:
        name: an identifier, different from all others of the page.
        title: what the chart shows.
        description: its figures in words.
        bars: the bars.
        most: the value at the right end; by default the largest one.
        letters: the letters of a label that fit.
    """
    ends = [one for bar in bars for one in (bar.value, bar.high, bar.second or 0.0) if math.isfinite(one)]
    scale = 100 / (most or max(ends, default=0.0) or 1.0)
    lines = [_bar(bar, n * _height(bars), scale, letters) for n, bar in enumerate(bars)]
    labels = {"aria_labelledby": f"{name}-title {name}-text", "role": "img", "class_": "chart"}
    head = (tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-text"))
    return tag("svg", *head, *lines, width="100%", height=len(bars) * _height(bars), **labels)


def _height(bars: Sequence[Bar]) -> int:
    return LINE + (THICK if any(bar.second is not None for bar in bars) else 0)


def _bar(bar: Bar, top: int, scale: float, letters: int) -> Html:
    at = top + 21
    length = max(0.0, min(bar.value * scale, 100.0))
    parts = [
        tag("text", short(bar.name, letters), x=0, y=top + 15, class_="label"),
        tag("text", bar.text, x="100%", y=top + 15, text_anchor="end", class_="value"),
        tag("rect", x=0, y=at, width="100%", height=THICK, class_="ground"),
        tag("rect", x=0, y=at, width=f"{length:.2f}%", height=THICK, class_=f"bar {bar.kind}"),
    ]
    if bar.second is not None:
        second = max(0.0, min(bar.second * scale, 100.0))
        parts += [tag("rect", x=0, y=at + THICK, width="100%", height=THICK, class_="ground")]
        parts += [tag("rect", x=0, y=at + THICK, width=f"{second:.2f}%", height=THICK, class_="bar second")]
    if math.isfinite(bar.low) and math.isfinite(bar.high):
        parts.append(_whisker(bar, at, scale))
    return tag("g", *parts)


def _whisker(bar: Bar, at: int, scale: float) -> Html:
    low, high = (f"{max(0.1, min(end * scale, 99.8)):.2f}%" for end in (bar.low, bar.high))
    middle, top, bottom = at + THICK / 2, at + 2, at + THICK - 2
    lines = [(low, high, middle, middle), (low, low, top, bottom), (high, high, top, bottom)]
    halo = [tag("line", x1=a, x2=b, y1=c, y2=d, class_="halo") for a, b, c, d in lines]
    return tag("g", *halo, *(tag("line", x1=a, x2=b, y1=c, y2=d, class_="whisker") for a, b, c, d in lines))


def parts_chart(name: str, title: str, description: str, parts: Sequence[tuple[str, float]]) -> Html:
    """One bar of several parts, with a legend.

    Args:
        name: an identifier, different from all others of the page.
        title: what the chart shows.
        description: its figures in words.
        parts: the name and the share of each.
    """
    drawn, at = [], 0.0
    for n, (_, share) in enumerate(parts):
        drawn.append(
            tag("rect", x=f"{100 * at:.2f}%", y=0, width=f"{100 * share:.2f}%", height=22, class_=f"part{n % 6}")
        )
        at += share
    labels = {"aria_labelledby": f"{name}-title {name}-text", "role": "img", "class_": "chart parts"}
    head = (tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-text"))
    chart = tag("svg", *head, *drawn, width="100%", height=22, **labels)
    return join(
        (chart, legend([(f"part{n % 6}", f"{label}: {percent(share)}") for n, (label, share) in enumerate(parts)]))
    )


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """What the fills of a chart mean.

    Args:
        entries: the class of each fill, and its meaning.
    """

    def swatch(kind: str) -> Html:
        rect = tag("rect", width=14, height=14, class_=kind)
        return tag("svg", rect, width=14, height=14, aria_hidden="true", focusable="false")

    return tag("ul", *(tag("li", swatch(kind), tag("span", text)) for kind, text in entries), class_="legend")
