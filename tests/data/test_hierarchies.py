"""Hierarchies of long lists: files next to a schema, public shares, and what is said where they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import Run
from pointillist import Categorical, InputError, Release, Schema, synthesize
from pointillist.attestation import verify

FILE = "postcode,region,district,population\n0101,north,hills,700\n0102,north,lake,200\n0201,south,coast,100\n"
TABLE = 'format = 1\nreviewed = true\n\n[[column]]\nname = "postcode"\ntype = "categorical"\nhierarchy = "places.csv"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of commands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, file: str = FILE, more: str = "") -> Schema:
    (folder / "places.csv").write_text(file)
    (folder / "schema.toml").write_text(TABLE + more)
    return Schema.load(folder / "schema.toml")


def test_a_hierarchy_is_read_from_a_file_next_to_the_schema(tmp_path: Path) -> None:
    schema = load(tmp_path)
    wanted = Categorical(
        "postcode",
        ("0101", "0102", "0201"),
        parents=("north/hills", "north/lake", "south/coast"),
        shares=(700, 200, 100),
    )
    assert schema.columns == (wanted,)
    assert [level.tolist() for level in wanted.levels()] == [[0, 0, 1], [0, 1, 2]]
    assert "hierarchy" not in schema.to_toml()
    assert Schema.from_dict(schema.to_dict()) == schema


def test_levels_may_begin_with_the_finest(tmp_path: Path) -> None:
    turned = "code,district,region\na,hills,north\nb,lake,north\nc,coast,south\n"
    assert load(tmp_path, turned).columns[0].parents == ("north/hills", "north/lake", "south/coast")


def test_a_file_may_have_shares_or_values_alone(tmp_path: Path) -> None:
    column = load(tmp_path, "code,Share\na,0.25\nb,0.75\n").columns[0]
    assert (column.values, column.parents, column.shares) == (("a", "b"), (), (0.25, 0.75))
    assert load(tmp_path, "code\na\nb\n").columns[0] == Categorical("postcode", ("a", "b"))


def test_listed_values_choose_lines_of_the_file(tmp_path: Path) -> None:
    column = load(tmp_path, more='values = ["0201", "0101"]\n').columns[0]
    assert column.values == ("0201", "0101")
    assert column.parents == ("south/coast", "north/hills")
    assert column.shares == (100, 700)
    numbers = load(tmp_path, "code,region\n1,a\n2,b\n3,b\n", "values = [3, 1]\n").columns[0]
    assert numbers.values == (3, 1)


@pytest.mark.parametrize(
    ("file", "more", "words"),
    [
        ("postcode,region\na,x\na,x\nb,y\n", "", "must list every value once"),
        ("postcode,region\n,x\nb,y\n", "", "must have a value in every line"),
        ("postcode,region\na,\nb,y\n", "", "must name a group for each value"),
        ("postcode,region\na,x/y\nb,y\n", "", "must not have a / in a group"),
        ("postcode,region\na,x\nb\n", "", "must have 2 cells in every line"),
        ("postcode,one,two\na,x,p\nb,x,q\nc,y,p\n", "", "must be nested"),
        ("postcode,one,one\na,x,p\nb,x,q\n", "", "must have different names"),
        ("postcode,share,population\na,1,2\nb,1,2\n", "", "must have one column of shares"),
        ("postcode,share\na,much\nb,1\n", "", "must have shares that are numbers of 0 or more"),
        ("postcode,share\na,-1\nb,1\n", "", "must have shares that are numbers of 0 or more"),
        ("postcode,share\na,0\nb,0\n", "", "not all of them 0"),
        ("", "", "must name its columns in the first line"),
        (FILE, 'values = ["0101", "0999"]\n', "must list all values of the column, got ['0999']"),
        (FILE, "shares = [1, 1, 1]\n", "must not be given twice"),
        (FILE, "prefixes = [2]\n", "must be without prefixes"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, file: str, more: str, words: str) -> None:
    with pytest.raises(InputError, match="column 'postcode'") as caught:
        load(tmp_path, file, more)
    assert words in str(caught.value)


def test_a_missing_file_is_refused_and_a_text_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TABLE)
    with pytest.raises(InputError, match="must be a readable CSV file"):
        Schema.load(tmp_path / "schema.toml")
    table = {"name": "postcode", "type": "categorical", "hierarchy": str(tmp_path / "places.csv")}
    (tmp_path / "places.csv").write_text(FILE)
    with pytest.raises(InputError, match="must be the name of a CSV file, in a schema file"):
        Schema.from_dict({"format": 1, "column": [table]})


def test_schema_check_lists_the_problems_of_hierarchies_with_the_others(tmp_path: Path, run: Run) -> None:
    (tmp_path / "places.csv").write_text("postcode,region\na,x\na,x\n")
    (tmp_path / "schema.toml").write_text(TABLE + '\n[[column]]\nname = "age"\ntype = "numeric"\nedges = [3, 1]\n')
    done = run("schema", "check", "schema.toml")
    assert done.code == 2
    assert "must list every value once" in done.out
    assert "increasing bin edges" in done.out
    assert "2 problems" in done.out
    (tmp_path / "places.csv").write_text(FILE)
    (tmp_path / "schema.toml").write_text(TABLE)
    assert run("schema", "check", "schema.toml").code == 0


@pytest.mark.parametrize("shares", [(1, 2), (1, -1, 1), (0, 0, 0), (1, float("nan"), 1), (True, 1, 1)])
def test_shares_are_one_number_for_each_value(shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="column 'x': shares must be a number of 0 or more for each value"):
        Categorical("x", ("a", "b", "c"), shares=shares)


def test_a_release_needs_no_file(tmp_path: Path) -> None:
    codes = [f"{n:03}" for n in range(200)]
    lines = "".join(f"{code},{'ns'[n // 100]},{200 - n}\n" for n, code in enumerate(codes))
    schema = load(tmp_path, f"code,region,population\n{lines}", '\n[[column]]\nname = "x"\ntype = "categorical"\n'
                  'values = ["a", "b"]\n')  # fmt: skip
    rng = np.random.default_rng(0)
    share = np.arange(200, 0, -1) / np.arange(200, 0, -1).sum()
    place = rng.choice(200, 2000, p=share)
    table = pd.DataFrame({"postcode": np.array(codes)[place], "x": np.where(place < 100, "a", "b")})
    settings = {"rows": 20, "t_max": 10}
    release = synthesize(table, schema=schema, epsilon=1.0, workload="marginals:2", settings=settings)
    release.save(tmp_path / "out")
    (tmp_path / "places.csv").unlink()
    again = Release.load(tmp_path / "out")
    assert again.schema == release.schema
    assert again.schema.columns[0].base == schema.columns[0]
    assert verify(tmp_path / "out").ok
