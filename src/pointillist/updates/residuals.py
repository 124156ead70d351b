"""What a fit of relaxed rows has missed: residuals in units of the noise, and rows that start where they are large.

Rows are few, and a value that is rare and strongly tied to another one may have no row of its own: then a descent
spreads it over all rows and stays there. Its cell is many standard deviations off, which noise does not explain. All of
this is post-processing of noisy values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pointillist.data.domain import Domain
from pointillist.queries.base import Queries
from pointillist.queries.workload import offsets_of

__all__ = ["given_back", "most_by_chance", "reseeded"]

BEYOND = 1.5
"""By how much a residual must exceed the largest that is expected by chance."""

EXPLAINED = 3.5
"""Standard deviations of a residual that are left to the noise when a fit is given back what a penalty took. With 2,
which noise alone often exceeds, the noise was given back, too."""

MOST_CELLS = 300
"""The largest number of cells that rows are given to at a time."""

HEAD_START = 6.0
"""The logit that a row gives to a value above those that it had."""


def most_by_chance(cells: int, beyond: float = BEYOND) -> float:
    """A bound that the largest of this number of residuals stays below, if they are noise: sqrt(2 ln cells) + 1.5."""
    return math.sqrt(2 * math.log(max(cells, 2))) + beyond


def given_back(residuals: np.ndarray, explained: float = EXPLAINED) -> np.ndarray:
    """The part of each residual that noise does not explain: what is added to the targets.

    Args:
        residuals: in units of the noise.
        explained: the standard deviations that are left to the noise.
    """
    return np.asarray(np.sign(residuals) * np.maximum(np.abs(residuals) - explained, 0.0))


def reseeded(
    logits: np.ndarray,
    rows: np.ndarray,
    domain: Domain,
    queries: Sequence[Queries],
    residuals: np.ndarray,
    deficits: np.ndarray,
) -> np.ndarray:
    """Logits in which rows start at the cells that have far too little.

    A cell of whole marginals that lacks the fraction f gets f B rows, at least one, of the B there are: those that lean
    towards all of its values already. The worst cells come first, and no row is used twice.

    Args:
        logits: B x d', those of the rows.
        rows: their probabilities.
        domain: the attributes.
        queries: the marginals.
        residuals: of every cell, in units of the noise.
        deficits: estimate - answer of every cell.
    """
    bound, offsets = most_by_chance(int(np.count_nonzero(residuals))), offsets_of(queries)
    starts = np.cumsum([0, *domain.sizes])
    logits, free = logits.copy(), np.ones(len(logits), bool)
    worst = np.argsort(-residuals, kind="stable")[:MOST_CELLS]
    for cell in worst[residuals[worst] > bound].tolist():
        n = int(np.searchsorted(offsets, cell, side="right")) - 1
        one = queries[n]
        values = [int(value) for value in np.unravel_index(cell - int(offsets[n]), one.shape)]
        leaning = np.prod([rows[:, starts[i] + value] for i, value in zip(one.scope, values, strict=True)], axis=0)
        wanted = max(1, round(float(deficits[cell]) * len(rows)))
        chosen = np.argsort(np.where(free, -leaning, np.inf), kind="stable")[: min(wanted, int(free.sum()))]
        free[chosen] = False
        for i, value in zip(one.scope, values, strict=True):
            block = logits[chosen, starts[i] : starts[i + 1]]
            logits[chosen, starts[i] + value] = block.max(axis=1) + HEAD_START
        if not free.any():
            break
    return logits
