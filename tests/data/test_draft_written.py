"""Drafts of dates, times, durations and numbers that are written as text: recognised, and written as they were."""

from __future__ import annotations

import datetime as dt
import random
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pointillist import Table
from pointillist.data.columns import Grid, Temporal
from pointillist.data.draft import draft_from
from pointillist.data.schema import Schema
from pointillist.data.table import read_file
from pointillist.errors import InputError

ROWS = 200
STAMPS = [dt.datetime(2019, 3, 1) + dt.timedelta(seconds=7919 * k) for k in range(ROWS)]


def drafted(texts: list[str], name: str = "x") -> tuple[pa.Table, dict[str, object], list[str]]:
    """The table, the drafted column as in the file, and the texts that come back."""
    table = pa.table({name: texts, "k": ["a", "b"] * (len(texts) // 2)})
    draft = draft_from(table)
    assert draft.left_out == {}
    back = Table.encode(table, draft.schema).to_arrow(3)
    return table, dict(draft.tables[0]), back.column(name).to_pylist()


@pytest.mark.parametrize(
    "pattern",
    ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%m/%d/%y", "%d.%m.%y", "%-m/%-d/%Y"],
)
def test_dates(pattern: str) -> None:
    texts = [(moment + k * dt.timedelta(days=3)).strftime(pattern) for k, moment in enumerate(STAMPS)]
    _, column, back = drafted(texts)
    assert (column["type"], column["format"]) == ("date", pattern)
    assert back == texts


@pytest.mark.parametrize("pattern", ["%Y-%m", "%m/%Y", "%b %Y"])
def test_months(pattern: str) -> None:
    texts = [(moment + k * dt.timedelta(days=9)).strftime(pattern) for k, moment in enumerate(STAMPS)]
    _, column, back = drafted(texts)
    assert (column["type"], column["bins"]) == ("date", "month")
    assert back == texts


@pytest.mark.parametrize(
    ("pattern", "end"),
    [
        ("%Y-%m-%d %H:%M", ""), ("%d.%m.%Y %H:%M:%S", ""), ("%m/%d/%Y %I:%M %p", ""), ("%-m/%-d/%Y %-H:%M", ""),
        ("%Y-%m-%dT%H:%M:%S", "Z"), ("%Y-%m-%dT%H:%M:%S", "+02:00"), ("%Y-%m-%d %H:%M:%S", "-0330"),
        ("%Y-%m-%d %H:%M:%S", ".123"), ("%Y-%m-%dT%H:%M:%S", ".123456"), ("%Y-%m-%dT%H:%M:%S", ".120+00:00"),
    ],
)  # fmt: skip
def test_timestamps_are_written_as_they_were(pattern: str, end: str) -> None:
    texts = [moment.strftime(pattern) + end for moment in STAMPS]
    _, column, back = drafted(texts)
    assert column["type"] == "timestamp"
    shown, lengths = str(column["format"]), {len(text) for text in texts}
    assert shown.replace("%3f", "%f").replace("%:z", "%z").startswith(pattern)
    exact = 0 if "%-" in pattern or "%p" in pattern else len(texts[0]) - len(end) - 6
    assert all(text.startswith(hour[:exact]) for text, hour in zip(texts, back, strict=True))
    assert {len(text) for text in back} <= lengths | ({min(lengths) + 1} if "%-" in pattern else set())
    ending = end.lstrip(".0123456789")
    assert all(text.endswith(ending) for text in back)


@pytest.mark.parametrize(
    ("hours", "end", "keys"),
    [(24, "T00:00:00Z", {"unit": "day"}), (5, ":00:00Z", {"unit": "hour"}), (5, " 00:00:00", {"unit": "day"})],
)
def test_timestamps_are_kept_to_what_they_show(hours: int, end: str, keys: dict[str, str]) -> None:
    """Seconds that are always 0 are not drawn."""
    pattern = "%Y-%m-%d" if end[0] in "T " else "%Y-%m-%dT%H"
    texts = [(STAMPS[0] + dt.timedelta(hours=hours * k)).strftime(pattern) + end for k in range(ROWS)]
    _, column, back = drafted(texts)
    assert column.items() >= keys.items()
    assert "step" not in column
    assert back == texts


def test_full_hours_stay_full_hours() -> None:
    _, column, back = drafted(texts := [f"{k % 24:02d}:00" for k in range(ROWS)])
    assert (column["type"], column["unit"]) == ("time", "hour")
    assert back == texts


@pytest.mark.parametrize("pattern", ["%H:%M", "%H:%M:%S", "%I:%M %p"])
def test_times_of_the_day(pattern: str) -> None:
    texts = [moment.strftime(pattern) for moment in STAMPS]
    _, column, back = drafted(texts)
    assert (column["type"], column["format"]) == ("time", pattern)
    assert {len(text) for text in back} == {len(texts[0])}
    assert [text[:2] for text in back] == [text[:2] for text in texts]


@pytest.mark.parametrize("style", ["clock", "days", ""])
def test_durations(style: str) -> None:
    spans = [dt.timedelta(seconds=617 * k * (7 if style == "days" else 1)) for k in range(ROWS)]
    shown = {
        "clock": [f"{int(s.total_seconds()) // 3600}:{s.seconds // 60 % 60:02d}:{s.seconds % 60:02d}" for s in spans],
        "days": [
            f"{s.days} days {s.seconds // 3600:02d}:{s.seconds // 60 % 60:02d}:{s.seconds % 60:02d}" for s in spans
        ],
        "": [f"P{s.days}DT{s.seconds // 3600}H{s.seconds // 60 % 60}M{s.seconds % 60}S" for s in spans],
    }[style]
    _, column, back = drafted(shown)
    assert (column["type"], column.get("format", "")) == ("duration", style)
    if column["unit"] == "second":
        assert back == shown


def test_long_durations_have_larger_cells_and_round_bounds() -> None:
    spans = [dt.timedelta(days=k, seconds=k) for k in range(ROWS)]
    table = pa.table({"x": pa.array(spans, pa.duration("s")), "k": ["a", "b"] * (ROWS // 2)})
    draft = draft_from(table)
    (column, _) = draft.tables
    assert draft.left_out == {}
    assert (column["unit"], column["step"]) == ("minute", "second")
    assert column["bounds"] == ["0:00:00", "200 days, 0:00:00"]
    assert isinstance(draft.schema.columns[0], Temporal)


@pytest.mark.parametrize(
    ("shown", "numeric"),
    [("+%.1f", True), ("-%.1f", True), ("%.2f", True), ("1%.0f", True), ("01.%02.0f", False)],
)
def test_numbers_with_signs_and_codes_with_zeros(shown: str, numeric: bool) -> None:
    texts = [shown % (k % 90 + k % 7 / 10) for k in range(ROWS)]
    _, column, back = drafted(texts)
    assert (column["type"] == "numeric") == numeric
    assert numeric or back == texts


def test_numbers_that_begin_with_a_point() -> None:
    texts = [f".{k % 100:02d}" for k in range(ROWS)]
    _, column, back = drafted(texts)
    assert (column["type"], column["step"]) == ("numeric", 0.01)
    assert back == pytest.approx([float(text) for text in texts])


def test_what_is_left_out_says_why() -> None:
    rng = random.Random(0)
    cells = {
        "pay": [f"${rng.randrange(10**6):,}.00" for _ in range(ROWS)],
        "share": [f"{rng.randrange(1000) / 10} %" for _ in range(ROWS)],
        "Last name": [f"{rng.choice('ABCDEF')}{rng.choice(['ray', 'lee', 'fox', 'poe', 'kay'])}" for _ in range(ROWS)],
        "ref": [str(10**17 + rng.randrange(10**16)) for _ in range(ROWS)],
        "ratio": pa.array([rng.choice([1.5, float("inf")]) for _ in range(ROWS)]),
        "k": ["a", "b"] * (ROWS // 2),
    }
    draft = draft_from(pa.table(cells))
    words = {"pay": "currency", "share": "percent", "Last name": "names", "ref": "identifiers", "ratio": "infinite"}
    assert draft.left_out.keys() == words.keys()
    assert all(word in draft.left_out[name] for name, word in words.items())
    assert "ray" not in draft.to_toml()


def test_money_keeps_its_two_decimals_in_a_file(tmp_path: Path) -> None:
    money = [f"{k * 37 % 1000}.{k * 13 % 100:02d}" if k % 4 else "0.00" for k in range(ROWS)]
    gaps = ["NA" if k % 5 == 0 else f"{k % 90}.{k % 10}0" for k in range(ROWS)]
    whole = [f"{k * k % 977}.00" for k in range(ROWS)]
    loose = [f"{k % 31 / 4:g}" for k in range(ROWS)]
    table = pa.table({"money": money, "gaps": gaps, "whole": whole, "loose": loose})
    schema = draft_from(table).schema
    assert [getattr(column, "decimals", None) for column in schema.columns] == [2, 2, 2, None]
    assert Schema.from_dict(schema.to_dict()) == schema
    named = replace(schema.columns[1], missing_as="NA")
    schema = Schema((schema.columns[0], named, *schema.columns[2:]))
    made = Table.encode(table, schema)
    assert made.to_arrow().schema.field("money").type == pa.float64()
    made.write(tmp_path / "t.csv")
    back = read_file(tmp_path / "t.csv")
    assert back.drop(["money"]).equals(table.drop(["money"]))
    assert all(re.fullmatch(r"[0-9]+[.][0-9]{2}", text) for text in back.column("money").to_pylist())
    made.write(tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet").schema.field("money").type == pa.float64()


@pytest.mark.parametrize("decimals", [1, -1, 16, 2.0, True, "2", 10**30])
def test_decimals_that_do_not_fit_are_refused(decimals: object) -> None:
    with pytest.raises(InputError, match="column 'x': decimals must be a whole number of at most 15 decimals"):
        Grid("x", (0, 10), step=0.01, decimals=decimals)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="decimals"):
        Grid("x", (0, 10), decimals=2)
    assert Grid("x", (0, 10), step=0.25, decimals=2).to_dict()["decimals"] == 2


def test_few_or_long_texts_are_free_text_too() -> None:
    """A remark in one row of twenty, and long cells, however few of them are different."""
    rng = random.Random(1)
    words = ["late", "early", "went", "home", "with", "a", "friend", "today"]
    remarks = [" ".join(rng.sample(words, 5)) if k % 20 == 0 else "" for k in range(ROWS)]
    doctors = [f"{rng.choice('ABCDEFGHK')}{rng.choice('aeiou')}{k}" if k % 5 == 0 else "" for k in range(ROWS)]
    table = pa.table(
        {"q7": remarks, "q8": ["x" * 300, "y" * 300] * (ROWS // 2), "q9": doctors, "k": ["a", "b"] * (ROWS // 2)}
    )
    draft = draft_from(table)
    assert set(draft.left_out) == {"q7", "q8", "q9"}
    assert not any(text in draft.to_toml() for text in {*remarks, *doctors} - {""})
