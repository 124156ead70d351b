"""What the measurements themselves say about a query: unbiased, with exactly known noise.

Measured marginals and residuals tell the parts of a marginal (:mod:`pointillist.updates.parts`). Where all parts
inside of a query's attributes are told, the query is a sum of them. With y_A = C_A (true part + noise of the variance
1 / pi_A on each cell), and h the query as a table of 0 and 1 over its attributes S, its variance is

    sum_A |C_A h_A|^2 / (pi_A prod_{i in S - A} m_i^2),    h_A the sums of h over S - A.

Other queries tell about themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework import Log
from pointillist.queries.base import Queries, is_direct, parts_of
from pointillist.queries.marginal import Marginal
from pointillist.queries.tie import Tie
from pointillist.updates.parts import PartEstimates, centred, free_of, subsets, tells_parts

__all__ = ["from_noise", "total_sigma"]

MOST_NUMBERS = 4_000_000
"""The largest table of all queries by all cells of their attributes."""


def from_noise(log: Log, queries: Queries) -> tuple[np.ndarray, np.ndarray] | None:
    """Estimates of some queries and their standard deviations, as fractions; None if nothing that was measured tells.

    Args:
        log: the transcript.
        queries: the queries.
    """
    found = [*_themselves(log, queries), *_from_parts(log, queries)]
    if not found:
        return None
    precision = sum(1 / variance for _, variance in found)
    answers = np.asarray(sum(fractions / variance for fractions, variance in found) / precision)
    # Dividing by a noisy number of rows adds an error that is proportional to the answer.
    return answers, np.sqrt(1 / precision + (answers * total_sigma(log) / log.estimated_total) ** 2)


def total_sigma(log: Log) -> float:
    """The standard deviation of the estimated number of rows; 0 where it is public.

    Args:
        log: the transcript.
    """
    if log.facts.total_sigma == 0:
        return 0.0
    whole = [one.queries.size * one.sigma**2 for one in log.measurements if one.queries.partition]
    return float(sum(1 / variance for variance in (log.facts.total_sigma**2, *whole)) ** -0.5)


def _themselves(log: Log, queries: Queries) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fractions of queries that were measured as they are, and their variances."""
    total = log.estimated_total
    for one in log.measurements:
        if one.queries == queries and not tells_parts(queries) and not isinstance(queries, Tie):
            yield one.fractions(total), np.full(queries.size, (one.sigma / total) ** 2)


def _from_parts(log: Log, queries: Queries) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fractions of queries that are sums of cells, from the parts of their marginal, and their variances."""
    cells = math.prod(queries.shape)
    if is_direct(queries) or len(parts_of(queries)) > 1 or isinstance(queries, Tie):
        return
    domain, total = _domain(log, queries), log.estimated_total
    parts = PartEstimates.of(domain, log.measurements, total, within=queries.scope)
    if not math.isfinite(parts.variance(queries.scope)):
        return
    answers = np.asarray(queries.of_marginal(parts.marginal(queries.scope)))
    if isinstance(queries, Marginal):
        yield answers, np.full(queries.size, parts.variance(queries.scope))
    elif queries.size * cells <= MOST_NUMBERS:
        # A query that holds for all rows, or for none, has no noise: a whole row is the least that is told.
        yield answers, np.maximum(_variances(parts, queries), total**-2.0)


def _variances(parts: PartEstimates, queries: Queries) -> np.ndarray:
    """The variance of each of some queries."""
    inside = free_of(parts.domain, queries.scope)
    tables = np.stack([queries.to_marginal(one) for one in np.eye(queries.size)])
    tables = tables.reshape(queries.size, *parts.domain.shape(inside))
    found = np.zeros(queries.size)
    for part in subsets(inside):
        away = tuple(n + 1 for n, i in enumerate(inside) if i not in part)
        outside = math.prod(parts.domain.sizes[i] for i in inside if i not in part)
        sums = [centred(table) for table in tables.sum(axis=away)]
        found += np.array([float((one**2).sum()) for one in sums]) / (parts.precision[part] * outside**2)
    return found


def _domain(log: Log, queries: Queries) -> Domain:
    """The attributes that were measured or asked for; others count as having a single value."""
    sizes: dict[int, int] = {}
    for one in (queries, *(measured.queries for measured in log.measurements)):
        sizes.update(zip(one.scope, one.shape, strict=True))
    every = tuple(sizes.get(i, 1) for i in range(max(sizes) + 1))
    return Domain(tuple(map(str, range(len(every)))), every)
