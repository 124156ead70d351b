"""Everything at once: what auto measures by public facts alone, and how it divides a budget between kinds of queries.

:mod:`pointillist.algorithms.auto` says when; :mod:`pointillist.algorithms.measured` has the forms that are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from pointillist.algorithms.by_ties import MeasureByTies, marginals_only
from pointillist.algorithms.in_blocks import MeasureInBlocks, lines_of
from pointillist.algorithms.measured import backbone, measured_form
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.framework import Log, Measure, Step, Strategy
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import split
from pointillist.privacy.sensitivity import square_of_counts
from pointillist.queries.base import Queries
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.kway import sized
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload
from pointillist.strategies import Then, noise_of

__all__ = ["MeasureOnce", "PairsAndOthers", "closure", "rounds_of", "strategy_for"]

PAIRS_SHARE = 0.5
"""With halfspaces or predicates: the share of rho for the pairs of their attributes, and for wanted marginals."""

SPACES_NOISE, FEWEST_SPACES, MOST_SPACES = 0.002, 16, 32
"""As many halfspaces are measured as have a noise of at most this share of the rows; none if they are fewer than the
second number (or than all), and no more than the third, since each of them slows the fit down."""


class Choices(Protocol):
    """The settings that decide what is measured."""

    @property
    def ties(self) -> bool: ...

    @property
    def most_noise(self) -> float: ...

    @property
    def adaptive_rounds(self) -> int: ...


def closure(workload: Workload) -> Workload:
    """The queries of the workload, and after them all queries over fewer attributes that they determine."""
    found = dict.fromkeys(workload.queries)
    for queries in workload.queries:
        layer = [queries]
        while layer := sorted(dict.fromkeys(_smaller(layer)), key=lambda smaller: smaller.scope):
            found.update(dict.fromkeys(layer))
    return sized(Workload(workload.domain, tuple(found)))


def _smaller(many: Iterable[Queries]) -> list[Queries]:
    """All queries over one attribute less, the last attribute left out first."""
    fewer = (queries.without(attribute) for queries in many for attribute in reversed(queries.scope))
    return [queries for queries in fewer if queries is not None]


@dataclass(frozen=True)
class MeasureOnce:
    """One round that measures the wanted queries, or smaller ones in their place, with equal shares.

    What is measured follows from public facts. Noise is judged as under replace, where it is larger.
    """

    measurable: tuple[Queries, ...] = field(repr=False)  # thousands of marginals, which a release lists elsewhere
    wanted: int
    most_noise: float
    weights: tuple[float, ...] = ()

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        asked = self.asked(facts)
        return (Phase(1, len(asked), False, noise_of(asked, facts)),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        return Measure(self.asked(facts)) if t == 0 else None

    def asked(self, facts: Facts) -> tuple[Ask, ...]:
        """What to measure: the first ``wanted`` of the measurable queries, unless noise would hide them."""
        chosen = {self.measurable[place]: weight for place, weight in sorted(self._seen(facts).items())}
        for one in self._left_out(chosen, facts):
            del chosen[one]
        shares = _shares(chosen)
        return tuple(Ask(queries, split(facts.rho, shares[queries])) for queries in chosen)

    def _seen(self, facts: Facts) -> dict[int, float]:
        """The places of the queries that noise does not hide, and their weights."""
        chosen = dict(enumerate(self.weights or (1.0,) * self.wanted))
        while True:
            variance = len(chosen) / (facts.rho_per_row * facts.total**2)
            hidden = [n for n in chosen if self._parts[n] and self._ratios[n] * variance > self.most_noise]
            if not hidden:
                return chosen
            for place, weight in [(place, chosen.pop(place)) for place in hidden]:
                chosen.update({less: max(weight, chosen.get(less, 0.0)) for less in self._parts[place]})

    @cached_property
    def _ratios(self) -> tuple[float, ...]:
        """The noise of each of the measurable queries. It is kept, since plans ask for many budgets and totals."""
        return tuple(map(_noise_ratio, self.measurable))

    @cached_property
    def _parts(self) -> tuple[tuple[int, ...], ...]:
        """For each of the measurable queries the places of those over one attribute less."""
        places = {queries: place for place, queries in enumerate(self.measurable)}
        return tuple(tuple(places[less] for less in _smaller([one])) for one in self.measurable)

    def _left_out(self, chosen: dict[Queries, float], facts: Facts) -> list[Queries]:
        """Halfspaces that are not measured, so that the noise of the others is small enough."""
        spaces = [q for q in self.measurable[: self.wanted] if isinstance(q, Halfspaces) and q in chosen]
        if not spaces:
            return []
        square = max(square_of_counts(one, facts) for one in spaces)
        affordable = int(2 * facts.rho * (SPACES_NOISE * facts.total) ** 2 / square) - len(chosen) + len(spaces)
        enough = affordable >= min(FEWEST_SPACES, len(spaces))
        count = min(len(spaces), affordable, MOST_SPACES) if enough else 0
        kept = {i * len(spaces) // count for i in range(count)}
        return [one for i, one in enumerate(spaces) if i not in kept]


@dataclass(frozen=True)
class PairsAndOthers:
    """Pairs first, then what is no product; only the pairs, where nothing else is worth its noise."""

    pairs: Strategy
    others: MeasureOnce

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        return self._chosen(facts).outline(facts)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        return self._chosen(facts).step(t, facts, log, family, params)

    def _chosen(self, facts: Facts) -> Strategy:
        both = Then(PAIRS_SHARE, self.pairs, self.others)
        return both if self.others.asked(both.facts(facts)[1]) else self.pairs


def _shares(weights: dict[Queries, float]) -> dict[Queries, Fraction]:
    """One over the share of rho of each: proportional to w^(2/3)."""
    if len(set(weights.values())) == 1:
        return dict.fromkeys(weights, Fraction(len(weights)))
    powers = {one: Fraction(weight ** (2 / 3)) for one, weight in weights.items()}
    whole = sum(powers.values())
    return {one: whole / power for one, power in powers.items()}


def _noise_ratio(queries: Queries) -> float:
    """The squared length of the noise of some queries over the largest one of their answers, for noise of variance 1
    on each cell of a marginal."""
    noise = queries.size * queries.sensitivity(Relation.REPLACE).l2_squared / 2
    return noise / max(1, queries.sensitivity(Relation.ADD_REMOVE).l2_squared)


def strategy_for(
    workload: Workload, settings: Choices, lines: tuple[int, ...] = ()
) -> tuple[Strategy, tuple[Queries, ...]]:
    """What is measured, and all that may be.

    Args:
        workload: the queries whose answers are wanted.
        settings: those of the method.
        lines: for every attribute the number of its codes that lie on a line.
    """
    domain, wanted = workload.domain, workload.queries
    others = tuple(one for one in wanted if one.factors is None)
    if not others:
        return _of_products(workload, settings, workload.weights, lines)
    plain = () if workload.weights else tuple(one for one in wanted if isinstance(one, Marginal))
    pairs = Workload(domain, tuple(dict.fromkeys((*plain, *backbone(domain, others)))))
    first, before = _of_products(pairs, settings, (), lines)
    first = _in_blocks(domain, others, first, settings) if not plain else first
    members = dict(zip(wanted, workload.weights or (1.0,) * len(wanted), strict=True))
    rest = {one: weight for one, weight in members.items() if one not in plain}
    second, after = _once(Workload(domain, tuple(rest), tuple(rest.values())), settings)
    return PairsAndOthers(first, second), tuple(dict.fromkeys((*before, *after, *wanted)))


def _in_blocks(domain: Domain, others: Sequence[Queries], otherwise: Strategy, settings: Choices) -> Strategy:
    """Pairs in blocks, if only halfspaces are wanted, some of them over ordered attributes."""
    spaces = [one for one in others if isinstance(one, Halfspaces)]
    lines = lines_of(spaces) if len(spaces) == len(others) else {}
    used = tuple(sorted({i for one in others for i in one.scope}))
    several = sum(domain.sizes[i] > 1 for i in used) > 1
    if not lines or not several or settings.adaptive_rounds:
        return otherwise
    return MeasureInBlocks(domain, used, lines, settings.most_noise, otherwise)


def _of_products(
    workload: Workload, settings: Choices, weights: Sequence[float], lines: tuple[int, ...]
) -> tuple[Strategy, tuple[Queries, ...]]:
    """By ties if all queries are marginals that matter alike, else at once."""
    once, measurable = _once(workload, settings)
    if not settings.ties or settings.adaptive_rounds or weights or not marginals_only(workload.queries):
        return once, measurable
    return MeasureByTies(workload.domain, measurable, len(workload.queries), once, lines), measurable


def _once(workload: Workload, settings: Choices) -> tuple[MeasureOnce, tuple[Queries, ...]]:
    """Everything at once, in the form that has the least noise."""
    domain = workload.domain
    forms: dict[Queries, float] = {}
    for one, weight in zip(workload.queries, workload.weights or (1.0,) * len(workload.queries), strict=True):
        form = measured_form(one, domain)
        forms[form] = max(weight, forms.get(form, 0.0))
    measured = Workload(domain, tuple(forms), tuple(forms.values()))
    measurable = closure(measured).queries
    every = tuple(dict.fromkeys((*measurable, *workload.queries)))
    return MeasureOnce(measurable, len(forms), settings.most_noise, measured.weights), every


def rounds_of(strategy: Strategy) -> Callable[[Facts], int]:
    """The number of rounds after which there is a fit: all of them."""
    return lambda facts: sum(phase.rounds for phase in strategy.outline(facts))
