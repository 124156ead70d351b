"""The workload of a user who names none: as many marginals as a run can carry.

All marginals over three attributes, where these are few: for tables of up to ``SMALL`` attributes, and for wider ones
if they are within the limits. Otherwise all pairs, and triples as long as they fit: those with the target, if one is
named. Where not even all pairs fit, a part of them, and single attributes that no pair has.

What is taken first has the fewest cells: it has the least noise, and the most marginals fit. Among marginals of the
same size the order is random, by a fixed seed, so that no attribute comes first.

A marginal of c cells that is measured together with m - 1 others, each with the same share of rho, has noise of the
squared length c m / (rho n^2), as fractions of the rows; no distribution is longer than 1. It fits if that is at most
``MOST_NOISE``. This is generous, since what is wanted need not be measured: ``auto`` leaves out what nothing ties.

All of this follows from public facts: the schema, the budget and, where it is public, the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pointillist.checks import one_of
from pointillist.data.domain import Attributes, Domain
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload

__all__ = ["Limits", "Suited", "suited_workload"]

SMALL = 20
"""Tables of at most this number of attributes get all triples."""

MOST_MARGINALS, MOST_CELLS = 20_000, 1 << 22
"""What a run can carry on a small machine: marginals, and their cells."""

TRIPLE_CELLS = 1 << 19
"""Triples are added to pairs up to this number of cells in all: they take most of the time of a fit."""

LEAST_TRIPLES = 0.1
"""Triples are added to pairs if they are at least this share of them."""

BYTES_PER_CELL, BYTES_PER_SMALL_CELL = 200, 64
"""Memory for each cell: its counts, its measurement, the model's answer, and what a fit holds for it; and without the
fit, where all triples are taken as long as they fit at all."""

MOST_LISTED = 64
"""Without a target, triples are taken among this number of attributes: those with the fewest values."""

MOST_NOISE = 12.0
"""The largest squared length of the noise of a marginal, if all were measured alike."""


@dataclass(frozen=True)
class Limits:
    """What a run can carry.

    Attributes:
        memory: bytes.
        budget: rho n^2, for what is measured; infinite where the number of rows is private.
    """

    memory: int
    budget: float = math.inf

    @property
    def cells(self) -> int:
        """Cells of all marginals together."""
        return min(MOST_CELLS, self.memory // BYTES_PER_CELL)

    def hidden(self, cells: int, marginals: int) -> bool:
        """Whether noise hides a marginal with this number of cells if this number of marginals is measured."""
        return cells * marginals > MOST_NOISE * self.budget


WAYS = {1: "single columns", 2: "pairs", 3: "triples"}


class Suited(NamedTuple):
    """A workload, and in one line what it is and why."""

    workload: Workload
    reason: str


def suited_workload(domain: Domain, limits: Limits, target: str | None = None) -> Suited:
    """Choose a workload.

    Args:
        domain: the attributes and their sizes.
        limits: what can be carried.
        target: the name of an attribute whose triples, or pairs, are taken first.
    """
    wanted = None if target is None else domain.index(one_of("target", target, domain.names))
    width = len(domain)
    order = min(3, width)
    if _carried_whole(domain, limits, order):
        return _suited(domain, combinations(range(width), order), f"all {WAYS[order]} of the {width} columns")
    pairs = list(combinations(range(width), 2))
    if _Room(domain, limits, MOST_MARGINALS, limits.cells).holds(pairs):
        return _pairs_and_triples(domain, limits, pairs, wanted)
    return _some_pairs(domain, limits, pairs, wanted)


def _carried_whole(domain: Domain, limits: Limits, order: int) -> bool:
    """Whether all marginals over that number of attributes are carried."""
    count = math.comb(len(domain), order)
    if count > MOST_MARGINALS:
        return False
    scopes = list(combinations(range(len(domain)), order))
    if len(domain) <= SMALL:
        return sum(map(domain.cells_of, scopes)) <= limits.memory // BYTES_PER_SMALL_CELL
    return _Room(domain, limits, MOST_MARGINALS, min(limits.cells, TRIPLE_CELLS)).holds(scopes)


def _pairs_and_triples(domain: Domain, limits: Limits, pairs: Sequence[Attributes], target: int | None) -> Suited:
    """All pairs, and the triples that fit next to them."""
    most = MOST_MARGINALS if target is None else MOST_MARGINALS + math.comb(len(domain) - 1, 2)
    room = _Room(domain, limits, most, min(limits.cells, TRIPLE_CELLS))
    room.taken(pairs)
    triples = room.taken(_triples(domain, target))
    triples = triples if len(triples) >= LEAST_TRIPLES * len(pairs) else []  # a few would be chosen at random
    every = math.comb(len(domain), 3)
    around = "" if target is None else f" with {domain.names[target]}"
    some = f" and {len(triples):,} of the triples{around}" if triples else ""
    why = f"all {every:,} triples are more than {_in_words(limits)}"
    return _suited(domain, [*pairs, *triples], f"all pairs of the {len(domain)} columns{some}: {why}")


def _some_pairs(domain: Domain, limits: Limits, pairs: Sequence[Attributes], target: int | None) -> Suited:
    """The pairs that fit, those with the target first, and what they leave out."""
    first = [pair for pair in pairs if target in pair]
    rest = [pair for pair in pairs if target not in pair]
    room = _Room(domain, limits, MOST_MARGINALS, limits.cells)
    taken = [scope for some in (first, rest) for scope in room.taken(_by_size(domain, some))]
    covered = {i for pair in taken for i in pair}
    singles = [(i,) for i in range(len(domain)) if i not in covered]
    around = "" if target is None else f", those with {domain.names[target]} first"
    chosen = f"{len(taken):,} of the {len(pairs):,} pairs of columns{around}"
    alone = f" and {len(singles):,} single columns" if singles else ""
    why = f"all pairs are more than {_in_words(limits)}"
    return _suited(domain, [*sorted(taken), *singles], f"{chosen}{alone}: {why}")


def _in_words(limits: Limits) -> str:
    """What sets the limits, for a message."""
    known = "" if limits.budget == math.inf else ", the number of rows"
    return f"the budget{known} and a run of a few minutes carry"


def _suited(domain: Domain, scopes: Iterable[Attributes], reason: str) -> Suited:
    marginals = tuple(Marginal(scope, domain.shape(scope)) for scope in scopes)
    return Suited(Workload(domain, marginals), reason)


def _by_size(domain: Domain, scopes: Sequence[Attributes]) -> list[Attributes]:
    """Scopes by their cells, in a random order where these are equal."""
    if not scopes:
        return []
    cells = np.array([domain.cells_of(scope) for scope in scopes], np.float64)
    shuffled = np.random.default_rng(0).permutation(len(scopes))
    return [scopes[n] for n in shuffled[np.argsort(cells[shuffled], kind="stable")]]


def _triples(domain: Domain, target: int | None) -> list[Attributes]:
    """The triples to take, the smallest first: with the target, or all of them."""
    if target is not None:
        others = [i for i in range(len(domain)) if i != target]
        return _by_size(domain, [tuple(sorted((i, j, target))) for i, j in combinations(others, 2)])
    few = sorted(range(len(domain)), key=lambda i: domain.sizes[i])[:MOST_LISTED]
    return _by_size(domain, [tuple(sorted(scope)) for scope in combinations(few, 3)])


class _Room:
    """What is left of the limits while marginals are taken."""

    def __init__(self, domain: Domain, limits: Limits, marginals: int, cells: int) -> None:
        self._domain, self._limits, self._most = domain, limits, marginals
        self._marginals, self._cells = 0, cells

    def holds(self, scopes: Sequence[Attributes]) -> bool:
        """Whether all of the scopes fit."""
        return len(self.taken(_by_size(self._domain, scopes))) == len(scopes)

    def taken(self, scopes: Iterable[Attributes]) -> list[Attributes]:
        """Scopes in their order, until one does not fit."""
        found: list[Attributes] = []
        for scope in scopes:
            cells = self._domain.cells_of(scope)
            count = self._marginals + 1
            if count > self._most or cells > self._cells or self._limits.hidden(cells, count):
                break
            self._marginals, self._cells = count, self._cells - cells
            found.append(scope)
        return found
