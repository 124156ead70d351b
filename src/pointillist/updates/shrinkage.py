"""A fit of relaxed rows to noisy marginals that shrinks towards independent attributes as far as the noise asks for.

The rows p_1 .. p_B minimise, with noisy fractions y_c of the standard deviation sigma_c,

    1/2 sum over measured cells c of (q_c(p) - y_c)^2 / sigma_c^2
        + lambda (1/B) sum_b sum_j (p_bj - m_j)^2 / sqrt(m_j + 1e-4),        m = the mean row,

by Adam, from the product of the estimated one-way marginals. The first term alone follows the noise. The second is 0
for a product of marginals and grows with all that ties attributes together; the less noise, the less it counts beside
the first: lambda = s * 9 sigma^(-0.6), with sigma the noise (as a fraction) that the workload's marginals have, or
would have if all were measured alike. With s = 1 this came out best on tables that are not used to report.

How strongly attributes are tied differs from table to table, so s is tried by splitting the noise. Draw z with the
known variance of the noise; then y + z and y - z have independent noise of twice that variance. A fit f to the first is
judged by its distance sum_c (f_c - (y - z)_c)^2 / sigma_c^2 to the second; the difference of two such distances has the
standard error sqrt(8 sum_c (f_c - g_c)^2 / sigma_c^2). From s = 1 on, s falls by threes as long as that is better by
two standard errors, or else rises to 3 if that is. All of this uses nothing but the noisy values: it is
post-processing, and z, which protects nothing, may come from any generator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Log, to_simplex
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Descent, Settings, combined

__all__ = ["ShrunkenFit", "one_way"]

LAMBDA, POWER = 9.0, 0.6
LEAST_STRENGTH = 0.03
TRIAL_STEPS = 200
"""Steps of the fits that choose the strength."""
LEAST_SHARE = 1e-6
"""No value's estimated share is taken to be smaller at the start: a logit must be finite."""


@dataclass(frozen=True)
class ShrunkenFit:
    """The update, for a log with one sigma for all; ``asked`` is the number of the workload's marginals.

    ``strength`` is s; None chooses it with rows of the family ``trial``.
    """

    family: Relaxed
    trial: Relaxed
    asked: int
    settings: Settings
    strength: float | None = None

    def init(self, params: Params) -> None:
        return None

    def __call__(self, rng: np.random.Generator, params: Params, memory: None, log: Log) -> tuple[Params, None]:
        measured = only_measured(log)
        targets, precision = combined(measured)
        strength = self.choose(rng, measured, targets, precision) if self.strength is None else self.strength
        params = self.fit(rng, self.family, params, measured, targets, precision, strength)
        log.notes[-1].update(measured.notes[-1], strength=strength)
        return params, None

    def fit(
        self, rng: np.random.Generator, family: Relaxed, params: Params, log: Log, targets: np.ndarray,
        precision: np.ndarray, strength: float,
    ) -> Params:  # fmt: skip
        """Rows of a family fitted to targets, from its first parameters on, moved to the one-way marginals."""
        import jax.numpy as jnp

        base = np.log(np.maximum(np.concatenate(one_way(log.workload, targets, precision)), LEAST_SHARE))
        params = params | {"logits": params["logits"] + jnp.asarray(base, jnp.float32)[None, :]}
        settings = self.settings if family is self.family else replace(self.settings, steps=TRIAL_STEPS)
        descent = Descent(family, log.workload, settings)
        # As if all marginals of the workload had been measured alike, with the same budget.
        sigma = np.sqrt(self.asked / len(log.workload.marginals) / precision.mean())
        penalty = 2 * strength * LAMBDA * sigma**-POWER / np.count_nonzero(precision)
        data: dict[str, Any] = descent.cells_data(targets, precision) | {"penalty": np.float32(penalty)}
        return descent.fit(rng, params, data, -1.0, log)[0]

    def choose(self, rng: np.random.Generator, log: Log, targets: np.ndarray, precision: np.ndarray) -> float:
        """s, by how well fits to one half of the noise foretell the other."""
        noise = rng.standard_normal(len(targets)) / np.sqrt(precision)
        seed = int(rng.integers(2**31))

        def answers(strength: float) -> np.ndarray:
            params = self.trial.init(np.random.default_rng(seed))
            params = self.fit(rng, self.trial, params, log, targets + noise, precision / 2, strength)
            return self.trial.answers(params, log.workload)

        def closer(new: np.ndarray, old: np.ndarray) -> bool:
            held_out = targets - noise
            gain = np.sum(precision * ((old - held_out) ** 2 - (new - held_out) ** 2))
            return bool(gain > 2 * np.sqrt(8 * np.sum(precision * (new - old) ** 2)))

        strength, best = 1.0, answers(1.0)
        while strength > LEAST_STRENGTH and closer(new := answers(strength / 3), best):
            strength, best = strength / 3, new
        if strength == 1.0 and closer(answers(3.0), best):
            strength = 3.0
        return strength


def only_measured(log: Log) -> Log:
    """The log over a workload that holds the measured marginals and no others."""
    groups = sorted(log.taken)
    place = {group: n for n, group in enumerate(groups)}
    workload = Workload(log.workload.domain, tuple(log.workload.marginals[group] for group in groups))
    rounds = [
        replace(entry, picks=tuple(Pick(place[pick.group]) for pick in entry.picks))
        for entry in log.rounds
        if entry.noisy
    ]
    return Log(workload, log.total, rounds, [{} for _ in rounds])


def one_way(workload: Workload, targets: np.ndarray, precision: np.ndarray) -> list[np.ndarray]:
    """Estimated one-way marginals: the sums of all measured marginals with the attribute, weighted by their precision
    (a sum over c cells has c times the variance), moved to the simplex; uniform where nothing was measured."""
    sizes = workload.domain.sizes
    sums, weights = [np.zeros(size) for size in sizes], np.zeros(len(sizes))
    for n, marginal in enumerate(workload.marginals):
        cells = workload.group(n).flat
        table = targets[cells].reshape(workload.domain.shape(marginal))
        for axis, attribute in enumerate(marginal):
            weight = precision[cells.start] * sizes[attribute] / table.size
            sums[attribute] += weight * np.moveaxis(table, axis, 0).reshape(sizes[attribute], -1).sum(axis=1)
            weights[attribute] += weight
    return [
        to_simplex(total / weight) if weight > 0 else np.full(len(total), 1 / len(total))
        for total, weight in zip(sums, weights, strict=True)
    ]
