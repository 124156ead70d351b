"""Gradients of halfspaces on relaxed rows: exact, by the score function, straight-through, and by sigmoids.

Rows of independent columns answer random halfspaces. Each estimate of the gradient is compared with the one by
enumeration of all records: its bias and its spread over many draws, both as shares of the length of the true gradient.
Then each is used to fit the answers of other rows, by the same number of steps of Adam, and the fit is judged by exact
answers.

*Exact*: the Fourier route. *Score function*: stratified draws, with the other half of the draws as the baseline. *Plain
score function*: independent draws and no baseline. *Straight-through*: records drawn by Gumbel noise, with the gradient
of a softmax for that of a draw, and of a sigmoid for that of a threshold. *Sigmoids*: the softmax itself in place of
the record and a sigmoid in place of the threshold; in the fit, the sigmoid gets steeper step by step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measuring.machine import seconds
from measuring.markdown import section

from pointillist import Categorical, Schema
from pointillist.families.rows import softmax_per_attribute
from pointillist.queries.blocks import DRAWS, HalfspaceBlock, SampledBlock
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.random_halfspaces import random_halfspaces

SIZES, ORDERED = (12, 8, 4, 3, 2), 2
ROWS, SPACES, REPEATS, STEPS, RATE = 20, 20, 300, 400, 0.1
STEEP = (0.25, 4.0)
"""The width of the sigmoids at the end and at the start of a fit; for single gradients it is 1."""

SCHEMA = Schema(tuple(Categorical(f"c{n}", tuple(range(size)), ordered=n < ORDERED) for n, size in enumerate(SIZES)))
DOMAIN = SCHEMA.domain
ENDS = np.cumsum([0, *SIZES])

Answers = Callable[[Any, Any, Any], Any]
"""Answers of logits, by a random key and the width of a sigmoid."""


@dataclass(frozen=True)
class Threshold:
    """One halfspace, decided record by record."""

    weights: np.ndarray
    most: int

    def holds(self, codes: dict[int, Any]) -> Any:
        """Which records are inside.

        Args:
            codes: by attribute.
        """
        own = np.split(self.weights, ENDS[1:-1])
        return sum(jnp.asarray(own[i])[codes[i]] for i in codes) <= self.most


@dataclass(frozen=True)
class Setting:
    """Halfspaces with their weights and thresholds as arrays."""

    spaces: tuple[Halfspaces, ...]

    @property
    def weights(self) -> np.ndarray:
        """Halfspaces x all codes."""
        return np.array([np.concatenate(list(one.added.values())) for one in self.spaces])

    @property
    def most(self) -> np.ndarray:
        """The largest score inside each halfspace."""
        return np.array([one.intervals.bounds[0][1] - 1 for one in self.spaces])


def rows_of(logits: Any) -> Any:
    """Rows of probabilities.

    Args:
        logits: of each value.
    """
    return softmax_per_attribute(logits, DOMAIN)


def enumerated(setting: Setting, logits: Any) -> Any:
    """The answers by the probability of every record.

    Args:
        setting: the halfspaces.
        logits: of the rows.
    """
    records = np.array(list(itertools.product(*map(range, SIZES))))
    rows, columns = rows_of(logits), records + ENDS[:-1]
    share = jnp.prod(rows[:, columns], axis=2).mean(axis=0)
    inside = setting.weights[:, columns].sum(axis=2) <= setting.most[:, None]
    return jnp.asarray(inside, share.dtype) @ share


def exact(setting: Setting, logits: Any, key: Any, width: Any) -> Any:
    return HalfspaceBlock(DOMAIN, setting.spaces).totals(rows_of(logits), key) / ROWS


def score_function(setting: Setting, logits: Any, key: Any, width: Any) -> Any:
    formulas: Any = [Threshold(w, int(t)) for w, t in zip(setting.weights, setting.most, strict=True)]
    return SampledBlock(DOMAIN, setting.spaces[0], formulas).totals(rows_of(logits), key) / ROWS


def plain_score_function(setting: Setting, logits: Any, key: Any, width: Any) -> Any:
    codes: dict[int, Any] = {}
    logs: Any = 0.0
    for i, own in enumerate(jnp.split(jnp.log(rows_of(logits)), ENDS[1:-1].tolist(), axis=1)):
        shape = (DRAWS, ROWS)
        codes[i] = jax.random.categorical(jax.random.fold_in(key, i), jax.lax.stop_gradient(own), shape=shape).T
        logs = logs + jnp.take_along_axis(own, codes[i], axis=1)
    held = jnp.stack([Threshold(w, int(t)).holds(codes) for w, t in zip(setting.weights, setting.most, strict=True)])
    held = held.astype(logits.dtype)
    return (held + held * (logs - jax.lax.stop_gradient(logs))).mean(axis=(1, 2))


def straight_through(setting: Setting, logits: Any, key: Any, width: Any) -> Any:
    soft = _gumbel(logits, key)
    hard = [jax.nn.one_hot(part.argmax(axis=2), part.shape[2]) for part in _split(soft)]
    drawn = soft + jax.lax.stop_gradient(jnp.concatenate(hard, axis=2) - soft)
    smooth, score = _sigmoid(setting, drawn, width)
    inside = (score <= setting.most + 0.5).astype(logits.dtype)
    return (smooth + jax.lax.stop_gradient(inside - smooth)).mean(axis=(0, 1))


def sigmoids(setting: Setting, logits: Any, key: Any, width: Any) -> Any:
    return _sigmoid(setting, _gumbel(logits, key), width)[0].mean(axis=(0, 1))


def _split(parts: Any) -> list[Any]:
    return list(jnp.split(parts, ENDS[1:-1].tolist(), axis=2))


def _gumbel(logits: Any, key: Any) -> Any:
    """Draws x rows x codes: softmax of logits with Gumbel noise."""
    noisy = logits + jax.random.gumbel(key, (DRAWS, *logits.shape))
    return jnp.concatenate([jax.nn.softmax(part, axis=2) for part in _split(noisy)], axis=2)


def _sigmoid(setting: Setting, records: Any, width: Any) -> tuple[Any, Any]:
    score = records @ jnp.asarray(setting.weights.T, records.dtype)
    return jax.nn.sigmoid((setting.most + 0.5 - score) / width), score


WAYS: dict[str, Callable[..., Any]] = {
    "exact, by Fourier transform": exact,
    "score function, sliced, with a baseline": score_function,
    "score function, plain": plain_score_function,
    "straight-through": straight_through,
    "sigmoids": sigmoids,
}


def compared(setting: Setting, way: Answers, start: np.ndarray) -> tuple[float, float, float]:
    """Bias and spread of a gradient, as shares of the length of the true one, and its seconds.

    Args:
        setting: the halfspaces.
        way: how answers are computed.
        start: the logits.
    """
    slope = jnp.asarray(np.random.default_rng(1).normal(size=SPACES), jnp.float32)
    true = np.asarray(jax.grad(lambda x: enumerated(setting, x) @ slope)(jnp.asarray(start)))
    one = jax.jit(jax.grad(lambda x, key: way(x, key, 1.0) @ slope))
    keys = jax.random.split(jax.random.key(0), REPEATS)
    found = np.stack([np.asarray(one(start, key)) for key in keys])
    length = np.linalg.norm(true)
    spread = np.sqrt(((found - found.mean(axis=0)) ** 2).sum(axis=(1, 2)).mean())
    took = seconds(lambda: one(start, keys[0]).block_until_ready(), 20)
    return float(np.linalg.norm(found.mean(axis=0) - true) / length), float(spread / length), took


def fitted(setting: Setting, way: Answers, start: np.ndarray, targets: Any) -> float:
    """The mean error after a fit by this gradient.

    Args:
        setting: the halfspaces.
        way: how answers are computed.
        start: the logits.
        targets: what is to be fitted.
    """
    adam = optax.adam(optax.cosine_decay_schedule(RATE, STEPS))
    last, first = STEEP

    def step(n: Any, now: tuple[Any, Any]) -> tuple[Any, Any]:
        logits, state = now
        width = first * (last / first) ** (n / STEPS)
        key = jax.random.fold_in(jax.random.key(2), n)
        gradient = jax.grad(lambda x: ((way(x, key, width) - targets) ** 2).sum())(logits)
        changes, state = adam.update(gradient, state)
        return optax.apply_updates(logits, changes), state

    with jax.numpy_dtype_promotion("standard"):
        logits, _ = jax.jit(lambda x: jax.lax.fori_loop(0, STEPS, step, (x, adam.init(x))))(jnp.asarray(start))
    return float(np.abs(np.asarray(enumerated(setting, logits)) - np.asarray(targets)).mean())


def run() -> str:
    """The section."""
    spaces = random_halfspaces(SCHEMA, SPACES)
    setting = Setting(spaces)
    rng = np.random.default_rng(0)
    start, other = (rng.normal(size=(ROWS, int(ENDS[-1]))).astype(np.float32) for _ in range(2))
    targets = enumerated(setting, 1.5 * other)
    lines = []
    for name, way in WAYS.items():
        bound = partial(way, setting)
        bias, spread, took = compared(setting, bound, start)
        lines.append(
            (name, f"{bias:.3f}", f"{spread:.3f}", f"{1e3 * took:.2f}", f"{fitted(setting, bound, start, targets):.5f}")
        )
    before = float(np.abs(np.asarray(enumerated(setting, start)) - np.asarray(targets)).mean())
    heads = ("gradient", "bias", "spread", "milliseconds", "mean error after a fit")
    note = (
        f"{ROWS} rows, {SPACES} halfspaces over {len(SIZES)} columns, {DRAWS} draws per row where records are drawn. "
        f"Bias and spread over {REPEATS} draws, as shares of the length of the true gradient: an estimate without bias "
        f"shows about its spread over {REPEATS**0.5:.1f}. A fit has {STEPS} steps; the mean error before it is "
        f"{before:.5f}."
    )
    return section("Gradients of halfspaces", heads, lines, note)
