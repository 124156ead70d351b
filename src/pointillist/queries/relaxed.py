"""Answers of relaxed rows: probability rows P (B x d'), each a product distribution over the attributes.

A row answers the query S with prod_{j in S} p_j; the answer of the whole is the mean over the rows. Whole marginals
are matrix products: the outer product of all attributes but the last, times the last one. A :class:`Plan` lays them
out so that products are shared. Its *nodes* are matrices

    (left columns x middle attribute)^T  right columns / B,

where the left columns belong to one or several sets of attributes before the middle one, and the right columns to
attributes after it. All three-way marginals of d attributes are d - 2 nodes, without waste. A loss is computed in
this node layout; only host code goes back to the flat answer vector.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.queries.workload import Workload

__all__ = ["Node", "Plan", "columns_of", "offsets_of", "query_answers"]

MOST_OUTER_BYTES = 256_000_000
"""The largest outer product held at a time: rows beyond it are taken chunk by chunk."""

MOST_WASTE = 1.5
"""Products of several prefixes are merged while they compute at most so many times the cells that are needed."""


def offsets_of(domain: Domain) -> np.ndarray:
    """Where each attribute's columns begin in the one-hot code; one more entry holds d'."""
    return np.concatenate([[0], np.cumsum(domain.sizes)])


def columns_of(workload: Workload, queries: np.ndarray) -> np.ndarray:
    """The one-hot columns of single queries, Q x k, where the widest marginal has k attributes.

    A shorter query is filled up with the column d', which stands for 1.
    """
    offsets = offsets_of(workload.domain)
    width = max(map(len, workload.marginals))
    columns = np.full((len(queries), width), offsets[-1], np.int32)
    owners = np.searchsorted(workload.offsets, queries, side="right") - 1
    for marginal in np.unique(owners):
        attributes = workload.marginals[marginal]
        at = np.flatnonzero(owners == marginal)
        cells = queries[at] - workload.offsets[marginal]
        values = np.unravel_index(cells, workload.domain.shape(attributes))
        for n, (attribute, value) in enumerate(zip(attributes, values, strict=True)):
            columns[at, n] = offsets[attribute] + value
    return columns


def query_answers(rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Answers of single queries by gather and product: columns is Q x k (:func:`columns_of`)."""
    ones = jnp.ones((rows.shape[0], 1), rows.dtype)
    padded = jnp.concatenate([rows, ones], axis=1)
    return jnp.prod(padded[:, columns], axis=2).mean(axis=0)


@dataclass(frozen=True)
class Node:
    """One matrix product: prefixes (each a set of left attributes), the middle attribute, the right attributes."""

    lefts: tuple[Attributes, ...]
    middle: int | None
    rights: tuple[int, ...]


class Plan:
    """How to answer all marginals of a workload by matrix products."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.domain = workload.domain
        self._offsets = offsets_of(self.domain)
        self.nodes = _nodes(workload)
        self.shapes = [(self._left_cells(node), self._right_cells(node)) for node in self.nodes]

    def _left_cells(self, node: Node) -> int:
        middle = 1 if node.middle is None else self.domain.sizes[node.middle]
        return sum(self.domain.cells_of(left) for left in node.lefts) * middle

    def _outer_cells(self, node: Node) -> int:
        """Numbers per row of the widest product: the middle attribute is joined with the narrower side."""
        if node.middle is None:
            return self._left_cells(node)
        middle, right = self.domain.sizes[node.middle], self._right_cells(node)
        left = self._left_cells(node) // middle
        return max(left, min(left, right) * middle)

    def _right_cells(self, node: Node) -> int:
        return sum(self.domain.sizes[i] for i in node.rights) if node.rights else 1

    @property
    def cells(self) -> int:
        """The number of cells computed, the few that no marginal asked for included."""
        return sum(a * b for a, b in self.shapes)

    @property
    def outer_width(self) -> int:
        """Numbers per row in the largest outer product."""
        return max(self._outer_cells(node) for node in self.nodes)

    def memory(self, rows: int) -> int:
        """Bytes that answering takes: the answers and the largest outer product (at most the bound)."""
        return 4 * self.cells + min(4 * rows * self.outer_width, MOST_OUTER_BYTES)

    def answers(self, rows: jax.Array) -> list[jax.Array]:
        """The node matrices of mean answers; differentiable."""
        chunk = max(1, MOST_OUTER_BYTES // (4 * self.outer_width))
        count = rows.shape[0]
        if count <= chunk:
            return [self._node(node, rows) / count for node in self.nodes]
        parts = -(-count // chunk)
        padded = jnp.concatenate([rows, jnp.zeros((parts * chunk - count, rows.shape[1]), rows.dtype)])

        @jax.checkpoint
        def add(total: list[jax.Array], part: jax.Array) -> tuple[list[jax.Array], None]:
            return [t + self._node(node, part) for t, node in zip(total, self.nodes, strict=True)], None

        start = [jnp.zeros(shape, rows.dtype) for shape in self.shapes]
        total, _ = jax.lax.scan(add, start, padded.reshape(parts, chunk, rows.shape[1]))
        return [t / count for t in total]

    def _node(self, node: Node, rows: jax.Array) -> jax.Array:
        if all(len(left) == 1 for left in node.lefts):
            left = self._run(tuple(left[0] for left in node.lefts), rows)
        else:
            left = jnp.concatenate([self._outer(left, rows) for left in node.lefts], axis=1)
        if not node.rights or node.middle is None:
            return left.sum(axis=0)[:, None]
        middle, right = self._block(node.middle, rows), self._run(node.rights, rows)
        if left.shape[1] <= right.shape[1]:
            return _row_outer(left, middle).T @ right
        product = left.T @ _row_outer(middle, right)  # the same cells in the same order, in another shape
        return product.reshape(left.shape[1] * middle.shape[1], right.shape[1])

    def _outer(self, attributes: Attributes, rows: jax.Array) -> jax.Array:
        if not attributes:
            return jnp.ones((rows.shape[0], 1), rows.dtype)
        out = self._block(attributes[0], rows)
        for attribute in attributes[1:]:
            out = _row_outer(out, self._block(attribute, rows))
        return out

    def _block(self, attribute: int, rows: jax.Array) -> jax.Array:
        return rows[:, int(self._offsets[attribute]) : int(self._offsets[attribute + 1])]

    def _run(self, attributes: Attributes, rows: jax.Array) -> jax.Array:
        """The columns of several attributes: one slice where they are neighbours."""
        if attributes[-1] - attributes[0] == len(attributes) - 1:
            return rows[:, int(self._offsets[attributes[0]]) : int(self._offsets[attributes[-1] + 1])]
        return jnp.concatenate([self._block(i, rows) for i in attributes], axis=1)

    @cached_property
    def positions(self) -> np.ndarray:
        """For every query of the workload its place in the raveled node matrices, one after the other."""
        where: dict[Attributes, tuple[int, Node, int, int]] = {}
        start = 0
        for node, (_, width) in zip(self.nodes, self.shapes, strict=True):
            middle = () if node.middle is None else (node.middle,)
            row = 0
            for left in node.lefts:
                column = 0
                for right in node.rights or (None,):
                    key = (*left, *middle, *(() if right is None else (right,)))
                    where[key] = (start + row * width + column, node, width, column)
                    column += 0 if right is None else self.domain.sizes[right]
                row += self.domain.cells_of((*left, *middle))
            start += row * width
        parts = []
        for marginal in self.workload.marginals:
            first, node, width, _ = where[marginal]
            last = self.domain.sizes[marginal[-1]] if node.rights else 1
            before = self.domain.cells_of(marginal) // last
            parts.append((first + np.arange(before)[:, None] * width + np.arange(last)).ravel())
        return np.concatenate(parts)

    def to_flat(self, laid: Any) -> np.ndarray:
        """Node matrices, raveled one after the other, as the workload's flat answer vector."""
        flat: np.ndarray = np.asarray(laid, np.float64)[self.positions]
        return flat

    def from_flat(self, values: np.ndarray) -> np.ndarray:
        """A flat vector in node layout, raveled; cells that no marginal asked for are 0."""
        laid = np.zeros(self.cells, np.float32)
        laid[self.positions] = values
        return laid

    def split(self, laid: jax.Array) -> list[jax.Array]:
        """A raveled node layout as node matrices."""
        ends = np.cumsum([a * b for a, b in self.shapes])[:-1].tolist()
        return [part.reshape(shape) for part, shape in zip(jnp.split(laid, ends), self.shapes, strict=True)]


def _row_outer(first: jax.Array, second: jax.Array) -> jax.Array:
    return (first[:, :, None] * second[:, None, :]).reshape(first.shape[0], -1)


def _nodes(workload: Workload) -> list[Node]:
    domain = workload.domain
    single = [Node((marginal,), None, ()) for marginal in dict.fromkeys(workload.marginals) if len(marginal) < 2]
    by_middle: dict[int, dict[Attributes, list[int]]] = defaultdict(lambda: defaultdict(list))
    for marginal in dict.fromkeys(workload.marginals):
        if len(marginal) >= 2:
            *left, middle, right = marginal
            by_middle[middle][tuple(left)].append(right)
    nodes: list[Node] = []
    for middle, lefts in sorted(by_middle.items()):
        merged = Node(tuple(sorted(lefts)), middle, tuple(sorted({r for rights in lefts.values() for r in rights})))
        needed = sum(domain.cells_of(left) * sum(domain.sizes[r] for r in rights) for left, rights in lefts.items())
        computed = sum(domain.cells_of(left) for left in lefts) * sum(domain.sizes[r] for r in merged.rights)
        if computed <= MOST_WASTE * needed:
            nodes.append(merged)
        else:
            nodes.extend(Node((left,), middle, tuple(sorted(rights))) for left, rights in sorted(lefts.items()))
    return single + nodes
