"""PMWPub, PEPPub and GEMPub against GEM without public data, on ACS-2024 PA and ADULT.

Every run is one line of ``benchmarks/results/public_data.csv``; a run that is there already is not repeated, so the
grid can be filled piece by piece, on several machines. ``python -m benchmarks.public_data FOLDER`` packs the tables
for a machine that has neither the files nor pyarrow (``POINTILLIST_PACKED`` names the folder there).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.common import Case, fill, made_on, markdown, run_once, runs_in
from pointillist.algorithms import get_method
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.evaluation.errors import compare
from pointillist.queries.marginals import all_kway, random_kway
from pointillist.queries.workload import Workload

RESULTS = Path(__file__).parent / "results" / "public_data.csv"
FIELDS = ("private", "public", "method", "epsilon", "seed", "max", "mean", "rmse", "tvd", "seconds", "machine")
EPSILONS = (0.1, 0.25, 0.5, 1.0)
SEEDS = (0, 1, 2)
MARGINALS = 4096
CASES = (
    ("adult", "adult-public", ("gem", "pmw_pub", "pep_pub", "gem_pub")),
    ("adult", "adult-public-reduced", ("gem", "gem_pub")),
    ("acs-pa", "acs-oh", ("gem", "pmw_pub", "pep_pub", "gem_pub")),
    ("acs-pa", "acs-ny", ("gem", "pmw_pub", "pep_pub", "gem_pub")),
    ("acs-pa-shared", "acs-ca-shared", ("gem", "pmw_pub", "pep_pub", "gem_pub")),
    ("acs-pa", "acs-ca", ("gem", "gem_pub")),
)


def grid() -> Iterator[Case]:
    """(private, public, method, epsilon, seed) of every run; GEM has no public table and runs once per private one."""
    cases: dict[Case, None] = {}
    for private, public, methods in CASES:
        for method, epsilon, seed in product(methods, EPSILONS, SEEDS):
            cases[private, "" if method == "gem" else public, method, epsilon, seed] = None
    return iter(cases)


@cache
def table_of(name: str) -> Table:
    """A dataset, packed or from its files."""
    packed = os.environ.get("POINTILLIST_PACKED")
    if packed:
        with np.load(Path(packed) / f"{name}.npz") as arrays:
            names, sizes, codes = arrays["names"], arrays["sizes"], arrays["codes"]
        columns = [Categorical(str(n), tuple(range(int(size)))) for n, size in zip(names, sizes, strict=True)]
        return Table(Schema(tuple(columns)), tuple(codes))
    from pointillist.data.datasets import load

    return load(name)


def pack(folder: Path, names: Iterable[str]) -> None:
    """The codes of the datasets as compressed arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = table_of(name)
        domain = table.domain
        np.savez_compressed(folder / f"{name}.npz", names=domain.names, sizes=domain.sizes, codes=np.stack(table.codes))


@cache
def workload_of(private: str) -> Workload:
    """All three-way marginals, or 4,096 of them for the wide ACS table."""
    table = table_of(private)
    if private == "acs-pa":
        return random_kway(table.domain, 3, MARGINALS, 0, len(table))
    return all_kway(table.domain, 3)


@cache
def truth_of(private: str) -> np.ndarray:
    table = table_of(private)
    return np.concatenate(TableSource(table).count(workload_of(private).marginals)) / len(table)


def run_case(case: Case) -> list[object]:
    """One run under seeded noise of the right size; the errors of the model's answers."""
    private, public, name, epsilon, seed = case
    table, method = table_of(private), get_method(name)
    workload = workload_of(private).regroup(method.grouping(None))
    beside = PublicTable.encode(table_of(public), table.schema) if public else None
    made = run_once(table, workload, name, {}, epsilon, seed, beside)
    errors = compare(workload, truth_of(private), made.answers(workload))
    figures = [f"{value:.6g}" for value in errors.to_dict().values()]
    return [*case, *figures, f"{made.seconds:.1f}", os.environ.get("POINTILLIST_MACHINE", "2 CPU cores")]


def run() -> str:
    """Run what is missing and show all. POINTILLIST_BENCH_METHODS, such as "pmw_pub", restricts what is run."""
    wanted = os.environ.get("POINTILLIST_BENCH_METHODS", "").split()
    fill(RESULTS, FIELDS, (case for case in grid() if not wanted or case[2] in wanted), run_case)
    results = runs_in(RESULTS)
    rows = []
    for private, public, methods in CASES:
        for method in methods:
            cells = []
            for epsilon in EPSILONS:
                key = (private, "" if method == "gem" else public, method, epsilon)
                runs = [results[*key, seed] for seed in SEEDS if (*key, seed) in results]
                means = [np.mean([float(r[name]) for r in runs]) if runs else np.nan for name in ("max", "rmse", "tvd")]
                cells.append(f"{means[0]:.4f} / {means[1]:.5f} / {means[2]:.3f} ({len(runs)})" if runs else "")
            rows.append((private, "none" if method == "gem" else public, method, *cells))
    return markdown(
        "Methods on public data against GEM without, max error / rmse / tvd (runs)",
        ("private", "public", "method", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)),
        rows,
        f"Replace, delta = 1/n^2, three-way marginals ({MARGINALS:,} of them for acs-pa, else all), default settings, "
        "by marginal (pep_pub: by query), the model's answers; means over the runs. An empty cell was not run. "
        + made_on(results),
    )


if __name__ == "__main__":
    pack(Path(sys.argv[1]), sorted({name for private, public, _ in CASES for name in (private, public)}))
