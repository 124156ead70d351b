"""Texts and files of workloads."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.queries.small import DOMAIN, SCHEMA

from pointillist.data.schema import Categorical, Schema
from pointillist.errors import InputError
from pointillist.queries.explaining import explain
from pointillist.queries.files import load_workload
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.predicates import Predicates
from pointillist.queries.product import Product
from pointillist.queries.texts import ladder, parse_workload
from pointillist.queries.workload import Workload


def test_mixed_orders_and_targets() -> None:
    assert parse_workload("marginals:1,2", SCHEMA).queries == (
        *parse_workload("marginals:1", SCHEMA).queries,
        *parse_workload("marginals:2", SCHEMA).queries,
    )
    assert parse_workload("marginals:2@sex", SCHEMA).scopes == ((0, 1), (1, 2), (1, 3))
    assert parse_workload("marginals:1,2@sex", SCHEMA).scopes == ((1,), (0, 1), (1, 2), (1, 3))
    assert parse_workload("marginals:1,1", SCHEMA) == parse_workload("marginals:1", SCHEMA)


def test_prefixes_and_ranges_are_products_with_an_ordered_column() -> None:
    found = parse_workload("prefixes:2", SCHEMA).queries
    assert [one.scope for one in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]  # not sex with smoker
    assert found[0] == Product.of(DOMAIN, {"age": "prefixes", "sex": "values"})
    assert parse_workload("ranges:1", SCHEMA).queries[1] == Product.of(DOMAIN, {"size": ladder(3)})
    assert ladder(3) == Intervals(3, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)))
    assert len(ladder(1000).bounds) == 36


def test_terms_are_joined_and_the_same_queries_are_asked_once() -> None:
    workload = parse_workload(" marginals:1 + marginals:1,2@age+halfspaces:3:7 + conditionals:sex:2", SCHEMA)
    kinds = [type(one) for one in workload.queries]
    assert kinds == [Marginal] * 7 + [Halfspaces] * 5


def test_names_with_other_characters_are_in_backticks() -> None:
    schema = Schema((Categorical("a+b: c", ("x", "y")), Categorical("d", ("x", "y"))))
    assert parse_workload("marginals:1@`a+b: c` + marginals:1@d", schema).scopes == ((0,), (1,))
    assert parse_workload("conditionals:`a+b: c`:2", schema).queries[0].scope == (0, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("marginals:2+", "workload must have the form marginals"),
        ("marginals:2@weight", "attribute must be a column of the schema, got 'weight'"),
        ("conditionals:weight", "workload: COLUMN must be one of age, sex, size, smoker, got 'weight'"),
        ("halfspaces:0", "workload: COUNT must be at least 1, got 0"),
        ("halfspaces:9999999", "workload: COUNT must be at most 1,000,000, got 9999999"),
        ("halfspaces:5:9999999999", "workload: SEED must be in 0 .. 4,294,967,295"),
        (
            "conditionals:sex:x",
            r"workload must have the form conditionals:COLUMN\[:COUNT\[:SEED\]\] with whole numbers",
        ),
        ("prefixes:9", "workload: K must be in 1 .. 4"),
        ("prefixes:1@sex", "workload must have sets with an ordered column for prefixes and ranges, got none"),
        ("ranges:1@sex:5", "workload must have sets with an ordered column for prefixes and ranges, got none"),
        ("marginals:\u0663", "workload must have the form marginals"),
        ("+" * 100_000, "workload must have at most 10,000 characters, got 100,000"),
    ],
)
def test_texts_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_workload(text, SCHEMA)


def test_prefixes_need_an_order() -> None:
    with pytest.raises(InputError, match="schema must have ordered columns for prefixes and ranges, got none"):
        parse_workload("prefixes:1", SCHEMA.project(["sex", "smoker"]))


FILE = """
format = 1

[[queries]]
workload = "marginals:1"

[[queries]]
where = 'age >= 20 and sex == "f"'
weight = 4

[[queries]]
where = ["age < 10", "age >= 10 and smoker == true"]
"""


def written(folder: Path, text: str) -> str:
    file = folder / "queries.toml"
    file.write_text(text)
    return str(file)


def test_a_file_with_weights(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path, FILE), SCHEMA)
    assert workload.weights == (1.0, 1.0, 1.0, 1.0, 4.0, 1.0)
    assert workload.queries[4] == Predicates.of(SCHEMA, 'age >= 20 and sex == "f"')
    assert workload.queries[5].size == 2
    assert Workload.from_dict(workload.to_dict(), DOMAIN) == workload
    same = load_workload(written(tmp_path, FILE.replace("weight = 4", "weight = 1")), SCHEMA)
    assert same.weights == ()
    assert same.queries == workload.queries


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("format = 2", "workload file: format must be 1, got 2"),
        ("format = 1", "workload file: queries must be a list of tables, got None"),
        ("format = 1\nqueries = []", "workload file: queries must be a list of tables"),
        ("x = 1", "workload file must only have the keys format, queries, got 'x'"),
        (FILE.replace("weight = 4", "weight = 0"), "workload file: weight must be a finite number above 0, got 0"),
        (FILE.replace("weight = 4", 'weight = "x"'), "workload file: weight must be a number, got 'x'"),
        (FILE.replace("weight = 4", "wait = 4"), "workload file: queries must only have the keys"),
        (FILE + "[[queries]]\nweight = 1", "workload file: queries must have either workload or where"),
        (FILE + "[[queries]]\nwhere = 3", "workload file: where must be a condition, or a list of them"),
        (FILE + '[[queries]]\nworkload = "x.toml"', "workload file: workload must be a text"),
        (FILE + '[[queries]]\nworkload = "marginals:1"', "queries must have the same queries once"),
        (FILE + '[[queries]]\nwhere = "age < 15"', "condition must hold for all values of a code or for none"),
        ("=", "workload must be valid TOML"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_workload(written(tmp_path, text), SCHEMA)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match="workload must be an existing file, got"):
        load_workload("none.toml", SCHEMA)


def test_an_explanation_adds_up(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path, FILE), SCHEMA)
    found = explain(workload)
    assert [one.kind for one in found] == ["marginal", "predicates"]
    assert sum(one.queries for one in found) == workload.size
    assert sum(one.groups for one in found) == len(workload.queries)
    assert found[1].attributes == (2, 2)
