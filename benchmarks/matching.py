"""What matching the rows to the model is worth: errors of the model, of rows as they are drawn, and of matched rows.

The models are those of the default, under add-remove with delta = 1/n^2 and seeded noise. All errors are against the
real table, so that being nearer to the model alone would not show as a gain.

Environment: POINTILLIST_MATCHING_TABLES and _EPSILONS narrow it down; items with ";" between them.
"""

from __future__ import annotations

import math
import os
import sys
import time

import numpy as np
from measuring.markdown import section

from benchmarks.suite import PARTS, table_of
from pointillist import Table, Workload, prepare
from pointillist.evaluation.report import fractions
from pointillist.framework import run as run_loop
from pointillist.queries.kway import all_kway, random_kway
from pointillist.queries.texts import parse_workload
from pointillist.release import draw_rows

TABLES = ("adult", "br2000", "uk2011", "uk2011, few rows", "demo")
EPSILONS = ("0.1", "1", "10")
ORDERS = (1, 2, 3, 4)
MOST = 100
"""Marginals of an order, at most; random ones with no more cells than the table has rows."""

Line = tuple[str, ...]


def measured(name: str, epsilon: float) -> list[Line]:
    """The lines of one table and budget.

    Args:
        name: the part of the suite.
        epsilon: the budget.
    """
    table = table_of(PARTS[name])
    workload = parse_workload(PARTS[name].workload, table.schema, len(table))
    job = prepare(
        table, epsilon=epsilon, delta=1 / len(table) ** 2, relation="add-remove", workload=workload,
        insecure_noise_seed=0,
    )  # fmt: skip
    params, log = run_loop(job.algorithm, job.curator, 0)
    family = job.algorithm.family
    judged = [workload, *(_some(order, table) for order in ORDERS)]
    truth = [fractions(table, one) for one in judged]
    found = {"model": ([family.answers(params, one.queries) for one in judged], "")}
    for label, wanted in (("drawn", ()), ("matched", workload.queries)):
        started = time.process_time()
        rows = draw_rows(family, params, table.schema, log.total, 0, wanted=wanted)
        seconds = time.process_time() - started
        found[label] = [fractions(rows, one) for one in judged], f"{seconds:.1f}"
    return [
        (name, f"{epsilon:g}", label, *_errors(judged, truth, answers), seconds)
        for label, (answers, seconds) in found.items()
    ]


def _some(order: int, table: Table) -> Workload:
    """Marginals over this number of columns: all, or some of them."""
    if math.comb(len(table.domain), order) <= MOST:
        return all_kway(table.domain, order)
    return random_kway(table.domain, order, MOST, 0, len(table))


def _errors(judged: list[Workload], truth: list[np.ndarray], answers: list[np.ndarray]) -> list[str]:
    """Largest error and root mean square over the workload, and total variation distances of all."""
    off = truth[0] - answers[0]
    tvd = [np.abs(a - b).sum() / 2 / len(one.queries) for one, a, b in zip(judged, truth, answers, strict=True)]
    return [f"{np.abs(off).max():.4f}", f"{np.sqrt(np.mean(off**2)):.6f}", *(f"{value:.4f}" for value in tvd)]


def _wanted(name: str, default: tuple[str, ...]) -> list[str]:
    text = os.environ.get(f"POINTILLIST_MATCHING_{name}", "")
    return [item.strip() for item in text.split(";") if item.strip()] or list(default)


def run() -> str:
    """All tables and budgets."""
    lines: list[Line] = []
    for name in _wanted("TABLES", TABLES):
        for epsilon in _wanted("EPSILONS", EPSILONS):
            lines += measured(name, float(epsilon))
            print(*lines[-1], file=sys.stderr, flush=True)
    heads = (
        "table", "epsilon", "answers of", "max", "rmse", "tvd", *(f"{order}-way tvd" for order in ORDERS), "CPU seconds"
    )  # fmt: skip
    note = (
        "Errors against the real table; max, rmse and tvd are over the workload (all three-way marginals), the others "
        "over all marginals of an order, or 100 random ones. Seconds are those of the processor while rows are drawn "
        "and matched. Add-remove, delta = 1/n^2, fixed defaults, one seed."
    )
    return section("Rows that match the model", heads, lines, note)
