"""PEP: private entropy projection.

| family | strategy | update | output H |
|---|---|---|---|
| histogram over the whole domain | select 1 per round and measure it, even budget | entropy projections | last |

Of all distributions that agree with the measurements up to gamma, the one of largest entropy is
D(x) ∝ exp(sum_i lambda_i q_i(x)), where lambda minimises the dual loss

    L(lambda) = log sum_x exp(sum_i lambda_i (q_i(x) - a_i)) + gamma ||lambda||_1.

Each step takes the past query i whose answer is the furthest beyond gamma and moves D by the smallest relative entropy
onto the constraint |q_i(D) - a_i| <= gamma: the minimum of L along lambda_i, from lambda_i = 0. With q = q_i(D) and b,
the point of [a - gamma, a + gamma] nearest to q, it multiplies the weight of the records that satisfy q_i by

    exp(-lambda) = b (1 - q) / ((1 - b) q),       a, q kept inside [1e-6, 1 - 1e-6],

and for a whole marginal the weight of each cell c by b_c / q_c (iterative proportional fitting for gamma = 0), where

    b_c = the point of [a_c - gamma, a_c + gamma] nearest to k q_c,        k such that the b_c sum to 1.

gamma is the share ``slack`` of sigma sqrt(2 ln m), about the largest of the noises of m cells (at least 2): D need not
follow what is noise. With gamma = 0 such projections lead to the distribution of largest entropy. With a tolerance they
end at one that meets the constraints, but not at that of largest entropy: lambda_i stays where it is when a later
constraint makes it unnecessary. A round makes at most min(T_max, 2 t) projections, from the current distribution on,
and stops when every past error is at most gamma. A group whose projection leaves nine tenths of its error (where no
record that satisfies it has weight, as can happen on public records) is skipped for the rest of the round.
After a step on a single query only the past answers that share records with it are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least, not_negative
from pointillist.families.histogram import Histogram, Weights, normalise
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Grouping
from pointillist.queries.measurement import Measurement
from pointillist.reporting import Tally
from pointillist.strategies import Rounds, SelectEvenly

__all__ = ["METHOD", "EntropyProjection", "Settings", "build"]

EDGE = 1e-6
CLOSE = 1e-9
"""An error beyond the tolerance by less than this is rounding."""
PROGRESS = 0.9
"""A projection that leaves more than this share of the error beyond the tolerance changed nothing that matters."""
MOST_MASS = 1e6
"""Measurements that contradict each other may blow the weights up: beyond this, or below its inverse, they are made to
sum to 1 within a round, too."""
HALVINGS = 60
"""Of the interval that holds log k."""

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 20, 3, 250.0
"""By marginal T = n sqrt(rho) / 250, between these bounds: with much budget and many attributes there is more to learn.
Fixed on 15 columns of acs-oh."""

SLACK = {Grouping.MARGINAL: 0.3, Grouping.QUERY: 0.0}
"""By marginal most cells are small, and a projection onto the measurement itself makes noise of them. By query it makes
little difference. Fixed on adult-reduced and on 15 columns of acs-oh, at epsilon 0.1, 0.25 and 1."""


@dataclass(frozen=True)
class Settings:
    """Settings of PEP."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default 50 by query, n sqrt(rho) / 250 by marginal, at least 20 and at most 3 d, "
        "or the number of groups",
        most=MOST_ROUNDS,
    )
    alpha: float = setting(0.5, "weight of selecting against measuring, in (0, 1)")
    slack: float | None = setting(
        None,
        "gamma, the error up to which a measurement counts as met, as a share of about the largest noise of its cells; "
        "by default 0 by query, 0.3 by marginal",
    )
    t_max: int = setting(25, "T_max, the largest number of projections in a round")
    repeat: bool = setting(False, "let a group be selected again")
    prior: bool = setting(True, "by query: prefer queries with a large estimate (the paper: false)")

    def __post_init__(self) -> None:
        if self.slack is not None:
            not_negative("slack", self.slack, "give 0, as the paper does")
        at_least("t_max", self.t_max, 1, 25)


@dataclass(frozen=True)
class EntropyProjection:
    """The update; keeps no memory besides the log."""

    family: Weights
    slack: float
    t_max: int

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> Updated:
        asked = [m.queries for m in log.measurements]
        targets = [self.target(m, log.total) for m in log.measurements]
        gammas = [self.slack * largest_noise(m) / log.total for m in log.measurements]
        sums = self.family.sums(params, asked)
        mass = float(params.sum(dtype=np.float64))

        def beyond(i: int) -> float:
            return float(np.abs(targets[i] - sums[i] / mass).max() - gammas[i])

        steps, most = 0, min(self.t_max, 2 * len(log.rounds))
        stuck: set[int] = set()
        tally = Tally(most)
        for _ in range(most):
            errors = [0.0 if i in stuck else beyond(i) for i in range(len(asked))]
            worst = int(np.argmax(errors))
            if errors[worst] <= CLOSE:
                break
            factors = self.factors(targets[worst], sums[worst] / mass, gammas[worst])
            mass = self.family.rescale(params, asked, worst, factors, sums, mass)
            if not 1 / MOST_MASS < mass < MOST_MASS:
                normalise(params)
                sums[:], mass = self.family.sums(params, asked), 1.0
            if beyond(worst) > max(PROGRESS * errors[worst], EDGE):
                stuck.add(worst)
            steps += 1
            tally.made(steps, error=errors[worst])
        tally.end(steps)
        normalise(params)
        return Updated(params, None, {"projections": float(steps)})

    def target(self, measurement: Measurement, total: int) -> np.ndarray:
        """A measurement as a point inside the simplex: what a projection can reach."""
        inside: np.ndarray = np.clip(measurement.feasible(total), EDGE, 1 - EDGE)
        return inside / inside.sum() if measurement.queries.partition else inside

    def factors(self, a: np.ndarray, q: np.ndarray, gamma: float) -> np.ndarray:
        """exp(-lambda) for a single query, b_c / q_c for the cells of a marginal."""
        q = np.clip(q, EDGE, 1 - EDGE)
        low, high = np.maximum(a - gamma, np.minimum(a, EDGE)), np.minimum(a + gamma, 1 - EDGE)
        if len(a) == 1:
            b = np.clip(q, low, high)
            single: np.ndarray = b * (1 - q) / ((1 - b) * q)
            return single
        # The sum of the b_c grows with k: at the least ratio low / q it is at most 1, at the largest high / q at least.
        least, most = np.log((low / q).min()), np.log((high / q).max())
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            least, most = (least, middle) if np.clip(np.exp(middle) * q, low, high).sum() > 1 else (middle, most)
        cells: np.ndarray = np.clip(np.exp(most) * q, low, high) / q
        return cells


def largest_noise(measurement: Measurement) -> float:
    """About the largest of the noises of m cells: sigma sqrt(2 ln m), with at least two cells."""
    return measurement.sigma * math.sqrt(2 * math.log(max(2, len(measurement.counts))))


def build(
    task: Task,
    settings: Settings,
    family: Weights | None = None,
    rounds: Rounds | None = None,
    slacks: Mapping[Grouping, float] = SLACK,
) -> Algorithm[np.ndarray]:
    """PEP as a choice of parts; with other weights, rounds and tolerances, for the variant on public data."""
    task.require_disjoint()
    family = Histogram(task.domain) if family is None else family
    slack = slacks[task.grouping] if settings.slack is None else settings.slack
    candidates = task.candidates
    if rounds is None:
        least = 50 if task.by_query else LEAST_ROUNDS
        most = least if task.by_query else ROUNDS_PER_ATTRIBUTE * len(task.domain)
        rounds = Rounds.of(settings.rounds, least, most, len(candidates), UNIT)
    rule = MaxError(base_measure=settings.prior and task.by_query)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(candidates, rule, rounds, alpha=settings.alpha, repeat=settings.repeat),
        update=EntropyProjection(family, slack, settings.t_max),
        output=Last(),
    )


METHOD = Method(
    name="pep",
    family="histogram over the whole domain",
    strategy="select 1 per round and measure it, even budget",
    update="entropy projection onto the worst past constraint, repeated",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=Histogram.fits,
    memory=Histogram.memory,
)
