"""A gate in front of a method on public records: can any reweighting of them come close enough?

The best-mixture error of the public records (:mod:`pointillist.solvers.best_mixture`) needs the private answers. The
gate estimates it from the first measurements of the run itself, which are private already: the worst answered groups
under the public weights, measured with a small share of the budget. With noisy answers a_q = q(P) + z_q of the standard
deviation sigma to m cells in each of R rounds,

    floor = min over w of max over the measured q of |a_q - q(w)|  -  sigma sqrt(2 ln(2 m R / 0.05))

is with probability 0.95 at most the best-mixture error of the whole workload: fewer queries can only lower the
minimum, and some |z_q| exceeds the last term with probability 0.05 at most (z_q is sub-Gaussian, and each round has a
share of 0.05 / R). Under add-remove the noise of the number of rows takes another round's share, and the answers, which
are divided by that number, are wrong by at most its relative error. If even the floor is above the limit the run ends;
the measurements are otherwise used by the rounds that follow, so that the gate costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.errors import InputError, Shown
from pointillist.families.support import Support
from pointillist.framework import Log, Update, Updated
from pointillist.queries.workload import Workload
from pointillist.solvers.best_mixture import best_mixture

__all__ = ["Gate", "mixture_floor"]

DOUBT = 0.05
"""The probability that the estimated floor is above the true best-mixture error."""


def mixture_floor(support: Support, log: Log) -> float:
    """A lower confidence bound of the support's best-mixture error, from the measurements in ``log``."""
    latest = {measurement.queries: measurement for measurement in log.measurements}
    targets = np.concatenate([measurement.fractions(log.total) for measurement in latest.values()])
    parts = len(log.rounds) + (log.facts.total_sigma > 0)
    cells_of = (sum(len(m.counts) for m in entry.measurements) for entry in log.rounds)
    noise_of = (max(m.sigma for m in entry.measurements) for entry in log.rounds)
    sizes = list(zip(noise_of, cells_of, strict=True))
    slack = max(sigma * np.sqrt(2 * np.log(2 * cells * parts / DOUBT)) for sigma, cells in sizes)
    slack += log.facts.total_sigma * np.sqrt(2 * np.log(2 * parts / DOUBT))
    workload = Workload(support.domain, tuple(latest))
    best = best_mixture(support.codes, workload, targets, start=support.public_weights)
    return float(best.lower - slack / log.total)


@dataclass(frozen=True)
class Gate:
    """An update that after ``rounds`` rounds ends the run if the floor is above ``limit``."""

    update: Update[np.ndarray]
    support: Support
    rounds: int
    limit: float

    def init(self, params: np.ndarray) -> Any:
        return self.update.init(params)

    def __call__(self, rng: np.random.Generator, params: np.ndarray, memory: Any, log: Log) -> Updated:
        floor = {}
        if len(log.rounds) == self.rounds:
            floor["floor"] = mixture_floor(self.support, log)
            if floor["floor"] > self.limit:
                rule = "must be at least the error that every reweighting of the public records has"
                shown = Shown(f"{self.limit:g} where that is at least {floor['floor']:.4f}")
                raise InputError("gate", shown, rule, "use gem_pub or gem")
        params, memory, info = self.update(rng, params, memory, log)
        return Updated(params, memory, info | floor)
