"""AIM: measure the one-way marginals, then round by round the marginal of the workload's closure that gains most.

| family | strategy | update | output H |
|---|---|---|---|
| graphical models | one-ways; select 1 and measure it, budget by annealing | mirror descent | last |

The candidates are the marginals r of the workload W and all that is inside of them, weighted by w_r, the sum of |r ∩ s|
over s in W. A round with the budget rho_t selects by the exponential mechanism, for rho_t / 10, with the score

    w_r (|M_r(P) - M_r(D)|_1 - sqrt(2 / pi) sigma_t n_r),

where n_r is the number of cells and sigma_t the noise with which the choice is then measured, for 9 rho_t / 10. The
score's sensitivity is max(w) times the L1 sensitivity of a marginal: 1 under add-remove, 2 under replace
(:class:`~pointillist.privacy.scores.UsefulError`). Candidates that would make the junction tree larger than its limit
times the share of rho that is spent by then are left out.

*Annealing.* rho_1 = rho / T with T = 16 d. If the measured marginal of the model changed by less than the noise
explains, |M_r(D_t) - M_r(D_t-1)|_1 <= sqrt(2 / pi) sigma_t n_r, the next round has four times the budget: half the
noise. A round after which less than that of one more round would be left takes all.

Differences from the paper: the one-ways have a tenth of rho together, as in google/dpsynth, and not 1/16; the number of
rows is measured first under add-remove, as for every method here. From dpsynth: the selection is charged in full, since
the L1 error is not monotone; noise is discrete.

McKenna, Mullins, Sheldon and Miklau, AIM: An Adaptive and Iterative Mechanism for Differentially Private Synthetic
Data, 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.once import closure
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.checks import at_least, positive, share
from pointillist.data.domain import Attributes
from pointillist.families.junction import cliques_of, tree_cells
from pointillist.families.markov import Field, Markov
from pointillist.framework import Algorithm, Last, Log, Select, Step
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.mechanisms import gaussian_scale, selection_scale
from pointillist.privacy.scores import UsefulError
from pointillist.privacy.sensitivity import of_score, of_total, square_of_counts
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping, Whole
from pointillist.queries.marginal import Marginal
from pointillist.strategies import MeasureAll, Then
from pointillist.updates.fitting import fitting

__all__ = ["METHOD", "Annealed", "Settings", "build"]

ROUNDS_PER_ATTRIBUTE = 16
"""T = 16 d."""

ANNEAL = 4
"""By what the budget of a round grows when the last one has not changed the model."""

ROUNDING = 1e-9
"""A share of rho that is no more than what rounding leaves."""

CELLS_PER_MEGABYTE = 2**20 // 8


@dataclass(frozen=True)
class Settings:
    """Settings of AIM."""

    rounds: int | None = setting(
        None, "T, the number of rounds if none of them doubles the precision; by default 16 d", most=MOST_ROUNDS
    )
    alpha: float = setting(0.9, "share of a round's budget for measuring, in (0, 1)")
    one_ways: float = setting(0.1, "share of the budget for the one-way marginals, in (0, 1)")
    model_size: float = setting(80.0, "largest junction tree, in megabytes of 64-bit numbers")
    t_max: int = setting(1000, "most steps of mirror descent in a round")
    tolerance: float = setting(0.01, "a round ends where 20 steps lower the loss by less than this per measured cell")
    solver: str = setting("numpy", "'numpy', or 'mbi' for the mirror descent of that package (extra graphical)")

    def __post_init__(self) -> None:
        if self.rounds is not None:
            at_least("rounds", self.rounds, 1, 200)
        share("alpha", self.alpha)
        share("one_ways", self.one_ways)
        positive("model_size", self.model_size, 80)


@dataclass(frozen=True)
class Annealed:
    """Rounds that select one candidate and measure it, with a budget that grows when nothing is learned.

    Attributes:
        candidates: what can be selected.
        weights: the weight of each in the score: whole numbers.
        rounds: T, the number of rounds if the budget never grows.
        alpha: the share of a round's budget for measuring.
        most_cells: the size of the largest junction tree.
    """

    candidates: tuple[Queries, ...] = field(repr=False)
    weights: tuple[int, ...] = field(repr=False)
    rounds: int
    alpha: float
    most_cells: int

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        first, last = split(facts.rho, self.rounds), facts.rho
        squares = of_total(facts), square_of_counts(Whole(self.candidates), facts)
        noise = gaussian_scale(self.alpha * last, squares[0]), gaussian_scale(self.alpha * first, squares[1])
        return (Phase(self.rounds, 1, True, noise),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        own = log.rounds[len(log.rounds) - t :]
        left = minus(facts.rho, sum((entry.rho for entry in own), Fraction(0)))
        wanted = split(facts.rho, self.rounds) if t == 0 else self._next(log, family, params)
        if left <= ROUNDING * facts.rho:  # the last round took all
            return None
        rho = left if left < 2 * wanted or t == self.rounds - 1 else wanted
        spent = 1 - (left - rho) / facts.rho
        select = self._select(rho, self._tractable(params, spent), facts)
        return replace(select, scale=log.estimated_total / facts.total)

    def _next(self, log: Log, family: Markov, params: Field) -> float:
        """The budget of the next round: that of the last one, or more if it changed the model less than noise would."""
        last = log.rounds[-1]
        (measured,), (before,) = last.measurements, last.estimates
        changed = float(np.abs(family.answers(params, [measured.queries]) - before).sum()) * log.estimated_total
        expected = math.sqrt(2 / math.pi) * measured.sigma * measured.queries.size
        return float(last.rho) * (ANNEAL if changed <= expected else 1)

    def _select(self, rho: float, places: list[int], facts: Facts) -> Select:
        candidates = Whole(tuple(self.candidates[n] for n in places))
        weights = tuple(self.weights[n] for n in places)
        select = (1 - self.alpha) * rho
        measure = minus(rho, select)
        scale = selection_scale(select, of_score(UsefulError(weights, 0.0), candidates, facts))
        sigma = gaussian_scale(measure, square_of_counts(candidates, facts))
        return Select(candidates, UsefulError(weights, sigma / scale), 1, select, measure)

    def _tractable(self, params: Field, spent: float) -> list[int]:
        """The candidates that the model can take in: those that it has, and those that leave the tree small enough."""
        domain, scopes = params.domain, tuple(params.potentials)
        limit = spent * self.most_cells
        inside = [set(scope) for scope in scopes]
        if tree_cells(domain.sizes, scopes) <= limit:  # what is inside of a clique leaves the tree as it is
            inside += [set(clique) for clique in cliques_of(domain.sizes, scopes)]

        def fits(scope: Attributes) -> bool:
            if any(one.issuperset(scope) for one in inside):
                return True
            return domain.cells_of(scope) <= limit and tree_cells(domain.sizes, (*scopes, scope)) <= limit

        return [n for n, queries in enumerate(self.candidates) if fits(queries.scope)]


def build(task: Task, settings: Settings) -> Algorithm[Field]:
    """AIM as a choice of parts."""
    task.require_tables()
    candidates = closure(task.workload).queries
    scopes = [set(scope) for scope in task.workload.scopes]
    weights = tuple(sum(len(other & set(queries.scope)) for other in scopes) for queries in candidates)
    one_ways = tuple(Marginal.of(task.domain, (i,)) for i in sorted(set().union(*scopes)))
    most_cells = int(settings.model_size * CELLS_PER_MEGABYTE)
    rounds = ROUNDS_PER_ATTRIBUTE * len(one_ways) if settings.rounds is None else settings.rounds
    family = Markov(task.domain, most_cells)
    return Algorithm(
        family=family,
        strategy=Then(
            settings.one_ways, MeasureAll(one_ways), Annealed(candidates, weights, rounds, settings.alpha, most_cells)
        ),
        update=fitting(family, settings.solver, settings.t_max, settings.tolerance),
        output=Last(),
    )


METHOD = Method(
    name="aim",
    family="graphical models with a small junction tree",
    strategy="one-ways; then select 1 per round and measure it, budget by annealing",
    update="mirror descent on all measurements",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Markov.fits,
    memory=Markov.memory,
)
