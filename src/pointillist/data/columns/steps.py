"""The numbers that a column with a step can hold, counted exactly, and the boundaries of logarithmic cells."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["Steps", "exact", "log_edges"]

TOLERANCE = 1e-9
"""How far a number may be from a multiple of the step, in steps."""
DIGITS = 4
"""Boundaries of logarithmic cells are rounded to this many digits, or more if that would make many of them equal."""


@dataclass(frozen=True)
class Steps:
    """The multiples of a step between two bounds: ``(k part + origin) / 10^digits`` for k in ``first .. last``."""

    part: int
    digits: int
    origin: int
    first: int
    last: int

    @classmethod
    def of(cls, bounds: tuple[float, float], step: Decimal) -> Steps:
        """Count steps from 0, or from the lower bound if that is not a multiple."""
        low, high = (Fraction(exact(bound)) for bound in bounds)
        size = Fraction(step)
        origin = Fraction(0) if (low / size).denominator == 1 else low
        digits = max(_digits(step), _digits(exact(bounds[0])) if origin else 0)
        first, last = ((end - origin) // size for end in (low, high))
        return cls(int(size * 10**digits), digits, int(origin * 10**digits), first, last)

    def __str__(self) -> str:
        start = f", counted from {Decimal(self.origin).scaleb(-self.digits).normalize():f}" if self.origin else ""
        return f"{Decimal(self.part).scaleb(-self.digits).normalize():f}{start}"

    @property
    def size(self) -> float:
        """The step."""
        return float(Fraction(self.part, 10**self.digits))

    @property
    def shift(self) -> Fraction:
        """What the numbers are counted from, in steps."""
        return Fraction(self.origin, self.part)

    def numerator(self, k: Any) -> Any:
        """Return the k-th number, times ``10^digits``."""
        return k * self.part + self.origin

    def _counted(self, x: np.ndarray) -> np.ndarray:
        """Return how many steps numbers are from 0, not rounded."""
        counted: np.ndarray = x * 10.0**self.digits / self.part
        return counted

    def locate(self, x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """Return which multiple is nearest to each number, and whether the number is that multiple.

        Args:
            x: The numbers.
            eps: The share by which they may have been rounded, apart from ``TOLERANCE``.
        """
        counted = self._counted(x)
        allowed = np.abs(counted) * (4 * eps) + TOLERANCE
        if self.origin:
            counted -= float(self.shift)
        whole = np.rint(counted)
        return whole.astype(np.int64), np.abs(counted - whole) <= allowed

    def holds(self, number: float) -> bool:
        """Return whether a number is a multiple."""
        return bool(self.locate(np.array([float(number)]), float(np.finfo(float).eps))[1][0])

    def evenly(self, cells: int) -> np.ndarray:
        """Return the boundaries of at most ``cells`` cells of 1, 2, 5, 10, 20, 50, ... steps, if the last is closed."""
        widths = (unit * 10**power for power in range(20) for unit in (1, 2, 5))
        width = next(width for width in widths if (self.last - (width > 1)) // width - self.first // width < cells)
        return np.arange(self.first // width * width, self.last + 1, width)

    def rounded(self, edges: np.ndarray) -> np.ndarray:
        """Return the multiples that are nearest to the edges."""
        return np.rint(self._counted(edges) - float(self.shift)).astype(np.int64)


def exact(number: float) -> Decimal:
    """Return a number as it is written."""
    return Decimal(repr(number))


def _digits(number: Decimal) -> int:
    """Return the number of digits after the point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def log_edges(near: float, far: float, finest: float, cells: int) -> np.ndarray:
    """Return round boundaries from ``near`` to ``far`` whose distances grow with them: c sinh(t), at equal gaps h of t.

    Args:
        near: The lower end.
        far: The upper end.
        finest: The distance of boundaries close to 0, which is c h. If it is 0, the sequence is geometric.
        cells: The number of cells between the boundaries.
    """
    if finest == 0:
        return _rounded(np.geomspace(near, far, cells + 1), cells)
    if far - near <= finest * cells:
        return near + finest * np.arange(int(np.ceil((far - near) / finest)) + 1)
    low, high = np.log(finest) - 10, np.log(far) + 10
    for _ in range(100):
        c = np.exp((low + high) / 2)
        gap = (np.arcsinh(far / c) - np.arcsinh(near / c)) / cells
        low, high = ((low + high) / 2, high) if c * gap < finest else (low, (low + high) / 2)
    start, stop = np.arcsinh(near / c), np.arcsinh(far / c)
    return _rounded(c * np.sinh(np.linspace(start, stop, cells + 1)), cells)


def _rounded(edges: np.ndarray, cells: int) -> np.ndarray:
    """Return edges rounded to few digits: as many as keep most of them apart.

    Each is moved to the roundest number that is nearer to it than to its neighbours. So round numbers, at which many
    people round their incomes, begin a cell and are never in the middle of one.
    """
    for digits in range(DIGITS, 17):
        short = np.unique([float(f"{edge:.{digits}g}") for edge in edges])
        if len(short) > 0.9 * cells:
            return np.unique(_roundest(short, digits))
    return edges


def _roundest(edges: np.ndarray, most: int) -> np.ndarray:
    """Return for each inner edge the number with the fewest digits, at most ``most``, nearer to it than to others."""
    middles = (edges[:-1] + edges[1:]) / 2
    low, high = np.append(edges[0], middles), np.append(middles, edges[-1])
    found = edges.copy()
    for digits in range(most, 0, -1):
        short = np.array([float(f"{edge:.{digits}g}") for edge in edges])
        found = np.where((low <= short) & (short < high), short, found)
    return found
