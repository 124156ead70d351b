"""The command line: thin, every command one call of the library."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table as Grid

from pointillist import __version__
from pointillist.algorithms import METHODS, get_method
from pointillist.algorithms.settings import describe
from pointillist.checks import between, check
from pointillist.cli_account import account_app
from pointillist.cli_answer import answer, replicate
from pointillist.cli_attest import keygen, sign, verify
from pointillist.cli_audit import audit, settings_of
from pointillist.cli_complete import data_names, method_names
from pointillist.cli_output import print_release, show_evaluation
from pointillist.cli_plan import agree, plan
from pointillist.cli_report import report as report_command
from pointillist.cli_sample import sample
from pointillist.cli_schema import schema_app
from pointillist.cli_tables import (
    Decimal,
    Encoding,
    Header,
    Separator,
    dialect_from,
    dialect_text,
    folder_of,
    is_dataset,
    load_public,
    read_table,
    reads_inside,
    schema_beside,
    tell_dialect,
)
from pointillist.cli_workload import workload
from pointillist.data import datasets
from pointillist.data.databases import DATABASES, is_database, query_of
from pointillist.data.dialects import Dialect
from pointillist.data.neighbours import Unit
from pointillist.data.public import PublicTable
from pointillist.data.schema import Schema
from pointillist.data.sources import LaterSource
from pointillist.data.streams import Files, is_pattern
from pointillist.data.table import Table
from pointillist.errors import InputError, PointillistError, Shown, in_short, printable
from pointillist.evaluation import report
from pointillist.evaluation.accuracy import Errors
from pointillist.evaluation.values import made_under
from pointillist.families.relaxed import silence_compiler
from pointillist.job import Reading, prepare, source_of, workload_of
from pointillist.leaving import REFUSED, in_order
from pointillist.memory import peak_memory
from pointillist.queries.files import is_file
from pointillist.queries.workload import show_bytes
from pointillist.release import Release, add_replicates, check_target
from pointillist.release.folder import MOST_REPLICATES
from pointillist.release.journal import undamaged
from pointillist.runs import journal_of, resume, run_into
from pointillist.showing import asked, shown

__all__ = ["app", "main"]

app = typer.Typer(
    help="Differentially private synthetic tables that keep the answers to a declared set of queries.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(account_app, name="account")
app.add_typer(schema_app, name="schema")
for command in (plan, keygen, sign, verify, audit, sample, answer, replicate, workload, report_command):
    app.command()(command)
screen = Console(highlight=False, soft_wrap=True)
notes = Console(stderr=True, highlight=False, soft_wrap=True)
logger = logging.getLogger("pointillist")

Data = Annotated[str, typer.Argument(help="A file with a table, or the name of a dataset.", autocompletion=data_names)]
Rows = Annotated[
    str, typer.Argument(help="A table: a file, folder or pattern, or a named dataset.", autocompletion=data_names)
]
SchemaFile = Annotated[Path | None, typer.Option("--schema", help="Schema in TOML; default DATA's .schema.toml.")]
WorkloadText = Annotated[
    str | None,
    typer.Option(
        "--workload", help="Text such as marginals:3 or prefixes:2 + halfspaces:50, or a TOML file; default: what fits."
    ),
]
PublicFile = Annotated[
    str | None, typer.Option("--public", help="A public table: a file or a dataset; columns may be missing.")
]
Out = Annotated[Path, typer.Option("--out", help="Folder of the release.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing release.")]
NO_THREAD = "can't start new thread"
"""How Python says that there is no memory for a thread."""


def main() -> None:
    """Run the command; an error is one sentence and exit code 2."""
    silence_compiler()
    if not logger.handlers:
        logger.addHandler(RichHandler(console=notes, show_level=False, show_path=False))
    with in_order():
        try:
            app()
        except PointillistError as error:
            _refuse(str(error))
        except (OSError, MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and str(error) != NO_THREAD:
                raise
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            _refuse(f"the operating system refused ({reason}); free memory or disk space.")


def _refuse(text: str) -> NoReturn:
    """Say why, in one line, and leave; also where nobody can hear it."""
    with contextlib.suppress(OSError, MemoryError):
        notes.print(printable(f"error: {text}"), markup=False)
    sys.exit(REFUSED)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show results and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Write log lines next to the bars, too.")] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Differentially private synthetic tables that keep the answers to a declared set of queries."""
    check(not (quiet and verbose), "quiet", True, "must not be given with --verbose", "leave one of them out")
    asked.quiet, asked.verbose = quiet, verbose
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def _note(text: str) -> None:
    """Something besides results and errors."""
    if not asked.quiet:
        notes.print(text, markup=False)


@contextlib.contextmanager
def _shown(rows: int | None) -> Iterator[None]:
    """Show what the run inside is doing, and how much memory it took, unless the number of rows is private."""
    with shown(not asked.quiet, notes, asked.verbose):
        yield
    if rows is not None:  # the memory depends on it
        _note(f"peak memory of this process: {show_bytes(peak_memory())}")


@app.command()
def synth(
    data: Rows,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss epsilon, above 0.")],
    schema: SchemaFile = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Default 1/n^2 under replace.")] = None,
    relation: Annotated[
        str | None, typer.Option("--relation", help="replace or add-remove; default replace, with --unit add-remove.")
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Column of the person or thing to be protected.")] = None,
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", help="Rows of each unit that are used, at most.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", help="See `pointillist methods`; default auto.", autocompletion=method_names),
    ] = None,
    workload: WorkloadText = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Column that matters most in the default workload of a wide table.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", help="query or marginal.")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Number of rounds T.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Synthetic rows; default n, or its noisy count.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the post-processing.")] = 0,
    public: PublicFile = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE of the method, repeatable.")] = None,
    out: Out = Path("release"),
    force: Force = False,
    account: Annotated[Path | None, typer.Option("--account", help="Account that the budget is booked in.")] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    sql: Annotated[
        str | None, typer.Option("--sql", help="With a DuckDB file: the name of a table, or a SELECT.")
    ] = None,
    on_bad_value: Annotated[
        str, typer.Option("--on-bad-value", help="error, or missing: values outside of the schema become missing.")
    ] = "error",
    memory: Annotated[
        str | None, typer.Option("--memory", help="Memory for rows and counts, for example 4GB; default half.")
    ] = None,
    replicates: Annotated[
        int, typer.Option("--replicates", help="Simulated runs for the intervals of answers; 0 leaves them for later.")
    ] = 0,
    insecure_noise_seed: Annotated[
        int | None, typer.Option("--insecure-noise-seed", help="NOT PRIVATE: seeded noise, for experiments.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Start even if the run takes hours or too much memory.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a differentially private synthetic table."""
    started = time.monotonic()
    between("replicates", replicates, 0, MOST_REPLICATES, "give 8, or 0 for none")
    check(replicates != 1, "replicates", replicates, "must be 0 or at least 2", "give 8, or 0 for none")
    dialect = Dialect(separator, encoding, decimal, header)
    inputs = _inputs(data, schema, public, workload)
    check_target(out, force, inputs)
    rule, hint = "must not lie in the folder of the table, which would then hold other rows", "choose another folder"
    check(is_dataset(data) or not reads_inside(data, out), "out", str(out), rule, hint)
    chosen = settings_of(settings or [], rounds)
    if method is not None:
        get_method(method).configure(chosen)
        get_method(method).require_public(public is not None)
    table, columns = _rows_of(data, schema, dialect, sql)
    files = [file.path for file in table.files] if isinstance(table, Files) else [Path(data)]
    same = public is not None and (public == data or any(_same_file(file, Path(public)) for file in files))
    hint = "give a table that is public already, or leave it out"
    check(not same, "public", public, "must be another table than the private one", hint)
    job = prepare(
        table,
        schema=columns,
        unit=unit,
        max_rows=max_rows,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        method=method,
        public=load_public(public),
        workload=workload,
        target=target,
        group=group,
        rows=rows,
        seed=seed,
        settings=chosen,
        insecure_noise_seed=insecure_noise_seed,
        on_bad_value=on_bad_value,
        memory=memory,
    )
    tell_dialect(table)
    expected = job.expected()
    if job.curator.public_rows is not None:  # else no message may depend on their number
        _note(expected.describe())
    agree(expected.absurd, yes)
    named = {"data": data, "schema": schema, "public": public}
    origin = {name: _absolute(str(value)) for name, value in named.items() if value is not None}
    if (text := dialect_text(dialect)) is not None:
        origin["dialect"] = text
    if memory is not None:
        origin["memory"] = memory
    if sql is not None:
        origin["sql"] = sql
    with _shown(job.curator.public_rows):
        release = run_into(job, out, force=force, inputs=inputs, origin=origin, account=account, announce=_note)
        if replicates:
            _add_replicates(release, out, replicates, public)
    if as_json:
        print_release(release, out.resolve(), time.monotonic() - started)
        return
    _show_release(release, out.resolve())


def _add_replicates(release: Release, out: Path, replicates: int, public: str | None) -> None:
    """Add replicates to a release that is saved: whatever happens, it is there and paid for."""
    try:
        add_replicates(out, release.replicate(replicates, public=load_public(public)))
    except (OSError, MemoryError, PointillistError) as error:
        reason = in_short(error)
        text = f"the release is complete, but has no replicates ({reason}); `pointillist replicate {out}` makes them"
        notes.print(printable(text), markup=False)


@app.command("resume")
def resume_run(
    out: Annotated[Path, typer.Argument(help="The folder of an interrupted run.")],
    data: Annotated[str | None, typer.Argument(help="The private table; default: where the run read it.")] = None,
    schema: SchemaFile = None,
    public: PublicFile = None,
) -> None:
    """Finish an interrupted run from its journal, without spending anything twice."""
    spec = journal_of(out)[0].data
    with undamaged(out):
        origin = spec["origin"]
        data, public = data or origin.get("data"), public or origin.get("public")
        file = schema or (Path(origin["schema"]) if "schema" in origin else None)
        dialect = dialect_from(origin.get("dialect"))
        unit = Unit(**spec["unit"]) if "unit" in spec else None
        sql = origin.get("sql")
        reading = Reading(spec.get("on_bad_value", "error"), origin.get("memory"), spec["insecure_noise_seed"])
        load = None if data is None else lambda: source_of(*_rows_of(data, file, dialect, sql), unit, reading)
        source = LaterSource(Schema.from_dict(spec["schema"]), spec["n"], load, unit)
    with _shown(spec["n"]):
        release = resume(out, source, public=load_public(public), announce=_note)
    _show_release(release, out.resolve())


@app.command()
def evaluate(
    real: Data,
    synth: Annotated[str, typer.Argument(help="A release folder, or a table.")],
    schema: SchemaFile = None,
    workload: WorkloadText = None,
    public: PublicFile = None,
    target: Annotated[
        str | None, typer.Option("--target", help="A column that models learn to predict; needs scikit-learn.")
    ] = None,
    as_json: AsJson = False,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
) -> None:
    """Compare a synthetic table with the real one. Uses the real data: the output is NOT private."""
    dialect = Dialect(separator, encoding, decimal, header)
    check(Path(synth).exists(), "synth", synth, "must be an existing release folder or table", "check the path")
    release = Release.load(synth) if Path(synth).is_dir() else None
    if is_dataset(real):
        plain: Any = _rows_of(real, schema)[0]
        columns = plain.schema
    else:
        plain = read_table(real, dialect)
        columns = release.schema if release is not None and schema is None else _schema_of(real, schema)
    same = release is None or made_under(release, columns)
    hint = "give the table that the release was made from, and leave --schema out"
    check(same, "synth", synth, "must have the schema of the real table", hint)
    other = read_table(synth, name="synth") if release is None else release
    result = report.evaluate(plain, other, workload, schema=columns, target=target)
    floor = None
    if public is not None:
        columns = columns if release is None else release.schema
        public_table = PublicTable.encode(load_public(public), columns)
        table = Table.encode(plain.to_arrow() if isinstance(plain, Table) else plain, columns)
        default = report.default_workload(table.schema) if release is None else release.workload
        queries = workload_of(default if workload is None else workload, table.schema, len(table))
        floor = report.compare_public(table, public_table, queries)
    if as_json:
        print(json.dumps(result.to_dict() | ({} if floor is None else {"public": floor.to_dict()})))
    else:
        show_evaluation(result, floor)


@app.command()
def demo(out: Out = Path("demo"), force: Force = False) -> None:
    """Synthesize the embedded demo table (a fictional town) and show what was kept."""
    check_target(out, force)
    table = datasets.load("demo")
    screen.print(f"The demo: a fictional town of {len(table):,} people, {len(table.domain)} columns.")
    job = prepare(table, epsilon=1.0)
    with _shown(job.curator.public_rows):
        release = run_into(job, out, force=force, announce=_note)
    _show_release(release, out.resolve())
    result = report.compare_tables(table, release.table, release.workload, release)
    screen.print(f"\nErrors over {release.workload.describe()}, in fractions of the rows:")
    _show_errors([*result.lines(), ("independent columns", report.independent_columns(table, release.workload))])
    screen.print("The last line, for comparison, keeps every column exactly and no dependency between columns.")
    screen.print("(Errors need the real table. This town is fictional; do not publish the errors of real tables.)")


@app.command()
def methods(
    list_datasets: Annotated[bool, typer.Option("--datasets", help="List the named datasets instead.")] = False,
) -> None:
    """The table of methods and their settings."""
    if list_datasets:
        grid = Grid("dataset", "what it is")
        for name, text in datasets.describe():
            grid.add_row(name, text)
        screen.print(grid)
        return
    parts = ("family", "strategy", "update", "output")
    for m in METHODS.values():
        grid = Grid("part", m.name)  # one below the other: side by side they do not fit a terminal
        for part in parts:
            grid.add_row(part, getattr(m, part))
        grid.add_row("group", ", ".join(m.groupings))
        screen.print(grid)
        grid = Grid("setting", "type", "default", "meaning", title=f"{m.name}: --set KEY=VALUE")
        for name, kind, default, text in describe(m.settings):
            grid.add_row(name, kind, default, text)
        screen.print(grid)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _rows_of(
    data: str, schema: Path | None, dialect: Dialect | None = None, sql: str | None = None
) -> tuple[Any, Schema | None]:
    """The files of a table or a query with their schema, or a named dataset, which brings its own."""
    if is_database(data):
        return query_of(data, sql), _schema_of(data, schema)
    rule, hint = "must be given with a DuckDB database file only", f"leave --sql out, or give a file ({DATABASES[0]})"
    check(sql is None, "sql", sql, rule, hint)
    if not is_dataset(data):
        return Files.find(data, dialect), _schema_of(data, schema)
    rule = "must not be given with a named dataset, which brings its own"
    check(schema is None, "schema", str(schema), rule, "leave --schema out")
    return datasets.load(data), None


def _schema_of(data: str, schema: Path | None) -> Schema:
    """The reviewed schema of a file."""
    file = schema or schema_beside(data)
    if schema is None and not file.is_file():
        hint = f"draft one with `pointillist schema {data}`, review it, and run again"
        raise InputError("schema", Shown("none"), f"must be given for a file (no {file} found)", hint)
    loaded = Schema.load(file)
    loaded.require_reviewed(str(file))
    return loaded


def _inputs(data: str, schema: Path | None, public: str | None, workload: str | None) -> list[Path]:
    """The files that a run reads."""
    beside = [] if is_dataset(data) else [folder_of(data) or Path(data), schema or schema_beside(data)]
    beside += [Path(workload)] if workload is not None and is_file(workload) else []
    return beside if public is None or is_dataset(public) else [*beside, Path(public)]


def _absolute(name: str) -> str:
    """A path or a pattern as it can be found from another folder; the name of a dataset as it is."""
    if is_pattern(name):
        return str(Path(name).absolute())
    return str(Path(name).resolve()) if Path(name).exists() else name


def _same_file(first: Path, second: Path) -> bool:
    return first.is_file() and second.is_file() and first.samefile(second)


def _show_release(release: Release, folder: Path) -> None:
    about = release.description
    screen.print(release.statement, markup=False, style=None if about.privacy.private else "bold red")
    screen.print(f"method {about.method.name}, {release.workload.describe()}, grouped by {about.method.grouping}")
    if about.rules is not None:
        screen.print(f"rules: {about.rules.describe()}", markup=False)
    if about.matched is not None:
        screen.print(f"rows: {about.matched.describe()}")
    wrote = f"wrote {folder}: {len(release.table):,} synthetic rows, model, transcript, ledger"
    screen.print(printable(wrote), markup=False)


def _show_errors(lines: list[tuple[str, Errors]]) -> None:
    grid = Grid("answers of", "max", "mean", "rmse", "tvd")
    for name, errors in lines:
        grid.add_row(name, *(f"{value:.5f}" for value in errors.to_dict().values()))
    screen.print(grid)
