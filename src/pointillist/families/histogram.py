"""All distributions over the domain X: one weight per cell.

The weights are one array with an axis per attribute, so that a query is a strided view of it and a marginal a sum
over axes; no cell is ever listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.conditioning import Allowed, require_possible
from pointillist.families.sampling import stratified
from pointillist.framework import Mixing
from pointillist.queries.base import Queries
from pointillist.queries.cells import Box, box_of, meet

__all__ = ["FLOOR", "Histogram", "Weights", "cell_factors", "marginals_of", "normalise", "sum_out"]

MOST_CELLS = 100_000_000
DOUBLE_CELLS = 10_000_000
"""Up to this number of cells the weights are 64-bit numbers, above it 32-bit ones (sums run axis by axis, so they stay
exact to about 1e-6, far below any privacy noise)."""

FLOOR = 1e-30
"""No weight falls below it: a weight of 0 could never rise again, and smaller numbers are slow to compute with."""


class Weights(Mixing[np.ndarray], Protocol):
    """A family of weights on fixed records: what MWEM and PEP work on. The records are those of the whole domain
    here, and those of a public table in :mod:`pointillist.families.support`."""

    def sums(self, params: np.ndarray, asked: Sequence[Queries]) -> list[np.ndarray]:
        """For each of the queries, the sums of the weights for which they hold (not divided by the sum of all)."""
        ...

    def scale(self, params: np.ndarray, queries: Queries, factors: np.ndarray) -> None:
        """Multiply the weights by the product of the factors of the queries that hold for them, in place."""
        ...

    def rescale(
        self,
        params: np.ndarray,
        asked: Sequence[Queries],
        at: int,
        factors: np.ndarray,
        sums: list[np.ndarray],
        mass: float,
    ) -> float:
        """Scale ``asked[at]`` and bring the ``sums`` of all that is ``asked`` up to date; returns the new mass."""
        ...


def cell_factors(queries: Queries, factors: np.ndarray) -> np.ndarray:
    """For each cell of the scope the product of the factors of the queries that hold for it."""
    if queries.partition and queries.size == int(np.prod(queries.shape)):  # a marginal: one query for each cell
        return factors
    product: np.ndarray = np.exp(queries.to_marginal(np.log(factors)))
    return product


def normalise(params: np.ndarray) -> None:
    """Make the weights sum to 1, in place, none of them below the floor."""
    params /= params.sum(dtype=np.float64)
    np.maximum(params, FLOOR, out=params)


@dataclass(frozen=True)
class Histogram:
    """Every distribution over the domain; starts uniform."""

    domain: Domain
    kind = "histogram"

    @staticmethod
    def fits(domain: Domain) -> bool:
        return domain.cells <= MOST_CELLS

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if self.domain.cells <= DOUBLE_CELLS else np.float32)

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of the weights."""
        return domain.cells * (8 if domain.cells <= DOUBLE_CELLS else 4)

    def footprint(self, queries: Sequence[Queries]) -> int:
        # While rows are drawn, the distribution function takes another 64-bit number per cell.
        return self.memory(self.domain) + 8 * self.domain.cells + 8 * sum(one.size for one in queries)

    def working_set(self, queries: Sequence[Queries]) -> int:
        """Bytes that a run takes at most: the weights, and what drawing rows from them needs."""
        return self.memory(self.domain) + 16 * self.domain.cells

    def init(self, rng: np.random.Generator) -> np.ndarray:
        return np.full(self.domain.sizes, 1 / self.domain.cells, self.dtype)

    def answers(self, params: np.ndarray, queries: Sequence[Queries]) -> np.ndarray:
        found = marginals_of(params, [one.scope for one in queries])
        return np.concatenate([one.of_marginal(found[one.scope].ravel()) for one in queries]).astype(np.float64)

    def sums(self, params: np.ndarray, asked: Sequence[Queries]) -> list[np.ndarray]:
        boxes = [box_of(one) for one in asked]
        wide = [one.scope for one, box in zip(asked, boxes, strict=True) if box is None]
        found = {wide[0]: sum_out(params, wide[0])} if len(wide) == 1 else marginals_of(params, wide)
        return [
            self._view(params, box).sum(dtype=np.float64, keepdims=True).ravel()
            if box is not None
            else one.of_marginal(found[one.scope].astype(np.float64).ravel())
            for one, box in zip(asked, boxes, strict=True)
        ]

    def scale(self, params: np.ndarray, queries: Queries, factors: np.ndarray) -> None:
        box = box_of(queries)
        if box is not None:
            view = self._view(params, box)
            np.maximum(view * factors[0], FLOOR, out=view)
            return
        shape, kept = _merge(params.shape, queries.scope)
        merged = params.reshape(shape)  # a view: the weights are contiguous
        by_cell = cell_factors(queries, factors).astype(params.dtype)
        merged *= by_cell.reshape([s if k else 1 for s, k in zip(shape, kept, strict=True)])
        np.maximum(merged, FLOOR, out=merged)

    def rescale(
        self,
        params: np.ndarray,
        asked: Sequence[Queries],
        at: int,
        factors: np.ndarray,
        sums: list[np.ndarray],
        mass: float,
    ) -> float:
        """A single query changes another one only on the records that satisfy both: only those are summed again."""
        boxes = [box_of(one) for one in asked]
        own = boxes[at]
        if own is None or any(box is None for box in boxes):
            self.scale(params, asked[at], factors)
            sums[:] = self.sums(params, asked)
            return float(sums[at].sum()) if asked[at].partition else float(params.sum(dtype=np.float64))
        gain = float(factors[0]) - 1
        before = self._view(params, own).sum(dtype=np.float64)
        for n, box in enumerate(boxes):
            both = None if box is None else meet(own, box)
            if both is not None:
                sums[n] = sums[n] + gain * self._view(params, both).sum(dtype=np.float64)
        self.scale(params, asked[at], factors)
        return mass + gain * float(before)

    def _view(self, params: np.ndarray, box: Box) -> np.ndarray:
        """The weights of the records in a box: a strided view."""
        sides = {i: low if high == low + 1 else slice(low, high) for i, (low, high) in box.items()}
        view: np.ndarray = params[(*(sides.get(i, slice(None)) for i in range(len(self.domain))), ...)]
        return view

    def sample(self, rng: np.random.Generator, params: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        return np.unravel_index(stratified(rng, params.ravel(), rows), self.domain.sizes)

    def sample_given(
        self, rng: np.random.Generator, params: np.ndarray, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """Rows of the cells that the condition allows, by their weights."""
        kept = [np.flatnonzero(allowed[i]) if i in allowed else np.arange(n) for i, n in enumerate(self.domain.sizes)]
        inside = params[np.ix_(*kept)].astype(np.float64)
        for i, shares in allowed.items():
            inside *= shares[kept[i]].reshape([-1 if n == i else 1 for n in range(inside.ndim)])
        require_possible(float(inside.sum() / params.sum(dtype=np.float64)))
        places = np.unravel_index(stratified(rng, inside.ravel(), rows), inside.shape)
        return tuple(codes[at] for codes, at in zip(kept, places, strict=True))

    def mix(self, first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
        return (1 - weight) * first + weight * second

    def to_arrays(self, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"weights": params}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(arrays["weights"]).reshape(self.domain.sizes)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Histogram:
        """The family of a saved model."""
        return cls(domain)


def sum_out(weights: np.ndarray, keep: Attributes) -> np.ndarray:
    """The flat sums of ``weights`` over all axes outside ``keep``, in 64 bits."""
    shape, kept = _merge(weights.shape, keep)
    sums = weights.reshape(shape)
    for axis in sorted((i for i, k in enumerate(kept) if not k), key=lambda i: -shape[i]):
        sums = sums.sum(axis=axis, keepdims=True, dtype=np.float64)
    return sums.astype(np.float64, copy=False).ravel()


def _merge(sizes: Sequence[int], keep: Attributes) -> tuple[list[int], list[bool]]:
    """The shape with neighbouring axes of one kind (kept or not) merged, and the kind of each: fewer, longer loops."""
    shape: list[int] = []
    kept: list[bool] = []
    for axis, size in enumerate(sizes):
        if kept and kept[-1] == (axis in keep):
            shape[-1] *= size
        else:
            shape.append(size)
            kept.append(axis in keep)
    return shape, kept


def marginals_of(weights: np.ndarray, marginals: Sequence[Attributes]) -> dict[Attributes, np.ndarray]:
    """The sums of ``weights`` over all axes but those of each marginal.

    One attribute at a time is decided: the marginals without it are computed from the array summed over it (once,
    for all of them), the others keep it. Large attributes are decided first, since summing them shrinks the
    array most; all three-way marginals of seven attributes take about as long as five passes over the array.
    """
    found: dict[Attributes, np.ndarray] = {}

    def descend(array: np.ndarray, axes: Attributes, undecided: list[int], wanted: list[Attributes]) -> None:
        """``array`` has the attributes ``axes``; those not in ``undecided`` are in every wanted marginal."""
        if len(wanted) == 1:
            drop = tuple(n for n, i in enumerate(axes) if i not in wanted[0])
            found[wanted[0]] = array.sum(axis=drop) if drop else array
            return
        attribute, *rest = undecided
        without = [m for m in wanted if attribute not in m]
        if without:
            at = axes.index(attribute)
            descend(array.sum(axis=at), (*axes[:at], *axes[at + 1 :]), rest, without)
        if len(without) < len(wanted):
            descend(array, axes, rest, [m for m in wanted if attribute in m])

    if not marginals:
        return found
    by_size = sorted(range(weights.ndim), key=lambda i: -weights.shape[i])
    descend(weights, tuple(range(weights.ndim)), by_size, list(dict.fromkeys(marginals)))
    return found
