"""Steps: the kinds of rounds. A strategy returns one of them for every round."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from pointillist.framework.log import Log, Round
from pointillist.framework.parts import Family
from pointillist.privacy.curator import Ask, Door
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates

__all__ = ["Draw", "Measure", "Select"]

P = TypeVar("P")


@dataclass(frozen=True)
class Measure:
    """Measure these queries, which were chosen without looking at the data (other than through the log)."""

    asked: tuple[Ask, ...]

    def __post_init__(self) -> None:
        if not self.asked:
            raise ValueError("a step that measures must ask for something")

    def take(self, door: Door, family: Family[P], params: P, log: Log, rng: np.random.Generator) -> Round:
        rho = sum((Fraction(ask.rho) for ask in self.asked), Fraction(0))
        return Round(measurements=door.measure(self.asked), rho=rho)


@dataclass(frozen=True)
class Select:
    """Select badly answered candidates, then measure them.

    Attributes:
        candidates: what to choose among.
        rule: how a candidate is scored.
        picks: the number of candidates to select.
        select_rho: the cost of each selection.
        measure_rho: the cost of each measurement; 0 measures nothing.
        taken: candidates that may not be selected; None lets a candidate be selected any number of times.
        scale: by what the model's answers are multiplied for the score: a better number of rows over the facts' one.
    """

    candidates: Candidates
    rule: ScoreRule
    picks: int
    select_rho: float
    measure_rho: float
    taken: Collection[Queries] | None = None
    scale: float = 1.0

    def take(self, door: Door, family: Family[P], params: P, log: Log, rng: np.random.Generator) -> Round:
        estimate = family.answers(params, self.candidates.queries)
        picks = door.select(self.candidates, self.scale * estimate, self.rule, self.select_rho, self.picks, self.taken)
        rho = len(picks) * (Fraction(self.select_rho) + Fraction(self.measure_rho))
        before = tuple(estimate[self.candidates.entries(pick.queries)] for pick in picks)
        if self.measure_rho == 0:
            return Round(picks, selected=True, rho=rho, estimates=before)
        measured = door.measure([Ask(pick.queries, self.measure_rho) for pick in picks])
        return Round(picks, measured, True, rho, before)


@dataclass(frozen=True)
class Draw:
    """Draw candidates (and signs) uniformly, with replacement: free, since no data is looked at."""

    candidates: Candidates
    rule: ScoreRule
    picks: int

    def take(self, door: Door, family: Family[P], params: P, log: Log, rng: np.random.Generator) -> Round:
        sides = self.rule.sides
        drawn = (divmod(int(n), sides) for n in rng.integers(len(self.candidates) * sides, size=self.picks))
        return Round(tuple(Pick(self.candidates[chosen], 1 - 2 * side) for chosen, side in drawn))
