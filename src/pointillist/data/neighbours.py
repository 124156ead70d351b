"""The neighbour relation between tables, on which every sensitivity and every privacy guarantee is based."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pointillist.checks import between, check, whole
from pointillist.data.messages import fragment

__all__ = ["Relation", "Unit", "meaning_of"]

MOST_PER_UNIT = 1_000_000
"""The largest number of rows per unit."""


class Relation(StrEnum):
    """What one person can change in a table.

    ``REPLACE``: the values of one row. The number of rows n stays the same and is public.
    ``ADD_REMOVE``: whether one row is there. The number of rows n is private.

    With a :class:`Unit`, ``ADD_REMOVE`` is about all rows of one unit instead of one row.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @property
    def meaning(self) -> str:
        """The relation in words, for the privacy statement of a release."""
        return {
            Relation.REPLACE: "two tables are neighbours if they differ in the values of one row; "
            "the number of rows is public",
            Relation.ADD_REMOVE: "two tables are neighbours if one is the other plus one row; "
            "the number of rows is private",
        }[self]


@dataclass(frozen=True)
class Unit:
    """What is protected as a whole: all rows with the same value in a column, such as all rows of a person.

    Args:
        name: the column that says to which unit a row belongs.
        max_rows: the rows of each unit that a run uses, at most.
    """

    name: str
    max_rows: int

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and self.name != ""
        check(named, "unit", fragment(self.name), "must be the name of a column", "give for example person_id")
        rows = between("max_rows", whole("max_rows", self.max_rows), 1, MOST_PER_UNIT, "give for example 3")
        object.__setattr__(self, "max_rows", rows)

    @property
    def bound(self) -> str:
        """The bound on the rows in words."""
        return f"at most {self.max_rows:,} {'row' if self.max_rows == 1 else 'rows'} of each are used"


def meaning_of(relation: Relation, unit: Unit | str | None) -> str:
    """The relation in words, with the unit if there is one.

    Args:
        relation: which tables are neighbours.
        unit: what is protected as a whole, or only its column; None for rows.
    """
    if unit is None:
        return relation.meaning
    name, bound = (unit.name, f" ({unit.bound})") if isinstance(unit, Unit) else (unit, "")
    return (
        f"two tables are neighbours if one is the other after adding or removing all rows of one {fragment(name)}"
        f"{bound}; the number of rows is private"
    )
