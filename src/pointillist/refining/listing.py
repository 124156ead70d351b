"""The stage before everything else of a run: the values of columns that nobody could list beforehand.

A small share of rho, and a part of delta, pay for noisy counts of the values that occur; those above a threshold are
shown (:mod:`pointillist.privacy.thresholds` has the proof). From these follow the lists that the run goes on with, as
if they had been declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from pointillist.checks import check
from pointillist.data.columns import Column, Discovered
from pointillist.data.columns.categorical import MOST_CARRIED
from pointillist.data.columns.discovered import MOST_DISCOVERED
from pointillist.data.messages import fragment
from pointillist.data.opening import discovered_in, listed_column
from pointillist.data.schema import Schema
from pointillist.errors import Shown
from pointillist.privacy.curator import Found, Seek
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_values
from pointillist.privacy.thresholds import threshold_of

__all__ = ["SHOWN_SHARE", "Listing"]

SHARE = 0.05
"""The share of rho that each column gets."""

MOST_SHARE = 0.15
"""What all of them get together, at most."""

SHOWN_SHARE = 0.2
"""The share of delta for showing values that only one unit has, for all columns together."""


@dataclass(frozen=True)
class Listing:
    """What is discovered before the run, and what follows from it.

    Attributes:
        schema: the columns as they are given, some of them to be discovered.
        shown: the part of delta for showing values that only one unit has.
    """

    schema: Schema
    shown: float

    @cached_property
    def columns(self) -> Mapping[int, Discovered]:
        """The columns to be discovered, by their positions."""
        found = ((place, self.schema.columns[place]) for place in discovered_in(self.schema))
        return {place: column for place, column in found if isinstance(column, Discovered)}

    @property
    def share(self) -> float:
        """The share of rho that the stage costs."""
        return min(MOST_SHARE, SHARE * len(self.columns))

    def asked(self, facts: Facts) -> list[Seek]:
        """All that is asked, with the rho and the delta of each.

        Args:
            facts: what is known before; ``rho`` is what the stage and the run may spend together.
        """
        rho, delta = facts.rho * (self.share / len(self.columns)), split(self.shown, len(self.columns))
        return [Seek(column.name, rho, delta) for column in self.columns.values()]

    def after(self, facts: Facts) -> Facts:
        """What the run knows when the stage is over.

        Args:
            facts: what is known before it.
        """
        return replace(facts, rho=minus(facts.rho, sum(Fraction(one.rho) for one in self.asked(facts))))

    def phase(self, facts: Facts) -> Phase:
        """The stage as a phase of the run.

        Args:
            facts: what is known before.
        """
        sigma = self._sigma(facts)
        return Phase(1, len(self.columns), False, (sigma, sigma), what="columns whose values are discovered")

    def threshold(self, facts: Facts) -> int:
        """The noisy count from which on a value is listed.

        Args:
            facts: what is known before.
        """
        return threshold_of(self.asked(facts)[0].delta, self._sigma(facts), facts.rows_per_unit)

    def _sigma(self, facts: Facts) -> float:
        return gaussian_scale(self.asked(facts)[0].rho, square_of_values(facts))

    def require_use(self, facts: Facts, epsilon: float) -> None:
        """Refuse a budget with which not even a value of all rows would be listed.

        Args:
            facts: what is known before; the largest table where the number of rows is private.
            epsilon: the privacy loss, for the message.
        """
        sigma = self._sigma(facts)
        needed = sigma if sigma > facts.total else self.threshold(facts)  # a threshold is above sigma
        rule = f"must leave the discovery of values a threshold that {facts.total:,} rows reach (not {needed:,.0f})"
        hint = "use a larger epsilon, or list the values"
        check(needed <= facts.total, "epsilon", epsilon, rule, hint)

    def most(self, facts: Facts) -> int:
        """The most values of a column that are listed.

        Args:
            facts: what is known before.
        """
        return _most(facts.total, self.threshold(facts))

    def possible(self, most: int) -> tuple[Schema, ...]:
        """Schemas that the run may come to: that with the most codes, which it is planned for, and others.

        The others have no values, and as many as can be: these are merged if they are many, which costs a share of rho.

        Args:
            most: the most values of a column.
        """
        carried = {p: most if one.merge is not None else min(most, MOST_CARRIED) for p, one in self.columns.items()}
        counts = (carried, dict.fromkeys(self.columns, 0), dict.fromkeys(self.columns, most))
        different = [one for n, one in enumerate(counts) if one not in counts[:n]]
        return tuple(self._with({p: _made(self.columns[p], count) for p, count in one.items()}) for one in different)

    def listed(self, found: Sequence[Found], total: int) -> Schema:
        """The schema that the run goes on with.

        Args:
            found: the values that were discovered, by column.
            total: the number of rows, public or noisy.
        """
        if [one.column for one in found] != [column.name for column in self.columns.values()]:
            raise ValueError("the discovered columns must be those that were asked for")
        pairs = zip(self.columns.items(), found, strict=True)
        return self._with({place: listed_column(column, _largest(one, total)) for (place, column), one in pairs})

    def describe(self, facts: Facts) -> str:
        """The stage in one line.

        Args:
            facts: what is known before.
        """
        names = [column.name for column in self.columns.values()]
        shown = ", ".join(str(fragment(Shown(name))) for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        paid = f"{self.share:.0%} of the budget and {self.shown:.2g} of delta"
        text = f"{paid} discover the values of {shown}{more} first"
        return f"{text}: those with a noisy count of {self.threshold(facts):,} or more, at most {self.most(facts):,}"

    def found(self, listed: Schema) -> str:
        """What was found, in one line.

        Args:
            listed: the schema that the run goes on with.
        """
        lists = [listed.columns[place] for place in self.columns]
        shown = [f"{fragment(Shown(one.name))} {len(one.labels) - 1:,}" for one in lists[:5]]  # without other
        more = f" and {len(lists) - 5} more columns" if len(lists) > 5 else ""
        return f"values discovered: {', '.join(shown)}{more}; all others become one value of their column"

    def _with(self, columns: Mapping[int, Column]) -> Schema:
        every = tuple(columns.get(i, column) for i, column in enumerate(self.schema.columns))
        return replace(self.schema, columns=every)


def _most(total: int, threshold: int) -> int:
    """No more values than rows could have so often, and than a list may have."""
    return min(MOST_DISCOVERED, max(1, total // threshold))


def _largest(found: Found, total: int) -> list[str]:
    """The values with the largest noisy counts, as many as are listed, in the order of their letters."""
    ranked = sorted(zip(found.counts, found.values, strict=True), key=lambda one: (-one[0], one[1]))
    return sorted(value for _, value in ranked[: _most(total, found.threshold)])


def _made(column: Discovered, count: int) -> Column:
    """A list of as many values, whatever they are called."""
    return listed_column(column, [f"value {n}" for n in range(count)])
