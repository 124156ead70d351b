"""Product queries, and some of them, against the definition: ``holds`` for every record of a small domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist import Intervals, Marginal, Product
from pointillist.data.domain import Domain
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.records import RecordList, Records
from pointillist.families.relaxed import Model, Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.families.support import Support
from pointillist.queries.base import Queries
from pointillist.queries.cells import box_of

DOMAIN = Domain(("a", "b", "c"), (4, 3, 5))
EVERY = tuple(np.indices(DOMAIN.sizes).reshape(3, -1))
"""Every record of the domain, in the order of the raveled histogram."""

RANGES = Intervals(5, ((1, 4), (0, 2), (3, 4), (2, 5)))
PREFIXES = Product.of(DOMAIN, {"a": "prefixes", "b": "values"})
MIXED = Product.of(DOMAIN, {"a": "values", "b": "prefixes", "c": RANGES})
QUERIES: tuple[Queries, ...] = (
    Marginal.of(DOMAIN, ("a", "c")),
    PREFIXES,
    MIXED,
    Product.of(DOMAIN, {"a": "values", "c": "values"}),
    Product.of(DOMAIN, {"c": "prefixes"}),
    Product.of(DOMAIN, {"a": Intervals(4, ((0, 2), (2, 4))), "b": "values"}),  # a partition
    Product.of(DOMAIN, {"b": Intervals(3, ((1, 3),)), "c": Intervals(5, ((2, 4),))}),  # a box
    PREFIXES.take([7, 0, 3]),
    MIXED.take([40]),
    MIXED.take([40, 2, 31]).take([2, 0]),
    Marginal.of(DOMAIN, ("b", "c")).take([4, 9]),
    Marginal.of(DOMAIN, ("b", "c")).take([4]),
)


def enumerated(queries: list[Queries] | tuple[Queries, ...], codes: Any, weights: np.ndarray) -> np.ndarray:
    """The sums of the weights of the records for which each query holds."""
    return np.concatenate([weights @ one.holds(codes) for one in queries])


def dyadic(count: int, seed: int = 0) -> np.ndarray:
    """Weights that sum to 1, all of them multiples of 2^-16: their sums are exact in any order."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, 2**16), count - 1, replace=False))
    return np.diff([0, *cuts, 2**16]) / 2**16


def few_records() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    return tuple(rng.integers(0, size, 30) for size in DOMAIN.sizes)


# --- answers


def test_a_histogram_answers_exactly() -> None:
    weights = dyadic(60)
    found = Histogram(DOMAIN).answers(weights.reshape(DOMAIN.sizes), QUERIES)
    assert np.array_equal(found, enumerated(QUERIES, EVERY, weights))


def test_public_records_answer_exactly() -> None:
    codes, weights = few_records(), dyadic(30)
    found = Support(DOMAIN, codes, weights).answers(weights, QUERIES)
    assert np.array_equal(found, enumerated(QUERIES, codes, weights))


def test_a_list_of_records_answers_exactly() -> None:
    codes, weights = few_records(), dyadic(30)
    family = RecordList(DOMAIN)
    found = family.answers(Records(np.stack(codes, axis=1), weights), QUERIES)
    assert np.array_equal(found, enumerated(QUERIES, codes, weights))
    empty = family.answers(family.init(np.random.default_rng(0)), QUERIES)
    assert np.allclose(empty, enumerated(QUERIES, EVERY, np.full(60, 1 / 60)), atol=1e-15)


def model_of(name: str) -> Model:
    return SoftmaxRows(DOMAIN, 7, spread=2.0) if name == "softmax" else Generator(DOMAIN, 6, 4, (8,))


@pytest.mark.parametrize("model", ["softmax", "generator"])
def test_relaxed_rows_answer_with_the_products_of_their_probabilities(model: str) -> None:
    family = Relaxed(model_of(model))
    params = family.init(np.random.default_rng(5))
    rows = np.asarray(family.model.probabilities(params), np.float64)
    a, b, c = np.split(rows, np.cumsum(DOMAIN.sizes)[:-1], axis=1)
    records = np.einsum("ri,rj,rk->ijk", a, b, c).ravel() / len(rows)
    expected = enumerated(QUERIES, EVERY, records)
    assert np.abs(family.answers(params, QUERIES) - expected).max() < 1e-6
    for one, part in zip(QUERIES, np.split(expected, np.cumsum([q.size for q in QUERIES])[:-1]), strict=True):
        assert np.abs(family.answers(params, [one]) - part).max() < 1e-6  # each by itself, too


@pytest.mark.parametrize("kind", ["histogram", "support", "records", "softmax", "generator"])
def test_drawn_rows_answer_as_the_model_does(kind: str) -> None:
    rng, codes = np.random.default_rng(1), few_records()
    family: Any
    if kind in ("softmax", "generator"):
        family = Relaxed(model_of(kind))
        params: Any = family.init(rng)
    elif kind == "histogram":
        family, params = Histogram(DOMAIN), dyadic(60).reshape(DOMAIN.sizes)
    elif kind == "support":
        family, params = Support(DOMAIN, codes, dyadic(30)), dyadic(30, seed=1)
    else:
        family, params = RecordList(DOMAIN), Records(np.stack(codes, axis=1), dyadic(30))
    drawn = family.sample(rng, params, 20_000)
    shares = np.concatenate([one.holds(drawn).mean(axis=0) for one in QUERIES])
    assert np.abs(shares - family.answers(params, QUERIES)).max() < 0.015


# --- sums and factors


@st.composite
def asked(draw: st.DrawFn) -> list[Queries]:
    """A few different queries: marginals, products, some of their cells, and boxes."""
    found: list[Queries] = []
    for _ in range(draw(st.integers(1, 5))):
        scope = sorted(draw(st.sets(st.integers(0, 2), min_size=1, max_size=3)))
        if draw(st.integers(0, 3)) == 0:
            one: Queries = Marginal.of(DOMAIN, scope)
        else:
            one = Product.of(DOMAIN, {i: draw(intervals(DOMAIN.sizes[i])) for i in scope})
        if draw(st.booleans()):
            cells = draw(st.lists(st.integers(0, one.size - 1), min_size=1, max_size=4, unique=True))
            one = one.take(cells[:1] if draw(st.booleans()) else cells)
        if one not in found:
            found.append(one)
    return found


def intervals(size: int) -> st.SearchStrategy[Intervals | str]:
    pairs = st.tuples(st.integers(0, size - 1), st.integers(1, size)).filter(lambda pair: pair[0] < pair[1])
    some = st.lists(pairs, min_size=1, max_size=4, unique=True).map(lambda bounds: Intervals(size, tuple(bounds)))
    return st.one_of(st.just("values"), st.just("prefixes"), some)


@pytest.mark.parametrize("kind", ["histogram", "support"])
@settings(max_examples=60, deadline=None)
@given(queries=asked(), seed=st.integers(0, 1000))
def test_sums_and_scaling_by_enumeration(kind: str, queries: list[Queries], seed: int) -> None:
    """Whatever is asked together: a step on one of them changes weights and sums as it would record by record."""
    rng = np.random.default_rng(seed)
    codes = EVERY if kind == "histogram" else few_records()
    weights = rng.random(len(codes[0]))
    family: Any = Histogram(DOMAIN) if kind == "histogram" else Support(DOMAIN, codes, weights)
    params = weights.reshape(DOMAIN.sizes).copy() if kind == "histogram" else weights.copy()
    sums, mass = family.sums(params, queries), float(weights.sum())
    for step in range(4):
        for one, found in zip(queries, sums, strict=True):
            assert np.allclose(found, weights @ one.holds(codes), atol=1e-12)
        at = int(rng.integers(len(queries)))
        most = max(1, int(queries[at].holds(codes).sum(axis=1).max()))  # so that no weight outgrows the others by far
        factors = rng.uniform(0.2, 3, queries[at].size) ** (1 / most)
        weights = weights * np.where(queries[at].holds(codes), factors, 1.0).prod(axis=1)
        if step % 2:
            mass = family.rescale(params, queries, at, factors, sums, mass)
        else:
            family.scale(params, queries[at], factors)
            sums, mass = family.sums(params, queries), float(weights.sum())
        assert np.allclose(params.ravel(), weights)
        assert mass == pytest.approx(weights.sum())


def test_boxes_that_meet_change_each_other_and_no_others() -> None:
    """Single ranges only: the histogram sums again nothing but what two boxes share."""
    wide = Product.of(DOMAIN, {"a": Intervals(4, ((1, 4),)), "c": Intervals(5, ((0, 3),))})
    inside = Product.of(DOMAIN, {"c": Intervals(5, ((2, 5),))})
    apart = Product.of(DOMAIN, {"a": Intervals(4, ((0, 1),)), "b": Intervals(3, ((0, 2),))})
    queries = [wide, inside, apart]
    assert [box_of(one) for one in queries] == [
        {0: (1, 4), 2: (0, 3)},
        {2: (2, 5)},
        {0: (0, 1), 1: (0, 2)},
    ]
    family = Histogram(DOMAIN)
    params = dyadic(60).reshape(DOMAIN.sizes).copy()
    before = family.sums(params, queries)
    sums = list(before)
    mass = family.rescale(params, queries, 0, np.array([3.0]), sums, 1.0)
    shared = dyadic(60)[(EVERY[0] >= 1) & (EVERY[2] == 2)].sum()
    assert sums[0] == 3 * before[0]
    assert sums[1] == before[1] + 2 * shared
    assert sums[2] is before[2]
    assert mass == 1 + 2 * before[0][0]
