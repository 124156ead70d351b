"""What the error of a run depends on, as far as schema, workload and budget say it.

The law behind a forecast is a sum of *terms*, each a function of these features. No feature looks at data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.privacy.facts import Facts
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload

__all__ = ["FALLING", "RISING", "TERMS", "Features", "features_of"]

ERROR = math.sqrt(2 / math.pi)
"""The mean of the absolute value of a standard Gaussian."""
HIGH = 3.0
"""Marginals of fewer columns have a term of their own: they are measured almost as they are wanted."""


@dataclass(frozen=True)
class Features:
    """A workload of marginals under a budget.

    Attributes:
        noise: log of the noise on a cell, as a fraction of the rows, of a marginal that gets the whole budget.
        cells: mean log number of cells of the marginals.
        narrow: mean of one over the number of values, over the columns that the marginals have: 1/2 if all are binary.
        binary: two over the geometric mean of the numbers of values, over the columns of all marginals: 1 if all are
            binary.
        columns: log of the number of columns that the marginals have.
        order: mean number of columns of a marginal.
        marginals: log of their number.
        size: log of the number of all cells.
        rows: log of the number of rows.
        spread: mean entropy of the marginals if their columns were independent, by a public table; None without one.
    """

    noise: float
    cells: float
    narrow: float
    binary: float
    columns: float
    order: float
    marginals: float
    size: float
    rows: float
    spread: float | None = None

    @property
    def raw(self) -> float:
        """Log of the total variation distance that noise alone would give, if every marginal had an equal share of the
        budget and nothing were fitted: half the number of cells times the mean size of the noise on a cell."""
        return math.log(ERROR / 2) + self.noise + self.size - self.marginals / 2


def _log_one_plus(exponent: float) -> float:
    """log(1 + e^x), which is about 0 for small x, and x for large ones."""
    return float(np.logaddexp(0.0, exponent))


TERMS: dict[str, Callable[[Features], float]] = {
    "constant": lambda f: 1.0,
    "noise": lambda f: f.noise,
    "noise, narrow columns": lambda f: f.noise * f.narrow,
    "noise, binary columns": lambda f: f.noise * f.binary,
    "binary columns": lambda f: f.binary,
    "small noise": lambda f: -_log_one_plus(-f.raw),
    "large noise": lambda f: _log_one_plus(f.raw),
    "small noise, low order": lambda f: -max(0.0, HIGH - f.order) * _log_one_plus(-f.raw),
    "cells": lambda f: f.cells,
    "columns": lambda f: f.columns,
    "order": lambda f: f.order,
    "marginals": lambda f: f.marginals,
    "size": lambda f: f.size,
    "rows": lambda f: f.rows,
    "spread": lambda f: math.nan if f.spread is None else f.spread,
}
"""The terms that a law may have, by name. Small and large noise are the two parts of a curve that bends where the raw
noise would be a distance of 1: below, a run follows its measurements; above, it hardly can."""

RISING = (
    "noise", "noise, narrow columns", "noise, binary columns", "small noise", "large noise", "small noise, low order",
)  # fmt: skip
"""Terms of an error whose coefficients must not be negative: it then falls with every epsilon and every row, since both
only enter through the noise, and what it is multiplied by is not negative."""

FALLING = ("noise",)
"""Terms of the time whose coefficients must not be positive: less noise, more to fit."""


def features_of(workload: Workload, facts: Facts, shares: Sequence[np.ndarray] | None = None) -> Features | None:
    """The features of a run; None for queries other than whole marginals, on which no law was fitted.

    Args:
        workload: the queries that are wanted.
        facts: the budget, and a number of rows that is public or assumed.
        shares: one-way marginals of a public table, one for each attribute; None if there is no such table.
    """
    if not all(isinstance(queries, Marginal) for queries in workload.queries):
        return None
    scopes, sizes = workload.scopes, workload.domain.sizes
    used = sorted({i for scope in scopes for i in scope})
    cells, order = _mean(math.log(queries.size) for queries in workload.queries), _mean(map(len, scopes))
    square = max(square_of_counts(queries, facts) for queries in workload.queries)
    return Features(
        noise=math.log(math.sqrt(square / (2 * facts.rho)) / facts.total),
        cells=cells,
        narrow=_mean(1 / sizes[i] for i in used),
        binary=2 * math.exp(-cells / order),
        columns=math.log(len(used)),
        order=order,
        marginals=math.log(len(scopes)),
        size=math.log(workload.size),
        rows=math.log(facts.total),
        spread=None if shares is None else _mean(sum(_entropy(shares[i]) for i in scope) for scope in scopes),
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _entropy(share: np.ndarray) -> float:
    found = share[share > 0]
    return float(-(found * np.log(found)).sum())
