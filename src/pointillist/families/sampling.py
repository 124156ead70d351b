"""Low-variance draws."""

from __future__ import annotations

import numpy as np

__all__ = ["stratified"]


def stratified(rng: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """``count`` positions drawn by ``weights``: the i-th from the i-th of equal slices of the distribution function.

    Each position comes up its expected number of times, up to one at either end of its slice, so that the draws lose
    less accuracy than independent ones; in random order.
    """
    cumulative = np.cumsum(weights, dtype=np.float64)
    points = (np.arange(count) + rng.random(count)) / count * cumulative[-1]
    positions: np.ndarray = np.minimum(np.searchsorted(cumulative, points, side="right"), len(cumulative) - 1)
    rng.shuffle(positions)
    return positions
