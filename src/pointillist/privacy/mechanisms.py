"""The mechanisms, and the only place where privacy noise is drawn.

Both work on integers with OpenDP's exact samplers, whose randomness is the operating system's. Their scales are
computed here; the cost that is charged is checked against the privacy map of the OpenDP measurement that is then
invoked.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np

from pointillist.data.threads import in_threads

__all__ = ["KEPT", "PIECE", "Noise", "OpenDPNoise", "gaussian_scale", "selection_scale"]

WIDER = 1e-12
"""The share by which every scale is rounded up."""

PIECE = 1 << 13
"""The number of cells whose noise a thread draws at a time, about."""

KEPT = 1.9 * WIDER
"""The share of a charge that is not spent, at least: a scale that is larger by ``WIDER`` costs less by twice that. It
covers the rounding of the scales and of the conversion between rho and (epsilon, delta)."""


def gaussian_scale(rho: float, sensitivity_squared: int) -> float:
    """sigma of the discrete Gaussian that costs rho: rho = Delta_2^2 / (2 sigma^2), rounded up."""
    return _up(math.sqrt(sensitivity_squared / (2 * rho)))


def selection_scale(rho: float, sensitivity: int) -> float:
    """Scale s of the selection Pr[i] ∝ exp(score_i / s) that costs rho, rounded up.

    This is the exponential mechanism with epsilon = 2 Delta / s, which costs epsilon^2 / 8 in zCDP; in the
    paper's terms alpha eps_0 = 1/s for Delta = 1.
    """
    return _up(sensitivity / math.sqrt(2 * rho))


def _up(scale: float) -> float:
    """Slightly more noise than the charge would need."""
    return scale * (1 + WIDER)


class Noise(Protocol):
    """A source of privacy noise."""

    @property
    def description(self) -> str: ...

    @property
    def private(self) -> bool:
        """Whether releases made with it are private: false for seeded noise."""
        ...

    @property
    def state(self) -> dict[str, Any] | None:
        """What is needed to draw the same noise again: None for noise that cannot be repeated."""
        ...

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        """Integer counts plus discrete Gaussian noise that costs at most ``rho``."""
        ...

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        """The position of a large integer score, by a selection that costs at most ``rho``."""
        ...


class OpenDPNoise:
    """Discrete Gaussian and exponential-mechanism selection from OpenDP, seeded by the operating system."""

    description = "OpenDP discrete Gaussian and noisy max, randomness of the operating system"
    private = True
    state = None

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        mechanism, cost = _gaussian(gaussian_scale(rho, sensitivity_squared), sensitivity_squared)
        _require_cost(cost, rho)
        # The noise of every cell is drawn by itself, so that pieces may be drawn by all cores: 10 microseconds a cell.
        pieces = np.array_split(_int64(counts), max(1, len(counts) // PIECE))
        drawn = map(mechanism, pieces) if len(pieces) == 1 else in_threads(mechanism, pieces)
        noisy: np.ndarray = np.concatenate([np.asarray(piece, np.int64) for piece in drawn])
        return noisy

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        dp = _opendp()
        space = dp.domains.vector_domain(dp.domains.atom_domain(T="i64")), dp.metrics.linf_distance(T="i64")
        scale = selection_scale(rho, sensitivity)
        cost = dp.measures.zero_concentrated_divergence()
        mechanism = dp.measurements.make_noisy_max(*space, cost, scale=scale)
        _require_cost(mechanism.map(sensitivity), rho)
        return int(mechanism(_int64(scores)))


@lru_cache(maxsize=64)
def _gaussian(scale: float, sensitivity_squared: int) -> tuple[Any, float]:
    """OpenDP's mechanism, and what it costs. It has no state: thousands of ties share one."""
    dp = _opendp()
    space = dp.domains.vector_domain(dp.domains.atom_domain(T="i64")), dp.metrics.l2_distance(T="f64")
    mechanism = dp.measurements.make_gaussian(*space, scale=scale)
    return mechanism, float(mechanism.map(_sqrt_up(sensitivity_squared)))


@cache
def _opendp() -> Any:
    import opendp.domains  # opendp.prelude would import scikit-learn and polars, too, where they are installed
    import opendp.measurements
    import opendp.measures
    import opendp.metrics
    import opendp.mod

    opendp.mod.enable_features("contrib")
    return opendp


def _int64(values: np.ndarray) -> np.ndarray:
    if not np.issubdtype(values.dtype, np.integer):
        raise TypeError(f"noise is added to integers only, got {values.dtype}")
    return np.ascontiguousarray(values, dtype=np.int64)


def _sqrt_up(square: int) -> float:
    root = math.sqrt(square)
    return root if root * root >= square and root.is_integer() else math.nextafter(root, math.inf)


def _require_cost(cost: float, rho: float) -> None:
    if not cost <= rho * (1 - KEPT):
        raise AssertionError(f"the mechanism costs rho = {cost!r}, too much for the {rho!r} charged for it")
