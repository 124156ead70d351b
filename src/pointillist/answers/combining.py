"""One analysis of several synthetic tables: Rubin's rules, with the release's own table as the centre.

Let q_0 be the estimate from the rows of the release, and q_1 .. q_m those from the tables of m simulated runs, with the
variances v_1 .. v_m that the analysis itself reports (of sampling rows from a population). Then

    estimate  q_0,      within  v = mean_r v_r,      between  b = mean_r (q_r - q_0)^2,
    variance  T = v + (1 + 1/m) b,   or  (1 + 1/m) b  for the private table instead of its population.

b is around q_0, not around the mean of the q_r: the tables of simulated runs are as far from the release as the release
is from the private table, in bias as well as in spread. T uses Rubin's formula for imputed data and not the one for
fully synthetic data, (1 + 1/m) b - v, since rows are drawn with hardly any sampling error around their models; what is
left of it makes T larger. The interval has Student's distribution with the degrees of freedom of Rubin,
m (1 + v / ((1 + 1/m) b))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

from pointillist.answers.intervals import INFLATED_ALONE
from pointillist.checks import check, flag, share
from pointillist.errors import Shown

__all__ = ["Combined", "combine"]


@dataclass(frozen=True)
class Combined:
    """A combined estimate.

    Attributes:
        estimate: the estimate, or one for each coefficient.
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
    estimate: Any, estimates: Sequence[Any], variances: Sequence[Any], level: float = 0.95, population: bool = True
) -> Combined:
    """Combine the same analysis of several synthetic tables.

    Args:
        estimate: what it gives for the rows of the release: a number, or an array of coefficients.
        estimates: what it gives for each table of ``release.datasets``.
        variances: the squared standard errors that it reports for each of them.
        level: how often the intervals are to hold the true value.
        population: whether the value of the population is meant, or that of the private table.
    """
    level, population = share("level", level, 0.95), flag("population", population)
    centre, found, within = (np.asarray(one, np.float64) for one in (estimate, estimates, variances))
    same = len(found) >= 2 and found.shape == within.shape and found.shape[1:] == centre.shape
    rule, hint = "must be one for each of at least two tables, and as many variances", "analyse release.datasets(8)"
    check(same, "estimates", Shown(f"those of {len(np.atleast_1d(found))}"), rule, hint)
    m, v = len(found), np.mean(within, axis=0) if population else np.zeros(centre.shape)
    between = (1 + 1 / m) * INFLATED_ALONE**2 * np.mean((found - centre) ** 2, axis=0)
    freedom = m * (1 + v / np.maximum(between, np.finfo(float).tiny)) ** 2
    error = np.sqrt(v + between)
    half = t.ppf((1 + level) / 2, np.minimum(freedom, 1e6)) * error
    parts = (centre, error, centre - half, centre + half)
    plain = [one if centre.shape else float(one) for one in parts]
    return Combined(plain[0], plain[1], plain[2], plain[3], level)
