"""DualQuery: multiplicative weights over the queries, best responses over the records.

| family | strategy | update | output H |
|---|---|---|---|
| list of records | select s signed queries, growing budget; no measurement | best response, appended | last |

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

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.families.records import RecordList, Records
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.privacy.scores import Pick, SignedError
from pointillist.queries.candidates import Grouping
from pointillist.solvers.integer_programs import Limits, Solver, best_response, solver
from pointillist.strategies import SelectGrowing

__all__ = ["METHOD", "BestResponse", "Settings", "build"]


@dataclass(frozen=True)
class Settings:
    """Settings of DualQuery."""

    eta: float = setting(2.0, "step of the weights over the queries")
    samples: int = setting(25, "s, the queries drawn per round", most=MOST_ROUNDS)
    rounds: int = setting(1000, "stop after this number of rounds even if budget is left", most=MOST_ROUNDS)
    solver: str = setting("maxsat", "integer-program solver, 'maxsat' or 'milp'")
    time_limit: float = setting(10.0, "seconds for one integer program")
    gap: float = setting(0.0, "relative gap at which a solver may stop; 0 asks for a proof of optimality")


@dataclass(frozen=True)
class BestResponse:
    """The update: append the best response to the round's signed queries."""

    family: RecordList
    solver: Solver
    limits: Limits

    def init(self, params: Records) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Records, memory: None, log: Log) -> Updated:
        drawn: Counter[Pick] = Counter(log.rounds[-1].picks)
        domain = self.family.domain
        anything = tuple(int(rng.integers(size)) for size in domain.sizes)
        solution = self.solver.solve(best_response(domain, drawn, defaults=anything), self.limits)
        responses = Records.even(np.vstack([params.codes, solution.record]))
        return Updated(responses, None, {"optimal": float(solution.optimal)})


def build(task: Task, settings: Settings) -> Algorithm[Records]:
    """DualQuery as a choice of parts."""
    task.require_cells()
    family = RecordList(task.domain)
    limits = Limits(settings.time_limit, settings.gap)
    rule = SignedError()
    return Algorithm(
        family=family,
        strategy=SelectGrowing(task.candidates, rule, settings.eta, settings.samples, settings.rounds),
        update=BestResponse(family, solver(settings.solver), limits),
        output=Last(),
    )


METHOD = Method(
    name="dualquery",
    family="list of records",
    strategy="select s signed queries per round, growing budget; measure nothing",
    update="best response by integer program, appended",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.QUERY,),
    fits=RecordList.fits,
    memory=RecordList.memory,
)
