"""The transcript of a run: all that it learns of the private data, and diagnostics of what was made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import Pick
from pointillist.queries.base import Queries
from pointillist.queries.measurement import Measurement

__all__ = ["Info", "Log", "Round"]

Info = dict[str, float]
"""Diagnostics by name, such as a loss or a number of steps. No later round uses them."""


@dataclass(frozen=True)
class Round:
    """What one round learned.

    Attributes:
        picks: what was selected or drawn; empty where the round measured queries that were fixed before it.
        measurements: noisy counts, if it measured.
        selected: whether the data chose the picks, at a price; otherwise they were drawn at random.
        rho: what the round was allowed to cost in all. It follows from the strategy, and is not recorded.
        estimates: for rounds that select, the model's answers to each pick before it was measured, as fractions. They
            follow from the model, and are not recorded.
    """

    picks: tuple[Pick, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    selected: bool = False
    rho: Fraction = Fraction(0)
    estimates: tuple[np.ndarray, ...] = ()


@dataclass
class Log:
    """The DP transcript.

    Attributes:
        facts: what was known before the first round.
        rounds: what each round learned.
        info: diagnostics of the update, one entry per round.
        start: diagnostics of how the first distribution was made, before any round.
    """

    facts: Facts
    rounds: list[Round] = field(default_factory=list)
    info: list[Info] = field(default_factory=list)
    start: Info = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rows: exact where it is public, else a measured count."""
        return self.facts.total

    @property
    def estimated_total(self) -> float:
        """The number of rows as well as it is known: exact where it is public; else the measured count and the sums of
        all measured marginals, each weighted by its precision."""
        facts = self.facts
        if facts.total_sigma == 0:
            return facts.total
        whole = [m for m in self.measurements if m.queries.partition]
        sums = [(facts.total, facts.total_sigma**2), *((m.counts.sum(), m.queries.size * m.sigma**2) for m in whole)]
        weight = sum(1 / variance for _, variance in sums)
        return max(1.0, float(sum(value / variance for value, variance in sums) / weight))

    @property
    def taken(self) -> set[Queries]:
        """What was selected so far."""
        return {pick.queries for entry in self.rounds for pick in entry.picks}

    @property
    def measurements(self) -> list[Measurement]:
        """All measurements, oldest first."""
        return [measurement for entry in self.rounds for measurement in entry.measurements]
