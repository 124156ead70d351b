"""How much parts matter for a workload: its scale, its orders, and the standard errors of judgements by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pointillist.data.domain import Domain
from pointillist.updates.parts import PartEstimates, centred
from pointillist.updates.relevance import relevance

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
SHARES = [np.array([0.5, 0.5]), np.array([0.9, 0.05, 0.05]), np.full(4, 0.25)]
PRECISION = {(0,): 1e4, (1,): 1e4, (0, 1): 1e6, (1, 2): 1e2, (0, 2): 1e2}


def parts(seed: int = 0) -> PartEstimates:
    rng = np.random.default_rng(seed)
    values = {scope: centred(rng.standard_normal(DOMAIN.shape(scope))) for scope in PRECISION}
    return PartEstimates(DOMAIN, values, PRECISION)


def test_noise_counts_as_much_as_in_its_own_units() -> None:
    found, measured = relevance(parts(), [(0, 1), (1, 2)], SHARES), parts()
    noise = sum(found[scope] * measured.freedom_of(scope) / PRECISION[scope] for scope in PRECISION)
    assert noise == pytest.approx(measured.freedom)
    assert measured.freedom == sum(math.prod(DOMAIN.sizes[i] - 1 for i in scope) for scope in PRECISION)


def test_parts_count_by_the_wanted_queries_and_by_their_shares_and_not_by_their_precision() -> None:
    found = relevance(parts(), [(0, 1), (0, 1, 2), (1, 2)], SHARES)
    roots = [np.sqrt(share).sum() ** 2 for share in SHARES]
    wanted = {(0,): 2, (1,): 3, (0, 1): 2, (1, 2): 2, (0, 2): 1}
    expected = {scope: wanted[scope] * math.prod(roots[i] for i in scope) for scope in PRECISION}
    for scope in PRECISION:
        assert found[scope] / found[(0,)] == pytest.approx(expected[scope] / expected[(0,)])
    assert relevance(parts(), [(1,)], SHARES)[(0, 1)] == 0


def test_wide_queries_count_like_the_marginals_that_they_hold() -> None:
    sizes = (2, 3, 4, *(2,) * 9)
    domain = Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)
    shares = [np.full(size, 1 / size) for size in sizes]
    told = PartEstimates(domain, {scope: np.zeros(domain.shape(scope)) for scope in PRECISION}, PRECISION)
    wide, halves = tuple(range(len(sizes))), [(0, 1), (0, 1, 2)]
    many = relevance(told, [wide, wide, *halves], shares)
    few = relevance(told, [(0, 1, 2), (0, 1, 2), *halves], shares)
    assert many == pytest.approx(few)


def test_where_no_wanted_query_has_a_part_precisions_count() -> None:
    only = PartEstimates(DOMAIN, {(0, 1): np.zeros((2, 3))}, {(0, 1): 7.0})
    assert relevance(only, [(2,)], SHARES) == {(0, 1): 7.0}


def test_the_standard_error_of_a_judgement() -> None:
    """Over draws of the noise, the difference of two weighted distances spreads as its formula says."""
    truth, weights = parts(), relevance(parts(), [(0, 1), (0, 2), (1, 2)], SHARES)
    near, far = ({scope: truth.values[scope] + step for scope, step in steps.items()} for steps in (off(1), off(2)))
    gains = []
    for seed in range(4000):
        noisy, _ = truth.noised(np.random.default_rng(seed), 1.0, 0.0)
        one, other = (
            truth.squared(((scope, noisy.values[scope] - model[scope]) for scope in PRECISION), weights)
            for model in (near, far)
        )
        gains.append(other - one)
    squares = {scope: weights[scope] ** 2 / PRECISION[scope] for scope in PRECISION}
    apart = truth.squared(((scope, near[scope] - far[scope]) for scope in PRECISION), squares)
    assert np.std(gains) == pytest.approx(math.sqrt(4 * apart), rel=0.05)


def off(seed: int) -> dict[tuple[int, ...], np.ndarray]:
    """A small difference of every part."""
    rng = np.random.default_rng(seed)
    return {scope: 0.01 * centred(rng.standard_normal(DOMAIN.shape(scope))) for scope in PRECISION}
