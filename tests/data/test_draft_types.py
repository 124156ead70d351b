"""Drafts from types and declarations alone: no value of the data is in them."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
from pyarrow import parquet

from pointillist.data.draft import Draft
from pointillist.data.drafts.types import draft_from_types
from pointillist.data.schema import Schema
from pointillist.errors import InputError

SECRET = "what-nobody-may-see"


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [SECRET, "b"],
            "size": pd.Categorical(["m", "s"], ["s", "m", "l"], ordered=True),
            "n": pd.array([4711, None], "Int64"),
            "x": [4711.25, 2.0],
            "ok": [True, False],
            "day": [dt.date(1947, 1, 1), dt.date(1948, 1, 1)],
            "at": pd.to_datetime(["1947-01-01", "1948-01-01"]).tz_localize("Europe/Berlin"),
        }
    )


def tables(made: Draft) -> dict[str, dict[str, Any]]:
    """The columns of the file, after a way through TOML."""
    return {one["name"]: one for one in tomllib.loads(made.to_toml())["column"]}


def without_values(made: Draft) -> None:
    text = made.to_toml()
    assert text.startswith("# DRAFT, made from types and declarations alone: no value of the data was read.")
    assert "reviewed = false" in text
    assert SECRET not in text
    assert "4711" not in text
    assert "1947" not in text


@pytest.mark.parametrize("way", ["pandas", "polars", "arrow", "parquet"])
def test_types_of_tables(way: str, tmp_path: Path) -> None:
    data: Any = frame()
    if way == "polars":
        data = pl.from_pandas(data.drop(columns="size")).with_columns(
            pl.Series("size", ["m", "s"], dtype=pl.Enum(["s", "m", "l"]))
        )
    elif way == "arrow":
        data = pa.Table.from_pandas(data)
    elif way == "parquet":
        data.to_parquet(tmp_path / "t.parquet")
        data = tmp_path / "t.parquet"
    made = draft_from_types(data)
    without_values(made)
    found = tables(made)
    assert found["ok"]["values"] == [False, True]
    assert found["n"]["bounds"] == []
    assert found["n"]["integer"] is True
    assert found["day"]["type"] == ("categorical" if way == "pandas" else "date")  # objects of Python in pandas
    assert (found["at"]["type"], found["at"]["zone"]) == ("timestamp", "Europe/Berlin")
    assert found["name"]["values"] == []
    open_ones = {"name", "n", "x", "day", "at"}
    if way in ("pandas", "polars"):  # their types declare the values
        assert found["size"]["values"] == ["s", "m", "l"]
        assert found["size"]["ordered"] is True
    else:
        open_ones.add("size")
    assert set(made.unfinished) == open_ones
    assert all("TODO" in made.notes[name] for name in open_ones)
    with pytest.raises(InputError):
        _ = made.schema


def test_no_cell_of_a_parquet_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame().to_parquet(tmp_path / "t.parquet")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("cells were read")

    monkeypatch.setattr(parquet, "read_table", refuse)
    monkeypatch.setattr(parquet.ParquetFile, "read", refuse)
    assert len(draft_from_types(tmp_path / "t.parquet").tables) == 7


def test_labels_of_spss(tmp_path: Path) -> None:
    data = pd.DataFrame({"sex": [1.0, 2.0], "age": [4711.0, 30.0], "who": [SECRET, "b"]})
    labels = {"sex": {1: "male", 2: "female", 3: "other"}}
    pyreadstat.write_sav(data, tmp_path / "t.sav", column_labels={"age": "Years"}, variable_value_labels=labels)
    made = draft_from_types(tmp_path / "t.sav")
    without_values(made)
    found = tables(made)
    assert found["sex"]["values"] == ["male", "female", "other"]
    assert found["age"]["description"] == "Years"
    assert made.unfinished == ("age", "who")


CODES = """\
name;type;values;min;max;missing;description
id;id;;;;;
sex;categorical;female|male|other;;;no;Sex, as stated
rank;ordinal;low|medium|high;;;;
kids;integer;0|1|2|3;;;no;
age;integer;;0;120;no;Age in years
height;number;;0.5;2.5;;In metres
born;date;;1900-01-01;2025-12-31;no;
at;datetime;;2020-01-01;2020-12-31;no;
ok;boolean;;;;no;
word;string;;;;;
odd;whatsit;;;;;
"""


def test_code_books(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text(CODES)
    made = draft_from_types(str(tmp_path / "codes.csv"), ignore=["odd"])
    found = tables(made)
    assert found["sex"] == {
        "name": "sex", "type": "categorical", "values": ["female", "male", "other"], "description": "Sex, as stated",
    }  # fmt: skip
    assert found["rank"]["ordered"] is True
    assert found["rank"]["missing"] is True
    assert found["kids"]["values"] == [0, 1, 2, 3]
    assert found["age"] == {
        "name": "age", "type": "numeric", "bounds": [0, 120], "integer": True, "description": "Age in years",
    }  # fmt: skip
    assert found["height"]["bounds"] == [0.5, 2.5]
    assert found["born"]["bounds"] == ["1900-01-01", "2025-12-31"]
    assert found["id"]["type"] == "id"
    assert made.unfinished == ("word",)
    assert made.left_out == {"odd": "as asked"}
    done = Draft(tuple(one for one in made.tables if one["name"] != "word"), {}, {}, True)
    assert isinstance(done.schema, Schema)
    assert not done.schema.reviewed


def test_tables_are_no_code_books(tmp_path: Path) -> None:
    """The cells of a table that happens to have a column "name" must not become names of columns."""
    (tmp_path / "t.csv").write_text(f"name,type,amount\n{SECRET},x,3\nb,y,4\n")
    with pytest.raises(InputError, match="and no others than values, min, max, missing, description, unit") as caught:
        draft_from_types(tmp_path / "t.csv")
    assert SECRET not in str(caught.value)
    (tmp_path / "t.csv").write_text(f"name,type\n{SECRET},x\nb,y\n")
    with pytest.raises(InputError, match="most of them are not") as caught:
        draft_from_types(tmp_path / "t.csv")
    assert SECRET not in str(caught.value)


def test_what_a_type_says_is_personal_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("name,type,unit\nmail,email,\nage,integer,years\nodd,whatsit,\nok,boolean,\n")
    made = draft_from_types(tmp_path / "c.csv")
    assert set(made.left_out) == {"mail"}
    assert tables(made)["age"]["unit"] == "years"
    assert made.notes["odd"].startswith("The type 'whatsit' is not known.\nTODO: values")
    columns = {
        "a": {"sdtype": "email"}, "b": {"sdtype": "categorical", "pii": True}, "c": {"sdtype": "ssn", "pii": False},
        "d": {"sdtype": "id"}, "e": {"sdtype": "unknown", "pii": True},
    }  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    assert set(draft_from_types(tmp_path / "s.json").left_out) == {"a", "b", "e"}
    fields = [{"name": "m", "type": "string", "format": "email"}, {"name": "n", "type": "integer"}]
    (tmp_path / "f.json").write_text(json.dumps({"fields": fields}))
    assert set(draft_from_types(tmp_path / "f.json").left_out) == {"m"}


def test_frictionless(tmp_path: Path) -> None:
    fields = [
        {"name": "key", "type": "string"},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "title": "Age"},
        {"name": "day", "type": "date", "format": "%d.%m.%Y"},
        {"name": "x", "type": "any"},
    ]
    schema = {"fields": fields, "primaryKey": "key", "missingValues": ["", "-9", "n/a"]}
    for content in (schema, {"resources": [{"name": "t", "schema": schema}]}):
        (tmp_path / "t.json").write_text(json.dumps(content))
        found = tables(draft_from_types(tmp_path / "t.json"))
        assert found["key"]["type"] == "id"
        assert found["sex"] == {"name": "sex", "type": "categorical", "values": ["f", "m"]}
        assert found["age"]["bounds"] == [0, 120]
        assert found["age"]["missing_values"] == ["-9", "n/a"]
        assert found["age"]["description"] == "Age"
        assert found["day"]["format"] == "%d.%m.%Y"
        assert found["x"]["values"] == []


def test_metadata_of_sdv(tmp_path: Path) -> None:
    columns = {
        "guest": {"sdtype": "id"},
        "room": {"sdtype": "categorical"},
        "fee": {"sdtype": "numerical", "computer_representation": "Float"},
        "beds": {"sdtype": "numerical", "computer_representation": "Int64"},
        "in": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "ok": {"sdtype": "boolean"},
    }
    one = {"columns": columns, "primary_key": "guest"}
    for content in (one, {"tables": {"guests": one}, "METADATA_SPEC_VERSION": "V1"}):
        (tmp_path / "t.json").write_text(json.dumps(content))
        found = tables(draft_from_types(tmp_path / "t.json"))
        assert found["guest"]["type"] == "id"
        assert found["in"] == {
            "name": "in", "type": "date", "bounds": [], "format": "%d %b %Y", "missing": True,
        }  # fmt: skip
        assert found["beds"]["integer"] is True
        assert "integer" not in found["fee"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1,2\n", "must be a code book with the columns name and type"),
        ("t.json", "{", "must be valid JSON"),
        ("t.json", "{}", "must be a Table Schema of Frictionless (fields) or metadata of SDV (columns)"),
        ("t.json", "[1]", "must be a Table Schema"),
        ("t.json", '{"tables": {"a": {"columns": {}}, "b": {"columns": {}}}}', "must describe one table"),
        ("t.parquet", "no", "must be a readable table"),
        ("t.xlsx", "no", "must be a file with types"),
    ],
)
def test_sources_that_are_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as caught:
        draft_from_types(tmp_path / name)
    assert message in str(caught.value)
    with pytest.raises(InputError, match="must be an existing file"):
        draft_from_types(tmp_path / "none.parquet")
