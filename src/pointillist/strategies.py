"""Strategies that several methods share: what is asked of the private data, round by round, and for which rho."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

from pointillist.checks import at_least, check, positive, share
from pointillist.framework.log import Log
from pointillist.framework.parts import Step, Strategy
from pointillist.framework.steps import Draw, Measure, Select
from pointillist.privacy.account import LEAST_EFFECT
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.scores import ScoreRule
from pointillist.privacy.sensitivity import of_total, square_of_counts
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates

__all__ = ["MeasureAll", "Rounds", "SelectEvenly", "SelectGrowing", "Then", "noise_of", "select_share"]


def select_share(alpha: float) -> float:
    """The share of rho that selection gets: alpha^2 / (alpha^2 + (1 - alpha)^2).

    With eps_0 = sqrt(2 rho / (k T (alpha^2 + (1 - alpha)^2))) a selection costs (alpha eps_0)^2 / 2 and a
    measurement ((1 - alpha) eps_0)^2 / 2.
    """
    return alpha**2 / (alpha**2 + (1 - alpha) ** 2)


def noise_of(asked: tuple[Ask, ...], facts: Facts) -> tuple[float, float]:
    """The smallest and the largest noise of some measurements."""
    worst = {(rho, square_of_counts(queries, facts)) for queries, rho in asked}
    scales = [gaussian_scale(rho, square) for rho, square in worst]
    return min(scales), max(scales)


@dataclass(frozen=True)
class Rounds:
    """T, the number of rounds: ``most``, or n sqrt(rho) / ``unit`` between ``least`` and ``most``.

    The noise of a measurement, as a share of n about sqrt(T) / (n sqrt(rho)), is then about 1 / (unit sqrt(T)), unless
    T is at a bound. ``done`` of the T rounds were made before.
    """

    most: int
    least: int = 1
    unit: float = 0.0
    done: int = 0

    def __post_init__(self) -> None:
        at_least("rounds", self.most, 1, 50)

    @classmethod
    def of(cls, asked: int | None, least: int, most: int, candidates: int, unit: float, picks: int = 1) -> Rounds:
        """The rounds that are asked for, else by budget between the bounds, as long as there are candidates."""
        if asked is not None:
            return cls(asked)
        enough = max(1, candidates // max(picks, 1))
        return cls(min(max(least, most), enough), min(least, enough), unit)

    @property
    def fewest(self) -> int:
        """The smallest number of rounds that the budget can lead to."""
        return min(self.most, self.least) if self.unit else self.most

    def count(self, facts: Facts) -> int:
        """The number of rounds that are still to be made."""
        if not self.unit:
            return self.most - self.done
        # the same however rho and unit were scaled
        wanted = int(facts.total * math.sqrt(facts.rho_per_row) / self.unit + 1e-9)
        return min(self.most, max(self.least, wanted)) - self.done


@dataclass(frozen=True)
class SelectEvenly:
    """T rounds of k picks, all with the same budget, split between selecting and measuring by alpha.

    Without ``measure`` all of it goes to selecting. Without ``repeat`` no candidate is picked twice.
    """

    candidates: Candidates = field(repr=False)  # thousands of queries, which a release lists elsewhere
    rule: ScoreRule
    rounds: Rounds
    picks: int = 1
    alpha: float = 0.5
    measure: bool = True
    repeat: bool = False

    def __post_init__(self) -> None:
        at_least("picks", self.picks, 1)
        share("alpha", self.alpha)
        rule = "must leave both parts a share (0.001 .. 0.999)"
        check(0.001 <= self.alpha <= 0.999, "alpha", self.alpha, rule, "give for example 0.5")

    def _rhos(self, facts: Facts) -> tuple[float, float]:
        """The cost of each selection and of each measurement."""
        each = split(facts.rho, self.rounds.count(facts) * self.picks)
        if not self.measure:
            return each, 0.0
        select = each * select_share(self.alpha)
        return select, minus(each, select)

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        _, rho = self._rhos(facts)
        squares = of_total(facts), square_of_counts(self.candidates, facts)
        noise = (gaussian_scale(rho, squares[0]), gaussian_scale(rho, squares[1])) if self.measure else None
        once = None if self.repeat else len(self.candidates)
        return (Phase(self.rounds.count(facts), self.picks, True, noise, once),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if t >= self.rounds.count(facts):
            return None
        taken = None if self.repeat else log.taken
        return Select(self.candidates, self.rule, self.picks, *self._rhos(facts), taken)


@dataclass(frozen=True)
class SelectGrowing:
    """k picks in round t = 0, 1, ..., drawn as Pr[q] ∝ exp(eta t (q(P) - q(D))), until the budget would be overrun.

    In counts that is a selection of scale n / (eta t), which costs (m eta t / n)^2 / 2 if a unit has up to m rows;
    round 0 is uniform and free.
    """

    candidates: Candidates = field(repr=False)
    rule: ScoreRule
    eta: float
    picks: int
    most_rounds: int

    def __post_init__(self) -> None:
        positive("eta", self.eta, 3)
        at_least("samples", self.picks, 1, 50)
        rule = "must be at least 2, the first one being free"
        check(self.most_rounds >= 2, "rounds", self.most_rounds, rule, "give for example 100")
        least = LEAST_EFFECT / (self.most_rounds - 1)
        rule = f"must be at least {least:.4g} for the last of {self.most_rounds:,} rounds to depend on the data"
        check(self.eta >= least, "eta", self.eta, rule, "use a larger eta or more rounds")

    def _count(self, facts: Facts) -> int:
        rounds = _affordable(self.eta * facts.rows_per_unit, self.picks, self.most_rounds, facts.rho, facts.total)
        largest = facts.total * math.sqrt(2 * facts.rho_per_row / self.picks)
        rule = f"must be at most {largest:.4g} for one paid round of {self.picks} samples to fit the budget"
        check(rounds >= 2, "eta", self.eta, rule, "use a smaller eta, fewer samples or a larger epsilon")
        return rounds

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        return (Phase(self._count(facts), self.picks, True, None),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if t >= self._count(facts):
            return None
        if t == 0:
            return Draw(self.candidates, self.rule, self.picks)
        rho = growing_cost(self.eta * facts.rows_per_unit, t, facts.total)
        return Select(self.candidates, self.rule, self.picks, rho, 0.0)


def growing_cost(eta: float, t: int, total: int) -> float:
    """rho of one selection of scale n / (eta t), if a score can change by 1; for m, eta is given m times as large."""
    return (eta * t / total) ** 2 / 2


@cache
def _affordable(eta: float, picks: int, most_rounds: int, rho: float, total: int) -> int:
    left = Fraction(rho)
    for t in range(most_rounds):
        left -= picks * Fraction(growing_cost(eta, t, total))
        if left < 0:
            return t
    return most_rounds


@dataclass(frozen=True)
class MeasureAll:
    """One round that measures all queries with equal shares and selects nothing."""

    queries: tuple[Queries, ...] = field(repr=False)

    def _asked(self, facts: Facts) -> tuple[Ask, ...]:
        rho = split(facts.rho, len(self.queries))
        return tuple(Ask(queries, rho) for queries in self.queries)

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        return (Phase(1, len(self.queries), False, noise_of(self._asked(facts), facts)),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        return Measure(self._asked(facts)) if t == 0 else None


@dataclass(frozen=True)
class Then:
    """One strategy after another: the ``first`` has the share ``share`` of rho, the ``second`` what that leaves.

    The ``first`` must make exactly as many rounds as its outline says.
    """

    share: float
    first: Strategy
    second: Strategy

    def __post_init__(self) -> None:
        share("share", self.share, 0.1)

    def facts(self, facts: Facts) -> tuple[Facts, Facts]:
        """The facts with the rho of the first, and with that of the second.

        Args:
            facts: those of the whole run.
        """
        before = facts.rho * self.share
        return replace(facts, rho=before), replace(facts, rho=minus(facts.rho, before))

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        before, after = self.facts(facts)
        return self.first.outline(before) + self.second.outline(after)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        before, after = self.facts(facts)
        rounds = sum(phase.rounds for phase in self.first.outline(before))
        if t < rounds:
            step = self.first.step(t, before, log, family, params)
            if step is None:
                raise ValueError("the first of two strategies must make as many rounds as its outline says")
            return step
        return self.second.step(t - rounds, after, log, family, params)
