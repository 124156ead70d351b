"""The commands `pointillist replicate` and `pointillist answer`: answers with intervals, without any budget."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from pointillist.answers import Answer, Count, Mean, Quantile, Share, Statistic
from pointillist.checks import check, share
from pointillist.cli_tables import load_public
from pointillist.errors import PointillistError, Shown, printable
from pointillist.release import Release, add_replicates
from pointillist.showing import asked, shown

__all__ = ["answer", "replicate"]

screen = Console(highlight=False, soft_wrap=True)
notes = Console(stderr=True, highlight=False, soft_wrap=True)

ReleaseFolder = Annotated[Path, typer.Argument(help="A release folder.")]
PublicFile = Annotated[
    str | None, typer.Option("--public", help="The public table that the release was made with, if there was one.")
]


def replicate(
    release: ReleaseFolder,
    replicates: Annotated[int, typer.Option("--replicates", help="The number of simulated runs.")] = 8,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulation.")] = 0,
    public: PublicFile = None,
) -> None:
    """Simulate runs on the model of a release and save them with it, for intervals. Spends nothing."""
    with shown(not asked.quiet, notes, asked.verbose):
        made = Release.load(release).replicate(replicates, seed, load_public(public))
    file = add_replicates(release, made)
    screen.print(printable(f"wrote {file}: {replicates} replicates; no budget was spent"), markup=False)


def answer(
    release: ReleaseFolder,
    where: Annotated[
        str | None, typer.Argument(help="A condition such as 'age >= 65 and region == \"N\"'.", show_default=False)
    ] = None,
    given: Annotated[str | None, typer.Option("--given", help="Only among rows with this condition.")] = None,
    mean: Annotated[str | None, typer.Option("--mean", help="The mean of a column of numbers.")] = None,
    quantile: Annotated[str | None, typer.Option("--quantile", help="COLUMN:SHARE, for example age:0.5.")] = None,
    minus: Annotated[str | None, typer.Option("--minus", help="Subtract the same of rows with this condition.")] = None,
    over: Annotated[str | None, typer.Option("--over", help="Divide by the same of rows with this condition.")] = None,
    level: Annotated[float, typer.Option("--level", help="How often such intervals hold the true answer.")] = 0.95,
    population: Annotated[
        bool, typer.Option("--population", help="Count the sampling error of a population, too.")
    ] = False,
    public: PublicFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer a question about the private table with an interval, from a release. Spends nothing.

    Without --mean or --quantile the answer is the share of the rows for which the condition holds. With --mean or
    --quantile, the condition says which rows are meant.
    """
    share("level", level, 0.95)
    wanted = _asked(where, given, mean, quantile, minus, over)
    found = _with_replicates(release, public)
    answers = [found.answer(one, level, population) for one in wanted]
    if as_json:
        print(json.dumps([_plain(one) for one in answers]))
        return
    _show(answers, level, population)


def _asked(
    where: str | None, given: str | None, mean: str | None, quantile: str | None, minus: str | None, over: str | None
) -> list[Statistic]:
    """The statistics that the options ask for."""
    rule, hint = "must not be given together with --quantile", "leave one of them out"
    check(mean is None or quantile is None, "mean", mean, rule, hint)
    rule = "must not be given together with --minus"
    check(minus is None or over is None, "over", over, rule, hint)
    numbers = mean is not None or quantile is not None
    rule, hint = "must be a condition", "write for example 'age >= 65', or give --mean COLUMN"
    check(where is not None or numbers, "where", where, rule, hint)
    rule, hint = "must not be given with --mean or --quantile", "give the condition itself"
    check(not (numbers and given is not None and where is not None), "given", given, rule, hint)
    first = _statistic(where, given, mean, quantile)
    for other, word in ((minus, "minus"), (over, "over")):
        if other is not None:
            second = (
                _statistic(where, other, mean, quantile) if not numbers else _statistic(other, None, mean, quantile)
            )
            return [first, second, first - second if word == "minus" else first / second]  # type: ignore[operator]
    return [first, Count(where)] if not numbers and given is None and where is not None else [first]


def _statistic(where: str | None, given: str | None, mean: str | None, quantile: str | None) -> Statistic:
    if mean is not None:
        return Mean(mean, where if given is None else given)
    if quantile is not None:
        column, _, text = quantile.rpartition(":")
        rule, hint = "must have the form COLUMN:SHARE", "write for example age:0.5"
        check(bool(column) and _is_number(text), "quantile", quantile, rule, hint)
        return Quantile(column, float(text), where if given is None else given)
    assert where is not None
    return Share(where, given)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _with_replicates(folder: Path, public: str | None) -> Release:
    """A release with replicates; they are made and saved if there are none."""
    found = Release.load(folder)
    if found.replicates is not None:
        return found
    if not asked.quiet:
        notes.print("simulating runs for the intervals, once", markup=False)
    with shown(not asked.quiet, notes, asked.verbose):
        made = found.replicate(public=load_public(public))
    try:
        add_replicates(folder, made)
    except (OSError, PointillistError) as error:  # a folder of somebody else: the answer does not need it
        notes.print(printable(f"the replicates were not saved ({error})"), markup=False)
    return made


def _plain(answer: Answer) -> dict[str, object]:
    return {name: _finite(value) for name, value in asdict(answer).items()}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(answers: list[Answer], level: float, population: bool) -> None:
    grid = Grid("what", "estimate", f"{level:.4g} interval", "from")
    for one in answers:
        bounds = f"{_number(one.low)} to {_number(one.high)}"
        grid.add_row(Shown(one.text.replace("[", "\\[")), _number(one.estimate), bounds, one.source)
    screen.print(grid)
    about = "the population that the rows were drawn from" if population else "the private table"
    screen.print(f"The intervals are for {about}. They come from differentially private values only.")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
