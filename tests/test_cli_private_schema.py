"""`pointillist schema --private`: what it prints, what it refuses, and releases that are made with its schema."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.command import Run, tree

from pointillist import Account, Release, Schema, prepare
from pointillist.attestation import verify
from pointillist.data.paid import Paid
from pointillist.data.table import read_file
from pointillist.discovering import private_schema
from pointillist.errors import InputError
from pointillist.privacy.budget import Budget
from pointillist.privacy.composition import together_with
from pointillist.privacy.ledger import Ledger

SECRET = "the only one of its kind"


def people(rows: int = 3000) -> str:
    rng = np.random.default_rng(1)
    lines = ["person_id,sex,age,town,remark"]
    for n in range(rows):
        town = SECRET if n == 11 else rng.choice(["Aba", "Bebe"])
        lines.append(f"{n},{rng.choice(['f', 'm'])},{rng.integers(18, 70)},{town},remark {n} of someone")
    return "\n".join(lines) + "\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder with a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(people())
    return tmp_path


PRIVATE = ("schema", "people.csv", "--private", "--epsilon", "1", "--delta", "1e-6")


def test_a_private_schema_is_printed_and_written(run: Run, home: Path) -> None:
    result = run(*PRIVATE)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("rho = ")
    assert "over 4 columns with equal parts; 20% of a text's part tells what its cells are" in lines[0]
    assert "5e-07 of delta = 1e-06 is for values that are discovered" in lines[0]
    assert lines[1] == "wrote people.schema.toml: 4 columns (1 id, 2 categorical, 1 numeric)"
    assert lines[2] == "  'person_id': An identifier, by its name: never read, and made again as a sequence"
    assert lines[3].startswith("  'sex': The 2 values with a noisy count of ")
    assert lines[4].startswith("  'age': Bounds from noisy counts: 0 to 200")
    assert any(line.startswith("left out 'remark': no value is frequent enough to be shown") for line in lines)
    assert any(line.startswith("(1, 1e-06)-differential privacy, relation replace") for line in lines)
    assert "Part of delta for showing a value that only one unit has: 5e-07, spent 5e-07." in lines
    assert lines[-1] == "  pointillist synth people.csv --schema people.schema.toml --epsilon 1"
    text = (home / "people.schema.toml").read_text()
    assert SECRET not in result.out + text + (home / "people.schema.toml.ledger.json").read_text()
    assert "remark 5" not in text
    schema = Schema.load("people.schema.toml")
    assert schema.reviewed
    assert [column.name for column in schema.columns] == ["sex", "age", "town"]
    checked = run("schema", "check", "people.schema.toml", "people.csv")
    assert (checked.code, "has no problems" in checked.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--private",), "epsilon must be given with --private"),
        (("--private", "--epsilon", "0"), "epsilon must be a finite number above 0"),
        (("--private", "--epsilon", "-1"), "epsilon must be"),
        (("--private", "--epsilon", "nan"), "epsilon must be"),
        (("--private", "--epsilon", "1000"), "epsilon must be at most 100"),
        (("--private", "--epsilon", "1", "--delta", "2"), "delta must be"),
        (("--private", "--epsilon", "1", "--relation", "replaced"), "did you mean 'replace'"),
        (("--private", "--epsilon", "1", "--relation", "add-remove"), "delta must be given under add-remove"),
        (("--private", "--epsilon", "1", "--unit", "person_id"), "unit must be given together with max_rows"),
        (("--private", "--epsilon", "1", "--unit", "none", "--max-rows", "2"), "unit must be a column of the table"),
        (("--private", "--epsilon", "1", "--ignore", "agee"), "ignore must be a column of the table"),
        (("--private", "--epsilon", "1", "--from-types"), "from_types must not be given with --private"),
        (("--private", "--epsilon", "1", "--resume"), "must not be given with --resume"),
        (("--private", "--resume"), "must have an interrupted draft next to it"),
        (("--private", "--epsilon", "1", "--account", "none.account"), "account must be an existing account file"),
        (("--private", "--epsilon", "1", "--out", "no/x.toml"), "out must be a file in an existing folder"),
        (("--epsilon", "1"), "epsilon must be given with --private only"),
        (("--unit", "sex"), "unit must be given with --private only"),
        (("--resume",), "resume must be given with --private only"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(
    arguments: tuple[str, ...], words: str, run: Run, home: Path
) -> None:
    before = tree(home)
    result = run("schema", "people.csv", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert words in result.err
    assert result.err.count("\n") == 1
    assert tree(home) == before


def test_named_datasets_are_public(run: Run, home: Path) -> None:
    result = run("schema", "demo", "--private", "--epsilon", "1")
    assert result.code == 2
    assert "named datasets have a public schema" in result.err


def test_a_second_draft_must_be_asked_for(run: Run, home: Path) -> None:
    assert run(*PRIVATE).code == 0
    before = tree(home)
    again = run(*PRIVATE)
    assert again.code == 2
    assert "what it cost stays spent, and the new one is paid for again" in again.err
    (home / "people.schema.toml").unlink()
    gone = run(*PRIVATE)
    assert gone.code == 2
    assert "must not have been paid for already (people.schema.toml.ledger.json has (1, 1e-06))" in gone.err
    assert tree(home) == {name: content for name, content in before.items() if name != "people.schema.toml"}
    assert run(*PRIVATE, "--force").code == 0
    assert len(json.loads((home / "people.schema.toml.ledger.json").read_text())["runs"]) == 2


def test_an_interrupted_draft_is_resumed(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pointillist.data.probes import ProbedSource

    with monkeypatch.context() as patch:
        patch.setattr(ProbedSource, "values_of", lambda *a: 1 / 0)
        stopped = run(*PRIVATE)
    assert stopped.code == 2
    assert (
        "what was measured is kept: finish the draft with `pointillist schema DATA --private --resume`" in stopped.err
    )
    refused = run(*PRIVATE)
    assert refused.code == 2
    assert "--resume, which spends nothing twice" in refused.err
    resumed = run("schema", "people.csv", "--private", "--resume")
    assert resumed.code == 0
    assert "wrote people.schema.toml: 4 columns" in resumed.out
    assert len(json.loads((home / "people.schema.toml.ledger.json").read_text())["runs"]) == 1


def test_an_account_and_a_unit(run: Run, home: Path) -> None:
    lines = people().splitlines()
    rows = [f"{n // 2},{line.partition(',')[2]}" for n, line in enumerate(lines[1:])]
    (home / "people.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    Account.create("a.account", 3.0, 1e-5, unit="person_id")
    options = ("--unit", "person_id", "--max-rows", "2", "--account", "a.account")
    result = run(*PRIVATE, *options)
    assert result.code == 0
    last = "  pointillist synth people.csv --schema people.schema.toml --epsilon 1 --delta 1e-06"
    assert result.out.splitlines()[-1] == f"{last} --unit person_id --max-rows 2"
    assert "the number of rows is private" in result.out
    shown = run("account", "history", "a.account")
    assert "private schema of 4 columns" in shown.out
    assert "for values that only one unit has" in shown.out
    refused = run("synth", "people.csv", "--epsilon", "1")
    assert refused.code == 2
    assert "relation must be that of the schema, which was paid for under add-remove" in refused.err
    refused = run("synth", "people.csv", "--epsilon", "1", "--relation", "add-remove", "--delta", "1e-6")
    assert refused.code == 2
    assert "unit must be that of the schema, which was paid for by the unit 'person_id', got rows" in refused.err


# --- releases


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that was made with a schema that was paid for."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "people.csv").write_text(people())
    table = read_file(folder / "people.csv")
    schema = private_schema(table, epsilon=0.5, delta=1e-6, ignore=["remark"])
    job = prepare(table, schema=schema, epsilon=1.0, method="one-shot", workload="marginals:2")
    job.run().save(folder / "release")
    return folder / "release"


def test_a_release_states_the_cost_of_its_schema_and_the_sum(release: Path) -> None:
    made = Release.load(release)
    both, paid = made.description.privacy.with_schema, made.schema.paid
    assert both is not None
    assert paid is not None
    assert (both.schema_epsilon, both.schema_delta) == (0.5, 1e-6)
    assert 0.5 < both.epsilon < 1.5
    assert both.delta >= 1e-6 + made.description.privacy.delta
    assert "The schema was made from the same table for (0.5, 1e-06) of its own. Together they are (" in made.statement
    assert made.schema.paid == Schema.from_dict(made.description.given or {}).paid
    report = verify(release)
    assert report.ok
    assert report["schema cost"].status == "ok"


def test_schemas_that_cost_nothing_have_nothing_to_verify(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(people(400))
    text = 'format = 1\nreviewed = true\nignore = ["person_id", "age", "town", "remark"]\n'
    (tmp_path / "s.toml").write_text(text + '[[column]]\nname = "sex"\ntype = "categorical"\nvalues = ["f", "m"]\n')
    schema = Schema.load(tmp_path / "s.toml")
    job = prepare(read_file(tmp_path / "p.csv"), schema=schema, epsilon=1.0, method="mwem", workload="marginals:1",
                  settings={"rounds": 1})  # fmt: skip
    made = job.run()
    made.save(tmp_path / "r")
    assert "with_schema" not in (tmp_path / "r" / "release.json").read_text()
    assert "The schema was made" not in made.statement
    assert verify(tmp_path / "r")["schema cost"].reason == "it cost nothing"


def paid_in(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [spec[name]["privacy"] for name in ("schema", "given") if spec.get(name)]


def forget(spec: dict[str, Any]) -> None:
    del spec["privacy"]["with_schema"]


def unpaid(spec: dict[str, Any]) -> None:
    for name in ("schema", "given"):
        if spec.get(name):
            del spec[name]["privacy"]


def cheaper(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid["epsilon"] = 0.1


def fewer_charges(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid["ledger"].pop()


def less_delta(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        for entry in paid["ledger"]:
            entry.pop("delta", None)
        paid["delta_spent"] = 0.0


def less_noise(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid["ledger"][0]["scale"] /= 2


def seeded(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid["private"] = False


def other_relation(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid["relation"] = "add-remove"


def other_unit(spec: dict[str, Any]) -> None:
    for paid in paid_in(spec):
        paid |= {"relation": "add-remove", "unit": "x", "max_rows": 2}


def smaller_sum(spec: dict[str, Any]) -> None:
    spec["privacy"]["with_schema"]["epsilon"] = 0.6


def differing(spec: dict[str, Any]) -> None:
    spec["schema"]["privacy"]["epsilon"] = 0.4


@pytest.mark.parametrize(
    "change",
    [forget, unpaid, cheaper, fewer_charges, less_delta, less_noise, seeded, other_relation, other_unit, smaller_sum,
     differing],
)  # fmt: skip
def test_a_changed_cost_of_the_schema_is_caught(
    change: Callable[[dict[str, Any]], None], release: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    spec = json.loads((copy / "release.json").read_text())
    change(spec)
    (copy / "release.json").write_text(json.dumps(spec))
    report = verify(copy)
    assert report["schema cost"].status == "failed"


def test_the_sum_is_never_above_basic_composition_and_never_below_the_larger_part() -> None:
    paid = _paid()
    for least_scale, epsilon, delta in ((10.0, 1.0, 1e-9), (None, 1.0, 1e-6), (None, 50.0, 0.4), (3.0, 0.01, 1e-12)):
        ledger = Ledger(Budget(epsilon, delta), least_scale)
        both = together_with(paid, ledger)
        assert both[0] <= paid.epsilon + epsilon
        assert both[1] >= paid.delta + delta
        # at a delta of its own, no smaller than what either part costs alone
        alone = together_with(paid, Ledger(Budget(1e-6, delta), None))
        assert both[0] >= alone[0] * (1 - 1e-6)


def _paid() -> Paid:
    ledger = Ledger(Budget(0.5, 1e-6), 10.0, 5e-7)
    return Paid(0.5, 1e-6, ledger.budget.relation, "Gaussian", ledger.limit, 0.0, 5e-7, 0.0, "noise", True, 10.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": "1"}, "epsilon must be a finite number"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number"),
        ({"relation": "none"}, "known relation"),
        ({"accounting": "zCDP"}, "least_scale above 0.5"),
        ({"least_scale": 0.1}, "least_scale above 0.5"),
        ({"private": 1}, "private must be true or false"),
        ({"noise": 5}, "noise must be a text"),
        ({"ledger": 5}, "must be a list of charges"),
        ({"ledger": [{"label": "x"}]}, "all entries of each charge"),
        ({"unit": "x"}, "max_rows must be"),
        ({"more": 1}, "must only have the keys"),
    ],
)
def test_a_changed_table_of_a_schema_file_is_refused(change: dict[str, Any], words: str) -> None:
    spec = _paid().to_dict()
    assert Paid.from_dict(spec) == _paid()
    with pytest.raises(InputError, match=words):
        Paid.from_dict(spec | change)
    with pytest.raises(InputError, match="must have all of its entries"):
        Paid.from_dict({name: value for name, value in spec.items() if name != "rho"})
    with pytest.raises(InputError, match="must be a table"):
        Paid.from_dict(7)


def test_a_schema_with_seeded_noise_makes_no_private_release(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(people(1000))
    table = read_file(tmp_path / "p.csv")
    schema = private_schema(table, epsilon=2.0, delta=1e-6, ignore=["remark"], insecure_noise_seed=1)
    assert not schema.reviewed
    reviewed = Schema.from_dict(schema.to_dict() | {"reviewed": True})
    with pytest.raises(InputError, match="schema must be private, since the run is"):
        prepare(table, schema=reviewed, epsilon=1.0)
    job = prepare(table, schema=reviewed, epsilon=1.0, insecure_noise_seed=1, method="one-shot")
    assert job.curator.noise.private is False
