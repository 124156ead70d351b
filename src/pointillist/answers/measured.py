"""What the measurements themselves say about a query: unbiased, with exactly known noise.

The sum over cells of a measured marginal has the sum of their variances. Every measured marginal over all attributes of
a query gives one such estimate; they are weighted by their precision.
"""

from __future__ import annotations

import math

import numpy as np

from pointillist.framework import Log
from pointillist.queries.base import Queries, is_direct, parts_of
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.tie import Tie

__all__ = ["from_noise", "total_sigma"]

MOST_CELLS = 1_000_000
"""No larger marginal is looked at."""


def from_noise(log: Log, queries: Queries) -> tuple[np.ndarray, np.ndarray] | None:
    """Estimates of some queries and their standard deviations, as fractions; None if nothing that was measured tells.

    Args:
        log: the transcript.
        queries: the queries.
    """
    found = [one for one in (_one(measured, queries) for measured in log.measurements) if one is not None]
    if not found:
        return None
    precision = sum(1 / variance for _, variance in found)
    total = log.estimated_total
    answers = sum(counts / variance for counts, variance in found) / precision / total
    noise = 1 / precision / total**2
    # Dividing by a noisy number of rows adds an error that is proportional to the answer.
    return np.asarray(answers), np.sqrt(noise + (answers * total_sigma(log) / total) ** 2)


def total_sigma(log: Log) -> float:
    """The standard deviation of the estimated number of rows; 0 where it is public.

    Args:
        log: the transcript.
    """
    if log.facts.total_sigma == 0:
        return 0.0
    whole = [one.queries.size * one.sigma**2 for one in log.measurements if one.queries.partition]
    return float(sum(1 / variance for variance in (log.facts.total_sigma**2, *whole)) ** -0.5)


def _one(measured: Measurement, queries: Queries) -> tuple[np.ndarray, np.ndarray] | None:
    """Counts of some queries, and their variances, from one measurement."""
    source = measured.queries
    if source == queries and not isinstance(source, Tie):
        return measured.counts.astype(np.float64), np.full(queries.size, measured.sigma**2)
    cells = math.prod(queries.shape)
    covered = isinstance(source, Marginal) and set(queries.scope) <= set(source.scope)
    if not covered or is_direct(queries) or len(parts_of(queries)) > 1 or source.size > MOST_CELLS:
        return None
    others = tuple(axis for axis, attribute in enumerate(source.scope) if attribute not in queries.scope)
    table = measured.counts.reshape(source.shape).sum(axis=others).ravel().astype(np.float64)
    held = np.asarray(queries.of_marginal(np.ones(cells)))  # 0 or 1 for each cell, so that squares are the same
    variance = held * (source.size / cells) * measured.sigma**2
    return np.asarray(queries.of_marginal(table)), np.maximum(variance, measured.sigma**2)
