"""The kinds of queries against their definition, ``holds``, on all records of small domains."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import InputError
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.cells import Cells, box_of, meet
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.queries.workload import queries_of

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def records(domain: Domain) -> list[np.ndarray]:
    """Every record of the domain, as one array of codes per attribute."""
    return list(np.indices(domain.sizes).reshape(len(domain), -1))


def scope_cells(queries: Queries, domain: Domain) -> np.ndarray:
    """The cell of the scope's marginal into which each record of the domain falls."""
    codes = records(domain)
    return np.ravel_multi_index([codes[i] for i in queries.scope], queries.shape)


def matrix_of(queries: Queries, domain: Domain) -> np.ndarray:
    """The linear map of the queries: cells of the scope x queries, from the definition."""
    matrix = np.zeros((int(np.prod(queries.shape)), queries.size), np.int64)
    matrix[scope_cells(queries, domain)] = queries.holds(records(domain))
    return matrix


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


@st.composite
def intervals(draw: st.DrawFn, size: int) -> Intervals:
    kind = draw(st.sampled_from(["values", "prefixes", "any"]))
    if kind != "any":
        return {"values": Intervals.values, "prefixes": Intervals.prefixes}[kind](size)
    every = list(itertools.combinations(range(size + 1), 2))
    return Intervals(size, tuple(draw(st.lists(st.sampled_from(every), min_size=1, max_size=4))))


@st.composite
def wholes(draw: st.DrawFn, domain: Domain) -> Queries:
    """A marginal or a product over some attributes."""
    every = range(len(domain))
    scope = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        return Marginal.of(domain, scope)
    return Product.of(domain, {i: draw(intervals(domain.sizes[i])) for i in scope})


@st.composite
def problems(draw: st.DrawFn) -> tuple[Domain, Queries]:
    """Marginals, products, some queries of either, and some of these."""
    domain = draw(domains())
    queries = draw(wholes(domain))
    for _ in range(draw(st.integers(0, 2))):
        places = st.sampled_from(range(queries.size))
        queries = queries.take(draw(st.lists(places, min_size=1, max_size=5, unique=True)))
    return domain, queries


def defined(queries: Queries, codes: list[np.ndarray]) -> np.ndarray:
    """What the factors and the cells say: one interval for each attribute of the scope."""
    assert queries.factors is not None
    grid = list(itertools.product(*(factor.bounds for factor in queries.factors)))
    chosen = range(len(grid)) if queries.cells is None else queries.cells
    columns = [
        np.all(
            [(low <= codes[i]) & (codes[i] < high) for i, (low, high) in zip(queries.scope, grid[cell], strict=True)], 0
        )
        for cell in chosen
    ]
    return np.stack(columns, axis=1)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_holds_is_what_the_factors_say(problem: tuple[Domain, Queries]) -> None:
    domain, queries = problem
    held = queries.holds(records(domain))
    assert held.dtype == bool
    assert held.shape == (domain.cells, queries.size)
    assert queries.shape == domain.shape(queries.scope)
    assert list(queries.scope) == sorted(set(queries.scope))
    assert np.array_equal(held, defined(queries, records(domain)))


def test_a_marginal_asks_for_every_combination_of_values_in_order() -> None:
    marginal = Marginal.of(DOMAIN, ("a", "c"))
    codes = records(DOMAIN)
    held = marginal.holds(codes)
    for cell, (a, c) in enumerate(itertools.product(range(2), range(4))):
        assert np.array_equal(held[:, cell], (codes[0] == a) & (codes[2] == c))


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 99))
def test_answers_come_from_the_marginal(problem: tuple[Domain, Queries], seed: int) -> None:
    domain, queries = problem
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, size, 30) for size in domain.sizes]
    keys = np.ravel_multi_index([rows[i] for i in queries.scope], queries.shape)
    counts = np.bincount(keys, minlength=int(np.prod(queries.shape)))
    answers = queries.of_marginal(counts)
    assert answers.dtype == counts.dtype
    assert np.array_equal(answers, queries.holds(rows).sum(axis=0))
    fractions = queries.of_marginal(counts / 30)
    assert np.allclose(fractions, answers / 30, rtol=0, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 99))
def test_to_marginal_is_the_transpose_of_of_marginal(problem: tuple[Domain, Queries], seed: int) -> None:
    domain, queries = problem
    rng = np.random.default_rng(seed)
    matrix = matrix_of(queries, domain)
    table, values = rng.integers(-9, 9, matrix.shape[0]), rng.integers(-9, 9, matrix.shape[1])
    assert np.array_equal(queries.of_marginal(table), table @ matrix)
    assert np.array_equal(queries.to_marginal(values), matrix @ values)
    assert queries.of_marginal(table) @ values == table @ queries.to_marginal(values)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_partition_holds_once_for_every_record(problem: tuple[Domain, Queries]) -> None:
    domain, queries = problem
    once = bool((queries.holds(records(domain)).sum(axis=1) == 1).all())
    assert once or not queries.partition
    if not isinstance(queries, Cells):  # some of the queries are never taken for a partition
        assert queries.partition == once


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_some_of_the_queries(problem: tuple[Domain, Queries], data: st.DataObject) -> None:
    domain, queries = problem
    places = data.draw(st.lists(st.sampled_from(range(queries.size)), min_size=1, unique=True))
    taken = queries.take(places)
    codes = records(domain)
    assert (taken.scope, taken.shape, taken.size) == (queries.scope, queries.shape, len(places))
    assert np.array_equal(taken.holds(codes), queries.holds(codes)[:, places])
    assert taken == queries.take(np.array(places))  # numpy's integers are as good as Python's
    assert hash(taken) == hash(queries.take(np.array(places)))
    assert isinstance(taken, Cells)
    assert not isinstance(taken.whole, Cells)  # some of some queries are some of the whole


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ([], "cells must be positions below 6, got (); name at least one query."),
        ([6], "cells must be positions below 6, got (6,); name at least one query."),
        ([-1], "cells must be positions below 6, got (-1,); name at least one query."),
        ([2, 2], "cells must be different, got (2, 2); name each once."),
    ],
)
def test_queries_that_are_not_there_are_refused(places: list[int], sentence: str) -> None:
    for queries in (Marginal.of(DOMAIN, ("a", "b")), Product.of(DOMAIN, {"a": "values", "b": "prefixes"})):
        with pytest.raises(InputError) as refused:
            queries.take(places)
        assert str(refused.value) == sentence


# --- smaller queries


@st.composite
def determining(draw: st.DrawFn) -> tuple[Domain, Queries]:
    """Marginals, and products of values and prefixes."""
    domain = draw(domains())
    scope = draw(st.lists(st.sampled_from(range(len(domain))), min_size=1, unique=True))
    if draw(st.booleans()):
        return domain, Marginal.of(domain, scope)
    return domain, Product.of(domain, {i: draw(st.sampled_from(["values", "prefixes"])) for i in scope})


@settings(max_examples=100, deadline=None)
@given(determining(), st.data())
def test_queries_determine_the_smaller_ones(problem: tuple[Domain, Queries], data: st.DataObject) -> None:
    """The answers of the smaller queries are a linear function of the answers of the larger ones."""
    domain, queries = problem
    attribute = data.draw(st.sampled_from(queries.scope))
    smaller = queries.without(attribute)
    if len(queries.scope) == 1:
        assert smaller is None
        return
    assert smaller is not None
    values = all(factor.identity for factor in smaller.factors or ())
    assert isinstance(smaller, Marginal if values else Product)
    assert smaller.scope == tuple(i for i in queries.scope if i != attribute)
    codes = records(domain)
    larger, wanted = queries.holds(codes).astype(float), smaller.holds(codes).astype(float)
    found, *_ = np.linalg.lstsq(larger, wanted, rcond=None)
    assert np.allclose(larger @ found, wanted, atol=1e-9)


def test_some_queries_determine_no_smaller_ones() -> None:
    assert Marginal.of(DOMAIN, ("a", "b")).take([0, 3]).without(0) is None


# --- as plain data, and as keys


@settings(max_examples=100, deadline=None)
@given(problems())
def test_queries_come_back_from_plain_data(problem: tuple[Domain, Queries]) -> None:
    domain, queries = problem
    spec = json.loads(json.dumps(queries.to_dict(domain.names)))
    again = queries_of(spec, domain)
    assert again == queries
    assert hash(again) == hash(queries)
    assert again.to_dict(domain.names) == queries.to_dict(domain.names)
    assert len({again, queries}) == 1


def test_plain_data_names_the_attributes() -> None:
    marginal, product = Marginal.of(DOMAIN, ("c", "a")), Product.of(DOMAIN, {"b": "prefixes"})
    assert marginal.to_dict(DOMAIN.names) == {"kind": "marginal", "attributes": ["a", "c"]}
    assert product.to_dict(DOMAIN.names) == {
        "kind": "product", "attributes": ["b"], "intervals": [[[0, 1], [0, 2], [0, 3]]],
    }  # fmt: skip
    assert product.take([2]).to_dict(DOMAIN.names) == {
        "kind": "cells", "of": product.to_dict(DOMAIN.names), "taken": [2],
    }  # fmt: skip
    wider = Domain(("z", "a", "b", "c"), (7, 2, 3, 4))
    assert queries_of(marginal.to_dict(DOMAIN.names), wider).scope == (1, 3)  # by name: another order is no matter


def test_different_queries_are_different() -> None:
    every: list[Queries] = [
        Marginal.of(DOMAIN, ("a",)),
        Marginal.of(DOMAIN, ("a", "b")),
        Product.of(DOMAIN, {"a": "prefixes"}),
        Product.of(DOMAIN, {"a": "prefixes", "b": "values"}),
        Product.of(DOMAIN, {"a": Intervals(2, ((0, 2),))}),
        Marginal.of(DOMAIN, ("a",)).take([0]),
        Marginal.of(DOMAIN, ("a",)).take([1]),
        Marginal.of(DOMAIN, ("a",)).take([0, 1]),
        Marginal.of(DOMAIN, ("a",)).take([1, 0]),
        Product.of(DOMAIN, {"a": "prefixes"}).take([0]),
    ]
    assert len(set(every)) == len(every)
    assert all((one == two) == (n == m) for n, one in enumerate(every) for m, two in enumerate(every))


# --- by name


def test_attributes_by_name_or_position_in_any_order() -> None:
    assert Marginal.of(DOMAIN, ("c", "a")) == Marginal.of(DOMAIN, (0, 2)) == Marginal((0, 2), (2, 4))
    assert Product.of(DOMAIN, {"c": "values", 0: "prefixes"}) == Product(
        (0, 2), (Intervals.prefixes(2), Intervals.values(4))
    )


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a", "aa"), "attribute must be a column of the schema, got 'aa'; did you mean 'a'."),
        (("a", "a"), "attributes must be different positions below 3, got [0, 0]; name each column once."),
        ((3,), "attributes must be different positions below 3, got [3]; name each column once."),
        ((-1,), "attributes must be different positions below 3, got [-1]; name each column once."),
        ((), "attributes must be different positions below 3, got []; name each column once."),
    ],
)
def test_attributes_that_are_refused(names: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        Marginal.of(DOMAIN, names)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((), "intervals must not be empty, got []; give bounds such as (0, 3)."),
        (((0, 4),), "interval must be 0 <= low < high <= 3, got (0, 4); give codes of the column."),
        (((0, 1), (2, 2)), "interval must be 0 <= low < high <= 3, got (2, 2); give codes of the column."),
        (((-1, 2),), "interval must be 0 <= low < high <= 3, got (-1, 2); give codes of the column."),
    ],
)
def test_intervals_that_are_refused(bounds: tuple[tuple[int, int], ...], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        Intervals(3, bounds)
    assert str(refused.value) == sentence


def test_intervals_of_another_attribute_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        Product.of(DOMAIN, {"b": Intervals.prefixes(4)})
    assert str(refused.value) == "intervals must be over the 3 codes of 'b', got 4; use the domain's size."


def test_unknown_words_for_intervals_are_refused() -> None:
    with pytest.raises(InputError, match=r"must be .*, got 'prefix'; did you mean 'prefixes'\."):
        Product.of(DOMAIN, {"b": "prefix"})


def test_scopes_must_be_increasing_positions() -> None:
    two = (Intervals.values(2), Intervals.values(3))
    for scope in ((1, 0), (0, 0), (0,), ()):
        with pytest.raises(ValueError, match="must be increasing positions, one for each of 2 factors"):
            Product(scope, two)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5).flatmap(intervals), st.integers(0, 99))
def test_intervals_as_a_matrix(factor: Intervals, seed: int) -> None:
    expected = [[int(low <= x < high) for low, high in factor.bounds] for x in range(factor.size)]
    assert factor.matrix.tolist() == expected
    assert factor.identity == (expected == np.eye(factor.size).tolist())
    rng = np.random.default_rng(seed)
    table = rng.integers(-9, 9, (2, factor.size, 3))
    values = rng.integers(-9, 9, (2, len(factor.bounds), 3))
    assert np.array_equal(factor.sums(table, 1), np.einsum("axb,xj->ajb", table, factor.matrix))
    assert np.array_equal(factor.spread(values, 1), np.einsum("ajb,xj->axb", values, factor.matrix))


# --- boxes


def test_intervals_of_very_fine_columns() -> None:
    """What all pairs of codes would be too many for."""
    domain = Domain(("x", "y"), (20_000, 3))
    few = Intervals(20_000, tuple((low, low + 4000) for low in range(0, 16_001, 2000)))
    ranges = Product.of(domain, {"x": few, "y": "values"})
    assert ranges.sensitivity(Relation.REPLACE) == Sensitivity.of_indicators(4)
    assert ranges.sensitivity(Relation.ADD_REMOVE) == Sensitivity.of_indicators(2)
    prefixes = Product.of(Domain(("x", "y"), (2000, 3)), {"x": "prefixes", "y": "values"})
    assert prefixes.sensitivity(Relation.REPLACE) == Sensitivity.of_indicators(4000)
    with pytest.raises(InputError, match="intervals must be at most 5,000,000, codes times intervals, got 400,000,000"):
        Product.of(domain, {"x": "prefixes"})


def test_too_many_different_codes_have_a_bound() -> None:
    many = Product.of(Domain(("x",), (2100,)), {"x": Intervals(2100, tuple((x, x + 2) for x in range(2099)))})
    assert many.sensitivity(Relation.REPLACE) == Sensitivity.of_indicators(4, exact=False)


def test_a_query_that_always_holds_does_not_change_if_a_row_is_replaced() -> None:
    every = Product.of(Domain(("x", "y"), (3, 2)), {"x": "prefixes", "y": Intervals(2, ((0, 2),))}).take([2])
    assert every.sensitivity(Relation.REPLACE) == Sensitivity.of_indicators(0)
    assert every.sensitivity(Relation.ADD_REMOVE) == Sensitivity.of_indicators(1)


def inside(box: Any, domain: Domain) -> np.ndarray:
    codes = records(domain)
    found = np.ones(domain.cells, bool)
    for attribute, (low, high) in box.items():
        found &= (low <= codes[attribute]) & (codes[attribute] < high)
    return found


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Domain, Queries, Queries]:
    domain = draw(domains())
    first, second = draw(wholes(domain)), draw(wholes(domain))
    one = first.take([draw(st.sampled_from(range(first.size)))])
    return domain, one, second.take([draw(st.sampled_from(range(second.size)))])


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_boxes_of_single_queries_and_where_they_meet(problem: tuple[Domain, Queries, Queries]) -> None:
    domain, first, second = problem
    boxes = box_of(first), box_of(second)
    held = [queries.holds(records(domain))[:, 0] for queries in (first, second)]
    for box, one in zip(boxes, held, strict=True):
        assert box is not None
        assert np.array_equal(inside(box, domain), one)
    assert boxes[0] is not None
    assert boxes[1] is not None
    both = meet(boxes[0], boxes[1])
    if both is None:
        assert not (held[0] & held[1]).any()
    else:
        assert np.array_equal(inside(both, domain), held[0] & held[1])
        assert set(both) == set(first.scope) | set(second.scope)


def everything() -> Iterator[Queries]:
    yield Marginal.of(DOMAIN, ("a", "b"))
    yield Marginal.of(DOMAIN, ("a", "b")).take([1, 2])
    yield Product.of(DOMAIN, {"c": "prefixes"})


def test_several_queries_have_no_box() -> None:
    assert [box_of(queries) for queries in everything()] == [None, None, None]
    assert box_of(Product.of(DOMAIN, {"c": Intervals(4, ((1, 3),))})) == {2: (1, 3)}
    assert box_of(Marginal.of(DOMAIN, ("a", "b")).take([4])) == {0: (1, 2), 1: (1, 2)}
