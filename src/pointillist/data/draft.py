"""Draft a schema from data. The values in it are not public knowledge until a person has reviewed them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import MISSING_NUMBERS
from pointillist.data.columns.numeric import holds_bins
from pointillist.data.schema import Categorical, Column, Numeric, Schema
from pointillist.data.table import as_arrow, to_arrow
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
    import pyarrow as pa

    raw = as_arrow(data)
    arrow = to_arrow(raw)
    check(arrow.num_rows > 0, "table", Shown("0 rows"), "must have rows", "check the file")
    dictionaries = {field.name for field in raw.schema if pa.types.is_dictionary(field.type)}
    columns: list[Column] = []
    ignore: list[str] = []
    for name in arrow.column_names:
        column = _draft_column(name, arrow.column(name).combine_chunks(), name in dictionaries)
        columns.append(column) if column is not None else ignore.append(name)
    return Schema(tuple(columns), reviewed=False, ignore=tuple(ignore))


def _draft_column(name: str, array: pa.Array, category: bool) -> Column | None:
    """Return the column that fits an array, or None for an identifier."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(array.type):
        return Categorical(name, (False, True), missing=array.null_count > 0)
    is_string = pa.types.is_string(array.type)
    numbers = _as_numbers(array) if is_string else array
    if numbers is None:
        strings = pc.unique(array).to_pylist()
        values = tuple(sorted(v for v in strings if v))
        missing = None in strings or "" in strings
        if len(values) > MOST_VALUES or len(values) > max(MOST_NUMBERS, len(array) / 2):
            return None
        _two_values(name, len(values) + missing)
        return Categorical(name, values, missing=missing, dtype="category" if category else "")
    dtype = "" if is_string else np.dtype(array.type.to_pandas_dtype()).name
    missing = bool(pc.any(pc.is_null(numbers, nan_is_null=True)).as_py())
    x = pc.cast(numbers, pa.float64(), safe=False).drop_null().to_numpy(zero_copy_only=False)
    every = x[np.isfinite(x)]
    distinct = np.unique(every)
    _two_values(name, len(distinct) + missing)
    integer = bool(np.all(distinct == np.floor(distinct)) and np.all(np.abs(distinct) < 2**53))
    dtype = "" if dtype == ("int64" if integer else "float64") else dtype
    if integer and len(distinct) <= MOST_NUMBERS:
        return Categorical(name, tuple(int(v) for v in distinct), ordered=True, missing=missing, dtype=dtype)
    edges = _nice_edges(every, integer)
    if pa.types.is_integer(array.type):  # rounding must not leave the range of the type
        limits = np.iinfo(array.type.to_pandas_dtype())
        edges = tuple(sorted({min(max(e, float(limits.min)), float(limits.max)) for e in edges}))
    dtype = dtype if holds_bins(dtype, edges, integer) else ""
    return Numeric(name, edges, integer=integer, missing=missing, dtype=dtype)


def _two_values(name: str, count: int) -> None:
    hint = "drop the column from the file, or write its schema by hand"
    check(count >= 2, f"column {name!r}", count, "must have at least two values", hint)


def _as_numbers(array: pa.Array) -> pa.Array | None:
    """Return a string column as numbers, or None if a cell is not a number or has leading zeros ("01234")."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pc.utf8_trim_whitespace(array)
    is_missing = pc.is_in(array, value_set=pa.array(MISSING_NUMBERS))
    array = pc.if_else(is_missing, pa.scalar(None, pa.string()), array)
    number = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
    if array.null_count == len(array) or not pc.all(pc.match_substring_regex(array, number)).as_py():
        return None
    return pc.cast(array, pa.float64())


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
    return tuple(sorted(edges))


def _round(x: float, span: float, integer: bool, to_whole: Callable[[float], int]) -> float:
    """Round ``x`` with ``to_whole`` to two digits of itself or of ``span``, whichever keeps more digits."""
    digit = min(math.floor(math.log10(abs(size))) - 1 for size in (x or span, span))
    digit = max(digit, 0 if integer else -300)
    return float(to_whole(x / 10**digit) * 10**digit) if digit >= 0 else to_whole(x * 10**-digit) / 10**-digit
