"""RAP: relaxed adaptive projection, with clipped rows.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| relaxed rows, clipped to [-1, 1] | K per round, even budget | yes | gradient descent, squared error | last |

The synthetic table is a matrix M of n' rows in the one-hot space, each entry clipped to [-1, 1]; a query is the
product of its columns, averaged over the rows. Each round minimises

    L(M) = sum_i (q_i(M) - a_i)^2

over all measurements so far by Adam, until the loss stops falling (by marginal: the mean over the measured cells, in
noise variances, until it is 1). Nothing ties the columns of an attribute
together, so what is not measured stays wrong: RAP-softmax, the same with a softmax per attribute, is far better.

Aydore et al., Differentially Private Query Release Through Adaptive Projection, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointillist.algorithms.parameters import parameter
from pointillist.families.relaxed import Model, Params, Relaxed
from pointillist.families.rows import ClippedRows
from pointillist.framework import Algorithm, Last
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import MaxError
from pointillist.queries.workload import Grouping, Workload
from pointillist.updates.descent import Descent, Settings

__all__ = ["Parameters", "build", "projection"]

LEAST_ROUNDS, ROUNDS_PER_ATTRIBUTE, UNIT = 10, 2, 50.0
"""By marginal T = n sqrt(rho) / 50, but at least 10 and at most 2 for every attribute: wide tables have more to learn,
and with little budget more measurements are only more noise. Fixed on adult-reduced, ADULT* and 15 columns of acs-oh.
"""


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of RAP."""

    rounds: int | None = parameter(
        None,
        "T, the number of rounds; by default 10 by query, n sqrt(rho) / 50 by marginal, at least 10 and at most 2 d, "
        "or fewer if the groups run out",
    )
    picks: int | None = parameter(None, "K, the groups selected per round; by default 10 by query, 2 by marginal")
    alpha: float = parameter(0.5, "weight of selecting against measuring, in (0, 1)")
    rows: int = parameter(1000, "n', the rows of the relaxed table")
    learning_rate: float = parameter(0.001, "step of Adam")
    t_max: int = parameter(5000, "largest number of steps in a round")
    patience: int = parameter(5, "end a round after so many steps without a smaller loss; 0: never")
    tolerance: float | None = parameter(None, "end a round at this loss; by default 1e-8 by query, 1 by marginal")
    prior: bool = parameter(True, "by query: prefer queries with a large estimate (the paper: false)")


def build(workload: Workload, parameters: Parameters) -> Algorithm[Params]:
    """RAP as a choice of parts."""
    return projection(workload, ClippedRows(workload.domain, parameters.rows), parameters)


def projection(workload: Workload, model: Model, parameters: Parameters) -> Algorithm[Params]:
    """Adaptive projection onto the rows of a model: RAP's parts, shared with RAP-softmax."""
    family = Relaxed(model)
    by_query = workload.grouping is Grouping.QUERY
    picks, rounds, tolerance = parameters.picks, parameters.rounds, parameters.tolerance
    if picks is None:
        picks = min(10 if by_query else 2, workload.groups)
    most = LEAST_ROUNDS if by_query else ROUNDS_PER_ATTRIBUTE * len(workload.domain)
    schedule = EvenSchedule.of(rounds, LEAST_ROUNDS, most, workload.groups, UNIT, picks, parameters.alpha)
    if tolerance is None:
        tolerance = 1e-8 if by_query else 1.0
    settings = Settings(
        steps=parameters.t_max,
        learning_rate=parameters.learning_rate,
        patience=parameters.patience,
        tolerance=tolerance,
    )
    return Algorithm(
        family=family,
        schedule=schedule,
        rule=MaxError(parameters.prior),
        repeat=False,
        update=Descent(family, workload, settings),
        output=Last(),
    )
