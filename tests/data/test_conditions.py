"""Conditions: parsed by hand, evaluated on arrays, with missing values as in SQL."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist import InputError
from pointillist.data.conditions import Spans, cells_of, parse

TABLE = pa.table(
    {
        "age": pa.array([10, 20, None, 40], pa.int16()),
        "sex": ["f", "m", "f", None],
        "total pay": [1.5, 3.0, None, -2.0],
        "ok": [True, False, None, True],
        "a": [0.1, 1.0, 2.0, 3.0],
        "b": [0.2, 1.0, 2.0, 3.0],
        "c": [0.3, 2.0, 5.0, 6.0],
        "start": pa.array(["2024-01-01", "2024-02-01", None, "2023-01-01"]).cast(pa.date32()),
        "kind": pa.array(["x", "y", "x", None]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("age < 20", [1, 0, 0, 0]),
        ("age <= 20", [1, 1, 0, 0]),
        ("age > 10 and sex == 'm'", [0, 1, 0, 0]),
        ("age == 10 or sex == 'f'", [1, 0, 1, 0]),
        ("not age < 20", [0, 1, 0, 1]),
        ("not (age < 20 or sex == 'm')", [0, 0, 0, 0]),
        ("age is missing", [0, 0, 1, 0]),
        ("age is not missing and sex is missing", [0, 0, 0, 1]),
        ("sex != 'f'", [0, 1, 0, 0]),
        ('sex in ["f", "x"]', [1, 0, 1, 0]),
        ("sex not in ['f', 'x']", [0, 1, 0, 0]),
        ("age in [10, 40]", [1, 0, 0, 1]),
        ("`total pay` >= 1.5", [1, 1, 0, 0]),
        ("`total pay` < -1", [0, 0, 0, 1]),
        ("`total pay` in [-2, 3]", [0, 1, 0, 1]),
        ("ok == true", [1, 0, 0, 1]),
        ("ok != true", [0, 1, 0, 0]),
        ("a + b == c", [1, 1, 0, 1]),
        ("a + b <= c", [1, 1, 1, 1]),
        ("a + b < c", [0, 0, 1, 0]),
        ("c - b >= a + 0", [1, 1, 1, 1]),
        ("-a + 1 == 0", [0, 1, 0, 0]),
        ("age + 5 > 20", [0, 1, 0, 1]),
        ("start < '2024-01-15'", [1, 0, 0, 1]),
        ("start == '2024-02-01'", [0, 1, 0, 0]),
        ("kind == 'x'", [1, 0, 1, 0]),
        ("10 == age", [1, 0, 0, 0]),
        ("a == b", [0, 1, 1, 1]),
    ],
)
def test_conditions_hold_where_they_should(text: str, holds: list[int]) -> None:
    condition = parse(text)
    assert condition.holds(TABLE).astype(int).tolist() == holds
    again = parse(condition.to_text())
    assert again.holds(TABLE).astype(int).tolist() == holds
    assert again.columns == condition.columns


def test_what_is_unknown_neither_holds_nor_fails() -> None:
    condition = parse("age < 20")
    assert condition.holds(TABLE).tolist() == [True, False, False, False]
    assert condition.fails(TABLE).tolist() == [False, True, False, True]
    assert parse("age < 20 and sex == 'm'").fails(TABLE).tolist() == [True, True, True, True]
    assert parse("age < 20 or sex == 'f'").holds(TABLE).tolist() == [True, False, True, False]


def test_pandas_and_plain_arrays_are_understood() -> None:
    frame = pd.DataFrame({"age": pd.array([1, None, 3], "Int64"), "sex": ["f", None, "m"]})
    assert parse("age > 2 and sex == 'm'").holds(frame).tolist() == [False, False, True]
    assert parse("x >= 2").holds({"x": np.array([1.0, 2.0, np.nan])}).tolist() == [False, True, False]


def test_columns_are_named_once_each() -> None:
    assert parse("a + b == c and a < 3 or `total pay` is missing").columns == ("a", "b", "c", "total pay")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ends where a column or a value is needed"),
        ("age", "a comparison is needed"),
        ("age <", "ends where a column or a value is needed"),
        ("age < 15 and", "ends where a column or a value is needed"),
        ("age < 15 15", "has this where 'and', 'or' or the end is needed, got '15' at character 10"),
        ("age ** 2 == 4", "means nothing here, got '\\*\\* 2 == 4' at character 5"),
        ("__import__('os').system('ls')", "means nothing here, got .*system.* at character 17"),
        ("age.real == 3", "got '.real == 3' at character 4"),
        ("(age < 15", "ends where '\\)' is needed"),
        ("age in []", "a column or a value is needed"),
        ("age in [sex]", "a value is needed"),
        ("age == 'x", "means nothing here"),
        ("15 is missing", "can ask of columns only"),
        ("age < (sex == 'f')", "a value is needed"),
        ("not " * 60 + "age < 1", "is nested deeper than 50 times"),
        ("(" * 60 + "age < 1" + ")" * 60, "is nested deeper than 50 times"),
        ("age = 15", "means nothing here, got '= 15' at character 5"),
    ],
)
def test_what_is_wrong_is_told_with_its_position(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age == 'f'", "compares numbers with texts, got character 5"),
        ("sex < 'm'", "compares the order of numbers, dates and times only, not of texts"),
        ("sex + age == 3", "adds up numbers only, not texts"),
        ("ok == 1", "compares truth values with numbers"),
        ("start < 'soon'", "with a text that is none"),
    ],
)
def test_what_cannot_be_compared_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text).holds(TABLE)


def test_texts_survive_the_way_through_text() -> None:
    for value in ('a "b" \\ c', "it's", "line\nbreak\t", "\x01", "ü", ""):
        condition = parse(f"sex == {json.dumps(value)}")
        assert parse(condition.to_text()).holds({"sex": [value, value + "?"]}).tolist() == [True, False]


# --- random conditions: against Python, and against ranges

NAMES = ("x", "y", "z")
VALUES = (None, 0, 1, 2, 3)


def leaves() -> st.SearchStrategy[Any]:
    name, number = st.sampled_from(NAMES), st.integers(0, 3)
    side = st.one_of(
        name, number.map(str), st.tuples(name, name).map(" + ".join), st.tuples(name, name).map(" - ".join)
    )
    compare = st.tuples(side, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), side)
    return st.one_of(compare, st.tuples(name, st.just("is missing")), st.tuples(name, st.just("in"), number, number))


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
    ),
    max_leaves=5,
)


def text_of(tree: Any) -> str:
    if tree[0] == "not":
        return f"not ({text_of(tree[1])})"
    if tree[0] in ("and", "or"):
        return f"({text_of(tree[1])}) {tree[0]} ({text_of(tree[2])})"
    if tree[1] == "in":
        return f"{tree[0]} in [{tree[2]}, {tree[3]}]"
    return " ".join(map(str, tree))


def side_of(text: str, row: dict[str, Any]) -> Any:
    parts = text.split()
    values = [row[part] if part in row else int(part) for part in parts[::2]]
    if None in values:
        return None
    return values[0] if len(values) == 1 else values[0] + values[1] if parts[1] == "+" else values[0] - values[1]


def truth_of(tree: Any, row: dict[str, Any]) -> bool | None:
    """True, False or None for unknown, by the definition."""
    if tree[0] == "not":
        inner = truth_of(tree[1], row)
        return None if inner is None else not inner
    if tree[0] in ("and", "or"):
        both, decides = {truth_of(tree[1], row), truth_of(tree[2], row)}, tree[0] == "or"
        return decides if decides in both else None if None in both else not decides
    if tree[1] == "is missing":
        return row[tree[0]] is None
    if tree[1] == "in":
        return None if row[tree[0]] is None else row[tree[0]] in tree[2:]
    left, right = side_of(tree[0], row), side_of(tree[2], row)
    if left is None or right is None:
        return None
    return bool({"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
                 ">": left > right, ">=": left >= right}[tree[1]])  # fmt: skip


GRID = list(itertools.product(VALUES, repeat=3))


@given(CONDITIONS)
def test_random_conditions_are_those_of_python(tree: Any) -> None:
    condition = parse(text_of(tree))
    table = {name: pa.array([row[n] for row in GRID], pa.int64()) for n, name in enumerate(NAMES)}
    wanted = [truth_of(tree, dict(zip(NAMES, row, strict=True))) for row in GRID]
    if not condition.columns:
        return
    assert condition.holds(table).tolist() == [one is True for one in wanted]
    assert condition.fails(table).tolist() == [one is False for one in wanted]
    assert parse(condition.to_text()).holds(table).tolist() == [one is True for one in wanted]


@given(CONDITIONS, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=3, max_size=3))
def test_what_happens_is_possible(tree: Any, ranges: list[tuple[int, int, bool]]) -> None:
    condition = parse(text_of(tree))
    if not condition.columns:
        return
    spans, inside = {}, []
    for name, (a, b, missing) in zip(NAMES, ranges, strict=True):
        low, high, no = min(a, b), max(a, b), np.zeros(1, bool)
        spans[name] = Spans("number", np.array([float(low)]), np.array([float(high)]), np.array([missing]), no)
        inside.append([None] if missing else list(range(low, high + 1)))
    possible = condition.possible(spans)
    found = {truth_of(tree, dict(zip(NAMES, row, strict=True))) for row in itertools.product(*inside)}
    assert bool(possible.true[0]) >= (True in found)
    assert bool(possible.false[0]) >= (False in found)
    assert bool(possible.unknown[0]) >= (None in found)
    if all(len(one) == 1 for one in inside) and " - " not in text_of(tree) and " + " not in text_of(tree):
        assert (possible.true[0], possible.false[0], possible.unknown[0]) == tuple(
            x in found for x in (True, False, None)
        )


def test_cells_of_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="must be numbers, texts"):
        cells_of(pa.array([[1, 2]]))
