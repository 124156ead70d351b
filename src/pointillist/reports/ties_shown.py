"""The strongest ties between columns: a section of the page of a release."""

from __future__ import annotations

from collections.abc import Sequence

from pointillist.reports.charts import Bar, bar_chart, legend, short
from pointillist.reports.figures import Cross, Tie
from pointillist.reports.markup import Html, data_table, disclosure, join, tag

__all__ = ["ties_shown"]

SHOWN, LISTED = 12, 100
"""Ties that the chart shows, and that the table lists."""
LEAST = 0.005
"""Weaker ties are not shown in the chart."""
INTRO = (
    "How strongly pairs of columns depend on each other in the synthetic rows, by Cram\u00e9r's V with a correction "
    "for chance: 0 if they are independent, 1 if one decides the other. A tie that was measured follows the real table "
    "up to noise. One that was not measured follows from other ties, and may be too weak."
)
MEANINGS = (("main", "measured together"), ("other", "not measured together"))


def ties_shown(ties: Sequence[Tie], crosses: Sequence[Cross]) -> Html:
    """A chart of the strongest ties, what some of them look like, and a table of more.

    Args:
        ties: the ties, the strongest first.
        crosses: the columns of some of them, crossed.
    """
    if not ties:
        return tag("p", "There is one column only.")
    rows = [(*one.names, "yes" if one.measured else "no", f"{one.strength:.3f}") for one in ties[:LISTED]]
    table = data_table("Ties, the strongest first", ("Column", "Column", "Measured", "Cram\u00e9r's V"), rows, texts=3)
    more = disclosure(f"Figures of {len(rows):,} of {len(ties):,} ties", table)
    chart = tag("div", _chart(ties), class_="card wide")
    looks = (tag("h3", "What the strongest ones look like"), tag("div", *map(_cross, crosses), class_="crosses"))
    return join((tag("p", INTRO), legend(MEANINGS), chart, more, *(looks if crosses else ())))


def _cross(cross: Cross) -> Html:
    """A table whose cells are the darker the larger their share is."""
    first, second = cross.names
    caption = f"{second} by {first}: shares of each line, in the synthetic rows"
    corner = tag("th", f"{first} \u00b7 {second}", scope="col")
    head = tag("tr", corner, *(tag("th", short(one), scope="col", class_="number") for one in cross.columns))
    lines = [
        tag(
            "tr",
            tag("th", short(name), scope="row"),
            *(tag("td", f"{100 * value:.0f} %", class_=f"number heat{_level(value)}") for value in values),
        )
        for name, values in zip(cross.rows, cross.shares.tolist(), strict=True)
    ]
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *lines), class_="cross")
    return tag("div", table, class_="scroll", role="region", aria_label=caption, tabindex=0)


def _level(share: float) -> int:
    """How dark a cell is: 0 to 5."""
    return min(5, int(share * 6))


def _chart(ties: Sequence[Tie]) -> Html:
    shown = [one for one in ties[:SHOWN] if one.strength >= LEAST] or ties[:1]
    bars = [
        Bar(" \u00d7 ".join(one.names), one.strength, f"{one.strength:.2f}", kind="main" if one.measured else "other")
        for one in shown
    ]
    words = "; ".join(f"{' and '.join(one.names)}: {one.strength:.2f}" for one in shown)
    return bar_chart(
        "ties-chart", f"The {len(bars)} strongest of {len(ties):,} ties", words, bars, most=1.0, letters=38
    )
