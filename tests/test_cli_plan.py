"""``pointillist plan``, and the forecast at the start of ``synth``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.command import Run, tree
from tests.queries.small import SCHEMA

from pointillist import Job, Schema, cli, cli_plan, load, prepare
from pointillist.data.sources import LaterSource
from pointillist.planning import Expected

ASK = ("plan", "people.schema.toml", "--rows", "5000", "--epsilon", "1", "--workload", "marginals:2")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a schema and no table."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("people.schema.toml")
    return tmp_path


def test_a_plan_from_a_schema_alone(run: Run, home: Path) -> None:
    found = run(*ASK, "--target-error", "0.02", "--out", "plan.svg")
    assert (found.code, found.err) == (0, "")
    assert "auto, 5,000 rows, epsilon 1" in found.out
    assert "smallest epsilon for a max error of 0.02" in found.out
    assert "█" in found.out
    assert f"wrote {home / 'plan.svg'}" in found.out
    assert Path("plan.svg").read_text().startswith("<svg ")
    assert sorted(tree(home)) == ["people.schema.toml", "plan.svg"]


@pytest.mark.usefixtures("home")
def test_a_draft_is_enough(run: Run) -> None:
    text = Path("people.schema.toml").read_text()
    Path("people.schema.toml").write_text(text.replace("reviewed = true", "reviewed = false"))
    assert not Schema.load("people.schema.toml").reviewed
    assert run(*ASK).code == 0


@pytest.mark.usefixtures("home")
def test_a_plan_for_programs(run: Run) -> None:
    found = json.loads(run(*ASK, "--json").out)
    assert (found["method"], found["rows"], found["epsilon"]) == ("auto", 5000, 1.0)
    assert found["expected"]["memory"] > 10**8
    same = json.loads(run(*ASK, "--json").out)
    assert {**found, "expected": None} == {**same, "expected": None}


@pytest.mark.usefixtures("home")
def test_a_dataset_brings_its_number_of_rows(run: Run) -> None:
    found = run("plan", "demo", "--epsilon", "1", "--workload", "marginals:1")
    assert found.code == 0
    assert f"auto, {len(load('demo')):,} rows" in found.out


@pytest.mark.usefixtures("home")
def test_without_a_workload_it_is_that_of_synth(run: Run) -> None:
    given = [word for word in ASK if word not in ("--workload", "marginals:2")]
    chosen = prepare(LaterSource(SCHEMA, 5000), epsilon=1.0)
    found = run(*given)
    assert found.code == 0
    assert f"workload: {chosen.reason}" in found.out
    assert f"wanted: {chosen.task.workload.describe()}" in found.out


REFUSED = [
    (("plan", "people.schema.toml", "--epsilon", "1"), "rows must be given, since no data is read, got None"),
    ((*ASK, "--rows", "1"), "rows must be in 2 .. 1,000,000,000, got 1"),
    ((*ASK, "--epsilon", "0"), "epsilon must be a finite number above 0"),
    ((*ASK, "--relation", "add-remove"), "delta must be given under add-remove"),
    ((*ASK, "--method", "magic"), "method must be one of"),
    ((*ASK, "--target-error", "2"), "target_error must be"),
    ((*ASK, "--target-error", "0.1", "--target-metric", "mean"), "target_metric must be one of max, rmse, tvd"),
    ((*ASK, "--target-metric", "mean"), "target_metric must be one of max, rmse, tvd"),
    ((*ASK, "--target", "age", "--workload", "marginals:1"), "target must not be given with a workload"),
    ((*ASK, "--out", "plan.png"), "out must be the name of an SVG file"),
    ((*ASK, "--out", "nowhere/plan.svg"), "out must be in an existing folder"),
    ((*ASK, "--workload", "prefixes:1", "--out", "plan.svg"), "out must be left out where errors cannot be forecast"),
    (("plan", "other.csv", "--rows", "9", "--epsilon", "1"), "data must be a schema, a file with one next to it"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED)
def test_what_is_refused(run: Run, home: Path, arguments: tuple[str, ...], sentence: str) -> None:
    found = run(*arguments)
    assert found.code == 2
    assert sentence in found.err
    assert found.err.count("\n") == 1
    assert sorted(tree(home)) == ["people.schema.toml"]


SYNTH = ("synth", "demo", "--epsilon", "1", "--method", "mwem", "--workload", "marginals:1", "--rounds", "2")
HUGE = Expected({}, None, 10**15)


@pytest.mark.usefixtures("home")
def test_synth_says_first_what_to_expect(run: Run) -> None:
    found = run(*SYNTH)
    assert found.code == 0
    assert re.match(r"forecast: .*peak memory about [\d.]+ [MG]B", found.err)
    assert "peak memory of this process" in found.err


@pytest.mark.usefixtures("home")
def test_a_release_is_told_even_if_its_replicates_fail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "add_replicates", full)
    found = run(*SYNTH, "--replicates", "2")
    assert found.code == 0
    assert "the release is complete, but has no replicates (" in found.err
    assert "synthetic rows, model, transcript, ledger" in found.out


def test_one_replicate_is_refused_before_anything_is_spent(run: Run, home: Path) -> None:
    found = run(*SYNTH, "--replicates", "1")
    assert found.code == 2
    assert "replicates must be 0 or at least 2, got 1; give 8, or 0 for none" in found.err
    assert not (home / "release").exists()


@pytest.mark.usefixtures("home")
def test_under_add_remove_nothing_is_forecast(run: Run) -> None:
    """The number of rows is private, so that no message may depend on it."""
    found = run(*SYNTH, "--relation", "add-remove", "--delta", "1e-9")
    assert found.code == 0
    assert "forecast" not in found.err
    assert "peak memory of this process" not in found.err


def test_without_a_terminal_an_absurd_run_is_refused(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "expected", lambda job: HUGE)
    found = run(*SYNTH)
    assert found.code == 2
    assert "error: run must fit this machine, got one that takes about 1e+03 TB of memory" in found.err
    assert found.err.endswith("or give --yes to start it.\n")
    assert sorted(tree(home)) == ["people.schema.toml"]
    assert run(*SYNTH, "--yes").code == 0


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 1)])
def test_in_a_terminal_it_is_asked(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, answer: bool, code: int
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Job, "expected", lambda job: HUGE)
    monkeypatch.setattr(cli_plan.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli_plan.typer, "confirm", lambda text, err: asked.append(text) or answer)
    assert run(*SYNTH).code == code
    assert len(asked) == 1
    assert (home / "release").exists() == answer
