"""How far replicates are from the pilot, pooled over answers of similar size.

Eight replicates say little about the error of a single cell: replicates that are near the pilot by chance would make an
interval far too narrow. Cells of similar size in one marginal have similar errors, so their squared distances are
averaged. Over several marginals they may not: a cell of three attributes is a share of a larger cell of two, which was
measured, and has that share of its error, which is far less than the error of a measured cell of the same size. Only
where a marginal is too large is the average one over the workload.

These are distances from the *pilot*, not from the mean of the replicates: what the fit does to every simulated run
alike, such as shrinking a dependency, it has done to the data, too. So bias counts as well as spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.queries.base import Queries

__all__ = ["Typical", "few_of", "size_of"]

MOST_CELLS = 200_000
"""About how many cells of a workload errors are pooled over, and those of the largest marginal."""

CHUNKS, LEAST_CELLS = 40, 8
"""The largest number of sizes at which the error is known, and the fewest cells that it is averaged over."""


def size_of(answers: np.ndarray) -> np.ndarray:
    """The size of an answer: the fraction, or that of its opposite if it is smaller. Both have the same error."""
    return np.asarray(np.minimum(answers, 1 - answers))


def few_of(queries: Sequence[Queries]) -> list[Queries]:
    """Some queries of a workload, spread over all of it, that have not too many cells.

    Args:
        queries: the workload.
    """
    every = max(1, -(-sum(one.size for one in queries) // MOST_CELLS))
    return list(queries[::every])


@dataclass(frozen=True)
class Typical:
    """The root mean square distance of replicates from the pilot, by size.

    Attributes:
        sizes: increasing sizes of answers.
        errors: the error at each of them, as a fraction of the rows.
    """

    sizes: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, answers: np.ndarray, moved: np.ndarray) -> Typical:
        """From the answers to many queries.

        Args:
            answers: those of the pilot.
            moved: how far those of each replicate are from them, one replicate per line.
        """
        sizes = size_of(answers)
        squares = np.mean(moved**2, axis=0)
        chunks = np.array_split(np.argsort(sizes, kind="stable"), max(1, min(CHUNKS, len(sizes) // LEAST_CELLS)))
        return cls(
            np.array([sizes[chunk].mean() for chunk in chunks]),
            np.sqrt(np.array([squares[chunk].mean() for chunk in chunks])),
        )

    def at(self, answers: np.ndarray) -> np.ndarray:
        """The error of answers, between those of the nearest sizes.

        Args:
            answers: fractions.
        """
        least = 1e-9
        where = np.log(np.maximum(size_of(np.asarray(answers, np.float64)), least))
        return np.asarray(np.interp(where, np.log(np.maximum(self.sizes, least)), self.errors))
