"""From the names of experiments to lines in the results file: which runs are missing, and making them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.grid import NAMES, Key, Row, Run, load
from experiments.results import Results, store
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
        """The chosen runs; ``seeds`` replaces those of the config."""
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
        """Refuse a word that no run has: it is a typing error."""
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


def wanted(names: Sequence[str], choice: Choice) -> dict[Key, Run]:
    """The chosen runs of the experiments by key, made or not."""
    every = [run for name in names for run in load(name).runs(choice.whole).values()]
    choice.check(every)
    return {run.key: run for run in choice.of(every)}


def missing(names: Sequence[str], choice: Choice, results: Path | None = None) -> list[Run]:
    """The runs that are in no results file yet, grouped by program."""
    done = store().read() | (Results(results).read() if results else {})
    found = wanted(names, choice)
    left = [run for key, run in found.items() if key not in done or (choice.retry and done[key]["error"])]
    order = {program: place for place, program in enumerate(dict.fromkeys(run.program for run in left))}
    return sorted(left, key=lambda run: (order[run.program], run.seed, run.epsilon))


def drive(runs: Sequence[Run], engine: Engine, results: Results, seconds: float = float("inf")) -> int:
    """Make the runs, write each as soon as it is done, and return how many failed."""
    failed = 0
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    try:
        with Progress(*columns, console=console, speed_estimate_period=1800) as progress:
            task = progress.add_task("runs", total=len(runs))
            for row in engine(Queue(runs, seconds)):
                results.append([row])
                failed += bool(row["error"])
                progress.update(task, advance=1)
                progress.console.print(_told(row), markup=False, highlight=False, soft_wrap=True)
    finally:
        results.sort()
    return failed


def merge(paths: Sequence[Path]) -> str:
    """Add the lines of other results files that belong to an experiment; a sentence about it."""
    programs = set().union(*(load(name).programs() for name in NAMES))
    rows = [(key, row) for path in paths for key, row in Results(path).read().items()]
    known = [row for key, row in rows if key[:-2] in programs]
    file = store()
    new = file.append(known)
    file.sort()
    return f"{len(rows)} lines read, {new} added, {len(rows) - len(known)} belong to no experiment"


def drop(choice: Choice) -> str:
    """Remove the chosen runs, which must be made again; a sentence about it."""
    runs = [run for name in NAMES for whole in (False, True) for run in load(name).runs(whole).values()]
    choice.check(runs)
    lines = store().drop({run.key for run in choice.of(runs)})
    return f"{lines} lines removed; python -m experiments run all makes their runs again"


def pack(folder: Path) -> str:
    """Write the codes of every table as compressed arrays, for ``POINTILLIST_PACKED``; a sentence about it."""
    from measuring.data import pack as write

    runs = [run for name in NAMES for run in load(name).runs().values()]
    tables = write(folder, {name for run in runs for name in (run.dataset, run.public) if name})
    return f"{', '.join(tables)} are in {folder}"


def _told(row: Row) -> str:
    what = " ".join(row[name] for name in ("dataset", "public", "grouping", "method", "parameters") if row[name])
    outcome = row["error"] or f"max {row['max']} rmse {row['rmse']} in {row['seconds']} s"
    return f"{what} epsilon {row['epsilon']} seed {row['seed']}: {outcome}"
