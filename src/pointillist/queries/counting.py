"""Exact integer answers to queries, from a source or from weighted records (host side)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.sources import Source, count, sum_weights
from pointillist.queries.base import Queries

__all__ = ["exact_counts", "weighted_answers"]


def exact_counts(source: Source, queries: Sequence[Queries]) -> np.ndarray:
    """The flat vector n q(P) of all queries, as int64."""
    scopes = list(dict.fromkeys(one.scope for one in queries))
    tables = dict(zip(scopes, count(source, scopes), strict=True))
    return np.concatenate([one.of_marginal(tables[one.scope]) for one in queries])


def weighted_answers(
    codes: Sequence[np.ndarray], weights: np.ndarray, domain: Domain, queries: Sequence[Queries]
) -> list[np.ndarray]:
    """For each of the queries, the sums of the weights of the records for which they hold."""
    scopes = list(dict.fromkeys(one.scope for one in queries))
    tables = dict(zip(scopes, sum_weights(codes, weights, domain, scopes), strict=True))
    return [one.of_marginal(tables[one.scope]) for one in queries]
