"""Tables of counts as sums of orthogonal parts: the answers of least squares, which may be below 0.

A part is a table over a few attributes whose means along each of them are 0. The marginal over S is

    sum over the parts A inside of S of part_A / prod_{i in S - A} m_i,   the part of no attributes being 1,

for any S, also where some of its parts are not there: they are 0. Such a table answers queries, but it is no
distribution. Rows are drawn attribute by attribute: each from a marginal with attributes that were drawn before it, as
many as have parts together, with its negative cells set to 0. Their answers are therefore not those of the parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.queries.base import Queries

__all__ = ["Components", "Parts", "marginal_of"]

Parts = dict[Attributes, np.ndarray]
"""A table for each set of attributes; none at all is the uniform distribution."""

PREFIX = "part"
"""Saved arrays are called by the positions of their attributes: ``part_0_3``."""


def marginal_of(scope: Attributes, shape: Sequence[int], parts: Parts) -> np.ndarray:
    """The marginal over some attributes, as fractions.

    Args:
        scope: the attributes.
        shape: the size of each.
        parts: the parts.
    """
    marginal = np.full(tuple(shape), 1 / math.prod(shape))
    for k in range(1, len(scope) + 1):
        for inside in itertools.combinations(range(len(scope)), k):
            part = parts.get(tuple(scope[n] for n in inside))
            if part is not None:
                outside = math.prod(m for n, m in enumerate(shape) if n not in inside)
                marginal += part.reshape([m if n in inside else 1 for n, m in enumerate(shape)]) / outside
    return marginal


@dataclass(frozen=True)
class Components:
    """The tables with parts over some sets of attributes; starts uniform.

    Attributes:
        domain: the attributes and their sizes.
        cells: the number of cells of all parts together, at most.
    """

    domain: Domain
    cells: int
    kind = "components"

    def footprint(self, queries: Sequence[Queries]) -> int:
        return 8 * self.cells + 8 * sum(one.size for one in queries)

    def init(self, rng: np.random.Generator) -> Parts:
        return {}

    def answers(self, params: Parts, queries: Sequence[Queries]) -> np.ndarray:
        tables = (marginal_of(one.scope, one.shape, params).ravel() for one in queries)
        return np.concatenate([one.of_marginal(table) for one, table in zip(queries, tables, strict=True)])

    def sample(self, rng: np.random.Generator, params: Parts, rows: int) -> tuple[np.ndarray, ...]:
        codes: list[np.ndarray] = []
        for i in range(len(self.domain)):
            scope = self._drawn_with(i, params)
            table = np.maximum(marginal_of(scope, self.domain.shape(scope), params), 0.0)
            codes.append(_draw(rng, table, [codes[j] for j in scope[:-1]], rows))
        return tuple(codes)

    def _drawn_with(self, attribute: int, params: Parts) -> Attributes:
        """The largest part that ends with an attribute, or the attribute alone."""
        ending = [scope for scope in params if scope[-1] == attribute]
        return max(ending, key=lambda scope: (len(scope), scope), default=(attribute,))

    def to_arrays(self, params: Parts) -> dict[str, np.ndarray]:
        return {"_".join(map(str, (PREFIX, *scope))): table for scope, table in params.items()}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Parts:
        scopes = {name: tuple(map(int, name.split("_")[1:])) for name in arrays}
        return {scope: np.asarray(arrays[name]) for name, scope in scopes.items()}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "cells": self.cells}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Components:
        """The family of a saved model."""
        return cls(domain, spec["cells"])


def _draw(rng: np.random.Generator, table: np.ndarray, given: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Codes of the last attribute of a table, given those of the others; uniform where the table is empty."""
    flat = table.reshape(-1, table.shape[-1])
    flat = np.where(flat.sum(axis=1, keepdims=True) > 0, flat, 1.0)
    ends = np.cumsum(flat / flat.sum(axis=1, keepdims=True), axis=1)
    at = np.ravel_multi_index(list(given), table.shape[:-1]) if given else np.zeros(rows, np.int64)
    codes = (rng.random(rows)[:, None] >= ends[at]).sum(axis=1)
    found: np.ndarray = np.minimum(codes, table.shape[-1] - 1)
    return found
