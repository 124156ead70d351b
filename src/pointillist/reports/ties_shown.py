"""The strongest ties between columns: a section of the page of a release."""

from __future__ import annotations

from collections.abc import Sequence

from pointillist.reports.charts import Bar, bar_chart, legend
from pointillist.reports.figures import Tie
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


def ties_shown(ties: Sequence[Tie]) -> Html:
    """A chart of the strongest ties, and a table of more.

    Args:
        ties: the ties, the strongest first.
    """
    if not ties:
        return tag("p", "There is one column only.")
    rows = [(*one.names, "yes" if one.measured else "no", f"{one.strength:.3f}") for one in ties[:LISTED]]
    table = data_table("Ties, the strongest first", ("Column", "Column", "Measured", "Cram\u00e9r's V"), rows, texts=3)
    more = disclosure(f"Figures of {len(rows):,} of {len(ties):,} ties", table)
    return join((tag("p", INTRO), legend(MEANINGS), tag("div", _chart(ties), class_="card wide"), more))


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
