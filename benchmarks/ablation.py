"""What each ingredient of the default brings: the default, and the default without one ingredient at a time.

Every run is one line of ``benchmarks/results/ablation.csv``; a run that is there already is not repeated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Case, fill, made_on, markdown, run_once, runs_in, table_of
from benchmarks.default_accuracy import truth_of, workload_of
from pointillist.data.public import PublicTable
from pointillist.evaluation.errors import compare

RESULTS = Path(__file__).parent / "results" / "ablation.csv"
FIELDS = ("table", "public", "variant", "epsilon", "seed", "max", "rmse", "tvd", "seconds", "machine")
VARIANTS: dict[str, dict[str, Any]] = {
    "the default": {},
    "no shrinkage": {"strength": 0.0},
    "no smaller marginals": {"most_noise": 1e9},
    "one fit of 600 rows": {"rows": 600, "fits": 1},
    "one fit of 200 rows": {"fits": 1},
    "zCDP account": {},
    "12 adaptive rounds": {"adaptive_rounds": 12},
}
PUBLIC = ("adult-public", "adult-public shuffled")
TABLES = ("adult-reduced", "adult")
EPSILONS, SEEDS = (0.1, 1.0), (0, 1, 2)


def grid() -> Iterator[Case]:
    """(table, public, variant, epsilon, seed) of every run."""
    for table, variant, epsilon, seed in product(TABLES, VARIANTS, EPSILONS, SEEDS):
        if "adaptive_rounds" not in VARIANTS[variant] or table == "adult-reduced":  # each round is a fit of its own
            yield table, "", variant, epsilon, seed
    for table, public, epsilon, seed in product(("adult-reduced", "adult"), PUBLIC, EPSILONS, SEEDS):
        yield table, public, "the default", epsilon, seed


def public_of(table: str, name: str) -> PublicTable | None:
    """A public table; ``shuffled`` breaks all ties between its columns, which makes it far away."""
    if not name:
        return None
    public = table_of(name.removesuffix(" shuffled"))
    if name.endswith(" shuffled"):
        rng = np.random.default_rng(0)
        public = type(public)(public.schema, tuple(rng.permutation(codes) for codes in public.codes))
    return PublicTable.encode(public, table_of(table).schema)


def run_case(case: Case) -> list[object]:
    """One run under seeded noise of the right size; the errors of the model's answers."""
    name, public, variant, epsilon, seed = case
    workload, beside, zcdp = workload_of(name), public_of(name, public), variant == "zCDP account"
    made = run_once(table_of(name), workload, "auto", VARIANTS[variant], epsilon, seed, beside, zcdp=zcdp)
    errors = compare(workload, truth_of(name), made.answers(workload))
    figures = [f"{value:.6g}" for value in (errors.max, errors.rmse, errors.tvd)]
    return [*case, *figures, f"{made.seconds:.1f}", os.environ.get("POINTILLIST_MACHINE", "2 CPU cores")]


def run() -> str:
    """Run what is missing and show all."""
    if os.environ.get("POINTILLIST_BENCH_METHODS") != "none":
        fill(RESULTS, FIELDS, grid(), run_case)
    results = runs_in(RESULTS)
    rows = []
    kinds = [*(("", variant) for variant in VARIANTS), *((public, "the default") for public in PUBLIC)]
    for public, variant in kinds:
        cells = []
        for table, epsilon in product(TABLES, EPSILONS):
            runs = [results[case] for seed in SEEDS if (case := (table, public, variant, epsilon, seed)) in results]
            means = [np.mean([float(r[name]) for r in runs]) if runs else np.nan for name in ("max", "rmse", "tvd")]
            cells.append(f"{means[0]:.4f} / {means[1]:.5f} / {means[2]:.3f} ({len(runs)})" if runs else "")
        rows.append((f"{variant}, public: {public}" if public else variant, *cells))
    return markdown(
        "The default without one ingredient at a time, max / rmse / tvd (runs)",
        ("variant", *(f"{table}, epsilon {epsilon:g}" for table, epsilon in product(TABLES, EPSILONS))),
        rows,
        "Replace, delta = 1/n^2, the model's answers. The last lines add a public table instead of taking something "
        "away. Adaptive rounds also cost the Gaussian account. An empty cell was not run. " + made_on(results),
    )


if __name__ == "__main__":  # TABLES [FILE], the first joined by commas
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS
    fill(target, FIELDS, (case for case in grid() if case[0] in sys.argv[1].split(",")), run_case)
