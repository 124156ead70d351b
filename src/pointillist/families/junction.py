"""Junction trees: how a graphical model is cut into cliques that inference can work on.

Attributes are tied if some potential looks at both. Eliminating the attributes one after the other ties all that the
eliminated one was tied to; the sets that are tied on the way are the cliques of the tree. The order is greedy: next is
the attribute whose clique has the fewest cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pointillist.data.domain import Attributes

__all__ = ["JunctionTree", "cliques_of", "maximal", "tree_cells"]


def maximal(scopes: Iterable[Attributes]) -> tuple[Attributes, ...]:
    """The scopes that are inside of no other one, larger ones first."""
    kept: list[Attributes] = []
    for scope in sorted(set(scopes), key=lambda one: (-len(one), one)):
        if not any(set(scope) <= set(other) for other in kept):
            kept.append(scope)
    return tuple(kept)


def cliques_of(sizes: Sequence[int], scopes: Iterable[Attributes]) -> tuple[Attributes, ...]:
    """The cliques of the junction tree over all attributes, of which no one contains another."""
    return tuple(map(_attributes, _eliminate(tuple(sizes), scopes)))


def tree_cells(sizes: Sequence[int], scopes: Iterable[Attributes]) -> int:
    """The number of cells of all cliques together: what inference takes."""
    sizes = tuple(sizes)
    return sum(_cells(sizes, clique) for clique in _eliminate(sizes, scopes))


def _eliminate(sizes: tuple[int, ...], scopes: Iterable[Attributes]) -> list[int]:
    """The cliques of a greedy elimination. Sets of attributes are the bits of whole numbers here: a strategy looks at
    thousands of hypothetical trees. A later clique lacks what was eliminated, so it contains no earlier one."""
    tied = [1 << i for i in range(len(sizes))]  # each attribute with those that it is tied to
    for scope in scopes:
        bits = sum(1 << i for i in scope)
        for i in scope:
            tied[i] |= bits
    costs = {i: _cells(sizes, bits) for i, bits in enumerate(tied)}
    found: list[int] = []
    while costs:
        chosen = min(costs, key=costs.__getitem__)
        clique, gone = tied[chosen], ~(1 << chosen)
        if not any(clique & other == clique for other in found):
            found.append(clique)
        del costs[chosen]
        for i in _attributes(clique & gone):
            tied[i] = (tied[i] | clique) & gone
            costs[i] = _cells(sizes, tied[i])
    return found


@lru_cache(maxsize=1 << 16)
def _attributes(bits: int) -> Attributes:
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


@lru_cache(maxsize=1 << 18)
def _cells(sizes: tuple[int, ...], bits: int) -> int:
    return math.prod(sizes[i] for i in _attributes(bits))


@dataclass(frozen=True)
class JunctionTree:
    """Cliques that are joined to a tree, in which those that share an attribute are connected.

    Attributes:
        cliques: the attributes of each node; the first node is the root, and parents come before their children.
        parents: the parent of each node; -1 for the root.
    """

    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], scopes: Iterable[Attributes]) -> JunctionTree:
        """The tree for potentials over some scopes. Parts that are not tied are joined by empty separators."""
        return _tree(tuple(sizes), tuple(sorted(set(scopes))))

    @cached_property
    def separators(self) -> tuple[Attributes, ...]:
        """What each node shares with its parent."""
        pairs = zip(self.cliques, self.parents, strict=True)
        return tuple(tuple(i for i in clique if at >= 0 and i in self.cliques[at]) for clique, at in pairs)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The parent and the children of each node."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                found[child].append(parent)
                found[parent].append(child)
        return tuple(map(tuple, found))

    @cached_property
    def sides(self) -> dict[tuple[int, int], frozenset[int]]:
        """For each edge (a, b): the attributes of the nodes that are on b's side of it."""
        found: dict[tuple[int, int], frozenset[int]] = {}

        def beyond(a: int, b: int) -> frozenset[int]:
            if (a, b) not in found:
                further = (beyond(b, c) for c in self.neighbours[b] if c != a)
                found[a, b] = frozenset(self.cliques[b]).union(*further)
            return found[a, b]

        for a, many in enumerate(self.neighbours):
            for b in many:
                beyond(a, b)
        return found

    def home(self, scope: Iterable[int], sizes: Sequence[int]) -> int | None:
        """The node with the fewest cells that holds all attributes of a scope; None if there is none."""
        wanted = set(scope)
        holding = [n for n, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda n: math.prod(sizes[i] for i in self.cliques[n]), default=None)


@lru_cache(maxsize=64)
def _tree(sizes: tuple[int, ...], scopes: tuple[Attributes, ...]) -> JunctionTree:
    """A spanning tree with the largest separators, grown from the largest clique: for the cliques of an elimination
    it is a junction tree."""
    found = sorted(cliques_of(sizes, scopes), key=lambda one: (-math.prod(sizes[i] for i in one), one))
    cliques, parents = [found[0]], [-1]
    shared = {one: (len(set(one) & set(found[0])), 0) for one in found[1:]}
    while shared:
        newest = max(shared, key=lambda one: shared[one][0])
        parents.append(shared.pop(newest)[1])
        cliques.append(newest)
        for one, (most, _) in shared.items():
            common = len(set(one) & set(newest))
            if common > most:
                shared[one] = common, len(cliques) - 1
    return JunctionTree(tuple(cliques), tuple(parents))
