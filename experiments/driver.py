"""From the names of experiments to lines in their results files: what is missing, who runs it, where it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.grid import NAMES, Key, Row, Run, key_of, load
from experiments.results import Results, all_results, results_of
from experiments.runner import Engine, Queue
from pointillist.errors import InputError, nearest


@dataclass(frozen=True)
class Choice:
    """Which runs of an experiment: None means all."""

    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    epsilons: tuple[float, ...] | None = None
    seeds: tuple[int, ...] | None = None
    only: str | None = None
    whole: bool = False
    retry: bool = False

    def of(self, runs: Iterable[Run]) -> list[Run]:
        """The runs that are chosen; ``seeds`` takes the place of the config's."""
        chosen = []
        for run in runs:
            tuned = run.parameters != "{}"
            if (
                (self.datasets is None or run.dataset in self.datasets)
                and (self.methods is None or run.method in self.methods)
                and (self.epsilons is None or run.epsilon in self.epsilons)
                and (self.only is None or tuned == (self.only == "tuned"))
            ):
                chosen.append(run)
        if self.seeds is None:
            return chosen
        return [replace(run, seed=seed) for run in dict.fromkeys(replace(run, seed=0) for run in chosen)
                for seed in self.seeds]  # fmt: skip

    def check(self, runs: Sequence[Run]) -> None:
        """Refuse a word that no run has: it is a slip of the pen."""
        given: tuple[tuple[str, tuple[object, ...] | None, Callable[[Run], object]], ...] = (
            ("--datasets", self.datasets, lambda run: run.dataset),
            ("--methods", self.methods, lambda run: run.method),
            ("--epsilons", self.epsilons, lambda run: run.epsilon),
        )
        for option, values, of in given:
            known = dict.fromkeys(str(of(run)) for run in runs)
            for value in values or ():
                if str(value) not in known:
                    raise InputError(option, value, "must occur in the experiments", nearest(str(value), known))


def missing(names: Sequence[str], choice: Choice, results: Path | None = None) -> list[Run]:
    """The runs that are in no results file yet, those of one program in a row."""
    every = [run for name in names for run in load(name).runs(choice.whole).values()]
    choice.check(every)
    done = all_results() | (Results(results).read() if results else {})
    found = {run.key: run for run in choice.of(every)}
    left = [run for key, run in found.items() if key not in done or (choice.retry and done[key]["error"])]
    order = {program: place for place, program in enumerate(dict.fromkeys(run.program for run in left))}
    return sorted(left, key=lambda run: (order[run.program], run.seed, run.epsilon))


def drive(
    names: Sequence[str], runs: Sequence[Run], engine: Engine, results: Path | None, seconds: float = float("inf")
) -> int:
    """Make the runs and write each as soon as it is done; the number of those that failed."""
    if results is None:
        _put(names, all_results().values())  # another experiment may have made a run of this one
    failed = 0
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, speed_estimate_period=1800) as progress:
        task = progress.add_task("runs", total=len(runs))
        for row in engine(Queue(runs, seconds)):
            if results is None:
                _put(names, [row])
            else:
                Results(results).append([row])
            failed += bool(row["error"])
            progress.update(task, advance=1)
            progress.console.print(_told(row), markup=False, highlight=False, soft_wrap=True)
    return failed


def _put(names: Iterable[str], rows: Iterable[Row]) -> tuple[int, set[Key]]:
    """Add lines to every experiment of ``names`` that has their runs; how many were new, and the runs that fitted."""
    rows, new, fitted = list(rows), 0, set()
    for name in names:
        known = _programs(name)
        mine = [row for row in rows if key_of(row)[:-2] in known]
        new += results_of(name).append(mine) if mine else 0
        fitted |= {key_of(row) for row in mine}
    return new, fitted


@cache
def _programs(name: str) -> set[Key]:
    """The programs of an experiment, with the paper's whole grids; any epsilon and seed of them belongs to it."""
    experiment = load(name)
    return {key[:-2] for whole in (False, True) for key in experiment.runs(whole)}


def merge(paths: Sequence[Path]) -> str:
    """Put the lines of other results files where they belong; a sentence about it."""
    rows = [row for path in paths for row in Results(path).read().values()]
    new, fitted = _put(NAMES, rows)
    strange = sum(key_of(row) not in fitted for row in rows)
    return f"{len(rows)} lines read, {new} added to the experiments, {strange} belong to none"


def drop(choice: Choice) -> str:
    """Take the chosen runs out of all results files, since they must be made again; a sentence about it."""
    runs = [run for name in NAMES for whole in (False, True) for run in load(name).runs(whole).values()]
    choice.check(runs)
    keys = {run.key for run in choice.of(runs)}
    lines = sum(results_of(name).drop(keys) for name in NAMES)
    return f"{lines} lines taken out; python -m experiments run all makes their runs again"


def pack(folder: Path) -> str:
    """Write the codes of every table as compressed arrays, for ``POINTILLIST_PACKED``; a sentence about it."""
    from benchmarks.common import pack as write

    from experiments.run import PROJECTIONS

    runs = [run for name in NAMES for run in load(name).runs().values()]
    named = {name for run in runs for name in (run.dataset, run.public) if name}
    tables = sorted({PROJECTIONS[name][0] if name in PROJECTIONS else name for name in named})
    write(folder, tables)
    return f"{', '.join(tables)} are in {folder}"


def _told(row: Row) -> str:
    what = " ".join(row[name] for name in ("dataset", "public", "grouping", "method", "parameters") if row[name])
    outcome = row["error"] or f"max {row['max']} rmse {row['rmse']} in {row['seconds']} s"
    return f"{what} epsilon {row['epsilon']} seed {row['seed']}: {outcome}"
