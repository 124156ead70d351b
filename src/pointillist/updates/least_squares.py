"""Least squares from measured residuals, in closed form: residuals of different scopes are orthogonal.

m I - J is m C, where C takes the mean away along one attribute. So the noisy residual y_A of
:mod:`pointillist.queries.residuals` estimates the part of A as C y_A / (w_A prod m_i), with noise
sigma / (w_A prod m_i) along each of its dimensions. A marginal over S is the sum of the parts of its subsets, each
spread evenly over the attributes that it lacks; the part of no attributes is the number of rows. Parts that were not
measured are 0: of all tables that fit the measurements this is the smallest, in the sum of squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.families.components import Components, Parts, marginal_of
from pointillist.framework import Log, Round, Update, Updated
from pointillist.queries.base import Queries
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residuals

__all__ = ["Centred", "LeastSquares", "OnMarginals", "OnParts", "parts_of_log"]


@dataclass(frozen=True)
class Centred:
    """The part of one scope as a function of its marginal: what the least-squares loss compares. It is never asked.

    Attributes:
        scope: increasing positions of attributes.
        shape: the size of each.
    """

    scope: Attributes
    shape: tuple[int, ...]

    partition = False

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The marginal without its means along each attribute."""
        values = table.reshape(self.shape)
        for axis in range(len(self.shape)):
            values = values - values.mean(axis=axis, keepdims=True)
        return values.ravel()

    to_marginal = of_marginal
    """A projection is its own transpose."""


def parts_of_log(log: Log) -> Iterator[Measurement]:
    """The least-squares estimate of each part, in counts, with its noise."""
    for measured in log.measurements:
        assert isinstance(measured.queries, Residuals)
        at = 0
        for part in measured.queries.parts:
            centred = Centred(part.scope, part.shape)
            factor = part.weight * part.size
            values = centred.of_marginal(measured.counts[at : at + part.size] / factor)
            yield Measurement(centred, values, measured.sigma / factor)  # type: ignore[arg-type]
            at += part.size


@dataclass(frozen=True)
class LeastSquares:
    """The update: parts as they come, as fractions; some answers are below 0."""

    family: Components

    def init(self, params: Parts) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Parts, memory: None, log: Log) -> Updated:
        return Updated(_fractions(log), None, {})


@dataclass(frozen=True)
class OnParts:
    """An update that is given the least-squares parts instead of the residuals.

    Attributes:
        inner: the update, for example mirror descent; its loss is then that of least squares.
    """

    inner: Update[Any]

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        return self.inner(rng, params, memory, _with(log, tuple(parts_of_log(log))))


@dataclass(frozen=True)
class OnMarginals:
    """An update that is given the least-squares marginals instead of the residuals, with the mean noise of their cells.

    Attributes:
        inner: the update, for example a descent.
        wanted: the marginals.
    """

    inner: Update[Any]
    wanted: Sequence[Queries] = field(repr=False)

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        parts, total = _fractions(log), log.total
        noise = {m.queries.scope: m.sigma**2 * math.prod(k - 1 for k in m.queries.shape) for m in parts_of_log(log)}
        found = []
        for one in self.wanted:
            variances = (noise[a] * _share(one, a) for a in noise if set(a) <= set(one.scope))
            counts = total * marginal_of(one.scope, one.shape, parts).ravel()
            found.append(Measurement(one, counts, math.sqrt(math.fsum(variances) / one.size)))
        return self.inner(rng, params, memory, _with(log, tuple(found)))


def _share(one: Queries, scope: Attributes) -> float:
    """By what the noise of a part is divided when it is spread over the attributes of a marginal that it lacks."""
    return 1 / math.prod(m for i, m in zip(one.scope, one.shape, strict=True) if i not in scope)


def _fractions(log: Log) -> Parts:
    """The parts as fractions of the rows."""
    found = parts_of_log(log)
    return {m.queries.scope: m.fractions(log.total).reshape(m.queries.shape) for m in found}


def _with(log: Log, measurements: tuple[Measurement, ...]) -> Log:
    """A log of one round with other measurements."""
    return replace(log, rounds=[Round(measurements=measurements)])
