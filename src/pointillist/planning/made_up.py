"""What noise leaves of a made-up table: the errors that a law starts from.

**The table.** Nothing is known about the data, so a table is made up over the schema: the k-th value of a column has a
share that is proportional to k^(-``ZIPF``). With a public table the shares are those of its columns. The less a column
varies, the less it can be tied to others: with u = 1 - sum of its squared shares, the distance of the columns i and j
from independence is in proportion to u_i u_j, and ``TYPICAL_DISTANCE`` where that product is ``TYPICAL_PRODUCT``.

**The run.** Every component of the wanted marginals (:mod:`pointillist.algorithms.forecast`) is measured with an equal
share of the budget, as a residual: its cells keep the variance v / (1 + pi v) of their prior one. So a cell is off by
its noise where that is small, and by what it could have told where the noise hides it. The largest of N errors is taken
to be sqrt(2 log N) times the largest standard deviation, as of N Gaussians.

The law then corrects what a real run does better or worse, and real tables are like, by factors that are fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pointillist.algorithms.forecast import TYPICAL_DISTANCE, Components, Forecast
from pointillist.queries.workload import Workload
from pointillist.updates.parts import subsets

__all__ = ["MadeUp", "Wanted"]

ZIPF = 1.5
"""About what gives the columns of the tables of the suite their entropy."""

TYPICAL_PRODUCT = 0.3
"""About the mean of u_i u_j in these tables."""

MOST = 300
"""With more marginals, this many of them stand for all."""

LEAST = 1e-12
"""No error is taken to be smaller, so that it has a logarithm."""


class MadeUp:
    """A made-up table, and what a run makes of it.

    Args:
        workload: whole marginals.
        shares: one-way marginals; made up without them.
    """

    def __init__(self, workload: Workload, shares: tuple[np.ndarray, ...] | None) -> None:
        domain, scopes = workload.domain, workload.scopes
        every = {part for scope in scopes for part in subsets(scope)}
        self.measured = max(1, sum(min(domain.shape(part)) > 1 for part in every))
        """The number of components of the whole workload that there is something to say about."""
        self.largest = math.sqrt(2 * math.log(workload.size))
        few = [scopes[n] for n in np.unique(np.linspace(0, len(scopes) - 1, MOST).astype(int))]
        self.cells = np.array([float(domain.cells_of(scope)) for scope in few])
        parts = sorted({part for scope in few for part in subsets(scope)})
        self.components = Components(domain, few, parts)
        self.parts = np.array([float(domain.cells_of(part)) for part in parts])
        known = [_zipf(m) for m in domain.sizes] if shares is None else shares
        self.forecast = Forecast(self.components, known)
        varied = [1 - float(np.square(share).sum()) for share in known]
        pairs = [varied[i] * varied[j] for i, j in (parts[n] for n in self.components.pairs)]
        self.distances = self.components.assumed([TYPICAL_DISTANCE / TYPICAL_PRODUCT * pair for pair in pairs])

    def errors(self, noise: float, rows: int) -> dict[str, float]:
        """The logarithms of max, rmse and tvd.

        Args:
            noise: that on a cell, as a fraction of the rows, of a marginal that gets the whole budget.
            rows: their number.
        """
        found, components = self.forecast, self.components
        found.assume(self.distances, rows)
        buys = 1 / (noise**2 * self.measured)
        precision = np.divide(buys, components.costs, out=np.zeros(len(self.parts)), where=found.free)
        left = found.left(precision)
        squares = components.needs @ ((found.counts * left).sum(axis=1) * self.parts) / self.cells
        errors = {
            "max": self.largest * math.sqrt(left.max()),
            "rmse": math.sqrt(squares.sum() / self.cells.sum()),
            "tvd": found.value(precision),
        }
        return {name: math.log(max(LEAST, error)) for name, error in errors.items()}


def _zipf(size: int) -> np.ndarray:
    share = np.arange(1, size + 1.0) ** -ZIPF
    return np.asarray(share / share.sum())


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a forecast is for, whatever the budget is.

    Attributes:
        workload: the queries that are wanted.
        shares: one-way marginals of a public table, one for each attribute; None without one.
    """

    workload: Workload
    shares: tuple[np.ndarray, ...] | None = None

    @cached_property
    def made_up(self) -> MadeUp:
        """The table that is made up for it."""
        return MadeUp(self.workload, self.shares)
