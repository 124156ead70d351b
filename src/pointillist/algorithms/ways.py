"""The ways in which two records can differ, and what residuals cost against a mixture of them.

Under replace one person changes residuals with the weights w_A by 2 sum_A w_A^2 (c_A - p_A(y)) in squared length.
c_A = prod m_i (m_i - 1) is the squared length of a column of R_A, y says in which attributes the two records differ,
and

    p_A(y) = prod_{i in A} (-m_i if they differ in i, else m_i (m_i - 1))

is the inner product of their columns (:func:`~pointillist.queries.residuals.over_patterns`). The sensitivity is the
largest value over all y. Weights that are best for a *mixture* of ways, the one for which the error is largest, are the
best ones against all of them: a saddle point, which multiplicative steps of the mixture find.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pointillist.queries.residuals import Residual, over_patterns

__all__ = ["MOST_ATTRIBUTES", "Ways"]

MOST_ATTRIBUTES = 16
"""Up to this number of attributes all 2^d ways are looked at."""


class Ways:
    """A mixture of the ways in which two records can differ; that of two random records at the start.

    Args:
        units: residuals of weight 1.
    """

    def __init__(self, units: Sequence[Residual]) -> None:
        sizes = {i: m for unit in units for i, m in zip(unit.scope, unit.shape, strict=True)}
        self._attributes = sorted(sizes)
        self._sizes = [sizes[i] for i in self._attributes]
        self._places = tuple(np.array([[int(i in unit.scope) for unit in units] for i in self._attributes]))
        self._whole = np.array([float(unit.square) for unit in units])
        self._shares = _random_pair(self._sizes)

    @classmethod
    def few(cls, units: Sequence[Residual]) -> bool:
        """Whether all ways can be looked at."""
        return len({i for unit in units for i in unit.scope}) <= MOST_ATTRIBUTES

    @property
    def costs(self) -> np.ndarray:
        """c_A - p_A, on average over the mixture: what w_A^2 = 1 costs."""
        costs: np.ndarray = self._whole - _inner_products(self._shares, self._sizes)[self._places]
        return costs

    def changes(self, squares: np.ndarray) -> np.ndarray:
        """sum_A w_A^2 (c_A - p_A(y)) for every way y.

        Args:
            squares: w_A^2 of every residual.
        """
        table = np.zeros(self._shares.shape)
        table[self._places] = squares
        changes: np.ndarray = float(squares @ self._whole) - over_patterns(table, self._sizes)
        return changes

    def shift(self, changes: np.ndarray, power: float = 1.0) -> float:
        """Move the mixture to the ways that cost most, and say by how much the worst way costs more than the mixture.

        Args:
            changes: what each way costs.
            power: how far; 1 for steps that are sure to converge.
        """
        relative = changes / float((self._shares * changes).sum())
        self._shares = self._shares * np.maximum(relative, 0.0) ** power
        self._shares /= self._shares.sum()
        return float(relative.max())


def _random_pair(sizes: Sequence[int]) -> np.ndarray:
    """How often two random records differ in each of the possible ways, given that they differ."""
    shares = np.ones(())
    for m in sizes:
        shares = np.multiply.outer(shares, np.array([1 / m, 1 - 1 / m]))
    shares.flat[0] = 0.0
    mixture: np.ndarray = shares / shares.sum()
    return mixture


def _inner_products(shares: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """For each set of attributes the mean inner product of the columns of two records: the transpose of
    :func:`~pointillist.queries.residuals.over_patterns`."""
    for axis, m in enumerate(sizes):
        same, other = np.moveaxis(shares, axis, 0)
        shares = np.asarray(np.stack([same + other, m * (m - 1) * same - m * other], axis=axis))
    return shares
