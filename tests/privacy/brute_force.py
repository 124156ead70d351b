"""Sensitivities by brute force: from the definition of the queries, over every record that a person could have."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.cells import Cells
from pointillist.queries.marginal import Marginal

Rows = tuple[tuple[int, ...], ...]


def records_of(domain: Domain) -> Rows:
    """Every possible record."""
    return tuple(itertools.product(*(range(size) for size in domain.sizes)))


def boxes(queries: Queries) -> list[tuple[tuple[int, int], ...]]:
    """The queries by definition: the interval of each attribute of the scope, query by query."""
    if isinstance(queries, Cells):
        inside = boxes(queries.whole)
        return [inside[cell] for cell in queries.taken]
    if isinstance(queries, Marginal):
        sides = [[(value, value + 1) for value in range(size)] for size in queries.shape]
    else:
        assert queries.factors is not None
        sides = [list(factor.bounds) for factor in queries.factors]
    return list(itertools.product(*sides))


@lru_cache(maxsize=256)
def indicators(queries: Queries, domain: Domain) -> np.ndarray:
    """Which queries hold for which record: one row for every possible record."""
    inside = [list(zip(queries.scope, box, strict=True)) for box in boxes(queries)]
    held = [[all(low <= x[i] < high for i, (low, high) in box) for box in inside] for x in records_of(domain)]
    return np.array(held, np.int64)


def true_sensitivity(queries: Queries, domain: Domain, relation: Relation) -> Sensitivity:
    """The largest changes by a record that is added, removed, or replaced by any other one."""
    held = indicators(queries, domain)
    changes = np.abs(held if relation is Relation.ADD_REMOVE else held[:, None, :] - held).reshape(-1, queries.size)
    return Sensitivity(int(changes.max()), int(changes.sum(axis=1).max()), int((changes**2).sum(axis=1).max()))
