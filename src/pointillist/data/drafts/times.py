"""Draft columns of dates, times, timestamps and durations, stored as such or written as text."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pointillist.data.columns import Constant, Temporal
from pointillist.data.columns.clock import from_texts, show_moment
from pointillist.data.drafts.numbers import wide_bounds
from pointillist.data.drafts.parts import Drafted, first_that_fits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["draft_times", "draft_written_times"]

DATES = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d",
    "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d. %B %Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y",
)  # fmt: skip
"""Formats of dates, the more common one first where two are possible."""
MONTHS = ("%Y-%m", "%m/%Y", "%Y/%m", "%b %Y", "%B %Y", "%b-%Y")
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
ENDS = (*CLOCKS, "%H:%M:%S.%f")
MONTH = r"[A-Za-z]{3,9}"
DAY = (
    r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}"
    rf"|[0-9]{{1,2}}[-. ]{{1,2}}{MONTH}[- ][0-9]{{2,4}}|{MONTH} [0-9]{{1,2}}, [0-9]{{4}}"
)
HOUR = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?( [AaPp][Mm])?"
DATE = re.compile(rf"{DAY}|(19|20)[0-9]{{6}}")
IN_MONTH = re.compile(rf"[0-9]{{4}}[-/][0-9]{{2}}|[0-9]{{2}}/[0-9]{{4}}|{MONTH}[- ][0-9]{{4}}")
CLOCK = re.compile(HOUR)
STAMP = re.compile(rf"({DAY})[T ]{HOUR}([.][0-9]+)?(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?")
DURATIONS = {
    "clock": re.compile(r"-?[0-9]+:[0-5][0-9]:[0-5][0-9]([.][0-9]+)?"),
    "days": re.compile(r"-?[0-9]+ days?,? [+]?[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"),
    "": re.compile(r"-?P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]+)?S)?)?"),
}
"""How durations are written, by their format."""
MOST_CELLS = 1_000_000
"""The most units between the bounds of durations; with more, the unit is a larger one."""


def draft_times(name: str, cells: pa.ChunkedArray, dtype: str) -> Drafted:
    """Draft a column of an Arrow type of dates, times, timestamps or durations.

    Args:
        name: The name of the column.
        cells: Its cells.
        dtype: The name of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    missing, kind = cells.null_count > 0, cells.type
    if not missing and len(pc.unique(cells)) == 1:
        note = "The same value in every row: kept as a constant. Check that it is public."
        return Drafted(Constant(name, _text(cells[0].as_py()), dtype), note)
    words: dict[str, Any] = {"missing": missing, "dtype": dtype}
    if pa.types.is_time(kind):
        words |= {"kind": "time", "step": "second" if pc.any(_has_seconds(cells)).as_py() else ""}
        note = "Times of the day."
    elif pa.types.is_duration(kind):
        words |= {"kind": "duration", **_duration(cells)}
        note = "Durations between wide round bounds. Check that none can be outside."
    elif pa.types.is_date(kind):
        words |= {"kind": "date", "bounds": _years(*_ends(cells))}
        note = _bounds_note(words["bounds"])
    else:
        step = _step(cells)
        words |= {"kind": "timestamp", "bounds": _years(*_ends(cells)), **_cells(step), "zone": kind.tz or ""}
        note = f"{_bounds_note(words['bounds'])}\nKept to the {step}."
    column = first_that_fits(cells, lambda: Temporal(name, **words), lambda: Temporal(name, **{**words, "dtype": ""}))
    return Drafted(column, note if column is not None else "its dates or times fit no calendar of a schema")


def draft_written_times(
    name: str, cells: pa.ChunkedArray, texts: Sequence[str], gaps: Sequence[str], missing: bool
) -> Drafted | None:
    """Draft a column of texts that are all dates, times or timestamps; return None for others.

    Args:
        name: The name of the column.
        cells: Its cells.
        texts: The different texts, without those that mean "missing".
        gaps: Texts that mean "missing".
        missing: Whether values are missing.
    """
    words: dict[str, Any] = {"missing": missing, "missing_values": tuple(gaps)}
    if _all(CLOCK, texts) and (found := _formats(texts, CLOCKS)):
        step = _coarsest([dt.datetime.strptime(text.strip(), found[0]) for text in texts])
        finer = {"second": {"step": "second"}, "minute": {}}.get(step, {"unit": "hour"})
        words |= {"kind": "time", **finer, "format": _as_written(texts, found[0]), "dtype": "string"}
        column = first_that_fits(cells, lambda: Temporal(name, **words))
        return None if column is None else Drafted(column, "Times of the day, written as text.")
    for pattern, style in DURATIONS.items():
        if _all(style, texts):
            return _written_durations(name, cells, texts, pattern, words)
    if _all(DATE, texts):
        return _written(name, cells, texts, "date", DATES, words)
    if _all(IN_MONTH, texts):
        return _written(name, cells, texts, "date", MONTHS, words | {"bins": "month"})
    if _all(STAMP, texts):
        days = [day for day in DATES if day != "%Y%m%d"]
        zones = ("%z",) if _ends_in_offset(texts) else ("Z",) if texts[0].strip().endswith("Z") else ("",)
        formats = [f"{day}{mark}{end}{zone}" for day in days for mark in "T " for end in ENDS for zone in zones]
        return _written(name, cells, texts, "timestamp", formats, words)
    return None


def _written(
    name: str, cells: pa.ChunkedArray, texts: Sequence[str], kind: str, formats: Sequence[str], words: dict[str, Any]
) -> Drafted | None:
    """Draft dates or timestamps in the first format that all of them have."""
    found = _formats(texts, formats)
    if not found:
        return _iso_stamps(name, cells, texts, words) if kind == "timestamp" else None
    moments = [dt.datetime.strptime(text.strip(), found[0]) for text in texts]
    pattern = _as_written(texts, found[0])
    low, high = min(moments), max(moments)
    words = words | {"kind": kind, "bounds": _years(low, high), "format": pattern, "dtype": "string"}
    notes = [f"Written as {pattern}. {_bounds_note(words['bounds'])}"]
    if kind == "timestamp":
        step = _coarsest(moments)
        step = "millisecond" if step == "microsecond" and "%3f" in pattern else step
        words |= _cells(step)
        notes.append(f"Kept to the {step}.")
    if "%z" in found[0]:
        offsets = {moment.strftime("%z") for moment in moments}
        words["zone"] = f"{(one := offsets.pop())[:3]}:{one[3:5]}" if len(offsets) == 1 else "UTC"
        notes.append("The offset is the same in all rows." if words["zone"] != "UTC" else "Written in UTC.")
    elif kind == "timestamp" and pattern.endswith("Z"):
        words["zone"] = "UTC"
    column = first_that_fits(cells, lambda: Temporal(name, **words))
    if column is None:
        return None
    if len(found) > 1:
        notes.append(f"They could also be written as {found[1]}. Check which of the two it is.")
    return Drafted(column, "\n".join(notes))


def _ends_in_offset(texts: Sequence[str]) -> bool:
    """Return whether timestamps end in an offset such as +02:00, or some of them in Z and some in an offset."""
    return any(re.search(r":[0-9.]+[+-][0-9]{2}:?[0-9]{2}$", text.strip()) for text in texts)


def _as_written(texts: Sequence[str], pattern: str) -> str:
    """Return a pattern with which texts are written as they were, where there is one: without leading zeros of days,
    months and hours, with milliseconds, or with a colon in the offset. Otherwise the pattern itself."""
    loose = re.sub("%([dmHI])", r"%-\1", pattern)
    for one in dict.fromkeys((pattern, loose, loose.replace("%-m", "%m").replace("%-d", "%d"))):
        for offset in dict.fromkeys((one, one.replace("%z", "%:z"))):
            for whole in dict.fromkeys((offset, offset.replace("%f", "%3f"))):
                if all(show_moment(dt.datetime.strptime(text.strip(), pattern), whole) == text for text in texts):
                    return whole
    return pattern


def _written_durations(
    name: str, cells: pa.ChunkedArray, texts: Sequence[str], pattern: str, words: dict[str, Any]
) -> Drafted | None:
    """Draft durations that are written as text."""
    import pyarrow as pa

    try:
        ticks = from_texts(pa.array(texts, pa.string()), "duration", "", "", 1)
        spans = pa.chunked_array([pa.array(ticks, pa.duration("us"))])
        words = words | {"kind": "duration", **_duration(spans), "format": pattern, "dtype": "string"}
    except (ValueError, OverflowError):
        return None
    column = first_that_fits(cells, lambda: Temporal(name, **words))
    note = "Durations, written as text, between wide round bounds. Check that none can be outside."
    return None if column is None else Drafted(column, note)


def _iso_stamps(name: str, cells: pa.ChunkedArray, texts: Sequence[str], words: dict[str, Any]) -> Drafted | None:
    """Draft timestamps of ISO 8601 with fractions of seconds or time zones."""
    try:
        moments = [dt.datetime.fromisoformat(text.strip()) for text in texts]
    except ValueError:
        return None
    zoned = {moment.tzinfo is not None for moment in moments}
    if len(zoned) > 1:
        return None
    zone = "UTC" if zoned.pop() else ""
    bounds = _years(min(moments), max(moments))
    step = _coarsest(moments)
    words = words | {"kind": "timestamp", "bounds": bounds, **_cells(step), "zone": zone}
    column = first_that_fits(cells, lambda: Temporal(name, **words, dtype="string"), lambda: Temporal(name, **words))
    note = f"{_bounds_note(bounds)}\nKept to the {step}{', in UTC' if zone else ''}."
    return None if column is None else Drafted(column, note)


def _coarsest(moments: Sequence[dt.datetime]) -> str:
    """Return the coarsest step that keeps every timestamp."""
    for part in ("microsecond", "second", "minute", "hour"):
        if any(getattr(moment, part) for moment in moments):
            return part
    return "day"


def _all(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.fullmatch(text.strip()) for text in texts)


def _formats(texts: Sequence[str], formats: Sequence[str]) -> list[str]:
    """Return the formats that all texts have."""
    left = list(formats)
    for text in texts:
        left = [one for one in left if _reads(text.strip(), one)]
        if not left:
            break
    return left


def _reads(text: str, pattern: str) -> bool:
    try:
        return dt.datetime.strptime(text, pattern).year >= 1000 or "%Y" not in pattern
    except ValueError:
        return False


def _years(low: Any, high: Any) -> tuple[str, str]:
    """Return the first day of the first year and the last day of the year that lies three months ahead."""
    last = high.year + (1 if high.month > 9 and high.year < 9999 else 0)
    return f"{low.year:04d}-01-01", f"{last:04d}-12-31"


def _cells(step: str) -> dict[str, str]:
    """Return cells of an hour, decoded to multiples of a step; or cells of a day for a step of one."""
    return {"unit": "day"} if step == "day" else {"unit": "hour", "step": "" if step == "hour" else step}


def _ends(cells: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the first and the last date."""
    import pyarrow.compute as pc

    ends = pc.min_max(cells)
    return ends["min"].as_py(), ends["max"].as_py()


def _bounds_note(bounds: tuple[str, str]) -> str:
    return f"Whole years around the data, {bounds[0]} to {bounds[1]}. Check that no date can be outside."


def _text(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _has_seconds(cells: pa.ChunkedArray) -> Any:
    import pyarrow.compute as pc

    return pc.not_equal(pc.second(cells), 0)


def _step(cells: pa.ChunkedArray) -> str:
    """Return the coarsest unit that keeps every timestamp."""
    import pyarrow.compute as pc

    for unit in ("day", "hour", "minute", "second"):
        if pc.all(pc.equal(pc.floor_temporal(cells, unit=unit), cells)).as_py():
            return unit
    return "microsecond"


def _duration(cells: pa.ChunkedArray) -> dict[str, Any]:
    """Return the coarsest unit that keeps every duration, and round bounds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seconds = pc.cast(pc.cast(cells, pa.duration("s"), safe=False), pa.int64()).drop_null().to_numpy()
    sizes = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    step = next(name for name, size in sizes.items() if not (seconds % size).any())
    ends = float(seconds.min()), float(seconds.max())
    units = {name: size for name, size in sizes.items() if size >= sizes[step]}
    large = [size for size in units.values() if max(map(abs, ends)) >= 2 * size]
    one = large[0] if large else sizes[step]
    low, high = (math.trunc(end * one) for end in wide_bounds(ends[0] / one, ends[1] / one))
    unit = next((name for name in reversed(units) if (high - low) // units[name] <= MOST_CELLS), "day")
    bounds = tuple(str(dt.timedelta(seconds=end)) for end in (low, high))
    return {"unit": unit, "bounds": bounds, "step": "" if unit == step else step}
