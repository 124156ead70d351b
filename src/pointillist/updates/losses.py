"""Parts of a descent: optimiser, loss, penalty, stopping rule, and whether the network's noise stays the same.

Each is a small frozen value with pure functions on JAX arrays; :mod:`pointillist.updates.descent` composes them.
``errors`` and ``weights`` are lists of arrays of the same shapes: one array for single queries, or one per batch of a
:class:`~pointillist.queries.answering.Layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pointillist.checks import at_least, not_negative, positive

if TYPE_CHECKING:
    import jax

__all__ = ["Adam", "BestOf", "Loss", "SquaredError", "Stopping", "ThresholdError", "TiePenalty", "WhenMet"]

MOST_ACTIVE = 100
"""The threshold loss looks at no more than this number of the largest errors."""

HALFWAY = 0.3
"""c in the penalty: from about there on, more of a tie in the same value costs less."""

Arrays = list["jax.Array"]
State = dict[str, Any]


@dataclass(frozen=True)
class Adam:
    """At most ``steps`` steps of Adam; with ``cosine`` the step falls from ``learning_rate`` to 0."""

    steps: int
    learning_rate: float
    cosine: bool = False

    def __post_init__(self) -> None:
        at_least("t_max", self.steps, 1, 100)
        positive("learning_rate", self.learning_rate, 0.001)

    def optimizer(self) -> Any:
        """The transformation of gradients."""
        import optax

        rate: Any = self.learning_rate
        return optax.adam(optax.cosine_decay_schedule(rate, self.steps) if self.cosine else rate)


class Loss(Protocol):
    """What a descent minimises."""

    def level(self, errors: Arrays, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Before the first step: the level of the errors at which the round is done, and what the loss remembers of
        the round for the next one."""
        ...

    def value(self, errors: Arrays, weights: Arrays, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The loss, and whether it is as small as the round needs."""
        ...


@dataclass(frozen=True)
class SquaredError:
    """sum w e^2: met below ``tolerance``.

    Over single queries the weights are 1. Over all cells of the queries they are such that it is the mean of the
    squared errors in units of the noise variance.
    """

    tolerance: float = 0.0

    def __post_init__(self) -> None:
        not_negative("tolerance", self.tolerance)

    def level(self, errors: Arrays, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
        return memory * 0, memory

    def value(self, errors: Arrays, weights: Arrays, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        import jax.numpy as jnp

        squared = [jnp.sum(w * e * e) for w, e in zip(weights, errors, strict=True)]
        loss = sum(squared[1:], squared[0])
        return loss, (loss >= 0) & (loss < self.tolerance)  # with weights below 0, rounding can take it there, too


@dataclass(frozen=True)
class ThresholdError:
    """GEM's loss over single queries: the mean of the absolute errors of at least gamma, at most the 100 largest.

    gamma is the share ``gamma`` of a running mean (factor 0.5) of the largest error at the start of each round. The
    loss is met when no error reaches gamma.
    """

    gamma: float

    def level(self, errors: Arrays, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
        import jax.numpy as jnp

        largest = jnp.max(jnp.abs(errors[0]))
        mean = jnp.where(memory < 0, largest, 0.5 * memory + 0.5 * largest)
        return mean * self.gamma, mean

    def value(self, errors: Arrays, weights: Arrays, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        import jax
        import jax.numpy as jnp

        sizes = jnp.abs(errors[0])
        fixed = jax.lax.stop_gradient(sizes)
        bar = jax.lax.top_k(fixed, min(MOST_ACTIVE, len(fixed)))[0][-1]
        active = (fixed >= jnp.maximum(level, bar)).astype(sizes.dtype)
        return jnp.sum(active * sizes) / jnp.maximum(active.sum(), 1.0), fixed.max() < level


@dataclass(frozen=True)
class TiePenalty:
    """A penalty on what ties attributes together: how far the rows lie from their mean m,

        sum_j g_j c log(1 + v_j / c),    v_j = (1/B) sum_b (p_bj - m_j)^2 / (m_j (1 - m_j)),    c = 0.3,

    with g_j = sqrt(m_j) (1 - m_j), so that much of it in one value counts less than a little in many. v_j is between 0,
    where all rows have the same share of the value, and 1, where each row has either all of it or nothing. Where all
    are 0, no attribute says anything about another.

    It rises from 0 to its full weight over the share ``ramp`` of the steps.
    """

    ramp: float

    def value(self, rows: jax.Array) -> jax.Array:
        """The penalty of some rows, at weight 1."""
        import jax.numpy as jnp

        mean = rows.mean(axis=0)
        largest = mean * (1 - mean) + 1e-6
        shares = jnp.var(rows, axis=0) / largest
        return jnp.sum(largest / jnp.sqrt(mean + 1e-4) * HALFWAY * jnp.log1p(shares / HALFWAY))

    def risen(self, step: jax.Array, steps: int) -> jax.Array:
        """The share of its weight that it has at step ``step`` of ``steps``."""
        import jax.numpy as jnp

        return jnp.minimum(1.0, step.astype(jnp.float32) / max(1.0, self.ramp * steps))


class Stopping(Protocol):
    """Which parameters a round ends with, and when it ends apart from the loss being met."""

    def start(self, trained: Any) -> State:
        """What is remembered before the first step."""
        ...

    def seen(self, state: State, trained: Any, loss: jax.Array) -> tuple[State, jax.Array]:
        """After the loss of ``trained`` is known: the new memory, and whether the round ends."""
        ...

    def end(self, state: State, trained: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        """The parameters of the round and their loss."""
        ...


@dataclass(frozen=True)
class WhenMet:
    """Ends when the loss is met, with the last parameters."""

    def start(self, trained: Any) -> State:
        return {}

    def seen(self, state: State, trained: Any, loss: jax.Array) -> tuple[State, jax.Array]:
        import jax.numpy as jnp

        return state, ~jnp.isfinite(loss)

    def end(self, state: State, trained: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        return trained, loss


@dataclass(frozen=True)
class BestOf:
    """Ends after ``patience`` steps without a smaller loss as well, with the best parameters."""

    patience: int

    def __post_init__(self) -> None:
        at_least("patience", self.patience, 1, 5)

    def start(self, trained: Any) -> State:
        import jax.numpy as jnp

        return {"best": jnp.float32(jnp.inf), "stale": jnp.int32(0), "kept": trained}

    def seen(self, state: State, trained: Any, loss: jax.Array) -> tuple[State, jax.Array]:
        import jax
        import jax.numpy as jnp

        better = loss < state["best"]
        stale = jnp.where(better, 0, state["stale"] + 1)
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), trained, state["kept"])
        after = {"best": jnp.minimum(loss, state["best"]), "stale": stale, "kept": kept}
        return after, ~jnp.isfinite(loss) | (stale >= self.patience)

    def end(self, state: State, trained: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        import jax.numpy as jnp

        return state["kept"], jnp.where(jnp.isfinite(loss), state["best"], loss)
