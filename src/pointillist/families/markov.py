"""Graphical models: P(x) ∝ exp(sum of potentials), each of which looks at a few attributes.

A potential is a table over its scope. Everything else is inference on the junction tree of the scopes
(:mod:`pointillist.families.beliefs`), whose size decides what a model costs: it grows with the ties between
attributes, and not with the number of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.families.beliefs import Beliefs, calibrate, spread
from pointillist.families.conditioning import Allowed, require_possible
from pointillist.families.junction import JunctionTree
from pointillist.queries.base import Queries

__all__ = ["Field", "Markov"]

PREFIX = "potential"
"""Saved arrays are called by the positions of their attributes: ``potential_0_3``."""

COPIES = 4
"""Tables of a fit for each cell of the tree: the factors, the marginals, and what is computed on the way."""


@dataclass(frozen=True, eq=False)
class Field:
    """Potentials over scopes of which no one contains another; none at all is the uniform distribution.

    Attributes:
        domain: the attributes and their sizes.
        potentials: a table for each scope.
        inferred: the model as a calibrated junction tree, where it is known already.
    """

    domain: Domain
    potentials: Mapping[Attributes, np.ndarray] = field(default_factory=dict)
    inferred: Beliefs | None = None

    @cached_property
    def beliefs(self) -> Beliefs:
        """The model as a calibrated junction tree."""
        if self.inferred is not None:
            return self.inferred
        tree = JunctionTree.of(self.domain.sizes, self.potentials)
        tables = clique_tables(tree, self.domain, self.potentials)
        calibrate(tree, self.domain.sizes, tables)
        return Beliefs(tree, self.domain.sizes, tables)


def clique_tables(tree: JunctionTree, domain: Domain, potentials: Mapping[Attributes, np.ndarray]) -> list[np.ndarray]:
    """The sum of the potentials of each clique; each potential is in one clique."""
    tables = [np.zeros(domain.shape(clique)) for clique in tree.cliques]
    for scope, potential in sorted(potentials.items(), key=lambda item: item[0]):  # also after loading: the same bits
        home = tree.home(scope, domain.sizes)
        assert home is not None
        tables[home] += potential.reshape(spread(scope, tree.cliques[home], domain.sizes))
    return tables


@dataclass(frozen=True)
class Markov:
    """The graphical models over a domain whose junction tree has at most ``most_cells`` cells; starts uniform."""

    domain: Domain
    most_cells: int = 10_485_760
    kind = "markov"

    @staticmethod
    def fits(domain: Domain) -> bool:
        return True

    @staticmethod
    def memory(domain: Domain) -> int:
        """Bytes of the smallest model: one potential for each attribute."""
        return 8 * sum(domain.sizes)

    def footprint(self, queries: Sequence[Queries]) -> int:
        return 8 * COPIES * self._cells() + 8 * sum(one.size for one in queries)

    def _cells(self) -> int:
        """The cells of the largest model that the domain allows for."""
        return min(self.most_cells, self.domain.cells) + sum(self.domain.sizes)

    def init(self, rng: np.random.Generator) -> Field:
        return Field(self.domain)

    def answers(self, params: Field, queries: Sequence[Queries]) -> np.ndarray:
        scopes = list(dict.fromkeys(one.scope for one in queries))
        found = dict(zip(scopes, params.beliefs.marginals(scopes), strict=True))
        return np.concatenate([one.of_marginal(found[one.scope].ravel()) for one in queries])

    def sample(self, rng: np.random.Generator, params: Field, rows: int) -> tuple[np.ndarray, ...]:
        return params.beliefs.draw(rng, rows)

    def sample_given(
        self, rng: np.random.Generator, params: Field, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """The condition is one more factor of each attribute that it names."""
        beliefs, share = params.beliefs.given(allowed)
        require_possible(share)
        return beliefs.draw(rng, rows)

    def to_arrays(self, params: Field) -> dict[str, np.ndarray]:
        return {"_".join(map(str, (PREFIX, *scope))): table for scope, table in params.potentials.items()}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Field:
        scopes = {name: tuple(map(int, name.split("_")[1:])) for name in arrays}
        return Field(self.domain, {scope: np.asarray(arrays[name]) for name, scope in scopes.items()})

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "most_cells": self.most_cells}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Markov:
        """The family of a saved model."""
        return cls(domain, spec["most_cells"])
