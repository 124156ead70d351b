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
from pointillist.errors import InputError, Shown
from pointillist.queries.base import Sensitivity, answers_of, check_scope

__all__ = ["MOST_ATTRIBUTES", "Residual", "Residuals", "over_patterns", "rounded", "square_before_rounding"]

MOST_ATTRIBUTES = 18
"""Under replace the exact sensitivity compares two records in all 2^d ways to differ; beyond this d it is a bound, for
which groups of scopes with at most this number of attributes together are compared like that."""

MOST_GROUPS = 400
"""The largest number of such groups; scopes of further ones are bounded one by one."""

SCALES, PER_CELL = (1e7, 1e9), 450.0
"""Real weights are scaled to this sensitivity before they are rounded: between these two, and else this number for each
cell of the largest residual. One with c cells and the share s of the squared sensitivity has a weight of about
sqrt(s) / c times that: of three digits on most tables, and of 2 even for one of a million cells with a share of 2e-5.
Larger squares would not fit into 64 bits."""

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
    def times(self) -> int:
        """w prod m_i, by what the part is multiplied: the noise on a residual is as many times that on a cell."""
        return self.weight * self.size

    @property
    def square(self) -> int:
        """The squared length of each of its columns: w^2 prod m_i (m_i - 1)."""
        return self.weight**2 * self.size * self.freedom

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        """The residual of a flat marginal over the scope."""
        total = int(np.abs(table).sum(dtype=np.float64)) if table.dtype.kind == "i" else 0
        if total * self.weight * self.size > LARGEST:
            rule, hint = "must be small enough for residuals in 64 bits", "use marginals of fewer or coarser columns"
            raise InputError("table", Shown("more rows"), rule, hint)
        values = table.reshape(self.shape)
        for axis, m in enumerate(self.shape):
            values = m * values - values.sum(axis=axis, keepdims=True)
        flat: np.ndarray = self.weight * values.ravel()
        return flat

    to_marginal = of_marginal
    """The matrix is symmetric."""


def square_before_rounding(units: Sequence[Residual]) -> float:
    """The squared sensitivity that the weights of some residuals have before they are rounded.

    Args:
        units: all that may be measured together.
    """
    least, most = SCALES
    return min(most, max(least, PER_CELL * max(unit.size for unit in units))) ** 2


def rounded(units: Sequence[Residual], squares: np.ndarray, least: int = 0) -> Residuals:
    """Residuals with whole weights that are as the roots of given numbers, to a few digits.

    Args:
        units: residuals of weight 1.
        squares: w_A^2 of each, up to a common factor; none below 0, and not all of them 0.
        least: the least weight. With 0, residuals whose weight rounds to 0 are left out, except for the one that has
            the largest share of the squared sensitivity.
    """
    parts = squares * np.array([float(unit.square) for unit in units])
    weights = np.maximum(
        np.floor(np.sqrt(squares * (square_before_rounding(units) / parts.sum())) + 0.5).astype(np.int64), least
    )
    if not weights.any():
        weights[int(np.argmax(parts))] = 1
    pairs = zip(units, weights.tolist(), strict=True)
    return Residuals(tuple(Residual(unit.scope, unit.shape, weight) for unit, weight in pairs if weight))


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
        both = [without + m * (m - 1) * within, without - m * within]
        values = np.stack([np.asarray(one, values.dtype) for one in both], axis=axis)  # single objects become floats
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
        there are few attributes. Else this is done for groups of scopes, of which each has few attributes, and the
        smallest inner products are added up: a pattern that is the worst for all groups may not exist, so that this is
        a bound. So is what is done with scopes that are left: each is taken for itself, where its inner product is
        smallest if only the smallest attribute differs, -prod m_i (m_i - 1) / (m - 1).

        With few attributes the squared length is exact; the sum of the changes under replace is twice that of one
        record."""
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
        pairs = list(zip(spec["scopes"], spec["weights"], strict=True))
        if any(type(weight) is not int for _, weight in pairs):
            raise ValueError("weights must be whole numbers")
        scopes = [tuple(domain.names.index(name) for name in names) for names, _ in pairs]  # in the order of the file
        return cls(tuple(Residual(s, domain.shape(s), weight) for s, (_, weight) in zip(scopes, pairs, strict=True)))


@lru_cache(maxsize=64)
def _sensitivity(queries: Residuals, relation: Relation) -> Sensitivity:
    parts = queries.parts
    single = max(part.weight * part.freedom for part in parts)
    l1 = sum(part.weight * part.freedom * 2 ** len(part.scope) for part in parts)
    square = sum(part.square for part in parts)
    if relation is Relation.ADD_REMOVE:
        return Sensitivity(single, l1, square)
    single = max(part.weight * part.freedom * min(part.shape) // (min(part.shape) - 1) for part in parts)
    return Sensitivity(single, 2 * l1, 2 * (square - _least_product(parts)), exact=False)


def _least_product(parts: Sequence[Residual]) -> int:
    """A lower bound on the inner product of the columns of two records, in exact whole numbers; the smallest one if the
    parts have few attributes together."""
    groups, alone = _groups(parts)
    products = [_least_by_patterns(group) for group in groups]
    return sum(products) - sum(part.square // (min(part.shape) - 1) for part in alone)


def _groups(parts: Sequence[Residual]) -> tuple[list[list[Residual]], list[Residual]]:
    """Parts in groups that have at most ``MOST_ATTRIBUTES`` attributes, and those for which there are no groups left.

    The attributes, the smallest first, are cut into blocks, and a group has the parts that touch the same blocks or
    fewer of these. Blocks are so small that any blocks that a part can touch have few attributes together.
    """
    sizes = {i: m for part in parts for i, m in zip(part.scope, part.shape, strict=True)}
    if len(sizes) <= MOST_ATTRIBUTES:
        return [list(parts)], []
    width = MOST_ATTRIBUTES // max(len(part.scope) for part in parts)
    if width == 0:
        return [], list(parts)
    order = sorted(sizes, key=lambda i: (sizes[i], i))
    block = {i: n // width for n, i in enumerate(order)}
    found: dict[frozenset[int], list[Residual]] = {}
    for part in sorted(parts, key=lambda part: (-len({block[i] for i in part.scope}), part.scope)):
        touched = frozenset(block[i] for i in part.scope)
        home = touched if touched in found else next((one for one in found if touched < one), touched)
        found.setdefault(home, []).append(part)
    groups = sorted(found.values(), key=lambda group: -sum(part.square for part in group))
    return groups[:MOST_GROUPS], [part for group in groups[MOST_GROUPS:] for part in group]


def _least_by_patterns(parts: Sequence[Residual]) -> int:
    """The smallest inner product of the columns of two records, over all ways to differ."""
    sizes = {i: m for part in parts for i, m in zip(part.scope, part.shape, strict=True)}
    order = sorted(sizes)
    square = sum(part.square for part in parts)
    squares = np.zeros((2,) * len(order), np.int64 if square < LARGEST else object)  # no sum of some is larger
    for part in parts:
        squares[tuple(int(i in part.scope) for i in order)] = part.weight**2
    return int(over_patterns(squares, [sizes[i] for i in order]).min())
