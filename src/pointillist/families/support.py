"""All distributions over the distinct records of a public table: one weight per record.

The weights start at the public ones. No weight reaches a record that the public table lacks, so the family can come
no closer to the private table than its *best-mixture error* (:mod:`pointillist.solvers.best_mixture`), however large
the budget is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.data.sources import keys_of
from pointillist.errors import InputError, Shown
from pointillist.families.conditioning import Allowed, kept_shares, require_possible
from pointillist.families.histogram import FLOOR, cell_factors
from pointillist.families.sampling import stratified
from pointillist.queries.base import Queries, is_direct
from pointillist.queries.cells import Box, box_of
from pointillist.queries.counting import weighted_answers

__all__ = ["Support"]


@dataclass(frozen=True, eq=False)
class Support:
    """Weights on N records, given as one array of N codes per attribute; they start at the public weights."""

    domain: Domain
    codes: tuple[np.ndarray, ...]
    public_weights: np.ndarray
    kind = "public records"

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
    def from_dict(cls, spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Support:
        """The family of a saved model, whose arrays hold the public records."""
        return cls(domain, tuple(np.asarray(arrays["codes"])), np.asarray(arrays["weights"]))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @staticmethod
    def fits(domain: Domain) -> bool:
        return True

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of one record."""
        return 8 * len(domain) + 8

    def footprint(self, queries: Sequence[Queries]) -> int:
        # Codes and weights; the keys of a batch of records are small compared with them.
        answers = 8 * sum(one.size for one in queries)
        return sum(c.nbytes for c in self.codes) + 4 * self.public_weights.nbytes + 2 * answers

    def init(self, rng: np.random.Generator) -> np.ndarray:
        return self.public_weights.copy()

    def answers(self, params: np.ndarray, queries: Sequence[Queries]) -> np.ndarray:
        return np.concatenate(weighted_answers(self.codes, params, self.domain, queries))

    def sums(self, params: np.ndarray, asked: Sequence[Queries]) -> list[np.ndarray]:
        boxes = [box_of(one) for one in asked]
        wide = [one for one, box in zip(asked, boxes, strict=True) if box is None]
        found = dict(zip(wide, weighted_answers(self.codes, params, self.domain, wide), strict=True)) if wide else {}
        return [
            found[one] if box is None else params[self._inside(box)].sum(keepdims=True)
            for one, box in zip(asked, boxes, strict=True)
        ]

    def scale(self, params: np.ndarray, queries: Queries, factors: np.ndarray) -> None:
        box = box_of(queries)
        if box is None and is_direct(queries):
            params *= np.exp(queries.holds(self.codes) @ np.log(factors))
            np.maximum(params, FLOOR, out=params)
        elif box is None:
            params *= cell_factors(queries, factors)[keys_of(self.codes, self.domain, queries.scope)]
            np.maximum(params, FLOOR, out=params)
        else:
            at = self._inside(box)
            params[at] = np.maximum(params[at] * factors[0], FLOOR)

    def rescale(
        self,
        params: np.ndarray,
        asked: Sequence[Queries],
        at: int,
        factors: np.ndarray,
        sums: list[np.ndarray],
        mass: float,
    ) -> float:
        self.scale(params, asked[at], factors)
        sums[:] = self.sums(params, asked)
        return float(params.sum())

    def _inside(self, box: Box) -> np.ndarray:
        """The positions of the records in a box: one attribute after the other, on ever fewer records."""
        at: np.ndarray | None = None
        for attribute, (low, high) in box.items():
            codes = self.codes[attribute] if at is None else self.codes[attribute][at]
            inside = codes == low if high == low + 1 else (low <= codes) & (codes < high)
            at = np.flatnonzero(inside) if at is None else at[inside]
        assert at is not None
        return at

    def sample(self, rng: np.random.Generator, params: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        drawn = stratified(rng, params, rows)
        return tuple(codes[drawn] for codes in self.codes)

    def sample_given(
        self, rng: np.random.Generator, params: np.ndarray, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """Public records that meet the condition, by their weights."""
        inside = params * kept_shares(self.codes, allowed)
        require_possible(float(inside.sum() / params.sum()))
        return self.sample(rng, inside, rows)

    def mix(self, first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
        return (1 - weight) * first + weight * second

    def to_arrays(self, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"weights": params, "codes": np.stack(self.codes)}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(arrays["weights"])
