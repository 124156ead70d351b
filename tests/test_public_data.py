"""Public data end to end: synthesize() and the command line, what a release says of it and what it may not tell."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.command import Run, tree

from pointillist import Categorical, InputError, Numeric, Release, Schema, Table, all_kway, synthesize
from pointillist.algorithms import METHODS, Public, get_method
from pointillist.data import datasets
from pointillist.data.public import PublicTable
from pointillist.evaluation.report import compare_public, compare_tables, fractions
from pointillist.job import default_method
from pointillist.privacy.ledger import Entry
from pointillist.release import PublicUsed
from pointillist.runs import journal_of

SCHEMA = Schema(
    (
        Categorical("sex", ("f", "m")),
        Numeric("age", (0, 18, 65, 120), integer=True),
        Categorical("job", ("none", "some", "full")),
    )
)
NETWORK = {"rounds": 2, "batch": 20, "inputs": 8, "hidden": "16", "t_max": 3}
SETTINGS: dict[str, dict[str, Any]] = {
    "pmw_pub": {"rounds": 3},
    "pep_pub": {"rounds": 3, "gate": 0.99},
    "gem_pub": {**NETWORK, "pretrain_steps": 40, "pretrain_rate": 0.01},  # the program of test_pretraining
}
"""What makes the methods on public data run in a moment."""
OPTIONS = {name: [w for k, v in pairs.items() for w in ("--set", f"{k}={v}")] for name, pairs in SETTINGS.items()}
SYNTH = ("synth", "people.csv", "--epsilon", "1", "--workload", "marginals:2")
UNPROTECTED = "\nThe public table that was used with it (150 rows) is not protected."


def people(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    job = np.where(sex == "f", rng.choice(["none", "full"], n), rng.choice(["some", "full"], n))
    return pd.DataFrame({"sex": sex, "age": rng.integers(10, 80, n), "job": job})


def test_the_list_of_methods_on_public_data_is_complete() -> None:
    assert {method.name for method in METHODS.values() if method.public is Public.NEEDED} == set(SETTINGS)
    assert [method.name for method in METHODS.values() if method.public is Public.OPTIONAL] == ["auto"]


# --- synthesize()


def make(method: str | None, public: Any, **options: Any) -> Release:
    settings = SETTINGS["gem_pub" if method is None else method]
    given = {"epsilon": 1.0, "workload": "marginals:2", "settings": settings, "schema": SCHEMA}
    return synthesize(people(), method=method, public=public, **given | options)


@pytest.mark.parametrize("method", SETTINGS)
def test_a_release_tells_of_the_public_table_and_outlives_it(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = people(150, seed=1)
    lines: list[str] = []
    release = make(method, public, announce=lines.append)
    encoded = PublicTable.encode(public, SCHEMA)
    assert release.description.public == PublicUsed(150, len(encoded.counts), (), encoded.digest)
    assert lines[1] == (
        f"public table: 150 rows, {len(encoded.counts)} distinct records; it covers 3 of the 3 marginals"
    )
    folder = release.save(tmp_path / "release")
    spec = json.loads((folder / "release.json").read_text())
    assert spec["public"] == {
        "rows": 150, "records": len(encoded.counts), "missing": [], "sha256": encoded.digest,
    }  # fmt: skip
    assert spec["method"]["name"] == method

    def no_table(*_: Any) -> None:
        raise AssertionError("a release must load without the public table")

    monkeypatch.setattr(PublicTable, "encode", no_table)
    loaded = Release.load(folder)
    assert loaded.description == release.description
    assert np.array_equal(loaded.answers(), release.answers())
    more = all_kway(SCHEMA.domain, 3)
    assert np.array_equal(loaded.answers(more), release.answers(more))
    pairs = zip(loaded.sample(50, seed=3).codes, release.sample(50, seed=3).codes, strict=True)
    assert all(np.array_equal(one, two) for one, two in pairs)


def test_without_a_public_table_a_release_says_so() -> None:
    release = synthesize(
        people(), schema=SCHEMA, epsilon=1.0, method="mwem", workload="marginals:2", settings={"rounds": 2}
    )
    assert release.description.public is None
    assert release.description.method.start == {}
    assert "public table" not in release.statement


@pytest.mark.parametrize("method", SETTINGS)
@pytest.mark.parametrize("seed", [None, 5])
def test_the_statement_ends_with_the_public_table(method: str, seed: int | None) -> None:
    release = make(method, people(150, seed=1), insecure_noise_seed=seed)
    assert release.statement.startswith("(1, " if seed is None else "NOT PRIVATE: made with INSECURE seeded noise")
    assert release.statement.endswith(UNPROTECTED)
    assert release.statement.count("public table") == 1
    many = make("pmw_pub", people(1500, seed=1))
    assert many.statement.endswith("\nThe public table that was used with it (1,500 rows) is not protected.")


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("method", "plain"), [("pmw_pub", "mwem"), ("pep_pub", "pep")])
def test_public_data_is_free(method: str, plain: str, relation: str) -> None:
    """The ledger is that of the method without public data, charge by charge."""
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "relation": relation, "workload": "marginals:2"}
    options |= {"settings": {"rounds": 3}, "schema": SCHEMA, "group": "marginal"}
    mine = synthesize(people(), method=method, public=people(150, seed=1), **options).description.privacy
    other = synthesize(people(), method=plain, **options).description.privacy
    assert mine.ledger == other.ledger
    assert len(mine.ledger) == 6 + (relation == "add-remove")
    assert mine.rho_spent == other.rho_spent
    assert mine.statement == other.statement + UNPROTECTED


@pytest.mark.parametrize("method", SETTINGS)
def test_the_ledger_knows_no_public_table(method: str) -> None:
    privacy = make(method, people(150, seed=1)).description.privacy
    assert {entry.label for entry in privacy.ledger} == {"selection", "measurement"}
    assert "public" not in json.dumps([asdict(entry) for entry in privacy.ledger])
    assert privacy.rho * (1 - 1e-9) <= privacy.rho_spent <= privacy.rho


@pytest.mark.parametrize("kind", ["pandas", "Arrow", "Table"])
def test_the_kind_of_the_public_table_makes_no_difference(kind: str) -> None:
    public = people(150, seed=1)[["job", "sex", "age"]]
    table = Table.encode(public, SCHEMA)
    given = {"pandas": public, "Arrow": table.to_arrow(), "Table": table}[kind]
    release = make("pmw_pub", given, insecure_noise_seed=5)
    again = make("pmw_pub", people(150, seed=1), insecure_noise_seed=5)
    assert np.array_equal(release.answers(), again.answers())
    assert release.description == again.description


def test_a_public_table_without_a_method_means_auto() -> None:
    lines: list[str] = []
    release = make(None, people(150, seed=1), settings={"rows": 20, "t_max": 5}, announce=lines.append)
    assert release.description.method.name == "auto"
    assert lines[-2].startswith("the public table, judged by the noisy measurements, is ")
    assert lines[-1].startswith("fit: worst residual ")
    assert release.statement.endswith(UNPROTECTED)
    assert make(None, people(150, seed=1)).description.method.name == "gem_pub"  # for its settings
    assert default_method(SCHEMA.domain, None, {}, people()).name == "auto"
    assert default_method(SCHEMA.domain, None, {"rounds": 3}, people()).name == "gem_pub"


def test_the_default_refuses_a_public_table_that_covers_nothing(charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        make(None, people(150, seed=1)[["job"]], settings={})
    assert str(refused.value).startswith("public must have all columns of at least one marginal of the workload")
    assert charges == []


def test_synthetic_rows_are_public_records() -> None:
    """With weights on public records no other record comes out, private ones included."""
    public = people(40, seed=1)
    release = make("pmw_pub", public, rows=500)
    rows = set(zip(*(codes.tolist() for codes in release.table.codes), strict=True))
    assert rows <= set(zip(*(codes.tolist() for codes in Table.encode(public, SCHEMA).codes), strict=True))


LEAVE_OUT = (
    "public must be left out for {}, which makes no use of it, got a table; "
    "leave it out, or use auto, gem_pub, pmw_pub or pep_pub."
)
NEEDED = "public must be a public table for {}, got None; give one, or use another method."


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_public_data_is_asked_of_the_methods_that_use_it_and_of_no_other(method: str, charges: list[Entry]) -> None:
    needed = get_method(method).public is Public.NEEDED
    wrong = None if needed else people()
    sentence = (NEEDED if needed else LEAVE_OUT).format(method)
    with pytest.raises(InputError) as refused:
        synthesize(people(), schema=SCHEMA, epsilon=1.0, method=method, public=wrong)
    assert str(refused.value) == sentence
    assert charges == []


@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("kind", ["pandas", "Arrow", "Table"])
def test_the_private_table_is_no_public_one(kind: str, method: str | None, charges: list[Entry]) -> None:
    table = Table.encode(people(), SCHEMA)
    given = {"pandas": people(), "Arrow": table.to_arrow(), "Table": table}[kind]
    lines: list[str] = []
    with pytest.raises(InputError) as refused:
        synthesize(given, schema=SCHEMA, epsilon=1.0, method=method, public=given, announce=lines.append)
    assert str(refused.value) == (
        "public must be another table, got the private table; give a table that is public already, or leave it out."
    )
    assert charges == []
    assert lines == []


# --- nothing private but through the noise


@pytest.mark.parametrize("method", ["auto", *SETTINGS])
def test_releases_of_different_tables_are_identical_where_the_noise_is_blind(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, blind_noise: None
) -> None:
    """Rows, model, transcript, ledger and specification depend on the private table through the noise alone."""
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    contents = []
    for seed in (0, 7):
        release = synthesize(
            people(200, seed), schema=SCHEMA, epsilon=1.0, workload="marginals:2", method=method,
            settings=SETTINGS.get(method, {"rows": 20, "t_max": 5}), public=people(150, seed=1), insecure_noise_seed=3,
        )  # fmt: skip
        folder = release.save(tmp_path / str(seed))
        content: dict[str, Any] = {}
        for path in folder.iterdir():
            if path.suffix == ".npz":  # a zip archive holds times, so compare what is in it
                with np.load(path) as arrays:
                    content[path.name] = {name: arrays[name].tobytes() for name in arrays.files}
            else:
                content[path.name] = path.read_bytes()
        contents.append(content)
    assert len(contents[0]) == 5
    assert contents[0] == contents[1]


# --- the best-mixture error


def test_no_reweighting_beats_the_best_mixture_error() -> None:
    """Nobody in the public table is without a job: whatever is spent, the error stays above the floor."""
    real = Table.encode(people(), SCHEMA)
    public = people(150, seed=1)
    public = public[public["job"] != "none"]
    workload = all_kway(SCHEMA.domain, 1)
    encoded = PublicTable.encode(public, SCHEMA)
    floor = compare_public(real, encoded, workload)
    least = fractions(real, workload)[5]  # job = none
    assert least > 0.2
    assert floor.lower <= floor.best.max * (1 + 1e-9)
    assert floor.lower == pytest.approx(least, rel=0.06)
    assert floor.best.max <= floor.public.max + 1e-12
    assert floor.records == len(encoded.counts)
    release = make("pmw_pub", public, epsilon=50.0, workload="marginals:1", settings={"rounds": 3})
    made = compare_tables(real, release.table, workload, release).model
    assert made is not None
    assert made.max >= floor.lower - 1e-9


# --- the command line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder with a private table, its schema, and a public table."""
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    SCHEMA.save("people.schema.toml")
    people(150, seed=1)[["job", "age", "sex"]].assign(id=range(150)).to_csv("public.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("method", SETTINGS)
def test_synth_with_a_public_file_and_figures(method: str, run: Run) -> None:
    made = run(*SYNTH, "--public", "public.csv", "--method", method, *OPTIONS[method])
    assert made.code == 0
    assert "public table: 150 rows, " in made.err
    assert "it covers 3 of the 3 marginals" in made.err
    assert ("start: marginals 3, loss " in made.err) == (method == "gem_pub")
    assert f"{UNPROTECTED}\nmethod {method}, 3 marginals, " in made.out
    public = Release.load("release").description.public
    assert public is not None
    assert public.rows == 150
    Path("public.csv").unlink()
    assert run("evaluate", "people.csv", "release").code == 0


def test_synth_with_a_public_file_and_no_method(run: Run) -> None:
    assert run(*SYNTH, "--public", "public.csv", *OPTIONS["gem_pub"]).code == 0
    assert Release.load("release").description.method.name == "gem_pub"


def test_synth_with_a_public_file_of_fewer_columns(run: Run) -> None:
    people(150, seed=1)[["sex", "job"]].to_csv("public.csv", index=False)
    made = run(*SYNTH, "--public", "public.csv", *OPTIONS["gem_pub"])
    assert made.code == 0
    assert "without 1 of the attributes; it covers 1 of the 3 marginals" in made.err
    public = Release.load("release").description.public
    assert public is not None
    assert public.missing == ("age",)


def test_synth_with_a_dataset_as_public_table(run: Run) -> None:
    """The labels of the dataset are matched to those of the private schema."""
    demo = datasets.load("demo")
    town = demo.take(np.arange(300))
    town.write("town.csv")
    town.schema.save("town.schema.toml")
    made = run(
        "synth", "town.csv", "--epsilon", "1", "--workload", "marginals:1", "--method", "pmw_pub", "--public", "demo",
        "--rounds", "2",
    )  # fmt: skip
    assert made.code == 0
    public = Release.load("release").description.public
    assert public is not None
    assert (public.rows, public.sha256) == (len(demo), PublicTable.encode(demo, town.schema).digest)


def test_a_gate_that_stops_keeps_the_ledger(run: Run, home: Path) -> None:
    public = people(150, seed=1)
    public[public["sex"] == "f"].to_csv("women.csv", index=False)
    stopped = run(
        "synth", "people.csv", "--epsilon", "20", "--workload", "marginals:1", "--public", "women.csv",
        "--method", "pmw_pub", "--rounds", "2", "--set", "gate=0.05", "--set", "gate_share=0.25",
    )  # fmt: skip
    assert (stopped.code, stopped.out) == (2, "")
    assert "error: gate must be at least the error that every reweighting of the public records has" in stopped.err
    told = json.loads((home / "release" / "ledger.json").read_text())
    assert len(told["ledger"]) == 2
    assert sum(entry["rho"] for entry in told["ledger"]) == pytest.approx(0.25 * told["rho"], rel=1e-9)
    records = journal_of(home / "release")  # what was learned, by the names of columns
    (measured,) = [record for record in records if record.data.get("operation") == "measure"]
    (asked,) = json.loads(str(measured.arrays["asked"]))
    assert asked["kind"] == "marginal"
    assert set(asked["attributes"]) < {"sex", "age", "job"}
    assert len(measured.arrays["counts"]) in (2, 3)


def test_figures_of_the_best_mixture(run: Run) -> None:
    public_rows = pd.read_csv("public.csv")
    public_rows[public_rows["job"] != "none"].to_csv("public.csv", index=False)  # an error that nothing can undo
    made = run(*SYNTH, "--public", "public.csv", "--method", "pmw_pub", "--rounds", "3")
    assert made.code == 0
    shown = run("evaluate", "people.csv", "release", "--public", "public.csv")
    assert shown.code == 0
    for line in ("the synthetic rows", "the model", "independent columns", "the public table", "its best reweighting"):
        assert line in shown.out
    told = re.search(
        r"^No reweighting of the (\d+) public records has a max error below (0\.\d{5}) "
        r"\(the best-mixture error, a lower limit for pmw_pub and pep_pub\)\.$",
        shown.out,
        re.MULTILINE,
    )
    assert told
    assert shown.out.endswith("they are NOT private. Do not publish them with the release.\n")

    figures = json.loads(run("evaluate", "people.csv", "release", "--public", "public.csv", "--json").out)
    assert list(figures)[:4] == ["n", "queries", "rows", "model"]
    assert list(figures)[-1] == "public"
    floor = figures["public"]
    real = Table.read("people.csv", SCHEMA)
    public = PublicTable.encode(pd.read_csv("public.csv"), SCHEMA)
    assert floor == compare_public(real, public, all_kway(SCHEMA.domain, 2)).to_dict()
    assert set(floor) == {"records", "public", "best", "lower", "upper", "exact"}
    assert (int(told[1]), float(told[2])) == (floor["records"], pytest.approx(floor["lower"], abs=1e-5))
    assert 0.1 < floor["lower"] <= floor["upper"] + 1e-12
    assert floor["upper"] == floor["best"]["max"] <= floor["public"]["max"] + 1e-12
    assert figures["model"]["max"] >= floor["lower"] - 1e-12
    assert "public" not in json.loads(run("evaluate", "people.csv", "release", "--json").out)


INPUTS = {
    "less.csv": people(20)[["sex", "job"]],
    "strange.csv": people(20).assign(sex="x"),
    "other.csv": pd.DataFrame({"a": [1], "b": [2]}),
    "head.csv": people(20).head(0),
    "note.doc": people(20),
    "twice.csv": people(20).set_axis(["sex", "age", "sex"], axis=1),
}
NO_FILE = (
    "public must be an existing file or the name of a dataset, got 'none.csv'; "
    "check the path, or see `pointillist methods --datasets`."
)
SAME = (
    "public must be another table than the private one, got {!r}; give a table that is public already, or leave it out."
)
BAD: list[tuple[tuple[str, ...], str]] = [
    ((*SYNTH, "--public", "public.csv", "--method", "mwem"), LEAVE_OUT.format("mwem")),
    ((*SYNTH, "--public", "none.csv", "--method", "mwem"), LEAVE_OUT.format("mwem")),
    *(((*SYNTH, "--method", method), NEEDED.format(method)) for method in SETTINGS),
    ((*SYNTH, "--public", "none.csv"), NO_FILE),
    ((*SYNTH, "--public", "none.csv", "--method", "pmw_pub"), NO_FILE),
    (
        (*SYNTH, "--public", "note.doc"),
        "public must be a file that ends in .csv, .tsv, .txt (also .gz, .bz2, .zst), .parquet, .sav, .dta, .sas7bdat "
        "or .xpt, got 'note.doc'; "
        "convert the table to one of these.",
    ),
    ((*SYNTH, "--public", "."), "public must be a file, not a folder, got '.'; give the path of one file."),
    (
        (*SYNTH, "--public", "twice.csv"),
        "public, column names must be different, got ['sex']; rename the repeated columns.",
    ),
    ((*SYNTH, "--public", "people.csv"), SAME.format("people.csv")),
    ((*SYNTH, "--public", "people.csv", "--method", "pmw_pub"), SAME.format("people.csv")),
    ((*SYNTH, "--public", "./people.csv"), SAME.format("./people.csv")),
    (("synth", "demo", "--epsilon", "1", "--public", "demo"), SAME.format("demo")),
    (
        ("synth", "people.csv", "--epsilon", "1", "--workload", "marginals:3", "--public", "less.csv"),
        "public must have all columns of at least one marginal of the workload, got sex, job; "
        "use a smaller K or a table with more columns.",
    ),
    (
        (*SYNTH, "--public", "less.csv", "--method", "pep_pub"),
        "public must have every column of the schema for pep_pub (it lacks age), "
        "got a table whose records would have to be extended to 12 cells; "
        "use gem_pub, or leave these columns out of the private table.",
    ),
    (
        (*SYNTH, "--public", "strange.csv"),
        "public, column 'sex' must only hold values of the schema, got 'x'; "
        'correct the table, list the value, or set other = "...".',
    ),
    (
        (*SYNTH, "--public", "other.csv"),
        "public must share at least one column with the schema, got ['a', 'b']; "
        "give a table with columns of the same names.",
    ),
    ((*SYNTH, "--public", "head.csv"), "public must have rows, got 0 rows; check the file."),
    (
        (*SYNTH, "--public", "public.csv", "--set", "gate=0.1"),
        "setting of auto must be one of its settings, got 'gate'; did you mean 'ties'.",
    ),
    (("evaluate", "people.csv", "people.csv", "--public", "none.csv"), NO_FILE),
    (
        ("evaluate", "people.csv", "people.csv", "--public", "less.csv"),
        "public must have every column of the schema for the best-mixture error (it lacks age), "
        "got a table whose records would have to be extended to 12 cells; "
        "use gem_pub, or leave these columns out of the private table.",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_wrong_inputs(arguments: tuple[str, ...], sentence: str, run: Run, home: Path, charges: list[Entry]) -> None:
    for name in set(arguments) & set(INPUTS):
        INPUTS[name].to_csv(home / name, index=False)
    before = tree(home)
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {sentence}\n"
    assert tree(home) == before
    assert charges == []


@pytest.mark.parametrize("name", ["public.csv", "public.csv.gz", "public.parquet"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00 no table"])
def test_a_public_file_that_cannot_be_read_is_blamed(
    name: str, content: bytes, run: Run, home: Path, charges: list[Entry]
) -> None:
    (home / name).write_bytes(content)
    before = tree(home)
    for arguments in (SYNTH, ("evaluate", "people.csv", "people.csv")):
        result = run(*arguments, "--public", name)
        assert (result.code, result.out) == (2, "")
        rule = r"must be a readable table \(.*\)" if content else "must not be an empty file"
        hint = "check the file" if content else "check how it was written"
        assert re.fullmatch(rf"error: public {rule}, got '{name}'; {hint}\.\n", result.err)
    assert tree(home) == before
    assert charges == []


@pytest.mark.parametrize("data", ["parts", "parts/*.csv"])
def test_a_file_of_the_private_folder_is_no_public_one(data: str, run: Run, home: Path, charges: list[Entry]) -> None:
    Path("parts").mkdir()
    Path("people.csv").rename("parts/1.csv")
    people(20).to_csv("parts/2.csv", index=False)
    before = tree(home)
    result = run("synth", data, "--schema", "people.schema.toml", *SYNTH[2:], "--public", "parts/2.csv")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {SAME.format('parts/2.csv')}\n"
    assert tree(home) == before
    assert charges == []


@pytest.mark.parametrize("way", ["absolute", "link", "hard link", "folder", "of the data"])
def test_the_private_file_through_another_path_is_no_public_one(
    way: str, run: Run, home: Path, charges: list[Entry]
) -> None:
    data, public = "people.csv", "linked.csv"
    if way == "absolute":
        public = str(home / "people.csv")
    elif way == "link":
        Path("linked.csv").symlink_to("people.csv")
    elif way == "hard link":
        Path("linked.csv").hardlink_to("people.csv")
    elif way == "folder":
        Path("below").mkdir()
        public = "below/../people.csv"
    else:
        Path("linked.csv").symlink_to("people.csv")
        Path("linked.schema.toml").symlink_to("people.schema.toml")
        data, public = public, data
    before = tree(home)
    result = run("synth", data, "--epsilon", "1", "--workload", "marginals:2", "--public", public)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {SAME.format(public)}\n"
    assert tree(home) == before
    assert charges == []
