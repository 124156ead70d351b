"""An audit: runs on made-up tables, what they prove, and the claim that it is compared with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pointillist.algorithms import Public, get_method
from pointillist.auditing.bounds import Gaussian, best_event, epsilon_by_account, judge, judge_shown
from pointillist.auditing.parts import MEASUREMENT, SELECTION, WHOLE, Case
from pointillist.auditing.runs import Batch, Laboratory, NoiseOf, cores, repeated
from pointillist.auditing.tables import LEAST_ROWS, designs
from pointillist.auditing.values import ALONE, APART, DISCOVERY, Discovery, with_lists
from pointillist.checks import at_least, between, check, one_of, positive, real, share, whole
from pointillist.data.neighbours import Relation, Unit
from pointillist.data.opening import discovered_in
from pointillist.data.schema import Schema
from pointillist.errors import InputError, brief
from pointillist.privacy.ledger import Ledger
from pointillist.refining import Refining

__all__ = ["Audit", "Finding", "audit"]

AuditProgress = Callable[[str, int, int], None]
"""Called with the name of a part, its runs done and its runs in all."""

ROWS = 1_000
LEAST_RUNS, MOST_RUNS, MOST_ROWS = 50, 10_000_000, 10_000_000
MOST_SECONDS = 1e7
PILOT, MOST_PILOT = 0.2, 2_000
"""The share of the runs that choose an event, and their largest number; the others judge it."""
SHARES = {MEASUREMENT: 2, SELECTION: 1, WHOLE: 3, DISCOVERY: 2, ALONE: 2, APART: 2}
"""How the time is divided among the parts."""
SEARCH = 0.1
"""At most about this share of a part's time goes into choosing the tables."""
SIMULATED = 4
"""Simulated runs for each pair of tables."""
TIMED = 5
"""Runs that are timed, and not used."""
WAVES = 8
"""The first runs take this fraction of the time; how long they really take says how many follow."""
BATCH_SECONDS = 1.0
"""About how long one batch of runs takes."""


@dataclass(frozen=True)
class Finding:
    """What the runs of one part prove.

    Attributes:
        part: what was run.
        runs: the number of runs on each of the two tables.
        judged: how many of them judged the event that the others chose.
        false_positives, true_positives: how often the event occurred among the judged runs on each table.
        threshold: the event is that the log-likelihood ratio is above this; for values that only one unit has, that it
            is infinite.
        balanced: whether the event was judged by its share of right decisions, or else by its two rates apart.
        accounting: the account that the part is charged to.
        claimed_rho: the rho that was charged.
        rho: the lower bound on rho.
        claimed_epsilon: the epsilon that the account states for what was charged, at the delta of the budget.
        epsilon: the lower bound on epsilon.
        claimed_mu, mu: sqrt(2 rho), for parts that only add Gaussian noise; else None.
        claimed_delta, delta: for values that only one unit has, the probability that they are shown: what was charged,
            and the lower bound; else None.
        repeated: whether runs repeat each other, as with a seed that was left in.
        uncharged: the rho for which noise was drawn without a charge.
        seconds: how long it took.
    """

    part: str
    runs: int
    judged: int
    false_positives: int
    true_positives: int
    threshold: float
    balanced: bool
    accounting: str
    claimed_rho: float
    rho: float
    claimed_epsilon: float
    epsilon: float
    claimed_mu: float | None
    mu: float | None
    claimed_delta: float | None
    delta: float | None
    repeated: bool
    uncharged: float
    seconds: float

    @property
    def exceeded(self) -> bool:
        """Whether the lower bound is above the claim."""
        shown = self.delta is not None and self.delta > (self.claimed_delta or 0.0)
        return shown or self.rho > self.claimed_rho or self.epsilon > self.claimed_epsilon

    @property
    def violation(self) -> bool:
        """Whether anything is wrong: a bound above the claim, noise that repeats itself, or a missing charge."""
        return self.exceeded or self.repeated or self.uncharged > 0

    @property
    def reached(self) -> float:
        """The bound as a share of the claim: in delta for values of one unit, in mu for Gaussian parts, else in
        epsilon."""
        bound, claim = (self.epsilon, self.claimed_epsilon) if self.mu is None else (self.mu, self.claimed_mu or 0.0)
        bound, claim = (bound, claim) if self.delta is None else (self.delta, self.claimed_delta or 0.0)
        return bound / claim if claim else math.inf if bound else 0.0

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        words = [
            (self.repeated, "runs repeat each other"),
            (self.uncharged > 0, f"rho {self.uncharged:.4g} was not charged"),
            (self.exceeded, "more than claimed"),
        ]
        return "; ".join(text for holds, text in words if holds) or "no violation found"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data; an infinite bound is null."""
        more = {"reached": self.reached, "exceeded": self.exceeded, "violation": self.violation}
        return {key: _finite(value) for key, value in (asdict(self) | more | {"verdict": self.verdict}).items()}


@dataclass(frozen=True)
class Audit:
    """The findings for all parts.

    Attributes:
        method: the name of the method.
        relation: which tables are neighbours.
        epsilon, delta: the budget.
        rows: the number of rows of the made-up tables.
        max_rows: the rows of the unit in which they differ; None for one row.
        confidence: all bounds hold together with this probability.
        findings: one for each part.
        seconds: how long it took.
    """

    method: str
    relation: str
    epsilon: float
    delta: float
    rows: int
    max_rows: int | None
    confidence: float
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def violation(self) -> bool:
        """Whether any part shows a violation."""
        return any(finding.violation for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data."""
        found = {key: value for key, value in vars(self).items() if key != "findings"}
        return found | {"violation": self.violation, "findings": [one.to_dict() for one in self.findings]}


@dataclass(frozen=True)
class _Plan:
    """How much is run, and how sure the result is."""

    runs: int | None
    seconds: float
    chance: float
    processes: int
    progress: AuditProgress


def audit(
    schema: Schema,
    *,
    epsilon: float,
    method: str,
    delta: float | None = None,
    relation: str | None = None,
    max_rows: int | None = None,
    workload: Any = None,
    group: str | None = None,
    settings: dict[str, Any] | None = None,
    rows: int = ROWS,
    whole_run: bool = False,
    runs: int | None = None,
    seconds: float = 60.0,
    confidence: float = 0.999,
    processes: int | None = None,
    progress: AuditProgress = lambda part, done, runs: None,
    noise_of: NoiseOf | None = None,
) -> Audit:
    """Try to refute the promise of a run, on made-up tables that differ in one row or one unit.

    Args:
        schema: the columns. Only their numbers of values matter.
        epsilon: the privacy loss that is promised.
        method: the name of a method that needs no public table.
        delta: the probability that the loss is larger; by default 1 / rows^2.
        relation: ``"replace"`` or ``"add-remove"``; by default ``"replace"``, and ``"add-remove"`` with ``max_rows``.
        max_rows: audit a run with a unit of privacy of this number of rows.
        workload: the queries to keep: a :class:`~pointillist.Workload` or a text such as ``"marginals:3"``. By
            default as in :func:`~pointillist.prepare`.
        group: ``"query"`` or ``"marginal"``.
        settings: hyper-parameters of the method, by name.
        rows: the number of rows of the made-up tables.
        whole_run: audit the whole run, too, with all of its rounds.
        runs: the number of runs on each of the two tables, for each part; by default what fits the time.
        seconds: about how long all runs may take, if ``runs`` is not given.
        confidence: the probability with which all bounds hold together.
        processes: the number of parallel processes; by default the number of cores.
        progress: called with the name of a part, its runs done and its runs in all.
        noise_of: the noise of the run with a number, for tests of the audit itself; by default the job's own.
    """
    began = time.perf_counter()
    hint = "load it with Schema.load(...)"
    check(isinstance(schema, Schema), "schema", brief(schema), "must be a Schema", hint)
    discovers = bool(discovered_in(schema))
    # fine columns in equal groups: their own counts are measurements like any other
    schema = Refining(with_lists(schema)).planned
    unit = None if max_rows is None else Unit("unit", max_rows)
    if relation is None:
        relation = (Relation.REPLACE if unit is None else Relation.ADD_REMOVE).value
    options = {"epsilon": epsilon, "delta": delta, "relation": relation, "workload": workload, "group": group}
    case = _case(schema, rows, method, options | {"settings": {} if settings is None else settings}, unit)
    if runs is not None:
        runs = between("runs", whole("runs", runs), LEAST_RUNS, MOST_RUNS, "give for example 10000")
    seconds = min(positive("seconds", real("seconds", seconds, 60), 60), MOST_SECONDS)
    confidence = share("confidence", real("confidence", confidence, 0.999), 0.999)
    processes = at_least("processes", whole("processes", cores() if processes is None else processes), 1)
    pairs = designs(schema, case.relation, rows, case.changed)
    first = Laboratory(case, pairs[0], noise_of)
    names = [name for name in first.parts() if whole_run or name != WHOLE]
    rule, hint = "must select or measure in its first round for an audit of single steps", "add --whole"
    check(len(names) > 0, "method", method, rule, hint)
    budget = first.part(names[0]).ledger.budget
    labs = {name: [replace(first, pair=pair) for pair in pairs] for name in names}
    if discovers:
        of_values = Discovery(budget, rows)
        labs |= {name: [Laboratory(of_values, pair, noise_of)] for name, pair in of_values.pairs.items()}
    total = sum(SHARES[name] for name in labs)
    findings = []
    for name, some in labs.items():
        plan = _Plan(runs, seconds * SHARES[name] / total, (1 - confidence) / len(labs), processes, progress)
        findings.append(_finding(name, some, plan))
    spent = time.perf_counter() - began
    return Audit(method, case.relation.value, epsilon, budget.delta, rows, max_rows, confidence, tuple(findings), spent)


def _case(schema: Schema, rows: int, method: str, options: dict[str, Any], unit: Unit | None) -> Case:
    """The checked case; :func:`pointillist.prepare` checks the rest."""
    least = LEAST_ROWS if unit is None else LEAST_ROWS + unit.max_rows
    between("rows", whole("rows", rows), least, MOST_ROWS, "give for example 1000")
    if get_method(method).public is Public.NEEDED:
        rule = "must be a method that needs no public table for an audit"
        raise InputError("method", method, rule, "audit mwem, pep, gem or auto, whose steps are the same")
    relation = Relation(one_of("relation", options["relation"], [one.value for one in Relation]))
    delta = 1 / rows**2 if options["delta"] is None else options["delta"]
    return Case(schema, rows, options | {"delta": delta, "relation": relation, "method": method}, unit)


def _finding(name: str, labs: list[Laboratory], plan: _Plan) -> Finding:
    """Choose the tables by simulation, make the runs, choose an event on some of them and judge it on the others."""
    began = time.perf_counter()
    plan.progress(name, 0, plan.runs or 0)
    lab = _most_telling(name, labs, plan.seconds * SEARCH)
    lab.batch(name, 0, 0, 1)  # loads what is loaded once
    each = lab.batch(name, 0, 0, TIMED).seconds / TIMED
    batches: list[Batch] = []
    done, wave = 0, plan.runs or _affordable(plan, each, plan.seconds / WAVES)
    started = time.perf_counter()
    while wave:
        goal = plan.runs or max(done + wave, _affordable(plan, each, plan.seconds))
        size = int(np.clip(BATCH_SECONDS / each, 10, max(10, wave // plan.processes)))
        for batch in lab.many(name, 2 * done, wave, size, plan.processes):
            batches.append(batch)
            plan.progress(name, sum(len(one.ratios) for one in batches) // 2, goal)
        done += wave
        spent = time.perf_counter() - started
        each = spent * plan.processes / (2 * done)
        left = plan.seconds - (time.perf_counter() - began)
        # The time decides how long it goes on, never what was found.
        wave = 0 if plan.runs or left < plan.seconds / WAVES / 2 else _affordable(plan, each, min(left, 2 * spent))
    judged = _judged if name not in (ALONE, APART) else _judged_shown
    return judged(name, lab.part(name).ledger, batches, plan.chance, time.perf_counter() - began)


def _affordable(plan: _Plan, each: float, seconds: float) -> int:
    """The number of runs on each table that fit some time, if one run takes ``each`` seconds."""
    return int(np.clip(seconds * plan.processes / each / 2, LEAST_RUNS, MOST_RUNS))


def _most_telling(name: str, labs: list[Laboratory], seconds: float) -> Laboratory:
    """The pair of tables that a run tells most about. Slow runs leave no time to compare them all: then it is the best
    of those that were tried."""
    began = time.perf_counter()
    best, most = labs[0], -1.0
    for lab in labs:
        found = lab.information(name, SIMULATED)
        if found > most * (1 + 1e-9):
            best, most = lab, found
        if time.perf_counter() - began > seconds:
            break
    return best


def _judged(name: str, ledger: Ledger, batches: list[Batch], chance: float, seconds: float) -> Finding:
    first, second = (np.concatenate([b.ratios for b in batches if b.table == table]) for table in (0, 1))
    runs = len(first)
    pilot = min(int(PILOT * runs), MOST_PILOT)
    judged = runs - pilot
    gaussian = _smallest([batch.gaussian for batch in batches])
    event = best_event(first[:pilot], second[:pilot], judged, chance, gaussian)
    hits = event.hits(first[pilot:], second[pilot:])
    bound = judge(event, hits, judged, chance, ledger, gaussian)
    spent = max(batch.spent for batch in batches)
    return Finding(
        part=name,
        runs=runs,
        judged=judged,
        false_positives=hits[0],
        true_positives=hits[1],
        threshold=event.threshold,
        balanced=event.balanced,
        accounting=ledger.accounting,
        claimed_rho=spent,
        rho=bound.rho,
        claimed_epsilon=epsilon_by_account(ledger, spent),
        epsilon=bound.epsilon,
        claimed_mu=math.sqrt(2 * spent) if gaussian is not None else None,
        mu=math.sqrt(2 * bound.rho) if gaussian is not None else None,
        claimed_delta=None,
        delta=None,
        repeated=repeated(batches),
        uncharged=max(batch.uncharged for batch in batches),
        seconds=seconds,
    )


def _judged_shown(name: str, ledger: Ledger, batches: list[Batch], chance: float, seconds: float) -> Finding:
    """What is proved by how often a value is shown that only the second table has: its ratio is then infinite. That is
    no matter of rho, and no event has to be chosen."""
    first, second = (np.concatenate([b.ratios for b in batches if b.table == table]) for table in (0, 1))
    runs, hits = len(first), (int(np.isposinf(first).sum()), int(np.isposinf(second).sum()))
    epsilon, delta = judge_shown(hits, runs, chance, ledger)
    return Finding(
        part=name,
        runs=runs,
        judged=runs,
        false_positives=hits[0],
        true_positives=hits[1],
        threshold=math.inf,
        balanced=False,
        accounting=ledger.accounting,
        claimed_rho=max(batch.spent for batch in batches),
        rho=0.0,
        claimed_epsilon=ledger.budget.epsilon,
        epsilon=epsilon,
        claimed_mu=None,
        mu=None,
        claimed_delta=max(batch.shown for batch in batches),
        delta=delta,
        repeated=repeated(batches),
        uncharged=max(batch.uncharged for batch in batches),
        seconds=seconds,
    )


def _smallest(noises: Sequence[Gaussian | None]) -> Gaussian | None:
    """The noise of all batches, if all of it is Gaussian: runs that choose what they measure by earlier noisy values
    differ in their smallest scale."""
    found = [noise for noise in noises if noise is not None]
    if len(found) < len(noises):
        return None
    changed = {noise.changed for noise in found}
    return Gaussian(min(noise.scale for noise in found), changed.pop() if len(changed) == 1 else None)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
