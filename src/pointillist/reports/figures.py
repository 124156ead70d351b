"""The figures of a report: shares of columns with intervals, ties, and which answers not to trust.

Everything follows from a release, so that it is differentially private like the release itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.answers import Answer, Mean, Quantile, intervals
from pointillist.data.columns import Column, Grid, Numeric
from pointillist.data.table import Table
from pointillist.evaluation.values import unmerged
from pointillist.queries.base import Queries
from pointillist.queries.groups import Groups
from pointillist.queries.marginal import Marginal
from pointillist.queries.residuals import Residuals
from pointillist.queries.workload import offsets_of
from pointillist.release import Release
from pointillist.reports.labels import Bars, bars_of, code_name

__all__ = [
    "ColumnFigure",
    "Cross",
    "Doubtful",
    "SizeClass",
    "Tie",
    "Trust",
    "column_figures",
    "corrected_v",
    "crossed",
    "selection_of",
    "strongest_ties",
    "summaries_of",
    "trust_in",
]

MOST_COLUMNS = 100
"""Columns that are shown."""
MOST_SUMMARIES = 20
"""Columns of numbers whose mean and median are shown."""
MOST_TIE_COLUMNS = 120
"""Columns whose pairs are compared."""
MOST_TIE_CODES = 50
"""Values of a column that its ties tell apart; the others are one."""
MOST_CROSSED = (8, 5)
"""Lines and columns of two columns that are crossed, missing values not counted."""
MOST_ANSWERS = 50_000
"""Answers of the workload that are judged."""
MOST_DOUBTFUL = 10
"""Answers not to trust that are listed one by one."""
SIZES = (0.1, 0.01, 0.001, 0.0)
"""Lower ends of the size classes of answers."""


@dataclass(frozen=True)
class ColumnFigure:
    """A column in the synthetic rows.

    Attributes:
        column: the column.
        bars: what the bars stand for.
        shares: the shares of the synthetic rows.
        estimates: the model's answers.
        low, high: the intervals for the shares in the real table; NaN where there is none.
    """

    column: Column
    bars: Bars
    shares: np.ndarray
    estimates: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def unsure(self) -> np.ndarray:
        """Where the interval is wider than the share."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.high - self.low > self.shares)

    def rows(self) -> list[tuple[str, float, float, float, bool]]:
        """Of each bar its name, the share, the ends of its interval, and whether that is wider than the share."""
        values = (one.tolist() for one in (self.shares, self.low, self.high, self.unsure))
        return list(zip(self.bars.names, *values, strict=True))


def column_figures(release: Release, level: float) -> list[ColumnFigure]:
    """The figures of the columns, in their order.

    Args:
        release: the release.
        level: the probability with which an interval holds the true share.
    """
    columns = release.schema.columns[:MOST_COLUMNS]
    single = [_shares(release.table.codes[n], column.size) for n, column in enumerate(columns)]
    bars = [bars_of(column, shares) for column, shares in zip(columns, single, strict=True)]
    asked: list[Queries] = [Groups((n,), one.groups) for n, one in enumerate(bars)]
    found, offsets = intervals(release, asked, level), offsets_of(asked)
    figures = []
    for n, (column, one) in enumerate(zip(columns, bars, strict=True)):
        shares = np.bincount(one.groups, single[n], minlength=len(one.names))
        figures.append(ColumnFigure(column, one, shares, *(x[offsets[n] : offsets[n + 1]] for x in found)))
    return figures


def summaries_of(release: Release, level: float) -> dict[str, tuple[Answer, Answer]]:
    """The mean and the median of columns of numbers, with intervals, by the name of the column.

    Args:
        release: the release; without replicates there are no intervals, and nothing is returned.
        level: the probability with which an interval holds the true value.
    """
    if release.replicates is None:
        return {}
    names = [one.name for one in unmerged(release.schema) if isinstance(one, Numeric | Grid)][:MOST_SUMMARIES]
    asked = {name: (Mean(name), Quantile(name, 0.5)) for name in names}
    return {
        name: (release.answer(mean, level), release.answer(median, level)) for name, (mean, median) in asked.items()
    }


def _shares(codes: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(codes, minlength=size) / len(codes)


@dataclass(frozen=True)
class Tie:
    """How strongly two columns depend on each other in the synthetic rows.

    Attributes:
        names: the columns.
        strength: Cramer's V, corrected for chance: 0 for independent columns, 1 where one decides the other.
        measured: whether the run has measured both together.
    """

    names: tuple[str, str]
    strength: float
    measured: bool


def strongest_ties(release: Release) -> list[Tie]:
    """All pairs of columns, the strongest first.

    Args:
        release: the release.
    """
    table = release.table
    columns = range(min(len(table.codes), MOST_TIE_COLUMNS))
    codes = [_common_codes(table, n) for n in columns]
    pairs = _measured_pairs(release)
    found = [
        Tie((table.domain.names[i], table.domain.names[j]), corrected_v(codes[i], codes[j]), (i, j) in pairs)
        for i, j in itertools.combinations(columns, 2)
    ]
    return sorted(found, key=lambda tie: -tie.strength)


@dataclass(frozen=True)
class Cross:
    """Two columns of the synthetic rows, crossed.

    Attributes:
        names: the columns.
        rows, columns: what the lines and the columns of the table stand for.
        shares: of the rows of each line, the shares in each column.
    """

    names: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: np.ndarray


def crossed(release: Release, names: tuple[str, str]) -> Cross:
    """Cross two columns of the synthetic rows.

    Args:
        release: the release.
        names: the columns.
    """
    table, places = release.table, [release.schema.domain.names.index(name) for name in names]
    codes, labels = [], []
    for place, most in zip(places, MOST_CROSSED, strict=True):
        column = release.schema.columns[place]
        bars = bars_of(column, _shares(table.codes[place], column.size), most)
        codes.append(np.array(bars.groups)[table.codes[place]])
        labels.append(bars.names)
    width = len(labels[1])
    counts = np.bincount(codes[0] * width + codes[1], minlength=len(labels[0]) * width).reshape(-1, width)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return Cross(names, labels[0], labels[1], shares)


def _measured_pairs(release: Release) -> set[tuple[int, int]]:
    """Pairs of columns inside of something that was measured cell by cell; a residual is that of its own columns, and
    blocks of several values tell no cells."""
    found: set[tuple[int, int]] = set()
    for one in (measured.queries for measured in release.log.measurements):
        if isinstance(one, Residuals):
            found |= {(part.scope[0], part.scope[1]) for part in one.parts if len(part.scope) == 2}
        elif getattr(one, "kind", "") != "tie":
            widths = [len(factor.bounds) for factor in one.factors] if one.factors is not None else one.shape
            told = [i for i, width, size in zip(one.scope, widths, one.shape, strict=True) if width >= size]
            found |= set(itertools.combinations(sorted(told), 2))
    return found


def _common_codes(table: Table, n: int) -> np.ndarray:
    """The codes of a column, renumbered; rare ones share the last number."""
    codes = np.asarray(table.codes[n], np.int64)
    counts = np.bincount(codes, minlength=table.domain.sizes[n])
    place = np.minimum(np.argsort(np.argsort(-counts, kind="stable")), MOST_TIE_CODES)
    return np.asarray(place[codes])


def corrected_v(first: np.ndarray, second: np.ndarray) -> float:
    """Cramer's V of two columns of codes, with Bergsma's correction: without it, chance alone gives values above 0.

    Args:
        first, second: the codes of the rows.
    """
    n, columns = len(first), int(second.max()) + 1
    table = np.bincount(first * columns + second, minlength=(int(first.max()) + 1) * columns).reshape(-1, columns) / n
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    r, c = table.shape
    if n < 2 or min(r, c) < 2:
        return 0.0
    phi = max(0.0, float(((table - expected) ** 2 / expected).sum()) - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(phi / least))) if least > 0 else 0.0


@dataclass(frozen=True)
class SizeClass:
    """Answers of similar size.

    Attributes:
        low, high: the range of the answers, as fractions; high is not included.
        answers: their number.
        unsure: how many of them have an interval that is wider than the answer.
        unknown: how many have no interval.
        width: the median half width of the intervals.
    """

    low: float
    high: float
    answers: int
    unsure: int
    unknown: int
    width: float


@dataclass(frozen=True)
class Doubtful:
    """An answer whose interval is wider than the answer.

    Attributes:
        text: what it is about.
        estimate, low, high: the answer and the ends of its interval.
    """

    text: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Trust:
    """Which answers of the workload can be trusted.

    Attributes:
        answers: the number of answers that were judged.
        of: the number of answers of the workload.
        classes: by size.
        worst: groups of columns with the largest shares of answers that are not to be trusted, with these shares.
        doubtful: the largest answers that are not to be trusted although they have an interval.
        safe: the smallest answer from which on at least 95 % have an interval that is narrower than the answer; None
            if there is none.
    """

    answers: int
    of: int
    classes: tuple[SizeClass, ...]
    worst: tuple[tuple[tuple[str, ...], float], ...]
    doubtful: tuple[Doubtful, ...]
    safe: float | None


def trust_in(release: Release, level: float) -> Trust:
    """Judge the answers of the workload.

    Args:
        release: the release.
        level: the probability with which an interval holds the true answer.
    """
    asked = selection_of(release.workload.queries)
    estimates, low, high = intervals(release, asked, level)
    unknown = np.isnan(high - low)
    with np.errstate(invalid="ignore"):
        unsure = (high - low > estimates) | unknown
    names = release.schema.domain.names
    offsets = offsets_of(asked)
    shares = np.add.reduceat(unsure.astype(float), offsets[:-1]) / np.diff(offsets)
    order = np.argsort(-shares, kind="stable")[:10]
    worst = tuple((tuple(names[i] for i in asked[at].scope), float(shares[at])) for at in order if shares[at] > 0)
    classes = tuple(
        _size_class(*ends, estimates, unsure, unknown, high - low)
        for ends in zip(SIZES, (2.0, *SIZES[:-1]), strict=True)
    )
    return Trust(
        len(estimates),
        release.workload.size,
        classes,
        worst,
        _doubtful(release, asked, (estimates, low, high), unsure & ~unknown),
        _safe_size(estimates, unsure),
    )


def _doubtful(
    release: Release, asked: Sequence[Queries], found: tuple[np.ndarray, ...], unsure: np.ndarray
) -> tuple[Doubtful, ...]:
    """The largest answers among those that are unsure."""
    estimates, offsets = found[0], offsets_of(asked)
    largest = np.argsort(np.where(unsure, -estimates, np.inf), kind="stable")[:MOST_DOUBTFUL]
    places = np.searchsorted(offsets, largest, side="right") - 1
    return tuple(
        Doubtful(_cell_text(release, asked[place], int(at - offsets[place])), *(float(one[at]) for one in found))
        for at, place in zip(largest, places, strict=True)
        if unsure[at]
    )


def _cell_text(release: Release, queries: Queries, at: int) -> str:
    """What a query is about."""
    columns = [release.schema.columns[i] for i in queries.scope]
    if not isinstance(queries, Marginal):
        return f"query {at + 1:,} of {', '.join(column.name for column in columns)}"
    codes = np.unravel_index(at, queries.shape)
    return ", ".join(
        f"{column.name} = {code_name(column, int(code))}" for column, code in zip(columns, codes, strict=True)
    )


def selection_of(queries: Sequence[Queries]) -> list[Queries]:
    """The queries, or an even selection of them if there are too many.

    Args:
        queries: the queries.
    """
    sizes = np.array([one.size for one in queries])
    step = max(1, -(-int(sizes.sum()) // MOST_ANSWERS))
    kept = list(queries[::step])
    within = np.cumsum([one.size for one in kept]) <= 4 * MOST_ANSWERS
    return [one for one, fits in zip(kept, within, strict=True) if fits] or [min(queries, key=lambda one: one.size)]


def _size_class(
    low: float, high: float, estimates: np.ndarray, unsure: np.ndarray, unknown: np.ndarray, widths: np.ndarray
) -> SizeClass:
    inside = (estimates >= low) & (estimates < high)
    known = widths[inside & ~unknown] / 2
    width = float(np.median(known)) if len(known) else float("nan")
    return SizeClass(low, high, int(inside.sum()), int(unsure[inside].sum()), int(unknown[inside].sum()), width)


def _safe_size(estimates: np.ndarray, unsure: np.ndarray) -> float | None:
    """The smallest answer from which on at least 95 % of the answers are not unsure."""
    order = np.argsort(-estimates, kind="stable")
    good = np.cumsum(~unsure[order]) / np.arange(1, len(order) + 1) >= 0.95
    last = np.flatnonzero(good)
    return float(estimates[order[last[-1]]]) if len(last) else None
