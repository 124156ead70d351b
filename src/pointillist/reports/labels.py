"""What the bars of a chart stand for: values, or groups of neighbouring or of rare ones, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.columns import Column, Grid, Numeric, Temporal
from pointillist.data.columns.merged import Merged
from pointillist.evaluation.values import MISSING, cell_name

__all__ = ["Bars", "bars_of", "code_name", "span_name"]

MOST_BARS = 12
"""The most bars of a chart, missing values not counted."""


@dataclass(frozen=True)
class Bars:
    """How the codes of a column are shown.

    Attributes:
        groups: the bar of each code.
        names: what the bars stand for.
        note: what was put together; empty if every code has its own bar.
    """

    groups: tuple[int, ...]
    names: tuple[str, ...]
    note: str = ""


def bars_of(column: Column, shares: np.ndarray, most: int = MOST_BARS) -> Bars:
    """The bars of a column: in their order if it has one, else the most common values first.

    Args:
        column: the column.
        shares: the synthetic shares of its codes.
        most: the most bars for values that are not missing.
    """
    values = column.size - int(column.missing)
    arrange = _neighbours if column.ordered else _common
    groups, names, note = arrange(column, shares[:values], most)
    if column.missing:
        groups, names = (*groups, len(names)), (*names, MISSING)
    return Bars(groups, names, note)


def _neighbours(column: Column, shares: np.ndarray, most: int) -> tuple[tuple[int, ...], tuple[str, ...], str]:
    """Neighbouring codes share a bar where there are too many, so that bars have similar shares."""
    count = len(shares)
    if count <= most:
        return tuple(range(count)), tuple(span_name(column, n, n) for n in range(count)), ""
    before = np.cumsum(shares) - shares / 2
    groups = np.unique(
        np.minimum((before / max(shares.sum(), 1e-300) * most).astype(int), most - 1), return_inverse=True
    )[1]
    ends = [
        (int(np.flatnonzero(groups == g)[0]), int(np.flatnonzero(groups == g)[-1])) for g in range(groups.max() + 1)
    ]
    names = tuple(span_name(column, *end) for end in ends)
    return tuple(groups.tolist()), names, f"{count:,} neighbouring values or groups are shown as {len(names)} bars."


def _common(column: Column, shares: np.ndarray, most: int) -> tuple[tuple[int, ...], tuple[str, ...], str]:
    """The most common values have a bar each, all others one together."""
    order, count = np.argsort(-shares, kind="stable"), len(shares)
    own = count if count <= most else most - 1
    groups = np.full(count, own)
    groups[order[:own]] = np.arange(own)
    names = tuple(cell_name(column, int(code)) for code in order[:own])
    if own == count:
        return tuple(groups.tolist()), names, ""
    rest = f"{count - own:,} other values"
    return tuple(groups.tolist()), (*names, rest), f"{rest} share a bar."


def code_name(column: Column, code: int) -> str:
    """What one code of a column stands for.

    Args:
        column: the column.
        code: the code.
    """
    missing = column.missing and code == column.size - 1
    return cell_name(column, code) if missing or not column.ordered else span_name(column, code, code)


def span_name(column: Column, first: int, last: int) -> str:
    """What neighbouring codes of an ordered column stand for.

    Args:
        column: the column.
        first: the first code.
        last: the last one.
    """
    if isinstance(column, Merged):
        codes = np.flatnonzero((column.lookup >= first) & (column.lookup <= last))
        return span_name(column.base, int(codes[0]), int(codes[-1])) if column.ordered else cell_name(column, first)
    if isinstance(column, Numeric):
        return _bin_name(column, first, last)
    if isinstance(column, Temporal) and column.bins in ("weekday", "month of year", "hour of day"):
        return _joined(*(f"{column.bins} {code + 1}" for code in (first, last)))
    if isinstance(column, Grid | Temporal):
        return _joined(_end(column, first, 0.0), _end(column, last, 1.0))
    return _joined(cell_name(column, first), cell_name(column, last))


def _joined(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _bin_name(column: Numeric, first: int, last: int) -> str:
    low, high = column.edges[first], column.edges[last + 1]
    final = last + 2 == len(column.edges)
    if column.integer and low == int(low) and high == int(high):
        return _joined(_number(low), _number(high if final else high - 1))
    return f"{_number(low)} to {_number(high)}" if final else f"{_number(low)} to below {_number(high)}"


class _Edge:
    """In place of a random generator: always the lower or the upper end of a cell."""

    def __init__(self, place: float) -> None:
        self.place = min(place, float(np.nextafter(1.0, 0.0)))

    def random(self, size: int) -> np.ndarray:
        return np.full(size, self.place)


def _end(column: Grid | Temporal, code: int, place: float) -> str:
    """The smallest (place 0) or the largest (place 1) value of a code."""
    edge: Any = _Edge(place)
    value = column.decode(np.array([code]), edge)[0].as_py()
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float) -> str:
    return f"{value:,.10g}" if abs(value) < 1e12 else f"{value:.6g}"
