"""HDMM: the plan against the closed-form optimum, least squares against a plain solver, and its three forms."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.contract.test_contract import small_table

from pointillist import InputError, prepare
from pointillist.algorithms import Task, get_method
from pointillist.algorithms.residual_plan import plan_of
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.families.components import Components, marginal_of
from pointillist.privacy.budget import Budget
from pointillist.privacy.ledger import Ledger
from pointillist.queries.counting import exact_counts
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.updates.parts import PartEstimates

ADULT = Domain(tuple("abcdefghijklm"), (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10))
"""The sizes of the columns of ADULT; its private part has 43,944 rows."""
ROWS = 43_944
BEST = {
    Relation.ADD_REMOVE: {0.1: 0.01257, 0.25: 0.00520, 0.5: 0.00267, 1.0: 0.00137},
    Relation.REPLACE: {0.1: 0.01781, 0.25: 0.00736, 0.5: 0.00378, 1.0: 0.00194},
}
"""The least root-mean-square error, as fractions, on all three-way marginals of ADULT at delta = 1/n^2 with the exact
Gaussian account: computed apart from this package, by the singular-value bound under add-remove."""


def planned_error(domain: Domain, k: int, relation: Relation, rho: float) -> float:
    """The root-mean-square error of the least-squares counts."""
    plan = plan_of(domain.sizes, all_kway(domain, k).scopes, relation)
    assert plan is not None
    return math.sqrt(plan.queries.sensitivity(relation).l2_squared / (2 * rho)) / plan.unit


@pytest.mark.parametrize(("relation", "epsilon"), [(r, e) for r in Relation for e in (0.1, 0.25, 0.5, 1.0)])
def test_the_plan_has_the_error_of_the_closed_form_optimum(relation: Relation, epsilon: float) -> None:
    rho = Ledger(Budget(epsilon, 1 / ROWS**2, relation), 100.0).limit
    assert round(planned_error(ADULT, 3, relation, rho) / ROWS, 5) == BEST[relation][epsilon]


def bound(domain: Domain, k: int) -> float:
    """The singular-value bound of a workload, for rho = 1/2 under add-remove: (sum of singular values)^2 / cells of the
    domain, per query. From the dense matrix of the workload."""
    workload = all_kway(domain, k)
    records = list(itertools.product(*map(range, domain.sizes)))
    codes = [np.array(column) for column in zip(*records, strict=True)]
    matrix = np.concatenate([queries.holds(codes).T for queries in workload.queries]).astype(float)
    values = np.linalg.svd(matrix, compute_uv=False)
    return math.sqrt(values.sum() ** 2 / len(records) / len(matrix))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 2, 2, 2), (5, 3, 2, 4)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_plan_meets_the_singular_value_bound(sizes: tuple[int, ...], k: int) -> None:
    """The number of rows is known here, so that the error is a little below the bound."""
    domain = Domain(tuple("abcd"[: len(sizes)]), sizes)
    least = bound(domain, k)
    share = math.sqrt(sum(1 / domain.cells_of(s) for s in all_kway(domain, k).scopes))  # of the number of rows
    least_without = least - share / math.sqrt(sum(domain.cells_of(s) for s in all_kway(domain, k).scopes))
    assert planned_error(domain, k, Relation.ADD_REMOVE, 0.5) == pytest.approx(least_without, rel=1e-4)
    assert planned_error(domain, k, Relation.REPLACE, 0.5) < 2 * least


def test_weights_of_whole_marginals_come_near_the_optimum_only() -> None:
    """Minimised over weights of the marginals of ADULT that are not below 0: 8 % above the bound."""
    sizes = np.array(ADULT.sizes, float)
    scopes = [s for k in range(4) for s in itertools.combinations(range(len(sizes)), k)]
    inside = np.array([[set(b) <= set(a) for a in scopes] for b in scopes], float)
    cells = np.array([math.prod(sizes[list(s)]) for s in scopes])
    freedom = np.array([math.prod(sizes[list(s)] - 1) for s in scopes])
    wanted = inside @ (np.array([len(s) == 3 for s in scopes]) / cells)  # eigenvalues of the workload, over |X|

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.exp(logs) / np.exp(logs).sum()
        values = inside @ (weights / cells)
        error = float((wanted * freedom / values).sum())
        slope = -(inside.T @ (wanted * freedom / values**2)) / cells
        return math.log(error), weights * (slope - weights @ slope) / error

    found = minimize(loss, np.zeros(len(scopes)), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    best = float((np.sqrt(wanted) * freedom).sum()) ** 2
    assert 1.08 < math.sqrt(math.exp(found.fun) / best) < 1.09


def run(answers: str, rows: int = 4000, **options: Any) -> Any:
    table = small_table(rows)
    wanted: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "workload": "marginals:2", "insecure_noise_seed": 3}
    return table, prepare(table, method="hdmm", settings={"answers": answers}, **(wanted | options))


def errors(table: Any, release: Any) -> np.ndarray:
    truth = exact_counts(TableSource(table), release.workload.queries) / len(table)
    return np.asarray(np.abs(release.answers() - truth))


@pytest.mark.parametrize("relation", list(Relation))
def test_raw_answers_are_those_of_least_squares(relation: Relation) -> None:
    """Against a dense solver on all cells of the domain, with the known total."""
    table, job = run("raw", relation=relation)
    release = job.run()
    (measured,) = release.log.measurements
    cells = table.domain.cells
    matrix = np.array([measured.queries.of_marginal(row) for row in np.eye(cells)]).T / measured.sigma
    heavy = 1e6 * np.ones((1, cells))
    total = release.log.total
    solved = np.linalg.lstsq(
        np.concatenate([matrix, heavy]), np.append(measured.counts / measured.sigma, 1e6 * total), rcond=1e-12
    )[0]
    wanted = exact_wanted(solved.reshape(table.domain.sizes), release.workload.queries) / total
    assert np.allclose(release.answers(), wanted, atol=1e-7)


def exact_wanted(table: np.ndarray, queries: Any) -> np.ndarray:
    axes = range(table.ndim)
    sums = [table.sum(axis=tuple(i for i in axes if i not in one.scope)).ravel() for one in queries]
    return np.concatenate(sums)


def test_the_noise_is_as_planned() -> None:
    """The root-mean-square error over many draws; half or twice of it would be refused."""
    squares, planned = [], 0.0
    for seed in range(20):
        table, job = run("raw", insecure_noise_seed=seed)
        squares.append((errors(table, job.run()) ** 2).mean())
        phase = job.phases[0]
        assert phase.noise_in_rows is not None
        planned = phase.noise_in_rows[1] / len(table)
    found = math.sqrt(np.mean(squares))
    assert found == pytest.approx(planned, rel=0.15)
    assert not 0.7 < 2 * found / planned < 1.3


def test_the_noise_on_adult_is_as_planned() -> None:
    """On a made-up table with the columns of ADULT: the error does not depend on the rows."""
    columns = (Categorical(n, tuple(map(str, range(m)))) for n, m in zip(ADULT.names, ADULT.sizes, strict=True))
    rng = np.random.default_rng(0)
    table = Table(Schema(tuple(columns)), tuple(rng.integers(0, m, ROWS) for m in ADULT.sizes))
    job = prepare(table, epsilon=0.5, method="hdmm", settings={"answers": "raw"}, workload="marginals:3",
                  insecure_noise_seed=0)  # fmt: skip
    found = errors(table, job.run())
    assert math.sqrt((found**2).mean()) == pytest.approx(BEST[Relation.REPLACE][0.5], rel=0.01)


def test_a_run_only_adds_gaussian_noise_and_has_that_account() -> None:
    _, job = run("raw", insecure_noise_seed=None, epsilon=0.5)
    release = job.run()
    assert release.description.privacy.accounting == "Gaussian"
    assert len(release.description.privacy.ledger) == 1
    assert release.description.privacy.rho_spent == pytest.approx(release.description.privacy.rho, rel=1e-9)


def test_projected_answers_are_better_and_never_negative() -> None:
    found = {}
    for answers in ("raw", "projected", "graphical"):
        table, job = run(answers, 500, epsilon=0.1)
        release = job.run()
        found[answers] = math.sqrt((errors(table, release) ** 2).mean())
        assert (release.answers().min() < 0) == (answers == "raw")
    assert found["projected"] < 0.9 * found["raw"]
    assert found["graphical"] < 0.9 * found["raw"]


def test_the_graphical_fit_is_the_nearest_distribution() -> None:
    """With enough budget least squares is a distribution already, and the fit is the same."""
    answers = {}
    for form in ("raw", "graphical"):
        _, job = run(form, epsilon=100.0, delta=0.1, zcdp=True)
        job = replace(job, settings=replace(job.settings, tolerance=0.0))
        answers[form] = job.run().answers()
    assert np.abs(np.maximum(answers["raw"], 0) - answers["graphical"]).max() < 2e-3


def test_a_graphical_model_that_does_not_fit_is_refused_before_anything_is_spent() -> None:
    table = small_table()
    with pytest.raises(InputError, match=r"answers must be 'projected' or 'raw' where the junction tree has more than"):
        prepare(table, epsilon=1.0, workload="marginals:2", method="hdmm",
                settings={"answers": "graphical", "model_size": 0.0001})  # fmt: skip


def test_constant_columns_are_refused() -> None:
    with pytest.raises(InputError, match="workload must have a column with two values or more"):
        get_method("hdmm").algorithm(Task(all_kway(Domain(("a", "b"), (1, 1)), 1)))


def test_marginals_too_large_for_whole_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="workload must be of marginals small enough for residuals in whole numbers"):
        plan_of((10**6, 10**6), ((0, 1),), Relation.REPLACE)


def test_parts_of_unmeasured_scopes_are_even() -> None:
    """A marginal that was not measured follows from the parts inside of it."""
    domain = Domain(("a", "b", "c"), (2, 3, 2))
    family = Components(domain, 100)
    part = np.array([0.2, -0.2])
    answers = family.answers({(0,): part}, [Marginal.of(domain, (0, 1))])
    assert np.allclose(answers.reshape(2, 3), (0.5 + part)[:, None] / 3)
    assert np.allclose(marginal_of((1,), (3,), {(0,): part}), 1 / 3)


def test_rows_of_raw_answers_follow_the_marginals_that_they_are_drawn_from() -> None:
    table, job = run("raw", epsilon=50.0, zcdp=True)
    release = job.run()
    counted = exact_counts(TableSource(release.sample(40_000)), release.workload.queries) / 40_000
    truth = exact_counts(TableSource(table), release.workload.queries) / len(table)
    first = slice(0, 6)  # the pair of the first two columns
    assert np.abs(counted - truth)[first].max() < 0.02
    assert len(PartEstimates.of(table.domain, release.log.measurements, release.log.total).scopes) == 10


def test_marginals_with_too_many_subsets_are_refused() -> None:
    wide = tuple(range(28))
    with pytest.raises(InputError, match="at most 1,000,000 subsets of their columns in all, got 268,435,456"):
        plan_of((2,) * 28, (wide,), Relation.REPLACE)
