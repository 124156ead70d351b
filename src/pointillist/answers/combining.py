"""One analysis of several synthetic tables: Rubin's rules.

Let q_1 .. q_m be the estimates from m tables of ``release.datasets``, with the variances v_1 .. v_m that the analysis
itself reports, those of sampling rows from a population. Then

    estimate  q = mean_r q_r,      within  v = mean_r v_r,      between  b = sum_r (q_r - q)^2 / (m - 1),
    variance  T = v + (1 + 1/m) b,   or  (1 + 1/m) b  for the private table instead of its population.

The tables are like draws of the private table given what was released. So b is the squared error that privacy has
added, bias included (:mod:`pointillist.release.imputing`), and q has an error of b / m more. This is the formula for
imputed data, and not the one for fully synthetic data, (1 + 1/m) b - v: rows are matched to their answers, so that they
add hardly any sampling error to b, and what is left of it makes T larger. The interval has Student's distribution with
(m - 1) (1 + v / ((1 + 1/m) b))^2 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from pointillist.checks import check, flag, share
from pointillist.errors import Shown

__all__ = ["Combined", "combine"]


@dataclass(frozen=True)
class Combined:
    """A combined estimate.

    Attributes:
        estimate: the estimate: a number, or an array of coefficients.
        error: its standard error.
        low, high: the ends of the interval.
        level: how often such intervals hold the true value.
    """

    estimate: Any
    error: Any
    low: Any
    high: Any
    level: float


def combine(
    estimates: Sequence[Any], variances: Sequence[Any], level: float = 0.95, population: bool = True
) -> Combined:
    """Combine the same analysis of several synthetic tables by Rubin's rules.

    Args:
        estimates: what it gives for each table of ``release.datasets``: a number, or an array of coefficients.
        variances: the squared standard errors that it reports for each of them.
        level: how often the intervals are to hold the true value.
        population: whether the value of the population is meant, or that of the private table.
    """
    level, population = share("level", level, 0.95), flag("population", population)
    found, within = (np.asarray(one, np.float64) for one in (estimates, variances))
    rule, hint = "must be one for each of at least two tables, and as many variances", "analyse release.datasets(8)"
    good = found.ndim > 0 and len(found) >= 2 and found.shape == within.shape
    check(good, "estimates", Shown(f"those of {len(found) if found.ndim else 1}"), rule, hint)
    m, centre = len(found), np.mean(found, axis=0)
    v = np.mean(within, axis=0) if population else np.zeros(centre.shape)
    between = (1 + 1 / m) * np.var(found, axis=0, ddof=1)
    # More degrees of freedom than this make no difference.
    ratio = np.minimum(v / np.maximum(between, np.finfo(float).tiny * (1 + v)), 1e3)
    error = np.sqrt(v + between)
    half = stdtrit((m - 1) * (1 + ratio) ** 2, (1 + level) / 2) * error
    parts = [one if centre.shape else float(one) for one in (centre, error, centre - half, centre + half)]
    return Combined(parts[0], parts[1], parts[2], parts[3], level)
