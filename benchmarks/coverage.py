"""How often intervals hold the true answers, by the size of the answer, and how wide they are.

Releases of all pairs are made with seeded noise, eight replicates each. Asked are: the cells of the workload
("measured"), of triples ("unmeasured"), ranges of pairs, means, also on a condition, and the slopes of regressions of
every column on two others, on imputed tables. The truth is that of the real table, so nothing here is private.

Finished runs are in benchmarks/results/coverage.csv. Runs are added to it, so that more seeds can follow later.
Environment: POINTILLIST_COVERAGE_TABLES, _EPSILONS, _KINDS and _SEEDS say which runs are made, with ";" between them;
without _SEEDS, what is finished is only shown.
"""

from __future__ import annotations

import csv
import itertools
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measuring.markdown import section, table
from scipy.stats import norm

from benchmarks.suite import Part
from benchmarks.suite import table_of as part_of
from pointillist import Categorical, Release, Schema, Table, Workload, parse_workload, synthesize
from pointillist.answers import Mean, combine, intervals
from pointillist.answers.measured import FromNoise
from pointillist.checks import check
from pointillist.data.domain import Domain
from pointillist.evaluation.report import fractions
from pointillist.queries.base import Queries

TABLES = {
    "adult-reduced": Part("adult-reduced", 43_944),
    "demo": Part("demo", 20_000),
    "br2000, 6 columns": Part("br2000", 20_000, widest=20, most=6),
    "uk2011, 6 columns": Part("uk2011", 30_000, widest=20, most=6),
    "loans, 6 columns": Part("loans", 15_000, widest=12, most=6),
}
EPSILONS = (0.1, 0.5, 1.0)
REPLICATES, LEVEL = 8, 0.95
KINDS = ("measured cells", "unmeasured cells", "ranges", "means", "regression slopes")
CLASSES = ("0", "below .001", ".001 to .01", "above .01", "any")
FIELDS = ("table", "epsilon", "seed", "kind", "size", "asked", "held", "width", "noise_width", "seconds")
RESULTS = Path(__file__).parent / "results"
MOST_TRIPLES = 15
RANGES = "ranges:2:10"


class Line(NamedTuple):
    """What was found for the answers of one kind and size in one run.

    Attributes:
        table, epsilon, seed: the run.
        kind, size: which answers.
        asked, held: how many there are, and how many lie in their intervals.
        width: the mean width of the intervals.
        noise_width: that of the intervals that the noise alone gives, where there are any; else NaN.
        seconds: what the run took, and its replicates.
    """

    table: str
    epsilon: float
    seed: int
    kind: str
    size: str
    asked: int
    held: int
    width: float
    noise_width: float
    seconds: float


def with_numbers(given: Table) -> Table:
    """The same table with numbers as labels, so that every column has a mean.

    Args:
        given: the table.
    """
    return Table(numbered(given.domain), given.codes)


def numbered(domain: Domain, ordered: bool = False) -> Schema:
    """Columns of these sizes, with numbers as labels.

    Args:
        domain: their names and sizes.
        ordered: whether the numbers have an order, for ranges.
    """
    pairs = zip(domain.names, domain.sizes, strict=True)
    return Schema(tuple(Categorical(name, tuple(range(size)), ordered=ordered) for name, size in pairs))


def class_of(true: np.ndarray) -> np.ndarray:
    """The size class of each true answer."""
    return np.asarray(np.digitize(true, [1e-12, 0.001, 0.01]))


def made(real: Table, epsilon: float, seed: int) -> Release:
    """A release of all pairs, with replicates.

    Args:
        real: the table.
        epsilon: the budget.
        seed: that of the noise and of everything else.
    """
    found = synthesize(
        real, epsilon=epsilon, workload="marginals:2", seed=seed, insecure_noise_seed=seed, progress=False
    )
    return found.replicate(REPLICATES, seed, progress=False)


def of_shares(release: Release, real: Table, queries: Sequence[Queries]) -> Iterator[tuple[str, np.ndarray]]:
    """For each size class its name, and lines of (held, width, noise width) of its answers.

    Args:
        release: the release.
        real: the real table.
        queries: what is asked.
    """
    true = fractions(real, Workload(real.domain, tuple(queries)))
    _, low, high = intervals(release, queries, LEVEL)
    slack = 1e-12  # a share that is exactly 0 or 1 in the table and in the interval
    held = (low - slack <= true) & (true <= high + slack)
    from_noise = FromNoise(release.schema.domain, release.log)
    plain = np.concatenate([noise_widths(from_noise, one) for one in queries])
    every = np.stack([held, high - low, plain], axis=1)
    for n, name in enumerate(CLASSES[:4]):
        if (class_of(true) == n).any():
            yield name, every[class_of(true) == n]


def noise_widths(from_noise: FromNoise, queries: Queries) -> np.ndarray:
    """The widths of the intervals that the noise of the measurements alone gives; NaN where there are none.

    Args:
        from_noise: the measurements of a release.
        queries: what is asked.
    """
    known = from_noise.of(queries)
    return np.full(queries.size, np.nan) if known is None else 2 * norm.ppf((1 + LEVEL) / 2) * known.sigma


def of_means(release: Release, real: Table) -> np.ndarray:
    """Lines of (held, width, NaN) for the means of all columns, alone and given the first value of another one.

    Args:
        release: the release.
        real: the real table.
    """
    found, names = [], real.domain.names
    asked = [Mean(name) for name in names]
    asked += [Mean(name, given=f"`{other}` == 0") for name, other in itertools.pairwise(names)]
    codes = {name: np.asarray(one, np.float64) for name, one in zip(names, real.codes, strict=True)}
    for one in asked:
        rows = codes[one.column]
        if one.given is not None:
            rows = rows[codes[one.given.split("`")[1]] == 0]
        if len(rows) > 0:
            answer = release.answer(one, LEVEL)
            found.append((answer.low <= rows.mean() <= answer.high, answer.high - answer.low, np.nan))
    return np.array(found, np.float64)


def slopes(given: Table) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of least-squares regressions of every column on the next two, and their variances.

    Args:
        given: a table.
    """
    codes = [np.asarray(one, np.float64) for one in given.codes]
    found = [_slopes(one, codes[(n + 1) % len(codes)], codes[(n + 2) % len(codes)]) for n, one in enumerate(codes)]
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])


def _slopes(target: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    design = np.stack([np.ones(len(target)), *others], axis=1)
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ design.T @ target
    rest = target - design @ found
    return found[1:], np.diag(inverse)[1:] * float(rest @ rest) / (len(target) - len(found))


def of_slopes(release: Release, real: Table) -> np.ndarray:
    """Lines of (held, width, NaN) for the slopes of regressions on imputed tables.

    Args:
        release: the release.
        real: the real table.
    """
    true = slopes(real)[0]
    parts = [slopes(one) for one in release.datasets(REPLICATES)]
    found = combine([one for one, _ in parts], [two for _, two in parts], LEVEL, population=False)
    held = (found.low <= true) & (true <= found.high)
    return np.stack([held, found.high - found.low, np.full(len(true), np.nan)], axis=1)


def judged(name: str, epsilon: float, seed: int, kinds: Collection[str] = KINDS) -> list[Line]:
    """One run.

    Args:
        name: the table.
        epsilon: the budget.
        seed: the seed.
        kinds: what is asked.
    """
    real = with_numbers(part_of(TABLES[name]))
    started = time.perf_counter()
    release = made(real, epsilon, seed)
    seconds = time.perf_counter() - started
    triples = parse_workload(f"marginals:3:{MOST_TRIPLES}", real.schema, len(real)).queries
    ranges = parse_workload(RANGES, numbered(real.domain, ordered=True), len(real)).queries
    found: list[tuple[str, str, np.ndarray]] = []
    for kind, queries in zip(KINDS[:3], (release.workload.queries, triples, ranges), strict=True):
        found += [(kind, *one) for one in of_shares(release, real, queries)] if kind in kinds else []
    for kind, asked in zip(KINDS[3:], (of_means, of_slopes), strict=True):
        found += [(kind, "any", asked(release, real))] if kind in kinds else []
    lines = []
    for kind, size, rows in found:
        noise = rows[:, 2]
        width = float(noise[np.isfinite(noise)].mean()) if np.isfinite(noise).any() else float("nan")
        held = int(rows[:, 0].sum())
        lines.append(Line(name, epsilon, seed, kind, size, len(rows), held, float(rows[:, 1].mean()), width, seconds))
    return lines


def read(path: Path) -> list[Line]:
    """The lines of finished runs; none if there is no file.

    Args:
        path: a CSV file.
    """
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_line(row) for row in csv.DictReader(file)]


def _line(row: dict[str, str]) -> Line:
    run = row["table"], float(row["epsilon"]), int(row["seed"])
    found = int(row["asked"]), int(row["held"])
    return Line(*run, row["kind"], row["size"], *found, *(float(row[name]) for name in FIELDS[7:]))


def append(path: Path, lines: Iterable[Line]) -> None:
    """Add the lines of a finished run.

    Args:
        path: a CSV file, which is made if it is not there.
        lines: the lines.
    """
    new = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        writer.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in line] for line in lines)


def _wanted(name: str, default: Sequence[str]) -> list[str]:
    text = os.environ.get(f"POINTILLIST_COVERAGE_{name}", "")
    return [item.strip() for item in text.split(";") if item.strip()] or list(default)


def make_missing(path: Path) -> None:
    """Make the runs that are asked for and not finished, each appended when it is done.

    Args:
        path: the CSV file.
    """
    kinds = _wanted("KINDS", KINDS)
    check(set(kinds) <= set(KINDS), "POINTILLIST_COVERAGE_KINDS", ";".join(kinds), f"must be of {KINDS}", "correct it")
    done = {(one.table, one.epsilon, one.seed, one.kind) for one in read(path)}
    epsilons = [float(text) for text in _wanted("EPSILONS", list(map(str, EPSILONS)))]
    for seed, name, epsilon in itertools.product(_wanted("SEEDS", ()), _wanted("TABLES", list(TABLES)), epsilons):
        key = (name, epsilon, int(seed))
        left = [kind for kind in kinds if (*key, kind) not in done]
        if left:
            append(path, judged(*key, left))


def share(lines: Sequence[Line]) -> float:
    """The share of the answers that lie in their intervals.

    Args:
        lines: some lines.
    """
    return sum(one.held for one in lines) / sum(one.asked for one in lines)


def summary(lines: Sequence[Line], by: Sequence[object], pick: str) -> list[list[str]]:
    """Rows of a table: kind and size, then the coverage for each value of a column, and in all.

    Args:
        lines: finished runs.
        by: the values.
        pick: the column.
    """
    rows = []
    for kind, size in itertools.product(KINDS, CLASSES):
        own = [one for one in lines if (one.kind, one.size) == (kind, size)]
        if own:
            parts = [[one for one in own if getattr(one, pick) == value] for value in by]
            shares = [f"{share(part):.3f}" if part else "" for part in parts]
            rows.append([kind, size, f"{sum(one.asked for one in own):,}", *shares, f"{share(own):.3f}"])
    return rows


def widths(lines: Sequence[Line]) -> list[list[object]]:
    """Rows of a table: the mean widths of the intervals, and of those of the noise alone.

    Args:
        lines: finished runs.
    """
    rows: list[list[object]] = []
    for kind, epsilon in itertools.product(KINDS[:3], sorted({one.epsilon for one in lines})):
        cells: list[object] = [kind, f"{epsilon:g}"]
        for size in CLASSES[:4]:
            own = [one for one in lines if (one.kind, one.size, one.epsilon) == (kind, size, epsilon)]
            if not own:
                cells.append("")
                continue
            weights = [one.asked for one in own]
            width = np.average([one.width for one in own], weights=weights)
            plain = np.average([one.noise_width for one in own], weights=weights)
            cells.append(f"{width:.5f}" + (f" / {plain:.5f}" if np.isfinite(plain) else ""))
        rows.append(cells)
    return rows


def run() -> str:
    """Make the runs that are asked for, and show all that are finished."""
    path = RESULTS / "coverage.csv"
    make_missing(path)
    lines = read(path)
    if not lines:
        raise ImportError("no run is finished: name seeds in POINTILLIST_COVERAGE_SEEDS")
    epsilons = sorted({one.epsilon for one in lines})
    names = list(dict.fromkeys(one.table for one in lines))
    runs = {(one.table, one.epsilon, one.seed) for one in lines}
    counts = "; ".join(
        f"{name}: {', '.join(f'{sum(r[:2] == (name, e) for r in runs)} at {e:g}' for e in epsilons)}" for name in names
    )
    sloped = len({(one.table, one.epsilon, one.seed) for one in lines if one.kind == KINDS[4]})
    note = (
        f"The share of true answers in intervals of level {LEVEL:g}, by the size of the true answer (a fraction of the "
        f"rows). Workload: all pairs; {REPLICATES} replicates; seeded noise; replace, delta = 1/n^2. Runs by table and "
        f"epsilon: {counts}. Unmeasured cells are those of {MOST_TRIPLES} triples. Slopes are those of "
        "regressions of every column on the next two, on imputed tables, by Rubin's rules for the private table; "
        f"they were asked in {sloped} of the {len(runs)} runs."
    )
    heads = ("answers", "size", "asked", *(f"epsilon {one:g}" for one in epsilons), "all")
    text = section("Coverage", heads, summary(lines, epsilons, "epsilon"), note)
    by_table = table(("answers", "size", "asked", *names, "all"), summary(lines, names, "table"))
    wide = table(("answers", "epsilon", *CLASSES[:4]), widths(lines))
    plot(lines, RESULTS / "coverage.svg")
    return (
        f"{text}\n## By table\n\n{by_table}\n\n## Widths\n\nMean width of the intervals; behind the stroke that of the "
        f"intervals that the noise of the measurements alone gives.\n\n{wide}\n"
    )


def plot(lines: Sequence[Line], path: Path) -> None:
    """A picture of the coverage by kind, size and epsilon.

    Args:
        lines: finished runs.
        path: the SVG file.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "coverage"
    groups = [(k, s) for k, s in itertools.product(KINDS, CLASSES) if any((o.kind, o.size) == (k, s) for o in lines)]
    figure, axis = plt.subplots(figsize=(9, 4.2))
    axis.axhspan(0.93, 0.98, color="0.9")
    axis.axhline(LEVEL, color="0.4", linewidth=1)
    for n, epsilon in enumerate(sorted({one.epsilon for one in lines})):
        places, shares = [], []
        for at, group in enumerate(groups):
            own = [one for one in lines if (one.kind, one.size) == group and one.epsilon == epsilon]
            if own:
                places.append(at + 0.22 * (n - 1))
                shares.append(share(own))
        axis.plot(places, shares, "osD^v"[n % 5], label=f"epsilon {epsilon:g}")
    axis.set_xticks(range(len(groups)), [k if s == "any" else f"{k}, {s}" for k, s in groups], rotation=40, ha="right")
    axis.set_ylabel(f"share in {LEVEL:g} intervals")
    axis.set_ylim(top=1.005)
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
