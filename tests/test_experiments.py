"""The experiments: what is run, the runner, the results file, the figures and the tables."""

from __future__ import annotations

import csv
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import numpy as np
import pytest
from experiments import claims, curves, driver, figures, grid, opinions, report, results, tables
from experiments.__main__ import main
from experiments.grid import (
    EPSILONS,
    FIELDS,
    FIGURES,
    FLOOR,
    KEYS,
    NAMES,
    TABLES,
    Claim,
    Experiment,
    Panel,
    Row,
    Run,
    Sweep,
    canonical,
)
from experiments.results import Results
from experiments.runner import Queue, in_processes, on_dask
from measuring import data
from measuring.acs_paper import nearest_to_the_paper
from measuring.data import is_known, table_of

from pointillist import Table
from pointillist.algorithms import get_method
from pointillist.data import acs
from pointillist.data.ipums import REDUCED
from pointillist.data.neighbours import Relation
from pointillist.errors import InputError, PointillistError

ROOT = Path(__file__).resolve().parents[1]
TINY = Experiment(
    title="Tiny",
    figure="none",
    panels=(Panel("demo", "demo"),),
    sweeps=(
        Sweep("MWEM", "mwem", ("demo",), grouping="query", grid={"rounds": (1, 2, 3)},
              subset=({"rounds": 1}, {"rounds": 2}), epsilons=(0.1, 1.0), seeds=(0, 1)),
        Sweep("PEP", "pep", ("demo",), grouping="query", fixed={"rounds": 2}, subset=({"t_max": 1},), defaults=False,
              epsilons=(1.0,), seeds=(0,)),
    ),
    claims=(Claim("MWEM beats PEP", "lower", "MWEM", "PEP"),),
)  # fmt: skip
RUN = Run("demo", "mwem", 1.0, 0, '{"rounds":1}', "query")


def row_of(run: Run, value: float = 0.5, error: str = "") -> Row:
    """A line as a worker would make it."""
    found = {} if error else dict.fromkeys(("max", "mean", "rmse", "tvd"), f"{value:g}") | {"seconds": "1.0"}
    row = dict.fromkeys(FIELDS, "") | dict(zip(KEYS, run.key, strict=True)) | found
    return row | {"error": error, "commit": "abc", "machine": "a machine"}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """One small experiment on the demo table instead of all others, in a folder of its own."""
    register(tmp_path, monkeypatch.setattr, monkeypatch.setitem)
    return results.store()


def register(folder: Path, setattr_: object, setitem: object) -> None:
    assert callable(setattr_)
    assert callable(setitem)
    module = ModuleType("experiments.tiny.config")
    module.EXPERIMENT = TINY  # type: ignore[attr-defined]
    setitem(sys.modules, "experiments.tiny.config", module)
    for place in (grid, driver):
        setattr_(place, "NAMES", ("tiny",))
    for place in (figures, report):
        setattr_(place, "FIGURES", ("tiny",))
    setattr_(report, "TABLES", ())
    setattr_(report, "OPINIONS", ())
    for place in (results, figures, report):
        setattr_(place, "FOLDER", folder / "experiments")


# What is run


@pytest.mark.parametrize("name", NAMES)
def test_configs_are_sound(name: str) -> None:
    """Settings are in the paper's grid and accepted, tables are known, and there are at least 3 seeds."""
    experiment = grid.load(name)
    assert experiment.runs()
    for sweep in experiment.sweeps:
        assert sweep.subset or sweep.defaults, "nothing to run"
        assert len(sweep.seeds) >= 3
        assert set(sweep.epsilons) <= set(EPSILONS)
        for point in sweep.subset:
            assert point.keys() == sweep.grid.keys()
            assert all(value in sweep.grid[key] for key, value in point.items()), point
        assert all(is_known(table) for table in filter(None, (*sweep.datasets, sweep.public)))
        Relation(sweep.relation)
        assert sweep.account in ("", "zcdp")
        assert sweep.output in ("", "rows")
        if sweep.method == FLOOR:
            continue
        get_method(sweep.method).configure({**sweep.fixed, **(sweep.subset[0] if sweep.subset else {})})
        get_method(sweep.method).grouping(sweep.grouping or None)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_every_curve_and_claims_are_about_curves(name: str) -> None:
    experiment = grid.load(name)
    assert experiment.figure
    for sweep in experiment.sweeps:
        assert sweep.curve in figures.STYLES
        assert any(panel.shows(run) for panel in experiment.panels for run in (*sweep.tuned(), *sweep.untuned()))
    known = {sweep.curve for sweep in experiment.sweeps}
    for claim in experiment.claims:
        assert claim.kind in ("lower", "similar", "times", "not below", "above")
        assert {claim.first.removesuffix(curves.DEFAULTS), claim.second.removesuffix(curves.DEFAULTS)} - {""} <= known


def test_styles_are_told_apart() -> None:
    """In no figure do two curves share a colour, or two methods a marker."""
    for name in FIGURES:
        used = [figures.STYLES[curve] for curve in {sweep.curve for sweep in grid.load(name).sweeps}]
        assert len({colour for colour, _ in used}) == len({marker for _, marker in used}) == len(used)


def test_runs_have_stable_keys() -> None:
    assert canonical({"b": 1, "a": 0.5}) == canonical({"a": 0.5, "b": 1}) == '{"a":0.5,"b":1}'
    assert RUN.key == ("demo", "", "3", "replace", "", "", "query", "mwem", '{"rounds":1}', "1", "0")
    assert grid.key_of(row_of(RUN)) == RUN.key
    assert RUN.program == replace(RUN, epsilon=0.1, seed=5).program != replace(RUN, method="pep").program
    assert RUN.settings == {"rounds": 1}


def test_the_noise_of_no_two_runs_is_related() -> None:
    others = (
        replace(RUN, epsilon=0.1),
        replace(RUN, method="pep"),
        replace(RUN, seed=1),
        replace(RUN, parameters="{}"),
    )
    assert len({run.noise for run in (RUN, *others)}) == 5
    assert RUN.noise == replace(RUN).noise == replace(RUN, output="rows").noise, "the same run, measured twice"


def test_the_floor_of_a_public_table_is_below_its_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.run import execute

    monkeypatch.setitem(data.PARTS, "demo-few", ("demo", data._few))
    monkeypatch.setitem(data.PROJECTIONS, "demo-small", ("demo", ("district", "age", "commute")))
    floors = [execute(Run("demo-small", FLOOR, epsilon, 0, public="demo-few")) for epsilon in (0.1, 1.0)]
    assert [row["error"] for row in floors] == ["", ""]
    assert floors[0]["max"] == floors[1]["max"]
    made = execute(Run("demo-small", "pmw_pub", 10.0, 0, '{"rounds":1}', public="demo-few"))
    assert 0 < float(floors[0]["max"]) <= float(made["max"]) + 1e-9


def test_parts_of_a_table_are_packed_with_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(data.PARTS, "demo-few", ("demo", data._few))
    assert data.pack(tmp_path, ["demo-few", "demo shuffled"]) == ["demo"]
    assert len(table_of("demo-few")) == 200
    assert is_known("demo-few")
    assert not is_known("demo-fewer")


def test_the_papers_columns_are_made_from_acs() -> None:
    """Random codes of every column: the sizes are the paper's, and nobody has two races or two public insurances."""
    schema, rng = acs.acs_schema(), np.random.default_rng(0)
    codes = tuple(rng.integers(0, column.size, 1000).astype(np.uint16) for column in schema.columns)
    found = nearest_to_the_paper(Table(schema, codes))
    assert found.domain.names == tuple(REDUCED)
    assert found.domain.sizes == (*[2] * 13, 3, 4)
    of = dict(zip(found.domain.names, found.codes, strict=True))
    assert sum(of[name].astype(int) for name in found.domain.names if name.startswith("RAC")).max() == 1
    assert not (of["HINSCAID"] & of["HINSCARE"]).any()
    race = codes[schema.names.index("RAC1P")]
    assert np.array_equal(of["RACWHT"] == 1, race == 0)
    assert np.array_equal(of["OWNERSHP"] == 0, codes[schema.names.index("TEN")] == 4)


def test_the_reduced_acs_table_has_as_many_marginals_as_the_papers(real_data: None) -> None:
    from experiments.run import prepared

    table, workload, _ = prepared("acs-pa-reduced", "3")
    assert len(workload.queries) == 455
    assert get_method("pep").fits(table.domain)


# Results files


def test_lines_are_appended_once(tmp_path: Path) -> None:
    file = Results(tmp_path / "new" / "results.csv")
    assert file.read() == {}
    assert file.append([row_of(RUN), row_of(RUN, 0.7)]) == 1
    assert file.append([row_of(RUN, 0.9), row_of(replace(RUN, seed=1))]) == 1
    assert [row["max"] for row in file.read().values()] == ["0.5", "0.5"]
    assert file.path.read_text().count("\n") == 3


def test_lines_are_sorted_by_their_runs(tmp_path: Path) -> None:
    """By program first, then by epsilon and seed as numbers; a failed run that was repeated leaves no second line."""
    file = Results(tmp_path / "results.csv")
    runs = [replace(RUN, method=method, epsilon=epsilon, seed=seed)
            for method, epsilon, seed in product(("mwem", "pep"), (0.5, 1.0, 10.0), (2, 10))]  # fmt: skip
    file.append([row_of(run, error="no memory") for run in runs[:2]])
    file.append([row_of(run) for run in reversed(runs)])
    file.sort()
    assert list(file.read()) == [run.key for run in runs]
    assert file.path.read_text().count("\n") == len(runs) + 1
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_a_torn_line_is_dropped(tmp_path: Path) -> None:
    file = Results(tmp_path / "results.csv")
    file.append([row_of(RUN), row_of(replace(RUN, seed=1))])
    whole = file.path.read_bytes()
    for cut in (1, 20):
        file.path.write_bytes(whole[:-cut])
        assert list(file.read()) == [RUN.key]
        assert file.append([row_of(replace(RUN, seed=1))]) == 1
        assert file.path.read_bytes() == whole
    file.path.write_bytes(b"dataset,publ")
    assert file.read() == {}
    assert file.append([row_of(RUN), row_of(replace(RUN, seed=1))]) == 2
    assert file.path.read_bytes() == whole


def test_a_run_that_worked_takes_the_place_of_one_that_failed(tmp_path: Path) -> None:
    file = Results(tmp_path / "results.csv")
    assert file.append([row_of(RUN, error="InputError: rounds must be fewer")]) == 1
    assert file.append([row_of(RUN, error="again")]) == 0
    assert file.append([row_of(RUN)]) == 1
    assert file.append([row_of(RUN, error="again")]) == 0
    assert file.read()[RUN.key]["error"] == ""


@pytest.mark.parametrize("text", ["a,b\n", ",".join(FIELDS) + "\n1,2,3\n"])
def test_a_strange_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="must be a results file"):
        Results(path).read()


def test_writers_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    """Not even while one of them replaces the whole file."""
    path = tmp_path / "results.csv"

    def write(worker: int) -> None:
        for seed in range(10):
            Results(path).append([row_of(replace(RUN, seed=seed)), row_of(replace(RUN, seed=100 * worker + seed))])
            if seed % 3 == worker % 3:
                Results(path).sort()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    assert len(Results(path).read()) == 50
    with path.open(newline="") as file:
        assert sum(1 for _ in csv.reader(file)) == 51


# The runner


def test_a_worker_stays_with_its_program() -> None:
    runs = [replace(RUN, method=method, seed=seed) for method, seed in product(("mwem", "pep"), (0, 1, 2))]
    queue = Queue(runs)
    first, second = queue.take(), queue.take()
    assert first == runs[0]
    assert second == runs[3]
    assert [queue.take(first), queue.take(second), queue.take(first)] == [runs[1], runs[4], runs[2]]
    assert queue.take(first) == runs[5], "when its program is done, a worker helps with another"
    assert queue.take(first) is None
    assert Queue(runs, seconds=-1).take() is None


def bad_and_good() -> list[Run]:
    return [replace(RUN, parameters='{"rounds":1,"alpha":7.0}'), *(replace(RUN, seed=seed) for seed in range(3))]


def check_bad_and_good(rows: list[Row]) -> None:
    found = {grid.key_of(row): row for row in rows}
    bad, *good = [found.pop(run.key) for run in bad_and_good()]
    assert not found
    assert bad["error"].startswith("InputError: alpha must")
    assert bad.get("max", "") == ""
    assert all(row["error"] == "" and 0 < float(row["max"]) < 1 and row["machine"] for row in good)
    assert all("numpy=" in row["versions"] and row["commit"] for row in rows)


def workers() -> list[Any]:
    """The runner's own processes: the solvers of other tests keep some, too."""
    return [child for child in multiprocessing.active_children() if type(child).__name__ == "SpawnProcess"]


def test_processes_make_every_run_and_report_a_refused_one() -> None:
    rows = list(in_processes(2)(Queue(bad_and_good())))
    check_bad_and_good(rows)
    assert not workers()
    again = list(in_processes(1)(Queue([RUN])))
    assert again[0]["max"] in [row.get("max") for row in rows], "the same run gives the same errors"


def test_a_worker_that_dies_costs_its_own_run_only() -> None:
    def kill() -> None:
        while not (children := workers()):
            time.sleep(0.01)
        os.kill(children[0].pid or 0, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    lost, fine = in_processes(1)(Queue([RUN, replace(RUN, seed=1)]))
    killer.join()
    assert lost["error"] == "the worker process ended with exit code -9"
    assert fine["error"] == ""


def test_a_table_that_is_not_there_stops_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    with pytest.raises(PointillistError, match="POINTILLIST_DATA"):
        list(in_processes(1)(Queue([replace(RUN, dataset="adult")])))
    assert not workers()


def test_dask_makes_every_run_on_a_cluster_of_its_own() -> None:
    pytest.importorskip("distributed")
    check_bad_and_good(list(on_dask(None, 2)(Queue(bad_and_good()))))


def test_dask_makes_every_run_on_a_cluster_that_is_there(tiny: Results) -> None:
    """From the command line, with the address of a scheduler: what several machines would do."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        where = ["--engine", "dask", "--address", cluster.scheduler_address]
        assert main(["run", "tiny", "--only", "tuned", "--epsilons", "1", *where]) == 0
    assert tiny.read().keys() == {run.key for s in TINY.sweeps for run in s.tuned() if run.epsilon == 1}
    assert not any(row["error"] for row in tiny.read().values())


# The command line


def test_missing_runs_are_made_and_not_repeated(tiny: Results, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tiny", "--list"]) == 0
    assert "13  of 13 runs are missing" in capfd.readouterr().out
    assert main(["run", "tiny", "--methods", "mwem", "--only", "tuned", "--epsilons", "1", "--limit", "3"]) == 0
    assert "3/3" in capfd.readouterr().err
    first = tiny.path.read_text().splitlines()
    assert len(tiny.read()) == 3
    assert main(["run", "tiny", "--only", "tuned"]) == 0
    assert set(first) < set(tiny.path.read_text().splitlines())
    assert tiny.read().keys() == {run.key for sweep in TINY.sweeps for run in sweep.tuned()}
    assert main(["run", "tiny", "--only", "tuned", "--list"]) == 0
    assert "0  of 9 runs are missing" in capfd.readouterr().out
    assert main(["run", "tiny", "--seeds", "7", "--epsilons", "0.1", "--whole", "--list"]) == 0
    assert "4  of 4 runs are missing" in capfd.readouterr().out


def test_failed_runs_are_retried_when_asked(tiny: Results) -> None:
    tiny.append([row_of(run, error="no memory") for run in TINY.runs().values()])
    assert driver.missing(["tiny"], driver.Choice()) == []
    assert len(driver.missing(["tiny"], driver.Choice(retry=True))) == 13


def test_results_of_other_machines_are_merged(
    tiny: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other, strange = RUN, replace(RUN, seed=9), replace(RUN, dataset="adult")
    tiny.append([row_of(mine)])
    file = Results(tmp_path / "gpu.csv")
    file.append([row_of(mine, 0.9), row_of(other), row_of(strange)])
    assert main(["merge", str(file.path), str(file.path)]) == 0
    assert "6 lines read, 1 added, 2 belong to no experiment" in capsys.readouterr().out
    assert tiny.read().keys() == {mine.key, other.key}
    assert tiny.read()[mine.key]["max"] == "0.5"


SCRIPT = f"""
import sys
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
if __name__ == "__main__":
    import test_experiments as tests
    tests.register(Path(sys.argv[1]), setattr, dict.__setitem__)
    sys.exit(tests.main(["run", "tiny", "--only", "tuned", "--workers", "2"]))
"""


def test_runs_go_to_a_file_of_their_own_when_asked(tiny: Results, tmp_path: Path) -> None:
    target = tmp_path / "gpu.csv"
    assert main(["run", "tiny", "--methods", "pep", "--results", str(target)]) == 0
    assert len(Results(target).read()) == 1
    assert not tiny.path.exists()
    assert main(["merge", str(target)]) == 0
    assert tiny.path.read_bytes() == target.read_bytes()


def test_every_kind_of_run_is_measured() -> None:
    """With synthetic rows, under add-remove, under the account in zCDP, and with a shuffled public table."""
    plain, rows, other, zcdp, public = in_processes(1)(Queue([
        Run("demo", "one-shot", 1.0, 0, '{"t_max":5}'),
        Run("demo", "one-shot", 1.0, 0, '{"t_max":5}', output="rows"),
        Run("demo", "one-shot", 1.0, 0, '{"t_max":5}', relation="add-remove"),
        Run("demo", "one-shot", 1.0, 0, '{"t_max":5}', account="zcdp"),
        Run("demo", "pmw_pub", 1.0, 0, '{"rounds":1}', public="demo shuffled"),
    ]))  # fmt: skip
    assert [row["error"] for row in (plain, rows, other, zcdp, public)] == [""] * 5
    assert plain["max"] == rows["max"]
    assert float(rows["rows_max"]) > 0
    assert "rows_max" not in plain
    assert len({row["max"] for row in (plain, other, zcdp)}) == 3


def test_a_killed_driver_goes_on_where_it_was(tiny: Results, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path)]
    driver_process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    for _ in range(600):
        if len(tiny.read()) >= 2:
            break
        time.sleep(0.05)
    driver_process.kill()
    driver_process.wait()
    kept = tiny.path.read_bytes()
    assert kept.count(b"\n") >= 3
    lines = set(kept[: kept.rfind(b"\n")].splitlines())
    tiny.path.write_bytes(kept + b"demo,,3,que")  # as if killed in the middle of a line
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    assert lines <= set(tiny.path.read_bytes().splitlines())
    assert tiny.read().keys() == {run.key for sweep in TINY.sweeps for run in sweep.tuned()}
    assert tiny.path.read_bytes().count(b"\n") == len(tiny.read()) + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "man"], "did you mean 'main'"),
        (["run", "main", "--workers", "0"], "--workers must be above 0"),
        (["run", "main", "--limit", "-1"], "--limit must be above 0"),
        (["run", "main", "--methods", "gemm"], "did you mean 'gem'"),
        (["run", "main", "--datasets", "adlt"], "did you mean 'adult'"),
        (["run", "main", "--epsilons", "0.3"], "--epsilons must occur in the experiments"),
        (["run", "main", "--address", "tcp://localhost:1"], "--address must go with --engine dask"),
        (["merge", "nowhere.csv"], "must be a results file that exists"),
        (["merge", "pyproject.toml"], "must be a results file"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["run", "main", "--seeds", "a"], ["run"], ["draw"], ["run", "main", "--only", "x"]]
)
def test_bad_words_leave_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_runs_that_must_be_made_again_are_taken_out(tiny: Results, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [replace(RUN, epsilon=epsilon, parameters=text) for epsilon in (0.1, 1.0) for text in ("{}", '{"rounds":1}')]
    runs = [replace(run, grouping="" if run.parameters == "{}" else "query") for run in runs]
    tiny.append([row_of(run) for run in runs])
    assert main(["drop", "--methods", "mwem", "--only", "defaults", "--epsilons", "1"]) == 0
    assert capsys.readouterr().out.startswith("1 lines removed")
    assert set(tiny.read()) == {run.key for run in runs if run.parameters != "{}" or run.epsilon != 1}
    assert tiny.append([row_of(runs[2])]) == 1  # the file is whole
    assert main(["drop"]) == 2
    assert capsys.readouterr().err.startswith("error: --methods must name the methods whose runs are removed, got none")


def test_tables_are_packed(tiny: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", str(tmp_path / "packed")]) == 0
    assert (tmp_path / "packed" / "demo.npz").is_file()


# Curves, claims, figures and the report


def spread(tiny: Results, values: dict[tuple[str, float], tuple[float, ...]]) -> dict[str, curves.Curve]:
    """The curves of the tiny experiment with these errors, by parameters and epsilon."""
    rows = [
        row_of(replace(RUN, parameters=parameters, epsilon=epsilon, seed=seed), value)
        for (parameters, epsilon), found in values.items()
        for seed, value in enumerate(found)
    ]
    tiny.append(rows)
    return curves.curves_of(TINY, TINY.panels[0], tiny.read())


def test_the_best_setting_is_taken_at_each_epsilon(tiny: Results) -> None:
    one, two = '{"rounds":1}', '{"rounds":2}'
    found = spread(tiny, {(one, 0.1): (0.2, 0.4), (two, 0.1): (0.5, 0.5), (one, 1.0): (0.3, 0.3), (two, 1.0): (0.1,)})
    assert list(found) == ["MWEM"]
    assert found["MWEM"][0.1].setting == one
    assert found["MWEM"][0.1].mean("max") == pytest.approx(0.3)
    assert found["MWEM"][0.1].error("max") == pytest.approx(0.1)
    assert found["MWEM"][1.0].setting == one, "a lucky single run does not win over a full set"


@pytest.mark.parametrize(
    ("claim", "word", "told"),
    [
        (Claim("", "lower", "MWEM", "PEP"), "holds", "smaller at 1 of 1, clearly so at 0; median ratio 0.50"),
        (Claim("", "lower", "PEP", "MWEM"), "does not hold", "smaller at 0 of 1, clearly so at 0; median ratio 2.00"),
        (Claim("", "similar", "MWEM", "PEP", value=2), "holds", "within a factor of 2 at 1 of 1; median ratio 0.50"),
        (Claim("", "times", "MWEM", "PEP", value=2), "holds", "by a factor of 2 or more at 1 of 1; factors 2.00"),
        (
            Claim("", "times", "PEP", "MWEM", value=2),
            "does not hold",
            "by a factor of 2 or more at 0 of 1; factors 0.50",
        ),
        (Claim("", "not below", "PEP", "MWEM"), "holds", "not below at 1 of 1; smallest ratio 2.00"),
        (Claim("", "not below", "PEP", "PEP"), "holds", "not below at 1 of 1; smallest ratio 1.00"),
        (Claim("", "not below", "MWEM", "PEP"), "does not hold", "not below at 0 of 1; smallest ratio 0.50"),
        (Claim("", "above", "MWEM", value=0.15), "mixed", "above at 1 of 2; the smallest is 0.1000"),
        (Claim("", "lower", "MWEM (defaults)", "PEP"), "not measured", "no runs to compare"),
        (Claim("", "lower", "MWEM", "PEP", datasets=("adult",)), "not measured", "no runs to compare"),
    ],
)  # fmt: skip
def test_verdicts_follow_from_the_results(tiny: Results, claim: Claim, word: str, told: str) -> None:
    spread(tiny, {('{"rounds":1}', 0.1): (0.2, 0.2), ('{"rounds":1}', 1.0): (0.1, 0.1)})
    tiny.append([row_of(Run("demo", "pep", 1.0, 0, '{"rounds":2,"t_max":1}', "query"), 0.2)])
    assert claims.judge(TINY, claim, tiny.read()) == (word, told)


def test_clear_differences_are_paired_over_seeds() -> None:
    """Seeds differ by far more than the two curves do, but always alike."""
    low, high = {0: 0.10, 1: 0.20, 2: 0.40}, {0: 0.111, 1: 0.222, 2: 0.443}
    assert claims.is_clear(low, high)
    assert not claims.is_clear(high, low)
    assert not claims.is_clear(low, {0: 0.111, 1: 0.190, 2: 0.443})
    assert not claims.is_clear({0: 0.1}, {0: 0.2}), "never with a single seed"


def test_a_setting_is_judged_on_other_seeds_than_it_was_chosen_on(tiny: Results) -> None:
    one, two = '{"rounds":1}', '{"rounds":2}'
    spread(tiny, {(one, 1.0): (0.1, 0.9, 0.3), (two, 1.0): (0.5, 0.2, 0.4)})
    runs = curves.runs_of(replace_seeds(TINY), TINY.panels[0])["MWEM"]
    # Seed 0: the mean of the others is 0.6 and 0.3, so the second; seed 1: 0.2 and 0.45, so the first, and so on.
    assert curves.held_out(runs, tiny.read(), "max") == {1.0: {0: 0.5, 1: 0.9, 2: 0.4}}


def replace_seeds(experiment: Experiment) -> Experiment:
    return replace(experiment, sweeps=tuple(replace(sweep, seeds=(0, 1, 2)) for sweep in experiment.sweeps))


def test_every_finished_setting_of_the_grid_counts_and_edges_are_marked(tiny: Results) -> None:
    """Also the third setting of the grid, which is not in the part that is asked for."""
    found = spread(tiny, {(f'{{"rounds":{n}}}', 1.0): (0.5 - n / 10, 0.5 - n / 10) for n in (1, 2, 3)})
    assert found["MWEM"][1.0].setting == '{"rounds":3}'
    assert found["MWEM"][1.0].edge
    assert "0.2000 ± 0.0000 (2) †" in report.results_tables(TINY, tiny.read())
    tiny.append([row_of(replace(RUN, parameters='{"rounds":2}', epsilon=0.1, seed=seed), 0.1) for seed in (0, 1)])
    tiny.append([row_of(replace(RUN, parameters=f'{{"rounds":{n}}}', epsilon=0.1, seed=s), 0.2)
                 for n in (1, 3) for s in (0, 1)])  # fmt: skip
    assert not curves.curves_of(TINY, TINY.panels[0], tiny.read())["MWEM"][0.1].edge


def test_the_page_says_how_much_of_the_grids_was_run(tiny: Results) -> None:
    spread(tiny, {('{"rounds":1}', 1.0): (0.20, 0.22), ('{"rounds":3}', 1.0): (0.20,)})
    told = report.coverage({"tiny": (TINY, tiny.read())})
    assert "| `mwem` | 36 | 3 | 8% |" in told, "three settings at the paper's six epsilons"
    assert "| all | 36 | 3 | 8% |" in told


def test_what_is_missing_is_listed_by_method_and_for_the_whole_grids(
    tiny: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    spread(tiny, {('{"rounds":1}', 1.0): (0.20, 0.22)})
    assert main(["run", "tiny", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == [
        "   10  of 12 runs of mwem",
        "    1  of 1 runs of pep",
        "   11  of 13 runs are missing",
        "   39  are missing of the paper's whole grids (--whole)",
    ]
    assert main(["run", "tiny", "--list", "--whole"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "   39  of 41 runs are missing"


def test_an_opinion_is_written_only_with_the_verdicts_it_rests_on(tiny: Results) -> None:
    spread(tiny, {('{"rounds":1}', 1.0): (0.1, 0.1)})
    tiny.append([row_of(Run("demo", "pep", 1.0, 0, '{"rounds":2,"t_max":1}', "query"), 0.2)])
    shown = {"tiny": (TINY, tiny.read())}
    good = opinions.Opinion("MWEM is good.", (opinions.Basis("tiny", "MWEM beats", ("holds",)),))
    assert opinions.written((good,), shown) == "- MWEM is good.\n  *Rests on:* MWEM beats PEP (holds)."
    for basis in (opinions.Basis("tiny", "MWEM beats", ("mixed",)), opinions.Basis("tiny", "PEP beats", ("holds",))):
        with pytest.raises(InputError, match=r"must be one of .+; change the opinion"):
            opinions.written((replace(good, basis=(basis,)),), shown)


def test_figures_are_drawn_from_any_results(tiny: Results, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    figures.draw("tiny", path)
    assert "no runs yet" in path.read_text(encoding="utf-8")
    spread(tiny, {('{"rounds":1}', epsilon): (0.2 / epsilon, 0.21 / epsilon) for epsilon in (0.1, 1.0)})
    figures.draw("tiny", path)
    drawn = path.read_text(encoding="utf-8")
    ET.fromstring(drawn)
    assert "MWEM" in drawn
    assert "no runs yet" not in drawn
    figures.draw("tiny", path)
    assert path.read_text(encoding="utf-8") == drawn, "the same results give the same file"
    figures.draw("tiny", path.with_suffix(".png"))


def test_the_numbers_of_an_axis_keep_their_digits(tiny: Results, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    spread(tiny, {('{"rounds":1}', epsilon): (0.002 / epsilon, 0.0021 / epsilon) for epsilon in (0.1, 1.0)})
    figures.draw("tiny", path)
    numbers = [one.text or "" for one in ET.fromstring(path.read_text(encoding="utf-8")).iter() if one.text]
    assert "0.002" in numbers
    assert "0.00" not in numbers


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_committed_and_up_to_date(name: str, tmp_path: Path) -> None:
    """Drawn again it is the same file; with another matplotlib than the one that drew it, it has the same words."""
    for file in figures.files_of(grid.load(name)):
        figures.draw(name, tmp_path / file)
        require_same(
            *(path.read_text(encoding="utf-8") for path in (ROOT / "experiments" / name / file, tmp_path / file))
        )


def require_same(committed: str, drawn: str) -> None:
    if f"v{matplotlib.__version__}," not in committed:
        committed, drawn = (" ".join(sorted(re.findall(r">([^<>]*[a-z][^<>]*)</text>", x))) for x in (committed, drawn))
    assert committed == drawn, "run make figures"


def test_committed_results_are_sorted_and_have_no_copies(tmp_path: Path) -> None:
    committed = results.store().path.read_bytes()
    assert committed.count(b"\n") == len(results.store().read()) + 1
    copy = Results(tmp_path / "results.csv")
    copy.path.write_bytes(committed)
    copy.sort()
    assert copy.path.read_bytes() == committed
    assert not list(results.FOLDER.glob("*/*.csv")), "all runs are in one file"


def test_committed_results_are_complete() -> None:
    """Every line belongs to an experiment, and says what was measured and where."""
    programs = set().union(*(grid.load(name).programs() for name in NAMES))
    for key, row in results.store().read().items():
        assert key[:-2] in programs
        assert row["commit"]
        assert row["machine"]
        assert row["noise"] in ("own", "shared")
        measured = ("max", "rmse", "tvd", "seconds", *(grid.ROW_METRICS if row["output"] == "rows" else ()))
        assert row["error"] or all(float(row[metric]) >= 0 for metric in measured)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_finds_its_lines(name: str) -> None:
    experiment = grid.load(name)
    found = results.lines_of(experiment)
    assert {run.program for run in experiment.runs().values()} & {key[:-2] for key in found}
    if name in FIGURES:
        assert all(row["mean"] for row in found.values()), "a figure shows the mean error"


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_written_from_any_results(name: str) -> None:
    experiment = grid.load(name)
    assert experiment.table is not None
    assert "nan" not in experiment.table({})
    assert experiment.title


def test_a_cell_of_a_table_is_a_mean(tiny: Results) -> None:
    sweep = Sweep("", "mwem", ("demo",), grouping="query", fixed={"rounds": 1}, subset=({},), defaults=False)
    tiny.append([row_of(replace(RUN, seed=seed), value) for seed, value in enumerate((0.2, 0.4))])
    spot = tables.spot_of(sweep, "demo", 1.0, tiny.read())
    assert spot is not None
    assert tables.three_errors(spot) == "0.3000 / 0.30000 / 0.300 (2)"
    assert tables.against(spot, (0.6, 0.1)) == ("0.3000 / 0.30000 (2)", "0.6000 / 0.10000", "0.50 / 3.00")
    assert tables.spot_of(sweep, "demo", 0.1, tiny.read()) is None
    assert tables.made_on([sweep], tiny.read()) == "The runs were made on: a machine."


def test_the_page_matches_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--check"]) == 0, capsys.readouterr().err


def test_a_stale_page_is_noticed(tiny: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    names = ("overview", *(f"{part} tiny" for part in ("claims", "results", "settings", "runs")))
    page.write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in names), encoding="utf-8")
    monkeypatch.setattr(report, "PAGES", (page,))
    assert main(["report"]) == 0
    assert main(["report", "--check"]) == 0
    assert "no runs yet" in page.read_text(encoding="utf-8")
    spread(tiny, {('{"rounds":1}', 1.0): (0.20, 0.22)})
    assert main(["report", "--check"]) == 1
    assert main(["report"]) == 0
    text = page.read_text(encoding="utf-8")
    assert "0.2100 ± 0.0100 (2)" in text
    assert "2 of 13" in text
    assert "| `mwem` | demo | a machine | 2 |" in text
