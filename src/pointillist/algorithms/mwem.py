"""MWEM: multiplicative weights with the exponential mechanism.

| family | strategy | update | output H |
|---|---|---|---|
| histogram of the domain | select 1 and measure it, even budget | multiplicative weights | last or average |

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

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import one_of, positive
from pointillist.data.neighbours import Relation
from pointillist.families.histogram import Histogram, Weights, normalise
from pointillist.framework import Algorithm, Average, Last, Log, Updated
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Grouping
from pointillist.queries.measurement import Measurement
from pointillist.reporting import Tally
from pointillist.strategies import Rounds, SelectEvenly

__all__ = ["METHOD", "MultiplicativeWeights", "Settings", "build"]


STEEPEST = 20.0
"""No step multiplies a weight by more than exp(20), however large eta is."""

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 50, 7, 125.0
"""By marginal T = n sqrt(rho) / 125, between these bounds: with much budget and many attributes there is more to learn.
Fixed on 15 columns of acs-oh."""


@dataclass(frozen=True)
class Settings:
    """Settings of MWEM."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default 150 by query, n sqrt(rho) / 125 by marginal, at least 50 and at most 7 d, "
        "or the number of groups",
        most=MOST_ROUNDS,
    )
    alpha: float = setting(0.5, "weight of selecting against measuring, in (0, 1)")
    past: bool = setting(True, "apply past measurements again")
    repeat: bool = setting(False, "let a group be selected again")
    prior: bool = setting(True, "by query: prefer queries with a large estimate (the paper: false)")
    eta: float | None = setting(None, "step of the multiplicative update; by default 0.5 by query, 2 by marginal")
    output: str = setting("last", "'last' iterate or 'average' of all")

    def __post_init__(self) -> None:
        one_of("output", self.output, ("last", "average"))
        if self.eta is not None:
            positive("eta", self.eta, 0.5)


@dataclass(frozen=True)
class MultiplicativeWeights:
    """The update; keeps no memory besides the log."""

    family: Weights
    eta: float
    past: bool

    def init(self, params: np.ndarray) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: None, log: Log) -> Updated:
        family = self.family
        *earlier, newest = log.measurements
        mass = float(params.sum(dtype=np.float64))
        again: list[Measurement] = []
        if self.past and earlier:
            every = (*earlier, newest)
            sums = family.sums(params, [m.queries for m in every])
            errors = [np.abs(m.fractions(log.total) - s / mass).max() for m, s in zip(every, sums, strict=True)]
            again = [m for m, error in zip(earlier, errors, strict=False) if error >= errors[-1] / 2]
        tally = Tally(1 + len(again))
        for taken, measurement in enumerate((newest, *(again[i] for i in rng.permutation(len(again)))), start=1):
            mass = self.step(params, mass, measurement, log.total)
            tally.made(taken)
        tally.end(1 + len(again))
        normalise(params)
        return Updated(params, None, {})

    def step(self, params: np.ndarray, mass: float, measurement: Measurement, total: int) -> float:
        """One multiplicative step on a measurement, in place; returns the new sum of the weights.

        Where a record satisfies several of the queries, up to m of them, the step of each is eta / m.
        """
        queries = measurement.queries
        (cells,) = self.family.sums(params, [queries])
        overlap = max(1, queries.sensitivity(Relation.ADD_REMOVE).l1)
        errors = measurement.fractions(total) - cells / mass
        factors = np.exp(np.clip(self.eta * errors, -STEEPEST, STEEPEST) / overlap)
        self.family.scale(params, queries, factors)
        return mass + float(cells @ (factors - 1)) if overlap == 1 else float(params.sum(dtype=np.float64))


def build(
    task: Task, settings: Settings, family: Weights | None = None, rounds: Rounds | None = None
) -> Algorithm[np.ndarray]:
    """MWEM as a choice of parts; with other weights and rounds, for the variant on public data."""
    family = Histogram(task.domain) if family is None else family
    candidates, eta = task.candidates, settings.eta
    if rounds is None:
        least = 150 if task.by_query else LEAST_ROUNDS
        most = least if task.by_query else ROUNDS_PER_ATTRIBUTE * len(task.domain)
        rounds = Rounds.of(settings.rounds, least, most, len(candidates), UNIT)
    if eta is None:  # the errors of a whole marginal are spread over its cells, so they are smaller
        eta = 0.5 if task.by_query else 2.0
    rule = MaxError(base_measure=settings.prior and task.by_query)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(candidates, rule, rounds, alpha=settings.alpha, repeat=settings.repeat),
        update=MultiplicativeWeights(family, eta, settings.past),
        output=Last() if settings.output == "last" else Average(),
    )


METHOD = Method(
    name="mwem",
    family="histogram over the whole domain",
    strategy="select 1 per round and measure it, even budget",
    update="multiplicative weights, past measurements re-used (option: not)",
    output="last (option: average)",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=Histogram.fits,
    memory=Histogram.memory,
)
