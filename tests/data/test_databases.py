"""Tables and queries of DuckDB: the same counts as in memory, and sentences for everything else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.command import Run

from pointillist import Categorical, InputError, Release, RunStopped, Schema, Table, load, prepare, synthesize
from pointillist.data import scanning
from pointillist.data.databases import query_of
from pointillist.data.scanning import scanned
from pointillist.data.sources import count
from pointillist.data.streams import stream_of
from pointillist.job import source_of

duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
SCOPES = [(0,), (0, 1), (0, 1, 2)]
OPTIONS: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "method": "mwem", "insecure_noise_seed": 0}


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


@pytest.fixture
def database(town: Table, tmp_path: Path) -> Path:
    cells = town.to_arrow(0)
    assert isinstance(cells, pa.Table)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM cells")
        connection.execute("CREATE TABLE words AS SELECT 'secret' AS a")
    return tmp_path / "people.duckdb"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_a_query_and_a_relation(town: Table, database: Path) -> None:
    expected = count(source_of(town, None), SCOPES)
    query = "SELECT commute, district, age FROM people WHERE age >= -1 OR age IS NULL"
    names = ("people", "main.people", '"people"', 'main."people"')
    streams = [query_of(database, one) for one in (*names, query)]

    def check(stream: Any) -> None:
        for most in (10**9, 1000):  # with and without room for the codes
            source = scanned(stream, town.schema, most)
            assert source.rows == len(town)
            assert all(np.array_equal(a, b) for a, b in zip(count(source, SCOPES), expected, strict=True))

    for stream in streams:
        check(stream)
    with duckdb.connect(str(database), read_only=True) as connection:
        check(stream_of(connection.table("people")))


@pytest.mark.parametrize("query", ["SELECT * FROM 'more.csv'", "SELECT * FROM read_text('more.csv')", "outside"])
def test_a_query_has_no_access_to_other_files(database: Path, home: Path, query: str) -> None:
    (home / "more.csv").write_text("a\nsecret\n")
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE VIEW outside AS SELECT * FROM read_csv('more.csv')")
    with pytest.raises(InputError, match="sql must be a query of this database") as caught:
        query_of(database, query)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        (None, "sql must be given for a database file, got none; name a table or write a SELECT"),
        ("nobody", "sql must be a query of this database"),
        ("SELECT * FRO people", "sql must be a query of this database"),
        ("DROP TABLE people", "sql must be the name of a table or one SELECT statement"),
        ("COPY people TO 'copy.csv'", "sql must be the name of a table or one SELECT statement"),
        ("SELECT * FROM people; SELECT 1", "sql must be the name of a table or one SELECT statement"),
    ],
)
def test_what_is_no_query_is_refused(sql: str | None, rule: str, database: Path) -> None:
    with pytest.raises(InputError, match=rule):
        query_of(database, sql)
    assert not Path("copy.csv").exists()


def test_a_database_that_is_not_there(home: Path, run: Run) -> None:
    load("demo").schema.save("none.schema.toml")
    found = run("synth", "none.duckdb", "--sql", "people", "--epsilon", "1")
    assert found.code == 2
    assert "data must be an existing file, got 'none.duckdb'; check the path" in found.err
    assert [one.name for one in home.iterdir()] == ["none.schema.toml"]


def test_a_query_that_fails_shows_no_cells(database: Path) -> None:
    stream = query_of(database, "SELECT CAST(a AS INTEGER) AS a FROM words")
    with pytest.raises(InputError, match="table must be readable to its end") as refused:
        scanned(stream, Schema((Categorical("a", (1, 2)),)), 10**9)
    assert "secret" not in str(refused.value)


def test_other_files_and_a_missing_package(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = database.with_name("other.db")
    other.write_text("no database at all" * 100)
    with pytest.raises(InputError, match="data must be a DuckDB database that can be opened for reading"):
        query_of(other, "people")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"which is not installed, got .*; pip install pointillist\[duckdb\]"):
        query_of(database, "people")


def test_a_database_that_changes_is_refused(town: Table, database: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "SHARE_OF_ROWS", 0.0)
        job = prepare(query_of(database, "people"), schema=town.schema, **OPTIONS)
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE people SET age = 3")
    with pytest.raises(RunStopped, match="data must stay as it is while it is read"):
        job.run()


def test_the_command(town: Table, database: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    town.schema.save("people.schema.toml")
    options = ("--epsilon", "1", "--workload", "marginals:2", "--method", "mwem", "--insecure-noise-seed", "0")
    assert run("synth", "people.duckdb", "--sql", "people", *options).code == 0
    expected = synthesize(town, **OPTIONS).answers()
    assert np.array_equal(Release.load("release").answers(), expected)
    batches = scanning.ScannedSource.batches
    monkeypatch.setattr(scanning.ScannedSource, "batches", lambda source: 1 / 0)
    assert run("synth", "people.duckdb", "--sql", "people", *options, "--out", "second").code == 2
    monkeypatch.setattr(scanning.ScannedSource, "batches", batches)
    assert run("resume", "second").code == 0
    assert np.array_equal(Release.load("second").answers(), expected)
    refused = run("synth", "demo", "--sql", "people", *options, "--out", "third")
    assert refused.err.startswith("error: sql must be given with a DuckDB database file only, got 'people'; leave")
