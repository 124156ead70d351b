"""The gate: it stops a run on hopeless public records early and cheaply, and leaves all others as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.spending import spent

from pointillist import Grouping, InputError, Job, Relation, RunStopped, Table, Workload, all_kway, prepare, synthesize
from pointillist.algorithms import Task, get_method
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource, keys_of
from pointillist.evaluation.report import fractions
from pointillist.families.support import Support
from pointillist.framework import Algorithm, Log, Replay, Round, most_rounds, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Ask, Curator
from pointillist.privacy.facts import Facts
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry, Ledger
from pointillist.privacy.scores import Pick
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Single
from pointillist.queries.measurement import Measurement
from pointillist.strategies import Rounds, SelectEvenly
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
    records = len(support.public_weights)
    rows = np.zeros((workload.size, records))
    for offset, scope in zip(workload.offsets, workload.scopes, strict=False):
        rows[offset + keys_of(support.codes, support.domain, scope), np.arange(records)] = 1
    known = np.isfinite(targets)
    a, b, slack = rows[known], targets[known], -np.ones((int(known.sum()), 1))
    found = linprog(
        np.append(np.zeros(records), 1), np.block([[a, slack], [-a, slack]]), np.append(b, -b),
        np.append(np.ones(records), 0)[None], [1],
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def gated(method: str, workload: Workload, public: Table, group: str = "marginal", **options: Any) -> Algorithm[Any]:
    chosen = get_method(method)
    task = Task(workload, Grouping(group), PublicTable.encode(public, SCHEMA))
    return chosen.algorithm(task, chosen.configure(options))


def support_of(public: Table) -> Support:
    return Support.of(PublicTable.encode(public, SCHEMA), "a test")


def job_of(
    method: str, public: Table, workload: str = "marginals:1", group: str = "marginal", epsilon: float = 1.0,
    relation: Relation = Relation.REPLACE, noise: int | None = 0, seed: int = 0, table: Table | None = None,
    **options: Any,
) -> Job:  # fmt: skip
    return prepare(
        town() if table is None else table, epsilon=epsilon, delta=1e-6, relation=relation, method=method,
        public=public, workload=workload, group=group, settings=options, seed=seed, insecure_noise_seed=noise,
    )  # fmt: skip


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
        r"gate must be at least the error that every reweighting of the public records has, "
        r"got 0\.1 where that is at least (0\.\d{4}); use gem_pub or gem\.",
        stop.reason,
    )
    assert words
    assert 0.1 < float(words[1]) <= 0.31
    assert np.isclose(mixture_floor(support_of(without_two()), stop.log), float(words[1]), atol=1e-4)
    assert str(stop).startswith(stop.reason)
    assert "\n" not in str(stop)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_good_public_records_pass_and_the_whole_budget_is_used(method: str, grouping: Grouping) -> None:
    release = synthesize(
        town(), epsilon=2.0, method=method, public=town(500, seed=1), workload="marginals:2", group=grouping,
        settings={"gate": 0.05}, insecure_noise_seed=0,
    )  # fmt: skip
    privacy = release.description.privacy
    assert privacy.rho * (1 - 1e-9) < privacy.rho_spent <= privacy.rho
    judged = [t for t, info in enumerate(release.log.info) if "floor" in info]
    fewest = 3 if grouping is Grouping.MARGINAL else 6  # of three attributes
    assert judged == [fewest // 2 - 1]  # once
    assert len(release.log.rounds) >= fewest
    assert release.log.info[judged[0]]["floor"] <= 0.05


def test_the_limit_decides() -> None:
    """The same records pass a limit above their best-mixture error of 0.3 and fail one well below."""
    for limit, passes in ((0.35, True), (0.2, False)):
        job = job_of("pmw_pub", without_two(), epsilon=50.0, rounds=3, gate=limit)
        if passes:
            assert len(job.run().log.rounds) == 3
        else:
            with pytest.raises(RunStopped, match="gate must be at least"):
                job.run()


@pytest.mark.parametrize("method", METHODS)
def test_without_a_limit_there_is_no_gate(method: str) -> None:
    job = job_of(method, without_two(), rounds=3)
    assert not isinstance(job.algorithm.update, Gate)
    assert isinstance(job.algorithm.strategy, SelectEvenly)
    assert not [info for info in job.run().log.info if "floor" in info]


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
    job = job_of(method, town(500, seed=1), "marginals:2", grouping, relation=relation, noise=None, seed=3, gate=0.5)
    planned = job.facts
    release = job.run()
    log = release.log
    again, log_again = run(job.algorithm, Replay(log), seed=3)
    assert np.array_equal(release.params, again)
    assert log.info == log_again.info
    assert log_again.facts == log.facts == job.curator.open()
    assert log.facts.total_sigma == planned.total_sigma
    assert sum("floor" in info for info in log.info) == 1


def test_a_stopped_run_is_played_back() -> None:
    job = job_of("pmw_pub", without_two(), epsilon=20.0, noise=None, seed=3, rounds=3, gate=0.1)
    with pytest.raises(RunStopped) as first:
        job.run()
    with pytest.raises(RunStopped) as second:
        run(job.algorithm, Replay(first.value.log), seed=3)
    assert first.value.reason == second.value.reason
    assert len(first.value.log.rounds) == len(second.value.log.rounds) == 1
    for log in (first.value.log, second.value.log):  # the verdict follows from the transcript
        assert f"that is at least {mixture_floor(support_of(without_two()), log):.4f};" in first.value.reason


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("method", METHODS)
def test_a_gate_that_is_passed_leaves_no_trace(method: str, grouping: Grouping) -> None:
    """Its measurements are used like any others: without the gate the same transcript gives the same result."""
    job = job_of(method, town(500, seed=1), "marginals:2", grouping, noise=1, seed=3, gate=0.5)
    release = job.run()
    assert isinstance(job.algorithm.update, Gate)
    bare = replace(job.algorithm, update=job.algorithm.update.update)
    assert np.array_equal(release.params, run(bare, Replay(release.log), seed=3)[0])


# --- the floor


def measured(table: Table, asked: list[Queries], rho: float, noise: Any) -> Log:
    """A log with one round for each of the measured queries."""
    curator = Curator(TableSource(table), Ledger(Budget(50.0, 1e-6)), noise)
    facts = curator.open()
    found = curator.measure([Ask(queries, rho) for queries in asked])
    return log_of(facts, *((one,) for one in found))


def log_of(facts: Facts, *rounds: tuple[Measurement, ...]) -> Log:
    return Log(facts, [Round(tuple(Pick(one.queries) for one in entry), entry, selected=True) for entry in rounds])


@pytest.mark.parametrize("grouping", list(Grouping))
def test_the_floor_is_below_the_best_mixture_error_and_close_to_it(grouping: Grouping) -> None:
    """In at least 90 % of 40 repetitions (95 % are promised), though by the noisy answers alone it would not be."""
    table, workload = town(), all_kway(SCHEMA.domain, 2)
    support = support_of(without_two())
    truth = fractions(table, workload)
    true_error = best_error(support, workload, truth)
    assert 0.05 < true_error < 0.3
    part = np.full(workload.size, np.nan)
    if grouping is Grouping.MARGINAL:
        asked: list[Queries] = [workload.queries[0], workload.queries[2]]
        for m in (0, 2):
            part[workload.offsets[m] : workload.offsets[m + 1]] = truth[workload.offsets[m] : workload.offsets[m + 1]]
    else:
        single = [4, 5, 8, 9, 11]
        asked = [Single(workload.queries)[n] for n in single]
        part[single] = truth[single]
    least = best_error(support, workload, part)
    cells = int(np.isfinite(part).sum())
    below, close, needed = 0, 0, 0
    for seed in range(40):
        log = measured(table, asked, 1e-4, InsecureSeededNoise(seed))
        slack = log.measurements[0].sigma / log.total * np.sqrt(2 * np.log(2 * cells / DOUBT))
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
    support = support_of(without_two())
    truth = fractions(table, workload)

    def floor(member: int) -> float:
        """Of exact counts."""
        counts = truth[workload.offsets[member] : workload.offsets[member + 1]] * len(table)
        exact = Measurement(workload.queries[member], np.rint(counts).astype(np.int64), 1e-9)
        return mixture_floor(support, log_of(Facts(len(table), 1.0), (exact,)))

    assert np.isclose(floor(0), truth[2], atol=2e-3)
    assert abs(floor(2)) < 2e-3


@pytest.mark.parametrize("sizes", [[1], [2, 3], [1, 2, 3]])
@pytest.mark.parametrize("total_sigma", [0.0, 7.0])
def test_the_doubt_is_split_over_the_rounds_and_the_number_of_rows(sizes: list[int], total_sigma: float) -> None:
    """Records that fit the exact counts leave nothing but the slack: of the worst round, and of the rows."""
    table, workload = town(), all_kway(SCHEMA.domain, 1)
    support = support_of(table)
    counts = np.rint(fractions(table, workload) * len(table)).astype(np.int64)
    candidates = Single(workload.queries)
    numbers = iter(range(workload.size))
    rounds = []
    for size in sizes:  # more cells, and more noise, in every round
        drawn = [next(numbers) for _ in range(size)]
        rounds.append(tuple(Measurement(candidates[n], counts[[n]], 10.0 * size) for n in drawn))
    parts = len(sizes) + (1 if total_sigma else 0)
    slack = 10.0 * sizes[-1] * np.sqrt(2 * np.log(2 * sizes[-1] / (0.05 / parts)))
    slack += total_sigma * np.sqrt(2 * np.log(2 / (0.05 / parts)))
    floor = mixture_floor(support, log_of(Facts(len(table), 1.0, total_sigma=total_sigma), *rounds))
    assert floor == pytest.approx(-slack / len(table), abs=1e-9)
    assert DOUBT == 0.05


@pytest.mark.parametrize("relation", list(Relation))
def test_the_noise_of_the_number_of_rows_is_in_the_log(relation: Relation) -> None:
    job = job_of("pmw_pub", town(500, seed=1), relation=relation, rounds=2)
    before = job.facts.total_sigma
    facts = job.run().log.facts
    entry = job.curator.ledger.entries[0]
    assert facts.total_sigma == job.curator.open().total_sigma == before
    assert (facts.total_sigma, entry.label) == (
        (0.0, "selection") if relation is Relation.REPLACE else (entry.scale, "number of rows")
    )
    assert (facts.total_sigma > 1) == (relation is Relation.ADD_REMOVE)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_floor_of_a_perfect_public_table_is_not_above_zero(relation: Relation) -> None:
    """Whatever the gate's share; the first attribute has a value close to 1, where the number of rows matters."""
    rng = np.random.default_rng(0)
    table = Table(SCHEMA, (np.repeat([0, 1], [950, 50]), rng.integers(0, 2, 1000), rng.integers(0, 3, 1000)))
    beside = Table(SCHEMA, table.codes)
    below = 0
    for seed in range(40):
        log = job_of("pmw_pub", beside, relation=relation, noise=seed, table=table,
                     rounds=2, gate=0.9, gate_share=0.9, alpha=0.05).run().log  # fmt: skip
        below += log.info[0]["floor"] <= 0
    assert below >= 36


# --- the strategy


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("rounds", [None, 2, 3])
def test_the_gate_does_not_change_the_number_of_rounds(rounds: int | None, grouping: Grouping) -> None:
    workload = all_kway(SCHEMA.domain, 2)
    plain = gated("pmw_pub", workload, town(), grouping, rounds=rounds)
    with_gate = gated("pmw_pub", workload, town(), grouping, rounds=rounds, gate=0.9, gate_share=0.3)
    for total in (500, 3000, 10**6):  # few rounds, some, and as many as there may be
        facts = Facts(total, 0.1)
        assert most_rounds(with_gate.strategy, facts) == most_rounds(plain.strategy, facts)
        assert isinstance(with_gate.update, Gate)
        assert 1 <= with_gate.update.rounds <= most_rounds(plain.strategy, facts) / 2
        assert spent(with_gate.strategy, 0.1, total, stop=with_gate.update.rounds) <= Fraction(0.1 * 0.3)
        assert Fraction(0.1) * Fraction(999, 1000) < spent(with_gate.strategy, 0.1, total) <= Fraction(0.1)


def test_a_gate_leaves_a_round_after_it_even_with_a_single_attribute() -> None:
    table = town().project(("a",))
    workload = all_kway(table.domain, 1)
    assert Rounds(20, 1, 100.0).count(Facts(500, 1e-9)) == 1
    chosen = get_method("pmw_pub")
    task = Task(workload, Grouping.QUERY, PublicTable.encode(table, table.schema))
    strategy = chosen.algorithm(task, chosen.configure({"gate": 0.9})).strategy
    assert most_rounds(strategy, Facts(500, 1e-9)) == 2
    assert Fraction(1e-9) * Fraction(999, 1000) < spent(strategy, 1e-9, 500) <= Fraction(1e-9)


@pytest.mark.parametrize("name", ["pmw_pub", "pep_pub"])
def test_rounds_follow_the_budget_unless_they_are_given(name: str) -> None:
    workload = all_kway(SCHEMA.domain, 3)
    by_default = gated(name, workload, town(), "query").strategy
    given = gated(name, workload, town(), "query", rounds=7).strategy
    most = most_rounds(by_default, Facts(1000, 1e9))
    assert [most_rounds(by_default, Facts(1000, rho)) for rho in (1e-9, 0.25, 0.49)] == [6, 6, 7]  # three attributes
    assert most == min(workload.size, 150 if name == "pmw_pub" else 50)
    assert [most_rounds(given, Facts(1000, rho)) for rho in (1e-9, 0.04, 1e9)] == [7, 7, 7]
    for rho in (1e-9, 0.25, 0.49, 100.0):
        whole = spent(by_default, rho, 1000)
        assert Fraction(rho) * Fraction(999, 1000) < whole <= Fraction(rho)
