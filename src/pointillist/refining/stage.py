"""The stage before a run: noisy counts of fine columns, and the coarser columns that follow from them.

A fine column, such as a number between public bounds, has more codes than a model can carry. A small share of the
budget pays for noisy counts of its codes at several levels. From these follow the groups of codes that the run works
with (:class:`~pointillist.data.columns.merged.Merged`), and how a group is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from pointillist.data.columns import Categorical, Column, Merged
from pointillist.data.columns.numbers import increasing_numbers
from pointillist.data.messages import fragment
from pointillist.data.schema import Schema
from pointillist.errors import Shown
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus
from pointillist.queries.base import Queries
from pointillist.queries.groups import Groups
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.refining.merging import merged_line, merged_parts
from pointillist.refining.trees import (
    Tree,
    even_levels,
    smoothed_line,
    smoothed_parts,
    with_falling_tails,
    within_reach,
)
from pointillist.strategies import noise_of

__all__ = ["Refining", "most_groups"]

SHARE = 0.02
"""The share of rho that each ordered fine column gets."""

LIST_SHARE = 0.08
"""The share of rho that each list gets: nothing is known about a value from its neighbours."""

MOST_SHARE = 0.1
"""What all of them get together, at most."""

OF_LEVELS = 0.2
"""Of what a list gets, the share for all levels of its hierarchy. Their counts are large, and those of values small."""

MOST_RUNS = 16
"""The largest number of groups of an ordered column. More were worse on tables with strongly tied columns: a model
then no longer carries how they depend on each other, while the shape inside a group is known from the noisy counts."""

MOST_PARTS = 32
"""The largest number of groups of a column without an order."""

DEVIATIONS = 4.0
"""A group has at least this many standard deviations of the noise of one fine code, in rows."""


@dataclass(frozen=True)
class Refining:
    """What is measured before the run, and what follows from it.

    Attributes:
        schema: the columns as they are given, some of them fine.
    """

    schema: Schema

    @cached_property
    def fine(self) -> tuple[int, ...]:
        """The positions of the fine columns."""
        return tuple(i for i, column in enumerate(self.schema.columns) if column.fine)

    @property
    def share(self) -> float:
        """The share of rho that the stage costs."""
        return min(MOST_SHARE, sum(self._wishes))

    @property
    def _wishes(self) -> tuple[float, ...]:
        """The share of rho that each fine column would get by itself."""
        return tuple(SHARE if self.schema.columns[place].ordered else LIST_SHARE for place in self.fine)

    def queries(self, place: int) -> tuple[Queries, ...]:
        """What is asked of one column: the levels of its hierarchy, the coarsest first, then its codes.

        Args:
            place: the position of the column.
        """
        return self._queries[place]

    @cached_property
    def _queries(self) -> dict[int, tuple[Queries, ...]]:
        """What is asked of each fine column."""
        found: dict[int, tuple[Queries, ...]] = {}
        for place in self.fine:
            levels = (Groups((place,), tuple(level.tolist())) for level in _levels(self.schema.columns[place]))
            found[place] = (*levels, Marginal.of(self.schema.domain, [place]))
        return found

    def asked(self, facts: Facts) -> list[Ask]:
        """All that is asked, and the rho of each.

        Args:
            facts: what is known before; ``rho`` is what the stage and the run may spend together.
        """
        found = []
        for place, wish in zip(self.fine, self._wishes, strict=True):
            queries = self.queries(place)
            rho = facts.rho * (self.share * wish / sum(self._wishes))
            codes = _of_codes(self.schema.columns[place], len(queries))
            shares = [(1 - codes) / max(1, len(queries) - 1)] * (len(queries) - 1) + [codes]
            found += [Ask(one, rho * part) for one, part in zip(queries, shares, strict=True)]
        return found

    def after(self, facts: Facts) -> Facts:
        """What the run knows when the stage is over.

        Args:
            facts: what is known before it.
        """
        return replace(facts, rho=minus(facts.rho, sum(Fraction(one.rho) for one in self.asked(facts))))

    def phase(self, facts: Facts) -> Phase:
        """The stage as a phase of the run.

        Args:
            facts: what is known before it.
        """
        asked = tuple(self.asked(facts))
        return Phase(1, len(asked), False, noise_of(asked, facts), what="levels of columns without fixed bins")

    def describe(self) -> str:
        """The stage in one line."""
        names = [self.schema.columns[place].name for place in self.fine]
        shown = ", ".join(str(fragment(Shown(name))) for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        text = f"{self.share:.0%} of the budget measures the columns without fixed bins first"
        return f"{text}, and merges each into groups: {shown}{more}"

    @cached_property
    def planned(self) -> Schema:
        """The schema with the largest number of groups: what a run is planned for before anything is known."""
        return self._with({place: _evenly(self.schema.columns[place], None) for place in self.fine})

    @cached_property
    def coarsest(self) -> Schema:
        """The schema with the smallest number of groups that the noisy counts may leave."""
        return self._with({place: _evenly(self.schema.columns[place], 1) for place in self.fine})

    def merged(self, measured: Sequence[Measurement], facts: Facts) -> Schema:
        """The schema that the run works with.

        Args:
            measured: the noisy counts of all that was asked.
            facts: what was known before.
        """
        estimated = self._estimated(measured, facts)
        return self._with({place: merge(self.schema.columns[place], *found) for place, found in estimated.items()})

    def shared(self, measured: Sequence[Measurement], facts: Facts, merged: Schema) -> Schema:
        """The schema of a run with other noisy counts, but the same groups: only the shares inside of them change.

        Args:
            measured: the noisy counts of all that was asked.
            facts: what was known before.
            merged: the schema with the groups.
        """
        columns: dict[int, Column] = {}
        for place, found in self._estimated(measured, facts).items():
            column = merged.columns[place]
            if not isinstance(column, Merged):
                raise ValueError("the schema must have the fine columns merged")
            weights = smoothed(column.base, *found)
            columns[place] = replace(column, shares=tuple(_shares(column.lookup, weights).tolist()))
        return replace(merged, columns=tuple(columns.get(i, column) for i, column in enumerate(merged.columns)))

    def _estimated(self, measured: Sequence[Measurement], facts: Facts) -> dict[int, tuple[Tree, np.ndarray]]:
        """For each fine column the tree of what was measured, and the estimated counts of its codes."""
        left, found = list(measured), {}
        for place in self.fine:
            column, queries = self.schema.columns[place], self.queries(place)
            own, left = left[: len(queries)], left[len(queries) :]
            if [one.queries for one in own] != list(queries):
                raise ValueError("the measurements must be those that were asked for")
            levels = (*_levels(column), np.arange(column.size))
            tree = Tree(levels, tuple(one.sigma for one in own), facts.total_sigma)
            found[place] = tree, tree.estimate([one.counts for one in own], facts.total)
        return found

    def _with(self, columns: Mapping[int, Column]) -> Schema:
        every = tuple(columns.get(i, column) for i, column in enumerate(self.schema.columns))
        return replace(self.schema, columns=every)


def most_groups(column: Column) -> int:
    """The largest number of groups of a column.

    Args:
        column: the column.
    """
    return MOST_RUNS if column.ordered else MOST_PARTS


def _of_codes(column: Column, levels: int) -> float:
    """What the codes get of the rho of their column, if as many levels are measured, the codes among them."""
    return 1.0 if levels == 1 else 1 / levels if column.ordered else 1 - OF_LEVELS


def _public_shares(column: Column) -> np.ndarray | None:
    """The public shares of the values of a list, if there are any."""
    given = column.shares if isinstance(column, Categorical) else ()
    return np.array(given, np.float64) if given else None


def _levels(column: Column) -> tuple[np.ndarray, ...]:
    """The levels that are measured: those of the column, or equal runs of ordered codes."""
    own = tuple(np.unique(level, return_inverse=True)[1] for level in column.levels())
    useful = tuple(level for level in own if 1 < level.max() + 1 < column.size)
    return useful or (even_levels(column.size) if column.ordered else ())


def merge(column: Column, tree: Tree, counts: np.ndarray) -> Merged:
    """A fine column with its codes in groups.

    Args:
        column: the fine column.
        tree: the tree behind the estimated counts.
        counts: the estimated counts of its codes.
    """
    own, rest = _places(column)
    least, most = DEVIATIONS * tree.sigmas[-1], max(2, most_groups(column) - len(own))
    levels = [level[rest] for level in tree.levels[:-1]] if column.levels() else []
    groups = np.zeros(column.size, np.intp)
    weights = smoothed(column, tree, counts)
    if len(rest) and column.ordered:
        groups[rest] = merged_line(weights[rest], most, least, levels, increasing_numbers(column, rest))[0]
    elif len(rest):
        groups[rest] = merged_parts(weights[rest], most, least, levels)
    groups[own] = groups[rest].max(initial=-1) + 1 + np.arange(len(own))
    return _numbered(column, groups, weights)


def smoothed(column: Column, tree: Tree, counts: np.ndarray) -> np.ndarray:
    """The counts of the codes of a column without the noise that hides their shape; 1 for codes that are never merged.

    Args:
        column: the fine column.
        tree: the tree behind the estimated counts.
        counts: the estimated counts of its codes.
    """
    _, rest = _places(column)
    weights = np.ones(column.size)
    if len(rest):
        shares = _public_shares(column)
        weights[rest] = (
            _smoothed_line(tree, counts, rest)
            if column.ordered and shares is None
            else smoothed_parts(tree, counts, rest, shares)
        )
    return weights


def _smoothed_line(tree: Tree, counts: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The smoothed counts of codes on a line, with ends that fall."""
    smooth = within_reach(tree, counts, places, smoothed_line(tree, counts, places))
    return with_falling_tails(smooth, tree.sigmas[-1])


def _places(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The codes that are never merged, and the others."""
    own = np.array(column.own, np.intp)
    return own, np.setdiff1d(np.arange(column.size), own)


def _evenly(column: Column, parts: int | None) -> Merged:
    """A fine column with its codes in equal groups, by default in the largest number of them."""
    own, rest = _places(column)
    most = max(2, most_groups(column) - len(own)) if parts is None else parts
    parts = min(len(rest), most)
    groups = np.zeros(column.size, np.intp)
    groups[rest] = np.arange(len(rest)) * parts // max(1, len(rest))
    groups[own] = parts + np.arange(len(own))
    return _numbered(column, groups, np.ones(column.size))


def _numbered(column: Column, groups: np.ndarray, weights: np.ndarray) -> Merged:
    """Groups in the order of their codes, with missing last, and the shares of the codes in each."""
    members = np.bincount(groups)
    middle = np.bincount(groups, np.arange(column.size)) / np.maximum(members, 1)
    if column.missing:
        middle[groups[-1]] = np.inf
    rank = np.empty(len(middle), np.intp)
    rank[np.argsort(middle, kind="stable")] = np.arange(len(middle))
    return Merged(column, tuple(rank[groups].tolist()), tuple(_shares(groups, weights).tolist()))


def _shares(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of each code in its group; a group without any count is decoded evenly."""
    sums, members = np.bincount(groups, weights), np.bincount(groups)
    found = np.where(sums[groups] > 0, weights / np.where(sums > 0, sums, 1.0)[groups], 1 / members[groups])
    return np.asarray(found)
