"""The command line: what it does, and for each wrong input the sentence, the exit code and that nothing happened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.command import Run, tree

import pointillist
from pointillist.algorithms import METHODS
from pointillist.cli_tables import folder_of, schema_beside
from pointillist.data import datasets
from pointillist.data.schema import Categorical, Schema
from pointillist.privacy.ledger import Entry
from pointillist.queries.texts import FORMS
from pointillist.release import Release

SCHEMA = """\
format = 1
reviewed = true

[[column]]
name = "sex"
type = "categorical"
values = ["f", "m"]

[[column]]
name = "age"
type = "numeric"
edges = [0, 18, 65, 120]
integer = true

[[column]]
name = "job"
type = "categorical"
values = ["none", "some", "full"]

[[column]]
name = "kids"
type = "categorical"
values = [0, 1, 2]
"""
HEAD = "sex,age,job,kids"
ROWS = ["f,20,none,0", "m,70,some,1", "f,10,full,2", "m,30,full,0"] * 25
MORE = ["independent_columns", "summary", "columns", "pairs", "worst_marginals", "rules"]
FILES = ["model.npz", "release.json", "synthetic.csv", "synthetic.parquet", "transcript.npz"]


def table(*more: str, head: str = HEAD, rows: list[str] = ROWS) -> str:
    return "\n".join([head, *rows, *more]) + "\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder with a table and its schema."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    (tmp_path / "people.csv").write_text(table())
    (tmp_path / "people.schema.toml").write_text(SCHEMA)
    return tmp_path


# --- from a table to figures


def test_a_new_user_from_a_csv_to_figures(run: Run, home: Path, charges: list[Entry]) -> None:
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 90, n),
            "kids": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
            "zip": rng.choice(["01234", "00501"], n),
        }
    )
    frame.to_csv("town.csv", index=False)

    drafted = run("schema", "town.csv")
    assert drafted.code == 0
    assert drafted.err == ""
    lines = drafted.out.splitlines()
    assert lines == [
        "wrote town.schema.toml: 5 columns (1 id, 3 categorical, 1 numeric)",
        "It was drafted from the data: review every column and its comments, then set reviewed = true and run",
        "  pointillist synth town.csv --schema town.schema.toml --epsilon 1",
    ]
    refused = run("synth", "town.csv", "--epsilon", "1")
    assert refused.code == 2
    assert "must be reviewed by a person before use, got reviewed = false" in refused.err
    assert charges == []

    draft = Path("town.schema.toml")
    draft.write_text(draft.read_text().replace("reviewed = false", "reviewed = true"))
    made = run("synth", "town.csv", "--schema", "town.schema.toml", "--epsilon", "1")
    assert made.code == 0
    assert re.match(r"\(1, 6\.25\d*e-06\)-differential privacy, relation replace: ", made.out)
    assert f"wrote {home / 'release'}: 400 synthetic rows, model, transcript, ledger\n" in made.out
    assert "100% of the budget" in made.err
    # The codes of the only fine column, one-way marginals, ties, and marginals.
    labels = [entry.sensitivity for entry in charges]
    assert len(charges) > 1 + 4 + 3
    assert labels.count(2.0) in (3, 6)  # fewer if noise leaves the fine column a single group
    assert sorted(path.name for path in Path("release").iterdir()) == FILES
    synthetic = pd.read_csv("release/synthetic.csv", dtype={"zip": str})
    assert list(synthetic.columns) == ["id", "sex", "age", "kids", "zip"]
    assert set(synthetic["zip"]) <= {"01234", "00501"}
    assert synthetic["kids"].isna().any()

    figures = run("evaluate", "town.csv", "release")
    assert figures.code == 0
    assert figures.out.startswith("400 rows, 4 marginals, ")
    assert "the synthetic rows" in figures.out
    assert "the model" in figures.out
    assert figures.out.endswith("they are NOT private. Do not publish them with the release.\n")


def test_figures_as_json(run: Run) -> None:
    assert run("synth", "people.csv", "--epsilon", "1").code == 0
    result = run("evaluate", "people.csv", "release", "--json")
    assert (result.code, result.err) == (0, "")
    figures = json.loads(result.out)
    assert list(figures) == ["n", "queries", "rows", "model", *MORE]
    assert (figures["n"], figures["queries"]) == (100, 81)
    for part in ("rows", "model"):
        assert list(figures[part]) == ["max", "mean", "rmse", "tvd"]
        assert all(0 < value < 1 for value in figures[part].values())
    other = json.loads(run("evaluate", "people.csv", "release", "--json", "--workload", "marginals:1").out)
    assert other["queries"] == 2 + 3 + 3 + 3
    rows = json.loads(run("evaluate", "people.csv", "people.csv", "--json").out)
    zero = {"max": 0.0, "mean": 0.0, "rmse": 0.0, "tvd": 0.0}
    assert {name: rows[name] for name in rows if name not in MORE} == {"n": 100, "queries": 81, "rows": zero}
    assert rows["independent_columns"] == figures["independent_columns"] != zero
    synthetic = json.loads(run("evaluate", "people.csv", "release/synthetic.csv", "--json").out)
    assert {name: synthetic[name] for name in ("n", "queries", "rows")} == {
        "n": 100,
        "queries": 81,
        "rows": figures["rows"],
    }
    assert synthetic["columns"] == figures["columns"]


def test_every_option_of_synth(run: Run, home: Path) -> None:
    result = run(
        "synth", "people.csv", "--schema", "people.schema.toml", "--epsilon", "2", "--delta", "1e-5",
        "--relation", "add-remove", "--method", "mwem", "--workload", "marginals:2:3:1", "--group", "query",
        "--rounds", "5", "--rows", "17", "--seed", "9", "--set", "alpha=0.3", "--set", "past=false",
        "--out", "deep/er", "--insecure-noise-seed", "4",
    )  # fmt: skip
    assert result.code == 0
    assert result.out.startswith("NOT PRIVATE: made with INSECURE seeded noise (seed 4)")
    release = Release.load(home / "deep" / "er")
    about = release.description
    assert (about.rows, about.seed, about.privacy.private) == (17, 9, False)
    settings = about.method.settings
    assert (settings["rounds"], settings["alpha"], settings["past"]) == (5, 0.3, False)
    privacy = about.privacy
    assert (privacy.epsilon, privacy.delta, privacy.relation) == (2.0, 1e-5, "add-remove")
    assert (len(release.workload.queries), about.method.grouping) == (3, "query")
    assert len(release.log.rounds) == 5


def test_force_overwrites(run: Run, home: Path) -> None:
    assert run("synth", "people.csv", "--epsilon", "1").code == 0
    before = tree(home)
    assert run("synth", "people.csv", "--epsilon", "1").code == 2
    assert tree(home) == before
    assert run("synth", "people.csv", "--epsilon", "1", "--rows", "7", "--force").code == 0
    assert len(Release.load("release").table) == 7
    assert sorted(p.name for p in home.iterdir()) == ["people.csv", "people.schema.toml", "release"]
    assert run("schema", "people.csv").code == 2
    assert Schema.load("people.schema.toml").reviewed
    assert run("schema", "people.csv", "--force").code == 0
    assert not Schema.load("people.schema.toml").reviewed


def test_the_demo(run: Run, home: Path) -> None:
    result = run("demo")
    assert result.code == 0
    for line in ("The demo: a fictional town of 20,000 people", "differential privacy", "independent columns"):
        assert line in result.out
    assert sorted(path.name for path in (home / "demo").iterdir()) == FILES
    figures = run("evaluate", "demo", "demo", "--json")  # the folder does not hide the dataset of that name
    assert json.loads(figures.out)["n"] == 20_000


def test_lists(run: Run) -> None:
    methods = run("methods")
    assert methods.code == 0
    assert all(name in methods.out for name in METHODS)
    assert "…" not in methods.out  # nothing is cut off
    listed = run("methods", "--datasets")
    assert all(name in listed.out for name in datasets.NAMES)
    assert run("version").out.strip() == pointillist.__version__


def test_the_schema_of_a_dataset(run: Run) -> None:
    result = run("schema", "demo", "--out", "d.toml")
    assert result.code == 0
    assert "drafted" not in result.out
    assert Schema.load("d.toml") == datasets.load("demo").schema


# --- as a true process


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from pointillist.cli import main; main()"
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment | {"PYTHONIOENCODING": "utf-8"},
    )


def test_exit_codes_of_a_process(home: Path) -> None:
    good = command("synth", "people.csv", "--epsilon", "1")
    assert (good.returncode, sorted(p.name for p in (home / "release").iterdir())) == (0, FILES)
    bad = command("synth", "people.csv", "--epsilon", "0", "--out", "second")
    sentence = "error: epsilon must be a finite number above 0, got 0.0; give for example 1.\n"
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", sentence)
    usage = command("synth", "people.csv")
    assert usage.returncode == 2
    assert "Missing option '--epsilon'" in usage.stderr
    assert not (home / "second").exists()


# --- wrong inputs

GARBAGE = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
EDGES = ", ".join(map(str, range(101)))
WIDE = SCHEMA + "".join(
    f'\n[[column]]\nname = "x{i}"\ntype = "numeric"\nedges = [{EDGES}]\nmerge = false\n' for i in range(5)
)
INPUTS: dict[str, str | bytes] = {
    "empty.csv": "",
    "less.csv": table(head="sex,age,job", rows=[row.rpartition(",")[0] for row in ROWS]),
    "more.csv": table(head=HEAD + ",id", rows=[row + ",7" for row in ROWS]),
    "stranger.csv": table("x,20,none,0"),
    "oldest.csv": table("f,121,none,0"),
    "no-age.csv": table("f,,none,0"),
    "no-sex.csv": table(",20,none,0"),
    "nan.csv": table("f,nan,none,0"),
    "word.csv": table("f,old,none,0"),
    "half.csv": table("f,1.5,none,0"),
    "one-row.csv": table(rows=ROWS[:1]),
    "head.csv": table(rows=[]),
    "twice.csv": table(head="sex,age,sex,kids"),
    "ragged.csv": table("f,1"),
    "constant.csv": table(rows=["f,20,none,0"] * 30),
    "latin.csv": table().encode() + b"f,20,n\xe9,0\n",
    "book.xlsx": "PK",
    "noise.csv": GARBAGE,
    "noise.csv.gz": GARBAGE,
    "noise.parquet": GARBAGE,
    "wide.csv": table(head=HEAD + ",x0,x1,x2,x3,x4", rows=[row + ",1,2,3,4,5" for row in ROWS]),
    "wide.toml": WIDE,
    "broken.toml": "format = = 1\n",
    "draft.toml": SCHEMA.replace("reviewed = true", "reviewed = false"),
    "silent.toml": SCHEMA.replace("reviewed = true\n", ""),
    "single.toml": SCHEMA.replace('["f", "m"]', '["f"]'),
    "photos/cat.jpg": "",
    "folder.csv/x": "",
}
MISSING = "must not have missing values, got a missing value; set missing = true in the schema, or fill them."
STRANGER = "must only hold values of the schema, got {}; correct the table, list the value, or set {}."
BEYOND = "must lie between 0 and 120, got '121'; correct the table, widen the bounds, or set clip = true."
FILE = ("--schema", "people.schema.toml", "--epsilon", "1")
SYNTH = ("synth", "people.csv", "--epsilon", "1")
FORM = f"must have the form {', '.join(FORMS.values())}, or several of them joined by +"
DELTA = "delta must be above 0 and below 1, got {}; give for example 1e-9, a number well below 1/n."
READABLE = "data must be a readable table ({}), got {!r}; check the file."
REVIEWED = (
    "schema {} must be reviewed by a person before use, got reviewed = false; "
    "check that every value and bin edge in it is public knowledge, then set reviewed = true."
)

BAD: list[tuple[tuple[str, ...], str]] = [
    # the table
    (
        ("synth", "none.csv", *FILE),
        "data must be an existing file or the name of a dataset, got 'none.csv'; "
        "check the path, or see `pointillist methods --datasets`.",
    ),
    (("synth", "empty.csv", *FILE), "data must not be an empty file, got 'empty.csv'; check how it was written."),
    (
        ("synth", "less.csv", *FILE),
        "table must have every column of the schema (these are absent), got ['kids']; "
        "add the columns or take them out of the schema.",
    ),
    (
        ("synth", "more.csv", *FILE),
        "table must only have columns of the schema (these are not in it), got ['id']; "
        "drop them, or name them under ignore in the schema.",
    ),
    (("synth", "stranger.csv", *FILE), "column 'sex' " + STRANGER.format("'x'", 'other = "..."')),
    (("synth", "oldest.csv", *FILE), "column 'age' " + BEYOND),
    (("synth", "no-age.csv", *FILE), "column 'age' " + MISSING),
    (("synth", "no-sex.csv", *FILE), "column 'sex' " + MISSING),
    (("synth", "nan.csv", *FILE), "column 'age' " + MISSING),
    (
        ("synth", "word.csv", *FILE),
        "column 'age' must hold numbers, got 'old'; correct the file, list it under missing_values, or make the column "
        "categorical.",
    ),
    (
        ("synth", "half.csv", *FILE),
        "column 'age' must hold whole numbers because integer = true, got 1.5; set integer = false in the schema.",
    ),
    (
        ("synth", "people.csv", *FILE, "--on-bad-value", "drop"),
        "on_bad_value must be one of error, missing, got 'drop'; known are error, missing.",
    ),
    (
        ("synth", "people.csv", *FILE, "--memory", "much"),
        "memory must be a number of bytes with a unit (kB, MB, GB, TB), got 'much'; give for example 4GB.",
    ),
    (
        ("synth", "people.csv", *FILE, "--memory", "1kB"),
        "memory must be at least 64000000, got 1000; give for example 4GB.",
    ),
    (
        ("synth", "no/*.parquet", *FILE),
        "data must hold files with a table, such as .csv or .parquet, got 'no/*.parquet'; check the path.",
    ),
    (("synth", "one-row.csv", *FILE), "table must have at least 2 rows, got 1; give the whole table."),
    (("synth", "head.csv", *FILE), "table must have rows, got 0 rows; check the file."),
    (("synth", "twice.csv", *FILE), "column names must be different, got ['sex']; rename the repeated columns."),
    (
        ("synth", "ragged.csv", *FILE),
        READABLE.format("row 102, the header being row 1, has 2 cells, not 4", "ragged.csv"),
    ),
    (
        ("synth", "latin.csv", *FILE, "--encoding", "utf-8"),
        "data must be a readable table (it holds text that is not UTF-8), got 'latin.csv'; "
        "check the file, or name its encoding.",
    ),
    (
        ("synth", "book.xlsx", *FILE),
        "data must be a file that ends in .csv, .tsv, .txt (also .gz, .bz2, .zst), .parquet, .sav, .dta, .sas7bdat or "
        ".xpt, got 'book.xlsx'; convert the table to one of these.",
    ),
    *(
        (
            ("synth", folder, *FILE),
            f"data must hold files with a table, such as .csv or .parquet, got {folder!r}; check the path.",
        )
        for folder in ("photos", "folder.csv")
    ),
    (
        (
            "synth",
            "wide.csv",
            "--schema",
            "wide.toml",
            "--epsilon",
            "1",
            "--method",
            "mwem",
            "--workload",
            "marginals:1",
        ),
        "domain must be small enough for a histogram, as mwem needs, "
        "got 540,000,000,000 cells (2,160.0 GB of weights); use ...",
    ),
    *(
        (("synth", name, *FILE), f"data must be a readable table (...), got {name!r}; check the file.")
        for name in ("noise.csv", "noise.csv.gz", "noise.parquet")
    ),
    (
        ("synth", "demo", *FILE),
        "schema must not be given with a named dataset, which brings its own, got 'people.schema.toml'; "
        "leave --schema out.",
    ),
    (
        ("synth", "adult", "--epsilon", "1"),
        "POINTILLIST_DATA must name the folder that holds adult/adult.csv.gz, got no value; "
        "set this environment variable (docs/datasets.md says where the files come from).",
    ),
    # the schema
    (
        ("synth", "less.csv", "--epsilon", "1"),
        "schema must be given for a file (no less.schema.toml found), got none; "
        "draft one with `pointillist schema less.csv`, review it, and run again.",
    ),
    (
        (*SYNTH, "--schema", "none.toml"),
        "schema must be an existing file, got 'none.toml'; draft one with `pointillist schema DATA`.",
    ),
    (
        (*SYNTH, "--schema", "broken.toml"),
        "schema must be valid TOML (Invalid value (at line 1, column 10)), got 'broken.toml'; correct the file.",
    ),
    ((*SYNTH, "--schema", "draft.toml"), REVIEWED.format("draft.toml")),
    ((*SYNTH, "--schema", "silent.toml"), REVIEWED.format("silent.toml")),
    (
        (*SYNTH, "--schema", "single.toml"),
        "column 'sex' must have at least two values, got 1; drop the column, or list every value that it could take.",
    ),
    # the budget
    *(
        (
            ("synth", "people.csv", "--epsilon", text),
            f"epsilon must be a finite number above 0, got {shown}; give for example 1.",
        )
        for text, shown in (("0", "0.0"), ("-1", "-1.0"), ("nan", "nan"), ("inf", "inf"))
    ),
    (
        ("synth", "people.csv", "--epsilon", "101"),
        "epsilon must be at most 100, got 101.0; a larger one guarantees nothing: give for example 1.",
    ),
    *(
        ((*SYNTH, "--delta", text), DELTA.format(shown))
        for text, shown in (("0", "0.0"), ("1", "1.0"), ("2", "2.0"), ("nan", "nan"))
    ),
    (
        (*SYNTH, "--relation", "add-remove"),
        "delta must be given under add-remove, since 1/n^2 would reveal n, got None; "
        "give a number well below 1/n, for example 1e-9.",
    ),
    (
        (*SYNTH, "--relation", "add-remov"),
        "relation must be one of replace, add-remove, got 'add-remov'; did you mean 'add-remove'.",
    ),
    # the method
    ((*SYNTH, "--rounds", "0"), "rounds must be at least 1, got 0; give for example 50."),
    (
        (*SYNTH, "--rounds", "9"),
        "rounds must pick at most the workload's 4 groups, each once, got 9; "
        "use fewer rounds or picks, or group by query.",
    ),
    (
        (*SYNTH, "--rounds", "100000", "--set", "repeat=true"),
        "rounds must leave each measurement a noise below 100 rows (it would be 2,219), got 100000; "
        "use fewer rounds or a larger epsilon.",
    ),
    (
        ("synth", "people.csv", "--epsilon", "1e-4", "--group", "query", "--rounds", "100000", "--set", "repeat=true"),
        "rounds must leave each measurement a noise below 100 rows (it would be 1,757,393), got 100000; "
        "use fewer rounds or a larger epsilon.",
    ),
    ((*SYNTH, "--method", "mwme"), "method must be one of the methods, got 'mwme'; did you mean 'mwem'."),
    (
        (*SYNTH, "--set", "round=3"),
        "setting of mwem must be one of its settings, got 'round'; did you mean 'rounds'.",
    ),
    ((*SYNTH, "--set", "alpha=x"), "alpha must be a number, got 'x'; write for example alpha=0.5."),
    ((*SYNTH, "--set", "rounds=2.5"), "rounds must be a whole number, got '2.5'; write for example rounds=50."),
    ((*SYNTH, "--set", "past=maybe"), "past must be true or false, got 'maybe'; write for example past=true."),
    *(
        ((*SYNTH, "--set", text), f"set must have the form KEY=VALUE, got {text!r}; write for example rounds=50.")
        for text in ("alpha", "=3", "alpha=", "")
    ),
    *(
        (
            (*SYNTH, "--workload", f"marginals:{k}"),
            f"workload: K must be in 1 .. 4, the number of attributes, got {k}; use a smaller K.",
        )
        for k in (9, 0)
    ),
    *(
        ((*SYNTH, "--workload", text), f"workload {FORM}, got {text!r}; write for example marginals:3.")
        for text in ("garbage", "")
    ),
    (
        (*SYNTH, "--group", "marginals"),
        "group must be one of query, marginal, got 'marginals'; did you mean 'marginal'.",
    ),
    ((*SYNTH, "--rows", "0"), "rows must be in 1 .. 1,000,000,000, got 0; give for example 1000."),
    ((*SYNTH, "--seed", "-1"), "seed must be in 0 .. 9,223,372,036,854,775,807, got -1; use 0."),
    (
        (*SYNTH, "--insecure-noise-seed", "-1"),
        "insecure_noise_seed must be in 0 .. 9,223,372,036,854,775,807, got -1; use 0.",
    ),
    # the target
    (
        (*SYNTH, "--out", "photos"),
        "out must not exist already, got 'photos'; choose another folder, or replace the release with --force.",
    ),
    *(
        (
            (*SYNTH, "--out", name, "--force"),
            f"out must be a release with no other files in it to be replaced, got '{name}'; choose another folder.",
        )
        for name in ("photos", "people.csv")
    ),
    (
        (*SYNTH, "--out", "people.csv/deep/er"),
        "out must be in a folder that can be written to (not {home}/people.csv), "
        "got 'people.csv/deep/er'; choose another folder.",
    ),
    (
        ("demo", "--out", "photos"),
        "out must not exist already, got 'photos'; choose another folder, or replace the release with --force.",
    ),
    # drafts
    (
        ("schema", "constant.csv"),
        "table must have a column that a schema can describe, got column 'sex': a constant or identifiers; "
        "column 'age': a constant or identifiers; column 'job': a constant or identifiers; "
        "column 'kids': a constant or identifiers; check the file, or write its schema by hand.",
    ),
    (
        ("schema", "none.csv"),
        "data must be an existing file or the name of a dataset, got 'none.csv'; "
        "check the path, or see `pointillist methods --datasets`.",
    ),
    (("schema", "twice.csv"), "column names must be different, got ['sex']; rename the repeated columns."),
    (("schema", "head.csv"), "table must have rows, got 0 rows; check the file."),
    (("schema", "ragged.csv"), READABLE.format("row 102, the header being row 1, has 2 cells, not 4", "ragged.csv")),
    (
        ("schema", "people.csv"),
        "out must not exist already, got 'people.schema.toml'; choose another file, or overwrite it with --force.",
    ),
    *(
        (
            ("schema", "people.csv", "--force", "--out", name),
            f"out must be a file in an existing folder, got {name!r}; make the folder first, or choose another file.",
        )
        for name in ("none/x.toml", "photos")
    ),
    # figures
    (
        ("evaluate", "people.csv", "none"),
        "synth must be an existing release folder or table, got 'none'; check the path.",
    ),
    (
        ("evaluate", "people.csv", "photos"),
        "release must be a release folder with release.json in it, got 'photos'; give the folder that synth wrote.",
    ),
    (
        ("evaluate", "people.csv", "less.csv"),
        "table must have every column of the schema (these are absent), got ['kids']; "
        "add the columns or take them out of the schema.",
    ),
    (
        ("evaluate", "people.csv", "people.csv", "--workload", "x"),
        f"workload {FORM}, got 'x'; write for example marginals:3.",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_wrong_inputs(arguments: tuple[str, ...], sentence: str, run: Run, home: Path, charges: list[Entry]) -> None:
    for name in {name for word in arguments for name in INPUTS if name == word or name.startswith(f"{word}/")}:
        (home / name).parent.mkdir(exist_ok=True)
        content = INPUTS[name]
        (home / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = tree(home)
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    expected = f"error: {sentence}\n".replace("{home}", str(home.resolve()))
    if "..." in sentence and '"..."' not in sentence:  # words of another library, or a list of methods
        start, end = expected.split("...")
        assert result.err.startswith(start)
        assert result.err.endswith(end)
        assert result.err.count("\n") == 1
        assert result.err.rstrip("\n").isprintable()
    else:
        assert result.err == expected
    assert tree(home) == before
    assert charges == []


def test_another_schema_than_the_release(run: Run, home: Path) -> None:
    assert run("synth", "people.csv", "--epsilon", "1").code == 0
    (home / "other.toml").write_text(SCHEMA.replace("18, 65", "20, 65"))
    result = run("evaluate", "people.csv", "release", "--schema", "other.toml")
    assert (result.code, result.err) == (
        2,
        "error: synth must have the schema of the real table, got 'release'; "
        "give the table that the release was made from, and leave --schema out.\n",
    )
    assert run("evaluate", "people.csv", "release", "--schema", "people.schema.toml").code == 0


@pytest.mark.parametrize("data", [".", "..", "*.csv", "/", "../*"])
def test_the_current_folder_has_a_schema_beside_it(data: str, home: Path) -> None:
    folder = (folder_of(data) or Path(data)).resolve()
    assert schema_beside(data) == folder.parent / f"{folder.name}.schema.toml"


def test_a_pattern_and_values_outside_of_the_schema(run: Run, home: Path) -> None:
    (home / "parts" / "year=2024").mkdir(parents=True)
    rows = "".join(f"{'abc?'[n % 4]},{n % 2}\n" for n in range(400))
    for part in "12":
        (home / "parts" / "year=2024" / f"{part}.csv").write_text(f"x,y\n{rows}")
    columns = (Categorical("x", ("a", "b", "c"), missing=True), Categorical("y", (0, 1)))
    Schema(columns, ignore=("year",)).save(home / "parts.schema.toml")
    options = ("--epsilon", "1", "--workload", "marginals:1", "--set", "t_max=3", "--set", "rows=9", "--memory", "1GB")
    refused = run("synth", "parts/*/*.csv", *options)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "column 'x' must only hold values of the schema, got '?'" in refused.err
    done = run("synth", "parts/*/*.csv", *options, "--on-bad-value", "missing")
    assert done.code == 0
    assert "the table was read once" in done.err
    assert Release.load(home / "release").description.total == 800
    assert run("verify", "release", "--replay").code == 0
    for data in ("parts", "parts/*/*.csv", "parts/**/*.csv"):
        inside = run("synth", data, *options, "--out", "parts/release")
        assert "out must not lie in the folder of the table" in inside.err
    assert "data must hold files with a table" in run("synth", "*.nothing", *options, "--out", "new").err
    (home / "1.csv").write_text(f"x,y\n{rows}")
    schema = ("--schema", "parts.schema.toml", "--on-bad-value", "missing")
    assert run("synth", "[0-9].csv", *options, *schema, "--out", "new").code == 0
