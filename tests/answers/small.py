"""A small release that is made fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from pointillist import Categorical, Numeric, Release, Schema, Table, synthesize

FAST = {"t_max": 120, "fits": 1, "rows": 30, "strength": 0.1}
"""Settings of auto that take a second."""


def people(rows: int = 3000, seed: int = 0) -> Table:
    """Ages in bins, a region that depends on it, and a habit that depends on both."""
    rng = np.random.default_rng(seed)
    age = rng.choice(4, rows, p=[0.2, 0.4, 0.3, 0.1])
    region = (rng.random(rows) < 0.3 + 0.15 * age).astype(int)
    smoker = (rng.random(rows) < 0.1 + 0.2 * region).astype(int)
    columns = (
        Numeric("age", (0, 20, 40, 65, 100), integer=True),
        Categorical("region", ("N", "S")),
        Categorical("smoker", ("no", "yes")),
    )
    return Table(Schema(columns), (age, region, smoker))


def small_release(table: Table | None = None, **options: Any) -> Release:
    """A release with seeded noise."""
    options = {"epsilon": 1.0, "workload": "marginals:2", "settings": FAST, "insecure_noise_seed": 0} | options
    return synthesize(people() if table is None else table, progress=False, **options)
