"""What benchmarks share: timing, datasets, tables, and one run of a method with its true errors."""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pointillist import Table
from pointillist.algorithms import get_method
from pointillist.data.neighbours import Relation
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.evaluation.errors import Errors, compare
from pointillist.evaluation.report import fractions
from pointillist.framework import Algorithm, Log, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.queries.workload import Workload


def markdown(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A titled Markdown table."""
    lines = [f"# {title}", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join([*lines, "", note]).rstrip() + "\n"


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """The best time of several calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


@cache
def table_of(name: str) -> Table:
    """A dataset from its files, or packed in the folder that ``POINTILLIST_PACKED`` names."""
    packed = os.environ.get("POINTILLIST_PACKED")
    if packed:
        with np.load(Path(packed) / f"{name}.npz") as arrays:
            names, sizes, codes = arrays["names"], arrays["sizes"], arrays["codes"]
        columns = [Categorical(str(n), tuple(range(int(size)))) for n, size in zip(names, sizes, strict=True)]
        return Table(Schema(tuple(columns)), tuple(codes))
    from pointillist.data.datasets import load

    return load(name)


def pack(folder: Path, names: Iterable[str]) -> None:
    """The codes of datasets as compressed arrays, for a machine that has neither their files nor pyarrow."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = table_of(name)
        domain = table.domain
        np.savez_compressed(folder / f"{name}.npz", names=domain.names, sizes=domain.sizes, codes=np.stack(table.codes))


@dataclass(frozen=True)
class Made:
    """What a run made, and its seconds."""

    algorithm: Algorithm[Any]
    params: Any
    log: Log
    seconds: float

    def answers(self, workload: Workload) -> np.ndarray:
        """The model's answers."""
        return self.algorithm.family.answers(self.params, workload)


def run_once(
    table: Table, workload: Workload, method: str, settings: Mapping[str, Any], epsilon: float, seed: int,
    public: PublicTable | None = None, relation: Relation = Relation.REPLACE, zcdp: bool = False,
) -> Made:  # fmt: skip
    """One run with delta = 1/n^2, under seeded noise of the right size; ``zcdp`` forbids the Gaussian account."""
    chosen = get_method(method)
    algorithm = chosen.algorithm(workload, chosen.configure(settings), public)
    budget, noise, source = (
        Budget(epsilon, 1 / len(table) ** 2, relation),
        InsecureSeededNoise(seed),
        TableSource(table),
    )
    measurable = algorithm.measurable or workload
    if zcdp:
        curator = Curator(source, measurable, budget, noise)
    else:
        curator = Curator.for_schedule(source, measurable, budget, algorithm.schedule, noise)
    start = time.perf_counter()
    params, log = run(algorithm, curator, seed)
    return Made(algorithm, params, log, time.perf_counter() - start)


def run_method(
    table: Table, workload: Workload, method: str, settings: Mapping[str, Any], epsilon: float, seed: int
) -> tuple[Errors, float]:
    """True errors of a method's model, and its seconds."""
    made = run_once(table, workload, method, settings, epsilon, seed)
    return compare(workload, fractions(table, workload), made.answers(workload)), made.seconds


Case = tuple[str, str, str, float, int]
"""Two names that say on what, a method, epsilon and a seed: the first five columns of a file of runs."""


def runs_in(path: Path) -> dict[Case, dict[str, str]]:
    """The runs in a file, by what was run."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        on, beside, method, epsilon, seed = list(row.values())[:5]
        found[on, beside, method, float(epsilon), int(seed)] = row
    return found


def made_on(results: Mapping[Case, Mapping[str, str]]) -> str:
    """On which machines the runs in a file were made: not always the one that writes the table."""
    return f"The runs were made on: {'; '.join(sorted({row['machine'] for row in results.values()}))}."


def fill(path: Path, fields: Sequence[str], cases: Iterable[Case], run: Callable[[Case], Sequence[object]]) -> None:
    """Run what is not in the file yet; a line each, as soon as it is there."""
    for case in cases:
        if case in runs_in(path):
            continue
        row = run(case)
        new = not path.is_file()
        with path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([fields, row] if new else [row])
        print(*row, file=sys.stderr, flush=True)
