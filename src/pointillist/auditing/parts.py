"""What is audited: one measurement, one selection, and the whole loop, each with the whole budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.auditing.witness import Witness
from pointillist.data.neighbours import Relation, Unit
from pointillist.data.schema import Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.framework import Algorithm, Draw, Log, Measure, Select, Step, Update, Updated, most_rounds, run
from pointillist.job import Job, prepare
from pointillist.privacy.account import ledger_for
from pointillist.privacy.curator import Ask
from pointillist.privacy.ledger import Ledger
from pointillist.privacy.mechanisms import Noise
from pointillist.queries.base import Queries
from pointillist.strategies import MeasureAll

__all__ = ["MEASUREMENT", "SELECTION", "WHOLE", "Case", "Part", "parts_of"]

MEASUREMENT, SELECTION, WHOLE = "one measurement", "one selection", "the whole run"

MOST_LOOKED_AT = 1_000
"""Among this number of candidates, the one that is measured alone is chosen."""


@dataclass(frozen=True)
class Case:
    """The run whose promise is audited: the schema, and the options of :func:`pointillist.prepare`.

    Attributes:
        schema: the columns.
        rows: the number of rows of the made-up tables.
        options: the other options of :func:`pointillist.prepare`, by name.
        unit: what is protected as a whole, if it is not a row.
    """

    schema: Schema
    rows: int
    options: dict[str, Any]
    unit: Unit | None = None

    def source(self, table: Table) -> TableSource:
        """The rows of a made-up table, which has one unit of several rows."""
        return TableSource(table, self.unit)

    def job(self, table: Table) -> Job:
        """The checked job for a made-up table."""
        return prepare(self.source(table), **self.options)

    def parts(self, table: Table) -> dict[str, Part]:
        """The parts that can be audited, by name."""
        return parts_of(self, table)

    @property
    def changed(self) -> int:
        """The number of rows in which two neighbours differ."""
        return 1 if self.unit is None else self.unit.max_rows

    @property
    def relation(self) -> Relation:
        """Which tables are neighbours."""
        return Relation(self.options["relation"])


@dataclass(frozen=True)
class Part:
    """Something that asks a door for private values, and the account that it is charged to.

    Attributes:
        name: what it is called in the report.
        ledger: an unspent ledger; every run gets a copy.
        noise: the noise of the job; every run gets a copy, as if the job were started again.
        ask: asks the door.
    """

    name: str
    ledger: Ledger
    noise: Noise
    ask: Callable[[Witness], object]


def parts_of(case: Case, table: Table) -> dict[str, Part]:
    """The parts of a case that can be audited, by name. What they ask depends on public facts only.

    Args:
        case: the run.
        table: a made-up table.
    """
    job = case.job(table)
    noise, ledger, algorithm = job.curator.noise, job.curator.ledger, job.algorithm
    params, _ = algorithm.begin(np.random.default_rng([job.seed, 0]))
    first = algorithm.strategy.step(0, job.facts, Log(job.facts), algorithm.family, params)
    found = []
    if any(phase.noise is not None for phase in job.phases) and (queries := _measured(first, job)) is not None:
        own = ledger_for(ledger.budget, job.curator.public_rows, MeasureAll((queries,)).outline)
        found.append(Part(MEASUREMENT, own, noise, lambda door: door.measure([Ask(queries, door.open().rho)])))
    if isinstance(first, Select | Draw):
        candidates, rule = first.candidates, first.rule
        estimate = algorithm.family.answers(params, candidates.queries)

        def select(door: Witness) -> object:
            return door.select(candidates, estimate, rule, door.open().rho, 1, None)

        found.append(Part(SELECTION, Ledger(ledger.budget), noise, select))
    quick = replace(algorithm, update=_UntilLast(algorithm.update, algorithm))
    found.append(Part(WHOLE, ledger, noise, lambda door: run(quick, door, job.seed)))
    return {part.name: part for part in found}


def _measured(step: Step | None, job: Job) -> Queries | None:
    """Queries that the first step may measure: the fewest among those that one person changes most."""
    if isinstance(step, Select):
        some = [step.candidates[n] for n in range(min(len(step.candidates), MOST_LOOKED_AT))]
    elif isinstance(step, Measure):
        some = [ask.queries for ask in step.asked[:MOST_LOOKED_AT]]
    else:
        return None
    relation = job.facts.relation
    return min(some, key=lambda queries: (-queries.sensitivity(relation).l2_squared, queries.size))


@dataclass(frozen=True)
class _UntilLast:
    """An update that does nothing after the last round: no later step asks the data, so no promise depends on it."""

    inner: Update[Any]
    algorithm: Algorithm[Any]

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        if len(log.rounds) >= most_rounds(self.algorithm.strategy, log.facts):
            return Updated(params, memory, {})
        return self.inner(rng, params, memory, log)
