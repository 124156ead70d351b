"""PEPPub: PEP over the records of a public table.

| family | strategy | update | output H |
|---|---|---|---|
| histogram over the public records, public weights | as PEP | as PEP | as PEP |

The algorithm is :mod:`pointillist.algorithms.pep`; only the family differs: of all reweightings of the public records
that agree with the measurements, it looks for the one of the smallest relative entropy to the public weights. As for
PMWPub the error has a floor, the best-mixture error, and ``gate`` ends the run when the floor is too high.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pointillist.algorithms import pep
from pointillist.algorithms.gated import GateSettings, gated, public_rounds
from pointillist.algorithms.method import Public, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.families.support import Support
from pointillist.framework import Algorithm
from pointillist.queries.candidates import Grouping

__all__ = ["METHOD", "Settings", "build"]

SLACK = {Grouping.MARGINAL: 0.6, Grouping.QUERY: 0.0}
"""More than PEP's by marginal, since the public weights are a better start than none. Fixed on adult-reduced with the
public rows of ADULT and on 15 columns of acs-oh with New York, at epsilon 0.1, 0.25 and 1."""


@dataclass(frozen=True)
class Settings(GateSettings, pep.Settings):
    """Settings of PEPPub: those of PEP and of the gate."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default n sqrt(rho) / 100, at least d (by query: 2 d), "
        "at most 50 by query, 20 by marginal",
        most=MOST_ROUNDS,
    )
    slack: float | None = setting(
        None,
        "gamma, the error up to which a measurement counts as met, as a share of about the largest noise of its cells; "
        "by default 0 by query, 0.6 by marginal",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_gate()


def build(task: Task, settings: Settings) -> Algorithm[np.ndarray]:
    """PEPPub as a choice of parts."""
    support = Support.of(task.require_public(), "pep_pub")
    rounds = public_rounds(settings.rounds, task, 50 if task.by_query else 20)
    algorithm = pep.build(task, settings, support, rounds, SLACK)
    return gated(algorithm, support, task, settings)


METHOD = replace(
    pep.METHOD,
    name="pep_pub",
    family="histogram over the public records, public weights",
    update="as pep",
    settings=Settings,
    build=build,
    fits=Support.fits,
    memory=Support.memory,
    public=Public.NEEDED,
)
