"""What PMWPub and PEPPub share: the number of rounds, and a gate in front of the method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pointillist.algorithms.method import Task
from pointillist.algorithms.settings import setting
from pointillist.checks import check, share
from pointillist.families.support import Support
from pointillist.framework import Algorithm
from pointillist.queries.candidates import Grouping
from pointillist.strategies import Rounds, SelectEvenly, Then
from pointillist.updates.gate import Gate

__all__ = ["GateSettings", "gated", "public_rounds"]

UNIT = 100.0
"""By default T = n sqrt(rho) / 100: with more noise, measurements would only lead away from the public weights.
Fixed on adult-reduced with the public rows of ADULT, at epsilon 0.1, 0.25 and 1."""

LEAST = {Grouping.MARGINAL: 1, Grouping.QUERY: 2}
"""The smallest number of rounds per attribute: a public table that is far away is far in most attributes."""

GATE_ROUNDS = {Grouping.MARGINAL: 4, Grouping.QUERY: 20}
"""The number of rounds by which the gate judges, but at most half of all rounds."""


@dataclass(frozen=True)
class GateSettings:
    """Settings of the gate."""

    gate: float = setting(0.0, "stop if no reweighting of the public records gets this close; 0 for no gate")
    gate_share: float = setting(0.1, "share of the budget for the first rounds, by which the gate judges")

    def check_gate(self) -> None:
        """Refuse shares that are none."""
        share("gate", self.gate, "0.02, or 0 for no gate", zero=True)
        rule = "must leave both parts a share (0.001 .. 0.999)"
        check(0.001 <= self.gate_share <= 0.999, "gate_share", self.gate_share, rule, "give for example 0.1")


def public_rounds(rounds: int | None, task: Task, most: int) -> Rounds:
    """The rounds that are asked for, else fewer where the budget is small."""
    least = min(LEAST[task.grouping] * len(task.domain), most)
    return Rounds.of(rounds, least, most, len(task.candidates), UNIT)


def gated(
    algorithm: Algorithm[np.ndarray], support: Support, task: Task, settings: GateSettings
) -> Algorithm[np.ndarray]:
    """The algorithm, whose first rounds have ``gate_share`` of the budget and are judged by the gate, if there is one.

    The number of rounds stays the same.
    """
    if settings.gate == 0:
        return algorithm
    even = algorithm.strategy
    assert isinstance(even, SelectEvenly)
    rounds = even.rounds
    check(rounds.most >= 2, "rounds", rounds.most, "must be at least 2 for a gate", "use more rounds, or gate=0")
    first = max(1, min(GATE_ROUNDS[task.grouping], rounds.fewest // 2))
    rest = math.sqrt(1 - settings.gate_share)  # what is left of sqrt(rho): the rounds follow from all of it
    later = replace(rounds, unit=rounds.unit * rest, least=max(rounds.least, first + 1), done=first)
    strategy = Then(settings.gate_share, replace(even, rounds=Rounds(first)), replace(even, rounds=later))
    return replace(algorithm, strategy=strategy, update=Gate(algorithm.update, support, first, settings.gate))
