"""Takes over the runs of the benchmark on public data: the same methods with their defaults, on the same tables.

``benchmarks/results/public_data.csv`` has no column for the versions or the commit. The commit of a line is the one
that last changed the file; the versions stay empty.
"""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

from experiments.driver import take_over
from experiments.grid import KEYS, MARGINALS, Row, Run
from pointillist.errors import InputError, Shown

SOURCE = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "public_data.csv"


def adopt() -> str:
    """Put the benchmark's runs into the experiments that they belong to; a sentence about it."""
    done = subprocess.run(["git", "log", "-1", "--format=%h", "--abbrev=10", "--", SOURCE.name], cwd=SOURCE.parent,
                          capture_output=True, text=True, check=False)  # fmt: skip
    commit = done.stdout.strip()
    if done.returncode or not commit:
        raise InputError("commit", Shown("none"), f"must be known for {SOURCE.name}", "run this in a git checkout")
    with SOURCE.open(newline="", encoding="utf-8") as file:
        return take_over([converted(row, commit) for row in csv.DictReader(file)])


def converted(row: Row, commit: str) -> Row:
    """A line of the benchmark as a line of an experiment."""
    marginals = MARGINALS.get(row["private"], "3")
    run = Run(row["private"], row["method"], float(row["epsilon"]), int(row["seed"]), public=row["public"],
              marginals=marginals)  # fmt: skip
    found = {name: row[name] for name in ("max", "mean", "rmse", "tvd", "seconds", "machine")}
    return dict(zip(KEYS, run.key, strict=True)) | found | {"error": "", "commit": commit, "versions": ""}
