"""Residuals: what a marginal says beyond the marginals inside of it, asked for many scopes together.

Counts over the attributes A split into orthogonal parts, one for each subset B of A. The part of A itself is what is
left when the means along every attribute are taken away. Times the sizes m_i of the attributes it is a whole number,

    R_A = w_A (m_1 I - J) x ... x (m_k I - J)   (Kronecker product; J is all ones),

so that noise can be added to it like to counts. Parts of different scopes are orthogonal. With weights w_A and one
noise scale for all of them, residuals are the strategies that answer marginals best: see
:mod:`pointillist.algorithms.residual_plan`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Sensitivity, answers_of, check_scope

__all__ = ["MOST_ATTRIBUTES", "Residual", "Residuals", "over_patterns"]

MOST_ATTRIBUTES = 16
"""Under replace the exact sensitivity compares two records in all 2^d ways to differ; beyond this d it is a bound."""

LARGEST = 2**62
"""No residual may be larger in absolute value, so that 64 bits hold it together with its noise."""


@dataclass(frozen=True)
class Residual:
    """The whole-number residual of one scope.

    Attributes:
        scope: increasing positions of attributes.
        shape: the size of each, at least 2.
        weight: w, by what it is multiplied.
    """

    scope: Attributes
    shape: tuple[int, ...]
    weight: int

    def __post_init__(self) -> None:
        check_scope(self.scope, len(self.shape))
        if min(self.shape) < 2 or self.weight < 1:
            raise ValueError("a residual must be of attributes with two values or more, and have a weight of 1 or more")

    @property
    def size(self) -> int:
        """The number of cells of its marginal."""
        return math.prod(self.shape)

    @property
    def freedom(self) -> int:
        """Its number of dimensions, prod (m_i - 1); w times that is its largest entry."""
        return math.prod(m - 1 for m in self.shape)

    @property
    def square(self) -> int:
        """The squared length of each of its columns: w^2 prod m_i (m_i - 1)."""
        return self.weight**2 * self.size * self.freedom

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The residual of a flat marginal over the scope."""
        total = int(np.abs(table).sum(dtype=np.float64)) if table.dtype.kind == "i" else 0
        if total * self.weight * self.size > LARGEST:
            raise ValueError("the table has too many rows for residuals in 64 bits")
        values = table.reshape(self.shape)
        for axis, m in enumerate(self.shape):
            values = m * values - values.sum(axis=axis, keepdims=True)
        flat: np.ndarray = self.weight * values.ravel()
        return flat

    to_marginal = of_marginal
    """The matrix is symmetric."""


def over_patterns(values: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """sum_A values[A] times the inner product of the columns of two records in R_A / w_A, for all ways to differ.

    The inner product of two columns of m I - J is m (m - 1) if they are the same and -m if not, and that of a Kronecker
    product is the product.

    Args:
        values: one number for each set of attributes A: an axis of length 2 per attribute, 1 if A has it.
        sizes: the number of values of each attribute.

    Returns:
        One number for each pattern: an axis of length 2 per attribute, 1 if the records differ in it.
    """
    for axis, m in enumerate(sizes):
        without, within = np.moveaxis(values, axis, 0)
        values = np.stack([without + m * (m - 1) * within, without - m * within], axis=axis)
    return values


@dataclass(frozen=True)
class Residuals:
    """Residuals of several scopes, one after the other, to which noise of one scale is added.

    Attributes:
        parts: one for each scope.
    """

    parts: tuple[Residual, ...]

    kind = "residuals"
    partition = False
    factors = None
    cells = None

    def __post_init__(self) -> None:
        if not self.parts or len({part.scope for part in self.parts}) < len(self.parts):
            raise ValueError("residuals must be of at least one scope, and of each once")
        if any(self._sizes[i] != m for part in self.parts for i, m in zip(part.scope, part.shape, strict=True)):
            raise ValueError("an attribute must have the same size in all residuals")

    @cached_property
    def _sizes(self) -> dict[int, int]:
        found = {i: m for part in self.parts for i, m in zip(part.scope, part.shape, strict=True)}
        return dict(sorted(found.items()))

    @property
    def scope(self) -> Attributes:
        return tuple(self._sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._sizes.values())

    @cached_property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """No predicate defines a residual."""
        raise ValueError("a residual is a difference of counts: no single record satisfies it")

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The residuals from the marginal over all attributes together, which only small domains have."""
        whole = table.reshape(self.shape)
        axes = {part.scope: tuple(n for n, i in enumerate(self.scope) if i not in part.scope) for part in self.parts}
        return answers_of(self, {scope: whole.sum(axis=away).ravel() for scope, away in axes.items()})

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        spread, at = np.zeros(self.shape), 0
        for part in self.parts:
            kept = [m if i in part.scope else 1 for i, m in self._sizes.items()]
            spread += part.to_marginal(values[at : at + part.size]).reshape(kept)
            at += part.size
        return spread.ravel()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every record has a column of the same length, so that adding or removing one changes the counts by
        sum_A w_A^2 prod m_i (m_i - 1) in squared length. Replacing x by y changes them by twice that minus twice the
        inner product of the two columns, which depends on where x and y differ only. All these patterns are compared if
        there are few attributes. Else each scope is taken for itself: its inner product is smallest where only the
        smallest attribute differs, -prod m_i (m_i - 1) / (m - 1).

        The squared length is exact then; the sum of the changes under replace is twice that of one record."""
        return _sensitivity(self, relation)

    def take(self, cells: Sequence[int]) -> Residuals:
        if list(cells) != list(range(self.size)):
            raise ValueError("residuals are measured together")
        return self

    def without(self, attribute: int) -> Residuals | None:
        kept = tuple(part for part in self.parts if attribute not in part.scope)
        return Residuals(kept) if kept else None

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        scopes = [[names[i] for i in part.scope] for part in self.parts]
        return {"kind": self.kind, "scopes": scopes, "weights": [part.weight for part in self.parts]}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Residuals:
        scopes = [domain.attributes(scope) for scope in spec["scopes"]]
        pairs = zip(scopes, spec["weights"], strict=True)
        return cls(tuple(Residual(scope, domain.shape(scope), int(weight)) for scope, weight in pairs))


@lru_cache(maxsize=64)
def _sensitivity(queries: Residuals, relation: Relation) -> Sensitivity:
    parts = queries.parts
    single = max(part.weight * part.freedom for part in parts)
    l1 = sum(part.weight * part.freedom * 2 ** len(part.scope) for part in parts)
    square = sum(part.square for part in parts)
    if relation is Relation.ADD_REMOVE:
        return Sensitivity(single, l1, square)
    single = max(part.weight * part.freedom * min(part.shape) // (min(part.shape) - 1) for part in parts)
    if len(queries.scope) <= MOST_ATTRIBUTES:
        return Sensitivity(single, 2 * l1, 2 * (square - _least_product(queries)), exact=False)
    apart = sum(2 * part.square * min(part.shape) // (min(part.shape) - 1) for part in parts)
    return Sensitivity(single, 2 * l1, apart, exact=False)


def _least_product(queries: Residuals) -> int:
    """The smallest inner product of the columns of two records, in exact whole numbers."""
    squares = np.zeros((2,) * len(queries.scope), object)
    for part in queries.parts:
        squares[tuple(int(i in part.scope) for i in queries.scope)] = part.weight**2
    return int(over_patterns(squares, queries.shape).min())
