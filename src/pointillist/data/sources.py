"""Sources of exact counts: all that the curator ever asks of private data.

A source counts a list of marginals in one pass. One kernel, :func:`count_batches`, works on batches of
integer-coded rows, so that other engines only have to deliver batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.table import Table

__all__ = ["Source", "TableSource", "count_batches"]

BATCH_ROWS = 1 << 16  # a batch's keys (512 KiB each) stay in the processor's cache


class Source(Protocol):
    """Exact counts over private rows."""

    @property
    def domain(self) -> Domain: ...

    @property
    def rows(self) -> int: ...

    def count(self, marginals: Sequence[Attributes]) -> list[np.ndarray]:
        """One flat int64 array per marginal, cells in C order of its attributes."""
        ...


@dataclass(frozen=True)
class TableSource:
    """A table in memory."""

    table: Table

    @property
    def domain(self) -> Domain:
        return self.table.domain

    @property
    def rows(self) -> int:
        return len(self.table)

    def count(self, marginals: Sequence[Attributes]) -> list[np.ndarray]:
        codes = self.table.codes
        starts = range(0, max(len(self.table), 1), BATCH_ROWS)
        batches = ([c[start : start + BATCH_ROWS] for c in codes] for start in starts)
        return count_batches(batches, self.domain, marginals)


def count_batches(
    batches: Iterable[Sequence[np.ndarray]], domain: Domain, marginals: Sequence[Attributes]
) -> list[np.ndarray]:
    """Count every marginal over batches of codes.

    The key of a record in the marginal over (i, j, k) is ``(x_i |X_j| + x_j) |X_k| + x_k``; marginals with a
    common prefix (i, j) share its key, so they are visited in sorted order.
    """
    order = sorted(range(len(marginals)), key=lambda m: marginals[m])
    counts = [np.zeros(domain.cells_of(marginal), np.int64) for marginal in marginals]
    for batch in batches:
        columns = [np.asarray(codes, dtype=np.intp) for codes in batch]
        prefix_keys: list[tuple[Attributes, np.ndarray]] = []
        for m in order:
            marginal = marginals[m]
            while prefix_keys and prefix_keys[-1][0] != marginal[: len(prefix_keys[-1][0])]:
                prefix_keys.pop()
            for width in range(len(prefix_keys) + 1, len(marginal) + 1):
                attribute = marginal[width - 1]
                key = columns[attribute]
                if prefix_keys:
                    key = prefix_keys[-1][1] * domain.sizes[attribute] + key
                prefix_keys.append((marginal[:width], key))
            counts[m] += np.bincount(prefix_keys[-1][1], minlength=len(counts[m]))
    return counts
