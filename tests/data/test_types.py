"""Types out as in: random tables of every kind of column through codes, files and frames, and every type by itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.columns import Categorical, Column, Constant, Extra, Grid, Identifier, Numeric, Temporal
from pointillist.data.columns.types import DTYPES, arrow_type, dtype_of, dtypes_of
from pointillist.data.draft import draft_from, draft_schema
from pointillist.data.schema import Schema
from pointillist.data.table import Table, as_arrow, problems_in, read_file
from pointillist.data.texts import declared
from pointillist.errors import InputError

YEARS = ("2020-01-01", "2021-12-31")
BERLIN = "Europe/Berlin"
ZONED = f"timestamp[us, tz={BERLIN}]"
KINDS: list[Any] = [
    lambda name, gaps: Categorical(name, ("01", "02", "x,\ny"), missing=gaps),
    lambda name, gaps: Categorical(name, ("b", "a", "unused"), ordered=True, missing=gaps, dtype="category"),
    lambda name, gaps: Categorical(name, ("b", "a", "z"), ordered=True, missing=gaps, dtype="enum"),
    lambda name, gaps: Categorical(name, ("f", "m"), missing=gaps, dtype="large_string"),
    lambda name, gaps: Categorical(name, (1, 2, 300), missing=gaps, dtype="int16"),
    lambda name, gaps: Categorical(name, (1, 2), missing=gaps, dtype="Int64"),
    lambda name, gaps: Categorical(name, (False, True), missing=gaps),
    lambda name, gaps: Categorical(name, (False, True), missing=gaps, dtype="boolean"),
    lambda name, gaps: Categorical(name, ("1.20", "3.00"), missing=gaps, dtype="decimal(10, 2)"),
    lambda name, gaps: Categorical(name, (1, 2), missing=True, missing_values=("-9", "?"), missing_as="-9"),
    lambda name, gaps: Categorical(name, ("f", "m"), missing=True, missing_as="NA"),
    lambda name, gaps: Categorical(name, (1, 2), missing=True, missing_as="NA"),
    lambda name, gaps: Numeric(name, (0, 10, 20), integer=True, missing=gaps, dtype="UInt8"),
    lambda name, gaps: Numeric(name, (0, 0.5, 1), missing=gaps, dtype="float32"),
    lambda name, gaps: Numeric(name, (0, 0.5, 1), missing=gaps, dtype="Float64"),
    lambda name, gaps: Grid(name, (0, 100), integer=True, missing=gaps, dtype="Int16"),
    lambda name, gaps: Grid(name, (0, 10), step=0.25, missing=gaps, dtype="decimal(12,2)"),
    lambda name, gaps: Grid(name, (0, 10), missing=gaps, dtype="Float32"),
    lambda name, gaps: Temporal(name, "date", YEARS, missing=gaps),
    lambda name, gaps: Temporal(name, "date", YEARS, missing=gaps, bins="month", dtype="timestamp[us]"),
    lambda name, gaps: Temporal(name, "date", YEARS, missing=gaps, dtype="string", format="%d.%m.%Y"),
    lambda name, gaps: Temporal(name, "time", missing=gaps, dtype="time64[us]"),
    lambda name, gaps: Temporal(name, "time", missing=gaps, format="hhmm"),
    lambda name, gaps: Temporal(name, "timestamp", YEARS, missing=gaps, dtype="timestamp[ms]"),
    lambda name, gaps: Temporal(name, "timestamp", YEARS, zone=BERLIN, missing=gaps, dtype=ZONED),
    lambda name, gaps: Temporal(name, "duration", ("0", "9:00:00"), missing=gaps, dtype="duration[us]"),
    lambda name, gaps: Constant(name, "same"),
    lambda name, gaps: Constant(name, 7, "int8"),
    lambda name, gaps: Constant(name, "2024-02-29", "date32"),
    lambda name, gaps: Constant(name),
    lambda name, gaps: Identifier(name, prefix="P", digits=5),
    lambda name, gaps: Identifier(name, kind="uuid"),
]  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> Table:
    picked = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=7))
    columns: list[Column | Extra] = [kind(f"c{n}", draw(st.booleans())) for n, kind in enumerate(picked)]
    columns.insert(draw(st.integers(0, len(columns))), Categorical("last", (0, 1)))
    schema = Schema.of(columns)
    rows = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Table(schema, tuple(rng.integers(0, size, rows) for size in schema.domain.sizes))


def same_codes(one: Table, two: Table) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.codes, two.codes, strict=True))


def plain(column: pa.ChunkedArray) -> list[Any]:
    return column.to_pylist()


@settings(max_examples=120, deadline=None)
@given(tables())
def test_tables_come_back_from_everything(table: Table) -> None:
    arrow = table.to_arrow(seed=1)
    schema = table.schema
    assert arrow.column_names == list(schema.names)
    for column in schema.everything:
        expected = arrow_type(column.output_dtype)
        if not pa.types.is_dictionary(expected):
            assert arrow.column(column.name).type == expected
    assert same_codes(Table.encode(arrow, schema), table)
    with TemporaryDirectory() as folder:
        table.write(Path(folder) / "t.parquet", seed=1)
        table.write(Path(folder) / "t.csv", seed=1)
        typed, texts = read_file(Path(folder) / "t.parquet"), read_file(Path(folder) / "t.csv")
        assert parquet.read_schema(Path(folder) / "t.parquet").equals(arrow.schema)
    assert all(plain(typed.column(name)) == plain(arrow.column(name)) for name in schema.names)
    assert texts.column_names == typed.column_names
    assert same_codes(Table.encode(typed, schema), table)
    assert same_codes(Table.encode(texts, schema), table)
    assert Table.encode(texts, schema).to_arrow(seed=1).equals(arrow)
    pandas, polars = table.to_pandas(seed=1), table.to_polars(seed=1)
    assert list(pandas.columns) == polars.columns == list(schema.names)
    assert same_codes(Table.encode(pandas, schema), table)
    assert same_codes(Table.encode(polars, schema), table)


# --- frames of pandas and polars


def test_frames_of_pandas_keep_their_types() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 2], "Int64"),
            "small": pd.array([1, None, 2], "UInt8"),
            "b": pd.array([True, None, False], "boolean"),
            "s": pd.array(["x", None, "y"], "string[python]"),
            "c": pd.Categorical(["lo", None, "hi"], ["lo", "mid", "hi"], ordered=True),
            "n": pd.Categorical([3, 1, 3], [3, 2, 1]),
            "t": np.array([1, 2, 1], np.int16),
            "f": np.array([0.5, 1.5, 0.5], np.float32),
            "when": pd.to_datetime(["2020-01-01 10:00", "2020-05-05 11:00", None]),
        }
    )
    kinds = dtypes_of(frame)
    assert list(kinds) == list(frame.columns)
    schema = Schema(
        (
            Categorical("i", (1, 2), missing=True, dtype=kinds["i"]),
            Numeric("small", (0, 2, 4), integer=True, missing=True, decode_as="midpoint", dtype=kinds["small"]),
            Categorical("b", (False, True), missing=True, dtype=kinds["b"]),
            Categorical("s", ("x", "y"), missing=True, dtype=kinds["s"]),
            Categorical("c", ("lo", "mid", "hi"), ordered=True, missing=True, dtype=kinds["c"]),
            Categorical("n", (3, 2, 1), dtype=kinds["n"]),
            Categorical("t", (1, 2), dtype=kinds["t"]),
            Numeric("f", (0, 1, 2), decode_as="midpoint", dtype=kinds["f"]),
            Temporal("when", "timestamp", YEARS, missing=True, dtype=kinds["when"]),
        )
    )
    again = Table.encode(frame, schema).to_pandas()
    assert again.dtypes.to_dict() == frame.dtypes.to_dict()
    pd.testing.assert_frame_equal(again.drop(columns="small"), frame.drop(columns="small"))


def test_whole_numbers_and_booleans_with_gaps_stay_what_they_are_in_pandas() -> None:
    schema = Schema((Categorical("i", (1, 2), missing=True), Categorical("b", (False, True), missing=True)))
    frame = Table(schema, (np.array([0, 2]), np.array([2, 1]))).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "boolean"]
    whole = Table(schema, (np.array([0, 1]), np.array([0, 1]))).to_pandas()
    assert [str(kind) for kind in whole.dtypes] == ["int64", "bool"]


def test_frames_of_polars_keep_their_types() -> None:
    frame = pl.DataFrame(
        {
            "e": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a", "z"])),
            "c": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
            "d": pl.Series([dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)]),
            "t": pl.Series([dt.time(10, 30), dt.time(0), None]),
            "m": pl.Series(["1.20", "3.00", None]).cast(pl.Decimal(10, 2)),
            "i": pl.Series([1, None, 2], dtype=pl.Int16),
        }
    )
    kinds = dtypes_of(frame)
    assert kinds == {
        "e": "enum", "c": "category", "d": "date32", "t": "time64[ns]", "m": "decimal(10, 2)", "i": "int16",
    }  # fmt: skip
    values, ordered = declared(as_arrow(frame).column("e")) or ([], False)
    schema = Schema(
        (
            Categorical("e", tuple(values), ordered=ordered, missing=True, dtype=kinds["e"]),
            Categorical("c", ("x", "y"), dtype=kinds["c"]),
            Temporal("d", "date", YEARS, missing=True, dtype=kinds["d"]),
            Temporal("t", "time", missing=True, dtype=kinds["t"]),
            Categorical("m", ("1.20", "3.00"), missing=True, dtype=kinds["m"]),
            Categorical("i", (1, 2), missing=True, dtype=kinds["i"]),
        )
    )
    again = Table.encode(frame, schema).to_polars()
    assert again.schema == frame.schema
    assert again.equals(frame)


def test_declared_values_are_found_without_a_row_that_has_them() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["x"], ["y", "x", "q"], ordered=True), "s": ["x"]})
    arrow = as_arrow(frame)
    assert declared(arrow.column("c")) == (["y", "x", "q"], True)
    assert declared(arrow.column("s")) is None
    parts = [pa.DictionaryArray.from_arrays([0], [value]) for value in ("a", "b")]
    assert declared(pa.chunked_array(parts)) is None


# --- single types


@pytest.mark.parametrize("name", [*DTYPES, f"timestamp[us, tz={BERLIN}]", "decimal(10, 2)"])
def test_names_of_types_come_back(name: str) -> None:
    kind = arrow_type(name)
    plain = name in ("enum", "category") or name in ("Int8", "boolean") or name[0].isupper() or "[py" in name
    assert plain or dtype_of(kind) == name


def test_types_without_a_name() -> None:
    assert [dtype_of(kind) for kind in (pa.list_(pa.int8()), pa.binary(), pa.float16())] == ["", "", ""]
    assert dtypes_of(pa.table({"a": pa.array(["x"], pa.string_view()), "b": [1.5]})) == {
        "a": "large_string",
        "b": "float64",
    }


@pytest.mark.parametrize("dtype", ["decimal(39, 2)", "decimal(3, 4)", "timestamp[us, tz=]", "text", "int65"])
def test_unknown_types_are_refused(dtype: str) -> None:
    with pytest.raises(InputError, match="column 'c': dtype must be a type such as string, category"):
        Categorical("c", ("1", "2"), dtype=dtype)


# --- missing values


def test_spellings_of_missing_values() -> None:
    column = Categorical("c", (1, 2), missing=True, missing_values=("-9", "?"))
    assert column.encode(pa.array([1, -9, None, 2])).tolist() == [0, 2, 2, 1]
    assert column.encode(pa.array([1.0, -9.0, float("nan")])).tolist() == [0, 2, 2]
    assert column.encode(pa.array(["1", "?", "-9", "-9.0", "NA"])).tolist() == [0, 2, 2, 2, 2]
    assert column == Categorical("c", (1, 2), missing=True, missing_values=(-9, "?"))  # type: ignore[arg-type]
    texts = Categorical("c", ("f", "m"), missing=True, missing_values=("NA", "."), missing_as=".")
    assert texts.encode(pa.array(["f", "NA", ".", "", None])).tolist() == [0, 2, 2, 2, 2]
    assert texts.decode(np.array([1, 2]), np.random.default_rng(0)).to_pylist() == ["m", "."]
    flags = Categorical("c", (True, False), missing=True, missing_values=("N",))
    assert flags.encode(pa.array(["TRUE", "N", "false"])).tolist() == [0, 2, 1]


def test_missing_as_decides_the_type() -> None:
    rng, codes = np.random.default_rng(0), np.array([0, 2])
    assert Categorical("c", (1, 2), missing=True, missing_as="-9").decode(codes, rng).equals(pa.array([1, -9]))
    assert Categorical("c", (1, 2), missing=True, missing_as="NA").decode(codes, rng).equals(pa.array(["1", "NA"]))
    known = Categorical("c", ("a", "b"), missing=True, missing_as="NA", dtype="category").decode(codes, rng)
    assert known.to_pylist() == ["a", "NA"]
    assert known.dictionary.to_pylist() == ["a", "b", "NA"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"missing": True, "missing_values": ("1",)}, "column 'c': missing_values must not be among the values"),
        ({"missing": True, "missing_as": "2"}, "column 'c': missing_values must not be among the values"),
        ({"missing_values": ("?",)}, "column 'c': missing must be true where missing_values or missing_as are given"),
        ({"missing": True, "missing_values": "?"}, "must have a list of missing_values"),
        ({"missing": True, "missing_values": [None]}, "column 'c': missing_values must be texts or numbers"),
    ],
)
def test_wrong_spellings_are_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Categorical("c", (1, 2), **keys)
    assert words in str(caught.value)


# --- drafts


def test_drafts_take_dates_and_decimals() -> None:
    data = pa.table(
        {
            "day": pa.array([dt.date(2020, 5, 5), dt.date(2021, 6, 6)]),
            "at": pa.array([1_600_000_000, 1_700_000_000], pa.timestamp("s", BERLIN)),
            "time": pa.array([1, None], pa.time32("s")),
            "took": pa.array([-5, 100_000], pa.duration("s")),
            "money": pa.array([Decimal("1.20"), Decimal("7.35")]),
            "void": pa.array([None, None], pa.date32()),
        }
    )
    schema = draft_schema(data)
    assert [extra.name for _, extra in schema.extras] == ["void"]
    assert [column.name for column in schema.columns] == ["day", "at", "time", "took", "money"]
    made = Table.encode(data, schema).to_arrow()
    assert made.schema.types == data.schema.types
    assert schema.columns[0] == Temporal("day", "date", ("2020-01-01", "2021-12-31"), dtype="date32")


def test_drafts_keep_columns_of_python_objects() -> None:
    """Decimals stay decimals, with room for larger ones; nothing at all stays nothing; sparse columns become dense."""
    frame = pd.DataFrame(
        {
            "money": [Decimal("0.20"), Decimal("0.35")] * 20,
            "void": pd.Series([None] * 40, dtype=object),
            "sparse": pd.arrays.SparseArray([0, 0, 0, 7] * 10),
        }
    )
    schema = draft_schema(frame)
    assert schema.columns[0].output_dtype == "decimal(18, 2)"
    made = Table.encode(frame, schema).to_pandas()
    assert made["money"].tolist() == frame["money"].tolist()
    assert made["void"].dtype == object
    assert made["sparse"].tolist() == frame["sparse"].tolist()
    nothing = pa.table({"void": pa.nulls(40), "x": ["a", "b"] * 20})
    assert Table.encode(nothing, draft_schema(nothing)).to_arrow().equals(nothing)
    with pytest.raises(InputError, match="dtype"):
        Constant("void", 5, "null")


def test_a_column_of_several_types_does_not_stop_the_others() -> None:
    """As spreadsheets have them: left out, said, and not read later."""
    frame = pd.DataFrame({"x": pd.Series([1, "many"] * 20, dtype=object), "k": ["a", "b"] * 20})
    draft = draft_from(frame)
    assert draft.left_out == {"x": "cells of several types; convert the column to strings or to numbers"}
    assert Table.encode(frame, draft.schema).to_pandas()["k"].tolist() == frame["k"].tolist()
    assert problems_in(frame, draft.schema) == []
    assert draft_from(frame, ignore=["x"]).left_out == {"x": "as asked"}
    with pytest.raises(InputError, match="column 'x' cannot be converted"):
        draft_from(frame[["x"]])
    with pytest.raises(InputError, match="column 'x' cannot be converted"):
        Table.encode(frame, Schema((Categorical("x", ("a", "b")), Categorical("k", ("a", "b")))))
