"""INDEPENDENT: distributions with independent columns. A family to copy, and the smallest method that uses it.

A member of the family is one distribution p_i per attribute, and D(x) = prod_i p_i(x_i). The method measures all
one-way marginals once and keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from pointillist import Grouping, Marginal, Method
from pointillist.algorithms.method import Task
from pointillist.data.domain import Domain
from pointillist.families.saved import FAMILIES
from pointillist.framework import Algorithm, Last, Log, Updated
from pointillist.queries.base import Queries
from pointillist.strategies import MeasureAll

__all__ = ["METHOD", "Independent"]

Params = tuple[np.ndarray, ...]
"""One distribution per attribute."""


@dataclass(frozen=True)
class Independent:
    """Products of one-way distributions."""

    domain: Domain
    kind = "independent"

    # What the parameters and the answers take, known before anything is allocated.
    def footprint(self, queries: Sequence[Queries]) -> int:
        return 8 * (sum(self.domain.sizes) + sum(one.size for one in queries))

    # D_0. All randomness of a family comes from the generator that it is given.
    def init(self, rng: np.random.Generator) -> Params:
        return tuple(np.full(size, 1 / size) for size in self.domain.sizes)

    # Answers to any kind of queries: make the marginal over the scope, and let the queries answer from it.
    def answers(self, params: Params, queries: Sequence[Queries]) -> np.ndarray:
        tables = (reduce(np.multiply.outer, [params[i] for i in one.scope]).ravel() for one in queries)
        return np.concatenate([one.of_marginal(table) for one, table in zip(queries, tables, strict=True)])

    def sample(self, rng: np.random.Generator, params: Params, rows: int) -> tuple[np.ndarray, ...]:
        return tuple(rng.choice(len(p), rows, p=p) for p in params)

    # Saving: arrays and a description that are inverse to reading. No method is needed to load a release.
    def to_arrays(self, params: Params) -> dict[str, np.ndarray]:
        return {f"p{i}": p for i, p in enumerate(params)}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Params:
        return tuple(arrays[f"p{i}"] for i in range(len(self.domain)))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


FAMILIES[Independent.kind] = lambda spec, domain, arrays: Independent(domain)


class KeepMeasured:
    """The update: the measured marginals, moved to the simplex."""

    def init(self, params: Params) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Params, memory: None, log: Log) -> Updated:
        by_attribute = {m.queries.scope[0]: m.feasible(log.total) for m in log.measurements}
        return Updated(tuple(by_attribute[i] for i in range(len(params))), None, {})


@dataclass(frozen=True)
class Settings:
    """There are none."""


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """One-way marginals, measured once."""
    ways = tuple(Marginal.of(task.domain, [name]) for name in task.domain.names)
    return Algorithm(Independent(task.domain), MeasureAll(ways), KeepMeasured(), Last())


METHOD = Method(
    name="independent",
    family="products of one-way distributions",
    strategy="measure all one-way marginals once; select nothing",
    update="the measured marginals",
    output="last",
    settings=Settings,
    build=build,
    groupings=(Grouping.MARGINAL,),
    fits=lambda domain: True,
    memory=lambda domain: 8 * sum(domain.sizes),
)
