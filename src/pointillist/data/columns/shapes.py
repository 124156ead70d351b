"""The density inside of bins, from the counts of the bins: for decoding, so it is post-processing.

Inside a bin the density is piecewise linear, with a knot in its middle. Its height at an edge between two bins is
interpolated between the logarithms of their average densities, and is limited so that the density is never negative,
does not leave the range of its own knots in a bin between a higher and a lower one, and every bin keeps its mass. So it
is continuous except where a limit acts, as next to a spike. A bin at an end whose neighbour is denser falls off
exponentially: it begins at the height of the edge and keeps its mass, with a mean length of at least half of the
neighbour's width. It is drawn as ``TAIL`` linear pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Density", "density_inside"]

TAIL = 64
"""The number of linear pieces of a tail."""
FAR = 25.0
"""The number of mean lengths of a tail after which a single piece is enough: what is left is below 1e-10."""
BATCH = 2**16
"""The number of draws that are computed at a time."""
VALLEY = 1.5
"""The largest height at the edges of a bin that is lower than both of its neighbours, relative to its average."""


@dataclass(frozen=True)
class Density:
    """A density inside of each of some bins, in pieces on which it is linear.

    Args:
        offsets: The first piece of each bin, and the number of pieces.
        begin: The share of its bin's mass that lies below each piece.
        mass: The share of its bin's mass that lies in each piece.
        left: The lower end of each piece.
        width: The width of each piece.
        heights: The density at the lower and at the upper end of each piece, up to a factor.
    """

    offsets: np.ndarray
    begin: np.ndarray
    mass: np.ndarray
    left: np.ndarray
    width: np.ndarray
    heights: np.ndarray

    def draw(self, bins: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the number below which a share ``u`` of the mass of a bin lies.

        Args:
            bins: A bin for each draw.
            u: Numbers in [0, 1), as from a generator.
        """
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        starts = owner + self.begin
        drawn = np.empty(len(bins))
        for part in (slice(first, first + BATCH) for first in range(0, len(bins), BATCH)):
            drawn[part] = self._draw(starts, bins[part], u[part])
        return drawn

    def _draw(self, starts: np.ndarray, bins: np.ndarray, u: np.ndarray) -> np.ndarray:
        piece = np.searchsorted(starts, bins + u, side="right") - 1
        piece = np.clip(piece, self.offsets[bins], self.offsets[bins + 1] - 1)
        share = np.clip((u - self.begin[piece]) / self.mass[piece], 0.0, 1.0)
        low, high = self.heights[0, piece], self.heights[1, piece]
        root = low + np.sqrt(low**2 + (high**2 - low**2) * share)
        along = np.divide(share * (low + high), root, out=np.zeros_like(root), where=root > 0)
        inside: np.ndarray = self.left[piece] + np.minimum(along, 1.0) * self.width[piece]
        return inside


def density_inside(edges: np.ndarray, counts: np.ndarray, single: float = 0.0) -> Density:
    """Return a density inside of each bin that goes with the counts of the bins.

    Args:
        edges: The edges of the bins, in increasing order: one more than there are bins.
        counts: The number of rows in each bin. Half a row is added to each, so that empty bins do not count as empty.
        single: The width of a bin that holds a single value; a tail does not begin at the height of such a bin.
    """
    edges, counts = np.asarray(edges, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    width = np.diff(edges)
    density = np.log(counts + 0.5) - np.log(width)
    left, right = _heights(width, density)
    knots = [np.array([0.0, 0.5, 1.0])] * len(width)
    tops = [np.array(h) for h in zip(left, 2 - (left + right) / 2, right, strict=True)]
    shares = [np.array([0.0, (a + m) / 4, 1.0]) for a, m, _ in tops]
    for end, mirrored in ((len(width) - 1, False), (0, True)):
        order = slice(None, None, -1) if mirrored else slice(None)
        knot, top, share = _end(width[order], density[order], single)
        knots[end], tops[end], shares[end] = (
            (1 - knot[::-1], top[::-1], 1 - share[::-1]) if mirrored else (knot, top, share)
        )
    sizes = [len(knot) - 1 for knot in knots]
    scale = np.repeat(width, sizes)
    return Density(
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        begin=np.concatenate([share[:-1] for share in shares]),
        mass=np.maximum(np.concatenate([np.diff(share) for share in shares]), 1e-300),
        left=np.repeat(edges[:-1], sizes) + np.concatenate([knot[:-1] for knot in knots]) * scale,
        width=np.concatenate([np.diff(knot) for knot in knots]) * scale,
        heights=np.stack([np.concatenate([t[:-1] for t in tops]), np.concatenate([t[1:] for t in tops])]),
    )


def _heights(width: np.ndarray, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the heights at the lower and the upper edge of each bin, relative to its average density."""
    between = _between(width, density)
    left = np.exp(np.clip(np.concatenate([density[:1], between]) - density, -30, 30))
    right = np.exp(np.clip(np.concatenate([between, density[-1:]]) - density, -30, 30))
    low, high = np.minimum(left, right), np.maximum(left, right)
    slope = (low < 1) & (high > 1)
    valley = low >= 1
    high = np.where(slope, np.minimum(high, 4 - 3 * low), np.where(valley, np.minimum(high, VALLEY), high))
    low = np.where(slope, np.maximum(low, 4 - 3 * high), np.where(valley, np.minimum(low, VALLEY), low))
    rising = left < right
    return np.where(rising, low, high), np.where(rising, high, low)


def _between(width: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Return the logarithms of the density at the inner edges, interpolated between the middles of the bins."""
    part = width[1:] / (width[:-1] + width[1:])
    inner: np.ndarray = part * density[:-1] + (1 - part) * density[1:]
    return inner


def _end(width: np.ndarray, density: np.ndarray, single: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the knots of the last bin (in 0 .. 1), its heights there, and the shares of its mass below them."""
    straight = np.array([0.0, 0.5, 1.0])
    if len(width) == 1 or width[-2] <= single:
        return straight, np.ones(3), straight
    edge = _between(width[-2:], density[-2:])[0]
    if len(width) > 2 and width[-3] > single:  # where the neighbour falls, it is lower at the edge than on average
        fall = max(density[-3] - density[-2], 0.0) * width[-2] / (width[-2] + width[-3])
        edge = min(edge, density[-2] - min(fall, np.log(2)))
    most = np.log(max(1.0, 2 * width[-1] / width[-2]))
    height = float(np.exp(min(edge - density[-1], most)))
    if height <= 1 + 1e-6:
        return straight, np.array([height, 1.0, 2 - height]), np.array([0.0, (height + 1) / 4, 1.0])
    rate = _rate(height)
    knot = np.append(np.linspace(0, min(1.0, FAR / rate), TAIL), 1.0)
    return knot, np.exp(-rate * knot), np.expm1(-rate * knot) / np.expm1(-rate)


def _rate(height: float) -> float:
    """Return z such that exp(-z t) on [0, 1] has the average 1 / ``height``."""
    low, high = 0.0, height
    for _ in range(100):
        z = (low + high) / 2
        low, high = (z, high) if -np.expm1(-z) > z / height else (low, z)
    return (low + high) / 2
