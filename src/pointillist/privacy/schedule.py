"""Schedules: how much rho each round may spend. They see public facts only: the round, the ledger and n."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol

from pointillist.errors import check
from pointillist.privacy.ledger import minus, split

__all__ = ["EvenSchedule", "GrowingSchedule", "OneShotSchedule", "Schedule", "Spend", "ThenSchedule", "select_share"]


@dataclass(frozen=True)
class Spend:
    """What one round may spend: on each of its ``picks`` selections, and on each of its measurements.

    ``select_rho`` 0 draws the picks at random, which is free; None picks ``groups``, or every group if that is None.
    ``measure_rho`` 0 measures nothing.
    """

    picks: int
    select_rho: float | None
    measure_rho: float
    groups: tuple[int, ...] | None = None


class Schedule(Protocol):
    """The plan of a run. ``rho`` is what the rounds have in all, ``total`` the public (or noisy) row count."""

    def count(self, rho: float, total: int) -> int:
        """The number of rounds."""
        ...

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        """The spending of round t = 0, 1, ...; None ends the run."""
        ...


def select_share(alpha: float) -> float:
    """The share of rho that selection gets: alpha^2 / (alpha^2 + (1 - alpha)^2).

    With eps_0 = sqrt(2 rho / (k T (alpha^2 + (1 - alpha)^2))) a selection costs (alpha eps_0)^2 / 2 and a
    measurement ((1 - alpha) eps_0)^2 / 2.
    """
    return alpha**2 / (alpha**2 + (1 - alpha) ** 2)


@dataclass(frozen=True)
class EvenSchedule:
    """T rounds of k picks, all with the same budget, split between selecting and measuring by alpha.

    Without ``measure`` all of it goes to selecting. With ``unit``, T is n sqrt(rho) / unit, but at least ``least`` and
    at most ``rounds``: the noise of a measurement, as a share of n about sqrt(T) / (n sqrt(rho)), is then about
    1 / (unit sqrt(T)), unless T is at a bound. ``done`` of the T rounds were made before.
    """

    rounds: int
    picks: int = 1
    alpha: float = 0.5
    measure: bool = True
    unit: float = 0.0
    least: int = 1
    done: int = 0

    def __post_init__(self) -> None:
        check(self.rounds >= 1, "rounds", self.rounds, "must be at least 1", "give for example 50")
        check(self.picks >= 1, "picks", self.picks, "must be at least 1", "give for example 1")
        check(0 < self.alpha < 1, "alpha", self.alpha, "must be above 0 and below 1", "give for example 0.5")
        check(0.001 <= self.alpha <= 0.999, "alpha", self.alpha, "must leave both parts a share (0.001 .. 0.999)",
              "give for example 0.5")  # fmt: skip

    @classmethod
    def of(
        cls, rounds: int | None, least: int, most: int, groups: int, unit: float, picks: int = 1, alpha: float = 0.5
    ) -> EvenSchedule:
        """The rounds that are asked for, else n sqrt(rho) / unit between the bounds, as long as there are groups."""
        if rounds is not None:
            return cls(rounds, picks, alpha)
        there = max(1, groups // max(picks, 1))
        return cls(min(max(least, most), there), picks, alpha, unit=unit, least=min(least, there))

    def count(self, rho: float, total: int) -> int:
        if not self.unit:
            return self.rounds - self.done
        wanted = int(total * math.sqrt(rho) / self.unit + 1e-9)  # the same however rho and unit were scaled
        return min(self.rounds, max(self.least, wanted)) - self.done

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        rounds = self.count(rho, total)
        if t >= rounds:
            return None
        share = split(rho, rounds * self.picks)
        if not self.measure:
            return Spend(self.picks, share, 0.0)
        select = share * select_share(self.alpha)
        return Spend(self.picks, select, minus(share, select))


@dataclass(frozen=True)
class GrowingSchedule:
    """s picks in round t = 0, 1, ..., drawn as Pr[q] ∝ exp(eta t (q(P) - q(D))), until the budget would be overrun.

    In counts that is a selection of scale n / (eta t), which costs (eta t / n)^2 / 2; round 0 is uniform and free.
    """

    eta: float
    picks: int
    most_rounds: int

    def __post_init__(self) -> None:
        check(0 < self.eta < math.inf, "eta", self.eta, "must be a finite number above 0", "give for example 3")
        check(self.picks >= 1, "samples", self.picks, "must be at least 1", "give for example 50")
        check(self.most_rounds >= 2, "rounds", self.most_rounds, "must be at least 2, the first one being free",
              "give for example 100")  # fmt: skip

    def count(self, rho: float, total: int) -> int:
        rounds = _affordable(self, rho, total)
        largest = total * math.sqrt(2 * rho / self.picks)
        check(rounds >= 2, "eta", self.eta,
              f"must be at most {largest:.4g} for one paid round of {self.picks} samples to fit the budget",
              "use a smaller eta, fewer samples or a larger epsilon")  # fmt: skip
        return rounds

    def cost(self, t: int, total: int) -> float:
        """rho of one selection in round t."""
        return (self.eta * t / total) ** 2 / 2

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        return Spend(self.picks, self.cost(t, total), 0.0) if t < self.count(rho, total) else None


@cache
def _affordable(schedule: GrowingSchedule, rho: float, total: int) -> int:
    left = Fraction(rho)
    for t in range(schedule.most_rounds):
        left -= schedule.picks * Fraction(schedule.cost(t, total))
        if left < 0:
            return t
    return schedule.most_rounds


@dataclass(frozen=True)
class OneShotSchedule:
    """One round that measures every group with an equal share and selects nothing."""

    groups: int

    def count(self, rho: float, total: int) -> int:
        return 1

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        return Spend(self.groups, None, split(rho, self.groups)) if t == 0 else None


@dataclass(frozen=True)
class ThenSchedule:
    """One schedule after another: the ``first`` has the share ``share`` of rho, the ``second`` what that leaves."""

    share: float
    first: Schedule
    second: Schedule

    def __post_init__(self) -> None:
        check(0 < self.share < 1, "share", self.share, "must be above 0 and below 1", "give for example 0.1")

    def _rho(self, rho: float) -> tuple[float, float]:
        return rho * self.share, minus(rho, rho * self.share)

    def count(self, rho: float, total: int) -> int:
        before, after = self._rho(rho)
        return self.first.count(before, total) + self.second.count(after, total)

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        before, after = self._rho(rho)
        rounds = self.first.count(before, total)
        return self.first.spend(t, before, total) if t < rounds else self.second.spend(t - rounds, after, total)
