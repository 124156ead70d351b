"""Drafts of schemas from data."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist import synthesize
from pointillist.data.draft import BINS, draft_schema
from pointillist.data.schema import DRAFT_NOTICE, Categorical, Column, Numeric
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError

N = 2000


def town() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kids = rng.integers(0, 4, N).astype(float)
    kids[::10] = np.nan
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "sex": rng.choice(["male", "female"], N),
            "zip": rng.choice(["01234", "00501"], N),
            "age": rng.integers(18, 90, N),
            "born": rng.integers(1990, 2021, N),
            "income": np.round(rng.lognormal(10, 1, N), 2),
            "gain": np.where(rng.random(N) < 0.98, 0, rng.integers(1, 99_999, N)),
            "kids": kids,
            "smoker": rng.random(N) < 0.3,
            "note": rng.choice(["", "x", "y"], N),
        }
    )


def drafted(values: Any) -> Column:
    (column,) = draft_schema(pa.table({"c": values})).columns
    return column


def test_a_draft_is_marked_and_refused() -> None:
    schema = draft_schema(town())
    assert not schema.reviewed
    assert schema.to_toml().startswith(DRAFT_NOTICE)
    assert "NOT public knowledge until a person has reviewed it" in DRAFT_NOTICE
    assert tomllib.loads(schema.to_toml())["reviewed"] is False
    with pytest.raises(InputError) as caught:
        synthesize(town(), schema=schema, epsilon=1.0)
    assert str(caught.value) == (
        "schema of the table must be reviewed by a person before use, got reviewed = false; "
        "check that every value and bin edge in it is public knowledge, then set reviewed = true."
    )


@pytest.mark.parametrize("way", ["pandas", "csv", "parquet"])
def test_a_draft_fits_the_data_it_was_made_from(way: str, tmp_path: Path) -> None:
    data: Any = town()
    if way == "csv":
        data.to_csv(tmp_path / "t.csv", index=False)
        data = read_file(tmp_path / "t.csv")
    if way == "parquet":
        data.to_parquet(tmp_path / "t.parquet")
        data = read_file(tmp_path / "t.parquet")
    schema = draft_schema(data)
    assert schema.ignore == ("id",)
    table = Table.encode(data, schema)
    columns = dict(zip(schema.domain.names, schema.columns, strict=True))
    assert columns["sex"] == Categorical("sex", ("female", "male"))
    assert columns["zip"] == Categorical("zip", ("00501", "01234"))  # no numbers
    assert isinstance(columns["kids"], Categorical)
    assert (columns["kids"].values, columns["kids"].missing, columns["kids"].ordered) == ((0, 1, 2, 3), True, True)
    assert columns["note"] == Categorical("note", ("x", "y"), missing=True)
    for name in ("age", "born", "income", "gain"):
        column = columns[name]
        assert isinstance(column, Numeric)
        assert column.integer == (name != "income")
        assert 8 <= column.size <= BINS + 1
        numbers = town()[name]
        assert column.edges[0] <= numbers.min()
        assert numbers.max() <= column.edges[-1]
    counts = np.bincount(table.codes[table.domain.index("income")])
    assert counts.min() > N / BINS / 3  # bins of similar weight


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=60),
        st.lists(st.integers(-(2**52), 2**52), min_size=2, max_size=60),
        st.lists(st.integers(0, 120), min_size=30, max_size=80),
        st.builds(lambda at, n: [at + i / 8 for i in range(n)], st.integers(-(10**9), 10**9), st.integers(2, 60)),
        st.builds(lambda at, n: [0] * 1000 + [at + i for i in range(n)], st.integers(1, 10**9), st.integers(21, 60)),
    ).filter(lambda x: len(set(x)) > 1)
)
def test_bins_cover_the_data(values: list[float]) -> None:
    array = pa.array(values)
    column = drafted(array)
    codes = column.encode(array)  # refuses values outside
    assert codes.max() < column.size
    assert len(np.unique(codes)) > 1
    texts = pa.array([repr(v) for v in values])
    text_column = drafted(texts)
    assert text_column.size >= 2
    text_column.encode(texts)


def test_one_number_and_gaps() -> None:
    assert drafted([0.5, None, 0.5]) == Numeric("c", (0.0, 1.0), missing=True)
    assert drafted([-0.5, None, -0.5]) == Numeric("c", (-1.0, 0.0), missing=True)
    assert drafted([3, None]) == Categorical("c", (3,), ordered=True, missing=True)


def test_types_are_kept() -> None:
    assert drafted(pa.array([1, 2], pa.int8())).dtype == "int8"
    assert drafted(pa.array([1, 2], pa.int64())).dtype == ""
    assert drafted(pa.array([0.5, 2], pa.float32())).dtype == "float32"
    assert drafted(pa.array([1.0, None, 2.0])) == Categorical("c", (1, 2), ordered=True, missing=True, dtype="float64")
    assert drafted(pa.array(range(-128, 128), pa.int8())).dtype == "int8"
    close = pa.array(np.float32(1e8) + np.arange(0, 64, 8, dtype=np.float32) + np.float32(0.5))
    assert len(np.unique(drafted(close).encode(close))) > 1
    assert drafted(pa.array(["a", "b"]).dictionary_encode()).dtype == "category"
    assert drafted([True, None]) == Categorical("c", (False, True), missing=True)


def test_identifiers_are_left_out() -> None:
    table = pa.table({"c": [1, 2] * 15, "name": [f"person {i}" for i in range(30)]})
    assert draft_schema(table).ignore == ("name",)
    few = pa.table({"name": [f"person {i}" for i in range(10)]})
    assert draft_schema(few).ignore == ()


@pytest.mark.parametrize("values", [["a", "a"], [1, 1], [0.5, 0.5], ["", ""], [None, None], ["NA", "NA"]])
def test_one_value_is_refused(values: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        drafted(values)
    assert str(caught.value) == (
        "column 'c' must have at least two values, got 1; drop the column from the file, or write its schema by hand."
    )


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="table must have rows, got 0 rows; check the file"):
        draft_schema(pa.table({"c": pa.array([], pa.string())}))


@pytest.mark.parametrize("values", [[1.7e308, -1.7e308], [1.7e308, 1.2e308] * 20, [1e300, 0.5], ["1.7e308", "1"]])
def test_numbers_without_room_for_bins_are_refused(values: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        drafted(values)
    assert str(caught.value) == (
        "column 'c' must hold numbers in -5e+299 .. 5e+299, got larger ones; "
        "change their unit, or drop the column from the file."
    )


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 5e-324],
        [-5e-324, 0.0],
        [-5e-324, 5e-324],
        [1e-310, 2e-310, 3e-310],
        [2.2e-308] * 5 + [2.3e-308],
        [0, 1e-301],
    ],
)
def test_tiny_numbers_fall_into_several_bins(values: list[float]) -> None:
    column = drafted(values)
    assert len(set(column.encode(pa.array(values)).tolist())) > 1
    codes = np.arange(column.size)
    assert np.array_equal(column.encode(column.decode(codes, np.random.default_rng(0))), codes)
