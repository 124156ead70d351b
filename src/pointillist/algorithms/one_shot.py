"""One-shot: measure every group once, then fit relaxed rows to all of it.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| relaxed rows, softmax per attribute | none: all groups in one round | yes | gradient descent, squared error | last |

Nothing is selected, so no budget goes into selecting: each of the m groups is measured with rho / m. The rows
minimise the mean squared residual in units of the noise by Adam with a cosine schedule,

    L(M) = mean over all m cells c of (q_c(sigma(M)) - a_c)^2 / sigma_c^2,

and stop where the residual looks like noise: at 1 - 2 sqrt(2 / m), two standard deviations below the mean that pure
noise would have. Beyond that the rows follow the noise, above all at small epsilon.

A strong and simple baseline: the fit averages the noise of many cells, and rows cannot follow noise that no table
could have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.relaxed import Params, Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Last
from pointillist.privacy.schedule import OneShotSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Descent, Settings

__all__ = ["Parameters", "build"]


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of one-shot."""

    rows: int = parameter(200, "rows of the relaxed table")
    t_max: int = parameter(1000, "most steps of Adam")
    learning_rate: float = parameter(0.1, "step of Adam at the start; falls to 0 by a cosine")
    slack: float = parameter(2.0, "stop so many standard deviations below the residual of pure noise; inf: never")
    spread: float = parameter(0.5, "half width of the uniform logits at the start")

    def __post_init__(self) -> None:
        check(self.slack >= 0, "slack", self.slack, "must not be negative", "give 2, or inf to take all steps")


def build(workload: Workload, parameters: Parameters) -> Algorithm[Params]:
    """One-shot as a choice of parts."""
    family = Relaxed(SoftmaxRows(workload.domain, parameters.rows, parameters.spread))
    settings = Settings(
        steps=parameters.t_max,
        learning_rate=parameters.learning_rate,
        cosine=True,
        tolerance=max(0.0, 1 - parameters.slack * np.sqrt(2 / workload.queries)),
    )
    return Algorithm(
        family=family,
        schedule=OneShotSchedule(workload.groups),
        rule=MaxError(),
        repeat=False,
        update=Descent(family, workload, settings),
        output=Last(),
    )
