"""The mechanism played again on a fitted model: the third kind of door.

The model takes the place of the private table, so that its answers are the truth, and noise of the same scales is drawn
around them. Everything here follows from values that are differentially private already. It protects nothing, so the
noise comes from an ordinary seeded generator: *simulated noise* is never privacy noise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pointillist.framework import Log, Round
from pointillist.privacy.curator import Ask, Door
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.mechanisms import gaussian_scale, selection_scale
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.privacy.sensitivity import of_score, square_of_counts
from pointillist.queries.base import Queries, answers_of, parts_of
from pointillist.queries.candidates import Candidates
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.tie import Tie

__all__ = ["RepeatedPlan", "SimulatedDoor"]

Fractions = Callable[[Sequence[Queries]], np.ndarray]
"""The answers of a model, as fractions, one after the other."""


class SimulatedDoor:
    """Answers like a curator whose table is a model, with simulated noise. NOT private, and not about any data.

    Args:
        fractions: the answers of the model.
        total: the number of rows that the model stands for.
        facts: those of the run that made the model.
        rng: draws the simulated noise.
    """

    def __init__(self, fractions: Fractions, total: float, facts: Facts, rng: np.random.Generator) -> None:
        self._fractions, self._total, self._rng = fractions, total, rng
        noisy = total + facts.total_sigma * rng.standard_normal() if facts.total_sigma else facts.total
        self._facts = replace(facts, total=max(1, round(noisy)))
        self.simulated: list[tuple[Measurement, np.ndarray]] = []
        """What was measured, and the counts without the simulated noise."""

    def open(self) -> Facts:
        """The facts of the run, with simulated noise on the number of rows where it had noise."""
        return self._facts

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        """Picks with the probabilities of the exponential mechanism (the Gumbel trick)."""
        sensitivity = of_score(rule, candidates, self._facts)
        scale = selection_scale(rho, sensitivity)
        counts = np.rint(self._counts(candidates.queries)).astype(np.int64)
        rounded = np.rint(np.clip(estimate, -1.0, 2.0) * self._facts.total).astype(np.int64)
        scores = rule.scores(candidates, counts, rounded, scale) / scale
        free = np.ones(len(candidates), bool)
        free[[place for place in map(candidates.find, taken or ()) if place is not None]] = False
        found = []
        for _ in range(picks):
            places = np.flatnonzero(np.repeat(free, rule.sides))
            drawn = scores[places] + self._rng.gumbel(size=len(places))
            chosen, side = divmod(int(places[np.argmax(drawn)]), rule.sides)
            free[chosen] = taken is None
            found.append(Pick(candidates[chosen], 1 - 2 * side))
        return tuple(found)

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """The model's counts with simulated noise of the scale that the rho buys."""
        counts = self._counts([one.queries for one in asked])
        ends = np.cumsum([one.queries.size for one in asked])[:-1]
        found = []
        for (queries, rho), exact in zip(asked, np.split(counts, ends), strict=True):
            sigma = gaussian_scale(rho, square_of_counts(queries, self._facts))
            noisy = np.rint(exact + sigma * self._rng.standard_normal(len(exact)))
            found.append(Measurement(queries, noisy.astype(np.int64), sigma))
            self.simulated.append((found[-1], exact))
        return tuple(found)

    def _counts(self, queries: Sequence[Queries]) -> np.ndarray:
        """The counts of the model. What is no list of predicates over one scope, such as a tie, follows from
        marginals."""
        plain = [one for one in queries if not _indirect(one)]
        parts = [part for one in queries if _indirect(one) for part in parts_of(one)]
        marginals = [Marginal(scope, shape) for scope, shape in dict.fromkeys((one.scope, one.shape) for one in parts)]
        asked = [*plain, *marginals]
        answers = np.split(self._total * self._fractions(asked), np.cumsum([one.size for one in asked])[:-1])
        own = iter(answers[: len(plain)])
        tables = {one.scope: table for one, table in zip(marginals, answers[len(plain) :], strict=True)}
        return np.concatenate([answers_of(one, tables) if _indirect(one) else next(own) for one in queries])


def _indirect(queries: Queries) -> bool:
    return isinstance(queries, Tie) or len(parts_of(queries)) > 1


@dataclass(frozen=True)
class RepeatedPlan:
    """The strategy of a run that asks for what another one has asked for, with the same noise.

    Attributes:
        log: the transcript of that run.
    """

    log: Log

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        return (Phase(len(self.log.rounds), 1, False, None),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> RepeatedStep | None:
        return None if t >= len(self.log.rounds) else RepeatedStep(self.log.rounds[t])


@dataclass(frozen=True)
class RepeatedStep:
    """A round that asks for what another one has asked for.

    Attributes:
        before: that round.
    """

    before: Round

    def take(self, door: Door, family: Any, params: Any, log: Log, rng: np.random.Generator) -> Round:
        squares = [square_of_counts(one.queries, log.facts) for one in self.before.measurements]
        pairs = zip(self.before.measurements, squares, strict=True)
        asked = [Ask(one.queries, square / (2 * one.sigma**2)) for one, square in pairs]
        rho = sum((Fraction(one.rho) for one in asked), Fraction(0))
        return Round(self.before.picks, door.measure(asked) if asked else (), False, rho)
