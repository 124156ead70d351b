"""Numbers between public bounds, on a fine public grid: a run merges its cells, from noisy counts.

A grid is one list of boundaries: cell i holds the numbers in ``[b_i, b_{i+1})``. With a step, boundaries are whole
numbers of steps, and a cell of one step is a single value. Without one they are floating-point numbers, and a cell that
holds the single number p ends at the next floating-point number. A declared point p is such a cell, which splits the
cell around it; and where values outside of the bounds have codes of their own, so are the two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import (
    NUMBERS,
    Column,
    Label,
    check_column,
    check_flag,
    check_name,
    check_word,
    different_bins,
    fill_missing,
    listed,
    missing_dict,
    place_missing,
    read_keys,
    read_missing,
    refuse_strays,
    without_none,
)
from pointillist.data.columns.numbers import as_numbers, check_missing_as, missing_numbers, text_for_missing
from pointillist.data.columns.steps import Steps, exact, log_edges
from pointillist.data.columns.types import NULLABLE, arrow_type, check_dtype, decimals_of
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Grid"]

KEYS = {
    "bounds": list,
    "step": object,
    "integer": bool,
    "scale": object,
    "points": object,
    "outside": object,
    "cells": object,
    "missing": bool,
    "dtype": object,
    "missing_values": object,
    "missing_as": object,
    "decimals": object,
}
SCALES = ("linear", "log", "signed-log")
OUTSIDE = ("refuse", "clamp", "own")
WIDEST = 1e300
"""The largest bound; differences between bounds stay finite."""
MOST_STEPS = 2**53
"""The largest number of smallest decimals in a bound: floating-point numbers hold all whole numbers up to it."""
MOST_DIGITS = 30
MOST_DECIMALS = 15
"""The most decimals of numbers in a CSV file, and the most digits of such numbers."""
LEAST_CELLS = 10
MOST_CELLS = 2**20
FINEST = 1e-6
"""The width of the cells around 0 of logarithmic grids without a step, relative to the larger bound."""


@dataclass(frozen=True)
class Grid:
    """A column of numbers between public bounds, on a fine public grid whose cells a run merges.

    The codes are the cells in the order of their numbers, then missing. A code is decoded to a number of its cell,
    drawn evenly among the multiples of the step.

    Args:
        name: The name of the column in the table.
        bounds: The smallest and the largest number, known without looking at the data.
        step: Numbers are whole multiples of it, counted from 0, or from the lower bound if that is not a multiple;
            others are refused. With ``step = 0.01`` decoded numbers have at most two decimals. By default 1 if
            ``integer``, the last digit of a decimal type, and none otherwise.
        integer: Whether the numbers are integers.
        scale: How the cells divide the range: "linear" in equal widths; "log" in widths that grow with the numbers,
            which must not be negative; "signed-log" the same on both sides of 0. With a step, equal widths are 1, 2, 5,
            10, 20, 50, ... steps. Growing ones have round boundaries, and close to 0 they are one step wide, or a
            millionth of the larger bound if there is no step.
        points: Numbers that are codes of their own, such as 0 or a top code.
        outside: What happens to numbers outside of the bounds: "refuse" them; "clamp" them into the outermost cells; or
            "own": each bound is a code of its own, which stands for the bound and everything beyond it, and is decoded
            to the bound.
        cells: The largest number of cells, apart from those that points split off. If there are no more possible
            numbers than that, each is a cell.
        missing: Whether values may be missing. Missing is then a value of its own, with the last code.
        dtype: The type of the decoded column. By default int64 if ``integer``, otherwise float64. ``decimal(12,2)`` is
            a type of decimals with twelve digits, two of them after the point.
        missing_values: What stands for missing in the table, such as "?" or -9, apart from null and the usual
            spellings. A number inside of the bounds is never decoded to.
        missing_as: What missing values are decoded to, by default null. Numbers become texts if it is no number.
        decimals: The number of decimals that every number has in a CSV file: with 2, ``5`` is written as ``5.00``. By
            default as many as a number needs. It changes nothing else.
    """

    name: str
    bounds: tuple[float, float]
    step: float | None = None
    integer: bool = False
    scale: str = "linear"
    points: tuple[float, ...] = ()
    outside: str = "refuse"
    cells: int = 1024
    missing: bool = False
    dtype: str = ""
    missing_values: tuple[str, ...] = ()
    missing_as: str | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        where = check_name(self.name)
        for flag in ("integer", "missing"):
            check_flag(f"{where}: {flag}", getattr(self, flag))
        object.__setattr__(self, "bounds", _numbers(f"{where}: bounds", self.bounds, "bounds"))
        object.__setattr__(self, "points", tuple(sorted(_numbers(f"{where}: points", self.points, "points"))))
        good = len(self.bounds) == 2 and -WIDEST <= self.bounds[0] < self.bounds[1] <= WIDEST
        rule, hint = "must be two finite numbers, the smaller one first", "write bounds = [0, 100]"
        check(good, f"{where}: bounds", fragment(list(self.bounds)), rule, hint)
        check_word(f"{where}: scale", self.scale, SCALES)
        check_word(f"{where}: outside", self.outside, OUTSIDE)
        cells = self.cells.item() if isinstance(self.cells, np.generic) else self.cells
        object.__setattr__(self, "cells", cells)
        good = isinstance(cells, int) and not isinstance(cells, bool) and LEAST_CELLS <= cells <= MOST_CELLS
        rule, hint = f"must be a whole number in {LEAST_CELLS} .. {MOST_CELLS:,}", "give for example 1024"
        check(good, f"{where}: cells", fragment(cells), rule, hint)
        for key, value in zip(("missing_values", "missing_as"), read_missing(self), strict=True):
            object.__setattr__(self, key, value)
        self._check_step(where)
        self._check_decimals(where)
        self._check_dtype(where)
        self._check_scale(where)
        self._check_points(where)
        check_column(self)

    def _check_step(self, where: str) -> None:
        step = self.step.item() if isinstance(self.step, np.generic) else self.step
        object.__setattr__(self, "step", step)
        good = step is None or (isinstance(step, int | float) and not isinstance(step, bool) and 0 < step <= WIDEST)
        rule, hint = "must be a number above 0", "give for example 0.01, or leave it out"
        check(good, f"{where}: step", fragment(step), rule, hint)
        if self.integer:
            rule, hint = "must be whole because integer = true", "round them, or set integer = false"
            whole = all(float(number).is_integer() for number in (*self.bounds, 1 if step is None else step))
            check(whole, f"{where}: bounds and step", fragment([*self.bounds, step]), rule, hint)
        if self._steps is None:
            return
        steps = self._steps
        widest = max(abs(steps.numerator(k)) for k in (steps.first, steps.last))
        rule = "must be large enough for the bounds (at most 2^53 times its last digit, of at most 30 after the point)"
        good = widest <= MOST_STEPS and steps.digits <= MOST_DIGITS
        check(good, f"{where}: step", fragment(step), rule, "use a larger step, or none")
        rule, hint = "must have at least two multiples between the bounds", "use a smaller step or wider bounds"
        check(steps.first < steps.last, f"{where}: step", fragment(step), rule, hint)

    def _check_decimals(self, where: str) -> None:
        given = self.decimals.item() if isinstance(self.decimals, np.generic) else self.decimals
        object.__setattr__(self, "decimals", given)
        if given is None:
            return
        whole = isinstance(given, int) and not isinstance(given, bool)
        good = whole and self._steps is not None and self._steps.digits <= given <= MOST_DECIMALS
        good = good and max(map(abs, self.bounds)) < 10.0 ** (MOST_DECIMALS - given)
        rule = f"must be a whole number of at most {MOST_DECIMALS} decimals, and no fewer than those of step"
        check(good, f"{where}: decimals", fragment(given), rule, "give for example 2 with step = 0.01")

    def _check_dtype(self, where: str) -> None:
        check_dtype(f"{where}: dtype", self.dtype)
        rule = "must be a numeric type that holds every number of the column"
        hint = "choose float64, int64 for whole numbers, or decimal(18,2) with a step of 0.01"
        check(self._fits(self._number_dtype), f"{where}: dtype", fragment(self._number_dtype), rule, hint)
        check_missing_as(self, self._number_dtype)

    def _fits(self, dtype: str) -> bool:
        """Return whether a type holds all numbers of the column."""
        steps, decimals = self._steps, decimals_of(dtype)
        if decimals is not None and steps is not None:
            ends = [steps.numerator(k) * 10 ** max(decimals[1] - steps.digits, 0) for k in (steps.first, steps.last)]
            return steps.digits <= decimals[1] and max(map(abs, ends)) < 10 ** min(decimals[0], 18)
        dtype = NULLABLE.get(dtype, dtype)
        if dtype not in NUMBERS:
            return False
        kind = np.dtype(dtype)
        if kind.kind != "f":
            whole = steps is not None and steps.digits == 0
            return whole and np.iinfo(kind).min <= self.bounds[0] and self.bounds[1] <= np.iinfo(kind).max
        if steps is None:
            return max(map(abs, self.bounds)) < float(np.finfo(kind).max)
        counted = max(abs(k + steps.shift) for k in (steps.first, steps.last))
        return bool(counted < 0.1 / float(np.finfo(kind).eps))

    def _check_scale(self, where: str) -> None:
        rule, hint = 'must not be negative where scale = "log"', 'use scale = "signed-log"'
        check(self.scale != "log" or self.bounds[0] >= 0, f"{where}: bounds", fragment(list(self.bounds)), rule, hint)
        rule, hint = 'must begin at a multiple of the step where scale = "signed-log"', "move the lower bound"
        good = self.scale != "signed-log" or self._steps is None or self._steps.shift == 0
        check(good, f"{where}: bounds", fragment(list(self.bounds)), rule, hint)

    def _check_points(self, where: str) -> None:
        low, high = self.bounds
        for point in self.points:
            rule, hint = "must lie between the bounds", "move the bounds, or remove the point"
            check(low <= point <= high, f"{where}: points", fragment(point), rule, hint)
            rule, hint = "must be multiples of the step", "round the point, or use a smaller step"
            good = self._steps is None or self._steps.holds(point)
            check(good, f"{where}: points", fragment(point), rule, hint)
        places = self._places(self.points)
        rule, hint = "must be different", "remove the repeated ones"
        check(len(set(places)) == len(places), f"{where}: points", fragment(list(self.points)), rule, hint)
        used = {*places, *self._ends}
        both = [gap for gap in missing_numbers(self) if self._inside(gap) and self._places((gap,))[0] in used]
        rule, hint = "must not be a bound or a point", "move the bound, or remove the point"
        check(not both, f"{where}: missing_values", fragment(both), rule, hint)

    # --- the grid

    @cached_property
    def _steps(self) -> Steps | None:
        """The multiples of the step; None if there is no step."""
        decimals = decimals_of(self.dtype) if isinstance(self.dtype, str) else None
        if self.step is None and not self.integer and decimals is None:
            return None
        default = Decimal(1) if self.integer or decimals is None else Decimal(1).scaleb(-decimals[1])
        return Steps.of(self.bounds, default if self.step is None else exact(self.step))

    @property
    def _kind(self) -> type:
        """The type in which numbers without a step are compared."""
        return np.float32 if self.dtype in ("float32", "Float32") else np.float64

    def _places(self, numbers: tuple[float, ...]) -> list[Any]:
        """Return where numbers lie on the grid: how many steps, or the floating-point number."""
        if self._steps is not None:
            return list(self._steps.locate(np.asarray(numbers, dtype=np.float64), 0.0)[0].tolist())
        return [self._kind(number) for number in numbers]

    def _inside(self, number: float) -> bool:
        """Return whether a number lies on the grid, between the bounds."""
        on = self._steps is None or self._steps.holds(number)
        return on and self.bounds[0] <= number <= self.bounds[1]

    @property
    def _ends(self) -> tuple[Any, Any]:
        """The smallest and the largest number of the grid, as places."""
        if self._steps is not None:
            return self._steps.first, self._steps.last
        return self._kind(self.bounds[0]), self._kind(self.bounds[1])

    def _after(self, place: Any) -> Any:
        """Return the place that follows."""
        return place + 1 if self._steps is not None else np.nextafter(place, self._kind(np.inf))

    @cached_property
    def _cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The boundaries of the cells, the cell of each code, and the code of each cell (-1 if it has none)."""
        first, last = self._ends
        gaps = [self._places((gap,))[0] for gap in missing_numbers(self) if self._inside(gap)]
        points = [*self._places(self.points), *gaps, *((first, last) if self.outside == "own" else ())]
        kind = self._kind if self._steps is None else np.int64
        ends = [first, self._after(last), *points, *map(self._after, points)]
        inner: np.ndarray = np.unique(self._boundaries().astype(kind))
        inner = inner[(inner > first) & (inner <= last)]
        if len(inner) and inner[-1] == last and (len(inner) < 2 or self._after(inner[-2]) < last):
            inner = inner[:-1]  # the upper bound belongs to the last cell, unless all cells there are single values
        bounds = np.unique(np.concatenate([inner, np.array(ends, dtype=kind)]))
        kept = ~np.isin(bounds[:-1], np.array(gaps, dtype=kind))
        return bounds, np.flatnonzero(kept), np.where(kept, np.cumsum(kept) - 1, -1)

    def _boundaries(self) -> np.ndarray:
        """Return the boundaries of the public grid, as places; some may lie outside of the bounds."""
        steps = self._steps
        low, high = self.bounds
        if steps is not None and steps.last - steps.first < self.cells:
            return np.arange(steps.first, steps.last + 1)
        if self.scale == "linear":
            return np.linspace(low, high, self.cells + 1) if steps is None else steps.evenly(self.cells)
        finest = steps.size if steps is not None else FINEST * max(-low, high)
        near, far = max(low, -high, 0.0), max(-low, high)
        if self.scale == "log":
            resolved = finest if near == 0 or steps is not None else 0.0
            edges = log_edges(near, far, resolved, self.cells)
            return edges if steps is None else steps.rounded(edges)
        edges = log_edges(near, far, finest, self._one_side(finest))
        upper = edges if steps is None else steps.rounded(edges)
        # (-b, -a] mirrors [a, b): with a step, [1 - b, 1 - a)
        return np.concatenate([(0 if steps is None else 1) - upper, upper])

    def _one_side(self, finest: float) -> int:
        """Return the number of cells on the longer side of 0, of a grid with the same cells on both."""
        low, high = self.bounds
        if low >= 0 or high <= 0:
            return self.cells
        long, short = (float(np.arcsinh(side / finest)) for side in (max(-low, high), min(-low, high)))
        return max(1, int(self.cells * long / (long + short)))

    @property
    def ordered(self) -> bool:
        """True: neighbouring cells hold similar numbers."""
        return True

    @property
    def labels(self) -> tuple[Label, ...]:
        """Empty: the codes stand for cells."""
        return ()

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self._cells[1]) + self.missing

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        return "string" if text_for_missing(self) else self._number_dtype

    @property
    def _number_dtype(self) -> str:
        return self.dtype or ("int64" if self.integer else "float64")

    @property
    def fine(self) -> bool:
        """True: a run merges the codes."""
        return True

    @property
    def own(self) -> tuple[int, ...]:
        """The codes of the declared points, of the bounds if they stand for everything beyond them, and missing."""
        bounds, _, codes = self._cells
        places = {*self._places(self.points), *(self._ends if self.outside == "own" else ())}
        found = {int(codes[np.searchsorted(bounds, place)]) for place in places}
        return tuple(sorted(found | ({self.size - 1} if self.missing else set())))

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return nothing: neighbouring cells can be merged in any way."""
        return ()

    # --- values to codes and back

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the cell of each number. Numbers may also be given as strings."""
        import pyarrow as pa

        x, nulls = as_numbers(self, array)
        low, high = self.bounds
        eps = float(np.finfo(np.float32 if pa.types.is_float32(array.type) else self._kind).eps)
        slack = eps if eps > 1e-10 else 0.0  # a bound such as 0.1 is rounded where numbers have 32 bits
        outside = ~nulls & ((x < low - slack * abs(low)) | (x > high + slack * abs(high)))
        if self.outside == "refuse":
            refuse_strays(self, array, outside, 'outside = "clamp"', self.bounds)
        np.clip(x, low, high, out=x)
        if self._steps is None:
            places: np.ndarray = x.astype(self._kind, copy=False)
        else:
            places, near = self._steps.locate(x, eps)
            self._refuse_fractions(x, ~(near | nulls | outside))
            np.clip(places, self._steps.first, self._steps.last, out=places)
        bounds, _, codes = self._cells
        found = codes[np.searchsorted(bounds, places, side="right") - 1]
        return place_missing(self, found, nulls | (found < 0))

    def _refuse_fractions(self, x: np.ndarray, wrong: np.ndarray) -> None:
        if not wrong.any():
            return
        rule, hint = f"must hold multiples of {self._steps}", "round the numbers, or change step in the schema"
        if self.integer and self.step in (None, 1):
            rule, hint = "must hold whole numbers because integer = true", "set integer = false in the schema"
        raise InputError(column_called(self.name), float(x[np.flatnonzero(wrong)[0]]), rule, hint)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return a number from the cell of each code, drawn evenly by ``rng``."""
        import pyarrow as pa
        import pyarrow.compute as pc

        bounds, cells, _ = self._cells
        nulls = np.asarray(codes) >= len(cells)
        cell = cells[np.minimum(codes, len(cells) - 1)]
        low, high = bounds[cell], bounds[cell + 1]
        u = rng.random(len(codes))
        if self._steps is None:
            x = (low + u * (high.astype(np.float64) - low)).astype(self._kind)
            x = np.clip(x, low, np.nextafter(high, low))
        else:
            k = np.minimum(low + np.floor(u * (high - low)).astype(np.int64), high - 1)
            x = self._steps.numerator(k)
            if decimals_of(self._number_dtype) is not None:
                return fill_missing(self, _decimal_array(x, nulls, self._number_dtype, self._steps.digits))
            x = x / 10.0**self._steps.digits if self._steps.digits else x
        return fill_missing(self, pc.cast(pa.array(x, mask=nulls), arrow_type(self._number_dtype), safe=False))

    def for_csv(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return decoded numbers as a CSV file has them: with all decimals, if that is declared.

        Args:
            cells: Decoded cells: numbers, or texts of which some mean missing.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.decimals is None or pa.types.is_decimal(cells.type):
            return cells
        kind = pa.decimal128(2 * MOST_DECIMALS, self.decimals)
        if not pa.types.is_string(cells.type):
            return pc.cast(pc.cast(cells, pa.float64()), kind, safe=False)
        numbers = pc.if_else(pc.equal(cells, self.missing_as), pa.scalar(None, pa.string()), cells)
        shown = pc.cast(pc.cast(pc.cast(numbers, pa.float64()), kind, safe=False), pa.string())
        return pc.coalesce(shown, cells)

    def nearest(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers that are nearest to others and multiples of the step; without a step the same ones.

        Args:
            numbers: Finite numbers.
        """
        if self._steps is None:
            return numbers
        k = np.clip(self._steps.locate(numbers.astype(np.float64), 0.0)[0], self._steps.first, self._steps.last)
        return np.asarray(self._steps.numerator(k) / 10.0**self._steps.digits)

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source``, which must have the same cells, as codes of this one."""
        if not isinstance(source, Grid) or source.missing != self.missing or source._steps != self._steps:
            raise different_bins(self)
        (bounds, cells, _), (others, there, _) = self._cells, source._cells
        if not (np.array_equal(bounds, others) and np.array_equal(cells, there)):
            raise different_bins(self)
        return codes

    def describe(self) -> str:
        """Return a one-line description."""
        steps = "" if self._steps is None else f" in multiples of {self._steps}"
        gaps = " or missing" if self.missing else ""
        low, high = self.bounds
        return f"{self.name}: {len(self._cells[1]):,} fine cells from {low:g} to {high:g}{steps}{gaps}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        kind = int if self.integer else (lambda number: number)
        out: dict[str, Any] = {
            "name": self.name,
            "type": "numeric",
            "bounds": [kind(number) for number in self.bounds],
            "step": None if self.step is None else kind(self.step),
            "integer": self.integer,
            "scale": self.scale,
            "points": [kind(number) for number in self.points] or None,
            "outside": self.outside,
            "cells": self.cells,
            "dtype": self.dtype or None,
            "decimals": self.decimals,
        }
        return without_none(out | missing_dict(self))

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Grid:
        """Create the column from a ``[[column]]`` table of a schema file."""
        return cls(**read_keys(spec, KEYS))


def _numbers(where: str, given: Any, what: str) -> tuple[Any, ...]:
    """Return the entries of a list of numbers."""
    entries = listed(where.rpartition(":")[0], given, what)
    good = all(isinstance(one, int | float) and not isinstance(one, bool) for one in entries)
    check(good, where, fragment(list(entries)), "must be numbers", "write numbers without quotes")
    return entries


def _decimal_array(numerators: np.ndarray, nulls: np.ndarray, dtype: str, digits: int) -> pa.Array:
    """Return ``numerators / 10^digits`` as decimals: 128-bit integers, the lower half first."""
    import pyarrow as pa

    kind = arrow_type(dtype)
    low = numerators.astype(np.int64) * 10 ** (kind.scale - digits)
    words = np.stack([low, low >> 63], axis=1)
    return pa.Array.from_buffers(
        kind, len(low), [pa.array(~nulls).buffers()[1], pa.py_buffer(np.ascontiguousarray(words))]
    )
