"""Private-PGM: the graphical model that fits all measurements so far best, by entropic mirror descent.

The loss is a function of the marginals p of the model, with the noise s of each measurement as fractions:

    L(p) = 1/2 sum over measurements of |Q p - a|^2 / s^2.

Among all distributions with the same marginals over the measured scopes, the one of largest entropy is a graphical
model with a potential theta_c for each scope c that no other one contains. Mirror descent with the entropy as the
mirror map moves the potentials against the gradient with respect to the marginals,

    theta_c <- theta_c - alpha dL/dp_c,

and infers the new marginals. Steps have Nesterov's momentum: the gradient is taken at theta plus k / (k + 3) of the
last move, k steps after a restart. A step after which the loss is larger is taken back, alpha is cut, and the momentum
starts again from nothing. The first alpha is 4 / (the sum of the precisions 1 / s^2 of one scope): each probability
changes by at most a quarter of the change of its potential. A round starts from the potentials of the one before.

McKenna, Sheldon and Miklau, Graphical-model based estimation and inference for differential privacy, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.checks import at_least, check
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

CUT = 0.7
"""By what alpha is multiplied after a step that failed."""

SMALLEST = 1e-9
"""Once alpha is this much smaller than the first one, nothing more can be gained."""


@dataclass(frozen=True)
class MirrorDescent:
    """The update; keeps no memory besides the parameters.

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

    def __post_init__(self) -> None:
        at_least("t_max", self.steps, 1, 1000)
        check(self.tolerance >= 0, "tolerance", self.tolerance, "must not be negative", "give 0.01")

    def init(self, params: Field) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Field, memory: None, log: Log) -> Updated:
        if not log.rounds[-1].measurements:  # a round that selected only
            return Updated(params, None, {})
        problem = Problem(self.family.domain, log.measurements, log.estimated_total)
        point, taken = self._descend(problem, problem.at(problem.expanded(params.potentials)))
        beliefs = Beliefs(problem.tree, self.family.domain.sizes, point.tables)
        info = {"loss": point.loss / problem.cells, "steps": float(taken)}
        return Updated(Field(self.family.domain, point.theta, beliefs), None, info)

    def _descend(self, problem: Problem, point: Point) -> tuple[Point, int]:
        """The last point, and the number of steps."""
        alpha = problem.first_step
        smallest, judged, taken, since = SMALLEST * alpha, point.loss, 0, 0
        last = point.theta
        tally = Tally(self.steps)
        while taken < self.steps and alpha > smallest:
            moved = {scope: theta - alpha * point.gradient[scope] for scope, theta in point.theta.items()}
            momentum = since / (since + 3)
            tried = problem.at({scope: theta + momentum * (theta - last[scope]) for scope, theta in moved.items()})
            if tried.loss <= point.loss:
                point, last, since = tried, moved, since + 1
            else:
                last, since, alpha = point.theta, 0, CUT * alpha
            taken += 1
            tally.made(taken, loss=point.loss / problem.cells)
            if taken % self.window == 0:
                if judged - point.loss < self.tolerance * problem.cells:
                    break
                judged = point.loss
        tally.end(taken, loss=point.loss / problem.cells)
        return point, taken


@dataclass(frozen=True)
class Point:
    """Potentials, the marginals of all cliques, and the loss with its gradient."""

    theta: Tables
    tables: list[np.ndarray]
    loss: float
    gradient: Tables


@dataclass(frozen=True)
class Term:
    """The mean of all measurements of some queries as fractions, and its precision 1 / s^2."""

    queries: Queries
    target: np.ndarray
    precision: float


class Problem:
    """What one round is fitted to."""

    def __init__(self, domain: Domain, measured: Sequence[Measurement], total: float) -> None:
        self.domain = domain
        self.scopes = maximal(m.queries.scope for m in measured)
        self.tree = JunctionTree.of(domain.sizes, self.scopes)
        self.terms: dict[Attributes, list[Term]] = {scope: [] for scope in self.scopes}
        for term in combined(measured, total):
            self.terms[self._container(term.queries.scope)].append(term)
        self.cells = sum(term.queries.size for terms in self.terms.values() for term in terms)
        self.first_step = 4 / max(sum(term.precision for term in terms) for terms in self.terms.values())
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
        return Point(theta, tables, loss, gradient)


def combined(measured: Sequence[Measurement], total: float) -> list[Term]:
    """One term for all measurements of the same queries: their mean, weighted by the precisions."""
    sums: dict[Queries, tuple[np.ndarray, float]] = {}
    for m in measured:
        precision = (total / m.sigma) ** 2
        weighted, so_far = sums.get(m.queries, (np.zeros(m.queries.size), 0.0))
        sums[m.queries] = weighted + precision * m.counts / total, so_far + precision
    return [Term(queries, weighted / precision, precision) for queries, (weighted, precision) in sums.items()]
