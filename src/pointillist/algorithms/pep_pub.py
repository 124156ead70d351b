"""PEPPub: PEP over the records of a public table.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| histogram over the public records, public weights | as PEP | yes | as PEP | as PEP |

The algorithm is :mod:`pointillist.algorithms.pep`; only the family differs: of all reweightings of the public records
that agree with the measurements, it looks for the one of the smallest relative entropy to the public weights. As for
PMWPub the error has a floor, the best-mixture error, and ``gate`` ends the run when the floor is too high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointillist.algorithms import pep
from pointillist.algorithms.parameters import parameter
from pointillist.algorithms.public import GateParameters, gated, thrifty
from pointillist.data.public import PublicTable
from pointillist.families.support import Support
from pointillist.framework import Algorithm
from pointillist.queries.workload import Grouping, Workload

__all__ = ["Parameters", "build"]

SLACK = {Grouping.MARGINAL: 0.6, Grouping.QUERY: 0.0}
"""More than PEP's by marginal, since the public weights are a better start than none. Fixed on adult-reduced with the
public rows of ADULT and on 15 columns of acs-oh with New York, at epsilon 0.1, 0.25 and 1."""


@dataclass(frozen=True)
class Parameters(GateParameters, pep.Parameters):
    """Hyper-parameters of PEPPub: those of PEP and of the gate."""

    rounds: int | None = parameter(
        None,
        "T, the number of rounds; by default n sqrt(rho) / 100, at least d (by query: 2 d), "
        "at most 50 by query, 20 by marginal",
    )
    slack: float | None = parameter(
        None,
        "gamma, the error up to which a measurement counts as met, as a share of about the largest noise of its cells; "
        "by default 0 by query, 0.6 by marginal",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_gate()


def build(workload: Workload, parameters: Parameters, public: PublicTable) -> Algorithm[np.ndarray]:
    """PEPPub as a choice of parts."""
    support = Support.of(public, "pep_pub")
    most = 50 if workload.grouping is Grouping.QUERY else 20
    schedule = thrifty(parameters.rounds, parameters.alpha, workload, most)
    algorithm = pep.build(workload, parameters, support, schedule, SLACK)
    return gated(algorithm, support, workload.grouping, parameters)
