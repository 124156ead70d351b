"""The default beside AIM on many unlike tables with small and large budgets: ratios of their errors.

The tables are parts of the named datasets: 2,000 to 50,000 rows, 8 to 50 columns, with skewed, binary and wide columns.
Runs are under add-remove with delta = 1/n^2, fixed defaults and seeded noise; errors are those of the synthetic rows.

Environment: POINTILLIST_SUITE_RUNS names a CSV file that finished runs are read from and appended to, so that a long
comparison can go on, here or elsewhere. POINTILLIST_SUITE_EPSILONS, _SEEDS, _TABLES and _METHODS narrow it down;
POINTILLIST_SUITE_WORKERS runs several at a time, and 0 of them only compares what is finished. Without seeds of its own
it makes one run of each. POINTILLIST_SUITE_MACHINE says what the runs are made on.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from measuring.markdown import section
from measuring.runs import run_once

from pointillist import Categorical, Schema, Table, load
from pointillist.evaluation.report import fractions
from pointillist.queries.texts import parse_workload
from pointillist.queries.workload import Workload

EPSILONS = (0.02, 0.1, 0.25, 1.0, 10.0)
SMALL = 0.25
"""Up to this epsilon a budget is called small."""
METHODS = ("auto", "aim")
FIELDS = ("table", "epsilon", "method", "seed", "max", "rmse", "tvd", "seconds", "machine")


@dataclass(frozen=True)
class Part:
    """A part of a dataset.

    Attributes:
        dataset: its name.
        rows: how many rows are drawn.
        columns: which columns: all of them if empty.
        widest: without columns, those with at most this many values ...
        most: ... and of those the first ones.
        binary: whether columns are cut in two at a random quantile.
        workload: what is asked for.
    """

    dataset: str
    rows: int
    columns: tuple[str, ...] = ()
    widest: int = 10**9
    most: int = 10**9
    binary: bool = False
    workload: str = "marginals:3"


FEW = (
    "SEX", "NATIVITY", "CIT", "LANX", "ENG", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "DEAR", "DEYE", "DREM", "DPHY",
    "MIL", "FER", "MULTG", "TYPEHUGQ", "TEN", "MAR", "RAC1P", "HHL", "HISP", "COW",
)  # fmt: skip
SURVEY = (
    "AGEP", "SCHL", "MAR", "ESR", "COW", "WKHP", "JWTRNS", "PINCP", "POVPIP", "MIGSP", "TEN", "MV", "BDSP", "RMSP",
    "YRBLT", "BLD", "HHT", "NP", "SEX", "RAC1P", "PRIVCOV", "DIS", "OCPIP",
)  # fmt: skip
WIDE = (
    "AGEP", "SEX", "RAC1P", "SCHL", "MAR", "ESR", "INDP", "OCCP", "COW", "WKHP", "PINCP", "HINCP", "TEN", "VALP",
    "HHT",
)  # fmt: skip
PARTS = {
    "br2000": Part("br2000", 38_000),
    "uk2011": Part("uk2011", 50_000),
    "uk2011, few rows": Part("uk2011", 4_000),
    "adult": Part("adult", 43_944),
    "adult, few rows": Part("adult", 5_000),
    "adult-star, 8 columns": Part("adult-star", 20_000, widest=42, most=8),
    "loans, 14 columns": Part("loans", 20_000, widest=36, most=14),
    "acs-oh, few values": Part("acs-oh", 19_000, FEW),
    "acs-oh, survey": Part("acs-oh", 27_000, SURVEY),
    "acs-ny, wide columns": Part("acs-ny", 50_000, WIDE),
    "acs-ny, binary": Part("acs-ny", 22_000, SURVEY[:16], binary=True),
    "acs-pa, 8 columns": Part("acs-pa", 2_000, ("AGEP", "SEX", "RAC1P", "SCHL", "MAR", "PINCP", "WKHP", "TEN")),
    "acs-pa, 50 columns": Part("acs-pa", 20_000, most=50, workload="marginals:2"),
    "demo": Part("demo", 20_000),
}


def table_of(part: Part) -> Table:
    """The part of the dataset, always the same."""
    table = load(part.dataset)
    rng = np.random.default_rng(7)
    names = part.columns or [
        name for name, size in zip(table.domain.names, table.domain.sizes, strict=True) if size <= part.widest
    ]
    table = table.project(list(names)[: part.most])
    chosen = np.zeros(len(table), bool)
    chosen[rng.permutation(len(table))[: part.rows]] = True
    table = table.take(chosen)
    return _binary(table, rng) if part.binary else table


def _binary(table: Table, rng: np.random.Generator) -> Table:
    codes = [np.asarray(column, np.int64) for column in table.codes]
    cut = [(column >= np.quantile(column, rng.uniform(0.4, 0.93))).astype(np.int64) for column in codes]
    return Table(Schema(tuple(Categorical(name, (0, 1)) for name in table.domain.names)), tuple(cut))


Key = tuple[str, float, str, int]
Errors = tuple[float, float, float, float]
Found = dict[Key, tuple[Errors, str]]
"""Errors and seconds of finished runs, and the machine that they were made on."""


def make(key: Key) -> Errors:
    """One run: max, rmse and tvd of its rows, and its seconds.

    Args:
        key: table, epsilon, method and seed.
    """
    name, epsilon, method, seed = key
    table = table_of(PARTS[name])
    workload = parse_workload(PARTS[name].workload, table.schema, len(table))
    started = time.perf_counter()
    made = run_once(table, workload, method, {}, epsilon, seed, relation="add-remove")
    seconds = time.perf_counter() - started
    return (*errors(table, made.rows(), workload), seconds)


def errors(table: Table, rows: Table, workload: Workload) -> tuple[float, float, float]:
    """Max, rmse and tvd of some rows.

    Args:
        table: the real table.
        rows: synthetic rows.
        workload: the queries.
    """
    off = fractions(table, workload) - fractions(rows, workload)
    tvd = [np.abs(part).sum() / 2 for part in np.split(off, workload.offsets[1:-1])]
    return float(np.abs(off).max()), float(np.sqrt(np.mean(off**2))), float(np.mean(tvd))


def read(path: Path) -> Found:
    """Finished runs.

    Args:
        path: a CSV file; none if it is not there.
    """
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["table"], float(row["epsilon"]), row["method"], int(row["seed"])): (
                (float(row["max"]), float(row["rmse"]), float(row["tvd"]), float(row["seconds"])), row["machine"],
            )
            for row in csv.DictReader(file)
        }  # fmt: skip


def _append(path: Path, key: Key, found: Errors, machine: str) -> None:
    new = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        writer.writerow([*key, *(f"{value:.6g}" for value in found), machine])


def _wanted(name: str, default: Sequence[str]) -> list[str]:
    """A narrower choice from the environment: items with ";" between them."""
    text = os.environ.get(f"POINTILLIST_SUITE_{name}", "")
    return [item.strip() for item in text.split(";") if item.strip()] or list(default)


def _made(missing: list[Key], keep: Callable[[Key, Errors], None]) -> None:
    workers = int(os.environ.get("POINTILLIST_SUITE_WORKERS", "1"))
    if workers == 0:
        return
    if workers == 1:
        for key in missing:
            keep(key, make(key))
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        tasks = {pool.submit(make, key): key for key in missing}
        for task in as_completed(tasks):
            keep(tasks[task], task.result())


def run() -> str:
    """Make the missing runs, and compare."""
    names, methods = _wanted("TABLES", list(PARTS)), _wanted("METHODS", METHODS)
    epsilons = [float(text) for text in _wanted("EPSILONS", list(map(str, EPSILONS)))]
    seeds = [int(text) for text in _wanted("SEEDS", ["0"])]
    path = os.environ.get("POINTILLIST_SUITE_RUNS")
    machine = os.environ.get("POINTILLIST_SUITE_MACHINE", f"{os.cpu_count()} CPU cores")
    found = read(Path(path)) if path else {}
    every = [(n, e, m, s) for s in seeds for n in names for e in epsilons for m in methods]

    def keep(key: Key, errors: Errors) -> None:
        found[key] = errors, machine
        if path:
            _append(Path(path), key, errors, machine)
        print(*key, *(f"{value:.4g}" for value in errors), file=sys.stderr, flush=True)

    _made([key for key in every if key not in found], keep)
    return report(found)


def report(found: Found) -> str:
    """The tables of ratios.

    Args:
        found: finished runs.
    """
    mean = partial(_mean, found)
    cells = [(name, epsilon) for name in PARTS for epsilon in EPSILONS if mean(name, epsilon, "auto") is not None]
    both = [(n, e) for n, e in cells if mean(n, e, "aim") is not None]
    ratios = {cell: _ratios(mean(*cell, "auto"), mean(*cell, "aim")) for cell in both}
    lines = []
    for name in PARTS:
        row = [_cell(mean(name, e, "auto"), ratios.get((name, e))) for e in EPSILONS]
        if any(row):
            part = PARTS[name]
            lines.append((name, f"{part.rows:,}", part.workload, *row))
    first = section(
        "The default beside AIM",
        ("table", "rows", "workload", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)),
        lines,
        "tvd of the default's rows, then its ratio to AIM's tvd and, in brackets, the ratio of the largest errors; "
        "below 1 the default is better. Add-remove, delta = 1/n^2, fixed defaults, seeded noise, means over "
        f"{_runs(found)}.",
    )
    wins = [cell for cell, ratio in ratios.items() if ratio[0] <= 1]
    few, many = [c for c in both if c[1] <= SMALL], [c for c in both if c[1] > SMALL]
    labels = f"epsilon up to {SMALL:g}", f"epsilon above {SMALL:g}"
    summary = [
        (label, len(some), *_summary([ratios[c] for c in some]))
        for label, some in zip(labels, (few, many), strict=True)
        if some
    ]
    second = section(
        "All tables together",
        ("budgets", "cases", "tvd: geometric mean", "max", "seconds", "tvd: worst", "max: worst"),
        summary,
        f"Ratios to AIM's. The default has the smaller tvd in {len(wins)} of {len(both)} cases. Where AIM wins: "
        + ("; ".join(f"{n} at {e:g} ({ratios[n, e][0]:.2f})" for n, e in both if (n, e) not in wins) or "nowhere")
        + f". Seconds are of other machines where these differ: {_machines(found)}. An empty cell was not run, and a "
        "cell without ratios has no run of AIM.",
        level=2,
    )
    return f"{first}\n{second}"


def _mean(found: Found, name: str, epsilon: float, method: str) -> np.ndarray | None:
    runs = [errors for key, (errors, _) in found.items() if key[:3] == (name, epsilon, method)]
    return np.mean(runs, axis=0) if runs else None


def _ratios(ours: np.ndarray | None, theirs: np.ndarray | None) -> tuple[float, float, float]:
    """Of tvd, largest error and seconds."""
    assert ours is not None
    assert theirs is not None
    return ours[2] / theirs[2], ours[0] / theirs[0], ours[3] / theirs[3]


def _machines(found: Found) -> str:
    """The machines of each method."""
    by_method = {method: sorted({m for key, (_, m) in found.items() if key[2] == method}) for method in METHODS}
    return "; ".join(f"{method} on {' and '.join(machines)}" for method, machines in by_method.items() if machines)


def _cell(ours: np.ndarray | None, ratio: tuple[float, float, float] | None) -> str:
    if ours is None:
        return ""
    return f"{ours[2]:.4f}" + ("" if ratio is None else f", {ratio[0]:.2f} ({ratio[1]:.2f})")


def _summary(ratios: list[tuple[float, float, float]]) -> list[str]:
    """Geometric means of the three ratios, and the worst of the first two."""
    means = [f"{_geometric(column):.3f}" for column in zip(*ratios, strict=True)]
    return [*means, *(f"{max(ratio[k] for ratio in ratios):.2f}" for k in range(2))]


def _geometric(values: Iterable[float]) -> float:
    return math.exp(float(np.mean([math.log(value) for value in values])))


def _runs(found: Found) -> str:
    counts = {
        sum(1 for key in found if key[:3] == one) for one in {key[:3] for key in found if key[2] in METHODS}
    }  # fmt: skip
    return f"{min(counts)} run(s)" if len(counts) == 1 else f"{min(counts)} to {max(counts)} runs"
