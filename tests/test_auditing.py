"""The audit finds planted errors, raises no alarm about the real code, and proves most of what is claimed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from scipy import stats
from tests.test_docs import module_at
from typer.testing import CliRunner

from pointillist import Grid, InputError, Relation, Schema
from pointillist.auditing import Audit, audit
from pointillist.auditing.bounds import (
    Event,
    Gaussian,
    best_event,
    epsilon_by_account,
    judge,
    rate_above,
    rate_below,
    rho_of_advantage,
    rho_of_rates,
    single_advantage,
)
from pointillist.auditing.parts import MEASUREMENT, SELECTION, WHOLE, Case
from pointillist.auditing.runs import Laboratory, repeated
from pointillist.auditing.tables import designs
from pointillist.auditing.witness import Witness
from pointillist.cli_audit import audit as audit_command
from pointillist.data.schema import Categorical
from pointillist.data.sources import TableSource
from pointillist.privacy import curator as curator_module
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry, Ledger
from pointillist.privacy.mechanisms import Noise, OpenDPNoise
from pointillist.queries.base import Sensitivity
from pointillist.queries.marginal import Marginal

write_audit: Any = module_at(Path(__file__).parents[1] / "tools" / "write_audit.py")

SURE = 1 - 1e-6
"""The confidence of the tests: a false alarm does not occur in practice."""
RELATIONS = [relation.value for relation in Relation]
SCHEMA = Schema(tuple(Categorical(f"c{n}", ("no", "yes")) for n in range(4)))
SMALL: dict[str, Any] = {"method": "mwem", "workload": "marginals:1", "settings": {"rounds": 2}, "processes": 1}


@dataclass
class TooQuiet:
    """A planted error: noise at 0.7 of its scale."""

    inner: Noise
    factor: float = 0.7
    description = "too quiet"
    private = True

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return self.inner.add_gaussian(counts, rho / self.factor**2, sensitivity_squared)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return self.inner.select(scores, rho / self.factor**2, sensitivity)


def seeded(number: int) -> Noise:
    """Noise of the right scales that is drawn fast, other noise for every run."""
    return InsecureSeededNoise(number)


def too_quiet(number: int) -> Noise:
    return TooQuiet(InsecureSeededNoise(number))


def verdicts(found: Audit) -> dict[str, tuple[bool, bool, bool]]:
    return {one.part: (one.exceeded, one.repeated, one.uncharged > 0) for one in found.findings}


def laboratory(relation: str = "replace", **options: Any) -> Laboratory:
    some = {"epsilon": 2.0, "delta": 1e-4, "relation": relation, "method": "mwem", "workload": "marginals:1"}
    case = Case(SCHEMA, 300, some | {"settings": {"rounds": 3}} | options)
    return Laboratory(case, designs(SCHEMA, case.relation, 300)[0])


FINE = (False, False, False)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_real_code_raises_no_alarm(relation: str) -> None:
    found = audit(
        SCHEMA, epsilon=2.0, delta=1e-6, relation=relation, whole_run=True, runs=200, confidence=SURE, **SMALL
    )
    assert verdicts(found) == {MEASUREMENT: FINE, SELECTION: FINE, WHOLE: FINE}
    assert not found.violation
    for one in found.findings:
        assert one.claimed_epsilon == pytest.approx(2.0)
        assert one.judged == 160


def test_columns_without_fixed_bins_are_audited_in_groups() -> None:
    schema = Schema((Grid("hours", bounds=(0, 100), integer=True), *SCHEMA.columns[:1]))
    found = audit(schema, epsilon=2.0, runs=200, confidence=SURE, noise_of=seeded, **SMALL)
    assert not found.violation


def test_noise_at_0_7_of_its_scale_is_found() -> None:
    options = {"epsilon": 4.0, "runs": 2_000}  # with seeded noise there is nothing that could fail by chance
    found = audit(SCHEMA, noise_of=too_quiet, **options, **SMALL)
    assert all(one.exceeded for one in found.findings)
    assert not audit(SCHEMA, noise_of=seeded, **options, **SMALL).violation


def test_a_sensitivity_of_1_instead_of_sqrt_2_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Marginal, "sensitivity", lambda self, relation: Sensitivity.of_indicators(1))
    found = audit(SCHEMA, epsilon=4.0, runs=2_500, noise_of=seeded, **SMALL)
    assert verdicts(found)[MEASUREMENT] == (True, False, False)
    assert verdicts(found)[SELECTION] == FINE


def test_a_pick_that_is_not_charged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def forgetful(ledger: Ledger, *entries: Entry) -> None:
        charge(ledger, *(entry for entry in entries if entry.label != "selection"))

    monkeypatch.setattr(Ledger, "charge", forgetful)
    options = SMALL | {"settings": {"rounds": 2, "alpha": 0.8}}
    found = audit(SCHEMA, epsilon=4.0, runs=500, whole_run=True, noise_of=seeded, **options)
    assert verdicts(found) == {MEASUREMENT: FINE, SELECTION: (True, False, True), WHOLE: (True, False, True)}
    assert "was not charged" in found.findings[1].verdict


def test_a_seed_that_was_left_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "OpenDPNoise", lambda: InsecureSeededNoise(3))
    found = audit(SCHEMA, epsilon=1.0, runs=100, confidence=SURE, whole_run=True, **SMALL)
    assert all(one.repeated for one in found.findings)
    assert found.violation
    assert all("repeat" in one.verdict for one in found.findings)


def test_processes_that_start_with_the_same_seed_are_found() -> None:
    """Two batches are equal, run by run, though the runs of each of them differ."""
    lab = laboratory()
    same = Laboratory(lab.case, lab.pair, lambda number: InsecureSeededNoise(number % 30), lab.token)
    assert repeated(same.many(MEASUREMENT, 0, 60, 30, 1))
    other = Laboratory(lab.case, lab.pair, seeded, lab.token)
    assert not repeated(other.many(MEASUREMENT, 0, 60, 30, 1))


def test_a_selection_without_any_choice_does_not_count_as_repeated() -> None:
    """With a huge budget every run picks the same: that is no coincidence, and no seed."""
    lab = laboratory(epsilon=100.0, delta=1e-2)
    pair = designs(SCHEMA, Relation.REPLACE, 300)[1]
    found = list(Laboratory(lab.case, pair).many(SELECTION, 0, 40, 40, 1))
    assert not repeated(found)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_statistic_is_a_log_likelihood_ratio(relation: str) -> None:
    """Under the first table E exp(ratio) = 1, and under the second E exp(-ratio) = 1, over whole runs."""
    lab = laboratory(relation)
    batches = list(lab.many(WHOLE, 0, 250, 250, 1))
    for batch in batches:
        values = np.exp(batch.ratios if batch.table == 0 else -batch.ratios)
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - 1) < 5 * error
        assert batch.ratios.std() > 0.1
    first, second = sorted(batches, key=lambda batch: batch.table)
    assert second.ratios.mean() > first.ratios.mean()


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_measured_moves_by_its_whole_sensitivity(relation: str) -> None:
    for pair in designs(SCHEMA, Relation(relation), 301):
        tables = pair.tables()
        assert [len(table) for table in tables] == ([301, 301] if relation == "replace" else [300, 301])
        for queries in (Marginal.of(SCHEMA.domain, (0,)), Marginal.of(SCHEMA.domain, (0, 1, 3))):
            first, second = pair.counts(queries)
            for table, counts in zip(tables, (first, second), strict=True):
                np.testing.assert_array_equal(queries.holds(table.codes).sum(axis=0), counts)
            assert ((first - second) ** 2).sum() == queries.sensitivity(Relation(relation)).l2_squared


def test_a_selection_can_tell_all_that_it_costs() -> None:
    """On the chosen tables one selection has an information of nearly rho, and one measurement of exactly rho."""
    lab = laboratory(epsilon=1.0)
    for name, least in ((MEASUREMENT, 0.9999), (SELECTION, 0.97), (WHOLE, 0.9)):
        share = lab.information(name, 4) / lab.part(name).ledger.limit
        assert least < share <= 1


def test_the_witness_changes_nothing() -> None:
    lab = laboratory()
    part, table = lab.part(WHOLE), lab.pair.tables()[0]
    logs = []
    for watched in (False, True):
        door: Any = Curator(TableSource(table), Ledger(part.ledger.budget), InsecureSeededNoise(5))
        _, log = part.ask(Witness(door, lab.pair) if watched else door)  # type: ignore[misc]
        logs.append(log)
    assert [entry.picks for entry in logs[0].rounds] == [entry.picks for entry in logs[1].rounds]
    for one, other in zip(logs[0].measurements, logs[1].measurements, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (870, 2_000)])
def test_rates_are_bounded_exactly(hits: int, runs: int) -> None:
    low, high = rate_below(hits, runs, 0.01), rate_above(hits, runs, 0.01)
    assert low <= hits / runs <= high
    if hits > 0:
        assert stats.binom.sf(hits - 1, runs, low) == pytest.approx(0.01)
    if hits < runs:
        assert stats.binom.cdf(hits, runs, high) == pytest.approx(0.01)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_no_rates_of_a_gaussian_refute_its_own_cost(mu: float) -> None:
    levels = np.linspace(-3, 3 + mu, 40)
    found = [rho_of_rates(stats.norm.sf(level - mu), stats.norm.sf(level)) for level in levels]
    assert max(found) <= mu**2 / 2 * (1 + 1e-9)
    assert max(found) > 0.6 * mu**2 / 2
    advantage = 2 * stats.norm.cdf(mu / 2) - 1
    assert rho_of_advantage(advantage, 100.0) == pytest.approx(mu**2 / 2, rel=2e-3)
    assert rho_of_advantage(advantage, 100.0) <= mu**2 / 2


@pytest.mark.parametrize("changed", [1, 2])
@pytest.mark.parametrize("scale", [0.3, 0.7, 1.8, 6.0])
def test_the_advantage_of_a_single_measurement_is_exact(scale: float, changed: int) -> None:
    """Against all pairs of noises on a grid; and the bound on rho is its inverse."""
    grid = np.arange(-80, 81)
    shares = np.exp(-(grid**2) / (2 * scale**2))
    shares /= shares.sum()
    for _ in range(changed - 1):
        shares = np.convolve(shares, shares)
    padded = np.pad(shares, changed)
    distance = np.abs(padded[changed:] - padded[:-changed]).sum() / 2
    assert single_advantage(scale, changed) == pytest.approx(distance)
    assert Gaussian(scale, changed).rho(distance) == pytest.approx(changed / (2 * scale**2), rel=1e-6)
    assert Gaussian(scale).rho(distance) <= changed / (2 * scale**2)  # the bound for any number of measurements


@pytest.mark.parametrize("s", [0.5, 2.0, 10.0])
def test_no_rates_of_a_selection_refute_its_own_cost(s: float) -> None:
    """Two candidates whose scores change by 1 in opposite directions: Pr[i] ∝ exp(score_i / s)."""
    t = 1 / (1 + math.exp(-1 / s))
    rho = 1 / (2 * s**2)
    assert rho_of_rates(t, 1 - t) <= rho
    if s >= 2:
        assert rho_of_rates(t, 1 - t) > 0.95 * rho


def test_useless_and_perfect_rates() -> None:
    assert rho_of_rates(0.3, 0.3) == rho_of_rates(0.2, 0.4) == 0
    assert rho_of_rates(0.5, 0.0) == rho_of_rates(1.0, 0.5) == math.inf
    assert rho_of_advantage(-0.1, 3.0) == rho_of_advantage(0.0, 3.0) == 0


@pytest.mark.parametrize("least_scale", [None, 3.0, 100.0])
def test_the_account_states_the_epsilon_of_its_budget(least_scale: float | None) -> None:
    ledger = Ledger(Budget(1.3, 1e-7), least_scale)
    assert epsilon_by_account(ledger, ledger.limit) == pytest.approx(1.3, rel=1e-6)
    assert epsilon_by_account(ledger, ledger.limit / 2) < 1.3
    assert epsilon_by_account(ledger, 0.0) == 0


def test_bounds_are_wrong_no_more_often_than_they_say() -> None:
    """Audits of an exact Gaussian mechanism with an error chance of 1 in 10: few of 120 exceed the truth."""
    rng = np.random.default_rng(8)
    mu, runs, chance = 0.8, 500, 0.1
    ledger, noise = Ledger(Budget(4.0, 1e-6)), Gaussian(100.0)
    wrong = {True: 0, False: 0, None: 0}
    for _ in range(120):
        first, second = (mu * (rng.standard_normal(runs) * 1.0 + sign * mu / 2) for sign in (-1, 1))
        chosen = best_event(first[:100], second[:100], 400, chance, noise)
        events = {True: Event(0.0, True), False: Event(mu, False), None: chosen}
        for key, event in events.items():
            bound = judge(event, event.hits(first[100:], second[100:]), 400, chance, ledger, noise)
            wrong[key] += bound.rho > mu**2 / 2
    assert all(count <= 120 * chance + 4 * math.sqrt(120 * chance) for count in wrong.values())
    assert wrong[True] > 2  # the bound is tight: it does come close to its chance


def test_an_event_of_extreme_rates_is_read_without_an_account() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    bound = judge(Event(0.0, False), (0, 10_000), 10_000, 1e-3, ledger)
    assert bound.epsilon > 6
    assert bound.rho > ledger.limit


def test_the_work_can_be_shared_among_processes() -> None:
    calls: list[tuple[str, int, int]] = []
    options = SMALL | {"processes": 2}
    found = audit(SCHEMA, epsilon=2.0, runs=60, progress=lambda *call: calls.append(call), **options)
    assert [one.runs for one in found.findings] == [60, 60]
    assert not found.violation
    assert calls[0] == (MEASUREMENT, 0, 60)
    assert calls[-1] == (SELECTION, 60, 60)


def test_time_decides_the_number_of_runs() -> None:
    found = audit(SCHEMA, epsilon=2.0, seconds=0.1, **SMALL)
    assert all(one.runs >= 50 for one in found.findings)


@pytest.mark.parametrize("method", ["auto", "one-shot"])
def test_methods_that_only_measure_have_no_selection(method: str) -> None:
    found = audit(SCHEMA, epsilon=1.0, method=method, workload="marginals:2", whole_run=True, runs=60, processes=1)
    assert [one.part for one in found.findings] == [MEASUREMENT, WHOLE]
    assert [one.accounting for one in found.findings] == ["Gaussian", "Gaussian"]
    assert all(one.claimed_mu == pytest.approx(math.sqrt(2 * one.claimed_rho)) for one in found.findings)


def test_methods_that_only_select_have_no_measurement() -> None:
    found = audit(SCHEMA, epsilon=2.0, method="fem", workload="marginals:2", runs=60, processes=1)
    assert [one.part for one in found.findings] == [SELECTION]
    assert found.findings[0].claimed_mu is None


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"method": "nobody"}, "must be one of the methods"),
        ({"method": "gem_pub"}, "needs no public table"),
        ({"epsilon": 0.0}, "above 0"),
        ({"relation": "swap"}, "must be one of replace"),
        ({"workload": "all"}, "marginals:K"),
        ({"runs": 3}, "50"),
        ({"runs": 100.5}, "whole number"),
        ({"seconds": 0.0}, "above 0"),
        ({"confidence": 1.0}, "below 1"),
        ({"processes": 0}, "at least 1"),
        ({"rows": 2}, "10"),
        ({"delta": 2.0}, "below 1"),
        ({"settings": {"alphaa": 1}}, "one of its settings"),
    ],
)
def test_bad_options_are_refused_before_anything_is_run(options: dict[str, Any], rule: str) -> None:
    given = {"epsilon": 1.0, **SMALL, "progress": lambda *call: pytest.fail("a run was started"), **options}
    with pytest.raises(InputError, match=rule) as refusal:
        audit(SCHEMA, **given)
    assert "\n" not in str(refusal.value)


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    SCHEMA.save(tmp_path / "small.toml")
    return str(tmp_path / "small.toml")


def command(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(audit_command)
    return CliRunner().invoke(app, list(arguments))


MWEM = ("--method", "mwem", "--epsilon", "2", "--workload", "marginals:1", "--processes", "1", "--runs", "60")


def test_the_command_prints_a_table_and_ends_with_0(schema_file: str) -> None:
    done = command(schema_file, *MWEM)
    assert done.exit_code == 0
    assert "no violation found" in " ".join(done.stdout.replace("│", " ").split()).lower()
    assert "one selection" in done.stderr  # the progress


def test_the_command_prints_json_and_ends_with_1_if_a_violation_is_found(
    schema_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = command(schema_file, *MWEM, "--json", "--whole", "--rounds", "2", "--set", "alpha=0.3")
    assert good.exit_code == 0
    found = json.loads(good.stdout)
    assert found["violation"] is False
    assert [one["part"] for one in found["findings"]] == [MEASUREMENT, SELECTION, WHOLE]
    assert {"runs", "seconds", "claimed_epsilon", "epsilon", "claimed_mu", "mu"} <= found["findings"][0].keys()
    assert found["confidence"] == 0.999
    monkeypatch.setattr(curator_module, "OpenDPNoise", lambda: InsecureSeededNoise(3))
    bad = command(schema_file, *MWEM, "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["violation"] is True


def test_the_command_takes_the_schema_of_a_dataset() -> None:
    done = command("demo", *MWEM, "--method", "one-shot", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["method"] == "one-shot"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("people.csv",), "must be a schema in TOML"),
        (("nobody.toml",), "must be an existing file"),
        (("demo", "--set", "alpha"), "KEY=VALUE"),
        (("demo", "--runs", "1"), "must be in 50"),
    ],
)
def test_the_command_refuses_bad_input(arguments: tuple[str, ...], rule: str) -> None:
    done = command(*arguments[:1], *MWEM, *arguments[1:])
    assert isinstance(done.exception, InputError)
    assert rule in str(done.exception)
    assert done.stdout == ""


def test_a_draft_is_refused(tmp_path: Path) -> None:
    Schema(SCHEMA.columns, reviewed=False).save(tmp_path / "draft.toml")
    done = command(str(tmp_path / "draft.toml"), *MWEM)
    assert isinstance(done.exception, InputError)
    assert "reviewed" in str(done.exception)


@pytest.mark.slow
@pytest.mark.parametrize("name", write_audit.GOALS)
def test_the_goals_are_reached(name: str) -> None:
    """A single measurement is found to cost nearly what is claimed, and the whole of MWEM most of it."""
    found = write_audit.audit(name)
    assert not found["violation"]
    assert write_audit.missed(name, found) == []


def test_the_page_shows_the_recorded_figures_and_they_reach_the_goals() -> None:
    text = write_audit.PAGE.read_text(encoding="utf-8")
    assert write_audit.filled(text) == text
    kept = json.loads(write_audit.FIGURES.read_text(encoding="utf-8"))
    assert kept.keys() == write_audit.GOALS.keys()
    for name, found in kept.items():
        assert not found["violation"]
        assert write_audit.missed(name, found) == []


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["auto", "mwem", "pep", "dualquery", "fem"])
def test_the_real_code_raises_no_alarm_over_many_runs(method: str, relation: str) -> None:
    slow = {"fem": 100, "dualquery": 100}.get(method, 1_000)
    settings = {"fem": {"rounds": 3, "samples": 2}, "mwem": {"rounds": 3}, "pep": {"rounds": 3}}.get(method, {})
    options = {"method": method, "workload": "marginals:2", "settings": settings, "relation": relation, "delta": 1e-6}
    found = audit(SCHEMA, epsilon=3.0, whole_run=True, runs=slow, confidence=SURE, **options)
    assert not found.violation
    assert found.findings[-1].part == WHOLE


@pytest.mark.slow
def test_planted_errors_are_found_with_the_real_noise() -> None:
    options = SMALL | {"processes": None}
    found = audit(
        SCHEMA, epsilon=2.0, runs=8_000, confidence=SURE, noise_of=lambda number: TooQuiet(OpenDPNoise()), **options
    )
    assert all(one.exceeded for one in found.findings)


@pytest.mark.slow
def test_a_pick_that_is_not_charged_is_found_in_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def forgetful(ledger: Ledger, *entries: Entry) -> None:
        charge(ledger, *(entry for entry in entries if entry.label != "selection"))

    monkeypatch.setattr(Ledger, "charge", forgetful)
    found = audit(SCHEMA, epsilon=4.0, runs=6_000, confidence=SURE, whole_run=True, noise_of=seeded, **SMALL)
    assert verdicts(found)[WHOLE] == (True, False, True)
