"""Auto: the default. Measure what matters for the workload; fit rows that follow the data and not the noise.

| family | strategy | update | output H |
|---|---|---|---|
| relaxed rows, softmax per attribute | measure one-ways, ties, blocks, residuals by forecast | shrunken fit | last |

*What is measured* is decided in three rounds (:mod:`pointillist.algorithms.by_ties`): the one-way marginals, then for
every pair of attributes one number that says how far it is from independent, then residuals of marginals of all orders
up to the wanted one, which say what these attributes tell beyond fewer of them, with weights that make a forecast of
the error smallest (:mod:`pointillist.algorithms.forecast`). Before the residuals, pairs of ordered columns that a run
has merged are measured in a few blocks. Each round follows from public facts and from the noisy values of the rounds
before. Nothing is selected by an exponential mechanism, so the budget buys Gaussian noise only, which has a tighter
account (:mod:`pointillist.privacy.gaussian`).

*Measured once*, by public facts alone: where a budget is too small for the ties, for products, for workloads with
weights, and without ``ties``. Every marginal of the workload is measured with an equal share, unless its noise would
hide it: the noise of a marginal with c cells has the squared length c sigma^2 (as fractions), that of any distribution
is at most 1. So a marginal with c sigma^2 > 1.2 is replaced by its sub-marginals with one attribute less, which have
fewer cells and are shared by many; and so on down. Other queries are treated alike: the answers of any distribution to
m queries of which a record satisfies at most v have at most the squared length v. Products are measured in the form
that has the least noise (:mod:`pointillist.algorithms.measured`). A member with the weight w gets a share that is
proportional to w^(2/3), which makes the weighted sum of the noises smallest.

*Queries that are no products*, halfspaces and predicates, get half of the budget, once. The other half is for the pairs
of all attributes that they look at, and for the marginals of the workload, by ties: the answers to halfspaces depend on
these most of all. If halfspaces alone are wanted, pairs of ordered attributes are measured in blocks of neighbouring
values (:mod:`pointillist.algorithms.in_blocks`). Only as many halfspaces are measured as leave each a small noise, at
equal distances in their list; if these are too few to matter, none is, and the pairs get everything.

*The fit* is :mod:`pointillist.updates.shrinkage`: chi-square with the known noise, and a penalty on what ties
attributes together, of a strength that follows from the noise and from how it splits. A public table, if there is one,
joins in as further measurements, as precise as the paid ones show it to be.

*Adaptive rounds*, as AIM has them, exist for comparison and are off: on all tables that were tried, what they find does
not make up for the budget that they take from the first measurement. They follow what is measured once, without ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pointillist.algorithms.method import Method, Public, Task
from pointillist.algorithms.once import rounds_of, strategy_for
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least, check, not_negative
from pointillist.data.domain import Domain
from pointillist.families.relaxed import Params, Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Last
from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import UsefulError
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping, Whole
from pointillist.queries.workload import Workload
from pointillist.strategies import Rounds, SelectEvenly, Then
from pointillist.updates.descent import Recipe
from pointillist.updates.losses import Adam, SquaredError, TiePenalty
from pointillist.updates.shrinkage import ShrunkenFit

__all__ = ["METHOD", "Settings", "build"]

FIRST_SHARE, ALPHA = 0.7, 0.25
"""With adaptive rounds: the share of rho of the first measurement, and the split of what the later ones have: a tenth
for selecting."""

RAMP = 0.4
"""The penalty rises over this share of the steps: strong dependencies form before it sets in, and outlast it."""


@dataclass(frozen=True)
class Settings:
    """Settings of auto. None needs to be set."""

    rows: int = setting(200, "rows of the relaxed table of one fit")
    fits: int = setting(3, "fits from different starts; the model is their mixture", most=1000)
    t_max: int = setting(600, "steps of Adam; a third of them where short descents are enough")
    learning_rate: float = setting(0.3, "step of Adam at the start; falls to 0 by a cosine")
    spread: float = setting(0.5, "half width of the uniform logits at the start, around the one-way marginals")
    ties: bool = setting(True, "measure first how strongly attributes are tied, and spend by it")
    most_noise: float = setting(1.2, "a marginal whose noise has a larger squared length is replaced by smaller ones")
    strength: float | None = setting(None, "s, strength of the shrinkage; by default chosen by splitting the noise")
    adaptive_rounds: int = setting(
        0, "later rounds that each select one more marginal, by AIM's score", most=MOST_ROUNDS
    )

    def __post_init__(self) -> None:
        at_least("fits", self.fits, 1, 3)
        check(self.most_noise > 0, "most_noise", self.most_noise, "must be above 0", "give 1.2")
        at_least("adaptive_rounds", self.adaptive_rounds, 0)
        if self.strength is not None:
            not_negative("strength", self.strength, "give 1, or auto")


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """Auto as a choice of parts."""
    workload, public = task.workload, task.public
    if public is not None:
        public.require_covered(workload.scopes)
    strategy, measurable = strategy_for(workload, settings, task.lines)
    rounds: Callable[[Facts], int] | None = None
    if not settings.adaptive_rounds:
        rounds = rounds_of(strategy)
    if settings.adaptive_rounds:
        rule = useful_error(workload, measurable)
        later = Rounds(settings.adaptive_rounds)
        adaptive = SelectEvenly(Whole(measurable), rule, later, alpha=ALPHA, repeat=True)
        strategy = Then(FIRST_SHARE, strategy, adaptive)
    every = _rows(task.domain, settings.rows * settings.fits, settings)
    adam = Adam(settings.t_max, settings.learning_rate, cosine=True)
    recipe = Recipe(adam, SquaredError(), penalty=TiePenalty(RAMP), tuned=False)
    return Algorithm(
        family=every,
        strategy=strategy,
        update=ShrunkenFit(
            family=_rows(task.domain, settings.rows, settings),
            together=every,
            fits=settings.fits,
            wanted=workload.queries,
            measurable=measurable,
            recipe=recipe,
            strength=settings.strength,
            public=public,
            whole=settings.adaptive_rounds > 0,
            rounds=rounds,
            lines=task.lines,
            places=task.places,
        ),
        output=Last(),
    )


def _rows(domain: Domain, rows: int, settings: Settings) -> Relaxed:
    return Relaxed(SoftmaxRows(domain, rows, settings.spread))


def useful_error(workload: Workload, measurable: tuple[Queries, ...]) -> UsefulError:
    """AIM's score over the closure: a marginal weighs as many attributes as it shares with the workload's, in all.

    Noise is judged as under replace: sigma = sqrt(2 / 2 rho_m), for a scale of 2 max(w) / sqrt(2 rho_s).
    """
    found = [set(scope) for scope in workload.scopes]
    weights = tuple(sum(len(other & set(queries.scope)) for other in found) for queries in measurable)
    return UsefulError(weights, ALPHA / (1 - ALPHA) / (math.sqrt(2) * max(weights)))


METHOD = Method(
    name="auto",
    family="relaxed rows, softmax per attribute",
    strategy="measure one-ways, ties, blocks, residuals by forecast; select nothing",
    update="gradient descent, squared error with shrinkage by the known noise",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Relaxed.fits,
    memory=Relaxed.memory,
    public=Public.OPTIONAL,
    weighted=True,
)
