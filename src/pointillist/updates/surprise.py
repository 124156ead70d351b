"""Leave a model as it is unless a measurement contradicts it.

A model that starts close to the truth explains most measurements up to their noise. A step of descent on such a
measurement moves the model towards the noise, and Adam's first step has the same length however small the gradient is.
So a round changes the model only if one of its m measured cells, or all of them together, are off by more than noise:

    (1/m) sum_c (a_c - q_c(D))^2 / sigma^2  >  1 + k sqrt(2 / m),

k standard deviations above the mean that pure noise has. For a single query and k = 2 that is an error of two sigma.
The measurement is kept, and counts in the rounds that do change the model. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.framework import Log, Round, Update, Updated

__all__ = ["IfSurprised", "surprise_of"]


def surprise_of(entry: Round, total: int) -> float:
    """By how many standard deviations the worst measurement of a round is above what pure noise would be.

    Args:
        entry: a round that selected, so that it has the model's answers from before it measured.
        total: the number of rows.
    """
    found = []
    for measured, estimate in zip(entry.measurements, entry.estimates, strict=True):
        residual = (measured.counts - total * estimate) / measured.sigma
        found.append((float(np.mean(residual**2)) - 1) / math.sqrt(2 / len(residual)))
    return max(found)


@dataclass(frozen=True)
class IfSurprised:
    """The update, made only in rounds that contradict the model.

    Attributes:
        inner: the update.
        level: k.
    """

    inner: Update[Any]
    level: float

    def init(self, params: Any) -> Any:
        return self.inner.init(params)

    def __call__(self, rng: np.random.Generator, params: Any, memory: Any, log: Log) -> Updated:
        surprise = surprise_of(log.rounds[-1], log.total)
        if surprise <= self.level:
            return Updated(params, memory, {"surprise": surprise, "changed": 0.0})
        changed = self.inner(rng, params, memory, log)
        return changed._replace(info=changed.info | {"surprise": surprise, "changed": 1.0})
