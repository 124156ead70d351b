"""What is measured for wanted queries: the form of them that has the least noise. It follows from public facts.

*Products.* The intervals of an ordered attribute follow from its values, from themselves, or from a tree of intervals,
in which every level cuts the codes into parts of the level above. With F the wanted intervals of an attribute (codes x
intervals) and A the measured ones, the best linear estimate of the wanted answers has the mean variance

    s(A)  trace(F^T (A A^T)^+ F) / m,          s(A) = the largest number of intervals of A that hold for one code,

for a noise of variance 1 times the squared sensitivity. Both factors multiply over the attributes of a product (the
sensitivity under add-remove, which is half of that under replace at least), so each attribute is decided by itself.

*Halfspaces* of one direction with several thresholds are sums of slabs, of which a person changes two: these are
measured. *Predicates* are measured as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product

__all__ = ["backbone", "best_intervals", "measured_form", "tree"]

BRANCHES = (2, 3, 4, 5, 6, 8, 10, 16)
"""How many parts a part of a tree is cut into."""

MOST_CODES = 600
"""Attributes with more codes are measured by their values: the choice would take too long."""


def measured_form(queries: Queries, domain: Domain) -> Queries:
    """What is measured in place of some wanted queries, which follow from it.

    Args:
        queries: the wanted queries.
        domain: the attributes.
    """
    if isinstance(queries, Product):
        pairs = zip(queries.scope, queries.factors, strict=True)
        return Product.of(domain, {i: best_intervals(factor) for i, factor in pairs})
    if isinstance(queries, Halfspaces):
        slabs = queries.slabs()
        squares = [one.sensitivity(Relation.REPLACE).l2_squared for one in (slabs, queries)]
        return slabs if squares[0] < squares[1] else queries
    return queries


@lru_cache(maxsize=1024)
def best_intervals(wanted: Intervals) -> Intervals:
    """The intervals of an attribute that are measured for some wanted ones.

    Args:
        wanted: the wanted intervals.
    """
    values = Intervals.values(wanted.size)
    if wanted.identity or wanted.size > MOST_CODES:
        return values
    trees = (tree(wanted.size, branches) for branches in BRANCHES if branches < wanted.size)
    return min(dict.fromkeys((values, wanted, *trees)), key=lambda measured: _variance(measured, wanted))


def _variance(measured: Intervals, wanted: Intervals) -> float:
    """The mean variance of the wanted answers, in units of the noise."""
    a, f = measured.matrix.astype(float), wanted.matrix.astype(float)
    weights = np.linalg.lstsq(a, f, rcond=None)[0]  # f = a @ weights, of the smallest length
    return float(a.sum(axis=1).max() * (weights**2).sum() / f.shape[1])


def tree(size: int, branches: int) -> Intervals:
    """The codes, and parts of ``branches`` codes, of its square, and so on, without the whole.

    Args:
        size: the number of codes.
        branches: how many parts make a part of the next level.
    """
    widths = itertools.takewhile(lambda width: width < size, (branches**level for level in itertools.count()))
    parts = ((start, min(start + width, size)) for width in widths for start in range(0, size, width))
    return Intervals(size, tuple(dict.fromkeys(parts)))


def backbone(domain: Domain, wanted: Iterable[Queries]) -> tuple[Marginal, ...]:
    """The pairs of all attributes that queries over many attributes look at: what these say together follows for the
    most part from how their attributes are distributed and tied in pairs.

    Args:
        domain: the attributes.
        wanted: such queries.
    """
    used = sorted({i for queries in wanted for i in queries.scope})
    return tuple(Marginal.of(domain, pair) for pair in itertools.combinations(used, min(2, len(used))))
