"""Gradient descent on the measurements so far: the update shared by RAP, RAP-softmax, GEM and one-shot.

A descent is composed of how the queries are answered, a loss, a penalty and a stopping rule
(:mod:`pointillist.updates.losses`). The whole inner loop of a round is one compiled program; Python runs once per
round, not per step. Where somebody watches, the same program is called several times a second, for some steps each,
which gives the same result, bit for bit. Single queries come as index arrays padded to powers of two, so a run of T
rounds compiles O(log T) times; whole groups of queries come as targets and weights for all candidates, so it compiles
once. Runs of the same model, queries and recipe share the compiled program. Counts stay exact on the host; what goes to
the device is in 32 bits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pointillist.data.domain import Attributes
from pointillist.errors import InputError
from pointillist.families.relaxed import (
    BRIEF_OPTIONS,
    COMPILER_OPTIONS,
    NOISE,
    UNTUNED_OPTIONS,
    Params,
    Relaxed,
    compiler_options,
    rows_of,
)
from pointillist.framework import Info, Log, Updated
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates, Single
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.workload import offsets_of
from pointillist.reporting import Tally
from pointillist.updates.losses import Adam, Arrays, Loss, Stopping, TiePenalty, WhenMet

if TYPE_CHECKING:
    import jax

    from pointillist.queries.answering import Layout

__all__ = ["Descent", "Recipe", "cells_data", "combined", "descend", "layered"]

MOST_PROGRAMS = 4
"""A process keeps the compiled programs of this number of models, queries and recipes: those used last."""

PART_SECONDS, GROWTH = 0.25, 4
"""Where somebody watches, the program returns about this often, and a part has at most this many times the steps of the
one before it."""

Data = dict[str, Any]
"""What a round is fitted to: targets and weights, and what else the answering needs."""


@dataclass(frozen=True)
class Recipe:
    """How a round descends.

    Attributes:
        optimizer: the steps.
        loss: what is minimised.
        stopping: when to end and what to keep.
        penalty: added to the loss, times data["penalty"].
        resample: draw the network's input noise again at every step.
        tuned: whether the compiler may spend seconds on faster kernels; not worth it for a short descent.
    """

    optimizer: Adam
    loss: Loss
    stopping: Stopping = field(default_factory=WhenMet)
    penalty: TiePenalty | None = None
    resample: bool = False
    tuned: bool = True


State = dict[str, Any]
"""Where a descent is: all that its next step depends on, besides the data."""


class Answering(Protocol):
    """How the errors of rows are computed."""

    @property
    def sampled(self) -> bool:
        """Whether some answers are estimated from records that are drawn, by data["key"]."""
        ...

    def answers(self, rows: jax.Array, data: Data) -> Arrays:
        """All answers; differentiable."""
        ...

    def errors(self, answers: Arrays, data: Data) -> Arrays:
        """Answers minus targets."""
        ...

    def weights(self, data: Data) -> Arrays:
        """The weight of each squared error."""
        ...

    def distances(self, answers: Arrays, data: Data) -> jax.Array:
        """sum_uv |q_uv - r_uv| of the tied pairs."""
        ...


class ByProducts:
    """All queries of a list at once, by matrix products; data are laid out as these products are.

    Targets and weights may have several layers: a cell that several sources tell about has an error for each of them.

    Args:
        family: the rows.
        queries: the queries.
        tied: pairs among them that are compared with references, as (first attribute, second attribute).
    """

    def __init__(self, family: Relaxed, queries: Sequence[Queries], tied: Sequence[Attributes] = ()) -> None:
        self.layout = family.layout(queries)
        self.sampled = self.layout.sampled
        cells = self.layout.places([Marginal(pair, family.domain.shape(pair)) for pair in tied]) if tied else []
        self._tied = np.concatenate([np.zeros(0, np.intp), *cells])
        self._pair = np.repeat(np.arange(len(tied)), [len(some) for some in cells])

    def answers(self, rows: jax.Array, data: Data) -> Arrays:
        return self.layout.answers(rows, data.get("key"))

    def errors(self, answers: Arrays, data: Data) -> Arrays:
        layers = [self.layout.split(targets) for targets in data["targets"]]
        return [a - t for targets in layers for a, t in zip(answers, targets, strict=True)]

    def weights(self, data: Data) -> Arrays:
        return [part for weights in data["weights"] for part in self.layout.split(weights)]

    def distances(self, answers: Arrays, data: Data) -> jax.Array:
        import jax
        import jax.numpy as jnp

        flat = jnp.concatenate([matrix.ravel() for matrix in answers])
        off = jnp.abs(flat[self._tied] - data["references"])
        return jax.ops.segment_sum(off, self._pair, len(data["distances"]), indices_are_sorted=True)


class ByGathering:
    """Some single queries, by gathering the columns of each."""

    sampled = False

    def __init__(self, family: Relaxed, queries: Sequence[Queries]) -> None:
        from pointillist.queries.answering import Lift

        self.lift = Lift(family.domain, queries)

    def answers(self, rows: jax.Array, data: Data) -> Arrays:
        from pointillist.queries.answering import query_answers

        return [query_answers(self.lift.rows(rows), data["columns"])]

    def errors(self, answers: Arrays, data: Data) -> Arrays:
        return [(answers[0] - data["targets"]) * data["weights"]]

    def weights(self, data: Data) -> Arrays:
        return [data["weights"]]

    def distances(self, answers: Arrays, data: Data) -> jax.Array:
        raise ValueError("single queries have no ties")

    def data(self, measured: Sequence[Measurement], total: int) -> Data:
        """Columns, targets and weights of the measured queries, padded with entries of weight 0."""
        columns = self.lift.columns([m.queries for m in measured])
        size = max(16, 1 << (len(measured) - 1).bit_length())
        pad = size - len(measured)
        targets = np.concatenate([m.feasible(total) for m in measured])
        return {
            "columns": np.pad(columns, ((0, pad), (0, 0)), constant_values=self.lift.offsets[-1]),
            "targets": np.pad(targets, (0, pad)).astype(np.float32),
            "weights": np.pad(np.ones(len(measured)), (0, pad)).astype(np.float32),
        }


class Descent:
    """The update. Memory: what the loss remembers of the rounds so far (below 0: nothing yet)."""

    def __init__(self, family: Relaxed, candidates: Candidates, recipe: Recipe) -> None:
        self._single = isinstance(candidates, Single)
        self._queries = candidates.queries
        self._program = _program(family, self._queries, self._single, recipe)

    @property
    def traces(self) -> int:
        """How often the program was compiled, by this update and by those that share it."""
        return self._program.traces

    def init(self, params: Params) -> float:
        return -1.0

    def __call__(self, rng: np.random.Generator, params: Params, memory: float, log: Log) -> Updated:
        answering = self._program.answering
        if isinstance(answering, ByGathering):
            data = answering.data(log.measurements, log.total)
        else:
            assert isinstance(answering, ByProducts)
            data = cells_data(answering.layout, *combined(self._queries, log.measurements, log.total))
        return self._program.run(rng, params, data, memory)


def descend(
    family: Relaxed,
    queries: Sequence[Queries],
    recipe: Recipe,
    rng: np.random.Generator,
    params: Params,
    data: Data,
    tied: Sequence[Attributes] = (),
) -> tuple[Params, Info]:
    """One descent on all cells of ``queries``; consumes ``params``.

    Args:
        family: the rows.
        queries: what is answered.
        recipe: how to descend.
        rng: a source of random numbers.
        params: where to begin.
        data: targets and weights, the weight of a penalty and, with ties, their references, distances and precisions.
        tied: the pairs of the ties.
    """
    params, _, info = _program(family, tuple(queries), False, recipe, tuple(tied)).run(rng, params, data, -1.0)
    return params, info


def cells_data(layout: Layout, targets: np.ndarray, precision: np.ndarray) -> Data:
    """Targets and weights of every cell of the queries of a layout; cells of precision 0 weigh nothing.

    The weights are the precisions over the number of cells that have one: the loss is the mean squared residual in
    units of the noise variance, which is about 1 where the fit is as close as the noise.
    """
    return layered(layout, [(targets, precision)], int(np.count_nonzero(layout.added(precision))))


def layered(layout: Layout, layers: Sequence[tuple[np.ndarray, np.ndarray]], freedom: float) -> Data:
    """Targets and weights of every cell, in one or several layers.

    Args:
        layout: how the queries are answered.
        layers: targets and weights, flat over the queries. In a layer that has weights below 0 no cell may have
            weights in two queries.
        freedom: the weights are taken over this number.
    """
    laid = []
    for targets, weights in layers:
        if (weights < 0).any():  # of a cell in several queries, all but one weigh nothing
            laid.append((layout.added(np.where(weights != 0, targets, 0.0)), layout.added(weights / freedom)))
            continue
        if layout.repeats:  # the mean of the targets of a cell, weighted by the precisions
            targets, weights = layout.merged(targets, weights)
        laid.append((layout.from_flat(targets), layout.from_flat(weights / freedom)))
    return {"targets": [targets for targets, _ in laid], "weights": [weights for _, weights in laid]}


class _Program:
    """The descent of one round, compiled. What it was measured on comes as an argument: nothing of a run is kept."""

    def __init__(
        self,
        family: Relaxed,
        queries: tuple[Queries, ...],
        single: bool,
        recipe: Recipe,
        tied: tuple[Attributes, ...],
    ) -> None:
        import jax

        self.model = family.model
        self.recipe = recipe
        self.answering: Answering = ByGathering(family, queries) if single else ByProducts(family, queries, tied)
        self.tied = len(tied) > 0
        self.traces = 0
        self._part = 1  # steps between two looks, where somebody watches
        options = compiler_options(COMPILER_OPTIONS if recipe.tuned else UNTUNED_OPTIONS)
        brief = compiler_options(BRIEF_OPTIONS)
        self._compiled = (
            jax.jit(self._begin, donate_argnums=0, compiler_options=brief),
            jax.jit(self._advance, donate_argnums=0, compiler_options=options),
            jax.jit(self._end, compiler_options=brief),
        )

    def run(self, rng: np.random.Generator, params: Params, data: Data, memory: float) -> Updated:
        """Descend on ``data``; the loss, the steps taken and the value of the penalty are the diagnostics."""
        import jax

        begin, _, end = self._compiled
        key = jax.random.key(int(rng.integers(2**31)))
        data = jax.device_put(data)
        state = self._steps(begin(params, data, key, np.float32(memory)), data)
        rows = None if self.recipe.penalty is None else rows_of(self.model)(state["trained"] | state["noise"])
        params, memory, found = end(state, rows)
        info = {name: float(value) for name, value in found.items()}
        if not np.isfinite(info["loss"]):
            raise InputError("loss", info["loss"], "must stay finite", "use a smaller learning_rate")
        return Updated(params, float(memory), info)

    def _steps(self, state: State, data: Data) -> State:
        """All steps: at once, or in parts of some steps, which are reported."""
        advance, most = self._compiled[1], self.recipe.optimizer.steps
        tally = Tally(most)
        if not tally.heard:
            ended: State = advance(state, data, np.int32(most))
            return ended
        taken, loss, done = 0, 0.0, False
        while taken < most and not done:
            began = time.monotonic()
            state = advance(state, data, np.int32(min(most, taken + self._part)))
            taken, loss, done = int(state["step"]), float(state["loss"]), bool(state["done"])
            wanted = self._part * PART_SECONDS / max(time.monotonic() - began, 1e-6)
            self._part = max(1, min(GROWTH * self._part, int(wanted), most))
            tally.made(taken, loss=loss)
        tally.end(taken, loss=loss)
        return state

    def _errors(self, params: Params, data: Data) -> Arrays:
        answering = self.answering
        return answering.errors(answering.answers(self.model.probabilities(params), data), data)

    def _loss(self, params: Params, data: Data, level: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The loss with its penalty, and whether the loss is met."""
        recipe, answering = self.recipe, self.answering
        rows = self.model.probabilities(params)
        answers = answering.answers(rows, data)
        loss, met = recipe.loss.value(answering.errors(answers, data), answering.weights(data), level)
        if recipe.penalty is not None:
            more = data["penalty"] * recipe.penalty.value(rows)
            if self.tied:
                off = answering.distances(answers, data) - data["distances"]
                more = more + (data["tie_weights"] * off * off).sum()
            loss = loss + recipe.penalty.risen(step, recipe.optimizer.steps) * more
        return loss, met

    def _begin(self, params: Params, data: Data, key: jax.Array, memory: jax.Array) -> State:
        """Before the first step."""
        import jax.numpy as jnp

        recipe = self.recipe
        trained = {name: value for name, value in params.items() if name != NOISE}
        level, memory = recipe.loss.level(self._errors(params, data), memory)
        return {
            "trained": trained,
            "optimizer": recipe.optimizer.optimizer().init(trained),
            "noise": {NOISE: params[NOISE]} if NOISE in params else {},
            "key": key,
            "loss": jnp.float32(0),
            "step": jnp.int32(0),
            "done": jnp.bool_(False),
            "stopping": recipe.stopping.start(trained),
            "level": level,
            "memory": memory,
        }

    def _advance(self, state: State, data: Data, until: jax.Array) -> State:
        """Steps until there are ``until`` of them, or the descent ends."""
        import jax

        self.traces += 1
        ended: State = jax.lax.while_loop(
            lambda now: (now["step"] < until) & ~now["done"], lambda now: self._step(now, data), state
        )
        return ended

    def _step(self, state: State, data: Data) -> State:
        import jax
        import jax.numpy as jnp
        import optax

        recipe, key, noise = self.recipe, state["key"], state["noise"]
        if self.answering.sampled:  # other records at every step
            key, draw = jax.random.split(key)
            data = data | {"key": draw}
        if recipe.resample:
            key, draw = jax.random.split(key)
            noise = {NOISE: jax.random.normal(draw, noise[NOISE].shape)}
        value_and_grad = jax.value_and_grad(
            lambda trained: self._loss(trained | noise, data, state["level"], state["step"]), has_aux=True
        )
        (loss, met), gradient = value_and_grad(state["trained"])
        met = met & (state["step"] > 0)  # every round takes one step
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to the power of its step counter
            changes, optimizer = recipe.optimizer.optimizer().update(gradient, state["optimizer"], state["trained"])
        moved = self.model.project(optax.apply_updates(state["trained"], changes))
        # The loss is that of the parameters before the step: where it is met, they stay.
        stopping, ends = recipe.stopping.seen(state["stopping"], state["trained"], loss)
        return state | {
            "trained": jax.tree.map(lambda new, old: jnp.where(met, old, new), moved, state["trained"]),
            "optimizer": optimizer,
            "noise": noise,
            "key": key,
            "loss": loss,
            "step": state["step"] + 1,
            "done": met | ends,
            "stopping": stopping,
        }

    def _end(self, state: State, rows: jax.Array | None) -> tuple[Params, jax.Array, dict[str, jax.Array]]:
        """The parameters that are kept, what the loss remembers, and the diagnostics.

        Args:
            state: where the descent has ended.
            rows: the rows there, if there is a penalty on them.
        """
        recipe = self.recipe
        kept, loss = recipe.stopping.end(state["stopping"], state["trained"], state["loss"])
        info = {"loss": loss, "steps": state["step"]}
        if recipe.penalty is not None and rows is not None:
            info["spread"] = recipe.penalty.value(rows)
        return kept | state["noise"], state["memory"], info


@lru_cache(maxsize=MOST_PROGRAMS)
def _program(
    family: Relaxed, queries: tuple[Queries, ...], single: bool, recipe: Recipe, tied: tuple[Attributes, ...] = ()
) -> _Program:
    """One program for all updates that are equal in these: a sweep over epsilons or seeds compiles once."""
    return _Program(family, queries, single, recipe, tied)


def combined(
    queries: Sequence[Queries], measured: Sequence[Measurement], total: float
) -> tuple[np.ndarray, np.ndarray]:
    """The measured fraction of every query of a list and its precision, 1 / variance; 0 and 0 where nothing was
    measured. What was measured several times counts with the mean, weighted by the precisions."""
    offsets = offsets_of(queries)
    place = {one: n for n, one in enumerate(queries)}
    precision, weighted = np.zeros(offsets[-1]), np.zeros(offsets[-1])
    for m in measured:
        n = place[m.queries]
        cells = slice(offsets[n], offsets[n + 1])
        inverse = (total / m.sigma) ** 2
        precision[cells] += inverse
        weighted[cells] += inverse * m.fractions(total)
    return np.divide(weighted, precision, out=np.zeros_like(weighted), where=precision > 0), precision
