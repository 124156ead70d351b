"""The columns with their synthetic shares and error bars: a section of the page of a release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pointillist.answers import Answer
from pointillist.data.columns import Column
from pointillist.data.columns.merged import Merged
from pointillist.data.schema import About
from pointillist.evaluation.values import show_number
from pointillist.release import Release
from pointillist.reports.charts import Bar, bar_chart, legend, percent
from pointillist.reports.figures import MOST_COLUMNS, ColumnFigure, summaries_of
from pointillist.reports.markup import Html, data_table, disclosure, join, tag
from pointillist.reports.trust_shown import source_of

__all__ = ["shares_shown"]

MEANINGS = (
    ("main", "share of the synthetic rows"),
    ("unsure", "the interval is wider than the share: do not use it alone"),
)
HEAD = ("Value", "Share", "From", "To", "Remark")


def shares_shown(release: Release, figures: Sequence[ColumnFigure], level: float) -> Html:
    """A chart and a table for each column.

    Args:
        release: the release.
        figures: the figures of its columns.
        level: the probability with which an interval holds the true share.
    """
    intro = (
        "Bars are shares of the synthetic rows. The lines at their ends are intervals that hold the share in the real "
        f"table with a probability of {100 * level:g} % each. {source_of(release)}"
    )
    notes = [tag("p", one, class_="note") for one in _left_out(release)]
    summaries = summaries_of(release, level)
    cards = [_card(release, n, one, level, summaries.get(one.column.name)) for n, one in enumerate(figures)]
    return join((tag("p", intro), *notes, legend(MEANINGS), tag("div", *cards, class_="columns")))


def _left_out(release: Release) -> list[str]:
    """What the section does not show."""
    schema = release.schema
    every, extras = len(schema.columns), [one.name for _, one in schema.extras]
    found = []
    if every > MOST_COLUMNS:
        found.append(f"The first {MOST_COLUMNS} of {every:,} columns are shown.")
    if extras:
        found.append(f"Made up without looking at any data, and not shown: {', '.join(extras)}.")
    if schema.ignore:
        found.append(f"Columns of the real table that are not part of the release: {', '.join(schema.ignore)}.")
    return found


def _card(release: Release, n: int, figure: ColumnFigure, level: float, summary: tuple[Answer, Answer] | None) -> Html:
    name, about = figure.column.name, release.schema.about.get(figure.column.name, About())
    unit = f", in {about.unit}" if about.unit else ""
    kind = tag("p", _kind(figure.column) + unit, class_="kind")
    more = disclosure(f"Figures of {name}", _table(figure, level))
    middle = _note("" if summary is None else _summary(*summary))
    parts = (kind, _note(about.description), middle, _chart(n, figure), _note(figure.bars.note), more)
    return tag("article", tag("h3", name), *parts, class_="card")


def _summary(mean: Answer, median: Answer) -> str:
    return "; ".join(
        f"{name} {show_number(one.estimate)} ({show_number(one.low)} to {show_number(one.high)})"
        for name, one in (("Mean", mean), ("median", median))
    )


def _note(text: str) -> Html | str:
    return tag("p", text, class_="note") if text else ""


def _chart(n: int, figure: ColumnFigure) -> Html:
    bars, words = [], []
    for name, value, low, high, unsure in figure.rows():
        bars.append(Bar(name, value, percent(value), low, high, "unsure" if unsure else "main"))
        between = f"{percent(low)} to {percent(high)}" if math.isfinite(low) else "no interval"
        words.append(f"{name}: {percent(value)} ({between})")
    return bar_chart(f"column-{n}", f"Shares of {figure.column.name}", "; ".join(words), bars)


def _table(figure: ColumnFigure, level: float) -> Html:
    rows = [
        (name, percent(value), percent(low), percent(high), _remark(low, unsure))
        for name, value, low, high, unsure in figure.rows()
    ]
    caption = f"{figure.column.name}: synthetic shares, and {100 * level:g} % intervals for the real table"
    return data_table(caption, HEAD, rows)


def _remark(low: float, unsure: bool) -> str:
    if math.isnan(low):
        return "no interval is known"
    return "do not use alone" if unsure else ""


def _kind(column: Column) -> str:
    """What a column holds, without its name."""
    if isinstance(column, Merged):
        groups = "one group" if column.size == 1 else f"{column.size:,} groups"
        return f"{_kind(column.base)}; the run put them into {groups}"
    return column.describe().removeprefix(f"{column.name}: ")
