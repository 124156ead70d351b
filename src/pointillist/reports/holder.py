"""The page for the data holder alone: the real table against the synthetic one. NOT PRIVATE: uses the real data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pointillist.answers import intervals
from pointillist.checks import share
from pointillist.evaluation import report
from pointillist.evaluation.judgement import NOTICE, Evaluation
from pointillist.evaluation.sections import Section as Figures
from pointillist.queries.base import Queries
from pointillist.queries.groups import Groups
from pointillist.queries.workload import offsets_of
from pointillist.release import Release
from pointillist.reports.charts import Bar, bar_chart, legend, percent
from pointillist.reports.figures import ColumnFigure, column_figures, selection_of
from pointillist.reports.markup import Html, data_table, disclosure, join, tag
from pointillist.reports.page import Fact, Section, page
from pointillist.reports.statements import Statements

__all__ = ["holder_report"]

BANNER = ("NOT PRIVATE", "For the data holder only. This page shows figures of the real data: do not publish it.")
CLASSES = ((0.01, 2.0, "above 1 %"), (0.001, 0.01, "0.1 to 1 %"), (1e-12, 0.001, "below 0.1 %"), (-1.0, 1e-12, "0"))
"""Size classes of true answers."""


def holder_report(
    release: Release,
    real: Any,
    about: Statements | None = None,
    target: str | None = None,
    level: float = 0.95,
) -> str:
    """The page as HTML. NOT PRIVATE: it shows exact figures of the real table.

    Args:
        release: the release.
        real: the table that it was made from: a pandas, polars or Arrow table, or a :class:`~pointillist.Table`.
        about: what the holder states; only the title is used.
        target: a column that models learn to predict, from synthetic and from real rows. Needs scikit-learn.
        level: the probability with which an interval should hold the true answer.
    """
    level = share("level", level, 0.95)
    found = report.evaluate(real, release, target=target)
    figures = column_figures(release, level)
    truth = _real_shares(release, real, figures)
    sections = [
        Section("notice", "Keep this page to yourself", tag("div", tag("p", NOTICE), class_="warning")),
        Section("errors", "Errors of the answers", _errors(found)),
        Section("covered", "Did the intervals hold?", _coverage(release, real, level)),
        Section("columns", "Columns: real against synthetic", _columns(figures, truth)),
        *_tables(found),
    ]
    title = f"Real against synthetic{': ' + about.title if about is not None and about.title else ''}"
    lead = f"{found.n:,} real rows, {len(release.table):,} synthetic rows, {found.workload.partition(' (')[0]}."
    return page(title, "For the data holder only", lead, _facts(found), sections, NOTICE, BANNER)


def _real_shares(release: Release, real: Any, figures: Sequence[ColumnFigure]) -> list[np.ndarray]:
    asked: list[Queries] = [Groups((n,), one.bars.groups) for n, one in enumerate(figures)]
    answers, offsets = report.true_answers(real, release, asked), offsets_of(asked)
    return [answers[offsets[n] : offsets[n + 1]] for n in range(len(asked))]


def _facts(found: Evaluation) -> list[Fact]:
    errors = found.rows
    names = (("Largest error", errors.max), ("Root mean square", errors.rmse), ("Mean tvd", errors.tvd))
    facts = [Fact(name, percent(value), "of the rows, over the workload") for name, value in names]
    worst = found.summary["worst_correlation"]
    more = [] if math.isnan(worst) else [Fact("Worst correlation", f"off by {worst:.3f}")]
    return [*facts, *more]


def _errors(found: Evaluation) -> Html:
    first = found.sections()[0]
    lines = [*found.comparison.lines(), ("independent columns", found.independent)]
    bars = [
        Bar(name, one.rmse, f"{one.rmse:.5f}", kind="second" if n + 1 == len(lines) else "main")
        for n, (name, one) in enumerate(lines)
    ]
    words = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
    chart = bar_chart("errors-chart", "Root mean square errors over the workload", words, bars)
    text = (
        "Independent columns keep every column exactly and no tie. A release that is not better has learned nothing "
        "about ties."
    )
    return join((tag("p", text), tag("div", chart, class_="card wide"), _table(first)))


def _table(figures: Figures) -> Html:
    """A table of the evaluation. Its title is the heading of the section."""
    return data_table(figures.note or "Figures of the evaluation", figures.head, figures.rows)


def _coverage(release: Release, real: Any, level: float) -> Html:
    asked = selection_of(release.workload.queries)
    _, low, high = intervals(release, asked, level)
    truth = report.true_answers(real, release, asked)
    rows, bars = [], []
    for least, most, name in CLASSES:
        inside = (truth >= least) & (truth < most)
        known = inside & ~np.isnan(low)
        if not inside.any():
            continue
        held = (
            float(np.mean((truth[known] >= low[known] - 1e-12) & (truth[known] <= high[known] + 1e-12)))
            if known.any()
            else math.nan
        )
        width = float(np.median((high - low)[known] / 2)) if known.any() else math.nan
        rows.append(
            (name, f"{int(inside.sum()):,}", f"{int((inside & ~known).sum()):,}", percent(held), percent(width))
        )
        bars.append(Bar(f"true answers {name}", 0.0 if math.isnan(held) else held, percent(held)))
    words = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
    text = (
        f"How many of the true answers of the workload lie in their {100 * level:g} % intervals, by the size of the "
        "true answer. These are the intervals of the public page."
    )
    head = ("True answer", "Answers", "Without interval", "In the interval", "Median half width")
    chart = bar_chart("covered-chart", "True answers inside of their intervals", words, bars, most=1.0, letters=38)
    return join((tag("p", text), tag("div", chart, class_="card wide"), data_table("Coverage by size", head, rows)))


def _columns(figures: Sequence[ColumnFigure], truth: Sequence[np.ndarray]) -> Html:
    key = legend([("main", "synthetic rows, with the interval of the public page"), ("second", "real rows")])
    distance = [float(np.abs(one.shares - real).sum() / 2) for one, real in zip(figures, truth, strict=True)]
    order = np.argsort(-np.array(distance), kind="stable")
    cards = [_card(int(n), figures[n], truth[n], distance[n]) for n in order]
    text = "The columns that are furthest off come first, by the total variation distance (tvd) of the shares."
    return join((tag("p", text), key, tag("div", *cards, class_="columns")))


def _card(n: int, figure: ColumnFigure, truth: np.ndarray, distance: float) -> Html:
    values = list(zip(figure.bars.names, figure.shares, truth, figure.low, figure.high, strict=True))
    bars = [
        Bar(name, float(value), f"{percent(value)} / {percent(real)}", float(low), float(high), second=float(real))
        for name, value, real, low, high in values
    ]
    words = "; ".join(f"{name}: synthetic {percent(value)}, real {percent(real)}" for name, value, real, _, _ in values)
    name = figure.column.name
    rows = [
        (
            label,
            percent(value),
            percent(real),
            f"{100 * (value - real):+.2f}",
            "yes" if low <= real <= high else "no" if math.isfinite(low) else "-",
        )
        for label, value, real, low, high in values
    ]
    head = ("Value", "Synthetic", "Real", "Difference (points)", "In the interval")
    return tag(
        "article",
        tag("h3", name),
        tag("p", f"tvd {distance:.4f}; synthetic / real", class_="kind"),
        bar_chart(f"column-{n}", f"Shares of {name}, synthetic and real", words, bars, letters=18),
        disclosure(f"Figures of {name}", data_table(f"{name}: synthetic and real shares", head, rows)),
        class_="card",
    )


def _tables(found: Evaluation) -> list[Section]:
    """The other tables of the evaluation, each as a section."""
    return [Section(f"table-{n}", one.title, _table(one)) for n, one in enumerate(found.sections()[1:])]
