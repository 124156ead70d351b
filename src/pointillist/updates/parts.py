"""What was measured of marginals, as orthogonal parts: the estimate of each part, and its noise.

The *part* of the attributes A in a marginal q_A is what is left when the means along every attribute are taken away,

    C_A q_A,    C_A = C_1 x ... x C_k,    C_i = I - J / m_i    (J is all ones, m_i the size of attribute i).

Parts of different attributes are orthogonal, and a marginal is the sum of the parts of its subsets. A noisy marginal
over S with the precision pi (1 / variance of a cell) tells the part of every A inside of S with the precision
pi / prod_{i in S - A} m_i. A noisy residual over A (:mod:`pointillist.queries.residuals`) tells the part of A alone.
With y_A the mean of all that tell about A, weighted by their precisions, and pi_A the sum of these, a model q is as far
from what was measured as

    sum_A pi_A |C_A q_A - y_A|^2.

*As weights of marginals.* With t_B the marginal over B that the estimates y add up to, the sums of q_A - t_A over the
attributes A - B are q_B - t_B, so that the distance is

    sum_B W_B |q_B - t_B|^2,    W_B = sum_{A >= B} pi_A (-1)^|A - B| / prod_{i in A - B} m_i.

A fit can answer marginals, and needs nothing else. Some weights are below 0; the distance as a whole never is. Of
marginals that were measured without residuals, W_B is the precision of the marginal, and 0 for its subsets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.components import Parts, marginal_of
from pointillist.queries.base import Queries, parts_of
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residual, Residuals

__all__ = ["PartEstimates", "Told", "centred", "free_of", "of_marginal", "of_residuals", "subsets", "tells_parts"]

Told = tuple[np.ndarray, float]
"""A noisy part, as fractions of the rows, and its precision."""

NOTHING = 1e-9
"""A weight below this share of the numbers that it is a difference of is rounding."""


def centred(table: np.ndarray) -> np.ndarray:
    """C_A: a table without its means along each attribute."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def subsets(scope: Attributes) -> list[Attributes]:
    """All non-empty subsets, the small ones first."""
    return [part for k in range(1, len(scope) + 1) for part in itertools.combinations(scope, k)]


def tells_parts(queries: Queries) -> bool:
    """Whether what is measured is a marginal or residuals, so that it tells the parts of marginals."""
    return isinstance(queries, Marginal | Residuals)


def free_of(domain: Domain, scope: Attributes) -> Attributes:
    """The attributes that have more than one value: the others have no parts."""
    return tuple(i for i in scope if domain.sizes[i] > 1)


@dataclass(frozen=True)
class PartEstimates:
    """Estimates of parts, as fractions of the rows.

    Attributes:
        domain: the attributes.
        values: y_A for each set of attributes A, which has no attribute with a single value.
        precision: pi_A of each.
    """

    domain: Domain
    values: Parts
    precision: Mapping[Attributes, float]

    @classmethod
    def of(cls, domain: Domain, measured: Iterable[Measurement], total: float) -> PartEstimates:
        """The estimates from marginals and residuals. Those inside of a few attributes only are found by
        :class:`~pointillist.updates.part_index.PartIndex`.

        Args:
            domain: the attributes.
            measured: noisy marginals and residuals; others are passed over.
            total: the number of rows.
        """
        weighted: Parts = {}
        precision: dict[Attributes, float] = {}
        for one in measured:
            for scope, (values, told) in _told(domain, one, total):
                weighted[scope] = weighted.get(scope, 0.0) + told * values
                precision[scope] = precision.get(scope, 0.0) + told
        order = sorted(weighted, key=lambda scope: (len(scope), scope))
        return cls(domain, {a: weighted[a] / precision[a] for a in order}, {a: precision[a] for a in order})

    @property
    def scopes(self) -> tuple[Attributes, ...]:
        """The sets of attributes whose parts are told."""
        return tuple(self.values)

    @cached_property
    def freedom(self) -> int:
        """The number of dimensions of all parts together."""
        return sum(self.freedom_of(scope) for scope in self.values)

    def freedom_of(self, scope: Attributes) -> int:
        """The number of dimensions of the part of some attributes."""
        return math.prod(self.domain.sizes[i] - 1 for i in scope)

    @cached_property
    def weights(self) -> dict[Attributes, float]:
        """W_B of every marginal that has one, by its attributes."""
        sums: dict[Attributes, float] = {}
        sizes: dict[Attributes, float] = {}
        for scope, precision in self.precision.items():
            for part in subsets(scope):
                outside = [self.domain.sizes[i] for i in scope if i not in part]
                told = precision / math.prod(outside)
                sums[part] = sums.get(part, 0.0) + (-1) ** len(outside) * told
                sizes[part] = sizes.get(part, 0.0) + told
        order = sorted(sums, key=lambda part: (len(part), part))
        return {part: sums[part] for part in order if abs(sums[part]) > NOTHING * sizes[part]}

    def marginal(self, scope: Attributes) -> np.ndarray:
        """t_S: the marginal that the estimates add up to, flat. Parts that are not told are 0."""
        inside = free_of(self.domain, scope)
        return marginal_of(inside, self.domain.shape(inside), self.values).ravel()

    def variance(self, scope: Attributes) -> float:
        """The variance of a cell of :meth:`marginal`; infinite if some of its parts are not told."""
        inside = free_of(self.domain, scope)
        found = 0.0
        for part in subsets(inside):
            if part not in self.precision:
                return math.inf
            outside = math.prod(self.domain.sizes[i] for i in inside if i not in part)
            found += self.share(part) / (self.precision[part] * outside**2)
        return found

    def share(self, scope: Attributes) -> float:
        """The share of the variance of a cell that is left when the means are taken away: prod_i (1 - 1 / m_i)."""
        return math.prod(1 - 1 / self.domain.sizes[i] for i in scope)

    def noised(self, rng: np.random.Generator, first: float, second: float) -> tuple[PartEstimates, PartEstimates]:
        """The estimates y + first z and y + second z, where z has the distribution of their noise; both with the
        precisions of y.

        Args:
            rng: draws z.
            first: what the noise is multiplied by.
            second: the same of the second estimates.
        """
        noise = {
            scope: centred(rng.standard_normal(values.shape)) / math.sqrt(self.precision[scope])
            for scope, values in self.values.items()
        }
        one, two = (
            {scope: values + factor * noise[scope] for scope, values in self.values.items()}
            for factor in (first, second)
        )
        return PartEstimates(self.domain, one, self.precision), PartEstimates(self.domain, two, self.precision)

    def weakened(self, factor: float) -> PartEstimates:
        """The same estimates with ``factor`` times the variance."""
        return PartEstimates(self.domain, self.values, {a: told / factor for a, told in self.precision.items()})

    def plus(self, more: Parts) -> PartEstimates:
        """The estimates with something added to each; the precisions stay."""
        return PartEstimates(self.domain, {a: y + more[a] for a, y in self.values.items()}, self.precision)

    def parts_of(self, tables: Mapping[Attributes, np.ndarray]) -> Iterator[tuple[Attributes, np.ndarray]]:
        """The told parts of a model, C_A q_A.

        Args:
            tables: marginals of the model; for every part one that has its attributes.
        """
        for scope in self.values:
            yield scope, centred(_summed(tables, scope))

    def residuals(self, tables: Mapping[Attributes, np.ndarray]) -> Iterator[tuple[Attributes, np.ndarray]]:
        """What the estimates are above a model, part by part: y_A - C_A q_A.

        Args:
            tables: as of :meth:`parts_of`.
        """
        for scope, part in self.parts_of(tables):
            yield scope, self.values[scope] - part

    def squared(
        self, parts: Iterable[tuple[Attributes, np.ndarray]], weights: Mapping[Attributes, float] | None = None
    ) -> float:
        """The squared length of some parts in units of the noise, sum_A pi_A |part_A|^2. No rounding takes it below 0,
        as it may take the difference that the weights of marginals make of it.

        Args:
            parts: the attributes and the cells of each.
            weights: others in place of pi_A.
        """
        weights = self.precision if weights is None else weights
        return float(sum(weights[scope] * np.sum(part**2) for scope, part in parts))


def _summed(tables: Mapping[Attributes, np.ndarray], scope: Attributes) -> np.ndarray:
    """The marginal over a scope, from the smallest of some marginals that have its attributes."""
    if scope in tables:
        return tables[scope]
    wide = min((one for one in tables if set(scope) <= set(one)), key=lambda one: tables[one].size)
    found: np.ndarray = tables[wide].sum(axis=tuple(n for n, i in enumerate(wide) if i not in scope))
    return found


def of_marginal(one: Measurement, scope: Attributes, total: float) -> Told:
    """The part of some attributes, as a noisy marginal tells it.

    Args:
        one: the marginal.
        scope: some of its attributes.
        total: the number of rows.
    """
    away = tuple(n for n, i in enumerate(one.queries.scope) if i not in scope)
    outside = math.prod(one.queries.shape[n] for n in away)
    table = one.counts.reshape(one.queries.shape).sum(axis=away) / total
    return centred(table), (total / one.sigma) ** 2 / outside


def of_residuals(one: Measurement, total: float) -> Iterator[tuple[Attributes, Callable[[], Told]]]:
    """The parts that noisy residuals tell, each of which is computed when it is called.

    Args:
        one: the residuals.
        total: the number of rows.
    """
    at = 0
    for part in parts_of(one.queries):
        yield part.scope, partial(_of_residual, one, part, at, total)
        at += part.size


def _of_residual(one: Measurement, part: Residual, at: int, total: float) -> Told:
    values, times = one.counts[at : at + part.size].reshape(part.shape), part.times * total
    return centred(values / times), (times / one.sigma) ** 2


def _told(domain: Domain, one: Measurement, total: float) -> Iterator[tuple[Attributes, Told]]:
    """The parts that a measurement tells."""
    if isinstance(one.queries, Residuals):
        for scope, told in of_residuals(one, total):
            yield scope, told()
    elif isinstance(one.queries, Marginal):
        for scope in subsets(free_of(domain, one.queries.scope)):
            yield scope, of_marginal(one, scope, total)
