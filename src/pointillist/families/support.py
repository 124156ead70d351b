"""All distributions over the distinct records of a public table: one weight per record.

The weights start at the public ones. No weight reaches a record that the public table lacks, so the family can come
no closer to the private table than its *best-mixture error* (:mod:`pointillist.updates.mixture`), however large the
budget is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.data.sources import keys_of, sum_weights
from pointillist.errors import InputError, Shown
from pointillist.families.histogram import FLOOR
from pointillist.families.sampling import stratified
from pointillist.queries.workload import Grouping, Workload

__all__ = ["Support"]


@dataclass(frozen=True, eq=False)
class Support:
    """Weights on N records, given as one array of N codes per attribute; ``start`` are the public weights."""

    domain: Domain
    codes: tuple[np.ndarray, ...]
    start: np.ndarray

    @classmethod
    def of(cls, public: PublicTable, purpose: str) -> Support:
        """The support of a public table; refuses one that lacks attributes, whose values would all have to be tried."""
        if public.missing:
            names = ", ".join(public.domain.names[i] for i in public.missing)
            cells = len(public.counts) * public.domain.cells_of(public.missing)
            rule = f"must have every column of the schema for {purpose} (it lacks {names})"
            shown = Shown(f"a table whose records would have to be extended to {cells:,} cells")
            raise InputError("public", shown, rule, "use gem_pub, or leave these columns out of the private table")
        return cls(public.domain, public.codes, public.weights)

    @classmethod
    def revive(cls, domain: Domain, arrays: Mapping[str, np.ndarray]) -> Support:
        """The support of a saved model."""
        return cls(domain, tuple(np.asarray(arrays["codes"])), np.asarray(arrays["weights"]))

    @staticmethod
    def fits(domain: Domain) -> bool:
        return True

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of one record."""
        return 8 * len(domain) + 8

    def footprint(self, workload: Workload) -> int:
        # Codes and weights; the keys of a batch of records are small beside them.
        return sum(c.nbytes for c in self.codes) + 4 * self.start.nbytes + 2 * workload.answer_bytes

    def init(self, rng: np.random.Generator) -> np.ndarray:
        return self.start.copy()

    def answers(self, params: np.ndarray, workload: Workload) -> np.ndarray:
        return np.concatenate(sum_weights(self.codes, params, self.domain, workload.marginals))

    def group_sums(self, params: np.ndarray, workload: Workload, groups: Sequence[int]) -> list[np.ndarray]:
        if workload.grouping is Grouping.MARGINAL:
            return sum_weights(self.codes, params, self.domain, [workload.marginals[g] for g in groups])
        return [params[self._matches(workload, group)].sum(keepdims=True) for group in groups]

    def scale_group(self, params: np.ndarray, workload: Workload, group: int, factors: np.ndarray) -> None:
        if workload.grouping is Grouping.MARGINAL:
            params *= factors[keys_of(self.codes, self.domain, workload.marginals[group])]
            np.maximum(params, FLOOR, out=params)
        else:
            at = self._matches(workload, group)
            params[at] = np.maximum(params[at] * factors[0], FLOOR)

    def rescale(
        self, params: np.ndarray, workload: Workload, groups: Sequence[int], at: int, factors: np.ndarray,
        sums: list[np.ndarray], mass: float,
    ) -> float:  # fmt: skip
        self.scale_group(params, workload, groups[at], factors)
        sums[:] = self.group_sums(params, workload, groups)
        return float(params.sum())

    def _matches(self, workload: Workload, query: int) -> np.ndarray:
        """The positions of the records that satisfy a query: one attribute after the other, on ever fewer records."""
        at: np.ndarray | None = None
        for attribute, value in workload.fixed(query).items():
            codes = self.codes[attribute]
            at = np.flatnonzero(codes == value) if at is None else at[codes[at] == value]
        assert at is not None
        return at

    def sample(self, rng: np.random.Generator, params: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        drawn = stratified(rng, params, rows)
        return tuple(codes[drawn] for codes in self.codes)

    def mix(self, first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
        return (1 - weight) * first + weight * second

    def to_arrays(self, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"weights": params, "codes": np.stack(self.codes)}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(arrays["weights"])
