"""A job: a checked plan of a run. Preparing it spends nothing; running it makes a release."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.algorithms import Method, Task, get_method
from pointillist.checks import between, check, flag, one_of, present, real, share, whole
from pointillist.data.columns import Discovered
from pointillist.data.domain import Domain
from pointillist.data.messages import fragment
from pointillist.data.neighbours import Relation, Unit
from pointillist.data.opening import MOST_DIFFERENT, OpenRows, discovered_in, numbered
from pointillist.data.paid import Paid
from pointillist.data.parquet import memory_here
from pointillist.data.public import PublicTable
from pointillist.data.scanning import scanned
from pointillist.data.schema import Schema
from pointillist.data.sources import Source, TableSource
from pointillist.data.spark import SparkSource, is_spark
from pointillist.data.streams import stream_of
from pointillist.data.table import ON_BAD_VALUE, Table
from pointillist.data.units import bounded_table
from pointillist.errors import PointillistError, RunStopped, Shown, brief, in_short, is_near
from pointillist.families.relaxed import silence_compiler
from pointillist.framework import Algorithm, Log, Round, run
from pointillist.memory import bytes_of, estimate, of_texts
from pointillist.planning import METRICS, Expected, Peak, Plan, Situation, Wanted, expected, laws, make_plan
from pointillist.privacy.account import ledger_for, require_effect
from pointillist.privacy.budget import Budget
from pointillist.privacy.composition import together_with
from pointillist.privacy.curator import MOST_ROWS, Curator, Door, OpenDoor, planned
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Ledger
from pointillist.queries.base import is_direct
from pointillist.queries.candidates import Grouping
from pointillist.queries.files import is_file, load_workload
from pointillist.queries.kway import sized
from pointillist.queries.marginal import Marginal
from pointillist.queries.suited import Limits, suited_workload
from pointillist.queries.texts import parse_workload
from pointillist.queries.workload import Workload, show_bytes
from pointillist.refining import Stage, stage_alone, stage_of
from pointillist.release import (
    Description,
    Listed,
    MethodUsed,
    Privacy,
    PublicUsed,
    Refined,
    Release,
    Rows,
    WithSchema,
    drawn_rows,
    read,
    versions,
)
from pointillist.reporting import phase as report_phase
from pointillist.reporting import step as report_step
from pointillist.showing import watched

__all__ = [
    "Job",
    "Reading",
    "SpendingProgress",
    "default_method",
    "delta_or_default",
    "planned_workload",
    "prepare",
    "relation_of",
    "source_of",
    "unit_of",
    "workload_of",
]

SpendingProgress = Callable[[int, int, float], None]
"""Called before the first round, when a round has measured, and after it: rounds done, rounds in all, share of the
budget spent."""

MOST_DEFAULT_ROWS = 10_000_000
"""Under add-remove, where the number of rows is a noisy count: no more rows are drawn unless they are asked for."""

ORDERS = (1, 2, 3)
"""The orders of marginals that a plan compares."""

MOST_COMPARED = 5_000
"""Workloads of more marginals are not compared with others, nor methods on them: it would take long."""

RANDOM_DRAW_CELLS = 50_000
"""Under add-remove, where n is private: the largest marginal, in cells, that a random draw may take."""


def prepare(
    table: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    schema: Schema | None = None,
    public: Any = None,
    relation: str | Relation | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    method: str | Method | None = None,
    workload: str | Workload | None = None,
    target: str | None = None,
    group: str | Grouping | None = None,
    rows: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    insecure_noise_seed: int | None = None,
    zcdp: bool = False,
    on_bad_value: str = "error",
    memory: int | str | None = None,
) -> Job:
    """Check everything and plan a run, without spending anything.

    Args:
        table: the private table: a :class:`~pointillist.Table`, any :class:`~pointillist.data.sources.Source` of
            batches of rows, or, together with ``schema``, a pandas, polars or Arrow table or what is read in pieces
            (:func:`~pointillist.data.streams.stream_of`): a path, a pattern, an Arrow dataset or stream, a LazyFrame.
        epsilon: the privacy loss, above 0.
        delta: the probability that the loss is larger; by default 1/n^2 under ``replace``. It must be given under
            ``add-remove``.
        schema: the columns of a plain table.
        public: a public table of any of these kinds, over all or some of the columns, for the methods that use one.
            Nothing is spent on it.
        relation: ``"replace"`` or ``"add-remove"``: which tables are neighbours. By default ``"replace"``, and
            ``"add-remove"`` with a unit.
        unit: the column of a plain table that says to whom a row belongs. All rows of one such unit are then protected
            together. It must not be a column of the schema; it is read to bound contributions, and never published.
        max_rows: the rows of each unit that are used, at most; they are chosen at random.
        method: the name of a method, or a :class:`~pointillist.Method` of your own; by default see
            :func:`default_method`.
        workload: the queries to keep: a :class:`~pointillist.Workload`, a text such as ``"marginals:3"``, or the name
            of a TOML file. By default as many marginals as the budget, the rows and the memory carry
            (:func:`~pointillist.queries.suited.suited_workload`): all three-way marginals of up to 20 columns.
        target: a column that matters most, for the default workload of wide tables.
        group: ``"query"`` or ``"marginal"``: what is selected and measured together.
        rows: the number of synthetic rows; by default n, or its noisy count.
        seed: drives post-processing (initial weights, sampling of rows), never privacy noise.
        settings: hyper-parameters of the method, by name.
        insecure_noise_seed: replaces the noise by seeded noise: for experiments only, the release is NOT PRIVATE.
        zcdp: account in zCDP even where the tighter account for Gaussian noise would hold.
        on_bad_value: what is done with values that the schema does not allow: ``"error"`` refuses the table,
            ``"missing"`` takes them as missing, in columns with ``missing = true``.
        memory: the bytes, as a number or as a text such as ``"4GB"``, that the rows and counts of a table in pieces may
            take; by default half of the memory of this machine.
    """
    silence_compiler()
    if insecure_noise_seed is not None:
        name = "insecure_noise_seed"
        insecure_noise_seed = between(name, whole(name, insecure_noise_seed), 0, 2**63 - 1, "use 0")
    reading = Reading(on_bad_value, memory, insecure_noise_seed)
    source = source_of(table, schema, unit_of(unit, max_rows), reading)
    source.schema.require_reviewed("of the table")
    rule, hint = "must be another table", "give a table that is public already, or leave it out"
    check(public is None or public is not table, "public", Shown("the private table"), rule, hint)
    bound = getattr(source, "unit", None)
    relation = relation_of(relation, bound)
    rows_known = source.rows if relation is Relation.REPLACE else None  # where n is private, it decides nothing
    enough = rows_known is None or rows_known >= 2
    check(enough, "table", Shown(f"{rows_known}"), "must have at least 2 rows", "give the whole table")
    budget = Budget(real("epsilon", epsilon, 1.0), delta_or_default(delta, rows_known), relation, bound)
    _require_same_protection(source.schema.paid, budget, insecure_noise_seed is None)
    seed = between("seed", whole("seed", seed), 0, 2**63 - 1, "use 0")
    if rows is not None:
        rows = between("rows", whole("rows", rows), 1, MOST_ROWS, "give for example 1000")
    zcdp, settings = flag("zcdp", zcdp), _named(settings)
    stage = stage_of(source, budget, rows_known, public)
    planned_for = source.schema if stage is None else stage.planned
    chosen = _method(method, planned_for.domain, group, settings, public)
    chosen.require_public(public is not None)
    grouping, configured = chosen.grouping(group), chosen.configure(settings)
    most_cells = RANDOM_DRAW_CELLS if rows_known is None else rows_known
    if workload is None:
        queries, reason = suited_workload(planned_for.domain, _limits(budget, rows_known, reading), target)
    else:
        rule, hint = "must not be given with a workload", "write for example marginals:3@COLUMN as the workload"
        check(target is None, "target", brief(target), rule, hint)
        queries, reason = planned_workload(workload, source.schema, most_cells, stage), None
    _require_countable(source, queries)
    task = Task(queries, grouping, _public_table(public, planned_for), planned_for.places)
    algorithm = chosen.algorithm(task, configured)
    outline = algorithm.strategy.outline if stage is None else stage.before(algorithm.strategy.outline)
    shown = 0.0 if stage is None else stage.shown
    ledger = Ledger(budget, None, shown) if zcdp else ledger_for(budget, rows_known, outline, shown)
    noise = None if insecure_noise_seed is None else InsecureSeededNoise(insecure_noise_seed)
    options: dict[str, Any] = {"rows": rows, "seed": seed, "insecure_noise_seed": insecure_noise_seed, "zcdp": zcdp}
    options |= {"on_bad_value": on_bad_value} if on_bad_value != "error" else {}
    job = Job(
        chosen,
        configured,
        task,
        algorithm,
        Curator(source, ledger, noise),
        source.schema,
        rows,
        seed,
        options,
        stage,
        reason=reason,
    )
    job.check_plan()
    if stage is not None:
        _check_others(job, stage)
    return job


def _limits(budget: Budget, rows: int | None, reading: Reading) -> Limits:
    """What a run can carry, by public facts. A private number of rows limits nothing: the run looks at a noisy one."""
    rho = Ledger(budget).limit / budget.rows_per_unit**2
    return Limits(reading.most_bytes, math.inf if rows is None else rho * rows**2)


def _require_countable(source: Source, workload: Workload) -> None:
    """Refuse queries that are counted row by row, where rows are counted in partitions that they do not leave."""
    wide = sum(map(is_direct, workload.queries)) if hasattr(source, "counts") else 0
    rule, hint = "must be over few columns each for rows of Spark", "use narrower queries, or give the rows as files"
    check(wide == 0, "workload", Shown(f"{wide:,} wide groups"), rule, hint)


def _check_others(job: Job, stage: Stage) -> None:
    """Refuse what would not fit if the stage left other columns than those that the job is planned for: fewer groups,
    or fewer or more values. They are only known later."""
    for way in stage.others:
        replace(job.onto(way.schema, stage.public), known=way.after(job.facts_before)).check_plan()


@dataclass(frozen=True)
class Job:
    """A checked plan: what will be asked, with which budget, in how much memory. Running it spends the budget.

    Attributes:
        method: the method.
        settings: its settings.
        task: the workload, the grouping and the public table.
        algorithm: the parts of the method.
        curator: the private table behind its ledger.
        schema: the columns.
        rows: the number of synthetic rows; None for n, or its noisy count.
        seed: the seed of the post-processing.
        options: further arguments of :func:`prepare` that are needed to prepare the same job again.
        stage: the stage before the run, if values are discovered or some columns are fine. The job is then planned for
            the largest number of values and groups; :meth:`discovered` and :meth:`refined` give the one that is run.
        discovered_from: the schema as it was given and the values that were discovered, if there were any.
        refined_from: the schema with all values and what the stage measured, for a refined job.
        known: what was known before the stage, for a job that goes on after it: its ledger has been charged since.
        reason: why the workload was chosen, if nobody has named one.
    """

    method: Method
    settings: Any
    task: Task
    algorithm: Algorithm[Any]
    curator: Curator
    schema: Schema
    rows: int | None
    seed: int
    options: dict[str, Any]
    stage: Stage | None = None
    discovered_from: Listed | None = None
    refined_from: Refined | None = None
    known: Facts | None = None
    reason: str | None = None
    _started: list[bool] = field(default_factory=list, repr=False)

    @cached_property
    def facts(self) -> Facts:
        """What is known before anything is spent. A private number of rows is taken to be large."""
        if self.known is not None:
            return self.known
        return self.facts_before if self.stage is None else self.stage.after(self.facts_before)

    @cached_property
    def facts_before(self) -> Facts:
        """What is known before anything is spent, for the stage and the run together."""
        rows = self.curator.public_rows
        return planned(self.curator.ledger, MOST_ROWS if rows is None else rows, private=rows is None)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the run: rounds, picks and noise, as far as public facts fix them."""
        return self.algorithm.strategy.outline(self.facts)

    @property
    def rounds(self) -> int:
        """The number of rounds, at most."""
        return sum(phase.rounds for phase in self.phases)

    def plan(
        self,
        rows: int | None = None,
        *,
        target_error: float | None = None,
        target_metric: str = "max",
        public: Any = None,
    ) -> Plan:
        """What the run would measure, and what error, time and memory to expect. It reads no data and spends nothing.

        Args:
            rows: the number of rows that it is for; by default that of the table where it is public. Under
                ``add-remove`` it must be stated: a public guess, never the true number.
            target_error: an error to be reached; the plan then has the smallest epsilon for it.
            target_metric: which error that is: ``max``, ``rmse`` or ``tvd``.
            public: a public table with all columns of the workload, which tells how skewed the columns are; by default
                that of the job. The forecast is for a run without it.
        """
        target, metric = None, one_of("target_metric", target_metric, METRICS)
        if target_error is not None:
            target = metric, share("target_error", real("target_error", target_error, 0.01), 0.01)
        shares = self._shares(public)
        found = self.situation(rows)
        situation = replace(found, wanted=Wanted(found.workload, shares))
        others = [self._with_method(name, situation) for name in laws().errors if name != self.method.name]
        orders = [
            (text, one) for k in ORDERS if (one := self._with_workload(text := f"marginals:{k}", situation)) is not None
        ]
        return make_plan(situation, self._peak_for(situation.rows), [one for one in others if one], orders, target)

    def expected(self, rows: int | None = None) -> Expected:
        """The forecast of errors, time and memory alone.

        Args:
            rows: as in :meth:`plan`; where the number of rows is private and none is stated, only the memory is
                known that does not depend on it.
        """
        if rows is None and self.curator.public_rows is None:
            peak = self._peak_for(None)
            return Expected({}, None, peak.about, texts=peak.texts)
        situation = self.situation(rows)
        return expected(situation, self._peak_for(situation.rows))

    def situation(self, rows: int | None = None) -> Situation:
        """What is known of the run, for a number of rows that is public or stated.

        Args:
            rows: as in :meth:`plan`.
        """
        known = self.curator.public_rows
        rule, hint = "must be stated where the number of rows is private", "give a public guess, for example 50000"
        count = present("rows", known if rows is None else rows, rule, hint)
        count = between("rows", whole("rows", count), 2, MOST_ROWS, "give for example 50000")
        return Situation(
            self.method.name,
            Wanted(self.task.workload),
            self.algorithm.strategy.outline,
            self.stage,
            self.curator.ledger.budget,
            count,
            known is None,
            bool(self.options.get("zcdp")),
        )

    def _with_method(self, name: str, situation: Situation) -> Situation | None:
        """The same with another method and its default settings; None if it does not suit."""
        if len(self.task.workload.queries) > MOST_COMPARED:
            return None
        try:
            algorithm = get_method(name).algorithm(replace(self.task, public=None))
            return replace(situation, method=name, outline=algorithm.strategy.outline)
        except PointillistError:
            return None

    def _with_workload(self, text: str, situation: Situation) -> Situation | None:
        """The same with another workload; None if it does not suit, or is too large to be worth a look."""
        order = int(text.rpartition(":")[2])
        columns = len(self.task.domain)
        if order > columns or math.comb(columns, order) > MOST_COMPARED or self.task.workload.weights:
            return None
        try:
            queries = planned_workload(text, self.schema, situation.rows, self.stage)
            task = replace(self.task, workload=queries, public=None)
            outline = self.method.algorithm(task, self.settings).strategy.outline
            return replace(situation, wanted=Wanted(task.workload, situation.shares), outline=outline)
        except PointillistError:
            return None

    def _shares(self, public: Any) -> tuple[np.ndarray, ...] | None:
        """The one-way marginals of a public table; None if there is none, or none with all columns that matter."""
        table = self.task.public if public is None else _public_table(public, self._planned_for)
        if table is None:
            return None
        missing = [i for i in {i for scope in self.task.workload.scopes for i in scope} if i not in table.present]
        if public is None and missing:
            return None
        names = Shown(f"no {[self.task.domain.names[i] for i in missing[:3]]}")
        hint = "leave it out, or choose a workload of the columns that it has"
        check(not missing, "public", names, "must have all columns of the workload", hint)
        counts = dict(zip(table.present, table.count([(i,) for i in table.present]), strict=True))
        sizes = self.task.domain.sizes
        return tuple(counts[i] / table.rows if i in counts else np.full(d, 1 / d) for i, d in enumerate(sizes))

    @property
    def _planned_for(self) -> Schema:
        """The schema that the job is planned for."""
        return self.schema if self.stage is None else self.stage.planned

    @property
    def memory(self) -> int:
        """About how many bytes the model and its answers take."""
        return self.algorithm.family.footprint(self.task.workload.queries)

    @cached_property
    def peak_memory(self) -> int:
        """About how many bytes the whole process takes at its peak. Where the number of rows is private, nothing is
        added for the table, nor for rows that are to be as many. Nor is anything for different texts of columns whose
        values are discovered, whose number is private: :meth:`expected` says what they take at most."""
        return self._peak_for(self.curator.public_rows).about

    def _peak_for(self, known: int | None) -> Peak:
        """The same for a number of rows, None if nothing is known about it, and what different texts take at most: if
        every row has another one."""
        family, queries = self.algorithm.family, self.task.workload
        needed = getattr(family, "working_set", family.footprint)(queries.queries)
        columns, pieces = len(self.schema.columns), self.curator.memory
        held = None if pieces is None else pieces.held
        about = estimate(needed, queries.size, columns, known, self.rows or known, held)
        different = MOST_DIFFERENT if known is None else min(known, MOST_DIFFERENT)
        return Peak(about, of_texts(len(discovered_in(self.schema)), different))

    def check_plan(self) -> None:
        """Refuse more rounds than there are candidates or than the budget can serve, before anything is spent."""
        picked, phases, rounds = 0, self.phases, self.rounds
        require_effect(self.curator.ledger.budget, self.facts, phases)
        rows = MOST_ROWS if self.curator.public_rows is None else self.curator.public_rows
        for phase in phases:
            if phase.candidates is not None:
                picked += phase.rounds * phase.picks
                rule = f"must pick at most the workload's {phase.candidates:,} groups, each once"
                hint = "use fewer rounds or picks, or group by query"
                check(picked <= phase.candidates, "rounds", rounds, rule, hint)
            if phase.noise_in_rows is not None:
                most = phase.noise_in_rows[1]
                rule = f"must leave each measurement a noise below {rows:,} rows (it would be {most:,.0f})"
                if rounds > 1:
                    check(most <= rows, "rounds", rounds, rule, "use fewer rounds or a larger epsilon")
                epsilon = self.curator.ledger.budget.epsilon
                check(most <= rows, "epsilon", epsilon, rule, "use a larger epsilon or a smaller workload")

        json.dumps(self.to_dict())  # what cannot be saved must show now

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to prepare the same job again, except the tables."""
        budget, public = self.curator.ledger.budget, self.task.public
        unit = {} if budget.unit is None else {"unit": asdict(budget.unit)}
        return (
            self.options
            | unit
            | {
                "method": self.method.name,
                "settings": asdict(self.settings),
                "group": self.task.grouping.value,
                "workload": self.task.workload.to_dict(),
                "family": self.algorithm.family.to_dict(),
                "schema": self.schema.to_dict(),
                "relation": budget.relation.value,
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "rho": self.curator.ledger.limit,
                "n": self.curator.public_rows,
                "public": None if public is None else public.to_dict(),
            }
        )

    @property
    def disk(self) -> int:
        """About how many bytes a release takes on disk, at most."""
        rows = self.rows or self.curator.public_rows or MOST_DEFAULT_ROWS
        answers = 16 * self.task.workload.size
        return 16 * len(self.schema.columns) * rows + answers + min(self.memory, 1 << 28) + (1 << 20)

    def describe(self) -> list[str]:
        """The job in a few lines."""
        queries, public = self.task.workload, self.task.public
        memory = f"peak memory about {show_bytes(self.peak_memory)}"
        if self.curator.public_rows is None:
            pieces = self.curator.memory
            most = "what a table of its size takes" if pieces is None else f"up to {show_bytes(pieces.most)} for rows"
            memory += f", and {most}"
        if self.curator.public_rows is not None or self.curator.memory is not None:
            memory += self._peak_for(self.curator.public_rows).more
        lines = [] if self.reason is None else [f"workload: {self.reason}"]
        lines.append(f"{self.method.name}: {queries.describe()}; {memory}")
        if public is not None:
            covered, members = len(public.covered(queries.scopes)), len(queries.queries)
            lines.append(f"{public.describe()}; it covers {covered:,} of the {members:,} marginals")
        return lines

    def run(
        self,
        progress: bool | SpendingProgress | None = None,
        announce: Callable[[str], None] = lambda text: None,
    ) -> Release:
        """Spend the budget and make the release, in memory. A job runs once.

        Args:
            progress: True shows what the run is doing: as bars in a terminal, as a table in a notebook, as log lines
                elsewhere. None does so in notebooks, and only logs elsewhere; False does neither. Or a function, which
                is called before the first and after each round with the rounds done, the rounds in all and the share of
                the budget that is spent.
            announce: gets a few lines about the size of the job and about what was found.
        """
        with watched(progress) as call:
            job = self.discovered(self.curator, announce)
            job = job.refined(job.curator, announce)
            return job.release(*job.execute(job.curator, call, announce))

    def discovered(self, door: OpenDoor, announce: Callable[[str], None] = lambda text: None) -> Job:
        """The job that goes on: this one, or one with the values that were discovered, which costs a share of the
        budget.

        Args:
            door: a door to this job's curator.
            announce: gets a line about what is done, and one about what was found.
        """
        if self.stage is None or self.stage.listing is None:
            return self
        listing = self.stage.listing
        self._begin("discovering values")
        announce(listing.describe(self.facts_before))
        facts = door.open()
        with self._stopping(Log(facts)):
            found = door.discover(listing.asked(facts))
            schema = listing.listed(found, facts.total)
            announce(listing.found(schema))
            stage = Stage.of([schema], None, self.stage.public)
            after = self.onto(schema if stage is None else stage.planned, self.stage.public)
        curator = self.curator.in_lists(schema)
        return replace(after, curator=curator, schema=schema, stage=stage, discovered_from=Listed(self.schema, found))

    def refined(self, door: Door, announce: Callable[[str], None] = lambda text: None) -> Job:
        """The job that is run: this one, or one with the fine columns merged, which costs a share of the budget.

        Args:
            door: a door to this job's curator.
            announce: gets a line about what is done.
        """
        if self.stage is None or self.stage.refining is None:
            return self
        refining = self.stage.refining
        self._begin("refining columns")
        announce(refining.describe())
        facts = door.open()
        log = Log(facts)
        with self._stopping(log):
            measured = door.measure(refining.asked(facts))
            log.rounds.append(Round(measurements=measured))
            schema = refining.merged(measured, facts)
            curator = self.curator.in_groups(schema)
            after = self.onto(schema, self.stage.public)
        return replace(after, curator=curator, schema=schema, stage=None, refined_from=Refined(self.schema, log))

    def _begin(self, name: str) -> None:
        """Begin a part of the stage. A job runs once."""
        if self._started:
            raise PointillistError("this job was run already, and its budget is spent; prepare a new one")
        report_phase(name)
        self._started.append(True)

    def onto(self, schema: Schema, public: Any) -> Job:
        """The same job for other columns of the same names.

        Args:
            schema: the columns that the rounds are to work with.
            public: the public table, as it was given.
        """
        queries = Workload.from_dict(self.task.workload.to_dict(), schema.domain)
        task = Task(queries, self.task.grouping, _public_table(public, schema), schema.places)
        algorithm = self.method.algorithm(task, self.settings)
        return replace(self, task=task, algorithm=algorithm, known=self.facts, _started=[])

    @contextmanager
    def _stopping(self, log: Log) -> Iterator[None]:
        """Whatever stops what is done inside, what was spent must be told."""
        try:
            yield
        except PointillistError as error:
            raise self.stopped(str(error), log) from error
        except (Exception, KeyboardInterrupt) as error:
            raise self.stopped(f"the run was stopped by {in_short(error)}", log) from error

    def execute(self, door: Door, progress: SpendingProgress, announce: Callable[[str], None]) -> tuple[Any, Log]:
        """Run the loop against a door to this job's curator: the model and the transcript."""
        if self._started:
            raise PointillistError("this job was run already, and its budget is spent; prepare a new one")
        for line in self.describe():
            announce(line)
        progress(0, self.rounds, 0.0)
        self._started.append(True)
        try:
            params, log = run(
                self.algorithm,
                door,
                self.seed,
                lambda measured, done, rounds: self._report(measured, done, rounds, progress),
            )
        except RunStopped as stop:
            raise self.stopped(stop.reason, stop.log) from stop
        if (pieces := self.curator.memory) is not None and pieces.readings:
            announce(f"the table was read {'once' if pieces.readings == 1 else f'{pieces.readings} times'}")
        _announce_findings(log, announce)
        return params, log

    def _report(self, measured: int, done: int, rounds: int, progress: SpendingProgress) -> None:
        spent = self.curator.ledger.spent / self.curator.ledger.limit
        report_step("measuring", measured, rounds, spent=spent)
        progress(done, rounds, spent)

    def release(self, params: Any, log: Log) -> Release:
        """The release of a model: draws the rows."""
        report_phase("drawing")
        default = log.total if self.curator.public_rows is not None else min(log.total, MOST_DEFAULT_ROWS)
        try:
            drawn = drawn_rows(
                self.algorithm.family,
                params,
                self.schema,
                self.rows or default,
                self.seed,
                wanted=self.task.workload.queries,
            )
        except (Exception, KeyboardInterrupt) as error:  # whatever it is, what was spent must be told
            raise self.stopped(f"drawing rows was stopped by {in_short(error)}", log) from error
        about = self._description(log, drawn)
        return Release(drawn.table, self.algorithm.family, params, log, about, self.refined_from)

    def stopped(self, reason: str, log: Log | None) -> RunStopped:
        """The error of a run that stopped after budget was spent."""
        noise, names = self.curator.noise.description, self.schema.domain.names
        before = None if self.refined_from is None else self.refined_from.log
        found = None if self.discovered_from is None else self.discovered_from.found
        return RunStopped(reason, log, self.curator.ledger, noise, names, before, found)

    def _description(self, log: Log, drawn: Rows) -> Description:
        """What the release says about itself."""
        public, given = self.task.public, self.discovered_from or self.refined_from
        return Description(
            method=MethodUsed(
                name=self.method.name,
                settings=asdict(self.settings),
                grouping=self.task.grouping.value,
                strategy=repr(self.algorithm.strategy),
                start=log.start,
            ),
            workload=self.task.workload.to_dict(),
            family=self.algorithm.family.to_dict(),
            privacy=self._privacy(log),
            public=None if public is None else read(PublicUsed, public.to_dict(), "public"),
            total=log.total,
            total_sigma=log.facts.total_sigma,
            rho=log.facts.rho,
            rows=len(drawn.table),
            seed=self.seed,
            schema=self.schema.to_dict(),
            versions=versions(),
            given=None if given is None else given.schema.to_dict(),
            discovered=None if self.discovered_from is None else self.discovered_from.found,
            rules=drawn.rules,
            matched=drawn.matched,
        )

    def _privacy(self, log: Log) -> Privacy:
        ledger, noise, public = self.curator.ledger, self.curator.noise, self.task.public
        statement = ledger.statement(self.curator.public_rows, log.total if log.facts.total_sigma else None)
        if public is not None:
            statement += f"\nThe public table that was used with it ({public.rows:,} rows) is not protected."
        paid, both = self.schema.paid, None
        if paid is not None:
            both = WithSchema(paid.epsilon, paid.delta, *together_with(paid, ledger))
            statement += "\n" + ledger.with_schema(paid.epsilon, paid.delta, (both.epsilon, both.delta))
        if not noise.private:
            statement = f"NOT PRIVATE: made with {noise.description}. With real noise it would be:\n{statement}"
        return Privacy(
            private=noise.private,
            relation=ledger.budget.relation.value,
            epsilon=ledger.budget.epsilon,
            delta=ledger.budget.delta,
            accounting=ledger.accounting,
            rho=ledger.limit,
            rho_spent=ledger.spent,
            noise=noise.description,
            statement=statement,
            ledger=ledger.entries,
            unit=ledger.budget.unit,
            with_schema=both,
            delta_shown=ledger.delta_shown or None,
        )


def _require_same_protection(paid: Paid | None, budget: Budget, private: bool) -> None:
    """Refuse a run whose cost cannot be added to that of its schema."""
    if paid is None:
        return
    rule = f"must be that of the schema, which was paid for under {paid.relation.value}"
    hint = "use that relation, or make the schema again"
    check(budget.relation is paid.relation, "relation", budget.relation.value, rule, hint)
    names = [None if one is None else one.name for one in (budget.unit, paid.unit)]
    wanted = "rows" if names[1] is None else f"the unit {fragment(names[1])}"
    shown = Shown("rows" if names[0] is None else f"the unit {fragment(names[0])}")
    rule, hint = f"must be that of the schema, which was paid for by {wanted}", "use that, or make the schema again"
    check(names[0] == names[1], "unit", shown, rule, hint)
    rule, hint = "must be private, since the run is", "make it again without insecure_noise_seed"
    check(paid.private or not private, "schema", Shown("one made with seeded noise"), rule, hint)


def default_method(
    domain: Domain, group: str | Grouping | None = None, settings: Mapping[str, Any] | None = None, public: Any = None
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
    unknown = set(settings or ()) - {one.name for one in fields(first.settings)}
    meant = [key for key in unknown if is_near(key, (one.name for one in fields(other.settings)))]
    suits = group is None or str(group) in first.groupings
    return first if suits and not meant else other


def workload_of(workload: str | Workload, schema: Schema, max_cells: int | None = None) -> Workload:
    """The workload, as given, from its text or from its file.

    Args:
        workload: a workload, a text such as ``marginals:3``, or the name of a TOML file.
        schema: the columns.
        max_cells: a random draw takes marginals of at most this number of cells.
    """
    if isinstance(workload, str):
        return (load_workload if is_file(workload) else parse_workload)(workload, schema, max_cells)
    rule, hint = "must be a text or a Workload", "write for example marginals:3, or use Workload.of"
    check(isinstance(workload, Workload), "workload", brief(workload), rule, hint)
    rule = "must be over the table's columns"
    check(workload.domain == schema.domain, "workload", Shown("another domain"), rule, "build it from table.domain")
    return workload


def planned_workload(
    workload: str | Workload, given: Schema, max_cells: int | None = None, stage: Stage | None = None
) -> Workload:
    """The workload over the domain that a run is planned for: columns without fixed codes have as many as they may get.

    Args:
        workload: a workload over the given columns, a text such as ``marginals:3``, or the name of a TOML file.
        given: the columns.
        max_cells: a random draw takes marginals of at most this number of cells.
        stage: the stage before the run; by default that of the schema alone.
    """
    stage = stage_alone(given) if stage is None else stage
    if stage is None:
        return sized(workload_of(workload, given, max_cells))
    as_text = isinstance(workload, str)
    asked = workload_of(workload, _named_columns(given, stage.planned) if as_text else given, max_cells)
    pairs = enumerate(zip(given.columns, stage.planned.columns, strict=True))
    loose = {i for i, (one, made) in pairs if one is not made}
    fixed = {i for queries in asked.queries if not isinstance(queries, Marginal) for i in queries.scope}
    names = Shown(f"other queries of {[given.domain.names[i] for i in sorted(fixed & loose)][:3]}")
    rule = "must be of marginals where columns have no fixed bins or values"
    hint = "give these columns edges or values, and merge = false"
    check(not fixed & loose, "workload", names, rule, hint)
    domain = stage.planned.domain
    return sized(asked if asked.domain == domain else Workload.from_dict(asked.to_dict(), domain))


def _named_columns(given: Schema, planned: Schema) -> Schema:
    """The columns that the text of a workload is about: as planned, but values that are not known have no names."""
    pairs = zip(given.columns, planned.columns, strict=True)
    columns = (replace(one, most=made.size - 2) if isinstance(one, Discovered) else made for one, made in pairs)
    return replace(planned, columns=tuple(columns))


def unit_of(name: str | None, max_rows: int | None) -> Unit | None:
    """The unit that is asked for.

    Args:
        name: the column of the unit; None for rows.
        max_rows: the rows of each unit, at most.
    """
    rule, hint = "must be given together with max_rows", "give both, for example unit person_id and max_rows 3"
    check((name is None) == (max_rows is None), "unit", brief(name), rule, hint)
    return None if name is None or max_rows is None else Unit(name, max_rows)


def relation_of(relation: str | Relation | None, unit: Unit | None) -> Relation:
    """The relation that is asked for, or the one that suits the unit.

    Args:
        relation: its name; None for the default.
        unit: what is protected as a whole; None for rows.
    """
    if relation is None:
        return Relation.REPLACE if unit is None else Relation.ADD_REMOVE
    return Relation(one_of("relation", relation, [r.value for r in Relation]))


@dataclass(frozen=True)
class Reading:
    """How a private table is read.

    Args:
        on_bad_value: what is done with values that the schema does not allow, as in ``Table.encode``.
        memory: the bytes that the rows and counts of a table in pieces may take; None for half of this machine's.
        insecure_seed: replaces the randomness of the choice among the rows of a unit: for experiments only.
    """

    on_bad_value: str = "error"
    memory: int | str | None = None
    insecure_seed: int | None = None

    def __post_init__(self) -> None:
        one_of("on_bad_value", self.on_bad_value, ON_BAD_VALUE)
        if self.memory is not None:
            object.__setattr__(self, "memory", bytes_of("memory", self.memory))

    @property
    def most_bytes(self) -> int:
        """The bytes that rows and counts may take."""
        return memory_here() // 2 if self.memory is None else int(self.memory)


def source_of(table: Any, schema: Schema | None, unit: Unit | None = None, reading: Reading | None = None) -> Source:
    """The private rows, whatever holds them; with a unit at most its number of rows for each.

    Args:
        table: the table, as :func:`prepare` takes it.
        schema: the columns of a plain table.
        unit: what is protected as a whole; None for rows.
        reading: how the table is read.
    """
    reading = Reading() if reading is None else reading
    if isinstance(table, Table) or hasattr(table, "batches"):  # isinstance would ask for the number of rows
        source: Source = TableSource(table) if isinstance(table, Table) else table
        rule = "must be given with a table that has its column (an encoded one or another source has none)"
        hint = "give a file, or a pandas, polars or Arrow table together with schema"
        check(unit in (None, getattr(source, "unit", None)), "unit", Shown(unit and fragment(unit.name)), rule, hint)
        return source
    hint = "pass schema=Schema.load(...)"
    given = present("schema", schema, "must be given with a plain table", hint)
    check(isinstance(given, Schema), "schema", brief(given), "must be a Schema", hint)
    if is_spark(table):
        rule, hint = "must not be given with a Spark DataFrame", "keep one row of each unit with Spark, or give files"
        check(unit is None, "unit", Shown(unit and fragment(unit.name)), rule, hint)
        return SparkSource(table, given, reading.most_bytes, reading.on_bad_value)
    if discovered_in(given):
        return OpenRows(source_of(table, numbered(given), unit, reading), given)
    stream = stream_of(table)
    if stream is not None:
        return scanned(stream, given, reading.most_bytes, reading.on_bad_value, unit, reading.insecure_seed)
    if unit is None:
        return TableSource(Table.encode(table, given, reading.on_bad_value))
    return TableSource(bounded_table(table, given, unit, reading.insecure_seed, reading.on_bad_value), unit)


def _named(settings: Any) -> Mapping[str, Any]:
    """Settings by their names."""
    if settings is None:
        return {}
    good = isinstance(settings, Mapping) and all(isinstance(name, str) for name in settings)
    rule, hint = "must be a dictionary of names and values", 'give for example {"rounds": 50}'
    check(good, "settings", brief(settings), rule, hint)
    named: Mapping[str, Any] = settings
    return named


def _public_table(public: Any, schema: Schema) -> PublicTable | None:
    """The public table in the codes of a schema."""
    if public is None or (isinstance(public, PublicTable) and public.domain == schema.domain):
        return public
    rule, hint = "must be a plain table where columns have no fixed bins", "give it as it is, not encoded"
    check(not isinstance(public, PublicTable), "public", Shown("an encoded table"), rule, hint)
    return PublicTable.encode(public, schema)


def _method(
    method: str | Method | None, domain: Domain, group: Any, settings: Mapping[str, Any], public: Any
) -> Method:
    if method is None:
        return default_method(domain, group, settings, public)
    return method if isinstance(method, Method) else get_method(method)


def delta_or_default(delta: float | None, rows: int | None) -> float:
    """The delta that is asked for, or 1/n^2 where n is public.

    Args:
        delta: the delta; None for the default.
        rows: the number of rows; None where it is private.
    """
    if delta is not None:
        return real("delta", delta, 1e-9)
    rule = "must be given under add-remove, since 1/n^2 would reveal n"
    return 1 / present("delta", rows, rule, "give a number well below 1/n, for example 1e-9") ** 2


def _announce_findings(log: Log, announce: Callable[[str], None]) -> None:
    """What the run found out besides its result: all of it is post-processing."""
    if log.start:
        announce("start: " + ", ".join(f"{name} {value:.4g}" for name, value in log.start.items()))
    weight = log.info[-1].get("public") if log.info else None
    if weight is not None:
        used = "used together with them" if weight else "not used: it does not predict them clearly better"
        announce(f"the public table, judged by the noisy measurements, is {used}")
    if log.info and "worst" in log.info[-1]:
        worst, by_chance = log.info[-1]["worst"], log.info[-1]["worst_by_chance"]
        announce(f"fit: worst residual {worst:.1f} sd of the noise (by chance up to {by_chance:.1f})")
        if worst > 2 * by_chance:
            hint = "use more rows and t_max (settings), or fewer and coarser columns"
            announce(
                f"warning: the model misses a measured cell by {worst:.0f} sd, which noise does not explain; {hint}"
            )
