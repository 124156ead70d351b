"""From a table to a release: what is prepared, what is refused before anything is spent, and what a run may be made of.

Also which method is taken when none is named, and what a release says of the number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointillist import (
    Categorical,
    Grouping,
    InputError,
    Job,
    Method,
    PointillistError,
    Product,
    Relation,
    Release,
    RunStopped,
    Schema,
    Source,
    Table,
    Workload,
    all_kway,
    prepare,
    synthesize,
)
from pointillist import job as job_module
from pointillist.algorithms import METHODS, Task, get_method
from pointillist.algorithms.settings import setting
from pointillist.checks import positive
from pointillist.data.domain import Domain
from pointillist.families.histogram import Histogram
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.job import default_method, workload_of
from pointillist.privacy.ledger import Entry
from pointillist.strategies import MeasureAll

SMALL = Domain(("a", "b", "c"), (3, 4, 5))
LARGE = Domain(tuple(f"x{i}" for i in range(12)), (10,) * 12)


@pytest.mark.parametrize(
    ("domain", "group", "settings", "name"),
    [
        (SMALL, None, {}, "auto"),
        (LARGE, None, {}, "auto"),
        (LARGE, "marginal", {"rows": 100}, "auto"),
        (SMALL, None, {"rounds": 5}, "mwem"),
        (SMALL, "query", {}, "mwem"),
        (SMALL, None, {"round": 5}, "mwem"),
        (SMALL, None, {"spreed": 5}, "auto"),
        (LARGE, None, {"rounds": 5}, "gem"),
        (LARGE, "query", {}, "gem"),
    ],
)
def test_the_default_method(domain: Domain, group: str | None, settings: dict[str, int], name: str) -> None:
    assert default_method(domain, group, settings).name == name


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("method", ["mwem", "one-shot"])  # one of each kind of accounting
def test_a_release_tells_the_noise_of_the_number_of_rows(method: str, relation: Relation, tmp_path: Path) -> None:
    schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2))))
    table = Table(schema, (np.arange(300) % 2, np.arange(300) % 3))
    settings = {"rounds": 2} if method == "mwem" else {"rows": 20, "t_max": 3}
    release = synthesize(
        table, epsilon=1.0, delta=1e-6, relation=relation, method=method, workload="marginals:1", settings=settings
    )
    ledger = {entry.label: entry.scale for entry in release.description.privacy.ledger}
    sigma = release.description.total_sigma
    assert sigma == ledger.get("number of rows", 0.0) == release.log.facts.total_sigma
    assert (sigma > 1) == (relation is Relation.ADD_REMOVE)
    folder = release.save(tmp_path / "release")
    assert json.loads((folder / "release.json").read_text())["total_sigma"] == sigma
    assert Release.load(folder).log.facts.total_sigma == sigma


# --- prepared jobs

SCHEMA = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2)), Categorical("c", (0, 1, 2, 3))))
OPTIONS: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "method": "mwem", "settings": {"rounds": 3}}


def people(rows: int = 300, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    return Table(SCHEMA, (a, (a + c) % 3, c))


def same_release(one: Release, two: Release) -> bool:
    answers = np.array_equal(one.answers(), two.answers())
    rows = all(np.array_equal(a, b) for a, b in zip(one.table.codes, two.table.codes, strict=True))
    return answers and rows and one.description == two.description


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.public.value != "needed"])
def test_preparing_spends_nothing(method: str, relation: Relation, charges: list[Entry]) -> None:
    settings = {"rounds": 2} if method in ("mwem", "pep", "gem", "fem") else {}
    options = OPTIONS | {"delta": 1e-6, "relation": relation, "method": method, "settings": settings}
    job = prepare(people(), **options)
    assert charges == []
    assert job.curator.ledger.entries == ()
    assert job.curator.ledger.spent == 0
    assert (job.method.name, job.task.workload, job.schema) == (method, all_kway(SCHEMA.domain, 2), SCHEMA)
    assert job.facts.rho <= job.curator.ledger.limit
    assert (job.facts.total == 300) == (relation is Relation.REPLACE)
    assert sum(phase.rounds for phase in job.phases) == job.rounds >= 1
    assert job.memory > 0
    assert charges == []  # asking a job about itself costs nothing either


def test_a_job_is_what_synthesize_runs() -> None:
    options = OPTIONS | {"insecure_noise_seed": 3, "seed": 4, "rows": 20}
    job = prepare(people(), **options)
    assert isinstance(job, Job)
    assert (job.rows, job.seed, job.settings.rounds, job.rounds) == (20, 4, 3, 3)
    release = job.run()
    assert same_release(release, synthesize(people(), **options))
    assert release.family == job.algorithm.family
    assert release.description.privacy.ledger == job.curator.ledger.entries
    assert release.description.privacy.rho_spent == job.curator.ledger.spent > 0
    assert release.description.method.strategy == repr(job.algorithm.strategy)


def test_a_job_runs_once(charges: list[Entry]) -> None:
    job = prepare(people(), **OPTIONS)
    job.run()
    spent = list(charges)
    with pytest.raises(PointillistError) as refused:
        job.run()
    assert str(refused.value) == "this job was run already, and its budget is spent; prepare a new one"
    assert charges == spent


def test_a_noisy_number_of_rows_does_not_draw_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under add-remove the default is a noisy count, which may be huge for a small budget."""
    monkeypatch.setattr(job_module, "MOST_DEFAULT_ROWS", 50)
    chosen = {"method": "mwem", "workload": "marginals:1", "settings": {"rounds": 1}, "delta": 1e-6}
    release = synthesize(people(), epsilon=1.0, relation="add-remove", insecure_noise_seed=1, **chosen)
    assert release.description.total > 50
    assert len(release.table) == 50
    assert len(synthesize(people(), epsilon=1.0, insecure_noise_seed=1, **chosen).table) == 300


def test_a_job_that_stopped_does_not_run_again() -> None:
    def stop(done: int, rounds: int, spent: float) -> None:
        if done == 2:
            raise KeyboardInterrupt

    job = prepare(people(), **OPTIONS)
    with pytest.raises(RunStopped, match="the run was stopped by KeyboardInterrupt") as stopped:
        job.run(stop)
    assert len(stopped.value.log.rounds) == 2
    assert stopped.value.names == ("a", "b", "c")
    assert stopped.value.ledger is job.curator.ledger
    assert len(stopped.value.ledger.entries) == 4
    with pytest.raises(PointillistError, match="this job was run already"):
        job.run()


def test_a_job_that_failed_before_it_spent_can_be_run() -> None:
    def refuse(done: int, rounds: int, spent: float) -> None:
        raise OSError("the terminal is gone")

    job = prepare(people(), **OPTIONS)
    with pytest.raises(OSError, match="the terminal is gone"):
        job.run(refuse)
    assert job.curator.ledger.entries == ()
    assert len(job.run().table) == 300


def test_progress_and_announcements() -> None:
    steps: list[tuple[int, int, float]] = []
    lines: list[str] = []
    job = prepare(people(), **OPTIONS)
    job.run(lambda done, rounds, spent: steps.append((done, rounds, spent)), lines.append)
    rounds = [(0, 0.0), (0, 0.333333), (1, 0.333333), (1, 0.666667), (2, 0.666667), (2, 1.0), (3, 1.0)]
    assert [(done, round(spent, 6)) for done, _, spent in steps] == rounds  # when it is spent, and after the update
    assert {total for _, total, _ in steps} == {3}
    assert lines == job.describe()
    assert lines[0].startswith("mwem: 3 marginals, 26 queries (208 B of answers); peak memory about ")


@pytest.mark.parametrize("zcdp", [False, True])
def test_the_tighter_account_can_be_left(zcdp: bool) -> None:
    job = prepare(people(), epsilon=1.0, workload="marginals:2", zcdp=zcdp)
    other = prepare(people(), epsilon=1.0, workload="marginals:2", zcdp=not zcdp)
    assert job.curator.ledger.accounting == ("zCDP" if zcdp else "Gaussian")
    assert (job.curator.ledger.limit < other.curator.ledger.limit) == zcdp


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0.0; give for example 1."),
    ({"epsilon": float("nan")}, "epsilon must be a finite number above 0, got nan; give for example 1."),
    (
        {"epsilon": 1000},
        "epsilon must be at most 100, got 1000.0; a larger one guarantees nothing: give for example 1.",
    ),
    ({"delta": 1}, "delta must be above 0 and below 1, got 1.0; give for example 1e-9, a number well below 1/n."),
    (
        {"relation": "add-remove"},
        "delta must be given under add-remove, since 1/n^2 would reveal n, got None; "
        "give a number well below 1/n, for example 1e-9.",
    ),
    ({"relation": "replce"}, "relation must be one of replace, add-remove, got 'replce'; did you mean 'replace'."),
    ({"method": "mwme"}, "method must be one of the methods, got 'mwme'; did you mean 'mwem'."),
    ({"settings": {"round": 3}}, "setting of mwem must be one of its settings, got 'round'; did you mean 'rounds'."),
    ({"settings": {"rounds": 0}}, "rounds must be at least 1, got 0; give for example 50."),
    ({"settings": {"alpha": 2}}, "alpha must be above 0 and below 1, got 2.0; give for example 0.5."),
    (
        {"settings": {"alpha": 1e-5}},
        "alpha must leave both parts a share (0.001 .. 0.999), got 1e-05; give for example 0.5.",
    ),
    (
        {"settings": {"rounds": 4}},
        "rounds must pick at most the workload's 3 groups, each once, got 4; "
        "use fewer rounds or picks, or group by query.",
    ),
    (
        {"epsilon": 1e-3, "method": "one-shot", "settings": {}},
        "epsilon must leave each measurement a noise below 300 rows (it would be ...), got 0.001; "
        "use a larger epsilon or a smaller workload.",
    ),
    ({"workload": "marginals:9"}, "workload: K must be in 1 .. 3, the number of attributes, got 9; use a smaller K."),
    (
        {"workload": all_kway(SMALL, 2)},
        "workload must be over the table's columns, got another domain; build it from table.domain.",
    ),
    ({"group": "queries"}, "group must be one of query, marginal, got 'queries'; did you mean 'query'."),
    ({"method": "dualquery", "group": "marginal"}, "group must be query for dualquery, got 'marginal'; use query."),
    ({"rows": 0}, "rows must be in 1 .. 1,000,000,000, got 0; give for example 1000."),
    ({"seed": -1}, "seed must be in 0 .. 9,223,372,036,854,775,807, got -1; use 0."),
    ({"insecure_noise_seed": -1}, "insecure_noise_seed must be in 0 .. 9,223,372,036,854,775,807, got -1; use 0."),
    (
        {"public": people(50, 1)},
        "public must be left out for mwem, which makes no use of it, got a table; "
        "leave it out, or use auto, gem_pub, pmw_pub or pep_pub.",
    ),
    ({"method": "pmw_pub"}, "public must be a public table for pmw_pub, got None; give one, or use another method."),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED, ids=[str(sorted(options)) for options, _ in REFUSED])
def test_what_is_refused(options: dict[str, Any], sentence: str, charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        prepare(people(), **OPTIONS | options)
    start, _, end = sentence.partition("...)")
    assert str(refused.value).startswith(start)
    assert str(refused.value).endswith(end)
    assert "..." in sentence or str(refused.value) == sentence
    assert charges == []


def test_tables_that_are_refused(charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        prepare(people().to_arrow(), **OPTIONS)
    assert str(refused.value) == "schema must be given with a plain table, got None; pass schema=Schema.load(...)."
    with pytest.raises(InputError) as refused:
        prepare(people(1), **OPTIONS)
    assert str(refused.value) == "table must have at least 2 rows, got 1; give the whole table."
    draft = Table(replace(SCHEMA, reviewed=False), people().codes)
    with pytest.raises(InputError, match="schema of the table must be reviewed by a person before use"):
        prepare(draft, **OPTIONS)
    with pytest.raises(InputError, match="table must be a pandas, polars or Arrow table"):
        prepare([1, 2, 3], schema=SCHEMA, **OPTIONS)
    assert charges == []


def test_a_workload_as_text_or_as_it_is() -> None:
    workload = workload_of("marginals:2:2:1", SCHEMA, 7)
    assert len(workload.queries) == 1  # only one has at most 7 cells
    assert workload_of(workload, SCHEMA, 1) is workload


# --- rows from anywhere


class Stream:
    """Rows that come in uneven batches, as plain 64-bit codes."""

    def __init__(self, table: Table, batches: Sequence[int]) -> None:
        self.schema = table.schema
        self.rows = len(table)
        self.passes = 0
        self._table, self._batches = table, batches

    def batches(self) -> Iterator[list[np.ndarray]]:
        self.passes += 1
        at = 0
        for size in (*self._batches, self.rows):
            yield [np.asarray(codes[at : at + size], np.int64) for codes in self._table.codes]
            at += size


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    "chosen",
    [
        {"method": "mwem", "settings": {"rounds": 3}},
        {"method": "mwem", "settings": {"rounds": 3}, "group": "query"},
        {"method": "auto", "settings": {"rows": 5, "t_max": 3}},
    ],
    ids=["mwem", "mwem by query", "auto"],
)
def test_any_source_of_batches_gives_the_release_of_the_table(chosen: dict[str, Any], relation: Relation) -> None:
    options = {"epsilon": 1.0, "delta": 1e-6, "relation": relation, "workload": "marginals:2", "insecure_noise_seed": 5}
    source = Stream(people(), (7, 0, 100, 1))
    assert isinstance(source, Source)
    release = synthesize(source, **options | chosen)
    assert same_release(release, synthesize(people(), **options | chosen))
    assert source.passes > 0
    assert release.schema == SCHEMA


def test_preparing_does_not_read_the_rows() -> None:
    source = Stream(people(), (7,))
    prepare(source, **OPTIONS)
    assert source.passes == 0


def test_a_draft_schema_of_a_source_is_refused() -> None:
    source = Stream(people(), (7,))
    source.schema = replace(SCHEMA, reviewed=False)
    with pytest.raises(InputError, match="schema of the table must be reviewed by a person before use"):
        prepare(source, **OPTIONS)


def test_plain_tables_of_all_kinds_give_the_same_release() -> None:
    table = people()
    options = OPTIONS | {"insecure_noise_seed": 5}
    expected = synthesize(table, **options)
    for given in (table.to_arrow(), table.to_pandas()):
        assert same_release(synthesize(given, schema=SCHEMA, **options), expected)
    assert isinstance(table.to_arrow(), pa.Table)


# --- methods from anywhere


@dataclass(frozen=True)
class FlatSettings:
    """Settings of the method below."""

    flatness: float = setting(1.0, "how much of the uniform distribution is mixed in")

    def __post_init__(self) -> None:
        positive("flatness", self.flatness)


@dataclass(frozen=True)
class Independent:
    """The product of the measured one-way marginals."""

    family: Histogram
    flatness: float

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> Updated:
        product = np.ones(1)
        for measurement in log.measurements:
            product = np.multiply.outer(product, measurement.feasible(log.total) + self.flatness)
        product = product.reshape(self.family.domain.sizes)
        return Updated(product / product.sum(), None, {"largest": float(product.max())})


def build(task: Task, settings: FlatSettings) -> Algorithm[np.ndarray]:
    family = Histogram(task.domain)
    return Algorithm(family, MeasureAll(task.workload.queries), Independent(family, settings.flatness), Last())


MINE = Method(
    name="mine",
    family="histogram",
    strategy="measure everything once",
    update="independent columns",
    output="last",
    settings=FlatSettings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Histogram.fits,
    memory=Histogram.memory,
)


def test_a_method_of_ones_own(tmp_path: Path) -> None:
    assert "mine" not in METHODS
    options: dict[str, Any] = {"epsilon": 50.0, "workload": "marginals:1", "method": MINE}
    job = prepare(people(), **options, settings={"flatness": "1e-9"})
    assert (job.method, job.settings) == (MINE, FlatSettings(1e-9))
    small = prepare(people(), **options | {"epsilon": 1.0})
    assert small.curator.ledger.accounting == "Gaussian"  # it selects nothing, and its noise is large enough
    release = job.run()
    truth = np.concatenate([np.bincount(codes) / 300 for codes in people().codes])
    assert np.allclose(release.answers(), truth, atol=0.05)
    assert release.description.method.name == "mine"
    assert release.description.method.settings == {"flatness": 1e-9}
    again = Release.load(release.save(tmp_path / "r"))
    assert same_release(again, release)
    assert again.log.info == release.log.info == [{"largest": pytest.approx(release.log.info[0]["largest"])}]
    with pytest.raises(InputError) as refused:
        prepare(people(), **options, settings={"flatnes": 1})
    assert str(refused.value) == "setting of mine must be one of its settings, got 'flatnes'; did you mean 'flatness'."
    with pytest.raises(InputError, match="flatness must be a finite number above 0, got -1"):
        prepare(people(), **options, settings={"flatness": -1})
    with pytest.raises(InputError, match="group must be marginal for mine, got 'query'; use marginal"):
        prepare(people(), **options, group="query")


def test_a_changed_method() -> None:
    """A known method under another name and with another build gives what its parts give."""
    renamed = replace(get_method("mwem"), name="other")
    options = OPTIONS | {"insecure_noise_seed": 2}
    mine, known = synthesize(people(), **options | {"method": renamed}), synthesize(people(), **options)
    assert np.array_equal(mine.answers(), known.answers())
    assert mine.description.method == replace(known.description.method, name="other")


# --- queries other than marginals


@pytest.mark.parametrize(
    ("method", "group", "settings"),
    [
        ("mwem", "query", {"rounds": 5}),
        ("mwem", "marginal", {"rounds": 2}),
        ("pep", "query", {"rounds": 5}),
        ("auto", None, {"rows": 10, "t_max": 20}),
        ("gem", "query", {"rounds": 2, "batch": 10, "inputs": 4, "hidden": "8", "t_max": 3}),
    ],
)
def test_prefixes_from_end_to_end(method: str, group: str | None, settings: dict[str, Any], tmp_path: Path) -> None:
    domain = SCHEMA.domain
    workload = Workload.of(domain, [("a", "b"), Product.of(domain, {"a": "values", "c": "prefixes"})])
    release = synthesize(people(), epsilon=20.0, method=method, group=group, workload=workload, settings=settings)
    answers = release.answers()
    assert answers.shape == (6 + 8,)
    assert answers[9] + answers[13] == pytest.approx(1, abs=1e-5)  # c below 4, for both values of a
    again = Release.load(release.save(tmp_path / "r"))
    assert again.workload == workload
    assert np.array_equal(again.answers(), answers)


@pytest.mark.parametrize("method", ["dualquery", "fem"])
def test_methods_that_solve_integer_programs_refuse_other_queries(method: str, charges: list[Entry]) -> None:
    """Before anything is spent, whatever the data would have selected."""
    workload = Workload.of(SCHEMA.domain, [("a", "b"), Product.of(SCHEMA.domain, {"c": "prefixes"})])
    with pytest.raises(InputError, match="workload must be cells of marginals"):
        prepare(people(), epsilon=1.0, method=method, workload=workload)
    assert charges == []
    single = Workload.of(SCHEMA.domain, [Product.of(SCHEMA.domain, {"a": "values", "c": "values"})])
    assert prepare(people(), epsilon=1.0, method=method, workload=single).rounds > 0  # these are cells of a marginal


@pytest.mark.parametrize("method", ["pep", "mwem"])
def test_overlapping_queries_measured_together(method: str, charges: list[Entry]) -> None:
    """PEP cannot use them and says so; MWEM can."""
    workload = Workload.of(SCHEMA.domain, [Product.of(SCHEMA.domain, {"c": "prefixes"}), ("a",)])
    options: dict[str, Any] = {"epsilon": 1.0, "method": method, "workload": workload, "group": "marginal"}
    if method == "mwem":
        assert prepare(people(), **options).rounds > 0
        return
    with pytest.raises(InputError) as refused:
        prepare(people(), **options)
    assert str(refused.value) == (
        "group must be 'query' for this method on queries that overlap, got 'marginal'; "
        "use group query, or another method."
    )
    assert charges == []


@pytest.mark.parametrize("rows", [10.0, 10.5])
def test_a_number_of_rows_that_is_not_whole_is_refused_before_anything_is_spent(
    rows: float, charges: list[Entry]
) -> None:
    with pytest.raises(InputError, match="rows must be"):
        synthesize(people(), **OPTIONS | {"rows": rows})
    assert charges == []
