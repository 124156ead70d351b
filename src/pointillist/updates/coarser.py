"""What was measured, once more in blocks of neighbouring values: coarser views of marginals with ordered attributes.

A marginal over ordered attributes with many values has noise in every cell, and a fit cannot take a cell below 0. So
where the true cells are empty, far from the diagonal of two columns that rise together, it follows the noise upwards
only: a little in each cell, but in all of them, and a correlation depends on just these. Sums over blocks of cells know
better: their noise is much smaller than that of their cells together. They follow from what was measured, so that they
cost nothing.

A level merges every 2, 4, 8, ... neighbouring values of each ordered attribute of a marginal, as long as at least two
blocks are left; other attributes keep their values. A block of c cells with the precision pi of each has the sum of
their targets as its own, and the precision w pi / c. With w = 1 every level counts as much as the cells;
more was better for correlations and worse for the cells. Where residuals were measured instead of the marginal, its
cells are sums of parts, and so is the variance 1 / pi of each.
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

    def weights(self, precision: np.ndarray) -> np.ndarray:
        """How much each block of the views counts.

        Args:
            precision: 1 / variance of a cell of each of the queries; 0 where its cells are not known.
        """
        repeated = [np.full(view.size, precision[n]) for n, view in self.views]
        weights = WEIGHT * np.concatenate([np.zeros(0), *repeated])
        found: np.ndarray = weights / np.maximum(self.sums(np.ones(sum(one.size for one in self.queries))), 1.0)
        return found

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sums over the blocks of the views.

        Args:
            values: one for every cell of the queries, in one flat vector.
        """
        offsets = offsets_of(self.queries)
        sums = [view.of_marginal(values[int(offsets[n]) : int(offsets[n + 1])]) for n, view in self.views]
        return np.concatenate([np.zeros(0), *sums])


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
    return Intervals.blocks(size, on_line)
