"""Which row of a group gets which of its values: for decoding, so it is post-processing.

A code of a bin or of a group of merged values is decoded to a value that is drawn inside of it, for every column by
itself. What two columns say about each other inside of their groups would be lost. But rows of one group of a column
may exchange their values: no count of codes and no distribution of a single column changes. So the values are handed
to those rows to which they fit best, as far as the codes of the rows say that two columns are tied.

Every ordered column of numbers or times is taken on the normal scale: the position of a value is z = Phi^-1(rank). A
column k that is tied to others, its *parents* j, follows the model

    z_k = m + s(m) * normal noise,    m = sum over j of f_j(z_j),

with piecewise linear functions f_j and a spread s that depends on m. A share of the rows, the *strays*, does not follow
it: their z_k is normal by itself. All that is known of z_k is its group, an interval. So the model is fitted by
stochastic EM (interval-censored regression), on at most ``FITTED`` rows:

1. the f_j and s are fitted to the present positions by weighted least squares, with the probability of a row not to be
   a stray, divided by s^2, as its weight;
2. every row draws a position from the model, on the condition that it lies in the row's group, and the values of each
   group are handed out in the order of these draws.

Both steps are repeated, column by column. Where columns are hardly tied, s is large against the width of groups, the
draws are nearly even, and values stay as random as they were. Where they are closely tied, the spread that the widths
of groups pretend vanishes step by step. Then all rows are drawn from the models of the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from pointillist.data.columns import Column
from pointillist.data.columns.temporal import CYCLES
from pointillist.data.conditions import TEXT, TRUTH
from pointillist.data.rules import column_cells

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["couple"]

STREAM = 0x636F7570
"""Separates these draws from everything else."""

FEWEST = 500
"""Fewer rows are left as they were drawn: they say too little about ties."""

FITTED = 12_000
"""The largest number of rows that models are fitted to."""

MOST_TIED = 64
"""The largest number of columns whose values are exchanged: those with the closest ties."""

STEPS, SWEEPS = 8, 2
"""How often models are fitted and drawn from, and how often all rows are drawn from the last ones."""

MANY = 2**24
"""With more cells, all rows are drawn once."""

PARENTS = 4
"""The largest number of parents of a column."""

TIED, MORE = 0.1, 0.02
"""The least share of the variance that the first parent explains, and the least share of the rest that another does."""

KNOTS, APART = 16, 0.1
"""The largest number of knots of a piecewise linear function, and their least distance."""

PIECES, SMALLEST = 12, 1e-3
"""In how many places the spread is estimated, and the smallest spread."""

RARE, COMMON = 0.002, 0.5
"""Bounds of the share of strays."""

DIGITS = 6
"""Decimals that are kept of estimates, so that every machine draws the same rows."""

FAR = 9.0
"""No position is further out."""

FINE = 2**15
"""In how many positions functions are looked up."""


def couple(columns: Sequence[Column], codes: Sequence[np.ndarray], cells: dict[str, pa.Array], seed: int) -> None:
    """Exchange decoded values between rows with the same code, so that tied columns go together; in place.

    Args:
        columns: The columns.
        codes: Their codes.
        cells: Their decoded values, by name.
        seed: The seed of the exchange.
    """
    import pyarrow as pa

    rows = len(codes[0])
    if rows < FEWEST:
        return
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    few = np.arange(rows) if rows <= FITTED else np.sort(rng.choice(rows, FITTED, replace=False))
    given, sample = [], []
    for column, own in zip(columns, codes, strict=True):
        if (placed := _placed(column, own[few], cells[column.name].take(pa.array(few)))) is not None:
            given.append((column, own))
            sample.append(placed)
    models = _fitted(sample, rng)
    coupled = dict(enumerate(sample))
    if models and rows > FITTED:
        used = sorted({*models, *(j for model in models.values() for j in model.parents)})
        every = {n: _placed(*given[n], cells[given[n][0].name]) for n in used}
        coupled = {n: placed for n, placed in every.items() if placed is not None}
        _swept(coupled, models, rng)
    for n in models:
        name = given[n][0].name
        cells[name] = cells[name].take(pa.array(coupled[n].sources))


def _placed(column: Column, codes: np.ndarray, array: pa.Array) -> _Positions | None:
    """The positions of a column; None if its codes do not follow the order of their values, or hold texts."""
    if not column.ordered or getattr(getattr(column, "base", column), "bins", "") in CYCLES:
        return None
    kind, values, missing = column_cells(column, array)
    return None if kind in (TEXT, TRUTH) else _Positions.of(codes, values, ~missing)


@dataclass
class _Positions:
    """The positions of a column, and the values that its rows have at present.

    Attributes:
        groups: the code of each row.
        present: where values are not missing.
        z: the position of each row; 0 where it is missing.
        low, high: the interval of positions of each code.
        rows: the rows that may exchange values: those whose code has several.
        places: the same rows in the order of their codes, and of the decoded values of each code.
        levels: the positions of these values.
        sources: the row that each row has its value from.
    """

    groups: np.ndarray
    present: np.ndarray
    z: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    levels: np.ndarray
    sources: np.ndarray

    @classmethod
    def of(cls, groups: np.ndarray, values: np.ndarray, present: np.ndarray) -> Self | None:
        """The positions of decoded values; None if all of them are missing."""
        from scipy.special import ndtri

        rows = np.flatnonzero(present).astype(np.int32)
        if not len(rows):
            return None
        order = rows[np.argsort(values[rows], kind="stable")]
        new = np.append(True, values[order[1:]] != values[order[:-1]])
        starts = np.append(np.flatnonzero(new), len(rows))
        z = np.zeros(len(groups), np.float32)
        z[order] = ndtri((starts[:-1] + starts[1:]) / 2 / len(rows))[np.cumsum(new) - 1]
        size = int(groups.max()) + 1
        by = np.argsort(groups[order], kind="stable")
        ends = np.cumsum(np.bincount(groups[rows], minlength=size))
        used = np.flatnonzero(np.diff(ends, prepend=0))
        first, last = by[ends[used - 1] * (used > 0)], by[ends[used] - 1]
        low, high, several = np.full(size, -FAR), np.full(size, FAR), np.zeros(size, bool)
        low[used] = np.maximum(ndtri(first / len(rows)), -FAR)
        high[used] = np.minimum(ndtri((last + 1) / len(rows)), FAR)
        several[used] = values[order[first]] < values[order[last]]
        places = order[by]
        places = places[several[groups[places]]]
        rows = rows[several[groups[rows]]]
        return cls(groups, present, z, low, high, rows, places, z[places], np.arange(len(groups), dtype=np.int32))

    @cached_property
    def below(self) -> np.ndarray:
        """The share of values below each code."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.low))

    @cached_property
    def share(self) -> np.ndarray:
        """The share of the values of each code."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.high) - self.below)

    @cached_property
    def knots(self) -> np.ndarray:
        """The means of the positions of codes, without those that are close to the one before."""
        groups, z = self.groups[self.present], self.z[self.present]
        counts = np.bincount(groups)
        means = np.sort((np.bincount(groups, z) / np.maximum(counts, 1))[counts > 0])
        if len(means) > KNOTS:
            means = np.quantile(z, (np.arange(KNOTS) + 0.5) / KNOTS)
        kept = [means[0]]
        for mean in means[1:]:
            kept += [mean] if mean - kept[-1] >= APART else []
        return np.round(kept, DIGITS)

    def hand_out(self, centre: np.ndarray, spread: np.ndarray, strays: float, rng: np.random.Generator) -> None:
        """Draw a position for each of ``rows`` on the condition of its code, and hand out values in their order.

        A row of the code g is a stray with the probability of g under both: e q / (e q + (1 - e) p), where e is the
        share of strays, q that of g among all rows, and p the probability of g in the row's model.
        """
        from scipy.special import ndtr, ndtri

        groups = self.groups[self.rows]
        low, high = self.low[groups], self.high[groups]
        begin, end = (low - centre) / spread, (high - centre) / spread
        upper = begin > 0  # is drawn as its mirror image, since small probabilities are exact near 0
        begin, end = np.where(upper, -end, begin), np.where(upper, -begin, end)
        below = ndtr(begin)
        mass = ndtr(end) - below
        odd = strays * self.share[groups]
        stray = rng.random(len(groups)) * (odd + (1 - strays) * mass) < odd
        below, mass = np.where(stray, self.below[groups], below), np.where(stray, self.share[groups], mass)
        drawn = ndtri(below + rng.random(len(groups)) * mass)
        drawn = np.where(stray, drawn, centre + spread * np.where(upper, -drawn, drawn))
        along = (np.clip(drawn, low, high) - low) / (high - low)
        by = self.rows[_order((groups + along / 2) / len(self.low))]
        self.z[by] = self.levels
        self.sources[by] = self.places


def _order(shares: np.ndarray) -> np.ndarray:
    """The order of numbers in [0, 1), by their first 32 bits: the lower half of them first, then the upper one."""
    bits = (shares * 2.0**32).astype(np.uint32)
    order = np.argsort((bits & 0xFFFF).astype(np.uint16), kind="stable")
    return np.asarray(order[np.argsort((bits >> 16).astype(np.uint16)[order], kind="stable")])


@dataclass(frozen=True)
class _Model:
    """How the position of a column follows from those of its parents.

    Attributes:
        parents: the other columns.
        knots: the knots of the function of each parent.
        heights: the function at its knots, then where the parent is missing.
        middles, spreads: values of m, and the spread there.
        strays: the share of strays.
    """

    parents: tuple[int, ...]
    knots: tuple[np.ndarray, ...] = ()
    heights: tuple[np.ndarray, ...] = ()
    middles: np.ndarray | None = None
    spreads: np.ndarray | None = None
    strays: float = RARE

    def predict(self, columns: dict[int, _Positions], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return m and s of some rows. Functions are looked up at the nearest of ``FINE`` positions."""
        assert self.middles is not None
        assert self.spreads is not None
        fine = np.linspace(-FAR, FAR, FINE)
        centre = np.zeros(len(rows))
        for j, knots, heights in zip(self.parents, self.knots, self.heights, strict=True):
            line = sum(heights[place] * weight for place, weight in _hats(fine, np.ones(FINE, bool), knots))
            found = np.asarray(line)[_nearest(columns[j].z[rows])]
            centre += np.where(columns[j].present[rows], found, heights[-1])
        return centre, np.interp(fine, self.middles, self.spreads)[_nearest(centre)]


def _nearest(z: np.ndarray) -> np.ndarray:
    """The number of the nearest of ``FINE`` positions."""
    steps = (FINE - 1) / (2 * FAR)
    return np.asarray(np.clip(z, -FAR, FAR) * steps + (FAR * steps + 0.5), np.intp)


def _hats(z: np.ndarray, present: np.ndarray, knots: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two knots between which positions lie, with their weights: those of a line, which goes on at the ends.

    Missing values have a knot of their own, the last one.
    """
    if len(knots) == 1:
        return [(np.where(present, 0, 1), np.ones(len(z)))]
    at = np.clip(np.searchsorted(knots, z) - 1, 0, len(knots) - 2)
    along = np.where(present, (z - knots[at]) / np.diff(knots)[at], 0.0)
    at = np.where(present, at, len(knots))
    return [(at, 1 - along), (np.where(present, at + 1, len(knots)), along)]


def _fitted(columns: list[_Positions], rng: np.random.Generator) -> dict[int, _Model]:
    """The models of the columns that are tied to others, the closest ties first. Changes the positions."""
    moving = [n for n, one in enumerate(columns) if len(one.rows)]
    if not moving or len(columns) < 2:
        return {}
    correlations = _correlations(columns)
    ties = {k: _parents_of(k, correlations) for k in moving}
    closest = sorted((k for k in moving if ties[k][0]), key=lambda k: (-ties[k][1], k))[:MOST_TIED]
    models = {k: _Model(ties[k][0]) for k in closest}
    every = dict(enumerate(columns))
    for _ in range(STEPS):
        for k, model in models.items():
            models[k] = _refitted(every, k, model)
            columns[k].hand_out(*models[k].predict(every, columns[k].rows), models[k].strays, rng)
    return models


def _swept(columns: dict[int, _Positions], models: dict[int, _Model], rng: np.random.Generator) -> None:
    """Draw all rows from models."""
    cells = sum(len(columns[k].rows) for k in models)
    for _ in range(SWEEPS if cells <= MANY else 1):
        for k, model in models.items():
            columns[k].hand_out(*model.predict(columns, columns[k].rows), model.strays, rng)


def _correlations(columns: list[_Positions]) -> np.ndarray:
    """The correlations of positions, with missing values at the mean."""
    matrix = np.stack([np.where(one.present, one.z - one.z[one.present].mean(), 0.0) for one in columns])
    matrix /= np.maximum(np.sqrt((matrix**2).sum(axis=1)), SMALLEST)[:, None]
    return np.asarray(np.round(matrix @ matrix.T, DIGITS))


def _parents_of(k: int, correlations: np.ndarray) -> tuple[tuple[int, ...], float]:
    """The parents of a column by forward selection, and the share of its variance that they explain.

    The next parent is the one with the largest partial correlation. What the picked ones explain is a pivoted
    Cholesky factor of the correlations, with a column of loads for each of them.
    """
    size = len(correlations)
    loads = np.zeros((size, 0))
    parents: list[int] = []
    for _ in range(PARENTS):
        left = 1.0 - (loads**2).sum(axis=1)
        partial = correlations[k] - loads @ loads[k]
        gains = np.where(left > 0.05, partial**2 / np.maximum(left * left[k], SMALLEST**2), 0.0)
        gains[[k, *parents]] = 0.0
        best = int(np.argmax(gains))
        if left[k] <= SMALLEST or gains[best] < (MORE if parents else TIED):
            break
        load = (correlations[best] - loads @ loads[best]) / np.sqrt(left[best])
        loads = np.column_stack([loads, load])
        parents.append(best)
    return tuple(parents), float((loads[k] ** 2).sum())


def _refitted(columns: dict[int, _Positions], k: int, model: _Model) -> _Model:
    """The model of a column, fitted to the present positions, with one more parent where it explains the residuals."""
    rows = np.flatnonzero(columns[k].present)
    y = columns[k].z[rows]
    spread = steady = np.ones(len(rows))
    parents, strays = model.parents, model.strays
    if model.middles is not None:
        centre, spread = model.predict(columns, rows)
        follows = (1 - strays) * np.exp(-(((y - centre) / spread) ** 2) / 2) / spread
        steady = follows / (follows + strays * np.exp(-(y**2) / 2))
        strays = float(np.round(np.clip(1 - steady.mean(), RARE, COMMON), DIGITS))
        parents = _one_more(columns, k, parents, y - centre, steady)
    knots = tuple(columns[j].knots for j in parents) if parents != model.parents or not model.knots else model.knots
    hats, sizes = [], [len(one) + 1 for one in knots]
    for j, own, start in zip(parents, knots, np.cumsum(sizes) - sizes, strict=True):
        hats += [(place + start, weight) for place, weight in _hats(columns[j].z[rows], columns[j].present[rows], own)]
    heights = _least_squares(hats, sum(sizes), y, steady / spread**2)
    centre = np.sum([heights[place] * weight for place, weight in hats], axis=0)
    middles, spreads = _spread(centre, (y - centre) ** 2, steady)
    split = tuple(np.split(heights, np.cumsum(sizes)[:-1]))
    return replace(model, parents=parents, knots=knots, heights=split, middles=middles, spreads=spreads, strays=strays)


def _one_more(
    columns: dict[int, _Positions], k: int, parents: tuple[int, ...], residuals: np.ndarray, weights: np.ndarray
) -> tuple[int, ...]:
    """The parents, with the column that is most correlated with the residuals if it explains enough of them."""
    if len(parents) == PARENTS:
        return parents
    rows = np.flatnonzero(columns[k].present)
    gains = np.zeros(len(columns))
    total = np.sum(weights * residuals**2)
    for j in columns.keys() - {k, *parents}:
        z = columns[j].z[rows]
        z = z - np.sum(weights * z) / np.sum(weights)
        gains[j] = np.sum(weights * residuals * z) ** 2 / max(np.sum(weights * z**2) * total, SMALLEST**2)
    best = int(np.argmax(np.round(gains, DIGITS)))
    return (*parents, best) if gains[best] >= MORE else parents


def _least_squares(
    hats: list[tuple[np.ndarray, np.ndarray]], size: int, y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The heights at all knots that minimise the weighted squared residuals, with a small penalty on their squares."""
    left, right = np.zeros(size * size), np.zeros(size)
    for one, first in hats:
        right += np.bincount(one, weights * first * y, size)
        for two, second in hats:
            left += np.bincount(one * size + two, weights * first * second, size * size)
    matrix = left.reshape(size, size)
    matrix += np.diag(np.maximum(1e-4 * np.diag(matrix), 0.5))
    return np.round(np.linalg.solve(matrix, right), DIGITS)


def _spread(centre: np.ndarray, squares: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The root mean square of residuals along m, in runs of rows with similar m."""
    runs = np.array_split(np.argsort(centre, kind="stable"), PIECES)
    middles = np.array([centre[run].mean() for run in runs])
    found = np.array([np.sum(weights[run] * squares[run]) / max(np.sum(weights[run]), SMALLEST) for run in runs])
    return np.round(middles, DIGITS), np.maximum(np.round(np.sqrt(found), DIGITS), SMALLEST)
