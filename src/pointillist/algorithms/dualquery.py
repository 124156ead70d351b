"""DualQuery: multiplicative weights over the queries, best responses over the records.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| list of records | s signed queries per round, growing | no | best response by integer program, appended | last |

The queries and their negations carry weights; after t responses x_1 .. x_t with the mean D the weight of a query is
exp(eta t (q(P) - q(D))), and of its negation exp(eta t (q(D) - q(P))). Drawing from these weights is an exponential
mechanism on the signed errors, of epsilon 2 eta t / n; the first round is uniform and free. Each round draws s
signed queries and answers with the record

    x = argmax over x of sum_i sign_i q_i(x),

found by an integer program; values that no drawn query names are drawn at random, all being equally good. The run
ends before the budget would be overrun. The output is the list of all responses.

Gaboardi, Gallego Arias, Hsu, Roth and Wu, Dual Query: Practical Private Query Release for High Dimensional Data, 2014.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.families.records import RecordList, Records
from pointillist.framework import Algorithm, Last, Log
from pointillist.privacy.schedule import GrowingSchedule
from pointillist.privacy.scores import Pick, SignedError
from pointillist.queries.workload import Workload
from pointillist.updates.oracle import Limits, Oracle, best_response, solver

__all__ = ["BestResponse", "Parameters", "build"]


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of DualQuery."""

    eta: float = parameter(2.0, "step of the weights over the queries")
    samples: int = parameter(25, "s, the queries drawn per round")
    rounds: int = parameter(1000, "stop after so many rounds even if budget is left")
    solver: str = parameter("maxsat", "integer-program solver, 'maxsat' or 'milp'")
    time_limit: float = parameter(10.0, "seconds for one integer program")
    gap: float = parameter(0.0, "relative gap at which a solver may stop; 0 asks for a proof of optimality")


@dataclass(frozen=True)
class BestResponse:
    """The update: append the best response to the round's signed queries."""

    family: RecordList
    oracle: Oracle
    limits: Limits

    def init(self, params: Records) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Records, memory: None, log: Log) -> tuple[Records, None]:
        drawn: Counter[Pick] = Counter(log.rounds[-1].picks)
        anything = tuple(int(rng.integers(size)) for size in self.family.domain.sizes)
        solution = self.oracle.solve(best_response(log.workload, drawn, defaults=anything), self.limits)
        log.notes[-1]["optimal"] = float(solution.optimal)
        return Records.even(np.vstack([params.codes, solution.record])), None


def build(workload: Workload, parameters: Parameters) -> Algorithm[Records]:
    """DualQuery as a choice of parts."""
    family = RecordList(workload.domain)
    limits = Limits(parameters.time_limit, parameters.gap)
    return Algorithm(
        family=family,
        schedule=GrowingSchedule(parameters.eta, parameters.samples, parameters.rounds),
        rule=SignedError(),
        repeat=True,
        update=BestResponse(family, solver(parameters.solver), limits),
        output=Last(),
    )
