"""MWEM and PEP against the plain implementations, on ADULT (reduced), same settings, one run after the other."""

from __future__ import annotations

import numpy as np

from benchmarks.common import markdown, run_method, seconds
from benchmarks.histogram_plain import plain_mwem, plain_pep
from pointillist import Grouping, all_kway
from pointillist.data.datasets import load
from pointillist.evaluation.report import fractions
from pointillist.privacy.budget import rho_of

RUNS = 3
CASES = (("mwem", 150, plain_mwem), ("pep", 20, plain_pep), ("pep", 50, plain_pep))


def run() -> str:
    table = load("adult-reduced")
    workload = all_kway(table.domain, 3, Grouping.QUERY)
    truth = fractions(table, workload)
    rows = []
    for method, rounds, plain in CASES:
        scale = np.sqrt(rounds / rho_of(1.0, 1 / len(table) ** 2)) / len(table)
        slow = seconds(lambda r=rounds, s=scale, p=plain: p(table.domain.sizes, truth, r, s, np.random.default_rng(0)))
        fast = min(run_method(table, workload, method, {"rounds": rounds}, 1.0, seed)[1] for seed in range(RUNS))
        rows.append((method, rounds, f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}"))
    return markdown(
        "Speed of the histogram methods on ADULT (reduced)",
        ("method", "rounds", "plain, seconds", "ours, seconds", "ratio"),
        rows,
        f"By query, epsilon 1. Plain: benchmarks/histogram_plain.py, one run; ours: the best of {RUNS}.",
    )
