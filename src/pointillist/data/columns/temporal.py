"""Columns of dates, times of the day, timestamps and durations.

The time between two public bounds is cut into cells: units such as days or hours, of which there may be many (a run
merges them, along the calendar), or calendar bins. All computing is done in whole microseconds, in UTC if the column
has a time zone, so that clocks that are changed do no harm. Decoding draws a time from the cell.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns import clock
from pointillist.data.columns.base import (
    MISSING_NUMBERS,
    Column,
    Label,
    check_column,
    check_flag,
    check_name,
    check_text,
    check_word,
    different_bins,
    fill_missing,
    is_missing,
    listed,
    missing_dict,
    missing_strings,
    place_missing,
    read_keys,
    read_missing,
    same_codes,
    without_none,
)
from pointillist.data.columns.clock import DAY, SIZES
from pointillist.data.columns.types import NUMBERS, arrow_type
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TEMPORAL_KINDS", "Temporal"]

TEMPORAL_KINDS = ("date", "time", "timestamp", "duration")
KEYS: dict[str, type] = {
    "bounds": object, "unit": object, "step": object, "zone": object, "format": object, "bins": object,
    "outside": object, "missing": bool, "dtype": object, "missing_values": object, "missing_as": object,
}  # fmt: skip
UNITS = {"date": "day", "time": "minute", "timestamp": "hour", "duration": "minute"}
CALENDAR = ("year", "quarter", "month", "week", "day")
CYCLES = ("weekday", "month of year", "hour of day")
BINS = {
    "date": (*CALENDAR, "weekday", "month of year"),
    "time": ("hour", "minute"),
    "timestamp": (*CALENDAR, "hour", *CYCLES),
    "duration": ("day", "hour", "minute"),
}
MOST_CELLS = 1_000_000
"""The most cells between the bounds."""
TRIED = 2000
"""The most codes whose way through the output type is tried when a column is made."""
LONGEST_FORMAT = 100
MISSING_TIMES = (*MISSING_NUMBERS, "NaT")
LEVELS = ("6 hours", "hour", "15 minutes", "5 minutes", "minute", "15 seconds", "5 seconds", "second")
"""Groupings below the day."""


@dataclass(frozen=True)
class Temporal:
    """A column of dates, times of the day, timestamps or durations.

    Args:
        name: The name of the column in the table.
        kind: "date", "time", "timestamp" or "duration".
        bounds: The first and the last value, known without looking at the data: texts in ISO 8601 such as
            "2020-01-31", "08:30" or "2020-01-31T08:30", for durations also "36:00:00" or "3 days"; or dates and times
            of Python. The units that they lie in belong to the column, and of a timestamp the whole last day if no time
            is given. By default the whole day for times.
        unit: The length of a cell: "day", "hour", "minute", "second", or several of them such as "15 minutes". By
            default a day for dates, an hour for timestamps and a minute for others.
        step: What decoded values are whole multiples of, counted from the lower bound: a unit. By default ``unit``.
        zone: The time zone of timestamps, such as "Europe/Berlin". Texts without an offset are in it.
        format: How texts are written: a pattern of Python's ``strptime``, or "hhmm" for times such as 905 or "0905". By
            default ISO 8601. Texts of durations are read in every form and written as "P1DT2H0M0S", with "clock" as
            "26:00:00" and with "days" as "1 days 02:00:00".
        bins: Calendar bins instead of units: "year", "quarter", "month", "week", "day", "hour" or "minute" for those
            between the bounds, and "weekday", "month of year" or "hour of day" for cycles. Decoding draws a value from
            the bin, evenly. Without bins the codes are fine: a run merges them.
        outside: "refuse" to refuse values outside of the bounds, or "clamp" to put them into the first or last cell.
        missing: Whether values may be missing. Missing is then a value of its own, with the last code.
        dtype: The type of the decoded column. By default date32, time32[s], timestamp[s] or duration[s], with smaller
            units if ``step`` is below a second, or int64 with ``format = "hhmm"``. "string" writes texts in ``format``.
        missing_values: What stands for missing in the table, such as "9999-12-31", apart from null and the usual
            spellings.
        missing_as: What missing values are decoded to, by default null. Other values become texts if it is a text.
    """

    name: str
    kind: str = "date"
    bounds: tuple[str, str] = ("", "")
    unit: str = ""
    step: str = ""
    zone: str = ""
    format: str = ""
    bins: str = ""
    outside: str = "refuse"
    missing: bool = False
    dtype: str = ""
    missing_values: tuple[str, ...] = ()
    missing_as: str | None = None

    def __post_init__(self) -> None:
        where = check_name(self.name)
        check_word(f"{where}: type", self.kind, TEMPORAL_KINDS)
        check_flag(f"{where}: missing", self.missing)
        for key in ("unit", "step", "zone", "format", "bins", "dtype"):
            value = getattr(self, key)
            check(isinstance(value, str), f"{where}: {key}", fragment(value), "must be a text", f'write {key} = "..."')
            check_text(f"{where}: {key}", value)
        check_word(f"{where}: outside", self.outside, ("refuse", "clamp"))
        self._check_words(where)
        for key, value in zip(("missing_values", "missing_as"), read_missing(self), strict=True):
            object.__setattr__(self, key, value)
        self._check_bounds(where)
        check_column(self)
        rule = "must be a type and a format that tell all values of the column apart"
        hint = "choose another dtype or format, a larger step, or leave them out"
        shown = Shown(f"{self.output_dtype}, {self.format!r}" if self.format else self.output_dtype)
        check(self._survives(), f"{where}: dtype", fragment(shown), rule, hint)

    def _check_words(self, where: str) -> None:
        """Refuse units, zones and formats that are none, or not of this kind."""
        for key, default in (("unit", UNITS[self.kind]), ("step", self.unit or UNITS[self.kind])):
            size, shown = clock.size_of(getattr(self, key) or default), getattr(self, key)
            rule = "must be a unit such as day, hour, minute, second or 15 minutes"
            check(size is not None, f"{where}: {key}", fragment(shown), rule, "write for example 'hour'")
            whole = self.kind != "date" or (size or 1) % DAY == 0
            check(whole, f"{where}: {key}", fragment(shown), "must be days in a column of dates", "write 'day'")
        rule, hint = "must not be longer than unit", "choose a smaller step"
        check(self._step <= self._unit, f"{where}: step", fragment(self.step), rule, hint)
        if self.bins:
            check_word(f"{where}: bins", self.bins, BINS[self.kind])
        rule, hint = "must only be given for timestamps", "leave it out"
        check(not self.zone or self.kind == "timestamp", f"{where}: zone", fragment(self.zone), rule, hint)
        if self.zone:
            self._check_zone(where)
        short = len(self.format) <= LONGEST_FORMAT
        check(short, f"{where}: format", fragment(self.format), f"must have at most {LONGEST_FORMAT} characters", hint)
        wanted = {"hhmm": ("time",), "clock": ("duration",), "days": ("duration",)}
        good = self.kind in wanted.get(self.format, TEMPORAL_KINDS)
        good = good and (self.kind != "duration" or self.format in ("", "clock", "days"))
        check(good, f"{where}: format", fragment(self.format), f"must be a format for a {self.kind}", "leave it out")
        named = self.format in ("", *wanted) or "%" in self.format
        rule = "must be a pattern such as %d.%m.%Y, hhmm, clock or days"
        check(named, f"{where}: format", fragment(self.format), rule, "write a pattern of strptime")

    def _check_zone(self, where: str) -> None:
        import pyarrow as pa

        try:
            clock.to_utc(np.zeros(1, np.int64), self.zone)
            clock.zone_of(self.zone)
        except (pa.ArrowException, KeyError, ValueError, OSError):
            rule, hint = "must be a time zone such as Europe/Berlin", "check its name"
            raise InputError(f"{where}: zone", fragment(self.zone), rule, hint) from None
        offset = not self.format or any(one in self.format for one in ("%z", "%:z"))
        offset = offset or (self.zone == "UTC" and self.format.endswith("Z"))
        rule = "must have %z in a column with a zone, because clocks show some hours twice"
        hint = "add it, or leave zone out to keep local times as they are"
        check(offset, f"{where}: format", fragment(self.format), rule, hint)

    def _check_bounds(self, where: str) -> None:
        """Read the bounds, and refuse those that are no times or too far apart."""
        bounds = listed(where, self.bounds, "bounds")
        if self.kind == "time" and bounds in ((), ("", "")):
            bounds = ("00:00", "23:59:59.999999")
        rule, hint = (
            "must be two times, the earlier one first",
            'write for example bounds = ["2020-01-01", "2024-12-31"]',
        )
        check(len(bounds) == 2, f"{where}: bounds", fragment(list(bounds)), rule, hint)
        texts = tuple(_bound_text(one) for one in bounds)
        object.__setattr__(self, "bounds", texts)
        try:
            low, high = self._ends
        except (clock.Unreadable, TypeError, ValueError):
            raise InputError(f"{where}: bounds", fragment(list(bounds)), rule, hint) from None
        check(low < high, f"{where}: bounds", fragment(list(bounds)), rule, hint)
        small = self._count(low, high) <= MOST_CELLS
        rule = f"must have at most {MOST_CELLS:,} units between them"
        check(small, f"{where}: bounds", fragment(list(bounds)), rule, "use a larger unit, and step for the values")

    # --- cells

    @property
    def _unit(self) -> int:
        return clock.size_of(self.unit or UNITS[self.kind]) or 1

    @property
    def _step(self) -> int:
        return clock.size_of(self.step or self.unit or UNITS[self.kind]) or 1

    @property
    def _single(self) -> int:
        """The ticks of one of the units that ``unit`` counts."""
        return max(size for size in SIZES.values() if self._unit % size == 0)

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The first tick of the column, and the one after the last, in UTC if there is a zone."""
        import pyarrow as pa

        read = [_bound_ticks(pa.array([text]), self) for text in self.bounds]
        if self.kind == "timestamp" and len(self.bounds[1]) == 10:
            read[1] += DAY - 1
        single = self._single
        ends = np.array([read[0] // single * single, read[1] // single * single + single])
        if not self.zone:
            return int(ends[0]), int(ends[1])
        utc = clock.to_utc(ends, self.zone)
        return int(utc[0]), int(utc[1])

    def _count(self, low: int, high: int) -> int:
        """Return about how many cells there are."""
        return (high - low) // (clock.size_of(self._cell) or DAY)

    @property
    def _cell(self) -> str:
        """What a cell is: a unit or a calendar bin."""
        small = {"weekday": "day", "month of year": "month", "hour of day": "hour"}
        return small.get(self.bins, self.bins) or self.unit or UNITS[self.kind]

    @cached_property
    def _edges(self) -> np.ndarray:
        """The first tick of each cell, and the end of the last one."""
        low, high = self._ends
        word, size = self._cell, clock.size_of(self._cell)
        local = clock.to_local(np.array([low, high - 1]), self.zone)
        if word in CALENDAR:
            starts = clock.to_utc(_calendar_starts(int(local[0]), int(local[1]), word), self.zone)
        elif size is not None and size % DAY == 0:
            starts = clock.to_utc(np.arange(local[0], local[1] + 1, size), self.zone)
        else:
            size = size or DAY
            starts = np.arange(low - local[0] % size if self.bins else low, high, size)
        inner = starts[(starts > low) & (starts < high)]
        return np.concatenate([[low], inner, [high]]).astype(np.int64)

    @cached_property
    def _cycle(self) -> np.ndarray:
        """The code of each cell: the place in the cycle, or the number of the cell."""
        cells = len(self._edges) - 1
        if self.bins not in CYCLES:
            return np.arange(cells)
        local = clock.to_local(self._edges[:-1], self.zone)
        if self.bins == "weekday":
            places = (local // DAY + 3) % 7  # 1970-01-01 was a Thursday, and Monday is the first
        elif self.bins == "hour of day":
            places = local % DAY // SIZES["hour"]
        else:
            places = local.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64) % 12
        return np.unique(places, return_inverse=True)[1]

    # --- the members of a column

    @property
    def ordered(self) -> bool:
        """True: neighbouring cells hold similar times."""
        return True

    @property
    def labels(self) -> tuple[Label, ...]:
        """Empty: the codes stand for cells."""
        return ()

    @property
    def _cells(self) -> int:
        return int(self._cycle.max()) + 1

    @property
    def size(self) -> int:
        """The number of codes."""
        return self._cells + self.missing

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        import pyarrow as pa

        if self.missing_as is None or self._time_dtype in _TEXTS:
            return self._time_dtype
        try:
            pa.scalar(self.missing_as).cast(arrow_type(self._time_dtype))
        except pa.ArrowException:
            return "string"
        return self._time_dtype

    @property
    def _time_dtype(self) -> str:
        """The type of the decoded column, apart from ``missing_as``."""
        if self.dtype or self.kind == "date":
            return self.dtype or "date32"
        if self.format == "hhmm":
            return "int64"
        unit = next(unit for unit, size in (("s", 10**6), ("ms", 1000), ("us", 1)) if self._whole % size == 0)
        if self.kind == "time":
            return f"time{'64' if unit == 'us' else '32'}[{unit}]"
        if self.kind == "timestamp" and self.zone:
            return f"timestamp[{unit}, tz={self.zone}]"
        return f"{self.kind}[{unit}]"

    @property
    def _whole(self) -> int:
        """What every decoded tick is a multiple of."""
        return int(np.gcd(self._step, self._single))

    @property
    def fine(self) -> bool:
        """Whether the codes are finer than a model should carry: without ``bins``."""
        return self.bins == ""

    @property
    def own(self) -> tuple[int, ...]:
        """Missing, if values may be missing."""
        return (self.size - 1,) if self.missing else ()

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return groupings of the codes along the calendar, the coarsest first.

        Decades, years, quarters, months, thirds of months and days, then 6 hours, hours, quarters of an hour and so on,
        as far as they are coarser than the cells. Durations have multiples of days instead. Missing is a group of its
        own.
        """
        if self.bins in CYCLES:
            return ()
        ticks = clock.to_local(self._edges[:-1], self.zone)
        out: list[np.ndarray] = []
        keys = np.zeros((0, len(ticks)), np.int64)
        for key in _calendar_keys(ticks, self.kind):
            keys = np.vstack([keys, key])
            new = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
            groups = np.concatenate([[0], np.cumsum(new)])
            if 1.5 * (groups[-1] + 1) > len(ticks):  # as fine as the cells, apart from hours that clocks show twice
                break
            if groups[-1] > 0 and (not out or groups[-1] != out[-1][len(ticks) - 1]):
                out.append(np.append(groups, groups[-1] + 1) if self.missing else groups)
        return tuple(out)

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the cell of each value. Values may also be given as texts."""
        ticks, nulls = self._read(array)
        low, high = self._ends
        if self.format == "hhmm" and high <= DAY:
            ticks = np.where(ticks == DAY, 0, ticks)
        stray = ((ticks < low) | (ticks >= high)) & ~nulls
        if self.outside == "refuse" and stray.any():
            found = array[int(np.flatnonzero(stray)[0])]
            hint = 'correct the table, widen the bounds, or set outside = "clamp"'
            rule = f"must lie between {self.bounds[0]} and {self.bounds[1]}"
            raise InputError(column_called(self.name), fragment(_shown(found)), rule, hint)
        cells = np.searchsorted(self._edges, np.clip(ticks, low, high - 1), side="right") - 1
        return place_missing(self, self._cycle[cells], nulls)

    def moments(self, array: pa.Array) -> pa.Array:
        """Return values as Arrow's dates, times, timestamps or durations, however they are written; null if missing.

        Args:
            array: Values that :meth:`encode` takes.
        """
        import pyarrow as pa

        ticks, nulls = self._read(array)
        if self.kind == "time":  # Arrow has no 24:00
            return pa.array(np.clip(ticks, 0, DAY - 1), mask=nulls).cast(pa.time64("us"))
        if self.kind == "duration":
            return pa.array(ticks, mask=nulls).cast(pa.duration("us"))
        stamps = pa.array(ticks, mask=nulls).cast(pa.timestamp("us", self.zone or None))
        return stamps.cast(pa.date32()) if self.kind == "date" else stamps

    def _read(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the ticks of values, and where they are missing."""
        import pyarrow as pa

        if pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        if (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) and self.format:
            array = _whole_texts(array)
        nulls = is_missing(array, missing_strings(self, MISSING_TIMES))
        if pa.types.is_string(array.type):
            return self._from_texts(array, nulls)
        ticks = self._from_times(array)
        return ticks, nulls | self._spelled_missing(ticks)

    def _from_texts(self, array: pa.Array, nulls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import pyarrow as pa
        import pyarrow.compute as pc

        array = pc.if_else(pa.array(nulls), pa.scalar(None, pa.string()), array)
        try:
            ticks = clock.from_texts(array, self.kind, self.format, self.zone, self._number)
        except clock.Unreadable as error:
            rule = f"must hold texts of the kind {self.kind}" + (f" in the format {self.format}" if self.format else "")
            hint = "correct the table, or set format or missing_values in the schema"
            value = fragment(array[error.place].as_py())
            raise InputError(column_called(self.name), value, rule, hint) from None
        return ticks, nulls

    @property
    def _number(self) -> int:
        """The nanoseconds of 1 where a duration is written as a plain number: those of the output type."""
        sizes = {"duration[ns]": 1, "duration[us]": 1000, "duration[ms]": 10**6}
        return sizes.get(self._time_dtype, 10**9)

    def _from_times(self, array: pa.Array) -> np.ndarray:
        """Return the ticks of an array of dates and times; refuse those of another kind."""
        import pyarrow as pa

        kind = array.type
        is_kind = {
            "date": pa.types.is_date(kind) or pa.types.is_timestamp(kind),
            "time": pa.types.is_time(kind),
            "timestamp": pa.types.is_timestamp(kind) or pa.types.is_date(kind),
            "duration": pa.types.is_duration(kind),
        }[self.kind]
        where, shown = column_called(self.name), fragment(Shown(kind))
        check(is_kind, where, shown, f"must hold values of the kind {self.kind}", "change its type in the schema")
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        rule, hint = "must not have a time zone", f'set zone = "{kind.tz if zoned else ""}" in the schema'
        check(not zoned or bool(self.zone), where, shown, rule, hint)
        ticks = clock.ticks_of(array)
        if self.kind == "date" and np.any(ticks % DAY):
            found = array[int(np.flatnonzero(ticks % DAY)[0])]
            rule, hint = "must hold dates without a time", 'write type = "timestamp" in the schema'
            raise InputError(where, fragment(_shown(found)), rule, hint)
        return ticks if zoned or not self.zone else clock.to_utc(ticks, self.zone)

    def _spelled_missing(self, ticks: np.ndarray) -> np.ndarray:
        """Return where ticks are those of a spelling of missing, such as 9999-12-31."""
        import pyarrow as pa

        out = np.zeros(len(ticks), bool)
        for text in missing_strings(self, ()):
            try:
                out |= ticks == _text_ticks(pa.array([text]), self)
            except clock.Unreadable:
                continue
        return out

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return a time from the cell of each code, drawn by ``rng`` on whole steps."""

        nulls = codes >= self._cells
        cells = np.minimum(codes, self._cells - 1).astype(np.int64)
        if self.bins in CYCLES:
            order = np.argsort(self._cycle, kind="stable")
            counts = np.bincount(self._cycle)
            starts = np.cumsum(counts) - counts
            cells = order[starts[cells] + np.floor(rng.random(len(cells)) * counts[cells]).astype(np.int64)]
        low, high = self._edges[cells], self._edges[cells + 1]
        steps = -((low - high) // self._step)
        single = bool(np.all(steps == 1))
        places = 0 if single else np.floor(rng.random(len(cells)) * steps).astype(np.int64)
        return self._out(low + np.minimum(places, steps - 1) * self._step, nulls)

    def snapped(self, array: pa.Array) -> pa.Array:
        """Return times of the output type on whole steps of their cells: the nearest ones that are not later.

        Args:
            array: Times between the bounds, in the type of the decoded column, or null.
        """
        ticks, nulls = self._from_times(array), array.is_null().to_numpy(zero_copy_only=False)
        cells = np.clip(np.searchsorted(self._edges, ticks, side="right") - 1, 0, len(self._edges) - 2)
        low = self._edges[cells]
        return self._out(np.where(nulls, low, low + (ticks - low) // self._step * self._step), nulls)

    def _out(self, ticks: np.ndarray, nulls: np.ndarray) -> pa.Array:
        """Return ticks in the output type."""
        import pyarrow as pa
        import pyarrow.compute as pc

        dtype = self._time_dtype
        kind = arrow_type(dtype)
        if dtype in _TEXTS:
            return fill_missing(self, clock.to_texts(ticks, nulls, self.kind, self.format, self.zone).cast(kind))
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            texts = clock.to_texts(ticks, nulls, self.kind, self.format, self.zone)
            return fill_missing(self, pc.cast(texts.cast(pa.int64()), kind))
        wide = {"time": pa.time64("us"), "duration": pa.duration("us")}.get(self.kind, pa.timestamp("us"))
        if self.zone and pa.types.is_timestamp(kind) and kind.tz is not None:
            wide = pa.timestamp("us", "UTC")
        return fill_missing(self, pc.cast(pa.array(ticks, mask=nulls).cast(wide), kind))

    def _survives(self) -> bool:
        """Return whether codes come back from the output type, tried on some of them."""
        import pyarrow as pa

        dtype = self._time_dtype
        number = dtype in NUMBERS or dtype in ("Int64", "Int32", "Int16")
        if (number and not self.format) or dtype in ("category", "enum", "bool", "boolean"):
            return False
        codes = np.unique(np.linspace(0, self._cells - 1, min(self._cells, TRIED)).astype(np.int64))
        try:
            cells = self.decode(codes, np.random.default_rng(0))
            if (
                self.missing_as is not None
                and pa.types.is_timestamp(cells.type)
                and cells.type.tz != (self.zone or None)
            ):
                return False
            return np.array_equal(self.encode(cells), codes)
        except (pa.ArrowException, InputError, ValueError, OverflowError):
            return False

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source``, which must have the same cells, as codes of this one."""
        if not same_codes(self, source):
            raise different_bins(self)
        return codes

    def describe(self) -> str:
        """Return a one-line description."""
        what = (
            f"{self._cells:,} cells of one {self._cell}" if self.bins not in CYCLES else f"{self._cells} ({self.bins})"
        )
        what = what.replace("of one", "of", 1) if self._cell[0].isdigit() else what
        gaps = " or missing" if self.missing else ""
        return f"{self.name}: {what} from {self.bounds[0]} to {self.bounds[1]}{gaps}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        out: dict[str, Any] = {"name": self.name, "type": self.kind, "bounds": list(self.bounds)}
        out |= {key: getattr(self, key) or None for key in ("unit", "step", "zone", "format", "bins")}
        out["outside"] = None if self.outside == "refuse" else self.outside
        return without_none(out | missing_dict(self) | {"dtype": self.dtype or None})

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Temporal:
        """Create the column from a ``[[column]]`` table of a schema file."""
        return cls(kind=spec["type"], **read_keys(spec, KEYS))


_TEXTS = ("string", "large_string", "string[python]", "string[pyarrow]")


def _bound_text(value: Any) -> str:
    """Return a bound as a text in ISO 8601."""
    if isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, dt.timedelta):
        return clock.duration_text(value // dt.timedelta(microseconds=1), "clock")
    if isinstance(value, dt.date | dt.time):
        return str(value)
    return value if isinstance(value, str) else "?"


def _bound_ticks(text: pa.Array, column: Temporal) -> int:
    """Return the tick of a bound: of the clocks of the zone, if there is one."""
    if column.format == "hhmm" and text[0].as_py() in ("24:00", "2400"):
        return DAY
    ticks = clock.from_texts(text, column.kind, "", column.zone, 10**9)
    return int(clock.to_local(ticks, column.zone)[0])


def _text_ticks(text: pa.Array, column: Temporal) -> int:
    """Return the tick of a text in ISO 8601 or in the format of a column."""
    try:
        return int(clock.from_texts(text, column.kind, "", column.zone, 10**9)[0])
    except clock.Unreadable:
        if not column.format:
            raise
    return int(clock.from_texts(text, column.kind, column.format, column.zone, 10**9)[0])


def _whole_texts(array: pa.Array) -> pa.Array:
    """Return whole numbers as texts, for example 905.0 as "905"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(array.type):
        nothing = pa.scalar(None, array.type)
        array = pc.if_else(pc.is_nan(array), nothing, array)
        whole = pc.equal(array, pc.floor(array))
        return pc.if_else(whole, pc.cast(array, pa.int64(), safe=False).cast(pa.string()), array.cast(pa.string()))
    return array.cast(pa.string())


def _shown(value: pa.Scalar) -> Any:
    """Return a cell as messages show it."""
    import pyarrow as pa

    return value.as_py() if pa.types.is_string(value.type) else Shown(value.cast(pa.string()).as_py())


def _calendar_starts(low: int, high: int, word: str) -> np.ndarray:
    """Return the ticks at which calendar bins begin, from the one that holds ``low`` to the one that holds ``high``."""
    ends = np.array([low, high]).astype("datetime64[us]")
    if word in ("day", "week"):
        days = ends.astype("datetime64[D]").astype(np.int64)
        first = days[0] - (days[0] + 3) % 7 if word == "week" else days[0]
        return np.arange(first, days[1] + 1, 7 if word == "week" else 1, dtype=np.int64) * DAY
    months = ends.astype("datetime64[M]").astype(np.int64)
    size = {"month": 1, "quarter": 3, "year": 12}[word]
    starts = np.arange(months[0] // size * size, months[1] + 1, size).astype("datetime64[M]")
    return starts.astype("datetime64[us]").astype(np.int64)


def _calendar_keys(ticks: np.ndarray, kind: str) -> list[np.ndarray]:
    """Return numbers that tell groups of times apart, from the coarsest groups to the finest."""
    days = ticks // DAY
    out: list[np.ndarray] = []
    if kind == "duration":
        out = [days // 1000, days // 100, days // 10, days]
    elif kind != "time":
        months = days.astype("datetime64[D]").astype("datetime64[M]")
        number = months.astype(np.int64)
        third = np.minimum((days - months.astype("datetime64[D]").astype(np.int64)) // 10, 2)
        out = [number // 120, number // 12, number // 3, number, third, days]
    return out + [ticks // (clock.size_of(word) or 1) for word in LEVELS]
