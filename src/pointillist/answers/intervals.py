"""Intervals around answers, from replicates and from the noise of the measurements.

For a share with the model's answer f and m replicates that are d_1 .. d_m away from the pilot, the squared error is
estimated by

    s^2 = max(own^2, (m own^2 + w typical(f)^2) / (m + w)),      own^2 = mean_r d_r^2,

where typical is the pooled error of cells of similar size over the same attributes
(:mod:`pointillist.answers.pooling`): it widens an interval that came out narrow by chance, and never narrows one, since
a sum over many cells has a larger error than a cell of its size. The interval is f -+ k t s, with the quantile t of
Student's distribution with m + w degrees of freedom. k is 1 for answers below 0.001 and 1.2 above 0.01, where simulated
errors were found to be somewhat too small, and 1.2 for all answers that no measurement tells: what nobody has measured
is in no simulation. Other statistics have no cells of similar size: own^2 stands alone, and is widened by a factor.

The interval of a quantile holds the values whose share of smaller ones may be the one that was asked for (Woodruff's
method): what is uncertain is the share.

Where a measurement tells the answer by itself, y -+ z sigma is an interval that holds as often as it says, whatever the
model is. It is taken if it is narrower, widened to the model's answer if that lies outside. So it misses, where it is
taken, in a share of at most 1 - level of all cases; what the intervals from replicates miss comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from pointillist.answers.measured import FromNoise, Known, total_sigma
from pointillist.answers.pooling import Typical, size_of
from pointillist.answers.released import Released
from pointillist.answers.replicates import Replicates
from pointillist.answers.statistics import Count, Quantile, Share, Statistic, require_columns
from pointillist.answers.views import Records, View
from pointillist.checks import check, share
from pointillist.errors import InputError, Shown, brief
from pointillist.queries.base import Queries
from pointillist.queries.formulas import Undecided
from pointillist.queries.predicates import Predicates
from pointillist.queries.workload import offsets_of

__all__ = ["Answer", "answered", "intervals"]

WEIGHT = 8
"""w: how many replicates the pooled error of cells of similar size counts for."""

WIDENED, UNTOLD = ((-3.0, -2.0), (1.0, 1.2)), 1.2
"""k: by what errors of shares are multiplied that measurements tell, by the decimal logarithm of their size; and of
others."""

ALONE = 1.15
"""By what errors are multiplied where there is nothing to pool."""

RESAMPLED = 60
"""Samples of a population that are drawn for its sampling error."""


@dataclass(frozen=True)
class Answer:
    """An estimate with an interval.

    Attributes:
        estimate: the answer of the model.
        low, high: the ends of the interval.
        level: how often such intervals hold the answer of the private table.
        text: what was asked.
        source: what the interval comes from: ``"replicates"`` or ``"measurement"``.
        population: whether the sampling error of the population is counted, too.
    """

    estimate: float
    low: float
    high: float
    level: float
    text: str = ""
    source: str = "replicates"
    population: bool = False


def intervals(
    release: Released, queries: Sequence[Queries], level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates and intervals of many queries, as fractions of the rows, one after the other.

    It simulates nothing: a release without saved replicates has intervals for queries that a measurement tells by
    itself, and bounds of NaN for all others.

    Args:
        release: the release.
        queries: the queries, over the release's columns.
        level: how often the intervals are to hold the answers of the private table.

    Returns the estimates, the lower and the upper bounds.
    """
    estimate, low, high, _ = _found(release, queries, share("level", level, 0.95))
    return estimate, low, high


def _found(
    release: Released, queries: Sequence[Queries], level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Estimates, the ends of their intervals, and whether these come from a measurement."""
    estimate = release.family.answers(release.params, queries)
    from_noise = FromNoise(release.schema.domain, release.log)
    known = [from_noise.of(one) for one in queries]
    half = np.full(len(estimate), np.nan)
    if release.replicates is not None:
        ends = offsets_of(queries)[1:-1]
        cells = zip(
            *(np.split(some, ends, axis=-1) for some in (estimate, release.replicates.moved(queries))), strict=True
        )
        typical = release.replicates.typical_of([one.scope for one in queries])
        halves = [
            _half(answers, _Apart(moved, errors, told is not None), release.replicates, level)
            for (answers, moved), errors, told in zip(cells, typical, known, strict=True)
        ]
        half = np.concatenate([half[:0], *halves])
    low, high, measured = _narrowed(known, queries, estimate, half, level)
    return estimate, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), measured


@dataclass(frozen=True)
class _Apart:
    """How far replicates are from the pilot at some shares.

    Attributes:
        moved: the distance of each replicate, one per line.
        typical: the distances of cells over the same attributes.
        told: whether measurements tell the shares by themselves.
    """

    moved: np.ndarray
    typical: Typical
    told: bool


def _half(answers: np.ndarray, apart: _Apart, replicates: Replicates, level: float) -> np.ndarray:
    """Half of the width of the intervals of shares."""
    own, typical = np.mean(apart.moved**2, axis=0), apart.typical.at(answers) ** 2
    freedom = len(replicates) + WEIGHT
    square = np.maximum(own, (len(replicates) * own + WEIGHT * typical) / freedom)
    widened = np.interp(np.log10(np.maximum(size_of(answers), 1e-9)), *WIDENED) if apart.told else UNTOLD
    return np.asarray(replicates.inflated * widened * stdtrit(freedom, (1 + level) / 2) * np.sqrt(square))


def _narrowed(
    known: Sequence[Known | None], queries: Sequence[Queries], estimate: np.ndarray, half: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The intervals of the measurements where they are narrower, or the only ones, and where that is."""
    low, high, at, z = estimate - half, estimate + half, 0, ndtri((1 + level) / 2)
    measured = np.zeros(len(estimate), bool)
    for one, told in zip(queries, known, strict=True):
        cells = slice(at, at + one.size)
        at += one.size
        if told is None:
            continue
        answers, sigma = told.answers, told.sigma
        measured[cells] = better = ~(high[cells] - low[cells] <= 2 * z * sigma)
        low[cells] = np.where(better, np.minimum(answers - z * sigma, estimate[cells]), low[cells])
        high[cells] = np.where(better, np.maximum(answers + z * sigma, estimate[cells]), high[cells])
    return low, high, measured


def answered(
    release: Released, query: str | Queries | Statistic, level: float = 0.95, population: bool = False
) -> Answer:
    """The answer to one query.

    Args:
        release: the release, with replicates.
        query: a condition, of which the share of the rows is asked; queries of one number; or a statistic.
        level: how often such intervals are to hold the answer of the private table.
        population: count the sampling error, too, if the rows are a random sample of a population: the interval is then
            for the population.
    """
    level = share("level", level, 0.95)
    if isinstance(query, str):
        query = Share(query)
    if hasattr(query, "holds"):
        return _of_queries(release, query, level, population)  # type: ignore[arg-type]
    rule, hint = "must be a condition, queries or a statistic", "give for example 'age >= 65'"
    check(hasattr(query, "value") and hasattr(query, "columns"), "query", brief(query), rule, hint)
    require_columns(query, release.schema)
    return _of_statistic(release, query, level, population)


def _of_queries(release: Released, queries: Queries, level: float, population: bool) -> Answer:
    rule, hint = "must be a single one", "ask for release.answers(workload, level=...)"
    check(queries.size == 1, "query", Shown(f"{queries.size:,} of them"), rule, hint)
    (estimate,), (low,), (high,), (measured,) = _found(release, [queries], level)
    source = "measurement" if measured else "replicates"
    found = Answer(float(estimate), float(low), float(high), level, "queries", source)
    return _sampled(found, float(estimate * (1 - estimate)), release, 0.0, 1.0) if population else found


def _of_statistic(release: Released, statistic: Statistic, level: float, population: bool) -> Answer:
    view = View(release.family, release.params, release.schema, release.log.estimated_total)
    records = view.records(statistic.columns)
    estimate = statistic.value(records)
    if not math.isfinite(estimate):
        rule, hint = "must have rows to be about", "ask for something that some rows have"
        raise InputError("query", Shown(repr(statistic.text)), rule, hint)
    least, most = statistic.limits(records)
    (low, high), source = _simulated(release, statistic, estimate, records, level), "replicates"
    known = _told(release, statistic)
    if known is not None:
        y, sigma = known
        z = ndtri((1 + level) / 2)
        if 2 * z * sigma < high - low:
            low, high, source = min(y - z * sigma, estimate), max(y + z * sigma, estimate), "measurement"
    found = Answer(estimate, float(max(low, least)), float(min(high, most)), level, statistic.text, source)
    if not population:
        return found
    return _sampled(found, release.log.estimated_total * _resampled(statistic, records), release, least, most)


def _simulated(
    release: Released, statistic: Statistic, estimate: float, records: Records, level: float
) -> tuple[float, float]:
    """The ends of the interval that the replicates give."""
    if isinstance(statistic, Quantile):
        below = statistic.below(estimate)
        half = _half_of(release, below, below.value(records), level)
        return statistic.moved(-half).value(records), statistic.moved(half).value(records)
    half = _half_of(release, statistic, estimate, level)
    return estimate - half, estimate + half


def _half_of(release: Released, statistic: Statistic, estimate: float, level: float) -> float:
    """Half of the width of the interval of a statistic."""
    replicates, rows, z = release.replicates, release.log.estimated_total, ndtri((1 + level) / 2)
    if replicates is None:
        raise ValueError("the release has no replicates")
    if isinstance(statistic, Count) and statistic.where is None:
        return float(z * total_sigma(release.log))
    moved = _moved(replicates, statistic)
    if isinstance(statistic, Share) and statistic.given is None:
        return _half_of_share(release, statistic, estimate, moved, level)
    if isinstance(statistic, Count):
        part = estimate / rows
        half = rows * _half_of_share(release, statistic, part, moved / rows, level)
        return math.hypot(half, z * part * total_sigma(release.log))
    if not len(moved):
        return math.inf
    error = ALONE * replicates.inflated * math.sqrt(np.mean(moved**2))
    return float(stdtrit(len(moved), (1 + level) / 2) * error)


def _half_of_share(release: Released, statistic: Statistic, part: float, moved: np.ndarray, level: float) -> float:
    """Half of the width of the interval of the share of the rows for which a condition holds."""
    assert release.replicates is not None
    (typical,) = release.replicates.typical_of([release.schema.domain.attributes(statistic.columns)])
    apart = _Apart(moved[:, None], typical, _told(release, statistic) is not None)
    return float(_half(np.array([part]), apart, release.replicates, level)[0])


def _moved(replicates: Replicates, statistic: Statistic) -> np.ndarray:
    """How far a statistic of each replicate is from that of the pilot, without those that have none."""
    views = [View(one.family, one.params, one.schema, one.total) for one in (replicates.pilot, *replicates.models)]
    first, *others = [statistic.value(view.records(statistic.columns)) for view in views]
    found = np.array(others) - first
    return np.asarray(found[np.isfinite(found)])  # a ratio may have nothing to divide by


def _told(release: Released, statistic: Statistic) -> tuple[float, float] | None:
    """What measurements say about a share or a count, and its standard deviation."""
    condition = getattr(statistic, "where", None)
    if not isinstance(statistic, Share | Count) or condition is None or getattr(statistic, "given", None) is not None:
        return None
    try:
        query = Predicates.of(release.schema, condition)
    except Undecided:  # it cuts through a bin or a group
        return None
    known = FromNoise(release.schema.domain, release.log).of(query)
    if known is None:
        return None
    if isinstance(statistic, Count):
        return float(known.counts[0]), float(known.sigma_of_counts[0])
    return float(known.answers[0]), float(known.sigma[0])


def _sampled(answer: Answer, variance: float, release: Released, least: float, most: float) -> Answer:
    """An interval that also has the sampling error of a population; ``variance`` is that of one row."""
    z = ndtri((1 + answer.level) / 2)
    more = z * math.sqrt(variance / release.log.estimated_total)
    low = answer.estimate - math.hypot(answer.estimate - answer.low, more)
    high = answer.estimate + math.hypot(answer.high - answer.estimate, more)
    return Answer(answer.estimate, max(low, least), min(high, most), answer.level, answer.text, answer.source, True)


def _resampled(statistic: Statistic, records: Records) -> float:
    """The variance of a statistic over samples of the rows, by drawing samples from the model."""
    rng, rows = np.random.default_rng(0), max(1, round(records.total))
    found = []
    for _ in range(RESAMPLED):
        counts = rng.multinomial(rows, records.weights)
        found.append(statistic.value(Records(records.cells, counts / rows, records.total)))
    return float(np.nanvar(found))
