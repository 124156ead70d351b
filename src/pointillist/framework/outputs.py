"""Output rules H. They see distributions only, so "the best round by the true error" cannot be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pointillist.framework.parts import Family, Mixing

__all__ = ["Average", "Last", "MovingAverage"]

P = TypeVar("P")


class Last:
    """H = D_T."""

    def add(self, family: Family[P], so_far: P | None, params: P, t: int) -> P:
        return params


class Average:
    """H = (1/T) sum_t D_t."""

    def add(self, family: Mixing[P], so_far: P | None, params: P, t: int) -> P:
        return family.mix(params if so_far is None else so_far, params, 1 / (t + 1))


@dataclass(frozen=True)
class MovingAverage:
    """H = an exponential moving average of the parameters of the rounds from ``first_round`` on."""

    beta: float
    first_round: int

    def add(self, family: Mixing[P], so_far: P | None, params: P, t: int) -> P:
        if so_far is None or t <= self.first_round:
            so_far = params
        return family.mix(so_far, params, 1 - self.beta)
