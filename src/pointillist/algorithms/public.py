"""What PMWPub and PEPPub share: how many rounds, the gate's hyper-parameters, the gate in front of a method, reading a
model back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pointillist.algorithms.parameters import parameter
from pointillist.errors import check
from pointillist.families.support import Support
from pointillist.framework import Algorithm
from pointillist.privacy.schedule import EvenSchedule, ThenSchedule
from pointillist.queries.workload import Grouping, Workload
from pointillist.updates.gate import Gate

__all__ = ["GateParameters", "gated", "revive", "thrifty"]

UNIT = 100.0
"""By default T = n sqrt(rho) / 100: with more noise, measurements would only lead away from the public weights.
Fixed on adult-reduced with the public rows of ADULT, at epsilon 0.1, 0.25 and 1."""

LEAST = {Grouping.MARGINAL: 1, Grouping.QUERY: 2}
"""But so many rounds for every attribute at least, since a public table that is far away is far in most of them."""

GATE_ROUNDS = {Grouping.MARGINAL: 4, Grouping.QUERY: 20}
"""The gate judges by so many groups, but at most half of the rounds."""


@dataclass(frozen=True)
class GateParameters:
    """Hyper-parameters of the gate."""

    gate: float = parameter(0.0, "stop if no reweighting of the public records gets this close; 0 for no gate")
    gate_share: float = parameter(0.1, "share of the budget for the first rounds, by which the gate judges")

    def check_gate(self) -> None:
        check(0 <= self.gate < 1, "gate", self.gate, "must be at least 0 and below 1",
              "give for example 0.02, or 0 for no gate")  # fmt: skip
        check(0.001 <= self.gate_share <= 0.999, "gate_share", self.gate_share,
              "must leave both parts a share (0.001 .. 0.999)", "give for example 0.1")  # fmt: skip


def thrifty(rounds: int | None, alpha: float, workload: Workload, most: int) -> EvenSchedule:
    """The rounds that are asked for, else fewer where the budget is small."""
    least = min(LEAST[workload.grouping] * len(workload.domain), most)
    return EvenSchedule.of(rounds, least, most, workload.groups, UNIT, alpha=alpha)


def gated(
    algorithm: Algorithm[np.ndarray], support: Support, grouping: Grouping, parameters: GateParameters
) -> Algorithm[np.ndarray]:
    """The algorithm, whose first rounds have ``gate_share`` of the budget and are judged by the gate, if there is one.

    The number of rounds stays the same.
    """
    if parameters.gate == 0:
        return algorithm
    even = cast(EvenSchedule, algorithm.schedule)
    check(even.rounds >= 2, "rounds", even.rounds, "must be at least 2 for a gate", "use more rounds, or gate=0")
    fewest = min(even.rounds, even.least) if even.unit else even.rounds
    first = max(1, min(GATE_ROUNDS[grouping], fewest // 2))
    rest = math.sqrt(1 - parameters.gate_share)  # what is left of sqrt(rho): the rounds follow from all of it
    schedule = ThenSchedule(
        parameters.gate_share,
        replace(even, rounds=first, unit=0.0),
        replace(even, unit=even.unit * rest, least=max(even.least, first + 1), done=first),
    )
    return replace(algorithm, schedule=schedule, update=Gate(algorithm.update, support, first, parameters.gate))


def revive(workload: Workload, parameters: Any, arrays: Mapping[str, np.ndarray]) -> Support:
    """The family of a saved model, which holds the public records."""
    return Support.revive(workload.domain, arrays)
