"""The curator: the only door to private data. It charges the ledger first, then looks and draws.

It knows neither a workload nor a strategy: it is asked for candidates or for queries, and counts only what it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, cast

import numpy as np

from pointillist.checks import check
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Schema
from pointillist.data.sources import MemoryOfRows, MergedSource, OpenSource, Source, UnlistedSource
from pointillist.errors import BudgetError, InputError, Shown
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import GAUSSIAN, Entry, Ledger, minus
from pointillist.privacy.mechanisms import Noise, OpenDPNoise, gaussian_scale, selection_scale
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.privacy.sensitivity import of_score, of_total, square_of_counts, square_of_values
from pointillist.privacy.thresholds import threshold_of
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates
from pointillist.queries.counting import Counts, count_rows
from pointillist.queries.measurement import Measurement
from pointillist.reporting import phase

__all__ = ["Ask", "Curator", "Door", "Found", "OpenDoor", "Seek", "planned"]

TOTAL_SHARE = 0.02
"""Under add-remove: the share of rho that pays for the noisy number of rows, to which all answers are scaled."""

NUMBER_OF_ROWS = "number of rows"
"""The label of its charge."""

DISCOVERY = "discovery"
"""The label of the charge for values that nobody could list beforehand."""

MOST_ROWS = 10**9
"""Under add-remove, where n is private: the largest noisy number of rows, and the size of table up to which a plan of
rounds is judged to be useful."""

MOST_PUBLIC_ROWS = 2**53
"""Under replace: the largest number of rows. Up to it, whole numbers of rows are exact in floating point."""


class Ask(NamedTuple):
    """Queries to measure together, and the rho that this may cost."""

    queries: Queries
    rho: float


class Seek(NamedTuple):
    """A column whose values are to be discovered, and what this may cost.

    Attributes:
        column: the name of the column.
        rho: what the noise on the counts may cost.
        delta: the probability that a value is shown which only one unit has, at most.
    """

    column: str
    rho: float
    delta: float


@dataclass(frozen=True)
class Found:
    """The values of a column that were discovered.

    Attributes:
        column: the name of the column.
        values: the values whose noisy count is at least the threshold, in the order of their letters.
        counts: their noisy counts.
        sigma: the parameter of the noise.
        threshold: the smallest noisy count that is shown.
    """

    column: str
    values: tuple[str, ...]
    counts: tuple[int, ...]
    sigma: float
    threshold: int


class Door(Protocol):
    """What the loop sees of the private side: a curator, or a stand-in that plays a transcript back."""

    def open(self) -> Facts:
        """The (public or noisy) number of rows, and the rho that is left for the steps."""
        ...

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        """``picks`` different, badly answered candidates outside ``taken``, each for ``rho``.

        ``estimate`` holds the model's answers to ``candidates.queries``, as fractions. None as ``taken`` lets any
        candidate be picked any number of times.
        """
        ...

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """Noisy integer counts of all that is asked."""
        ...


class OpenDoor(Protocol):
    """What a stage that discovers values sees of the private side: a curator, or one behind a journal."""

    def open(self) -> Facts:
        """The (public or noisy) number of rows, and the rho that is left."""
        ...

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """Noisy integer counts of all that is asked."""
        ...

    def discover(self, asked: Sequence[Seek]) -> tuple[Found, ...]:
        """The frequent values of columns."""
        ...


def planned(ledger: Ledger, total: int, private: bool) -> Facts:
    """The facts of a run before anything is spent. A budget that is too small to count the rows is refused.

    Args:
        ledger: what may be spent.
        total: the number of rows, known or assumed.
        private: whether their number is measured first.
    """
    budget, left = ledger.budget, ledger.left
    if not private:
        hint = "give a part of the table"
        check(total <= MOST_PUBLIC_ROWS, "table", total, f"must have at most {MOST_PUBLIC_ROWS:,} rows", hint)
        return Facts(total, left, budget.relation)
    rho = total_rho(ledger)
    return Facts(total, minus(left, rho), budget.relation, _total_scale(ledger, rho), budget.rows_per_unit)


def total_rho(ledger: Ledger) -> float:
    """What the noisy number of rows costs. Its noise must be below the largest number of rows."""
    rho = with_room(ledger, ledger.left * TOTAL_SHARE, of_total(ledger.budget))
    if rho <= 0:  # an earlier step has spent all
        raise BudgetError(ledger.limit * TOTAL_SHARE, ledger.left, NUMBER_OF_ROWS)
    sigma = _total_scale(ledger, rho)
    rule = f"must leave the number of rows a noise below {MOST_ROWS:,} (it would be {sigma:,.3g})"
    check(sigma <= MOST_ROWS, "epsilon", ledger.budget.epsilon, rule, "use a larger epsilon or delta")
    return rho


def _total_scale(ledger: Ledger, rho: float) -> float:
    """The noise of the number of rows."""
    return gaussian_scale(rho, of_total(ledger.budget))


def with_room(ledger: Ledger, rho: float, square: int) -> float:
    """rho, or less where its noise would be below the least scale of the account."""
    least = ledger.least_scale
    return rho if least is None else min(rho, square / (2 * least**2))


class Curator:
    """Holds the private source and answers only through charged mechanisms.

    Args:
        source: the private rows. If the budget is for a unit, they must be bounded by it: the attribute ``unit`` of the
            source is that of the budget.
        ledger: the budget; it may be shared with an earlier step, which has spent some of it.
        noise: where noise comes from; OpenDP's samplers by default.
    """

    def __init__(self, source: Source, ledger: Ledger, noise: Noise | None = None) -> None:
        self.ledger = ledger
        self.relation = ledger.budget.relation
        self.noise: Noise = OpenDPNoise() if noise is None else noise
        if ledger.budget.unit != getattr(source, "unit", None):
            raise ValueError("the rows of the source must be bounded by the unit of the budget")
        self._source = source
        self._facts: Facts | None = None
        self._counted = Counts()
        self._flat: tuple[tuple[Queries, ...], np.ndarray] | None = None
        self._checked: tuple[Queries, ...] | None = None

    @property
    def public_rows(self) -> int | None:
        """n where it is public: under replace."""
        return self._source.rows if self.relation is Relation.REPLACE else None

    @property
    def memory(self) -> MemoryOfRows | None:
        """What rows take that are read in pieces. Where n is private, only what they may take is told."""
        found: MemoryOfRows | None = getattr(self._source, "memory", None)
        return found if found is None or self.relation is Relation.REPLACE else MemoryOfRows(found.most, 0, 0)

    def in_groups(self, schema: Schema) -> Curator:
        """A curator of the same rows in the groups of merged columns, which goes on with this one's ledger, noise and
        facts.

        Args:
            schema: the columns of this curator's rows, some of them merged.
        """
        return self._onto(MergedSource(self._source, schema))

    def in_lists(self, schema: Schema) -> Curator:
        """A curator of the same rows under lists of values that were discovered, which goes on as :meth:`in_groups`.

        Args:
            schema: the columns of this curator's rows, with lists in place of those that were to be discovered.
        """
        return self._onto(cast(UnlistedSource, self._source).listed(schema))

    def _onto(self, source: Source) -> Curator:
        """A curator of the same rows in other codes, with the same ledger, noise and facts."""
        after = Curator(source, self.ledger, self.noise)
        if self._facts is not None:
            after.take_up(replace(self._facts, rho=self.ledger.left))
        return after

    def take_up(self, facts: Facts) -> None:
        """Go on with the facts of an interrupted run, which were paid for."""
        self._facts = facts

    def open(self) -> Facts:
        """The facts: n is free under replace; under add-remove a noisy count is paid for, once."""
        if self._facts is None:
            if self.public_rows is not None:
                self._facts = planned(self.ledger, self.public_rows, private=False)
            else:
                rho = total_rho(self.ledger)
                budget, square = self.ledger.budget, of_total(self.ledger.budget)
                self.ledger.charge(_gaussian_entry(NUMBER_OF_ROWS, rho, square))
                noisy = self.noise.add_gaussian(np.array([self._source.rows]), rho, square)
                total, left = min(max(1, int(noisy[0])), MOST_ROWS), self.ledger.left
                sigma = _total_scale(self.ledger, rho)
                self._facts = Facts(total, left, self.relation, sigma, budget.rows_per_unit)
        return self._facts

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        self._require_domain(candidates.queries)
        if estimate.shape != (candidates.size,) or not np.all(np.isfinite(estimate)):
            wanted = f"must be {candidates.size:,} finite answers"
            raise InputError("estimate", Shown("others"), wanted, "use a smaller step")
        # Public. The total is at most 2^53, so that whole counts are exact, and at most 2^54 here.
        rounded = np.rint(np.clip(estimate, -1.0, 2.0) * self.open().total).astype(np.int64)
        free = np.ones(len(candidates), bool)
        free[[place for place in map(candidates.find, taken or ()) if place is not None]] = False
        limit = f"must pick at most {len(candidates):,} candidates, each once"
        hint = "use fewer rounds or picks, or group by query"
        check(taken is None or int(free.sum()) >= picks, "rounds", Shown("more picks"), limit, hint)
        sensitivity = of_score(rule, candidates, self.ledger.budget)
        scale = selection_scale(rho, sensitivity)
        found: list[Pick] = []
        for _ in range(picks):
            self.ledger.charge(Entry("selection", "exponential mechanism", rho, sensitivity, scale))
            if not found:
                counts = self._counts(candidates.queries)
                phase("measuring")
                scores = rule.scores(candidates, counts, rounded, scale)
                if scores.shape != (len(candidates) * rule.sides,):
                    raise ValueError("a score rule must give its number of scores per candidate")
            places = np.flatnonzero(np.repeat(free, rule.sides))
            chosen, side = divmod(int(places[self.noise.select(scores[places], rho, sensitivity)]), rule.sides)
            free[chosen] = taken is None
            found.append(Pick(candidates[chosen], 1 - 2 * side))
        return tuple(found)

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        self._require_domain(tuple(queries for queries, _ in asked))
        squares = [square_of_counts(queries, self.ledger.budget) for queries, _ in asked]
        # A plan that follows from the noisy number of rows may ask for less noise than the account allows.
        rhos = [with_room(self.ledger, rho, square) for (_, rho), square in zip(asked, squares, strict=True)]
        charges = zip(rhos, squares, strict=True)
        self.ledger.charge(*(_gaussian_entry("measurement", rho, square) for rho, square in charges))
        self._look([queries for queries, _ in asked])
        phase("measuring")
        measured = []
        for (queries, _), rho, square in zip(asked, rhos, squares, strict=True):
            counts = self._counted.of(queries)
            noisy = self.noise.add_gaussian(counts, rho, square)
            measured.append(Measurement(queries, noisy, gaussian_scale(rho, square)))
        return tuple(measured)

    def discover(self, asked: Sequence[Seek]) -> tuple[Found, ...]:
        """The frequent values of columns whose values nobody could list beforehand.

        Noise is added to the count of every value that occurs, and of no other; those with a noisy count of at least
        the threshold are shown. What a single unit has alone is shown with a probability of at most ``delta``, which
        is charged together with ``rho`` (:mod:`pointillist.privacy.thresholds` has the proof).

        Args:
            asked: the columns, which the source must be able to give the values of.
        """
        if not hasattr(self._source, "values_of"):  # isinstance would ask for the number of rows
            raise ValueError("values can only be discovered in a source that has them")
        budget, source = self.ledger.budget, cast(OpenSource, self._source)
        square = square_of_values(budget)
        rhos = [with_room(self.ledger, one.rho, square) for one in asked]
        sigmas = [gaussian_scale(rho, square) for rho in rhos]
        pairs = list(zip(asked, rhos, sigmas, strict=True))
        thresholds = [threshold_of(one.delta, sigma, budget.rows_per_unit) for one, _, sigma in pairs]
        entries = [_gaussian_entry(DISCOVERY, rho, square) for rho in rhos]
        self.ledger.charge(*(replace(entry, delta=one.delta) for entry, one in zip(entries, asked, strict=True)))
        phase("counting")
        found = []
        for (one, rho, sigma), threshold in zip(pairs, thresholds, strict=True):
            values, counts = source.values_of(one.column)
            if len(set(values)) != len(values) or int(counts.sum()) > source.rows:
                raise ValueError("a row must have one value at most, and a value must be counted once")
            noisy = self.noise.add_gaussian(counts, rho, square) if len(counts) else counts
            shown = sorted((values[i], int(noisy[i])) for i in np.flatnonzero(noisy >= threshold))
            listed, numbers = tuple(value for value, _ in shown), tuple(number for _, number in shown)
            found.append(Found(one.column, listed, numbers, sigma, threshold))
        return tuple(found)

    def _require_domain(self, asked: tuple[Queries, ...]) -> None:
        """Refuse queries over another domain: the sensitivity that they state would be that of other counts."""
        if asked is self._checked:
            return
        domain = self._source.schema.domain
        for queries in asked:
            if max(queries.scope) >= len(domain) or domain.shape(queries.scope) != queries.shape:
                raise ValueError(f"queries over {queries.scope} of sizes {queries.shape} are not over the domain")
        self._checked = asked

    def _look(self, asked: Sequence[Queries]) -> None:
        """Count what was not counted before, in one pass."""
        missing = self._counted.missing(asked)
        if missing:
            phase("counting")  # nothing more: how far it is would tell the number of rows
            if count_rows(self._source, missing, self._counted) != {self._source.rows}:
                raise ValueError("the source must deliver all of its rows whenever it is asked for batches")

    def _counts(self, asked: tuple[Queries, ...]) -> np.ndarray:
        """The flat vector of exact counts of a list of queries; the last one is kept for the next selection."""
        if self._flat is None or self._flat[0] is not asked:
            self._look(asked)
            parts = [self._counted.of(queries) for queries in asked]
            flat = np.concatenate(parts)
            tables = self._counted.tables
            for queries, part, end in zip(asked, parts, np.cumsum([len(part) for part in parts]), strict=True):
                if part is tables.get(queries.scope):  # no second copy of whole marginals
                    tables[queries.scope] = flat[end - len(part) : end]
            self._flat = asked, flat
        return self._flat[1]


def _gaussian_entry(label: str, rho: float, square: int) -> Entry:
    return Entry(label, GAUSSIAN, rho, math.sqrt(square), gaussian_scale(rho, square))
