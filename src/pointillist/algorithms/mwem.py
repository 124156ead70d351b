"""MWEM: multiplicative weights with the exponential mechanism.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| histogram over the whole domain | 1 per round, even budget | yes | multiplicative weights | last or average |

The loss is the entropy-regularised linear one; its minimiser is the exponentially weighted distribution

    D_t(x) ∝ D_{t-1}(x) exp(eta q_t(x) (a_t - q_t(D_{t-1}))),

so a cell gains weight when the measurement a_t exceeds the estimate (the sign in the paper's appendix is a slip;
its authors' code has eta = 1/2).
For a whole marginal, q_t(x) (a_t - q_t(D)) is the error of the cell that x falls into. With ``past``, each round
then applies every earlier measurement again whose error is at least half of the new one's, in random order.

Hardt, Ligett and McSherry, A Simple and Practical Algorithm for Differentially Private Data Release, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check, nearest
from pointillist.families.histogram import Histogram, Weights, normalise
from pointillist.framework import Algorithm, Average, Last, Log, Measurement
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Grouping, Workload

__all__ = ["Parameters", "build"]


STEEPEST = 20.0
"""No step multiplies a weight by more than exp(20), however large eta is."""

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 50, 7, 125.0
"""By marginal T = n sqrt(rho) / 125, between these bounds: with much budget and many attributes there is more to learn.
Fixed on 15 columns of acs-oh."""


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of MWEM."""

    rounds: int | None = parameter(
        None,
        "T, the number of rounds; by default 150 by query, n sqrt(rho) / 125 by marginal, at least 50 and at most 7 d, "
        "or the number of groups",
    )
    alpha: float = parameter(0.5, "weight of selecting against measuring, in (0, 1)")
    past: bool = parameter(True, "apply past measurements again")
    repeat: bool = parameter(False, "let a group be selected again")
    prior: bool = parameter(True, "by query: prefer queries with a large estimate (the paper: false)")
    eta: float | None = parameter(None, "step of the multiplicative update; by default 0.5 by query, 2 by marginal")
    output: str = parameter("last", "'last' iterate or 'average' of all")

    def __post_init__(self) -> None:
        known = ("last", "average")
        check(
            self.output in known,
            "output",
            self.output,
            f"must be one of {known}",
            nearest(self.output, known),
        )
        good = self.eta is None or 0 < self.eta < np.inf
        check(good, "eta", self.eta, "must be a finite number above 0", "give for example 0.5")


@dataclass(frozen=True)
class MultiplicativeWeights:
    """The update; keeps no memory besides the log."""

    family: Weights
    eta: float
    past: bool

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> tuple[np.ndarray, None]:
        family, workload = self.family, log.workload
        *earlier, newest = log.measurements
        mass = float(params.sum(dtype=np.float64))
        again: list[Measurement] = []
        if self.past and earlier:
            sums = family.group_sums(params, workload, [m.group for m in (*earlier, newest)])
            errors = [np.abs(log.fractions(m) - s / mass).max() for m, s in zip((*earlier, newest), sums, strict=True)]
            again = [m for m, error in zip(earlier, errors, strict=False) if error >= errors[-1] / 2]
        for measurement in (newest, *(again[i] for i in rng.permutation(len(again)))):
            (cells,) = family.group_sums(params, workload, [measurement.group])
            errors_now = log.fractions(measurement) - cells / mass
            factors = np.exp(np.clip(self.eta * errors_now, -STEEPEST, STEEPEST))
            family.scale_group(params, workload, measurement.group, factors)
            mass += float(cells @ (factors - 1))
        normalise(params)
        return params, None


def build(
    workload: Workload, parameters: Parameters, family: Weights | None = None, schedule: EvenSchedule | None = None
) -> Algorithm[np.ndarray]:
    """MWEM as a choice of parts; with other weights and another schedule, for the variant on public data."""
    family = Histogram(workload.domain) if family is None else family
    by_query = workload.grouping is Grouping.QUERY
    eta = parameters.eta
    least = 150 if by_query else LEAST_ROUNDS
    most = least if by_query else ROUNDS_PER_ATTRIBUTE * len(workload.domain)
    if eta is None:  # the errors of a whole marginal are spread over its cells, so they are smaller
        eta = 0.5 if by_query else 2.0
    return Algorithm(
        family=family,
        schedule=schedule
        or EvenSchedule.of(parameters.rounds, least, most, workload.groups, UNIT, alpha=parameters.alpha),
        rule=MaxError(parameters.prior),
        repeat=parameters.repeat,
        update=MultiplicativeWeights(family, eta, parameters.past),
        output=Last() if parameters.output == "last" else Average(),
    )
