"""Each part of a descent on its own, against plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pointillist.errors import InputError
from pointillist.updates.losses import (
    MOST_ACTIVE,
    Adam,
    BestOf,
    SquaredError,
    ThresholdError,
    TiePenalty,
    WhenMet,
)


def arrays(*values: Any) -> list[jax.Array]:
    return [jnp.asarray(value, jnp.float32) for value in values]


def number(value: float) -> jax.Array:
    return jnp.float32(value)


# --- the optimiser


def adam_by_hand(gradients: list[np.ndarray], rates: list[float]) -> np.ndarray:
    """Adam's steps, added up."""
    mean, square = np.zeros_like(gradients[0]), np.zeros_like(gradients[0])
    moved = np.zeros_like(gradients[0])
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        moved = moved - rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    return moved


@pytest.mark.parametrize("cosine", [False, True])
def test_adam(cosine: bool) -> None:
    """With a cosine, step t of T has the rate (1 + cos(pi t / T)) / 2 of the first one."""
    steps, rate = 6, 0.2
    optimizer = Adam(steps, rate, cosine).optimizer()
    gradients = list(np.random.default_rng(0).normal(size=(steps, 3)))
    rates = [rate * (1 + np.cos(np.pi * t / steps)) / 2 if cosine else rate for t in range(steps)]
    params = jnp.zeros(3, jnp.float32)
    state = optimizer.init(params)
    with jax.numpy_dtype_promotion("standard"):
        for gradient in gradients:
            changes, state = optimizer.update(jnp.asarray(gradient, jnp.float32), state, params)
            params = params + changes
    assert np.allclose(params, adam_by_hand(gradients, rates), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Adam(0, 0.1), "t_max must be at least 1, got 0; give for example 100."),
        (lambda: Adam(1, 0.0), "learning_rate must be a finite number above 0, got 0.0; give for example 0.001."),
        (lambda: SquaredError(-1.0), "tolerance must be a finite number, 0 or more, got -1.0; give 0."),
        (lambda: BestOf(0), "patience must be at least 1, got 0; give for example 5."),
    ],
)
def test_wrong_parts(make: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert str(refused.value) == sentence


# --- losses


def test_the_squared_error() -> None:
    rng = np.random.default_rng(1)
    errors = [rng.normal(size=(2, 3)), rng.normal(size=5)]
    weights = [rng.random((2, 3)), rng.random(5)]
    loss = SquaredError(0.5)
    level, memory = loss.level(arrays(*errors), number(-1.0))
    assert (float(level), float(memory)) == (0.0, -1.0)  # remembers nothing
    by_hand = sum(float(np.sum(w * e**2)) for w, e in zip(weights, errors, strict=True))
    value, met = loss.value(arrays(*errors), arrays(*weights), level)
    assert float(value) == pytest.approx(by_hand, rel=1e-5)
    assert bool(met) == (by_hand < 0.5)
    for tolerance in (0.99 * by_hand, 1.01 * by_hand):
        assert bool(replace(loss, tolerance=tolerance).value(arrays(*errors), arrays(*weights), level)[1]) == (
            by_hand < tolerance
        )
    gradient = jax.grad(lambda e: loss.value([e], arrays(weights[1]), level)[0])(arrays(errors[1])[0])
    assert np.allclose(gradient, 2 * weights[1] * errors[1], rtol=1e-5)


def threshold_by_hand(errors: np.ndarray, level: float) -> tuple[float, np.ndarray]:
    """The mean of the absolute errors of at least the level, the 100 largest at most; and its gradient."""
    sizes = np.abs(errors)
    active = sizes >= level
    active &= sizes >= np.sort(sizes)[-min(MOST_ACTIVE, len(sizes))]
    count = max(1, int(active.sum()))
    return float(sizes[active].sum() / count), active * np.sign(errors) / count


@pytest.mark.parametrize("count", [5, 100, 300])
@pytest.mark.parametrize("level", [0.0, 0.5, 1.9, 50.0])
def test_the_threshold_error(count: int, level: float) -> None:
    errors = np.random.default_rng(count).normal(size=count)
    loss = ThresholdError(0.5)
    weights = arrays(np.ones(count))
    value, met = loss.value(arrays(errors), weights, number(level))
    gradient = jax.grad(lambda e: loss.value([e], weights, number(level))[0])(arrays(errors)[0])
    expected, slope = threshold_by_hand(errors, level)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert bool(met) == (np.abs(errors).max() < level)
    assert np.allclose(gradient, slope, atol=1e-6)


def test_the_threshold_follows_the_largest_errors_of_the_rounds() -> None:
    """A running mean with the factor 0.5; below 0 stands for no round before."""
    loss, memory, mean = ThresholdError(0.4), number(-1.0), None
    for largest in (0.8, 0.2, 0.5):
        errors = np.array([0.1 * largest, -largest, 0.3 * largest])
        mean = largest if mean is None else 0.5 * mean + 0.5 * largest
        level, memory = loss.level(arrays(errors), memory)
        assert float(memory) == pytest.approx(mean)
        assert float(level) == pytest.approx(0.4 * mean)


# --- the penalty


def penalty_by_hand(rows: np.ndarray) -> float:
    mean = rows.mean(axis=0)
    largest = mean * (1 - mean) + 1e-6
    shares = ((rows - mean) ** 2).mean(axis=0) / largest
    return float(np.sum(largest / np.sqrt(mean + 1e-4) * 0.3 * np.log(1 + shares / 0.3)))


def test_the_tie_penalty() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.dirichlet(np.ones(3), 8), rng.dirichlet(np.full(4, 0.2), 8)], axis=1)
    penalty = TiePenalty(0.4)
    assert float(penalty.value(arrays(rows)[0])) == pytest.approx(penalty_by_hand(rows), rel=1e-4)
    alike = np.repeat(rows[:1], 8, axis=0)
    assert float(penalty.value(arrays(alike)[0])) == pytest.approx(0, abs=1e-6)
    certain = np.eye(4)  # each value in one row, surely: v_j = 1, and g_j = sqrt(1/4) 3/4
    assert float(penalty.value(arrays(certain)[0])) == pytest.approx(
        4 * 0.5 * 0.75 * 0.3 * np.log(1 + 1 / 0.3), rel=1e-3
    )


@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (1, 1 / 8), (4, 0.5), (8, 1.0), (19, 1.0)])
def test_the_penalty_rises_over_a_share_of_the_steps(step: int, share: float) -> None:
    assert float(TiePenalty(0.4).risen(jnp.int32(step), 20)) == pytest.approx(share)
    rows = np.random.default_rng(3).dirichlet(np.ones(4), 6)
    assert float(TiePenalty(0.4).value(arrays(rows)[0])) == pytest.approx(penalty_by_hand(rows), rel=1e-4)


def test_a_ramp_of_less_than_a_step_is_one_step() -> None:
    assert [float(TiePenalty(0.01).risen(jnp.int32(step), 20)) for step in (0, 1)] == [0.0, 1.0]


# --- when to stop


def followed(stopping: Any, losses: list[float]) -> tuple[int, float, float]:
    """The steps until the end, the parameters that are kept (here: the step's number), and their loss."""
    state = stopping.start({"x": number(-1.0)})
    for step, loss in enumerate(losses):
        state, ends = stopping.seen(state, {"x": number(step)}, number(loss))
        if bool(ends):
            break
    kept, value = stopping.end(state, {"x": number(step)}, number(loss))
    return step + 1, float(kept["x"]), float(value)


def test_when_met_goes_on_and_keeps_the_last() -> None:
    assert followed(WhenMet(), [3.0, 2.0, 5.0, 7.0]) == (4, 3.0, 7.0)


@pytest.mark.parametrize("stopping", [WhenMet(), BestOf(2)])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_ends_a_round_and_is_told(stopping: Any, broken: float) -> None:
    steps, _, value = followed(stopping, [3.0, broken, 1.0])
    assert steps == 2
    assert not np.isfinite(value)


def best_by_hand(losses: list[float], patience: int) -> tuple[int, float, float]:
    best, at, stale = np.inf, -1, 0
    for step, loss in enumerate(losses):
        best, at, stale = (loss, step, 0) if loss < best else (best, at, stale + 1)
        if stale >= patience:
            break
    return step + 1, float(at), float(best)


@pytest.mark.parametrize("patience", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_best_of_ends_after_its_patience_and_keeps_the_best(patience: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = (np.linspace(5, 1, 30) + 2 * rng.random(30)).astype(np.float32).tolist()
    assert followed(BestOf(patience), losses) == pytest.approx(best_by_hand(losses, patience))


def test_an_equal_loss_is_not_better() -> None:
    assert followed(BestOf(2), [1.0, 1.0, 1.0, 0.5]) == (3, 0.0, 1.0)
