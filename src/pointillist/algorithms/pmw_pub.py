"""PMWPub: MWEM over the records of a public table.

| family | strategy | update | output H |
|---|---|---|---|
| histogram over the public records, public weights | as MWEM | as MWEM | as MWEM |

The algorithm is :mod:`pointillist.algorithms.mwem`; only the family differs. The domain may have any size, since the
weights are those of the public table's distinct records; but no weight can reach a record that it lacks, so the error
has a floor, the best-mixture error. ``gate`` ends the run when the floor is too high.

Liu, Vietri, Steinke, Ullman and Wu, Leveraging Public Data for Practical Private Query Release, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pointillist.algorithms import mwem
from pointillist.algorithms.gated import GateSettings, gated, public_rounds
from pointillist.algorithms.method import Public, Task
from pointillist.algorithms.settings import MOST_ROUNDS, setting
from pointillist.families.support import Support
from pointillist.framework import Algorithm

__all__ = ["METHOD", "Settings", "build"]


@dataclass(frozen=True)
class Settings(GateSettings, mwem.Settings):
    """Settings of PMWPub: those of MWEM and of the gate."""

    rounds: int | None = setting(
        None,
        "T, the number of rounds; by default n sqrt(rho) / 100, at least d (by query: 2 d), "
        "at most 150 by query, 50 by marginal",
        most=MOST_ROUNDS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_gate()


def build(task: Task, settings: Settings) -> Algorithm[np.ndarray]:
    """PMWPub as a choice of parts."""
    support = Support.of(task.require_public(), "pmw_pub")
    rounds = public_rounds(settings.rounds, task, 150 if task.by_query else 50)
    algorithm = mwem.build(task, settings, support, rounds)
    return gated(algorithm, support, task, settings)


METHOD = replace(
    mwem.METHOD,
    name="pmw_pub",
    family="histogram over the public records, public weights",
    update="as mwem",
    settings=Settings,
    build=build,
    fits=Support.fits,
    memory=Support.memory,
    public=Public.NEEDED,
)
