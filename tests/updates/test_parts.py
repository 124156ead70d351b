"""Parts of marginals: what measurements tell about them, and the distance as weights of marginals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pointillist.data.domain import Attributes, Domain
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residual, Residuals
from pointillist.updates.parts import PartEstimates, centred, subsets

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 1, 4))
TOTAL = 1000


def whole(seed: int = 0) -> np.ndarray:
    """A random distribution over all attributes."""
    return np.random.default_rng(seed).dirichlet(np.ones(DOMAIN.cells)).reshape(DOMAIN.sizes)


def marginal_of(table: np.ndarray, scope: Attributes) -> np.ndarray:
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in scope))


def counts_of(queries: Marginal | Residuals, table: np.ndarray) -> np.ndarray:
    """Exact counts of the rows of a distribution, which need not be whole."""
    if isinstance(queries, Marginal):
        return TOTAL * marginal_of(table, queries.scope).ravel()
    return np.concatenate([part.of_marginal(TOTAL * marginal_of(table, part.scope).ravel()) for part in queries.parts])


def residuals_of(*scopes: Attributes) -> Residuals:
    return Residuals(tuple(Residual(s, DOMAIN.shape(s), 3 + n) for n, s in enumerate(scopes)))


def measured(noise: float = 0.0, seed: int = 0) -> list[Measurement]:
    """One-way marginals, a pair with an attribute of one value, a triple, and residuals."""
    rng = np.random.default_rng(seed)
    asked = [Marginal.of(DOMAIN, scope) for scope in [(0,), (1,), (3,), (1, 2), (0, 1, 3)]]
    every = [*asked, residuals_of((0, 1), (1, 3), (0, 1, 3))]
    found = []
    for n, queries in enumerate(every):
        sigma = 5.0 + n if isinstance(queries, Marginal) else 70.0
        exact = counts_of(queries, whole())
        found.append(Measurement(queries, exact + noise * sigma * rng.standard_normal(len(exact)), sigma))
    return found


def test_exact_measurements_give_exact_parts_and_marginals() -> None:
    parts = PartEstimates.of(DOMAIN, measured(), TOTAL)
    assert parts.scopes == ((0,), (1,), (3,), (0, 1), (0, 3), (1, 3), (0, 1, 3))
    for scope in parts.scopes:
        table = marginal_of(whole(), scope)
        assert np.allclose(parts.values[scope], centred(table))
        assert np.allclose(parts.marginal(scope), table.ravel())
    with_single = marginal_of(whole(), (1, 2, 3)).ravel()
    assert np.allclose(parts.marginal((1, 2, 3)), with_single)
    assert parts.freedom == 1 + 2 + 3 + 2 + 3 + 6 + 6


def test_precisions_add_up() -> None:
    """A sum over cells of a marginal has their number of times the variance; a residual tells its own part only."""
    parts = PartEstimates.of(DOMAIN, measured(), TOTAL)
    unit = [(TOTAL / one.sigma) ** 2 for one in measured()]
    residual = [(TOTAL * part.weight * part.size / 70.0) ** 2 for part in measured()[-1].queries.parts]  # type: ignore[attr-defined]
    assert parts.precision[0,] == pytest.approx(unit[0] + unit[4] / 12)
    assert parts.precision[1,] == pytest.approx(unit[1] + unit[3] + unit[4] / 8)
    assert parts.precision[0, 1] == pytest.approx(unit[4] / 4 + residual[0])
    assert parts.precision[0, 3] == pytest.approx(unit[4] / 3)
    assert parts.precision[0, 1, 3] == pytest.approx(unit[4] + residual[2])


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_marginals_give_the_distance_of_parts(seed: int) -> None:
    parts = PartEstimates.of(DOMAIN, measured(1.0, seed), TOTAL)
    model = whole(seed + 7)
    tables = {scope: marginal_of(model, scope) for scope in parts.weights}
    tables = {scope: table.reshape([DOMAIN.sizes[i] for i in scope]) for scope, table in tables.items()}
    by_parts = sum(parts.precision[a] * float((off**2).sum()) for a, off in parts.residuals(tables))
    by_weights = sum(
        weight * float(((tables[b].ravel() - parts.marginal(b)) ** 2).sum()) for b, weight in parts.weights.items()
    )
    assert by_weights == pytest.approx(by_parts, rel=1e-9)
    assert min(parts.weights.values()) < 0


def test_marginals_alone_have_their_precisions_as_weights() -> None:
    """Also where they overlap; and the distance differs from the plain sum of squares by a constant."""
    scopes = [(0, 1), (1, 3), (3,)]
    rng = np.random.default_rng(0)
    plain = [
        Measurement(Marginal.of(DOMAIN, s), rng.normal(100, 30, DOMAIN.cells_of(s)), 10.0 + len(s)) for s in scopes
    ]
    parts = PartEstimates.of(DOMAIN, plain, TOTAL)
    assert set(parts.weights) == set(scopes)
    assert [parts.weights[s] for s in scopes] == pytest.approx([(TOTAL / one.sigma) ** 2 for one in plain])
    differences = []
    for seed in range(3):
        model = whole(seed)
        tables = {s: marginal_of(model, s).reshape([DOMAIN.sizes[i] for i in s]) for s in scopes}
        squares = [
            ((tables[s].ravel() - one.fractions(TOTAL)) * TOTAL / one.sigma) ** 2
            for s, one in zip(scopes, plain, strict=True)
        ]
        by_parts = sum(parts.precision[a] * float((off**2).sum()) for a, off in parts.residuals(tables))
        differences.append(sum(float(part.sum()) for part in squares) - by_parts)
    assert differences == pytest.approx([differences[0]] * 3)


def test_the_variance_of_a_cell_is_that_of_simulated_noise() -> None:
    drawn = [PartEstimates.of(DOMAIN, measured(1.0, seed), TOTAL) for seed in range(600)]
    for scope in ((1,), (0, 1), (1, 3), (0, 1, 3), (0, 1, 2)):
        cells = np.array([parts.marginal(scope) for parts in drawn])
        found = float(((cells - marginal_of(whole(), scope).ravel()) ** 2).mean())
        assert found == pytest.approx(drawn[0].variance(scope), rel=0.15)
    alone = PartEstimates.of(DOMAIN, measured()[-1:], TOTAL)
    assert math.isinf(alone.variance((0, 1)))  # nothing tells the one-way marginals


def test_split_noise_is_independent_and_as_large_as_it_should_be() -> None:
    parts = PartEstimates.of(DOMAIN, measured(), TOTAL)
    rng = np.random.default_rng(0)
    pairs = [parts.noised(rng, 0.5, -2.0) for _ in range(400)]
    for scope in parts.scopes:
        one, two = (np.array([pair[n].values[scope] - parts.values[scope] for pair in pairs]) for n in (0, 1))
        assert np.allclose(one * -4, two)  # the same z
        size = math.prod(one.shape[1:])
        expected = 0.25 * parts.share(scope) / parts.precision[scope]
        assert float((one**2).sum()) / (400 * size) == pytest.approx(expected, rel=0.2)
        assert all(np.allclose(one.sum(axis=axis), 0) for axis in range(1, one.ndim))


def test_marginals_of_many_columns_have_parts_for_all_subsets() -> None:
    domain = Domain(tuple("abcd"), (2, 2, 3, 3))
    found = [Measurement(queries, np.ones(queries.size), 1.0) for queries in all_kway(domain, 3).queries]
    parts = PartEstimates.of(domain, found, 100)
    expected = {s for k in (1, 2, 3) for s in itertools.combinations(range(4), k)}
    assert set(parts.scopes) == expected
    assert set(subsets((0, 1, 2))) == {s for s in expected if 3 not in s}
