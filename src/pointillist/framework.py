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
from pointillist.errors import PointillistError, RunStopped
from pointillist.privacy.curator import Door
from pointillist.privacy.schedule import Schedule
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.workload import Grouping, Workload

__all__ = [
    "Algorithm", "Average", "Family", "Last", "Log", "Measurement", "MovingAverage", "Output", "Replay", "Round",
    "Start", "Update", "run",
]  # fmt: skip

P = TypeVar("P")
"""The parameters of a distribution in the family."""

Start = Callable[[np.random.Generator], tuple[P, dict[str, float]]]
"""How the first distribution is made, from public facts alone; with diagnostics."""

Progress = Callable[[int, int], None]
"""Called after each round with the number of rounds done and the number in all."""


@dataclass(frozen=True)
class Round:
    """What one round learned: its picks and, if it measured, noisy counts with their standard deviation.

    ``selected`` says that the data chose the picks, at a price; otherwise they are all groups, or random ones.
    """

    picks: tuple[Pick, ...]
    noisy: tuple[np.ndarray, ...] = ()
    sigma: float = 0.0
    selected: bool = True


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
    """The number of rows: exact where it is public, else a measured count with noise of ``total_sigma``."""
    rounds: list[Round] = field(default_factory=list)
    notes: list[dict[str, float]] = field(default_factory=list)
    """Diagnostics of the update, one entry per round; not used by any later round."""
    start: dict[str, float] = field(default_factory=dict)
    """Diagnostics of how the start was made, before any round."""
    total_sigma: float = 0.0

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
            if entry.noisy
            for pick, counts in zip(entry.picks, entry.noisy, strict=True)
        ]

    def fractions(self, measurement: Measurement) -> np.ndarray:
        """Noisy counts as fractions: unbiased, so some may be below 0."""
        fractions: np.ndarray = measurement.counts / self.total
        return fractions

    def feasible(self, measurement: Measurement) -> np.ndarray:
        """The fractions made possible for a distribution: a single query clipped to [0, 1], a whole marginal moved
        to the nearest point of the simplex (clipping each cell would add mass: about half of the noise)."""
        fractions = self.fractions(measurement)
        if self.workload.grouping is Grouping.MARGINAL:
            return to_simplex(fractions)
        clipped: np.ndarray = np.clip(fractions, 0.0, 1.0)
        return clipped


def to_simplex(values: np.ndarray) -> np.ndarray:
    """The point of the simplex nearest to ``values``: max(values - tau, 0) with tau such that it sums to 1."""
    descending = np.sort(values)[::-1]
    taus = (np.cumsum(descending) - 1) / np.arange(1, len(values) + 1)
    tau = taus[np.flatnonzero(descending > taus)[-1]]
    nearest: np.ndarray = np.maximum(values - tau, 0.0)
    return nearest


class Family(Protocol[P]):
    """A family of distributions over the domain."""

    @property
    def domain(self) -> Domain: ...

    def footprint(self, workload: Workload) -> int:
        """Bytes that the parameters and the answers to a workload take; known before they are allocated."""
        ...

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
class MovingAverage:
    """H = an exponential moving average of the parameters of the rounds from ``start`` on."""

    beta: float
    start: int

    def add(self, family: Family[P], so_far: P | None, params: P, t: int) -> P:
        if so_far is None or t <= self.start:
            so_far = params
        return family.mix(so_far, params, 1 - self.beta)


@dataclass(frozen=True)
class Algorithm(Generic[P]):
    """A method: one choice of each part.

    Without a ``start`` the family's own first distribution is taken. ``measurable`` is what may be asked of the data,
    where that is more than the workload.
    """

    family: Family[P]
    schedule: Schedule
    rule: ScoreRule
    repeat: bool
    update: Update[P]
    output: Output[P]
    start: Start[P] | None = None
    measurable: Workload | None = None

    def begin(self, rng: np.random.Generator) -> tuple[P, dict[str, float]]:
        return (self.family.init(rng), {}) if self.start is None else self.start(rng)


def run(
    algorithm: Algorithm[P], door: Door, seed: int, progress: Progress = lambda done, rounds: None
) -> tuple[P, Log]:
    """Run the loop. ``seed`` drives post-processing only, never privacy noise."""
    params, start = algorithm.begin(np.random.default_rng([seed, 0]))
    total, rho = door.open()
    log = Log(door.workload, total, start=start, total_sigma=door.total_sigma)
    try:
        rounds = algorithm.schedule.count(rho, total)
        result = _rounds(algorithm, door, seed, params, log, rho, lambda done: progress(done, rounds))
        if not all(np.isfinite(array).all() for array in algorithm.family.to_arrays(result).values()):
            raise PointillistError("the last update made a model of numbers that are not finite; use a smaller step")
    except PointillistError as error:
        raise RunStopped(str(error), log) from error
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, what was spent must be told
        raise RunStopped(f"the run was stopped by {type(error).__name__}: {error}", log) from error
    return result, log


def _rounds(
    algorithm: Algorithm[P], door: Door, seed: int, params: P, log: Log, rho: float, progress: Callable[[int], None]
) -> P:
    family, update, total = algorithm.family, algorithm.update, log.total
    memory = update.init(params)
    result: P | None = None
    t = 0
    while (spend := algorithm.schedule.spend(t, rho, total)) is not None:
        rng = np.random.default_rng([seed, t + 1])
        if spend.select_rho is None:
            groups = range(door.workload.groups) if spend.groups is None else spend.groups
            picks = tuple(Pick(group) for group in groups)
        elif spend.select_rho == 0:
            picks = random_picks(rng, algorithm.rule, door.workload, spend.picks)
        else:
            estimate = family.answers(params, door.workload)
            taken = None if algorithm.repeat else log.taken
            picks = door.select(estimate, algorithm.rule, spend.select_rho, spend.picks, taken)
        noisy, sigma = door.measure(picks, spend.measure_rho) if spend.measure_rho > 0 else ((), 0.0)
        log.rounds.append(Round(picks, noisy, sigma, selected=bool(spend.select_rho)))
        log.notes.append({})
        params, memory = update(rng, params, memory, log)
        result = algorithm.output.add(family, result, params, t)
        t += 1
        progress(t)
    return params if result is None else result


def random_picks(rng: np.random.Generator, rule: ScoreRule, workload: Workload, count: int) -> tuple[Pick, ...]:
    """Candidates drawn uniformly, with replacement: free, since no data is looked at."""
    candidates = rng.integers(workload.groups * rule.candidates_per_group, size=count)
    return tuple(rule.decode(int(candidate)) for candidate in candidates)


class Replay:
    """A data-free stand-in for the curator: plays a transcript back.

    A run against it must give the identical result, which shows that all else is post-processing.
    """

    def __init__(self, log: Log, rho: float) -> None:
        self.workload, self.total_sigma = log.workload, log.total_sigma
        self._total, self._rho = log.total, rho
        self._selections = iter([entry.picks for entry in log.rounds if entry.selected])
        self._measurements = iter([(entry.noisy, entry.sigma) for entry in log.rounds if entry.noisy])

    def open(self) -> tuple[int, float]:
        return self._total, self._rho

    def select(self, estimate: np.ndarray, rule: ScoreRule, rho: float, count: int, taken: object) -> tuple[Pick, ...]:
        return next(self._selections)

    def measure(self, picks: Sequence[Pick], rho: float) -> tuple[tuple[np.ndarray, ...], float]:
        return next(self._measurements)
