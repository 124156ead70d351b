"""Privacy budgets, and the only conversion between rho (zCDP) and (epsilon, delta).

rho-zCDP implies (epsilon, delta)-DP for every epsilon >= 0 with (Canonne, Kamath and Steinke, 2020)

    delta = min over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha.

The logarithm of the expression has the derivative (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha), which grows
with alpha, so the minimum is its root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from pointillist.data.neighbours import Relation
from pointillist.errors import check

__all__ = ["Budget", "delta_of", "epsilon_of", "rho_of"]

MARGIN = 1e-9
"""Relative margin by which roots are moved to the safe side; far above the root finder's tolerance."""


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest known delta for which rho-zCDP implies (epsilon, delta)-DP."""
    if rho == 0:
        return 0.0

    def slope(alpha: float) -> float:
        return (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)

    low = 1.0 + 1e-12
    high = (epsilon + 1) / (2 * rho) + 2  # the slope is positive there
    while slope(high) < 0:
        high *= 2
    alpha = brentq(slope, low, high, xtol=1e-14, rtol=1e-14) if slope(low) < 0 else low
    # Any alpha > 1 gives a valid bound, so an inexact root costs tightness, never privacy.
    log_delta = (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)
    return min(1.0, math.exp(min(log_delta, 0.0)))


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest known epsilon for which rho-zCDP implies (epsilon, delta)-DP."""
    if rho == 0 or delta_of(rho, 0.0) <= delta:
        return 0.0
    high = rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12  # the looser closed form bounds it
    root = brentq(lambda e: math.log(max(delta_of(rho, e), 1e-300)) - math.log(delta), 0.0, high, xtol=1e-14)
    return float(root * (1 + MARGIN))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest known rho for which rho-zCDP implies (epsilon, delta)-DP."""
    high = epsilon + 1.0
    while delta_of(high, epsilon) < delta:
        high *= 2
    log_delta = math.log(delta)
    root = brentq(lambda r: math.log(max(delta_of(r, epsilon), 1e-300)) - log_delta, 0.0, high, xtol=1e-18, rtol=1e-14)
    return float(root * (1 - MARGIN))


@dataclass(frozen=True)
class Budget:
    """What may be spent: (epsilon, delta) under a neighbouring relation."""

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        check(math.isfinite(self.epsilon) and self.epsilon > 0, "epsilon", self.epsilon,
              "must be a finite number above 0", "give for example 1")  # fmt: skip
        check(self.epsilon <= 100, "epsilon", self.epsilon, "must be at most 100",
              "a larger one promises nothing: give for example 1")  # fmt: skip
        check(0 < self.delta < 1, "delta", self.delta, "must be above 0 and below 1",
              "give a number well below 1/n, for example 1e-9")  # fmt: skip

    @property
    def rho(self) -> float:
        return rho_of(self.epsilon, self.delta)
