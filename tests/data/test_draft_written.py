"""Drafts of dates, times, durations and numbers that are written as text: recognised, and written as they were."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

from pointillist import Table
from pointillist.data.columns import Temporal
from pointillist.data.draft import draft_from

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
    hours = [text[: len(texts[0]) - len(end) - 6] if "%-" not in pattern and "%p" not in pattern else "" for text in back]
    assert all(text.startswith(hour) for text, hour in zip(texts, hours, strict=True))
    assert {len(text) for text in back} <= lengths | ({min(lengths) + 1} if "%-" in pattern else set())
    ending = end.lstrip(".0123456789")
    assert all(text.endswith(ending) for text in back)


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
        "days": [f"{s.days} days {s.seconds // 3600:02d}:{s.seconds // 60 % 60:02d}:{s.seconds % 60:02d}" for s in spans],
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
