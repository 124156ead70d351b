"""RAKING: proportional fitting of a histogram to the measured groups. A skeleton to copy.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| histogram over the whole domain | 1 per round, even budget | yes | proportional fitting to all measurements | last |

With a_i the measured answer and q_i(D) the estimate of one cell, a step multiplies the weights of that cell by

    a_i / q_i(D),      both kept above 1/(2n),

and divides all weights by their sum. For a whole marginal this makes D agree with the measurement. Each round
takes such a step for every measurement so far, oldest first, ``passes`` times.

Deming and Stephan, On a Least Squares Adjustment of a Sampled Frequency Table, 1940.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.histogram import Histogram
from pointillist.framework import Algorithm, Last, Log
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Workload

__all__ = ["Parameters", "build"]


# 1. The hyper-parameters: a frozen dataclass. No epsilon, no delta, no rho: the schedule and the curator have those.
@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of RAKING."""

    rounds: int = parameter(5, "T, the number of rounds")
    alpha: float = parameter(0.5, "weight of selecting against measuring, in (0, 1)")
    passes: int = parameter(3, "passes over all measurements in a round")

    def __post_init__(self) -> None:
        check(self.passes >= 1, "passes", self.passes, "must be at least 1", "give for example 3")


# 2. The update: all it learns of the private table is the log. Its own randomness is ``rng`` and nothing else.
@dataclass(frozen=True)
class Raking:
    """The update; keeps no memory besides the log."""

    family: Histogram
    passes: int

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> tuple[np.ndarray, None]:
        family, workload, floor = self.family, log.workload, 0.5 / log.total
        for measurement in log.measurements * self.passes:
            (answers,) = family.group_sums(params, workload, [measurement.group])
            factors = np.maximum(log.feasible(measurement), floor) / np.maximum(answers, floor)
            family.scale_group(params, workload, measurement.group, factors)
            params /= params.sum(dtype=np.float64)
        return params, None


# 3. The method: one choice of each part.
def build(workload: Workload, parameters: Parameters) -> Algorithm[np.ndarray]:
    """RAKING as a choice of parts."""
    family = Histogram(workload.domain)
    return Algorithm(
        family=family,
        schedule=EvenSchedule(parameters.rounds, alpha=parameters.alpha),
        rule=MaxError(),
        repeat=False,
        update=Raking(family, parameters.passes),
        output=Last(),
    )
