"""MWEM and PEP against the plain implementations, on ADULT (reduced), same settings, one run after the other."""

from __future__ import annotations

from functools import partial

import numpy as np
from measuring.data import table_of, workload_of
from measuring.machine import seconds
from measuring.markdown import section
from measuring.runs import run_once

from benchmarks.histogram_plain import plain_mwem, plain_pep
from pointillist.evaluation.report import fractions
from pointillist.privacy.budget import rho_of

RUNS = 3
CASES = (("mwem", 150, plain_mwem), ("pep", 20, plain_pep), ("pep", 50, plain_pep))


def run() -> str:
    """Every case: one plain run, and the best of ours."""
    table = table_of("adult-reduced")
    workload = workload_of(table, "3")
    truth = fractions(table, workload)
    rows = []
    for method, rounds, plain in CASES:
        scale = float(np.sqrt(rounds / rho_of(1.0, 1 / len(table) ** 2)) / len(table))
        slow = seconds(partial(plain, table.domain.sizes, truth, rounds, scale, np.random.default_rng(0)))
        ours = [
            run_once(table, workload, method, {"rounds": rounds}, 1.0, seed, grouping="query") for seed in range(RUNS)
        ]
        fast = min(made.seconds for made in ours)
        rows.append((method, rounds, f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}"))
    return section(
        "Speed of the histogram methods on ADULT (reduced)",
        ("method", "rounds", "plain, seconds", "ours, seconds", "ratio"),
        rows,
        f"By query, epsilon 1. Plain: benchmarks/histogram_plain.py, one run; ours: the best of {RUNS}.",
    )
