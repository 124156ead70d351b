"""Halfspaces against their definition."""

from __future__ import annotations

import json
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.small import DOMAIN, SCHEMA, halfspaces, records

from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.queries import halfspaces as module
from pointillist.queries.base import of_records
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.random_halfspaces import random_halfspaces
from pointillist.queries.workload import queries_of

Given = tuple[dict[int, list[int]], list[int], list[int]]


def by_definition(given_: Given) -> np.ndarray:
    """Records x queries: crossed values first, then thresholds."""
    weights, thresholds, crossed = given_
    codes = records()
    score = sum(np.array(many)[codes[i]] for i, many in weights.items())
    inside = np.stack([score <= t for t in thresholds], axis=1)
    sizes = DOMAIN.shape(sorted(crossed))
    key = np.ravel_multi_index([codes[i] for i in sorted(crossed)], sizes) if crossed else np.zeros(len(score), int)
    own = key[:, None] == np.arange(int(np.prod(sizes)))
    return (own[:, :, None] & inside[:, None, :]).reshape(len(score), -1)


@given(halfspaces(), st.integers(0, 99))
def test_halfspaces_agree_with_their_definition(case: Given, seed: int) -> None:
    queries = Halfspaces.of(DOMAIN, *case)
    held = by_definition(case)
    np.testing.assert_array_equal(queries.holds(records()), held)
    rng = np.random.default_rng(seed)
    counts = rng.integers(9, size=len(held))
    np.testing.assert_array_equal(queries.of_records(records(), counts.astype(float)), counts @ held)
    np.testing.assert_array_equal(of_records(queries, records()), held.sum(axis=0))
    if queries.scope == (0, 1, 2, 3):
        np.testing.assert_array_equal(queries.of_marginal(counts), counts @ held)
        values = rng.integers(9, size=queries.size)
        np.testing.assert_array_equal(queries.to_marginal(values), held @ values)
    ways = [rng.dirichlet(np.ones(size)) for size in DOMAIN.sizes]
    product = reduce(np.multiply.outer, ways).ravel()
    np.testing.assert_allclose(queries.of_product(ways), product @ held, atol=1e-12)
    assert queries_of(json.loads(json.dumps(queries.to_dict(DOMAIN.names))), DOMAIN) == queries
    assert queries.partition == bool((held.sum(axis=1) == 1).all()) or not queries.partition


@given(halfspaces())
def test_slabs_are_a_partition_that_the_halfspaces_are_sums_of(case: Given) -> None:
    queries = Halfspaces.of(DOMAIN, *case)
    slabs = queries.slabs()
    assert slabs.partition
    assert (slabs.holds(records()).sum(axis=1) == 1).all()
    found, asked = slabs.holds(records()).astype(float), queries.holds(records()).astype(float)
    assert np.abs(found @ np.linalg.lstsq(found, asked, rcond=None)[0] - asked).max() < 1e-9


def test_columns_may_come_in_another_order() -> None:
    queries = Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 5], "size": [2, 0, 1]}, [2, 4], ["sex"])
    other = Domain(("size", "sex", "smoker", "age"), (3, 2, 2, 4))
    again = queries_of(queries.to_dict(DOMAIN.names), other)
    age, sex, size, smoker = records()
    np.testing.assert_array_equal(again.holds([size, sex, smoker, age]), queries.holds(records()))


@pytest.mark.parametrize(
    ("weights", "at_most", "crossed", "sentence"),
    [
        ({"age": [1, 2]}, 0, (), "weights of 'age' must have one number for every code of its column, got 2"),
        ({"sex": [0, 1]}, 1, (), "at_most must be at least 0, the smallest score, and below 1, the largest, got 1"),
        ({"sex": [0, 1]}, 0, ("sex",), r"crossed must not have weights, got \['sex'\]"),
        ({"sex": [0.5, 1]}, 0, (), "weights must be a whole number, got 0.5"),
        ({"sex": [0, 10**6]}, 0, (), "weights must lead to scores of at most 20,000, got 1,000,000"),
        ({}, 0, (), "must be"),
    ],
)
def test_what_is_refused(weights: dict[str, list[int]], at_most: int, crossed: tuple[str, ...], sentence: str) -> None:
    with pytest.raises((InputError, ValueError), match=sentence):
        Halfspaces.of(DOMAIN, weights, at_most, crossed)


def test_wide_ones_are_counted_by_records(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 5]}, 2)
    assert not queries.direct
    monkeypatch.setattr(module, "MOST_TABLE", 3)
    assert queries.direct
    assert queries.take([0]).direct
    np.testing.assert_array_equal(of_records(queries.take([0]), records()), queries.holds(records()).sum(axis=0))


def test_random_halfspaces_follow_from_their_seed_and_are_neither_empty_nor_full() -> None:
    found = random_halfspaces(SCHEMA, 20, seed=3)
    assert found == random_halfspaces(SCHEMA, 20, seed=3)
    assert found != random_halfspaces(SCHEMA, 20, seed=4)
    assert len(set(found)) == 20
    shares = np.array([one.holds(records()).mean() for one in found])
    assert shares.min() > 0
    assert shares.max() < 1
    assert np.ptp(shares) > 0.3
    assert all(one.scope == (0, 1, 2, 3) and one.size == 1 for one in found)


def test_random_halfspaces_of_an_ordered_column_are_monotone() -> None:
    for one in random_halfspaces(SCHEMA, 10, seed=1):
        steps = np.diff(one.added[2])
        assert (steps >= 0).all() or (steps <= 0).all()


def test_random_halfspaces_are_crossed_with_a_label() -> None:
    for one in random_halfspaces(SCHEMA, 5, seed=1, crossed="sex"):
        assert one.crossed == (1,)
        assert one.size == 2


def test_a_small_domain_has_few_halfspaces() -> None:
    schema = SCHEMA.project(["smoker"])
    assert 1 <= len(random_halfspaces(schema, 50)) <= 4
