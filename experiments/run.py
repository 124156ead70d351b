"""One run, from plain data to a line of a results file.

Everything heavy is imported here, so that a worker can set its environment first. Errors are against the real table and
under seeded noise of the right size: for experiments only, nothing here is private.
"""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from benchmarks.common import run_once
from benchmarks.common import table_of as named_table

from experiments.grid import KEYS, METRICS, Row, Run
from pointillist.algorithms import get_method
from pointillist.data.public import PublicTable
from pointillist.data.table import Table
from pointillist.errors import PointillistError
from pointillist.evaluation.errors import compare
from pointillist.evaluation.report import fractions
from pointillist.queries.marginals import parse_workload
from pointillist.queries.workload import Workload
from pointillist.release import versions

# Several workers share a GPU: none may take all of its memory at the start.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# The paper does not list the columns of its reduced ACS table. It has 455 three-way marginals, so it has 15 columns.
# These are the two-valued columns of acs-pa, employment and tenure, and the smallest of the others.
ACS_REDUCED = (
    "SEX", "NATIVITY", "LANX", "ESR", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "DEAR", "DEYE", "DREM", "DPHY", "TEN",
    "MULTG", "TYPEHUGQ",
)  # fmt: skip
PROJECTIONS = {"acs-pa-reduced": ("acs-pa", ACS_REDUCED)}
"""Tables that exist in the experiments only: a named dataset over some of its columns."""


def table_of(name: str) -> Table:
    """A dataset by its name, or a projection of one."""
    if name in PROJECTIONS:
        whole, columns = PROJECTIONS[name]
        return named_table(whole).project(columns)
    return named_table(name)


@lru_cache(maxsize=2)
def prepared(dataset: str, marginals: str) -> tuple[Table, Workload, np.ndarray]:
    """A table, its workload, and the exact answers."""
    table = table_of(dataset)
    workload = parse_workload(f"marginals:{marginals}", table.domain, len(table))
    return table, workload, fractions(table, workload)


@lru_cache(maxsize=2)
def public_of(dataset: str, public: str) -> PublicTable:
    """A public table, read with the schema of the private one."""
    return PublicTable.encode(table_of(public), table_of(dataset).schema)


def measure(run: Run) -> dict[str, str]:
    """The errors of the model's answers, and the seconds of the loop."""
    table, workload, truth = prepared(run.dataset, run.marginals)
    method = get_method(run.method)
    workload = workload.regroup(method.grouping(run.grouping or None))
    beside = public_of(run.dataset, run.public) if run.public else None
    made = run_once(table, workload, run.method, run.settings, run.epsilon, run.seed, beside)
    errors = compare(workload, truth, made.answers(workload)).to_dict()
    return {name: f"{errors[name]:.6g}" for name in METRICS} | {"seconds": f"{made.seconds:.1f}"}


def execute(run: Run) -> Row:
    """A whole line. A run that fails is a line, too: it says why, and is not tried again and again.

    A table that cannot be loaded is no fault of the run: it is raised, as an error that can travel between processes.
    """
    try:
        prepared(run.dataset, run.marginals)
        if run.public:
            public_of(run.dataset, run.public)
    except PointillistError as error:
        raise PointillistError(str(error)) from None
    try:
        return line(run, **measure(run))
    except Exception as error:  # whatever it was, the other runs go on
        return failed(run, f"{type(error).__name__}: {error}")


def failed(run: Run, reason: str) -> Row:
    """The line of a run without errors to show."""
    return line(run, error=" ".join(reason.split())[:300])


def line(run: Run, **values: str) -> Row:
    """The run, what was found, and with which code on which machine."""
    origin = {"commit": commit(), "versions": installed(), "machine": machine()}
    return dict(zip(KEYS, run.key, strict=True)) | {"error": ""} | values | origin


@cache
def commit() -> str:
    """The commit of the package, or ``POINTILLIST_COMMIT`` where there is no repository.

    The end ``-changed`` says that the package differs from the commit.
    """
    given = os.environ.get("POINTILLIST_COMMIT")
    if given:
        return given
    root = Path(__file__).resolve().parents[1]
    try:
        found = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=root, capture_output=True, text=True,
                               check=True).stdout.strip()  # fmt: skip
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=root, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{found}-changed" if changed else found


@cache
def installed() -> str:
    """Python and the packages that the errors may depend on."""
    found = {"python": platform.python_version(), **versions()}
    return " ".join(f"{name}={found[name]}" for name in ("python", "numpy", "scipy", "jax", "optax") if name in found)


def machine() -> str:
    """``POINTILLIST_MACHINE``, or the number of cores."""
    return os.environ.get("POINTILLIST_MACHINE") or f"{os.cpu_count()} CPU cores"
