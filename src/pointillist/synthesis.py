"""From a table to a release: the one call that users make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from pointillist.algorithms import Method, get_method
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.public import PublicTable
from pointillist.data.schema import Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.errors import InputError, RunStopped, Shown, check, is_near, nearest
from pointillist.framework import Algorithm, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.queries.marginals import parse_workload
from pointillist.queries.workload import Grouping, Workload, show_bytes
from pointillist.release import FORMAT, Release, draw_rows, versions, workload_spec

__all__ = ["default_method", "plan", "synthesize"]

SpendingProgress = Callable[[int, int, float], None]
"""Called before the first and after each round: rounds done, rounds in all, share of the budget spent."""

RANDOM_DRAW_CELLS = 50_000
"""Under add-remove, where n is private: the largest marginal, in cells, that a random draw may take."""


def synthesize(
    table: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    schema: Schema | None = None,
    public: Any = None,
    relation: str | Relation = Relation.REPLACE,
    method: str | None = None,
    workload: str | Workload = "marginals:3",
    group: str | Grouping | None = None,
    rows: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    insecure_noise_seed: int | None = None,
    progress: SpendingProgress = lambda done, rounds, spent: None,
    announce: Callable[[str], None] = lambda text: None,
) -> Release:
    """A synthetic table under (epsilon, delta)-differential privacy.

    ``table`` is a :class:`~pointillist.Table`, or a pandas, polars or Arrow table together with ``schema``.
    ``delta`` defaults to 1/n^2 under ``replace`` and must be given under ``add-remove``. ``method`` defaults to
    :func:`default_method`. ``public`` is a public table of any of these kinds, over all or some of the columns, for
    the methods that use one; nothing is spent on it. ``settings`` are hyper-parameters of the method. ``seed`` drives
    post-processing (initial weights, sampling of rows), never privacy noise. ``insecure_noise_seed`` replaces the
    noise by seeded noise: for experiments only. ``announce`` gets a few lines about the size of the job.
    """
    given = table
    if not isinstance(table, Table):
        check(
            schema is not None,
            "schema",
            None,
            "must be given with a plain table",
            "pass schema=Schema.load(...)",
        )
        assert schema is not None
        table = Table.encode(table, schema)
    table.schema.require_reviewed("of the table")
    check(public is None or public is not given, "public", Shown("the private table"), "must be another table",
          "give a table that is public already, or leave it out")  # fmt: skip
    relation = _relation(relation)
    enough = len(table) >= 2 or relation is not Relation.REPLACE  # where n is private, it decides nothing
    check(enough, "table", Shown(f"{len(table)}"), "must have at least 2 rows", "give the whole table")
    budget = Budget(float(epsilon), _delta(delta, relation, len(table)), relation)
    settings = settings or {}
    chosen = default_method(table.domain, group, settings, public) if method is None else get_method(method)
    chosen.require_public(public is not None)
    check(0 <= seed < 2**63, "seed", seed, "must be in 0 .. 2^63 - 1", "use 0")
    good = insecure_noise_seed is None or insecure_noise_seed >= 0
    check(good, "insecure_noise_seed", insecure_noise_seed, "must not be negative", "use 0")
    check(rows is None or 1 <= rows <= MOST_ROWS, "rows", rows, f"must be in 1 .. {MOST_ROWS:,}",
          "give for example 1000")  # fmt: skip
    queries = plan(table, workload, chosen.grouping(group), relation)
    parameters = chosen.configure(settings)
    beside = None if public is None else PublicTable.encode(public, table.schema)
    algorithm = chosen.algorithm(queries, parameters, beside)
    noise = None if insecure_noise_seed is None else InsecureSeededNoise(insecure_noise_seed)
    measurable = algorithm.measurable or queries
    curator = Curator.for_schedule(TableSource(table), measurable, budget, algorithm.schedule, noise)
    _check_rounds(algorithm, curator)

    def report(done: int, rounds: int) -> None:
        progress(done, rounds, curator.ledger.spent / curator.ledger.limit)

    memory = show_bytes(algorithm.family.footprint(queries))
    announce(f"{chosen.name}: {queries.describe()}; the model and its answers take about {memory}")
    if beside is not None:
        covered = len(beside.covered(queries.marginals))
        announce(f"{beside.describe()}; it covers {covered:,} of the {len(queries.marginals):,} marginals")
    progress(0, algorithm.schedule.count(curator.planned_rho, curator.public_rows or MOST_ROWS), 0.0)
    try:
        params, log = run(algorithm, curator, seed, report)
    except RunStopped as stop:
        raise RunStopped(stop.reason, stop.log, curator.ledger, curator.noise.description) from stop
    if log.start:
        announce("start: " + ", ".join(f"{name} {value:.4g}" for name, value in log.start.items()))
    weight = log.notes[-1].get("public") if log.notes else None
    if weight is not None:
        used = "used beside them" if weight else "not used: with it they would not be foretold clearly better"
        announce(f"the public table, judged by the noisy measurements, is {used}")
    synthetic = draw_rows(algorithm.family, params, table.schema, rows or log.total, seed)
    ledger = curator.ledger
    statement = ledger.statement(curator.public_rows)
    if beside is not None:
        statement += f"\nThe public table beside it ({beside.rows:,} rows) is not protected."
    if not curator.noise.private:
        statement = f"NOT PRIVATE: made with {curator.noise.description}. With real noise it would be:\n{statement}"
    spec = {
        "format": FORMAT,
        "private": curator.noise.private,
        "method": {
            "name": chosen.name,
            "parameters": asdict(parameters),
            "schedule": repr(algorithm.schedule),
            "rule": repr(algorithm.rule),
            "start": log.start,
        },
        "public": None if beside is None else beside.to_dict(),
        "workload": workload_spec(queries),
        "measurable": algorithm.measurable and workload_spec(algorithm.measurable),
        "privacy": {
            "relation": relation.value,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "accounting": ledger.accounting,
            "rho": ledger.limit,
            "rho_spent": ledger.spent,
            "noise": curator.noise.description,
            "statement": statement,
            "ledger": ledger.to_list(),
        },
        "total": log.total,
        "total_sigma": log.total_sigma,
        "rows": len(synthetic),
        "seed": seed,
        "schema": table.schema.to_dict(),
        "versions": versions(),
    }
    return Release(synthetic, algorithm.family, params, log, spec)


def default_method(
    domain: Domain, group: str | Grouping | None, settings: Mapping[str, Any], public: Any = None
) -> Method:
    """The method of a user who names none: auto, which suits domains of any size, has no rounds to choose and takes any
    public table.

    Where ``group`` or ``settings`` ask for what it does not have (rounds, queries one by one), it is MWEM if a
    histogram of the domain fits, else GEM; with a public table it is GEMPub.
    """
    first = get_method("auto")
    other = get_method("mwem" if get_method("mwem").fits(domain) else "gem")
    if public is not None:
        other = get_method("gem_pub")
    strange = set(settings) - {field.name for field in fields(first.parameters)}
    meant = [key for key in strange if is_near(key, (field.name for field in fields(other.parameters)))]
    suits = group is None or str(group) in first.groupings
    return first if suits and not meant else other


def plan(table: Table, workload: str | Workload, grouping: Grouping, relation: Relation) -> Workload:
    """The workload, from its text or as given, in the grouping asked for."""
    if isinstance(workload, Workload):
        check(workload.domain == table.domain, "workload", Shown("another domain"),
              "must be over the table's columns", "build it from table.domain")  # fmt: skip
        return workload.regroup(grouping)
    most = len(table) if relation is Relation.REPLACE else RANDOM_DRAW_CELLS
    return parse_workload(workload, table.domain, most, grouping)


def _relation(word: str | Relation) -> Relation:
    known = [r.value for r in Relation]
    if word not in known:
        raise InputError("relation", str(word), f"must be one of {', '.join(known)}", nearest(str(word), known))
    return Relation(word)


def _delta(delta: float | None, relation: Relation, n: int) -> float:
    if delta is not None:
        return float(delta)
    check(relation is Relation.REPLACE, "delta", None, "must be given under add-remove, since 1/n^2 would tell n",
          "give a number well below 1/n, for example 1e-9")  # fmt: skip
    return 1 / n**2


def _check_rounds(algorithm: Algorithm[Any], curator: Curator) -> None:
    """Refuse more rounds than there are groups or than the budget can serve, before anything is spent."""
    schedule, groups = algorithm.schedule, curator.workload.groups
    rows = MOST_ROWS if curator.public_rows is None else curator.public_rows
    rounds = schedule.count(curator.planned_rho, rows)
    picks = 0
    for t in range(0 if algorithm.repeat else rounds):
        spend = schedule.spend(t, curator.planned_rho, rows)
        if spend is None or spend.select_rho is None:
            continue
        picks += spend.picks
        check(picks <= groups, "rounds", rounds, f"must pick at most the workload's {groups:,} groups, each once",
              "use fewer rounds or picks, or group by query")  # fmt: skip
    for t in (0, rounds - 1):  # a schedule has at most two parts, each with even rounds
        spend = schedule.spend(t, curator.planned_rho, rows)
        if spend is not None and spend.measure_rho > 0:
            curator.require_useful(spend.measure_rho, rounds)
