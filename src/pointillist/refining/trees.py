"""Noisy counts of the fine codes of a column, at several levels, made into one estimate.

A tree over the codes has levels: the coarsest grouping of the codes first, the codes themselves last, each group being
a union of groups of the next level. All levels are measured. :class:`Tree` combines them by least squares and knows the
variance of every linear function of the result, which follows from the noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Tree", "even_levels", "smoothed_line", "smoothed_parts", "with_falling_tails", "within_reach"]

BRANCHES = 16
"""Codes (or groups) that one group of the next coarser level holds, where a column has no hierarchy of its own."""

LEAST_GROUPS = 8
"""A level with fewer groups is not measured."""

THRESHOLD = 2.5
"""Differences between values of a list of fewer standard deviations of their noise are taken for noise."""

BENDS = 2.0
"""So are differences from a smooth curve on a line."""

SPECK = 2.5
"""A tiny half with fewer standard deviations of its noise is taken for noise."""

TINY = 0.1
"""A half with less than this many times the count of the other one may be noise and nothing else."""

STEEPEST = 4.0
"""The density of one half of a part is not assumed to be more than this many times that of the other."""


TAIL, MOST_TAIL = 3.0, 0.05
"""The last rows at either end of a line, this number of times the noise of a code and at most this share of all rows,
are a falling tail."""

SHRINKING, SHORTEST = 0.7, 0.5
"""The factor from one distance in which a tail halves to the next, and the shortest of these distances, in codes."""

SEEN = 3.5
"""The rows from a code to an end are seen if they are more than this many standard deviations of their noise."""

LEAST_TRIES, MOST_TRIES = 20, 64
"""How many such codes are tried, and as many again from the other side."""

QUARTER, REACH = 4.0, 8.0
"""Beyond the last of them no row is further than ``REACH`` times the distance in which the rows before fall to a
quarter: of an exponential tail that is 1 in 65,000 of them."""

SHIFTS = 16
"""How many lines are smoothed, each with another beginning ..."""

MOST_SMOOTHED = 1 << 20
"""... but not more than this many codes in all, and at least two lines."""

ROUNDS = 10
"""How often counts are compared with public shares, less what stood out before."""


def even_levels(size: int) -> tuple[np.ndarray, ...]:
    """Groupings of ordered codes into equal runs, the coarsest first, without the one into single codes.

    Args:
        size: the number of codes.
    """
    levels: list[np.ndarray] = []
    width = BRANCHES
    while size / width >= LEAST_GROUPS:
        levels.insert(0, np.arange(size) // width)
        width *= BRANCHES
    return tuple(levels)


@dataclass(frozen=True)
class Tree:
    """Measured levels of a tree over the codes of a column.

    Attributes:
        levels: the group of each code at each level, the coarsest first; the last one gives every code its own group.
        sigmas: the standard deviation of the noise of each level.
        total_sigma: the standard deviation of the noise of the number of rows, which is the root.
    """

    levels: tuple[np.ndarray, ...]
    sigmas: tuple[float, ...]
    total_sigma: float

    @cached_property
    def _parents(self) -> list[np.ndarray]:
        """For each level: the group of each of its groups in the level above; the root for the first level."""
        above = [np.zeros_like(self.levels[-1]), *self.levels[:-1]]
        firsts = (np.unique(level, return_index=True)[1] for level in self.levels)
        return [up[first] for up, first in zip(above, firsts, strict=True)]

    def estimate(self, measured: Sequence[np.ndarray], total: float) -> np.ndarray:
        """The counts of the codes that fit all levels best: weighted least squares, in two passes over the tree.

        From the codes up, the estimate of each group is the average of its own count and the sum of its parts,
        weighted by their precision. From the root down, what the parts of a group lack to it is distributed over them
        in proportion to their variance.

        Args:
            measured: the noisy counts of the groups of each level.
            total: the number of rows.
        """
        found = [np.asarray(measured[-1], np.float64)]
        variances = [np.full(len(found[0]), self.sigmas[-1] ** 2)]
        counts = [np.array([total]), *measured[:-1]]
        sigmas = [max(self.total_sigma, 1e-3), *self.sigmas[:-1]]
        for up, y, sigma in zip(self._parents[::-1], counts[::-1], sigmas[::-1], strict=True):
            sums, spread = np.bincount(up, found[0], len(y)), np.bincount(up, variances[0], len(y))
            precision = 1 / sigma**2 + 1 / spread
            found.insert(0, (y / sigma**2 + sums / spread) / precision)
            variances.insert(0, 1 / precision)
        fitted = found[0]
        for up, parts, variance in zip(self._parents, found[1:], variances[1:], strict=True):
            lacking = fitted - np.bincount(up, parts, len(fitted))
            fitted = parts + (lacking / np.bincount(up, variance, len(fitted)))[up] * variance
        return fitted

    def variance(self, weights: np.ndarray) -> float:
        """The variance of h . x, where x is the estimate: h . (sum_l A_l^T A_l / sigma_l^2)^-1 h.

        The estimate from counts of h sigma^2 for the codes and 0 elsewhere is the inverse times h.

        Args:
            weights: h, a number for each code.
        """
        zeros = [np.zeros(int(level.max()) + 1) for level in self.levels[:-1]]
        return float(weights @ self.estimate([*zeros, weights * self.sigmas[-1] ** 2], 0.0))


def _shrunk(difference: np.ndarray, variance: float, deviations: float) -> np.ndarray:
    """Differences, less what noise of this variance explains (the non-negative garrote)."""
    noise, square = deviations**2 * variance, difference**2
    kept = np.divide(square - noise, square, out=np.zeros_like(square), where=square > noise)
    return np.asarray(difference * kept)


def smoothed_line(tree: Tree, counts: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Estimated counts of codes on a line without the noise that hides their shape: none of them negative.

    The line is halved again and again (:func:`_halved`). Where the halves begin is arbitrary, so that several lines are
    made, each with another beginning, and the median of their cumulative counts is taken at every code: of all lines it
    is nearest to them in the Wasserstein distance, summed over them.

    Args:
        tree: the tree behind the estimate.
        counts: the estimate, for all codes.
        places: the codes on the line, in order.
    """
    width = 1 << max(0, (len(places) - 1).bit_length())
    widths = [1 << k for k in range(1, (2 * width).bit_length())]
    variances = {part: _halving_variance(tree, len(counts), places, part) for part in widths}
    shifts = max(2, min(SHIFTS, MOST_SMOOTHED // width))
    starts = sorted({width * n // shifts for n in range(shifts)})
    lines = [np.cumsum(_halved(counts[places], variances, start)) for start in starts]
    return np.asarray(np.maximum(np.diff(np.median(lines, axis=0), prepend=0.0), 0.0))


def _halved(counts: np.ndarray, variances: Mapping[int, float], start: int) -> np.ndarray:
    """The counts of a line, smoothed by halving it again and again.

    How the count of a part is distributed over its halves is taken from the estimate as far as that differs from a
    smooth curve through the neighbouring parts by more than the noise explains.

    Args:
        counts: the estimate, in the order of the line.
        variances: the variance of half the difference between the halves of a part, by the codes in the part.
        start: where the line begins in a longer one, whose number of codes is a power of two.
    """
    end = start + len(counts)
    width = 1 << max(0, (end - 1).bit_length())
    sums, sizes = [np.zeros(width)], [np.zeros(width)]
    sums[0][start:end], sizes[0][start:end] = counts, 1.0
    while len(sums[0]) > 1:
        sums.insert(0, sums[0].reshape(-1, 2).sum(axis=1))
        sizes.insert(0, sizes[0].reshape(-1, 2).sum(axis=1))
    smooth = np.maximum(sums[0], 0.0)
    for level in range(1, len(sums)):
        half, halves, part = sizes[level].reshape(-1, 2), sums[level].reshape(-1, 2), width // len(smooth)
        variance = variances[part]
        odds = _falling(smooth / np.maximum(half.sum(axis=1), 1.0), math.sqrt(variance) / part)
        share = half[:, 0] * odds / np.maximum(half[:, 0] * odds + half[:, 1], 1e-300)
        difference = halves[:, 0] - halves.sum(axis=1) * share
        first = np.clip(smooth * share + _shrunk(difference, variance, BENDS), 0.0, smooth)
        smooth = _without_specks(np.stack([first, smooth - first], axis=1), variance).ravel()
    return smooth[start:end]


def within_reach(tree: Tree, counts: np.ndarray, places: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """Smoothed counts on a line without rows that lie far beyond all that are seen.

    Bounds are often much wider than the data, and a sum over many empty codes has much more noise than one of them.
    Where it is large by chance, some rows would be spread as far as the bound. They would change a standard deviation,
    and all correlations, more than everything else does.

    Args:
        tree: the tree behind the estimate.
        counts: the estimate, for all codes.
        places: the codes on the line, in order.
        smooth: their smoothed counts.
    """
    unseen = [_unseen(tree, counts, line) for line in (places, places[::-1])]
    if sum(unseen) >= len(places):
        return smooth  # nothing is seen at all
    for codes in unseen:  # each turns the line around: first the beginning is its end, then the end is
        smooth = _without_far_rows(smooth[::-1], codes)
    return smooth


def _unseen(tree: Tree, counts: np.ndarray, places: np.ndarray) -> int:
    """The number of first places whose sum can be noise alone. Only some numbers are tried, closer together at both
    ends, so that it may be a little too small."""
    size = len(places)
    tries = max(LEAST_TRIES, min(MOST_TRIES, MOST_SMOOTHED // size))
    some = np.unique(np.geomspace(1, size, tries).astype(int))
    beyond, before = np.cumsum(counts[places]), 0
    for width in np.union1d(some, size - some[:-1]).tolist():
        weights = np.zeros(len(counts))
        weights[places[:width]] = 1.0
        if beyond[width - 1] > SEEN * math.sqrt(max(0.0, tree.variance(weights))):
            return before
        before = width
    return size


def _without_far_rows(counts: np.ndarray, unseen: int) -> np.ndarray:
    """Counts on a line without rows beyond the reach of those that are seen.

    Args:
        counts: smoothed counts.
        unseen: the number of codes at the end where nothing is seen but noise.
    """
    left = np.append(np.cumsum(counts[::-1])[::-1], 0.0)  # from the beginning of each code on
    start = len(counts) - unseen
    before = float(np.interp(-QUARTER * left[start], -left, np.arange(len(left))))
    reach = max(REACH * (start - before), SHORTEST)
    return np.where(np.arange(len(counts)) < start + reach, counts, 0.0)


def with_falling_tails(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Counts on a line whose ends, where noise hides their shape, go on as they fall before.

    Bounds are often much wider than the data. A few rows that noise puts between the last value and the bound would
    change a mean or a standard deviation more than all other noise, and so would an end whose rows are spread evenly as
    far as the bound. So the last rows at either end, ``TAIL`` times the noise of a code, are moved to the tail of a
    generalised Pareto distribution: the distance in which the rest halves becomes ``SHRINKING`` times as long from one
    half to the next. It begins with that of the rows before: between 4, 2 and 1 times as many rows to the end, the
    shorter one (Pickands, *Statistical inference using extreme order statistics*, 1975, takes both for the factor, too,
    which was much worse where codes are logarithms). So the tail ends after some 3 such distances.

    Args:
        counts: smoothed counts.
        sigma: the noise of a single code.
    """
    last = min(TAIL * sigma, MOST_TAIL * float(counts.sum()))
    return _falling_end(_falling_end(counts, last)[::-1], last)[::-1] if last > 0 else counts


def _falling_end(counts: np.ndarray, last: float) -> np.ndarray:
    """Counts on a line with a falling tail at its end, which has the number of rows ``last``."""
    left = np.append(np.cumsum(counts[::-1])[::-1], 0.0)  # from the beginning of each code on
    ends = np.arange(len(left), dtype=float)
    first, second, start = (float(np.interp(-times * last, -left, ends)) for times in (4, 2, 1))
    halving = max(SHRINKING * min(start - second, second - first), SHORTEST)
    beyond = np.maximum(ends - start, 0.0) / halving
    rest = np.maximum(1 - (1 - SHRINKING) * beyond, 0.0) ** (math.log(2) / -math.log(SHRINKING))
    rest = (rest - rest[-1]) / max(1 - rest[-1], 1e-300)  # nothing is left behind the last code
    return np.asarray(-np.diff(np.where(ends < start, left, last * rest)))


def _without_specks(halves: np.ndarray, variance: float) -> np.ndarray:
    """Halves of parts; one that is tiny next to the other loses what noise explains, which would be far off in a tail.

    Args:
        halves: the counts of the first and the second half of each part.
        variance: the variance of the noise of a half.
    """
    small, large = halves.min(axis=1), halves.max(axis=1)
    kept = np.where(small < TINY * large, _shrunk(small, variance, SPECK), small)
    lost = (small - kept)[:, None]
    return np.asarray(np.where(halves == large[:, None], halves + lost, halves - lost))


def _falling(density: np.ndarray, noise: float) -> np.ndarray:
    """For each part, how many times denser its first half is than its second, on a smooth curve.

    Where the density falls like exp(-a x), it falls by the factor exp(-2 a w) from one neighbour to the other (w being
    the width of a part), and by exp(-a w / 2) from the middle of one half to the middle of the other.

    Args:
        density: the count per code of each part.
        noise: what the density may be off by; smaller ones are not distinguished from it.
    """
    logs = np.log(density + noise + 1e-12)
    if len(logs) < 2:
        return np.ones(len(logs))
    ends = np.concatenate([[2 * logs[0] - logs[1]], logs, [2 * logs[-1] - logs[-2]]])
    return np.asarray(np.clip(np.exp((ends[:-2] - ends[2:]) / 4), 1 / STEEPEST, STEEPEST))


def _halving_variance(tree: Tree, codes: int, places: np.ndarray, width: int) -> float:
    """The variance of half the difference between the halves of a part of this width."""
    start = (len(places) // width // 2) * width  # a part in the middle of the line, where it is whole
    weights = np.zeros(codes)
    weights[places[start : start + width // 2]] = 0.5
    weights[places[start + width // 2 : start + width]] = -0.5
    return tree.variance(weights)


def smoothed_parts(tree: Tree, counts: np.ndarray, places: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
    """Estimated counts of codes without an order: none of them negative, and equal where noise explains all.

    With public shares, the counts are in proportion to these where noise explains the difference.

    Args:
        tree: the tree behind the estimate.
        counts: the estimate, for all codes.
        places: the codes.
        shares: public shares of these codes, not all of them 0.
    """
    found = counts[places]
    weights = np.zeros(len(counts))
    weights[places[len(places) // 2]] = 1.0
    variance = tree.variance(weights)
    if shares is not None:
        return _smoothed_by_shares(found, shares, variance)
    rest = found - np.median(found) <= THRESHOLD * math.sqrt(variance)
    mean = float(found[rest].mean())
    smooth = np.where(rest, mean + _shrunk(found - mean, variance, THRESHOLD), found)
    smooth = np.maximum(smooth, 0.0)
    total = smooth.sum()
    wanted = max(float(found.sum()), 0.0)
    return smooth * (wanted / total) if total > 0 else np.full(len(places), wanted / len(places))


def _smoothed_by_shares(counts: np.ndarray, shares: np.ndarray, variance: float) -> np.ndarray:
    """Counts in proportion to public shares, except for those that differ by more than noise explains.

    The largest of m standard normal deviations is about sqrt(2 ln m), so that smaller ones are taken for noise. What
    stands out above its public share is taken away from the rest before the rest is compared.

    Args:
        counts: estimated counts.
        shares: public shares.
        variance: the variance of a count.
    """
    deviations = max(THRESHOLD, math.sqrt(2 * math.log(len(counts))))
    total, above = max(float(counts.sum()), 0.0), np.zeros(len(counts), bool)
    for _ in range(ROUNDS):
        known = float(shares[~above].sum())
        left = max(total - float(counts[above].sum()), 0.0)
        expected = shares * (left / known if known > 0 else 0.0)
        more = above | (counts - expected > deviations * math.sqrt(variance))
        if np.array_equal(more, above):
            break
        above = more
    smooth = np.maximum(expected + _shrunk(counts - expected, variance, deviations), 0.0)
    scale = float(smooth.sum())
    return smooth * (total / scale) if scale > 0 else shares * (total / float(shares.sum()))
