"""Replicates: models that the same method makes of simulated runs on a model (a parametric bootstrap).

Each replicate asks what the run has asked, gets the answers of a *pilot* with fresh simulated noise of the same scales,
and fits a model to them. How far replicates are from the pilot says how far the model is from the data. All of it
follows from what is released, so that it costs no privacy and needs no data.

The pilot takes the place of the private table. The model itself would be too smooth for it: dependencies that the fit
has shrunken once are shrunken by less the second time, so that replicates would come out too close. The pilot is
therefore fitted like the model but with a tenth of the shrinkage, which leaves dependencies about as strong as in the
data, with some noise. Where the noise calls for more shrinkage than usual (s > 1), a tenth of it would still leave
none, and replicates would know nothing of what the fit has taken from the data: there it is a tenth of the usual. For
methods without shrinkage the pilot is the model, and intervals are widened instead.

Replicates do not depend on each other. Where they only fit, they share the compiled program of the pilot and are made
in threads, which XLA leaves free while it computes. A replicate has its own seed, so that it is the same in any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pointillist.answers.pooling import MOST_CELLS, Typical, few_of
from pointillist.answers.simulating import Fractions, RepeatedPlan, SimulatedDoor
from pointillist.answers.views import marginals_of
from pointillist.data.columns import Merged
from pointillist.data.domain import Attributes
from pointillist.data.parquet import memory_here
from pointillist.data.schema import Schema
from pointillist.data.threads import cores
from pointillist.errors import PointillistError
from pointillist.framework import Algorithm, Family, Log, Replay, run
from pointillist.queries.base import Queries
from pointillist.queries.marginal import Marginal
from pointillist.refining import Refining
from pointillist.reporting import reporting_to, step

__all__ = ["PILOT", "Original", "Replicate", "Replicates", "model_arrays", "replicated", "to_arrays"]

STREAM = 0x7265706C
"""Separates the replicates from everything else that the same seed drives."""

SHRUNKEN = 0.1
"""How many times as strong the shrinkage of the pilot is: as that of the model, and of one with s = 1 at most."""

SMOOTH = 1.3
"""By what distances are multiplied where the pilot is the model itself."""

SHARE_OF_MEMORY = 0.5
"""The share of the memory of this machine that replicates that are made together may take, by an estimate."""

PILOT = "pilot_"
"""Before the names of the saved arrays of the pilot."""


@dataclass(frozen=True)
class Original:
    """The run that is repeated.

    Attributes:
        algorithm: its method.
        family, params: its model.
        log: its transcript.
        schema: its columns.
        fine: the columns as they were given and what was measured of fine ones, if there were any.
    """

    algorithm: Algorithm[Any]
    family: Family[Any]
    params: Any
    log: Log
    schema: Schema
    fine: tuple[Schema, Log] | None = None

    def fractions(self, queries: Sequence[Queries]) -> np.ndarray:
        """The answers of its model."""
        return self.family.answers(self.params, queries) if queries else np.zeros(0)


@dataclass(frozen=True)
class Replicate:
    """A model of a simulated run.

    Attributes:
        family, params: the model.
        total: the number of rows as the simulated run has estimated it.
        schema: the columns; shares inside of merged groups are those of the simulated run.
    """

    family: Family[Any]
    params: Any
    total: float
    schema: Schema

    def answers(self, queries: Sequence[Queries]) -> np.ndarray:
        """The answers of the model.

        Args:
            queries: the queries.
        """
        return self.family.answers(self.params, queries)


@dataclass(frozen=True)
class Replicates:
    """Replicates of a release.

    Attributes:
        models: the replicates.
        pilot: the model that they repeat.
        seed: the seed of the simulation.
        typical: how far replicates are from the pilot, by the size of the answer, over the workload.
        inflated: by what their distances are multiplied, where the pilot is too smooth.
    """

    models: tuple[Replicate, ...]
    pilot: Replicate
    seed: int
    typical: Typical
    inflated: float = 1.0
    _pooled: dict[Attributes, Typical] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.models)

    def moved(self, queries: Sequence[Queries]) -> np.ndarray:
        """How far the answers of each replicate are from those of the pilot, one replicate per line.

        Args:
            queries: the queries.
        """
        return np.asarray(np.stack([one.answers(queries) for one in self.models]) - self.pilot.answers(queries))

    def typical_of(self, scopes: Sequence[Attributes]) -> list[Typical]:
        """How far replicates are from the pilot, by the size of the answer, over the marginal of each of some scopes;
        over the workload where that is too large.

        Args:
            scopes: the attributes that some queries are about, in increasing order.
        """
        domain = self.pilot.schema.domain
        small = {scope for scope in scopes if domain.cells_of(scope) <= MOST_CELLS}
        new = sorted(small - self._pooled.keys())
        every = (marginals_of(one.family, one.params, domain, new) for one in (self.pilot, *self.models))
        for scope, answers, *others in zip(new, *every, strict=True):
            self._pooled[scope] = Typical.of(answers, np.stack(others) - answers)
        return [self._pooled.get(scope, self.typical) for scope in scopes]


def replicated(
    original: Original, wanted: Sequence[Queries], count: int, seed: int, workers: int | None = None
) -> Replicates:
    """Simulate runs and fit their models.

    Args:
        original: the run that is repeated.
        wanted: the queries of the workload: errors of answers of similar size are pooled over them.
        count: the number of replicates.
        seed: the seed of the simulation; the i-th replicate does not depend on how many there are.
        workers: how many are made at the same time, where they only fit; by default as many as there are cores and as
            the memory carries. It changes no replicate.
    """
    rough = hasattr(original.algorithm.update, "again") and _repeatable(original.log)
    pilot = _pilot(original, seed) if rough else original
    sources = [np.random.SeedSequence(seed, spawn_key=(STREAM, i)) for i in range(count)]
    workers = min(count, _workers(original.family, wanted) if workers is None else workers) if rough else 1
    made = _together(pilot, sources, workers) if workers > 1 else (_simulated(pilot, source) for source in sources)
    models = []
    with closing(made):  # an interruption of a report, too, stops the threads
        step("replicating", 0, count)
        for one in made:
            models.append(one)
            step("replicating", len(models), count)
    truth = Replicate(pilot.family, pilot.params, float(pilot.log.estimated_total), pilot.schema)
    asked = few_of(wanted)
    answers = truth.answers(asked)
    moved = np.stack([one.answers(asked) for one in models]) - answers
    return Replicates(tuple(models), truth, seed, Typical.of(answers, moved), 1.0 if rough else SMOOTH)


def _workers(family: Family[Any], wanted: Sequence[Queries]) -> int:
    """How many replicates are made at the same time."""
    needed = getattr(family, "working_set", family.footprint)(wanted)
    return max(1, min(cores(), int(SHARE_OF_MEMORY * memory_here() / needed)))


class _Stop:
    """Shows nothing of what a thread is doing, and stops it when it is asked to."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def phase(self, name: str, total: int | None) -> None:
        """A phase begins."""

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """Steps are made: the place to stop."""
        if self.asked.is_set():
            raise PointillistError("another replicate has failed, or somebody has interrupted them")


def _together(
    pilot: Original, sources: Sequence[np.random.SeedSequence], workers: int
) -> Generator[Replicate, None, None]:
    """The replicates in their order, made in threads."""
    stop = _Stop()

    def made(source: np.random.SeedSequence) -> Replicate:
        with reporting_to(stop):
            return _simulated(pilot, source)

    with ThreadPoolExecutor(workers) as pool:
        found = [pool.submit(made, source) for source in sources]
        try:
            for one in found:
                yield one.result()
        except BaseException:  # an interruption, too: what runs need not be waited for
            stop.asked.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _repeatable(log: Log) -> bool:
    """Whether a simulated run can ask for just what was asked: if no round has selected anything by the data."""
    return not any(entry.selected for entry in log.rounds)


def _repeated(original: Original, shrunken: float = 1.0) -> Algorithm[Any]:
    """The method, asking again for what was asked and with what was chosen."""
    again = getattr(original.algorithm.update, "again", None)
    update = original.algorithm.update if again is None else again(original.log, shrunken)
    return replace(original.algorithm, strategy=RepeatedPlan(original.log), update=update)


def _pilot(original: Original, seed: int) -> Original:
    """The run with the pilot as its model: fitted to the same measurements, with less shrinkage."""
    source = np.random.SeedSequence(seed, spawn_key=(STREAM,))
    params, _ = run(_repeated(original, SHRUNKEN), Replay(original.log), int(source.generate_state(1)[0]))
    return replace(original, params=params)


def _simulated(pilot: Original, source: np.random.SeedSequence) -> Replicate:
    """One replicate."""
    noise, fitting = source.spawn(2)
    rng, log = np.random.default_rng(noise), pilot.log
    schema = _reshared(pilot, rng)
    door = SimulatedDoor(pilot.fractions, log.estimated_total, log.facts, rng)
    algorithm = _repeated(pilot) if _repeatable(log) else pilot.algorithm
    params, made = run(algorithm, door, int(fitting.generate_state(1)[0]))
    return Replicate(algorithm.family, params, float(made.estimated_total), schema)


def _reshared(original: Original, rng: np.random.Generator) -> Schema:
    """The schema with the shares inside of groups that simulated counts of the fine codes give."""
    if original.fine is None:
        return original.schema
    given, log = original.fine
    door = SimulatedDoor(_fine_fractions(original), original.log.estimated_total, log.facts, rng)
    measured = RepeatedPlan(log).step(0, log.facts, log, None, None)
    assert measured is not None
    made = measured.take(door, None, None, Log(door.open()), rng)
    return Refining(given).shared(made.measurements, door.open(), original.schema)


def _fine_fractions(original: Original) -> Fractions:
    """The answers of the model to queries of single fine columns."""
    known: dict[int, np.ndarray] = {}

    def of_codes(place: int) -> np.ndarray:
        column = original.schema.columns[place]
        if place not in known:
            assert isinstance(column, Merged)
            groups = original.fractions([Marginal((place,), (column.size,))])
            known[place] = groups[column.lookup] * np.array(column.shares)
        return known[place]

    return lambda queries: np.concatenate([one.of_marginal(of_codes(one.scope[0])) for one in queries])


def to_arrays(replicates: Replicates) -> dict[str, np.ndarray]:
    """Replicates as named arrays, as they are saved.

    Args:
        replicates: the replicates.
    """
    found = {
        "seed": np.array(replicates.seed, np.int64),
        "totals": np.array([one.total for one in replicates.models], np.float64),
        "sizes": replicates.typical.sizes,
        "errors": replicates.typical.errors,
    }
    found["inflated"] = np.array(replicates.inflated)
    named = {PILOT: replicates.pilot} | {f"model{i}_": one for i, one in enumerate(replicates.models)}
    for prefix, one in named.items():
        found |= {prefix + name: array for name, array in one.family.to_arrays(one.params).items()}
    for i, one in enumerate(replicates.models):
        merged = [column for column in one.schema.columns if isinstance(column, Merged)]
        if merged:
            found[f"shares{i}"] = np.concatenate([column.shares for column in merged])
    return found


def model_arrays(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays of one model.

    Args:
        arrays: those of all replicates and of the pilot.
        prefix: what the names of the model begin with.
    """
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
