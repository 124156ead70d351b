"""Values that nobody can list beforehand: which of those that occur may be shown, and what that costs in delta.

Discovery adds noise N_Z(0, sigma^2) to the count of every value *that occurs*, and shows the values whose noisy count
is at least a threshold tau, with their noisy counts. The noise is charged like every other measurement. But the values
that occur are themselves private: a value that only one unit has is there, or is not there, because of that unit. With
a small probability it passes the threshold, and is shown. That probability is part of delta. Thresholded histograms
are known under many names (stability-based histograms; Gaussian sparse histograms: Wilkins et al. 2024, Lebeda and
Retschmeier 2025; delta-approximate zCDP: Bun and Steinke 2016). What is used here is proved here.

**What one unit can do.** Let Z be the rows that two neighbouring tables X and X' share, and V the values that occur in
Z. Under ``add-remove`` one of the two is Z itself, and the other has up to m rows more (m = 1 without a unit). Under
``replace`` each of the two has one row more than Z. So each of the two tables has at most m rows with values outside of
V, and for each it is decided in the same way:

*The probability to show a value outside of V.* Let the values of one table outside of V have the counts c_1, ..., c_k,
all of them at least 1, with a sum of at most m. The probability that one of them is shown is at most
sum T(tau - c_i), where T(t) = P[N_Z >= t]. T(tau - c) - T(tau - c + 1) = P[N_Z = tau - c] does not fall as c grows to
tau, so that T(tau - c) is convex in c for c <= tau. For a given k a sum of a convex function is largest at the ends:
one count is m - k + 1 and the others are 1. T(tau - (m - k + 1)) + (k - 1) T(tau - 1) is convex in k, and largest for
k = 1 or k = m:

    d(tau) = max(T(tau - m), m T(tau - 1)),    for tau > m.                                                        (1)

m equal rows attain the first term; m rows with different values attain 1 - (1 - T)^m, which is nearly the second.

**The lemma.** A run asks any number of mechanisms, one after the other; what it asks may depend on what came out. Let P
and P' be the distributions of all that comes out for X and X', and let the d of its discoveries sum up to at most D,
whatever comes out. Then P(S) <= e^epsilon P'(S) + delta_n + D for every set S of results, where (epsilon, delta_n)
is what the account guarantees for the noise alone.

*Proof.* Let P~ be the distribution for the table X if every discovery passes over the values outside of V, and P~' the
same for X'. A discovery draws the noise of different values independently. So if o is a result that shows only values
of V, the probability (or density) of o is that under P~ times the probability that no value outside of V is shown,
which is at least 1 - d; for other results that under P~ is 0. Hence p(o) >= prod (1 - d_t) p~(o) >= (1 - D) p~(o) for
all results of the run, so that P = (1 - D) P~ + D R for some distribution R; in the same way P' >= (1 - D) P~'. Under
P~ and P~' a discovery is post-processing of noisy counts of the values in V, a list that the two tables share. A row
has one value, so these counts change like those of a one-way marginal: their L2 distance is at most m under
``add-remove`` and sqrt(2) under ``replace``. That is what the ledger charges for, so the account holds for P~ and P~':
P~(S) <= e^epsilon P~'(S) + delta_n. Together P(S) <= (1 - D) P~(S) + D <= e^epsilon (1 - D) P~'(S) + delta_n + D
<= e^epsilon P'(S) + delta_n + D. QED.

Nothing is assumed about the account: the lemma holds for zCDP and for the Gaussian one, for the bounds on several runs
together (:mod:`pointillist.privacy.composition`), and in both directions. Under ``replace`` both tables may have a
value of their own, but D is paid once: the factor 1 - D of one side pays for that of the other.

**The tail.** P[N_Z >= t] = sum over k >= t of f(k) / Z with f(x) = e^(-x^2 / 2 sigma^2) and Z >= sigma sqrt(2 pi)
(Poisson summation). For t - 1/2 >= sigma, f is convex on each [k - 1/2, k + 1/2], so that f(k) is at most the integral
of f over it, and the sum is at most the integral from t - 1/2. For t >= 1, f falls on [k - 1, k], and the sum is at
most the integral from t - 1. With Phi of the normal distribution:

    T(t) <= Phi(-(t - 1/2) / sigma)  if t - 1/2 >= sigma,    T(t) <= Phi(-(t - 1) / sigma)  if t >= 1.               (2)
"""

from __future__ import annotations

import math

from scipy.special import log_ndtr

__all__ = ["log_shown", "log_tail", "threshold_of"]

ROUNDING = 1e-9
"""What is added to a logarithm of a probability: far more than the rounding of its few operations."""

MOST_THRESHOLD = 2**60
"""The largest threshold: noisy counts are 64-bit numbers."""


def log_tail(t: int, sigma: float) -> float:
    """A bound on ln P[N_Z(0, sigma^2) >= t], by (2).

    Args:
        t: a whole number.
        sigma: the parameter of the discrete Gaussian.
    """
    if t < 1:
        return 0.0
    start = t - 0.5 if t - 0.5 >= sigma else t - 1.0
    return min(0.0, float(log_ndtr(-start / sigma)) + ROUNDING)


def log_shown(threshold: int, sigma: float, rows_per_unit: int) -> float:
    """A bound on the logarithm of the probability that a value of one unit alone is shown, by (1).

    Args:
        threshold: the smallest noisy count that is shown.
        sigma: the parameter of the noise.
        rows_per_unit: m, the largest number of rows of a unit; 1 without a unit.
    """
    if threshold <= rows_per_unit:
        return 0.0
    together = log_tail(threshold - rows_per_unit, sigma)
    apart = math.log(rows_per_unit) + log_tail(threshold - 1, sigma) + ROUNDING
    return min(0.0, max(together, apart))


def threshold_of(delta: float, sigma: float, rows_per_unit: int) -> int:
    """The smallest threshold at which :func:`log_shown` allows for ``delta``.

    Args:
        delta: the probability that a value of one unit alone is shown, at most.
        sigma: the parameter of the noise.
        rows_per_unit: m, the largest number of rows of a unit; 1 without a unit.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be above 0 and below 1, got {delta!r}")
    wanted = math.log(delta) - ROUNDING
    low, high = rows_per_unit, rows_per_unit + 1  # low shows too much, high is tried
    while log_shown(high, sigma, rows_per_unit) > wanted:
        low, high = high, 2 * high
        if high > MOST_THRESHOLD:
            raise ValueError(f"noise of scale {sigma!r} leaves no threshold for delta = {delta!r}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_shown(middle, sigma, rows_per_unit) > wanted else (low, middle)
    return high
