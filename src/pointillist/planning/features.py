"""What the error of a run depends on, as far as schema, workload and budget say it.

The law behind a forecast is a sum of *terms*, each a function of these features. No feature looks at data. The first
term of an error is what it would be for a table that is made up over the schema (:mod:`pointillist.planning.made_up`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pointillist.planning.made_up import Wanted
from pointillist.privacy.facts import Facts
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries.marginal import Marginal

__all__ = ["RISING", "SLOWER", "TERMS", "Features", "features_of"]

LITTLE, MANY = math.log(5e-4), math.log(3000)
"""Logs of a noise that is little, as a fraction of the rows, and of a number of cells: beyond both, there is more to
fit than noise, so that descents are many and long."""


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
        max, rmse, tvd: logs of the errors for a made-up table.
        shaped: whether that table has the columns of a public one.
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
    max: float
    rmse: float
    tvd: float
    shaped: bool = False


TERMS: dict[str, Callable[[Features], float]] = {
    "constant": lambda f: 1.0,
    "noise": lambda f: f.noise,
    "noise, narrow columns": lambda f: f.noise * f.narrow,
    "noise, binary columns": lambda f: f.noise * f.binary,
    "binary columns": lambda f: f.binary,
    "made-up max": lambda f: f.max,
    "made-up rmse": lambda f: f.rmse,
    "made-up tvd": lambda f: f.tvd,
    "cells": lambda f: f.cells,
    "columns": lambda f: f.columns,
    "order": lambda f: f.order,
    "marginals": lambda f: f.marginals,
    "size": lambda f: f.size,
    "rows": lambda f: f.rows,
    "many cells, little noise": lambda f: max(0.0, f.size - MANY) * max(0.0, LITTLE - f.noise),
}
"""The terms that a law may have, by name."""

RISING = ("noise", "noise, narrow columns", "noise, binary columns", "made-up max", "made-up rmse", "made-up tvd")
"""Terms of an error whose coefficients must not be negative: it then falls with every epsilon and every row, as these
terms do."""

SLOWER = ("many cells, little noise",)
"""Terms of the time whose coefficients must not be negative: less noise, more to fit."""


def features_of(wanted: Wanted, facts: Facts) -> Features | None:
    """The features of a run; None for queries other than whole marginals, on which no law was fitted.

    Args:
        wanted: the queries, and the shape of the columns if a public table tells it.
        facts: the budget, and a number of rows that is public or assumed.
    """
    workload = wanted.workload
    if not all(isinstance(queries, Marginal) for queries in workload.queries):
        return None
    scopes, sizes = workload.scopes, workload.domain.sizes
    used = sorted({i for scope in scopes for i in scope})
    cells, order = _mean(math.log(queries.size) for queries in workload.queries), _mean(map(len, scopes))
    square = max(square_of_counts(queries, facts) for queries in workload.queries)
    noise = math.sqrt(square / (2 * facts.rho)) / facts.total
    return Features(
        noise=math.log(noise),
        cells=cells,
        narrow=_mean(1 / sizes[i] for i in used),
        binary=2 * math.exp(-cells / order),
        columns=math.log(len(used)),
        order=order,
        marginals=math.log(len(scopes)),
        size=math.log(workload.size),
        rows=math.log(facts.total),
        **wanted.made_up.errors(noise, facts.total),
        shaped=wanted.shares is not None,
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
