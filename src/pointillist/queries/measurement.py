"""Measurements: noisy counts of queries. The one currency between the door, the log, updates and releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.queries.base import Queries

__all__ = ["Measurement", "to_simplex"]


@dataclass(frozen=True)
class Measurement:
    """Noisy integer counts of some queries.

    Attributes:
        queries: what was asked.
        counts: the number of rows for which each holds, plus noise.
        sigma: the standard deviation of the noise of each count.
    """

    queries: Queries
    counts: np.ndarray
    sigma: float

    def fractions(self, total: float) -> np.ndarray:
        """The counts as fractions of ``total`` rows: unbiased, so some may be below 0."""
        fractions: np.ndarray = self.counts / total
        return fractions

    def feasible(self, total: int) -> np.ndarray:
        """The fractions moved to what a distribution can have: the nearest point of the simplex for a partition
        (clipping each cell would add mass: about half of the noise), else each clipped to [0, 1]."""
        fractions = self.fractions(total)
        if self.queries.partition:
            return to_simplex(fractions)
        clipped: np.ndarray = np.clip(fractions, 0.0, 1.0)
        return clipped


def to_simplex(values: np.ndarray) -> np.ndarray:
    """The point of the simplex nearest to ``values``: max(values - tau, 0) with tau such that it sums to 1."""
    descending = np.sort(values)[::-1]
    taus = (np.cumsum(descending) - 1) / np.arange(1, len(values) + 1)
    tau = taus[np.flatnonzero(descending > taus)[-1]]
    nearest: np.ndarray = np.maximum(values - tau, 0.0)
    return nearest
