"""HDMM: the best strategy for a workload of marginals, chosen without the data, and least squares.

| family | strategy | update | output H |
|---|---|---|---|
| parts of tables, or a model | measure weighted residuals once, select nothing | least squares, or a fit to it | last |

The high-dimensional matrix mechanism measures other queries than those that are wanted, with the noise that makes the
sum of all variances smallest, and answers by least squares. For marginals the best strategy is known in closed form:
residuals of all subsets of the workload's scopes, each with its own weight
(:mod:`pointillist.algorithms.residual_plan`). No other noise that does not depend on the data can do better in the
root-mean-square error of the unprojected answers.

``answers`` says what is made of it:

- ``raw``: the least-squares answers as they come. They are unbiased, and many are below 0.
- ``projected``: relaxed rows that are fitted to the least-squares marginals in units of their noise, on domains of any
  size. As in one-shot, the descent ends where the residual looks like noise.
- ``graphical``: HDMM+PGM, the graphical model whose parts are nearest to the measured ones, in units of their noise. It
  is refused where the junction tree of the workload is too large, as it is for all pairs or triples of many columns.

The last two are non-negative and consistent.

Differences from the papers: the weights are rounded to whole numbers, since noise is added to integers. Under replace
they are the best for that relation. 2018's HDMM searches weights of whole marginals, which come within 9 % of the
optimum for the three-way marginals of ADULT.

McKenna, Miklau, Hay and Machanavajjhala, Optimizing error of high-dimensional statistical queries under differential
privacy, 2018. McKenna, Sheldon and Miklau, Graphical-model based estimation and inference for differential privacy,
2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.residual_plan import Plan, plan_of
from pointillist.algorithms.settings import setting
from pointillist.checks import check, one_of, positive
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import InputError, Shown
from pointillist.families.components import Components
from pointillist.families.junction import tree_cells
from pointillist.families.markov import Markov
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Last, Log, Measure, Step
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.queries.candidates import Grouping
from pointillist.strategies import noise_of
from pointillist.updates.descent import Descent, Recipe
from pointillist.updates.fitting import fitting
from pointillist.updates.least_squares import LeastSquares, OnMarginals, OnParts
from pointillist.updates.losses import Adam, SquaredError

__all__ = ["METHOD", "MeasureResiduals", "Settings", "build"]

CELLS_PER_MEGABYTE = 2**20 // 8
ANSWERS = ("projected", "raw", "graphical")
LEARNING_RATE, SPREAD = 0.3, 0.5


@dataclass(frozen=True)
class Settings:
    """Settings of HDMM."""

    answers: str = setting(
        "projected",
        "'projected' onto relaxed rows, 'raw' least squares, or 'graphical' (HDMM+PGM; refused where too large)",
    )
    model_size: float = setting(80.0, "graphical: largest junction tree, in megabytes of 64-bit numbers")
    t_max: int = setting(2000, "most steps of a fit")
    tolerance: float = setting(0.001, "graphical: a fit ends where 20 steps lower the loss by less than this per cell")
    rows: int = setting(200, "rows of the relaxed table")
    slack: float = setting(
        2.0, "projected: stop this number of standard deviations below the residual of noise; inf: never"
    )

    def __post_init__(self) -> None:
        one_of("answers", self.answers, ANSWERS)
        positive("model_size", self.model_size, 80)
        check(self.slack >= 0, "slack", self.slack, "must not be negative", "give 2, or inf to take all steps")


@dataclass(frozen=True)
class MeasureResiduals:
    """One round that measures the best residuals for some marginals, with all of the budget.

    Attributes:
        domain: the attributes and their sizes.
        scopes: the attributes of each marginal.
    """

    domain: Domain = field(repr=False)
    scopes: tuple[Attributes, ...] = field(repr=False)

    def plan(self, relation: Relation) -> Plan:
        """What is measured."""
        plan = plan_of(self.domain.sizes, self.scopes, relation)
        if plan is None:
            rule = "must have a column with two values or more"
            raise InputError("workload", Shown("constant columns"), rule, "use other columns")
        return plan

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        plan = self.plan(facts.relation)
        noise = noise_of((Ask(plan.queries, facts.rho),), facts)
        in_rows = noise[0] / plan.unit, noise[1] / plan.unit
        return (Phase(1, len(plan.queries.parts), False, noise, in_rows=in_rows),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        return Measure((Ask(self.plan(facts.relation).queries, facts.rho),)) if t == 0 else None


def build(task: Task, settings: Settings) -> Algorithm[Any]:
    """HDMM as a choice of parts."""
    task.require_marginals()
    strategy = MeasureResiduals(task.domain, task.workload.scopes)
    strategy.plan(Relation.ADD_REMOVE)  # refuses what cannot be planned
    family, update = FORMS[settings.answers](task, settings)
    return Algorithm(family, strategy, update, Last())


def _raw(task: Task, settings: Settings) -> tuple[Any, Any]:
    cells = sum(one.size for one in task.workload.queries)
    family = Components(task.domain, cells)
    return family, LeastSquares(family)


def _projected(task: Task, settings: Settings) -> tuple[Any, Any]:
    family = Relaxed(SoftmaxRows(task.domain, settings.rows, SPREAD))
    tolerance = max(0.0, 1 - settings.slack * np.sqrt(2 / task.workload.size))
    recipe = Recipe(Adam(settings.t_max, LEARNING_RATE, cosine=True), SquaredError(tolerance))
    return family, OnMarginals(Descent(family, task.candidates, recipe), task.domain, task.workload.queries)


def _graphical(task: Task, settings: Settings) -> tuple[Any, Any]:
    most = int(settings.model_size * CELLS_PER_MEGABYTE)
    cells = tree_cells(task.domain.sizes, task.workload.scopes)
    rule = f"must be 'projected' or 'raw' where the junction tree has more than {most:,} cells (it has {cells:,})"
    check(cells <= most, "answers", settings.answers, rule, "use one of these, or fewer marginals")
    family = Markov(task.domain, most)
    return family, OnParts(fitting(family, "numpy", settings.t_max, settings.tolerance), task.domain)


FORMS = {"projected": _projected, "raw": _raw, "graphical": _graphical}
"""The family and the update for each form of the answers."""


METHOD = Method(
    name="hdmm",
    family="relaxed rows, softmax per attribute (options: graphical models, tables with negative counts)",
    strategy="measure residuals once, with the best weights; select nothing",
    update="least squares, then gradient descent, squared error (options: mirror descent, nothing)",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Relaxed.fits,
    memory=Relaxed.memory,
)
