"""A fit of relaxed rows to noisy marginals that shrinks towards independent attributes as far as the noise asks for.

The rows p_1 .. p_B minimise, with noisy fractions y_c of the standard deviation sigma_c,

    1/2 sum over measured cells c of (q_c(p) - y_c)^2 / sigma_c^2
        + lambda sum_j g_j c log(1 + v_j / c),        g_j = sqrt(m_j) (1 - m_j),  c = 0.3,

where m is the mean row and v_j, between 0 and 1, the variance of p_bj over the rows b as a share of m_j (1 - m_j), by
Adam, from the product of the estimated one-way marginals, none of them below 0.0003, and small random differences. It
descends again, from where it is, while the mean of (q_c - y_c)^2 / sigma_c^2 is clearly above 1, so that the residual
is larger than the noise, and the last descent still lowered the whole by one percent; and as often as it was of use in
a trial (see below). The model is the mixture of several such fits, which differ in their starts: what they have of the
noise is not the same in all, and averages out in part.

The first term alone follows the noise. The second is 0 for a product of marginals and grows with all that ties
attributes together. The logarithm is for values that are tied strongly, as where one column repeats another: what a
square would take from them is the largest error by far. The penalty rises from 0 during the first steps, so that such
ties are there before it is. The less noise, the less it counts beside the first: lambda = s * 18 sigma^(-0.6), with
sigma the noise (as a fraction) that the workload's marginals have, or would have if all were measured alike. s = 1
to 1.5 came out best on most of the tables that it was developed on.

How strongly attributes are tied differs from table to table, so s is tried by splitting the noise. Draw z with the
known variance sigma_c^2 of the noise; then y + tau z and y - z / tau have independent noise, of 1 + tau^2 and
1 + tau^-2 times that variance. A fit f to the first is judged by its distance sum_c (f_c - (y - z / tau)_c)^2 /
sigma_c^2 to the second; the difference of two such distances, of fits f and g, has the standard error
sqrt(4 (1 + tau^-2) sum_c (f_c - g_c)^2 / sigma_c^2). tau = 0.7 leaves the first not much noisier than y itself, so that
what is best for it is best for y. From s = 1 on, s rises to 1.5, and then to 1.5^3, as long as the distance gets
smaller, or else falls in such steps, down to 1.5^-11. The fit with the s that was found then descends again, up
to three times in all, as long as that makes the distance smaller by two standard errors and by a tenth of what is left
of it without the noise, (1 + tau^-2) for every cell: a wide table may need it. All of this uses nothing but the noisy
values: it is post-processing, and z, which protects nothing, may come from any generator.

A *public table* with the fractions x_c is a prior beside the measurements: each of its cells counts as a measurement
of x_c with the variance v_c / kappa, v_c = a x_c (1 - x_c) + b. How far the two tables are apart is measured:
(y_c - x_c)^2 - sigma_c^2 estimates the square of the true distance of a cell without bias, so a and b come from a
regression of it on x_c (1 - x_c) and 1 over all measured cells; what is not clearly above 0 is taken for 0. a is at
least 1 / m, the sampling noise of m public rows, and b at least a^2 / 2: a public table that is worth 1 / a rows says
that little of a cell which it does not have.
kappa = 0.3, since the same distance comes back in many overlapping marginals, where the noise is new in each. Whether
the public table is used at all is again decided by splitting the noise: only if the fit with it is better by a
standard error: a table that is far away has large variances and does little harm. With it,
marginals that were not measured are fitted to the public table, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.data.public import PublicTable
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Log, to_simplex
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Workload
from pointillist.updates.descent import Descent, Settings, combined

__all__ = ["Prior", "ShrunkenFit", "one_way"]

LAMBDA, POWER = 18.0, 0.6
FACTOR, MOST_UP, MOST_DOWN = 1.5, 3, 11
"""How s is tried: by powers of this factor, up to this one and down to that one."""
TAU = 0.7
"""How the noise is split: see above."""
MOST_DESCENTS = 10
"""A fit descends no more often than that."""
MOST_USEFUL, USEFUL = 3, 0.1
"""And no more often than that where its residual looks like noise already; each time must take away such a share of the
squared error that is left."""
LEAST_SHARE = 3e-4
"""No value's estimated share is taken to be smaller at the start. A frequent value whose estimate the noise has put at
0 would otherwise have no gradient to speak of, and would never come back."""
KAPPA = 0.3
"""How much the public cells count: see above."""
MOST_WEIGHT = 100.0
"""No public cell counts for more than so many measured ones: the descent would not converge."""

Descents = Iterator[tuple[Params, float, bool]]
"""After each descent: the rows, the loss, and whether the residual looks like noise or the loss falls no more."""


@dataclass(frozen=True)
class Choice:
    """What is decided by splitting the noise: s, the weight of the public table, and the least number of descents."""

    strength: float
    weight: float = 0.0
    descents: int = 1


@dataclass(frozen=True)
class ShrunkenFit:
    """The update. Memory: what was chosen, once it is.

    ``family`` has the rows of one fit, ``fits`` is their number. ``asked`` is the number of the workload's marginals,
    which come first in what may be measured; ``strength`` is s, or None to choose it. ``whole`` fits over all that may
    be measured, not only over what was: then rounds that measure ever more share one compiled program.
    """

    family: Relaxed
    fits: int
    asked: int
    settings: Settings
    strength: float | None = None
    public: PublicTable | None = None
    whole: bool = False

    def init(self, params: Params) -> None:
        return None

    def __call__(
        self, rng: np.random.Generator, params: Params, memory: Choice | None, log: Log
    ) -> tuple[Params, Choice]:
        import jax.numpy as jnp

        problem = self.problem(log)
        starts = rng.spawn(self.fits)  # which do not depend on what is tried out below
        choice = memory or self.choose(rng, problem)
        parts = [self.fit(start, problem, choice) for start in starts]
        log.notes[-1].update(problem.log.notes[-1], strength=choice.strength, descents=choice.descents)
        if self.public is not None:
            log.notes[-1]["public"] = choice.weight
        return {name: jnp.concatenate([part[name] for part in parts]) for name in params}, choice

    def problem(self, log: Log) -> Problem:
        """What is to be fitted: the measured marginals and, with a public table, those of the workload that it has."""
        marginals = log.workload.marginals
        beside = () if self.public is None else self.public.covered(marginals[: self.asked])
        log = log if self.whole else restricted(log, beside)
        targets, precision = combined(log)
        # As if all marginals of the workload had been measured alike, with the same budget.
        spent = sum(precision[log.workload.offsets[:-1]])
        problem = Problem(log, targets, precision, float(np.sqrt(self.asked / spent)), frozenset(beside))
        return problem if self.public is None else replace(problem, prior=Prior.of(self.public, problem))

    def fit(self, rng: np.random.Generator, problem: Problem, choice: Choice) -> Params:
        """One fit: the best of its descents."""
        return settled(self.descents(rng, problem, choice), choice.descents)[0]

    def descents(self, rng: np.random.Generator, problem: Problem, choice: Choice) -> Descents:
        """The family's random rows, moved to the one-way marginals, descend to the targets, again and again."""
        import jax
        import jax.numpy as jnp

        workload, cells = problem.log.workload, int(np.count_nonzero(problem.precision))
        targets, precision = problem.with_public(choice.weight)
        base = np.log(np.maximum(np.concatenate(one_way(workload, targets, precision)), LEAST_SHARE))
        params = self.family.init(rng)
        params = params | {"logits": params["logits"] + jnp.asarray(base, jnp.float32)[None, :]}
        descent = Descent(self.family, workload, self.settings)
        penalty = 2 * choice.strength * LAMBDA * problem.sigma**-POWER / cells
        data: dict[str, Any] = descent.cells_data(targets, precision, cells) | {"penalty": np.float32(penalty)}
        notes, least = problem.log.notes[-1], np.inf
        for _ in range(MOST_DESCENTS):
            # The descent consumes what it starts from.
            params, _ = descent.fit(rng, jax.tree.map(jnp.copy, params), data, -1.0, problem.log)
            stalled = notes["loss"] > 0.99 * least
            least = min(least, notes["loss"])
            residual = notes["loss"] - penalty * notes["spread"]
            if choice.weight:  # then the loss is also that of the public cells
                answers = self.family.answers(params, workload)
                residual = float(np.sum(problem.precision * (answers - problem.targets) ** 2)) / cells
            yield params, notes["loss"], stalled or residual <= 1 + 2 * np.sqrt(2 / cells)

    def choose(self, rng: np.random.Generator, problem: Problem) -> Choice:
        """By how well fits to one part of the split noise foretell the other."""
        choice = Choice(1.0 if self.strength is None else self.strength)
        if self.strength is None:
            split = Split(self, rng, problem)
            best, power = split.trial(choice), 0
            for sign, most in ((1, MOST_UP), (-1, MOST_DOWN)):
                while abs(power) < most and power * sign >= 0:
                    step = power + sign * (2 if power else 1)
                    new = split.trial(Choice(float(FACTOR**step)))
                    if not split.closer(new.answers, best.answers, 0.0):
                        break
                    best, power = new, step
            choice = split.enough(best)
        if problem.prior is not None:
            split = Split(self, rng, problem)
            with_public, without = split.trial(replace(choice, weight=KAPPA)), split.trial(choice)
            choice = (with_public if split.closer(with_public.answers, without.answers, 1.0) else without).choice
        return choice


@dataclass(frozen=True)
class Prior:
    """Public fractions x_c and the variances v_c around them; ``known`` are the cells that the public table has."""

    fractions: np.ndarray
    variances: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, public: PublicTable, problem: Problem) -> Prior | None:
        """The prior for the measured marginals and those beside, with its variances from what was measured; None if the
        public table has no measured marginal."""
        workload, targets, precision = problem.log.workload, problem.targets, problem.precision
        measured = precision[workload.offsets[:-1]] > 0
        beside = [marginal in problem.beside for marginal in workload.marginals]
        covered = public.covered([workload.marginals[n] for n in np.flatnonzero(measured | beside)])
        counts = dict(zip(covered, public.count(covered), strict=True))
        empty = [np.zeros(workload.domain.cells_of(marginal)) for marginal in workload.marginals]
        pairs = list(zip(workload.marginals, empty, strict=True))
        fractions = np.concatenate([counts[m] / public.rows if m in counts else zeros for m, zeros in pairs])
        known = np.concatenate([np.full(len(zeros), m in counts) for m, zeros in pairs])
        both = known & (precision > 0)
        if not both.any():
            return None
        spread, inverse = fractions * (1 - fractions), precision[both]
        excess = (targets[both] - fractions[both]) ** 2 - 1 / inverse
        # The variance of an excess is about 2 / inverse^2, so its standard deviations are the rows' weights.
        design = np.stack([spread[both], np.ones(len(excess))], axis=1) * inverse[:, None]
        gram, moments = design.T @ design, design.T @ (excess * inverse)
        scale, constant = nonnegative(gram, moments)
        # In these units the rows have the variance 2. What is within two standard errors of 0 is taken for 0.
        scale, constant = (
            found if found * np.sqrt(own) > 2 * np.sqrt(2) else 0.0
            for found, own in zip((scale, constant), np.diag(gram), strict=True)
        )
        scale = max(scale, 1 / public.rows)
        variances = scale * spread + max(constant, scale**2 / 2)
        return cls(fractions, np.maximum(variances, KAPPA / (MOST_WEIGHT * inverse.max())), known)


@dataclass(frozen=True)
class Problem:
    """Noisy fractions with their precisions (0 where nothing was measured), the noise as if all of the workload had
    been measured, the marginals that are fitted to public answers though they were not measured, and the prior."""

    log: Log
    targets: np.ndarray
    precision: np.ndarray
    sigma: float
    beside: frozenset[Attributes] = frozenset()
    prior: Prior | None = None

    def with_public(self, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """Targets and precisions with the public cells as measurements of precision ``weight`` / v_c."""
        if self.prior is None or weight == 0:
            return self.targets, self.precision
        added = np.where(self.prior.known, weight / self.prior.variances, 0.0)
        precision = self.precision + added
        sums = self.precision * self.targets + added * self.prior.fractions
        return np.divide(sums, precision, out=np.zeros_like(sums), where=precision > 0), precision


@dataclass(frozen=True)
class Trial:
    """A fit to the first part of the split noise: its answers, how often it descended, and its further descents."""

    choice: Choice
    answers: np.ndarray
    count: int
    further: Descents


class Split:
    """The noise, split in two: fits to the first part are judged by the second."""

    def __init__(self, update: ShrunkenFit, rng: np.random.Generator, problem: Problem) -> None:
        self._update = update
        spread = np.divide(1.0, problem.precision, out=np.zeros_like(problem.precision), where=problem.precision > 0)
        noise = rng.standard_normal(len(spread)) * np.sqrt(spread)
        self._precision, self._held_out = problem.precision, problem.targets - noise / TAU
        self._problem = replace(
            problem,
            targets=problem.targets + TAU * noise,
            precision=problem.precision / (1 + TAU**2),
            sigma=problem.sigma * np.sqrt(1 + TAU**2),
        )
        if update.public is not None:
            self._problem = replace(self._problem, prior=Prior.of(update.public, self._problem))  # from its own noise
        self._seed = int(rng.integers(2**31))

    def trial(self, choice: Choice) -> Trial:
        """A fit to the first part."""
        descents = self._update.descents(np.random.default_rng(self._seed), self._problem, choice)
        params, count = settled(descents, choice.descents)
        return Trial(choice, self._answers(params), count, descents)

    def enough(self, trial: Trial) -> Choice:
        """The choice with as many descents as are of use."""
        best, count = trial.answers, trial.count
        for params, _, _ in itertools.islice(trial.further, max(0, MOST_USEFUL - count)):
            new = self._answers(params)
            left = self.distance(best) - (1 + TAU**-2) * np.count_nonzero(self._precision)
            if not self.closer(new, best, 2.0) or self.distance(best) - self.distance(new) < USEFUL * left:
                break
            best, count = new, count + 1
        return replace(trial.choice, descents=min(count, MOST_USEFUL))

    def _answers(self, params: Params) -> np.ndarray:
        return self._update.family.answers(params, self._problem.log.workload)

    def distance(self, answers: np.ndarray) -> float:
        """The squared distance to the second part, in units of the noise variance."""
        return float(np.sum(self._precision * (answers - self._held_out) ** 2))

    def closer(self, new: np.ndarray, old: np.ndarray, errors: float) -> bool:
        """Whether the new answers are closer to the second part than the old ones, by so many standard errors."""
        gain = self.distance(old) - self.distance(new)
        return bool(gain > errors * np.sqrt(4 * (1 + TAU**-2) * np.sum(self._precision * (new - old) ** 2)))


def settled(descents: Descents, least: int) -> tuple[Params, int]:
    """The rows with the smallest loss once the descents are done, at least so many; and how many they were."""
    kept, smallest, count = None, np.inf, 0
    for params, loss, done in descents:
        count += 1
        if kept is None or loss < smallest:
            kept, smallest = params, loss
        if done and count >= least:
            break
    assert kept is not None
    return kept, count


def nonnegative(gram: np.ndarray, moments: np.ndarray) -> tuple[float, float]:
    """The two coefficients, none below 0, of the least squares with these normal equations."""
    corners = [(0.0, 0.0)]
    corners += [(max(0.0, moments[0] / gram[0, 0]), 0.0)] if gram[0, 0] > 0 else []
    corners += [(0.0, max(0.0, moments[1] / gram[1, 1]))] if gram[1, 1] > 0 else []
    if np.linalg.cond(gram) < 1e12:
        inside = np.linalg.solve(gram, moments)
        corners += [(float(inside[0]), float(inside[1]))] if np.all(inside >= 0) else []
    return min(corners, key=lambda at: float(np.array(at) @ gram @ np.array(at) - 2 * moments @ np.array(at)))


def restricted(log: Log, beside: Sequence[Attributes] = ()) -> Log:
    """The log over a workload that holds the measured marginals, those ``beside``, and no others."""
    marginals = log.workload.marginals
    more = set(beside)
    kept = sorted(log.taken | {group for group, marginal in enumerate(marginals) if marginal in more})
    place = {group: n for n, group in enumerate(kept)}
    workload = Workload(log.workload.domain, tuple(marginals[group] for group in kept))
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
            weight = precision[cells].mean() * sizes[attribute] / table.size
            sums[attribute] += weight * np.moveaxis(table, axis, 0).reshape(sizes[attribute], -1).sum(axis=1)
            weights[attribute] += weight
    return [
        to_simplex(total / weight) if weight > 0 else np.full(len(total), 1 / len(total))
        for total, weight in zip(sums, weights, strict=True)
    ]
