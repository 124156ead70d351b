"""Exact integer answers to a workload (host side)."""

from __future__ import annotations

import numpy as np

from pointillist.data.sources import Source
from pointillist.queries.workload import Workload

__all__ = ["exact_counts"]


def exact_counts(source: Source, workload: Workload) -> np.ndarray:
    """The flat vector n q(P) of all queries, as int64."""
    return np.concatenate(source.count(workload.marginals))
