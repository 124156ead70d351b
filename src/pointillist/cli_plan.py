"""The command that says what to expect of a run before it spends anything. It reads a schema and no data."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pointillist.checks import between, check, present, whole
from pointillist.cli_audit import settings_of
from pointillist.cli_complete import data_names, method_names
from pointillist.cli_tables import is_dataset, load_public, schema_beside
from pointillist.data import datasets
from pointillist.data.schema import Schema
from pointillist.data.sources import LaterSource
from pointillist.errors import InputError, Shown, printable
from pointillist.job import prepare, relation_of
from pointillist.planning import Plan
from pointillist.planning.picture import as_svg, as_text
from pointillist.privacy.curator import MOST_ROWS

__all__ = ["agree", "plan"]

screen = Console(highlight=False, soft_wrap=True)


def plan(
    data: Annotated[
        str, typer.Argument(help="A schema, a file that has one, or a dataset.", autocompletion=data_names)
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss epsilon, above 0.")],
    rows: Annotated[int | None, typer.Option("--rows", help="Number of rows; default that of a dataset.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Default 1/rows^2 under replace.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="replace or add-remove; default replace.")] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", help="See `pointillist methods`; default auto.", autocompletion=method_names),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", help="Text such as marginals:3, or a TOML file; default: that of `synth`."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Column that matters most in the default workload of a wide table.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", help="query or marginal.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE of the method, repeatable.")] = None,
    target_error: Annotated[
        float | None, typer.Option("--target-error", help="An error to reach: prints the smallest epsilon for it.")
    ] = None,
    target_metric: Annotated[str, typer.Option("--target-metric", help="Which error: max, rmse or tvd.")] = "max",
    public: Annotated[
        str | None, typer.Option("--public", help="A public table, whose columns are as skewed: a better forecast.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the picture of error by epsilon as SVG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Forecast error, time and memory of a run from the schema alone. Reads no data and spends nothing."""
    schema, known = _schema_of(data)
    rule, hint = "must be given, since no data is read", "give for example --rows 50000"
    count = present("rows", known if rows is None else rows, rule, hint)
    count = between("rows", whole("rows", count), 2, MOST_ROWS, "give for example 50000")
    _check_picture(out)
    job = prepare(
        LaterSource(replace(schema, reviewed=True), count),
        epsilon=epsilon,
        delta=delta,
        relation=relation_of(relation, None),
        method=method,
        workload=workload,
        target=target,
        group=group,
        settings=settings_of(settings or [], None),
    )
    found = job.plan(count, target_error=target_error, target_metric=target_metric, public=load_public(public))
    _write_picture(found, out)
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    chosen = [] if job.reason is None else [f"workload: {job.reason}"]
    for line in (*chosen, *found.describe()[:-2], *as_text(found), *found.describe()[-2:]):
        screen.print(printable(line), markup=False)
    if out is not None:
        screen.print(printable(f"wrote {out.resolve()}"), markup=False)


def _schema_of(data: str) -> tuple[Schema, int | None]:
    """The schema that is meant, and the number of rows of a named dataset, which is public."""
    if is_dataset(data):
        table = datasets.load(data)
        return table.schema, len(table)
    file = Path(data) if data.endswith(".toml") else schema_beside(data)
    check(file.is_file(), "data", data, "must be a schema, a file with one next to it, or a dataset", "check the path")
    return Schema.load(file), None


def _check_picture(out: Path | None) -> None:
    if out is None:
        return
    check(out.suffix == ".svg", "out", str(out), "must be the name of an SVG file", "give for example plan.svg")
    good = out.absolute().parent.is_dir() and not out.is_dir()
    check(good, "out", str(out), "must be in an existing folder", "create the folder, or give another name")


def _write_picture(found: Plan, out: Path | None) -> None:
    if out is None:
        return
    rule, hint = "must be left out where errors cannot be forecast", "use marginals and a method that was measured"
    check(bool(found.curve), "out", str(out), rule, hint)
    out.write_text(as_svg(found), encoding="utf-8")


def agree(absurd: str, yes: bool) -> None:
    """Ask whether a run is to start that takes more than most machines or people have; refuse where nobody can answer.

    Args:
        absurd: what it takes, in words; empty if that is ordinary.
        yes: whether the answer was given beforehand.
    """
    if not absurd or yes:
        return
    if not sys.stdin.isatty():
        hint = "use a smaller workload or fewer columns, or give --yes to start it"
        raise InputError("run", Shown(f"one that takes {absurd}"), "must fit this machine", hint)
    if not typer.confirm(f"This run takes {absurd}. Start it?", err=True):
        raise typer.Exit(1)
