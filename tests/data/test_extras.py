"""Constants, identifiers, descriptions and notes: they keep their places and are no part of the domain."""

from __future__ import annotations

import tomllib
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointillist.data.columns import Categorical, Constant, Identifier, Numeric
from pointillist.data.public import PublicTable
from pointillist.data.schema import About, Schema
from pointillist.data.table import Table
from pointillist.errors import InputError

SCHEMA = Schema.of(
    [
        Identifier("id", prefix="P", digits=4),
        Categorical("sex", ("f", "m")),
        Constant("year", 2024, "int16"),
        Constant("note"),
        Numeric("age", (0, 50, 100), integer=True),
        Identifier("key", kind="uuid"),
    ],
    about={"age": About("age at the census", "years"), "year": About("year of the census")},
    notes={"sex": "read from the file\ncheck it"},
)
DATA = pa.table(
    {
        "id": [{"any": "type"}] * 3,
        "sex": ["f", "m", "f"],
        "year": ["2024"] * 3,
        "note": [None, "", None],
        "age": [1, 2, 99],
        "key": ["x", "x", "x"],
    }
)


def test_the_domain_has_neither_constants_nor_identifiers() -> None:
    assert SCHEMA.domain.names == ("sex", "age")
    assert SCHEMA.names == ("id", "sex", "year", "note", "age", "key")
    assert [place for place, _ in SCHEMA.extras] == [0, 2, 3, 5]
    assert hash(SCHEMA) == hash(Schema.of(SCHEMA.everything, about=SCHEMA.about))


def test_decoded_tables_have_the_columns_of_the_original_in_their_order() -> None:
    arrow = Table.encode(DATA, SCHEMA).to_arrow(seed=3)
    assert arrow.column_names == list(SCHEMA.names)
    assert arrow.column("id").to_pylist() == ["P0001", "P0002", "P0003"]
    assert arrow.column("year").type == pa.int16()
    assert arrow.column("year").to_pylist() == [2024] * 3
    assert arrow.column("note").null_count == 3
    keys = [uuid.UUID(text) for text in arrow.column("key").to_pylist()]
    assert len(set(keys)) == 3
    assert {key.version for key in keys} == {4}
    assert arrow.equals(Table.encode(DATA, SCHEMA).to_arrow(seed=3))
    assert np.array_equal(Table.encode(arrow, SCHEMA).codes, Table.encode(DATA, SCHEMA).codes)


def test_extras_do_not_change_what_is_drawn_for_the_other_columns() -> None:
    plain = Schema(SCHEMA.columns)
    codes = Table.encode(DATA, SCHEMA).codes
    with_extras = Table(SCHEMA, codes).to_arrow(5)
    assert Table(plain, codes).to_arrow(5).equals(with_extras.select(["sex", "age"]))


def test_constants_and_identifiers_may_be_absent() -> None:
    assert Table.encode(DATA.select(["age", "sex"]), SCHEMA).to_arrow().column_names == list(SCHEMA.names)
    assert PublicTable.encode(DATA, SCHEMA).rows == 3


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (Constant("c", "a"), pa.array(["a", "b"])),
        (Constant("c", "a"), pa.array(["a", None])),
        (Constant("c", "a"), pa.array(["a", ""])),
        (Constant("c", 1), pa.array(["1", "2"])),
        (Constant("c", 1), pa.array([1.0, 1.5])),
        (Constant("c", 1), pa.array([1, None])),
        (Constant("c", True), pa.array(["true", "no"])),
        (Constant("c", 1.5), pa.array([1.5, 2.5])),
        (Constant("c"), pa.array([None, "x"])),
        (Constant("c", "x"), pa.array(["x", "y"]).dictionary_encode()),
    ],
)
def test_cells_other_than_the_constant_are_refused(column: Constant, cells: pa.Array) -> None:
    schema = Schema.of([Categorical("a", (0, 1)), column])
    with pytest.raises(InputError, match=r"column 'c' must only hold the constant of the schema, got .*; correct the"):
        Table.encode(pa.table({"a": [0, 1], "c": cells}), schema)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (Constant("c", "a"), pa.array(["a", "a"])),
        (Constant("c", ""), pa.array(["", ""])),
        (Constant("c", "01"), pa.array(["01", "01"])),
        (Constant("c", 1), pa.array(["1", "1"])),
        (Constant("c", 1), pa.array([1.0, 1.0])),
        (Constant("c", True), pa.array(["True", "true"])),
        (Constant("c", 1.5, "float32"), pa.array([1.5, 1.5])),
        (Constant("c"), pa.array([None, None], pa.int8())),
        (Constant("c", "x", "category"), pa.array(["x", "x"]).dictionary_encode()),
    ],
)
def test_the_constant_is_found_in_every_form(column: Constant, cells: pa.Array) -> None:
    schema = Schema.of([Categorical("a", (0, 1)), column])
    table = Table.encode(pa.table({"a": [0, 1], "c": cells}), schema)
    made = table.to_arrow().column("c").to_pylist()
    assert made == [column.value] * 2


def test_toml_keeps_everything_but_notes(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    assert '# read from the file\n# check it\n[[column]]\nname = "sex"' in text
    again = Schema.load(tmp_path / "s.toml")
    assert again == SCHEMA
    assert again.notes == {}
    assert again.about["age"] == About("age at the census", "years")
    assert Schema.from_dict(tomllib.loads(again.to_toml())) == SCHEMA
    assert again != Schema.of(SCHEMA.everything)


def test_projections_keep_what_is_named() -> None:
    part = SCHEMA.project(("age", "key", "sex"))
    assert part.names == ("age", "key", "sex")
    assert part.domain.names == ("age", "sex")
    assert (list(part.about), list(part.notes)) == (["age"], ["sex"])
    table = Table.encode(DATA, SCHEMA).project(("year", "age"))
    assert table.to_arrow().column_names == ["year", "age"]


def test_notes_cannot_leave_their_comment() -> None:
    schema = Schema((Categorical("a", (0, 1)),), notes={"a": "x\r\x85\x00y\n\n[[column]]"})
    text = schema.to_toml()
    assert Schema.from_dict(tomllib.loads(text)) == schema


def test_sequences() -> None:
    rng = np.random.default_rng(0)
    assert Identifier("i").make(3, rng).equals(pa.array([1, 2, 3]))
    assert Identifier("i", start=0, dtype="int32").make(2, rng).equals(pa.array([0, 1], pa.int32()))
    assert Identifier("i", start=99, digits=3).make(2, rng).to_pylist() == ["099", "100"]
    assert Identifier("i", prefix="x-", dtype="large_string").make(1, rng).type == pa.large_string()
    assert Identifier("i", kind="uuid").make(0, rng).to_pylist() == []


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Identifier("i", kind="guid"), "column 'i': kind must be one of sequence, uuid, got 'guid'"),
        (lambda: Identifier("i", start=-1), "column 'i': start must be a whole number in 0"),
        (lambda: Identifier("i", start=True), "column 'i': start must be a whole number in 0"),
        (lambda: Identifier("i", digits=99), "column 'i': digits must be a whole number in 0 .. 18"),
        (lambda: Identifier("i", prefix=3), "column 'i': prefix must be a text"),  # type: ignore[arg-type]
        (lambda: Identifier("i", kind="uuid", digits=3), "column 'i' must not have start, prefix or digits"),
        (lambda: Identifier("i", prefix="x", dtype="int64"), "column 'i': dtype must be a type that holds"),
        (lambda: Constant("c", [1]), "column 'c': value must be a text, a number or true/false"),  # type: ignore[arg-type]
        (lambda: Constant("c", "x", "int8"), "column 'c': dtype must be a type that holds the value"),
        (lambda: Constant("c", 300, "int8"), "column 'c': dtype must be a type that holds the value"),
        (lambda: Constant("c", 2**70), "column 'c': dtype must be a type that holds the value"),
        (lambda: Schema(SCHEMA.columns, extras=((9, Constant("c", 1)),)), "must have different positions in 0 .. 2"),
        (lambda: Schema(SCHEMA.columns, extras=(Constant("c", 1),)), "must be pairs of a position"),  # type: ignore[arg-type]
        (lambda: Schema.of([*SCHEMA.everything, Constant("age", 1)]), "column names must be different, got ['age']"),
        (lambda: Schema.of(SCHEMA.everything, ignore=["id"]), "ignore must not name columns of the schema"),
        (lambda: Schema.of([Constant("c", 1)]), "schema must have at least one column"),
        (lambda: Schema(SCHEMA.columns, about={"agee": About("x")}), "must be about columns of the schema"),
        (lambda: Schema(SCHEMA.columns, about={"age": "x"}), "must hold an About"),  # type: ignore[dict-item]
        (lambda: About(description=3), "column: description must be a text"),  # type: ignore[arg-type]
    ],
)
def test_refusals(build: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert words in str(caught.value)
