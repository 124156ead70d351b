"""The best-mixture error of the public tables, and what a round of PMWPub costs on them."""

from __future__ import annotations

import os
import resource
import sys
import time

from benchmarks.common import markdown, table_of
from pointillist.algorithms import get_method
from pointillist.data.public import PublicTable
from pointillist.data.sources import TableSource
from pointillist.evaluation.report import compare_public
from pointillist.framework import run as run_loop
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.queries.marginals import parse_workload

ROUNDS = 5
PAIRS = {
    ("adult", "adult-public"): "marginals:3",
    ("acs-pa", "acs-oh"): "marginals:3:4096",
    ("acs-pa", "acs-ny"): "marginals:3:4096",
    ("acs-pa-shared", "acs-ca-shared"): "marginals:3",
}
"""A private and a public table, and the workload."""


def run() -> str:
    """All public tables, or those named in POINTILLIST_BENCH_PUBLIC, such as "acs-oh adult-public"."""
    wanted = os.environ.get("POINTILLIST_BENCH_PUBLIC", "").split()
    rows = []
    for (private, public), word in PAIRS.items():
        if wanted and public not in wanted:
            continue
        table = table_of(private)
        workload = parse_workload(word, table.domain, len(table))
        beside = PublicTable.encode(table_of(public), table.schema)
        method = get_method("pmw_pub")
        algorithm = method.algorithm(workload, method.configure({"rounds": ROUNDS}), beside)
        curator = Curator(TableSource(table), workload, Budget(1.0, 1e-9), InsecureSeededNoise(0))
        start = time.perf_counter()
        run_loop(algorithm, curator, 0)
        each = (time.perf_counter() - start) / ROUNDS
        start = time.perf_counter()
        floor = compare_public(table, beside, workload)
        seconds = time.perf_counter() - start
        best = f"{floor.lower:.4f} to {floor.best.max:.4f}"
        sizes = (f"{floor.records:,}", f"{len(workload.marginals):,}")
        rows.append((private, public, *sizes, f"{floor.public.max:.4f}", best, f"{seconds:.0f}", f"{each:.2f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return markdown(
        "Best-mixture error of public tables, and the cost of a round of PMWPub",
        ("private", "public", "records", "marginals", "max error as it is", "best mixture", "its seconds",
         "seconds a round of PMWPub"),
        rows,
        f"Against the real tables: not private. {ROUNDS} rounds by marginal, the exact counts of the private table "
        f"included. Peak memory of the whole benchmark: {peak:.2f} GB.",
    )  # fmt: skip
