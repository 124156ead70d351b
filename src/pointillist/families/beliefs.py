"""Inference on a junction tree: marginals of all cliques by two passes of messages, other marginals from them, rows.

With a table of logarithms L_k for each clique, P(x) = exp(sum_k L_k(x_k)) / Z. Messages run from the leaves to the
root, and back:

    up:    m_k(s) = ln of the sum of exp(L_k) over x_k with separator s, which is added to the parent's table,
    down:  P_k(x) = exp(L_k(x) - m_k(s)) P(s), where P(s) is the parent's marginal of the separator.

The way up is in logarithms, so that potentials may be as far apart as they like. Then P(x) = prod_k P_k(x_k) / prod_k
P(s_k), from which every other marginal follows: the cliques between its attributes are joined, and what is no longer
needed is summed out on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.families.conditioning import Allowed
from pointillist.families.histogram import sum_out
from pointillist.families.junction import JunctionTree
from pointillist.families.sampling import stratified

__all__ = ["Beliefs", "calibrate", "spread"]

TINY = 1e-300
"""Probabilities below it count as 0: nothing is divided by them."""

NEVER = -1e6
"""The logarithm of what cannot be."""

SAFE = 600.0
"""Logarithms that are no further apart can be turned into numbers together."""


def spread(scope: Attributes, clique: Attributes, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape in which a table over ``scope`` is multiplied with one over ``clique``."""
    return tuple(sizes[i] if i in scope else 1 for i in clique)


def summed(table: np.ndarray, clique: Attributes, scope: Attributes) -> np.ndarray:
    """The sums of a table over all attributes outside ``scope``, with one axis for each that is left."""
    if scope == clique:
        return table
    kept = tuple(n for n, i in enumerate(clique) if i in scope)
    return sum_out(table, kept).reshape([table.shape[n] for n in kept])


def calibrate(tree: JunctionTree, sizes: Sequence[int], tables: list[np.ndarray]) -> float:
    """Turn the logarithms of the cliques' tables into their marginals, in place; returns ln Z."""
    sums: list[np.ndarray] = [np.ones(())] * len(tables)
    for node in range(len(tables) - 1, -1, -1):
        clique, separator, parent = tree.cliques[node], tree.separators[node], tree.parents[node]
        logs = tables[node]
        most = logs.max()
        if most - logs.min() > SAFE:  # the largest for each value of the separator, so that no sum is 0
            outside = tuple(n for n, i in enumerate(clique) if i not in separator)
            most = logs.max(axis=outside, keepdims=True)
        logs -= most
        np.exp(logs, out=logs)
        sums[node] = summed(logs, clique, separator)
        message = np.log(sums[node]) + most.reshape(sums[node].shape if most.size > 1 else ())
        if parent >= 0:
            tables[parent] += message.reshape(spread(separator, tree.cliques[parent], sizes))
    tables[0] /= sums[0]
    for node in range(1, len(tables)):
        separator, parent = tree.separators[node], tree.parents[node]
        ratio = summed(tables[parent], tree.cliques[parent], separator) / sums[node]
        tables[node] *= ratio.reshape(spread(separator, tree.cliques[node], sizes))
    return float(message)


def logs_of(values: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities, finite for 0."""
    return np.where(values < TINY, NEVER, np.log(np.maximum(values, TINY)))


class Beliefs:
    """A calibrated junction tree: the marginal of each clique, and what follows from them."""

    def __init__(self, tree: JunctionTree, sizes: Sequence[int], tables: list[np.ndarray]) -> None:
        self.tree = tree
        self.sizes = tuple(sizes)
        self.tables = tables
        self._sums: dict[tuple[int, Attributes], np.ndarray] = {}
        self._joined: dict[tuple[int, int, Attributes], np.ndarray] = {}

    def marginal(self, scope: Attributes) -> np.ndarray:
        """The probability of each cell of a scope, one axis per attribute."""
        home = self.tree.home(scope, self.sizes)
        if home is not None:
            return self._of(home, scope)
        shared = [(len(set(clique) & set(scope)), -self.tables[n].size) for n, clique in enumerate(self.tree.cliques)]
        root = max(range(len(shared)), key=shared.__getitem__)
        return self._join(root, -1, scope)

    def marginals(self, scopes: Sequence[Attributes]) -> list[np.ndarray]:
        """Several marginals. What they share is computed once, and not kept afterwards."""
        try:
            return [self.marginal(scope) for scope in scopes]
        finally:
            self._sums.clear()
            self._joined.clear()

    def _of(self, node: int, scope: Attributes) -> np.ndarray:
        """The marginal of a clique over some of its attributes."""
        if (node, scope) not in self._sums:
            self._sums[node, scope] = summed(self.tables[node], self.tree.cliques[node], scope)
        return self._sums[node, scope]

    def _join(self, node: int, towards: int, wanted: Attributes) -> np.ndarray:
        """P(wanted), for -1; else P(wanted | separator) for attributes beyond the separator between a node and its
        neighbour ``towards``, with the axes of both in increasing order."""
        if (node, towards, wanted) in self._joined:
            return self._joined[node, towards, wanted]
        tree, clique = self.tree, self.tree.cliques[node]
        edge = self._separator(node, towards) if towards >= 0 else ()
        outside = [i for i in wanted if i not in clique]
        parts = []  # for each neighbour beyond which attributes are wanted: the separator and them
        for other in tree.neighbours[node]:
            beyond = tuple(i for i in outside if i in tree.sides[node, other]) if other != towards else ()
            if beyond:
                parts.append((self._separator(node, other), beyond, other))
        own = {i for i in wanted if i in clique} | set(edge)
        axes = tuple(i for i in clique if i in own.union(*(part[0] for part in parts)))
        table = self._of(node, axes)
        for at, (separator, beyond, other) in enumerate(parts):
            needed = own.union(*(part[0] for part in parts[at + 1 :]))
            kept = tuple(sorted(i for i in axes if i in needed or i not in clique)) + beyond
            conditional = self._join(other, node, beyond)
            table = contract(table, axes, conditional, tuple(sorted(separator + beyond)), tuple(sorted(kept)))
            axes = tuple(sorted(kept))
        if towards >= 0:
            given = self._of(node, edge).reshape(spread(edge, axes, self.sizes))
            table = np.divide(table, given, out=np.zeros_like(table), where=given > TINY)
        self._joined[node, towards, wanted] = table
        return table

    def _separator(self, a: int, b: int) -> Attributes:
        return self.tree.separators[a] if self.tree.parents[a] == b else self.tree.separators[b]

    def given(self, allowed: Allowed) -> tuple[Beliefs, float]:
        """The distribution of the rows that are kept on a condition, and their share."""
        tree, tables = self.tree, []
        for node, (clique, separator) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
            below = logs_of(self._of(node, separator)) if node else np.zeros(())
            tables.append(logs_of(self.tables[node]) - below.reshape(spread(separator, clique, self.sizes)))
        for attribute, shares in allowed.items():
            home = tree.home((attribute,), self.sizes)
            assert home is not None
            tables[home] += logs_of(shares).reshape(spread((attribute,), tree.cliques[home], self.sizes))
        share = math.exp(calibrate(tree, self.sizes, tables))
        return Beliefs(tree, self.sizes, tables), share

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, ...]:
        """Rows: clique by clique, given what was drawn before. Of the rows that share the values of a separator, each
        comes from another of equal slices of the distribution of the rest, in random order."""
        codes: dict[int, np.ndarray] = {}
        for node, (clique, separator) in enumerate(zip(self.tree.cliques, self.tree.separators, strict=True)):
            rest = tuple(i for i in clique if i not in separator)
            if not separator:
                places = stratified(rng, self.tables[node].ravel(), rows)
            else:
                order = tuple(clique.index(i) for i in separator + rest)
                table = self.tables[node].transpose(order).ravel()
                shape = [self.sizes[i] for i in separator]
                keys = np.ravel_multi_index([codes[i] for i in separator], shape)
                places = _stratified_within(rng, table, keys, math.prod(self.sizes[i] for i in rest))
            codes.update(zip(rest, np.unravel_index(places, [self.sizes[i] for i in rest]), strict=True))
        return tuple(codes[i] for i in range(len(self.sizes)))


def _stratified_within(rng: np.random.Generator, table: np.ndarray, keys: np.ndarray, width: int) -> np.ndarray:
    """For each row a position below ``width``, by the weights of the row of ``table`` that its key names."""
    rows = len(keys)
    order = np.lexsort((rng.random(rows), keys))
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered)
    share = np.searchsorted(ordered, ordered, side="right") - first
    points = (np.arange(rows) - first + rng.random(rows)) / share
    cumulative = np.concatenate([[0.0], np.cumsum(table)])
    low, high = cumulative[ordered * width], cumulative[(ordered + 1) * width]
    found = np.searchsorted(cumulative[1:], low + points * (high - low), side="right") - ordered * width
    places = np.empty(rows, np.int64)
    places[order] = np.clip(found, 0, width - 1)
    return places


def contract(
    first: np.ndarray, first_axes: Attributes, second: np.ndarray, second_axes: Attributes, kept: Attributes
) -> np.ndarray:
    """The product of two tables, summed over the attributes outside ``kept``: one product of matrices. Attributes that
    only one of them has must be kept."""
    both = set(first_axes) & set(second_axes)
    batch = [i for i in kept if i in both]
    inner = sorted(both - set(batch))
    left = [i for i in first_axes if i not in both]
    right = [i for i in second_axes if i not in both]
    size = dict(zip(first_axes, first.shape, strict=True)) | dict(zip(second_axes, second.shape, strict=True))

    def arranged(table: np.ndarray, axes: Attributes, order: list[list[int]]) -> np.ndarray:
        turned = table.transpose([axes.index(i) for group in order for i in group])
        return turned.reshape([math.prod(size[i] for i in group) for group in order])

    product = arranged(first, first_axes, [batch, left, inner]) @ arranged(second, second_axes, [batch, inner, right])
    axes = batch + left + right
    turned: np.ndarray = product.reshape([size[i] for i in axes]).transpose([axes.index(i) for i in kept])
    return turned
