"""Spark: the counts of a real local Spark with several partitions, cell by cell those of the table in memory."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pointillist import (
    Categorical,
    Constant,
    Discovered,
    Grid,
    InputError,
    Schema,
    Table,
    load,
    prepare,
    resume,
    synthesize,
)
from pointillist.data import opening
from pointillist.data import spark as spark_module
from pointillist.data.kernel import in_passes
from pointillist.data.opening import OpenRows, listed_column
from pointillist.data.sources import count
from pointillist.data.spark import SparkSource, is_spark
from pointillist.errors import RunStopped
from pointillist.job import source_of
from pointillist.privacy.curator import Curator
from pointillist.queries import halfspaces

pyspark = pytest.importorskip("pyspark", reason="the extra spark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of Spark about other packages
SCOPES = [(0,), (2, 0), (0, 1), (0, 1, 2)]
OPTIONS: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "method": "mwem", "insecure_noise_seed": 0}
ENOUGH = 10**9


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "3"}
        builder = SparkSession.builder.master("local[2]").appName("pointillist")
        for name, value in settings.items():
            builder = builder.config(name, value)
        found = builder.getOrCreate()
        found.sparkContext.setLogLevel("OFF")
        yield found
        found.stop()


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


@pytest.fixture(scope="module")
def frame(session: Any, town: Table) -> Any:
    cells = town.to_arrow(0).append_column("left", [["x"] * len(town)])
    return session.createDataFrame(cells).repartition(11)


def test_counts_are_those_of_the_table_in_memory(frame: Any, town: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = replace(town.schema, ignore=("left",))
    assert is_spark(frame)
    assert not is_spark(town.to_pandas())
    monkeypatch.setattr(spark_module, "FAN_IN", 3)  # eleven partitions, then four, then two
    source = SparkSource(frame, schema, ENOUGH)
    assert source.rows == len(town)
    expected = count(source_of(town, None), SCOPES)
    for found, wanted in zip(count(source, SCOPES), expected, strict=True):
        assert found.dtype == np.int64
        assert np.array_equal(found, wanted)
    assert (source.memory.held, source.memory.readings) == (0, 2)
    monkeypatch.setattr(spark_module, "VECTOR_BYTES", 8 * 100)  # in several passes
    narrow = SparkSource(frame, schema, ENOUGH)
    assert all(np.array_equal(a, b) for a, b in zip(count(narrow, SCOPES), expected, strict=True))
    assert narrow.memory.readings == 1 + len(in_passes(town.domain, SCOPES, 100)) > 2
    with pytest.raises(ValueError, match="are counted where they are"):
        source.batches()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_release_is_the_same(relation: str, frame: Any, town: Table) -> None:
    options = OPTIONS | {"relation": relation, "delta": 1e-9}
    schema = replace(town.schema, ignore=("left",))
    made, expected = synthesize(frame, schema=schema, **options), synthesize(town, **options)
    assert np.array_equal(made.answers(), expected.answers())
    assert made.statement == expected.statement


def test_fine_columns_are_merged_in_the_partitions(session: Any) -> None:
    rng = np.random.default_rng(0)
    cells = pd.DataFrame({"x": rng.normal(0, 20, 2000).clip(-99, 99), "y": rng.integers(0, 3, 2000)})
    schema = Schema((Grid("x", (-100, 100)), Categorical("y", (0, 1, 2))))
    options = {"epsilon": 2.0, "insecure_noise_seed": 1, "workload": "marginals:2"}
    options["settings"] = {"rows": 20, "t_max": 5}
    frame = session.createDataFrame(pa.Table.from_pandas(cells)).repartition(4)
    made = synthesize(frame, schema=schema, **options)
    assert np.array_equal(made.answers(), synthesize(cells, schema=schema, **options).answers())


def test_bad_values_are_counted_and_not_shown(session: Any, charges: list[Any]) -> None:
    cells = pa.table({"a": ["x", "secret", "y", "x"] * 100, "b": ["1"] * 399 + ["secret"]})
    frame = session.createDataFrame(cells).repartition(3)
    strict, gaps = Categorical("a", ("x", "y")), Categorical("a", ("x", "y"), missing=True)
    few, fine = Categorical("b", ("1", "2"), missing=True), Categorical("b", ("1", "secret"))
    cases = [
        ((gaps, few), "error", "column 'a' must only hold values of the schema, got 100 other cells"),
        ((strict, few), "missing", "column 'a' must only hold values of the schema, got 100 other cells"),
        ((Categorical("a", ("x", "secret", "y")), few), "error", "column 'b' must only .*, got 1 other cell;"),
        ((Categorical("a", ("q", "r")), fine), "error", "got more than 100 other cells"),
    ]
    for columns, how, sentence in cases:
        with pytest.raises(InputError, match=sentence) as refused:
            prepare(frame, schema=Schema(columns), epsilon=1.0, on_bad_value=how)
        assert "secret" not in str(refused.value)
    constant = Schema.of([gaps, Constant("b", "1")])
    with pytest.raises(InputError, match="column 'b' must only hold values of the schema, got") as refused:
        SparkSource(frame, constant, ENOUGH, "missing")
    assert "secret" not in str(refused.value)
    source = SparkSource(frame, Schema((gaps, few)), ENOUGH, "missing")
    assert count(source, [(0,), (1,)])[0].tolist() == [200, 100, 100]
    assert charges == []


def test_other_frames_are_refused(session: Any, frame: Any, town: Table) -> None:
    schema = replace(town.schema, ignore=("left",))
    with pytest.raises(InputError, match="table must have every column of the schema"):
        SparkSource(frame.drop("age"), schema, ENOUGH)
    with pytest.raises(InputError, match="table must only have columns of the schema"):
        SparkSource(frame, town.schema, ENOUGH)
    with pytest.raises(InputError, match="table must have rows"):
        SparkSource(frame.limit(0), schema, ENOUGH)
    with pytest.raises(InputError, match=r"unit must not be given with a Spark DataFrame.*keep one row of each unit"):
        prepare(frame, schema=schema, unit="left", max_rows=1, epsilon=1.0, delta=1e-9)
    with pytest.raises(InputError, match=r"column names must be different, got \['age'\]"):
        SparkSource(frame.selectExpr("*", "age"), schema, ENOUGH)
    broken = frame.selectExpr("*", "CAST(raise_error(commute) AS INT) AS z")
    with pytest.raises(InputError, match="must be a DataFrame that Spark can read to its end") as refused:
        SparkSource(broken, Schema((*schema.columns, Categorical("z", (1, 2))), ignore=("left",)), ENOUGH)
    assert len(str(refused.value)) < 200


def test_names_are_taken_literally(session: Any) -> None:
    frame = session.createDataFrame(pd.DataFrame({"a`b.c": ["x", "y", "y"]}))
    source = SparkSource(frame, Schema((Categorical("a`b.c", ("x", "y")),)), ENOUGH)
    assert count(source, [(0,)])[0].tolist() == [1, 2]


def test_queries_that_need_every_row_are_refused(
    frame: Any, town: Table, charges: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halfspaces, "MOST_TABLE", 1)
    schema = replace(town.schema, ignore=("left",))
    with pytest.raises(InputError, match="workload must be over few columns each for rows of Spark"):
        prepare(frame, schema=schema, epsilon=1.0, workload="halfspaces:3")
    assert charges == []


# --- values that are discovered

CELLS: dict[str, Any] = {
    "texts": ["b", None, "a", "", "c", "?", "y" * 300, "y" * 301, "a", " a", "Ä", "nicht bekannt"],
    "whole": [3, 1, None, 3, -1, 0, 3, 1, 2, 2, 2, 10**15],
    "real": [1.5, float("nan"), None, 1.5, 0.1, -0.0, 0.0, 1e300, 2.0, 2.0, 1.0, 3.25],
    "yes": [True, False, None, *[True] * 9],
    "day": [dt.date(2024, 1, 1 + n % 3) for n in range(12)],
    "money": [Decimal(n % 4) / 4 for n in range(12)],
}
TOWNS = Schema((Discovered("town"), Categorical("sex", ("f", "m")), Discovered("code", prefixes=(1,))))
DISCOVERING: dict[str, Any] = {
    "epsilon": 2.0,
    "method": "mwem",
    "settings": {"rounds": 2},
    "workload": "marginals:1,2",
    "insecure_noise_seed": 0,
}


def people(n: int = 3000) -> pa.Table:
    """Frequent towns, missing ones and some that one row has; and more codes than a model carries."""
    rng = np.random.default_rng(0)
    towns = [
        *rng.choice(["Aba", "Bebe", "Cece"], n - 160, p=[0.5, 0.3, 0.2]),
        *[None] * 150,
        *map("only {}".format, range(10)),
    ]
    codes = [f"{a}{b:02}" for a, b in zip(rng.integers(1, 4, n), rng.geometric(0.15, n) % 90, strict=True)]
    return pa.table({"town": towns, "sex": rng.choice(["f", "m"], n), "code": codes})


def in_parts(session: Any, cells: pa.Table, parts: int) -> Any:
    return session.createDataFrame(cells).repartition(parts)


def counted(source: Any, column: str) -> dict[str, int]:
    values, counts = source.values_of(column)
    assert values == sorted(values)
    assert counts.dtype == np.int64
    return dict(zip(values, counts.tolist(), strict=True))


def test_texts_are_counted_as_in_memory(session: Any) -> None:
    """Every type of cells, over more partitions than a task adds up."""
    cells = pa.table({name: column * 5 for name, column in CELLS.items()}).append_column("b", [[0, 1, 1] * 20])
    spelled = Discovered("texts", missing_values=("nicht bekannt",))
    columns = [spelled, *(Discovered(name) for name in CELLS if name != "texts"), Categorical("b", (0, 1))]
    schema = Schema(tuple(columns))
    source, wanted = source_of(in_parts(session, cells, 11), schema), source_of(cells, schema)
    assert isinstance(source, SparkSource)
    assert isinstance(wanted, OpenRows)
    assert source.rows == wanted.rows == 60
    assert {name: counted(source, name) for name in CELLS} == {name: counted(wanted, name) for name in CELLS}
    assert set(counted(source, "texts")) == {"a", " a", "b", "c", "?", "Ä", "nicht bekannt"}
    assert (source.memory.readings, source.memory.held) == (2, 0)
    with pytest.raises(ValueError, match="must be discovered before rows are counted"):
        count(source, [(0,)])
    values = {name: counted(source, name) for name in CELLS}
    lists = {name: [v for v, n in sorted(values[name].items()) if n > 5][:3] for name in CELLS}
    made = [listed_column(one, lists[one.name]) if isinstance(one, Discovered) else one for one in columns]
    listed = Schema(tuple(made))
    scopes = [(i,) for i in range(len(columns))] + [(0, 6), (1, 2)]
    after = source.listed(listed)
    assert after.schema == listed
    for found, expected in zip(count(after, scopes), count(wanted.listed(listed), scopes), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_release_with_discovered_values_is_the_same(relation: str, session: Any) -> None:
    """Noise of the same seed on the same counts in the same order. The codes are many, and are merged."""
    options = DISCOVERING | {"relation": relation, "delta": 1e-6}
    schema = replace(TOWNS, columns=(*TOWNS.columns[:2], replace(TOWNS.columns[2], merge=True)))
    made = synthesize(in_parts(session, people(), 4), schema=schema, **options)
    expected = synthesize(people(), schema=schema, **options)
    assert made.description.discovered == expected.description.discovered
    assert made.schema == expected.schema
    assert made.schema.columns[0].labels == ("Aba", "Bebe", "Cece", "other")
    assert [entry.label for entry in made.description.privacy.ledger].count("discovery") == 2
    assert made.description.privacy == expected.description.privacy
    assert np.array_equal(made.answers(), expected.answers())


def test_an_interrupted_run_goes_on_with_the_values_that_were_discovered(session: Any, tmp_path: Path) -> None:
    frame = in_parts(session, people(), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "select", lambda *arguments: 1 / 0)
        with pytest.raises(RunStopped):
            synthesize(frame, schema=TOWNS, out=tmp_path / "r", **DISCOVERING)
    made, expected = resume(tmp_path / "r", table=frame), synthesize(people(), schema=TOWNS, **DISCOVERING)
    assert made.description.discovered == expected.description.discovered
    assert np.array_equal(made.answers(), expected.answers())


def test_too_many_different_texts_are_refused(
    session: Any, monkeypatch: pytest.MonkeyPatch, charges: list[Any]
) -> None:
    cells = pa.table({"few": ["x"] * 60, "many": [f"secret {n % 4}" for n in range(59)] + [None], "b": ["1"] * 60})
    frame, schema = in_parts(session, cells, 3), Schema((Discovered("few"), Discovered("many")), ignore=("b",))
    for most in (1, 2, 3, 4):  # five of them with missing
        for module in (opening, spark_module):
            monkeypatch.setattr(module, "MOST_DIFFERENT", most)
        rule = f"column 'many' must have at most {most} different values, got more; name it under ignore"
        with pytest.raises(InputError, match=rule) as refused:
            prepare(frame, schema=schema, epsilon=1.0)
        assert "secret" not in str(refused.value)
    for module in (opening, spark_module):
        monkeypatch.setattr(module, "MOST_DIFFERENT", 5)
    assert counted(source_of(frame, schema), "many") == {f"secret {n}": 15 - (n == 3) for n in range(4)}
    assert charges == []


def test_rows_that_change_and_cells_that_cannot_be_read_are_refused(
    session: Any, monkeypatch: pytest.MonkeyPatch, charges: list[Any]
) -> None:
    cells = pa.table({"t": ["secret"] * 20, "l": [["secret"]] * 20})
    frame = in_parts(session, cells, 2)
    with pytest.raises(
        InputError, match="column 'l' must only hold values of the schema, got 20 other cells"
    ) as refused:
        prepare(frame, schema=Schema((Discovered("l"),), ignore=("t",)), epsilon=1.0)
    assert "secret" not in str(refused.value)
    broken = frame.selectExpr("IF(length(t) > 0, CAST(raise_error(t) AS STRING), t) AS t")
    with pytest.raises(InputError, match="must be a DataFrame that Spark can read to its end") as refused:
        prepare(broken, schema=Schema((Discovered("t"),)), epsilon=1.0)
    assert "secret" not in str(refused.value)
    monkeypatch.setattr(SparkSource, "_check", lambda source: 21)
    with pytest.raises(InputError, match="table must give the same rows each time that it is evaluated"):
        prepare(frame.select("t"), schema=Schema((Discovered("t"),)), epsilon=1.0)
    assert charges == []
