"""The default's plan of measurements and its fit."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pointillist import InputError, Relation, Table, all_kway, synthesize
from pointillist.algorithms import get_method
from pointillist.algorithms.auto import MeasureOnce, closure
from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.evaluation.errors import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Log, Round, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Settings, combined, spread_of
from pointillist.updates.shrinkage import ShrunkenFit, one_way, only_measured

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 30))


def chain(rows: int, seed: int = 0) -> Table:
    """Each column follows the one before it in nine rows of ten."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(4, size=rows)]
    for _ in range(3):
        codes.append(np.where(rng.random(rows) < 0.9, codes[-1], rng.integers(4, size=rows)))
    columns = tuple(Categorical(name, (0, 1, 2, 3)) for name in "abcd")
    return Table(Schema(columns), tuple(codes))


def test_the_closure_holds_the_workload_first_and_every_part_once() -> None:
    workload = Workload(DOMAIN, ((0, 1, 2), (1, 2, 3), (3,)))
    found = closure(workload).marginals
    assert found[:3] == workload.marginals
    parts = {s for m in workload.marginals for k in range(1, len(m) + 1) for s in itertools.combinations(m, k)}
    assert set(found) == parts
    assert len(found) == len(parts)


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1e-4, 1e-2, 1.0])
def test_what_is_measured_is_not_drowned_and_covers_all_attributes(rho: float) -> None:
    workload = all_kway(DOMAIN, 3)
    schedule = MeasureOnce(closure(workload), len(workload.marginals), 1.2)
    spend = schedule.spend(0, rho, 10_000)
    assert spend is not None
    assert spend.groups is not None
    assert schedule.spend(1, rho, 10_000) is None
    assert Fraction(spend.measure_rho) * len(spend.groups) <= Fraction(rho)
    measured = [schedule.closure.marginals[group] for group in spend.groups]
    variance = len(measured) / (rho * 10_000**2)
    assert all(len(m) == 1 or DOMAIN.cells_of(m) * variance <= 1.2 for m in measured)
    assert {i for m in measured for i in m} == {0, 1, 2, 3}


def test_the_plan_falls_back_marginal_by_marginal() -> None:
    workload = all_kway(DOMAIN, 3)
    schedule = MeasureOnce(closure(workload), len(workload.marginals), 1.2)
    orders = []
    for rho in (1.0, 5e-6, 1e-9):
        spend = schedule.spend(0, rho, 10_000)
        assert spend is not None
        assert spend.groups is not None
        orders.append([len(schedule.closure.marginals[group]) for group in spend.groups])
    assert orders[0] == [3, 3, 3, 3]
    assert set(orders[1]) >= {2, 3}  # the marginal without the wide attribute stays whole
    assert orders[2] == [1, 1, 1, 1]


def test_one_way_marginals_are_averaged_by_precision() -> None:
    workload = Workload(DOMAIN, ((0, 1), (1, 2)))
    first, second = np.arange(6) / 15, np.arange(12)[::-1] / 66
    targets = np.concatenate([first, second])
    precision = np.concatenate([np.full(6, 4.0), np.full(12, 9.0)])
    found = one_way(workload, targets, precision)
    one, two = first.reshape(2, 3).sum(axis=0), second.reshape(3, 4).sum(axis=1)
    expected = (one * 4 / 2 + two * 9 / 4) / (4 / 2 + 9 / 4)
    assert np.allclose(found[1], expected)
    assert np.allclose(found[0], first.reshape(2, 3).sum(axis=1))
    assert np.allclose(found[3], 1 / 30)  # never measured


def test_only_what_was_measured_is_fitted() -> None:
    workload = all_kway(DOMAIN, 2)
    counts = (np.arange(8), np.arange(12))
    log = Log(workload, 100, [Round((Pick(1), Pick(3)), counts, 2.0, selected=False)], [{}])
    small = only_measured(log)
    assert small.workload.marginals == (workload.marginals[1], workload.marginals[3])
    targets, precision = combined(small)
    assert np.allclose(targets, np.concatenate(counts) / 100)
    assert np.allclose(precision, (100 / 2.0) ** 2)


def test_the_spread_is_zero_for_equal_rows_only() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 1).repeat(3, axis=0).astype(np.float32)
    assert float(spread_of(rows)) == pytest.approx(0, abs=1e-12)
    rows[0] = rows[0][::-1]
    mean = rows.mean(axis=0)
    by_hand = np.mean([np.sum((row - mean) ** 2 / np.sqrt(mean + 1e-4)) for row in rows])
    assert float(spread_of(rows)) == pytest.approx(by_hand, rel=1e-5)


def fit(table: Table, epsilon: float, **settings: float) -> tuple[float, float, float]:
    workload = all_kway(table.domain, 3)
    method = get_method("auto")
    algorithm = method.algorithm(workload, method.configure({"rows": 60, "t_max": 200} | settings))
    budget = Budget(epsilon, 1 / len(table) ** 2)
    assert algorithm.measurable is not None
    curator = Curator.for_schedule(
        TableSource(table), algorithm.measurable, budget, algorithm.schedule, InsecureSeededNoise(2)
    )
    params, _ = run(algorithm, curator, 0)
    errors = compare(workload, fractions(table, workload), algorithm.family.answers(params, workload))
    return errors.max, errors.rmse, errors.tvd


def test_shrinkage_helps_where_there_is_noise_and_does_no_harm_where_there_is_none() -> None:
    table = chain(3000)
    assert fit(table, 0.2)[1] < 0.95 * fit(table, 0.2, strength=0.0)[1]
    assert fit(table, 10.0)[1] < 1.1 * fit(table, 10.0, strength=0.0)[1]


def test_more_budget_is_better_and_ties_are_kept() -> None:
    table = chain(3000)
    errors = [fit(table, epsilon)[1] for epsilon in (0.01, 0.3, 10.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 * independent_columns(table, all_kway(table.domain, 3)).rmse


@pytest.mark.parametrize("relation", list(Relation))
def test_a_release_of_the_default(relation: Relation, tmp_path: object) -> None:
    table = chain(1000)
    release = synthesize(
        table, epsilon=0.5, delta=1e-6, relation=relation, settings={"rows": 20, "t_max": 20}, workload="marginals:3"
    )
    spec = release.spec
    assert spec["method"]["name"] == "auto"
    assert release.workload.marginals == all_kway(table.domain, 3).marginals
    assert len(release.log.workload.marginals) > len(release.workload.marginals)
    assert {entry["mechanism"] for entry in spec["privacy"]["ledger"]} == {"discrete Gaussian"}
    assert release.answers().shape == (release.workload.queries,)


def test_bad_settings_are_named() -> None:
    method = get_method("auto")
    for name, value in (("most_noise", 0.0), ("strength", -1.0)):
        with pytest.raises(InputError, match=f"^{name} must"):
            method.configure({name: value})


def test_the_update_leaves_the_memory_empty() -> None:
    family = Relaxed(SoftmaxRows(DOMAIN, 5, 0.5))
    assert ShrunkenFit(family, family, 4, Settings(steps=1, learning_rate=0.1, penalised=True)).init({}) is None
