"""The best-mixture error of a public table: how close any reweighting of its records can come.

    min over w in the simplex  max over queries q  |a_q - sum_i w_i q(x_i)|

for public records x_1 ... x_N and target answers a_q. With A_qi = q(x_i) and linear programming duality it equals

    max over y with ||y||_1 <= 1 of   y.a - max_i (A^T y)_i ,

so every w gives an upper bound and every y, however it was found, a lower bound. Small problems are solved as a linear
program, large ones by *raking to a level* e: the closest weights to the public ones p that keep every error below e,

    min KL(w || p)  subject to  |a_q - q(w)| <= e   for all q,

    dual:  max over l of  D(l) = l.a - ln sum_i p_i exp((A^T l)_i) - e ||l||_1 ,      w_i ~ p_i exp((A^T l)_i),

by maximising D over one multiplier l_q after the other, in closed form:

    l_q <- max(l_q + logit(a_q - e) - logit(q(w)), 0) + min(l_q + logit(a_q + e) - logit(q(w)), 0).

If some weights keep to the level, w converges to the closest of them and brings the upper bound down to e. If none do,
D is unbounded, and l / ||l||_1 becomes a y whose lower bound is above e. The level follows the two bounds until their
gap is small. (Dudik, Phillips, Schapire: Maximum entropy density estimation with generalized regularization and an
application to species distribution modeling, JMLR 2007, on D; Ratsch, Warmuth: Efficient margin maximizing with
boosting, JMLR 2005, on l / ||l||_1.)

Only *active* queries are raked: those seen to miss the level. All queries are evaluated once a round. Where the gap
does not shrink, a linear program over the queries with a multiplier and few records finds a better y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log

import numpy as np

from pointillist.checks import check, share
from pointillist.data.sources import distinct_rows, keys_of
from pointillist.errors import Shown
from pointillist.queries.base import is_direct
from pointillist.queries.counting import weighted_answers
from pointillist.queries.workload import Workload

__all__ = ["Mixture", "best_mixture"]

PROGRAM_ENTRIES = 100_000
"""Records x members of the workload up to which the linear program is solved: seconds."""
CLOSE = 1e-6
"""The absolute gap that always ends the search."""
DEEP, ENOUGH = 0.25, 0.7
"""The level: this far from the lower to the upper bound; or to the upper bound that ends the search, if higher."""
NEW_QUERIES = 2500
"""The most queries that become active in a round, worst first."""
ACTIVE_ENTRIES = 300_000_000
"""The most records that the active queries list together, at 4 bytes each."""
SWEEPS, ALL_EVERY = 40, 8
"""Sweeps a round, and how many of them go by between two over all active queries instead of those that matter."""
PATIENCE = 2
"""Rounds that may leave the gap nearly as it was before a linear program looks for the lower bound."""
CERTIFIED_QUERIES, CERTIFIED_RECORDS, CERTIFIED_TRIES = 1000, 500, 5
"""The most queries in that program, the fewest records added to it at once, and how often."""
PROGRAM_SECONDS = 60.0
"""When a linear program gives up."""
STEP = 3.0
"""The most by which a multiplier changes at once."""
LONGER, SHORTER = [2.0**k for k in range(11)], [1 - 2.0**-k for k in range(1, 11)]
"""How often a sweep is repeated blindly, and by how much multipliers shrink that grew under a level too low."""
LEAST_EXPONENT = -600.0
"""Weights below e^-600 times the largest are kept there, so that their logarithm exists."""


@dataclass(frozen=True)
class Mixture:
    """Weights of public records, and two bounds that enclose the best-mixture error.

    ``lower`` is the value of a dual vector y and ``upper`` the max error of ``weights``; both are recomputed from y and
    the weights, so they hold whatever the solver's tolerances are. ``steps`` counts sweeps, or simplex iterations if
    the problem was solved ``exact``-ly, by linear programming.
    """

    lower: float
    upper: float
    weights: np.ndarray
    steps: int
    exact: bool


def best_mixture(
    codes: Sequence[np.ndarray],
    workload: Workload,
    targets: np.ndarray,
    *,
    start: np.ndarray | None = None,
    gap: float = 0.05,
    most_steps: int = 2000,
    progress: Callable[[int, float, float], None] | None = None,
) -> Mixture:
    """The best-mixture error of the records ``codes`` (one array per attribute), within a duality gap.

    ``targets`` are the answers a in the workload's flat order, NaN where a query is not asked; members of the workload
    without an asked query cost nothing. ``start`` are the public weights p (default: uniform). The search ends once
    (upper - lower) / upper is at most ``gap``, or after ``most_steps`` sweeps; ``progress`` gets the sweep and the
    two bounds after each evaluation of all queries.

    Records that agree on all attributes that are asked for are merged first, and share their weight in proportion to
    ``start`` in the end. Memory: 1.2 GB for the active queries at most, plus about 100 bytes per query and 200 per
    record; less than 2 GiB for 400,000 records and 3 million queries.
    """
    start = _checked(codes, workload, targets, start)
    share("gap", gap, 0.05, zero=True)
    game, group = _collapse(codes, workload, np.asarray(targets, float), start)
    found = None
    if len(game.start) * len(game.workload.queries) <= PROGRAM_ENTRIES:
        found = _linear_program(game)
    if found is None:
        found = _rake(game, gap, most_steps, progress)
    weights = start * (found.weights / game.start)[group]
    return Mixture(found.lower, found.upper, weights / weights.sum(), found.steps, found.exact)


def _checked(
    codes: Sequence[np.ndarray], workload: Workload, targets: np.ndarray, start: np.ndarray | None
) -> np.ndarray:
    """The public weights with sum 1, after all arguments are found to fit each other."""
    domain = workload.domain
    rule, hint = f"must be {len(domain)} arrays, one per attribute", "give every attribute of the workload's domain"
    check(len(codes) == len(domain), "codes", Shown(f"{len(codes)}"), rule, hint)
    records = len(codes[0])
    check(records > 0, "codes", Shown("no records"), "must hold at least one record", "give the public records")
    start = np.ones(records) if start is None else start
    lengths = [(f"codes of {name!r}", column, records) for name, column in zip(domain.names, codes, strict=True)]
    for name, values, length in [*lengths, ("targets", targets, workload.size), ("start", start, records)]:
        shown, rule = Shown(f"the shape {values.shape}"), f"must be one array of {length:,} entries"
        check(values.shape == (length,), name, shown, rule, "give codes and weights per record and targets per query")
    for name, size, column in zip(domain.names, domain.sizes, codes, strict=True):
        least, largest, rule = int(column.min()), int(column.max()), f"must be from 0 to {size - 1}"
        inside = least >= 0 and largest < size
        check(inside, f"codes of {name!r}", Shown(f"{least} to {largest}"), rule, "encode them with the same schema")
    asked, rule = int(np.isfinite(targets).sum()), "must be finite for at least one query and infinite for none"
    fits = asked > 0 and not np.isinf(targets).any()
    check(fits, "targets", Shown(f"{asked} finite answers"), rule, "give fractions, NaN where a query is not asked")
    positive = bool(np.isfinite(start).all() and (start > 0).all())
    rule, hint = "must be positive and finite", "leave out records without weight"
    check(positive, "start", Shown(f"a least weight of {start.min():g}"), rule, hint)
    return np.asarray(start / start.sum(), float)


@dataclass(frozen=True, eq=False)
class _Game:
    """The problem over merged records: only members of the workload that are asked for."""

    codes: list[np.ndarray]
    workload: Workload
    targets: np.ndarray
    start: np.ndarray

    def answers(self, weights: np.ndarray) -> np.ndarray:
        return np.concatenate(weighted_answers(self.codes, weights, self.workload.domain, self.workload.queries))

    def errors(self, weights: np.ndarray) -> np.ndarray:
        """|a_q - q(w)|, and 0 for queries that are not asked."""
        errors: np.ndarray = np.abs(self.answers(weights) - self.targets)
        errors[np.isnan(errors)] = 0
        return errors

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of records in each cell."""
        return self.answers(np.ones(len(self.start))).astype(np.int64)

    @cached_property
    def free(self) -> np.ndarray:
        """Whether each query is asked and depends on the weights: holds for some records, not for all."""
        free: np.ndarray = np.isfinite(self.targets) & (self.counts > 0) & (self.counts < len(self.start))
        return free

    @cached_property
    def floor(self) -> float:
        """The lower bound of single queries, y = +-e_q: q(w) lies between min_i q(x_i) and max_i q(x_i)."""
        below = self.targets - (self.counts > 0)
        above = (self.counts == len(self.start)) - self.targets
        return max(float(np.nanmax(below)), float(np.nanmax(above)), 0.0)

    def matching(self, queries: np.ndarray) -> list[np.ndarray]:
        """The records for which each query (in increasing order) holds."""
        offsets = self.workload.offsets
        found: list[np.ndarray] = []
        owners = np.searchsorted(offsets, queries, side="right") - 1
        for m in np.unique(owners):
            member = self.workload.queries[m]
            if is_direct(member):
                held = member.holds(self.codes)[:, queries[owners == m] - offsets[m]]
                found.extend(np.flatnonzero(one).astype(np.int32) for one in held.T)
                continue
            keys = keys_of(self.codes, self.workload.domain, member.scope)
            cells = queries[owners == m] - offsets[m]
            if not member.partition:
                chosen = (member.to_marginal(np.arange(member.size) == cell) for cell in cells)
                found.extend(np.flatnonzero(held[keys]).astype(np.int32) for held in chosen)
                continue
            place = np.full(member.size, -1, np.int32)
            place[cells] = np.arange(len(cells))
            places = member.to_marginal(place)[keys]
            records = np.flatnonzero(places >= 0).astype(np.int32)
            records = records[np.argsort(places[records], kind="stable")]
            ends = np.cumsum(self.counts[queries[owners == m]])
            found.extend(part.copy() for part in np.split(records, ends[:-1]))
        return found


def _collapse(
    codes: Sequence[np.ndarray], workload: Workload, targets: np.ndarray, start: np.ndarray
) -> tuple[_Game, np.ndarray]:
    """Merge the records that no asked query tells apart; also returns the merged record of each record."""
    offsets = workload.offsets
    asked = [m for m in range(len(workload.queries)) if np.isfinite(targets[offsets[m] : offsets[m + 1]]).any()]
    used = sorted({i for m in asked for i in workload.queries[m].scope})
    merged, group, _ = distinct_rows([codes[i] for i in used])
    unused = np.broadcast_to(np.intp(0), merged[0].shape)  # takes no memory
    columns = [unused] * len(codes)
    for attribute, column in zip(used, merged, strict=True):
        columns[attribute] = np.ascontiguousarray(column)
    kept = np.concatenate([targets[offsets[m] : offsets[m + 1]] for m in asked])
    part = Workload(workload.domain, tuple(workload.queries[m] for m in asked))
    return _Game(columns, part, kept, np.bincount(group, start)), group


def _linear_program(game: _Game) -> Mixture | None:
    """The whole problem as a linear program."""
    queries = np.flatnonzero(game.free)
    rows = game.matching(queries)
    a, records = game.targets[queries], len(game.start)
    solved = _program(rows, a, records, game.floor, "highs")
    if solved is None:
        return None
    weights, y, steps = solved
    lower = max(game.floor, _bound(float(y @ a), _transposed(rows, y, records), y))
    upper = float(game.errors(weights).max())
    return Mixture(min(lower, upper), upper, weights, steps, True)


def _program(
    rows: list[np.ndarray], a: np.ndarray, records: int, floor: float, method: str
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """min t  subject to  A w - t <= a,  -A w - t <= -a,  sum w = 1,  w >= 0,  t >= floor.

    A is given by its ``rows``: the records in each. Returns w, y and the iterations; None if the solver gives up.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array

    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    columns = np.concatenate([*rows, np.zeros(0, np.int32)])
    matrix = csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), records))
    t = csr_array(np.ones((len(rows), 1)))
    result = linprog(
        np.append(np.zeros(records), 1.0), A_ub=block_array([[matrix, -t], [-matrix, -t]], format="csr"),
        b_ub=np.concatenate([a, -a]), A_eq=csr_array(np.append(np.ones(records), 0.0)[None]), b_eq=[1.0],
        bounds=[(0, None)] * records + [(floor, None)], method=method, options={"time_limit": PROGRAM_SECONDS},
    )  # fmt: skip
    if result.status != 0:
        return None
    too_high, too_low = np.split(result.ineqlin.marginals, 2)  # both at most 0
    weights = np.clip(result.x[:-1], 0, None)
    return weights / weights.sum(), too_high - too_low, int(result.nit)


def _transposed(rows: list[np.ndarray], y: np.ndarray, records: int) -> np.ndarray:
    """A^T y, for A given by its rows."""
    sums: np.ndarray = np.zeros(records)
    for n in np.flatnonzero(y):
        sums[rows[n]] += y[n]
    return sums


def _bound(value: float, sums: np.ndarray, y: np.ndarray) -> float:
    """(y.a - max_i (A^T y)_i) / ||y||_1, given y.a and A^T y."""
    norm = float(np.abs(y).sum())
    return (value - float(sums.max())) / norm if norm > 0 else 0.0


def _logit(shares: np.ndarray) -> np.ndarray:
    """ln(p / (1 - p)), infinite for shares outside (0, 1)."""
    p = np.clip(shares, 0, 1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _rake(game: _Game, gap: float, most_steps: int, progress: Callable[[int, float, float], None] | None) -> Mixture:
    """Rake to falling levels; every round ends with an evaluation of all queries."""
    raking = _Raking(game)
    best, errors = game.start, game.errors(game.start)
    lower, upper, steps = game.floor, float(errors.max()), 0
    slow, patience = 0, PATIENCE
    while True:
        if progress is not None:
            progress(steps, lower, upper)
        if upper - lower <= max(gap * upper, CLOSE) or steps >= most_steps:
            return Mixture(min(lower, upper), upper, best, steps, False)
        enough = lower / (1 - gap)
        level = lower + max(DEEP * (upper - lower), ENOUGH * (enough - lower))
        raking.activate(np.where(errors > level, errors, 0))
        swept, bound = raking.round(level, 0.1 * (level - lower), min(SWEEPS, most_steps - steps))
        steps, before = steps + swept, upper - lower
        lower = max(lower, bound)
        weights = raking.weights / raking.weights.sum()
        errors = game.errors(weights)
        if errors.max() < upper:
            best, upper = weights, float(errors.max())
        slow = slow + 1 if upper - lower > 0.9 * before else 0
        if slow == patience:
            bound = raking.certify()
            slow, patience = 0, PATIENCE if bound > lower + 0.1 * (upper - lower) else 2 * patience
            lower = max(lower, bound)


class _Raking:
    """The active queries with their multipliers l, and the weights p exp(A^T l), scaled by an arbitrary factor."""

    def __init__(self, game: _Game) -> None:
        self.game = game
        self.queries = np.zeros(0, np.int64)
        self.rows: list[np.ndarray] = []
        self.multipliers = np.zeros(0)
        self._tilt(np.zeros(len(game.start)))

    def _tilt(self, exponents: np.ndarray) -> None:
        self.exponents = exponents
        self.weights = self.game.start * np.exp(np.maximum(exponents - exponents.max(), LEAST_EXPONENT))

    def activate(self, errors: np.ndarray) -> None:
        """Add the queries with the largest positive errors, as far as there is memory for the records they list.

        Queries without a multiplier make room for them if need be.
        """
        candidates = self.game.free & (errors > 0)
        candidates[self.queries] = False
        new = np.flatnonzero(candidates)
        new = new[np.argsort(-errors[new], kind="stable")][:NEW_QUERIES]
        sizes = self.game.counts
        if int(sizes[self.queries].sum() + sizes[new].sum()) > ACTIVE_ENTRIES:
            kept = np.flatnonzero(self.multipliers)
            self.rows = [self.rows[n] for n in kept]
            self.queries, self.multipliers = self.queries[kept], self.multipliers[kept]
        room = ACTIVE_ENTRIES - int(sizes[self.queries].sum())
        new = np.sort(new[np.cumsum(sizes[new]) <= room])
        self.rows.extend(self.game.matching(new))
        self.queries = np.concatenate([self.queries, new])
        self.multipliers = np.concatenate([self.multipliers, np.zeros(len(new))])

    def round(self, level: float, tolerance: float, sweeps: int) -> tuple[int, float]:
        """Sweep until no active query misses the level by more than ``tolerance``, or the level is out of reach.

        Sweeps raise D from D(0) = 0, and max_i (A^T l)_i is at most ln sum_i p_i exp((A^T l)_i) + ln(1 / min_i p_i), so
        that multipliers with ||l||_1 >= ln(1 / min_i p_i) / tolerance prove a lower bound of level - tolerance.
        Returns the number of sweeps and the best lower bound, of all multipliers met and of their changes in a sweep.
        """
        a = self.game.targets[self.queries]
        value, certificate = -np.inf, np.zeros(len(a))
        hot: Iterable[int] = range(len(a))
        swept, long = 0, log(1 / float(self.game.start.min())) / tolerance
        self.climb(level, -self.multipliers, -self.exponents, SHORTER)
        while swept < sweeps:
            every = swept % ALL_EVERY == 0
            change, moved, hot, worst = self.sweep(level, range(len(a)) if every else hot)
            swept += 1
            if not change.any():
                break
            reach = (long - float(np.abs(self.multipliers).sum())) / float(np.abs(change).sum())
            self.climb(level, change, moved, [trial for trial in LONGER if trial <= reach])
            for y, sums in ((self.multipliers, self.exponents), (change, moved)):
                bound = _bound(float(y @ a), sums, y)
                if bound > value:
                    value, certificate = bound, y.copy()
            if reach < 0 or (every and swept > 1 and worst <= tolerance):
                break
        self._tilt(_transposed(self.rows, self.multipliers, len(self.weights)))  # without the rounding of the sweeps
        sums = _transposed(self.rows, certificate, len(self.weights))
        return swept, _bound(float(certificate @ a), sums, certificate)

    def certify(self) -> float:
        """The best lower bound of the queries with a multiplier, by a linear program over few records.

        The first records are those with the largest (A^T l)_i, where an optimal w has its weight if l / ||l||_1 is
        near the optimal y. The program's y may overlook others; they join until it does not.
        """
        used = np.flatnonzero(self.multipliers)
        used = used[np.argsort(-np.abs(self.multipliers[used]), kind="stable")][:CERTIFIED_QUERIES]
        if len(used) == 0:
            return -np.inf
        rows, a = [self.rows[n] for n in used], self.game.targets[self.queries[used]]
        records, sums, best = np.zeros(0, np.int64), self.exponents, -np.inf
        for _ in range(CERTIFIED_TRIES):
            records = np.union1d(records, np.argsort(-sums, kind="stable")[: max(2 * len(used), CERTIFIED_RECORDS)])
            place = np.full(len(sums), -1, np.int32)
            place[records] = np.arange(len(records))
            solved = _program([p[p >= 0] for p in (place[row] for row in rows)], a, len(records), 0.0, "highs-ipm")
            if solved is None:
                break
            _, y, _ = solved
            sums = _transposed(rows, y, len(sums))
            best = max(best, _bound(float(y @ a), sums, y))
            if best >= 0.99 * _bound(float(y @ a), sums[records], y):
                break
        return best

    def sweep(self, level: float, among: Iterable[int]) -> tuple[np.ndarray, np.ndarray, list[int], float]:
        """Maximise D over the multipliers ``among`` the active queries, one after the other.

        Returns their change, A^T change, the queries that have a multiplier or missed the level, and the largest miss.
        """
        a = self.game.targets[self.queries]
        targets, multipliers = a.tolist(), self.multipliers.tolist()
        lows, highs = _logit(a - level).tolist(), _logit(a + level).tolist()
        weights, before = self.weights, self.weights.copy()
        total = float(weights.sum())
        hot, worst = [], 0.0
        for n in among:
            part = weights.take(self.rows[n])
            mass = float(part.sum())
            share, old = mass / total, multipliers[n]
            miss = abs(share - targets[n]) - level
            if miss <= 0 and old == 0:
                continue
            hot.append(n)
            worst = max(worst, miss)
            share = min(max(share, 1e-300), 1 - 1e-15)
            here = log(share / (1 - share))
            new = max(old + lows[n] - here, 0.0) + min(old + highs[n] - here, 0.0)
            step = min(max(new - old, -STEP), STEP)
            part *= exp(step)
            weights[self.rows[n]] = part
            total += (exp(step) - 1) * mass
            multipliers[n] = old + step
            if not 1e-100 < total < 1e100:
                break
        change = np.asarray(multipliers) - self.multipliers
        moved = np.log(np.maximum(weights, 1e-300) / before)
        self.multipliers = self.multipliers + change
        self._tilt(self.exponents + moved)
        return change, moved, hot, worst

    def climb(self, level: float, change: np.ndarray, moved: np.ndarray, trials: Iterable[float]) -> None:
        """Add the multiple of ``change`` up to which D grows, of increasing ``trials``; ``moved`` is A^T change."""
        a = self.game.targets[self.queries]
        shares = self.weights / self.weights.sum()
        gain, length = float(change @ a), float(np.abs(self.multipliers).sum())

        def increase(times: float) -> float:
            exponents = times * moved
            top = float(exponents.max())
            normaliser = top + log(float((shares * np.exp(np.maximum(exponents - top, LEAST_EXPONENT))).sum()))
            longer = float(np.abs(self.multipliers + times * change).sum()) - length
            return times * gain - normaliser - level * longer

        times, most = 0.0, 0.0
        for trial in trials:
            increased = increase(trial)
            if increased <= most:
                break
            times, most = trial, increased
        if times > 0:
            self.multipliers = self.multipliers + times * change
            self._tilt(self.exponents + times * moved)
