"""MST: one-way marginals, and the pairs of a maximum spanning tree.

| family | strategy | update | output H |
|---|---|---|---|
| graphical models | one-ways; select the edges of a tree; measure them | mirror descent | last |

A third of rho measures the one-way marginals of all d columns. A third selects d - 1 pairs, as Kruskal's algorithm
does: each by the exponential mechanism among the pairs that join two parts, with the score |M_ab(P) - M_ab(D)|_1, where
D has the measured one-ways and independent columns. Its sensitivity is the L1 sensitivity of a marginal: 1 under
add-remove, 2 under replace. The last third measures these pairs. The workload plays no part.

Difference from the paper: rare values are not merged before pairs are selected. A pair with more cells than the model
may have is never selected.

McKenna, Miklau and Sheldon, Winning the NIST Contest: A scalable and general approach to differentially private
synthetic data, 2021.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from pointillist.algorithms.method import Method, Task
from pointillist.algorithms.settings import setting
from pointillist.checks import positive, share
from pointillist.data.domain import Domain
from pointillist.families.markov import Field, Markov
from pointillist.framework import Algorithm, Last, Log, Measure, Select, Step, Strategy
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.scores import UsefulError
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Grouping, Whole
from pointillist.queries.marginal import Marginal
from pointillist.strategies import MeasureAll, Then, noise_of
from pointillist.updates.fitting import fitting

__all__ = ["METHOD", "Settings", "SpanningTree", "build"]

CELLS_PER_MEGABYTE = 2**20 // 8


@dataclass(frozen=True)
class Settings:
    """Settings of MST."""

    one_ways: float = setting(1 / 3, "share of the budget for the one-way marginals, in (0, 1)")
    select: float = setting(0.5, "share of what is left for selecting the pairs, in (0, 1)")
    model_size: float = setting(80.0, "largest marginal of a pair, in megabytes of 64-bit numbers")
    t_max: int = setting(1000, "most steps of mirror descent")
    tolerance: float = setting(0.001, "a fit ends where 20 steps lower the loss by less than this per measured cell")
    solver: str = setting("numpy", "'numpy', or 'mbi' for the mirror descent of that package (extra graphical)")

    def __post_init__(self) -> None:
        share("one_ways", self.one_ways)
        share("select", self.select)
        positive("model_size", self.model_size, 80)


class Parts:
    """Disjoint sets of attributes that pairs join."""

    def __init__(self, pairs: tuple[Queries, ...] = ()) -> None:
        self._sets: list[set[int]] = []
        for queries in pairs:
            self.join(queries)

    def joins(self, queries: Queries) -> bool:
        """Whether a pair is of two parts."""
        return not any(set(queries.scope) <= one for one in self._sets)

    def join(self, queries: Queries) -> None:
        """Make one part of the two of a pair."""
        touched = [one for one in self._sets if one & set(queries.scope)]
        self._sets = [one for one in self._sets if one not in touched]
        self._sets.append(set(queries.scope).union(*touched))


@dataclass(frozen=True)
class SpanningTree:
    """Select pairs until they are a tree, one per round, then measure all of them in one round.

    Attributes:
        pairs: what can be selected.
        select: the share of the budget for selecting.
    """

    pairs: tuple[Queries, ...] = field(repr=False)
    select: float

    @property
    def edges(self) -> int:
        """The number of pairs of a tree, or of a forest where pairs are missing."""
        parts, joined = Parts(), 0
        for queries in self.pairs:
            joined += parts.joins(queries)
            parts.join(queries)
        return joined

    def _rhos(self, facts: Facts) -> tuple[float, float]:
        """The cost of each selection and of each measurement."""
        select = split(facts.rho * self.select, self.edges)
        return select, split(minus(facts.rho, facts.rho * self.select), self.edges)

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        if not self.pairs:
            return ()
        noise = noise_of(tuple(Ask(queries, self._rhos(facts)[1]) for queries in self.pairs), facts)
        return Phase(self.edges, 1, True, None, len(self.pairs)), Phase(1, self.edges, False, noise)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if t > self.edges or not self.pairs:
            return None
        select, measure = self._rhos(facts)
        chosen = tuple(pick.queries for entry in log.rounds[len(log.rounds) - t :] for pick in entry.picks)
        if t == self.edges:
            return Measure(tuple(Ask(queries, measure) for queries in chosen))
        parts = Parts(chosen)
        candidates = Whole(tuple(queries for queries in self.pairs if parts.joins(queries)))
        scale = log.estimated_total / facts.total
        return Select(candidates, UsefulError((1,) * len(candidates), 0.0), 1, select, 0.0, scale=scale)


def build(task: Task, settings: Settings) -> Algorithm[Field]:
    """MST as a choice of parts."""
    task.require_tables()
    domain, most_cells = task.domain, int(settings.model_size * CELLS_PER_MEGABYTE)
    one_ways = _marginals(domain, 1, most_cells)
    pairs = _marginals(domain, 2, most_cells)
    family = Markov(domain, sum(sorted((queries.size for queries in pairs), reverse=True)[: len(domain) - 1]))
    strategy: Strategy = MeasureAll(one_ways)
    if pairs:
        strategy = Then(settings.one_ways, strategy, SpanningTree(pairs, settings.select))
    return Algorithm(
        family=family,
        strategy=strategy,
        update=fitting(family, settings.solver, settings.t_max, settings.tolerance),
        output=Last(),
    )


def _marginals(domain: Domain, k: int, most_cells: int) -> tuple[Queries, ...]:
    scopes = itertools.combinations(range(len(domain)), k)
    return tuple(Marginal.of(domain, scope) for scope in scopes if k == 1 or domain.cells_of(scope) <= most_cells)


METHOD = Method(
    name="mst",
    family="graphical models with a small junction tree",
    strategy="one-ways; then select the pairs of a spanning tree, and measure them",
    update="mirror descent on all measurements",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=Markov.fits,
    memory=Markov.memory,
)
