"""What it costs that every row obeys the rules: masked products against drawing whole rows again, on the same models.

The rules hold in the real tables, so that a perfect model would never break one.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from measuring.markdown import section

from benchmarks.overhead import EPSILON, Case, acs, adult
from pointillist import Schema, Table, synthesize
from pointillist.evaluation.report import fractions
from pointillist.queries.texts import parse_workload
from pointillist.release import Drawn, draw_rows, drawing, drawn_rows

SEEDS = (0, 1)


def measured(case: Case, seed: int) -> dict[str, tuple[float, ...]]:
    """For each way to draw: the shares of rows that broke a rule and were repaired, how far single columns moved on
    average and at most, and the errors of columns and pairs against the real table."""
    schema = Schema(case.bins.columns, rules=case.rules)
    release = synthesize(
        case.table, schema=schema, epsilon=EPSILON, workload="marginals:2", insecure_noise_seed=seed, seed=seed,
        progress=False,
    )  # fmt: skip
    free = draw_rows(release.family, release.params, case.bins, release.description.rows, seed)
    found = {"no rules": _figures(case, free, free, Drawn(0.0, 0.0))}
    for name, most in (("whole rows again", 0), ("masked products", drawing.MOST_COMBINATIONS)):
        with mock.patch.object(drawing, "MOST_COMBINATIONS", most):
            rows, drawn, _ = drawn_rows(release.family, release.params, schema, release.description.rows, seed)
        assert drawn is not None
        found[name] = _figures(case, free, rows, drawn)
    return found


def _figures(case: Case, free: Table, rows: Table, drawn: Drawn) -> tuple[float, ...]:
    real = Table.encode(case.table, case.bins)
    moved = [_tvd(free, rows, n) for n in range(len(case.bins.columns))]
    return (
        drawn.rejected, drawn.repaired, float(np.mean(moved)), max(moved), _mean(real, rows, 1), _mean(real, rows, 2)
    )  # fmt: skip


def _tvd(a: Table, b: Table, n: int) -> float:
    size = a.domain.sizes[n]
    counts = [np.bincount(one.codes[n], minlength=size) / len(one) for one in (a, b)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)


def _mean(real: Table, rows: Table, ways: int) -> float:
    """The mean total variation distance of all marginals over some columns."""
    workload = parse_workload(f"marginals:{ways}", real.schema, len(real))
    plain = Table(real.schema, rows.codes)
    return float(np.abs(fractions(real, workload) - fractions(plain, workload)).sum() / 2 / len(workload.queries))


def run() -> str:
    """Both tables, averaged over the seeds."""
    lines = []
    for case in (adult(), acs(wages=True)):
        every = [measured(case, seed) for seed in SEEDS]
        for name in every[0]:
            broke, repaired, moved, most, columns, pairs = np.mean([one[name] for one in every], axis=0)
            lines.append(
                (case.name, name, f"{broke:.2%}", f"{repaired:.2%}", f"{moved:.4f}", f"{most:.4f}", f"{columns:.4f}",
                 f"{pairs:.4f}")
            )  # fmt: skip
    heads = ("table", "rows that break a rule", "at first", "repaired", "columns moved: mean", "largest",
             "columns against the real ones", "pairs")  # fmt: skip
    note = (
        f"Total variation distances; epsilon = {EPSILON:g}, seeded noise, mean of {len(SEEDS)} seeds. Columns moved: "
        "between rows of the same model drawn without rules and with them. ADULT has four rules about five columns "
        "(education determines its number of years; couples), ACS has `WAGP <= PINCP` and a rule about degrees."
    )
    return section("What rules do to the rows", heads, lines, note)
