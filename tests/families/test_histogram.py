"""The histogram family: marginals, strided queries, sampling."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.domain import Domain
from pointillist.families.histogram import FLOOR, Histogram, marginals_of, sum_out
from pointillist.queries.candidates import Grouping
from pointillist.queries.kway import all_kway

shapes = st.lists(st.integers(2, 4), min_size=1, max_size=5).map(tuple)


def domain_of(sizes: tuple[int, ...]) -> Domain:
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 100), st.sampled_from([np.float64, np.float32]))
def test_marginals_equal_plain_sums(sizes: tuple[int, ...], seed: int, dtype: type) -> None:
    weights = np.random.default_rng(seed).random(sizes).astype(dtype)
    axes = range(len(sizes))
    wanted = [m for k in range(len(sizes) + 1) for m in itertools.combinations(axes, k)]
    found = marginals_of(weights, wanted)
    for marginal in wanted:
        plain = weights.sum(axis=tuple(i for i in axes if i not in marginal), dtype=np.float64)
        assert np.allclose(found[marginal], plain, rtol=1e-5)
        assert np.allclose(sum_out(weights, marginal), plain.ravel(), rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(shapes.filter(lambda s: len(s) >= 2), st.integers(0, 100), st.sampled_from(list(Grouping)), st.data())
def test_scaling_a_group_keeps_all_sums_up_to_date(
    sizes: tuple[int, ...], seed: int, grouping: Grouping, data: st.DataObject
) -> None:
    """rescale() updates the sums of all that is asked exactly as counting them again would."""
    domain = domain_of(sizes)
    family = Histogram(domain)
    candidates = grouping.candidates(all_kway(domain, 2).queries)
    rng = np.random.default_rng(seed)
    params = rng.random(sizes)
    drawn = data.draw(st.lists(st.integers(0, len(candidates) - 1), min_size=1, max_size=6, unique=True))
    asked = [candidates[number] for number in drawn]
    sums = family.sums(params, asked)
    mass = float(params.sum())
    for _ in range(4):
        at = int(rng.integers(len(asked)))
        factors = rng.uniform(0.2, 3, len(sums[at]))
        mass = family.rescale(params, asked, at, factors, sums, mass)
        assert np.isclose(mass, params.sum())
        for queries, found in zip(asked, sums, strict=True):
            assert np.allclose(found, family.answers(params, [queries]))


def test_weights_never_vanish() -> None:
    """A weight that were multiplied down to 0 could never come back."""
    domain = domain_of((2, 2))
    family = Histogram(domain)
    for grouping in Grouping:
        first = grouping.candidates(all_kway(domain, 2).queries)[0]
        params = family.init(np.random.default_rng(0))
        for _ in range(100):
            family.scale(params, first, np.full(first.size, 1e-12))
        assert params.min() >= FLOOR


def test_sampling_is_stratified() -> None:
    """Every cell gets its expected number of rows up to two: one at each end of its stretch."""
    domain = domain_of((3, 4, 2))
    family = Histogram(domain)
    params = np.random.default_rng(0).dirichlet(np.ones(24)).reshape(3, 4, 2)
    codes = family.sample(np.random.default_rng(1), params, 10_000)
    counts = np.zeros((3, 4, 2))
    np.add.at(counts, codes, 1)
    assert np.abs(counts - 10_000 * params).max() <= 2
    assert not np.all(np.diff(codes[0]) >= 0)  # shuffled


def test_large_domains_use_single_precision() -> None:
    assert Histogram(domain_of((10,) * 7)).dtype == np.float64
    assert Histogram(domain_of((10,) * 8)).dtype == np.float32
    assert Histogram.fits(domain_of((10,) * 8))
    assert not Histogram.fits(domain_of((10,) * 9))
    assert Histogram.memory(domain_of((10,) * 8)) == 400_000_000
