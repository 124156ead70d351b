"""The experiments: make the runs, merge results of other machines, draw the figures, write the tables."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pointillist.errors import InputError, PointillistError, Shown

if TYPE_CHECKING:
    from experiments.driver import Choice
    from experiments.grid import Run

ENGINES = ("processes", "dask")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    from experiments.grid import NAMES

    whole = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="make the runs that are missing", description="Make the missing runs.")
    run.add_argument("names", nargs="+", metavar="NAME", help=f"all, or some of {', '.join(NAMES)}")
    run.add_argument("--list", action="store_true", help="only list how many runs are missing")
    _choosing(run)
    run.add_argument("--whole", action="store_true", help="the paper's whole grids, not their subsets")
    run.add_argument("--retry", action="store_true", help="also repeat the runs that failed")
    run.add_argument("--limit", type=int, metavar="N", help="at most N runs")
    run.add_argument("--minutes", type=float, metavar="M", help="start no run after M minutes")
    run.add_argument("--workers", type=int, default=1, metavar="N", help="processes on this machine (default 1)")
    run.add_argument("--engine", choices=ENGINES, default="processes", help="default: processes on this machine")
    run.add_argument("--address", metavar="TCP", help="of a Dask scheduler; without it, dask runs on this machine")
    run.add_argument("--results", type=Path, metavar="FILE", help="write to FILE, not to experiments/results.csv")
    drop = commands.add_parser("drop", help="remove runs from the results, when the code behind them has changed")
    _choosing(drop)
    merge = commands.add_parser("merge", help="add the lines of results files from other machines")
    merge.add_argument("files", nargs="+", type=Path, metavar="FILE")
    pack = commands.add_parser("pack", help="pack the tables for a machine without their files or pyarrow")
    pack.add_argument("folder", type=Path, metavar="FOLDER", help="set POINTILLIST_PACKED to it on that machine")
    commands.add_parser("figures", help="draw every figure from the results")
    report = commands.add_parser("report", help="write the tables of docs/ and of experiments/NAME/table.md")
    report.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table is out of date")
    return whole


def _choosing(command: argparse.ArgumentParser) -> None:
    """The options that choose runs."""
    command.add_argument("--datasets", type=_words, metavar="A,B", help="only on these tables")
    command.add_argument("--methods", type=_words, metavar="A,B", help="only these methods")
    command.add_argument("--epsilons", type=_numbers, metavar="A,B", help="only these epsilons")
    command.add_argument("--seeds", type=_whole_numbers, metavar="A,B", help="these seeds instead of the config's")
    command.add_argument("--only", choices=("defaults", "tuned"), help="only our defaults, or only the grids")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    chosen = parser().parse_args(arguments)
    try:
        return _run(chosen) if chosen.command == "run" else _other(chosen)
    except PointillistError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished runs are kept, and the same command continues from there", file=sys.stderr)
        return 130


def _run(chosen: argparse.Namespace) -> int:
    from experiments.driver import Choice, drive, missing, wanted
    from experiments.grid import NAMES

    for option in ("workers", "limit", "minutes"):
        value = getattr(chosen, option)
        if value is not None and value <= 0:
            raise InputError(f"--{option}", value, "must be above 0", "leave it out for the default")
    if chosen.address and chosen.engine != "dask":
        raise InputError("--address", chosen.address, "must go with --engine dask", "add --engine dask")
    choice = Choice(chosen.datasets, chosen.methods, chosen.epsilons, chosen.seeds, chosen.only, chosen.whole,
                    chosen.retry)  # fmt: skip
    names = NAMES if chosen.names == ["all"] else tuple(chosen.names)
    runs = missing(names, choice, chosen.results)[: chosen.limit]
    if chosen.list:
        for line in (*_counted(runs), *_by_method(wanted(names, choice).values(), runs), *_the_rest(names, choice)):
            print(line)
        return 0
    from experiments.results import Results, store
    from experiments.runner import in_processes, on_dask

    engine = in_processes(chosen.workers) if chosen.engine == "processes" else on_dask(chosen.address, chosen.workers)
    results = Results(chosen.results) if chosen.results else store()
    failed = drive(runs, engine, results, 60 * (chosen.minutes or float("inf")))
    if failed:
        print(f"{failed} of the runs failed; the column error of the results has the reason", file=sys.stderr)
    return 0


def _counted(runs: Sequence[Run]) -> list[str]:
    """The missing runs of every program."""
    counts = Counter(run.program for run in runs)
    return [f"{count:5}  {' '.join(word for word in program if word)}" for program, count in counts.items()]


def _by_method(wanted: Iterable[Run], runs: Sequence[Run]) -> list[str]:
    """How many runs of every method are missing, and how many there are; then all."""
    every, left = (Counter(run.method for run in some) for some in (wanted, runs))
    lines = [f"{left[method]:5}  of {count:,} runs of {method}" for method, count in every.items()]
    return [*lines, f"{len(runs):5}  of {every.total():,} runs are missing"]


def _the_rest(names: Sequence[str], choice: Choice) -> list[str]:
    """What the list leaves out: the settings of the paper's grids of which only a part is asked for."""
    from experiments.driver import missing

    if choice.whole:
        return []
    more = len(missing(names, replace(choice, whole=True)))
    return [f"{more:5}  are missing of the paper's whole grids (--whole)"]


def _other(chosen: argparse.Namespace) -> int:
    if chosen.command == "drop":
        from experiments.driver import Choice, drop

        if not chosen.methods:
            raise InputError(
                "--methods", Shown("none"), "must name the methods whose runs are removed", "add --methods auto"
            )
        print(drop(Choice(chosen.datasets, chosen.methods, chosen.epsilons, chosen.seeds, chosen.only)))
        return 0
    if chosen.command == "merge":
        from experiments.driver import merge

        absent = [path for path in chosen.files if not path.is_file()]
        if absent:
            raise InputError("FILE", Shown(str(absent[0])), "must be a results file that exists", "check the name")
        print(merge(chosen.files))
        return 0
    if chosen.command == "pack":
        from experiments.driver import pack

        print(pack(chosen.folder))
        return 0
    if chosen.command == "figures":
        from experiments.figures import draw_all

        draw_all()
        return 0
    from experiments.report import write

    return write(check=chosen.check)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in _words(text))


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in _words(text))


if __name__ == "__main__":
    sys.exit(main())
