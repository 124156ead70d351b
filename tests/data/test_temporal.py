"""Dates, times, timestamps and durations: cells, calendars, time zones, texts, types and refusals."""

from __future__ import annotations

import datetime as dt
import tomllib
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pointillist.data.columns import COLUMN_KINDS, Categorical, Numeric, Temporal, code_dtype
from pointillist.data.schema import Schema
from pointillist.data.table import Table
from pointillist.errors import InputError

RNG = np.random.default_rng(0)
YEARS = ("2020-01-01", "2023-12-31")
BERLIN = "Europe/Berlin"

COLUMNS = [
    Temporal("t", "date", YEARS),
    Temporal("t", "date", YEARS, missing=True),
    Temporal("t", "date", YEARS, unit="7 days", step="day"),
    Temporal("t", "date", YEARS, dtype="date64"),
    Temporal("t", "date", YEARS, dtype="timestamp[ns]"),
    Temporal("t", "date", YEARS, dtype="string"),
    Temporal("t", "date", YEARS, dtype="string", format="%d.%m.%Y"),
    Temporal("t", "date", YEARS, dtype="string", format="%-m/%-d/%y"),
    Temporal("t", "date", YEARS, dtype="string", format="%d %b %Y"),
    Temporal("t", "date", YEARS, dtype="int32", format="%Y%m%d"),
    Temporal("t", "date", YEARS, missing=True, missing_as="9999-12-31"),
    Temporal("t", "date", YEARS, missing=True, missing_as="unknown"),
    *(Temporal("t", "date", ("2020-02-10", "2023-11-20"), bins=bins)
      for bins in ("year", "quarter", "month", "week", "day", "weekday", "month of year")),
    Temporal("t", "time"),
    Temporal("t", "time", unit="15 minutes", step="second"),
    Temporal("t", "time", ("08:00", "17:59"), unit="hour", step="microsecond", missing=True),
    Temporal("t", "time", dtype="time64[ns]"),
    Temporal("t", "time", bins="hour", step="minute", dtype="string", format="%I:%M %p"),
    Temporal("t", "time", format="hhmm", missing=True),
    Temporal("t", "time", ("00:01", "24:00"), format="hhmm"),
    Temporal("t", "time", format="hhmm", dtype="string"),
    Temporal("t", "time", format="hhmm", dtype="Int64", missing=True),
    Temporal("t", "time", format="hhmm", dtype="float64", missing=True),
    Temporal("t", "timestamp", YEARS),
    Temporal("t", "timestamp", YEARS, step="second", dtype="timestamp[us]"),
    Temporal("t", "timestamp", ("2020-01-01 10:30", "2020-01-02T09:15"), unit="minute", step="millisecond"),
    Temporal("t", "timestamp", YEARS, unit="day", step="minute", dtype="string", format="%Y-%m-%dT%H:%M:%S"),
    Temporal("t", "timestamp", YEARS, unit="day", step="microsecond", dtype="string"),
    Temporal("t", "timestamp", YEARS, zone=BERLIN, missing=True),
    Temporal("t", "timestamp", YEARS, zone=BERLIN, unit="day", step="15 minutes"),
    Temporal("t", "timestamp", YEARS, zone=BERLIN, dtype="string"),
    Temporal("t", "timestamp", YEARS, zone=BERLIN, dtype="string", format="%d.%m.%Y %H:%M %z"),
    Temporal("t", "timestamp", YEARS, zone="America/Sao_Paulo", bins="month", step="second"),
    Temporal("t", "timestamp", YEARS, zone="Asia/Kolkata", bins="hour of day", step="second"),
    Temporal("t", "timestamp", YEARS, zone="UTC", bins="weekday", step="second"),
    Temporal("t", "timestamp", YEARS, zone="+05:30", bins="quarter", step="second"),
    Temporal("t", "duration", ("0", "48:00:00")),
    Temporal("t", "duration", ("-3 days", "P10D"), unit="hour", step="millisecond", dtype="duration[ns]", missing=True),
    Temporal("t", "duration", ("-36:00:00", "36:00:00"), dtype="string"),
    Temporal("t", "duration", ("-36:00:00", "36:00:00"), dtype="string", format="clock"),
    Temporal("t", "duration", ("-36:00:00", "36:00:00"), step="millisecond", dtype="string", format="days"),
]  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: f"{c.kind} {c.unit} {c.bins} {c.format} {c.zone} {c.dtype}")
def test_codes_come_back_from_cells_files_and_schemas(column: Temporal, tmp_path: Any) -> None:
    codes = np.repeat(np.arange(column.size), 1 if column.fine else 50)
    cells = column.decode(codes, np.random.default_rng(1))
    assert cells.type == pa.array([], cells.type).type
    assert np.array_equal(column.encode(cells), codes)
    assert column.encode(cells).dtype == code_dtype(column.size)
    assert COLUMN_KINDS[column.kind].from_dict(column.to_dict()) == column
    schema = Schema((column, Categorical("c", (0, 1))))
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    some = RNG.integers(0, column.size, 300)
    table = Table(schema, (some, some % 2))
    for end in ("csv", "parquet"):
        table.write(tmp_path / f"t.{end}", seed=4)
        assert np.array_equal(Table.read(tmp_path / f"t.{end}", schema).codes[0], some)
    frames = [table.to_pandas(4)]
    if not column.zone.startswith("+"):  # polars knows no zones without a name
        frames.append(table.to_polars(4))
    for frame in frames:
        assert np.array_equal(Table.encode(frame, schema).codes[0], some)
    assert column.describe().startswith("t: ")


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: f"{c.kind} {c.unit} {c.bins} {c.format} {c.zone} {c.dtype}")
def test_levels_are_nested_and_cover_every_code(column: Temporal) -> None:
    levels = column.levels()
    assert bool(levels) or column.bins != "" or column.size < 60
    for level in levels:
        assert level.shape == (column.size,)
        assert np.array_equal(np.unique(level), np.arange(level.max() + 1))
        if column.missing:
            assert np.sum(level == level[-1]) == 1
    for coarse, fine in pairwise(levels):
        assert coarse.max() < fine.max()
        pairs = np.unique(np.stack([coarse, fine]), axis=1)
        assert pairs.shape[1] == fine.max() + 1  # each fine group lies in one coarse group
    assert column.own == ((column.size - 1,) if column.missing else ())


def test_levels_follow_the_calendar() -> None:
    sizes = [int(level.max()) + 1 for level in Temporal("t", "date", YEARS).levels()]
    assert sizes == [4, 16, 48, 144]  # years, quarters, months, thirds
    assert [int(level.max()) + 1 for level in Temporal("t", "date", ("1900-01-01", "1999-12-31")).levels()][:2] == [
        10,
        100,
    ]
    assert [int(level.max()) + 1 for level in Temporal("t", "time").levels()] == [4, 24, 96, 288]
    hours = Temporal("t", "timestamp", ("2024-01-01", "2024-12-31"), zone=BERLIN)
    assert [int(level.max()) + 1 for level in hours.levels()] == [4, 12, 36, 366, 366 * 4]
    assert hours.size == 366 * 24


@pytest.mark.parametrize(
    ("column", "size"),
    [
        (Temporal("t", "date", YEARS), 1461),
        (Temporal("t", "date", YEARS, bins="month"), 48),
        (Temporal("t", "date", ("2020-01-15", "2020-03-02"), bins="month"), 3),
        (Temporal("t", "date", YEARS, bins="weekday"), 7),
        (Temporal("t", "date", ("2024-01-06", "2024-01-07"), bins="weekday"), 2),
        (Temporal("t", "time"), 1440),
        (Temporal("t", "time", ("00:00", "24:00"), format="hhmm"), 1441),
        (Temporal("t", "time", bins="hour"), 24),
        (Temporal("t", "timestamp", ("2024-03-31", "2024-03-31"), zone=BERLIN), 23),
        (Temporal("t", "timestamp", ("2024-10-27", "2024-10-27"), zone=BERLIN), 25),
        (Temporal("t", "timestamp", ("2024-03-01", "2024-03-31"), zone=BERLIN, unit="day"), 31),
        (Temporal("t", "timestamp", ("2024-01-01 10:00", "2024-01-01 12:00")), 3),
        (Temporal("t", "duration", ("0", "1:00:00"), missing=True), 62),
    ],
)
def test_numbers_of_codes(column: Temporal, size: int) -> None:
    assert column.size == size


def test_months_are_filled_evenly_with_real_dates() -> None:
    column = Temporal("t", "date", ("2024-01-01", "2024-12-31"), bins="month")
    drawn = column.decode(np.full(29_000, 1), np.random.default_rng(2)).to_numpy(zero_copy_only=False)
    days, counts = np.unique(drawn, return_counts=True)
    assert (str(days[0]), str(days[-1]), len(days)) == ("2024-02-01", "2024-02-29", 29)
    assert np.all(np.abs(counts - 1000) < 160)


def test_weekdays_are_drawn_between_the_bounds() -> None:
    column = Temporal("t", "date", ("2024-01-01", "2024-02-04"), bins="weekday")
    drawn = column.decode(np.repeat([0, 6], 500), np.random.default_rng(2)).to_pylist()
    assert {day.weekday() for day in drawn[:500]} == {0}
    assert {day.weekday() for day in drawn[500:]} == {6}
    assert len(set(drawn)) == 10
    assert dt.date(2024, 1, 1) <= min(drawn) <= max(drawn) <= dt.date(2024, 2, 4)


def test_hours_that_clocks_show_twice_are_told_apart() -> None:
    column = Temporal("t", "timestamp", ("2024-10-27", "2024-10-27"), zone=BERLIN)
    utc = pa.array(["2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z"]).cast(pa.timestamp("us", "UTC"))
    assert column.encode(utc).tolist() == [2, 3]
    cells = column.decode(np.array([2, 3]), RNG)
    assert cells.type == pa.timestamp("s", BERLIN)
    assert [str(cell) for cell in cells.to_pylist()] == ["2024-10-27 02:00:00+02:00", "2024-10-27 02:00:00+01:00"]
    texts = pa.array(
        ["2024-10-27 02:15:00+0100", "2024-10-27T02:15:00+02:00", "2024-10-27 03:15", "2024-10-27T02:15:00Z"]
    )
    assert column.encode(texts).tolist() == [3, 2, 4, 4]


def test_hhmm() -> None:
    column = Temporal("t", "time", ("00:01", "24:00"), format="hhmm", missing=True)
    for given in (
        pa.array([517, 2400, 1359, None, 1]),
        pa.array([517.0, 2400.0, 1359.0, float("nan"), 1.0]),
        pa.array(["0517", "2400", "13:59", "NA", "1"]),
        pa.array(["517.0", "2400.0", "1359", "", "1"]),
    ):
        codes = column.encode(given)
        assert codes.tolist() == [316, 1439, 838, 1440, 0]
        assert column.decode(codes, RNG).to_pylist() == [517, 2400, 1359, None, 1]
    assert Temporal("t", "time", format="hhmm").encode(pa.array([2400, 0])).tolist() == [0, 0]
    every = column.decode(np.arange(1440), RNG).to_numpy()
    assert int((every % 100).max()) == 59
    for bad in (1360, 2401, -1):
        with pytest.raises(InputError, match=r"column 't' must hold texts of the kind time in the format hhmm, got"):
            column.encode(pa.array([5, bad]))


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (Temporal("t", "date", YEARS), ["2020-02-30"]),
        (Temporal("t", "date", YEARS), ["20200230"]),
        (Temporal("t", "date", YEARS, format="%d.%m.%Y"), ["31.06.2020"]),
        (Temporal("t", "date", YEARS, format="%d.%m.%Y"), ["1.6.20"]),
        (Temporal("t", "date", YEARS, format="%d %b %Y"), ["31 Jum 2020"]),
        (Temporal("t", "time"), ["25:00"]),
        (Temporal("t", "timestamp", YEARS), ["yesterday"]),
        (Temporal("t", "timestamp", YEARS, zone=BERLIN), ["2020-01-01 10:00:00+01:00", "noon"]),
        (Temporal("t", "duration", ("0", "9:00:00")), ["3 weeks"]),
    ],
)
def test_texts_that_are_no_times_are_refused(column: Temporal, given: list[str]) -> None:
    with pytest.raises(InputError, match=rf"column 't' must hold texts of the kind .*, got '{given[-1]}'"):
        column.encode(pa.array(given))


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (Temporal("t", "date", YEARS), pa.array([dt.date(2019, 12, 31), dt.date(2024, 1, 1)])),
        (Temporal("t", "date", YEARS), pa.array(["2019-12-31", "2024-01-01"])),
        (Temporal("t", "date", YEARS, bins="year"), pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)])),
        (Temporal("t", "time", ("08:00", "17:00"), unit="hour"), pa.array(["07:59", "18:00"])),
        (Temporal("t", "timestamp", YEARS), pa.array([-(2**62), 2**62], pa.timestamp("s"))),
        (Temporal("t", "timestamp", YEARS, zone=BERLIN), pa.array(["2019-12-31T22:59:59Z", "2023-12-31T23:00:00Z"])),
        (Temporal("t", "duration", ("0", "9:00:00")), pa.array(["-0:00:01", "9:01:00"])),
    ],
)
def test_values_outside_are_refused_or_clamped(column: Temporal, given: pa.Array) -> None:
    for place in (0, 1):
        with pytest.raises(
            InputError, match=r"column 't' must lie between .* and .*, got .*; correct the table, widen"
        ):
            column.encode(given.slice(place, 1))
    clamped = COLUMN_KINDS[column.kind].from_dict(column.to_dict() | {"outside": "clamp"})
    assert clamped.encode(given).tolist() == [0, column.size - 1]


def test_values_of_other_kinds_are_refused() -> None:
    date, stamp = Temporal("t", "date", YEARS), Temporal("t", "timestamp", YEARS)
    with pytest.raises(InputError, match="column 't' must hold values of the kind date, got time32"):
        date.encode(pa.array([dt.time(1)]).cast(pa.time32("s")))
    with pytest.raises(InputError, match="column 't' must hold values of the kind date, got int64"):
        date.encode(pa.array([20200101]))
    with pytest.raises(InputError, match="column 't' must hold dates without a time, got 2020-01-01 10:00:00"):
        date.encode(pa.array([dt.datetime(2020, 1, 1, 10)]))
    with pytest.raises(InputError, match=r"column 't' must not have a time zone, got timestamp.*; set zone = \"UTC\""):
        stamp.encode(pa.array([0], pa.timestamp("s", "UTC")))
    with pytest.raises(InputError, match="column 't' must not have missing values"):
        date.encode(pa.array([None], pa.date32()))
    with pytest.raises(InputError, match=r"column 'x' must hold values of the kind that the schema says, got date32"):
        Table.encode(pa.table({"x": pa.array([1], pa.date32())}), Schema((Numeric("x", (0, 1, 2)),)))


def test_missing_is_spelled_in_many_ways() -> None:
    column = Temporal("t", "date", YEARS, missing=True, missing_values=("9999-12-31", "?"))
    last = column.size - 1
    assert column.encode(pa.array(["?", "", "NaT", "9999-12-31", None, "2020-01-02"])).tolist() == [*[last] * 5, 1]
    assert column.encode(pa.array([dt.date(9999, 12, 31), None, dt.date(2020, 1, 1)])).tolist() == [last, last, 0]
    spelled = Temporal("t", "date", YEARS, missing=True, missing_as="?")
    assert spelled.decode(np.array([0, last]), RNG).to_pylist() == ["2020-01-01", "?"]
    assert spelled.output_dtype == "string"


def test_frames_of_pandas_and_polars() -> None:
    schema = Schema(
        (
            Temporal("day", "date", YEARS, dtype="timestamp[us]"),
            Temporal(
                "at",
                "timestamp",
                ("2020-01-01", "2020-12-31"),
                zone=BERLIN,
                unit="minute",
                dtype=f"timestamp[us, tz={BERLIN}]",
            ),
            Temporal("took", "duration", ("0", "10:00:00"), dtype="duration[us]", missing=True),
        )
    )
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2020-01-31", "2022-02-28"]),
            "at": pd.to_datetime(["2020-03-29 01:59", "2020-03-29 03:00"]).tz_localize(BERLIN),
            "took": pd.to_timedelta(["1h", None]),
        }
    )
    table = Table.encode(frame, schema)
    pd.testing.assert_frame_equal(table.to_pandas(), frame.astype(table.to_pandas().dtypes.to_dict()))
    assert [str(kind) for kind in table.to_pandas().dtypes] == [
        "datetime64[us]", f"datetime64[us, {BERLIN}]", "timedelta64[us]",
    ]  # fmt: skip
    other = pl.from_pandas(frame)
    assert [codes.tolist() for codes in Table.encode(other, schema).codes] == [codes.tolist() for codes in table.codes]
    assert table.to_polars()["at"].dtype == pl.Datetime("us", BERLIN)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"kind": "day"}, "type must be one of date, time, timestamp, duration"),
        ({"bounds": ()}, "bounds must be two times, the earlier one first"),
        ({"bounds": ("2020-01-01",)}, "bounds must be two times"),
        ({"bounds": ("2020-01-01", "soon")}, "bounds must be two times"),
        ({"bounds": ("2021-01-01", "2020-01-01")}, "bounds must be two times, the earlier one first"),
        ({"bounds": 3}, "must have a list of bounds"),
        ({"bounds": (3, 4)}, "bounds must be two times"),
        ({"bounds": ("2020-01-01", "2020-01-01")}, "must have at least two values"),
        ({"unit": "fortnight"}, "unit must be a unit such as day, hour"),
        ({"unit": "hour"}, "unit must be days in a column of dates"),
        ({"step": "2 days"}, "step must not be longer than unit"),
        ({"bins": "decade"}, "bins must be one of year, quarter, month"),
        ({"bins": "hour of day"}, "bins must be one of year, quarter, month"),
        ({"zone": BERLIN}, "zone must only be given for timestamps"),
        ({"kind": "timestamp", "zone": "Mars/Base"}, "zone must be a time zone such as Europe/Berlin"),
        ({"kind": "timestamp", "zone": BERLIN, "format": "%Y-%m-%d %H:%M"}, "format must have %z"),
        ({"kind": "timestamp", "unit": "second"}, "bounds must have at most 1,000,000 units between them"),
        ({"format": "hhmm"}, "format must be a format for a date"),
        ({"format": "d.m.Y"}, "format must be a pattern such as"),
        ({"format": "%Y" * 60}, "format must have at most 100 characters"),
        ({"format": "%d.%m.", "dtype": "string"}, "dtype must be a type and a format that tell all values"),
        ({"dtype": "int64"}, "dtype must be a type and a format that tell all values"),
        ({"dtype": "category"}, "dtype must be a type and a format that tell all values"),
        ({"dtype": "dat32"}, "dtype must be a type such as"),
        ({"kind": "timestamp", "dtype": "date32"}, "dtype must be a type and a format that tell all values"),
        ({"bounds": ("1500-01-01", "1600-01-01"), "dtype": "timestamp[ns]"}, "dtype must be a type and a format"),
        ({"outside": "own"}, "outside must be one of refuse, clamp"),
        ({"missing": 1}, "missing must be true or false"),
        ({"missing_values": ("?",)}, "missing must be true where missing_values"),
        ({"zone": 3}, "zone must be a text"),
    ],
)  # fmt: skip
def test_refusals(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Temporal("t", **({"kind": "date", "bounds": YEARS} | keys))
    assert words in str(caught.value)
    assert str(caught.value).startswith("column 't'")
    assert len(str(caught.value)) < 400


def test_toml_dates_are_taken_as_bounds() -> None:
    text = 'name = "t"\ntype = "date"\nbounds = [2020-01-01, 2020-12-31]'
    assert Temporal.from_dict(tomllib.loads(text)) == Temporal("t", "date", ("2020-01-01", "2020-12-31"))
    days = Temporal("t", "date", (dt.date(2020, 1, 1), np.datetime64("2020-12-31")))  # type: ignore[arg-type]
    assert days.bounds == ("2020-01-01", "2020-12-31")
    long = Temporal("t", "duration", (dt.timedelta(0), dt.timedelta(days=2)))  # type: ignore[arg-type]
    assert long.size == 48 * 60 + 1


def test_steps_are_kept() -> None:
    column = Temporal("t", "timestamp", ("2024-01-01", "2024-12-31"), unit="day", step="15 minutes")
    cells = column.decode(np.repeat(np.arange(366), 20), np.random.default_rng(0))
    minutes = pc.minute(cells).to_numpy()
    assert set(minutes) == {0, 15, 30, 45}
    assert set(pc.second(cells).to_numpy()) == {0}
    assert set(pc.hour(cells).to_numpy()) == set(range(24))
