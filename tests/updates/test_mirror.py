"""Mirror descent: the gradient, the fit of exact marginals, and the fit of mbi."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from pointillist import InputError
from pointillist.data.domain import Domain
from pointillist.families.markov import Field, Markov
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.product import Product
from pointillist.updates.fitting import fitting
from pointillist.updates.mirror import MirrorDescent, Problem, combined

DOMAIN = Domain(("a", "b", "c", "d"), (3, 4, 2, 3))
N = 10_000


def truth() -> np.ndarray:
    return np.random.default_rng(3).dirichlet(np.full(DOMAIN.cells, 0.3)).reshape(DOMAIN.sizes)


def measured(queries: Queries, sigma: float, seed: int = 0) -> Measurement:
    outside = tuple(i for i in range(len(DOMAIN)) if i not in queries.scope)
    counts = queries.of_marginal(N * truth().sum(axis=outside).ravel())
    noise = sigma * np.random.default_rng(seed).standard_normal(queries.size)
    return Measurement(queries, np.rint(counts + noise).astype(np.int64), sigma)


def some(sigma: float = 30.0) -> list[Measurement]:
    scopes = [(0, 1), (1, 2), (0, 2), (2, 3), (3,), (0, 1)]
    return [measured(Marginal.of(DOMAIN, scope), sigma, n) for n, scope in enumerate(scopes)]


def fit(measurements: list[Measurement], steps: int = 2000, tolerance: float = 0.0) -> tuple[Field, dict[str, float]]:
    log = Log(Facts(N, 1.0), [Round(measurements=tuple(measurements))])
    update = MirrorDescent(Markov(DOMAIN), steps, tolerance)
    fitted, _, info = update(np.random.default_rng(0), Field(DOMAIN), update.init(Field(DOMAIN)), log)
    return fitted, info


def test_the_gradient_is_that_of_the_loss() -> None:
    """By finite differences of the loss as a function of the measured marginals, also for queries that overlap."""
    prefixes = Product.of(DOMAIN, {"b": "prefixes", "d": "values"})
    problem = Problem(DOMAIN, [*some(), measured(prefixes, 30.0)], N)
    rng = np.random.default_rng(1)
    theta = {scope: rng.standard_normal(DOMAIN.shape(scope)) for scope in problem.scopes}
    point = problem.at(theta)
    step = 1e-5
    direction = {scope: rng.standard_normal(DOMAIN.shape(scope)) for scope in problem.scopes}
    up, down = (problem.at({s: theta[s] + sign * step * direction[s] for s in theta}) for sign in (1, -1))
    moved = 0.0
    for scope in problem.scopes:
        before, after = (Field(DOMAIN, one.theta).beliefs.marginal(scope) for one in (down, up))
        moved += float(np.vdot(point.gradient[scope], after - before))
    assert moved == pytest.approx(up.loss - down.loss, rel=1e-4)


def test_repeated_measurements_count_as_their_mean() -> None:
    first, last = some()[0], some()[-1]
    (term,) = combined([first, last], N)
    np.testing.assert_allclose(term.target, (first.counts + last.counts) / 2 / N)
    assert term.precision == pytest.approx(2 * (N / 30) ** 2)


def test_exact_marginals_are_met() -> None:
    exact = [measured(Marginal.of(DOMAIN, scope), 0.0) for scope in ((0, 1), (1, 2), (2, 3))]
    exact = [Measurement(m.queries, m.counts, 1.0) for m in exact]
    fitted, info = fit(exact)
    for m in exact:
        np.testing.assert_allclose(fitted.beliefs.marginal(m.queries.scope).ravel(), m.counts / N, atol=2e-4)
    assert info["loss"] < 0.5


def test_a_round_starts_where_the_last_one_ended() -> None:
    """Potentials of smaller scopes are taken into larger ones: the model before the first step is the same."""
    before, _ = fit(some()[:2], 50)
    problem = Problem(DOMAIN, [*some(), measured(Marginal.of(DOMAIN, (0, 1, 2)), 30.0)], N)
    after = Field(DOMAIN, problem.expanded(before.potentials))
    everything = (0, 1, 2, 3)
    np.testing.assert_allclose(after.beliefs.marginal(everything), before.beliefs.marginal(everything), atol=1e-12)


def test_a_round_without_measurements_changes_nothing() -> None:
    update = MirrorDescent(Markov(DOMAIN), 10, 0.0)
    start = Field(DOMAIN)
    params, _, info = update(np.random.default_rng(0), start, None, Log(Facts(N, 1.0), [Round(selected=True)]))
    assert params is start
    assert info == {}


def test_a_tolerance_ends_a_fit_early() -> None:
    _, short = fit(some(), tolerance=0.01)
    _, long = fit(some(), tolerance=0.0)
    assert short["steps"] < long["steps"]
    assert long["loss"] <= short["loss"] <= long["loss"] + 0.1


def test_the_fit_is_that_of_mbi() -> None:
    """The loss is convex in the marginals: two solvers meet at the same ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about settings of JAX
        mbi: Any = pytest.importorskip("mbi")
        domain = mbi.Domain(list(range(4)), list(DOMAIN.sizes))
        theirs = [mbi.LinearMeasurement(m.counts.astype(np.float32), m.queries.scope, m.sigma) for m in some()]
        model = mbi.estimation.MirrorDescent().estimate(domain, theirs, known_total=float(N), iters=2000)
    ours, _ = fit(some())
    for scope in ((0, 1), (1, 2), (0, 2), (2, 3)):
        np.testing.assert_allclose(ours.beliefs.marginal(scope), np.asarray(model.project(scope).values) / N, atol=3e-4)


@pytest.mark.parametrize("kind", ["marginals", "products"])
def test_the_solver_mbi_fits_the_same_model(kind: str) -> None:
    pytest.importorskip("mbi")
    asked = some()
    if kind == "products":
        asked.append(measured(Product.of(DOMAIN, {"b": "prefixes", "d": "values"}), 30.0))
    log = Log(Facts(N, 1.0), [Round(measurements=tuple(asked))])
    update = fitting(Markov(DOMAIN), "mbi", 1000, 0.0)
    theirs, _, info = update(np.random.default_rng(0), Field(DOMAIN), update.init(Field(DOMAIN)), log)
    ours, found = fit(asked)
    assert info["loss"] == pytest.approx(found["loss"], rel=0.02)
    for scope in ((0, 1), (1, 2), (0, 2), (2, 3)):
        np.testing.assert_allclose(ours.beliefs.marginal(scope), theirs.beliefs.marginal(scope), atol=1e-3)


def test_a_solver_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(InputError, match=r"must be 'numpy' where the package mbi is not installed, .*graphical"):
        fitting(Markov(DOMAIN), "mbi", 100, 0.0)
    with pytest.raises(InputError, match="solver"):
        fitting(Markov(DOMAIN), "lbfgs", 100, 0.0)
