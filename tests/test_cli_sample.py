"""More rows from a release, results as JSON and completion in the shell, on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.command import Run, tree

from pointillist.algorithms import METHODS
from pointillist.cli_complete import data_names, method_names
from pointillist.privacy.ledger import Entry
from pointillist.release import Release

SCHEMA = """\
format = 1
reviewed = true

[[column]]
name = "region"
type = "categorical"
values = ["N", "S", "W"]
missing = true

[[column]]
name = "age"
type = "numeric"
edges = [0, 18, 65, 120]
integer = true

[[column]]
name = "job"
type = "categorical"
values = ["none", "some"]
"""
SYNTH = ("synth", "people.csv", "--epsilon", "3", "--method", "mwem", "--rounds", "2", "--workload", "marginals:2")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ["N,10,none", "N,12,none", "S,70,some", "W,30,some", ",40,none"] * 20
    (tmp_path / "people.csv").write_text("\n".join(["region,age,job", *rows]) + "\n")
    (tmp_path / "people.schema.toml").write_text(SCHEMA)
    return tmp_path


def test_synth_as_json(run: Run, home: Path) -> None:
    result = run(*SYNTH, "--json")
    assert result.code == 0
    facts = json.loads(result.out)
    release = Release.load("release")
    assert facts["folder"] == str(home / "release")
    assert facts["statement"] == release.statement
    assert (facts["rows"], facts["columns"], facts["method"]) == (100, 3, "mwem")
    assert (facts["epsilon"], facts["delta"], facts["private"]) == (3.0, 1e-4, True)
    assert facts["rho_spent"] == release.description.privacy.rho_spent
    assert facts["seconds"] > 0


def test_more_rows_without_budget(run: Run, home: Path, charges: list[Entry]) -> None:
    assert run(*SYNTH).code == 0
    before, spent = tree(home / "release"), len(charges)
    made = run("sample", "release", "--rows", "30", "--out", "more.csv")
    assert (made.code, made.err) == (0, "")
    assert made.out == "wrote more.csv: 30 rows from release; no budget was spent\n"
    assert list(pd.read_csv("more.csv").columns) == ["region", "age", "job"]
    assert run("sample", "release", "--rows", "40", "--given", "region=S", "--given", "region=W", "--given", "age=33",
               "--out", "some.parquet").code == 0  # fmt: skip
    some = pd.read_parquet("some.parquet")
    assert set(some["region"]) == {"S", "W"}
    assert set(some["age"]) == {33}
    assert run("sample", "release", "--rows", "4", "--given", "region=", "--out", "gone.parquet").code == 0
    assert pd.read_parquet("gone.parquet")["region"].isna().all()
    assert len(charges) == spent
    assert tree(home / "release") == before


def test_the_seed_decides_the_rows(run: Run) -> None:
    assert run(*SYNTH).code == 0
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run("sample", "release", "--rows", "50", "--seed", seed, "--out", f"{name}.csv").code == 0
    first, again, other = (Path(f"{name}.csv").read_text() for name in "abc")
    assert first == again != other


BAD = [
    (("--rows", "0", "--out", "x.csv"), "rows must be in 1 .. "),
    (("--rows", "5", "--out", "x.txt"), "out must end in .csv or .parquet, got 'x.txt'; rename it."),
    (("--rows", "5", "--out", "people.csv"), "out must not exist already, got 'people.csv'; choose another file, or "),
    (
        ("--rows", "5", "--out", "release/synthetic.csv", "--force"),
        "out must not lie in the folder of the release, got 'release/synthetic.csv'; choose another folder.",
    ),
    (("--rows", "999999999", "--out", "x.csv"), "rows must be rows that fit into memory, got 999999999; draw fewer"),
    (("--rows", "5", "--out", "no/x.csv"), "out must be a file in an existing folder, got 'no/x.csv'; make the folder"),
    (("--rows", "5", "--out", "x.csv", "--seed", "-1"), "seed must be in 0 .. 9,223,372,036,854,775,807, got -1; "),
    (("--rows", "5", "--out", "x.csv", "--given", "N"), "given must have the form COLUMN=VALUE, got 'N'; "),
    (("--rows", "5", "--out", "x.csv", "--given", "area=N"), "given must name columns of the release, got 'area'; "),
    (
        ("--rows", "5", "--out", "x.csv", "--given", "region=E"),
        "given: column 'region' must be a value of the column (region: 3 unordered values or missing), got 'E'; "
        "known are N, S, W.",
    ),
    (("--rows", "5", "--out", "x.csv", "--given", "age=old"), "given: column 'age' must be a value of the column"),
    (("--rows", "5", "--out", "x.csv", "--given", "job="), "given: column 'job' must be a value of the column"),
]


def test_wrong_inputs(run: Run, home: Path) -> None:
    assert run(*SYNTH).code == 0
    before = tree(home)
    for arguments, sentence in BAD:
        result = run("sample", "release", *arguments)
        assert (result.code, result.out) == (2, ""), arguments
        assert result.err.startswith(f"error: {sentence}"), arguments
        assert result.err.count("\n") == 1
        assert tree(home) == before
    result = run("sample", "nothing", "--rows", "5", "--out", "x.csv")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("error: release must be a release folder with release.json in it, got 'nothing'")


@pytest.mark.usefixtures("one_thread")
def test_figures_of_a_target(run: Run) -> None:
    assert run(*SYNTH).code == 0
    figures = json.loads(run("evaluate", "people.csv", "release", "--json", "--target", "job").out)
    assert figures["target"]["task"] == "classification"
    assert figures["columns"]["age"]["mean"]["real"] == pytest.approx(32.4)
    assert figures["columns"]["region"]["missing"]["real"] == pytest.approx(0.2)
    shown = run("evaluate", "people.csv", "release", "--target", "job")
    assert shown.code == 0
    assert "Predicting job (classification), tested on 30 real rows" in shown.out
    assert all(title in shown.out for title in ("Numbers\n", "Missing values\n", "Worst marginals of the workload\n"))
    wrong = run("evaluate", "people.csv", "release", "--target", "jobs")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == "error: target must be a column of the table, got 'jobs'; did you mean 'job'.\n"


# --- completion


def test_words_that_are_completed(home: Path) -> None:
    assert method_names("") == list(METHODS)
    assert method_names("pe") == ["pep", "pep_pub"]
    assert data_names("demo") == ["demo"]
    assert data_names("peo") == ["people.csv"]
    (home / "deep").mkdir()
    (home / "deep" / "t.parquet").touch()
    (home / "deep" / "t.txt").touch()
    (home / "deep" / "t.pdf").touch()
    assert data_names("deep/") == ["deep/t.parquet", "deep/t.txt"]
    assert "deep/" in data_names("")
    assert data_names("none/x") == []


@pytest.mark.parametrize(
    ("words", "completed"),
    [("synth --method mw", ["mwem"]), ("synth peo", ["people.csv"])],
)
def test_the_shell_completes(words: str, completed: list[str], home: Path) -> None:
    line = f"pointillist {words}"
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_POINTILLIST_COMPLETE": "complete_bash"}
    code = "import sys; sys.argv = ['pointillist']; from pointillist.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False, cwd=home
    )
    assert done.stdout.split() == completed
