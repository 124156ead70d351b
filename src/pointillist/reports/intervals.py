"""Intervals around answers: the one place that says where error bars come from.

Where :mod:`pointillist.answers` is there, its intervals are used. Otherwise they follow from the noise of the
measurements alone: a query whose count is a sum of k cells of a measured marginal has an unbiased estimate with the
standard deviation sigma sqrt(k), and estimates of independent measurements are combined by their inverse variances. A
query that no measurement determines has no interval (NaN).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from pointillist.queries.base import Queries, is_direct
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.release import Release

__all__ = ["SOURCE", "intervals"]

SOURCE = (
    "the noise of the measurements that determine it. An answer that no measurement determines has no interval, and "
    "the error of the model itself is not part of it"
)
"""Where the intervals come from, in words."""


def intervals(
    release: Release, queries: Sequence[Queries], level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The model's answers, and intervals that hold the true ones with the given probability each, as fractions.

    Args:
        release: the release.
        queries: what is asked.
        level: the probability.
    """
    estimates = np.asarray(release.family.answers(release.params, tuple(queries)))
    measured = [one for entry in release.log.rounds for one in entry.measurements if isinstance(one.queries, Marginal)]
    found = [_from_noise(one, measured) for one in queries]
    centre, spread = (np.concatenate([one[n] for one in found]) / release.description.total for n in (0, 1))
    width = float(norm.ppf((1 + level) / 2)) * spread
    return estimates, np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1)


def _from_noise(queries: Queries, measured: Sequence[Measurement]) -> tuple[np.ndarray, np.ndarray]:
    """The best unbiased estimates of the counts, and their standard deviations; NaN where there are none."""
    weights, sums = np.zeros(queries.size), np.zeros(queries.size)
    for one in measured:
        if set(queries.scope) <= set(one.queries.scope) and not is_direct(queries):
            counts, cells = _over_scope(one, queries.scope)
            weight = 1 / (one.sigma**2 * cells * queries.of_marginal(np.ones(len(counts))))
            sums, weights = sums + weight * queries.of_marginal(counts), weights + weight
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums / weights, np.where(weights > 0, 1 / np.sqrt(weights), np.nan)


def _over_scope(measured: Measurement, scope: Sequence[int]) -> tuple[np.ndarray, int]:
    """The noisy marginal over fewer attributes, and the number of cells that each of its cells is a sum of."""
    table = measured.counts.reshape(measured.queries.shape)
    left = tuple(n for n, i in enumerate(measured.queries.scope) if i not in scope)
    flat = table.sum(axis=left).astype(float).ravel()
    return flat, table.size // flat.size
