"""Random halfspaces: linear thresholds in random directions, over all columns.

A column without an order gives every value a weight of its own, drawn from a standard Gaussian (a direction in its
one-hot code). An ordered column has one such weight, times its code, scaled to the variance 1 of equally likely codes;
missing counts as its middle. All weights are then rounded to whole numbers, about 4 steps per column: a halfspace is
defined by the rounded ones, so that nothing is approximate. A threshold is a random quantile of the scores of records
with independent, equally likely codes. None of it looks at data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from pointillist.checks import at_least, between, check
from pointillist.data.columns import Column
from pointillist.data.schema import Schema
from pointillist.errors import Shown
from pointillist.queries.halfspaces import Halfspaces

__all__ = ["random_halfspaces"]

STEPS, LEAST_STEPS = 4, 48
"""The scores of d columns have about 4 d different values, at least 48."""

EDGE = 0.05
"""Thresholds are quantiles between this one and its opposite."""

MOST = 1_000_000
"""The largest number of halfspaces."""

MOST_TRIES = 4
"""Where a domain is small, halfspaces may be drawn again; no more than this many times the number are tried."""


def random_halfspaces(schema: Schema, count: int, seed: int = 0, crossed: str | None = None) -> tuple[Halfspaces, ...]:
    """Halfspaces in random directions, each with a threshold of its own and none of them twice.

    Args:
        schema: the columns.
        count: the number of directions; fewer are returned if the domain has no more.
        seed: the seed of the draw.
        crossed: a column, with each of whose values every halfspace is crossed; it has no weights.
    """
    at_least("workload: COUNT", count, 1)
    check(count <= MOST, "workload: COUNT", count, f"must be at most {MOST:,}", "use fewer halfspaces")
    between("workload: SEED", seed, 0, 2**32 - 1, "use 0")
    others = [n for n, column in enumerate(schema.columns) if column.name != crossed]
    varied = any(schema.columns[n].size > 1 for n in others)
    rule, hint = "must have columns of two values or more for halfspaces", "use another workload"
    check(varied, "schema", Shown("none"), rule, hint)
    rng = np.random.default_rng(seed)
    tried = islice(_drawn(rng, schema, others, () if crossed is None else (crossed,)), MOST_TRIES * count)
    found: dict[Halfspaces, None] = {}
    for one in tried:
        found[one] = None
        if len(found) == count:
            break
    return tuple(found)


def _drawn(
    rng: np.random.Generator, schema: Schema, columns: list[int], crossed: tuple[str, ...]
) -> Iterator[Halfspaces]:
    steps = max(LEAST_STEPS, STEPS * len(columns))
    while True:
        real = [_direction(rng, schema.columns[n]) for n in columns]
        unit = sum(float(np.ptp(one)) for one in real) / steps
        weights = {n: np.rint(one / unit).astype(int).tolist() for n, one in zip(columns, real, strict=True)}
        lowest = sum(min(many) for many in weights.values())
        scores = np.ones(1)
        for many in weights.values():
            scores = np.convolve(scores, np.bincount(np.array(many) - min(many)) / len(many))
        at = int(np.searchsorted(np.cumsum(scores), rng.uniform(EDGE, 1 - EDGE)))
        yield Halfspaces.of(schema.domain, weights, lowest + min(at, len(scores) - 2), crossed)


def _direction(rng: np.random.Generator, column: Column) -> np.ndarray:
    if not column.ordered:
        return rng.standard_normal(column.size)
    values = column.size - column.missing
    scaled = (np.arange(values) - (values - 1) / 2) / max(1.0, math.sqrt((values**2 - 1) / 12))
    return np.asarray(rng.standard_normal() * np.append(scaled, [0.0] * column.missing))
