"""Columns to be discovered: how they are declared, read, and become lists of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointillist import Categorical, Discovered, InputError, Rule, Schema, Table
from pointillist.data import opening
from pointillist.data.columns.discovered import LONGEST_VALUE, MOST_DISCOVERED
from pointillist.data.opening import Numbered, OpenRows, listed_column, numbered
from pointillist.data.sources import LaterSource, TableSource
from pointillist.data.table import problems_in

TOWN = {"name": "town", "type": "categorical", "values": "discover"}
SEX = {"name": "sex", "type": "categorical", "values": ["f", "m"]}


def spec_of(**more: Any) -> dict[str, Any]:
    return {"format": 1, "reviewed": True, "column": [TOWN | more, SEX]}


# --- in the schema


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"missing": True},
        {"other": "elsewhere", "dtype": "category"},
        {"missing_values": ["?"], "missing_as": "NA", "merge": False, "prefixes": [2, 3]},
    ],
    ids=str,
)
def test_a_column_is_written_and_read_again(more: dict[str, Any], tmp_path: Path) -> None:
    schema = Schema.from_dict(spec_of(**more))
    column = schema.columns[0]
    assert isinstance(column, Discovered)
    assert (column.name, column.missing, column.size) == ("town", True, MOST_DISCOVERED + 2)
    schema.save(tmp_path / "s.toml")
    assert 'values = "discover"' in (tmp_path / "s.toml").read_text()
    assert Schema.load(tmp_path / "s.toml") == schema


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"missing": False}, "column 'town': missing must be true where values are discovered"),
        ({"ordered": True}, "must only have the keys"),
        ({"parents": ["a"]}, "must only have the keys"),
        ({"shares": [1.0]}, "must only have the keys"),
        ({"dtype": "int64"}, "column 'town': dtype must be one of string"),
        ({"other": 3}, "column 'town': other must be a text"),
        ({"other": ""}, "column 'town': other must be a text"),
        ({"other": "?", "missing_values": ["?"]}, "must not be a spelling of missing"),
        ({"merge": 1}, "column 'town': merge must be true or false"),
        ({"prefixes": [3, 2]}, "must be increasing lengths"),
        ({"values": "find"}, "must have a list of values, got 'find'"),
    ],
    ids=str,
)
def test_what_cannot_be_declared(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        Schema.from_dict(spec_of(**more))


@pytest.mark.parametrize("rule", [Rule(never='town == "Aba" and sex == "f"'), Rule(always="town is not missing")])
def test_rules_cannot_be_about_them(rule: Rule) -> None:
    with pytest.raises(InputError, match="rule must not be about columns whose values are discovered, got"):
        Schema((Discovered("town"), Categorical("sex", ("f", "m"))), rules=(rule,))


def test_a_table_is_not_encoded_before_the_values_are_known() -> None:
    schema = Schema.from_dict(spec_of())
    with pytest.raises(InputError, match="column 'town' must list its values here"):
        Table.encode(pa.table({"town": ["Aba"], "sex": ["f"]}), schema)


def test_a_schema_check_takes_any_values_and_finds_other_problems() -> None:
    schema = Schema.from_dict(spec_of())
    assert problems_in(pa.table({"town": ["Aba", None], "sex": ["f", "m"]}), schema) == []
    assert len(problems_in(pa.table({"town": ["Aba"], "sex": ["x"]}), schema)) == 1
    assert len(problems_in(pa.table({"town": [["Aba"]], "sex": ["f"]}), schema)) == 1


# --- as a list


@pytest.mark.parametrize(
    ("column", "values", "labels", "missing_values", "missing_as"),
    [
        (Discovered("t"), ["a", "b"], ("a", "b", "other"), (), None),
        (Discovered("t"), [], ("other",), (), None),
        (Discovered("t"), ["a", "other"], ("a", "other", "(other)"), (), None),
        (Discovered("t"), ["(other)", "other"], ("(other)", "other", "((other))"), (), None),
        (Discovered("t", other="other"), ["a", "other"], ("a", "other"), (), None),
        (Discovered("t"), ["?", "a"], ("a", "other"), ("?",), "?"),
        (Discovered("t"), ["-", "?", "a"], ("a", "other"), ("-", "?"), None),
        (Discovered("t", missing_values=("x",)), ["?", "a", "x"], ("a", "other"), ("x", "?"), None),
        (Discovered("t", missing_values=("x",), missing_as="y"), ["a", "x", "y"], ("a", "other"), ("x",), "y"),
        (Discovered("t", missing_as="other"), ["a"], ("a", "(other)"), (), "other"),
        (Discovered("t", other="?"), ["?", "a"], ("a", "?"), (), None),
    ],
    ids=str,
)
def test_the_list_that_follows(
    column: Discovered, values: list[str], labels: Any, missing_values: Any, missing_as: str | None
) -> None:
    made = listed_column(column, values)
    assert made.labels == labels
    assert (made.missing, made.missing_values, made.missing_as) == (True, missing_values, missing_as)
    assert Categorical.from_dict(made.to_dict()) == made
    assert made.size == len(labels) + 1


def test_a_list_keeps_what_was_declared() -> None:
    made = listed_column(Discovered("t", dtype="category", merge=True, prefixes=(1, 2)), ["ab", "ac", "b"])
    assert (made.output_dtype, made.fine, made.prefixes) == ("category", True, (1, 2))
    assert [level.tolist() for level in listed_column(Discovered("t", prefixes=(1,)), []).levels()] == [[0, 1]]


# --- the rows


def rows_of(cells: Any, pieces: int = 1) -> OpenRows:
    schema = Schema((Discovered("t"), Categorical("b", (0, 1))))
    table = pa.table({"t": pa.chunked_array(np.array_split(np.array(cells, object), pieces), pa.string())})
    arrow = table.append_column("b", pa.array([0] * len(cells)))
    return OpenRows(TableSource(Table.encode(arrow, numbered(schema))), schema)


@pytest.mark.parametrize("pieces", [1, 3])
def test_values_are_counted_in_the_order_of_their_letters(pieces: int) -> None:
    cells = ["b", None, "a", "", "b", "x" * LONGEST_VALUE, "y" * (LONGEST_VALUE + 1), "a", "b"]
    values, counts = rows_of(cells, pieces).values_of("t")
    assert values == ["a", "b", "x" * LONGEST_VALUE]
    assert counts.tolist() == [2, 3, 1]


def test_rows_are_coded_as_under_a_declared_list() -> None:
    cells = ["b", None, "a", "", "c", "?", "y" * 1000, "y" * 1001, "a"]
    rows = rows_of(cells, 2)
    listed = Schema((listed_column(Discovered("t"), ["?", "a", "b"]), Categorical("b", (0, 1))))
    wanted = Table.encode(pa.table({"t": cells, "b": [0] * len(cells)}), listed).codes[0]
    found = np.concatenate([batch[0] for batch in rows.listed(listed).batches()])
    assert found.tolist() == wanted.tolist() == [1, 3, 0, 3, 2, 3, 2, 2, 0]


@pytest.mark.parametrize(
    "cells",
    [
        [3, 1, None, 3],
        [True, False, None, True],
        [1.5, float("nan"), None, 1.5],
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
    ids=str,
)
def test_cells_of_other_types_are_texts(cells: Any) -> None:
    schema = Schema((Discovered("t"), Categorical("b", (0, 1))))
    arrow = pa.table({"t": cells, "b": [0] * len(cells)})
    rows = OpenRows(TableSource(Table.encode(arrow, numbered(schema))), schema)
    values, _ = rows.values_of("t")
    listed = Schema((listed_column(Discovered("t"), values[:1]), Categorical("b", (0, 1))))
    found = np.concatenate([batch[0] for batch in rows.listed(listed).batches()])
    assert found.tolist() == Table.encode(arrow, listed).codes[0].tolist()


def test_rows_cannot_be_counted_before_the_values_are_known() -> None:
    with pytest.raises(ValueError, match="must be discovered before"):
        rows_of(["a"]).batches()


def test_too_many_different_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MOST_DIFFERENT", 3)
    rows_of(["a", "b", "c", "a"])
    with pytest.raises(InputError, match="column 't' must have at most 3 different values, got more; name it under"):
        rows_of(["a", "b", "c", "d"])


def test_too_many_different_texts_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bad values are taken as missing, it is not tried which of the texts are too many."""
    monkeypatch.setattr(opening, "MOST_DIFFERENT", 3)
    encode, calls = Numbered.encode, []

    def counted(column: Numbered, array: pa.Array) -> np.ndarray:
        calls.append(len(array))
        return encode(column, array)

    monkeypatch.setattr(Numbered, "encode", counted)
    table = pa.table({"t": [f"text {n}" for n in range(64)]})
    with pytest.raises(InputError, match="must have at most 3 different values"):
        Table.encode(table, numbered(Schema((Discovered("t"),))), "missing")
    assert calls == [64]


def test_a_long_spelling_of_missing_is_missing() -> None:
    spelled = "not known, " * 30
    column = Discovered("t", missing_values=(spelled,))
    schema = Schema((column,))
    cells = pa.table({"t": [spelled, f"{spelled}, or so", "a", None]})
    rows = OpenRows(TableSource(Table.encode(cells, numbered(schema))), schema)
    assert rows.values_of("t")[0] == ["a"]
    after = rows.listed(Schema((listed_column(column, ["a"]),)))
    assert np.concatenate([batch[0] for batch in after.batches()]).tolist() == [2, 1, 0, 2]


def test_a_source_that_is_looked_for_later_stays_so() -> None:
    rows, asked = rows_of(["b", "a", "b"]), []

    def load() -> OpenRows:
        asked.append(1)
        return rows

    later = LaterSource(rows.schema, 3, load)
    listed = Schema((listed_column(Discovered("t"), ["b"]), Categorical("b", (0, 1))))
    after = later.listed(listed)
    assert (after.rows, asked) == (3, [])
    assert np.concatenate([batch[0] for batch in after.batches()]).tolist() == [0, 1, 0]
    assert later.values_of("t")[0] == ["a", "b"]


def test_a_numbered_column_is_like_the_declared_one() -> None:
    column = Discovered("t")
    assert Numbered(column).name == "t"
    assert not Numbered(column).ordered
    plain = Schema((Categorical("b", (0, 1)),))
    assert numbered(plain) is plain
