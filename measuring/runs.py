"""One run of a method under seeded noise of the right size. The only place outside the package that starts one.

Nothing here is private: the noise can be repeated, and errors are against the real table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist import Table, Workload, prepare
from pointillist.data.public import PublicTable
from pointillist.errors import PointillistError
from pointillist.evaluation.accuracy import Errors, compare
from pointillist.evaluation.report import fractions
from pointillist.framework import run
from pointillist.release import draw_rows


@dataclass(frozen=True)
class Made:
    """The outcome of a run, and the seconds of its loop."""

    answers: Callable[..., np.ndarray]
    """The model's answers to the workload, or to another one that is given."""
    rows: Callable[[], Table]
    """As many synthetic rows as the table is said to have."""
    seconds: float


def run_once(
    table: Table,
    workload: Workload,
    method: str,
    settings: Mapping[str, Any],
    epsilon: float,
    seed: int,
    *,
    grouping: str = "",
    public: PublicTable | None = None,
    relation: str = "replace",
    account: str = "",
    noise: int | None = None,
) -> Made:
    """One run with delta = 1/n^2.

    ``grouping`` is ``query`` or ``marginal``; empty for the method's default. ``account`` is ``zcdp``; empty for the
    tightest account of the method. ``noise`` is the seed of the noise; by default ``seed``, which drives everything
    else.
    """
    job = prepare(
        table,
        epsilon=epsilon,
        delta=1 / len(table) ** 2,
        relation=relation,
        method=method,
        workload=workload,
        group=grouping or None,
        settings=settings,
        public=public,
        seed=seed,
        insecure_noise_seed=seed if noise is None else noise,
        zcdp=account == "zcdp",
    )
    if job.stage is not None:
        raise PointillistError("columns of this table are prepared first, at a cost: compare whole releases instead")
    start = time.perf_counter()
    params, log = run(job.algorithm, job.curator, seed)  # the loop alone: the rows of a release take time, too
    seconds = time.perf_counter() - start
    family = job.algorithm.family
    return Made(
        answers=lambda other=workload: family.answers(params, other.queries),
        rows=lambda: draw_rows(family, params, table.schema, log.total, seed, wanted=workload.queries),
        seconds=seconds,
    )


def run_method(
    table: Table,
    workload: Workload,
    method: str,
    settings: Mapping[str, Any],
    epsilon: float,
    seed: int,
    grouping: str = "",
) -> tuple[Errors, float]:
    """The true errors of a method's model, and the seconds of the loop."""
    made = run_once(table, workload, method, settings, epsilon, seed, grouping=grouping)
    return compare(workload, fractions(table, workload), made.answers()), made.seconds
