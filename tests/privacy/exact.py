"""The two conversions with 60 digits, from their definitions: what the code claims is held against them."""

from __future__ import annotations

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60


def log_delta(rho: float | mpf, epsilon: float | mpf) -> mpf:
    """ln of the smallest delta that rho-zCDP implies, by bisection of the derivative over ln(alpha - 1)."""
    rho, epsilon = mpf(rho), mpf(epsilon)

    def slope(log_b: mpf) -> mpf:
        b = mpmath.exp(log_b)
        return (2 * b + 1) * rho - epsilon - mpmath.log1p(1 / b)

    low, high = mpf(-1), mpf(1)
    while slope(low) > 0:
        low *= 2
    while slope(high) < 0:
        high *= 2
    while high - low > mpf(10) ** -25:  # the minimum is flat: its value is exact to twice as many digits
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    b = mpmath.exp(low)
    return min(mpf(0), b * ((1 + b) * rho - epsilon) - low - (1 + b) * mpmath.log1p(1 / b))


def gaussian_log_delta(rho: float | mpf, epsilon: float, least_scale: float) -> mpf:
    """ln of the bound of ``privacy/gaussian.py``: e^(r b / 2) Phi(...) - e^epsilon Phi(...)."""
    b, r = 2 * mpf(rho), (1 - 1 / (4 * mpf(least_scale) ** 2)) ** -2 - 1
    s = mpmath.sqrt(b * (1 + r))
    first = mpmath.exp(r * b / 2) * _upper_tail((epsilon + b / 2 - s * s) / s)
    second = mpmath.exp(epsilon) * _upper_tail((epsilon + b / 2) / s)
    return min(mpf(0), mpmath.log(first - second))


def _upper_tail(x: mpf) -> mpf:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2
