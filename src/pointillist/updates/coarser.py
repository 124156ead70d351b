"""What was measured, once more in blocks of neighbouring values: coarser views of marginals with ordered attributes.

A marginal over ordered attributes with many values has noise in every cell, and a fit cannot take a cell below 0. So
where the true cells are empty, far from the diagonal of two columns that rise together, it follows the noise upwards
only: a little in each cell, but in all of them, and a correlation depends on just these. Sums over blocks of cells know
better: their noise is much smaller than that of their cells together. They follow from what was measured, so that they
cost nothing.

A level merges every 2, 4, 8, ... neighbouring values of each ordered attribute of a marginal, as long as at least two
blocks are left; other attributes keep their values. A block of c cells with the precision pi of each has the sum of
their targets as its own, and the precision w pi / c. With w = 1 every level counts as much as the cells;
more was better for correlations and worse for the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pointillist.queries.base import Queries
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.queries.workload import offsets_of

__all__ = ["Coarser", "blocks"]

WEIGHT = 1.0
"""w: how much a block counts, see above."""


@dataclass(frozen=True)
class Coarser:
    """The coarser views of a list of queries.

    Attributes:
        queries: what was measured.
        lines: for every attribute the number of codes, the first ones, that lie on a line; 0 or nothing at all for
            attributes without an order.
    """

    queries: tuple[Queries, ...]
    lines: tuple[int, ...]

    @cached_property
    def views(self) -> tuple[tuple[int, Product], ...]:
        """Each coarser view, and the position of the queries that it is a view of."""
        return tuple((n, view) for n, one in enumerate(self.queries) for view in self._of(one))

    @cached_property
    def all_queries(self) -> tuple[Queries, ...]:
        """The queries, and after them their coarser views."""
        return (*self.queries, *(view for _, view in self.views))

    def _of(self, queries: Queries) -> Iterator[Product]:
        lengths = [self.lines[i] if i < len(self.lines) else 0 for i in queries.scope]
        if not isinstance(queries, Marginal) or len(queries.scope) < 2:
            return
        width = 2
        while any(length > width for length in lengths):
            pairs = zip(queries.shape, lengths, strict=True)
            yield Product(queries.scope, tuple(blocks(size, length, width) for size, length in pairs))
            width *= 2

    def extended(self, targets: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets and precisions of the queries, and after them those of their coarser views.

        Args:
            targets: those of the queries, in one flat vector.
            precision: 1 / variance of each; the same for all cells of a marginal, 0 where nothing was measured.
        """
        firsts = precision[offsets_of(self.queries)[:-1]]
        sizes = np.split(self.summed(np.ones(len(targets))), [len(targets)])[1]
        repeated = [np.full(view.size, firsts[n]) for n, view in self.views]
        weights = WEIGHT * np.concatenate([np.zeros(0), *repeated]) / sizes
        return self.summed(targets), np.concatenate([precision, weights])

    def summed(self, values: np.ndarray) -> np.ndarray:
        """A value of every cell of the queries, and after them the sums over the blocks of their coarser views.

        Args:
            values: those of the cells, in one flat vector.
        """
        offsets = offsets_of(self.queries)
        sums = [view.of_marginal(values[int(offsets[n]) : int(offsets[n + 1])]) for n, view in self.views]
        return np.concatenate([values, *sums])


def blocks(size: int, length: int, width: int) -> Intervals:
    """Blocks of ``width`` neighbouring codes on a line, the last of which may be shorter, and single codes after it.

    The blocks of a short line are only so wide that there are two of them, or one where the line has a single code.

    Args:
        size: the number of codes.
        length: how many of them, the first ones, lie on the line.
        width: the number of codes in a block.
    """
    width = min(width, max(1, (length + 1) // 2))
    on_line = [(low, min(low + width, length)) for low in range(0, length, width)]
    return Intervals(size, (*on_line, *((code, code + 1) for code in range(length, size))))
