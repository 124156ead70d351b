"""Intervals of the codes of one attribute: the factors of product queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from pointillist.checks import check
from pointillist.errors import Shown

__all__ = ["Intervals"]

MOST_NUMBERS = 5_000_000
"""The largest matrix F, codes times columns, unless it is the identity: the prefixes of some two thousand codes."""


@dataclass(frozen=True)
class Intervals:
    """The 0/1 matrix F[x, j] = 1 if low_j <= x < high_j, for the codes x = 0 .. size - 1 of an attribute.

    Attributes:
        size: the number of codes.
        bounds: (low_j, high_j) of each column j.
    """

    size: int
    bounds: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple((int(low), int(high)) for low, high in self.bounds))
        check(len(self.bounds) > 0, "intervals", [], "must not be empty", "give bounds such as (0, 3)")
        for low, high in self.bounds:
            good = 0 <= low < high <= self.size
            check(good, "interval", (low, high), f"must be 0 <= low < high <= {self.size}", "give codes of the column")
        numbers = self.size * len(self.bounds)
        rule, hint = f"must be at most {MOST_NUMBERS:,}, codes times intervals", "use ranges, or coarser columns"
        check(numbers <= MOST_NUMBERS or self.identity, "intervals", Shown(f"{numbers:,}"), rule, hint)

    @staticmethod
    @cache
    def values(size: int) -> Intervals:
        """One column per code: F is the identity."""
        return Intervals(size, tuple((x, x + 1) for x in range(size)))

    @staticmethod
    @cache
    def prefixes(size: int) -> Intervals:
        """x < 1, x < 2, ..., x < size: the last one always holds."""
        return Intervals(size, tuple((0, end) for end in range(1, size + 1)))

    @staticmethod
    def blocks(size: int, bounds: Sequence[tuple[int, int]]) -> Intervals:
        """Neighbouring blocks of the first codes, and the codes after them one by one: a partition.

        Args:
            size: the number of codes.
            bounds: the blocks, each of which begins where the one before ends.
        """
        end = bounds[-1][1] if bounds else 0
        return Intervals(size, (*bounds, *((code, code + 1) for code in range(end, size))))

    @cached_property
    def identity(self) -> bool:
        """Whether the columns are the codes themselves."""
        return self.bounds == tuple((x, x + 1) for x in range(self.size))

    @cached_property
    def nested(self) -> bool:
        """Whether all begin, or all end, at the same code. What holds for one of two codes then includes all
        that holds for the other."""
        return any(len(set(ends)) == 1 for ends in zip(*self.bounds, strict=True))

    @cached_property
    def depth(self) -> np.ndarray:
        """The number of columns that hold for each code."""
        steps = np.zeros(self.size + 1, np.int64)
        np.add.at(steps, [low for low, _ in self.bounds], 1)
        np.subtract.at(steps, [high for _, high in self.bounds], 1)
        return np.cumsum(steps)[:-1]

    @cached_property
    def matrix(self) -> np.ndarray:
        """F, as size x columns integers."""
        codes = np.arange(self.size)[:, None]
        low, high = np.array(self.bounds).T
        return np.asarray((low <= codes) & (codes < high), np.int64)

    @cached_property
    def ones(self) -> np.ndarray | None:
        """Weights w of the columns with F w = 1, of the smallest length; None if there are none."""
        if self.identity:
            return np.ones(self.size)
        weights: np.ndarray = np.linalg.lstsq(self.matrix.astype(float), np.ones(self.size), rcond=None)[0]
        return weights if np.allclose(self.matrix @ weights, 1.0) else None

    def sums(self, table: np.ndarray, axis: int) -> np.ndarray:
        """``table`` contracted with F along an axis: differences of running sums, exact for integers."""
        if self.identity:
            return table
        running = np.concatenate([np.zeros_like(table.take([0], axis)), np.cumsum(table, axis)], axis)
        low, high = np.array(self.bounds).T
        sums: np.ndarray = running.take(high, axis) - running.take(low, axis)
        return sums

    def spread(self, values: np.ndarray, axis: int) -> np.ndarray:
        """``values`` contracted with the transpose of F along an axis: each code gets the sum over its columns."""
        if self.identity:
            return values
        spread: np.ndarray = np.moveaxis(np.tensordot(self.matrix, values, (1, axis)), 0, axis)
        return spread
