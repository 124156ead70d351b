"""Tables: conversion from and to CSV, Parquet, pandas, polars and Arrow."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table, read_file, write_file
from pointillist.errors import InputError

SCHEMA = Schema(
    (
        Categorical("zip", ("00501", "01234", "90210")),
        Categorical("note", ('a "quoted", b', "two\nlines", "plain", "ünï"), missing=True),
        Categorical("grade", (1, 2, 3), ordered=True, dtype="int8"),
        Categorical("smoker", (False, True)),
        Numeric("age", (0, 18, 65, 120), integer=True, dtype="uint8"),
        Numeric("height", (0.0, 1.5, 1.75, 2.5), missing=True, dtype="float32"),
        Categorical("class", ("low", "high"), ordered=True, dtype="category"),
    )
)
ZIP = ["01234", "00501", "90210", "01234"]
NOTE = ["two\nlines", None, 'a "quoted", b', "ünï"]
GRADE = [3, 1, 2, 2]
SMOKER = [True, False, False, True]
AGE = [17, 18, 65, 120]
HEIGHT = [1.6, 2.0, None, 0.5]
CLASS = ["high", "low", "low", "high"]
CODES = {
    "zip": [1, 0, 2, 1],
    "note": [1, 4, 0, 3],
    "grade": [2, 0, 1, 1],
    "smoker": [1, 0, 0, 1],
    "age": [0, 1, 2, 2],
    "height": [1, 2, 3, 0],
    "class": [1, 0, 0, 1],
}
VALUES: dict[str, list[Any]] = dict(zip(CODES, (ZIP, NOTE, GRADE, SMOKER, AGE, HEIGHT, CLASS), strict=True))
CSV = (
    "zip,note,grade,smoker,age,height,class\r\n"
    '01234,"two\nlines",3,True,17,1.6,high\r\n'
    "00501,,1.0,false,18,2,low\r\n"
    '90210,"a ""quoted"", b",2,False,65,,low\r\n'
    "01234,ünï,2,true,120,.5,high\r\n"
)


def as_pandas() -> pd.DataFrame:
    frame = pd.DataFrame(VALUES)
    return frame.astype({"class": "category", "grade": "int16", "height": "float32"})


def as_polars() -> pl.DataFrame:
    return pl.DataFrame(VALUES).with_columns(pl.col("class").cast(pl.Categorical), pl.col("age").cast(pl.UInt16))


def as_arrow() -> pa.Table:
    table = pa.table(VALUES)
    return pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)])  # several chunks


def codes_of(table: Table) -> dict[str, list[int]]:
    return {name: codes.tolist() for name, codes in zip(table.domain.names, table.codes, strict=True)}


@pytest.mark.parametrize("make", [as_pandas, as_polars, as_arrow])
def test_frames_come_in(make: Callable[[], Any]) -> None:
    assert codes_of(Table.encode(make(), SCHEMA)) == CODES


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_files_come_in(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        parquet.write_table(as_arrow(), path)
    else:
        content = CSV.encode()
        path.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
    assert codes_of(Table.read(path, SCHEMA)) == CODES


def test_column_order_is_free_and_ignored_columns_are_left_out() -> None:
    shuffled = as_arrow().select(list(reversed(VALUES))).append_column("id", pa.array(["a", "b", "c", "d"]))
    schema = Schema(SCHEMA.columns, ignore=("id", "not there"))
    assert codes_of(Table.encode(shuffled, schema)) == CODES
    with pytest.raises(InputError) as caught:
        Table.encode(shuffled, SCHEMA)
    assert str(caught.value) == (
        "table must only have columns of the schema (these are not in it), got ['id']; "
        "drop them, or name them under ignore in the schema."
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_go_out_and_come_back(ending: str, tmp_path: Path) -> None:
    table = Table.encode(as_arrow(), SCHEMA)
    table.write(tmp_path / f"t.{ending}", seed=3)
    again = read_file(tmp_path / f"t.{ending}")
    assert again.column_names == list(VALUES)
    assert again.column("zip").to_pylist() == ZIP  # "01234" is no number
    assert again.column("note").to_pylist() == [n or ("" if ending == "csv" else None) for n in NOTE]
    assert codes_of(Table.encode(again, SCHEMA)) == CODES


def test_labels_and_types_are_restored() -> None:
    table = Table.encode(as_arrow(), SCHEMA)
    arrow = table.to_arrow()
    types = {
        "zip": "string",
        "note": "string",
        "grade": "int8",
        "smoker": "bool",
        "age": "uint8",
        "height": "float",
    }
    assert {name: str(arrow.schema.field(name).type) for name in types} == types
    for name in ("zip", "note", "grade", "smoker", "class"):
        assert arrow.column(name).to_pylist() == VALUES[name]
    frame = table.to_pandas()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items() if name not in ("zip", "note")}
    assert kinds == {"grade": "int8", "smoker": "bool", "age": "uint8", "height": "float32", "class": "category"}
    assert list(frame["class"].cat.categories) == ["low", "high"]
    assert frame["class"].cat.ordered
    assert frame["zip"].tolist() == ZIP
    assert frame["height"].isna().tolist() == [False, False, True, False]
    polars = table.to_polars()
    assert polars["note"].to_list() == NOTE
    assert polars["class"].to_list() == CLASS
    assert polars.schema["grade"] == pl.Int8
    assert polars.schema["height"] == pl.Float32
    for out in (frame, polars, arrow):
        assert codes_of(Table.encode(out, SCHEMA)) == CODES


def test_the_seed_draws_numbers_inside_bins_and_nothing_else() -> None:
    table = Table.encode(as_arrow(), SCHEMA)
    assert table.to_arrow(1).equals(table.to_arrow(1))
    assert not table.to_arrow(1).column("height").equals(table.to_arrow(2).column("height"))
    assert codes_of(Table.encode(table.to_arrow(2), SCHEMA)) == CODES


@pytest.mark.parametrize(("size", "dtype"), [(256, np.uint8), (300, np.uint16), (70_000, np.uint32)])
def test_many_values(size: int, dtype: type, tmp_path: Path) -> None:
    schema = Schema((Categorical("c", tuple(f"v{i}" for i in range(size))), Categorical("n", tuple(range(size)))))
    codes = np.arange(size)[::-1]
    table = Table(schema, (codes, codes))
    assert [c.dtype for c in table.codes] == [dtype, dtype]
    table.write(tmp_path / "t.csv")
    again = Table.read(tmp_path / "t.csv", schema)
    assert [c.dtype for c in again.codes] == [dtype, dtype]
    assert all(np.array_equal(c, codes) for c in again.codes)


@pytest.mark.parametrize("width", [50, 61, 77])
def test_quoted_newlines_across_blocks_of_a_large_csv(width: int, tmp_path: Path) -> None:
    labels = ("x" * width + "\n" + "y" * 50, "\n" * 20)
    schema = Schema((Categorical("c", labels), Categorical("d", ("0", "1"))))
    rng = np.random.default_rng(0)
    table = Table(schema, (rng.integers(0, 2, 60_000), rng.integers(0, 2, 60_000)))
    table.write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").stat().st_size > 2**21  # more than one block of the reader
    again = Table.read(tmp_path / "t.csv", schema)
    assert all(np.array_equal(a, b) for a, b in zip(again.codes, table.codes, strict=True))


def test_awkward_column_names_survive_a_csv(tmp_path: Path) -> None:
    names = ('say "hi"', "a,b", "two\nlines", "ü", " ")
    schema = Schema(tuple(Categorical(name, ("x", "y")) for name in names))
    table = Table(schema, tuple(np.array([0, 1, 1]) for _ in names))
    table.write(tmp_path / "t.csv")
    assert codes_of(Table.read(tmp_path / "t.csv", schema)) == codes_of(table)


def test_views() -> None:
    table = Table.encode(as_arrow(), SCHEMA)
    part = table.project(["age", "zip"])
    assert part.domain == Domain(("age", "zip"), (3, 3))
    assert codes_of(part) == {name: CODES[name] for name in ("age", "zip")}
    assert codes_of(table.take(np.array([3, 0])))["zip"] == [1, 1]
    assert len(table.take(np.array([True, False, True, False]))) == 2
    with pytest.raises(InputError, match=r"attribute must be a column of the schema, got 'aeg'; did you mean 'age'\."):
        table.project(["aeg"])


def test_codes_must_fit_the_schema() -> None:
    schema = Schema((Categorical("c", ("a", "b")),))
    for codes in ([0, 2], [-1, 0]):
        with pytest.raises(InputError, match=r"column 'c' must have codes in 0 \.\. 1"):
            Table(schema, (np.array(codes),))
    with pytest.raises(ValueError, match="one array of codes per column"):
        Table(schema, (np.array([0]), np.array([0])))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            lambda: pd.DataFrame({"c": ["a", 1]}),
            r"table must have columns of one type each \(.*\), got DataFrame; convert the column to strings or",
        ),
        (
            lambda: pd.DataFrame([["a", "b"]], columns=["c", "c"]),
            r"column names must be different, got \['c'\]; rename the repeated columns",
        ),
        (
            lambda: pa.table([["a"], ["b"]], names=["c", "c"]),
            r"column names must be different, got \['c'\]; rename the repeated columns",
        ),
        (
            lambda: pd.DataFrame({"c": pd.to_datetime(["2020-01-01"])}),
            r"column 'c' must only hold values of the schema, got '2020-01-01 00:00:00.*'; correct the table",
        ),
        (
            lambda: pa.table({"c": [[1], [2]]}),
            r"column 'c' must hold strings, numbers, booleans, dates or times, got list.*; convert it, or name",
        ),
        (
            lambda: {"c": ["a"]},
            r"table must be a pandas, polars or Arrow table, or a pointillist.Table, got dict; convert it",
        ),
        (
            lambda: pd.Series(["a"], name="c"),
            r"table must .*, got Series; ",
        ),
        (lambda: pa.table({"c": pa.array([], pa.string())}), r"table must have rows, got 0 rows; check the file"),
        (
            lambda: pa.table({"d": ["a"]}),
            r"table must have every column of the schema \(these are absent\), got \['c'\]; add the columns or take",
        ),
    ],
)
def test_refused_tables(data: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Table.encode(data(), Schema((Categorical("c", ("a", "b")),)))


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path must end in \.csv or \.parquet, got .*; rename it"):
        write_file(pa.table({"a": [1]}), tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_other_arrow_types_are_made_plain() -> None:
    table = pa.table(
        {
            "large": pa.array(["a", "b"], pa.large_string()),
            "view": pa.array(["a", "b"], pa.string_view()),
            "decimal": pa.array([1, 2], pa.decimal128(5, 1)),
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
            "nothing": pa.nulls(2),
            "dictionary": pa.array([5, 6]).dictionary_encode(),
        }
    )
    schema = Schema(
        (
            Categorical("large", ("a", "b")),
            Categorical("view", ("a", "b")),
            Numeric("decimal", (0, 1.5, 3)),
            Numeric("half", (0, 1, 2)),
            Categorical("nothing", ("x",), missing=True),
            Categorical("dictionary", (5, 6)),
        )
    )
    assert set(map(tuple, codes_of(Table.encode(table, schema)).values())) == {(0, 1), (1, 1)}


def test_every_cell_of_a_csv_is_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d\n01,true,,NA\n")
    assert read_file(tmp_path / "t.csv").to_pylist() == [{"a": "01", "b": "true", "c": "", "d": "NA"}]
    assert set(csv.read_csv(tmp_path / "t.csv").column("a").to_pylist()) == {1}  # what a plain reader does
