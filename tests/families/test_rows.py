"""Softmax rows of narrow and of wide domains."""

from __future__ import annotations

import numpy as np
import pytest

from pointillist.data.domain import Domain
from pointillist.families import rows


def test_one_softmax_per_size_is_the_same_as_one_per_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax
    import jax.numpy as jnp

    domain = Domain(tuple("abcdef"), (3, 2, 5, 2, 1, 3))
    rng = np.random.default_rng(0)
    logits, slopes = rng.normal(0, 5, (2, 7, 16)).astype(np.float32)

    def found(most: int) -> tuple[np.ndarray, np.ndarray]:
        monkeypatch.setattr(rows, "MOST_BLOCKS", most)
        gradient = jax.grad(lambda given: jnp.sum(slopes * rows.softmax_per_attribute(given, domain)))(logits)
        return np.asarray(rows.softmax_per_attribute(logits, domain)), np.asarray(gradient)

    (apart, slope), (by_size, same_slope) = found(6), found(5)
    assert np.allclose(apart, by_size, rtol=1e-5, atol=1e-7)
    assert np.allclose(slope, same_slope, rtol=1e-4, atol=1e-6)
    assert np.allclose(by_size[:, 5:10].sum(axis=1), 1.0)
