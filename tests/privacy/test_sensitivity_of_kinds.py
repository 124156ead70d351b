"""Sensitivities of halfspaces and predicates by brute force: every neighbour on a small domain, both relations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.small import DOMAIN, SCHEMA, conditions, halfspaces, holds, records
from tests.queries.test_halfspaces import Given, by_definition

from pointillist.data.neighbours import Relation
from pointillist.queries import enumerating, predicates
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.formulas import formula_of
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.predicates import Predicates
from pointillist.queries.texts import parse_workload

RELATIONS = tuple(Relation)


def true_sensitivity(held: np.ndarray, relation: Relation) -> Sensitivity:
    """The largest changes, from which queries hold for which of all records."""
    held = held.astype(np.int64)
    changes = np.abs(held if relation is Relation.ADD_REMOVE else held[:, None, :] - held).reshape(-1, held.shape[1])
    return Sensitivity(int(changes.max()), int(changes.sum(axis=1).max()), int((changes**2).sum(axis=1).max()))


def is_above(claimed: Sensitivity, true: Sensitivity) -> bool:
    return claimed.single >= true.single and claimed.l1 >= true.l1 and claimed.l2_squared >= true.l2_squared


@given(halfspaces())
@pytest.mark.parametrize("relation", RELATIONS)
def test_halfspaces_state_the_true_sensitivity(relation: Relation, case: Given) -> None:
    queries = Halfspaces.of(DOMAIN, *case)
    assert queries.sensitivity(relation) == true_sensitivity(by_definition(case), relation)
    slabs = queries.slabs()
    assert slabs.sensitivity(relation) == true_sensitivity(slabs.holds(records()), relation)


@given(halfspaces(), st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_some_halfspaces_state_the_true_sensitivity(relation: Relation, case: Given, data: st.DataObject) -> None:
    """Of slabs some may hold for no record."""
    given_ones = Halfspaces.of(DOMAIN, *case)
    for queries, held in ((given_ones, by_definition(case)), (given_ones.slabs(), given_ones.slabs().holds(records()))):
        taken = data.draw(st.lists(st.integers(0, queries.size - 1), min_size=1, unique=True))
        claimed, true = queries.take(taken).sensitivity(relation), true_sensitivity(held[:, taken], relation)
        assert is_above(claimed, true)
        assert claimed == true or not claimed.exact


@given(st.lists(conditions(), min_size=1, max_size=4))
@pytest.mark.parametrize("relation", RELATIONS)
def test_predicates_state_the_true_sensitivity(relation: Relation, texts: list[str]) -> None:
    queries = Predicates(tuple(formula_of(text, SCHEMA) for text in texts))
    held = np.stack([holds(text) for text in texts], axis=1)
    assert queries.sensitivity(relation) == true_sensitivity(held, relation)


@given(st.lists(conditions(), min_size=1, max_size=4))
@pytest.mark.parametrize("relation", RELATIONS)
def test_bounds_where_there_is_too_much_to_enumerate_are_above_the_truth(relation: Relation, texts: list[str]) -> None:
    queries = Predicates(tuple(formula_of(text, SCHEMA) for text in texts))
    true = true_sensitivity(np.stack([holds(text) for text in texts], axis=1), relation)
    for limit in ("MOST_ENUMERATED", "MOST_ANSWERED", "MOST_PATTERNS"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predicates, "sensitivity_by_enumeration", enumerating.sensitivity_by_enumeration.__wrapped__)
            patch.setattr(enumerating, limit, 0)
            bound = queries.sensitivity(relation)
        assert is_above(bound, true)
        alone = queries.size == 1 and queries.exact and queries.formulas[0].open
        whole = limit == "MOST_PATTERNS" and relation is Relation.ADD_REMOVE
        assert bound.exact == (alone or whole)
        if bound.exact:
            assert bound == true


TEXTS = (
    "marginals:1,3", "marginals:2@age", "prefixes:1", "prefixes:2", "prefixes:3", "ranges:1", "ranges:2@size",
    "halfspaces:10", "conditionals:sex:5", "conditionals:age:5",
)  # fmt: skip


def members() -> Iterator[object]:
    for text in TEXTS:
        for n, queries in enumerate(parse_workload(text, SCHEMA).queries):
            yield pytest.param(queries, id=f"{text} {n}")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("queries", list(members()))
def test_every_text_form_states_the_true_sensitivity(queries: Queries, relation: Relation) -> None:
    claimed = queries.sensitivity(relation)
    assert claimed.exact
    assert claimed == true_sensitivity(queries.holds(records()), relation)
