"""Drafts of schemas from data: what is recognised, what is left out, and what the comments say."""

from __future__ import annotations

import datetime as dt
import tomllib
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planted import SECRET, shows_too_much

from pointillist import synthesize
from pointillist.data.columns import Categorical, Column, Constant, Extra, Grid, Identifier, Temporal
from pointillist.data.draft import draft_from, draft_schema
from pointillist.data.drafts.numbers import nice_above, wide_bounds
from pointillist.data.schema import DRAFT_NOTICE, Schema
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError

N = 2000
RNG = np.random.default_rng(0)
FILLER = {"filler": ["a", "b"]}


def town() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kids = rng.integers(0, 4, N).astype(float)
    kids[::10] = np.nan
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "sex": rng.choice(["male", "female"], N),
            "zip": rng.choice(["01234", "00501"], N),
            "age": rng.integers(17, 91, N),
            "born": rng.integers(1990, 2021, N),
            "income": np.round(rng.lognormal(10, 1, N), 2),
            "gain": np.where(rng.random(N) < 0.9, 0, rng.integers(1, 99_999, N)),
            "kids": kids,
            "smoker": rng.random(N) < 0.3,
            "note": rng.choice(["", "x", "y"], N),
        }
    )


def drafted(values: Any, name: str = "c") -> Column | Extra:
    """The column that is drafted from some values, next to another one."""
    values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values)])
    filler = pa.array(["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2))
    schema = draft_schema(pa.table({name: values, "filler": filler}))
    return next(column for column in schema.everything if column.name == name)


def left_out(values: Any, name: str = "c") -> str:
    """Why the column is left out."""
    filler = pa.array(["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2))
    return draft_from(pa.table({name: values, "filler": filler})).left_out[name]


def note(values: Any, name: str = "c") -> str:
    filler = pa.array(["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2))
    return draft_from(pa.table({name: values, "filler": filler})).notes[name]


# --- the draft


def test_a_draft_is_marked_and_refused() -> None:
    schema = draft_schema(town())
    assert not schema.reviewed
    assert schema.to_toml().startswith(DRAFT_NOTICE)
    assert "NOT public knowledge until a person has reviewed it" in DRAFT_NOTICE
    assert tomllib.loads(schema.to_toml())["reviewed"] is False
    with pytest.raises(InputError) as caught:
        synthesize(town(), schema=schema, epsilon=1.0)
    assert "must be reviewed by a person before use, got reviewed = false" in str(caught.value)


@pytest.mark.parametrize("way", ["pandas", "polars", "csv", "parquet"])
def test_a_draft_fits_the_data_it_was_made_from(way: str, tmp_path: Path) -> None:
    data: Any = town()
    if way == "polars":
        data = pl.from_pandas(data)
    if way == "csv":
        data.to_csv(tmp_path / "t.csv", index=False)
        data = read_file(tmp_path / "t.csv")
    if way == "parquet":
        data.to_parquet(tmp_path / "t.parquet")
        data = read_file(tmp_path / "t.parquet")
    schema = draft_schema(data)
    assert schema.names == tuple(town().columns)  # every column is there, in order
    Table.encode(data, schema)
    columns: dict[str, Any] = {column.name: column for column in schema.everything}
    assert columns["id"] == Identifier("id", prefix="p")
    assert columns["sex"].values == ("female", "male")
    assert columns["zip"].values == ("00501", "01234")  # no numbers
    assert (columns["kids"].values, columns["kids"].missing, columns["kids"].ordered) == ((0, 1, 2, 3), True, True)
    assert (columns["note"].values, columns["note"].missing) == (("x", "y"), True)
    assert columns["age"] == Grid("age", (0, 120), integer=True)
    assert columns["born"] == Grid("born", (1980, 2030), integer=True)
    assert columns["gain"] == Grid("gain", (0, 100_000), integer=True, points=(0,))
    assert (columns["income"].step, columns["income"].scale, columns["income"].bounds[0]) == (0.01, "log", 0)


def test_every_column_has_a_comment() -> None:
    made = draft_from(town())
    text = made.to_toml()
    for block in text.split("[[column]]")[:-1]:
        assert block.rstrip().splitlines()[-1].startswith("# ")
    assert "bounds 0 .. 120" in made.notes["age"]
    assert Schema.from_dict(tomllib.loads(text)) == made.schema
    assert "never read, and made again" in made.notes["id"]


def test_columns_that_are_left_out_are_named_with_a_reason() -> None:
    frame = town().assign(remark=[f"{SECRET} {i} and so on" for i in range(N)])
    made = draft_from(frame, ignore=["zip"])
    assert made.left_out == {"zip": "as asked", "remark": "free text, by its name and its words"}
    assert made.schema.ignore == ("zip", "remark")
    assert "# left out 'remark': free text" in made.to_toml()
    assert SECRET not in made.to_toml()
    with pytest.raises(InputError, match=r"ignore must be a column of the table, got 'zap'; did you mean 'zip'"):
        draft_from(frame, ignore=["zap"])


def test_problems_of_all_columns_are_told_at_once() -> None:
    table = pa.table({
        "lists": [[1], [2], [3]], "huge": [1.7e308, -1.7e308, 1.0], "ok": ["x", "y", "x"], "raw": [b"a", b"b", b"c"],
    })  # fmt: skip
    made = draft_from(table)
    assert set(made.left_out) == {"lists", "huge", "raw"}
    assert "list" in made.left_out["lists"]
    assert "beyond 5e+299" in made.left_out["huge"]
    Table.encode(table, made.schema)  # columns of other types do not matter once they are left out
    with pytest.raises(InputError, match="table must have a column that a schema can describe") as caught:
        draft_from(table.select(["lists", "huge"]))
    assert "column 'lists'" in str(caught.value)
    assert "column 'huge'" in str(caught.value)


def test_descriptions_in_metadata_are_kept() -> None:
    field = pa.field("c", pa.string(), metadata={"description": "What it is"})
    made = draft_from(pa.table([pa.array(["a", "b"])], pa.schema([field])))
    assert made.tables[0]["description"] == "What it is"


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="table must have rows, got 0 rows; check the file"):
        draft_schema(pa.table({"c": pa.array([], pa.string())}))


# --- numbers


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (17, 90, (0, 100)),
        (0, 99_999, (0, 100_000)),
        (0, 52, (0, 100)),
        (-43, 1301, (-50, 2000)),
        (1990, 2020, (1980, 2030)),
        (0.2, 5.01, (0, 10)),
        (-30, -2, (-50, 0)),
        (-1990, -2020.5, None),
        (950, 1050, (920, 1080)),
        (0, 0, (0, 1)),
        (5, 5, (3.5, 6.5)),
        (1e-9, 3e-9, (0, 5e-9)),
    ],
)
def test_bounds_are_wide_and_round(low: float, high: float, bounds: tuple[float, float] | None) -> None:
    first, last = wide_bounds(min(low, high), max(low, high))
    assert first <= min(low, high) <= max(low, high) <= last
    if bounds is not None:
        assert (first, last) == pytest.approx(bounds)


@given(st.floats(1e-300, 1e299))
def test_nice_numbers(x: float) -> None:
    nice = nice_above(x)
    assert x <= nice <= 10 * x
    assert f"{nice:.3e}".startswith(("1.000", "2.000", "5.000"))


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=60),
        st.lists(st.integers(-(2**52), 2**52), min_size=2, max_size=60),
        st.lists(st.integers(0, 120), min_size=30, max_size=80),
        st.builds(lambda at, n: [at + i / 8 for i in range(n)], st.integers(-(10**9), 10**9), st.integers(2, 60)),
        st.builds(lambda at, n: [0] * 1000 + [at + i for i in range(n)], st.integers(1, 10**9), st.integers(21, 60)),
    ).filter(lambda x: len(set(x)) > 1)
)
def test_columns_hold_the_data(values: list[float]) -> None:
    for cells in (pa.array(values), pa.array([repr(v) for v in values])):
        column: Any = drafted(cells)
        if not isinstance(column, Identifier):
            codes = column.encode(cells)
            assert codes.max() < column.size


def test_money_steps_and_heavy_tails() -> None:
    money = [round(x, 2) for x in np.random.default_rng(1).lognormal(3, 0.3, 300)]
    column = drafted(money)
    assert isinstance(column, Grid)
    assert (column.step, column.scale) == (0.01, "linear")
    heavy = drafted([round(x, 2) for x in np.random.default_rng(1).lognormal(3, 2, 300)])
    assert isinstance(heavy, Grid)
    assert heavy.scale == "log"
    both = drafted([float(x) for x in np.round(np.random.default_rng(1).standard_t(1, 500) * 1000)])
    assert isinstance(both, Grid)
    assert both.scale == "signed-log"
    assert "multiple of 25" in note([25 * n for n in range(40)] * 3)
    halves = drafted([n / 2 for n in range(60)] * 2)
    assert isinstance(halves, Grid)
    assert halves.step == 0.1
    assert "multiple of 0.5" in note([n / 2 for n in range(60)] * 2)


def test_numbers_that_many_rows_have_are_points() -> None:
    hours = [0] * 50 + [40] * 100 + list(range(20, 60)) * 2
    column = drafted(hours, "work")
    assert isinstance(column, Grid)
    assert column.points == (0, 40)
    smooth = drafted([n for n in range(30) for _ in range(10)], "work")
    assert isinstance(smooth, Grid)
    assert smooth.points == ()


def test_names_can_suggest_bounds() -> None:
    for name, values, bounds in (
        ("age", range(30, 80), (0, 120)),
        ("dep_hour", list(range(24)) * 2, (0, 24)),
        ("day", list(range(1, 32)) * 2, (1, 31)),
        ("lat", [20.5 + n for n in range(30)], (-90, 90)),
        ("age", range(30, 300), (0, 500)),
    ):
        column = drafted(pa.array(np.random.default_rng(0).permutation(list(values))), name)
        assert isinstance(column, Grid)
        assert column.bounds == bounds


def test_few_whole_numbers_are_listed() -> None:
    assert drafted([1, 2, 2, 5] * 3) == Categorical("c", (1, 2, 5), ordered=True)
    months = drafted(list(range(1, 13)) * 3)
    assert months == Categorical("c", tuple(range(1, 13)), ordered=True)
    assert isinstance(drafted([2, 4, 5, 7, 8, 9, 11, 12, 14, 15, 18, 21] * 3), Grid)  # counts: others will come
    assert isinstance(drafted([3, 70_000, 1_000_000, 12]), Grid)
    assert drafted([3, None]) == Categorical("c", (3,), ordered=True, missing=True)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "int32", "float32", "float64"])
def test_types_are_kept(dtype: str) -> None:
    few: Any = drafted(pa.array([1, 2, 2], dtype))
    assert few.output_dtype == dtype
    many: Any = drafted(pa.array(np.random.default_rng(0).permutation(range(100)).astype(dtype)))
    assert many.output_dtype == dtype
    assert many.bounds == (0, 100)


def test_bounds_stay_inside_the_type() -> None:
    column: Any = drafted(pa.array(np.random.default_rng(0).permutation(range(-128, 128)).astype("int8")))
    assert column.bounds == (-128, 127)
    assert column.output_dtype == "int8"


def test_decimals_and_nullable_types() -> None:
    money = pa.array([Decimal(n) / 4 for n in range(100, 200)], pa.decimal128(10, 2))
    column: Any = drafted(money)
    assert column.step == 0.01
    frame = pd.DataFrame({"n": pd.array([1, None, 3], "Int64"), "b": pd.array([True, None, False], "boolean")})
    columns = draft_schema(frame).columns
    assert columns[0] == Categorical("n", (1, 3), ordered=True, missing=True, dtype="Int64")
    assert columns[1] == Categorical("b", (False, True), missing=True, dtype="boolean")


def test_a_code_for_missing_among_numbers() -> None:
    ages = [*range(20, 60), -9, -9]
    column = drafted(ages, "size")
    assert isinstance(column, Grid)
    assert (column.bounds, column.missing, column.missing_values, column.missing_as) == ((0, 100), True, ("-9",), "-9")
    assert "Assumed that -9, the only negative number, means missing" in note(ages, "size")
    temperatures = drafted([*range(-20, 20)] * 2)
    assert isinstance(temperatures, Grid)
    assert not temperatures.missing


def test_times_written_as_numbers() -> None:
    hhmm = [h * 100 + m for h in range(24) for m in (0, 15, 50)]
    column = drafted(hhmm, "dep_time")
    assert isinstance(column, Temporal)
    assert (column.kind, column.format) == ("time", "hhmm")
    assert "assumed to be times written as hhmm" in note(hhmm, "dep_time")
    assert isinstance(drafted(hhmm, "flight"), Grid)  # by its name alone it is none
    assert isinstance(drafted([*hhmm, 1299], "air_time"), Grid)  # no such minute


@pytest.mark.parametrize("values", [[0.0, 5e-324], [1e-310, 2e-310, 3e-310], [2.2e-308] * 5 + [2.3e-308], [0, 1e-301]])
def test_tiny_numbers_fit_or_are_left_out(values: list[float]) -> None:
    table = pa.table({"c": values, "f": ["a", "b"] * (len(values) // 2) + ["c"] * (len(values) % 2)})
    made = draft_from(table)
    Table.encode(table, made.schema)


# --- constants and missing values


@pytest.mark.parametrize(
    ("values", "constant"),
    [
        (["a", "a"], "a"),
        (["2013", "2013"], 2013),
        (["007", "007"], "007"),
        ([1, 1], 1),
        ([0.5, 0.5], 0.5),
        ([True, True], True),
        (["", ""], None),
        ([None, None], None),
        (["NA", "NA"], "NA"),
        ([float("nan"), None], None),
        ([float("nan"), float("nan")], None),
    ],
)
def test_one_value_is_a_constant(values: list[Any], constant: Any) -> None:
    column = drafted(values)
    assert isinstance(column, Constant)
    assert column.value == constant
    day = drafted(pa.array([dt.date(2020, 1, 2)] * 3))
    assert isinstance(day, Constant)
    assert day.value == "2020-01-02"


def test_a_table_of_constants_alone_is_refused() -> None:
    with pytest.raises(InputError, match="must have a column that a schema can describe"):
        draft_schema(pa.table({"c": ["x", "x"]}))


@pytest.mark.parametrize("gap", ["NA", "n/a", ".", "?", "-", "null", " ?"])
def test_spellings_of_missing(gap: str) -> None:
    texts = drafted(["low", "high", gap, "low"])
    assert texts == Categorical("c", ("high", "low"), missing=True, missing_values=(gap,), missing_as=gap)
    numbers = drafted([str(n) for n in np.random.default_rng(0).permutation(50)] + [gap])
    assert isinstance(numbers, Grid)
    assert numbers.missing
    assert (numbers.bounds, numbers.integer) == ((0, 50), True)


def test_na_among_codes_is_a_value() -> None:
    column = drafted(["DE", "NA", "FR", "IT"])
    assert isinstance(column, Categorical)
    assert column.values == ("DE", "FR", "IT", "NA")


# --- identifiers, free text, codes


def test_identifiers_are_made_again() -> None:
    n = 50
    assert drafted(list(range(1000, 1000 + n)), "x") == Identifier("x")  # row numbers
    shuffled = [int(x) for x in np.random.default_rng(0).permutation(n * 7)[:n]]
    assert drafted(shuffled, "person_id") == Identifier("person_id")
    assert isinstance(drafted(shuffled, "weight"), Grid)
    assert drafted([str(uuid.uuid4()) for _ in range(n)]) == Identifier("c", kind="uuid")
    assert drafted([f"KD-{i:05d}" for i in range(n)]) == Identifier("c", prefix="KD-", digits=5)
    assert drafted([f"KD-{i}" for i in range(n)]) == Identifier("c", prefix="KD-")
    few = draft_schema(pa.table({"name": [f"person {i}" for i in range(10)]}))
    assert isinstance(few.columns[0], Categorical)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda i: f"person{i}@example.com", "e-mail addresses"),
        (lambda i: f"https://example.com/{i}", "addresses of pages"),
        (lambda i: f"+49 30 {1234567 + i * 13}", "telephone numbers"),
        (lambda i: f"Ada{i % 7} Byron{i * 7}", "a different value in most rows"),
        (lambda i: f"this is what I wanted to say, number {i}", "free text"),
        (lambda i: f"this is what I wanted to say, number {i % 60}", "free text"),
    ],
)
def test_what_identifies_people_is_left_out(make: Any, why: str) -> None:
    values = [make(i) for i in range(300)]
    assert left_out(values).startswith(why)


def test_free_text_is_recognised_by_its_name_too() -> None:
    values = ["nest never observed again", "adult not sampled there"] * 20
    assert left_out(values, "Comments") == "free text, by its name and its words"
    assert isinstance(drafted(values, "stage"), Categorical)


def test_many_codes_are_listed_and_others_are_not() -> None:
    codes = [f"{i % 3000:05d}" for i in range(9000)]
    column = drafted(codes)
    assert isinstance(column, Categorical)
    assert len(column.values) == 3000
    assert column.prefixes == (2, 3, 4)
    assert "merged by their first 2, 3, 4 letters" in note(codes)
    assert drafted([f"{i % 90:05d}" for i in range(900)]) == Categorical("c", tuple(f"{i:05d}" for i in range(90)))
    assert "leading zeros" in note(codes)
    assert left_out([f"Town of {i % 3000}" for i in range(9000)]) == "too many different values (3,000)"


def test_notes_and_reasons_show_no_more_than_needed() -> None:
    made = draft_from(pa.table({"c": [SECRET + str(i) for i in range(60)], "d": ["a", "b"] * 30}))
    assert not shows_too_much(made.to_toml())


# --- dates and times


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("%Y-%m-%d", "date"),
        ("%d.%m.%Y", "date"),
        ("%d/%m/%Y", "date"),
        ("%m/%d/%Y", "date"),
        ("%Y/%m/%d", "date"),
        ("%Y-%m-%d %H:%M", "timestamp"),
        ("%Y-%m-%dT%H:%M:%S", "timestamp"),
        ("%d.%m.%Y %H:%M", "timestamp"),
        ("%H:%M", "time"),
        ("%H:%M:%S", "time"),
    ],
)
def test_written_dates_are_recognised_and_come_back_as_written(pattern: str, kind: str) -> None:
    moments = [dt.datetime(2021, 3, 5, 13, 7, 9) + dt.timedelta(days=3 * n, minutes=n, seconds=n) for n in range(90)]
    texts = [moment.strftime(pattern) for moment in moments]
    column = drafted(texts)
    assert isinstance(column, Temporal)
    assert (column.kind, column.format, column.output_dtype) == (kind, pattern, "string")
    if kind != "time":
        assert column.bounds[0].startswith("2021-01-01")
        assert column.bounds[1].startswith("2022-12-31")
    back = column.decode(column.encode(pa.array(texts)), np.random.default_rng(0)).to_pylist()
    assert all(dt.datetime.strptime(text, pattern) for text in back)


def test_days_that_could_be_months_are_told() -> None:
    texts = [f"0{n % 9 + 1}/0{n % 7 + 1}/2020" for n in range(60)]
    assert "They could also be written as %m/%d/%Y" in note(texts)


def test_iso_timestamps_with_zones_and_fractions() -> None:
    zoned = drafted([f"2013-01-{n + 1:02d}T0{n % 9}:00:00Z" for n in range(25)])
    assert isinstance(zoned, Temporal)
    assert (zoned.kind, zoned.zone, zoned.unit) == ("timestamp", "UTC", "hour")
    exact = drafted([f"2013-01-{n + 1:02d}T00:00:00.{n + 1:06d}" for n in range(25)])
    assert isinstance(exact, Temporal)
    assert exact.step == "microsecond"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([dt.date(2020, 1, n + 1) for n in range(20)]), "date"),
        (
            pa.array([dt.datetime(2020, 1, n + 1, 5) for n in range(20)], pa.timestamp("ms", "Europe/Berlin")),
            "timestamp",
        ),
        (pa.array([dt.datetime(2020, 1, n + 1, 5, 30) for n in range(20)], pa.timestamp("ns")), "timestamp"),
        (pa.array([dt.time(n, 30) for n in range(20)]), "time"),
        (pa.array([dt.timedelta(minutes=90 * n) for n in range(20)]), "duration"),
    ],
)
def test_types_of_dates_and_times(values: pa.Array, kind: str) -> None:
    column = drafted(pa.concat_arrays([values, pa.nulls(2, values.type)]))
    assert isinstance(column, Temporal)
    assert (column.kind, column.missing) == (kind, True)
    out = column.decode(column.encode(values), np.random.default_rng(0))
    assert out.type == values.type


# --- declared categories


def test_declared_categories_are_the_values() -> None:
    size = pd.Categorical(["m", "s", None], ["s", "m", "l", "xl"], ordered=True)
    column = draft_schema(pd.DataFrame({"size": size})).columns[0]
    assert column == Categorical("size", ("s", "m", "l", "xl"), ordered=True, missing=True, dtype="category")
    enum = pl.DataFrame({"size": pl.Series(["m", "s"], dtype=pl.Enum(["s", "m", "l"]))})
    found: Any = draft_schema(enum).columns[0]
    assert found.values == ("s", "m", "l")
    assert found.dtype == "enum"
    arrow = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["x", "y", "unused"]))
    found = draft_schema(pa.table({"c": arrow})).columns[0]
    assert found.values == ("x", "y", "unused")


def test_declared_categories_survive_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": pd.Categorical(["m", "s", "m"], ["s", "m", "l"], ordered=True)})
    frame.to_parquet(tmp_path / "t.parquet")
    found: Any = draft_schema(read_file(tmp_path / "t.parquet")).columns[0]
    assert (found.values, found.ordered) == (("s", "m", "l"), True)
