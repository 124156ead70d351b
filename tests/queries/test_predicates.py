"""Predicates against the values of all records."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.small import DOMAIN, SCHEMA, conditions, holds, records

from pointillist.errors import InputError
from pointillist.queries import formulas
from pointillist.queries.formulas import Leaf, Several, formula_of
from pointillist.queries.predicates import Predicates
from pointillist.queries.workload import queries_of


@given(st.lists(conditions(), min_size=1, max_size=4), st.integers(0, 99))
def test_predicates_hold_where_their_conditions_do(texts: list[str], seed: int) -> None:
    queries = Predicates(tuple(formula_of(text, SCHEMA) for text in texts))
    held = np.stack([holds(text) for text in texts], axis=1)
    np.testing.assert_array_equal(queries.holds(records()), held)
    rng = np.random.default_rng(seed)
    if queries.scope == (0, 1, 2, 3):
        counts, values = rng.integers(9, size=len(held)), rng.integers(9, size=queries.size)
        np.testing.assert_array_equal(queries.of_marginal(counts), counts @ held)
        np.testing.assert_array_equal(queries.to_marginal(values), held @ values)
    assert queries.exact
    ways = [rng.dirichlet(np.ones(size)) for size in DOMAIN.sizes]
    np.testing.assert_allclose(queries.of_product(ways), reduce(np.multiply.outer, ways).ravel() @ held, atol=1e-12)
    assert queries_of(json.loads(json.dumps(queries.to_dict(DOMAIN.names))), DOMAIN) == queries
    assert queries.partition == bool((held.sum(axis=1) == 1).all())


@given(conditions())
def test_formulas_that_are_not_joined_say_the_same(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulas, "MOST_JOINED", 0)
        formula = formula_of(text, SCHEMA)
    np.testing.assert_array_equal(formula.holds(records()), holds(text))


def test_parts_that_share_columns_are_joined() -> None:
    apart = formula_of('age < 10 and sex == "f"', SCHEMA)
    assert isinstance(apart, Several)
    assert apart.single
    together = formula_of('(age < 10 and sex == "f") or (age >= 20 and sex == "m")', SCHEMA)
    assert isinstance(together, Leaf)
    assert together.scope == (0, 1)


def test_parts_that_always_hold_are_left_out() -> None:
    assert formula_of('sex in ["f", "m"] and smoker == true', SCHEMA).scope == (3,)
    assert formula_of('sex == "x" or smoker == true', SCHEMA).scope == (3,)
    assert not formula_of('sex == "x" and smoker == true', SCHEMA).open


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "age < 15",
            "condition must hold for all values of a code or for none, so that codes can be counted, got 'age < 15'",
        ),
        ("weight < 15", "attribute must be a column of the schema, got 'weight'"),
        ('sex == "x"', "condition must hold for some records and not for others, got 'sex == "),
        ("age <", "must be well-formed"),
        ('sex > "f"', "it compares the order of numbers, dates and times only, not of texts?, got character 5"),
        ('not (age >= 20 and sex > "f")', "it compares the order of numbers, dates and times only"),
        ("sex == 1", "it compares texts? with numbers?"),
        ('age >= "20"', "it compares numbers? with texts?"),
        ("smoker == 1", "it compares truth values with numbers?"),
        ("1 < 2", "condition must compare columns with values or with each other"),
        ("__import__('os')", "must be well-formed"),
    ],
)
def test_conditions_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Predicates.of(SCHEMA, text)


def test_a_function_of_values() -> None:
    def old_smoker(age: np.ndarray, smoker: np.ndarray) -> Any:
        return (age > 20) & smoker.astype(bool)

    queries = Predicates.of_function(SCHEMA, ["smoker", "age"], old_smoker)
    np.testing.assert_array_equal(queries.holds(records())[:, 0], holds("age >= 20 and smoker == true"))
    with pytest.raises(InputError, match="function must return one truth value for each row"):
        Predicates.of_function(SCHEMA, ["age"], lambda age: age)
    with pytest.raises(InputError, match="attribute must be a column"):
        Predicates.of_function(SCHEMA, ["weight"], lambda weight: weight > 1)


def test_a_function_of_too_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "MOST_LEAF", 5)
    with pytest.raises(InputError, match="columns must have at most 5 combinations of codes, got 8"):
        Predicates.of_function(SCHEMA, ["age", "sex"], lambda age, sex: age > 1)
