"""RAKING: proportional fitting of a histogram to the measured queries. A skeleton to copy.

| family | strategy | update | output H |
|---|---|---|---|
| histogram of the domain | select 1 and measure it, even budget | proportional fitting to all measurements | last |

With a_i the measured answer and q_i(D) the estimate of one query, a step multiplies the weights of its records by

    a_i / q_i(D),      both kept above 1/(2n),

and divides all weights by their sum. For a whole marginal this makes D agree with the measurement. Each round
takes such a step for every measurement so far, oldest first, ``passes`` times.

Deming and Stephan, On a Least Squares Adjustment of a Sampled Frequency Table, 1940.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import setting
from pointillist.checks import at_least
from pointillist.families.histogram import Histogram
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Grouping
from pointillist.strategies import Rounds, SelectEvenly

__all__ = ["METHOD", "Settings", "build"]


# 1. The settings: a frozen dataclass. No epsilon, no delta, no rho: the strategy gets rho with the facts of the run.
@dataclass(frozen=True)
class Settings:
    """Settings of RAKING."""

    rounds: int = setting(5, "T, the number of rounds")
    alpha: float = setting(0.5, "weight of selecting against measuring, in (0, 1)")
    passes: int = setting(3, "passes over all measurements in a round")

    def __post_init__(self) -> None:
        at_least("passes", self.passes, 1, 3)


# 2. The update: all it learns about the private table is the log. Its own randomness is ``rng`` and nothing else.
@dataclass(frozen=True)
class Raking:
    """The update; keeps no memory besides the log."""

    family: Histogram
    passes: int

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> Updated:
        floor = 0.5 / log.total
        for measurement in log.measurements * self.passes:
            (answers,) = self.family.sums(params, [measurement.queries])
            factors = np.maximum(measurement.feasible(log.total), floor) / np.maximum(answers, floor)
            self.family.scale(params, measurement.queries, factors)
            params /= params.sum(dtype=np.float64)
        return Updated(params, None, {})


# 3. The method: one choice of each part.
def build(task: Task, settings: Settings) -> Algorithm[np.ndarray]:
    """RAKING as a choice of parts."""
    task.require_disjoint()
    family = Histogram(task.domain)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(task.candidates, MaxError(), Rounds(settings.rounds), alpha=settings.alpha),
        update=Raking(family, settings.passes),
        output=Last(),
    )


# 4. The row of the registry: the parts in words, the groupings and the domains that the method can take.
METHOD = Method(
    name="raking",
    family="histogram over the whole domain",
    strategy="select 1 per round and measure it, even budget",
    update="proportional fitting to all measurements",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=Histogram.fits,
    memory=Histogram.memory,
)
