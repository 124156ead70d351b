"""Private-PGM: the graphical model that fits all measurements so far best, by entropic mirror descent.

The loss is a function of the marginals p of the model, with the noise s of each measurement as fractions:

    L(p) = 1/2 sum over measurements of |Q p - a|^2 / s^2.

Among all distributions with the same marginals over the measured scopes, the one of largest entropy is a graphical
model with a potential theta_c for each scope c that no other one contains. Mirror descent with the entropy as the
mirror map moves the potentials against the gradient with respect to the marginals,

    theta_c <- theta_c - alpha dL/dp_c,

and infers the new marginals. The step alpha is halved until the loss falls by half of what the gradient says (Armijo),
and grows again after each success. It starts from the potentials of the round before.

McKenna, Sheldon and Miklau, Graphical-model based estimation and inference for differential privacy, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.beliefs import Beliefs, calibrate, spread, summed
from pointillist.families.junction import JunctionTree, maximal
from pointillist.families.markov import Field, Markov, clique_tables
from pointillist.framework import Log, Updated
from pointillist.queries.base import Queries
from pointillist.queries.measurement import Measurement
from pointillist.reporting import Tally

__all__ = ["MirrorDescent", "Problem"]

Tables = dict[Attributes, np.ndarray]
"""A table for each scope."""

ENOUGH, GROWTH, SHRINK = 0.5, 1.1, 0.5
"""The share of the expected gain that a step must have, and by what it is multiplied after a success and a failure."""

SMALLEST = 1e-12
"""A step that became this much smaller than the first one can gain nothing more."""


@dataclass(frozen=True)
class MirrorDescent:
    """The update. Memory: the step with which the last round ended; 0 before the first one.

    Attributes:
        family: the family of the models.
        steps: the largest number of steps of a round.
        tolerance: a round ends where ``window`` steps lower the loss by less than this per measured cell.
        window: the number of steps after which that is judged.
    """

    family: Markov
    steps: int
    tolerance: float
    window: int = 20

    def init(self, params: Field) -> float:
        return 0.0

    def __call__(self, rng: np.random.Generator, params: Field, memory: float, log: Log) -> Updated:
        if not log.rounds[-1].measurements:  # a round that selected only
            return Updated(params, memory, {})
        problem = Problem(self.family.domain, log.measurements, log.total)
        point = problem.at(problem.expanded(params.potentials))
        step = memory if memory > 0 else problem.first_step
        smallest, judged, taken = SMALLEST * problem.first_step, point.loss, 0
        tally = Tally(self.steps)
        while taken < self.steps and step > smallest:
            tried = problem.at({scope: point.theta[scope] - step * point.gradient[scope] for scope in point.theta})
            better = tried.loss <= point.loss - ENOUGH * point.expected_gain(tried)
            point, step = (tried, GROWTH * step) if better else (point, SHRINK * step)
            taken += 1
            tally.made(taken, loss=point.loss / problem.cells)
            if taken % self.window == 0:
                if judged - point.loss < self.tolerance * problem.cells:
                    break
                judged = point.loss
        tally.end(taken, loss=point.loss / problem.cells)
        beliefs = Beliefs(problem.tree, self.family.domain.sizes, point.tables)
        info = {"loss": point.loss / problem.cells, "steps": float(taken)}
        return Updated(Field(self.family.domain, point.theta, beliefs), step, info)


@dataclass(frozen=True)
class Point:
    """Potentials, the marginals of all cliques and of the scopes, and the loss with its gradient."""

    theta: Tables
    tables: list[np.ndarray]
    marginals: Tables
    loss: float
    gradient: Tables

    def expected_gain(self, other: Point) -> float:
        """By how much the loss falls to first order, from here to another point."""
        pairs = ((self.gradient[s], self.marginals[s] - other.marginals[s]) for s in self.gradient)
        return float(sum(np.vdot(gradient, change) for gradient, change in pairs))


@dataclass(frozen=True)
class Term:
    """The mean of all measurements of some queries as fractions, and its precision 1 / s^2."""

    queries: Queries
    target: np.ndarray
    precision: float


class Problem:
    """What one round is fitted to."""

    def __init__(self, domain: Domain, measured: Sequence[Measurement], total: int) -> None:
        self.domain = domain
        self.scopes = maximal(m.queries.scope for m in measured)
        self.tree = JunctionTree.of(domain.sizes, self.scopes)
        self.terms: dict[Attributes, list[Term]] = {scope: [] for scope in self.scopes}
        for term in combined(measured, total):
            self.terms[self._container(term.queries.scope)].append(term)
        self.cells = sum(term.queries.size for terms in self.terms.values() for term in terms)
        self.first_step = 1 / max(sum(term.precision for term in terms) for terms in self.terms.values())
        homes = {scope: self.tree.home(scope, domain.sizes) for scope in self.scopes}
        self._homes = {scope: home for scope, home in homes.items() if home is not None}

    def _container(self, scope: Attributes) -> Attributes:
        """The smallest of the scopes that hold another one."""
        holding = (other for other in self.scopes if set(scope) <= set(other))
        return min(holding, key=self.domain.cells_of)

    def expanded(self, potentials: Mapping[Attributes, np.ndarray]) -> Tables:
        """Potentials over the scopes of this round, from those of an earlier one: the same model."""
        theta = {scope: np.zeros(self.domain.shape(scope)) for scope in self.scopes}
        for scope, table in potentials.items():
            into = self._container(scope)
            theta[into] += table.reshape(spread(scope, into, self.domain.sizes))
        return theta

    def at(self, theta: Tables) -> Point:
        """Marginals, loss and gradient of a model."""
        tables = clique_tables(self.tree, self.domain, theta)
        calibrate(self.tree, self.domain.sizes, tables)
        marginals = {s: summed(tables[home], self.tree.cliques[home], s) for s, home in self._homes.items()}
        loss, gradient = 0.0, {}
        for scope, terms in self.terms.items():
            slope = np.zeros(self.domain.shape(scope))
            for term in terms:
                inside = term.queries.scope
                residual = term.queries.of_marginal(summed(marginals[scope], scope, inside).ravel()) - term.target
                loss += 0.5 * term.precision * float(residual @ residual)
                back = term.queries.to_marginal(term.precision * residual)
                slope += back.reshape(spread(inside, scope, self.domain.sizes))
            gradient[scope] = slope
        return Point(theta, tables, marginals, loss, gradient)


def combined(measured: Sequence[Measurement], total: int) -> list[Term]:
    """One term for all measurements of the same queries: their mean, weighted by the precisions."""
    sums: dict[Queries, tuple[np.ndarray, float]] = {}
    for m in measured:
        precision = (total / m.sigma) ** 2
        weighted, so_far = sums.get(m.queries, (np.zeros(m.queries.size), 0.0))
        sums[m.queries] = weighted + precision * m.fractions(total), so_far + precision
    return [Term(queries, weighted / precision, precision) for queries, (weighted, precision) in sums.items()]
