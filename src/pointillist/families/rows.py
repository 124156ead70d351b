"""Rows with free parameters: the relaxed synthetic tables of RAP and RAP-softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import at_least, not_negative
from pointillist.data.domain import Domain
from pointillist.families.relaxed import Params

if TYPE_CHECKING:
    import jax

__all__ = ["ClippedRows", "SoftmaxRows", "softmax_per_attribute"]

MOST_BLOCKS = 24
"""Up to this number of attributes each is a block of its own."""


def softmax_per_attribute(logits: jax.Array, domain: Domain) -> jax.Array:
    """B x d' logits to probabilities: a softmax over the columns of each attribute."""
    import jax
    import jax.numpy as jnp

    if len(domain) > MOST_BLOCKS:
        return _by_size(logits, domain)
    ends = np.cumsum(domain.sizes)
    blocks = [jax.nn.softmax(logits[:, end - size : end], axis=1) for size, end in zip(domain.sizes, ends, strict=True)]
    return jnp.concatenate(blocks, axis=1)


def _by_size(logits: jax.Array, domain: Domain) -> jax.Array:
    """The same, with one softmax for all attributes of a size: a block for each of hundreds takes long to compile."""
    import jax
    import jax.numpy as jnp

    sizes, starts = np.array(domain.sizes), np.cumsum([0, *domain.sizes])[:-1]
    groups = [(size, starts[sizes == size, None] + np.arange(size)) for size in sorted(set(domain.sizes))]
    order = np.concatenate([columns.ravel() for _, columns in groups])
    ends = np.cumsum([columns.size for _, columns in groups])[:-1].tolist()
    blocks = [
        jax.nn.softmax(part.reshape(-1, columns.shape[0], size), axis=2).reshape(part.shape)
        for part, (size, columns) in zip(jnp.split(_moved(logits, order), ends, axis=1), groups, strict=True)
    ]
    return _moved(jnp.concatenate(blocks, axis=1), np.argsort(order))


def _moved(columns: jax.Array, order: np.ndarray) -> jax.Array:
    """Columns in another order. Its gradient is a move back, where JAX would scatter, which is slow."""
    import jax

    back = np.argsort(order)
    move = jax.custom_vjp(lambda given: given[:, order])
    move.defvjp(lambda given: (given[:, order], None), lambda _, found: (found[:, back],))
    moved: jax.Array = move(columns)
    return moved


@dataclass(frozen=True)
class SoftmaxRows:
    """P = sigma(M): any logits M of B x d'. Starts near one shared row, ``spread`` apart."""

    domain: Domain
    rows: int
    spread: float = 1.0
    kind = "softmax"

    def __post_init__(self) -> None:
        at_least("rows", self.rows, 1, 1000)
        not_negative("spread", self.spread, "give 0.5")

    @property
    def size(self) -> int:
        return self.rows * sum(self.domain.sizes)

    def init(self, rng: np.random.Generator) -> Params:
        import jax.numpy as jnp

        logits = self.spread * rng.uniform(-1, 1, (self.rows, sum(self.domain.sizes)))
        return {"logits": jnp.asarray(logits, jnp.float32)}

    def probabilities(self, params: Params) -> jax.Array:
        return softmax_per_attribute(params["logits"], self.domain)

    def project(self, params: Params) -> Params:
        return params

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.rows}


@dataclass(frozen=True)
class ClippedRows:
    """P = M with M clipped to [-1, 1], as in the first version of RAP: not distributions, and far worse."""

    domain: Domain
    rows: int
    kind = "clipped"

    def __post_init__(self) -> None:
        at_least("rows", self.rows, 1, 1000)

    @property
    def size(self) -> int:
        return self.rows * sum(self.domain.sizes)

    def init(self, rng: np.random.Generator) -> Params:
        import jax.numpy as jnp

        return {"values": jnp.asarray(rng.uniform(-1, 1, (self.rows, sum(self.domain.sizes))), jnp.float32)}

    def probabilities(self, params: Params) -> jax.Array:
        values: jax.Array = params["values"]
        return values

    def project(self, params: Params) -> Params:
        import jax.numpy as jnp

        return {"values": jnp.clip(params["values"], -1.0, 1.0)}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.rows}
