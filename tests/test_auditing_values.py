"""The audit of discoveries finds planted errors in noise, thresholds and charges, and no others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.test_auditing import FINE, RELATIONS, SURE, TooQuiet, command, seeded, too_quiet, verdicts

from pointillist import Categorical, Discovered, Relation, Schema
from pointillist.auditing import audit
from pointillist.auditing.bounds import judge_shown
from pointillist.auditing.parts import MEASUREMENT, WHOLE
from pointillist.auditing.report import Finding, _finding, _Plan
from pointillist.auditing.runs import Laboratory
from pointillist.auditing.values import ALONE, APART, DISCOVERY, Discovery, with_lists
from pointillist.auditing.witness import _log_outcome
from pointillist.data.neighbours import Unit
from pointillist.privacy import curator as curator_module
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Found
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry, Ledger
from pointillist.privacy.mechanisms import Noise, OpenDPNoise
from pointillist.privacy.sensitivity import square_of_values
from pointillist.privacy.thresholds import threshold_of

SCHEMA = Schema((Discovered("town"), Categorical("c", ("no", "yes"))))
ONCE: dict[str, Any] = {"method": "one-shot", "workload": "marginals:1", "processes": 1}
FOR_NOISE, FOR_DELTA = (2.0, 1e-4), (0.2, 0.1)
"""Budgets at which few runs see much: of the noise, and of values that one unit has. These are then no rare event, and
the noise is so large that a threshold in whole numbers is not much stricter than it must be."""
NEIGHBOURS: list[dict[str, Any]] = [*({"relation": one} for one in RELATIONS), {"max_rows": 3}]


def loud(number: int) -> Noise:
    """A planted error: noise at 1.3 times its scale, which the threshold does not know of."""
    return TooQuiet(InsecureSeededNoise(number), 1.3)


def budget_of(more: dict[str, Any], epsilon: float = 2.0, delta: float = 0.01) -> Budget:
    if "max_rows" in more:
        return Budget(epsilon, delta, Relation.ADD_REMOVE, Unit("unit", more["max_rows"]))
    return Budget(epsilon, delta, Relation(more["relation"]))


@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_the_real_code_raises_no_alarm(more: dict[str, Any]) -> None:
    found = audit(SCHEMA, epsilon=2.0, delta=1e-3, rows=200, runs=200, whole_run=True, confidence=SURE, **ONCE, **more)
    apart = [APART] if "max_rows" in more else []
    assert verdicts(found) == dict.fromkeys([MEASUREMENT, WHOLE, DISCOVERY, ALONE, *apart], FINE)
    assert not found.violation
    noise, *shown = found.findings[2:]
    assert noise.claimed_epsilon == pytest.approx(2.0)
    assert noise.claimed_delta is noise.delta is None
    for one in shown:
        assert one.claimed_delta == 0.2 * 1e-3
        assert (one.claimed_epsilon, one.false_positives, one.mu) == (2.0, 0, None)
        assert json.loads(json.dumps(one.to_dict()))["claimed_delta"] == 0.2 * 1e-3


@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_the_tables_are_neighbours_and_differ_as_much_as_they_can(more: dict[str, Any]) -> None:
    budget = budget_of(more)
    discovery, m = Discovery(budget, 201), more.get("max_rows", 1)
    for name, pair in discovery.pairs.items():
        tables = pair.tables()
        sizes = [201, 201] if budget.relation is Relation.REPLACE else [201 - m, 201]
        counts = [dict(zip(*discovery.source(table).values_of("value"), strict=True)) for table in tables]  # type: ignore[attr-defined]
        assert [sum(one.values()) for one in counts] == sizes
        assert counts == [{v: n[side] for v, n in pair.values("value").items() if n[side]} for side in (0, 1)]
        changes = [b - a for a, b in pair.values("value").values()]
        assert sum(max(change, 0) for change in changes) == m
        if name == DISCOVERY:
            assert sum(change**2 for change in changes) == square_of_values(budget)
        else:
            alone = [b for a, b in pair.values("value").values() if a == 0]
            assert alone == ([m] if name == ALONE else [1] * m)


@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_the_likelihoods_of_all_outcomes_sum_up_to_1(count: int) -> None:
    found = Found("value", (), (), 4.0, 12)
    shown = [_log_outcome(noisy, count, found) for noisy in range(12, 400)]
    assert math.fsum(map(math.exp, [_log_outcome(None, count, found), *shown])) == pytest.approx(1.0)
    assert _log_outcome(None, 10**6, found) < -(10**10)


@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_the_statistic_is_a_log_likelihood_ratio(more: dict[str, Any]) -> None:
    """Under the first table E exp(ratio) = 1, and under the second E exp(-ratio) = 1."""
    discovery = Discovery(budget_of(more), 200)
    lab = Laboratory(discovery, discovery.pairs[DISCOVERY], seeded)
    for batch in lab.many(DISCOVERY, 0, 2000, 2000, 1):
        values = np.exp(batch.ratios if batch.table == 0 else -batch.ratios)
        assert abs(values.mean() - 1) < 5 * values.std() / math.sqrt(len(values))
        assert batch.ratios.std() > 0.1
        assert batch.shown == discovery.ledger.delta_shown


def test_what_only_one_table_has_proves_delta_and_epsilon() -> None:
    ledger = Ledger(Budget(1.0, 0.01), None, 0.002)
    epsilon, delta = judge_shown((0, 20), 10_000, 1e-3, ledger)
    assert (epsilon, 0.0005 < delta < 0.002) == (0.0, True)
    epsilon, delta = judge_shown((0, 300), 10_000, 1e-3, ledger)
    assert 0.02 < delta < 0.03
    assert epsilon > 2
    assert judge_shown((0, 0), 10_000, 1e-3, ledger) == (0.0, 0.0)


# --- planted errors


def finding(part: str, more: dict[str, Any], noise_of: Callable[[int], Noise] = seeded, runs: int = 3_000) -> Finding:
    """What runs of one part find."""
    discovery = Discovery(budget_of(more, *(FOR_NOISE if part == DISCOVERY else FOR_DELTA)), 400)
    plan = _Plan(runs, 60.0, 1e-3 if runs < 10_000 else 1e-6, 1, lambda *call: None)
    return _finding(part, [Laboratory(discovery, discovery.pairs[part], noise_of)], plan)


def parts_of(more: dict[str, Any]) -> list[str]:
    """The parts of discoveries."""
    return [DISCOVERY, ALONE, *[APART] * ("max_rows" in more)]


@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_wrong_scales_of_the_noise_are_found(more: dict[str, Any]) -> None:
    assert not any(finding(part, more).exceeded for part in parts_of(more))
    assert finding(DISCOVERY, more, too_quiet).exceeded
    assert all(finding(part, more, loud).exceeded for part in parts_of(more)[1:])


@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_a_threshold_for_three_times_delta_is_found(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "threshold_of", lambda delta, *others: threshold_of(3 * delta, *others))
    assert all(finding(part, more).exceeded for part in parts_of(more)[1:])


def test_a_threshold_that_forgets_the_unit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "threshold_of", lambda delta, sigma, m: threshold_of(delta, sigma, 1))
    assert finding(APART, {"max_rows": 3}).exceeded


def test_a_sensitivity_of_1_instead_of_sqrt_2_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "square_of_values", lambda known: 1)
    assert finding(DISCOVERY, {"relation": "replace"}).exceeded


def test_a_delta_that_is_not_charged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def forgetful(ledger: Ledger, *entries: Entry) -> None:
        charge(ledger, *(replace(entry, delta=0.0) for entry in entries))

    monkeypatch.setattr(Ledger, "charge", forgetful)
    found = finding(ALONE, {"relation": "replace"})
    assert (found.claimed_delta, found.exceeded, found.reached) == (0.0, True, math.inf)


def test_a_seed_that_was_left_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "OpenDPNoise", lambda: InsecureSeededNoise(3))
    found = audit(SCHEMA, epsilon=1.0, delta=0.01, rows=200, runs=60, **ONCE)
    assert all(one.repeated for one in found.findings)


# --- the schema and the command


def test_other_parts_have_a_few_values_in_place_of_those_to_be_discovered() -> None:
    assert with_lists(SCHEMA).columns[0].labels == ("a", "b", "other")
    plain = Schema(SCHEMA.columns[1:])
    assert with_lists(plain) is plain


def test_the_command_prints_delta(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "s.toml")
    options = ["--method", "one-shot", "--epsilon", "2", "--delta", "0.01", "--runs", "60", "--processes", "1"]
    done = command(str(tmp_path / "s.toml"), *options, "--workload", "marginals:1")
    assert done.exit_code == 0
    assert f"{ALONE}: no violation found" in done.stdout
    assert "0.002" in done.stdout
    with_two = command("demo", *options, "--workload", "marginals:1")
    assert "delta │" not in with_two.stdout


@pytest.mark.slow
@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_the_real_noise_raises_no_alarm_over_many_runs(more: dict[str, Any]) -> None:
    noise, *shown = (finding(part, more, lambda number: OpenDPNoise(), 20_000) for part in parts_of(more))
    assert not any(one.violation for one in (noise, *shown))
    assert noise.reached > 0.7
    assert all(one.reached > 0.2 for one in shown)


@pytest.mark.slow
@pytest.mark.parametrize("more", NEIGHBOURS, ids=str)
def test_planted_errors_are_found_with_the_real_noise(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    noise, *shown = parts_of(more)
    assert finding(noise, more, lambda number: TooQuiet(OpenDPNoise()), 20_000).exceeded
    assert all(finding(part, more, lambda number: TooQuiet(OpenDPNoise(), 1.3), 20_000).exceeded for part in shown)
    monkeypatch.setattr(curator_module, "threshold_of", lambda delta, *others: threshold_of(4 * delta, *others))
    assert all(finding(part, more, lambda number: OpenDPNoise(), 20_000).exceeded for part in shown)
