"""The generator network of GEM: Gaussian noise to product distributions.

    z (B x 512) -> [Linear -> BatchNorm -> ReLU, joined with its input] twice -> Linear -> softmax per attribute

BatchNorm uses the statistics of the batch, always: the B rows are the distribution, not samples of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import at_least, check
from pointillist.data.domain import Domain
from pointillist.families.relaxed import NOISE, Params
from pointillist.families.rows import softmax_per_attribute

if TYPE_CHECKING:
    import jax

__all__ = ["Generator"]


@dataclass(frozen=True)
class Generator:
    """B rows from noise of ``inputs`` dimensions through hidden layers of the given widths."""

    domain: Domain
    rows: int = 1000
    inputs: int = 512
    hidden: tuple[int, ...] = (1024, 1024)
    kind = "generator"

    def __post_init__(self) -> None:
        check(self.rows >= 2, "batch", self.rows, "must be at least 2, for the batch statistics", "give 1000")
        at_least("inputs", self.inputs, 1, 512)
        good = all(width >= 1 for width in self.hidden)
        check(good, "hidden", list(self.hidden), "must be widths of at least 1", "give 1024-1024")

    @property
    def size(self) -> int:
        width, total = self.inputs, self.rows * self.inputs
        for out in (*self.hidden, sum(self.domain.sizes)):
            total += (width + 3) * out
            width += out
        return total

    def init(self, rng: np.random.Generator) -> Params:
        import jax.numpy as jnp

        params: dict[str, np.ndarray] = {NOISE: rng.standard_normal((self.rows, self.inputs))}
        width = self.inputs
        for n, out in enumerate((*self.hidden, sum(self.domain.sizes))):
            bound = 1 / np.sqrt(width)
            params[f"weight{n}"] = rng.uniform(-bound, bound, (width, out))
            params[f"bias{n}"] = rng.uniform(-bound, bound, out)
            if n < len(self.hidden):
                params[f"scale{n}"], params[f"shift{n}"] = np.ones(out), np.zeros(out)
                width += out
        return {name: jnp.asarray(value, jnp.float32) for name, value in params.items()}

    def probabilities(self, params: Params) -> jax.Array:
        import jax
        import jax.numpy as jnp

        x = params[NOISE]
        for n in range(len(self.hidden)):
            h = x @ params[f"weight{n}"] + params[f"bias{n}"][None, :]
            mean = h.mean(axis=0, keepdims=True)
            variance = ((h - mean) ** 2).mean(axis=0, keepdims=True)
            h = (h - mean) * jax.lax.rsqrt(variance + 1e-5)
            h = jax.nn.relu(h * params[f"scale{n}"][None, :] + params[f"shift{n}"][None, :])
            x = jnp.concatenate([h, x], axis=1)
        last = len(self.hidden)
        logits = x @ params[f"weight{last}"] + params[f"bias{last}"][None, :]
        return softmax_per_attribute(logits, self.domain)

    def project(self, params: Params) -> Params:
        return params

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.rows, "inputs": self.inputs, "hidden": list(self.hidden)}
