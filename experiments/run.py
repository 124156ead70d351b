"""One run, from plain data to a line of a results file.

Everything heavy is imported here, so that a worker can set its environment first. Errors are against the real table and
under seeded noise of the right size: for experiments only, nothing here is private.
"""

from __future__ import annotations

import os
import time
from functools import cache, lru_cache

import numpy as np
from measuring.data import public_of, table_of, workload_of
from measuring.machine import commit, machine, versions
from measuring.runs import run_once

from experiments.grid import FLOOR, KEYS, METRICS, ROW_METRICS, Row, Run
from pointillist import PointillistError, Table, Workload
from pointillist.data.public import PublicTable
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import compare_public, fractions

__all__ = ["commit", "execute", "failed", "measure", "prepared"]

# Several workers share a GPU: none may take all of its memory at the start.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@lru_cache(maxsize=2)
def prepared(dataset: str, marginals: str) -> tuple[Table, Workload, np.ndarray]:
    """A table, its workload, and the exact answers."""
    table = table_of(dataset)
    workload = workload_of(table, marginals)
    return table, workload, fractions(table, workload)


@lru_cache(maxsize=2)
def encoded(dataset: str, public: str) -> PublicTable | None:
    """A public table, read with the schema of the private one; None without a name."""
    return public_of(table_of(dataset), public) if public else None


def measure(run: Run) -> dict[str, str]:
    """The errors of the model's answers, those of synthetic rows if they are asked for, and the seconds of the loop."""
    if run.method == FLOOR:
        return floor(run.dataset, run.marginals, run.public)
    table, workload, truth = prepared(run.dataset, run.marginals)
    made = run_once(table, workload, run.method, run.settings, run.epsilon, run.seed, grouping=run.grouping,
                    public=encoded(run.dataset, run.public), relation=run.relation, account=run.account,
                    noise=run.noise)  # fmt: skip
    values = compare(workload, truth, made.answers()).to_dict()
    wanted = list(METRICS)
    if run.output == "rows":
        rows = compare(workload, truth, fractions(made.rows(), workload)).to_dict()
        values |= {f"rows_{name}": value for name, value in rows.items()}
        wanted += ROW_METRICS
    return {name: f"{values[name]:.6g}" for name in wanted} | {"seconds": f"{made.seconds:.1f}"}


@cache
def floor(dataset: str, marginals: str, public: str) -> dict[str, str]:
    """The errors of the public records with the weights that have the smallest max error of all."""
    table, workload, _ = prepared(dataset, marginals)
    records = encoded(dataset, public)
    assert records is not None
    start = time.perf_counter()
    values = compare_public(table, records, workload).best.to_dict()
    return {name: f"{values[name]:.6g}" for name in METRICS} | {"seconds": f"{time.perf_counter() - start:.1f}"}


def execute(run: Run) -> Row:
    """A whole line. A run that fails also gives a line: it says why, and the run is not tried again.

    A table that cannot be loaded is not a fault of the run: the error is raised, in a form that can be sent between
    processes.
    """
    try:
        prepared(run.dataset, run.marginals)
        encoded(run.dataset, run.public)
    except PointillistError as error:
        raise PointillistError(str(error)) from None
    try:
        return line(run, **measure(run))
    except Exception as error:  # whatever it was, the other runs go on
        return failed(run, f"{type(error).__name__}: {error}")


def failed(run: Run, reason: str) -> Row:
    """The line of a run that has no errors to show."""
    return line(run, error=" ".join(reason.split())[:300])


def line(run: Run, **values: str) -> Row:
    """The run, its errors, and the code and machine behind them."""
    origin = {"commit": commit(), "versions": installed(), "machine": machine(), "noise": "own"}
    return dict(zip(KEYS, run.key, strict=True)) | {"error": ""} | values | origin


@cache
def installed() -> str:
    """Python and the packages that the errors may depend on."""
    return " ".join(f"{name}={found}" for name, found in versions("numpy", "scipy", "jax", "optax").items())
