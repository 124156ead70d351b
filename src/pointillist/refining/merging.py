"""From the counts of fine codes to groups: which codes a model can carry by themselves, and which must share one.

All of it is post-processing of noisy counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["cuts", "merged_line", "merged_parts", "stand_out"]

TIMES_NEIGHBOURS = 4.0
"""A code with at least this many times the count of its neighbours is a point mass."""

NEIGHBOURS = 4
"""How many codes on each side are its neighbours."""

POINTS = 0.4
"""The largest share of the groups that are point masses."""


def stand_out(counts: np.ndarray, least: float, most: int) -> np.ndarray:
    """The positions of point masses: codes whose count stands out among those of their neighbours.

    Args:
        counts: smoothed counts of the codes on a line.
        least: the smallest count that a point mass exceeds its neighbours by.
        most: the largest number of point masses; the largest ones are taken.
    """
    padded = np.pad(counts, NEIGHBOURS, mode="reflect") if len(counts) > NEIGHBOURS else None
    if padded is None:
        return np.zeros(0, np.intp)
    around = np.stack([np.roll(padded, shift) for shift in range(-NEIGHBOURS, NEIGHBOURS + 1) if shift])
    usual = np.median(around, axis=0)[NEIGHBOURS:-NEIGHBOURS]
    found = np.flatnonzero((counts - usual > least) & (counts > TIMES_NEIGHBOURS * usual))
    return np.sort(found[np.argsort(-counts[found], kind="stable")][:most])


def cuts(
    counts: np.ndarray, most: int, least: float, levels: Sequence[np.ndarray] = (), values: np.ndarray | None = None
) -> list[int]:
    """Where to cut a line of codes into groups, so that codes are close to the middle of their group.

    The group is split for which this takes most off the sum of the counts times the distances from the median of the
    group, again and again, as long as both halves have at least ``least`` rows.

    Args:
        counts: smoothed counts of the codes.
        most: the largest number of groups.
        least: the smallest count of a group.
        levels: groupings of the codes, the coarsest first: a group is cut at borders of the coarsest of them that has
            any in it that leave both halves enough rows.
        values: an increasing number for each code, by which distances are measured; by default its position.
    """
    at_code = np.arange(len(counts), dtype=np.float64) if values is None else values
    mass = np.concatenate([[0.0], np.cumsum(counts)])
    moment = np.concatenate([[0.0], np.cumsum(counts * at_code)])

    def cost(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        middle = np.searchsorted(mass, (mass[low] + mass[high]) / 2, side="right") - 1
        middle = np.clip(middle, low, high - 1)
        median = at_code[middle]
        below = median * (mass[middle] - mass[low]) - (moment[middle] - moment[low])
        above = (moment[high] - moment[middle]) - median * (mass[high] - mass[middle])
        return np.asarray(below + above)

    def best(low: int, high: int) -> tuple[float, int]:
        at = np.arange(low + 1, high)
        at = _borders(at[(mass[at] - mass[low] >= least) & (mass[high] - mass[at] >= least)], levels)
        if not len(at):
            return 0.0, low
        whole = cost(np.array([low]), np.array([high]))[0]
        gains = whole - cost(np.full(len(at), low), at) - cost(at, np.full(len(at), high))
        return float(gains.max()), int(at[gains.argmax()])

    groups = {(0, len(counts)): best(0, len(counts))} if len(counts) else {}
    while groups and len(groups) < most:
        (low, high), (gain, at) = max(groups.items(), key=lambda item: item[1][0])
        if gain <= 0:
            break
        del groups[low, high]
        groups |= {(low, at): best(low, at), (at, high): best(at, high)}
    return sorted(low for low, _ in groups)[1:]


def _borders(at: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Those of some positions, with enough rows on both sides, at which a group is cut. With others among them, the
    beginning of a decade before all rows would keep a group whole."""
    for level in levels:
        found = at[level[at] != level[at - 1]]
        if len(found):
            return np.asarray(found)
    return at


def merged_line(
    counts: np.ndarray, most: int, least: float, levels: Sequence[np.ndarray] = (), values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The group of each code on a line, and which groups are point masses.

    Args:
        counts: smoothed counts of the codes.
        most: the largest number of groups.
        least: the smallest count of a group.
        levels: groupings of the codes at whose borders groups are cut, the coarsest first.
        values: an increasing number for each code, by which distances are measured; by default its position.
    """
    points = stand_out(counts, least, int(POINTS * most)) if not levels else np.zeros(0, np.intp)
    rest = np.setdiff1d(np.arange(len(counts)), points)
    inner = None if values is None else values[rest]
    found = cuts(counts[rest], max(1, most - len(points)), least, [level[rest] for level in levels], inner)
    groups = np.zeros(len(counts), np.intp)
    groups[rest] = np.searchsorted(found, np.arange(len(rest)), side="right")
    groups[points] = len(found) + 1 + np.arange(len(points))
    return groups, points


def merged_parts(counts: np.ndarray, most: int, least: float, levels: Sequence[np.ndarray] = ()) -> np.ndarray:
    """The group of each code of a column without an order.

    At first all codes share a group. Then the largest code, or group of a level of the hierarchy, gets a group of its
    own, again and again, as long as it and what is left of the group that it is taken from have at least ``least``
    rows. So what is left in the end is what no finer part of the hierarchy has enough rows for.

    Args:
        counts: smoothed counts of the codes.
        most: the largest number of groups.
        least: the smallest count of a group.
        levels: the hierarchy of the codes, the coarsest first.
    """
    groups = np.zeros(len(counts), np.intp)
    for new in range(1, most):
        masses, found = np.bincount(groups, counts, new), (0.0, groups < 0)
        for level in (*levels, np.arange(len(counts))):
            found = max(found, _largest(counts, groups, masses, level, least), key=lambda one: one[0])
        if found[0] <= 0:
            break
        groups[found[1]] = new
    return np.unique(groups, return_inverse=True)[1]


def _largest(
    counts: np.ndarray, groups: np.ndarray, masses: np.ndarray, level: np.ndarray, least: float
) -> tuple[float, np.ndarray]:
    """The largest part that a level cuts off a group so that part and rest have enough rows: its count, its codes."""
    parts, inverse = np.unique(groups * (int(level.max()) + 1) + level, return_inverse=True)
    sizes = np.bincount(inverse, counts)
    whole = masses[parts // (int(level.max()) + 1)]
    fits = (sizes >= least) & (whole - sizes >= least)
    best = int(np.argmax(np.where(fits, sizes, 0.0)))
    return float(sizes[best]) if fits[best] else 0.0, inverse == best
