"""The strategy of auto: one-way marginals, ties, and what the forecast makes of them, within the budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pointillist import Grid, Job, Table, Workload, prepare, synthesize
from pointillist.algorithms.by_ties import (
    GRAINS,
    LEAST_SHARE,
    PER_SIDE,
    MeasureByTies,
    even_blocks,
    marginals_only,
    spread,
)
from pointillist.algorithms.forecast import Forecast
from pointillist.algorithms.once import MeasureOnce, closure
from pointillist.auditing.tables import designs
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation, Unit
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.framework import Log, Measure
from pointillist.framework.log import Round
from pointillist.privacy.account import ledger_for
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, Ask
from pointillist.privacy.facts import Facts
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries import residuals
from pointillist.queries.base import parts_of
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.product import Product
from pointillist.queries.residuals import Residuals, rounded, square_before_rounding
from pointillist.queries.tie import Tie

QUICK: dict[str, Any] = {"rows": 20, "t_max": 10, "strength": 1.0}


def strategy(workload: Workload, lines: tuple[int, ...] = ()) -> MeasureByTies:
    """The strategy, as auto makes it."""
    measurable, wanted = closure(workload).queries, len(workload.queries)
    return MeasureByTies(workload.domain, measurable, wanted, MeasureOnce(measurable, wanted, 1.2), lines)


def domain(*sizes: int) -> Domain:
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


def asked(made: MeasureByTies, t: int, facts: Facts, log: Log) -> tuple[Ask, ...]:
    step = made.step(t, facts, log, None, None)
    assert isinstance(step, Measure)
    return tuple(step.asked)


def played(made: MeasureByTies, facts: Facts, wild: float, rng: np.random.Generator) -> list[tuple[Ask, ...]]:
    """All that is asked for if the answers are any whole numbers: ``wild`` says how far they are from 0."""
    log, found = Log(facts), []
    for t in range(len(made.outline(facts))):
        found.append(asked(made, t, facts, log))
        results = [
            Measurement(
                ask.queries,
                np.rint(rng.standard_normal(ask.queries.size) * wild).astype(np.int64),
                gaussian_scale(ask.rho, square_of_counts(ask.queries, facts)),
            )
            for ask in found[-1]
        ]
        log.rounds.append(Round(measurements=tuple(results)))
    assert made.step(len(found), facts, log, None, None) is None
    return found


WORKLOADS = {
    "pair": all_kway(domain(2, 2), 2),
    "pairs": all_kway(domain(2, 3, 4, 5), 2),
    "threes": all_kway(domain(2, 30, 2, 40, 3), 3),
    "fours": all_kway(domain(2, 2, 3, 2, 3), 4),
    "one of all": Workload.of(domain(2, 3, 4), [(0, 1, 2)]),
    "some": Workload.of(domain(2, 3, 4, 5, 6), [(0, 1), (1, 2, 3), (3,)]),
    "single values": all_kway(domain(1, 3, 1, 2), 2),
    "one pair": Workload.of(domain(*(2,) * 30), [(0, 1), *((i,) for i in range(30))]),
    "equal": all_kway(domain(*(2,) * 8), 3),
}
FACTS = [
    Facts(total, rho, relation, sigma, units)
    for total in (1, 37, 5_000, MOST_ROWS)
    for rho in (1e-6, 0.5, 400.0)
    for relation, sigma, units in (
        (Relation.REPLACE, 0.0, 1),
        (Relation.ADD_REMOVE, 2.0, 1),
        (Relation.ADD_REMOVE, 2.0, 3),
    )
]


LINES = {"threes": (2, 30, 0, 38, 3), "pairs": (2, 3, 4, 5), "one of all": (0, 0, 0), "some": (2, 3, 4, 5, 6)}
"""How many codes of each attribute lie on a line."""


@pytest.mark.parametrize(("name", "lines"), [*((name, ()) for name in WORKLOADS), *LINES.items()])
def test_no_outcome_of_the_noise_leads_beyond_the_budget_or_the_outline(name: str, lines: tuple[int, ...]) -> None:
    """Sums are exact, and no measurement has less or more noise than was known before the run."""
    made = strategy(WORKLOADS[name], lines)
    rng = np.random.default_rng(0)
    worthwhile = 0
    for facts in FACTS:
        for wild in (0.3 * facts.total, 1e12):
            found = played(made, facts, wild, rng)
            assert all(found)
            assert 0 < sum(Fraction(ask.rho) for round_ in found for ask in round_) <= Fraction(facts.rho)
            for phase, round_ in zip(made.outline(facts), found, strict=True):
                scales = [gaussian_scale(ask.rho, square_of_counts(ask.queries, facts)) for ask in round_]
                assert phase.noise is not None
                assert not phase.selects
                assert phase.noise[0] <= min(scales)
                assert max(scales) <= phase.noise[1] * (1 + 1e-11)
                parts = [part for ask in round_ for part in parts_of(ask.queries)]
                assert len(set(parts)) == len(parts) <= phase.picks
            if made.worthwhile(facts):
                worthwhile += 1
                assert (
                    max(phase.noise_in_rows[1] for phase in made.outline(facts) if phase.noise_in_rows) <= facts.total
                )
    assert worthwhile >= 6


def test_pairs_on_lines_are_measured_in_few_blocks_of_about_equal_shares() -> None:
    """Values behind a line stay apart, and short lines are not cut."""
    made = strategy(WORKLOADS["threes"], LINES["threes"])
    facts, rng = Facts(5_000, 0.5), np.random.default_rng(0)
    first, ties, blocks, last = played(made, facts, 100.0, rng)
    assert [ask.queries.scope for ask in blocks] == [(1, 3)]
    (product,) = (ask.queries for ask in blocks)
    assert isinstance(product, Product)
    assert product.partition
    assert product.grid == (PER_SIDE, PER_SIDE + 2)
    assert blocks[0].rho <= 0.05 * facts.rho
    assert [len(round_) for round_ in (first, ties, last)] == [5, 10, 1]
    phases = made.outline(facts)
    assert [phase.picks for phase in phases[:3]] == [5, 10, 1]
    assert not strategy(WORKLOADS["pairs"], LINES["pairs"])._ordered


def test_blocks_with_too_much_noise_are_not_bought() -> None:
    made, rng = strategy(WORKLOADS["threes"], LINES["threes"]), np.random.default_rng(0)
    for rho, rounds in ((0.5, 4), (4e-4, 3)):
        facts = Facts(5_000, rho)
        found = played(made, facts, 100.0, rng)
        assert made.worthwhile(facts)
        assert len(found) == len(made.outline(facts)) == rounds
        assert sum(ask.rho for round_ in found for ask in round_) > 0.9999 * rho


@pytest.mark.parametrize("length", [6, 10, 12])
def test_even_blocks_cover_every_value_once(length: int) -> None:
    rng = np.random.default_rng(length)
    for shares in (np.full(12, 1 / 12), rng.dirichlet(np.full(12, 0.3)), np.eye(12)[3]):
        found = even_blocks(shares, length)
        assert (found.depth == 1).all()
        assert len(found.bounds) == PER_SIDE + 12 - length
    even = even_blocks(np.full(20, 1 / 20), 20)
    assert [high - low for low, high in even.bounds] == [4] * 5


def test_blocks_tell_a_correlation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two columns without edges that rise together, on average over some noise."""
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(50, 15, 3_000)
    frame = pd.DataFrame({"x": x, "y": 0.8 * x + rng.normal(0, 9, 3_000), "z": rng.normal(0, 1, 3_000)}).round(1)
    schema = Schema(tuple(Grid(name, (-100, 200), step=0.1) for name in "xyz"))
    errors: dict[int, list[float]] = {}
    for side in (PER_SIDE, 10**6):  # no line is so long that it is cut then
        monkeypatch.setattr("pointillist.algorithms.by_ties.PER_SIDE", side)
        for seed in range(4):
            made = synthesize(
                frame, schema=schema, epsilon=1.0, workload="marginals:2", insecure_noise_seed=seed, seed=seed,
                settings={"rows": 50, "fits": 1, "strength": 1.0},
            )  # fmt: skip
            off = made.table.to_pandas().corr() - frame.corr()
            errors.setdefault(side, []).append(float(np.abs(off.to_numpy()).max()))
    assert np.mean(errors[PER_SIDE]) < 0.9 * np.mean(errors[10**6])


def test_nearly_all_of_the_budget_is_spent() -> None:
    rng = np.random.default_rng(0)
    for workload in WORKLOADS.values():
        facts = Facts(5_000, 0.5)
        spent = sum(ask.rho for round_ in played(strategy(workload), facts, 100.0, rng) for ask in round_)
        assert spent > 0.9999 * facts.rho


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 10.0, 100.0])
def test_the_account_of_a_run_has_the_least_noise_of_its_outline(relation: Relation, epsilon: float) -> None:
    """Gaussian accounting is used where no total leads to less noise than its least scale."""
    made = strategy(WORKLOADS["pairs"])
    rows = 2_000 if relation is Relation.REPLACE else None
    ledger = ledger_for(Budget(epsilon, 1e-6, relation), rows, made.outline)
    totals = [2_000] if rows is not None else [2**k for k in range(30)]
    smallest = min(
        phase.noise[0]
        for total in totals
        for phase in made.outline(Facts(total, ledger.left * (1 if rows else 0.98), relation))
        if phase.noise
    )
    assert ledger.least_scale is None or (ledger.least_scale in LEAST_SCALES and smallest >= ledger.least_scale)
    assert (ledger.least_scale is None) == (smallest < min(LEAST_SCALES))
    assert ledger.least_scale is None or epsilon < 100 or relation is Relation.REPLACE


@pytest.mark.parametrize("least", [LEAST_SHARE, 1e-3, 0.02, 0.5, 0.9])
def test_shares_are_spread_within_their_bounds(least: float) -> None:
    rng = np.random.default_rng(0)
    for concentration in (0.001, 0.01, 1.0, 100.0):
        best = rng.dirichlet(np.full(92, concentration))
        grains = spread(best, least)
        kept = grains > 0
        assert GRAINS - len(best) <= grains.sum() <= GRAINS
        assert kept.sum() >= 1
        assert kept.sum() == 1 or grains[kept].min() >= least * GRAINS
        assert best[kept].min() >= best[~kept].max(initial=0)  # the best ones
        assert (np.diff(grains[np.argsort(best)]) >= 0).all()


def test_the_weights_of_residuals_follow_the_shares() -> None:
    """The squared sensitivity that each takes of all of it."""
    made, facts = strategy(WORKLOADS["threes"]), Facts(5_000, 0.5, Relation.ADD_REMOVE, 2.0)
    rng = np.random.default_rng(0)
    (ask,) = played(made, facts, 300.0, rng)[-1]
    assert isinstance(ask.queries, Residuals)
    square = ask.queries.sensitivity(Relation.ADD_REMOVE).l2_squared
    assert square == pytest.approx(square_before_rounding(made._units), rel=1e-3)
    shares = np.array([part.square for part in ask.queries.parts]) / square
    assert shares.min() > 0.9 * LEAST_SHARE
    assert len(shares) > 10


@pytest.mark.parametrize("sizes", [(200,) * 6, (128,) * 10])
def test_weights_that_round_to_nothing_do_not_lower_the_noise_below_the_outline(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One residual would get most, but of so many cells that its weight rounds to 0, and smaller ones get the rest."""
    monkeypatch.setattr(residuals, "SCALES", (1e7, 1e7))  # more cells than a workload may have, else
    made, facts = strategy(all_kway(domain(*sizes), 3)), Facts(10**6, 0.5, Relation.ADD_REMOVE, 2.0)
    units = made._units
    squares = np.array([float(unit.square) for unit in units])
    low = made._bounds(made._rest(facts), facts)[0] ** 2 * 2 * made._rest(facts)
    order = np.argsort(-squares, kind="stable")
    triples = sum(len(unit.scope) == 3 for unit in units)
    for others in range(1, len(units) - triples):
        best = np.zeros(len(units))
        best[order[:triples]], best[order[triples : triples + others]] = 1.0, 3e-5 * triples
        grains = spread(best / best.sum(), LEAST_SHARE)
        parts = rounded(units, grains / squares).parts
        assert len(parts) == others < np.count_nonzero(grains)
        assert sum(part.square for part in parts) >= low * (1 - 1e-9)


@pytest.mark.parametrize("name", ["pairs", "threes", "equal"])
def test_sums_that_are_rounded_differently_give_the_same_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on another machine, where a release is replayed."""
    made, facts, rng = strategy(WORKLOADS[name]), Facts(5_000, 0.5), np.random.default_rng(1)
    plans = [played(made, facts, 300.0, np.random.default_rng(seed)) for seed in (0, 1)]
    exact = Forecast._errors

    def other(forecast: Forecast, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        errors, slopes = exact(forecast, precision)
        last_bits = 1 + 2e-16 * rng.integers(-3, 4, (2, len(errors)))
        return errors * last_bits[0], slopes * last_bits[1]

    monkeypatch.setattr(Forecast, "_errors", other)
    assert plans == [played(made, facts, 300.0, np.random.default_rng(seed)) for seed in (0, 1)]


def test_which_workloads_have_ties() -> None:
    plain = domain(2, 3, 4)
    assert marginals_only(all_kway(plain, 2).queries)
    assert not marginals_only(all_kway(plain, 1).queries)
    assert not marginals_only([Marginal.of(plain, (0, 1)), Product.of(plain, {0: "values", 2: "prefixes"})])
    assert not marginals_only([Marginal.of(plain, (0, 1)).take([0])])
    assert not strategy(all_kway(domain(1, 5), 2)).worthwhile(Facts(10**6, 1.0))  # nothing can be tied


def test_a_budget_that_shows_no_ties_measures_once() -> None:
    made = strategy(WORKLOADS["pairs"])
    little = Facts(100, 0.001)
    assert not made.worthwhile(little)
    assert made.outline(little) == made.otherwise.outline(little)
    assert asked(made, 0, little, Log(little)) == asked(made.otherwise, 0, little, Log(little))  # type: ignore[arg-type]
    assert len(made.outline(little)) == 1
    assert len(made.outline(Facts(100_000, 0.1))) == 3


# --- on tables


def table(rows: int = 20_000, tied: bool = True, seed: int = 0) -> Table:
    """Six columns, of which the second repeats the first with few exceptions, or none depends on another."""
    rng = np.random.default_rng(seed)
    sizes = (6, 6, 4, 5, 3, 7)
    codes = [rng.integers(size, size=rows) for size in sizes]
    if tied:
        codes[1] = np.where(rng.random(rows) < 0.95, codes[0], codes[1])
    columns = tuple(Categorical(f"x{i}", tuple(f"v{v}" for v in range(size))) for i, size in enumerate(sizes))
    return Table(Schema(columns), tuple(codes))


def job(data: Table | TableSource, **options: Any) -> Job:
    given = {"epsilon": 0.3, "delta": 1e-6, "workload": "marginals:2", "method": "auto", "insecure_noise_seed": 1}
    return prepare(data, **(given | {"settings": QUICK} | options))


def shares_of_last(data: Table, **options: Any) -> dict[tuple[int, ...], float]:
    """The shares of the last round, by attributes."""
    release = job(data, **options).run()
    (last,) = release.log.rounds[2].measurements
    assert isinstance(last.queries, Residuals)
    whole = sum(part.square for part in last.queries.parts)
    return {part.scope: part.square / whole for part in last.queries.parts}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_strong_tie_gets_most(seed: int) -> None:
    shares = shares_of_last(table(), insecure_noise_seed=seed)
    others = [share for scope, share in shares.items() if scope != (0, 1)]
    assert shares[0, 1] > 1.4 * max(others)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_columns_without_ties_get_one_way_marginals(seed: int) -> None:
    """With little budget some pairs are left out: what is spent on them would only be noise."""
    shares = shares_of_last(table(2_000, tied=False), epsilon=1.0, insecure_noise_seed=seed)
    singles = [share for scope, share in shares.items() if len(scope) == 1]
    assert sum(singles) > 0.15
    assert len(shares) - len(singles) < 15


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_rounds_of_a_run(relation: str) -> None:
    made = job(table(), relation=relation, insecure_noise_seed=None)
    release = made.run()
    first, second, last = release.log.rounds
    assert [one.queries.scope for one in first.measurements] == [(i,) for i in range(6)]
    ties = [one.queries for one in second.measurements]
    assert all(isinstance(tie, Tie) for tie in ties)
    assert len(ties) == 15
    assert [type(one.queries) for one in last.measurements] == [Residuals]
    assert release.log.info[:2] == [{}, {}]  # nothing is fitted before all is measured
    assert release.log.info[2]["strength"] == 1
    ledger = made.curator.ledger
    assert ledger.accounting == "Gaussian"
    assert 0.999 * ledger.limit < sum(Fraction(entry.rho) for entry in ledger.entries) <= Fraction(ledger.limit)
    assert release.description.privacy.ledger == ledger.entries


@pytest.mark.parametrize(("relation", "units"), [("replace", 1), ("add-remove", 1), ("add-remove", 3)])
def test_no_measurement_tells_neighbours_apart_by_more_than_its_charge(relation: str, units: int) -> None:
    """By the counts and distances of made-up neighbours; for some pair of them, a tie tells all that was paid for."""
    told = []
    for pair in designs(table(1).schema, Relation(relation), 3_000, units):
        source = TableSource(pair.tables()[0], Unit("id", units) if units > 1 else None)
        release = job(source, relation=relation, epsilon=1.0).run()
        measured = release.log.measurements
        for one, entry in zip(measured, release.description.privacy.ledger[-len(measured) :], strict=True):
            first, second = pair.counts(one.queries)
            information = float(((first - second) ** 2).sum()) / (2 * one.sigma**2)
            assert information <= entry.rho
            if isinstance(one.queries, Tie):
                told.append(information / entry.rho)
    assert max(told) == pytest.approx(1.0)


def test_what_is_asked_follows_from_the_noise_alone(blind_noise: None) -> None:
    """Two tables, with noise that ignores them: the same ties, and the same last round."""
    logs = [job(table(seed=seed, tied=bool(seed)), workload="marginals:3").run().log for seed in (0, 1)]
    for one, two in zip(logs[0].rounds, logs[1].rounds, strict=True):
        assert [m.queries for m in one.measurements] == [m.queries for m in two.measurements]
        assert [m.sigma for m in one.measurements] == [m.sigma for m in two.measurements]


def test_without_ties_a_run_measures_once() -> None:
    release = job(table(), settings=QUICK | {"ties": False}).run()
    assert len(release.log.rounds) == 1
    release = synthesize(table(200), epsilon=0.05, workload="marginals:2", settings=QUICK)
    assert len(release.log.rounds) == 1  # too little budget


@pytest.mark.slow
def test_a_wide_table_is_planned_in_seconds() -> None:
    made = strategy(all_kway(domain(*(2, 3, 4, 5, 6) * 12), 3))
    found = played(made, Facts(50_000, 0.5), 2_000.0, np.random.default_rng(0))
    assert len(found) == 3
    assert sum(Fraction(ask.rho) for round_ in found for ask in round_) <= Fraction(0.5)
