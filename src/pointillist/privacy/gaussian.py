"""Exact accounting for runs that do nothing but add Gaussian noise: a larger rho for the same (epsilon, delta).

A zCDP budget covers every mechanism and pays for that. If every step adds Gaussian noise, the privacy loss is itself
Gaussian: with mu^2 = sum of Delta_t^2 / sigma_t^2 = 2 rho over all steps (which may be chosen adaptively, as long as
the sum keeps to its bound), L ~ N(-mu^2/2, mu^2) under the second of two neighbouring tables, and

    delta(epsilon) = E[(e^L - e^epsilon)_+].

Our noise is the *discrete* Gaussian N_Z(0, sigma^2), whose loss only nearly has that law. What is exact is an
inequality in convex order: for sigma >= 10

    E phi(N_Z(0, sigma^2)) <= E phi(N(0, sigma^2 + 1/4))        for every convex phi

(equal means, and E(X - t)_+ is smaller for every t: a test checks it numerically; by Euler and Maclaurin's formula the
two sides differ by g(t)/24 between the integers, g being the density, and a variance of 1/12 more makes up for it, so
1/4 is three times enough). Since (e^L - e^epsilon)_+ is convex in each noise value, the noise values may be replaced
one after the other, the last one first, by Gaussians with r = (1/4) / sigma_min^2 <= 1/400 more variance, and so

    delta <= e^(r mu^2 / 2) Phi((s^2 - epsilon - mu^2/2) / s) - e^epsilon Phi(-(epsilon + mu^2/2) / s),
    s^2 = mu^2 (1 + r).

Compared with zCDP this saves about 10 % of rho at epsilon = 1 (5 % of the noise).
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

__all__ = ["EXTRA_VARIANCE", "LEAST_SCALE", "gaussian_log_delta_of", "gaussian_rho_of"]

LEAST_SCALE = 10.0
"""The accounting holds for noise of at least this standard deviation, in counts."""

EXTRA_VARIANCE = 0.25
"""The discrete Gaussian is below, in convex order, a Gaussian whose variance is larger by this."""

MARGIN = 1e-9
"""Relative step by which the root is moved to the safe side until the promise holds."""


def gaussian_log_delta_of(rho: float, epsilon: float) -> float:
    """The logarithm of a delta for which Gaussian noise of total rho = mu^2 / 2 is (epsilon, delta)-DP."""
    if rho == 0:
        return -math.inf
    square = 2 * rho
    r = EXTRA_VARIANCE / LEAST_SCALE**2
    s = math.sqrt(square * (1 + r))
    log_first = r * square / 2 + float(log_ndtr((s * s - epsilon - square / 2) / s))
    log_second = epsilon + float(log_ndtr(-(epsilon + square / 2) / s))
    # delta = exp(first) - exp(second); the margin covers the rounding of the two logarithms
    difference = log_second - log_first
    gap = -math.expm1(difference) + 1e-12 * (1 + abs(log_first))
    return min(0.0, log_first + math.log(gap))


def gaussian_rho_of(epsilon: float, delta: float) -> float:
    """The largest rho = mu^2 / 2 for which Gaussian noise alone is known to be (epsilon, delta)-DP."""
    log_delta = math.log(delta)

    def excess(log_rho: float) -> float:
        return gaussian_log_delta_of(math.exp(log_rho), epsilon) - log_delta

    low, high = -40.0, math.log(epsilon + 1.0)
    while excess(high) < 0:
        high += 1.0
    while excess(low) > 0:
        low *= 2
    rho = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    while gaussian_log_delta_of(rho, epsilon) > log_delta:
        rho *= 1 - MARGIN
    return rho
