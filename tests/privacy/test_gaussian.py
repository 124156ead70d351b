"""Accounting for Gaussian noise alone: never below the truth, and better than zCDP."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import log_ndtr

from pointillist import BudgetError, InputError, Product, Relation, Table, Workload, all_kway, prepare, synthesize
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.framework import Log, Measure
from pointillist.framework.log import Round
from pointillist.privacy.account import ledger_for
from pointillist.privacy.budget import Budget, rho_of
from pointillist.privacy.curator import TOTAL_SHARE, Ask, Curator, planned
from pointillist.privacy.facts import Phase
from pointillist.privacy.gaussian import LEAST_SCALES, gaussian_log_delta_of, gaussian_rho_of
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import GAUSSIAN, Entry, Ledger
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Whole
from pointillist.strategies import MeasureAll, Rounds, SelectEvenly


def discrete_excess(sigma: float, ts: np.ndarray) -> np.ndarray:
    """E(X - t)_+ for the discrete Gaussian."""
    x = np.arange(-int(50 * sigma), int(50 * sigma) + 1)
    p = np.exp(-(x**2) / (2 * sigma**2))
    p /= p.sum()
    return np.array([np.sum(np.maximum(x - t, 0) * p) for t in ts])


def gaussian_excess(sigma: float, ts: np.ndarray) -> np.ndarray:
    """E(X - t)_+ for the Gaussian, by summing its positive tail P(X > u) over u > t on a fine grid."""
    out = []
    for t in ts:
        u = np.linspace(t, max(t, 0.0) + 12 * sigma, 40_001)
        out.append(np.trapezoid(np.exp(log_ndtr(-u / sigma)), u))
    return np.array(out)


@pytest.mark.parametrize("sigma", [1.0, *LEAST_SCALES, 3.3, 17.0])
def test_the_discrete_gaussian_is_below_a_gaussian_of_a_little_more_variance_in_convex_order(sigma: float) -> None:
    """The lemma on which the accounting rests; without the extra variance it is false."""
    ts = np.concatenate([np.arange(-30, 30) / 4 * sigma / 2, np.arange(-20, 20) + 0.5, np.arange(-20, 20) + 0.0])
    ts = ts[np.abs(ts) <= 20 * sigma]
    discrete = discrete_excess(sigma, ts)
    wider = gaussian_excess(sigma / (1 - 1 / (4 * sigma**2)), ts)
    assert np.all(discrete <= wider * (1 + 1e-7) + 1e-300)
    between = np.arange(-3, 3) + 0.5
    assert np.any(discrete_excess(sigma, between) > gaussian_excess(sigma, between))


def exact_delta(sigma: float, parts: int, epsilon: float) -> float:
    """delta of ``parts`` discrete Gaussians, each shifted by 1: a sum of them is a discrete Gaussian again, up to
    a factor of 1 + exp(-pi^2 sigma^2)."""
    spread = sigma * math.sqrt(parts)
    y = np.arange(-int(40 * spread), int(40 * spread) + 1)
    log_p = -(y**2) / (2 * spread**2)
    p = np.exp(log_p)
    loss = (2 * y - parts) / (2 * sigma**2)
    return float(np.sum(p / p.sum() * np.maximum(np.exp(loss) - math.exp(epsilon), 0)))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
@pytest.mark.parametrize(("sigma", "parts"), [(3.0, 1), (3.0, 20), (10.0, 1), (10.0, 50), (25.0, 4), (300.0, 572)])
def test_the_bound_holds_for_discrete_noise_and_is_tight(sigma: float, parts: int, epsilon: float) -> None:
    least = max(scale for scale in LEAST_SCALES if scale <= sigma)
    bound = math.exp(gaussian_log_delta_of(parts / (2 * sigma**2), epsilon, least))
    truth = exact_delta(sigma, parts, epsilon)
    assert truth <= bound
    if truth > 1e-12 and sigma >= 10:
        assert bound <= 1.25 * truth


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 5e-10, 1e-6, 1e-3])
def test_more_than_zcdp_and_the_promise_holds(epsilon: float, delta: float) -> None:
    rhos = [gaussian_rho_of(epsilon, delta, least) for least in LEAST_SCALES]
    for rho, least in zip(rhos, LEAST_SCALES, strict=True):
        assert gaussian_log_delta_of(rho, epsilon, least) <= math.log(delta)
        assert gaussian_log_delta_of(rho * 1.001, epsilon, least) > math.log(delta)
    assert 2.5 * rho_of(epsilon, delta) > rhos[0] > rhos[1] > max(rhos[2], rho_of(epsilon, delta))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_against_the_privacy_loss_distribution_of_dp_accounting(epsilon: float) -> None:
    rho = gaussian_rho_of(epsilon, 1e-7, 100.0)
    sigma = 1 / math.sqrt(2 * rho)
    reference = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4, pessimistic_estimate=False)
    assert reference.get_delta_for_epsilon(epsilon) <= 1e-7 * (1 + 1e-6)
    assert reference.get_delta_for_epsilon(epsilon) >= 0.9e-7


def table_of(rows: int) -> Table:
    columns = tuple(Categorical(name, (0, 1, 2)) for name in "abc")
    rng = np.random.default_rng(0)
    return Table(Schema(columns), tuple(rng.integers(3, size=rows) for _ in columns))


def workloads() -> dict[str, Workload]:
    domain = table_of(2).domain
    prefixes = [Product.of(domain, {one: "prefixes", two: "prefixes"}) for one, two in ("ab", "ac", "bc")]
    return {"marginals": all_kway(domain, 2), "prefixes": Workload.of(domain, prefixes)}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", ["marginals", "prefixes"])
def test_only_a_plan_of_pure_noise_gets_the_larger_budget(kind: str, relation: Relation) -> None:
    queries = workloads()[kind].queries
    rows = 1000 if relation is Relation.REPLACE else None
    budget = Budget(0.3, 1e-6, relation)
    pure = ledger_for(budget, rows, MeasureAll(queries).outline)
    least = 10.0
    assert pure.least_scale == least
    assert pure.limit == gaussian_rho_of(0.3, 1e-6, least) > budget.rho
    selecting = ledger_for(budget, rows, SelectEvenly(Whole(queries), MaxError(), Rounds(2)).outline)
    assert selecting.least_scale is None
    assert selecting.limit == budget.rho
    loud = ledger_for(Budget(30.0 if kind == "marginals" else 90.0, 1e-6, relation), rows, MeasureAll(queries).outline)
    assert loud.least_scale is None  # its noise would be below every least scale


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", ["marginals", "prefixes"])
def test_a_job_has_the_account_that_its_plan_allows_for(kind: str, relation: Relation) -> None:
    def limit(epsilon: float, method: str, zcdp: bool = False) -> tuple[float | None, float]:
        ledger = prepare(
            table_of(1000), epsilon=epsilon, delta=1e-6, relation=relation, workload=workloads()[kind],
            method=method, zcdp=zcdp,
        ).curator.ledger  # fmt: skip
        return ledger.least_scale, ledger.limit

    assert limit(0.3, "one-shot") == (10.0, gaussian_rho_of(0.3, 1e-6, 10.0))
    assert limit(0.3, "auto") == (10.0, gaussian_rho_of(0.3, 1e-6, 10.0))
    assert limit(0.3, "auto", zcdp=True) == (None, rho_of(0.3, 1e-6))
    assert limit(0.3, "mwem") == (None, rho_of(0.3, 1e-6))
    assert limit(90.0, "one-shot") == (None, rho_of(90.0, 1e-6))


@pytest.mark.parametrize(("epsilon", "least"), [(0.05, 100.0), (1.0, 10.0), (5.0, 3.0), (12.0, 3.0)])
def test_the_noise_on_the_number_of_rows_is_raised_by_the_smallest_least_scale_alone(
    epsilon: float, least: float
) -> None:
    """Whatever the noise of the measurements is in multiples of rows."""
    loud = (Phase(1, 1, False, (1e6, 1e6)),)
    ledger = ledger_for(Budget(epsilon, 1e-9, Relation.ADD_REMOVE), None, lambda facts: loud)
    assert ledger.least_scale == least
    wanted = gaussian_scale(ledger.limit * TOTAL_SHARE, 1)
    assert planned(ledger, 1000, private=True).total_sigma == pytest.approx(max(wanted, 3.0))
    assert ledger_for(Budget(epsilon, 1e-9), 1000, lambda facts: loud).least_scale == 100.0


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", ["marginals", "prefixes"])
def test_no_noise_is_below_the_least_scale_of_the_account(kind: str, relation: Relation) -> None:
    """Whatever the run then measures, with whatever sensitivity."""
    for epsilon in (0.05, 0.3, 2.0, 8.0):
        job = prepare(
            table_of(1000), epsilon=epsilon, delta=1e-6, relation=relation, workload=workloads()[kind],
            method="one-shot", settings={"rows": 5, "t_max": 1}, insecure_noise_seed=0,
        )  # fmt: skip
        ledger = job.curator.ledger
        job.run()
        if ledger.least_scale is not None:
            assert min(entry.scale for entry in ledger.entries) >= ledger.least_scale
        assert 0.99 * ledger.limit <= ledger.spent <= ledger.limit


def test_the_gaussian_ledger_refuses_everything_else() -> None:
    ledger = Ledger(Budget(1.0, 1e-6), least_scale=10.0)
    for entry in (Entry("selection", "exponential mechanism", 1e-4, 1, 50.0), Entry("m", GAUSSIAN, 1e-2, 1, 9.9)):
        with pytest.raises(ValueError, match="this budget is for Gaussian noise"):
            ledger.charge(entry)
    for entry in (Entry("m", GAUSSIAN, 1e-30, 1, 10.0), Entry("m", GAUSSIAN, 1e-4, math.sqrt(2), 99.0)):
        with pytest.raises(ValueError, match="costs more than the"):
            ledger.charge(entry)
    assert ledger.spent == 0
    ledger.charge(Entry("m", GAUSSIAN, 1e-4, math.sqrt(2), gaussian_scale(1e-4, 2)))
    assert "rho), spent" in ledger.statement(100)
    assert "of Gaussian noise" in ledger.statement(100)
    with pytest.raises(BudgetError):
        ledger.charge(Entry("m", GAUSSIAN, ledger.limit, 1, 70.0))


def test_a_release_says_how_it_was_accounted() -> None:
    table = table_of(400)
    settings = {"rows": 5, "t_max": 3}
    release = synthesize(table, epsilon=0.3, workload="marginals:2", method="one-shot", settings=settings)
    assert release.description.privacy.accounting == "Gaussian"
    spent = sum(Fraction(entry.rho) for entry in release.description.privacy.ledger)
    assert Fraction(rho_of(0.3, 1 / 400**2)) < spent <= Fraction(gaussian_rho_of(0.3, 1 / 400**2, 10.0))
    rounds = synthesize(table, epsilon=1.0, workload="marginals:2", method="mwem", settings={"rounds": 2})
    assert rounds.description.privacy.accounting == "zCDP"


@pytest.mark.parametrize(("attributes", "values", "rows", "epsilon"), [
    (6, 12, 60, 2.0), (6, 12, 60, 0.3), (14, 5, 400, 0.9), (14, 5, 400, 0.5), (10, 8, 1000, 0.37), (10, 8, 1, 0.37),
])  # fmt: skip
def test_few_rows_where_n_is_private_do_not_leave_the_budget_unused(
    attributes: int, values: int, rows: int, epsilon: float
) -> None:
    """Few rows make the default measure few small marginals, each with more budget than the plan for many rows."""
    columns = tuple(Categorical(f"c{n}", tuple(range(values))) for n in range(attributes))
    rng = np.random.default_rng(0)
    table = Table(Schema(columns), tuple(rng.integers(values, size=rows) for _ in columns))
    job = prepare(
        table, epsilon=epsilon, delta=1e-9, relation=Relation.ADD_REMOVE, workload=all_kway(table.domain, 3),
        method="auto", insecure_noise_seed=0,
    )  # fmt: skip
    curator = job.curator
    facts = curator.open()
    log = Log(facts)
    while (step := job.algorithm.strategy.step(len(log.rounds), facts, log, job.algorithm.family, None)) is not None:
        assert isinstance(step, Measure)
        log.rounds.append(Round(measurements=curator.measure(step.asked)))
    assert len(log.rounds) == (3 if rows == 1000 else 1)  # with few rows no tie would be seen
    assert 0.99 * curator.ledger.limit <= curator.ledger.spent <= curator.ledger.limit
    assert curator.ledger.limit >= Budget(epsilon, 1e-9, Relation.ADD_REMOVE).rho


def test_a_plan_that_asks_for_less_noise_than_the_account_allows_gets_more() -> None:
    table = table_of(50)
    ledger = Ledger(Budget(8.0, 1e-6, Relation.ADD_REMOVE), least_scale=10.0)
    curator = Curator(TableSource(table), ledger, InsecureSeededNoise(0))
    facts = curator.open()
    assert facts.total_sigma == pytest.approx(10.0)
    for workload in workloads().values():
        (measured,) = curator.measure([Ask(workload.queries[0], ledger.left)])
        assert measured.sigma == pytest.approx(10.0)
    assert min(entry.scale for entry in curator.ledger.entries) >= 10.0


def test_a_refusal_names_the_limit_that_holds() -> None:
    """A plan that selects is judged by the zCDP budget, which is the one it has."""
    table = table_of(400)
    with pytest.raises(InputError) as refused:
        synthesize(table, epsilon=0.1, workload="marginals:2", method="dualquery", settings={"eta": 50.0})
    largest = float(str(refused.value).split("must be at most ")[1].split(" ")[0])
    settings = {"eta": largest * 0.999}
    assert synthesize(table, epsilon=0.1, workload="marginals:2", method="dualquery", settings=settings).log.rounds
