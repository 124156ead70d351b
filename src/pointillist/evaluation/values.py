"""The values of the real and of the synthetic table, column by column: numbers as numbers, everything else as labels.

NOT PRIVATE: uses the real data. Decoded values are compared, not codes, so that bad bins and bad decoding show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.columns import Column, Numeric, Temporal
from pointillist.data.columns.merged import Merged
from pointillist.data.schema import Schema
from pointillist.data.table import Table, to_arrow
from pointillist.data.texts import encode
from pointillist.release import Release

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MISSING",
    "Labels",
    "Numbers",
    "Typed",
    "Values",
    "cell_name",
    "coarse",
    "made_under",
    "plain_table",
    "read_values",
    "show_number",
    "unmerged",
]

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


@dataclass(frozen=True)
class Typed:
    """The columns of a table, with the types that the schema gives them.

    Attributes:
        columns: what the columns mean.
        codes: their codes.
        cells: their values as Arrow arrays: labels, numbers as 64-bit floating-point numbers, dates and times.
    """

    columns: tuple[Column, ...]
    codes: tuple[np.ndarray, ...]
    cells: tuple[pa.Array, ...]

    @classmethod
    def of(cls, table: pa.Table, schema: Schema) -> Typed:
        """The columns of a table.

        Args:
            table: the table, as :func:`plain_table` returns it.
            schema: what its columns mean.
        """
        columns = unmerged(schema)
        codes = tuple(encode(column, table.column(column.name)) for column in columns)
        pairs = zip(columns, codes, strict=True)
        return cls(columns, codes, tuple(_typed(column, table.column(column.name), code) for column, code in pairs))

    def to_arrow(self) -> pa.Table:
        """The values as a table."""
        import pyarrow as pa

        return pa.table(dict(zip((column.name for column in self.columns), self.cells, strict=True)))


def read_values(real: Typed, synthetic: Typed) -> tuple[Values, ...]:
    """The columns of both tables, as numbers or as labels.

    Args:
        real, synthetic: the tables, typed by the same schema.
    """
    found: list[Values] = []
    for n, column in enumerate(real.columns):
        if column.labels and not (column.ordered and type(column.labels[0]) is int):
            labels = (*map(str, column.labels), *([MISSING] if column.missing else []))
            found.append(Labels(column.name, labels, *(one.codes[n].astype(np.int64) for one in (real, synthetic))))
        else:
            kind = _kind(synthetic.cells[n].type)
            found.append(Numbers(column.name, kind, _numbers(real.cells[n]), _numbers(synthetic.cells[n])))
    return tuple(found)


def made_under(release: Release, schema: Schema) -> bool:
    """Whether a release was made with the columns of a schema.

    Args:
        release: The release.
        schema: The schema.
    """
    return unmerged(schema) == unmerged(release.schema) or schema.columns == release.given.columns


def unmerged(schema: Schema) -> tuple[Column, ...]:
    """The columns of a schema as they were given: those behind columns whose codes a run has merged.

    Args:
        schema: the schema, for example that of a release.
    """
    return tuple(column.base if isinstance(column, Merged) else column for column in schema.columns)


def _typed(column: Column, cells: pa.ChunkedArray, codes: np.ndarray) -> pa.Array:
    """The cells of a column in its type. Where only the column itself can read them, what it decodes their codes to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    decoded = column.decode(codes, np.random.default_rng(0))
    if column.labels:
        return decoded.dictionary_decode() if pa.types.is_dictionary(decoded.type) else decoded
    if isinstance(column, Temporal):
        given = cells.combine_chunks()
        return column.moments(given.dictionary_decode() if pa.types.is_dictionary(given.type) else given)
    nulls = pa.array(codes == column.size - 1 if column.missing else np.zeros(len(codes), bool))
    kind = pa.float64() if _kind(decoded.type) == "number" else decoded.type
    try:
        found = cells.combine_chunks()
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        found = pc.if_else(nulls, pa.scalar(None, found.type), found)
        if pa.types.is_string(found.type):
            found = pc.utf8_trim_whitespace(found)
        return pc.cast(found, kind, safe=False)
    except (pa.ArrowException, TypeError):
        return decoded


def _kind(kind: pa.DataType) -> str:
    import pyarrow as pa

    kinds = {"date": pa.types.is_date, "time": pa.types.is_time, "timestamp": pa.types.is_timestamp}
    kinds["duration"] = pa.types.is_duration
    return next((word for word, fits in kinds.items() if fits(kind)), "number")


def _numbers(cells: pa.Array) -> np.ndarray:
    """Cells as floating-point numbers, NaN where they are missing, not finite, or no numbers at all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    steps = {
        "date": (pa.date32(), pa.int32(), 1.0),
        "time": (pa.time64("us"), pa.int64(), 1e6),
        "timestamp": (pa.timestamp("us", getattr(cells.type, "tz", None)), pa.int64(), 1e6),
        "duration": (pa.duration("us"), pa.int64(), 1e6),
    }
    first, second, scale = steps.get(_kind(cells.type), (pa.float64(), pa.float64(), 1.0))
    try:
        whole = pc.cast(pc.cast(cells, first, safe=False), second, safe=False)
        numbers = pc.cast(whole, pa.float64(), safe=False).to_numpy(zero_copy_only=False) / scale
    except (pa.ArrowException, TypeError):
        return np.full(len(cells), np.nan)
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
    if kind in ("time", "duration"):
        second, sign = abs(round(value)), "-" if round(value) < 0 else ""
        return f"{sign}{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def cell_name(column: Column, code: int) -> str:
    """What a code stands for, in words."""
    if code < len(column.labels):
        return str(column.labels[code])
    if column.missing and code == column.size - 1:
        return MISSING
    if isinstance(column, Numeric):
        edges, last = column.edges, code + 2 == len(column.edges)
        return f"[{edges[code]:g}, {edges[code + 1]:g}{']' if last else ')'}"
    if isinstance(column, Merged):
        return _group_name(column, code)
    value = column.decode(np.array([code]), np.random.default_rng(0))[0]
    return f"about {value}"


def _group_name(column: Merged, code: int) -> str:
    """A group of values: the first and the last one of an ordered column, the most common ones of others."""
    inside = np.flatnonzero(column.lookup == code)
    if column.ordered:
        ends = dict.fromkeys(cell_name(column.base, int(one)) for one in (inside[0], inside[-1]))
        return " to ".join(one.removeprefix("about ") for one in ends)
    common = inside[np.argsort(-np.array(column.shares)[inside], kind="stable")]
    names = ", ".join(cell_name(column.base, int(one)) for one in common[:2])
    return f"{names} and {len(inside) - 2} more" if len(inside) > 2 else names
