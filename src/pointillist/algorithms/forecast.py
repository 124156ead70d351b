"""How far off the answers to a workload will be, given what is measured with which precision; and how to spend best.

**The model.** A marginal over the attributes S is a sum of *components*, one for every non-empty subset R of S: what
the attributes R say together that none of their proper subsets says. Before it is measured, a cell of the component R
has the prior variance v = tau_R^2 m, where m is the product of the one-way shares of its values, and the cell of a
one-way component v = m^2. Components are measured one by one, as residuals
(:mod:`pointillist.queries.residuals`): with the precision pi_R (1 / variance of the noise on a cell, as fractions) a
cell keeps the variance v / (1 + pi_R v). Its expected error is sqrt(2 / pi) times the square root of that. Adding up
over the cells gives e_R, and the forecast of a wanted marginal is sqrt(sum of e_R^2) / 2 over its components, in total
variation. The forecast of a workload is the mean.

A fit of relaxed rows has fewer degrees of freedom than a marginal with many cells: noise that no dependency of low rank
explains is not followed. So the precision of a component with more than ``RANK`` cells for every value of its
attributes counts for more, by that factor.

**What ties are worth.** tau_R of a pair follows from the distance between its marginal and the product of the one-way
marginals (a :class:`~pointillist.queries.tie.Tie`). Of more attributes it is assumed: the components of A and B, two
parts of R with one attribute less, suggest one of R; in the tables that this was developed on, the distances were about
``HIGHER`` times sqrt(sum over all A, B of their products). To all of them 1 / n is added, which rows drawn from
independent attributes would show.

**Around a target.** If all wanted marginals share an attribute, such as the income that a model is to predict, what
matters is how the others are distributed *given* each of its values, the rare ones, too. Components with the target
have no factor for this. The cells of a marginal with a value of the share m_c are sums of the components with the
target and of those without it, and what either of them is off counts 1 / m_c times once it is divided by m_c. A factor
for the first kind takes the budget from the second one. On three tables that were tried it made the wanted marginals
worse, and on two of them also the others given rare values.

**Spending.** One record changes a residual over R by prod_{i in R} (1 - 1 / m_i) in squared length, m_i being the
number of values of the attribute i: less than the 1 of a marginal, which says again what its parts say. So sum_R pi_R
prod_{i in R} (1 - 1 / m_i) is what a budget fixes, and the best plan is a point of a simplex. The forecast is minimised
over it by multiplicative steps. All of this uses public facts and noisy values only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.updates.parts import subsets

__all__ = ["Components", "Forecast", "likely_distances", "shared"]

RANK = 3.0
HIGHER = 0.3
ERROR = math.sqrt(2 / math.pi)
"""The mean of the absolute value of a standard Gaussian."""

LEAST_SHARE = 1e-4
"""No one-way share is taken to be smaller."""

STEPS = 150
SLOWNESS = 0.5
"""The exponent of a multiplicative step."""

ENOUGH = 1e-9
"""A step must be better by this share to count, so that rounding does not decide."""

TYPICAL_DISTANCE, SPREAD = 0.12, 0.6
"""The distances of pairs from independence are about exponential. Their mean is estimated; before that it is expected
to be about this, within a factor of about e to the ``SPREAD``."""


class Components:
    """The components of some wanted marginals, and what it costs to measure them.

    Args:
        domain: the attributes.
        wanted: the attributes of each wanted marginal.
        every: those of every component: all non-empty subsets of the wanted ones, in an order of your choice.
    """

    def __init__(self, domain: Domain, wanted: Sequence[Attributes], every: Sequence[Attributes]) -> None:
        from scipy.sparse import csr_matrix

        self.domain, self.every = domain, tuple(every)
        self.place = {scope: n for n, scope in enumerate(self.every)}
        self.order = np.array([len(scope) for scope in self.every])
        self.costs = np.array([math.prod(1 - 1 / m for m in domain.shape(scope)) for scope in self.every])
        """What the precision of each costs: how much one record can change, squared. 0 where an attribute has a single
        value, so that there is nothing to measure."""
        cells = np.array([float(domain.cells_of(scope)) for scope in self.every])
        values = np.array([sum(domain.shape(scope)) for scope in self.every])
        self.boost = np.where(self.order > 1, np.maximum(1.0, cells / (RANK * values)), 1.0)
        needed = [(n, self.place[part]) for n, scope in enumerate(wanted) for part in subsets(scope)]
        rows, columns = map(np.array, zip(*needed, strict=True))
        self.needs = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(wanted), len(self.every)))
        """Times what the components are off, squared: the same for the wanted marginals."""

    @cached_property
    def pairs(self) -> list[int]:
        """The positions of the components of two attributes."""
        return np.flatnonzero(self.order == 2).tolist()

    def assumed(self, distances: Sequence[float]) -> np.ndarray:
        """The expected distance of every component: those of pairs as given, those of higher orders by ``HIGHER``.

        Args:
            distances: those of the pairs, in their order.
        """
        found = np.zeros(len(self.every))
        found[self.pairs] = distances
        for n in np.argsort(self.order, kind="stable").tolist():
            if self.order[n] > 2:
                parts = found[[self.place[part] for part in itertools.combinations(self.every[n], self.order[n] - 1)]]
                found[n] = HIGHER * math.sqrt((parts.sum() ** 2 - (parts**2).sum()) / 2)
        return found


def shared(wanted: Sequence[Attributes]) -> frozenset[int]:
    """The attributes that all of several wanted marginals have: what the others are wanted around.

    Args:
        wanted: the attributes of each wanted marginal.
    """
    return frozenset(wanted[0]).intersection(*wanted[1:]) if len(wanted) > 1 else frozenset()


BIN = math.log(4)
"""Cells are grouped by their share m: a group has shares within this factor, in logarithms."""


class Forecast:
    """The forecast for given one-way shares.

    Args:
        components: the components.
        shares: estimated one-way marginals.
    """

    def __init__(self, components: Components, shares: Sequence[np.ndarray]) -> None:
        self.components = components
        least, bins = math.log(LEAST_SHARE), int(-math.log(LEAST_SHARE) / BIN) + 1
        single = []
        for share in shares:
            share = np.maximum(share, LEAST_SHARE)
            at = np.minimum(((np.log(share) - least) / BIN).astype(int), bins - 1)
            single.append((np.bincount(at, minlength=bins).astype(float), np.bincount(at, share, bins)))
        width = int(components.order.max()) * (bins - 1) + 1
        self.counts = np.zeros((len(components.every), width))
        self.shares = np.zeros((len(components.every), width))
        for n, scope in enumerate(components.every):
            count, total = np.ones(1), np.ones(1)
            for i in scope:
                count, total = np.convolve(count, single[i][0]), np.convolve(total, single[i][1])
            self.counts[n, : len(count)] = count
            self.shares[n, : len(count)] = total / np.maximum(count, 1.0)
        self.free = components.costs > 0
        self.prior = np.where((components.order[:, None] == 1) & self.free[:, None], self.shares**2, 0.0)

    def assume(self, distances: np.ndarray, rows: int) -> None:
        """Set the prior variances of pairs and higher components.

        Args:
            distances: the expected distance of every component, which sum |its cells| is.
            rows: n, whose sampling adds 1 / n to every tau^2.
        """
        whole = ERROR * (self.counts * np.sqrt(self.shares)).sum(axis=1)
        square = (distances / whole) ** 2 + 1 / rows
        several = (self.components.order > 1) & self.free
        self.prior[several] = (square[:, None] * self.shares)[several]

    def left(self, precision: np.ndarray) -> np.ndarray:
        """The variance v / (1 + pi_R v) that every group of cells of every component keeps."""
        told = precision * self.components.boost
        return np.asarray(self.prior / (1 + told[:, None] * self.prior))

    def errors(self, precision: np.ndarray) -> np.ndarray:
        """e_R of every component, for the precisions with which they are measured."""
        return self._errors(precision)[0]

    def _errors(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """e_R, and its derivative by the precision of the component."""
        left = self.left(precision)
        errors = ERROR * (self.counts * np.sqrt(left)).sum(axis=1)
        slopes = -ERROR / 2 * (self.counts * left**1.5).sum(axis=1) * self.components.boost
        return errors, slopes

    def value(self, precision: np.ndarray) -> float:
        """The mean forecast of the wanted marginals, in total variation."""
        return float(np.sqrt(self.components.needs @ self.errors(precision) ** 2).mean() / 2)

    def best(
        self,
        precision: np.ndarray,
        more: float,
        dearer: np.ndarray | None = None,
        start: np.ndarray | None = None,
        steps: int = STEPS,
    ) -> np.ndarray:
        """How to spend on top of what was measured: the share of every component.

        Args:
            precision: of every component, so far.
            more: what can be spent: the sum of the precisions that it buys, times what each costs.
            dearer: by what factor each component costs more than what one record changes.
            start: the shares to begin with; equal ones if there are none.
            steps: the number of steps.
        """
        components, free = self.components, self.free
        costs = components.costs if dearer is None else components.costs * dearer
        buys = np.divide(more, costs, out=np.zeros(len(free)), where=free)
        share = free / free.sum() if start is None else start
        best, least = share, math.inf
        for _ in range(steps):
            errors, slopes = self._errors(precision + buys * share)
            wanted = np.sqrt(components.needs @ errors**2)
            if wanted.mean() < least * (1 - ENOUGH):
                best, least = share, float(wanted.mean())
            gain = -(components.needs.T @ (1 / np.maximum(wanted, 1e-12))) * errors * slopes * buys
            mean = float(gain @ share)
            if mean <= 0:
                break
            share = share * np.clip(gain / mean, 1e-3, 1e3) ** SLOWNESS
            share = share / share.sum()
        return np.asarray(best)


def likely_distances(measured: np.ndarray, bias: np.ndarray, sigma: float) -> np.ndarray:
    """The distances that are likely, given noisy ones: the posterior mean under an exponential prior.

    x ~ N(s, sigma^2) with s ~ Exp(1 / mu) has the density exp(sigma^2 / (2 mu^2) - x / mu) Phi(x / sigma - sigma / mu)
    / mu, and s given x is a Gaussian around x - sigma^2 / mu, cut off at 0. mu maximises the density of all x together
    with its own prior, a log-normal one around ``TYPICAL_DISTANCE``.

    Args:
        measured: noisy distances.
        bias: what each would be on average without any tie, since the one-way marginals are noisy. It is taken off the
            square of the distance, as if both were independent.
        sigma: the standard deviation of the noise.
    """
    from scipy.special import erfcx, log_ndtr

    positive = np.maximum(measured, 0.0)
    x = np.where(measured > 0, np.sqrt(positive**2 - np.minimum(bias, positive) ** 2), measured)
    means = np.geomspace(1e-4, 1.0, 60)
    densities = [
        float((sigma**2 / (2 * mu**2) - x / mu + log_ndtr(x / sigma - sigma / mu) - math.log(mu)).sum())
        - math.log(mu / TYPICAL_DISTANCE) ** 2 / (2 * SPREAD**2)
        for mu in means
    ]
    middle = (x - sigma**2 / means[int(np.argmax(densities))]) / sigma
    hazard = ERROR / erfcx(-middle / math.sqrt(2))  # phi / Phi, for any noise
    return np.asarray(np.maximum(sigma * (middle + hazard), 1e-4))
