"""Accounting for runs that do nothing but add Gaussian noise: a larger rho for the same (epsilon, delta).

A zCDP budget covers every mechanism and pays for that. If every step adds Gaussian noise, the privacy loss is itself
Gaussian: with mu^2 = sum of Delta_t^2 / sigma_t^2 = 2 rho over all steps, L ~ N(-mu^2/2, mu^2) under the second of two
neighbouring tables, and delta(epsilon) = E[(e^L - e^epsilon)_+]. Our noise is the *discrete* Gaussian N_Z(0, sigma^2),
whose loss only nearly has that law. What is proved is an inequality.

**Lemma.** For sigma > 1/2 and kappa = 1 / (1 - 1/(4 sigma^2)), E phi(N_Z(0, sigma^2)) <= E phi(N(0, kappa^2 sigma^2))
for every convex phi.

*Proof.* X ~ N_Z has p(k) = e^(-k^2 / 2 sigma^2) / Z with Z >= sigma sqrt(2 pi) (Poisson summation). Let V, independent
of X, have the triangular density on [-1, 1]; by Jensen, X is below X + V in convex order. At y = k + u, 0 <= u < 1, the
density of X + V is (1 - u) p(k) + u p(k + 1) = (e^(-y^2 / 2 sigma^2) / Z) E e^(y B / sigma^2 - B^2 / 2 sigma^2), where
B is u with probability 1 - u, else u - 1. B has mean 0 and range 1, so by Hoeffding's lemma the density is at most
e^(-y^2 / 2 sigma^2 + y^2 / 8 sigma^4) / Z <= sqrt(kappa) g(y), g being the density of G ~ N(0, kappa sigma^2). So for
t >= 0: E(X - t)_+ <= sqrt(kappa) E(G - t)_+ = E(sqrt(kappa) G - sqrt(kappa) t)_+ <= E(sqrt(kappa) G - t)_+, and
sqrt(kappa) G ~ N(0, kappa^2 sigma^2). For t < 0 it follows by symmetry. Equal means and all t: the convex order. QED.

**Adaptive composition.** Let all sigma_t be at least sigma_min, r = kappa(sigma_min)^2 - 1, and
F_b(l) = E(e^(l + N(-b/2, (1 + r) b)) - e^epsilon)_+. It is convex and grows in e^l, hence convex in each noise value,
on which l depends linearly; it grows with b, since e^(N(-b/2, (1 + r) b)) is a submartingale in b; and
E F_b(l + N(-b'/2, (1 + r) b')) = F_(b + b')(l). Claim: with the loss l so far and b of mu^2 left, the end has an
expectation of at most F_b(l). Backwards: a step charged b' has a true shift worth b'' <= b'; by the lemma its cells may
be replaced one by one, which gives at most F_(b - b' + b'')(l) <= F_b(l). So each step may choose what it measures, and
with how much noise, by all that came out before; only the total and sigma_min are fixed in advance. With b = mu^2:

    delta <= F_b(0) = e^(r b / 2) Phi((s^2 - epsilon - b/2) / s) - e^epsilon Phi(-(epsilon + b/2) / s),
    s^2 = b (1 + r).

For the usual epsilons and deltas that is more rho than zCDP allows; a curator takes whichever is more.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

from pointillist.privacy.budget import MARGIN, require_range

__all__ = ["LEAST_SCALES", "gaussian_log_delta_of", "gaussian_rho_of"]

LEAST_SCALES = (100.0, 10.0, 3.0)
"""Values of sigma_min, in counts, of which a run takes the largest that its plan allows for: the larger sigma_min, the
smaller r, and the larger rho."""

ROUNDING = 1e-12
"""By how much each of the two terms of delta may be wrong, relative to 1 plus its logarithm: some thousand roundings,
where the argument of the normal distribution, its logarithm and the exponential take some tens."""


def gaussian_log_delta_of(rho: float, epsilon: float, least_scale: float) -> float:
    """The logarithm of a delta for which Gaussian noise of total rho = mu^2 / 2 is (epsilon, delta)-DP, if no noise is
    smaller than ``least_scale``.

    Args:
        rho: mu^2 / 2 of all noise together.
        epsilon: the privacy loss.
        least_scale: sigma_min, in counts.
    """
    if rho == 0:
        return -math.inf
    square = 2 * rho
    r = (1 - 1 / (4 * least_scale**2)) ** -2 - 1
    s = math.sqrt(square * (1 + r))
    log_first = r * square / 2 + float(log_ndtr((s * s - epsilon - square / 2) / s))
    log_second = epsilon + float(log_ndtr(-(epsilon + square / 2) / s))
    # delta = exp(first) - exp(second), which nearly cancel for a small epsilon: the margin is added to the difference
    difference = log_second - log_first
    gap = -math.expm1(difference) + ROUNDING * (1 + abs(log_first))
    return min(0.0, log_first + math.log(gap))


def gaussian_rho_of(epsilon: float, delta: float, least_scale: float) -> float:
    """The largest rho = mu^2 / 2 for which Gaussian noise alone is known to be (epsilon, delta)-DP, if no noise is
    smaller than ``least_scale``.

    Args:
        epsilon: the privacy loss.
        delta: the probability that the loss is larger.
        least_scale: sigma_min, in counts.
    """
    require_range(epsilon, delta)
    log_delta = math.log(delta)

    def excess(log_rho: float) -> float:
        return gaussian_log_delta_of(math.exp(log_rho), epsilon, least_scale) - log_delta

    low, high = -40.0, math.log(epsilon + 1.0)
    while excess(high) < 0:
        high += 1.0
    while excess(low) > 0:
        low *= 2
    rho, step = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)), MARGIN
    while gaussian_log_delta_of(rho, epsilon, least_scale) > log_delta:
        rho, step = rho * (1 - step), 2 * step
    return rho
