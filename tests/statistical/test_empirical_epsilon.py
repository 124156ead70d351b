"""An attack on the whole loop: how well can one tell two neighbouring tables apart by what a run learns?

For any event E, (epsilon, delta)-DP says Pr[E | P'] <= exp(epsilon) Pr[E | P] + delta. The event is chosen on one half
of the runs and judged on the other, with exact (Clopper-Pearson) bounds, so the result is a lower bound on the true
epsilon but for a chance of 1e-6. It must not exceed the claim, and must exceed it when the noise is too small. The
event is about the transcript, of which all else in a release is post-processing.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from pointillist import Product, Workload
from pointillist.algorithms import Task, get_method
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.framework import Log, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import TOTAL_SHARE, Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Ledger
from pointillist.privacy.mechanisms import Noise, OpenDPNoise
from pointillist.queries.candidates import Grouping

EPSILON, DELTA = 1.0, 0.01
CHANCE = 1e-6
RUNS = 2_400
RELATIONS = tuple(Relation)
SCHEMA = Schema((Categorical("a", ("0", "1")), Categorical("b", ("0", "1"))))
WORKLOADS = {
    "marginals": Workload.of(SCHEMA.domain, [("a",), ("b",)]),
    "prefixes": Workload.of(
        SCHEMA.domain,
        [Product.of(SCHEMA.domain, {"a": "prefixes"}), Product.of(SCHEMA.domain, {"a": "prefixes", "b": "prefixes"})],
    ),
}


@dataclass
class TooQuiet:
    """A broken mechanism: the scales of all noise are divided by ``factor``, the charges are not."""

    inner: Noise
    factor: float
    description = "too quiet"
    private = False

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return self.inner.add_gaussian(counts, rho * self.factor**2, sensitivity_squared)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return self.inner.select(scores, rho * self.factor**2, sensitivity)


def neighbours(relation: Relation) -> tuple[Table, Table]:
    """Two tables that differ in one row: (1, 1) becomes (0, 0), or (0, 0) comes on top."""
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=(2, 200))
    rows[:, 0] = 1
    other = rows.copy()
    if relation is Relation.REPLACE:
        other[:, 0] = 0
    else:
        other = np.concatenate([other, np.zeros((2, 1), np.int64)], axis=1)
    return Table(SCHEMA, tuple(rows)), Table(SCHEMA, tuple(other))


def attack(log: Log, relation: Relation, total_rho: float, table: Table) -> float:
    """A statistic that is large if the row (0, 0) is there: the log-likelihood ratio of what was measured, by somebody
    who knows all other rows, those of ``table``."""
    statistic = 0.0
    for measurement in log.measurements:
        held = measurement.queries.holds(table.codes).astype(int)
        present, absent = measurement.queries.holds((np.array([0, 1]), np.array([0, 1]))).astype(int)
        change = present - absent if relation is Relation.REPLACE else present
        statistic += float(change @ (measurement.counts - held.sum(axis=0))) / measurement.sigma**2
    if relation is Relation.ADD_REMOVE:
        statistic += log.total * 2 * total_rho
    return statistic


def statistics(relation: Relation, noise: Noise, runs: int, rounds: int, workload: Workload) -> list[np.ndarray]:
    """The statistic of many runs of MWEM on each of two neighbours; nearly all of the budget goes to measuring, which
    tells most."""
    method = get_method("mwem")
    algorithm = method.algorithm(Task(workload, Grouping.MARGINAL), method.configure({"rounds": rounds, "alpha": 0.1}))
    budget = Budget(EPSILON, DELTA, relation)
    total_rho = budget.rho * TOTAL_SHARE
    tables = neighbours(relation)
    found = [np.empty(runs) for _ in tables]
    fresh = Ledger(budget)  # whose limit takes a while to compute
    for table, values in zip(tables, found, strict=True):
        for i in range(runs):
            _, log = run(algorithm, Curator(TableSource(table), copy.deepcopy(fresh), noise), seed=0)
            values[i] = attack(log, relation, total_rho, tables[0])
    return found


def lower_bound(hits: int, other_hits: int, runs: int) -> float:
    """The epsilon that the event proves: both probabilities at the unfavourable ends of their intervals."""
    p = stats.beta.ppf(CHANCE / 4, hits, runs - hits + 1) if hits else 0.0
    q = stats.beta.ppf(1 - CHANCE / 4, other_hits + 1, runs - other_hits) if other_hits < runs else 1.0
    return math.log((p - DELTA) / q) if p > DELTA else -math.inf


def empirical_epsilon(first: np.ndarray, second: np.ndarray) -> float:
    """The best threshold of one half, in either direction, judged on the other half."""
    half = len(first) // 2
    best = -math.inf
    for present, absent in ((second, first), (-first, -second)):
        thresholds = np.quantile(present[:half], np.linspace(0.02, 0.98, 49))

        def bound(t: float, part: slice, present: np.ndarray = present, absent: np.ndarray = absent) -> float:
            return lower_bound(int((present[part] > t).sum()), int((absent[part] > t).sum()), half)

        chosen = max(thresholds, key=lambda t: bound(t, slice(0, half)))
        best = max(best, bound(chosen, slice(half, 2 * half)))
    return best


def found_epsilon(relation: Relation, noise: Noise, runs: int, rounds: int, kind: str = "marginals") -> float:
    return empirical_epsilon(*statistics(relation, noise, runs, rounds, WORKLOADS[kind]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_holds(relation: Relation) -> None:
    assert found_epsilon(relation, OpenDPNoise(), RUNS, rounds=1) <= EPSILON


@pytest.mark.parametrize("relation", RELATIONS)
def test_too_little_noise_is_found_out(relation: Relation) -> None:
    assert found_epsilon(relation, TooQuiet(InsecureSeededNoise(1), 3.0), RUNS, rounds=1) > EPSILON


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_holds_for_queries_that_overlap_and_too_little_noise_is_found_out(relation: Relation) -> None:
    """With noise of the same scales that is drawn faster."""
    assert found_epsilon(relation, InsecureSeededNoise(1), RUNS, 1, "prefixes") <= EPSILON
    assert found_epsilon(relation, TooQuiet(InsecureSeededNoise(1), 3.0), RUNS, 1, "prefixes") > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_holds_over_many_runs(relation: Relation, rounds: int, kind: str) -> None:
    found = found_epsilon(relation, OpenDPNoise(), 8_000, rounds, kind)
    assert found <= EPSILON
    assert found > 0  # the attack does see the row, so the bound above means something


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_half_the_noise_is_found_out_over_many_runs(relation: Relation, rounds: int) -> None:
    assert found_epsilon(relation, TooQuiet(InsecureSeededNoise(1), 2.0), 24_000, rounds) > EPSILON
