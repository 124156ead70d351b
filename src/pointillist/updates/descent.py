"""Gradient descent on the measurements so far: the update shared by RAP, RAP-softmax, GEM and one-shot.

The whole inner loop of a round is one compiled program; Python runs once per round, not per step. Single queries
come as index arrays padded to powers of two, so a run of T rounds compiles O(log T) times; whole marginals come as
targets and weights for all of the workload, so it compiles once. Runs of the same model, workload and settings share
the compiled program. Counts stay exact on the host; what goes to the device is in 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.errors import InputError, check
from pointillist.families.relaxed import NOISE, Params, Relaxed, compiler_options
from pointillist.framework import Log
from pointillist.queries.workload import Grouping, Workload

if TYPE_CHECKING:
    import jax

    from pointillist.queries.relaxed import Plan

__all__ = ["Descent", "Settings", "combined", "spread_of"]

MOST_ACTIVE = 100
"""The threshold loss looks at no more than so many of the largest errors."""

HALFWAY = 0.3
"""c in the spread of rows: from about there on, more of it in the same value costs less."""

MOST_PROGRAMS = 4
"""A process keeps the compiled programs of so many models, workloads and settings: those used last."""


@dataclass(frozen=True)
class Settings:
    """How a round descends.

    ``threshold``: above 0, the loss is the mean of the absolute errors of at least gamma, this share of a running mean
    of each round's largest error, and the round ends when all are below gamma. At 0 it is the squared error: summed
    over single queries, or the mean over the cells of whole marginals in units of their noise variance.
    ``patience``: end after so many steps without a smaller loss, and keep the best parameters (0: never).
    ``tolerance``: end at this loss.
    ``penalised``: by marginal, add data["penalty"] times the spread of the rows (:func:`spread_of`) to the loss; it
    rises from 0 to its full weight over this share of the steps.
    """

    steps: int
    learning_rate: float
    cosine: bool = False
    threshold: float = 0.0
    patience: int = 0
    tolerance: float = 0.0
    resample: bool = False
    penalised: float | None = None

    def __post_init__(self) -> None:
        check(self.steps >= 1, "t_max", self.steps, "must be at least 1", "give for example 100")
        check(0 < self.learning_rate < np.inf, "learning_rate", self.learning_rate,
              "must be a finite number above 0", "give for example 0.001")  # fmt: skip
        check(self.patience >= 0, "patience", self.patience, "must not be negative", "give 0 for none")
        check(0 <= self.tolerance < np.inf, "tolerance", self.tolerance, "must be a finite number, 0 or more", "give 0")


class Descent:
    """The update. Memory: the running mean of the largest errors."""

    def __init__(self, family: Relaxed, workload: Workload, settings: Settings) -> None:
        self.family = family
        self.workload = workload
        self.settings = settings
        if workload.grouping is Grouping.MARGINAL and settings.threshold:
            raise ValueError("the threshold loss is for single queries")
        self._program = _program(family, workload, settings)
        self._plan = self._program.plan

    @property
    def traces(self) -> int:
        """How often the program was compiled, by this update and by those that share it."""
        return self._program.traces

    def init(self, params: Params) -> float:
        return -1.0  # none yet

    def __call__(self, rng: np.random.Generator, params: Params, memory: float, log: Log) -> tuple[Params, float]:
        data = self._query_data(log) if self._plan is None else self.cells_data(*combined(log))
        return self.fit(rng, params, data, memory, log)

    def fit(
        self, rng: np.random.Generator, params: Params, data: dict[str, Any], memory: float, log: Log
    ) -> tuple[Params, float]:
        """Descend on ``data``; the loss, the steps taken and the spread of the rows, if it counts, are noted."""
        import jax

        key = jax.random.key(int(rng.integers(2**31)))
        params, stats = self._program.descend(params, data, key, np.float32(memory))
        loss, steps, memory = float(stats["loss"]), int(stats["steps"]), float(stats["mean"])
        log.notes[-1].update(loss=loss, steps=steps)
        if self.settings.penalised is not None:
            log.notes[-1]["spread"] = float(stats["spread"])
        if not np.isfinite(loss):
            raise InputError("loss", loss, "must stay finite", "use a smaller learning_rate")
        return params, memory

    def _query_data(self, log: Log) -> dict[str, Any]:
        """Columns, targets and weights of the measured queries, padded with entries of weight 0."""
        from pointillist.queries.relaxed import columns_of

        measured = log.measurements
        columns = columns_of(self.workload, np.array([m.group for m in measured]))
        size = max(16, 1 << (len(measured) - 1).bit_length())
        pad = size - len(measured)
        targets = np.concatenate([log.feasible(m) for m in measured])
        return {
            "columns": np.pad(columns, ((0, pad), (0, 0)), constant_values=sum(self.workload.domain.sizes)),
            "targets": np.pad(targets, (0, pad)).astype(np.float32),
            "weights": np.pad(np.ones(len(measured)), (0, pad)).astype(np.float32),
        }

    def cells_data(self, targets: np.ndarray, precision: np.ndarray, cells: int | None = None) -> dict[str, Any]:
        """Targets and weights of every cell of the workload, in node layout; cells of precision 0 weigh nothing.

        The weights are the precisions over ``cells``, by default the number of cells that have one: the loss is the
        mean squared residual in units of the noise variance, which is about 1 where the fit is as close as the noise.
        """
        assert self._plan is not None
        return {
            "targets": self._plan.from_flat(targets),
            "weights": self._plan.from_flat(precision / (np.count_nonzero(precision) if cells is None else cells)),
        }


class _Program:
    """The descent of one round, compiled. What it was measured on comes as an argument: nothing of a run is kept."""

    def __init__(self, family: Relaxed, workload: Workload, settings: Settings) -> None:
        import jax

        self.model = family.model
        self.settings = settings
        self.plan: Plan | None = family.plan(workload) if workload.grouping is Grouping.MARGINAL else None
        self.traces = 0
        options = compiler_options(tuned=settings.penalised is None)  # a shrunken fit is over in a second
        self.descend = jax.jit(self._descend, donate_argnums=0, compiler_options=options)

    def _errors(self, params: Params, data: dict[str, Any]) -> list[jax.Array]:
        from pointillist.queries.relaxed import query_answers

        rows = self.model.probabilities(params)
        if self.plan is None:
            return [(query_answers(rows, data["columns"]) - data["targets"]) * data["weights"]]
        return [a - t for a, t in zip(self.plan.answers(rows), self.plan.split(data["targets"]), strict=True)]

    def _descend(
        self, params: Params, data: dict[str, Any], key: jax.Array, mean: jax.Array
    ) -> tuple[Params, dict[str, jax.Array]]:
        import jax
        import jax.numpy as jnp
        import optax

        self.traces += 1
        settings, model = self.settings, self.model
        rate: Any = settings.learning_rate
        if settings.cosine:
            rate = optax.cosine_decay_schedule(settings.learning_rate, settings.steps)
        optimizer = optax.adam(rate)
        noise = {NOISE: params[NOISE]} if NOISE in params else {}
        trained = {name: value for name, value in params.items() if name != NOISE}

        def loss_of(trained: Params, noise: Params, gamma: jax.Array, steps: jax.Array) -> tuple[jax.Array, jax.Array]:
            errors = self._errors(trained | noise, data)
            if settings.threshold:
                return _threshold_loss(errors[0], gamma)
            weights = [data["weights"]] if self.plan is None else self.plan.split(data["weights"])
            squared = [jnp.sum(w * e * e) for w, e in zip(weights, errors, strict=True)]
            loss = sum(squared[1:], squared[0])
            if settings.penalised is not None:
                share = jnp.minimum(1.0, steps.astype(jnp.float32) / max(1.0, settings.penalised * settings.steps))
                loss = loss + share * data["penalty"] * spread_of(model.probabilities(trained | noise))
            return loss, jnp.float32(jnp.inf)

        if settings.threshold:
            largest = jnp.max(jnp.abs(self._errors(params, data)[0]))
            mean = jnp.where(mean < 0, largest, 0.5 * mean + 0.5 * largest)
        gamma = mean * settings.threshold

        def step(state: dict[str, Any]) -> dict[str, Any]:
            key, noise = state["key"], state["noise"]
            if settings.resample:
                key, draw = jax.random.split(key)
                noise = {NOISE: jax.random.normal(draw, noise[NOISE].shape)}
            value_and_grad = jax.value_and_grad(loss_of, has_aux=True)
            (loss, largest), gradient = value_and_grad(state["trained"], noise, gamma, state["steps"])
            done = (largest < gamma) if settings.threshold else (loss < settings.tolerance)
            done = done & (state["steps"] > 0)  # every round takes one step
            with jax.numpy_dtype_promotion("standard"):  # optax raises floats to the power of its step counter
                changes, optimizer_state = optimizer.update(gradient, state["optimizer"], state["trained"])
            moved = model.project(optax.apply_updates(state["trained"], changes))
            trained = jax.tree.map(lambda new, old: jnp.where(done, old, new), moved, state["trained"])
            better = loss < state["best"]
            stale = jnp.where(better, 0, state["stale"] + 1)
            kept = state["kept"]
            if settings.patience:  # the loss is that of the parameters before the step
                kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), state["trained"], kept)
            done = done | ~jnp.isfinite(loss)
            if settings.patience:
                done = done | (stale >= settings.patience)
            return {
                "trained": trained, "optimizer": optimizer_state, "noise": noise, "key": key, "loss": loss,
                "best": jnp.minimum(loss, state["best"]), "stale": stale, "steps": state["steps"] + 1, "done": done,
                "kept": kept,
            }  # fmt: skip

        start = {
            "trained": trained, "optimizer": optimizer.init(trained), "noise": noise, "key": key,
            "loss": jnp.float32(0), "best": jnp.float32(jnp.inf), "stale": jnp.int32(0), "steps": jnp.int32(0),
            "done": jnp.bool_(False), "kept": trained if settings.patience else {},
        }  # fmt: skip
        end = jax.lax.while_loop(lambda s: (s["steps"] < settings.steps) & ~s["done"], step, start)
        last = {"loss": end["loss"], "steps": end["steps"], "mean": mean}
        if settings.penalised is not None:
            last["spread"] = spread_of(model.probabilities(end["trained"] | end["noise"]))
        if settings.patience:
            return end["kept"] | end["noise"], last | {
                "loss": jnp.where(jnp.isfinite(end["loss"]), end["best"], end["loss"])
            }
        return end["trained"] | end["noise"], last


@lru_cache(maxsize=MOST_PROGRAMS)
def _program(family: Relaxed, workload: Workload, settings: Settings) -> _Program:
    """One program for all updates that are equal in these: a sweep over epsilons or seeds compiles once."""
    return _Program(family, workload, settings)


def combined(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """The measured fraction of every cell and its precision, 1 / variance; 0 and 0 where nothing was measured.

    A marginal that was measured several times counts with the mean, weighted by the precisions.
    """
    precision = np.zeros(log.workload.queries)
    weighted = np.zeros(log.workload.queries)
    for m in log.measurements:
        cells = log.workload.group(m.group).flat
        inverse = (log.total / m.sigma) ** 2
        precision[cells] += inverse
        weighted[cells] += inverse * log.fractions(m)
    return np.divide(weighted, precision, out=np.zeros_like(weighted), where=precision > 0), precision


def spread_of(rows: jax.Array) -> jax.Array:
    """How far the rows lie from their mean m, where much of it in one value counts less than a little in many:

        sum_j g_j c log(1 + v_j / c),    v_j = (1/B) sum_b (p_bj - m_j)^2 / (m_j (1 - m_j)),    c = 0.3,

    with g_j = sqrt(m_j) (1 - m_j). v_j is between 0, where all rows have the same share of the value, and 1, where each
    row has it surely or never. Where all are 0, no attribute tells anything of another.
    """
    import jax.numpy as jnp

    mean = rows.mean(axis=0)
    largest = mean * (1 - mean) + 1e-6
    shares = jnp.var(rows, axis=0) / largest
    return jnp.sum(largest / jnp.sqrt(mean + 1e-4) * HALFWAY * jnp.log1p(shares / HALFWAY))


def _threshold_loss(errors: jax.Array, gamma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean of the absolute errors of at least gamma (the largest ones), and the largest error."""
    import jax
    import jax.numpy as jnp

    sizes = jnp.abs(errors)
    fixed = jax.lax.stop_gradient(sizes)
    bar = jax.lax.top_k(fixed, min(MOST_ACTIVE, len(fixed)))[0][-1]
    active = (fixed >= jnp.maximum(gamma, bar)).astype(sizes.dtype)
    return jnp.sum(active * sizes) / jnp.maximum(active.sum(), 1.0), fixed.max()
