"""Draft columns of numbers: wide round bounds, steps, heavy tails, values that stand out, times written as hhmm."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.columns import Categorical, Column, Constant, Grid, Identifier, Temporal
from pointillist.data.columns.numeric import WIDEST
from pointillist.data.columns.types import decimals_of
from pointillist.data.drafts.parts import MOST_FEW, Drafted, first_that_fits, named_like_an_id, own_type
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["draft_numbers", "nice_above", "wide_bounds"]

MISSING_CODES = (-9.0, -99.0, -999.0, -9999.0)
"""Numbers that mean "missing" if no other number of the column is negative."""
MOST_DECIMALS = 4
MOST_WHOLE = 2**53
"""Below it every whole number is a floating-point number."""
FEW_CELLS = 1024
"""With at most this many steps between the bounds, every number is a cell of its own."""
HEAVY = 20
"""A tail is heavy if the largest number is more than this many times the median."""
STANDS_OUT = 0.05
"""A number that this share of the rows has is a point of its own."""
ABOVE_OTHERS = 3
"""A point is this many times as frequent as the numbers next to it."""
MOST_POINTS = 4


KNOWN = (
    (r"(^|_)(age|years_old)$", 0, 120),
    (r"(^|_)minutes?$", 0, 59),
    (r"(^|_)hours?$", 0, 24),
    (r"(^|_)day(_of_month)?$|^mday$", 1, 31),
    (r"(^|_)(lat|latitude)$", -90, 90),
    (r"(^|_)(lon|lng|long|longitude)$", -180, 180),
    (r"percent|(^|_)pct($|_)", 0, 100),
)
"""Bounds that the name of a column suggests."""


def draft_numbers(
    name: str,
    cells: pa.ChunkedArray,
    numbers: pa.ChunkedArray,
    dtype: str,
    gaps: Sequence[str] = (),
    written: int | None = None,
) -> Drafted:
    """Draft a column of numbers.

    Args:
        name: The name of the column.
        cells: Its cells, in plain types.
        numbers: The same as 64-bit floating-point numbers, null where one is missing.
        dtype: The name of their type; empty if they were text.
        gaps: Spellings of missing values among the cells that are not usual for numbers.
        written: The number of decimals with which all of them are written; None if that is not the same for all.
    """
    import pyarrow.compute as pc

    missing = bool(pc.any(pc.is_null(numbers, nan_is_null=True)).as_py())
    x = numbers.drop_null().to_numpy(zero_copy_only=False)
    x = x[~np.isnan(x)]
    if not len(x):
        return Drafted(Constant(name, None, dtype), "Every cell is missing: kept as a constant.")
    largest = float(np.abs(x).max(initial=0.0))
    if largest == math.inf:
        return Drafted(None, "it holds infinite numbers; make them missing, or give them a number of their own")
    if largest > WIDEST / 2:
        return Drafted(None, f"it holds numbers beyond {WIDEST / 2:g}; change their unit")
    different, counts = np.unique(x, return_counts=True)
    if dtype == "float32":  # 0.1 as it is written, not as 64 bits hold it
        different = np.array([float(str(one)) for one in different.astype(np.float32)])
    notes: list[str] = []
    back: dict[str, str] = {}
    if len(different) > 2 and different[0] in MISSING_CODES and different[1] >= 0:
        code = str(int(different[0]))
        notes.append(f"Assumed that {code}, the only negative number, means missing. Check it.")
        back = {} if missing or gaps else {"missing_as": code}
        missing, gaps = True, (*gaps, code)
        x, different, counts = x[x >= 0], different[1:], counts[1:]
    gap_words: dict[str, Any] = {"missing": missing, "missing_values": tuple(gaps), **back}
    if largest >= MOST_WHOLE and np.all(different % 1 == 0) and dtype not in ("float32", "float64", "Float64"):
        return Drafted(None, f"it holds whole numbers from {MOST_WHOLE:,} on, as identifiers are, which are not exact")
    decimals = _decimals(different)
    integer = decimals == 0 and largest < MOST_WHOLE
    if integer and not missing and _is_sequence(name, x, len(different)):
        note = "Row numbers or identifiers: never read, and made again as 1, 2, 3, ..."
        return Drafted(Identifier(name, dtype=dtype if dtype in ("int32", "uint32", "uint64") else ""), note)
    if integer and (column := _draft_whole(name, cells, different, len(x), dtype, gap_words, notes)) is not None:
        return Drafted(column, "\n".join(notes))
    drafted = _draft_grid(name, cells, x, (different, counts), decimals, dtype, gap_words, notes)
    if written is not None and isinstance(drafted.column, Grid):
        return _with_decimals(drafted.column, written, notes)
    return drafted


def _with_decimals(column: Grid, written: int, notes: Sequence[str]) -> Drafted:
    """Return the column with the number of decimals that all numbers of the file have, if it can have them."""
    try:
        column = replace(column, decimals=written)
        notes = [*notes, f"Every number is written with {written} {'decimal' if written == 1 else 'decimals'}."]
    except InputError:
        pass  # written with more decimals than a grid keeps
    return Drafted(column, "\n".join(notes))


def _draft_whole(
    name: str,
    cells: pa.ChunkedArray,
    different: np.ndarray,
    rows: int,
    dtype: str,
    gap_words: dict[str, Any],
    notes: list[str],
) -> Column | None:
    """Return times for whole numbers that look like them, or a list of few whole numbers; None for others."""
    if _is_hhmm(name, different):
        column = first_that_fits(cells, lambda: Temporal(name, kind="time", format="hhmm", **gap_words))
        if column is not None:
            notes.append("Whole numbers such as 1359, and a name with 'time': assumed to be times written as hhmm.")
            notes.append('Check it; if they are plain numbers, write type = "numeric" and bounds instead.')
            return column
    if not _are_few(different, rows):
        return None
    listed = tuple(int(one) for one in different)
    notes.append("The few whole numbers that occur. Check that every number that could occur is listed.")
    return first_that_fits(
        cells,
        lambda: Categorical(name, listed, ordered=True, dtype=own_type(dtype, "int64"), **gap_words),
        lambda: Categorical(name, listed, ordered=True, **gap_words),
    )


def _draft_grid(
    name: str,
    cells: pa.ChunkedArray,
    x: np.ndarray,
    counted: tuple[np.ndarray, np.ndarray],
    decimals: int | None,
    dtype: str,
    gap_words: dict[str, Any],
    notes: list[str],
) -> Drafted:
    different, counts = counted
    low, high = _inside(dtype, *_known_bounds(name, float(different[0]), float(different[-1])))
    integer = decimals == 0 and max(abs(low), abs(high)) < MOST_WHOLE
    step = None if decimals in (None, 0) else 10.0**-decimals
    step = None if step is None else float(f"1e-{decimals}")
    size = (high - low) / (step or 1) if decimals is not None else math.inf
    scale = _scale(x, low, size)
    points = _points(different, counts)
    own = own_type(dtype, "int64" if integer else "float64")
    whole: dict[str, Any] = {"bounds": (low, high), "integer": integer, **gap_words}
    attempts = [
        lambda more=more: Grid(name, **whole, **more)
        for more in (
            {"step": step, "scale": scale, "points": points, "dtype": own},
            {"step": step, "scale": scale, "points": points},
            {"scale": scale, "points": points, "dtype": own},
            {"scale": scale, "points": points},
            {"scale": scale},
            {},
        )
    ]
    column = first_that_fits(cells, *attempts)
    if column is None:
        return Drafted(None, "its numbers fit no grid; change their unit")
    notes += _grid_notes(column, different)
    return Drafted(column, "\n".join(notes))


def _grid_notes(column: Any, different: np.ndarray) -> list[str]:
    low, high = column.bounds
    notes = [
        f"The bounds {low:,g} .. {high:,g} are wide round ones around the data. Check that no number can be outside,"
    ]
    notes.append('or write outside = "clamp" or "own".')
    if column.step is not None and not column.integer:
        decimals = -int(math.log10(column.step))
        notes.append(f"Every number has at most {decimals} {'decimal' if decimals == 1 else 'decimals'}.")
    if column.scale != "linear":
        notes.append("Heavy tail: cells grow with the numbers.")
    if column.points:
        notes.append("The points are numbers that many rows have. Check that they are known to stand out.")
    multiple = _common_multiple(different, column.step or 1) if column.integer or column.step else None
    if multiple is not None:
        notes.append(f"Every number is a multiple of {multiple:g}: write step = {multiple:g} if that is a rule.")
    return notes


def nice_above(x: float) -> float:
    """Return the smallest of ..., 1, 2, 5, 10, 20, 50, 100, ... that is not below a positive number.

    Args:
        x: The number.
    """
    power = math.floor(math.log10(x))
    return next(nice for nice in (float(f"{m}e{power}") for m in (1, 2, 5, 10, 20)) if nice >= x)


def wide_bounds(low: float, high: float) -> tuple[float, float]:
    """Return round numbers around a range, from 0 unless the range is far from it, with room for other data.

    Args:
        low: The smallest number.
        high: The largest number.
    """
    if low == high == 0:
        return 0.0, 1.0
    if low < 0 < high:
        return -nice_above(-low), nice_above(high)
    if high <= 0:
        below, above = wide_bounds(-high, -low)
        return -above + 0.0, -below + 0.0
    if low <= high / 2:
        return 0.0, nice_above(high)
    span = high - low or high
    unit = Decimal(repr(nice_above(span))) / 10
    first = math.floor((Decimal(low) - Decimal(span) / 4) / unit)
    last = math.ceil((Decimal(high) + Decimal(span) / 4) / unit)
    return float(max(first, 0) * unit), float(last * unit)


def _known_bounds(name: str, low: float, high: float) -> tuple[float, float]:
    """Return the bounds that a name suggests if the numbers are inside of them, or else wide ones."""
    words = re.sub(r"\W+", "_", name.strip().lower())
    for pattern, first, last in KNOWN:
        if re.search(pattern, words) and first <= low and high <= last:
            return float(first), float(last)
    return wide_bounds(low, high)


def _inside(dtype: str, low: float, high: float) -> tuple[float, float]:
    """Return bounds inside the range of a type of whole numbers or of decimals."""
    if (digits := decimals_of(dtype)) is not None:
        largest = float((Decimal(10) ** digits[0] - 1).scaleb(-digits[1]))
        return max(low, -largest), min(high, largest)
    try:
        kind = np.dtype(dtype.lower() or "float64")
    except (TypeError, ValueError):
        return low, high
    if kind.kind not in "iu":
        return low, high
    limits = np.iinfo(kind)
    return max(low, float(limits.min)), min(high, float(limits.max))


def _decimals(different: np.ndarray) -> int | None:
    """Return the number of decimals of all numbers; None if that is more than a few."""
    for decimals in range(MOST_DECIMALS + 1):
        scaled = different * 10.0**decimals
        if np.all(np.abs(scaled - np.rint(scaled)) <= (4 * np.spacing(np.abs(scaled)) if decimals else 0)):
            return decimals
    return None


def _is_sequence(name: str, x: np.ndarray, different: int) -> bool:
    """Return whether all numbers are different, and either count up by one or have the name of an id."""
    if len(x) <= MOST_FEW or different < len(x):
        return False
    return bool(np.all(np.diff(x) == 1)) or named_like_an_id(name)


def _is_hhmm(name: str, different: np.ndarray) -> bool:
    """Return whether numbers can be times such as 1359: by their name, their minutes, and their spread."""
    valid = different[0] >= 0 and different[-1] <= 2400 and bool(np.all(different % 100 < 60))
    spread = len(different) > MOST_FEW and different[-1] >= 1000
    return bool(valid and spread and re.search("time|hhmm", name.lower()))


def _are_few(different: np.ndarray, rows: int) -> bool:
    """Return whether whole numbers are better listed: few, and close to each other or each in many rows."""
    few = MOST_FEW if bool(np.all(np.diff(different) == 1)) else MOST_FEW // 2
    close = different[-1] - different[0] < 10 * MOST_FEW
    return len(different) <= few and bool(close or rows >= 10 * len(different))


def _scale(x: np.ndarray, low: float, size: float) -> str:
    sizes = np.abs(x[x != 0])
    if size <= FEW_CELLS or not len(sizes) or sizes.max() <= HEAVY * np.median(sizes):
        return "linear"
    return "log" if low >= 0 else "signed-log"


def _points(different: np.ndarray, counts: np.ndarray) -> tuple[float, ...]:
    """Return the numbers that many rows have, and far more than the numbers next to them."""
    if len(different) <= MOST_FEW:
        return ()
    padded = np.concatenate([[0], counts, [0]])
    beside = np.maximum(padded[:-2], padded[2:])
    beside[[0, -1]] = counts[[1, -2]]
    found = np.flatnonzero((counts >= STANDS_OUT * counts.sum()) & (counts >= ABOVE_OTHERS * beside))
    best = found[np.argsort(-counts[found], kind="stable")][:MOST_POINTS]
    return tuple(sorted(float(one) for one in different[best]))


def _common_multiple(different: np.ndarray, step: float) -> float | None:
    """Return the largest round number of which all numbers are multiples, if it is more than a step."""
    for multiple in (1000.0, 500.0, 100.0, 50.0, 25.0, 10.0, 5.0, 2.0, 0.5, 0.25, 0.2, 0.1, 0.05):
        if multiple > step * 1.5:
            scaled = different / multiple
            if np.all(np.abs(scaled - np.rint(scaled)) < 1e-9 * np.maximum(1, np.abs(scaled))):
                return multiple
    return None
