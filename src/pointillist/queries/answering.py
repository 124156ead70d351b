"""Answers of relaxed rows: probability rows P (B x d'), each a product distribution over the attributes.

A row answers the query prod_i F_i[x_i, j_i] with prod_i (p_i F_i)_j_i; the answer of the whole is the mean over the
rows. A :class:`Lift` puts the columns p_i F_i next to those of the rows, so that every product is one of columns, as
the cells of a marginal are. Queries that are no products are answered by blocks of their own
(:mod:`pointillist.queries.blocks`). Whole marginals are matrix products, which a :class:`Layout` shares. Its *nodes*
are matrices

    (left columns x middle attribute)^T  right columns / B,

where the columns on either side belong to one or several sets of attributes. All three-way marginals of d attributes
are d - 2 nodes, without waste. Where only some of the marginals are asked for, a node computes a few more, if these
cost less than another node would. Nodes of similar sizes form a *batch*: they are padded to one shape and computed
together, so that a layout of hundreds of nodes is a program of a few dozen products, which is quick to compile. A loss
is computed in this layout; only host code goes back to the flat answer vector.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.errors import InputError, Shown
from pointillist.queries.base import Queries
from pointillist.queries.blocks import SampledBlock, blocks_of, whole_of
from pointillist.queries.cells import Cells
from pointillist.queries.intervals import Intervals

__all__ = ["Batch", "Layout", "Lift", "Node", "query_answers"]

MOST_OUTER_BYTES = 256_000_000
"""The largest outer product held at a time: rows beyond it are taken chunk by chunk."""

NODE_COST = 8_000
"""What a node costs on top of its cells, in cells: a product of its own."""

BATCH_COST = 10_000
"""What a batch costs, in cells: its operations to dispatch at every step, and once to compile."""

BATCH_SHARE = 0.015
"""A batch must save this share of all cells, too: more batches than some dozens would take long to compile."""

COLUMN_COST = 15
"""What a column of an outer product costs, in cells: to multiply out, and back for the gradient."""

Rectangle = tuple[np.ndarray, np.ndarray]


class Lift:
    """The attributes of a domain, and one more for every factor other than the identity that some queries have.

    A row is lifted by putting p_i F_i, for every such factor F_i, behind its own columns.
    """

    def __init__(self, domain: Domain, queries: Iterable[Queries]) -> None:
        self._places: dict[tuple[int, Intervals], int] = {}
        self.width = 1
        sizes = list(domain.sizes)
        for one in queries:
            if one.factors is None:
                rule = "must be products of intervals to be selected one by one on relaxed rows"
                raise InputError("queries", Shown("others"), rule, "use group marginal, or a method on histograms")
            for attribute, factor in zip(one.scope, one.factors, strict=True):
                if not factor.identity and (attribute, factor) not in self._places:
                    self._places[attribute, factor] = len(sizes)
                    sizes.append(len(factor.bounds))
            self.width = max(self.width, len(one.scope))
        self.domain = Domain(tuple(map(str, range(len(sizes)))), tuple(sizes))
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        """Where the columns of each attribute begin; the last entry is the number of all columns."""

    def scope(self, queries: Queries) -> Attributes:
        """The lifted attributes whose columns multiply to the queries, in the order of their scope."""
        assert queries.factors is not None
        pairs = zip(queries.scope, queries.factors, strict=True)
        return tuple(i if factor.identity else self._places[i, factor] for i, factor in pairs)

    def rows(self, rows: jax.Array) -> jax.Array:
        """Rows with the columns of all factors; differentiable."""
        if not self._places:
            return rows
        parts = [
            rows[:, self.offsets[i] : self.offsets[i + 1]] @ jnp.asarray(factor.matrix, rows.dtype)
            for i, factor in self._places
        ]
        return jnp.concatenate([rows, *parts], axis=1)

    def columns(self, queries: Sequence[Queries]) -> np.ndarray:
        """The columns whose product answers each of a list of single queries: Q x k, for at most k attributes.

        A shorter query is padded with the column after the last one, which stands for 1.
        """
        columns = np.full((len(queries), self.width), self.offsets[-1], np.int32)
        for n, one in enumerate(queries):
            scope = self.scope(one)
            (cell,) = (0,) if one.cells is None else one.cells
            values = np.unravel_index(cell, self.domain.shape(scope))
            columns[n, : len(scope)] = self.offsets[list(scope)] + np.array(values)
        return columns


def query_answers(rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Answers of single queries by gather and product: columns is Q x k (:meth:`Lift.columns`), rows are lifted."""
    ones = jnp.ones((rows.shape[0], 1), rows.dtype)
    padded = jnp.concatenate([rows, ones], axis=1)
    return jnp.prod(padded[:, columns], axis=2).mean(axis=0)


@dataclass(frozen=True)
class Node:
    """One matrix product: sets of attributes on the left, one attribute or none in the middle, sets on the right."""

    lefts: tuple[Attributes, ...]
    middle: Attributes
    rights: tuple[Attributes, ...]

    @property
    def sides(self) -> tuple[tuple[Attributes, ...], ...]:
        return self.lefts, (self.middle,), self.rights


@dataclass(frozen=True)
class Batch:
    """Nodes that are computed together; ``widths``: columns on the left, in the middle and on the right of each."""

    nodes: tuple[Node, ...]
    widths: tuple[int, int, int]


class Layout:
    """How to answer a list of queries by matrix products."""

    def __init__(self, domain: Domain, queries: Sequence[Queries]) -> None:
        self.queries = tuple(queries)
        products = [one for one in queries if one.factors is not None]
        self.lift = Lift(domain, products)
        self.domain = self.lift.domain
        self.scopes = {one: self.lift.scope(one) for one in products}
        """The lifted attributes of each product: its answers are cells of the marginal over these."""
        nodes = _nodes(self.domain, dict.fromkeys(self.scopes.values()))
        self.batches = _batches(self.domain, nodes) if nodes else []
        self.blocks = blocks_of(domain, dict.fromkeys(whole_of(one) for one in queries if one.factors is None))
        self.shapes = [(len(b.nodes), b.widths[0] * b.widths[1], b.widths[2]) for b in self.batches]
        self.shapes += [(1, 1, sum(one.size for one in block.queries)) for block in self.blocks]

    @property
    def nodes(self) -> list[Node]:
        return [node for batch in self.batches for node in batch.nodes]

    @property
    def sampled(self) -> bool:
        """Whether some answers are estimated from records that are drawn."""
        return any(isinstance(block, SampledBlock) for block in self.blocks)

    @property
    def cells(self) -> int:
        """The number of cells computed, those that no query asked for included."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def outer_width(self) -> int:
        """Numbers per row in the columns of all nodes, or in the largest batch of outer products if they are more."""
        return max(1, int(self._columns.shape[1]), *(nodes * height for nodes, height, _ in self.shapes))

    @property
    def all_widths(self) -> int:
        """Numbers per row in the columns of all nodes and in all outer products."""
        return int(self._columns.shape[1]) + sum(nodes * height for nodes, height, _ in self.shapes)

    @property
    def chunk(self) -> int:
        """The number of rows that are multiplied out at a time."""
        return max(1, MOST_OUTER_BYTES // (4 * self.outer_width))

    def memory(self, rows: int) -> int:
        """Bytes that answering takes: the answers and the largest outer products (at most the bound)."""
        return 4 * self.cells + min(4 * rows * self.outer_width, MOST_OUTER_BYTES)

    def answers(self, rows: jax.Array, key: jax.Array | None = None) -> list[jax.Array]:
        """The node matrices of mean answers, one array per batch, and those of the blocks; differentiable.

        Args:
            rows: the rows.
            key: for records that are drawn; without one they are always drawn by the same random numbers.
        """
        key = jax.random.key(0) if key is None else key
        others = [block.totals(rows, key).reshape(1, 1, -1) / rows.shape[0] for block in self.blocks]
        return [*self._products(rows), *others]

    def _products(self, rows: jax.Array) -> list[jax.Array]:
        """The node matrices of mean answers."""
        if not self.batches:
            return []
        rows = self.lift.rows(rows)
        chunk, count = self.chunk, rows.shape[0]
        if count <= chunk:
            return [total / count for total in self._totals(rows)]
        parts = -(-count // chunk)
        padded = jnp.concatenate([rows, jnp.zeros((parts * chunk - count, rows.shape[1]), rows.dtype)])

        @jax.checkpoint
        def add(total: list[jax.Array], part: jax.Array) -> tuple[list[jax.Array], None]:
            return [t + more for t, more in zip(total, self._totals(part), strict=True)], None

        start = [jnp.zeros(shape, rows.dtype) for shape in self.shapes[: len(self.batches)]]
        total, _ = jax.lax.scan(add, start, padded.reshape(parts, chunk, rows.shape[1]))
        return [t / count for t in total]

    def _totals(self, rows: jax.Array) -> list[jax.Array]:
        """The node matrices, summed over the rows.

        One gather takes the columns of all nodes, and one scatter their gradients: slices of every attribute for every
        node would be thousands of operations to compile.
        """
        padded = jnp.concatenate([rows.T, jnp.ones((1, rows.shape[0]), rows.dtype)])
        gathered = reduce(jnp.multiply, [padded[columns] for columns in self._columns])
        shapes = [(len(batch.nodes), width) for batch in self.batches for width in batch.widths]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1].tolist()
        parts = [
            part.reshape(*shape, -1).swapaxes(1, 2)
            for part, shape in zip(jnp.split(gathered, ends), shapes, strict=True)
        ]
        return [_product(*parts[at : at + 3]) for at in range(0, len(parts), 3)]

    @cached_property
    def _columns(self) -> np.ndarray:
        """The one-hot columns of every side of every batch; a column of a side is their product over the first axis.

        Shorter products and narrower nodes are padded with the column after the last one, which stands for 1.
        """
        offsets = self.lift.offsets
        depth = max(1, self.lift.width - 2)
        sides = []
        for batch in self.batches:
            for side, width in enumerate(batch.widths):
                columns = np.full((depth, len(batch.nodes), width), offsets[-1], np.int32)
                for n, node in enumerate(batch.nodes):
                    start = 0
                    for attributes in node.sides[side]:
                        end = start + self.domain.cells_of(attributes)
                        values = np.indices(self.domain.shape(attributes)).reshape(len(attributes), end - start)
                        columns[: len(attributes), n, start:end] = values + offsets[list(attributes), None]
                        start = end
                sides.append(columns.reshape(depth, -1))
        return np.concatenate(sides, axis=1) if sides else np.zeros((depth, 0), np.int32)

    @cached_property
    def positions(self) -> np.ndarray:
        """For every query its place in the raveled batches, one after the other."""
        where: dict[Attributes, tuple[Attributes, np.ndarray]] = {}
        asked = set(map(_sorted, self.scopes.values()))
        start = 0
        for batch in self.batches:
            grid = np.arange(math.prod(batch.widths)).reshape(batch.widths)
            for node in batch.nodes:
                for left, rows in self._spans(node.lefts):
                    for right, columns in self._spans(node.rights):
                        order = (*left, *node.middle, *right)
                        if _sorted(order) in asked:
                            values = self.domain.cells_of(node.middle)
                            where[_sorted(order)] = (order, start + grid[rows, :values, columns])
                start += grid.size
        others = {}
        for block in self.blocks:
            for one in block.queries:
                others[one] = np.arange(start, start + one.size)
                start += one.size
        return np.concatenate([self._laid(one, where, others) for one in self.queries])

    def _laid(
        self,
        queries: Queries,
        where: dict[Attributes, tuple[Attributes, np.ndarray]],
        others: dict[Queries, np.ndarray],
    ) -> np.ndarray:
        """The places of the answers to some queries, given those of marginals and of other queries."""
        if queries.factors is None:
            return (
                self._laid(queries.whole, where, others)[list(queries.taken)]
                if isinstance(queries, Cells)
                else others[queries]
            )
        scope = self.scopes[queries]
        order, cells = where[_sorted(scope)]
        laid = cells.reshape(self.domain.shape(order)).transpose([order.index(i) for i in scope]).ravel()
        return np.asarray(laid if queries.cells is None else laid[list(queries.cells)])

    def _spans(self, side: tuple[Attributes, ...]) -> list[tuple[Attributes, slice]]:
        """The columns of each set of attributes on a side."""
        ends = np.cumsum([self.domain.cells_of(attributes) for attributes in side]).tolist()
        return [(s, slice(end - self.domain.cells_of(s), end)) for s, end in zip(side, ends, strict=True)]

    def to_flat(self, laid: Any) -> np.ndarray:
        """Node matrices, raveled one after the other, as the flat answer vector."""
        flat: np.ndarray = np.asarray(laid, np.float64)[self.positions]
        return flat

    def from_flat(self, values: np.ndarray) -> np.ndarray:
        """A flat vector in node layout, raveled; cells that no query asked for are 0."""
        laid = np.zeros(self.cells, np.float32)
        laid[self.positions] = values
        return laid

    def added(self, values: np.ndarray) -> np.ndarray:
        """As :meth:`from_flat`; where several queries ask for the same cell, their values are added."""
        return np.bincount(self.positions, values, self.cells).astype(np.float32)

    def places(self, queries: Sequence[Queries]) -> list[np.ndarray]:
        """Where the answers to some of the queries are in the raveled batches."""
        ends = np.cumsum([one.size for one in self.queries])[:-1]
        found = dict(zip(self.queries, np.split(self.positions, ends), strict=True))
        return [found[one] for one in queries]

    @cached_property
    def repeats(self) -> bool:
        """Whether some cell is asked for more than once."""
        return len(np.unique(self.positions)) < len(self.positions)

    def merged(self, values: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Flat vectors in which all queries for the same cell have the mean of their values, weighted by precision, and
        the sum of their precisions."""
        sums, weighted = (np.bincount(self.positions, v, self.cells) for v in (precision, precision * values))
        means = np.divide(weighted, sums, out=np.zeros_like(sums), where=sums > 0)
        return means[self.positions], sums[self.positions]

    def split(self, laid: jax.Array) -> list[jax.Array]:
        """A raveled layout as one array per batch."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1].tolist()
        return [part.reshape(shape) for part, shape in zip(jnp.split(laid, ends), self.shapes, strict=True)]


def _product(left: jax.Array, middle: jax.Array, right: jax.Array) -> jax.Array:
    """Products for each node (the first axis), summed over the rows (the second one)."""
    outer = jnp.einsum("nbl,nbm->nblm", left, middle, precision="highest")  # its gradients are products, too
    return jnp.einsum("nba,nbc->nac", outer.reshape(*left.shape[:2], -1), right)


def _sorted(scope: Attributes) -> Attributes:
    return tuple(sorted(scope))


def _nodes(domain: Domain, marginals: Iterable[Attributes]) -> list[Node]:
    """Marginals (left, middle, right) with the same middle attribute, in as few nodes as are worthwhile.

    The attributes of a marginal are taken by size, the largest last: a product of many columns has short sides then.
    A marginal of one or two attributes has no middle one.
    """
    sizes, cells_of = domain.sizes, domain.cells_of
    by_middle: dict[Attributes, dict[Attributes, set[Attributes]]] = defaultdict(lambda: defaultdict(set))
    for marginal in marginals:
        *left, right = sorted(marginal, key=lambda i: sizes[i])
        middle: Attributes = (left.pop(),) if len(left) > 1 else ()
        by_middle[middle][tuple(left)].add((right,))
    nodes = []
    for middle, asked in sorted(by_middle.items()):
        lefts, rights = sorted(asked), sorted(set().union(*asked.values()))
        need = np.array([[right in asked[left] for right in rights] for left in lefts])
        heights = np.array([cells_of((*left, *middle)) for left in lefts], np.float64)
        widths = np.array([cells_of(right) for right in rights], np.float64)
        for rows, columns in _rectangles(need, heights, widths):
            sides = tuple(lefts[i] for i in rows), tuple(rights[j] for j in columns)
            narrow, wide = sorted(sides, key=lambda side: sum(map(cells_of, side)))
            nodes.append(Node(narrow, middle, wide))
    return nodes


def _rectangles(need: np.ndarray, heights: np.ndarray, widths: np.ndarray) -> list[Rectangle]:
    """Rectangles (rows, columns) that cover what is needed: all at once, by similar rows or by similar columns."""

    def cost(rectangles: list[Rectangle]) -> float:
        return sum(NODE_COST + float(heights[rows].sum() * widths[columns].sum()) for rows, columns in rectangles)

    whole = [(np.arange(len(heights)), np.arange(len(widths)))]
    by_row = _similar(need, heights, widths)
    by_column = [(rows, columns) for columns, rows in _similar(need.T, widths, heights)]
    return min(whole, by_row, by_column, key=cost)


def _similar(need: np.ndarray, heights: np.ndarray, widths: np.ndarray) -> list[Rectangle]:
    """Rows that need the same columns are one rectangle; two become one while that saves more than it wastes.

    Each pass joins all pairs that are each other's best.
    """
    wanted, rectangle_of = np.unique(need, axis=0, return_inverse=True)
    rectangle_of = rectangle_of.ravel()
    height = np.bincount(rectangle_of, heights)
    while len(wanted) > 1:
        width = wanted @ widths
        either = width[:, None] + width - (wanted * widths) @ wanted.T
        apart = height * width
        gain = NODE_COST + apart[:, None] + apart - (height[:, None] + height) * either
        np.fill_diagonal(gain, 0)
        best, here = gain.argmax(axis=1), np.arange(len(gain))
        first = here[(best[best] == here) & (here < best) & (gain[here, best] > 0)]
        if not len(first):
            break
        second = best[first]
        wanted[first] |= wanted[second]
        height[first] += height[second]
        now = here.copy()
        now[second] = first
        kept, now = np.unique(now, return_inverse=True)
        wanted, height, rectangle_of = wanted[kept], height[kept], now[rectangle_of]
    return [(np.flatnonzero(rectangle_of == i), np.flatnonzero(columns)) for i, columns in enumerate(wanted)]


def _batches(domain: Domain, nodes: list[Node]) -> list[Batch]:
    """Nodes are parted by the width of one side, where that saves most, as long as it saves the cost of a batch."""
    widths = np.array([[sum(map(domain.cells_of, side)) for side in node.sides] for node in nodes])
    least = max(BATCH_COST, BATCH_SHARE * widths.prod(axis=1).sum())

    def cost(count: Any, widest: np.ndarray) -> np.ndarray:
        left, middle, right = np.moveaxis(widest, -1, 0)
        return np.asarray(count * (left * middle * (right + COLUMN_COST) + COLUMN_COST * right))

    batches, parts = [], [np.arange(len(nodes))]
    while parts:
        part = parts.pop()
        widest = widths[part].max(axis=0)
        lowest, halves = cost(len(part), widest) - least, []
        for side in range(3) if len(part) > 1 else ():
            order = part[np.argsort(widths[part, side], kind="stable")]
            below = np.maximum.accumulate(widths[order])[:-1]
            above = np.maximum.accumulate(widths[order[::-1]])[-2::-1]
            count = np.arange(1, len(part))
            costs = cost(count, below) + cost(count[::-1], above)
            if costs.min() < lowest:
                lowest, at = costs.min(), int(costs.argmin()) + 1
                halves = [order[:at], order[at:]]
        parts += halves
        if not halves:
            left, middle, right = map(int, widest)
            batches.append(Batch(tuple(nodes[i] for i in part), (left, middle, right)))
    return batches
