"""From the rates of an event to a lower confidence bound on what a mechanism costs.

A test that tells two neighbouring tables apart has a true positive rate t and a false positive rate f. Every privacy
claim bounds what such a test can reach, so rates that were seen refute all claims that are too small. Three claims are
read off the same rates:

- (epsilon, delta)-DP: t <= e^epsilon f + delta, and the same for the rates of the opposite decision.
- rho-zCDP: the Rényi divergences of order alpha > 1 between the two decisions are at most alpha rho.
- Gaussian noise of total mu^2 = 2 rho: t - f is at most the delta that :mod:`pointillist.privacy.gaussian` states for
  epsilon = 0 and the smallest of the scales. For a single measurement in which one person changes one or two counts it
  is summed up exactly: with k counts changed by 1, the sum S of k noises decides, and t - f is at most
  Pr[-k/2 < S <= k/2].

Rates are bounded by exact (Clopper-Pearson) intervals. An event is judged in one of two ways: both rates apart, each at
half of the chance of error, or by its share of right decisions a, the mean of t and 1 - f. Of all rates with the same
mean, t = a and f = 1 - a refute the least, since each claim is convex and symmetric in the two tables; so a bound on a
can be read like a pair of rates. Decisions are independent with two different chances of being right, and the sum of
such decisions exceeds its mean less easily than a binomial one does (Hoeffding, 1956), so its interval holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from pointillist.privacy.budget import epsilon_of
from pointillist.privacy.gaussian import gaussian_log_delta_of
from pointillist.privacy.ledger import Ledger, minus

__all__ = [
    "Bound",
    "Event",
    "Gaussian",
    "best_event",
    "epsilon_by_account",
    "judge",
    "judge_shown",
    "rate_above",
    "rate_below",
    "rho_of_advantage",
    "rho_of_rates",
    "single_advantage",
]

ORDERS = 1 + np.logspace(-3, 3, 121)
"""The orders alpha at which Rényi divergences are compared; each gives a valid bound."""

THRESHOLDS = 41
"""The number of quantiles of the pilot runs among which a threshold is chosen."""

SMALLEST, LARGE, LARGEST = 0.05, 10.0, 1_000.0
"""Scales: single measurements below ``LARGE`` are read by exact sums, for noise between the other two."""

DOUBT = 0.1
"""The chance with which a rate may be worse than the pilot runs are taken to say."""


@dataclass(frozen=True)
class Event:
    """A decision for the second table if the statistic is above a threshold.

    Attributes:
        threshold: the threshold.
        balanced: whether it is judged by its share of right decisions, or else by its two rates apart.
    """

    threshold: float
    balanced: bool

    def hits(self, first: np.ndarray, second: np.ndarray) -> tuple[int, int]:
        """The numbers of false and of true positives among runs on the first and on the second table."""
        return int((first > self.threshold).sum()), int((second > self.threshold).sum())


@dataclass(frozen=True)
class Bound:
    """What the rates of an event prove.

    Attributes:
        rho: a lower bound on rho: the larger of what zCDP and, if all noise is Gaussian, what that allows for.
        epsilon: a lower bound on epsilon at the delta of the budget: the larger of what the account states for
            ``rho`` and what the rates prove without any account.
    """

    rho: float
    epsilon: float


def rate_below(hits: int, runs: int, chance: float) -> float:
    """A bound that the true rate is not below, but for a chance."""
    return float(stats.beta.ppf(chance, hits, runs - hits + 1)) if hits else 0.0


def rate_above(hits: int, runs: int, chance: float) -> float:
    """A bound that the true rate is not above, but for a chance."""
    return 1 - rate_below(runs - hits, runs, chance)


def rho_of_rates(t: float, f: float) -> float:
    """The smallest rho for which rho-zCDP allows a test with these rates."""
    if not t > f:
        return 0.0
    with np.errstate(divide="ignore"):
        log_t, log_f, log_not_t, log_not_f = (np.log(x) for x in (t, f, 1 - t, 1 - f))

    def largest(p: float, q: float, not_p: float, not_q: float) -> float:
        terms = np.logaddexp(ORDERS * p + (1 - ORDERS) * q, ORDERS * not_p + (1 - ORDERS) * not_q)
        return float((terms / (ORDERS - 1) / ORDERS).max())

    forward = largest(log_t, log_f, log_not_t, log_not_f) if f > 0 else math.inf
    backward = largest(log_f, log_t, log_not_f, log_not_t) if t < 1 else math.inf
    return max(forward, backward)


@dataclass(frozen=True)
class Gaussian:
    """A part that only adds Gaussian noise, by its charges.

    Attributes:
        scale: the smallest scale of the noise.
        changed: for a single measurement the number of counts that one person changes; else None.
    """

    scale: float
    changed: int | None = None

    def rho(self, advantage: float) -> float:
        """The smallest rho that allows a test with t - f = ``advantage``."""
        if advantage <= 0:
            return 0.0
        single = self.changed in (1, 2) and single_advantage(SMALLEST, self.changed) > advantage
        if single and self.changed and self.scale < LARGE and single_advantage(LARGEST, self.changed) < advantage:
            changed = self.changed
            scale = brentq(lambda x: single_advantage(x, changed) - advantage, SMALLEST, LARGEST, xtol=1e-12)
            return float(changed / (2 * scale**2))
        return rho_of_advantage(advantage, self.scale)


def single_advantage(scale: float, changed: int) -> float:
    """The largest t - f of a test on counts with discrete Gaussian noise, one or two of which are changed by 1."""
    reach = math.ceil(12 * scale) + 2
    shares = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    shares /= shares.sum()
    if changed == 1:
        return float(shares[reach])
    return float(shares @ shares + shares[1:] @ shares[:-1])  # S = 0 and S = 1


def rho_of_advantage(advantage: float, least_scale: float) -> float:
    """The smallest rho for which Gaussian noise of at least that scale allows a test with t - f = ``advantage``."""
    if advantage <= 0 or least_scale <= 0.5:
        return 0.0
    wanted = math.log(advantage)

    def excess(log_rho: float) -> float:
        return gaussian_log_delta_of(math.exp(log_rho), 0.0, least_scale) - wanted

    return math.exp(brentq(excess, -50.0, 12.0, xtol=1e-12)) if excess(-50.0) < 0 < excess(12.0) else 0.0


def epsilon_by_account(ledger: Ledger, rho: float) -> float:
    """The epsilon that the ledger's account states for rho at the delta of its budget, less the part of it that is for
    values which only one unit has."""
    delta, scale = minus(ledger.budget.delta, ledger.delta_shown), ledger.least_scale
    if rho <= 0 or not math.isfinite(rho):
        return rho
    if scale is None:
        return epsilon_of(rho, delta)

    def excess(epsilon: float) -> float:
        return gaussian_log_delta_of(rho, epsilon, scale) - math.log(delta)

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-12))


def judge(
    event: Event, hits: tuple[int, int], runs: int, chance: float, ledger: Ledger, gaussian: Gaussian | None = None
) -> Bound:
    """What an event proves.

    Args:
        event: the event.
        hits: its false and true positives.
        runs: the number of runs on each table.
        chance: the probability with which the bound may be wrong.
        ledger: the account that turns rho into epsilon.
        gaussian: the noise, if all of it is Gaussian.
    """
    t, f = _bounded(event, hits, runs, chance)
    rho, delta = _rho(t, f, gaussian), ledger.budget.delta
    ratios = [(p - delta) / q for p, q in ((t, f), (1 - f, 1 - t)) if p > delta and q > 0]
    return Bound(rho, max(epsilon_by_account(ledger, rho), 0.0, *map(math.log, ratios)))


def judge_shown(hits: tuple[int, int], runs: int, chance: float, ledger: Ledger) -> tuple[float, float]:
    """Lower bounds on epsilon and on delta, by how often a value was shown that only the second table has.

    The value cannot be shown of the first table, so that the rate of the second one is a part of delta for any epsilon.

    Args:
        hits: how often it was shown of the first and of the second table.
        runs: the number of runs on each table.
        chance: the probability with which the bounds may be wrong.
        ledger: the account, whose budget has the delta at which epsilon is bounded.
    """
    f, t = rate_above(hits[0], runs, chance / 2), rate_below(hits[1], runs, chance / 2)
    more = t - ledger.budget.delta
    return max(0.0, math.log(more / f)) if more > 0 else 0.0, t


def _bounded(event: Event, hits: tuple[int, int], runs: int, chance: float) -> tuple[float, float]:
    """A true and a false positive rate that the true ones are no worse than, but for a chance."""
    false, true = hits
    if event.balanced:
        right = rate_below(true + runs - false, 2 * runs, chance)
        return right, 1 - right
    return rate_below(true, runs, chance / 2), rate_above(false, runs, chance / 2)


def _rho(t: float, f: float, gaussian: Gaussian | None) -> float:
    return max(rho_of_rates(t, f), 0.0 if gaussian is None else gaussian.rho(t - f))


def best_event(
    first: np.ndarray, second: np.ndarray, runs: int, chance: float, gaussian: Gaussian | None = None
) -> Event:
    """The event that promises the largest bound on ``runs`` further runs, by the rates of some pilot runs.

    Args:
        first, second: the statistics of pilot runs on each table.
        runs: the number of further runs on each table.
        chance, gaussian: as in :func:`judge`.
    """
    pilot = len(first)
    levels = np.quantile(np.concatenate([first, second]), np.linspace(0.01, 0.99, THRESHOLDS))
    best, most = Event(0.0, True), -1.0
    for threshold in np.unique([0.0, *levels]):
        for balanced in (True, False):
            event = Event(float(threshold), balanced)
            # rates that are seen on few runs are taken to be somewhat worse than they look
            t, f = _bounded(event, event.hits(first, second), pilot, DOUBT)
            promise = _rho(*_bounded(event, (math.ceil(f * runs), int(t * runs)), runs, chance), gaussian)
            if promise > most:
                best, most = event, promise
    return best
