"""RAP: relaxed adaptive projection, with clipped rows.

| family | strategy | update | output H |
|---|---|---|---|
| relaxed rows, clipped to [-1, 1] | select K and measure them, even budget | descent, squared error | last |

The synthetic table is a matrix M of n' rows in the one-hot space, each entry clipped to [-1, 1]; a query is the
product of its columns, averaged over the rows. Each round minimises

    L(M) = sum_i (q_i(M) - a_i)^2

over all measurements so far by Adam, until the loss stops falling (by marginal: the mean over the measured cells, in
noise variances, until it is 1). Nothing links the columns of an attribute, so what is not measured stays wrong:
RAP-softmax, the same with a softmax per attribute, is far better.

Aydore et al., Differentially Private Query Release Through Adaptive Projection, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least
from pointillist.families.relaxed import Model, Params, Relaxed
from pointillist.families.rows import ClippedRows
from pointillist.framework import Algorithm, Last
from pointillist.privacy.scores import MaxError
from pointillist.queries.candidates import Grouping
from pointillist.strategies import Rounds, SelectEvenly
from pointillist.updates.descent import Descent, Recipe
from pointillist.updates.losses import Adam, BestOf, SquaredError, WhenMet

__all__ = ["METHOD", "Settings", "build", "projection"]

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 10, 2, 50.0
"""By marginal T = n sqrt(rho) / 50, but at least 10 and at most 2 for every attribute: wide tables have more to learn,
and with little budget more measurements are only more noise. Fixed on adult-reduced, ADULT* and 15 columns of acs-oh.
"""


@dataclass(frozen=True)
class Settings:
    """Settings of RAP."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default 10 by query, n sqrt(rho) / 50 by marginal, at least 10 and at most 2 d, "
        "or fewer if the groups run out",
        most=MOST_ROUNDS,
    )
    picks: int | None = setting(
        None, "K, the groups selected per round; by default 10 by query, 2 by marginal", most=MOST_ROUNDS
    )
    alpha: float = setting(0.5, "weight of selecting against measuring, in (0, 1)")
    rows: int = setting(1000, "n', the rows of the relaxed table")
    learning_rate: float = setting(0.001, "step of Adam")
    t_max: int = setting(5000, "largest number of steps in a round")
    patience: int = setting(5, "end a round after this number of steps without a smaller loss; 0: never")
    tolerance: float | None = setting(None, "end a round at this loss; by default 1e-8 by query, 1 by marginal")
    prior: bool = setting(True, "by query: prefer queries with a large estimate (the paper: false)")

    def __post_init__(self) -> None:
        at_least("patience", self.patience, 0)


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """RAP as a choice of parts."""
    return projection(task, ClippedRows(task.domain, settings.rows), settings)


def projection(task: Task, model: Model, settings: Settings) -> Algorithm[Params]:
    """Adaptive projection onto the rows of a model: RAP's parts, shared with RAP-softmax."""
    family, candidates = Relaxed(model), task.candidates
    picks, tolerance = settings.picks, settings.tolerance
    if picks is None:
        picks = min(10 if task.by_query else 2, len(candidates))
    if tolerance is None:
        tolerance = 1e-8 if task.by_query else 1.0
    most = LEAST_ROUNDS if task.by_query else ROUNDS_PER_ATTRIBUTE * len(task.domain)
    rounds = Rounds.of(settings.rounds, LEAST_ROUNDS, most, len(candidates), UNIT, picks)
    rule = MaxError(base_measure=settings.prior and task.by_query)
    recipe = Recipe(
        optimizer=Adam(settings.t_max, settings.learning_rate),
        loss=SquaredError(tolerance),
        stopping=BestOf(settings.patience) if settings.patience else WhenMet(),
    )
    return Algorithm(
        family=family,
        strategy=SelectEvenly(candidates, rule, rounds, picks, settings.alpha),
        update=Descent(family, candidates, recipe),
        output=Last(),
    )


METHOD = Method(
    name="rap",
    family="relaxed rows, clipped to [-1, 1]",
    strategy="select K per round and measure them, even budget",
    update="gradient descent, squared error",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL, Grouping.QUERY),
    fits=Relaxed.fits,
    memory=Relaxed.memory,
    consistent=False,
)
