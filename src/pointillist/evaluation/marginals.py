"""Which queries of a workload a synthetic table answers worst. NOT PRIVATE: uses the real data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.schema import Schema
from pointillist.evaluation.columns import Both
from pointillist.evaluation.values import cell_name
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload

__all__ = ["WorstMarginal", "worst_marginals"]


@dataclass(frozen=True)
class WorstMarginal:
    """A member of a workload, with its worst answer.

    Attributes:
        names: the names of the columns.
        error: half the sum of the errors: for a marginal, the total variation distance.
        cell: the values of the columns in the cell with the largest error; empty for queries that are no marginals.
        query: the position of that cell or query.
        share: its share of the rows.
    """

    names: tuple[str, ...]
    error: float
    cell: dict[str, str]
    query: int
    share: Both

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        out = {"columns": list(self.names), "error": self.error, "query": self.query, "cell": self.cell}
        return out | self.share.to_dict()


def worst_marginals(
    workload: Workload, schema: Schema, truth: np.ndarray, answers: np.ndarray, most: int = 10
) -> tuple[WorstMarginal, ...]:
    """The members of a workload with the largest errors, the worst first.

    Args:
        workload: the queries.
        schema: the columns, for the labels.
        truth, answers: the real and the synthetic answers, flat vectors of fractions.
        most: how many.
    """
    errors = np.abs(answers - truth)
    per_member = np.add.reduceat(errors, workload.offsets[:-1]) / 2
    found = []
    for member in np.argsort(-per_member, kind="stable")[:most]:
        queries, start, end = workload.queries[member], *workload.offsets[member : member + 2]
        at = int(np.argmax(errors[start:end]))
        names = tuple(schema.domain.names[i] for i in queries.scope)
        cell: dict[str, str] = {}
        if isinstance(queries, Marginal):
            codes = np.unravel_index(at, queries.shape)
            cell = {names[n]: cell_name(schema.columns[i], int(codes[n])) for n, i in enumerate(queries.scope)}
        share = Both(float(truth[start + at]), float(answers[start + at]))
        found.append(WorstMarginal(names, float(per_member[member]), cell, at, share))
    return tuple(found)
