"""The command `pointillist sample`: more rows from a release, without any budget."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pointillist.checks import between, check
from pointillist.data.parquet import memory_here
from pointillist.data.table import write_file
from pointillist.errors import printable
from pointillist.privacy.curator import MOST_ROWS
from pointillist.release import Release

__all__ = ["check_file", "sample"]

CELL = 24
"""About how many bytes a cell takes while rows are drawn and decoded."""

screen = Console(highlight=False, soft_wrap=True)


def sample(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    rows: Annotated[int, typer.Option("--rows", help="The number of rows.")],
    out: Annotated[Path, typer.Option("--out", help="A new file that ends in .csv or .parquet.")],
    given: Annotated[
        list[str] | None,
        typer.Option("--given", help="COLUMN=VALUE: only rows with this value; repeatable, also for one column."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Draw more rows from a release, also on a condition. Spends nothing."""
    check_file(out, release, force)
    between("rows", rows, 1, MOST_ROWS, "give for example 1000")
    found = Release.load(release)
    fits = rows * len(found.schema.columns) * CELL <= memory_here()
    check(fits, "rows", rows, "must be rows that fit into memory", "draw fewer at a time, each with another --seed")
    drawn = found.sample_values(rows, seed, condition(given or []))
    part = out.with_name(f".{out.name}.part{out.suffix}")
    try:
        write_file(drawn, part, found.schema)
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)
    screen.print(printable(f"wrote {out}: {drawn.num_rows:,} rows from {release}; no budget was spent"), markup=False)


def check_file(
    out: Path, release: Path, force: bool, endings: tuple[str, ...] = (".csv", ".parquet"), name: str = "out"
) -> None:
    """Refuse a file that cannot be written, or must not be.

    Args:
        out: the file.
        release: the folder of the release, which must stay as it is.
        force: whether a file that is there may be replaced.
        endings: how its name may end.
        name: the name of the parameter in error messages.
    """
    shown = str(out)
    check(out.name.endswith(endings), name, shown, f"must end in {' or '.join(endings)}", "rename it")
    inside = out.resolve().is_relative_to(release.resolve())
    check(not inside, name, shown, "must not lie in the folder of the release", "choose another folder")
    hint = "choose another file, or overwrite it with --force"
    check(force or not out.exists(), name, shown, "must not exist already", hint)
    good = out.absolute().parent.is_dir() and not out.is_dir()
    check(good, name, shown, "must be a file in an existing folder", "make the folder first, or choose another")


def condition(pairs: list[str]) -> dict[str, list[str | None]] | None:
    """A condition from texts COLUMN=VALUE; a column that is named twice may have either value.

    Args:
        pairs: the texts; an empty value means missing.
    """
    found: dict[str, list[str | None]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        good = bool(name and equals)
        check(good, "given", pair, "must have the form COLUMN=VALUE", "write for example region=N")
        found.setdefault(name.strip(), []).append(value or None)
    return found or None
