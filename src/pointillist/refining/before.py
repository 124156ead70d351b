"""What comes before the rounds of a run: values are discovered, then fine columns are merged.

The columns that a run works with are only known afterwards. It is planned for those with the most codes, and checked
for others that it may come to, so that nothing is refused when budget was spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pointillist.checks import check
from pointillist.data.columns.discovered import MOST_DISCOVERED
from pointillist.data.opening import discovered_in
from pointillist.data.schema import Schema
from pointillist.data.sources import Source
from pointillist.errors import Shown
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, planned
from pointillist.privacy.facts import Facts, Outline, Phase
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.ledger import Ledger
from pointillist.refining.listing import SHOWN_SHARE, Listing
from pointillist.refining.stage import Refining

__all__ = ["Stage", "Way", "stage_alone", "stage_of"]


@dataclass(frozen=True)
class Way:
    """Columns that a run may work with, as far as public facts tell.

    Attributes:
        schema: the columns, merged where they are fine.
        listing: what is discovered before they are known; None if all columns list their values.
        refining: what is measured of fine columns before they are known; None if there are none.
    """

    schema: Schema
    listing: Listing | None
    refining: Refining | None

    def after(self, facts: Facts) -> Facts:
        """What is left for the run when they are known.

        Args:
            facts: what is known before the stage.
        """
        left = self._listed(facts)
        return left if self.refining is None else self.refining.after(left)

    def phases(self, facts: Facts) -> tuple[Phase, ...]:
        """The phases of the stage.

        Args:
            facts: what is known before the stage.
        """
        first = () if self.listing is None else (self.listing.phase(facts),)
        return first if self.refining is None else (*first, self.refining.phase(self._listed(facts)))

    def _listed(self, facts: Facts) -> Facts:
        return facts if self.listing is None else self.listing.after(facts)


@dataclass(frozen=True)
class Stage:
    """The stage before a run whose table has columns to be discovered, or fine ones.

    Attributes:
        listing: what is discovered; None if all columns list their values.
        refining: what is measured of fine columns, with as many values as a list carries where they are discovered, and
            what follows from that; None if there are none.
        public: the public table as it was given, which is encoded again when the columns are known.
        ways: the columns that the run may work with; the first are those that it is planned for.
    """

    listing: Listing | None
    refining: Refining | None
    public: Any
    ways: tuple[Way, ...]

    @classmethod
    def of(cls, schemas: Sequence[Schema], listing: Listing | None, public: Any) -> Stage | None:
        """The stage before a run; None if there is nothing to do.

        Args:
            schemas: lists of values that the run may come to; the first is the one that it is planned for.
            listing: what is discovered before; None if all columns list their values.
            public: the public table, as it was given.
        """
        refining = [_refining_of(schema) for schema in schemas]
        if listing is None and refining[0] is None:
            return None
        ways = [way for schema, one in zip(schemas, refining, strict=True) for way in _ways(schema, one, listing)]
        return cls(listing, refining[0], public, tuple(ways))

    @property
    def planned(self) -> Schema:
        """The columns that the run is planned for."""
        return self.ways[0].schema

    @property
    def others(self) -> tuple[Way, ...]:
        """Other columns that it may come to."""
        return self.ways[1:]

    @property
    def shown(self) -> float:
        """The part of delta for showing values that only one unit has."""
        return 0.0 if self.listing is None else self.listing.shown

    def after(self, facts: Facts) -> Facts:
        """What the run knows when the stage is over.

        Args:
            facts: what is known before it.
        """
        return self.ways[0].after(facts)

    def before(self, outline: Outline) -> Outline:
        """The outline of a run that this stage precedes. It has the phases of the stage on all of its ways, as an
        account must allow for the noise of each of them. Where several columns are discovered, lists between these ways
        are possible; the curator holds the least noise of the account for them, too.

        Args:
            outline: that of the run alone.
        """

        def phases(facts: Facts) -> tuple[Phase, ...]:
            first = dict.fromkeys(phase for way in self.ways for phase in way.phases(facts))
            return (*first, *outline(self.after(facts)))

        return phases

    def describe(self, facts: Facts) -> tuple[str, ...]:
        """The stage in a line for each of its parts.

        Args:
            facts: what is known before it.
        """
        first = () if self.listing is None else (self.listing.describe(facts),)
        return first if self.refining is None else (*first, self.refining.describe())


def _ways(schema: Schema, refining: Refining | None, listing: Listing | None) -> Iterator[Way]:
    """The columns that may follow from lists of values: merged into the most groups, and into the fewest."""
    found = [schema] if refining is None else [refining.planned, refining.coarsest]
    return (Way(one, listing, refining) for one in found)


def _refining_of(schema: Schema) -> Refining | None:
    """What is measured of fine columns; None if no column is fine."""
    return Refining(schema) if any(column.fine for column in schema.columns) else None


def stage_of(source: Source, budget: Budget, rows: int | None, public: Any) -> Stage | None:
    """The stage before a run; None if there is nothing to do. A budget with which no value could be discovered is
    refused.

    Args:
        source: the private rows, of which only the columns are looked at.
        budget: what may be spent.
        rows: the number of rows; None where it is private.
        public: the public table, as it was given.
    """
    schema = source.schema
    if not discovered_in(schema):
        return Stage.of([schema], None, public)
    rule, hint = "must be a plain table or files where values are discovered", "give it as it is, not encoded"
    check(hasattr(source, "listed"), "table", Shown(type(source).__name__), rule, hint)
    listing = Listing(schema, budget.delta * SHOWN_SHARE)
    ledgers = [Ledger(budget, scale, listing.shown) for scale in (None, *LEAST_SCALES)]
    known = [planned(one, MOST_ROWS if rows is None else rows, private=rows is None) for one in ledgers]
    listing.require_use(known[0], budget.epsilon)
    most = max(listing.most(facts) for facts in known)  # whichever account the run will have
    return Stage.of(listing.possible(most), listing, public)


def stage_alone(schema: Schema) -> Stage | None:
    """The stage before a run of which nothing but the columns is known; None if there is nothing to do.

    Args:
        schema: the columns.
    """
    if not discovered_in(schema):
        return Stage.of([schema], None, None)
    listing = Listing(schema, SHOWN_SHARE)
    return Stage.of(listing.possible(MOST_DISCOVERED), listing, None)
