"""PMWPub: MWEM over the records of a public table.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| histogram over the public records, public weights | as MWEM | yes | as MWEM | as MWEM |

The algorithm is :mod:`pointillist.algorithms.mwem`; only the family differs. A domain of any size will do, since the
weights are those of the public table's distinct records; but no weight can reach a record that it lacks, so the error
has a floor, the best-mixture error. ``gate`` ends the run when the floor is too high.

Liu, Vietri, Steinke, Ullman and Wu, Leveraging Public Data for Practical Private Query Release, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms import mwem
from pointillist.algorithms.parameters import parameter
from pointillist.algorithms.public import GateParameters, gated, thrifty
from pointillist.data.public import PublicTable
from pointillist.families.support import Support
from pointillist.framework import Algorithm
from pointillist.queries.workload import Grouping, Workload

__all__ = ["Parameters", "build"]


@dataclass(frozen=True)
class Parameters(GateParameters, mwem.Parameters):
    """Hyper-parameters of PMWPub: those of MWEM and of the gate."""

    rounds: int | None = parameter(
        None,
        "T, the number of rounds; by default n sqrt(rho) / 100, at least d (by query: 2 d), "
        "at most 150 by query, 50 by marginal",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_gate()


def build(workload: Workload, parameters: Parameters, public: PublicTable) -> Algorithm[np.ndarray]:
    """PMWPub as a choice of parts."""
    support = Support.of(public, "pmw_pub")
    most = 150 if workload.grouping is Grouping.QUERY else 50
    schedule = thrifty(parameters.rounds, parameters.alpha, workload, most)
    algorithm = mwem.build(workload, parameters, support, schedule)
    return gated(algorithm, support, workload.grouping, parameters)
