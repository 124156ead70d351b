"""What a fit of relaxed rows aims at: everything that was measured, in the form that a descent can compare with.

Marginals and residuals come as estimates of orthogonal parts (:mod:`pointillist.updates.parts`), other queries cell by
cell, and ties as distances. With noisy fractions y_c of the standard deviation sigma_c, a model q is off by

    sum_A pi_A |C_A q_A - y_A|^2 + sum over other cells c of (q_c - y_c)^2 / sigma_c^2 + sum over ties (D - d)^2 / s^2.

The *ties* are distances between a pair and a reference r, D = sum_uv |q_uv - r_uv|, which were measured as d with a
noise of s (:class:`~pointillist.queries.tie.Tie`). They say how strong a tie is where the noise on the cells of the
pair would hide it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.components import Parts
from pointillist.framework import Log
from pointillist.queries.base import Queries
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement, to_simplex
from pointillist.queries.residuals import Residuals
from pointillist.queries.tie import Tie
from pointillist.queries.workload import offsets_of
from pointillist.updates.descent import combined
from pointillist.updates.parts import PartEstimates, centred, free_of, tells_parts

__all__ = ["Cells", "Measured", "OnQueries", "Ties", "one_way"]


@dataclass(frozen=True)
class Cells:
    """Noisy fractions of queries that are no marginals, one after the other.

    Attributes:
        queries: the queries.
        fractions: the noisy fractions.
        precision: 1 / variance of each.
    """

    queries: tuple[Queries, ...]
    fractions: np.ndarray
    precision: np.ndarray

    def noised(self, rng: np.random.Generator, first: float, second: float) -> tuple[Cells, Cells]:
        """The fractions y + first z and y + second z, where z has the distribution of their noise."""
        noise = rng.standard_normal(len(self.fractions)) / np.sqrt(self.precision)
        one, two = (replace(self, fractions=self.fractions + factor * noise) for factor in (first, second))
        return one, two


@dataclass(frozen=True)
class Ties:
    """Noisy distances of pairs from references.

    Attributes:
        scopes: the two attributes of each.
        references: the fractions r_uv of all pairs, one after the other.
        distances: d of each.
        sigmas: s of each.
    """

    scopes: tuple[Attributes, ...]
    references: np.ndarray
    distances: np.ndarray
    sigmas: np.ndarray

    @classmethod
    def of(cls, measured: Sequence[Measurement], total: float) -> Ties:
        """The ties among some measurements.

        Args:
            measured: the measurements.
            total: the number of rows.
        """
        found = [(one, one.queries) for one in measured if isinstance(one.queries, Tie)]
        references = [tie.reference / total for _, tie in found]
        return cls(
            tuple(tie.scope for _, tie in found),
            np.concatenate([np.zeros(0), *references]),
            np.array([float(one.counts[0]) / total for one, _ in found]),
            np.array([one.sigma / total for one, _ in found]),
        )

    def noised(self, rng: np.random.Generator, factor: float) -> Ties:
        """The distances with more noise, of ``factor`` times their own, and the scales of both together."""
        noise = factor * self.sigmas * rng.standard_normal(len(self.sigmas))
        return replace(self, distances=self.distances + noise, sigmas=self.sigmas * math.hypot(1, factor))


@dataclass(frozen=True)
class Measured:
    """All that was measured.

    Attributes:
        parts: what marginals and residuals tell.
        cells: what other queries tell.
        ties: distances.
        spent: the sum of the precisions that the same budget would have bought for whole marginals.
    """

    parts: PartEstimates
    cells: Cells
    ties: Ties
    spent: float = field(default=1.0)

    @classmethod
    def of(cls, domain: Domain, log: Log) -> Measured:
        """All that a run has measured.

        Args:
            domain: the attributes.
            log: its transcript.
        """
        total, found = log.estimated_total, log.measurements
        others = [one for one in found if not tells_parts(one.queries) and not isinstance(one.queries, Tie)]
        queries = tuple(dict.fromkeys(one.queries for one in others))
        spent = sum(_cost(one.queries) * (total / one.sigma) ** 2 for one in found if not isinstance(one.queries, Tie))
        parts = PartEstimates.of(domain, found, total)
        return cls(parts, Cells(queries, *combined(queries, others, total)), Ties.of(found, total), spent)

    @property
    def freedom(self) -> int:
        """The number of dimensions of what was measured, without the ties."""
        return self.parts.freedom + len(self.cells.fractions)

    @cached_property
    def queries(self) -> tuple[Queries, ...]:
        """What a fit answers: the marginals that have a weight, the pairs of the ties, and the other queries."""
        domain = self.parts.domain
        scopes = dict.fromkeys((*self.parts.weights, *(free_of(domain, scope) for scope in self.ties.scopes)))
        return (*(Marginal(scope, domain.shape(scope)) for scope in scopes), *self.cells.queries)

    def split(self, rng: np.random.Generator, tau: float) -> tuple[Measured, Measured]:
        """Two with independent noise, of 1 + tau^2 and 1 + tau^-2 times the variance: y + tau z and y - z / tau, where
        z has the distribution of the noise. The second one keeps the precisions of y, and ties stay with the first.

        Args:
            rng: draws z.
            tau: how the noise is split.
        """
        factor = 1 + tau**2
        first, second = self.parts.noised(rng, tau, -1 / tau)
        more, less = self.cells.noised(rng, tau, -1 / tau)
        noisier = replace(
            self,
            parts=first.weakened(factor),
            cells=replace(more, precision=more.precision / factor),
            ties=self.ties.noised(rng, tau),
            spent=self.spent / factor,
        )
        return noisier, replace(self, parts=second, cells=less)

    def plus(self, excess: np.ndarray) -> Measured:
        """The same with something added.

        Args:
            excess: in standard deviations of the noise, of the cells of all parts and then of other queries.
        """
        more, at = {}, 0
        for scope, values in self.parts.values.items():
            sigma = math.sqrt(self.parts.share(scope) / self.parts.precision[scope])
            more[scope] = centred(sigma * excess[at : at + values.size].reshape(values.shape))
            at += values.size
        cells = replace(self.cells, fractions=self.cells.fractions + excess[at:] / np.sqrt(self.cells.precision))
        return replace(self, parts=self.parts.plus(more), cells=cells)

    def along(self, more: Parts) -> Measured:
        """The same with something added to some parts, in standard deviations of one of their dimensions."""
        values = dict(self.parts.values)
        values |= {scope: values[scope] + part / math.sqrt(self.parts.precision[scope]) for scope, part in more.items()}
        return replace(self, parts=replace(self.parts, values=values))

    def on(self, queries: Sequence[Queries]) -> OnQueries:
        """The same as flat vectors over a list of queries that has all of :attr:`queries`."""
        return OnQueries(self, tuple(queries))


def _cost(queries: Queries) -> int:
    """How many times as much of a budget the precision of some queries takes as that of a marginal."""
    return sum(part.square for part in queries.parts) if isinstance(queries, Residuals) else 1


@dataclass(frozen=True)
class OnQueries:
    """What was measured, as flat vectors over a list of queries.

    Attributes:
        measured: what was measured.
        queries: the queries, with all that a fit answers among them, and maybe others.
    """

    measured: Measured
    queries: tuple[Queries, ...]

    @cached_property
    def _slices(self) -> dict[Queries, slice]:
        """Where the cells of each of the queries are."""
        offsets = offsets_of(self.queries).tolist()
        return {one: slice(offsets[n], offsets[n + 1]) for n, one in enumerate(self.queries)}

    @property
    def size(self) -> int:
        """The number of cells of all queries."""
        return int(offsets_of(self.queries)[-1])

    @cached_property
    def _marginals(self) -> dict[Attributes, slice]:
        """Where the cells of each marginal with a weight are."""
        domain = self.measured.parts.domain
        return {a: self._slices[Marginal(a, domain.shape(a))] for a in self.measured.parts.weights}

    @cached_property
    def of_marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """The targets t_B and the weights W_B of the cells of marginals; 0 and 0 elsewhere."""
        targets, weights = np.zeros(self.size), np.zeros(self.size)
        for scope, cells in self._marginals.items():
            targets[cells], weights[cells] = self.measured.parts.marginal(scope), self.measured.parts.weights[scope]
        return targets, weights

    @cached_property
    def of_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The fractions and precisions of other queries; 0 and 0 elsewhere."""
        targets, weights, cells = np.zeros(self.size), np.zeros(self.size), self.measured.cells
        if len(cells.queries):
            ends = offsets_of(cells.queries)[1:-1]
            parts = zip(cells.queries, np.split(cells.fractions, ends), np.split(cells.precision, ends), strict=True)
            for one, fractions, precision in parts:
                targets[self._slices[one]], weights[self._slices[one]] = fractions, precision
        return targets, weights

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Targets and weights of all that is compared: of marginals, and of other queries if there are any."""
        return [self.of_marginals, self.of_cells] if len(self.measured.cells.queries) else [self.of_marginals]

    def distance(self, answers: np.ndarray, weights: Mapping[Attributes, float] | None = None) -> float:
        """The squared distance of some answers, in units of the noise; without the ties.

        Args:
            answers: a flat vector over the queries.
            weights: what the squares of each part count, instead of their precision.
        """
        targets, precision = self.of_cells
        parts = self.measured.parts
        off = float(np.sum(precision * (answers - targets) ** 2))
        return parts.squared(parts.residuals(self.tables(answers)), weights) + off

    def apart(self, one: np.ndarray, other: np.ndarray, weights: Mapping[Attributes, float] | None = None) -> float:
        """The squared distance of two vectors of answers, in units of the noise.

        Args:
            one: a flat vector over the queries.
            other: another one.
            weights: what the squares of each part count, instead of their precision.
        """
        parts, off = self.measured.parts, one - other
        return parts.squared(parts.parts_of(self.tables(off)), weights) + float(np.sum(self.of_cells[1] * off**2))

    def tables(self, answers: np.ndarray) -> dict[Attributes, np.ndarray]:
        """The marginals among some answers."""
        domain = self.measured.parts.domain
        return {scope: answers[cells].reshape(domain.shape(scope)) for scope, cells in self._marginals.items()}

    def standardised(self, answers: np.ndarray) -> np.ndarray:
        """What was measured minus some answers, over the standard deviation of the noise: of the cells of all parts and
        then of other queries."""
        parts = self.measured.parts
        found = [
            residual.ravel() * math.sqrt(parts.precision[scope] / parts.share(scope))
            for scope, residual in parts.residuals(self.tables(answers))
        ]
        targets, weights = self.of_cells
        off = (targets - answers) * np.sqrt(weights)
        return np.concatenate([np.zeros(0), *found, *(off[self._slices[one]] for one in self.measured.cells.queries)])

    def along(self, answers: np.ndarray, directions: Parts) -> dict[Attributes, float]:
        """What was measured minus some answers, of parts along some directions, in units of the noise.

        Args:
            answers: a flat vector over the queries.
            directions: tables of length 1, by the attributes of the parts.
        """
        parts, tables = self.measured.parts, self.tables(answers) if directions else {}
        known = replace(parts, values={scope: parts.values[scope] for scope in directions})
        return {
            scope: float(np.sum(residual * directions[scope])) * math.sqrt(parts.precision[scope])
            for scope, residual in known.residuals(tables)
        }

    def estimates(self, answers: np.ndarray) -> tuple[list[Queries], np.ndarray, np.ndarray]:
        """The marginals whose parts are all told, by how much their estimates are above some answers, and that over the
        standard deviation of its noise; the last two are flat vectors over the cells of these marginals."""
        parts, domain = self.measured.parts, self.measured.parts.domain
        queries: list[Queries] = [Marginal(scope, domain.shape(scope)) for scope in self._known]
        above = [parts.marginal(scope) - answers[self._marginals[scope]] for scope in self._known]
        over = [part / math.sqrt(parts.variance(scope)) for scope, part in zip(self._known, above, strict=True)]
        return queries, np.concatenate([np.zeros(0), *above]), np.concatenate([np.zeros(0), *over])

    @cached_property
    def best_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The best estimates of single cells: fractions and 1 / variance, of the cells of measured marginals whose
        parts are all told, and of other queries; 0 and 0 elsewhere."""
        targets, precision = (values.copy() for values in self.of_cells)
        for scope in self._known:
            parts, cells = self.measured.parts, self._marginals[scope]
            targets[cells], precision[cells] = parts.marginal(scope), 1 / parts.variance(scope)
        return targets, precision

    @cached_property
    def _known(self) -> list[Attributes]:
        """The measured marginals whose parts are all told."""
        parts = self.measured.parts
        return [a for a in self._marginals if a in parts.precision and math.isfinite(parts.variance(a))]


def one_way(measured: Measured) -> list[np.ndarray]:
    """Estimated one-way marginals, moved to the simplex; uniform where nothing was measured.

    What the parts tell and what all whole products with the attribute tell is weighted by the precision (a sum over c
    cells has c times the variance). With products F_i, the other attributes are summed out by columns that add up to 1
    for every code, and F_i is inverted by least squares.

    Args:
        measured: what was measured.
    """
    parts, cells = measured.parts, measured.cells
    domain = parts.domain
    sums, weights = [np.zeros(size) for size in domain.sizes], np.zeros(len(domain))
    for i in range(len(domain)):
        weights[i] = parts.precision.get((i,), 0.0)
        sums[i] += weights[i] * parts.marginal((i,))
    offsets = offsets_of(cells.queries) if cells.queries else ()
    for n, one in enumerate(cells.queries):
        if one.factors is None or one.cells is not None:
            continue
        here = slice(offsets[n], offsets[n + 1])
        table = cells.fractions[here].reshape([len(factor.bounds) for factor in one.factors])
        ones = [factor.ones for factor in one.factors]
        for axis, attribute in enumerate(one.scope):
            others = ones[:axis] + ones[axis + 1 :]
            if any(weights is None for weights in others):
                continue
            if (attribute,) in parts.precision and len(one.factors[axis].bounds) < one.shape[axis]:
                continue  # blocks do not tell their values apart
            # The squared length of the weights that sum out the other attributes: their number of cells in a marginal.
            length = np.prod([weights @ weights for weights in others if weights is not None])
            weight = cells.precision[here].mean() / length
            sums[attribute] += weight * _way(table, axis, one.factors)
            weights[attribute] += weight
    return [
        to_simplex(total / weight) if weight > 0 else np.full(len(total), 1 / len(total))
        for total, weight in zip(sums, weights, strict=True)
    ]


def _way(table: np.ndarray, axis: int, factors: tuple[Intervals, ...]) -> np.ndarray:
    """The one-way marginal of one axis of a table of product queries."""
    for other in reversed([n for n in range(table.ndim) if n != axis]):
        table = np.tensordot(table, np.asarray(factors[other].ones), (other, 0))
    return np.asarray(np.linalg.lstsq(factors[axis].matrix.T.astype(float), table, rcond=None)[0])
