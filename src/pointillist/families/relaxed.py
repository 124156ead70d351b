"""Mixtures of product distributions: B rows, each with a probability for every value of every attribute.

What makes the rows is a :class:`Model`: free parameters (:mod:`pointillist.families.rows`) or a network
(:mod:`pointillist.families.generator`). Answers, sampling and saving are the same for all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.conditioning import Allowed, Joint, require_possible
from pointillist.families.programs import keep_programs
from pointillist.families.sampling import stratified
from pointillist.memory import compiled
from pointillist.queries.base import Queries
from pointillist.queries.halfspaces import Halfspaces

if TYPE_CHECKING:
    import jax

    from pointillist.queries.answering import Layout

__all__ = [
    "BRIEF_OPTIONS",
    "COMPILER_OPTIONS",
    "NOISE",
    "UNTUNED_OPTIONS",
    "Model",
    "Params",
    "Relaxed",
    "compiler_options",
    "rows_of",
    "silence_compiler",
]

Params = dict[str, Any]
"""Named arrays; the entry ``z``, where there is one, is input noise and not trained."""

NOISE = "z"
MOST_PRODUCT = 1 << 22  # numbers in an outer product of rows

LEAST_MASKED = 1e-3
"""A row of the mixture that gives a smaller share to the allowed combinations says nothing about them."""

COMPILER_OPTIONS: dict[str, dict[str, Any]] = {"gpu": {"xla_gpu_enable_triton_gemm": False}}
"""By backend. On a GPU, trying out Triton kernels took most of the compilation (see gem_speed_h200.md)."""

UNTUNED_OPTIONS: dict[str, dict[str, Any]] = {"gpu": COMPILER_OPTIONS["gpu"] | {"xla_gpu_autotune_level": 0}}
"""For short programs: the compiler takes the first kernel that works, and does not time others."""

BRIEF_OPTIONS: dict[str, dict[str, Any]] = {"gpu": UNTUNED_OPTIONS["gpu"], "cpu": {"xla_backend_optimization_level": 0}}
"""For programs that run a few times only. On a CPU they compile in half the time. What takes longest in them, products
of matrices, is compiled already."""


class Model(Protocol):
    """Parameters to rows."""

    @property
    def domain(self) -> Domain: ...

    @property
    def rows(self) -> int: ...

    @property
    def size(self) -> int:
        """The number of parameters."""
        ...

    def init(self, rng: np.random.Generator) -> Params:
        """The first parameters."""
        ...

    def __hash__(self) -> int: ...

    def to_dict(self) -> dict[str, Any]:
        """The model as plain data."""
        ...

    def probabilities(self, params: Params) -> jax.Array:
        """B x d': one distribution per attribute, side by side."""
        ...

    def project(self, params: Params) -> Params:
        """Parameters moved back to where they are allowed, after a gradient step."""
        ...


@dataclass(frozen=True)
class Relaxed:
    """The family of mixtures that a model can make."""

    model: Model
    kind = "relaxed"

    @staticmethod
    def fits(domain: Domain) -> bool:
        return True

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of one row."""
        return 4 * sum(domain.sizes)

    @property
    def domain(self) -> Domain:
        return self.model.domain

    def footprint(self, queries: Sequence[Queries]) -> int:
        # Parameters, gradient and two moments of Adam; rows forward and backward.
        numbers = 4 * self.model.size + 2 * self.model.rows * sum(self.domain.sizes)
        answers = 8 * sum(one.size for one in queries)
        return 4 * numbers + self.layout(queries).memory(self.model.rows) + answers

    def working_set(self, queries: Sequence[Queries]) -> int:
        """Bytes that a fit takes, with JAX, its compiled programs, the gradients and copies of the parameters."""
        layout = self.layout(queries)
        parameters = 4 * 8 * self.model.size  # with the gradient, Adam's state, a start and an average of the rounds
        rows = 4 * 3 * self.model.rows * sum(self.domain.sizes)
        products = 5 * min(self.model.rows, layout.chunk) * layout.all_widths  # the compiler frees some on its way
        return compiled(len(layout.batches)) + parameters + rows + products + 32 * layout.cells

    def layout(self, queries: Sequence[Queries]) -> Layout:
        """How queries are answered; one layout for all uses."""
        return _answering(self.model, tuple(queries))[0]

    def init(self, rng: np.random.Generator) -> Params:
        return self.model.init(rng)

    def answers(self, params: Params, queries: Sequence[Queries]) -> np.ndarray:
        """The mean over the rows, kept inside [0, 1]: rows of a model that makes no distributions can be outside."""
        from pointillist.queries.blocks import MOST_COMPILED

        spaces = [one for one in queries if isinstance(one, Halfspaces)]
        if len(spaces) > MOST_COMPILED:
            return self._many_answers(params, queries, spaces)
        layout, answer = _answering(self.model, tuple(queries))
        inside: np.ndarray = np.clip(layout.to_flat(answer(rows_of(self.model)(params))), 0.0, 1.0)
        return inside

    def _many_answers(self, params: Params, queries: Sequence[Queries], spaces: Sequence[Halfspaces]) -> np.ndarray:
        """Halfspaces in pieces, everything else at once: memory does not grow with the number of halfspaces."""
        from pointillist.queries.blocks import answered_in_pieces

        found: dict[Queries, np.ndarray] = dict(
            answered_in_pieces(self.domain, spaces, self.model.probabilities(params)).items()
        )
        rest = [one for one in queries if one not in found]
        if rest:
            ends = np.cumsum([one.size for one in rest])[:-1]
            found.update(zip(rest, np.split(self.answers(params, rest), ends), strict=True))
        inside: np.ndarray = np.clip(np.concatenate([found[one] for one in queries]), 0.0, 1.0)
        return inside

    def probabilities(self, params: Params) -> np.ndarray:
        """The rows of the mixture, B x d', by one compiled program: its operations one by one take long to compile."""
        found: np.ndarray = np.asarray(rows_of(self.model)(params))
        return found

    def sample(self, rng: np.random.Generator, params: Params, rows: int) -> tuple[np.ndarray, ...]:
        """Each row of the mixture is used equally often, up to one. Of the draws that share a row, each attribute's
        values come one from each of equal slices of its distribution, in an order that is random and independent of
        the other attributes': so every row gives each value as often as expected, up to one at either end."""
        return self.sample_labelled(rng, params, rows)[0]

    def sample_labelled(
        self, rng: np.random.Generator, params: Params, rows: int
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """The rows of :meth:`sample`, and from which row of the mixture each of them comes."""
        probabilities = self._probabilities(params)
        return self._draw(rng, probabilities, _evenly(rng, len(probabilities), rows))

    def expected(self, params: Params, scopes: Iterable[Attributes]) -> Iterator[np.ndarray]:
        """The flat marginal of the rows that :meth:`sample` draws over each scope, on average: sums of products in 64
        bits, so that other processors get the same numbers but for the last bits."""
        probabilities = self._probabilities(params)
        blocks = np.split(probabilities, np.cumsum(self.domain.sizes)[:-1], axis=1)
        blocks = [block / block.sum(axis=1, keepdims=True) for block in blocks]
        for scope in scopes:
            yield _mean_product([blocks[i] for i in scope])

    def sample_given(
        self, rng: np.random.Generator, params: Params, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """Given the condition, the mixture is one of the same rows again: each row restricted to the allowed values,
        and weighted by the probability that it gave them."""
        return self._draw(rng, *self._given(rng, params, rows, allowed))[0]

    def sample_masked(
        self, rng: np.random.Generator, params: Params, rows: int, joints: Sequence[Joint], allowed: Allowed | None
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]:
        """Within a row of the mixture attributes are independent, so that the distribution of a combination given that
        it is allowed is the product of theirs, restricted to what is allowed. The weights of the rows stay as they are,
        and with them the other attributes. Rows that give almost all of their weight to what is not allowed are left
        as they are."""
        if allowed:
            probabilities, chosen = self._given(rng, params, rows, allowed)
        else:
            probabilities = self._probabilities(params)
            chosen = _evenly(rng, len(probabilities), rows)
        first, row = self._draw(rng, probabilities, chosen)
        codes = list(first)
        for joint in joints:
            bad = np.flatnonzero(~joint.mask[tuple(first[n] for n in joint.positions)])
            found, kept = self._together(rng, probabilities, row[bad], joint)
            for n, new in zip(joint.positions, found.T, strict=True):
                codes[n] = codes[n].copy()
                codes[n][bad[kept]] = new[kept]
        return first, tuple(codes), row

    def _together(
        self, rng: np.random.Generator, probabilities: np.ndarray, rows: np.ndarray, joint: Joint
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each row of the mixture that is named an allowed combination, and whether the row gives them enough."""
        options = np.argwhere(joint.mask)
        starts = np.cumsum([0, *self.domain.sizes])
        found, kept = np.zeros((len(rows), len(joint.positions)), np.int64), np.zeros(len(rows), bool)
        if not len(options):
            return found, kept
        order = np.argsort(rows, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1) if len(rows) else ():
            weights, whole = np.ones(len(options)), 1.0
            for axis, n in enumerate(joint.positions):
                block = probabilities[rows[places[0]], starts[n] : starts[n + 1]]
                weights, whole = weights * block[options[:, axis]], whole * float(block.sum())
            cumulative = np.cumsum(weights)
            if cumulative[-1] >= LEAST_MASKED * whole:
                drawn = np.searchsorted(cumulative, rng.random(len(places)) * cumulative[-1], side="right")
                found[places], kept[places] = options[np.minimum(drawn, len(options) - 1)], True
        return found, kept

    def _given(
        self, rng: np.random.Generator, params: Params, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the mixture restricted to a condition, and which of them are drawn from."""
        probabilities = self._probabilities(params)
        weights = np.ones(len(probabilities))
        starts = np.cumsum([0, *self.domain.sizes])
        for attribute, shares in allowed.items():
            block = probabilities[:, starts[attribute] : starts[attribute + 1]]
            total = block.sum(axis=1)
            block *= shares
            weights *= block.sum(axis=1) / total
        require_possible(float(weights.mean()))
        return probabilities, stratified(rng, weights, rows)

    def _probabilities(self, params: Params) -> np.ndarray:
        """The rows of the mixture, B x d': no value has probability 0."""
        return np.clip(self.probabilities(params).astype(np.float64), 0, None) + 1e-12

    def _draw(
        self, rng: np.random.Generator, probabilities: np.ndarray, chosen: np.ndarray
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """One record for each chosen row of the mixture, in random order, and the row of each record."""
        rows = len(chosen)
        chosen.sort()
        first = np.searchsorted(chosen, chosen)  # where the draws from the same row begin
        ends = [*np.unique(first).tolist(), rows]
        share = np.searchsorted(chosen, chosen, side="right") - first
        order = rng.permutation(rows)
        codes = []
        start = 0
        for size in self.domain.sizes:
            cumulative = np.cumsum(probabilities[:, start : start + size], axis=1)
            slices = np.empty(rows, np.int64)
            slices[np.lexsort((rng.random(rows), chosen))] = np.arange(rows) - first
            points = (slices + rng.random(rows)) / share * cumulative[chosen, -1]
            drawn = [cumulative[chosen[a]].searchsorted(points[a:b], side="right") for a, b in pairwise(ends)]
            last = size - 1 - np.argmax(probabilities[:, start : start + size][:, ::-1] > 0, axis=1)
            codes.append(np.minimum(np.concatenate(drawn), last[chosen])[order])
            start += size
        return tuple(codes), chosen[order]

    def mix(self, first: Params, second: Params, weight: float) -> Params:
        """The average of the trained parameters (not of the distributions); the noise is the second one's."""
        mixed = {name: (1 - weight) * first[name] + weight * second[name] for name in first if name != NOISE}
        return mixed | {NOISE: second[NOISE]} if NOISE in second else mixed

    def to_arrays(self, params: Params) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in params.items()}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Params:
        import jax.numpy as jnp

        return {name: jnp.asarray(arrays[name]) for name in arrays}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self.model.to_dict()}


def _evenly(rng: np.random.Generator, size: int, rows: int) -> np.ndarray:
    """Rows of a mixture, each as often as the others, up to one."""
    return np.asarray((np.arange(rows) * size // rows + rng.integers(size)) % size)


def _mean_product(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """The flat mean over the rows of the outer product of their distributions, some rows at a time."""
    *before, last = blocks
    rows, cells = len(last), math.prod(block.shape[1] for block in before)
    total = np.zeros((cells, last.shape[1]))
    step = max(1, MOST_PRODUCT // cells)
    for at in range(0, rows, step):
        left = np.ones((len(last[at : at + step]), 1))
        for block in before:
            left = (left[:, :, None] * block[at : at + step, None, :]).reshape(len(left), -1)
        total += left.T @ last[at : at + step]
    return total.ravel() / rows


def compiler_options(by_backend: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Those options that are for this machine's backend."""
    import jax

    keep_programs()
    return by_backend.get(jax.default_backend())


def silence_compiler() -> None:
    """Keep XLA from printing alarms about slow compilation and constant folding, unless the user has set how much it
    prints. It has an effect only before JAX is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@lru_cache(maxsize=16)
def rows_of(model: Model) -> Any:
    """The compiled rows of a model: one program for answers, draws and diagnostics."""
    import jax

    def rows(params: Params) -> jax.Array:
        with jax.default_matmul_precision("highest"):  # as the answers
            return model.probabilities(params)

    return jax.jit(rows, compiler_options=compiler_options(BRIEF_OPTIONS))


@lru_cache(maxsize=16)
def _answering(model: Model, queries: tuple[Queries, ...]) -> tuple[Layout, Any]:
    """A layout of the queries and its compiled evaluation on rows."""
    import jax
    import jax.numpy as jnp

    from pointillist.queries.answering import Layout

    layout = Layout(model.domain, queries)

    def answer(rows: jax.Array) -> jax.Array:
        with jax.default_matmul_precision("highest"):  # a GPU would round factors to 10 bits
            return jnp.concatenate([matrix.ravel() for matrix in layout.answers(rows)])

    return layout, jax.jit(answer, compiler_options=compiler_options(BRIEF_OPTIONS))
