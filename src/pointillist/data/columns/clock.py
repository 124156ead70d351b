"""Times as whole microseconds ("ticks"), from Arrow arrays and texts, and back.

A tick counts from 1970-01-01 00:00 for dates and timestamps (in UTC if there is a time zone), from midnight for times
of the day, and from zero for durations.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DAY",
    "SIZES",
    "Unreadable",
    "duration_text",
    "from_texts",
    "show_moment",
    "size_of",
    "ticks_of",
    "to_local",
    "to_texts",
    "to_utc",
    "zone_of",
]

SECOND = 1_000_000
DAY = 86_400 * SECOND
SIZES = {
    "day": DAY,
    "hour": 3600 * SECOND,
    "minute": 60 * SECOND,
    "second": SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
"""The ticks of each unit."""
FAR = 2**62
"""A tick beyond all bounds."""
SIMPLE = re.compile(r"(%[YmdHMS]|[^%])*")
"""Patterns of numbers alone."""
DIRECTIVES = ("%Y", "%m", "%d", "%H", "%M", "%S")
DIRECTIVE = re.compile(r"(%[YmdHMS])")
PARTS = (
    r"^(?P<plus>)(?P<sign>-?)P?(?:(?P<days>\d+)D)?"
    r"T?(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?$"
)
"""A duration in ISO 8601."""
CLOCK = (
    r"^(?P<sign>-?)(?:(?P<days>\d+) days?,? ?)?"
    r"(?:(?P<plus>\+?)(?P<hours>\d+):(?P<minutes>[0-5]?\d)(?::(?P<seconds>[0-5]?\d(?:\.\d+)?))?)?$"
)
"""A duration as Python and pandas write it: "1 day, 2:00:00", "-1 days +23:00:00"."""


class Unreadable(ValueError):
    """A text that is no time. ``place`` is the position of the first one."""

    def __init__(self, bad: np.ndarray) -> None:
        self.place = int(np.flatnonzero(bad)[0])
        super().__init__()


def size_of(unit: str) -> int | None:
    """Return the ticks of a unit such as "day" or "15 minutes"; None if it is none."""
    found = re.fullmatch(r"(?:([1-9][0-9]{0,5}) )?(day|hour|minute|second|millisecond|microsecond)s?", unit)
    return None if found is None else int(found[1] or 1) * SIZES[found[2]]


def ticks_of(array: pa.Array) -> np.ndarray:
    """Return the ticks of an Arrow array of dates, times, timestamps or durations; 0 where it is null.

    Args:
        array: The array. Finer units than microseconds are rounded down.
    """
    import pyarrow as pa

    kind = array.type
    unit = getattr(kind, "unit", "D" if pa.types.is_date32(kind) else "ms")  # dates have none
    wide = pa.int32() if kind.bit_width == 32 else pa.int64()
    numbers: np.ndarray = array.view(wide).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if unit == "ns":
        return numbers // 1000
    factor = {"D": DAY, "s": SECOND, "ms": 1000, "us": 1}[unit]
    ticks: np.ndarray = np.clip(numbers, -(FAR // factor), FAR // factor) * factor
    return ticks


def to_local(ticks: np.ndarray, zone: str) -> np.ndarray:
    """Return ticks in UTC as ticks of the clocks of a time zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not zone:
        return ticks
    return ticks_of(pc.local_timestamp(pa.array(ticks).cast(pa.timestamp("us", zone))))


def to_utc(ticks: np.ndarray, zone: str) -> np.ndarray:
    """Return ticks of the clocks of a time zone as ticks in UTC.

    Of an hour that clocks show twice, the first is meant; an hour that they leave out is counted from its end.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not zone:
        return ticks
    local = pa.array(ticks).cast(pa.timestamp("us"))
    return ticks_of(pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest"))


# --- texts


def from_texts(texts: pa.Array, kind: str, pattern: str, zone: str, count: int) -> np.ndarray:
    """Return the ticks of texts, 0 where one is null; raise :class:`Unreadable` for texts that are no times.

    Args:
        texts: The texts.
        kind: "date", "time", "timestamp" or "duration".
        pattern: A pattern of ``strptime``, "hhmm", or empty for ISO 8601.
        zone: The time zone in which texts without an offset are meant; empty for none.
        count: The nanoseconds of 1 where a duration is written as a plain number.
    """
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts)
    if pattern == "hhmm":
        return _from_hhmm(texts)
    if kind == "duration":
        return _from_durations(texts, count)
    if pattern:
        return _from_pattern(texts, pattern, zone)
    return _from_iso(texts, kind, zone)


def _parsed(texts: pa.Array, read: Callable[[pa.Array], pa.Array]) -> np.ndarray:
    """Return ticks that Arrow reads from texts, all at once, or one by one to find the first that it cannot read."""
    import pyarrow as pa

    try:
        return ticks_of(read(texts))
    except pa.ArrowInvalid:
        bad = np.zeros(len(texts), bool)
        for place in range(len(texts)):
            try:
                read(texts.slice(place, 1))
            except pa.ArrowInvalid:
                bad[place] = True
                break
        if not bad.any():
            raise
        raise Unreadable(bad) from None


def _from_iso(texts: pa.Array, kind: str, zone: str) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]{1,3}", r"\1")  # nanoseconds
    if kind == "date":
        texts = pc.replace_substring_regex(texts, r"[ T]00:00(:00(\.0*)?)?$", "")
        return _parsed(texts, lambda part: part.cast(pa.date32()))
    if kind == "time":
        padded = pc.replace_substring_regex(texts, r"^([0-9]):", r"0\1:")
        whole = pc.binary_join_element_wise(pa.scalar("1970-01-01"), padded, pa.scalar(" "))
        return _parsed(whole, lambda part: part.cast(pa.timestamp("us")))
    if not zone:
        return _parsed(texts, lambda part: part.cast(pa.timestamp("us")))
    offset = pc.match_substring_regex(texts, r":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$").fill_null(False)
    nothing = pa.scalar(None, pa.string())
    given = pc.if_else(offset, texts, nothing)
    local = pc.if_else(offset, nothing, texts)
    ticks = _parsed(given, lambda part: part.cast(pa.timestamp("us", "UTC")))
    naive = _parsed(local, lambda part: part.cast(pa.timestamp("us")))
    return np.where(offset.to_numpy(zero_copy_only=False), ticks, to_utc(naive, zone))


def _from_pattern(texts: pa.Array, pattern: str, zone: str) -> np.ndarray:
    import pyarrow.compute as pc

    nulls = texts.is_null().to_numpy(zero_copy_only=False)
    if SIMPLE.fullmatch(pattern) and len(set(DIRECTIVE.findall(pattern))) == len(DIRECTIVE.findall(pattern)):
        return to_utc(_from_simple(texts, pattern, nulls), zone)
    different = pc.unique(texts)
    places = pc.index_in(texts, value_set=different).to_numpy(zero_copy_only=False).astype(np.int64)
    plain = pattern.replace("%-", "%").replace("%:z", "%z").replace("%3f", "%f")
    found = np.array([FAR if text is None else _python_ticks(text, plain) for text in different.to_pylist()], np.int64)
    bad = (found[places] == FAR) & ~nulls
    if bad.any():
        raise Unreadable(bad)
    ticks = np.where(nulls, 0, found[places])
    return ticks if "%z" in plain or not zone else to_utc(ticks, zone)


def _from_simple(texts: pa.Array, pattern: str, nulls: np.ndarray) -> np.ndarray:
    """Return ticks of texts in a pattern of numbers, by writing them as ISO 8601. Arrow's own reader takes 31 June."""
    import pyarrow as pa
    import pyarrow.compute as pc

    width = {"Y": "4"} | dict.fromkeys("mdHMS", "1,2")
    regex = "".join(
        f"(?P<{part[1]}>[0-9]{{{width[part[1]]}}})" if part in DIRECTIVES else re.escape(part)
        for part in DIRECTIVE.split(pattern)
    )
    parts = pc.extract_regex(texts, f"^{regex}$")
    bad = parts.is_null().to_numpy(zero_copy_only=False) & ~nulls
    if bad.any():
        raise Unreadable(bad)
    given = {part[1] for part in DIRECTIVE.findall(pattern)}
    cells = {
        key: pc.utf8_lpad(pc.struct_field(parts, key), len(default), "0") if key in given else pa.scalar(default)
        for key, default in {"Y": "1970", "m": "01", "d": "01", "H": "00", "M": "00", "S": "00"}.items()
    }
    joined = cells["Y"]
    for key, before in (("m", "-"), ("d", "-"), ("H", " "), ("M", ":"), ("S", ":")):
        joined = pc.binary_join_element_wise(joined, cells[key], pa.scalar(before))
    joined = pc.if_else(pa.array(nulls), pa.scalar(None, pa.string()), joined)
    return _parsed(joined, lambda part: part.cast(pa.timestamp("us")))


def _python_ticks(text: str, pattern: str) -> int:
    try:
        read = dt.datetime.strptime(text, pattern)
    except ValueError:
        return FAR
    start = dt.datetime(1970, 1, 1, tzinfo=read.tzinfo and dt.UTC)
    if "%Y" not in pattern and "%y" not in pattern:
        start = start.replace(year=1900)
    return (read - start) // dt.timedelta(microseconds=1)


def _from_hhmm(texts: pa.Array) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = pc.match_substring_regex(texts, r"^([0-9]{1,4}|[0-9]{1,2}:[0-9]{2})(\.0*)?$")
    digits = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\.0*$", ""), ":", "")
    numbers = pc.if_else(good, digits, "0").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    minutes = numbers // 100 * 60 + numbers % 100
    bad = ~good.fill_null(True).to_numpy(zero_copy_only=False) | (numbers % 100 > 59) | (minutes > 1440)
    if bad.any():
        raise Unreadable(bad)
    ticks: np.ndarray = minutes * SIZES["minute"]
    return ticks


def _from_durations(texts: pa.Array, count: int) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = texts.is_null().to_numpy(zero_copy_only=False)
    number = pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")
    ticks = np.zeros(len(texts), np.int64)
    found = nulls.copy()
    for pattern in (PARTS, CLOCK):
        parts = pc.extract_regex(texts, pattern)
        hit = parts.is_valid().to_numpy(zero_copy_only=False) & ~found
        hit &= pc.utf8_length(texts).fill_null(0).to_numpy(zero_copy_only=False) > 1
        if hit.any():
            ticks = np.where(hit, _parts_ticks(parts), ticks)
            found |= hit
    plain = number.fill_null(False).to_numpy(zero_copy_only=False)
    whole = pc.if_else(number, texts, "0").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    most, factor = FAR // max(count // 1000, 1), count // 1000
    ticks = np.where(plain, np.clip(whole, -most, most) * factor if factor else whole // 1000, ticks)
    if not np.all(found | plain):
        raise Unreadable(~(found | plain))
    return np.where(nulls, 0, ticks)


def _parts_ticks(parts: pa.StructArray) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    total = np.zeros(len(parts), np.float64)
    for name in ("days", "hours", "minutes", "seconds"):
        part = pc.struct_field(parts, name)
        part = pc.if_else(pc.equal(part, ""), "0", part).cast(pa.float64()).fill_null(0.0)
        total += part.to_numpy(zero_copy_only=False) * SIZES[name[:-1]]
    minus = pc.equal(pc.struct_field(parts, "sign"), "-").fill_null(False).to_numpy(zero_copy_only=False)
    days = pc.struct_field(parts, "days")
    days = (
        pc.if_else(pc.equal(days, ""), "0", days).cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) * DAY
    )
    plus = pc.equal(pc.struct_field(parts, "plus"), "+").fill_null(False).to_numpy(zero_copy_only=False)
    total = np.where(minus, np.where(plus, total - 2 * days, -total), total)
    return np.rint(np.clip(total, -float(FAR), float(FAR))).astype(np.int64)


def to_texts(ticks: np.ndarray, nulls: np.ndarray, kind: str, pattern: str, zone: str) -> pa.Array:
    """Return ticks as texts, as :func:`from_texts` reads them; null where ``nulls`` is true.

    Args:
        ticks: The ticks.
        nulls: Where values are missing.
        kind: "date", "time", "timestamp" or "duration".
        pattern: A pattern of ``strftime``, "hhmm", "clock" or "days" (for durations), or empty for ISO 8601.
        zone: The time zone; empty for none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern == "hhmm":
        minutes = ticks // SIZES["minute"]
        texts = pa.array(minutes // 60 * 100 + minutes % 60, mask=nulls).cast(pa.string())
        return pc.utf8_lpad(texts, 4, "0")
    if kind == "duration":
        return _each(ticks, nulls, lambda tick: duration_text(tick, pattern))
    pattern = pattern or _iso_pattern(ticks[~nulls], kind, zone)
    if SIMPLE.fullmatch(pattern):
        local = pa.array(to_local(ticks, zone) // SECOND, mask=nulls).cast(pa.timestamp("s"))
        return pc.strftime(local, format=pattern)
    shown = zone_of(zone)
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return _each(
        ticks, nulls, lambda tick: show_moment((start + dt.timedelta(microseconds=tick)).astimezone(shown), pattern)
    )


def show_moment(moment: dt.datetime, pattern: str) -> str:
    """Return a timestamp as a text.

    Args:
        moment: The timestamp.
        pattern: A pattern of ``strftime``, in which ``%:z`` is an offset such as "+02:00" and ``%3f`` are milliseconds.
    """
    offset = moment.strftime("%z")
    pattern = pattern.replace("%:z", f"{offset[:3]}:{offset[3:5]}" if offset else "")
    return moment.strftime(pattern.replace("%3f", f"{moment.microsecond // 1000:03d}"))


def _iso_pattern(ticks: np.ndarray, kind: str, zone: str) -> str:
    fraction = ".%f" if np.any(ticks % SECOND) else ""
    patterns = {"date": "%Y-%m-%d", "time": f"%H:%M:%S{fraction}", "timestamp": f"%Y-%m-%d %H:%M:%S{fraction}"}
    return patterns[kind] + ("%z" if zone and kind == "timestamp" else "")


def zone_of(zone: str) -> dt.tzinfo:
    """Return a time zone of Python: a name such as "Europe/Berlin", an offset such as "+02:00", or empty for UTC."""
    from zoneinfo import ZoneInfo

    if not zone:
        return dt.UTC
    found = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", zone)
    if found is None:
        return ZoneInfo(zone)
    minutes = int(found[2]) * 60 + int(found[3])
    return dt.timezone(dt.timedelta(minutes=minutes if found[1] == "+" else -minutes))


def _each(ticks: np.ndarray, nulls: np.ndarray, show: Callable[[int], str]) -> pa.Array:
    """Return a text for each tick, made once for each different one."""
    import pyarrow as pa

    different, places = np.unique(ticks, return_inverse=True)
    texts: Sequence[str] = [show(int(tick)) for tick in different]
    return pa.array(texts, pa.string()).take(pa.array(places.astype(np.int64), mask=nulls))


def duration_text(tick: int, pattern: str) -> str:
    """Return a duration as a text in the pattern "clock", "days" or, if empty, ISO 8601."""
    sign, (seconds, micros) = "-" if tick < 0 else "", divmod(abs(tick), SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    if pattern == "clock":
        return f"{sign}{hours}:{minute:02d}:{second:02d}{fraction}"
    days, hour = divmod(hours, 24)
    if pattern == "days" and tick < 0:
        days, rest = divmod(tick, DAY)
        return f"{days} days +{duration_text(rest, 'days').partition(' days ')[2]}"
    if pattern == "days":
        return f"{days} days {hour:02d}:{minute:02d}:{second:02d}{fraction}"
    return f"{sign}P{days}DT{hour}H{minute}M{second}{fraction}S"
