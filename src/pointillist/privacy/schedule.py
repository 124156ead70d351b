"""Schedules: how much rho each round may spend. They see public facts only: the round, the ledger and n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pointillist.errors import check
from pointillist.privacy.ledger import minus, split

__all__ = ["EvenSchedule", "Schedule", "Spend", "select_share"]


@dataclass(frozen=True)
class Spend:
    """What one round may spend: on each of its selections, and on each of its measurements."""

    picks: int
    select_rho: float
    measure_rho: float


class Schedule(Protocol):
    """The plan of a run. ``rho`` is what the rounds have in all, ``total`` the public (or noisy) row count."""

    @property
    def rounds(self) -> int | None:
        """The number of rounds, where it is known beforehand (for the progress bar)."""
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
    """T rounds of k picks, all with the same budget, split between selecting and measuring by alpha."""

    rounds: int
    picks: int = 1
    alpha: float = 0.5

    def __post_init__(self) -> None:
        check(self.rounds >= 1, "rounds", self.rounds, "must be at least 1", "give for example 50")
        check(self.picks >= 1, "picks", self.picks, "must be at least 1", "give for example 1")
        check(0 < self.alpha < 1, "alpha", self.alpha, "must be above 0 and below 1", "give for example 0.5")

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        if t >= self.rounds:
            return None
        share = split(rho, self.rounds * self.picks)
        select = share * select_share(self.alpha)
        return Spend(self.picks, select, minus(share, select))
