"""A fit of relaxed rows to noisy answers that shrinks towards independent attributes, as far as the noise calls for.

The rows p_1 .. p_B minimise

    1/2 of their squared distance from what was measured, in units of the noise (:mod:`pointillist.updates.target`)
        + lambda sum_j g_j c log(1 + v_j / c),        g_j = sqrt(m_j) (1 - m_j),  c = 0.3,

where m is the mean row and v_j, between 0 and 1, the variance of p_bj over the rows b as a share of m_j (1 - m_j), by
Adam, from the product of the estimated one-way marginals, none of them below 0.0003, and small random differences. The
descent is repeated, from where it ended, while the mean squared residual, in units of the noise, is clearly above 1, so
that the residual is larger than the noise, and the last descent still lowered the whole by one percent; and as often as
it helped in a trial (see below). Where there is much to fit and much noise, descents are short (see below). The model
is the mixture of several such fits, which differ in their starts: what they have fitted of the noise differs, and
averages out in part.

A penalty also weakens dependencies that are certain: a rare value that is strongly tied to another one may end up many
standard deviations off. Where the residual of a cell of a part, or of a block of cells, is larger than noise explains,
what is beyond 3.5 standard deviations in all residuals is added to the targets, and the descent goes on from where it
ended, up to three times (Bregman iteration; Osher, Burger, Goldfarb, Xu and Yin, *An iterative regularization method
for total variation-based image restoration*, 2005). So the cut is given back where it was wrong, and only there. The
same is done for how far ordered attributes that a run has merged rise together (:mod:`pointillist.updates.rising`),
from 1.5 standard deviations on: a correlation loses a little in every cell of its pair. It is
the last thing: with it, trials would prefer a stronger penalty, at the cost of the many weak dependencies.

The distance also has the sums over blocks of neighbouring values of ordered attributes
(:mod:`pointillist.updates.coarser`); the distances that fits are judged by have not. The distances of ties say by how
much a pair differs from independence even where noise hides its cells. They count more and more during the first steps,
like the penalty.

The first term alone follows the noise. The second is 0 for a product of marginals and grows with every dependency
between attributes. The logarithm is for values that depend strongly on each other, as where one column repeats another:
what a square would take from them is the largest error by far. The penalty rises from 0 during the first steps, so that
such dependencies form before it sets in. The less noise, the less it counts: lambda = s * 22 sigma^(-0.6), with
sigma the noise (as a fraction) that the workload's marginals would have if all had been measured alike. s = 1
to 1.5 was best on most of the tables that it was developed on.

How strongly attributes depend on each other differs from table to table, so s is tried by splitting the noise. Draw z
from the distribution of the noise; then y + tau z and y - z / tau have independent noise, of 1 + tau^2 and 1 + tau^-2
times the variance. A fit f to the first is judged by its squared distance to the second, in units of the noise of y;
the difference of two such distances, of fits f and g, has the standard error sqrt(4 (1 + tau^-2)) times the distance of
f and g. tau = 0.7 leaves the first not much noisier than y itself, so that what is best for it is best for y.

For s, parts count as much as they matter for the workload (:mod:`pointillist.updates.relevance`): in units of the noise
the few strong ties, which are measured best, would ask for less shrinkage than the many weak ones need. With weights
r_A in place of pi_A the standard error has r_A^2 / pi_A in the distance of f and g. s = 1 and s = 1.5^-7 are tried, and
the second is taken if it is closer by three standard errors. From there s rises by 1.5 and then in steps of 1.5^2, up
to 1.5^3, as long as the distance gets smaller, or else falls in such steps, down to 1.5^-11, as long as it gets smaller
by three standard errors. From below 1 it rises unless it is farther than the nearest fit by more than three of them.

If the fit leaves clearly more than noise, the rows of all fits are tried in one fit: rows that differ can then carry
more dependencies, and rows start again at cells that are missed by far
(:mod:`pointillist.updates.residuals`). Otherwise the fit with the s that was
found is repeated, up to three times in all, as long as that makes the distance smaller by two standard errors and by a
tenth of what is left of it without the noise, 1 + tau^-2 for every dimension: a wide table may need it. All of this
uses nothing but the noisy values: it is post-processing, and z, which protects nothing, may come from any generator.

*Short descents* have a third of the steps, half as large. Steps beyond them follow what is left in the residual: where
this is only noise, more steps make a model worse. So if 30,000 dimensions or more were measured, the first trial has
one or two short descents with s = 1. If its mean squared residual is not clearly above 1, and no cell is missed by far,
then short descents are enough, and s only rises, by 1.5 and then 1.5^2, as long as the distance gets smaller: less
shrinkage could only follow the noise. With fewer dimensions the residual does not tell well, and long descents take no
time.

A *public table* with the fractions x_c adds to the measurements: each of its cells counts as a measurement
of x_c with the variance v_c / kappa, v_c = a x_c (1 - x_c) + b. How far the two tables are apart is measured:
(y_c - x_c)^2 - sigma_c^2 estimates the square of the true distance of a cell without bias, so a and b come from a
regression of it on x_c (1 - x_c) and 1 over all measured cells; what is not clearly above 0 is taken for 0. a is at
least 1 / m, the sampling noise of m public rows, and b at least a^2 / 2: a public table that is worth 1 / a rows says
little about a cell that it does not have.
kappa = 0.3, since the same distance comes back in many overlapping marginals, where the noise is new in each. Whether
the public table is used at all is again decided by splitting the noise: only if the fit with it is closer. A table
that is far away has large variances and does little harm, so no more is asked for. With it, queries that were not
measured are fitted to the public table, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.data.public import PublicTable
from pointillist.errors import Shown
from pointillist.families.components import Parts
from pointillist.families.relaxed import Params, Relaxed
from pointillist.framework import Info, Log, Updated
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries
from pointillist.queries.counting import public_counts
from pointillist.queries.workload import offsets_of
from pointillist.reporting import Steps, steps_of
from pointillist.updates.coarser import Coarser
from pointillist.updates.descent import Recipe, descend, layered
from pointillist.updates.relevance import relevance
from pointillist.updates.residuals import given_back, most_by_chance, reseeded
from pointillist.updates.rising import directions
from pointillist.updates.target import Measured, OnQueries, one_way

__all__ = ["PublicCells", "ShrunkenFit", "Target"]

LAMBDA, POWER = 22.0, 0.6
FACTOR, MOST_UP, MOST_DOWN = 1.5, 3, 11
"""How s is tried: by powers of this factor, and the largest exponents up and down."""
CLEARLY = 3.0
"""Less shrinkage must predict better by this number of standard errors: squares, by which fits are judged, prefer less
of it than the sum of absolute errors does."""
FAR = 7
"""This power down is tried, too: where attributes are tied very strongly, a little less shrinkage changes nothing."""
MOST_TRIALS = 3 + (MOST_DOWN + 1) // 2
"""At most: the first, the far one, one up that does not help, and every second power down."""
TAU = 0.7
"""How the noise is split: see above."""
MOST_DESCENTS = 10
"""The largest number of descents of a fit."""
SHORTER, GENTLER = 3, 2.0
"""How many times fewer steps a short descent has, and by what its steps are divided."""
SHORT_FROM, MOST_SHORT, MISSED_FAR = 30_000, 2, 4.0
"""The number of dimensions from which short descents are tried: with fewer of them the residual does not tell well
whether there is more than noise, and long ones take no time. The largest number of them in a trial: what needs a
third one, as a table with little noise, is better fitted by long ones. And by how much a residual may exceed what is
expected by chance where they are enough."""
MOST_USEFUL, USEFUL = 3, 0.1
"""The largest number where its residual looks like noise already, and the share of the remaining squared error that
each of them must remove."""
TOO_FEW_ROWS, MOST_TOGETHER = 1.03, 4
"""A mean squared residual, in units of the noise variance, above which all rows are tried in one fit; and the largest
number of its descents."""
MISSED_RISING, EXPLAINED_RISING = 1.5, 0.5
"""The same for what a pair of ordered attributes lacks in rising together (:mod:`pointillist.updates.rising`), in
standard deviations: by how much one pair must be off, and how much of it is left to the noise. These are few numbers, a
penalty takes from all of them in the same direction, and a correlation follows them alone."""
MISSED_BEYOND, MOST_GIVEN = 0.5, 3
"""By how much a residual must exceed what is expected by chance, for something to be given back; and how often."""
LEAST_SHARE = 3e-4
"""No value's estimated share is taken to be smaller at the start. A frequent value whose estimate the noise has put at
0 would otherwise have hardly any gradient, and would never come back."""
KAPPA = 0.3
"""How much the public cells count: see above."""
MOST_WEIGHT = 100.0
"""No public cell counts for more than this number of measured ones: the descent would not converge."""

MANY_CELLS, MORE_CELLS = 100_000, 1.25
"""From this number of cells on, and up to this number of times those that are fitted, a program has all cells that may
be fitted. What is measured follows from noise; all that may be measured does not, so that the next process finds the
program in the cache."""

Descents = Iterator[tuple[Params, np.ndarray, Info, bool]]
"""After each descent: the rows, their answers to the queries of the target, its diagnostics, and whether the residual
looks like noise or the loss has stalled."""


@dataclass(frozen=True)
class Choice:
    """What is decided by splitting the noise: s, the weight of the public table, the least number of descents, and
    whether all rows are fitted together, and by short descents."""

    strength: float
    weight: float = 0.0
    descents: int = 1
    together: bool = False
    short: bool = False


@dataclass(frozen=True)
class ShrunkenFit:
    """The update. Memory: what was chosen, once it is.

    Attributes:
        family: the rows of one fit.
        together: the rows of all fits, for tables that one fit has too few rows for.
        fits: the number of fits.
        wanted: the queries of the workload.
        measurable: all that may be measured and is known before, in the order in which it is fitted.
        recipe: how a fit descends.
        strength: s, or None to choose it.
        public: a public table, if there is one.
        whole: fit over all that may be measured, not only over what was measured: then rounds that measure ever more
            share one compiled program.
        rounds: the number of rounds after which there is a fit, by the facts of a run; None for a fit after each.
        lines: for every attribute the number of its codes that lie on a line; see
            :class:`~pointillist.updates.coarser.Coarser`.
        places: for every attribute the places of these codes; see :mod:`~pointillist.updates.rising`.
        kept: what an earlier run has chosen, for a run that repeats it; None to choose.
    """

    family: Relaxed
    together: Relaxed
    fits: int
    wanted: tuple[Queries, ...]
    measurable: tuple[Queries, ...]
    recipe: Recipe
    strength: float | None = None
    public: PublicTable | None = None
    whole: bool = False
    rounds: Callable[[Facts], int] | None = None
    lines: tuple[int, ...] = ()
    places: tuple[tuple[float, ...], ...] = ()
    kept: Choice | None = None

    def init(self, params: Params) -> None:
        return None

    def again(self, log: Log, shrunken: float = 1.0) -> ShrunkenFit:
        """The update of a run that repeats the rounds of another one: nothing is tried out again.

        Args:
            log: the transcript of that run.
            shrunken: how many times as strong the shrinkage is. If that is below 1, it is no stronger than for a run
                with s = 1: where noise hides most dependencies, s is large, and a share of it would still remove them.
        """
        last, rounds = log.info[-1] if log.info else {}, len(log.rounds)
        rule, hint = "must tell how its model was fitted", "ask for answers without intervals"
        check("strength" in last and "descents" in last, "release", Shown("one that does not"), rule, hint)
        together = self.fits > 1 and last.get("fits", self.fits) == 1  # which older releases do not tell: all were made
        short = last.get("short", 0.0) > 0  # which older releases do not tell: none was
        strength = last["strength"] if shrunken == 1 else shrunken * min(1.0, last["strength"])
        kept = Choice(strength, last.get("public", 0.0), int(last["descents"]), together, short)
        return replace(self, kept=kept, rounds=None if self.rounds is None else lambda facts: rounds)

    def __call__(self, rng: np.random.Generator, params: Params, memory: Choice | None, log: Log) -> Updated:
        import jax.numpy as jnp

        if self.rounds is not None and len(log.rounds) < self.rounds(log.facts):
            return Updated(params, memory, {})
        target = self.target(log)
        if not target.measured.freedom:  # every attribute has a single value, and so do all rows
            nothing = Choice(1.0 if self.strength is None else self.strength)
            return Updated(params, nothing, {"strength": nothing.strength, "descents": 0.0, "fits": float(self.fits)})
        starts = rng.spawn(self.fits)  # which do not depend on what is tried out below
        choice = memory or self.kept or self.choose(rng, target)
        fits: list[Fit] = []
        with steps_of("fitting") as made:
            for start in starts:
                left = self.fits - len(fits)
                made.expect(left * choice.descents * self.recipe_of(choice).optimizer.steps)
                made.info = {"fit": len(fits) + 1}
                fits.append(settled(self.descents(start, target, choice, MOST_GIVEN), choice.descents))
                if choice.together:
                    break
        joined = {name: jnp.concatenate([fit.params[name] for fit in fits]) for name in params}
        info = fits[-1].last | {"strength": choice.strength, "descents": float(choice.descents)}
        info |= {"short": float(choice.short)}
        info |= {"fits": float(len(fits))} | _missed(np.mean([fit.answers for fit in fits], axis=0), target)
        if self.public is not None:
            info["public"] = choice.weight
        return Updated(joined, choice, info)

    def rows_of(self, choice: Choice) -> Relaxed:
        """The rows that are fitted at a time."""
        return self.together if choice.together else self.family

    def recipe_of(self, choice: Choice) -> Recipe:
        """How a fit descends."""
        adam = self.recipe.optimizer
        short = replace(adam, steps=max(1, adam.steps // SHORTER), learning_rate=adam.learning_rate / GENTLER)
        return replace(self.recipe, optimizer=short) if choice.short else self.recipe

    def target(self, log: Log) -> Target:
        """What is to be fitted: what was measured and, with a public table, the wanted queries that it can answer."""
        measured = Measured.of(self.family.domain, log)
        borrowed = frozenset() if self.public is None else frozenset(_answered_by(self.public, self.wanted))
        fitted = {*measured.queries, *borrowed}
        known = self.measurable if self.whole else tuple(one for one in self.measurable if one in fitted)
        queries = tuple(dict.fromkeys((*known, *measured.queries)))  # some depend on earlier rounds
        # As if all of the workload had been measured alike, with the same budget.
        sigma = math.sqrt(len(self.wanted) / measured.spent)
        target = Target(measured, self._laid(queries), sigma, borrowed)
        return target if self.public is None else replace(target, public=PublicCells.of(self.public, target))

    def _laid(self, queries: tuple[Queries, ...]) -> tuple[Queries, ...]:
        """What a program answers: of many cells all that may be measured, if these are few more than are fitted."""
        cells, most = (sum(one.size for one in some) for some in (queries, self.measurable))
        every = MANY_CELLS <= most <= MORE_CELLS * cells
        return tuple(dict.fromkeys((*self.measurable, *queries))) if every else queries

    def descents(self, rng: np.random.Generator, target: Target, choice: Choice, most_given: int = 0) -> Descents:
        """The family's random rows, moved to the one-way marginals, descend to the targets, again and again. What the
        penalty took is given back at most ``most_given`` times."""
        import jax
        import jax.numpy as jnp

        family, aim = self.rows_of(choice), Aim(target, Coarser(target.queries, self.lines), choice.weight)
        every, freedom, ties = aim.queries, target.measured.freedom, target.measured.ties
        ways = one_way(target.measured)
        rising = directions(target.measured.parts, ways, self.places) if most_given else {}
        base = np.log(np.maximum(np.concatenate(ways), LEAST_SHARE))
        params = family.init(rng)
        params = params | {"logits": params["logits"] + jnp.asarray(base, jnp.float32)[None, :]}
        layout, least, given, recipe = family.layout(every), np.inf, 0, self.recipe_of(choice)
        fixed = {
            "penalty": np.float32(2 * choice.strength * LAMBDA * target.sigma**-POWER / freedom),
            "references": ties.references.astype(np.float32),
            "distances": ties.distances.astype(np.float32),
            "tie_weights": (ties.sigmas**-2 / freedom).astype(np.float32),
        }
        for count in range(MOST_TOGETHER if choice.together else MOST_DESCENTS):
            data = layered(layout, aim.layers, freedom) | fixed
            # The descent consumes what it starts from.
            params, info = descend(family, every, recipe, rng, jax.tree.map(jnp.copy, params), data, ties.scopes)
            stalled = info["loss"] > 0.99 * least
            least = min(least, info["loss"])
            answers = family.answers(params, target.queries)
            residual = target.on.distance(answers) / freedom
            off = aim.standardised(answers)
            worst = float(np.abs(off).max())
            missed = worst > most_by_chance(int(np.count_nonzero(off)), MISSED_BEYOND)
            weaker = target.on.along(answers, rising)
            weakest = max(map(abs, weaker.values()), default=0.0)
            missed, worst = missed or weakest > MISSED_RISING, worst if missed else weakest
            goes_on = missed and (choice.together or given < most_given)
            done = (stalled or residual <= most_residual(freedom)) and not goes_on
            yield params, answers, dict(info) | {"residual": residual, "worst": worst if missed else 0.0}, done
            if missed and given < most_given:
                given, least = given + 1, np.inf  # the loss is another one from now on
                aim = aim.given_back(off, weaker, rising)
            if choice.together and count + 1 < MOST_TOGETHER:
                queries, above, over = target.on.estimates(answers)
                logits = np.asarray(params["logits"])
                logits = reseeded(logits, family.probabilities(params), family.domain, queries, over, above)
                params = params | {"logits": jnp.asarray(logits, jnp.float32)}

    def choose(self, rng: np.random.Generator, target: Target) -> Choice:
        """By how well fits to one part of the split noise predict the other."""
        choice = Choice(1.0 if self.strength is None else self.strength)
        with steps_of("choosing") as made:
            if self.strength is None or target.measured.freedom >= SHORT_FROM:
                choice = self._tried(Split(self, rng, target, made, MOST_TRIALS), choice)
            if target.public is not None:
                split = Split(self, rng, target, made, 2)
                with_public, without = split.trial(replace(choice, weight=KAPPA)), split.trial(choice)
                choice = (with_public if split.closer(with_public.answers, without.answers, 0.0) else without).choice
        return choice

    def _tried(self, split: Split, choice: Choice) -> Choice:
        """Whether short descents are enough, and the strength if it is to be chosen."""
        if split.freedom >= SHORT_FROM:
            short = split.trial(replace(choice, short=True))
            if short.explained:
                return short.choice if self.strength is not None else self._more(split, short)
            split.left = MOST_TRIALS
        return choice if self.strength is not None else self._strength(split, choice)

    def _more(self, split: Split, first: Trial) -> Choice:
        """The strength, that of the first fit or more, whose fit by a short descent predicts best."""
        best = first
        for power in range(1, MOST_UP + 1, 2):
            split.left = (MOST_UP - power) // 2 + 1
            new = split.trial(replace(first.choice, strength=float(FACTOR**power)))
            if not split.better(new.answers, best.answers, 0.0):
                break
            best = new
        return best.choice

    def _strength(self, split: Split, first: Choice) -> Choice:
        """The strength whose fit predicts best, and as many descents as help."""
        best, power = split.trial(first), 0
        far = split.trial(Choice(float(FACTOR**-FAR)))
        if split.better(far.answers, best.answers, CLEARLY):
            best, power = far, -FAR
        for sign in (1, -1):
            step, nearest = 1, best
            while -MOST_DOWN <= (next_power := power + sign * step) <= MOST_UP:
                new = split.trial(Choice(float(FACTOR**next_power)))
                if sign > 0 and next_power <= 0:  # back towards 1, which is the rule where nothing speaks against it
                    stops = split.better(nearest.answers, new.answers, CLEARLY)
                else:
                    stops = not split.better(new.answers, best.answers, 0.0 if sign > 0 else CLEARLY)
                if stops:
                    break
                nearest = new if split.better(new.answers, nearest.answers, 0.0) else nearest
                best, power, step = new, next_power, 2
                split.left = ((MOST_UP - power if sign > 0 else MOST_DOWN + power) + 1) // 2
            if step > 1:
                break  # the other direction is where it came from
        return split.enough(split.together(best))


def _missed(answers: np.ndarray, target: Target) -> Info:
    """The largest residual of some answers, in units of the noise, and what it would be by chance at most."""
    residuals = target.on.standardised(answers)
    return {"worst": float(np.abs(residuals).max()), "worst_by_chance": most_by_chance(len(residuals))}


def _answered_by(public: PublicTable, queries: Sequence[Queries]) -> list[Queries]:
    """The queries whose attributes a public table has."""
    return [one for one in queries if public.covered([one.scope])]


@dataclass(frozen=True)
class PublicCells:
    """Public fractions x_c and the variances v_c around them; ``known`` are the cells that the public table has."""

    fractions: np.ndarray
    variances: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, public: PublicTable, target: Target) -> PublicCells | None:
        """The public answers to what was measured or borrowed, with variances from what was measured; None if the
        public table can answer nothing that was measured."""
        queries, (targets, precision) = target.queries, target.on.best_cells
        measured = precision[offsets_of(queries)[:-1]] > 0
        asked = [one for one, paid in zip(queries, measured, strict=True) if paid or one in target.borrowed]
        covered = _answered_by(public, asked)
        counts = dict(zip(covered, public_counts(public, covered), strict=True))
        fractions = np.concatenate([counts[q] / public.rows if q in counts else np.zeros(q.size) for q in queries])
        known = np.concatenate([np.full(one.size, one in counts) for one in queries])
        both = known & (precision > 0)
        if not both.any():
            return None
        variance, inverse = fractions * (1 - fractions), precision[both]
        excess = (targets[both] - fractions[both]) ** 2 - 1 / inverse
        # The variance of an excess is about 2 / inverse^2, so its standard deviations are the rows' weights.
        design = np.stack([variance[both], np.ones(len(excess))], axis=1) * inverse[:, None]
        gram, moments = design.T @ design, design.T @ (excess * inverse)
        scale, constant = nonnegative(gram, moments)
        # In these units the rows have the variance 2. What is within two standard errors of 0 is taken for 0.
        scale, constant = (
            found if found * np.sqrt(own) > 2 * np.sqrt(2) else 0.0
            for found, own in zip((scale, constant), np.diag(gram), strict=True)
        )
        scale = max(scale, 1 / public.rows)
        variances = scale * variance + max(constant, scale**2 / 2)
        return cls(fractions, np.maximum(variances, KAPPA / (MOST_WEIGHT * inverse.max())), known)


@dataclass(frozen=True)
class Target:
    """What a fit aims at.

    Attributes:
        measured: what was measured.
        queries: what a program answers: what is fitted, and maybe others, which count for nothing.
        sigma: the noise as if all of the workload had been measured.
        borrowed: queries that are fitted to public answers even if they were not measured.
        public: the public answers, if there are any.
    """

    measured: Measured
    queries: tuple[Queries, ...]
    sigma: float
    borrowed: frozenset[Queries] = frozenset()
    public: PublicCells | None = None

    @cached_property
    def on(self) -> OnQueries:
        """What was measured, over the queries."""
        return self.measured.on(self.queries)


@dataclass(frozen=True)
class Aim:
    """What a descent compares with: what was measured, blocks of its cells, public cells, and what was given back.

    Attributes:
        target: what the fit aims at.
        coarser: the coarser views.
        weight: how much the public cells count.
        back: what was given back to the cells of parts and other queries, and to the blocks; None for nothing yet.
    """

    target: Target
    coarser: Coarser
    weight: float
    back: tuple[Measured, np.ndarray] | None = None

    @property
    def queries(self) -> tuple[Queries, ...]:
        """What is answered."""
        return self.coarser.all_queries

    @cached_property
    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums over the blocks of all views that were measured, and their weights."""
        targets, precision = self.target.on.best_cells
        firsts = precision[offsets_of(self.target.queries)[:-1]]
        return self.coarser.sums(targets), self.coarser.weights(firsts)

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Targets and weights of all that is compared."""
        sums, weights = self._blocks
        on, more = self.target.on, np.zeros(len(sums))
        if self.back is not None:
            on, more = self.back[0].on(self.target.queries), self.back[1]
        (targets, known), *others = on.layers
        nothing = np.zeros(len(sums))
        found = [(np.concatenate([targets, sums + more]), np.concatenate([known, weights]))]
        found += [(np.concatenate([one, nothing]), np.concatenate([two, nothing])) for one, two in others]
        public = self.target.public
        if public is not None and self.weight > 0:
            counts = np.where(public.known, self.weight / public.variances, 0.0)
            found.append((np.concatenate([public.fractions, nothing]), np.concatenate([counts, nothing])))
        return found

    def standardised(self, answers: np.ndarray) -> np.ndarray:
        """What was measured minus some answers, in units of the noise: of parts, other queries, and blocks."""
        sums, weights = self._blocks
        blocks = (sums - self.coarser.sums(answers)) * np.sqrt(weights)
        return np.concatenate([self.target.on.standardised(answers), blocks])

    def given_back(self, residuals: np.ndarray, along: Mapping[Attributes, float], directions: Parts) -> Aim:
        """The same with more of what the residuals say that a penalty took.

        Args:
            residuals: in units of the noise, as :meth:`standardised` gives them.
            along: the same of parts along some directions.
            directions: these directions, of length 1.
        """
        measured, blocks = (self.target.measured, np.zeros(len(self._blocks[0]))) if self.back is None else self.back
        excess, weights = given_back(residuals), self._blocks[1]
        own, of_blocks = np.split(excess, [len(excess) - len(blocks)])
        scale = np.divide(1.0, np.sqrt(weights), out=np.zeros_like(weights), where=weights > 0)
        more = {a: given_back(np.array(off), EXPLAINED_RISING) * directions[a] for a, off in along.items()}
        return replace(self, back=(measured.plus(own).along(more), blocks + of_blocks * scale))


@dataclass(frozen=True)
class Trial:
    """A fit to the first part of the split noise: its answers, the number of its descents, further descents, its mean
    squared residual, and whether it leaves no more than noise."""

    choice: Choice
    answers: np.ndarray
    count: int
    further: Descents
    residual: float
    explained: bool


class Split:
    """The noise, split in two: fits to the first part are judged by the second.

    Args:
        update: how to fit.
        rng: splits the noise.
        target: the noisy answers.
        made: gets the number of steps.
        left: the number of fits, at most.
    """

    def __init__(self, update: ShrunkenFit, rng: np.random.Generator, target: Target, made: Steps, left: int) -> None:
        self._update, self._made, self.left = update, made, left
        noisier, held_out = target.measured.split(rng, TAU)
        self._target = replace(target, measured=noisier, sigma=target.sigma * math.sqrt(1 + TAU**2))
        self._held_out = held_out.on(target.queries)
        if update.public is not None:
            self._target = replace(self._target, public=PublicCells.of(update.public, self._target))  # its own noise
        scopes, parts = [one.scope for one in update.wanted], target.measured.parts
        self._relevance = relevance(parts, scopes, one_way(target.measured))
        # The variance of sum r (|y - f|^2 - |y - g|^2) is 4 (1 + tau^-2) sum r^2 / pi |f - g|^2.
        self._spread = {scope: weight**2 / parts.precision[scope] for scope, weight in self._relevance.items()}
        self._seed = int(rng.integers(2**31))
        self._trials = 0

    @property
    def freedom(self) -> int:
        """The number of dimensions of what was measured."""
        return self._target.measured.freedom

    def trial(self, choice: Choice) -> Trial:
        """A fit to the first part."""
        descents = self._update.descents(np.random.default_rng(self._seed), self._target, choice)
        self._trials += 1
        self._made.info = {"trial": self._trials, "strength": choice.strength}
        self._made.expect(self.left * self._update.recipe_of(choice).optimizer.steps)
        self.left -= 1
        # Whether few short descents are enough is what the first trial asks.
        fit = settled(itertools.islice(descents, MOST_SHORT) if choice.short else descents, choice.descents)
        residual, worst = fit.last["residual"], fit.last["worst"]
        explained = worst <= most_by_chance(self.freedom, MISSED_FAR) and residual <= most_residual(self.freedom)
        return Trial(choice, fit.answers, fit.count, descents, residual, explained)

    def together(self, trial: Trial) -> Trial:
        """The same with all rows in one fit, if the rows of one fit leave more than noise and it predicts better."""
        if self._update.fits == 1 or trial.residual <= TOO_FEW_ROWS:
            return trial
        self.left = self._update.fits
        new = self.trial(replace(trial.choice, together=True))
        return new if self.closer(new.answers, trial.answers, 2.0) else trial

    def enough(self, trial: Trial) -> Choice:
        """The choice with as many descents as help."""
        best, count = trial.answers, trial.count
        if trial.choice.together:
            return trial.choice
        for _, new, _, _ in itertools.islice(trial.further, max(0, MOST_USEFUL - count)):
            left = self.distance(best) - (1 + TAU**-2) * self.freedom
            if not self.closer(new, best, 2.0) or self.distance(best) - self.distance(new) < USEFUL * left:
                break
            best, count = new, count + 1
        return replace(trial.choice, descents=min(count, MOST_USEFUL))

    def distance(self, answers: np.ndarray) -> float:
        """The squared distance to the second part, in units of the noise variance."""
        return self._held_out.distance(answers)

    def closer(self, new: np.ndarray, old: np.ndarray, errors: float) -> bool:
        """Whether the new answers are closer to the second part than the old ones, by ``errors`` standard errors."""
        gain = self.distance(old) - self.distance(new)
        return bool(gain > errors * self._error(self._held_out.apart(new, old)))

    def better(self, new: np.ndarray, old: np.ndarray, errors: float) -> bool:
        """The same with every part counting as much as it matters for the workload's total variation."""
        held_out, weights = self._held_out, self._relevance
        gain = held_out.distance(old, weights) - held_out.distance(new, weights)
        return bool(gain > errors * self._error(held_out.apart(new, old, self._spread)))

    @staticmethod
    def _error(apart: float) -> float:
        """The standard error of the difference of two distances.

        Args:
            apart: the squared distance of the two answers.
        """
        return math.sqrt(4 * (1 + TAU**-2) * apart)


@dataclass(frozen=True)
class Fit:
    """The rows with the smallest loss, their answers, the number of descents, and the diagnostics of the last one."""

    params: Params
    answers: np.ndarray
    count: int
    last: Info


def settled(descents: Descents, least: int) -> Fit:
    """The best of the descents until they are done, at least ``least`` of them: the one that misses least, and of those
    that miss nothing the one with the smallest loss."""
    kept, smallest, count = None, (np.inf, np.inf), 0
    info: Info = {}
    for params, answers, info, done in descents:
        count += 1
        if kept is None or (info["worst"], info["loss"]) < smallest:
            kept, smallest = (params, answers), (info["worst"], info["loss"])
        if done and count >= least:
            break
    assert kept is not None
    return Fit(*kept, count, dict(info))


def most_residual(freedom: int) -> float:
    """The mean squared residual, in units of the noise variance, above which there is clearly more than noise.

    Args:
        freedom: the number of dimensions of what was measured.
    """
    return 1 + 2 * math.sqrt(2 / freedom)


def nonnegative(gram: np.ndarray, moments: np.ndarray) -> tuple[float, float]:
    """The two coefficients, none below 0, of the least squares with these normal equations."""
    corners = [(0.0, 0.0)]
    corners += [(max(0.0, moments[0] / gram[0, 0]), 0.0)] if gram[0, 0] > 0 else []
    corners += [(0.0, max(0.0, moments[1] / gram[1, 1]))] if gram[1, 1] > 0 else []
    if np.linalg.cond(gram) < 1e12:
        inside = np.linalg.solve(gram, moments)
        corners += [(float(inside[0]), float(inside[1]))] if np.all(inside >= 0) else []
    return min(corners, key=lambda at: float(np.array(at) @ gram @ np.array(at) - 2 * moments @ np.array(at)))
