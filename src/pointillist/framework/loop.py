"""One loop: select badly answered queries, measure them, update a distribution (the paper's Algorithm 1).

A method is a row of parts: a family of distributions, a strategy, an update, an output rule H and a start. Nothing here
or in the parts sees private data; the :class:`~pointillist.privacy.curator.Door` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from pointillist.errors import PointillistError, RunStopped, in_short
from pointillist.framework.log import Info, Log
from pointillist.framework.parts import Family, Output, Start, Strategy, Update
from pointillist.privacy.curator import Ask, Door
from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates
from pointillist.queries.measurement import Measurement
from pointillist.reporting import steps_of

__all__ = ["Algorithm", "Progress", "Replay", "most_rounds", "run"]

P = TypeVar("P")

Progress = Callable[[int, int, int], None]
"""Called when a round has asked the door, and after its update: rounds measured, rounds done, and rounds in all."""


@dataclass(frozen=True)
class Algorithm(Generic[P]):
    """A method: one choice of each part. Without a ``start`` the family's own first distribution is taken."""

    family: Family[P]
    strategy: Strategy
    update: Update[P]
    output: Output[P]
    start: Start[P] | None = None

    def begin(self, rng: np.random.Generator) -> tuple[P, Info]:
        """D_0, and diagnostics of how it was made."""
        return (self.family.init(rng), {}) if self.start is None else self.start(rng)


def run(
    algorithm: Algorithm[P], door: Door, seed: int, progress: Progress = lambda measured, done, rounds: None
) -> tuple[P, Log]:
    """Run the loop.

    Args:
        algorithm: the method.
        door: the private side: a curator, or a transcript that is played back.
        seed: drives post-processing only, never privacy noise.
        progress: called when a round has measured, and when it is done.

    Raises:
        RunStopped: if a round fails after budget was spent; it carries the log so far.
    """
    with steps_of("pretraining"):
        params, start = algorithm.begin(np.random.default_rng([seed, 0]))
    log = Log(door.open(), start=start)
    try:
        result = _rounds(algorithm, door, seed, params, log, progress)
        if not all(np.isfinite(array).all() for array in algorithm.family.to_arrays(result).values()):
            raise PointillistError("the last update made a model of numbers that are not finite; use a smaller step")
    except PointillistError as error:
        raise RunStopped(str(error), log) from error
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, what was spent must be told
        raise RunStopped(f"the run was stopped by {in_short(error)}", log) from error
    return result, log


def _rounds(algorithm: Algorithm[P], door: Door, seed: int, params: P, log: Log, progress: Progress) -> P:
    family, strategy, facts = algorithm.family, algorithm.strategy, log.facts
    rounds = most_rounds(strategy, facts)
    memory = algorithm.update.init(params)
    result: P | None = None
    t = 0
    while (step := strategy.step(t, facts, log, family, params)) is not None:
        rng = np.random.default_rng([seed, t + 1])
        log.rounds.append(step.take(door, family, params, log, rng))
        progress(t + 1, t, rounds)
        with steps_of("fitting", round=t + 1) if rounds > 1 else steps_of("fitting"):
            params, memory, info = algorithm.update(rng, params, memory, log)
        log.info.append(info)
        result = algorithm.output.add(family, result, params, t)
        t += 1
        progress(t, t, rounds)
    return params if result is None else result


def most_rounds(strategy: Strategy, facts: Facts) -> int:
    """The number of rounds of a strategy, at most."""
    return sum(phase.rounds for phase in strategy.outline(facts))


class Replay:
    """A data-free stand-in for the curator: plays a transcript back.

    A run against it must give the identical result, which shows that everything else is post-processing.
    """

    def __init__(self, log: Log) -> None:
        self._facts = log.facts
        self._selections = iter([entry.picks for entry in log.rounds if entry.selected])
        self._measurements = iter([entry.measurements for entry in log.rounds if entry.measurements])

    def open(self) -> Facts:
        """The facts of the run that was recorded."""
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
        """The picks of the next selection."""
        return next(self._selections)

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """The next measurements."""
        return next(self._measurements)
