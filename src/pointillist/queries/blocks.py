"""Answers of relaxed rows to queries that are no products of intervals.

A row is a product distribution: its attributes are independent. That makes three answers possible.

*Halfspaces* are exact. The score of a row is a sum of independent whole numbers, whose characteristic function at the
frequency k is the product over the attributes of sum_v p_i[v] exp(-2 pi i k w_i[v] / N), for N above the largest score.
Summed over the rows, the inverse discrete Fourier transform gives the distribution of the score, and intervals of it
are sums. All of it is products and matrix products, so that gradients are exact, too.

*Predicates* are exact if no attribute occurs twice in a formula (:mod:`pointillist.queries.formulas`).

*Other predicates* are sampled. S records x are drawn from each row, and the answer is the mean of f(x). Its gradient is
that of the score function (REINFORCE), which the paper names for arbitrary queries,

    grad E f(x) = E (f(x) - b) grad log p(x),

with two measures against its variance. The records of a row are two independent halves, in each of which every
attribute takes one value from each of S / 2 equal slices of its distribution, in random order; and the baseline b of
one half is the mean of f over the other one. As they are independent, the gradient stays without bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.errors import InputError, Shown
from pointillist.queries.base import Queries
from pointillist.queries.cells import Cells
from pointillist.queries.enumerating import combinations
from pointillist.queries.formulas import MOST_JOINED, Formula, Leaf
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.predicates import Predicates

__all__ = ["Block", "HalfspaceBlock", "PredicateBlock", "SampledBlock", "answered_in_pieces", "blocks_of", "whole_of"]

MOST_NUMBERS = 2_000_000
"""The largest number of frequencies, for all rows and directions, that are held at a time."""

MOST_COMPILED = 2_000
"""More halfspaces are not answered by one compiled program, which would hold all of their weights."""

DRAWS = 64
"""S, the records drawn from each row."""


class Block(Protocol):
    """Some queries that are answered together."""

    @property
    def queries(self) -> Sequence[Queries]: ...

    def totals(self, rows: jax.Array, key: jax.Array) -> jax.Array:
        """Their answers, one after the other, summed over the rows; differentiable. ``key`` is for sampling."""
        ...


def blocks_of(domain: Domain, queries: Iterable[Queries]) -> list[Block]:
    """The blocks that answer some queries.

    Args:
        domain: the attributes.
        queries: queries that are no products, each once; of single ones all are answered that they are taken from.
    """
    found: list[Block] = []
    spaces: dict[Attributes, list[Halfspaces]] = {}
    for one in queries:
        if isinstance(one, Halfspaces):
            spaces.setdefault(one.crossed, []).append(one)
            continue
        formulas = one.formulas if isinstance(one, Predicates) else _tables(one)
        exact = all(formula.single for formula in formulas)
        found.append((PredicateBlock if exact else SampledBlock)(domain, one, formulas))
    return [*(HalfspaceBlock(domain, many) for many in spaces.values()), *found]


def answered_in_pieces(domain: Domain, queries: Iterable[Halfspaces], rows: jax.Array) -> dict[Halfspaces, np.ndarray]:
    """The mean answers of rows to any number of halfspaces, some directions at a time.

    Args:
        domain: the attributes.
        queries: the halfspaces.
        rows: the rows.
    """
    spaces: dict[Attributes, list[Halfspaces]] = {}
    for one in queries:
        spaces.setdefault(one.crossed, []).append(one)
    found: dict[Halfspaces, np.ndarray] = {}
    for many in spaces.values():
        frequencies = max(one.span for one in many) // 2 + 1
        most = max(1, MOST_NUMBERS // (rows.shape[0] * frequencies))
        for start in range(0, len(many), most):
            piece = many[start : start + most]
            totals = np.asarray(HalfspaceBlock(domain, piece).totals(rows, jax.random.key(0)), np.float64)
            ends = np.cumsum([one.size for one in piece])[:-1]
            found.update(zip(piece, np.split(totals / rows.shape[0], ends), strict=True))
    return found


def whole_of(queries: Queries) -> Queries:
    """The queries that some are taken from."""
    return whole_of(queries.whole) if isinstance(queries, Cells) else queries


def _tables(queries: Queries) -> tuple[Formula, ...]:
    """Queries of any kind over few attributes, each as a table."""
    if math.prod(queries.shape) > MOST_JOINED:
        rule = f"must be products, halfspaces, or over at most {MOST_JOINED:,} combinations for methods on relaxed rows"
        raise InputError("queries", Shown("others"), rule, "use a method on histograms or records")
    held = np.concatenate([queries.holds(codes) for codes in combinations(queries.scope, queries.shape)])
    return tuple(Leaf(queries.scope, queries.shape, one.astype(np.uint8).tobytes()) for one in held.T)


def _columns(domain: Domain, rows: jax.Array, attributes: Iterable[int]) -> dict[int, jax.Array]:
    ends = np.cumsum([0, *domain.sizes])
    return {i: rows[:, ends[i] : ends[i + 1]] for i in attributes}


class HalfspaceBlock:
    """Halfspaces that are crossed with the same attributes."""

    def __init__(self, domain: Domain, queries: Sequence[Halfspaces]) -> None:
        self.domain, self.queries = domain, tuple(queries)
        self.crossed = queries[0].crossed
        self.period = max(one.span for one in queries) + 1
        self.frequencies = self.period // 2 + 1

    @cached_property
    def _weights(self) -> dict[int, np.ndarray]:
        """For each attribute: directions x codes; -1 in directions that do not look at it."""
        used = sorted({i for one in self.queries for i in one.added})
        found = {i: np.full((len(self.queries), self.domain.sizes[i]), -1, np.int32) for i in used}
        for n, one in enumerate(self.queries):
            for i, weights in one.added.items():
                found[i][n] = weights
        return found

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The inverse transform of each interval: directions x intervals x frequencies, real and imaginary parts."""
        widest = max(len(one.intervals.bounds) for one in self.queries)
        k = np.arange(self.frequencies)
        both = np.where((k == 0) | (2 * k == self.period), 1.0, 2.0)  # a frequency and its opposite
        waves = np.exp(2j * np.pi * np.outer(np.arange(self.period), k) / self.period) * both / self.period
        running = np.concatenate([np.zeros((1, len(k))), np.cumsum(waves, axis=0)])
        found = np.zeros((len(self.queries), widest, len(k)), complex)
        for n, one in enumerate(self.queries):
            low, high = np.array(one.intervals.bounds).T
            found[n, : len(low)] = running[high] - running[low]
        return found.real.astype(np.float32), found.imag.astype(np.float32)

    @cached_property
    def _places(self) -> np.ndarray:
        """Where each answer is among directions x crossed values x intervals."""
        crossed = self.domain.cells_of(self.crossed)
        widest = self._sums[0].shape[1]
        return np.concatenate(
            [
                (np.arange(crossed)[:, None] * widest + np.arange(one.grid[1])).ravel() + n * crossed * widest
                for n, one in enumerate(self.queries)
            ]
        )

    def totals(self, rows: jax.Array, key: jax.Array) -> jax.Array:
        most = max(1, MOST_NUMBERS // (rows.shape[0] * self.frequencies))
        parts = -(-len(self.queries) // most)
        label = self._label(rows)
        if parts == 1:
            found = self._part(rows, label, {i: self._waves(w) for i, w in self._weights.items()}, self._sums)
        else:
            found = self._in_parts(rows, label, parts)
        answers: jax.Array = found.reshape(-1)[self._places]
        return answers

    def _in_parts(self, rows: jax.Array, label: jax.Array, parts: int) -> jax.Array:
        """Some directions at a time, whose waves are computed again for the gradient."""
        chunk = -(-len(self.queries) // parts)
        pad = parts * chunk - len(self.queries)

        def parted(array: np.ndarray) -> jax.Array:
            padded = np.concatenate([array, np.repeat(array[:1], pad, axis=0)])
            return jnp.asarray(padded.reshape(parts, chunk, *array.shape[1:]))

        @jax.checkpoint
        def part(given: Any) -> jax.Array:
            weights, sums = jax.lax.optimization_barrier(given)  # or the compiler would evaluate the waves
            return self._part(rows, label, {i: self._waves(w) for i, w in weights.items()}, sums)

        given = {i: parted(weights) for i, weights in self._weights.items()}, tuple(map(parted, self._sums))
        found: jax.Array = jax.lax.map(part, given)
        return found

    def _waves(self, weights: Any) -> tuple[Any, Any, Any]:
        """exp(-2 pi i k w / N) for each code, direction and frequency, as codes x all others, real and imaginary parts;
        and which directions look at the attribute, once for each frequency. Of NumPy or JAX, as the weights are."""
        xp = weights.__array_namespace__()
        k = xp.arange(self.frequencies, dtype=np.int32)
        turns = (weights.T[:, :, None] * k[None, None, :] % self.period).reshape(weights.shape[1], -1)
        angles = turns.astype(np.float32) * np.float32(2 * np.pi / self.period)
        looked_at = (weights[:, :1] >= 0) & (k[None, :] >= 0)
        return xp.cos(angles), -xp.sin(angles), looked_at.reshape(1, -1)

    def _label(self, rows: jax.Array) -> jax.Array:
        """The probability of each combination of crossed values, row by row."""
        found = jnp.ones((rows.shape[0], 1), rows.dtype)
        for own in _columns(self.domain, rows, self.crossed).values():
            found = (found[:, :, None] * own[:, None, :]).reshape(rows.shape[0], -1)
        return found

    def _part(
        self, rows: jax.Array, label: jax.Array, waves: dict[int, tuple[Any, Any, Any]], sums: tuple[Any, Any]
    ) -> jax.Array:
        """Some directions: directions x crossed values x intervals."""
        shape = (rows.shape[0], sums[0].shape[0], self.frequencies)
        real: Any = None
        imaginary: Any = None
        for i, own in _columns(self.domain, rows, waves).items():
            cosine, sine = (jnp.matmul(own, wave, precision="highest") for wave in waves[i][:2])
            if (self._weights[i] < 0).any():
                cosine, sine = jnp.where(waves[i][2], cosine, 1.0), jnp.where(waves[i][2], sine, 0.0)
            if real is None:
                real, imaginary = cosine, sine
            else:
                real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        both = (jnp.einsum("bl,bdk->dlk", label, x.reshape(shape), precision="highest") for x in (real, imaginary))
        summed = [jnp.einsum("dlk,dmk->dlm", x, s, precision="highest") for x, s in zip(both, sums, strict=True)]
        return summed[0] - summed[1]


class PredicateBlock:
    """Formulas in which no attribute occurs twice."""

    def __init__(self, domain: Domain, queries: Queries, formulas: Sequence[Formula]) -> None:
        self.domain, self.queries, self.formulas = domain, (queries,), tuple(formulas)

    def totals(self, rows: jax.Array, key: jax.Array) -> jax.Array:
        columns = _columns(self.domain, rows, self.queries[0].scope)
        return jnp.stack([formula.probability(columns).sum() for formula in self.formulas])


class SampledBlock:
    """Formulas whose answers are estimated from records drawn from the rows."""

    def __init__(self, domain: Domain, queries: Queries, formulas: Sequence[Formula], draws: int = DRAWS) -> None:
        self.domain, self.queries, self.formulas, self.draws = domain, (queries,), tuple(formulas), draws

    def totals(self, rows: jax.Array, key: jax.Array) -> jax.Array:
        columns = _columns(self.domain, rows, self.queries[0].scope)
        codes: dict[int, jax.Array] = {}
        logs: Any = 0.0
        for n, (i, own) in enumerate(columns.items()):
            codes[i] = self._drawn(jax.lax.stop_gradient(own), jax.random.fold_in(key, n))
            logs = logs + jnp.log(jnp.take_along_axis(own, codes[i], axis=1) + 1e-30)
        held = jnp.stack([formula.holds(codes).astype(rows.dtype) for formula in self.formulas], axis=2)
        halves = held.reshape(rows.shape[0], 2, -1, len(self.formulas))
        above = (halves - halves.mean(axis=2, keepdims=True)[:, ::-1]).reshape(held.shape)
        change = (logs - jax.lax.stop_gradient(logs))[:, :, None]  # is 0, and has the gradient of log p
        answers: jax.Array = (held + above * change).mean(axis=1).sum(axis=0)
        return answers

    def _drawn(self, own: jax.Array, key: jax.Array) -> jax.Array:
        """Codes of one attribute, rows x draws: in each half one from each equal slice of every row's distribution."""
        count, half = own.shape[0], self.draws // 2
        order, inside = jax.random.split(key)
        slices = jax.random.uniform(order, (count, 2, half)).argsort(axis=2).reshape(count, -1)
        points = (slices.astype(own.dtype) + jax.random.uniform(inside, slices.shape, own.dtype)) / half
        below = jnp.cumsum(own, axis=1)
        found = jax.vmap(lambda line, at: jnp.searchsorted(line, at, side="right"))(below, points * below[:, -1:])
        return jnp.minimum(found, own.shape[1] - 1)
