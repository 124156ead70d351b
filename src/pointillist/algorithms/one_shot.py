"""One-shot: measure every marginal once, then fit relaxed rows to all of them.

| family | strategy | update | output H |
|---|---|---|---|
| relaxed rows, softmax per attribute | measure all once, select nothing | descent, squared error | last |

Nothing is selected, so no budget goes into selecting: each of the m marginals is measured with rho / m. The rows
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

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import setting
from pointillist.checks import check
from pointillist.families.relaxed import Params, Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Last
from pointillist.queries.candidates import Grouping
from pointillist.strategies import MeasureAll
from pointillist.updates.descent import Descent, Recipe
from pointillist.updates.losses import Adam, SquaredError

__all__ = ["METHOD", "Settings", "build"]


@dataclass(frozen=True)
class Settings:
    """Settings of one-shot."""

    rows: int = setting(200, "rows of the relaxed table")
    t_max: int = setting(1000, "most steps of Adam")
    learning_rate: float = setting(0.1, "step of Adam at the start; falls to 0 by a cosine")
    slack: float = setting(2.0, "stop this number of standard deviations below the residual of pure noise; inf: never")
    spread: float = setting(0.5, "half width of the uniform logits at the start")

    def __post_init__(self) -> None:
        check(self.slack >= 0, "slack", self.slack, "must not be negative", "give 2, or inf to take all steps")


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """One-shot as a choice of parts."""
    family = Relaxed(SoftmaxRows(task.domain, settings.rows, settings.spread))
    tolerance = max(0.0, 1 - settings.slack * np.sqrt(2 / task.workload.size))
    recipe = Recipe(Adam(settings.t_max, settings.learning_rate, cosine=True), SquaredError(tolerance))
    return Algorithm(
        family=family,
        strategy=MeasureAll(task.workload.queries),
        update=Descent(family, task.candidates, recipe),
        output=Last(),
    )


METHOD = Method(
    name="one-shot",
    family="relaxed rows, softmax per attribute",
    strategy="measure all marginals once; select nothing",
    update="gradient descent, squared error",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Relaxed.fits,
    memory=Relaxed.memory,
)
