"""The values of the real and of the synthetic table, column by column: numbers as numbers, everything else as labels.

NOT PRIVATE: uses the real data. Decoded values are compared, not codes, so that bad bins and bad decoding show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.columns import Column
from pointillist.data.schema import Schema
from pointillist.data.table import Table, to_arrow
from pointillist.data.texts import encode

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MISSING", "Labels", "Numbers", "Values", "cell_name", "coarse", "plain_table", "read_values", "show_number"]

MISSING = "(missing)"
REST = "(the rest)"
MOST_LABELS = 50
"""The most common labels that pairs of columns tell apart; all others are one."""
BINS = 10
"""Numbers are put in this many bins with equal shares of the real rows, for distances of shares."""
MOST_POINTS = 20
"""Up to this number of different real numbers, each is a bin of its own."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, dates or times in both tables.

    Attributes:
        name: the name of the column.
        kind: number, date, time, timestamp or duration. Dates are in days, the others in seconds, since 1970.
        real, synthetic: the numbers; NaN where they are missing or not finite.
    """

    name: str
    kind: str
    real: np.ndarray
    synthetic: np.ndarray


@dataclass(frozen=True)
class Labels:
    """A column of categories in both tables.

    Attributes:
        name: the name of the column.
        labels: all categories, the missing one last if there is one.
        real, synthetic: the positions of the rows' labels.
    """

    name: str
    labels: tuple[str, ...]
    real: np.ndarray
    synthetic: np.ndarray


Values = Numbers | Labels


def plain_table(data: Any, seed: int = 0) -> pa.Table:
    """A table of any kind as an Arrow table of values.

    Args:
        data: a pointillist, pandas, polars or Arrow table.
        seed: the seed with which a pointillist table is decoded.
    """
    return to_arrow(data.to_arrow(seed) if isinstance(data, Table) else data)


def read_values(real: pa.Table, synthetic: pa.Table, schema: Schema) -> tuple[Values, ...]:
    """The columns of both tables.

    Args:
        real, synthetic: the tables, as :func:`plain_table` returns them.
        schema: what their columns mean.
    """
    found: list[Values] = []
    for column in map(_unmerged, schema.columns):
        cells = real.column(column.name), synthetic.column(column.name)
        codes = encode(column, cells[0]), encode(column, cells[1])
        if column.labels and not (column.ordered and isinstance(column.labels[0], int)):
            labels = (*map(str, column.labels), *([MISSING] if column.missing else []))
            found.append(Labels(column.name, labels, *(one.astype(np.int64) for one in codes)))
        else:
            found.append(_numbers(column, cells, codes))
    return tuple(found)


def _unmerged(column: Column) -> Column:
    """The column behind one whose codes a run has merged."""
    base: Column = getattr(column, "base", column)
    return base


def _numbers(column: Column, cells: tuple[Any, Any], codes: tuple[np.ndarray, np.ndarray]) -> Numbers:
    """Numbers from the cells themselves; where only the column can read these, from what it decodes them to."""
    decoded = tuple(column.decode(one, np.random.default_rng(0)) for one in codes)
    kind = decoded[1].type
    numbers = []
    for raw, code, again in zip(cells, codes, decoded, strict=True):
        nulls = code == column.size - 1 if column.missing else np.zeros(len(code), bool)
        found = _as_numbers(raw, kind, nulls)
        found = _as_numbers(again, kind, nulls) if found is None else found
        numbers.append(code.astype(float) if found is None else np.where(nulls, np.nan, found))
    return Numbers(column.name, _kind(kind), *numbers)


def _kind(kind: pa.DataType) -> str:
    import pyarrow as pa

    kinds = {"date": pa.types.is_date, "time": pa.types.is_time, "timestamp": pa.types.is_timestamp}
    kinds["duration"] = pa.types.is_duration
    return next((word for word, fits in kinds.items() if fits(kind)), "number")


def _as_numbers(cells: Any, kind: pa.DataType, nulls: np.ndarray) -> np.ndarray | None:
    """The cells as floating-point numbers, NaN where they are none; None if they are not readable as ``kind``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    steps = {
        "date": (pa.date32(), pa.int32(), 1.0),
        "time": (pa.time64("us"), pa.int64(), 1e6),
        "timestamp": (pa.timestamp("us", getattr(kind, "tz", None)), pa.int64(), 1e6),
        "duration": (pa.duration("us"), pa.int64(), 1e6),
    }
    first, second, scale = steps.get(_kind(kind), (pa.float64(), pa.float64(), 1.0))
    try:
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_string(cells.type):
            cells = pc.utf8_trim_whitespace(pc.if_else(pa.array(nulls), pa.scalar(None, pa.string()), cells))
        whole = pc.cast(pc.cast(cells, first, safe=False), second, safe=False)
        numbers = pc.cast(whole, pa.float64(), safe=False).to_numpy(zero_copy_only=False) / scale
    except (pa.ArrowException, TypeError):
        return None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def coarse(column: Values) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The rows of both tables in a few cells, and the names of these: common labels, or bins of the real numbers."""
    if isinstance(column, Numbers):
        return _bins(column)
    if len(column.labels) <= MOST_LABELS + 1:
        return column.real, column.synthetic, column.labels
    common = np.argsort(-np.bincount(column.real, minlength=len(column.labels)), kind="stable")[:MOST_LABELS]
    place = np.full(len(column.labels), len(common))
    place[common] = np.arange(len(common))
    names = (*(column.labels[at] for at in common), REST)
    return place[column.real], place[column.synthetic], names


def _bins(column: Numbers) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    known = column.real[~np.isnan(column.real)]
    points = np.unique(known)
    if len(points) > MOST_POINTS:
        points = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1], method="inverted_cdf"))
    else:
        points = points[:-1]
    codes = [
        np.where(np.isnan(x), len(points) + 1, np.searchsorted(points, x)) for x in (column.real, column.synthetic)
    ]
    shown = [show_number(float(one), column.kind) for one in points]
    names = (*(f"up to {one}" for one in shown), f"above {shown[-1]}" if shown else "any", MISSING)
    return codes[0], codes[1], names


def show_number(value: float, kind: str = "number") -> str:
    """A number as people read it: dates as dates, times as times."""
    if not np.isfinite(value):
        return "-"
    if kind == "date":
        return str(np.datetime64(round(value), "D"))
    if kind == "timestamp":
        return str(np.datetime64(round(value), "s")).replace("T", " ")
    if kind == "time":
        second = round(value)
        return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def cell_name(column: Column, code: int) -> str:
    """What a code stands for, in words."""
    edges = getattr(column, "edges", None)
    if code < len(column.labels):
        return str(column.labels[code])
    if column.missing and code == column.size - 1:
        return MISSING
    if edges is not None and code + 1 < len(edges):
        last = code + 2 == len(edges)
        return f"[{edges[code]:g}, {edges[code + 1]:g}{']' if last else ')'}"
    value = column.decode(np.array([code]), np.random.default_rng(0))[0]
    return f"about {value}"
