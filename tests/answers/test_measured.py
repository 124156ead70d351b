"""What measurements say by themselves: the estimates, and how far off they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.answers.small import people, small_release

from pointillist import Categorical, Predicates, Schema, Table, Workload, prepare
from pointillist.answers.measured import FromNoise, Known
from pointillist.answers.simulating import SimulatedDoor
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.evaluation.report import fractions
from pointillist.framework import Log, Round
from pointillist.privacy.curator import planned
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries
from pointillist.queries.groups import Groups
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residual, Residuals

DOMAIN = Domain(("a", "b"), (2, 4))
ROWS, NOISE = 1000, 20.0


def a_log(relation: Relation = Relation.ADD_REMOVE) -> Log:
    """Residuals of two attributes, of which everything is known but the number of rows."""
    residuals = Residuals(tuple(Residual(scope, DOMAIN.shape(scope), 5) for scope in ((0,), (1,), (0, 1))))
    counts = residuals.of_marginal(np.array([500, 200, 100, 0, 50, 50, 50, 50])).astype(np.int64)
    facts = Facts(ROWS, 1.0, relation, total_sigma=NOISE if relation is Relation.ADD_REMOVE else 0.0)
    return Log(facts, [Round(measurements=(Measurement(residuals, counts, 60.0),))])


def known(queries: Queries, log: Log) -> Known:
    found = FromNoise(DOMAIN, log).of(queries)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("queries", "truth", "exact"),
    [
        (Marginal.of(DOMAIN, (0,)), [0.8, 0.2], [0.5, 0.5]),
        (Marginal.of(DOMAIN, (0, 1)), [0.5, 0.2, 0.1, 0, 0.05, 0.05, 0.05, 0.05], [1 / 8] * 8),
        (Groups((1,), (0, 1, 1, 1)), [0.55, 0.45], [0.25, 0.75]),
    ],
    ids=["one", "two", "groups"],
)
def test_a_noisy_number_of_rows_moves_an_answer_away_from_an_even_one(
    queries: Queries, truth: Sequence[float], exact: Sequence[float]
) -> None:
    """The part that is exact is not divided by the number of rows, so that its share of an answer is not moved."""
    found, public = known(queries, a_log()), known(queries, a_log(Relation.REPLACE))
    assert np.allclose(found.answers, truth)
    assert np.allclose(found.exact, exact)
    moved = (np.array(truth) - np.array(exact)) * NOISE / ROWS
    assert np.allclose(found.sigma**2, public.sigma**2 + moved**2)
    counts = NOISE * np.array(exact)
    assert np.allclose(found.counts, np.array(truth) * ROWS)
    assert np.allclose(found.sigma_of_counts**2, (public.sigma * ROWS) ** 2 + counts**2)


def test_queries_that_tell_about_themselves_have_nothing_exact() -> None:
    log, queries = a_log(), Groups((1,), (0, 1, 1, 1)).take((1,))
    log.rounds.append(Round(measurements=(Measurement(queries, np.array([400]), 1e-3),)))
    found = known(queries, log)
    assert found.answers == pytest.approx([0.4], rel=1e-4)
    assert found.exact == pytest.approx([0.0], abs=1e-4)
    assert found.sigma == pytest.approx([0.4 * NOISE / ROWS], rel=1e-3)
    assert found.sigma_of_counts == pytest.approx([0.0], abs=0.01)


def test_what_holds_for_all_rows_is_exact() -> None:
    """Also for a column with a single value."""
    domain = Domain(("a", "b", "c"), (2, 4, 1))
    for queries in (Marginal.of(domain, (2,)), Groups((0,), (0, 0))):
        found = FromNoise(domain, a_log()).of(queries)
        assert found is not None
        assert found.answers == pytest.approx([1.0])
        assert found.sigma == pytest.approx([0.0], abs=1e-8)


def test_the_noise_of_a_run_is_known() -> None:
    table, release = people(), small_release(insecure_noise_seed=1)
    domain = release.schema.domain
    workload = Workload(domain, (Marginal.of(domain, (0,)),))
    found = FromNoise(domain, release.log).of(workload.queries[0])
    assert found is not None
    assert np.abs((found.answers - fractions(table, workload)) / found.sigma).max() < 4
    assert math.isfinite(found.sigma.max())


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Relation))
def test_intervals_of_the_noise_hold_for_rare_and_for_frequent_shares(relation: Relation) -> None:
    """What auto measures, again and again, with shares from 1 % to 99 %; a count as well as a share."""
    rows, runs, rng = 20_000, 400, np.random.default_rng(0)
    shares = (0.01, 0.04, 0.2, 0.5, 0.02, 0.1)
    codes = [(rng.random(rows) < share).astype(int) for share in shares]
    columns = tuple(Categorical(name, ("no", "yes")) for name in "abcdef")
    table = Table(Schema(columns), (*codes[:4], codes[0] * codes[3], codes[5]))
    asked: list[Queries] = [Marginal.of(table.domain, scope) for scope in ((0,), (2,), (3,), (0, 1))]
    asked.append(Predicates.of(table.schema, 'a == "yes" or b == "yes"'))
    cache: dict[Queries, np.ndarray] = {}

    def exactly(queries: Sequence[Queries]) -> np.ndarray:
        for one in queries:
            if one not in cache:
                cache[one] = fractions(table, Workload(table.domain, (one,)))
        return np.concatenate([cache[one] for one in queries])

    job = prepare(table, epsilon=1.0, delta=1e-9, relation=relation, workload="marginals:2")
    private, strategy, truth = relation is Relation.ADD_REMOVE, job.algorithm.strategy, exactly(asked)
    facts, held = planned(job.curator.ledger, rows, private=private), []
    for _ in range(runs):
        door = SimulatedDoor(exactly, rows, facts, rng)
        log = Log(door.open())
        while (step := strategy.step(len(log.rounds), log.facts, log, None, None)) is not None:
            log.rounds.append(step.take(door, None, None, log, rng))
        from_noise = FromNoise(table.domain, log)
        found = [one for one in map(from_noise.of, asked) if one is not None]
        assert len(found) == len(asked)
        answers, sigma = (np.concatenate([getattr(one, name) for one in found]) for name in ("answers", "sigma"))
        counts, wide = (np.concatenate([getattr(one, name) for one in found]) for name in ("counts", "sigma_of_counts"))
        held.append([abs(answers - truth) < 1.96 * sigma, abs(counts - rows * truth) < 1.96 * wide])
    shares_held = np.mean(held, axis=0)
    assert shares_held.min() > 0.915, shares_held
    assert shares_held.max() < 0.985, shares_held
