"""From noisy counts to columns: bounds that noise does not move far, and values with a label for the rest."""

from __future__ import annotations

import numpy as np
import pytest

from pointillist.data.columns import Categorical, Grid, Temporal
from pointillist.data.drafts.types import Hint
from pointillist.data.probes import CENTRE, EDGES, YEARS, _cells_of, _year_cell, years_of
from pointillist.discovering.columns import column_of_numbers, column_of_values, column_of_years, span
from pointillist.privacy.curator import Found

CELLS = 2 * len(EDGES) + 1


def counts_of(*numbers: float, rows: int = 1000) -> np.ndarray:
    counts = np.zeros(CELLS, np.int64)
    np.add.at(counts, _cells_of(np.array(numbers)), rows)
    return counts


def years(*found: int, rows: int = 1000) -> np.ndarray:
    counts = np.zeros(len(YEARS) + 1, np.int64)
    for year in found:
        counts[_year_cell(year)] += rows
    return counts


def test_the_span_is_that_of_cells_above_the_noise() -> None:
    noisy = np.array([3, -5, 100, 0, 50, 7])
    assert span(noisy, 10.0) == (2, 4)
    assert span(noisy, 100.0) is None
    assert span(np.array([0, 30, 30, 0, 1000, 0, 39, 39]), 10.0) == (1, 7)  # two weak neighbours together


def test_noise_alone_has_a_span_very_rarely() -> None:
    rng = np.random.default_rng(0)
    found = [span(np.rint(rng.normal(0, 50, CELLS)).astype(np.int64), 50.0) for _ in range(400)]
    assert sum(one is not None for one in found) <= 12


@pytest.mark.parametrize(
    ("numbers", "kind", "bounds", "scale", "points"),
    [
        ((17, 40, 90), "integer", (0, 200), "linear", ()),
        ((60, 90), "integer", (20, 200), "linear", ()),
        ((0, 7000), "integer", (0, 20000), "linear", (0,)),
        ((0,), "integer", (0, 1), "linear", ()),
        ((0, 1), "integer", (0, 5), "linear", ()),
        ((-30, 60), "number", (-100.0, 200.0), "linear", ()),
        ((-60, -90), "number", (-200.0, -20.0), "linear", ()),
        ((0.5, 100_000), "number", (0.0, 500_000.0), "log", ()),
        ((-100_000, 0.5), "number", (-500_000.0, 2.0), "signed-log", ()),
        ((1e14,), "number", (5e13, 5e14), "linear", ()),
        ((1e17,), "number", (5e14, 1e15), "linear", ()),
        ((1999, 2020), "integer", (0, 10_000), "linear", ()),
    ],
)
def test_bounds_of_numbers(
    numbers: tuple[float, ...], kind: str, bounds: tuple[float, float], scale: str, points: tuple[float, ...]
) -> None:
    drafted = column_of_numbers(Hint("x", kind), counts_of(*numbers), 10.0, written=True)
    column = drafted.column
    assert isinstance(column, Grid)
    assert (column.bounds, column.scale, column.points) == (bounds, scale, points)
    assert column.outside == "clamp"
    assert column.missing
    assert column.integer == (kind == "integer")
    assert "Bounds from noisy counts" in drafted.note


def test_whole_numbers_between_close_bounds_are_cells_of_their_own() -> None:
    column = column_of_numbers(Hint("x", "integer"), counts_of(1999, 2020), 10.0, written=False).column
    assert column is not None
    assert getattr(column, "size", 0) == 10_001 + 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "Int8", "float32", "decimal(6, 2)"])
def test_bounds_fit_the_type(dtype: str) -> None:
    kind = "integer" if "nt" in dtype else "number"
    column = column_of_numbers(Hint("x", kind, dtype=dtype), counts_of(-40.0, 90.0), 10.0, written=False).column
    assert isinstance(column, Grid)
    assert column.dtype == dtype
    assert column.bounds == {"int8": (-100, 127), "uint8": (0, 200), "Int8": (-100, 127)}.get(dtype, (-100.0, 200.0))


def test_too_few_rows_leave_a_column_out() -> None:
    for drafted in (
        column_of_numbers(Hint("x", "number"), counts_of(5.0, rows=10), 10.0, written=False),
        column_of_years(Hint("x", "date"), years(2020, rows=10), 10.0),
    ):
        assert drafted.column is None
        assert "too few rows for this budget" in drafted.note


def test_dates_and_timestamps() -> None:
    date = column_of_years(Hint("d", "date", format="%d.%m.%Y"), years(1990, 2020), 10.0).column
    assert isinstance(date, Temporal)
    assert date.bounds == ("1989-01-01", "2021-12-31")
    assert (date.format, date.dtype, date.outside, date.missing) == ("%d.%m.%Y", "string", "clamp", True)
    stamp = column_of_years(Hint("t", "timestamp", zone="UTC", dtype="timestamp[us, tz=UTC]"), years(2020), 10.0).column
    assert isinstance(stamp, Temporal)
    assert (stamp.unit, stamp.step, stamp.zone) == ("hour", "second", "UTC")
    long = column_of_years(Hint("t", "timestamp"), years(1800, 2020), 10.0).column
    assert isinstance(long, Temporal)
    assert long.unit == "day"
    first = column_of_years(Hint("d", "date"), years(500, 9000), 10.0).column
    assert isinstance(first, Temporal)
    assert first.bounds == (f"{years_of(1)[0]:04d}-01-01", f"{years_of(len(YEARS) - 1)[1]:04d}-12-31")


def test_durations() -> None:
    column = column_of_numbers(
        Hint("t", "duration", dtype="duration[s]"), counts_of(0, 5000), 10.0, written=False
    ).column
    assert isinstance(column, Temporal)
    assert (column.kind, column.unit) == ("duration", "minute")
    assert column.bounds == ("0:00:00", "5:34:00")


def found(values: tuple[str, ...], counts: tuple[int, ...], threshold: int = 100) -> Found:
    return Found("v", values, counts, 10.0, threshold)


def test_values_with_a_label_for_the_rest_that_none_of_them_has() -> None:
    drafted = column_of_values(Hint("v", "text"), found(("a", "b"), (600, 300)), 1000)
    assert drafted.column == Categorical("v", ("a", "b"), missing=True, other="other")
    assert "2 values with a noisy count of 100 or more, in about 90% of the rows" in drafted.note
    taken = column_of_values(Hint("v", "text"), found(("(other)", "a", "other"), (300,) * 3), 1000).column
    assert isinstance(taken, Categorical)
    assert taken.other == "((other))"


def test_spellings_of_missing_are_none_of_the_values() -> None:
    column = column_of_values(Hint("v", "text"), found(("?", "a"), (300, 600)), 1000).column
    assert isinstance(column, Categorical)
    assert (column.values, column.missing_values, column.missing_as) == (("a",), ("?",), "?")
    states = column_of_values(Hint("v", "text"), found(("AL", "CA", "NA"), (300,) * 3), 1000).column
    assert isinstance(states, Categorical)
    assert states.values == ("AL", "CA", "NA")


@pytest.mark.parametrize("one", [found((), ()), found(("a",), (40,))])
def test_free_text_and_identifiers_are_left_out(one: Found) -> None:
    drafted = column_of_values(Hint("v", "text"), one, 1000)
    assert drafted.column is None
    assert "no value is frequent enough to be shown (100 rows are needed" in drafted.note


def test_the_cell_of_zero_is_in_the_middle() -> None:
    assert CENTRE == CELLS // 2
