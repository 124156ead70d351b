"""From noisy counts to columns of a schema. All of it is post-processing: it sees no data.

A cell of a public grid is taken to hold rows if its noisy count is more than some standard deviations of the noise
above 0, or if this is true of some neighbouring cells together. Bounds are the outer edges of the outermost such cells,
moved outwards by one more cell, so that what is too rare to be seen is not cut off at once.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np

from pointillist.data.columns import Discovered, Grid, Temporal
from pointillist.data.columns.types import NULLABLE
from pointillist.data.drafts.parts import Drafted, own_type
from pointillist.data.drafts.types import Hint
from pointillist.data.opening import listed_column
from pointillist.data.probes import CENTRE, EDGES, OWN_SPELLINGS, YEARS, number_cell, years_of
from pointillist.errors import InputError
from pointillist.privacy.curator import Found

__all__ = ["DEVIATIONS", "column_of_numbers", "column_of_values", "column_of_years", "span"]

DEVIATIONS = 4.0
"""A noisy count above this many standard deviations is taken to be more than noise."""

WIDTHS = (1, 2, 4)
"""Numbers of neighbouring cells that are looked at together."""

LONG = 1e4
"""Numbers that span more than this factor get a logarithmic grid."""

NEAR_ZERO = 20.0
"""A bound that is closer to 0 than the other one by this factor is moved to 0."""

MOST_SINGLE = 20_000
"""Whole numbers between closer bounds are cells of their own, so that years and codes keep their digits."""

POINT = 0.02
"""The share of the rows from which on 0 is a value of its own."""

FEW = 0.05
"""Discovered values that cover a smaller share of the rows are not worth a column."""

RARE = "too few rows for this budget to tell its bounds; use a larger epsilon, or give its bounds by hand"


def span(noisy: np.ndarray, sigma: float) -> tuple[int, int] | None:
    """The first and the last cell that hold rows, as far as noisy counts can tell; None if none does.

    Args:
        noisy: the noisy counts of neighbouring cells.
        sigma: the standard deviation of their noise.
    """
    first, last = len(noisy), -1
    for width in WIDTHS:
        sums = np.convolve(noisy, np.ones(width, np.int64), "valid")
        starts = np.flatnonzero(sums > DEVIATIONS * sigma * math.sqrt(width))
        below, above = starts[starts + width <= first], starts[starts > last]
        first, last = int(below.min(initial=first)), int((above + width - 1).max(initial=last))
    return None if last < 0 else (first, last)


def column_of_numbers(hint: Hint, noisy: np.ndarray, sigma: float, written: bool) -> Drafted:
    """A column of numbers between bounds.

    Args:
        hint: the column; its kind is "integer", "number" or "duration" (in seconds).
        noisy: the noisy counts of the cells of the grid of numbers.
        sigma: the standard deviation of their noise.
        written: whether the numbers are written as text, so that missing ones have spellings.
    """
    found = span(noisy, sigma)
    if found is None:
        return Drafted(None, RARE)
    low, high = _outwards(*found)
    if hint.kind == "duration":
        return _durations(hint, low, high)
    words: dict[str, Any] = {"missing": True, "outside": "clamp", "integer": hint.kind == "integer"}
    if words["integer"]:
        low, high = math.floor(low), math.ceil(high)
    if written:
        words["missing_values"] = OWN_SPELLINGS
    sizes = [abs(edge) for cell in found for edge in number_cell(cell) if edge]
    if sizes and max(sizes) >= LONG * max(min(sizes), 1.0 if words["integer"] else 0.0):
        words["scale"] = "log" if low >= 0 else "signed-log"
    strong = np.maximum(noisy, 0)[noisy > DEVIATIONS * sigma].sum()
    if low <= 0 <= high and noisy[CENTRE] > max(DEVIATIONS * sigma, POINT * strong) and high - low > 100:
        words["points"] = (0,)
    if words["integer"] and high - low < MOST_SINGLE:
        words["cells"] = max(1024, int(high - low) + 1)
    dtype = own_type(hint.dtype, "int64" if words["integer"] else "float64")
    kept = _within(dtype, low, high)
    column = _first(lambda: Grid(hint.name, kept, dtype=dtype, **words), lambda: Grid(hint.name, (low, high), **words))
    ends = f"{kept[0]:,.10g} to {kept[1]:,.10g}"
    note = f"Bounds from noisy counts: {ends}. Numbers outside, if any, are moved to the bounds."
    if not words["integer"]:
        note += "\nIf all of them have two decimals, as money has, add step = 0.01."
    return Drafted(column, note if column is not None else RARE)


def _outwards(first: int, last: int) -> tuple[float, float]:
    """Bounds one cell further out. 0 is not crossed, and is a bound if the other one is much further away."""
    low = max(first - 1, CENTRE) if first >= CENTRE else max(first - 1, 0)
    high = min(last + 1, CENTRE) if last < CENTRE else min(last + 1, 2 * len(EDGES))
    lowest, highest = number_cell(low)[0], number_cell(high)[1]
    if last == CENTRE:
        return lowest, max(highest, lowest + 1.0)
    if 0 < lowest <= highest / NEAR_ZERO:
        return 0.0, highest
    return (lowest, 0.0) if lowest / NEAR_ZERO <= highest < 0 else (lowest, highest)


def _within(dtype: str, low: float, high: float) -> tuple[float, float]:
    """Bounds that a type of whole numbers can hold."""
    plain = NULLABLE.get(dtype, dtype)
    if plain.startswith(("int", "uint")):
        limits = np.iinfo(plain)
        return max(low, int(limits.min)), min(high, int(limits.max))
    return low, high


def _durations(hint: Hint, low: float, high: float) -> Drafted:
    unit, size = next((one for one in (("minute", 60), ("hour", 3600)) if (high - low) / one[1] < 1e5), ("day", 86400))
    ends = math.floor(low / size) * size, math.ceil(high / size) * size
    bounds = tuple(str(dt.timedelta(seconds=end)) for end in ends)
    words: dict[str, Any] = {"kind": "duration", "bounds": bounds, "unit": unit, "missing": True, "outside": "clamp"}
    column = _first(lambda: Temporal(hint.name, dtype=hint.dtype, **words), lambda: Temporal(hint.name, **words))
    note = f"Bounds from noisy counts: {bounds[0]} to {bounds[1]}. Durations outside are moved to the bounds."
    return Drafted(column, note if column is not None else RARE)


def column_of_years(hint: Hint, noisy: np.ndarray, sigma: float) -> Drafted:
    """A column of dates or timestamps between bounds.

    Args:
        hint: the column; its kind is "date" or "timestamp", and its format that of texts.
        noisy: the noisy counts of the cells of years.
        sigma: the standard deviation of their noise.
    """
    found = span(noisy, sigma)
    if found is None:
        return Drafted(None, RARE)
    first, last = years_of(max(found[0] - 1, 1))[0], years_of(min(found[1] + 1, len(YEARS) - 1))[1]
    bounds = f"{first:04d}-01-01", f"{last:04d}-12-31"
    words: dict[str, Any] = {"kind": hint.kind, "bounds": bounds, "missing": True, "outside": "clamp"}
    words |= {"zone": hint.zone, "format": hint.format}
    if hint.kind == "timestamp":
        step = "minute" if hint.format.endswith("%M") else "second"
        words |= {"unit": "hour" if last - first < 100 else "day", "step": step}
    dtype = "string" if hint.format else hint.dtype
    if hint.format:
        words["missing_values"] = OWN_SPELLINGS
    column = _first(lambda: Temporal(hint.name, dtype=dtype, **words), lambda: Temporal(hint.name, **words))
    written = f", written as {hint.format}" if hint.format else ""
    note = f"Bounds from noisy counts: {bounds[0]} to {bounds[1]}{written}. Dates outside are moved to the bounds."
    return Drafted(column, note if column is not None else RARE)


def column_of_values(hint: Hint, found: Found, total: int) -> Drafted:
    """A column with the values that were discovered; all others become one.

    Args:
        hint: the column.
        found: its frequent values, with noisy counts.
        total: the number of rows, public or noisy.
    """
    dtype = own_type(hint.dtype, "string")
    column = _first(
        lambda: listed_column(Discovered(hint.name, dtype=dtype), found.values),
        lambda: listed_column(Discovered(hint.name), found.values),
    )
    texts = () if column is None else column.values
    covered = sum(found.counts) / max(total, 1)
    if not texts or covered < FEW:
        seen = f"a few cover about {max(covered, 0):.0%} of the rows" if texts else "none"
        rule = f"no value is frequent enough to be shown ({found.threshold:,} rows are needed; {seen})"
        return Drafted(None, f"{rule}: free text, identifiers, or too small a budget")
    called = "value" if len(texts) == 1 else "values"
    note = (
        f"The {len(texts):,} {called} with a noisy count of {found.threshold:,} or more, "
        f"in about {min(covered, 1):.0%} of the rows. All others become {column.other!r}."
    )
    return Drafted(column, note)


def _first(*attempts: Any) -> Any:
    """The first column that can be made; None if there is none."""
    for attempt in attempts:
        try:
            return attempt()
        except InputError:
            continue
    return None
