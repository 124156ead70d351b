"""The command `pointillist sample`: more rows from a release, without any budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pointillist.checks import at_least, between, check, path_of
from pointillist.data.table import write_file
from pointillist.privacy.curator import MOST_ROWS
from pointillist.release import Release

__all__ = ["sample"]

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
    target = path_of("out", out)
    check(target.name.endswith((".csv", ".parquet")), "out", str(out), "must end in .csv or .parquet", "rename it")
    hint = "choose another file, or overwrite it with --force"
    check(force or not target.exists(), "out", str(out), "must not exist already", hint)
    good = target.absolute().parent.is_dir() and not target.is_dir()
    check(good, "out", str(out), "must be a file in an existing folder", "make the folder first, or choose another")
    between("rows", rows, 1, MOST_ROWS, "give for example 1000")
    at_least("seed", seed, 0)
    drawn = Release.load(release).sample_values(rows, seed, condition(given or []))
    write_file(drawn, target)
    screen.print(f"wrote {target}: {drawn.num_rows:,} rows from {release}; no budget was spent", markup=False)


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
