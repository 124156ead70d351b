"""Privacy budgets, and the only conversion between rho (zCDP) and (epsilon, delta).

rho-zCDP implies (epsilon, delta)-DP for every epsilon >= 0 with (Canonne, Kamath and Steinke, 2020)

    delta = min over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha.

The logarithm of the expression has the derivative (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha), which grows
with alpha, so the minimum is its root. Every alpha gives a valid bound, so an inexact root costs tightness, never
privacy.

**Rounding.** The expression itself is computed in floating point, with a bound on its error (:func:`_bound`). Here a
rho is always a sum of charges, and a mechanism costs less than its charge by the share ``KEPT`` at least, because its
scale is rounded up; :mod:`pointillist.privacy.mechanisms` confirms this before every draw. A conversion is accepted
only if the delta of what the mechanisms really cost, plus the error bound, is at most the one that is claimed. For
usual budgets the first covers the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from pointillist.checks import check, positive, share
from pointillist.data.neighbours import Relation, Unit, meaning_of
from pointillist.privacy.mechanisms import KEPT

__all__ = ["Budget", "delta_of", "epsilon_of", "log_delta_of", "require_range", "rho_of"]

LEAST_EPSILON, MOST_EPSILON = 1e-9, 100.0
"""The epsilons that are accepted. Below, nothing could be learned from any table; above, nothing is guaranteed."""

LEAST_DELTA, MOST_DELTA = 1e-300, 0.5
"""The deltas that are accepted."""

MARGIN = 1e-9
"""Relative step by which a root is moved to the safe side until the guarantee holds."""

LARGE_ORDER = 1e4
"""alpha - 1 from which ln(1 - 1/alpha) is computed in a way that does not cancel."""

ROUNDING = 2.0**-51
"""Four times the rounding of one operation: what an operation and one call of ``math`` can err by, relatively."""

DIGITS = 12
"""An epsilon is given with this number of digits where they are enough, so that the budget of 1 comes back as 1."""


def require_range(epsilon: float, delta: float) -> None:
    """Refuse an epsilon or a delta that no run can use.

    Args:
        epsilon: the privacy loss.
        delta: the probability that the loss is larger.
    """
    positive("epsilon", epsilon)
    hint = "a larger one guarantees nothing: give for example 1"
    check(epsilon <= MOST_EPSILON, "epsilon", epsilon, f"must be at most {MOST_EPSILON:g}", hint)
    hint = "nothing can be learned with a smaller one: give for example 1"
    check(epsilon >= LEAST_EPSILON, "epsilon", epsilon, f"must be at least {LEAST_EPSILON:g}", hint)
    example = "1e-9, a number well below 1/n"
    share("delta", delta, example)
    rule = f"must be in {LEAST_DELTA:g} .. {MOST_DELTA:g}"
    check(LEAST_DELTA <= delta <= MOST_DELTA, "delta", delta, rule, f"give for example {example}")


def _log_ratio(log_b: float, large: bool) -> tuple[float, float]:
    """Two numbers whose difference is ln(b / (1 + b)): ln b and ln(1 + b), or for a large b 0 and ln(1 + 1/b)."""
    return (0.0, math.log1p(math.exp(-log_b))) if large else (log_b, math.log1p(math.exp(log_b)))


def _best_order(rho: float, epsilon: float, large: bool) -> float:
    """ln b of the order alpha = 1 + b with the smallest delta, or of one near it."""

    def slope(log_b: float) -> float:
        first, second = _log_ratio(log_b, large)
        return (2 * math.exp(log_b) + 1) * rho - epsilon + first - second

    low, high = -1.0, 1.0
    while slope(low) > 0:
        low *= 2
    while slope(high) < 0:
        if high > 300:
            return high  # b is above 1e200: any order will do
        high *= 2
    return float(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))


def _bound(rho: float, epsilon: float) -> tuple[float, float]:
    """The logarithm of the smallest known delta, and by how much rounding may have changed it.

    Written in b = alpha - 1: b ((1 + b) rho - epsilon) - ln b + (1 + b) ln(b / (1 + b)). Each operation and each
    function errs by at most half of ``ROUNDING`` of its result, and ln b by that much because b is itself rounded.
    Written as ln b - ln(1 + b), the last logarithm errs in proportion to ln b, and b multiplies that; for a large b
    it is written as -ln(1 + 1/b), which is about -1/b and errs in proportion to that.
    """
    log_b = _best_order(rho, epsilon, large=False)
    large = log_b > math.log(LARGE_ORDER)
    if large:
        log_b = _best_order(rho, epsilon, large)
    b = math.exp(log_b)  # 0 for a huge rho, for which delta is 1
    first, second = _log_ratio(log_b, large)
    log_delta = b * ((1 + b) * rho - epsilon) - log_b + (1 + b) * (first - second)
    of_ratio = 2.0 if large else (1 + b) * (1 + math.log1p(b))
    return log_delta, ROUNDING * (b * ((1 + b) * rho + epsilon) + abs(log_b) + of_ratio)


def _nearest(rho: float, epsilon: float) -> float:
    """The logarithm of the smallest known delta, without any margin."""
    return -math.inf if rho == 0 else min(_bound(rho, epsilon)[0], 0.0)


def log_delta_of(rho: float, epsilon: float) -> float:
    """The logarithm of the smallest known delta for which charges of rho in all imply (epsilon, delta)-DP.

    Args:
        rho: the sum of all charges.
        epsilon: the privacy loss, 0 or more.
    """
    if rho == 0:
        return -math.inf
    log_delta, error = _bound(rho * (1 - KEPT), epsilon)
    return min(log_delta + error, 0.0)


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest known delta for which charges of rho in all imply (epsilon, delta)-DP, rounded up.

    Args:
        rho: the sum of all charges.
        epsilon: the privacy loss, 0 or more.
    """
    if rho == 0:
        return 0.0
    return min(1.0, math.nextafter(math.exp(log_delta_of(rho, epsilon)) * (1 + ROUNDING), math.inf))


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest known epsilon for which charges of rho in all imply (epsilon, delta)-DP, rounded up.

    Args:
        rho: the sum of all charges.
        delta: the probability that the loss is larger.
    """
    share("delta", delta, "1e-9")
    log_delta = _log_down(delta)
    if log_delta_of(rho, 0.0) <= log_delta:
        return 0.0

    def excess(e: float) -> float:
        return log_delta_of(rho, e) - log_delta

    high = rho + 2 * math.sqrt(-rho * log_delta)  # the looser closed form bounds it, up to rounding
    while excess(high) > 0:
        high *= 2
    epsilon = float(brentq(excess, 0.0, high, xtol=1e-300, rtol=1e-14, maxiter=5000))
    rounded, step = float(f"{epsilon:.{DIGITS}g}"), 1e-14
    if excess(rounded) <= 0:
        return rounded
    while excess(epsilon) > 0:
        epsilon, step = epsilon * (1 + step), 2 * step
    return epsilon


def rho_of(epsilon: float, delta: float) -> float:
    """The largest known rho for which charges of rho in all imply (epsilon, delta)-DP.

    Args:
        epsilon: the privacy loss, in ``LEAST_EPSILON .. MOST_EPSILON``.
        delta: the probability that the loss is larger, in ``LEAST_DELTA .. MOST_DELTA``.
    """
    require_range(epsilon, delta)
    log_delta = math.log(delta)

    def excess(log_rho: float) -> float:
        return _nearest(math.exp(log_rho), epsilon) - log_delta

    # Above: delta = 1 is reached for large rho. Below: the closed form epsilon = rho + 2 sqrt(rho ln(1/delta)).
    high = math.log(epsilon + 1.0)
    while excess(high) < 0:
        high += 1.0
    low = min(high - 1, 2 * math.log(epsilon) - math.log(8 * (epsilon - log_delta)))
    while excess(low) > 0:
        low -= 1.0
    rho, step = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)), MARGIN
    while _nearest(rho, epsilon) > log_delta or log_delta_of(rho, epsilon) > _log_down(delta):
        rho, step = rho * (1 - step), 2 * step
    return rho


def _log_down(delta: float) -> float:
    """ln delta, rounded down by a little more than :func:`delta_of` rounds up."""
    return math.log(delta) * (1 + ROUNDING) - 3 * ROUNDING


@dataclass(frozen=True)
class Budget:
    """What may be spent: (epsilon, delta) under a neighbouring relation.

    Attributes:
        epsilon: the privacy loss, from 1e-9 to 100.
        delta: the probability that the loss is larger, from 1e-300 to 0.5.
        relation: which tables are neighbours.
        unit: what is protected as a whole; None for rows. Only under add-remove: units have different numbers of rows,
            so that under replace the number of rows would not be public.
    """

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE
    unit: Unit | None = None

    def __post_init__(self) -> None:
        require_range(self.epsilon, self.delta)
        rule = "must be add-remove with a unit, since the number of rows is then not public"
        good = self.unit is None or self.relation is Relation.ADD_REMOVE
        check(good, "relation", self.relation.value, rule, "use add-remove, or leave the unit out")

    @property
    def rows_per_unit(self) -> int:
        """The largest number of rows that one unit adds or removes; 1 without a unit."""
        return 1 if self.unit is None else self.unit.max_rows

    @property
    def meaning(self) -> str:
        """In words which tables are neighbours."""
        return meaning_of(self.relation, self.unit)

    @property
    def rho(self) -> float:
        """The largest rho for which rho-zCDP implies the guarantee."""
        return rho_of(self.epsilon, self.delta)
