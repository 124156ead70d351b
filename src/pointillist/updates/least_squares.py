"""Least squares from measured residuals, in closed form: residuals of different scopes are orthogonal.

Each noisy residual is an estimate of a part (:mod:`pointillist.updates.parts`). A marginal over S is the sum of the
parts of its subsets, each spread evenly over the attributes that it lacks; the part of no attributes is the number of
rows. Parts that were not measured are 0: of all tables that fit the measurements this is the smallest, in the sum of
squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.components import Components, Parts
from pointillist.framework import Log, Round, Update, Updated
from pointillist.queries.base import Queries
from pointillist.queries.measurement import Measurement
from pointillist.updates.parts import PartEstimates, centred

__all__ = ["Centred", "LeastSquares", "OnMarginals", "OnParts"]


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
        return centred(table.reshape(self.shape)).ravel()

    to_marginal = of_marginal
    """A projection is its own transpose."""


@dataclass(frozen=True)
class LeastSquares:
    """The update: parts as they come, as fractions; some answers are below 0."""

    family: Components

    def init(self, params: Parts) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Parts, memory: None, log: Log) -> Updated:
        return Updated(dict(_estimates(self.family.domain, log).values), None, {})


@dataclass(frozen=True)
class OnParts:
    """An update that is given the least-squares parts instead of the residuals.

    Attributes:
        inner: the update, for example mirror descent; its loss is then that of least squares.
        domain: the attributes.
    """

    inner: Update[Any]
    domain: Domain = field(repr=False)

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        parts, found = _estimates(self.domain, log), []
        for scope, values in parts.values.items():
            sigma = log.total / math.sqrt(parts.precision[scope])
            part: Any = Centred(scope, values.shape)
            found.append(Measurement(part, log.total * values.ravel(), sigma))
        return self.inner(rng, params, memory, _with(log, tuple(found)))


@dataclass(frozen=True)
class OnMarginals:
    """An update that is given the least-squares marginals instead of the residuals, with the mean noise of their cells.

    Attributes:
        inner: the update, for example a descent.
        domain: the attributes.
        wanted: the marginals.
    """

    inner: Update[Any]
    domain: Domain = field(repr=False)
    wanted: Sequence[Queries] = field(repr=False)

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        parts, total = _estimates(self.domain, log), log.total
        found = tuple(
            Measurement(one, total * parts.marginal(one.scope), total * math.sqrt(parts.variance(one.scope)))
            for one in self.wanted
        )
        return self.inner(rng, params, memory, _with(log, found))


def _estimates(domain: Domain, log: Log) -> PartEstimates:
    """The parts that were measured."""
    return PartEstimates.of(domain, log.measurements, log.total)


def _with(log: Log, measurements: tuple[Measurement, ...]) -> Log:
    """A log of one round with other measurements."""
    return replace(log, rounds=[Round(measurements=measurements)])
