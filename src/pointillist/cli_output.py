"""What commands print about releases and evaluations: tables for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from pointillist.evaluation.judgement import NOTICE, Evaluation
from pointillist.evaluation.report import PublicFloor
from pointillist.evaluation.sections import Section
from pointillist.release import Release

__all__ = ["print_release", "show_evaluation"]

screen = Console(highlight=False, soft_wrap=True)


def print_release(release: Release, folder: Path, seconds: float) -> None:
    """One JSON object about a release that was just written.

    Args:
        release: the release.
        folder: where it is.
        seconds: how long the run took.
    """
    about = release.description
    facts = {
        "folder": str(folder),
        "rows": about.rows,
        "columns": len(release.schema.columns),
        "method": about.method.name,
        "settings": about.method.settings,
        "workload": release.workload.describe(),
        "private": about.privacy.private,
        "epsilon": about.privacy.epsilon,
        "delta": about.privacy.delta,
        "relation": about.privacy.relation,
        "rho": about.privacy.rho,
        "rho_spent": about.privacy.rho_spent,
        **({} if about.privacy.delta_shown is None else {"delta_shown": about.privacy.delta_shown}),
        **({} if about.privacy.with_schema is None else {"with_schema": asdict(about.privacy.with_schema)}),
        "statement": release.statement,
        "seconds": round(seconds, 3),
    }
    print(json.dumps(facts))


def show_evaluation(result: Evaluation, floor: PublicFloor | None) -> None:
    """The sections of an evaluation as tables, with a notice that they are not private.

    Args:
        result: the evaluation.
        floor: how close the public table can come, if one was given.
    """
    screen.print(f"{result.n:,} rows, {result.workload}")
    first, *others = result.sections()
    if floor is not None:
        more = tuple((name, *(f"{v:.5f}" for v in errors.to_dict().values())) for name, errors in floor.lines())
        first = Section(first.title, first.head, (*first.rows, *more), first.note)
    _show(first)
    if floor is not None:
        text = f"No reweighting of the {floor.records:,} public records has a max error below {floor.lower:.5f}"
        screen.print(f"{text} (the best-mixture error, a lower limit for pmw_pub and pep_pub).")
    for section in others:
        screen.print()
        _show(section)
    screen.print()
    screen.print(NOTICE)


def _show(section: Section) -> None:
    grid = Grid(show_header=True)
    for at, name in enumerate(section.head):
        grid.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in section.rows:
        grid.add_row(*(cell.replace("[", "\\[") for cell in row))
    screen.print(section.title, markup=False)
    screen.print(grid)
    if section.note:
        screen.print(section.note, markup=False)
