"""Products of intervals: prefixes and ranges of ordered attributes, crossed with each other and with single values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import Shown
from pointillist.queries.base import Sensitivity, check_scope
from pointillist.queries.cells import Cells
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal

__all__ = ["Product"]

MOST_PAIRS = 3_000_000
"""Sensitivities under replace are exact as long as no more combinations of pairs of codes must be compared at once."""


@dataclass(frozen=True)
class Product:
    """The queries phi(x) = prod_i F_i[x_i, j_i], for every choice of one column j_i of each factor.

    Attributes:
        scope: increasing positions of attributes.
        factors: the intervals F_i of each.
    """

    scope: Attributes
    factors: tuple[Intervals, ...]

    kind = "product"
    cells = None

    def __post_init__(self) -> None:
        check_scope(self.scope, len(self.factors))
        check(self.size < 2**53, "product", Shown(f"{self.size:,} queries"), "must have fewer", "use fewer intervals")

    @classmethod
    def of(cls, domain: Domain, factors: Mapping[str | int, Intervals | str]) -> Product | Marginal:
        """Products over attributes given by name or position, each with its intervals.

        ``"values"`` stands for one interval per code, ``"prefixes"`` for all intervals that begin at the first code.
        If all are values, the queries are those of a marginal, and this is what is returned.

        Args:
            domain: the attributes and their sizes.
            factors: the intervals of each attribute.
        """
        known = {"values": Intervals.values, "prefixes": Intervals.prefixes}
        by_attribute: dict[int, Intervals] = {}
        for name, given in factors.items():
            (attribute,) = domain.attributes([name])
            size = domain.sizes[attribute]
            found = known[one_of("intervals", given, known)](size) if isinstance(given, str) else given
            rule = f"must be over the {size} codes of {domain.names[attribute]!r}"
            check(found.size == size, "intervals", found.size, rule, "use the domain's size")
            check(attribute not in by_attribute, "attributes", name, "must be named once", "leave one out")
            by_attribute[attribute] = found
        scope = tuple(sorted(by_attribute))
        return _product(scope, tuple(by_attribute[i] for i in scope))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in self.factors)

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of columns of each factor."""
        return tuple(len(factor.bounds) for factor in self.factors)

    @property
    def size(self) -> int:
        return math.prod(self.grid)

    @property
    def partition(self) -> bool:
        """Whether every factor has one column for each code, in disjoint intervals that cover all codes."""
        return all((factor.depth == 1).all() for factor in self.factors)

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        rows = [factor.matrix[codes[i]] for i, factor in zip(self.scope, self.factors, strict=True)]
        held = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), rows)
        return np.asarray(held, bool)

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        sums = table.reshape(self.shape)
        for axis, factor in enumerate(self.factors):
            sums = factor.sums(sums, axis)
        return sums.ravel()

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        spread = values.reshape(self.grid)
        for axis, factor in enumerate(self.factors):
            spread = factor.spread(spread, axis)
        return spread.ravel()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """A record x satisfies prod_i a_i(x_i) of the queries, a_i(v) being the number of columns of F_i that hold
        for v. Adding or removing it changes that number of counts by 1. Replacing it by y changes

            prod_i a_i(x_i) + prod_i a_i(y_i) - 2 prod_i g_i(x_i, y_i)

        of them, g_i(v, w) being the number of columns that hold for both v and w; the largest value is found exactly,
        attribute by attribute (:func:`_most_changed`)."""
        if relation is Relation.ADD_REMOVE:
            return Sensitivity.of_indicators(math.prod(int(f.depth.max()) for f in self.factors))
        changed, exact = _most_changed(self.factors)
        return Sensitivity.of_indicators(changed, exact)

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> Product | Marginal | None:
        """Sums over the columns of the attribute's factor determine the other factors' products, if weights of these
        columns add up to 1 for every code."""
        dropped = self.factors[self.scope.index(attribute)]
        kept = [n for n, i in enumerate(self.scope) if i != attribute]
        if not kept or dropped.ones is None:
            return None
        return _product(tuple(self.scope[n] for n in kept), tuple(self.factors[n] for n in kept))

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        bounds = [[list(pair) for pair in factor.bounds] for factor in self.factors]
        return {"kind": self.kind, "attributes": [names[i] for i in self.scope], "intervals": bounds}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Product | Marginal:
        bounds = (tuple((int(low), int(high)) for low, high in pairs) for pairs in spec["intervals"])
        sizes = (domain.sizes[domain.index(name)] for name in spec["attributes"])
        factors = (Intervals(size, pairs) for size, pairs in zip(sizes, bounds, strict=True))
        return cls.of(domain, dict(zip(spec["attributes"], factors, strict=True)))


def _product(scope: Attributes, factors: tuple[Intervals, ...]) -> Product | Marginal:
    """The products of some factors; a marginal if it is one, so that the same queries are never asked twice."""
    if all(factor.identity for factor in factors):
        return Marginal(scope, tuple(factor.size for factor in factors))
    return Product(scope, factors)


@lru_cache(maxsize=1024)
def _most_changed(factors: tuple[Intervals, ...]) -> tuple[int, bool]:
    """The largest A + B - 2 G over pairs of records, and whether it is exact.

    A, B and G are products over the attributes of numbers a, b >= g >= 0. A pair with a larger a and b and a smaller g
    is at least as good, whatever the other attributes are, so only the pairs that no other one dominates are kept.
    Beyond the limit, a and b are taken as large as they get and g for 0, which can only make the value larger.
    """
    exact = True
    front = np.ones((1, 3), np.int64)
    for factor in factors:
        pairs = _pairs(factor)
        exact = exact and pairs is not None
        pairs = np.array([[factor.depth.max(), factor.depth.max(), 0]]) if pairs is None else pairs
        if len(front) * len(pairs) > MOST_PAIRS:
            exact = False
            front = np.append(front[:, :2].max(axis=0), 0)[None, :]
        front = _undominated((front[:, None, :] * pairs).reshape(-1, 3))
    return int((front[:, 0] + front[:, 1] - 2 * front[:, 2]).max()), exact


def _pairs(factor: Intervals) -> np.ndarray | None:
    """The triples (a, b, g) of all pairs of codes that no other one dominates; None if there are too many.

    Of nested columns g is the smaller of a and b, so that the larger one may as well be the largest of all.
    """
    if factor.identity:
        return np.array([[1, 1, int(factor.size == 1)]])
    if factor.nested:
        fewer = np.unique(factor.depth)
        most = np.full_like(fewer, fewer.max())
        return np.concatenate([np.stack([most, fewer, fewer], axis=1), np.stack([fewer, most, fewer], axis=1)])
    different = np.unique(factor.matrix, axis=0)
    if len(different) ** 2 > MOST_PAIRS:
        return None
    shared = np.rint(different.astype(float) @ different.T.astype(float)).astype(np.int64)  # exact
    own = np.diag(shared)
    return _undominated(np.stack(np.broadcast_arrays(own[:, None], own, shared), axis=-1).reshape(-1, 3))


def _undominated(triples: np.ndarray) -> np.ndarray:
    """The triples (a, b, g) for which no other one has an a and b at least as large and a g at most as large."""
    triples = np.unique(triples, axis=0)
    order = np.lexsort((-triples[:, 1], -triples[:, 0], triples[:, 2]))  # by g, then the largest a and b first
    kept: list[int] = []
    ranks = np.unique(triples[:, 0], return_inverse=True)[1]
    best = np.full(ranks.max() + 1, -1)  # for each a: the largest b so far of a triple with at least this a
    for n in order.tolist():
        rank, b = ranks[n], triples[n, 1]
        if best[rank] < b:
            kept.append(n)
            np.maximum(best[: rank + 1], b, out=best[: rank + 1])
    return triples[kept]
