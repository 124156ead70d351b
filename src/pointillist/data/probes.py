"""What a cell is, by rules that are fixed before anyone looks at the data.

A private draft of a schema must not look at cells. It asks the curator for noisy counts of rows by these rules: every
cell has one of the codes below, whatever is in other cells. The codes are in groups, one for each *kind* of cell:

- missing, which includes the usual spellings of it,
- text, which includes everything that has no kind of its own,
- integers and other numbers, by a grid of both signs whose edges are 1, 2 and 5 times the powers of ten,
- dates and timestamps in some usual formats, by years (decades and centuries far from now), and
- times of the day.

A cell of text is also a value of its own, which may be discovered.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pointillist.data.columns import Categorical
from pointillist.data.columns.base import MISSING_NUMBERS
from pointillist.data.columns.discovered import may_be_listed
from pointillist.data.drafts.texts import MISSING_TEXTS
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.data.texts import distinct, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

__all__ = [
    "CLOCKS",
    "CODES",
    "DATES",
    "EDGES",
    "EITHER",
    "KINDS",
    "KIND_OF_CODE",
    "MISSING_SPELLINGS",
    "OWN_SPELLINGS",
    "STAMPS",
    "ProbedSource",
    "codes_of_kind",
    "number_cell",
    "years_of",
]

MISSING, TEXT, INTEGER, NUMBER = "missing", "text", "integer", "number"
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y")
"""Formats of dates, each a kind of its own."""
EITHER = "%d/%m/%Y or %m/%d/%Y"
"""The kind of dates that could be written in either of two formats."""
STAMPS = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")
"""Formats of timestamps, each a kind of its own."""
CLOCKS = ("%H:%M", "%H:%M:%S")
"""Formats of times of the day, each a kind of its own."""
KINDS = (MISSING, TEXT, INTEGER, NUMBER, *DATES, EITHER, *STAMPS, *CLOCKS)

EDGES = np.array([float(f"{digit}e{power}") for power in range(-6, 15) for digit in (1, 2, 5)] + [1e15])
"""The positive edges of the grid of numbers. Numbers closer to 0 share the cell of 0, and larger ones the last cell."""
CENTRE = len(EDGES)
"""The cell of 0; negative numbers are before it, positive ones behind it."""

DECADES = (*range(1800, 1900, 10), *range(2100, 2200, 10))
YEARS = np.sort([*range(1000, 1800, 100), *DECADES, *range(1900, 2100), *range(2200, 3001, 100)])
"""The first years of the cells of dates; before them is one cell more."""

MISSING_SPELLINGS = tuple(dict.fromkeys((*MISSING_NUMBERS, *MISSING_TEXTS)))
"""Texts that count as missing in columns of numbers and dates."""
OWN_SPELLINGS = tuple(text for text in MISSING_SPELLINGS if text not in MISSING_NUMBERS)
"""Those of them that a column must declare: the others are always understood."""

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.0*)?")
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
TIMELIKE = re.compile(r"[0-9]{1,4}[-./:][0-9]{1,2}[-./:0-9T ]*")


def _sizes() -> dict[str, int]:
    """The number of codes of each kind."""
    numbers, years = 2 * len(EDGES) + 1, len(YEARS) + 1
    own = {INTEGER: numbers, NUMBER: numbers} | dict.fromkeys((*DATES, EITHER, *STAMPS), years)
    return {kind: own.get(kind, 1) for kind in KINDS}


SIZES = _sizes()
STARTS: dict[str, int] = dict(zip(KINDS, np.cumsum([0, *SIZES.values()])[:-1].tolist(), strict=True))
CODES = sum(SIZES.values())
"""The number of codes."""
KIND_OF_CODE = tuple(np.repeat(np.arange(len(KINDS)), list(SIZES.values())).tolist())
"""The position of the kind of each code."""


def codes_of_kind(kind: str) -> slice:
    """Return the codes of a kind of cells.

    Args:
        kind: One of ``KINDS``.
    """
    return slice(STARTS[kind], STARTS[kind] + SIZES[kind])


def number_cell(cell: int) -> tuple[float, float]:
    """Return the bounds of a cell of the grid of numbers; the last ones end at the largest edge.

    Args:
        cell: Its position in the grid.
    """
    if cell == CENTRE:
        return 0.0, 0.0
    away = abs(cell - CENTRE)
    near, far = float(EDGES[away - 1]), float(EDGES[min(away, len(EDGES) - 1)])
    return (near, far) if cell > CENTRE else (-far, -near)


def years_of(cell: int) -> tuple[int, int]:
    """Return the first and the last year of a cell of dates.

    Args:
        cell: Its position among the cells of a format.
    """
    first = 1 if cell == 0 else int(YEARS[cell - 1])
    last = int(YEARS[cell]) - 1 if cell < len(YEARS) else 9999
    return first, last


def code_of_text(text: str | None) -> int:
    """Return the code of a cell of text.

    Args:
        text: The cell; None if it is missing.
    """
    cell = "" if text is None else text.strip()
    if cell in MISSING_SPELLINGS:
        return STARTS[MISSING]
    if WHOLE.fullmatch(cell):
        return STARTS[INTEGER] + _cell_of(float(cell))
    if DECIMAL.fullmatch(cell) and math.isfinite(float(cell)):
        return STARTS[NUMBER] + _cell_of(float(cell))
    if len(cell) < 30 and TIMELIKE.fullmatch(cell):
        return _code_of_time(cell)
    return STARTS[TEXT]


def _cell_of(number: float) -> int:
    return int(_cells_of(np.array([number]))[0])


def _cells_of(numbers: np.ndarray) -> np.ndarray:
    """Return the cells of numbers in the grid."""
    away = np.searchsorted(EDGES, np.abs(numbers), side="right")
    cells: np.ndarray = CENTRE + np.where(numbers < 0, -away, away)
    return cells


def _code_of_time(cell: str) -> int:
    """Return the code of a text that looks like a date or a time."""
    moments = {one: moment for one in (*DATES, *STAMPS, *CLOCKS) if (moment := _parsed(cell, one)) is not None}
    if not moments:
        return STARTS[TEXT]
    kind = EITHER if {"%d/%m/%Y", "%m/%d/%Y"} <= moments.keys() else next(iter(moments))
    moment = next(iter(moments.values()))
    return STARTS[kind] + (0 if kind in CLOCKS else _year_cell(moment.year))


def _parsed(cell: str, pattern: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(cell, pattern)
    except ValueError:
        return None


def _year_cell(year: int) -> int:
    return int(np.searchsorted(YEARS, year, side="right"))


def codes_of(name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Return the code of every cell of a column.

    Args:
        name: The name of the column, for messages.
        column: Cells of any type that a schema can hold.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = plain(name, column)
    if not pa.types.is_dictionary(cells.type):
        cells = pc.dictionary_encode(cells)
    if not cells.num_chunks:
        return np.zeros(0, np.intp)
    values, places = distinct(cells)
    codes: np.ndarray = _codes_of_values(values)[places]
    return codes


def _codes_of_values(values: pa.Array) -> np.ndarray:
    """Return the code of each of some different values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_string(kind):
        return np.array([code_of_text(text) for text in values.to_pylist()], np.intp)
    if pa.types.is_boolean(kind) or pa.types.is_time(kind):
        codes = np.full(len(values), STARTS[TEXT])
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        start = STARTS[DATES[0] if pa.types.is_date(kind) else STAMPS[0]]
        years = pc.fill_null(pc.year(values), 1).to_numpy(zero_copy_only=False)
        codes = start + np.searchsorted(YEARS, years, side="right")
    else:
        if pa.types.is_duration(kind):
            values = pc.divide(pc.cast(pc.cast(values, pa.duration("us"), safe=False), pa.int64()), 1_000_000)
        numbers = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        start = STARTS[INTEGER if pa.types.is_integer(kind) else NUMBER]
        codes = start + _cells_of(np.nan_to_num(numbers, nan=0.0))
    gone = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return np.where(gone, STARTS[MISSING], codes).astype(np.intp)


@dataclass(frozen=True)
class ProbedSource:
    """Private rows as codes of the kinds of their cells, with the values of their texts.

    Attributes:
        table: the rows, in an Arrow table of any types.
        names: the columns that can be asked about.
        unit: says that the table has at most ``unit.max_rows`` rows of each unit; None if units are rows.
    """

    table: pa.Table
    names: tuple[str, ...]
    unit: Unit | None = None

    @cached_property
    def schema(self) -> Schema:
        """The codes of the columns."""
        return Schema(tuple(Categorical(name, tuple(range(CODES)), merge=False) for name in self.names))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        """Return all rows, in batches of codes."""
        return self._coded.batches()

    @cached_property
    def _coded(self) -> TableSource:
        codes = tuple(codes_of(name, self.table.column(name)) for name in self.names)
        return TableSource(Table(self.schema, codes), self.unit)

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """Return the different texts of a column, and how many rows have each. Missing and long ones are left out.

        Args:
            column: The name of the column.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = plain(column, self.table.column(column))
        if not pa.types.is_dictionary(cells.type):
            cells = pc.dictionary_encode(cells)
        values, places = distinct(cells) if cells.num_chunks else (pa.array([], pa.string()), np.zeros(0, np.intp))
        counts = np.bincount(places, minlength=len(values)).astype(np.int64)
        texts = pc.cast(values, pa.string()).to_pylist()
        kept = [i for i, text in enumerate(texts) if may_be_listed(text)]
        return [texts[i] for i in kept], counts[kept]
