"""Empirical distributions: lists of records, each with a weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.families.conditioning import Allowed, kept_shares, require_possible
from pointillist.families.sampling import stratified
from pointillist.queries.base import Queries
from pointillist.queries.counting import weighted_answers

__all__ = ["RecordList", "Records"]


@dataclass(frozen=True)
class Records:
    """m records (codes, m x d) and their weights, which sum to 1; m = 0 stands for the uniform distribution."""

    codes: np.ndarray
    weights: np.ndarray

    @classmethod
    def even(cls, codes: np.ndarray) -> Records:
        return cls(codes, np.full(len(codes), 1 / max(len(codes), 1)))


@dataclass(frozen=True)
class RecordList:
    """Lists of records over a domain of any size; starts with none."""

    domain: Domain
    kind = "records"

    @staticmethod
    def fits(domain: Domain) -> bool:
        return True

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of one record."""
        return 8 * len(domain)

    def footprint(self, queries: Sequence[Queries]) -> int:
        return 8 * sum(one.size for one in queries)

    def init(self, rng: np.random.Generator) -> Records:
        return Records.even(np.zeros((0, len(self.domain)), np.int64))

    def answers(self, params: Records, queries: Sequence[Queries]) -> np.ndarray:
        if len(params.codes) == 0:
            cells = (self.domain.cells_of(one.scope) for one in queries)
            return np.concatenate([q.of_marginal(np.full(n, 1 / n)) for q, n in zip(queries, cells, strict=True)])
        return np.concatenate(weighted_answers(tuple(params.codes.T), params.weights, self.domain, queries))

    def sample(self, rng: np.random.Generator, params: Records, rows: int) -> tuple[np.ndarray, ...]:
        if len(params.codes) == 0:
            return tuple(rng.integers(size, size=rows) for size in self.domain.sizes)
        return tuple(params.codes[stratified(rng, params.weights, rows)].T)

    def sample_given(
        self, rng: np.random.Generator, params: Records, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """Records that meet the condition, by their weights."""
        if len(params.codes) == 0:
            every = [allowed.get(i, np.ones(size)) for i, size in enumerate(self.domain.sizes)]
            return tuple(stratified(rng, shares, rows) for shares in every)
        weights = params.weights * kept_shares(tuple(params.codes.T), allowed)
        require_possible(float(weights.sum() / params.weights.sum()))
        return self.sample(rng, Records(params.codes, weights), rows)

    def mix(self, first: Records, second: Records, weight: float) -> Records:
        """The union, weighted."""
        kept = [(first, 1 - weight), (second, weight)]
        parts = [(params, share) for params, share in kept if share > 0 and len(params.codes)]
        codes = [params.codes for params, _ in parts]
        weights = [params.weights * share for params, share in parts]
        return Records(np.concatenate(codes), np.concatenate(weights)) if parts else first

    def to_arrays(self, params: Records) -> dict[str, np.ndarray]:
        return {"codes": params.codes, "weights": params.weights}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Records:
        return Records(np.asarray(arrays["codes"]), np.asarray(arrays["weights"]))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> RecordList:
        """The family of a saved model."""
        return cls(domain)
