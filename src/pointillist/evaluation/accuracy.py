"""Errors of a synthetic table or model against the real table.

NOT PRIVATE: every function here uses the real data. Nothing here is called inside a run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from pointillist.queries.workload import Workload

__all__ = ["Errors", "compare"]


@dataclass(frozen=True)
class Errors:
    """Errors in fractions of the rows, over all queries of a workload.

    Attributes:
        max: the largest error.
        mean: the mean absolute error.
        rmse: the root of the mean squared error.
        tvd: the total variation distance (half the L1 error) of a marginal, averaged over the marginals; NaN if the
            workload has none.
    """

    max: float
    mean: float
    rmse: float
    tvd: float

    def to_dict(self) -> dict[str, float]:
        """The four figures by name."""
        return asdict(self)


def compare(workload: Workload, truth: np.ndarray, answers: np.ndarray) -> Errors:
    """The errors of ``answers`` against ``truth``, both flat vectors of fractions."""
    errors = np.abs(answers - truth)
    per_member = np.add.reduceat(errors, workload.offsets[:-1])
    marginals = per_member[[queries.partition for queries in workload.queries]]
    return Errors(
        max=float(errors.max()),
        mean=float(errors.mean()),
        rmse=float(np.sqrt(np.mean(errors**2))),
        tvd=float(marginals.mean() / 2) if len(marginals) else float("nan"),
    )
