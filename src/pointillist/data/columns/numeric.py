"""Numeric columns: numbers in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import (
    MOST_ORDERED,
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
    same_codes,
    without_none,
)
from pointillist.data.columns.grid import Grid
from pointillist.data.columns.numbers import (
    as_numbers,
    check_missing_as,
    float32_above,
    missing_numbers,
    text_for_missing,
)
from pointillist.data.columns.shapes import density_inside
from pointillist.data.columns.types import NULLABLE, arrow_type
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Numeric", "holds_bins"]

KEYS = {
    "edges": list,
    "integer": bool,
    "decode": object,
    "clip": bool,
    "missing": bool,
    "dtype": object,
    "missing_values": object,
    "missing_as": object,
    "merge": object,
}
DECODE = ("midpoint", "uniform", "shape")
WIDEST = 1e300
"""The largest bin edge; differences between edges stay finite."""


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, in the bins ``[e_0, e_1), ..., [e_{m-1}, e_m]``.

    Args:
        name: The name of the column in the table.
        edges: The bin edges ``e_0 < ... < e_m``, known without looking at the data.
        integer: Whether the numbers are integers.
        decode_as: How a bin is decoded. "shape" draws a number from a density that goes with the counts of the bins
            in the table that is decoded (see :mod:`pointillist.data.columns.shapes`): piecewise linear, with outer bins
            that fall off. "uniform" draws from an even density, "midpoint" takes the middle.
        clip: Whether numbers outside ``[e_0, e_m]`` are put into the outer bins. Otherwise they are refused.
        missing: Whether values may be missing. Missing is then a value of its own, with the last code.
        dtype: The type of the decoded column. By default int64 if ``integer``, otherwise float64.
        missing_values: What stands for missing in the table, such as "?" or -9, apart from null and the usual
            spellings. Numbers must lie outside of the bins.
        missing_as: What missing values are decoded to, by default null. Numbers become texts if it is no number.
        merge: Whether a run merges bins, from noisy counts. By default it does if there are more than 32.
    """

    name: str
    edges: tuple[float, ...]
    integer: bool = False
    decode_as: str = "shape"
    clip: bool = False
    missing: bool = False
    dtype: str = ""
    missing_values: tuple[str, ...] = ()
    missing_as: str | None = None
    merge: bool | None = None

    def __post_init__(self) -> None:
        where = check_name(self.name)
        object.__setattr__(self, "edges", listed(where, self.edges, "edges"))
        edges, shown = list(self.edges), fragment(list(self.edges))
        numbers = all(isinstance(e, int | float) and not isinstance(e, bool) for e in edges)
        check(numbers, f"{where}: edges", shown, "must be numbers", "write numbers without quotes")
        for flag in ("integer", "clip", "missing"):
            check_flag(f"{where}: {flag}", getattr(self, flag))
        if self.merge is not None:
            check_flag(f"{where}: merge", self.merge)
        good = len(edges) >= 2 and all(-WIDEST <= e <= WIDEST for e in edges) and all(a < b for a, b in pairwise(edges))
        rule = "must have two or more finite, increasing bin edges"
        check(good, where, shown, rule, "sort them, and use clip = true for open ends")
        whole = not self.integer or all(float(e).is_integer() for e in edges)
        check(whole, where, shown, "must have whole bin edges because integer = true", "round the edges")
        check_word(f"{where}: decode", self.decode_as, DECODE)
        check_column(self)
        rule = "must be a numeric type that has a number in every bin of the column"
        hint = "choose float64, or int64 for an integer column"
        check(holds_bins(self._number_dtype, edges, self.integer), f"{where}: dtype", self._number_dtype, rule, hint)
        self._check_missing(where)

    def _check_missing(self, where: str) -> None:
        for key, value in zip(("missing_values", "missing_as"), read_missing(self), strict=True):
            object.__setattr__(self, key, value)
        inside = [number for number in missing_numbers(self) if self.edges[0] <= number <= self.edges[-1]]
        rule, hint = "must not lie in a bin", "give bounds instead of edges, or end the bins before it"
        check(not inside, f"{where}: missing_values", fragment(inside), rule, hint)
        check_missing_as(self, self._number_dtype)

    @property
    def ordered(self) -> bool:
        """True: neighbouring bins hold similar numbers."""
        return True

    @property
    def labels(self) -> tuple[Label, ...]:
        """Empty: the codes stand for bins."""
        return ()

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.edges) - 1 + self.missing

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        return "string" if text_for_missing(self) else self._number_dtype

    @property
    def _number_dtype(self) -> str:
        return self.dtype or ("int64" if self.integer else "float64")

    @property
    def fine(self) -> bool:
        """Whether a run merges bins."""
        return len(self.edges) - 1 > MOST_ORDERED if self.merge is None else self.merge

    @property
    def own(self) -> tuple[int, ...]:
        """Missing, if values may be missing."""
        return (self.size - 1,) if self.missing else ()

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return nothing: there is no hierarchy."""
        return ()

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the bin of each number. Numbers may also be given as strings."""
        where = column_called(self.name)
        x, nulls = as_numbers(self, array)
        x = np.where(nulls, self.edges[0], x)
        edges = np.asarray(self.edges)
        bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        if self.integer and (fraction := np.flatnonzero(x != np.floor(x))).size:
            rule, hint = "must hold whole numbers because integer = true", "set integer = false in the schema"
            raise InputError(where, float(x[fraction[0]]), rule, hint)
        if not self.clip:
            refuse_strays(self, array, (x < edges[0]) | (x > edges[-1]), "clip = true", self.edges)
        return place_missing(self, bins, nulls)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return a number from the bin of each code, drawn by ``rng`` unless the column decodes to midpoints."""
        import pyarrow as pa
        import pyarrow.compute as pc

        edges = np.asarray(self.edges, dtype=np.float64)
        bins = len(edges) - 1
        nulls = codes >= bins
        inside = np.minimum(codes, bins - 1).astype(np.intp)
        low, high = edges[inside], edges[inside + 1]
        u = 0.5 if self.decode_as == "midpoint" else rng.random(len(codes))
        x = self._shaped(inside, nulls, u) if self.decode_as == "shape" else None
        if self.integer:  # [low, high) holds low .. high - 1; the last bin also holds its upper edge
            high = high - (inside < bins - 1)
            x = np.floor(u * (high - low + 1)) + low if x is None else np.maximum(np.floor(x), low)
            x = np.minimum(x, high)
        else:
            x = low + u * (high - low) if x is None else x
            if self._number_dtype in ("float32", "Float32"):  # rounding must not leave [low, high)
                x, low, high = x.astype(np.float32), float32_above(low), float32_above(high)
            x = np.clip(x, low, np.nextafter(high, low))
        return fill_missing(self, pc.cast(pa.array(x, mask=nulls), arrow_type(self._number_dtype), safe=False))

    def _shaped(self, inside: np.ndarray, nulls: np.ndarray, u: Any) -> np.ndarray:
        """Return numbers drawn from the density that goes with the counts of the bins."""
        edges = np.asarray(self.edges, dtype=np.float64)
        edges[-1] += self.integer
        counts = np.bincount(inside[~nulls], minlength=len(edges) - 1)
        return density_inside(edges, counts, single=float(self.integer)).draw(inside, u)

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source``, which must have the same bins, as codes of this one."""
        if not same_codes(self, source):
            raise different_bins(self)
        return codes

    def describe(self) -> str:
        """Return a one-line description."""
        bins = "1 bin" if len(self.edges) == 2 else f"{len(self.edges) - 1:,} bins"
        gaps = " or missing" if self.missing else ""
        return f"{self.name}: {bins} from {self.edges[0]:g} to {self.edges[-1]:g}{gaps}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        edges = [int(e) if self.integer else float(e) for e in self.edges]
        out = {"name": self.name, "type": "numeric", "edges": edges, "integer": self.integer, "decode": self.decode_as}
        out |= {"clip": self.clip or None, "dtype": self.dtype or None} | missing_dict(self)
        return without_none(out | {"merge": self.merge})

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Any:
        """Create the column from a ``[[column]]`` table of a schema file: a :class:`Grid` if it has bounds."""
        if "bounds" in spec:
            rule, hint = "must have edges or bounds, but not both", "remove one of them"
            check("edges" not in spec, check_name(spec["name"]), Shown("both"), rule, hint)
            return Grid.from_dict(spec)
        fields = read_keys(spec, KEYS)
        rule, hint = "must have edges or bounds", "write for example bounds = [0, 100]"
        check("edges" in spec, check_name(spec["name"]), Shown("neither"), rule, hint)
        return cls(**{"decode_as" if key == "decode" else key: value for key, value in fields.items()})


def holds_bins(dtype: str, edges: Sequence[float], integer: bool) -> bool:
    """Return whether a type has a number in every bin, and rounding to it never moves a number to another bin."""
    dtype = NULLABLE.get(dtype, dtype)
    if dtype not in NUMBERS:
        return False
    kind = np.dtype(dtype)
    if kind.kind != "f":
        limits = np.iinfo(kind)
        return integer and int(limits.min) <= edges[0] and edges[-1] <= int(limits.max)
    digits = np.finfo(kind)
    if max(map(abs, edges)) > (2.0 ** (digits.nmant + 1) if integer else float(digits.max)):
        return False
    return kind.itemsize == 8 or bool(np.all(np.diff(float32_above(np.asarray(edges, float))) > 0))
