"""PEP: private entropy projection.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| histogram over the whole domain | 1 per round, even budget | yes | entropy projections | last |

Of all distributions that agree with the measurements up to gamma, the one of largest entropy is
D(x) ∝ exp(sum_i lambda_i q_i(x)), where lambda minimises the dual loss

    L(lambda) = log sum_x exp(sum_i lambda_i (q_i(x) - a_i)) + gamma ||lambda||_1.

Each step takes the worst answered past query i and moves D by the smallest relative entropy onto the constraint
q_i(D) = a_i: the minimum of L along lambda_i, for gamma = 0. With q = q_i(D) it multiplies the weight of the records
that satisfy q_i by

    exp(-lambda) = a (1 - q) / ((1 - a) q),       a, q kept inside [1e-6, 1 - 1e-6],

and for a whole marginal the weight of each cell c by a_c / q_c (iterative proportional fitting). A round makes at
most min(T_max, 2 t) projections, from the current distribution on, and stops when every past error is at most gamma.
A query whose projection changed nothing (no record that satisfies it has weight, as may be on public records) is left
alone for the rest of the round.
After a step on a single query only the past answers that share records with it are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.histogram import Histogram, Weights
from pointillist.framework import Algorithm, Last, Log
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Grouping, Workload

__all__ = ["EntropyProjection", "Parameters", "build"]

EDGE = 1e-6
PROGRESS = 0.9
"""A projection that leaves more than this share of the error changed nothing to speak of."""


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of PEP."""

    rounds: int | None = parameter(None, "T, the number of rounds; by default 50 by query, 20 by marginal or fewer")
    alpha: float = parameter(0.5, "weight of selecting against measuring, in (0, 1)")
    gamma: float = parameter(0.0, "tolerance: a past error up to it is left alone")
    t_max: int = parameter(25, "T_max, the largest number of projections in a round")
    repeat: bool = parameter(False, "let a group be selected again")
    prior: bool = parameter(True, "by query: prefer queries with a large estimate (the paper: false)")

    def __post_init__(self) -> None:
        check(0 <= self.gamma < 1, "gamma", self.gamma, "must be at least 0 and below 1", "give 0, as the paper does")
        check(self.t_max >= 1, "t_max", self.t_max, "must be at least 1", "give 25, as the paper does")


@dataclass(frozen=True)
class EntropyProjection:
    """The update; keeps no memory besides the log."""

    family: Weights
    gamma: float
    t_max: int

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> tuple[np.ndarray, None]:
        groups = [m.group for m in log.measurements]
        targets = [self.target(log.feasible(m), log.workload.grouping) for m in log.measurements]
        sums = self.family.group_sums(params, log.workload, groups)
        mass = float(params.sum(dtype=np.float64))
        steps = 0
        stuck: set[int] = set()
        for _ in range(min(self.t_max, 2 * len(log.rounds))):
            errors = [np.abs(a - s / mass).max() for a, s in zip(targets, sums, strict=True)]
            worst = int(np.argmax([0.0 if n in stuck else error for n, error in enumerate(errors)]))
            if errors[worst] <= self.gamma or worst in stuck:
                break
            factors = self.factors(targets[worst], sums[worst] / mass)
            mass = self.family.rescale(params, log.workload, groups, worst, factors, sums, mass)
            if np.abs(targets[worst] - sums[worst] / mass).max() > max(PROGRESS * errors[worst], EDGE):
                stuck.add(worst)
            steps += 1
        log.notes[-1]["projections"] = steps
        params /= params.sum(dtype=np.float64)
        return params, None

    def target(self, a: np.ndarray, grouping: Grouping) -> np.ndarray:
        """A measurement as a point inside the simplex: what a projection can reach."""
        inside: np.ndarray = np.clip(a, EDGE, 1 - EDGE)
        return inside if grouping is Grouping.QUERY else inside / inside.sum()

    def factors(self, a: np.ndarray, q: np.ndarray) -> np.ndarray:
        """exp(-lambda) for a single query, a_c / q_c for the cells of a marginal."""
        q = np.clip(q, EDGE, 1 - EDGE)
        factors: np.ndarray = a * (1 - q) / ((1 - a) * q) if len(a) == 1 else a / q
        return factors


def build(workload: Workload, parameters: Parameters, family: Weights | None = None) -> Algorithm[np.ndarray]:
    """PEP as a choice of parts; with a ``family`` of weights on other records, for the variant on public data."""
    family = Histogram(workload.domain) if family is None else family
    rounds = parameters.rounds
    if rounds is None:
        rounds = min(50 if workload.grouping is Grouping.QUERY else 20, workload.groups)
    return Algorithm(
        family=family,
        schedule=EvenSchedule(rounds, alpha=parameters.alpha),
        rule=MaxError(parameters.prior),
        repeat=parameters.repeat,
        update=EntropyProjection(family, parameters.gamma, parameters.t_max),
        output=Last(),
    )
