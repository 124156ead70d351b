"""One loop: select badly answered queries, measure them, update a distribution (the paper's Algorithm 1).

A method is a row of parts: a distribution family D, a schedule, a score rule, an update and an output rule H.
Nothing here or in the parts sees private data; the :class:`~pointillist.privacy.curator.Door` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from pointillist.data.domain import Domain
from pointillist.privacy.curator import Door
from pointillist.privacy.schedule import Schedule
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.workload import Workload

__all__ = [
    "Algorithm", "Average", "Family", "Last", "Log", "Measurement", "Output", "Replay", "Round", "Update", "run",
]  # fmt: skip

P = TypeVar("P")
"""The parameters of a distribution in the family."""

Progress = Callable[[int, int | None], None]
"""Called after each round with the number of rounds done and, where it is known, the number in all."""


@dataclass(frozen=True)
class Round:
    """What one round learned: its picks and, if it measured, noisy counts with their standard deviation."""

    picks: tuple[Pick, ...]
    noisy: tuple[np.ndarray, ...] = ()
    sigma: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """A measured group: noisy counts and the standard deviation of their noise."""

    group: int
    counts: np.ndarray
    sigma: float


@dataclass
class Log:
    """The DP transcript: all that a run learns of the private data."""

    workload: Workload
    total: int
    rounds: list[Round] = field(default_factory=list)

    @property
    def taken(self) -> set[int]:
        """The groups picked so far."""
        return {pick.group for entry in self.rounds for pick in entry.picks}

    @property
    def measurements(self) -> list[Measurement]:
        """All measured groups, oldest first."""
        return [
            Measurement(pick.group, counts, entry.sigma)
            for entry in self.rounds
            for pick, counts in zip(entry.picks, entry.noisy, strict=True)
        ]

    def answers(self, measurement: Measurement) -> np.ndarray:
        """Noisy counts as fractions, clipped to [0, 1]."""
        clipped: np.ndarray = np.clip(measurement.counts / self.total, 0.0, 1.0)
        return clipped


class Family(Protocol[P]):
    """A family of distributions over the domain."""

    @property
    def domain(self) -> Domain: ...

    def init(self, rng: np.random.Generator) -> P: ...

    def answers(self, params: P, workload: Workload) -> np.ndarray:
        """The flat vector q(D) of all queries, as fractions."""
        ...

    def sample(self, rng: np.random.Generator, params: P, rows: int) -> tuple[np.ndarray, ...]:
        """Rows drawn from D: one array of codes per attribute."""
        ...

    def mix(self, first: P, second: P, weight: float) -> P:
        """(1 - weight) first + weight second, without changing either."""
        ...

    def to_arrays(self, params: P) -> dict[str, np.ndarray]: ...

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> P: ...


class Update(Protocol[P]):
    """The update step. It may consume ``params``; ``memory`` is what it keeps between rounds."""

    def init(self, params: P) -> Any: ...

    def __call__(self, rng: np.random.Generator, params: P, memory: Any, log: Log) -> tuple[P, Any]: ...


class Output(Protocol[P]):
    """The output rule H over the rounds' distributions, as a running value."""

    def add(self, family: Family[P], so_far: P | None, params: P, t: int) -> P: ...


class Last:
    """H = D_T."""

    def add(self, family: Family[P], so_far: P | None, params: P, t: int) -> P:
        return params


class Average:
    """H = (1/T) sum_t D_t."""

    def add(self, family: Family[P], so_far: P | None, params: P, t: int) -> P:
        return family.mix(params if so_far is None else so_far, params, 1 / (t + 1))


@dataclass(frozen=True)
class Algorithm(Generic[P]):
    """A method: one choice of each part."""

    family: Family[P]
    schedule: Schedule
    rule: ScoreRule
    repeat: bool
    update: Update[P]
    output: Output[P]


def run(
    algorithm: Algorithm[P], door: Door, seed: int, progress: Progress = lambda done, rounds: None
) -> tuple[P, Log]:
    """Run the loop. ``seed`` drives post-processing only, never privacy noise."""
    family, update = algorithm.family, algorithm.update
    params = family.init(np.random.default_rng([seed, 0]))
    memory = update.init(params)
    result: P | None = None
    total, rho = door.open()
    log = Log(door.workload, total)
    t = 0
    while (spend := algorithm.schedule.spend(t, rho, total)) is not None:
        if spend.select_rho > 0:
            estimate = family.answers(params, door.workload)
            taken = set() if algorithm.repeat else log.taken
            picks = door.select(estimate, algorithm.rule, spend.select_rho, spend.picks, taken)
        else:
            picks = tuple(Pick(group) for group in range(door.workload.groups))
        noisy, sigma = door.measure(picks, spend.measure_rho) if spend.measure_rho > 0 else ((), 0.0)
        log.rounds.append(Round(picks, noisy, sigma))
        params, memory = update(np.random.default_rng([seed, t + 1]), params, memory, log)
        result = algorithm.output.add(family, result, params, t)
        t += 1
        progress(t, algorithm.schedule.rounds)
    return params if result is None else result, log


class Replay:
    """A data-free stand-in for the curator: plays a transcript back.

    A run against it must give the identical result, which shows that all else is post-processing.
    """

    def __init__(self, log: Log, rho: float) -> None:
        self.workload = log.workload
        self._log = log
        self._rho = rho
        self._at = 0

    def open(self) -> tuple[int, float]:
        return self._log.total, self._rho

    def select(self, estimate: np.ndarray, rule: ScoreRule, rho: float, count: int, taken: object) -> tuple[Pick, ...]:
        picks = self._log.rounds[self._at].picks
        if not self._log.rounds[self._at].noisy:
            self._at += 1
        return picks

    def measure(self, picks: Sequence[Pick], rho: float) -> tuple[tuple[np.ndarray, ...], float]:
        entry = self._log.rounds[self._at]
        self._at += 1
        return entry.noisy, entry.sigma
