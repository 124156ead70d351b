"""The discovery of values: what is audited of it, and made-up tables on which one row or unit can be seen.

Two claims stand behind it (:mod:`pointillist.privacy.thresholds`), and they are audited apart:

- Noise: where both tables have all values, the thresholded noisy counts cost the rho that was charged. The tables have
  two frequent values, which are shown, and the unit moves their counts by the whole sensitivity.
- Delta: what only one unit has is shown with at most the probability that was charged. One table has one frequent value
  alone, and the other one has also a unit whose rows have a value of their own, or as many values as rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.auditing.parts import Part
from pointillist.auditing.tables import Neighbours
from pointillist.auditing.witness import Witness
from pointillist.data.columns import Categorical, Discovered
from pointillist.data.neighbours import Relation
from pointillist.data.opening import discovered_in, listed_column
from pointillist.data.schema import Schema
from pointillist.data.sources import Source
from pointillist.data.table import Table
from pointillist.job import source_of
from pointillist.privacy.account import ledger_for
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Curator, Seek
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import Ledger
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_values
from pointillist.refining.listing import SHOWN_SHARE

__all__ = ["ALONE", "APART", "DISCOVERY", "Discovery", "with_lists"]

DISCOVERY, ALONE, APART = "one discovery", "a value of one unit", "values of one unit"

COLUMN = "value"
"""The made-up column."""

FEW = ("a", "b")
"""What a column to be discovered lists while all else is audited."""


def with_lists(schema: Schema) -> Schema:
    """Return a schema with a few values in place of those to be discovered.

    Args:
        schema: the columns.
    """
    if not discovered_in(schema):
        return schema
    columns: list[Any] = [listed_column(one, FEW) if isinstance(one, Discovered) else one for one in schema.columns]
    return replace(schema, columns=tuple(columns))


@dataclass(frozen=True)
class Discovery:
    """A discovery that spends the whole budget, of the values of a made-up column.

    Attributes:
        budget: what is promised.
        rows: the number of rows of the larger table.
    """

    budget: Budget
    rows: int

    @cached_property
    def ledger(self) -> Ledger:
        """The unspent account of a run that does nothing else."""

        def outline(facts: Facts) -> tuple[Phase, ...]:
            sigma = gaussian_scale(facts.rho, square_of_values(facts))
            return (Phase(1, 1, False, (sigma, sigma)),)

        public = self.rows if self.budget.relation is Relation.REPLACE else None
        return ledger_for(self.budget, public, outline, self.budget.delta * SHOWN_SHARE)

    @property
    def pairs(self) -> dict[str, Neighbours]:
        """The tables for each part."""
        m = self.budget.rows_per_unit
        shared = self.rows - m
        replaced = 1 if self.budget.relation is Relation.REPLACE else 0
        half = shared // 2
        found = {
            DISCOVERY: _tables([half + replaced, shared - half], [half, shared - half + m]),
            ALONE: _tables([shared + replaced, 0], [shared, m]),
        }
        return found if m == 1 else found | {APART: _tables([shared, *[0] * m], [shared, *[1] * m])}

    def parts(self, table: Table) -> dict[str, Part]:
        """The parts that are audited, by name. What they ask depends on public facts only.

        Args:
            table: a made-up table.
        """
        noise, shown = Curator(self.source(table), self.ledger).noise, self.ledger.delta_shown

        def discover(door: Witness) -> object:
            return door.discover([Seek(COLUMN, door.open().rho, shown)])

        return {name: Part(name, self.ledger, noise, discover) for name in self.pairs}

    def source(self, table: Table) -> Source:
        """The rows of a made-up table with their texts, as a run reads them.

        Args:
            table: the table; if it has the rows of the unit, they are the last ones.
        """
        cells, unit, columns = table.to_arrow(0), self.budget.unit, (Discovered(COLUMN),)
        if unit is None:
            return source_of(cells, Schema(columns))
        owners = np.minimum(np.arange(len(table)), self.rows - unit.max_rows)
        return source_of(cells.append_column(unit.name, [owners]), Schema(columns, ignore=(unit.name,)), unit)


def _tables(first: list[int], second: list[int]) -> Neighbours:
    """Tables with these counts of their values."""
    column = Categorical(COLUMN, tuple(f"v{n}" for n in range(len(first))), merge=False)
    return Neighbours(Schema((column,)), (np.arange(len(first)),), (np.array(first), np.array(second)))
