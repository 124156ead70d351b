"""Units of privacy and rules from the command line, from a CSV file to a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.command import Run

from pointillist import Release, Table
from pointillist.data.neighbours import Unit
from pointillist.privacy.curator import Curator

SCHEMA = """
format = 1
reviewed = true
ignore = ["person_id"]

[[column]]
name = "age"
type = "numeric"
edges = [0, 10, 18, 65, 120]
integer = true

[[column]]
name = "marital"
type = "categorical"
values = ["never", "married", "widowed"]

[[rule]]
if = "age < 15"
then = 'marital == "never"'
"""
SMALL = ("--method", "mwem", "--rounds", "1", "--workload", "marginals:2", "--rows", "500")
UNIT = ("--epsilon", "1", "--delta", "1e-6", "--unit", "person_id", "--max-rows", "3", *SMALL)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    person = rng.integers(0, 90, 400)
    age = rng.integers(0, 121, 400)
    marital = np.where(age < 15, "never", rng.choice(["never", "married", "widowed"], 400))
    lines = [f"p{p},{a},{m}" for p, a, m in zip(person, age, marital, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["person_id,age,marital", *lines, ""]))
    (tmp_path / "people.schema.toml").write_text(SCHEMA)
    return tmp_path


def test_a_release_by_person_that_obeys_the_rules(run: Run, home: Path) -> None:
    code, out, _ = run("synth", "people.csv", *UNIT, "--out", "r")
    assert code == 0
    assert "adding or removing all rows of one 'person_id' (at most 3 rows of each are used)" in " ".join(out.split())
    assert "rules: " in out
    release = Release.load(home / "r")
    assert release.description.privacy.unit is not None
    assert release.description.privacy.relation == "add-remove"
    assert set(release.schema.rules.violations(release.table).values()) == {0}  # type: ignore[attr-defined]
    code, out, _ = run("verify", "r", "--replay")
    assert code == 0
    spec = json.loads((home / "r" / "release.json").read_text())
    assert spec["privacy"]["unit"] == {"name": "person_id", "max_rows": 3}
    code, out, _ = run("evaluate", "people.csv", "r", "--json")
    assert code == 0
    assert json.loads(out)["n"] == 400


def test_an_interrupted_run_by_person_is_resumed(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(self: Curator, asked: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "measure", stops)
        assert run("synth", "people.csv", *UNIT, "--out", "r")[0] != 0
    assert run("resume", "r")[0] == 0
    privacy = Release.load(home / "r").description.privacy
    assert privacy.unit == Unit("person_id", 3)
    assert [entry.label for entry in privacy.ledger] == ["number of rows", "selection", "measurement"]
    assert [round(entry.sensitivity) for entry in privacy.ledger] == [3, 3, 3]


def test_an_account_by_person(run: Run, home: Path) -> None:
    assert run("account", "create", "a", "--epsilon", "2", "--delta", "1e-5", "--unit", "person_id")[0] == 0
    assert run("synth", "people.csv", *UNIT, "--out", "r", "--account", "a")[0] == 0
    code, _, err = run("synth", "people.csv", "--epsilon", "1", "--delta", "1e-6", "--relation", "add-remove", *SMALL,
                       "--out", "s", "--account", "a")  # fmt: skip
    assert code == 2
    assert "unit must be that of the account (the unit 'person_id'), got rows" in " ".join(err.split())
    assert not (home / "s").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unit", "person_id"), "unit must be given together with max_rows"),
        (("--max-rows", "3"), "unit must be given together with max_rows"),
        (("--unit", "age", "--max-rows", "3"), "unit must not be a column that is synthesized"),
        (("--unit", "who", "--max-rows", "3"), "unit must be a column of the table"),
        (
            ("--unit", "person_id", "--max-rows", "3", "--relation", "replace"),
            "relation must be add-remove with a unit",
        ),
    ],
)
def test_wrong_units_spend_nothing(run: Run, home: Path, options: tuple[str, ...], words: str) -> None:
    code, _, err = run("synth", "people.csv", "--epsilon", "1", "--delta", "1e-6", *SMALL, "--out", "r", *options)
    assert code == 2
    assert words in " ".join(err.split())
    assert not (home / "r").exists()


def test_a_dataset_has_no_units(run: Run, home: Path) -> None:
    code, _, err = run("synth", "demo", *UNIT, "--out", "r")
    assert code == 2
    assert "unit must be given with a table that has its column" in " ".join(err.split())


def test_a_run_with_a_unit_is_not_resumed_with_a_dataset(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Curator, "select", lambda *given: (_ for _ in ()).throw(OSError("stopped")))
        assert run("synth", "people.csv", *UNIT, "--out", "r")[0] == 2
    code, _, err = run("resume", "r", "demo")
    assert code == 2
    assert "unit must be given with a table that has its column" in " ".join(err.split())


def test_contradictory_rules_spend_nothing(run: Run, home: Path) -> None:
    (home / "people.schema.toml").write_text(SCHEMA + '\n[[rule]]\nnever = "age >= 0"\n')
    code, _, err = run("synth", "people.csv", *UNIT, "--out", "r")
    assert code == 2
    assert "rules must allow at least one row together" in " ".join(err.split())
    assert not (home / "r").exists()


def test_rows_that_break_a_rule_are_found_by_verify(run: Run, home: Path) -> None:
    assert run("synth", "people.csv", *UNIT, "--out", "r")[0] == 0
    spec = json.loads((home / "r" / "release.json").read_text())
    spec["schema"]["rule"] = [{"never": "age > 20"}]
    (home / "r" / "release.json").write_text(json.dumps(spec))
    code, out, _ = run("verify", "r")
    assert code != 0
    assert "break a rule of the schema" in " ".join(out.split())
    assert len(Table.read(home / "r" / "synthetic.parquet", Release.load(home / "r").schema)) == 500
