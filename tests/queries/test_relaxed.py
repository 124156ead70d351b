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
from pointillist.queries import relaxed
from pointillist.queries.marginals import all_kway, random_kway
from pointillist.queries.relaxed import Node, Plan, columns_of, query_answers
from pointillist.queries.workload import Workload


def domain_of(sizes: tuple[int, ...]) -> Domain:
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


def rows_of(domain: Domain, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.ones(size), count) for size in domain.sizes], axis=1).astype(np.float32)


def by_products(plan: Plan, rows: jax.Array) -> np.ndarray:
    return plan.to_flat(np.concatenate([np.asarray(m).ravel() for m in jax.jit(plan.answers)(rows)]))


def cells_of(domain: Domain, node: Node) -> int:
    return math.prod(sum(map(domain.cells_of, side)) for side in node.sides)


COSTS = st.sampled_from([0, 30, 10_000])
"""Plans have many nodes and batches if these cost nothing, and few if they cost more than all cells."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relaxed, "NODE_COST", draw(COSTS))
        patch.setattr(relaxed, "BATCH_COST", draw(COSTS))
        return Plan(draw(workloads()))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=6)))
    subsets = [s for k in range(1, min(len(sizes), 4) + 1) for s in itertools.combinations(range(len(sizes)), k)]
    chosen = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=12, unique=True))
    return Workload(domain_of(sizes), tuple(chosen))


@settings(max_examples=25, deadline=None)
@given(plans(), st.integers(0, 1000))
def test_products_equal_gather_and_plain_arithmetic(plan: Plan, seed: int) -> None:
    workload = plan.workload
    rows = rows_of(workload.domain, 7, seed)
    products = by_products(plan, jnp.asarray(rows))
    gathered = query_answers(jnp.asarray(rows), jnp.asarray(columns_of(workload, np.arange(workload.queries))))
    starts = np.concatenate([[0], np.cumsum(workload.domain.sizes)])
    plain = []
    for marginal in workload.marginals:
        for values in itertools.product(*(range(workload.domain.sizes[i]) for i in marginal)):
            plain.append(
                np.prod([rows[:, starts[i] + v] for i, v in zip(marginal, values, strict=True)], axis=0).mean()
            )
    assert np.allclose(products, plain, atol=1e-6)
    assert np.allclose(np.asarray(gathered), plain, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(plans(), st.integers(0, 1000))
def test_one_hot_rows_are_counted_exactly(plan: Plan, seed: int) -> None:
    workload = plan.workload
    rng = np.random.default_rng(seed)
    codes = [rng.integers(size, size=16) for size in workload.domain.sizes]
    rows = np.concatenate(
        [np.eye(s, dtype=np.float32)[c] for s, c in zip(workload.domain.sizes, codes, strict=True)], axis=1
    )
    counts = []
    for marginal in workload.marginals:
        keys = np.ravel_multi_index([codes[i] for i in marginal], workload.domain.shape(marginal))
        counts.append(np.bincount(keys, minlength=workload.domain.cells_of(marginal)))
    assert np.array_equal(by_products(plan, jnp.asarray(rows)) * 16, np.concatenate(counts))


@settings(max_examples=8, deadline=None)
@given(plans(), st.integers(0, 1000))
def test_gradients_equal_those_of_the_gather(plan: Plan, seed: int) -> None:
    """Of a weighted squared loss, in the layout and in the flat vector: cells that nobody asked for weigh nothing."""
    workload = plan.workload
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(rows_of(workload.domain, 7, seed))
    targets, weights = (rng.random(workload.queries).astype(np.float32) for _ in range(2))
    columns = jnp.asarray(columns_of(workload, np.arange(workload.queries)))

    def flat(r: jax.Array) -> jax.Array:
        return jnp.sum(weights * (query_answers(r, columns) - targets) ** 2)

    def laid(r: jax.Array) -> jax.Array:
        t, w = (plan.split(jnp.asarray(plan.from_flat(v))) for v in (targets, weights))
        losses = [jnp.sum(c * (a - b) ** 2) for a, b, c in zip(plan.answers(r), t, w, strict=True)]
        return sum(losses[1:], losses[0])

    assert np.allclose(jax.jit(jax.grad(laid))(rows), jax.jit(jax.grad(flat))(rows), rtol=1e-4, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(plans())
def test_the_layout_goes_there_and_back(plan: Plan) -> None:
    workload = plan.workload
    values = np.arange(1, workload.queries + 1, dtype=np.float64)
    laid = plan.from_flat(values)
    assert np.array_equal(plan.to_flat(laid), values)
    assert np.count_nonzero(laid) == workload.queries
    assert sum(m.size for m in plan.split(jnp.asarray(laid))) == plan.cells


def test_all_three_way_marginals_share_products_without_waste(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = all_kway(domain_of((2, 3, 4, 5, 6)), 3)
    nodes = Plan(workload).nodes
    assert len(nodes) == 3
    assert sum(cells_of(workload.domain, node) for node in nodes) == workload.queries
    monkeypatch.setattr(relaxed, "BATCH_COST", 0)  # nodes of several sizes in a batch are filled up
    assert Plan(workload).cells == workload.queries


def test_shorter_marginals_add_little_to_longer_ones() -> None:
    """All marginals of one and two attributes need no products of their own per attribute."""
    domain = domain_of((2, 3, 4, 5, 6, 7, 8, 9))
    marginals = {k: all_kway(domain, k).marginals for k in (1, 2, 3)}
    assert len(Plan(Workload(domain, marginals[1])).nodes) == 1
    assert len(Plan(Workload(domain, marginals[1] + marginals[2])).nodes) == 1
    assert len(Plan(Workload(domain, marginals[1] + marginals[2] + marginals[3])).nodes) == 7


@pytest.mark.parametrize("k", [3, 4])
def test_a_part_of_many_marginals_takes_few_batches(k: int) -> None:
    """About a fifth of all three-way marginals, and fewer of the four-way ones; before, each pair was a product."""
    domain = domain_of(tuple(2 + 7 * i % 23 for i in range(40)))
    workload = random_kway(domain, k, 2000, 0)
    plan = Plan(workload)
    prefixes = {marginal[:-1] for marginal in workload.marginals}
    assert len(prefixes) > 500
    assert len(plan.shapes) <= len(domain)
    assert plan.cells <= 2.2 * workload.queries
    assert plan.outer_width <= 0.05 * plan.cells


def test_rows_beyond_the_memory_bound_are_taken_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = all_kway(domain_of((3, 4, 5)), 3)
    rows = jnp.asarray(rows_of(workload.domain, 50, 0))
    whole = by_products(Plan(workload), rows)

    def loss(r: jax.Array) -> jax.Array:
        return sum((jnp.sum(m * m) for m in Plan(workload).answers(r)), jnp.float32(0))

    gradient = jax.grad(loss)(rows)
    monkeypatch.setattr(relaxed, "MOST_OUTER_BYTES", 4 * Plan(workload).outer_width * 7)
    assert np.allclose(by_products(Plan(workload), rows), whole, atol=1e-6)
    assert np.allclose(jax.grad(loss)(rows), gradient, atol=1e-6)
    assert Plan(workload).memory(10**6) == 4 * 60 + relaxed.MOST_OUTER_BYTES


def test_gradients_equal_finite_differences() -> None:
    workload = all_kway(domain_of((2, 3, 2)), 2)
    plan = Plan(workload)
    rows = rows_of(workload.domain, 4, 1)

    def loss(r: jax.Array) -> jax.Array:
        return sum((jnp.sum(m * m) for m in plan.answers(r)), jnp.float32(0))

    gradient = np.asarray(jax.grad(loss)(jnp.asarray(rows)))
    for at in [(0, 0), (1, 3), (3, 6)]:
        up, down = rows.copy(), rows.copy()
        up[at] += 1e-2
        down[at] -= 1e-2
        numeric = (float(loss(jnp.asarray(up))) - float(loss(jnp.asarray(down)))) / 2e-2
        assert gradient[at] == pytest.approx(numeric, rel=2e-2, abs=1e-4)
