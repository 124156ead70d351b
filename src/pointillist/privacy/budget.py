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

from pointillist.checks import check, positive, share
from pointillist.data.neighbours import Relation

__all__ = ["Budget", "delta_of", "epsilon_of", "log_delta_of", "rho_of"]

MARGIN = 1e-9
"""Relative step by which a root is moved to the safe side until the guarantee holds."""


def log_delta_of(rho: float, epsilon: float) -> float:
    """The logarithm of the smallest known delta for which rho-zCDP implies (epsilon, delta)-DP.

    Written in b = alpha - 1, with ln(1 - 1/alpha) = ln b - ln(1 + b), which does not cancel near alpha = 1. Every
    b > 0 gives a valid bound, so an inexact root costs tightness, never privacy.
    """
    if rho == 0:
        return -math.inf

    def slope(log_b: float) -> float:
        b = math.exp(log_b)
        return (2 * b + 1) * rho - epsilon + log_b - math.log1p(b)

    low, high = -1.0, 1.0
    while slope(low) > 0:
        low *= 2
    while slope(high) < 0:
        high *= 2
    log_b = float(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))
    b = math.exp(log_b)  # 0 for a huge rho, for which delta is 1
    log_delta = b * ((1 + b) * rho - epsilon) - log_b + (1 + b) * (log_b - math.log1p(b))
    return min(log_delta, 0.0)


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest known delta for which rho-zCDP implies (epsilon, delta)-DP."""
    return math.exp(log_delta_of(rho, epsilon))


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest known epsilon for which rho-zCDP implies (epsilon, delta)-DP."""
    log_delta = math.log(delta)
    if rho == 0 or log_delta_of(rho, 0.0) <= log_delta:
        return 0.0
    high = rho + 2 * math.sqrt(-rho * log_delta) + 1e-12  # the looser closed form bounds it
    epsilon = float(brentq(lambda e: log_delta_of(rho, e) - log_delta, 0.0, high, xtol=1e-300, rtol=1e-14))
    while log_delta_of(rho, epsilon) > log_delta:
        epsilon = epsilon * (1 + MARGIN)
    return epsilon


def rho_of(epsilon: float, delta: float) -> float:
    """The largest known rho for which rho-zCDP implies (epsilon, delta)-DP."""
    log_delta = math.log(delta)

    def excess(log_rho: float) -> float:
        return log_delta_of(math.exp(log_rho), epsilon) - log_delta

    # Above: delta = 1 is reached for large rho. Below: the closed form epsilon = rho + 2 sqrt(rho ln(1/delta)).
    high = math.log(epsilon + 1.0)
    while excess(high) < 0:
        high += 1.0
    low = min(high - 1, 2 * math.log(epsilon) - math.log(8 * (epsilon - log_delta)))
    while excess(low) > 0:
        low -= 1.0
    rho = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    while log_delta_of(rho, epsilon) > log_delta:
        rho = rho * (1 - MARGIN)
    return rho


@dataclass(frozen=True)
class Budget:
    """What may be spent: (epsilon, delta) under a neighbouring relation."""

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        hint = "a larger one guarantees nothing: give for example 1"
        check(self.epsilon <= 100, "epsilon", self.epsilon, "must be at most 100", hint)
        share("delta", self.delta, "1e-9, a number well below 1/n")

    @property
    def rho(self) -> float:
        """The largest rho for which rho-zCDP implies the guarantee."""
        return rho_of(self.epsilon, self.delta)
