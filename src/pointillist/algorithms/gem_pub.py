"""GEMPub: GEM whose network is first trained on the answers of a public table.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| generator network, pretrained on public answers | as GEM | yes | as GEM | as GEM |

The algorithm is :mod:`pointillist.algorithms.gem`; only the start differs. Before anything is spent, the network
minimises the mean squared difference to the public answers q(D'), over the cells of every marginal whose attributes
the public table has, in units of what another table of the same size would differ by chance,

    L(theta) = mean over q of (q(G) - q(D'))^2 / mean over q of (q(D') (1 - q(D')) / n'),

by Adam with a cosine schedule, and stops early at 0.2, well inside the public table's own sampling noise. Attributes
that the public table lacks are in no term; they only move with the hidden layers, which they share.

The pretrained network depends on public facts only, costs nothing, and is kept in the cache under a hash of all that
it depends on: a sweep over epsilons and seeds pretrains once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pointillist.algorithms import gem
from pointillist.algorithms.parameters import parameter
from pointillist.data.public import PublicTable
from pointillist.errors import check
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Algorithm
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Settings
from pointillist.updates.pretraining import Pretraining

__all__ = ["Parameters", "build", "revive"]


@dataclass(frozen=True)
class Parameters(gem.Parameters):
    """Hyper-parameters of GEMPub: those of GEM and of the pretraining."""

    pretrain_steps: int = parameter(1000, "most steps of the pretraining")
    pretrain_rate: float = parameter(0.001, "step of Adam in the pretraining; falls to 0 by a cosine")
    pretrain_tolerance: float = parameter(0.2, "end it at this loss, in units of the public table's sampling noise")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.pretrain_steps >= 1, "pretrain_steps", self.pretrain_steps, "must be at least 1", "give 1000")
        good = 0 < self.pretrain_rate < np.inf
        check(good, "pretrain_rate", self.pretrain_rate, "must be a finite number above 0", "give 0.001")
        good = 0 <= self.pretrain_tolerance < np.inf
        check(good, "pretrain_tolerance", self.pretrain_tolerance, "must be a finite number, 0 or more", "give 0.2")


def build(workload: Workload, parameters: Parameters, public: PublicTable) -> Algorithm[Params]:
    """GEMPub as a choice of parts."""
    covered = Workload(workload.domain, public.require_covered(workload.marginals))
    settings = Settings(
        steps=parameters.pretrain_steps,
        learning_rate=parameters.pretrain_rate,
        cosine=True,
        tolerance=parameters.pretrain_tolerance,
    )
    return gem.build(workload, parameters, lambda family: Pretraining(family, covered, public, settings))


def revive(workload: Workload, parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> Relaxed:
    """The family of a saved model."""
    return gem.family_of(workload, parameters)
