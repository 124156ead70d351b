"""GEMPub: GEM whose network is first trained on the answers of a public table.

| family | strategy | update | output H |
|---|---|---|---|
| generator network, pretrained on public answers | as GEM | as GEM | as GEM |

The algorithm is :mod:`pointillist.algorithms.gem`; only the start differs. Before anything is spent, the network
minimises the mean squared difference to the public answers q(D'), over the cells of every marginal whose attributes
the public table has, in units of what another table of the same size would differ by chance,

    L(theta) = mean over q of (q(G) - q(D'))^2 / mean over q of (q(D') (1 - q(D')) / n'),

by Adam with a cosine schedule, and stops early at 0.2, well inside the public table's own sampling noise. Attributes
that the public table lacks are in no term; they only move with the hidden layers, which they share.

A round leaves the network as it is unless its measurement contradicts it
(:mod:`pointillist.updates.surprise`): with a small budget most measurements only say what the public table has said
already, and steps on their noise would lead away from it.

Differences from the paper: the pretraining has the squared error, the paper's the absolute one. ``surprise`` is ours
(0: as in the paper). The paper gives no beta for the moving average of the weights; its authors' code tries the last
weights, 0.5, 0.9 and 0.99, and beta is 0.9 here.

The pretrained network depends on public facts only, costs nothing, and is kept in the cache under a hash of all that
it depends on: a sweep over epsilons and seeds pretrains once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pointillist.algorithms import gem
from pointillist.algorithms.method import Public, Task
from pointillist.algorithms.settings import setting
from pointillist.checks import at_least, not_negative, positive
from pointillist.families.relaxed import Params
from pointillist.framework import Algorithm
from pointillist.starts.pretraining import Pretraining
from pointillist.updates.descent import Recipe
from pointillist.updates.losses import Adam, SquaredError
from pointillist.updates.surprise import IfSurprised

__all__ = ["METHOD", "Settings", "build"]


@dataclass(frozen=True)
class Settings(gem.Settings):
    """Settings of GEMPub: those of GEM and of the pretraining."""

    surprise: float = setting(
        2.0, "a round changes the model only if it is off by this many standard deviations more than noise; 0: always"
    )
    pretrain_steps: int = setting(1000, "most steps of the pretraining")
    pretrain_rate: float = setting(0.001, "step of Adam in the pretraining; falls to 0 by a cosine")
    pretrain_tolerance: float = setting(0.2, "end it at this loss, in units of the public table's sampling noise")

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative("surprise", self.surprise, "give 2, or 0 to change the model in every round")
        at_least("pretrain_steps", self.pretrain_steps, 1, 1000)
        positive("pretrain_rate", self.pretrain_rate, 0.001)
        not_negative("pretrain_tolerance", self.pretrain_tolerance, "give 0.2")


def build(task: Task, settings: Settings) -> Algorithm[Params]:
    """GEMPub as a choice of parts."""
    public = task.require_public()
    public.require_covered(task.workload.scopes)
    covered = tuple(queries for queries in task.workload.queries if public.covered([queries.scope]))
    adam = Adam(settings.pretrain_steps, settings.pretrain_rate, cosine=True)
    recipe = Recipe(adam, SquaredError(settings.pretrain_tolerance))
    algorithm = gem.build(task, settings, lambda family: Pretraining(family, covered, public, recipe))
    if settings.surprise == 0:
        return algorithm
    return replace(algorithm, update=IfSurprised(algorithm.update, settings.surprise))


METHOD = replace(
    gem.METHOD,
    name="gem_pub",
    family="generator network, pretrained on public answers (free)",
    update="as gem, in rounds that contradict the model (option: in all)",
    settings=Settings,
    build=build,
    public=Public.NEEDED,
)
