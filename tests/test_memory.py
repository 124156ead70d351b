"""The peak memory of a run: what is announced, and what fresh processes take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from pointillist import Categorical, Discovered, InputError, Job, Schema, Table, load, memory, prepare
from pointillist.data import opening
from pointillist.memory import bytes_of, estimate, peak_memory

MB = 1_000_000
METHODS: dict[str, dict[str, Any]] = {  # few steps: they take no more memory than many
    "mwem": {"rounds": 3},
    "gem": {"rounds": 2, "t_max": 2},
    "rap_softmax": {"rounds": 2, "t_max": 2},
    "auto": {"t_max": 2, "strength": 1.0},
}
CASES = [(name, workload, method) for name, workload in (("demo", "marginals:3"), ("adult", "marginals:3"))
         for method in METHODS if (name, method) != ("adult", "mwem")]  # fmt: skip
CASES += [("acs-pa", "marginals:3:256", "auto"), ("adult", "marginals:3", "mwem on 8 columns")]

RUN = """
import json, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from pointillist import load, prepare
from pointillist.memory import peak_memory

name, workload, method, settings = json.loads(sys.argv[1])
table = load(name)
if method == "mwem on 8 columns":
    method, table = "mwem", table.project(table.domain.names[1:9])
job = prepare(table, epsilon=1.0, workload=workload, method=method, settings=settings)
with TemporaryDirectory() as folder:
    job.run().save(Path(folder) / "release")
print(json.dumps([job.peak_memory, peak_memory()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workload", "method"), CASES)
def test_the_estimate_is_within_a_factor_of_two(
    name: str, workload: str, method: str, request: pytest.FixtureRequest
) -> None:
    if name != "demo":
        request.getfixturevalue("real_data")
    case = json.dumps([name, workload, method, METHODS[method.split()[0]]])
    # A program that is not compiled takes less memory.
    options = {key: value for key, value in os.environ.items() if not key.startswith("JAX_COMPILATION_CACHE")}
    done = subprocess.run([sys.executable, "-c", RUN, case], capture_output=True, text=True, check=True, env=options)
    announced, measured = json.loads(done.stdout)
    assert measured / 2 < announced < 2 * measured
    assert done.stderr == ""  # nor alarms of the compiler


DISCOVERING = """
import json, sys
from pointillist import Categorical, Discovered, Schema, prepare
from pointillist.memory import peak_memory

columns = (Discovered("town"), Categorical("sex", ("f", "m")))
options = {"epsilon": 3.0, "method": "mwem", "settings": {"rounds": 1}, "workload": "marginals:1"}
job = prepare(sys.argv[1], schema=Schema(columns), **options)
forecast = job.expected()
job.run()
print(json.dumps([forecast.memory, forecast.texts, peak_memory()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", [300_000, 1_000_000])
def test_different_texts_take_what_is_forecast_at_most(rows: int, tmp_path: Path) -> None:
    """Files where few texts occur, and where every row has another one."""
    found = []
    for different in (10, rows):
        towns = [f"{n:020d}" for n in np.random.default_rng(0).permutation(rows) % different]
        parquet.write_table(pa.table({"town": towns, "sex": ["f", "m"] * (rows // 2)}), tmp_path / "t.parquet")
        script = [sys.executable, "-c", DISCOVERING, str(tmp_path / "t.parquet")]
        found.append(json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout))
    (about, texts, few), (same, _, many) = found
    assert about == same
    assert few / 2 < about < 2 * few
    assert few < many < about + texts < 2 * many
    assert texts / 3 < many - few


@pytest.mark.parametrize("more", [{}, {"relation": "add-remove"}], ids=str)
def test_a_forecast_bounds_different_texts_by_the_rows(more: dict[str, Any], tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 500, "b": ["z"] * 1000, "c": [0, 1] * 500})
    frame.to_csv(tmp_path / "t.csv", index=False)
    open_schema = Schema((Discovered("a"), Discovered("b"), Categorical("c", (0, 1))))
    options: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-6, "method": "mwem", "settings": {"rounds": 1}} | more
    in_memory, in_pieces = (prepare(table, schema=open_schema, **options) for table in (frame, str(tmp_path / "t.csv")))
    bound = 2 * memory.PER_TEXT * (opening.MOST_DIFFERENT if more else 1000)
    for job in (in_memory, in_pieces):
        assert job.expected().texts == bound
        assert job.plan(1000).expected.texts == 2 * memory.PER_TEXT * 1000
        assert job.plan(10**9).expected.texts == 2 * memory.PER_TEXT * opening.MOST_DIFFERENT
        assert job.plan(1000).to_dict()["expected"]["memory_of_texts"] == 2 * memory.PER_TEXT * 1000
        assert "for different texts" in repr(job.plan(1000))
        assert "for different texts" in job.plan(1000).expected.describe()
    assert ("for different texts" in in_memory.describe()[-1]) is not bool(more)
    assert "for different texts" in in_pieces.describe()[-1]
    after = in_pieces.discovered(in_pieces.curator)
    assert after.expected(1000).texts == 0
    assert "different texts" not in after.describe()[-1]


def job_of(table: Table, relation: str = "replace", **options: Any) -> Job:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "workload": "marginals:2", "method": "mwem"}
    return prepare(table, relation=relation, **given | options)


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


def test_a_private_number_of_rows_changes_nothing(town: Table) -> None:
    few = Table(town.schema, tuple(codes[:100] for codes in town.codes))
    assert job_of(few).peak_memory < job_of(town).peak_memory
    private = [job_of(table, "add-remove") for table in (few, town)]
    assert private[0].describe() == private[1].describe()
    assert private[0].peak_memory == private[1].peak_memory
    assert private[0].describe()[0].endswith(", and what a table of its size takes")
    asked = job_of(few, "add-remove", rows=10**6)
    assert asked.peak_memory > private[0].peak_memory + 10**8


def test_the_estimate_counts_model_rows_and_programs(town: Table) -> None:
    small, large = (job_of(town, method="gem", settings={"hidden": width}).peak_memory for width in ("64", "8192"))
    assert large - small > 4 * 8 * 8000 * 512
    few, many = (job_of(town, method="rap_softmax", settings={"rows": rows}).peak_memory for rows in (10, 10**6))
    assert many > few + 10**8
    assert few > job_of(town).peak_memory + memory.JAX
    assert estimate(0, 10**8, 1, None, None) - estimate(0, 0, 1, None, None) == 64 * 10**8


def test_the_peak_of_this_process_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    before = peak_memory()
    assert before > 50 * MB
    kept = np.ones(before // 8 + 10**7)
    assert peak_memory() > before + 50 * MB
    assert kept[-1] == 1
    monkeypatch.setattr(memory, "Path", lambda name: (_ for _ in ()).throw(OSError))  # no such file system
    assert peak_memory() > before


def test_the_compiler_is_silent_unless_it_is_asked_to_speak() -> None:
    code = (
        "import os, sys; from pointillist import load, prepare\n"
        "table = load('demo').project(['district', 'age'])\n"
        "prepare(table, epsilon=1.0, workload='marginals:1').describe()\n"
        "print('jax' in sys.modules, os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    for given, found in ((None, "3"), ("0", "0")):
        options = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
        options |= {} if given is None else {"TF_CPP_MIN_LOG_LEVEL": given}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=options)
        assert done.stdout.split() == ["True", found]


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("4gb", 4 * 10**9), ("64000 kB", 64 * 10**6), ("0.5 GiB", 2**29)]
)
def test_memory_with_a_unit(text: str, size: int) -> None:
    assert bytes_of("memory", text) == size


@pytest.mark.parametrize("text", ["", "4", "4\u212aB", "-4GB", "4XB", "4GB4", "1e9"])
def test_memory_without_a_meaning(text: str) -> None:
    with pytest.raises(InputError, match="memory must be"):
        bytes_of("memory", text)
