"""Seeded noise for tests and experiments. NOT PRIVATE: whoever knows the seed can remove the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from pointillist.privacy.mechanisms import gaussian_scale, selection_scale

__all__ = ["InsecureSeededNoise"]

STREAM = 0x6E6F697365
"""Separates the noise from everything else that the same seed drives."""

MOST_NOISE = 2.0**62
"""Where the noise ends, so that no sum leaves 64 bits; OpenDP's noisy counts end at the limits of 64 bits."""


class InsecureSeededNoise:
    """Noise of the same scales as :class:`OpenDPNoise`, from a seeded generator, so that runs can be repeated.

    It rounds a Gaussian to whole numbers, and selects by the Gumbel trick in floating point.
    """

    private = False

    def __init__(self, seed: int) -> None:
        self.seed = seed
        # A stream of its own: the loop's post-processing draws from [seed, 0], [seed, 1] and so on.
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))

    @property
    def state(self) -> dict[str, Any]:
        """The state of the generator, as plain data."""
        return dict(self._rng.bit_generator.state)

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state

    @property
    def description(self) -> str:
        return f"INSECURE seeded noise (seed {self.seed}): NOT PRIVATE, for experiments only"

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        scale = gaussian_scale(rho, sensitivity_squared)
        drawn = np.rint(scale * self._rng.standard_normal(counts.shape))
        noise: np.ndarray = np.clip(drawn, -MOST_NOISE, MOST_NOISE).astype(np.int64)
        noisy: np.ndarray = counts + noise
        return noisy

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        uniform = self._rng.random(len(scores))
        gumbel = -np.log(-np.log(uniform + (uniform == 0) * 1e-300))
        return int(np.argmax(scores / selection_scale(rho, sensitivity) + gumbel))
