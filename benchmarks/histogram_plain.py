"""MWEM and PEP written plainly, as a yardstick for speed: the domain as a list of cells, every answer a full pass.

Each update step evaluates its query on every cell, and PEP answers the whole workload again after each projection.
"""

from __future__ import annotations

import itertools

import numpy as np


class PlainHistogram:
    """A distribution as one flat vector, with the attribute values of every cell listed."""

    def __init__(self, sizes: tuple[int, ...], k: int) -> None:
        self.sizes = sizes
        self.cells = np.indices(sizes).reshape(len(sizes), -1)
        self.marginals = list(itertools.combinations(range(len(sizes)), k))
        self.queries = [
            (marginal, values)
            for marginal in self.marginals
            for values in itertools.product(*(range(sizes[i]) for i in marginal))
        ]
        self.weights = np.full(self.cells.shape[1], 1 / self.cells.shape[1])

    def indicator(self, query: int) -> np.ndarray:
        """Which cells satisfy a query."""
        marginal, values = self.queries[query]
        inside: np.ndarray = np.all(self.cells[list(marginal)] == np.array(values)[:, None], axis=0)
        return inside

    def answers(self) -> np.ndarray:
        """The answers to all queries."""
        parts = []
        for marginal in self.marginals:
            shape = [self.sizes[i] for i in marginal]
            keys = np.ravel_multi_index(tuple(self.cells[list(marginal)]), shape)
            parts.append(np.bincount(keys, self.weights, minlength=int(np.prod(shape))))
        return np.concatenate(parts)


def plain_mwem(sizes: tuple[int, ...], truth: np.ndarray, rounds: int, scale: float, rng: np.random.Generator) -> None:
    """MWEM with past measurements; ``scale`` is the selection's and the noise's, in fractions."""
    model = PlainHistogram(sizes, 3)
    past: list[tuple[int, float]] = []
    for _ in range(rounds):
        answers = model.answers()
        chosen = int(np.argmax(np.abs(truth - answers) / scale + rng.gumbel(size=len(truth))))
        past.append((chosen, float(np.clip(truth[chosen] + scale * rng.standard_normal(), 0, 1))))
        bar = abs(past[-1][1] - answers[chosen]) / 2
        again = [m for m in past[:-1] if abs(m[1] - answers[m[0]]) >= bar]
        for query, measured in [past[-1], *(again[i] for i in rng.permutation(len(again)))]:
            mask = model.indicator(query)
            model.weights *= np.exp(mask * (measured - model.weights @ mask) / 2)
            model.weights /= model.weights.sum()


def plain_pep(sizes: tuple[int, ...], truth: np.ndarray, rounds: int, scale: float, rng: np.random.Generator) -> None:
    """PEP that answers the whole workload after every projection."""
    model = PlainHistogram(sizes, 3)
    past: list[tuple[int, float]] = []
    for t in range(rounds):
        answers = model.answers()
        chosen = int(np.argmax(np.abs(truth - answers) / scale + rng.gumbel(size=len(truth))))
        past.append((chosen, float(np.clip(truth[chosen] + scale * rng.standard_normal(), 1e-6, 1 - 1e-6))))
        for _ in range(min(25, 2 * (t + 1))):
            query, a = max(past, key=lambda m: abs(m[1] - answers[m[0]]))
            q = float(np.clip(answers[query], 1e-6, 1 - 1e-6))
            model.weights *= np.where(model.indicator(query), a * (1 - q) / ((1 - a) * q), 1.0)
            model.weights /= model.weights.sum()
            answers = model.answers()
