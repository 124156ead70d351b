"""The seconds of a round of MWEM and PEP at 10^5 to 10^8 cells, and the memory that they need."""

from __future__ import annotations

import numpy as np
from measuring.data import workload_of
from measuring.machine import peak_memory
from measuring.markdown import section
from measuring.runs import run_once

from pointillist import Categorical, Grouping, Schema, Table
from pointillist.algorithms import get_method

ROUNDS = 10


def correlated(attributes: int, rows: int = 20_000) -> Table:
    """Correlated columns of ten values each: the domain has 10^attributes cells."""
    rng = np.random.default_rng(0)
    base = rng.integers(10, size=rows)
    codes = tuple((base + rng.integers(1 + i % 4, size=rows)) % 10 for i in range(attributes))
    return Table(Schema(tuple(Categorical(f"x{i}", tuple(range(10))) for i in range(attributes))), codes)


def run() -> str:
    """Both methods in both groupings, at every size."""
    rows = []
    for attributes in (5, 6, 7, 8):
        table = correlated(attributes)
        workload = workload_of(table, "3")
        for method in ("mwem", "pep"):
            stated = get_method(method).memory(table.domain) / 1e6
            for grouping in Grouping:
                made = run_once(table, workload, method, {"rounds": ROUNDS}, 1.0, 0, grouping=grouping.value)
                each = f"{made.seconds / ROUNDS:.4f}"
                rows.append((f"10^{attributes}", method, grouping.value, workload.size, each, f"{stated:,.1f}"))
    return section(
        "Seconds per round of the histogram methods by domain size",
        ("cells", "method", "group", "queries", "seconds per round", "weights, MB"),
        rows,
        f"{ROUNDS} rounds, all three-way marginals. Peak memory of the whole benchmark: {peak_memory()}.",
    )
