"""FEM: follow the perturbed leader with exponential perturbations.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| list of records | 1 signed query, even budget | no | s perturbed leaders by integer program | average (union) |

Each round selects one signed query by the exponential mechanism on the errors of the last round's records, and then
draws s records, each the best response to all signed queries so far under a fresh perturbation of every value:

    x = argmin over x of sum_{i <= t} -sign_i q_i(x) + <x, eta>,      eta ~ Exp(sigma)^{d'},

where <x, eta> adds up eta over the values of x (its one-hot code) and sigma is the mean of the perturbation. The s
records are D_t; the output is the union of all rounds.

Vietri, Tian, Bun, Steinke and Wu, New Oracle-Efficient Algorithms for Private Synthetic Data Release, 2020.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.records import RecordList, Records
from pointillist.framework import Algorithm, Average, Log
from pointillist.privacy.schedule import EvenSchedule
from pointillist.privacy.scores import SignedError
from pointillist.queries.workload import Workload
from pointillist.updates.oracle import Limits, best_response, solve_many, solver

__all__ = ["Parameters", "PerturbedLeader", "build"]


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of FEM."""

    rounds: int = parameter(50, "T, the number of rounds")
    samples: int = parameter(50, "s, the records drawn per round")
    sigma: float = parameter(1.0, "mean of the exponential perturbation")
    solver: str = parameter("milp", "integer-program solver, 'milp' or 'maxsat'")
    time_limit: float = parameter(10.0, "seconds for one integer program")
    gap: float = parameter(0.0, "relative gap at which a solver may stop; 0 asks for a proof of optimality")

    def __post_init__(self) -> None:
        check(self.samples >= 1, "samples", self.samples, "must be at least 1", "give for example 50")
        check(0 < self.sigma < np.inf, "sigma", self.sigma, "must be a finite number above 0", "give for example 1")


@dataclass(frozen=True)
class PerturbedLeader:
    """The update: s best responses to all signed queries so far, each under its own perturbation."""

    family: RecordList
    samples: int
    sigma: float
    solver: str
    limits: Limits

    def init(self, params: Records) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Records, memory: None, log: Log) -> tuple[Records, None]:
        drawn = Counter(pick for entry in log.rounds for pick in entry.picks)
        sizes = self.family.domain.sizes
        problems = [
            best_response(log.workload, drawn, tuple(rng.exponential(self.sigma, size) for size in sizes))
            for _ in range(self.samples)
        ]
        solutions = solve_many(self.solver, problems, self.limits)
        log.notes[-1]["optimal"] = float(np.mean([solution.optimal for solution in solutions]))
        return Records.even(np.array([solution.record for solution in solutions])), None


def build(workload: Workload, parameters: Parameters) -> Algorithm[Records]:
    """FEM as a choice of parts."""
    family = RecordList(workload.domain)
    solver(parameters.solver)  # refuses an unknown name
    limits = Limits(parameters.time_limit, parameters.gap)
    return Algorithm(
        family=family,
        schedule=EvenSchedule(parameters.rounds, measure=False),
        rule=SignedError(),
        repeat=True,
        update=PerturbedLeader(family, parameters.samples, parameters.sigma, parameters.solver, limits),
        output=Average(),
    )
