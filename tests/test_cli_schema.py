"""The commands of schemas: drafts in any dialect, and every problem at once."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.command import Run
from tests.planted import SECRET, shows_too_much

from pointillist.data.schema import Schema
from pointillist.data.table import read_file

ROOT = Path(__file__).resolve().parents[1]

GERMAN = "name;größe;seit\n" + "".join(
    f"{'Zoë' if n % 2 else 'Bo'};1,{n % 10}5;{n % 28 + 1:02d}.03.2020\n" for n in range(60)
)
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
bounds = [0, 100]
integer = true
[[column]]
name = "kids"
type = "categorical"
values = [0, 1, 2]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    return tmp_path


def test_a_draft_of_a_file_in_another_dialect(run: Run, home: Path) -> None:
    (home / "people.csv").write_bytes(GERMAN.encode("cp1252"))
    (home / "people.csv").chmod(0o640)
    result = run("schema", "people.csv")
    assert result.code == 0
    assert result.err == "read people.csv: semicolon, cp1252, decimal comma\n"
    assert result.out.splitlines() == [
        "wrote people.schema.toml: 3 columns (1 categorical, 1 numeric, 1 date)",
        "It was drafted from the data: review every column and its comments, then set reviewed = true and run",
        "  pointillist synth people.csv --schema people.schema.toml --epsilon 1",
    ]
    assert stat.S_IMODE((home / "people.schema.toml").stat().st_mode) & 0o027 == 0
    schema = Schema.load("people.schema.toml")
    assert schema.names == ("name", "größe", "seit")
    assert run("schema", "check", "people.schema.toml", "people.csv").code == 0


def test_settings_of_the_dialect_are_taken(run: Run, home: Path) -> None:
    (home / "t.txt").write_text("x~1\ny~2\nx~3\n")
    assert run("schema", "t.txt", "--separator", "~", "--no-header").code == 0
    assert Schema.load("t.schema.toml").names == ("column1", "column2")
    assert run("schema", "t.txt", "--separator", "~", "--header", "--force").code == 0
    assert Schema.load("t.schema.toml").names == ("x", "1")
    refused = run("schema", "t.txt", "--force", "--encoding", "klingon")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "encoding must be an encoding that Python knows, got 'klingon'" in refused.err


def test_options_may_come_first_and_the_command_may_be_named(run: Run, home: Path) -> None:
    (home / "t.csv").write_text("a,b\n" + "x,1\ny,2\n" * 5)
    assert run("schema", "--out", "one.toml", "t.csv").code == 0
    assert run("schema", "draft", "t.csv", "--out", "two.toml").code == 0
    assert Path("one.toml").read_text() == Path("two.toml").read_text()
    shown = run("schema", "--help")
    assert shown.code == 0
    assert "check" in shown.out
    assert "draft" in shown.out
    assert "--from-types" in run("schema", "draft", "--help").out


def test_columns_can_be_left_out(run: Run, home: Path) -> None:
    rows = "".join(f"{'fm'[n % 2]},{SECRET} {n} is what they said,{n}\n" for n in range(60))
    (home / "t.csv").write_text("sex,said,x\n" + rows)
    result = run("schema", "t.csv", "--ignore", "x")
    assert result.out.splitlines()[1:3] == [
        "left out 'said': free text: long cells with many different values",
        "left out 'x': as asked",
    ]
    assert not shows_too_much(result.out + Path("t.schema.toml").read_text())
    wrong = run("schema", "t.csv", "--ignore", "y", "--force")
    assert wrong.code == 2
    assert "ignore must be a column of the table, got 'y'" in wrong.err


def test_a_draft_from_types(run: Run, home: Path) -> None:
    pd.DataFrame({"who": [SECRET], "n": [4711], "ok": [True]}).to_parquet("t.parquet")
    result = run("schema", "t.parquet", "--from-types")
    assert result.code == 0
    assert result.out.splitlines() == [
        "wrote t.schema.toml: 3 columns (2 categorical, 1 numeric)",
        "to complete 'who': see its TODO in the file",
        "to complete 'n': see its TODO in the file",
        "No value of the data was read. Complete and review every column, then set reviewed = true.",
    ]
    text = Path("t.schema.toml").read_text()
    assert "4711" not in text
    assert "<000>" not in text
    assert "# TODO: bounds = [LOW, HIGH]" in text
    checked = run("schema", "check", "t.schema.toml")
    assert checked.code == 2
    assert checked.out.splitlines()[-1] == "2 problems"


def test_every_problem_of_a_schema_is_listed(run: Run, home: Path) -> None:
    bad = SCHEMA.replace('["f", "m"]', "[]").replace("[0, 100]", "[100, 0]").replace("format = 1", "format = 2")
    (home / "s.toml").write_text(bad + '[[column]]\nname = "kids"\ntype = "sort"\n')
    result = run("schema", "check", "s.toml")
    assert result.code == 2
    lines = result.out.splitlines()
    assert lines[-1] == "5 problems"
    for start in (
        "column 'sex' must list its values",
        "column 'age': bounds must be two finite numbers",
        "column 'kids': type must be one of",
        "schema: format must be 1, got 2",
        "column names must be different, got ['kids']",
    ):
        assert sum(line.startswith(start) for line in lines) == 1, start
    (home / "good.toml").write_text(SCHEMA)
    good = run("schema", "check", "good.toml")
    assert (good.code, good.out) == (0, "good.toml has no problems: 3 columns (2 categorical, 1 numeric)\n")
    (home / "draft.toml").write_text(SCHEMA.replace("reviewed = true", "reviewed = false"))
    assert "It is not reviewed yet" in run("schema", "check", "draft.toml").out


def test_every_problem_of_a_table_is_listed(run: Run, home: Path) -> None:
    (home / "s.toml").write_text(SCHEMA)
    (home / "t.csv").write_text(f"sex,age,name\nf,20,x\n{SECRET},200,y\n,x,z\n")
    result = run("schema", "check", "s.toml", "t.csv")
    assert result.code == 2
    assert not shows_too_much(result.out)
    lines = result.out.splitlines()
    assert lines[-1] == "4 problems"
    for start in (
        "table must have every column of the schema (these are absent), got ['kids']",
        "table must only have columns of the schema (these are not in it), got ['name']",
        "column 'sex' must only hold values of the schema",
        "column 'age' must hold numbers",
    ):
        assert sum(line.startswith(start) for line in lines) == 1, start
    (home / "half.toml").write_text(SCHEMA.replace('["f", "m"]', "[]"))
    both = run("schema", "check", "half.toml", "t.csv")
    assert both.code == 2
    assert any(line.startswith("column 'sex' must list its values") for line in both.out.splitlines())
    assert any(line.startswith("column 'age' must hold numbers") for line in both.out.splitlines())
    (home / "fits.csv").write_text("sex,age,kids\nf,20,1\n")
    fits = run("schema", "check", "s.toml", "fits.csv")
    assert (fits.code, fits.out.splitlines()[0][:44]) == (0, "s.toml has no problems, and fits.csv fits it")


def test_every_rule_is_checked(run: Run, home: Path) -> None:
    """Rules are about the columns of the file; each wrong one is listed with its number, whatever else is wrong."""
    good = '[[rule]]\nif = "age < 15"\nthen = "kids == 0"\n[[rule]]\nalways = "age >= 0"\n'
    (home / "s.toml").write_text(SCHEMA + good)
    result = run("schema", "check", "s.toml")
    assert (result.code, result.out) == (0, "s.toml has no problems: 3 columns (2 categorical, 1 numeric)\n")
    more = '[[rule]]\nnever = "age <"\n[[rule]]\nnever = "ages < 3"\n[[rule]]\nalways = "sex < 3"\n'
    wrong = SCHEMA.replace('["f", "m"]', "[]") + good + more + '[[rule]]\nalways = "kids < sex"\n'
    (home / "s.toml").write_text(wrong)
    lines = run("schema", "check", "s.toml").out.splitlines()
    assert [line[:15] for line in lines] == ["column 'sex' mu", "rule 3: conditi", "rule 4: rule mu", "3 problems"]
    (home / "s.toml").write_text(SCHEMA + more)
    lines = run("schema", "check", "s.toml").out.splitlines()
    assert [line[:7] for line in lines] == ["rule 1:", "rule 2:", "rule 3:", "3 probl"]
    (home / "s.toml").write_text(SCHEMA + '[[rule]]\nnever = "age < 50"\n[[rule]]\nalways = "age < 50"\n')
    assert "must allow at least one row together" in run("schema", "check", "s.toml").out


def test_files_that_cannot_be_checked(run: Run, home: Path) -> None:
    assert run("schema", "check", "none.toml").code == 2
    (home / "s.toml").write_text("[[")
    result = run("schema", "check", "s.toml")
    assert result.code == 2
    assert "must be valid TOML" in result.err
    (home / "s.toml").write_text("format = 1\n")
    result = run("schema", "check", "s.toml")
    assert "schema must have at least one column" in result.out


def test_synth_and_evaluate_take_a_dialect(run: Run, home: Path) -> None:
    rows = "".join(f"{'fm'[n % 2]}~{n % 90}~{n % 3}\n" for n in range(200))
    (home / "t.csv").write_text(rows)
    text = SCHEMA.replace('"sex"', '"column1"').replace('"age"', '"column2"').replace('"kids"', '"column3"')
    text = text.replace("bounds = [0, 100]", "edges = [0, 30, 60, 100]")
    (home / "t.schema.toml").write_text(text)
    how = ("--separator", "~", "--no-header")
    made = run("synth", "t.csv", "--epsilon", "1", "--workload", "marginals:1", *how)
    assert made.code == 0, made.err
    assert "read t.csv: separator '~', UTF-8, no header" in made.err
    shown = run("evaluate", "t.csv", "release", "--json", *how)
    assert shown.code == 0
    assert shown.out.startswith("{")
    assert run("evaluate", "t.csv", "release", "--json").code == 2


def test_the_messy_table_of_the_page(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of mess in it is recognised."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    from messy_table import write_messy_table

    write_messy_table("customers.csv")
    sys.modules.pop("messy_table", None)
    result = run("schema", "customers.csv")
    assert result.code == 0
    kinds = {column.name: column.to_dict()["type"] for column in Schema.load("customers.schema.toml").everything}
    assert kinds == {
        "row": "id", "customer_id": "id", "country": "constant", "born": "date", "postcode": "categorical",
        "income": "numeric", "debt": "numeric", "children": "categorical", "satisfaction": "categorical",
        "called": "timestamp", "visits": "numeric",
    }  # fmt: skip
    assert "left out 'email'" in result.out
    assert "left out 'remark'" in result.out
    assert run("schema", "check", "customers.schema.toml", "customers.csv").code == 0


def test_the_page_about_your_table(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands and its Python run in the order of the page, and the shown output is what the command prints."""
    page = (ROOT / "docs" / "your-table.md").read_text(encoding="utf-8")
    monkeypatch.syspath_prepend(ROOT / "docs")
    names: dict[str, object] = {"__name__": "page"}
    ran = []
    shown = ""
    for kind, body in re.findall(r"^```(python|sh|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if kind == "python" and "synthesize" not in body:
            exec(compile(body, "your-table.md", "exec"), names)
        elif kind == "sh":
            words = body.split()
            result = run(*words[1:])
            assert result.code == 0, result.err
            ran.append(words[1])
            shown = result.err + result.out
        elif kind == "text":
            assert body == shown
    sys.modules.pop("messy_table", None)
    assert ran == ["schema", "schema", "synth", "evaluate"]
    real = read_file("customers.csv")
    synthetic = read_file("release/synthetic.csv")
    assert synthetic.column_names == [name for name in real.column_names if name not in ("email", "remark")]
    assert synthetic.column("row").to_pylist()[:3] == ["1", "2", "3"]
    assert set(synthetic.column("country").to_pylist()) == {"DE"}
    assert set(synthetic.column("satisfaction").to_pylist()) <= {"low", "medium", "high", "NA"}
    assert all(re.fullmatch(r"\d\d\.\d\d\.\d{4}", day) for day in synthetic.column("born").to_pylist())
    assert all(re.fullmatch(r"\d+(\.\d{1,2})?|", pay) for pay in synthetic.column("income").to_pylist())
