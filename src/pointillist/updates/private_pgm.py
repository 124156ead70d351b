"""Private-PGM by its authors' package, ``mbi``: the same problem as :mod:`pointillist.updates.mirror`.

Its mirror descent has a line search, and is compiled for each new set of cliques. It is here to compare with, and for
accelerators; the extra ``graphical`` installs it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.checks import at_least
from pointillist.errors import InputError
from pointillist.families.markov import Field, Markov
from pointillist.framework import Log, Updated
from pointillist.queries.base import Queries
from pointillist.updates.mirror import Problem

__all__ = ["MbiDescent"]


@dataclass(frozen=True)
class MbiDescent:
    """The update; keeps no memory besides the parameters.

    Attributes:
        family: the family of the models.
        steps: the number of steps of a round; mbi makes fifty at a time.
    """

    family: Markov
    steps: int

    def __post_init__(self) -> None:
        at_least("t_max", self.steps, 1, 1000)
        _mbi()

    def init(self, params: Field) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Field, memory: None, log: Log) -> Updated:
        if not log.rounds[-1].measurements:  # a round that selected only
            return Updated(params, None, {})
        mbi, sizes, total = _mbi(), self.family.domain.sizes, log.estimated_total
        domain = mbi.Domain(list(range(len(sizes))), list(sizes))
        problem = Problem(self.family.domain, log.measurements, total)
        theta = problem.expanded(params.potentials)
        tables = {scope: mbi.Factor(domain.project(scope), np.asarray(theta[scope], np.float32)) for scope in theta}
        measured = [
            mbi.LinearMeasurement(m.counts.astype(np.float32), m.queries.scope, m.sigma, _query(m.queries))
            for m in log.measurements
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=float(total), iters=self.steps,
            warm_start=mbi.CliqueVector(domain, list(theta), tables),
        )  # fmt: skip
        found = model.potentials.expand(list(theta))
        fitted = Field(self.family.domain, {s: np.asarray(found[s].values, np.float64) for s in theta})
        return Updated(fitted, None, {"loss": problem.at(dict(fitted.potentials)).loss / problem.cells})


@dataclass(frozen=True)
class _Linear:
    """Queries as mbi asks them: a linear function of a factor."""

    queries: Queries

    def __call__(self, factor: Any) -> Any:
        matrix = np.stack([self.queries.of_marginal(row) for row in np.eye(int(np.prod(self.queries.shape)))])
        return factor.datavector() @ matrix.astype(np.float32)


def _query(queries: Queries) -> Any:
    """The identity for a marginal; else the queries of its cells."""
    whole = queries.partition and queries.size == int(np.prod(queries.shape))
    return _mbi().marginal_loss.DatavectorQuery() if whole else _Linear(queries)


def _mbi() -> Any:
    """The package, imported where it is used; it warns about settings of JAX that are not ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mbi
    except ImportError:
        rule = "must be 'numpy' where the package mbi is not installed"
        raise InputError("solver", "mbi", rule, "use numpy, or run pip install 'pointillist[graphical]'") from None
    return mbi
