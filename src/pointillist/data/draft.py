"""Draft a schema from data. The values in it are not public knowledge until a person has reviewed them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import MISSING_NUMBERS
from pointillist.data.columns.clock import DAY, ticks_of, to_local
from pointillist.data.columns.numeric import WIDEST, holds_bins
from pointillist.data.columns.types import dtype_of
from pointillist.data.messages import column_called
from pointillist.data.schema import Categorical, Column, Numeric, Schema, Temporal
from pointillist.data.table import to_arrow
from pointillist.data.texts import distinct
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["draft_schema"]

MOST_VALUES = 1000
"""A string column with more distinct values is left out as an identifier; so is one with a new value in most rows."""
MOST_NUMBERS = 20
"""Integers with at most this many distinct values become a categorical column."""
BINS = 16


def draft_schema(data: Any) -> Schema:
    """Draft a schema that fits a table. It is marked as not reviewed, so it cannot be used as it is.

    Args:
        data: A pandas, polars or Arrow table.
    """
    arrow = to_arrow(data)
    check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
    columns: list[Column] = []
    ignore: list[str] = []
    for name in arrow.column_names:
        column = _draft_column(name, arrow.column(name))
        columns.append(column) if column is not None else ignore.append(name)
    return Schema(tuple(columns), reviewed=False, ignore=tuple(ignore))


def _draft_column(name: str, cells: pa.ChunkedArray) -> Column | None:
    """Return the column that fits the cells of a table's column, or None for an identifier."""
    import pyarrow as pa

    values, places, category = cells, None, pa.types.is_dictionary(cells.type)
    if category:
        values, places = distinct(cells)
        values = pa.chunked_array([values])
    if pa.types.is_temporal(values.type):
        return _draft_times(name, values)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_boolean(values.type):
        return Categorical(name, (False, True), missing=values.null_count > 0)
    is_string = pa.types.is_string(values.type)
    numbers = _as_numbers(values) if is_string else values
    if numbers is None:
        return _draft_texts(name, values, len(cells), "category" if category else "")
    kind = None if is_string else np.dtype(values.type.to_pandas_dtype())
    return _draft_numbers(name, numbers if places is None else numbers.take(pa.array(places)), kind)


def _draft_times(name: str, times: pa.ChunkedArray) -> Column | None:
    """Return a column with bounds of whole years for dates and timestamps, of whole days for durations."""
    import pyarrow as pa

    kind, missing = times.type, times.null_count > 0
    dtype = dtype_of(kind)
    if pa.types.is_time(kind):
        return Temporal(name, "time", missing=missing, dtype=dtype, step="second")
    found = pa.concat_arrays(times.chunks).drop_null() if times.chunks else pa.array([], kind)
    if len(found) == 0:
        return None
    ticks = to_local(ticks_of(found), getattr(kind, "tz", None) or "")
    low, high = int(ticks.min()), int(ticks.max())
    if pa.types.is_duration(kind):
        days = [f"{low // DAY} days", f"{-(-high // DAY) or 1} days"]
        return Temporal(name, "duration", (days[0], days[1]), step="second", missing=missing, dtype=dtype)
    years = np.array([low, high]).astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    bounds = (f"{years[0]:04d}-01-01", f"{years[1]:04d}-12-31")
    if not np.any(ticks % DAY) and getattr(kind, "tz", None) is None:
        return Temporal(name, "date", bounds, missing=missing, dtype=dtype)
    return Temporal(name, "timestamp", bounds, step="second", zone=kind.tz or "", missing=missing, dtype=dtype)


def _draft_texts(name: str, texts: pa.ChunkedArray, rows: int, dtype: str) -> Column | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        strings = pc.unique(texts)
    except pa.ArrowException:  # more than 2 GiB of different texts
        return None
    if len(strings) > MOST_VALUES + 2:
        return None
    values = tuple(sorted(v for v in strings.to_pylist() if v))
    missing = strings.null_count > 0 or "" in strings.to_pylist()
    if len(values) > MOST_VALUES or len(values) > max(MOST_NUMBERS, rows / 2):
        return None
    _two_values(name, len(values) + missing)
    return Categorical(name, values, missing=missing, dtype=dtype)


def _draft_numbers(name: str, numbers: pa.ChunkedArray, kind: np.dtype[Any] | None) -> Column:
    """Return a list of whole numbers if they are few, else bins; ``kind`` is their type, None if they were text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = bool(pc.any(pc.is_null(numbers, nan_is_null=True)).as_py())
    x = pc.cast(numbers, pa.float64(), safe=False).drop_null().to_numpy(zero_copy_only=False)
    every = x[np.isfinite(x)]
    distinct_numbers = np.unique(every)
    _two_values(name, len(distinct_numbers) + missing)
    widest = float(np.abs(every).max(initial=0.0))
    hint = "change their unit, or drop the column from the file"
    rule = f"must hold numbers in -{WIDEST / 2:g} .. {WIDEST / 2:g}"
    check(widest <= WIDEST / 2, column_called(name), Shown("larger ones"), rule, hint)
    integer = bool(np.all(distinct_numbers == np.floor(distinct_numbers)) and widest < 2**53)
    dtype = "" if kind is None or kind.name == ("int64" if integer else "float64") else kind.name
    if integer and len(distinct_numbers) <= MOST_NUMBERS:
        return Categorical(name, tuple(int(v) for v in distinct_numbers), ordered=True, missing=missing, dtype=dtype)
    edges = _nice_edges(every, integer)
    if kind is not None and kind.kind in "iu":  # rounding must not leave the range of the type
        limits = np.iinfo(kind)
        edges = tuple(sorted({min(max(e, float(limits.min)), float(limits.max)) for e in edges}))
    dtype = dtype if holds_bins(dtype, edges, integer) else ""
    return Numeric(name, edges, integer=integer, missing=missing, dtype=dtype)


def _two_values(name: str, count: int) -> None:
    hint = "drop the column from the file, or write its schema by hand"
    check(count >= 2, column_called(name), count, "must have at least two values", hint)


def _as_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a string column as numbers, or None if a cell is not a number or has leading zeros ("01234")."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts)
    is_missing = pc.is_in(texts, value_set=pa.array(MISSING_NUMBERS))
    texts = pc.if_else(is_missing, pa.scalar(None, pa.string()), texts)
    number = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
    if texts.null_count == len(texts) or not pc.all(pc.match_substring_regex(texts, number)).as_py():
        return None
    return pc.cast(texts, pa.float64())


def _nice_edges(x: np.ndarray, integer: bool) -> tuple[float, ...]:
    """Return the edges of about 16 bins with similar counts, rounded to two digits of themselves or of their range."""
    low, high = float(x.min()), float(x.max())
    if low == high:  # all values that are not missing
        return min(0.0, 2 * low), max(0.0, 2 * low)
    first, last = (_round(end, high - low, integer, to) for end, to in ((low, math.floor), (high, math.ceil)))
    outer = min(first, low), max(last, high)  # the bins cover the data even after rounding
    for values in (x, np.unique(x), np.array(outer)):  # the later ones if most numbers are the same
        inner = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
        edges = {_round(float(q), high - low, integer, round) for q in inner}
        edges = {*outer, *(e for e in edges if low < e < high)}
        if len(edges) >= 4:
            break
    if len(edges) < 3:  # numbers too close to each other to be rounded: the upper half begins a bin
        upper = float(np.unique(x)[len(np.unique(x)) // 2])
        edges = {outer[0], upper, outer[1] if upper < outer[1] else float(np.nextafter(upper, np.inf))}
    return tuple(sorted(edges))


def _round(x: float, span: float, integer: bool, to_whole: Callable[[float], int]) -> float:
    """Round ``x`` with ``to_whole`` to two digits of itself or of ``span``, whichever keeps more digits."""
    digit = min(math.floor(math.log10(abs(size))) - 1 for size in (x or span, span))
    digit = max(digit, 0 if integer else -300)
    return float(to_whole(x / 10**digit) * 10**digit) if digit >= 0 else to_whole(x * 10**-digit) / 10**-digit
