"""Answers of relaxed rows: by matrix products, by gather, and exact counting must agree."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.queries import answering
from pointillist.queries.answering import Layout, Lift, Node, query_answers
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Single
from pointillist.queries.cells import Cells
from pointillist.queries.intervals import Intervals
from pointillist.queries.kway import all_kway, random_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.queries.workload import Workload


def domain_of(sizes: tuple[int, ...]) -> Domain:
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


def rows_of(domain: Domain, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.ones(size), count) for size in domain.sizes], axis=1).astype(np.float32)


def layout_of(workload: Workload) -> Layout:
    return Layout(workload.domain, workload.queries)


def by_products(layout: Layout, rows: jax.Array) -> np.ndarray:
    return layout.to_flat(np.concatenate([np.asarray(m).ravel() for m in jax.jit(layout.answers)(rows)]))


def singles(queries: tuple[Queries, ...]) -> list[Queries]:
    """All queries of a list, one by one."""
    every = Single(queries)
    return [every[n] for n in range(len(every))]


def cells_of(domain: Domain, node: Node) -> int:
    return math.prod(sum(map(domain.cells_of, side)) for side in node.sides)


COSTS = st.sampled_from([0, 30, 10_000])
"""Layouts have many nodes and batches if these cost nothing, and few if they cost more than all cells."""

Problem = tuple[Domain, Layout]


@st.composite
def intervals(draw: st.DrawFn, size: int) -> Intervals:
    every = list(itertools.combinations(range(size + 1), 2))
    some = st.lists(st.sampled_from(every), min_size=1, max_size=4).map(lambda bounds: Intervals(size, tuple(bounds)))
    return draw(st.sampled_from([Intervals.values(size), Intervals.prefixes(size)]) | some)


@st.composite
def problems(draw: st.DrawFn, kinds: tuple[str, ...] = ("marginal",)) -> Problem:
    """A domain, and a layout of queries of some kinds over different sets of its attributes."""
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=6)))
    domain = domain_of(sizes)
    subsets = [s for k in range(1, min(len(sizes), 4) + 1) for s in itertools.combinations(range(len(sizes)), k)]
    queries: list[Queries] = []
    for scope in draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=12, unique=True)):
        kind = draw(st.sampled_from(kinds))
        one: Queries = Marginal.of(domain, scope)
        if kind == "product" or (kind == "cells" and draw(st.booleans())):
            one = Product.of(domain, {i: draw(intervals(sizes[i])) for i in scope})
        if kind == "cells":
            one = one.take(draw(st.lists(st.sampled_from(range(one.size)), min_size=1, max_size=5, unique=True)))
        queries.append(one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "NODE_COST", draw(COSTS))
        patch.setattr(answering, "BATCH_COST", draw(COSTS))
        return domain, Layout(domain, queries)


ALL_KINDS = ("marginal", "product", "cells")


def enumerated(domain: Domain, queries: tuple[Queries, ...], rows: np.ndarray) -> np.ndarray:
    """The answers by enumeration: each row is a product distribution over all records of the domain."""
    starts = np.concatenate([[0], np.cumsum(domain.sizes)])
    codes = np.indices(domain.sizes).reshape(len(domain), -1)
    probabilities = np.ones((len(rows), domain.cells))
    for attribute, start in enumerate(starts[:-1]):
        probabilities *= rows.astype(np.float64)[:, start + codes[attribute]]
    return np.concatenate([probabilities.mean(axis=0) @ one.holds(list(codes)) for one in queries])


@settings(max_examples=25, deadline=None)
@given(problems(ALL_KINDS), st.integers(0, 1000))
def test_products_equal_gather_and_enumeration(problem: Problem, seed: int) -> None:
    domain, layout = problem
    rows = rows_of(domain, 7, seed)
    products = by_products(layout, jnp.asarray(rows))
    columns = layout.lift.columns(singles(layout.queries))
    gathered = query_answers(layout.lift.rows(jnp.asarray(rows)), jnp.asarray(columns))
    plain = enumerated(domain, layout.queries, rows)
    assert np.abs(products - plain).max() < 1e-6
    assert np.abs(np.asarray(gathered) - plain).max() < 1e-6


@settings(max_examples=25, deadline=None)
@given(problems(ALL_KINDS), st.integers(0, 1000))
def test_one_hot_rows_are_counted_exactly(problem: Problem, seed: int) -> None:
    domain, layout = problem
    rng = np.random.default_rng(seed)
    codes = [rng.integers(size, size=16) for size in domain.sizes]
    rows = np.concatenate([np.eye(s, dtype=np.float32)[c] for s, c in zip(domain.sizes, codes, strict=True)], axis=1)
    counts = np.concatenate([one.holds(codes).sum(axis=0) for one in layout.queries])
    assert np.array_equal(by_products(layout, jnp.asarray(rows)) * 16, counts)


@settings(max_examples=8, deadline=None)
@given(problems(ALL_KINDS), st.integers(0, 1000))
def test_gradients_equal_those_of_the_gather(problem: Problem, seed: int) -> None:
    """Of a weighted squared loss, in the layout and in the flat vector: cells that nobody asked for weigh nothing."""
    domain, layout = problem
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(rows_of(domain, 7, seed))
    asked = singles(layout.queries)
    targets, weights = (rng.random(len(asked)).astype(np.float32) for _ in range(2))
    columns = jnp.asarray(layout.lift.columns(asked))

    def flat(r: jax.Array) -> jax.Array:
        return jnp.sum(weights * (query_answers(layout.lift.rows(r), columns) - targets) ** 2)

    def laid(r: jax.Array) -> jax.Array:
        t, w = (layout.split(jnp.asarray(layout.from_flat(v))) for v in (targets, weights))
        losses = [jnp.sum(c * (a - b) ** 2) for a, b, c in zip(layout.answers(r), t, w, strict=True)]
        return sum(losses[1:], losses[0])

    assert np.allclose(jax.jit(jax.grad(laid))(rows), jax.jit(jax.grad(flat))(rows), rtol=1e-4, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(problems(ALL_KINDS))
def test_the_layout_goes_there_and_back(problem: Problem) -> None:
    _, layout = problem
    size = sum(one.size for one in layout.queries)
    values = np.arange(1, size + 1, dtype=np.float64)
    laid = layout.from_flat(values)
    assert np.array_equal(layout.to_flat(laid), values)
    assert np.count_nonzero(laid) == size
    assert sum(m.size for m in layout.split(jnp.asarray(laid))) == layout.cells


# --- the lift


def test_factors_other_than_the_identity_get_columns_of_their_own() -> None:
    domain = domain_of((2, 3, 4))
    prefixes, halves = Intervals.prefixes(3), Intervals(4, ((0, 2), (2, 4)))
    asked = [
        Product.of(domain, {0: "values", 1: prefixes}),
        Product.of(domain, {1: prefixes, 2: halves}).take([4]),
        Product.of(domain, {1: prefixes}),  # the same factor of the same attribute: no more columns
        Marginal.of(domain, (0, 2)),
    ]
    lift = Lift(domain, asked)
    assert lift.domain.sizes == (2, 3, 4, 3, 2)
    assert [lift.scope(one) for one in asked] == [(0, 3), (3, 4), (3,), (0, 2)]
    rows = rows_of(domain, 5, 0)
    lifted = np.asarray(lift.rows(jnp.asarray(rows)))
    assert np.array_equal(lifted[:, :9], rows)
    assert np.allclose(lifted[:, 9:12], np.cumsum(rows[:, 2:5], axis=1), atol=1e-6)
    assert np.allclose(lifted[:, 12:], np.stack([rows[:, 5:7].sum(1), rows[:, 7:].sum(1)], 1), atol=1e-6)


def test_marginals_need_no_lift() -> None:
    domain = domain_of((2, 3, 4))
    lift = Lift(domain, all_kway(domain, 2).queries)
    rows = jnp.asarray(rows_of(domain, 5, 0))
    assert lift.domain.sizes == domain.sizes
    assert lift.rows(rows) is rows


def test_columns_of_single_products() -> None:
    """A query is answered by the product of its columns; a shorter one is padded with the column of 1."""
    domain = domain_of((2, 3, 4))
    product = Product.of(domain, {0: "values", 1: "prefixes"})
    alone = Product.of(domain, {2: Intervals(4, ((1, 3),))})
    asked: list[Queries] = [product.take([4]), alone, Marginal.of(domain, (2,)).take([3])]
    lift = Lift(domain, asked)
    last = 2 + 3 + 4 + 3 + 1
    assert lift.offsets.tolist() == [0, 2, 5, 9, 12, last]
    # the fourth product is (x0 = 1, x1 < 2); its prefixes begin at column 9, the interval is column 12
    assert lift.columns(asked).tolist() == [[1, 10], [12, last], [8, last]]
    rows = rows_of(domain, 5, 1)
    gathered = query_answers(lift.rows(jnp.asarray(rows)), jnp.asarray(lift.columns(asked)))
    expected = [
        (rows[:, 1] * rows[:, 2:4].sum(1)).mean(),
        rows[:, 6:8].sum(1).mean(),
        rows[:, 8].mean(),
    ]
    assert np.abs(np.asarray(gathered) - expected).max() < 1e-6


class Odd(Cells):
    """Queries that are no products of intervals."""

    factors = None


def test_queries_that_are_no_products_are_refused_one_by_one() -> None:
    domain = domain_of((2, 3))
    odd = Odd(Marginal.of(domain, (0, 1)), (1, 2))
    with pytest.raises(InputError) as refused:
        Lift(domain, [odd])
    assert str(refused.value) == (
        "queries must be products of intervals to be selected one by one on relaxed rows, got others; "
        "use group marginal, or a method on histograms."
    )


# --- few products


def test_all_three_way_marginals_share_products_without_waste(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = all_kway(domain_of((2, 3, 4, 5, 6)), 3)
    nodes = layout_of(workload).nodes
    assert len(nodes) == 3
    assert sum(cells_of(workload.domain, node) for node in nodes) == workload.size
    monkeypatch.setattr(answering, "BATCH_COST", 0)  # nodes of several sizes in a batch are filled up
    assert layout_of(workload).cells == workload.size


def test_shorter_marginals_add_little_to_longer_ones() -> None:
    """All marginals of one and two attributes need no products of their own per attribute."""
    domain = domain_of((2, 3, 4, 5, 6, 7, 8, 9))
    marginals = {k: all_kway(domain, k).queries for k in (1, 2, 3)}
    assert len(Layout(domain, marginals[1]).nodes) == 1
    assert len(Layout(domain, marginals[1] + marginals[2]).nodes) == 1
    assert len(Layout(domain, marginals[1] + marginals[2] + marginals[3]).nodes) == 7


@pytest.mark.parametrize("k", [3, 4])
def test_a_part_of_many_marginals_takes_few_batches(k: int) -> None:
    """About a fifth of all three-way marginals, and fewer of the four-way ones; before, each pair was a product."""
    domain = domain_of(tuple(2 + 7 * i % 23 for i in range(40)))
    workload = random_kway(domain, k, 2000, 0)
    layout = layout_of(workload)
    prefixes = {scope[:-1] for scope in workload.scopes}
    assert len(prefixes) > 500
    assert len(layout.shapes) <= len(domain)
    assert layout.cells <= 2.2 * workload.size
    assert layout.outer_width <= 0.05 * layout.cells


def test_rows_beyond_the_memory_bound_are_taken_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = all_kway(domain_of((3, 4, 5)), 3)
    rows = jnp.asarray(rows_of(workload.domain, 50, 0))
    whole = by_products(layout_of(workload), rows)

    def loss(r: jax.Array) -> jax.Array:
        return sum((jnp.sum(m * m) for m in layout_of(workload).answers(r)), jnp.float32(0))

    gradient = jax.grad(loss)(rows)
    monkeypatch.setattr(answering, "MOST_OUTER_BYTES", 4 * layout_of(workload).outer_width * 7)
    assert np.allclose(by_products(layout_of(workload), rows), whole, atol=1e-6)
    assert np.allclose(jax.grad(loss)(rows), gradient, atol=1e-6)
    assert layout_of(workload).memory(10**6) == 4 * 60 + answering.MOST_OUTER_BYTES


def test_gradients_equal_finite_differences() -> None:
    workload = all_kway(domain_of((2, 3, 2)), 2)
    layout = layout_of(workload)
    rows = rows_of(workload.domain, 4, 1)

    def loss(r: jax.Array) -> jax.Array:
        return sum((jnp.sum(m * m) for m in layout.answers(r)), jnp.float32(0))

    gradient = np.asarray(jax.grad(loss)(jnp.asarray(rows)))
    for at in [(0, 0), (1, 3), (3, 6)]:
        up, down = rows.copy(), rows.copy()
        up[at] += 1e-2
        down[at] -= 1e-2
        numeric = (float(loss(jnp.asarray(up))) - float(loss(jnp.asarray(down)))) / 2e-2
        assert gradient[at] == pytest.approx(numeric, rel=2e-2, abs=1e-4)
