"""Each pair of columns of a synthetic table against the real one. NOT PRIVATE: uses the real data."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.evaluation.columns import Both
from pointillist.evaluation.values import Numbers, Values, coarse

__all__ = ["MOST_PAIRS", "PairReport", "compare_pairs"]

MOST_PAIRS = 5000
"""Of tables with more pairs of columns, this number of them is compared, spread evenly."""


@dataclass(frozen=True)
class PairReport:
    """Two columns together.

    Attributes:
        names: the names of the columns.
        tvd: the total variation distance of their contingency tables: of labels (the 50 most common ones and the rest)
            and of bins with equal shares of the real numbers.
        cramers_v: Cramer's V of these contingency tables, 0 for independent columns, 1 where one decides the other.
        pearson, spearman: correlations over the rows where both are there; None unless both are numbers.
    """

    names: tuple[str, str]
    tvd: float
    cramers_v: Both
    pearson: Both | None
    spearman: Both | None

    @property
    def correlation_error(self) -> float:
        """The larger difference of the two correlations; NaN where there are none."""
        found = [abs(one.difference) for one in (self.pearson, self.spearman) if one is not None]
        found = [one for one in found if not math.isnan(one)]
        return max(found, default=math.nan)

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        out: dict[str, Any] = {"columns": list(self.names), "tvd": self.tvd, "cramers_v": self.cramers_v.to_dict(1.0)}
        for name, both in (("pearson", self.pearson), ("spearman", self.spearman)):
            if both is not None:
                out[name] = both.to_dict(1.0)
        return out


def compare_pairs(values: tuple[Values, ...]) -> tuple[PairReport, ...]:
    """A report for each pair of columns.

    Args:
        values: the columns of both tables.
    """
    numbers = [at for at, one in enumerate(values) if isinstance(one, Numbers)]
    place = {at: n for n, at in enumerate(numbers)}
    matrices = [_correlations([values[at] for at in numbers], ranked) for ranked in (False, True)] if numbers else []
    cells = [coarse(one) for one in values]
    every = list(itertools.combinations(range(len(values)), 2))
    every = every[:: -(-len(every) // MOST_PAIRS) or 1]
    reports = []
    for i, j in every:
        tables = [_contingency(cells[i][n], cells[j][n], len(cells[i][2]), len(cells[j][2])) for n in (0, 1)]  # type: ignore[arg-type]
        both = [Both(*(float(m[place[i], place[j]]) for m in one)) for one in matrices] if {i, j} <= {*place} else []
        reports.append(
            PairReport(
                (values[i].name, values[j].name),
                float(np.abs(tables[0] - tables[1]).sum() / 2),
                Both(*map(_cramers_v, tables)),
                *(both or (None, None)),
            )
        )
    return tuple(reports)


def _contingency(first: np.ndarray, second: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The shares of all combinations."""
    counts = np.bincount(first * columns + second, minlength=rows * columns)
    return counts.reshape(rows, columns) / len(first)


def _cramers_v(shares: np.ndarray) -> float:
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    shares = shares[rows > 0][:, columns > 0]
    expected = np.outer(rows[rows > 0], columns[columns > 0])
    least = min(shares.shape) - 1
    return float(np.sqrt(((shares - expected) ** 2 / expected).sum() / least)) if least > 0 else 0.0


def _correlations(columns: list[Values], ranked: bool) -> tuple[np.ndarray, np.ndarray]:
    """The correlations of all columns with each other, in the real and in the synthetic table; of their ranks if
    ``ranked``."""
    tables = [np.stack([getattr(one, which) for one in columns]) for which in ("real", "synthetic")]
    return tuple(_correlation(np.stack([_ranks(x) for x in t]) if ranked else t) for t in tables)  # type: ignore[return-value]


def _ranks(x: np.ndarray) -> np.ndarray:
    """The ranks of the numbers that are there; equal ones share the mean of theirs."""
    there = ~np.isnan(x)
    _, inverse, counts = np.unique(x[there], return_inverse=True, return_counts=True)
    ranks = np.full(len(x), np.nan)
    ranks[there] = (np.cumsum(counts) - (counts + 1) / 2)[inverse]
    return ranks


def _correlation(x: np.ndarray) -> np.ndarray:
    """Pearson's correlations, each over the rows in which both numbers are there; NaN where one is constant."""
    there = ~np.isnan(x)
    counts = there.sum(axis=1)
    filled = np.where(there, x, 0.0)
    mean = filled.sum(axis=1) / np.maximum(counts, 1)
    filled = np.where(there, x - mean[:, None], 0.0)
    scale = np.sqrt((filled**2).sum(axis=1) / np.maximum(counts, 1))
    filled /= np.where(scale > 0, scale, 1.0)[:, None]
    weights = there.astype(float)
    n = np.maximum(weights @ weights.T, 1)
    sums, squares = filled @ weights.T / n, filled**2 @ weights.T / n
    covariance = filled @ filled.T / n - sums * sums.T
    variance = squares - sums**2
    product = variance * variance.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(product > 1e-12, np.clip(covariance / np.sqrt(product), -1, 1), np.nan)
