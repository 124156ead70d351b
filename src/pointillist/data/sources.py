"""Sources of exact counts: all that the curator ever asks of private data.

A source counts a list of marginals in one pass. One kernel, :func:`count_batches`, works on batches of
integer-coded rows, so that other engines only have to deliver batches. With weights it sums those of the rows in
each cell instead (:func:`sum_weights`): for models that are weighted records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.table import Table

__all__ = ["Source", "TableSource", "count_batches", "keys_of", "sum_weights"]

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
        batches = ([c[part] for c in codes] for part in _parts(len(self.table)))
        return count_batches(batches, self.domain, marginals)


def sum_weights(
    codes: Sequence[np.ndarray], weights: np.ndarray, domain: Domain, marginals: Sequence[Attributes]
) -> list[np.ndarray]:
    """The sums of the weights of the records in each cell of each marginal."""
    batches = ([c[part] for c in codes] for part in _parts(len(weights)))
    return count_batches(batches, domain, marginals, (weights[part] for part in _parts(len(weights))))


def keys_of(codes: Sequence[np.ndarray], domain: Domain, marginal: Attributes) -> np.ndarray:
    """The cell of a marginal into which each record falls."""
    keys: np.ndarray = np.zeros(len(codes[0]), np.intp)
    for attribute in marginal:
        keys *= domain.sizes[attribute]
        keys += codes[attribute]
    return keys


def _parts(rows: int) -> list[slice]:
    return [slice(start, start + BATCH_ROWS) for start in range(0, max(rows, 1), BATCH_ROWS)]


def count_batches(
    batches: Iterable[Sequence[np.ndarray]], domain: Domain, marginals: Sequence[Attributes],
    weights: Iterable[np.ndarray] | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """Count every marginal over batches of codes, or sum the ``weights`` of their rows (a batch of them for each).

    The key of a record in the marginal over (i, j, k) is ``(x_i |X_j| + x_j) |X_k| + x_k``; marginals with a
    common prefix (i, j) share its key, so they are visited in sorted order.
    """
    order = sorted(range(len(marginals)), key=lambda m: marginals[m])
    kind = np.int64 if weights is None else np.float64
    counts: list[np.ndarray] = [np.zeros(domain.cells_of(marginal), kind) for marginal in marginals]
    for batch, weight in zip(batches, repeat(None) if weights is None else weights, strict=False):
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
            counts[m] += np.bincount(prefix_keys[-1][1], weight, minlength=len(counts[m]))
    return counts
