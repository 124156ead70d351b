"""FEM: follow the perturbed leader with exponential perturbations.

| family | strategy | update | output H |
|---|---|---|---|
| list of records | select 1 signed query, even budget; no measurement | s perturbed leaders | average (union) |

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

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least, positive
from pointillist.families.records import RecordList, Records
from pointillist.framework import Algorithm, Average, Log, Updated
from pointillist.privacy.scores import SignedError
from pointillist.queries.candidates import Grouping
from pointillist.solvers.integer_programs import Limits, best_response, solve_many, solver
from pointillist.strategies import Rounds, SelectEvenly

__all__ = ["METHOD", "PerturbedLeader", "Settings", "build"]


@dataclass(frozen=True)
class Settings:
    """Settings of FEM."""

    rounds: int = setting(50, "T, the number of rounds", most=MOST_ROUNDS)
    samples: int = setting(50, "s, the records drawn per round", most=MOST_ROUNDS)
    sigma: float = setting(1.0, "mean of the exponential perturbation")
    solver: str = setting("milp", "integer-program solver, 'milp' or 'maxsat'")
    time_limit: float = setting(10.0, "seconds for one integer program")
    gap: float = setting(0.0, "relative gap at which a solver may stop; 0 asks for a proof of optimality")

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 1, 50)
        positive("sigma", self.sigma)


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

    def __call__(self, rng: np.random.Generator, params: Records, memory: None, log: Log) -> Updated:
        drawn = Counter(pick for entry in log.rounds for pick in entry.picks)
        domain = self.family.domain
        programs = [
            best_response(domain, drawn, tuple(rng.exponential(self.sigma, size) for size in domain.sizes))
            for _ in range(self.samples)
        ]
        solutions = solve_many(self.solver, programs, self.limits)
        optimal = float(np.mean([solution.optimal for solution in solutions]))
        return Updated(Records.even(np.array([s.record for s in solutions])), None, {"optimal": optimal})


def build(task: Task, settings: Settings) -> Algorithm[Records]:
    """FEM as a choice of parts."""
    task.require_cells()
    family = RecordList(task.domain)
    solver(settings.solver)  # refuses an unknown name
    limits = Limits(settings.time_limit, settings.gap)
    rounds = Rounds(settings.rounds)
    return Algorithm(
        family=family,
        strategy=SelectEvenly(task.candidates, SignedError(), rounds, measure=False, repeat=True),
        update=PerturbedLeader(family, settings.samples, settings.sigma, settings.solver, limits),
        output=Average(),
    )


METHOD = Method(
    name="fem",
    family="list of records",
    strategy="select 1 signed query per round, even budget; measure nothing",
    update="s perturbed-leader records by integer program",
    output="average (union)",
    settings=Settings,
    build=build,
    groupings=(Grouping.QUERY,),
    fits=RecordList.fits,
    memory=RecordList.memory,
)
