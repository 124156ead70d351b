"""Rows whose marginals are near those of the model: rows of one row of the mixture exchange values.

The marginals of rows that are drawn are those of the model on average, and no more: drawing adds an error of its own.
Most of it can be removed, since the model and the workload are public: this is post-processing.

For marginals over the scopes S, let R_S(c) be how many rows more than expected are in the cell c. The distance is

    L = sum_S w_S sum_c R_S(c)^2,

with w_S = 1, and ``ONE_WAY`` for single attributes, which are always among the scopes: so rare values are not lost. For
attributes in rules it is 1, since rows that obey cannot have all marginals of a model that does not know the rules.
Attributes are independent within a row of the mixture. Two rows x and y that were drawn from the same one are therefore
as likely a draw if they exchange their values of an attribute i, and x has a likely value if it takes over y's. In the
second case, with x' for the changed row, half of the change of L is

    sum_{S with i} w_S (R_S(x'_S) - R_S(x_S) + 1).

In the first case it is the sum of two such terms, less 2 w_S for every S over whose other attributes x and y agree,
since nothing changes there. A change is made if it makes L smaller. Marginals that were not asked for stay as plausible
as they were. Cells in which less than one row is expected cannot be matched. L draws rows away from them, but only
until the large cells, which get these rows instead, have about half a row too many each.

Rows are paired at random and looked at in small batches: the exchanges of a batch are judged one by one and made
together, and of the rows that take over a value only the best one, since those that are best for L are so for the same
reason. Sums of residuals are exact, since these are multiples of 1 / ``GRID``: the result does not depend on how a
processor adds up.

The work is bounded: marginals of wide tables or many rows are replaced by the pairs of their attributes, and these by
single attributes, until a pass over all rows can be made twice within ``MOST_WORK``. If that is still too much, rows
stay as they were drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.sources import sum_weights
from pointillist.families.conditioning import Joint, Mixture
from pointillist.queries.base import Queries
from pointillist.reporting import step as report_step

__all__ = ["Limits", "Matched", "match_rows", "scopes_for"]

ONE_WAY = 40
"""The weight of a one-way marginal in the distance."""

GRID = 64
"""Expected counts are rounded to multiples of 1 / GRID."""

PASSES, LEAST_PASSES, LEAST_GAIN = 12, 2, 0.01
"""Passes over all rows, at most and at least; a pass that takes a smaller share off the distance is the last one."""

BATCHES, LEAST_BATCH, MOST_BATCH = 200, 8, 1024
"""In how many batches pairs of rows are looked at, and how many pairs a batch has."""

MOST_WORK, PER_BATCH = 2_000_000_000, 20_000
"""Cells that are looked up in all passes, at most, and how many cost as much as what a batch takes for an attribute."""

MOST_CELLS, MOST_SCOPES = 1 << 22, 20_000
"""Cells of all marginals together, and marginals, at most."""

CELLS_PER_ROW = 10
"""A marginal with more cells for each row is replaced by smaller ones: nearly all of its cells are empty anyway."""


@dataclass(frozen=True)
class Matched:
    """How near the rows of a release are to the model.

    Attributes:
        marginals: the number of marginals that were matched.
        before: how far these were from the model's in the rows as they were drawn: the mean total variation distance.
        after: the same for the rows of the release.
    """

    marginals: int
    before: float
    after: float

    def describe(self) -> str:
        """All of it in one line."""
        return f"{self.after:.4f} from the model (mean tvd of {self.marginals:,} marginals), {self.before:.4f} as drawn"


@dataclass(frozen=True)
class Limits:
    """What exchanges must keep to.

    Attributes:
        joints: attributes whose codes must go together.
        fixed: attributes that keep their values.
    """

    joints: tuple[Joint, ...] = ()
    fixed: frozenset[int] = frozenset()

    @property
    def attributes(self) -> frozenset[int]:
        """The attributes that there are limits to."""
        return self.fixed.union(*(joint.positions for joint in self.joints))


def match_rows(
    family: Mixture,
    params: Any,
    domain: Domain,
    codes: Sequence[np.ndarray],
    labels: np.ndarray,
    wanted: Iterable[Queries],
    limits: Limits,
    rng: np.random.Generator,
) -> tuple[tuple[np.ndarray, ...], Matched | None]:
    """Rows with some values exchanged, and how near they are to the model; None if there was nothing to exchange.

    Args:
        family, params: the model.
        domain: the attributes.
        codes: the rows, as one array of codes per attribute.
        labels: from which row of the mixture each of them comes.
        wanted: the queries whose answers are to be near the model's.
        limits: what the rows must keep to, as they do already.
        rng: pairs the rows.
    """
    rows = len(labels)
    scopes = scopes_for(wanted, domain, rows)
    if not scopes or len(np.unique(labels)) == rows:
        return tuple(codes), None
    targets = _Targets.of(domain, scopes, family, params, rows)
    search = _Search(targets, codes, limits)
    before = search.far
    found, after = _searched(search, labels, _passes(scopes, domain, rows), rng)
    return found, Matched(len(scopes), before, after)


def _searched(
    search: _Search, labels: np.ndarray, passes: int, rng: np.random.Generator
) -> tuple[tuple[np.ndarray, ...], float]:
    """The rows after the best pass, and how far they are from the model."""
    best, far, least = search.codes, search.far, search.distance
    for n in range(passes):
        for pairs in _batches(labels, rng):
            search.improve(pairs, rng)
        report_step("drawing", n + 1, passes)
        before, least = least, min(least, search.distance)
        if least < before:
            best, far = search.codes, search.far
        if least > (1 - LEAST_GAIN) * before:
            break
    return best, far


def _batches(labels: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Pairs of rows with the same label, every row in one pair at most, in random order: 2 x pairs."""
    order = np.lexsort((rng.random(len(labels)), labels))
    ranked = labels[order]
    first = np.flatnonzero(((np.arange(len(ranked)) - np.searchsorted(ranked, ranked)) % 2 == 0)[:-1])
    first = first[ranked[first] == ranked[first + 1]]
    pairs = np.stack([order[first], order[first + 1]])[:, rng.permutation(len(first))]
    size = _batch_size(len(labels))
    return (pairs[:, at : at + size] for at in range(0, len(first), size))


def _batch_size(rows: int) -> int:
    """Pairs of rows in a batch."""
    return int(np.clip(rows // 2 // BATCHES, LEAST_BATCH, MOST_BATCH))


def scopes_for(wanted: Iterable[Queries], domain: Domain, rows: int) -> tuple[Attributes, ...]:
    """The scopes of the marginals that are matched: those of the queries, or smaller ones; none if all cost too much.

    Args:
        wanted: the queries.
        domain: the attributes.
        rows: the number of rows.
    """
    scopes = {queries.scope for queries in wanted}
    largest = min(CELLS_PER_ROW * rows, MOST_CELLS)
    while large := {scope for scope in scopes if len(scope) > 1 and domain.cells_of(scope) > largest}:
        scopes = _narrowed(scopes, large)
    while not _affordable(scopes, domain, rows):
        width = max(map(len, scopes))
        if width == 1:
            return ()
        scopes = _narrowed(scopes, {scope for scope in scopes if len(scope) == width})
    return tuple(sorted(scopes))


def _narrowed(scopes: set[Attributes], some: set[Attributes]) -> set[Attributes]:
    """Scopes with some of them replaced by the pairs of their attributes, and pairs by single attributes."""
    return (scopes - some) | {small for scope in some for small in combinations(scope, 1 if len(scope) == 2 else 2)}


def _affordable(scopes: Collection[Attributes], domain: Domain, rows: int) -> bool:
    cells = sum(map(domain.cells_of, scopes))
    return len(scopes) <= MOST_SCOPES and cells <= MOST_CELLS and _passes(scopes, domain, rows) >= LEAST_PASSES


def _passes(scopes: Collection[Attributes], domain: Domain, rows: int) -> int:
    """The number of passes over all rows that the bound on the work allows."""
    looked_up = rows * (len(domain) + sum(map(len, scopes)))
    batches = len(domain) * rows // (2 * _batch_size(rows))
    return min(PASSES, MOST_WORK // (looked_up + PER_BATCH * batches))


@dataclass(frozen=True)
class _Targets:
    """The marginals that rows are to have.

    Attributes:
        domain: the attributes.
        scopes: the marginals: those that are matched, and then single attributes that are not among them.
        matched: how many are matched.
        counts: the expected counts of all cells, one marginal after the other.
    """

    domain: Domain
    scopes: tuple[Attributes, ...]
    matched: int
    counts: np.ndarray

    @classmethod
    def of(cls, domain: Domain, scopes: Sequence[Attributes], family: Mixture, params: Any, rows: int) -> _Targets:
        """The expected counts of a number of rows of a model."""
        every = tuple(dict.fromkeys((*scopes, *((i,) for i in range(len(domain))))))
        counts = np.concatenate([np.rint(GRID * rows * part) / GRID for part in family.expected(params, every)])
        return cls(domain, every, len(scopes), counts)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the cells of each marginal begin; one more entry holds the end."""
        return np.concatenate([[0], np.cumsum([self.domain.cells_of(scope) for scope in self.scopes])])

    def residuals(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """By how many rows each cell has more than expected."""
        ones = np.ones(len(codes[0]))
        found: np.ndarray = np.concatenate(sum_weights(codes, ones, self.domain, self.scopes)) - self.counts
        return found

    def far(self, residuals: np.ndarray, rows: int) -> float:
        """The mean total variation distance of the matched marginals.

        Args:
            residuals: by how many rows each cell has more than expected.
            rows: the number of rows.
        """
        return float(np.abs(residuals[: self.offsets[self.matched]]).sum()) / 2 / rows / self.matched


@dataclass(frozen=True)
class _Having:
    """The marginals that have an attribute. All weigh 1 in the distance, but for that of the attribute alone.

    Attributes:
        marginals: their positions.
        strides: how many cells further a row gets with the next value: marginals x 1.
        alone: which of them is that of the attribute alone.
        more: what this one weighs more than the others.
        weight: the weight of all together.
    """

    marginals: np.ndarray
    strides: np.ndarray
    alone: int
    more: float
    weight: float

    def weighted(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum of numbers of each marginal, over the first axis."""
        found: np.ndarray = np.add.reduce(values, axis=0, dtype=np.float64)
        found += self.more * values[self.alone]
        return found


class _Search:
    """Rows, and by how much they miss their targets.

    Args:
        targets: the targets.
        codes: the rows, as one array of codes per attribute.
        limits: what the rows must keep to.
    """

    def __init__(self, targets: _Targets, codes: Sequence[np.ndarray], limits: Limits) -> None:
        domain, scopes = targets.domain, targets.scopes
        self._targets = targets
        self._table = np.stack(codes).astype(np.int32)
        self._residuals = targets.residuals(codes)
        self._free = np.setdiff1d(np.arange(len(domain)), list(limits.fixed))
        self._joints = limits.joints
        self._starts = targets.offsets[:-1, None].astype(np.int32)
        strides = np.zeros((len(domain), len(scopes)), np.int32)
        self._terms = np.zeros((2, max(map(len, scopes)), len(scopes)), np.int32)
        for n, scope in enumerate(scopes):
            strides[list(scope), n] = np.cumprod((1, *domain.shape(scope)[:0:-1]))[::-1]
            self._terms[:, : len(scope), n] = scope, strides[list(scope), n]
        more = [ONE_WAY - 1.0 if i not in limits.attributes else 0.0 for i in range(len(domain))]
        self._by_cell = np.ones(len(self._residuals))
        self._of = []
        for i, row in enumerate(strides):
            marginals = np.flatnonzero(row)
            alone = scopes.index((i,))
            self._by_cell[targets.offsets[alone] : targets.offsets[alone + 1]] += more[i]
            place = int(np.searchsorted(marginals, alone))
            self._of.append(_Having(marginals, row[marginals, None], place, more[i], len(marginals) + more[i]))

    @property
    def distance(self) -> float:
        """L."""
        return float((self._by_cell * self._residuals**2).sum())

    @property
    def far(self) -> float:
        """The mean total variation distance of the matched marginals."""
        return self._targets.far(self._residuals, self._table.shape[1])

    @property
    def codes(self) -> tuple[np.ndarray, ...]:
        """The rows, as one array of codes per attribute."""
        return tuple(self._table.astype(np.int64))

    def improve(self, pairs: np.ndarray, rng: np.random.Generator) -> None:
        """Exchange values of some pairs of rows, attribute by attribute, where that makes L smaller.

        Args:
            pairs: 2 x pairs rows.
            rng: the order of the attributes.
        """
        rows = pairs.ravel()
        values = self._table.take(rows, axis=1)
        cells = self._cells(values)
        for attribute in rng.permutation(self._free):
            self._improve(values, cells, attribute)
        self._table[:, rows] = values

    def _cells(self, values: np.ndarray) -> np.ndarray:
        """The cells of some rows: marginals x rows.

        Args:
            values: their codes: attributes x rows.
        """
        cells = np.repeat(self._starts, values.shape[1], axis=1)
        for attributes, strides in zip(*self._terms, strict=True):
            term = values.take(attributes, axis=0)
            term *= strides[:, None]
            cells += term
        return cells.astype(np.intp)

    def _improve(self, values: np.ndarray, cells: np.ndarray, attribute: int) -> None:
        """Exchange values of one attribute between the first and the second half of some rows.

        Args:
            values: the codes of the rows: attributes x rows; brought up to date.
            cells: the cell of each: marginals x rows; brought up to date.
            attribute: the attribute.
        """
        own = values[attribute]
        half = len(own) // 2
        steps = own[half:] - own[:half]
        differ = steps.nonzero()[0]
        if not len(differ):
            return
        of = self._of[attribute]
        rows, steps = np.concatenate([differ, differ + half]), steps[differ]
        steps = np.concatenate([steps, -steps])
        old = cells.take(of.marginals, axis=0).take(rows, axis=1)
        new = old + of.strides * steps
        changes = self._changes(old, new, of)
        for joint in self._joints:
            if attribute in joint.positions:
                _forbid(changes, joint, values[list(joint.positions)][:, rows], attribute, steps)
        moved = _chosen(changes)
        if not len(moved):
            return
        left, entered, rows = old.take(moved, axis=1), new.take(moved, axis=1), rows[moved]
        np.add.at(self._residuals, entered.ravel(), 1.0)
        np.subtract.at(self._residuals, left.ravel(), 1.0)
        cells[of.marginals[:, None], rows] = entered
        own[rows] += steps[moved]

    def _changes(self, old: np.ndarray, new: np.ndarray, of: _Having) -> np.ndarray:
        """Half of the change of L for each pair, if both rows, only the first or only the second one get new cells: 3 x
        pairs. The cells are those of all first rows, and then of all second rows."""
        gains = self._residuals.take(new)
        gains -= self._residuals.take(old)
        alone = of.weighted(gains) + of.weight
        first, second = alone.reshape(2, -1)
        agree = of.weighted(new[:, : len(first)] == old[:, len(first) :])
        changes = np.empty((3, len(first)))
        changes[0] = first + second - 2 * agree
        changes[1:] = first, second
        return changes


def _forbid(changes: np.ndarray, joint: Joint, values: np.ndarray, attribute: int, steps: np.ndarray) -> None:
    """Make changes infinite that are not allowed; in place.

    Args:
        changes: the changes: 3 x pairs.
        joint: what is allowed.
        values: the codes of its attributes, of all first rows, and then of all second rows; brought up to date.
        attribute: the attribute that changes.
        steps: by how much.
    """
    values[joint.positions.index(attribute)] += steps
    first, second = joint.mask[tuple(values)].reshape(2, -1)
    changes[~np.stack([first & second, first, second])] = np.inf


def _chosen(changes: np.ndarray) -> np.ndarray:
    """Which rows get new cells: all pairs of rows that gain most if both do, and the best of the other rows.

    Args:
        changes: half of the changes of L, 3 x pairs, as :class:`_Search` has them. The result are positions among all
            first rows, followed by all second rows.
    """
    both, first, second = changes
    alone = np.minimum(first, second)
    exchanged = ((both < 0) & (both <= alone)).nonzero()[0]
    alone[both <= alone] = 0.0
    best = alone.argmin()
    single = [best if first[best] <= second[best] else best + len(both)] if alone[best] < 0 else []
    return np.concatenate([exchanged, exchanged + len(both), np.array(single, np.intp)])
