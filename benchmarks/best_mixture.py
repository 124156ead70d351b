"""The best-mixture error of the public tables with its seconds, and the seconds of a round of PMWPub on them."""

from __future__ import annotations

import os
import sys
import time

from measuring.data import public_of, table_of, workload_of
from measuring.machine import peak_memory
from measuring.markdown import section
from measuring.runs import run_once

from pointillist.evaluation.report import compare_public

ROUNDS = 5
PAIRS = {
    ("adult", "adult-public"): "3",
    ("acs-pa", "acs-oh"): "3:4096",
    ("acs-pa", "acs-ny"): "3:4096",
    ("acs-pa-shared", "acs-ca-shared"): "3",
}
"""A private and a public table, and the marginals."""


def run() -> str:
    """All public tables, or those named in POINTILLIST_BENCH_PUBLIC, such as "acs-oh adult-public"."""
    wanted = os.environ.get("POINTILLIST_BENCH_PUBLIC", "").split()
    rows = []
    for (private, name), marginals in PAIRS.items():
        if wanted and name not in wanted:
            continue
        table = table_of(private)
        workload = workload_of(table, marginals)
        public = public_of(table, name)
        each = run_once(table, workload, "pmw_pub", {"rounds": ROUNDS}, 1.0, 0, public=public).seconds / ROUNDS
        start = time.perf_counter()
        floor = compare_public(table, public, workload)
        seconds = time.perf_counter() - start
        best = f"{floor.lower:.4f} to {floor.best.max:.4f}"
        sizes = (f"{floor.records:,}", f"{len(workload.queries):,}")
        rows.append((private, name, *sizes, f"{floor.public.max:.4f}", best, f"{seconds:.0f}", f"{each:.2f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    return section(
        "Best-mixture error of public tables, and the cost of a round of PMWPub",
        ("private", "public", "records", "marginals", "max error as it is", "best mixture", "its seconds",
         "seconds a round of PMWPub"),
        rows,
        f"Against the real tables: not private. {ROUNDS} rounds by marginal, the exact counts of the private table "
        f"included. Peak memory of the whole benchmark: {peak_memory()}.",
    )  # fmt: skip
