"""Replicates: models that the same method makes of simulated runs on a model (a parametric bootstrap).

Each replicate asks what the run has asked, gets the model's own answers with fresh simulated noise of the same scales,
and fits a model to them. How far replicates are from the model says how far the model is from the data. All of it
follows from what is released, so that it costs no privacy and needs no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.answers.pooling import Typical, few_of
from pointillist.answers.simulating import Fractions, RepeatedPlan, SimulatedDoor
from pointillist.data.columns import Merged
from pointillist.data.schema import Schema
from pointillist.framework import Algorithm, Family, Log, run
from pointillist.queries.base import Queries
from pointillist.queries.marginal import Marginal
from pointillist.refining import Refining
from pointillist.reporting import step

__all__ = ["Original", "Replicate", "Replicates", "model_arrays", "replicated", "to_arrays"]

STREAM = 0x7265706C
"""Separates the replicates from everything else that the same seed drives."""


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


@dataclass(frozen=True)
class Replicates:
    """Replicates of a release.

    Attributes:
        models: the replicates.
        seed: the seed of the simulation.
        typical: how far replicates are from the model, by the size of the answer.
    """

    models: tuple[Replicate, ...]
    seed: int
    typical: Typical

    def __len__(self) -> int:
        return len(self.models)

    def answers(self, queries: Sequence[Queries]) -> np.ndarray:
        """The answers of each replicate, one per line.

        Args:
            queries: the queries.
        """
        return np.stack([one.family.answers(one.params, queries) for one in self.models])


def replicated(original: Original, wanted: Sequence[Queries], count: int, seed: int) -> Replicates:
    """Simulate runs and fit their models.

    Args:
        original: the run that is repeated.
        wanted: the queries of the workload: errors of answers of similar size are pooled over them.
        count: the number of replicates.
        seed: the seed of the simulation; the i-th replicate does not depend on how many there are.
    """
    models = []
    for i in range(count):
        step("replicating", i, count)
        models.append(_simulated(original, np.random.SeedSequence(seed, spawn_key=(STREAM, i))))
    step("replicating", count, count)
    asked = few_of(wanted)
    moved = np.stack([one.family.answers(one.params, asked) for one in models]) - original.fractions(asked)
    return Replicates(tuple(models), seed, Typical.of(original.fractions(asked), moved))


def _simulated(original: Original, source: np.random.SeedSequence) -> Replicate:
    """One replicate."""
    noise, fitting = source.spawn(2)
    rng = np.random.default_rng(noise)
    log, algorithm = original.log, original.algorithm
    schema = _reshared(original, rng)
    door = SimulatedDoor(original.fractions, log.estimated_total, log.facts, rng)
    if not any(entry.selected for entry in log.rounds):
        again = getattr(algorithm.update, "again", None)
        update = algorithm.update if again is None else again(log)
        algorithm = replace(algorithm, strategy=RepeatedPlan(log), update=update)
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
    for i, one in enumerate(replicates.models):
        found |= {f"model{i}_{name}": array for name, array in one.family.to_arrays(one.params).items()}
        merged = [column for column in one.schema.columns if isinstance(column, Merged)]
        if merged:
            found[f"shares{i}"] = np.concatenate([column.shares for column in merged])
    return found


def model_arrays(arrays: Mapping[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
    """The arrays of the i-th model.

    Args:
        arrays: those of all replicates.
        i: which one.
    """
    prefix = f"model{i}_"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
