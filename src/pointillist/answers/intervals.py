"""Intervals around answers, from replicates and from the noise of the measurements.

For a share with the model's answer f and m replicates f_1 .. f_m, the squared error is estimated by

    s^2 = (m own^2 + w typical(f)^2) / (m + w),      own^2 = mean_r (f_r - f)^2,

where typical is the pooled error of answers of similar size (:mod:`pointillist.answers.pooling`). The interval is
f -+ k t s, with the quantile t of Student's distribution with m + w degrees of freedom, and a factor k: a model is
smoother than the table that it stands for, so that simulated errors are smaller than real ones. k was measured once, on
other tables and seeds than those of the published coverage (see docs/answers.md).

Where a measurement tells the answer by itself, y -+ z sigma is an interval that holds whatever the model is. It is
taken if it is narrower, widened to the model's answer if that lies outside.

Other statistics have no cells of similar size: own^2 stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from pointillist.answers.measured import from_noise, total_sigma
from pointillist.answers.released import Released
from pointillist.answers.replicates import Replicates
from pointillist.answers.statistics import Count, Share, Statistic, require_columns
from pointillist.answers.views import Records, View
from pointillist.checks import check, share
from pointillist.errors import InputError, Shown, brief
from pointillist.queries.base import Queries
from pointillist.queries.formulas import Undecided
from pointillist.queries.predicates import Predicates

__all__ = ["Answer", "answered", "intervals"]

WEIGHT = 8
"""w: how many replicates the pooled error of answers of similar size counts for."""

INFLATED = 1.25
"""k for shares of the rows, as replicates are known to be too close to the model."""

INFLATED_ALONE = 1.35
"""k where there is nothing to pool: for means, quantiles, conditional shares, differences and ratios."""

RESAMPLED = 200
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
    level = share("level", level, 0.95)
    estimate = release.family.answers(release.params, queries)
    low, high = np.full(len(estimate), np.nan), np.full(len(estimate), np.nan)
    if release.replicates is not None:
        half = _half(estimate, release.replicates.answers(queries), release.replicates, level)
        low, high = estimate - half, estimate + half
    low, high = _narrowed(release, queries, estimate, low, high, level)
    return estimate, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _half(answers: np.ndarray, repeated: np.ndarray, replicates: Replicates, level: float) -> np.ndarray:
    """Half of the width of the intervals of shares; answers of replicates are one replicate per line."""
    own, typical = np.mean((repeated - answers) ** 2, axis=0), replicates.typical.at(answers) ** 2
    freedom = len(replicates) + WEIGHT
    square = (len(replicates) * own + WEIGHT * typical) / freedom
    return np.asarray(INFLATED * t.ppf((1 + level) / 2, freedom) * np.sqrt(square))


def _narrowed(
    release: Released, queries: Sequence[Queries], estimate: np.ndarray, low: np.ndarray, high: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of the measurements where they are narrower, or the only ones."""
    low, high, at, z = low.copy(), high.copy(), 0, norm.ppf((1 + level) / 2)
    for one in queries:
        cells = slice(at, at + one.size)
        at += one.size
        found = from_noise(release.log, one)
        if found is None:
            continue
        answers, sigma = found
        better = ~(high[cells] - low[cells] <= 2 * z * sigma)
        low[cells] = np.where(better, np.minimum(answers - z * sigma, estimate[cells]), low[cells])
        high[cells] = np.where(better, np.maximum(answers + z * sigma, estimate[cells]), high[cells])
    return low, high


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
    (estimate,), (low,), (high,) = intervals(release, [queries], level)
    found = Answer(float(estimate), float(low), float(high), level, "queries", _source(release))
    return _sampled(found, float(estimate * (1 - estimate)), release, 0.0, 1.0) if population else found


def _source(release: Released) -> str:
    return "measurement" if release.replicates is None else "replicates"


def _of_statistic(release: Released, statistic: Statistic, level: float, population: bool) -> Answer:
    records = _view(release).records(statistic.columns)
    estimate = statistic.value(records)
    rule, hint = "must have rows to be about", "ask for something that some rows have"
    if not math.isfinite(estimate):
        raise InputError("query", Shown(repr(statistic.text)), rule, hint)
    repeated = np.array([statistic.value(one) for one in _repeated(release, statistic.columns)])
    half = _half_of(release, statistic, estimate, repeated, level)
    least, most = statistic.limits(records)
    low, high, source = estimate - half, estimate + half, "replicates"
    known = _told(release, statistic)
    if known is not None:
        y, sigma = known
        z = norm.ppf((1 + level) / 2)
        if z * sigma < half:
            low, high, source = min(y - z * sigma, estimate), max(y + z * sigma, estimate), "measurement"
    found = Answer(estimate, float(max(low, least)), float(min(high, most)), level, statistic.text, source)
    if not population:
        return found
    return _sampled(found, release.log.estimated_total * _resampled(statistic, records), release, least, most)


def _view(release: Released) -> View:
    return View(release.family, release.params, release.schema, release.log.estimated_total)


def _repeated(release: Released, columns: tuple[str, ...]) -> list[Records]:
    if release.replicates is None:
        raise ValueError("the release has no replicates")
    views = [View(one.family, one.params, one.schema, one.total) for one in release.replicates.models]
    return [view.records(columns) for view in views]


def _half_of(release: Released, statistic: Statistic, estimate: float, repeated: np.ndarray, level: float) -> float:
    """Half of the width of the interval of a statistic."""
    replicates = release.replicates
    assert replicates is not None
    good = repeated[np.isfinite(repeated)]  # a ratio may have nothing to divide by
    rows = release.log.estimated_total
    if isinstance(statistic, Share) and statistic.given is None:
        return float(_half(np.array([estimate]), good[:, None], replicates, level)[0])
    if isinstance(statistic, Count) and statistic.where is None:
        return float(norm.ppf((1 + level) / 2) * total_sigma(release.log))
    if isinstance(statistic, Count):
        part = estimate / rows
        half = rows * float(_half(np.array([part]), good[:, None] / rows, replicates, level)[0])
        return math.hypot(half, norm.ppf((1 + level) / 2) * part * total_sigma(release.log))
    if not len(good):
        return math.inf
    error = math.sqrt(np.mean((good - estimate) ** 2))
    return float(INFLATED_ALONE * t.ppf((1 + level) / 2, len(good)) * error)


def _told(release: Released, statistic: Statistic) -> tuple[float, float] | None:
    """What measurements say about a share or a count, and its standard deviation."""
    condition = getattr(statistic, "where", None)
    if not isinstance(statistic, Share | Count) or condition is None or getattr(statistic, "given", None) is not None:
        return None
    try:
        found = from_noise(release.log, Predicates.of(release.schema, condition))
    except Undecided:  # it cuts through a bin or a group
        return None
    if found is None:
        return None
    rows = release.log.estimated_total if isinstance(statistic, Count) else 1.0
    return float(found[0][0]) * rows, float(found[1][0]) * rows


def _sampled(answer: Answer, variance: float, release: Released, least: float, most: float) -> Answer:
    """An interval that also has the sampling error of a population; ``variance`` is that of one row."""
    z = norm.ppf((1 + answer.level) / 2)
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
