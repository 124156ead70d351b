"""The command ``audit``: an empirical check of the privacy promise, on made-up tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as Grid

from pointillist import auditing
from pointillist.auditing.report import AuditProgress
from pointillist.checks import check
from pointillist.cli_tables import is_dataset
from pointillist.data import datasets
from pointillist.data.schema import Schema
from pointillist.showing import asked

__all__ = ["audit", "settings_of"]

screen = Console(highlight=False, soft_wrap=True)
notes = Console(stderr=True, highlight=False, soft_wrap=True)


def audit(
    schema: Annotated[
        str, typer.Argument(help="A schema in TOML, or the name of a dataset, of which only that counts.")
    ],
    method: Annotated[str, typer.Option("--method", help="See `pointillist methods`.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss that is promised.")],
    delta: Annotated[float | None, typer.Option("--delta", help="Default 1/rows^2.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="replace or add-remove; default replace.")] = None,
    max_rows: Annotated[int | None, typer.Option("--max-rows", help="Of a unit of privacy; default: rows.")] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Text such as marginals:3, or a TOML file; default: what fits.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", help="query or marginal.")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Number of rounds T.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE of the method, repeatable.")] = None,
    rows: Annotated[int, typer.Option("--rows", help="Rows of the made-up tables.")] = 1_000,
    whole: Annotated[bool, typer.Option("--whole", help="Audit the whole run, too.")] = False,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs per table and part; default by time.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="About how long all runs may take.")] = 60.0,
    confidence: Annotated[float, typer.Option("--confidence", help="Of all bounds together.")] = 0.999,
    processes: Annotated[int | None, typer.Option("--processes", help="Default: one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try to refute the privacy promise on made-up tables. Exit code 1 if a violation is found."""
    columns = _schema(schema)
    with _progress() as progress:
        found = auditing.audit(
            columns,
            epsilon=epsilon,
            method=method,
            delta=delta,
            relation=relation,
            max_rows=max_rows,
            workload=workload,
            group=group,
            settings=settings_of(settings or [], rounds),
            rows=rows,
            whole_run=whole,
            runs=runs,
            seconds=seconds,
            confidence=confidence,
            processes=processes,
            progress=progress,
        )
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        _show(found)
    if found.violation:
        raise typer.Exit(1)


def settings_of(pairs: list[str], rounds: int | None) -> dict[str, str | int]:
    """Settings from KEY=VALUE pairs and the number of rounds, as the command line has them.

    Args:
        pairs: texts of the form KEY=VALUE.
        rounds: the number of rounds, if it was given.
    """
    settings: dict[str, str | int] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        good = bool(key and equals and value)
        check(good, "set", pair, "must have the form KEY=VALUE", "write for example rounds=50")
        settings[key.strip()] = value
    if rounds is not None:
        settings["rounds"] = rounds
    return settings


def _schema(given: str) -> Schema:
    """The schema of a file, or of a named dataset."""
    if is_dataset(given):
        return datasets.load(given).schema
    rule = "must be a schema in TOML (.toml) or the name of a dataset, since an audit reads no data"
    hint = "draft a schema with `pointillist schema DATA` and review it"
    check(Path(given).suffix == ".toml", "schema", given[:60], rule, hint)
    schema = Schema.load(given)
    schema.require_reviewed(given)
    return schema


@contextmanager
def _progress() -> Iterator[AuditProgress]:
    """Bars on stderr, one for each part."""
    words: tuple[ProgressColumn, ...] = (TextColumn("{task.description}"), BarColumn())
    words += (TextColumn("{task.completed:,} of {task.total:,} runs"), TimeElapsedColumn())
    words += (TextColumn("done, left"), TimeRemainingColumn())
    bar = Progress(*words, console=notes, disable=asked.quiet)
    tasks: dict[str, object] = {}

    def advance(part: str, done: int, runs: int) -> None:
        bar.start()  # with the first part: a refusal is one line and nothing else
        if part not in tasks:
            tasks[part] = bar.add_task(part, total=runs)
        bar.update(tasks[part], completed=done, total=runs)  # type: ignore[arg-type]

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def _show(found: auditing.Audit) -> None:
    promise = f"({found.epsilon:g}, {found.delta:g})-differential privacy, relation {found.relation}"
    if found.max_rows is not None:
        promise += f", units of at most {found.max_rows:,} rows"
    screen.print(f"{found.method}: {promise}; made-up tables of {found.rows:,} rows", markup=False)
    with_delta = any(one.delta is not None for one in found.findings)
    grid = Grid("part", "runs", "epsilon", "at least", "mu", "at least", *["delta", "at least"] * with_delta, "reached")
    for one in found.findings:
        pairs = [(one.claimed_epsilon, one.epsilon), (one.claimed_mu, one.mu)]
        pairs += [(one.claimed_delta, one.delta)] * with_delta
        numbers = ["" if number is None else f"{number:.4g}" for pair in pairs for number in pair]
        style = "bold red" if one.violation else None
        grid.add_row(one.part, f"{one.runs:,}", *numbers, f"{one.reached:.0%}", style=style)
    screen.print(grid)
    for one in found.findings:
        screen.print(f"{one.part}: {one.verdict}", markup=False, style="bold red" if one.violation else None)
    end = "VIOLATION FOUND." if found.violation else "No violation was found, which is no proof that there is none."
    screen.print(f"All bounds hold together with {found.confidence:.6g} confidence; {found.seconds:.0f} seconds.")
    screen.print(end)
