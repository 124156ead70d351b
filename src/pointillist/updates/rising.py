"""How far two ordered attributes rise together: one number for each pair, which a correlation follows.

With x_i the places of the codes of an attribute i on a line, such as the mean numbers of groups, without their mean and
of length 1, a pair with the part C q_ij (:mod:`pointillist.updates.parts`) has the contrast

    x_i . (C q_ij) x_j.

The noise of its estimate is that of a single dimension of the part, 1 / sqrt(pi_ij); as a correlation it is that over
the standard deviations of both attributes on their lines. A penalty on dependencies takes a little from many cells,
always in the same direction. None of them shows it by itself, but the contrast does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pointillist.families.components import Parts
from pointillist.updates.parts import PartEstimates

__all__ = ["directions"]

MOST_NOISE = 0.05
"""Pairs with more noise in their correlation are left out: it may be that of a few rows in two heavy tails, of which
nothing is known."""

SMALLEST = 1e-300
"""No length is taken to be smaller."""


def directions(parts: PartEstimates, ways: Sequence[np.ndarray], places: Sequence[Sequence[float]]) -> Parts:
    """The direction x_i x_j, a table of length 1, of each measured pair of attributes on lines.

    Args:
        parts: what was measured.
        ways: the estimated shares of the codes of each attribute.
        places: for every attribute where its codes, the first ones, lie on a line; none without an order. Empty if
            nothing is known about orders.
    """
    lines = [_along(len(way), own) for way, own in zip(ways, places, strict=True)] if places else []
    spreads = [_spread(line, way) for line, way in zip(lines, ways, strict=False)]
    found: Parts = {}
    for scope, precision in parts.precision.items():
        if lines and len(scope) == 2:
            i, j = scope
            if spreads[i] * spreads[j] * MOST_NOISE * math.sqrt(precision) > 1:
                found[scope] = np.outer(lines[i], lines[j])
    return found


def _along(size: int, places: Sequence[float]) -> np.ndarray:
    """x_i; 0 for codes that are not on the line, and for all if there is none."""
    found = np.zeros(size)
    found[: len(places)] = np.array(places) - np.mean(places) if len(places) else 0.0
    found /= max(float(np.abs(found).max()), SMALLEST)  # squares of the largest numbers would not be finite
    return np.asarray(found / max(float(np.linalg.norm(found)), SMALLEST))


def _spread(line: np.ndarray, shares: np.ndarray) -> float:
    """The standard deviation of the places of an attribute."""
    return math.sqrt(max(0.0, float(shares @ line**2 - (shares @ line) ** 2)))
