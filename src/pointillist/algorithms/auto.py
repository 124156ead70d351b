"""Auto: the default. Measure what the budget can pay for, once; fit rows that follow the data and not the noise.

| family | selection | measured | update | output H |
|---|---|---|---|---|
| relaxed rows, softmax per attribute | none: by public facts | yes | shrunken fit | last |

*What is measured* follows from public facts: the domain, the workload, rho and n. Nothing is selected by the data, so
the budget buys Gaussian noise only, which has a tighter account (:mod:`pointillist.privacy.gaussian`). Every marginal
of the workload is measured with an equal share, unless its noise would drown it: the noise of a marginal with c cells
has the squared length c sigma^2 (as fractions), that of any distribution is at most 1. So a marginal with
c sigma^2 > 1.2 gives way to its sub-marginals with one attribute less, which have fewer cells and are shared by many;
and so on down.

*The fit* is :mod:`pointillist.updates.shrinkage`: chi-square with the known noise, and a penalty on what ties
attributes together, of a strength that follows from the noise and from how it splits. A public table, if there is one,
joins in as further measurements, as precise as the paid ones show it to be.

*Adaptive rounds*, as AIM has them, are there for comparison and off: on all tables that were tried, what they find does
not make up for the budget that they take from the first measurement (``benchmarks/results/ablation.md``).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from pointillist.algorithms.parameters import parameter
from pointillist.data.public import PublicTable
from pointillist.errors import check
from pointillist.families.relaxed import Params, Relaxed
from pointillist.families.rows import SoftmaxRows
from pointillist.framework import Algorithm, Last
from pointillist.privacy.ledger import split
from pointillist.privacy.schedule import EvenSchedule, Schedule, Spend, ThenSchedule
from pointillist.privacy.scores import MaxError, ScoreRule, UsefulError
from pointillist.queries.marginals import sized
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Settings
from pointillist.updates.shrinkage import ShrunkenFit

__all__ = ["MeasureOnce", "Parameters", "build", "closure"]

FIRST_SHARE, ALPHA = 0.7, 0.25
"""With adaptive rounds: the share of rho of the first measurement, and the split of what the later ones have: a tenth
for selecting."""

RAMP = 0.4
"""The penalty rises over this share of the steps: strong ties form before it is there, and outlast it."""


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of auto. None needs to be set."""

    rows: int = parameter(200, "rows of the relaxed table of one fit")
    fits: int = parameter(3, "fits from different starts; the model is their mixture")
    t_max: int = parameter(600, "steps of Adam")
    learning_rate: float = parameter(0.3, "step of Adam at the start; falls to 0 by a cosine")
    spread: float = parameter(0.5, "half width of the uniform logits at the start, around the one-way marginals")
    most_noise: float = parameter(1.2, "a marginal whose noise has a larger squared length gives way to smaller ones")
    strength: float | None = parameter(None, "s, strength of the shrinkage; by default chosen by splitting the noise")
    adaptive_rounds: int = parameter(0, "later rounds that each select one more marginal, by AIM's score")

    def __post_init__(self) -> None:
        check(self.fits >= 1, "fits", self.fits, "must be at least 1", "give 3")
        check(self.most_noise > 0, "most_noise", self.most_noise, "must be above 0", "give 1.2")
        check(
            self.adaptive_rounds >= 0,
            "adaptive_rounds",
            self.adaptive_rounds,
            "must not be negative",
            "give 0 for none",
        )
        good = self.strength is None or 0 <= self.strength < float("inf")
        check(good, "strength", self.strength, "must be a finite number, 0 or more", "give 1, or auto")


def closure(workload: Workload) -> Workload:
    """The marginals of the workload, and after them all their sub-marginals."""
    found = dict.fromkeys(workload.marginals)
    for marginal in workload.marginals:
        for order in range(len(marginal) - 1, 0, -1):
            found.update(dict.fromkeys(itertools.combinations(marginal, order)))
    return sized(Workload(workload.domain, tuple(found)))


@dataclass(frozen=True)
class MeasureOnce:
    """One round that measures marginals of a closure, chosen by public facts, with equal shares.

    ``asked``: so many at the front are the workload's. Noise is judged as under replace, where it is larger.
    """

    closure: Workload = field(repr=False)  # thousands of marginals, which a release lists elsewhere
    asked: int
    most_noise: float

    def count(self, rho: float, total: int) -> int:
        return 1

    def spend(self, t: int, rho: float, total: int) -> Spend | None:
        if t > 0:
            return None
        groups = self.groups(rho, total)
        return Spend(len(groups), None, split(rho, len(groups)), groups)

    def groups(self, rho: float, total: int) -> tuple[int, ...]:
        """The marginals to measure."""
        place = {marginal: n for n, marginal in enumerate(self.closure.marginals)}
        cells_of = self.closure.domain.cells_of
        chosen = set(self.closure.marginals[: self.asked])
        while True:
            variance = len(chosen) / (rho * total**2)
            drowned = [m for m in chosen if len(m) > 1 and cells_of(m) * variance > self.most_noise]
            if not drowned:
                return tuple(sorted(place[marginal] for marginal in chosen))
            chosen.difference_update(drowned)
            chosen.update(s for m in drowned for s in itertools.combinations(m, len(m) - 1))


def build(workload: Workload, parameters: Parameters, public: PublicTable | None = None) -> Algorithm[Params]:
    """Auto as a choice of parts."""
    if public is not None:
        public.require_covered(workload.marginals)
    family, part = (
        Relaxed(SoftmaxRows(workload.domain, rows, parameters.spread))
        for rows in (parameters.rows * parameters.fits, parameters.rows)
    )
    settings = Settings(steps=parameters.t_max, learning_rate=parameters.learning_rate, cosine=True, penalised=RAMP)
    measurable, asked = closure(workload), len(workload.marginals)
    schedule: Schedule = MeasureOnce(measurable, asked, parameters.most_noise)
    rule: ScoreRule = MaxError()
    if parameters.adaptive_rounds:
        schedule = ThenSchedule(FIRST_SHARE, schedule, EvenSchedule(parameters.adaptive_rounds, alpha=ALPHA))
        rule = useful_error(workload, measurable)
    whole = parameters.adaptive_rounds > 0
    return Algorithm(
        family=family,
        schedule=schedule,
        rule=rule,
        repeat=True,
        update=ShrunkenFit(part, parameters.fits, asked, settings, parameters.strength, public, whole),
        output=Last(),
        measurable=measurable,
    )


def useful_error(workload: Workload, measurable: Workload) -> UsefulError:
    """AIM's score over the closure: a marginal weighs as many attributes as it shares with the workload's, in all.

    Noise is judged as under replace: sigma = sqrt(2 / 2 rho_m) beside a scale of 2 max(w) / sqrt(2 rho_s).
    """
    found = [set(marginal) for marginal in workload.marginals]
    weights = tuple(sum(len(other & set(marginal)) for other in found) for marginal in measurable.marginals)
    return UsefulError(weights, ALPHA / (1 - ALPHA) / (math.sqrt(2) * max(weights)))
