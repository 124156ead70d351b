"""All combinations of codes of a scope, part by part, and what they say about a group of queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Sensitivity

__all__ = ["Held", "combinations", "most_different", "overlaps", "sensitivity_by_enumeration"]

MOST_ENUMERATED = 10_000_000
"""Sensitivities are found by enumeration up to this number of combinations of codes,"""

MOST_ANSWERED = 100_000_000
"""this number of (combination, query) pairs,"""

MOST_PATTERNS = 4_000
"""and, under replace, this number of different sets of queries that one record can satisfy."""

CHUNK = 1 << 16  # combinations at a time
CHUNK_ANSWERS = 1 << 24  # and answers


class Held(Protocol):
    """Predicates over a scope."""

    @property
    def scope(self) -> Attributes: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def size(self) -> int: ...

    def __hash__(self) -> int: ...

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray: ...


class Overlaps(NamedTuple):
    """The sets of queries that one record can satisfy.

    Attributes:
        most: the size of the largest.
        patterns: the different sets, as rows of 0 and 1; None if they are too many.
    """

    most: int
    patterns: np.ndarray | None


def combinations(scope: Attributes, shape: tuple[int, ...], width: int = 1) -> Iterator[list[np.ndarray]]:
    """All combinations of codes of a scope in C order, part by part: one array of codes per attribute of the domain,
    those outside of the scope empty.

    Args:
        scope: the attributes.
        shape: their sizes.
        width: the numbers that are computed for each.
    """
    cells, chunk = math.prod(shape), max(1, min(CHUNK, CHUNK_ANSWERS // width))
    for start in range(0, cells, chunk):
        everywhere: list[np.ndarray] = [np.zeros(0, np.intp)] * (max(scope) + 1)
        values = np.unravel_index(np.arange(start, min(start + chunk, cells)), shape)
        for attribute, codes in zip(scope, values, strict=True):
            everywhere[attribute] = codes
        yield everywhere


def overlaps(queries: Held) -> Overlaps | None:
    """Which sets of the queries one record can satisfy; None if there are too many combinations to look at.

    Args:
        queries: predicates over their scope.
    """
    cells, width = math.prod(queries.shape), getattr(queries, "whole", queries).size
    if cells > MOST_ENUMERATED or cells * width > MOST_ANSWERED:
        return None
    most, found = 0, np.zeros((0, -(-queries.size // 8)), np.uint8)
    for codes in combinations(queries.scope, queries.shape, width):
        held = queries.holds(codes)
        most = max(most, int(held.sum(axis=1).max()))
        if len(found) <= MOST_PATTERNS:
            found = np.unique(np.concatenate([found, np.packbits(held, axis=1)]), axis=0)
    few = len(found) <= MOST_PATTERNS
    return Overlaps(most, np.unpackbits(found, axis=1, count=queries.size).astype(np.int64) if few else None)


def most_different(patterns: np.ndarray) -> int:
    """The largest number of queries that hold for one of two records and not for the other.

    Args:
        patterns: rows of 0 and 1.
    """
    sizes = patterns.sum(axis=1)
    return int((sizes[:, None] + sizes - 2 * patterns @ patterns.T).max())


@lru_cache(maxsize=4096)
def sensitivity_by_enumeration(queries: Held, relation: Relation) -> Sensitivity:
    """A person adds or removes a set of queries that one record satisfies, or replaces it by another such set. All sets
    are enumerated, so that the largest change is exact. Where there are too many records to look at, no more than all
    m counts change by 1; where there are too many pairs of sets, no more than twice the largest set.

    Args:
        queries: predicates over their scope.
        relation: which tables are neighbours.
    """
    found = overlaps(queries)
    if found is None:
        return Sensitivity.of_indicators(queries.size, exact=False)
    if relation is Relation.ADD_REMOVE:
        return Sensitivity.of_indicators(found.most)
    if found.patterns is None:
        return Sensitivity.of_indicators(min(queries.size, 2 * found.most), exact=False)
    return Sensitivity.of_indicators(most_different(found.patterns))
