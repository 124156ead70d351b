"""Cost of one round of MWEM and PEP at 10^5 to 10^8 cells, and the memory it takes."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.common import markdown
from pointillist import Grouping, Table, all_kway
from pointillist.algorithms import get_method
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.families.histogram import Histogram
from pointillist.framework import run as run_loop
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise

ROUNDS = 10


def table_of(attributes: int, rows: int = 20_000) -> Table:
    """Correlated columns of ten values each: the domain has 10^attributes cells."""
    rng = np.random.default_rng(0)
    base = rng.integers(10, size=rows)
    codes = tuple((base + rng.integers(1 + i % 4, size=rows)) % 10 for i in range(attributes))
    return Table(Schema(tuple(Categorical(f"x{i}", tuple(range(10))) for i in range(attributes))), codes)


def run() -> str:
    rows = []
    for attributes in (5, 6, 7, 8):
        table = table_of(attributes)
        for method in ("mwem", "pep"):
            for grouping in Grouping:
                workload = all_kway(table.domain, 3, grouping)
                chosen = get_method(method)
                algorithm = chosen.algorithm(workload, chosen.configure({"rounds": ROUNDS}))
                curator = Curator(TableSource(table), workload, Budget(1.0, 1e-9), InsecureSeededNoise(0))
                start = time.perf_counter()
                run_loop(algorithm, curator, 0)
                each = (time.perf_counter() - start) / ROUNDS
                stated = Histogram.memory(table.domain) / 1e6
                rows.append(
                    (f"10^{attributes}", method, grouping.value, workload.queries, f"{each:.4f}", f"{stated:,.1f}")
                )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return markdown(
        "Seconds per round of the histogram methods by domain size",
        ("cells", "method", "group", "queries", "seconds per round", "weights, MB"),
        rows,
        f"{ROUNDS} rounds, all three-way marginals. Peak memory of the whole benchmark: {peak:.2f} GB.",
    )
