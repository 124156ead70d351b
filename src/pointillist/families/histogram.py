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
from pointillist.families.sampling import stratified
from pointillist.framework import Family
from pointillist.queries.workload import Grouping, Workload

__all__ = ["FLOOR", "Histogram", "Weights", "marginals_of", "normalise", "sum_out"]

MOST_CELLS = 100_000_000
DOUBLE_CELLS = 10_000_000
"""Up to so many cells the weights are 64-bit numbers, above 32-bit ones (sums run axis by axis, so they stay exact
to about 1e-6, far below any privacy noise)."""

FLOOR = 1e-30
"""No weight falls below it: a weight of 0 could never rise again, and smaller numbers are slow to compute with."""


class Weights(Family[np.ndarray], Protocol):
    """A family of weights on fixed records: what MWEM and PEP work on. The records are those of the whole domain
    here, and those of a public table in :mod:`pointillist.families.support`."""

    def group_sums(self, params: np.ndarray, workload: Workload, groups: Sequence[int]) -> list[np.ndarray]:
        """For each group, the sums of the weights over its cells (not divided by the sum of all)."""
        ...

    def scale_group(self, params: np.ndarray, workload: Workload, group: int, factors: np.ndarray) -> None:
        """Multiply the weights of each cell of a group by its factor, in place."""
        ...

    def rescale(
        self, params: np.ndarray, workload: Workload, groups: Sequence[int], at: int, factors: np.ndarray,
        sums: list[np.ndarray], mass: float,
    ) -> float:  # fmt: skip
        """Scale the group ``groups[at]`` and bring the ``sums`` of all ``groups`` up to date; returns the new mass."""
        ...


def normalise(params: np.ndarray) -> None:
    """Make the weights sum to 1, in place, none of them below the floor."""
    params /= params.sum(dtype=np.float64)
    np.maximum(params, FLOOR, out=params)


@dataclass(frozen=True)
class Histogram:
    """Every distribution over the domain; starts uniform."""

    domain: Domain

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

    def footprint(self, workload: Workload) -> int:
        # While rows are drawn, the distribution function takes another 64-bit number per cell.
        return self.memory(self.domain) + 8 * self.domain.cells + workload.answer_bytes

    def init(self, rng: np.random.Generator) -> np.ndarray:
        return np.full(self.domain.sizes, 1 / self.domain.cells, self.dtype)

    def answers(self, params: np.ndarray, workload: Workload) -> np.ndarray:
        found = marginals_of(params, workload.marginals)
        return np.concatenate([found[m].ravel() for m in workload.marginals]).astype(np.float64)

    def group_sums(self, params: np.ndarray, workload: Workload, groups: Sequence[int]) -> list[np.ndarray]:
        if workload.grouping is Grouping.QUERY:
            return [self._view(params, workload, g).sum(dtype=np.float64, keepdims=True).ravel() for g in groups]
        if len(groups) == 1:
            return [sum_out(params, workload.marginals[groups[0]])]
        found = marginals_of(params, [workload.marginals[g] for g in groups])
        return [found[workload.marginals[g]].astype(np.float64).ravel() for g in groups]

    def scale_group(self, params: np.ndarray, workload: Workload, group: int, factors: np.ndarray) -> None:
        if workload.grouping is Grouping.QUERY:
            view = self._view(params, workload, group)
            np.maximum(view * factors[0], FLOOR, out=view)
            return
        shape, kept = _merge(params.shape, workload.marginals[group])
        merged = params.reshape(shape)  # a view: the weights are contiguous
        merged *= factors.astype(params.dtype).reshape([s if k else 1 for s, k in zip(shape, kept, strict=True)])
        np.maximum(merged, FLOOR, out=merged)

    def rescale(
        self, params: np.ndarray, workload: Workload, groups: Sequence[int], at: int, factors: np.ndarray,
        sums: list[np.ndarray], mass: float,
    ) -> float:  # fmt: skip
        """A single query changes another one only on the records that satisfy both: only those are summed again."""
        if workload.grouping is Grouping.MARGINAL:
            self.scale_group(params, workload, groups[at], factors)
            sums[:] = self.group_sums(params, workload, groups)
            return float(sums[at].sum())
        fixed = workload.fixed(groups[at])
        gain = float(factors[0]) - 1
        before = self._view(params, workload, groups[at]).sum(dtype=np.float64)
        for n, other in enumerate(groups):
            both = workload.fixed(other)
            if all(both.get(i, y) == y for i, y in fixed.items()):
                shared = params[self._index(fixed | both)].sum(dtype=np.float64)
                sums[n] = sums[n] + gain * shared
        self.scale_group(params, workload, groups[at], factors)
        return mass + gain * float(before)

    def _index(self, fixed: Mapping[int, int]) -> tuple[Any, ...]:
        """The index of a strided view: one value per fixed attribute, all values of the others."""
        return (*(fixed.get(i, slice(None)) for i in range(len(self.domain))), ...)

    def _view(self, params: np.ndarray, workload: Workload, query: int) -> np.ndarray:
        """The weights of the records that satisfy a query: a strided view."""
        view: np.ndarray = params[self._index(workload.fixed(query))]
        return view

    def sample(self, rng: np.random.Generator, params: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        return np.unravel_index(stratified(rng, params.ravel(), rows), self.domain.sizes)

    def mix(self, first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
        return (1 - weight) * first + weight * second

    def to_arrays(self, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"weights": params}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(arrays["weights"]).reshape(self.domain.sizes)


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

    by_size = sorted(range(weights.ndim), key=lambda i: -weights.shape[i])
    descend(weights, tuple(range(weights.ndim)), by_size, list(dict.fromkeys(marginals)))
    return found
