"""What the measurements themselves say about a query: unbiased, with exactly known noise.

Measured marginals and residuals tell the parts of a marginal (:mod:`pointillist.updates.parts`). Where all parts
inside of a query's attributes are told, the query is a sum of them. With y_A = C_A (true part + noise of the variance
1 / pi_A on each cell), and h the query as a table of 0 and 1 over its attributes S, its variance is

    sum_A |C_A h_A|^2 / (pi_A prod_{i in S - A} m_i^2),    h_A the sums of h over S - A.

Other queries tell about themselves.

**A noisy number of rows.** Parts are counts P that are divided by an estimate N' of the number of rows N. To their sum
the part of no attributes is added: the share e of the cells in which the query holds, which is exact. So the fraction
is f = e + P / N', and an error of N' by the share d moves it by (e - f) d. The count N' f = e N' + P is moved by e N d.
Of queries that tell about themselves, e is 0. N' is made of sums over all cells, and parts have no such sum, so that
its noise is independent of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework import Log
from pointillist.queries.base import Queries, is_direct, parts_of
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.tie import Tie
from pointillist.updates.part_index import PartIndex
from pointillist.updates.parts import PartEstimates, centred, free_of, subsets, tells_parts

__all__ = ["FromNoise", "Known", "total_sigma"]

MOST_CELLS = 1_000_000
"""No larger marginal is looked at."""

MOST_NUMBERS = 4_000_000
"""The largest table of all queries by all cells of their attributes."""

LEAST = 1e-6
"""The least standard deviation, in rows. A query that holds for all rows, or for none, has no noise at all."""


@dataclass(frozen=True)
class Known:
    """What measurements say about some queries.

    Attributes:
        answers: estimates, as fractions of the rows.
        noise: the standard deviation of each, without the error of the number of rows.
        exact: e, the part of each answer that is known without any noise.
        total: the number of rows, as well as it is known.
        total_sigma: the standard deviation of the noise on it.
    """

    answers: np.ndarray
    noise: np.ndarray
    exact: np.ndarray
    total: float
    total_sigma: float

    @property
    def sigma(self) -> np.ndarray:
        """The standard deviations of the answers as fractions."""
        return np.asarray(np.hypot(self.noise, (self.answers - self.exact) * self.total_sigma / self.total))

    @property
    def counts(self) -> np.ndarray:
        """The answers as numbers of rows."""
        return self.answers * self.total

    @property
    def sigma_of_counts(self) -> np.ndarray:
        """The standard deviations of the answers as numbers of rows."""
        return np.asarray(np.hypot(self.noise * self.total, self.exact * self.total_sigma))


class FromNoise:
    """The measurements of a run, in a form in which many queries can be looked up.

    Args:
        domain: the attributes.
        log: the transcript.
    """

    def __init__(self, domain: Domain, log: Log) -> None:
        self._domain, self._total, self._total_sigma = domain, log.estimated_total, total_sigma(log)
        self._index = PartIndex(domain, log.measurements, self._total, MOST_CELLS)
        self._others: dict[Queries, list[Measurement]] = {}
        for one in log.measurements:
            if not tells_parts(one.queries) and not isinstance(one.queries, Tie):
                self._others.setdefault(one.queries, []).append(one)

    def of(self, queries: Queries) -> Known | None:
        """What is known about some queries; None if nothing that was measured tells.

        Args:
            queries: the queries.
        """
        found = [*self._themselves(queries), *self._from_parts(queries)]
        if not found:
            return None
        fractions, variances, exact = (np.stack(some) for some in zip(*found, strict=True))
        precisions = 1 / np.maximum(variances, (LEAST / self._total) ** 2)
        answers, known = (np.average(some, axis=0, weights=precisions) for some in (fractions, exact))
        return Known(answers, precisions.sum(axis=0) ** -0.5, known, self._total, self._total_sigma)

    def _themselves(self, queries: Queries) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Fractions of queries that were measured as they are, their variances, and nothing that is exact."""
        if tells_parts(queries):
            return
        for one in self._others.get(queries, ()):
            variance = np.full(queries.size, (one.sigma / self._total) ** 2)
            yield one.fractions(self._total), variance, np.zeros(queries.size)

    def _from_parts(self, queries: Queries) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Fractions of queries that are sums of cells, from the parts of their marginal, their variances, and the part
        of no attributes."""
        cells = math.prod(queries.shape)
        many = not isinstance(queries, Marginal) and queries.size * max(queries.size, cells) > MOST_NUMBERS
        if many or is_direct(queries) or len(parts_of(queries)) > 1 or isinstance(queries, Tie):
            return
        parts = self._index.inside(queries.scope)
        if parts is None:
            return
        if isinstance(queries, Marginal):
            variances = np.full(queries.size, parts.variance(queries.scope))
        else:
            variances = _variances(parts, queries)
        exact = np.asarray(queries.of_marginal(np.full(cells, 1 / cells)))
        yield np.asarray(queries.of_marginal(parts.marginal(queries.scope))), variances, exact


def total_sigma(log: Log) -> float:
    """The standard deviation of the estimated number of rows; 0 where it is public.

    Args:
        log: the transcript.
    """
    if log.facts.total_sigma == 0:
        return 0.0
    whole = [one.queries.size * one.sigma**2 for one in log.measurements if one.queries.partition]
    return float(sum(1 / variance for variance in (log.facts.total_sigma**2, *whole)) ** -0.5)


def _variances(parts: PartEstimates, queries: Queries) -> np.ndarray:
    """The variance of each of some queries."""
    inside = free_of(parts.domain, queries.scope)
    tables = np.stack([queries.to_marginal(one) for one in np.eye(queries.size)])
    tables = tables.reshape(queries.size, *parts.domain.shape(inside))
    found = np.zeros(queries.size)
    for part in subsets(inside):
        away = tuple(n + 1 for n, i in enumerate(inside) if i not in part)
        outside = math.prod(parts.domain.sizes[i] for i in inside if i not in part)
        sums = [centred(table) for table in tables.sum(axis=away)]
        found += np.array([float((one**2).sum()) for one in sums]) / (parts.precision[part] * outside**2)
    return found
