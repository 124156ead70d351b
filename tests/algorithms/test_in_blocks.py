"""Pairs in blocks: where blocks are cut, what is measured, and that it follows from noisy values."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pointillist import Categorical, Numeric, Release, Schema, Table, parse_workload, prepare
from pointillist.algorithms.in_blocks import FEWEST, MOST, MeasureInBlocks, best_blocks, lines_of
from pointillist.algorithms.once import PairsAndOthers
from pointillist.data.neighbours import Relation
from pointillist.framework import Log, Measure, Round
from pointillist.privacy.facts import Facts
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.product import Product
from pointillist.strategies import noise_of

SCHEMA = Schema(
    (
        Numeric("age", tuple(range(61)), integer=True, merge=False),
        Numeric("hours", tuple(range(41)), integer=True, merge=False),
        Categorical("job", tuple(range(12))),
        Categorical("sex", ("f", "m")),
    )
)
DOMAIN = SCHEMA.domain
FAST = {"rows": 20, "fits": 1, "t_max": 60, "strength": 1.0}


def strategy_of(text: str) -> MeasureInBlocks:
    queries = prepare(people(100), epsilon=1.0, workload=text, settings=FAST).algorithm.strategy
    assert isinstance(queries, PairsAndOthers)
    assert isinstance(queries.pairs, MeasureInBlocks)
    return queries.pairs


def people(rows: int) -> Table:
    rng = np.random.default_rng(0)
    age = rng.integers(60, size=rows)
    hours = np.clip(age // 2 + rng.integers(10, size=rows), 0, 39)
    return Table(SCHEMA, (age, hours, rng.integers(12, size=rows), (rng.random(rows) < age / 60).astype(int)))


def variance(shares: np.ndarray, line: np.ndarray, blocks: Intervals) -> float:
    """The sum that blocks are to make small."""
    total = 0.0
    for low, high in blocks.bounds:
        own, place = shares[low:high], line[low:high]
        total += float((own * (place - (own * place).sum() / own.sum()) ** 2).sum())
    return total


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, line = rng.dirichlet(np.ones(9)), np.sort(rng.random(9))
    found = best_blocks(shares, line.tolist(), 4)
    every = [(0, *cuts, 9) for cuts in itertools.combinations(range(1, 9), 3)]
    least = min(variance(shares, line, Intervals(9, tuple(itertools.pairwise(cuts)))) for cuts in every)
    assert len(found.bounds) == 4
    assert variance(shares, line, found) == pytest.approx(least)
    assert best_blocks(shares, line.tolist(), 9).identity


def test_a_frequent_value_gets_a_narrow_block() -> None:
    shares = np.full(40, 0.01)
    shares[25] = 0.61
    blocks = best_blocks(shares, np.arange(40).tolist(), 6)
    (own,) = [high - low for low, high in blocks.bounds if low <= 25 < high]
    assert own < max(high - low for low, high in blocks.bounds)


def test_ordered_columns_are_found_by_the_weights() -> None:
    spaces = [one for one in parse_workload("halfspaces:50", SCHEMA).queries if isinstance(one, Halfspaces)]
    lines = lines_of(spaces)
    assert set(lines) == {0, 1}
    assert np.allclose(np.diff(lines[0]), 1 / 59, atol=0.02)
    missing = Schema((Numeric("age", tuple(range(31)), missing=True, merge=False), Categorical("sex", ("f", "m"))))
    others = [one for one in parse_workload("halfspaces:50", missing).queries if isinstance(one, Halfspaces)]
    (line,) = lines_of(others).values()
    assert line[-1] - line[-2] > 5 * (line[1] - line[0])  # missing is far from its neighbour


@pytest.mark.parametrize("relation", list(Relation))
def test_both_rounds_are_within_the_budget_and_as_outlined(relation: Relation) -> None:
    strategy = strategy_of("halfspaces:50")
    for rho in (0.001, 0.05):
        facts = Facts(20_000, rho, relation)
        log = Log(facts)
        spent, phases = Fraction(0), strategy.outline(facts)
        for t, phase in enumerate(phases):
            step = strategy.step(t, facts, log, None, None)
            assert isinstance(step, Measure)
            assert len(step.asked) == phase.picks
            assert noise_of(step.asked, facts) == phase.noise
            spent += sum(Fraction(ask.rho) for ask in step.asked)
            rng = np.random.default_rng(t)
            found = [Measurement(ask.queries, rng.integers(0, 900, ask.queries.size), 3.0) for ask in step.asked]
            log.rounds.append(Round(measurements=tuple(found)))
        assert strategy.step(2, facts, log, None, None) is None
        assert 0.999 * rho < spent <= Fraction(rho)
        pair = log.rounds[1].measurements[0].queries
        assert isinstance(pair, Product)
        assert pair.grid == (strategy.blocks(facts),) * 2
        assert pair.partition


def test_more_budget_means_more_blocks() -> None:
    strategy = strategy_of("halfspaces:50")
    counts = [strategy.blocks(Facts(20_000, rho)) for rho in (1e-9, 1e-4, 1e-2, 1.0, 1e9)]
    assert counts == sorted(counts)
    assert counts[0] == FEWEST
    assert counts[-1] == MOST
    assert counts[1] < counts[3]


def test_pairs_that_noise_would_hide_are_not_measured() -> None:
    strategy = strategy_of("halfspaces:50")
    assert not strategy.worthwhile(Facts(20_000, 1e-12))
    assert strategy.worthwhile(Facts(20_000, 1e-3))


def test_only_halfspaces_alone_are_measured_in_blocks() -> None:
    for text, own in (("halfspaces:20", True), ("conditionals:sex:20", True), ("marginals:2 + halfspaces:20", False)):
        job = prepare(people(100), epsilon=1.0, workload=text, settings=FAST)
        strategy = job.algorithm.strategy
        assert isinstance(strategy, PairsAndOthers)
        assert isinstance(strategy.pairs, MeasureInBlocks) is own


def test_a_release_is_made_and_read_back(tmp_path: object) -> None:
    table = people(3000)
    job = prepare(table, epsilon=1.0, workload="halfspaces:40", settings=FAST, seed=1)
    release = job.run(progress=False)
    kinds = [type(m.queries) for m in release.log.rounds[1].measurements]
    assert Product in kinds
    assert all(isinstance(m.queries, Marginal) for m in release.log.rounds[0].measurements)
    folder = release.save(f"{tmp_path}/release")
    again = Release.load(folder)
    np.testing.assert_allclose(again.answers(), release.answers(), atol=1e-6)
    assert [m.queries for m in again.log.measurements] == [m.queries for m in release.log.measurements]
