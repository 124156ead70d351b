"""The gate: it stops a run on hopeless public records early and cheaply, and leaves all others as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from pointillist import Grouping, InputError, Relation, RunStopped, Table, Workload, all_kway, synthesize
from pointillist.algorithms import get_method
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource, keys_of
from pointillist.families.support import Support
from pointillist.framework import Algorithm, Log, Replay, Round, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry
from pointillist.privacy.mechanisms import OpenDPNoise
from pointillist.privacy.schedule import EvenSchedule, GrowingSchedule, OneShotSchedule, Schedule, ThenSchedule
from pointillist.privacy.scores import Pick
from pointillist.updates.gate import DOUBT, Gate, mixture_floor

SCHEMA = Schema(tuple(Categorical(name, tuple(range(size))) for name, size in (("a", 3), ("b", 2), ("c", 3))))
METHODS = ["pmw_pub", "pep_pub"]


def town(n: int = 6000, seed: int = 0) -> Table:
    """30 % have the value 2 of the first attribute."""
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(n) < 0.3, 2, rng.integers(0, 2, n))
    return Table(SCHEMA, (a, (a + (rng.random(n) < 0.2)) % 2, rng.integers(0, 3, n)))


def without_two(n: int = 500) -> Table:
    """Nobody has the value 2: no reweighting comes closer than 0.3 to the first attribute."""
    table = town(n, seed=1)
    return table.take(table.codes[0] != 2)


def best_error(support: Support, workload: Workload, targets: np.ndarray) -> float:
    """The best-mixture error as a plain linear program: the smallest max |targets - q(w)| over the known targets."""
    records = len(support.start)
    rows = np.zeros((workload.queries, records))
    for offset, marginal in zip(workload.offsets, workload.marginals, strict=False):
        rows[offset + keys_of(support.codes, support.domain, marginal), np.arange(records)] = 1
    known = np.isfinite(targets)
    a, b, slack = rows[known], targets[known], -np.ones((int(known.sum()), 1))
    found = linprog(
        np.append(np.zeros(records), 1), np.block([[a, slack], [-a, slack]]), np.append(b, -b),
        np.append(np.ones(records), 0)[None], [1],
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def truth_of(table: Table, workload: Workload) -> np.ndarray:
    return np.concatenate(TableSource(table).count(workload.marginals)) / len(table)


def gated(method: str, workload: Workload, public: Table, **options: Any) -> Algorithm[Any]:
    chosen = get_method(method)
    return chosen.algorithm(workload, chosen.configure(options), PublicTable.encode(public, SCHEMA))


def curator_of(workload: Workload, noise: Any, epsilon: float = 1.0, relation: Relation = Relation.REPLACE) -> Curator:
    return Curator(TableSource(town()), workload, Budget(epsilon, 1e-6, relation), noise)


# --- stopping and passing


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_hopeless_public_records_stop_the_run(method: str, grouping: Grouping) -> None:
    rounds = 3 if grouping is Grouping.MARGINAL else 8
    with pytest.raises(RunStopped) as stopped:
        synthesize(
            town(), epsilon=2.0, method=method, public=without_two(), workload="marginals:1", group=grouping,
            settings={"rounds": rounds, "gate": 0.1, "gate_share": 0.2}, insecure_noise_seed=0,
        )  # fmt: skip
    stop = stopped.value
    ledger = stop.ledger
    assert 0.19 * ledger.limit < ledger.spent <= 0.2 * ledger.limit
    assert len(stop.log.rounds) == rounds // 2
    assert len(ledger.entries) == 2 * (rounds // 2)  # a selection and a measurement each
    words = re.fullmatch(
        r"gate must be at least the error that no reweighting of the public records can undercut, "
        r"got 0\.1 where that is at least (0\.\d{4}); use gem_pub or gem\.",
        stop.reason,
    )
    assert words
    assert 0.1 < float(words[1]) <= 0.31
    assert np.isclose(stop.log.notes[-1]["floor"], float(words[1]), atol=1e-4)
    assert str(stop).startswith(stop.reason)
    assert "\n" not in str(stop)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_good_public_records_pass_and_the_whole_budget_is_used(method: str, grouping: Grouping) -> None:
    release = synthesize(
        town(), epsilon=2.0, method=method, public=town(500, seed=1), workload="marginals:2", group=grouping,
        settings={"gate": 0.05}, insecure_noise_seed=0,
    )  # fmt: skip
    privacy = release.spec["privacy"]
    assert privacy["rho"] * (1 - 1e-9) < privacy["rho_spent"] <= privacy["rho"]
    judged = [t for t, note in enumerate(release.log.notes) if "floor" in note]
    fewest = 3 if grouping is Grouping.MARGINAL else 6  # of three attributes
    assert judged == [fewest // 2 - 1]  # once
    assert len(release.log.rounds) >= fewest
    assert release.log.notes[judged[0]]["floor"] <= 0.05


def test_the_limit_decides() -> None:
    """The same records pass a limit above their best-mixture error of 0.3 and fail one well below."""
    workload = all_kway(SCHEMA.domain, 1)
    for limit, passes in ((0.35, True), (0.2, False)):
        algorithm = gated("pmw_pub", workload, without_two(), rounds=3, gate=limit)
        curator = curator_of(workload, InsecureSeededNoise(0), epsilon=50.0)
        if passes:
            assert len(run(algorithm, curator, seed=0)[1].rounds) == 3
        else:
            with pytest.raises(RunStopped, match="gate must be at least"):
                run(algorithm, curator, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_limit_there_is_no_gate(method: str) -> None:
    workload = all_kway(SCHEMA.domain, 1)
    algorithm = gated(method, workload, without_two(), rounds=3)
    assert not isinstance(algorithm.update, Gate)
    assert isinstance(algorithm.schedule, EvenSchedule)
    _, log = run(algorithm, curator_of(workload, InsecureSeededNoise(0)), seed=0)
    assert not [note for note in log.notes if "floor" in note]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gate": -0.1}, "gate must be at least 0 and below 1, got -0.1; give for example 0.02, or 0 for no gate."),
        ({"gate": 1}, "gate must be at least 0 and below 1, got 1.0; give for example 0.02, or 0 for no gate."),
        *(
            (
                {"gate_share": share},
                f"gate_share must leave both parts a share (0.001 .. 0.999), got {float(share)}; give for example 0.1.",
            )
            for share in (0, 1, -0.1, 0.0009, 0.9991)
        ),
        (
            {"gate": 0.1, "rounds": 1},
            "rounds must be at least 2 for a gate, got 1; use more rounds, or gate=0.",
        ),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_wrong_settings(method: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        gated(method, all_kway(SCHEMA.domain, 1), town(), **options)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(("share", "sigma"), [(0.001, 243), (0.999, 343)])
@pytest.mark.parametrize("method", METHODS)
def test_a_share_that_would_drown_in_noise_is_refused(
    method: str, share: float, sigma: int, charges: list[Entry]
) -> None:
    """Whichever part is left so little: the rounds of the gate, or those after it."""
    lines: list[str] = []

    def go(**options: Any) -> None:
        synthesize(
            town(200), epsilon=1.0, method=method, public=town(500, seed=1), workload="marginals:1", group="marginal",
            settings={"rounds": 3} | options, announce=lines.append, insecure_noise_seed=0,
        )  # fmt: skip

    with pytest.raises(InputError) as refused:
        go(gate=0.9, gate_share=share)
    assert str(refused.value) == (
        f"rounds must leave each measurement a noise below 200 rows (it would be {sigma}), got 3; "
        "use fewer rounds or a larger epsilon."
    )
    assert charges == []
    assert lines == []
    go(gate=0.0, gate_share=share)  # without a gate there is no share
    go(gate=0.9, gate_share=0.3)
    assert len(charges) == 12


def test_the_rounds_before_and_after_the_gate_are_counted_together(charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        synthesize(
            town(), epsilon=1.0, method="pmw_pub", public=town(500, seed=1), workload="marginals:1",
            settings={"rounds": 4, "gate": 0.9},
        )  # fmt: skip
    assert str(refused.value) == (
        "rounds must pick at most the workload's 3 groups, each once, got 4; "
        "use fewer rounds or picks, or group by query."
    )
    assert charges == []


# --- post-processing


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_a_gated_run_is_played_back(method: str, grouping: Grouping, relation: Relation) -> None:
    """The transcript alone gives the identical result and the identical verdict."""
    workload = all_kway(SCHEMA.domain, 2, grouping)
    algorithm = gated(method, workload, town(500, seed=1), gate=0.5)
    curator = curator_of(workload, OpenDPNoise(), relation=relation)
    params, log = run(algorithm, curator, seed=3)
    again, log_again = run(algorithm, Replay(log, curator.open()[1]), seed=3)
    assert np.array_equal(params, again)
    assert log.notes == log_again.notes
    assert log_again.total_sigma == log.total_sigma == curator.total_sigma
    assert sum("floor" in note for note in log.notes) == 1


def test_a_stopped_run_is_played_back() -> None:
    workload = all_kway(SCHEMA.domain, 1)
    algorithm = gated("pmw_pub", workload, without_two(), rounds=3, gate=0.1)
    curator = curator_of(workload, OpenDPNoise(), epsilon=20.0)
    with pytest.raises(RunStopped) as first:
        run(algorithm, curator, seed=3)
    with pytest.raises(RunStopped) as second:
        run(algorithm, Replay(first.value.log, curator.open()[1]), seed=3)
    assert first.value.reason == second.value.reason
    assert "floor" in first.value.log.notes[-1]


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_a_gate_that_is_passed_leaves_no_trace(method: str, grouping: Grouping) -> None:
    """Its measurements are used like any others: without the gate the same transcript gives the same result."""
    workload = all_kway(SCHEMA.domain, 2, grouping)
    algorithm = gated(method, workload, town(500, seed=1), gate=0.5)
    curator = curator_of(workload, InsecureSeededNoise(1))
    params, log = run(algorithm, curator, seed=3)
    assert isinstance(algorithm.update, Gate)
    bare = replace(algorithm, update=algorithm.update.update)
    assert np.array_equal(params, run(bare, Replay(log, curator.open()[1]), seed=3)[0])


# --- the floor


def measured(workload: Workload, table: Table, groups: list[int], rho: float, noise: Any) -> Log:
    curator = Curator(TableSource(table), workload, Budget(50.0, 1e-6), noise)
    total, _ = curator.open()
    picks = tuple(Pick(group) for group in groups)
    noisy, sigma = curator.measure(picks, rho)
    return Log(workload, total, [Round((pick,), (counts,), sigma) for pick, counts in zip(picks, noisy, strict=True)])


@pytest.mark.parametrize("grouping", list(Grouping))
def test_the_floor_is_below_the_best_mixture_error_and_close_to_it(grouping: Grouping) -> None:
    """In at least 90 % of 40 repetitions (95 % are promised), though by the noisy answers alone it would not be."""
    table, workload = town(), all_kway(SCHEMA.domain, 2, grouping)
    support = Support.of(PublicTable.encode(without_two(), SCHEMA), "a test")
    truth = truth_of(table, workload)
    true_error = best_error(support, workload, truth)
    assert 0.05 < true_error < 0.3
    groups = [0, 2] if grouping is Grouping.MARGINAL else [4, 5, 8, 9, 11]
    part = np.full(workload.queries, np.nan)
    for group in groups:
        part[workload.group(group).flat] = truth[workload.group(group).flat]
    least = best_error(support, workload, part)
    cells = int(np.isfinite(part).sum())
    below, close, needed = 0, 0, 0
    for seed in range(40):
        log = measured(workload, table, groups, 1e-4, InsecureSeededNoise(seed))
        slack = log.rounds[0].sigma / log.total * np.sqrt(2 * np.log(2 * cells / DOUBT))
        assert 0.03 < slack < 0.1
        floor = mixture_floor(support, log)
        below += floor <= true_error
        close += floor >= least - 2 * slack
        needed += floor + slack > least
    assert below >= 36
    assert close >= 36
    assert needed >= 8


def test_the_floor_without_noise_is_the_error_of_the_measured_part() -> None:
    table, workload = town(), all_kway(SCHEMA.domain, 1)
    support = Support.of(PublicTable.encode(without_two(), SCHEMA), "a test")
    counts = TableSource(table).count(workload.marginals)
    exact = Log(workload, len(table), [Round((Pick(0),), (counts[0],), 1e-9)])
    assert np.isclose(mixture_floor(support, exact), truth_of(table, workload)[2], atol=2e-3)
    harmless = Log(workload, len(table), [Round((Pick(2),), (counts[2],), 1e-9)])
    assert abs(mixture_floor(support, harmless)) < 2e-3


@pytest.mark.parametrize("sizes", [[1], [2, 3], [1, 2, 3]])
@pytest.mark.parametrize("total_sigma", [0.0, 7.0])
def test_the_doubt_is_split_over_the_rounds_and_the_number_of_rows(sizes: list[int], total_sigma: float) -> None:
    """Records that fit the exact counts leave nothing but the slack: of the worst round, and of the rows."""
    table, workload = town(), all_kway(SCHEMA.domain, 1, Grouping.QUERY)
    support = Support.of(PublicTable.encode(table, SCHEMA), "a test")
    counts = np.concatenate(TableSource(table).count(workload.marginals))
    queries = iter(range(workload.queries))
    rounds = []
    for size in sizes:  # more cells, and more noise, in every round
        picks = tuple(Pick(next(queries)) for _ in range(size))
        rounds.append(Round(picks, tuple(counts[[pick.group]] for pick in picks), 10.0 * size))
    parts = len(sizes) + (1 if total_sigma else 0)
    slack = 10.0 * sizes[-1] * np.sqrt(2 * np.log(2 * sizes[-1] / (0.05 / parts)))
    slack += total_sigma * np.sqrt(2 * np.log(2 / (0.05 / parts)))
    floor = mixture_floor(support, Log(workload, len(table), rounds, total_sigma=total_sigma))
    assert floor == pytest.approx(-slack / len(table), abs=1e-9)
    assert DOUBT == 0.05


@pytest.mark.parametrize("relation", list(Relation))
def test_the_noise_of_the_number_of_rows_is_in_the_log(relation: Relation) -> None:
    workload = all_kway(SCHEMA.domain, 1)
    curator = curator_of(workload, InsecureSeededNoise(0), relation=relation)
    before = curator.total_sigma
    _, log = run(gated("pmw_pub", workload, town(500, seed=1), rounds=2), curator, seed=0)
    entry = curator.ledger.entries[0]
    assert log.total_sigma == curator.total_sigma == before
    assert (log.total_sigma, entry.label) == (
        (0.0, "selection") if relation is Relation.REPLACE else (entry.scale, "number of rows")
    )
    assert (log.total_sigma > 1) == (relation is Relation.ADD_REMOVE)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_floor_of_a_perfect_public_table_is_not_above_zero(relation: Relation) -> None:
    """Whatever the gate's share; the first attribute has a value close to 1, where the number of rows matters."""
    rng = np.random.default_rng(0)
    table = Table(SCHEMA, (np.repeat([0, 1], [950, 50]), rng.integers(0, 2, 1000), rng.integers(0, 3, 1000)))
    workload = all_kway(SCHEMA.domain, 1)
    algorithm = gated("pmw_pub", workload, table, rounds=2, gate=0.9, gate_share=0.9, alpha=0.05)
    below = 0
    for seed in range(40):
        curator = Curator(TableSource(table), workload, Budget(1.0, 1e-6, relation), InsecureSeededNoise(seed))
        _, log = run(algorithm, curator, seed=0)
        below += log.notes[0]["floor"] <= 0
    assert below >= 36


# --- the schedule


def spent(schedule: Schedule, rho: float, total: int, start: int = 0, stop: int | None = None) -> Fraction:
    """The exact sum of all that the rounds from ``start`` to ``stop`` may spend."""
    rounds = schedule.count(rho, total)
    assert schedule.spend(rounds, rho, total) is None
    sums = Fraction(0)
    for t in range(start, rounds if stop is None else stop):
        spend = schedule.spend(t, rho, total)
        assert spend is not None
        sums += spend.picks * (Fraction(spend.select_rho or 0) + Fraction(spend.measure_rho))
    return sums


@settings(max_examples=150, deadline=None)
@given(
    st.floats(1e-9, 1e3), st.floats(1e-3, 0.999), st.integers(1, 40), st.integers(1, 40), st.integers(1, 3),
    st.floats(0.001, 0.999),
)  # fmt: skip
def test_one_schedule_after_another_never_exceeds_rho(
    rho: float, share: float, first: int, second: int, picks: int, alpha: float
) -> None:
    even = EvenSchedule(first, picks, alpha)
    schedule = ThenSchedule(share, even, replace(even, rounds=second))
    assert schedule.count(rho, 100) == first + second
    before = spent(schedule, rho, 100, stop=first)
    assert before <= Fraction(rho * share)
    assert float(before) >= rho * share * (1 - 1e-12)
    whole = spent(schedule, rho, 100)
    assert whole <= Fraction(rho)
    assert float(whole) >= rho * (1 - 1e-12)


def test_other_schedules_one_after_another() -> None:
    growing, once = GrowingSchedule(3.0, 5, 30), OneShotSchedule(7)
    for schedule in (ThenSchedule(0.3, growing, once), ThenSchedule(0.3, once, growing)):
        assert schedule.count(0.1, 500) == schedule.first.count(0.03, 500) + schedule.second.count(0.07, 500) > 3
        assert Fraction(0) < spent(schedule, 0.1, 500) <= Fraction(0.1)
    for share in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="share must be above 0 and below 1"):
            ThenSchedule(share, once, once)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("rounds", [None, 2, 3])
def test_the_gate_does_not_change_the_number_of_rounds(rounds: int | None, grouping: Grouping) -> None:
    workload = all_kway(SCHEMA.domain, 2, grouping)
    plain = gated("pmw_pub", workload, town(), rounds=rounds)
    with_gate = gated("pmw_pub", workload, town(), rounds=rounds, gate=0.9, gate_share=0.3)
    for total in (500, 3000, 10**6):  # few rounds, some, and as many as there may be
        assert with_gate.schedule.count(0.1, total) == plain.schedule.count(0.1, total)
        assert isinstance(with_gate.update, Gate)
        assert 1 <= with_gate.update.rounds <= plain.schedule.count(0.1, total) / 2
        assert spent(with_gate.schedule, 0.1, total, stop=with_gate.update.rounds) <= Fraction(0.1 * 0.3)
        assert Fraction(0.1) * Fraction(999, 1000) < spent(with_gate.schedule, 0.1, total) <= Fraction(0.1)


def test_a_gate_leaves_a_round_after_it_even_with_a_single_attribute() -> None:
    workload = all_kway(SCHEMA.domain.project(("a",)), 1, Grouping.QUERY)
    even = EvenSchedule(20, unit=100.0, least=1)
    assert even.count(1e-9, 500) == 1
    chosen = get_method("pmw_pub")
    public = PublicTable.encode(town().project(("a",)), town().project(("a",)).schema)
    schedule = chosen.algorithm(workload, chosen.configure({"gate": 0.9}), public).schedule
    assert schedule.count(1e-9, 500) == 2
    assert Fraction(1e-9) * Fraction(999, 1000) < spent(schedule, 1e-9, 500) <= Fraction(1e-9)


@pytest.mark.parametrize("name", ["pmw_pub", "pep_pub"])
def test_rounds_follow_the_budget_unless_they_are_given(name: str) -> None:
    workload = all_kway(SCHEMA.domain, 3, Grouping.QUERY)
    by_default, given = gated(name, workload, town()).schedule, gated(name, workload, town(), rounds=7).schedule
    most = by_default.count(1e9, 1000)
    assert [by_default.count(rho, 1000) for rho in (1e-9, 0.25, 0.49)] == [6, 6, 7]  # for three attributes
    assert most == min(workload.groups, 150 if name == "pmw_pub" else 50)
    assert [given.count(rho, 1000) for rho in (1e-9, 0.04, 1e9)] == [7, 7, 7]
    for rho in (1e-9, 0.25, 0.49, 100.0):
        whole = spent(by_default, rho, 1000)
        assert Fraction(rho) * Fraction(999, 1000) < whole <= Fraction(rho)
        assert by_default.spend(by_default.count(rho, 1000), rho, 1000) is None
