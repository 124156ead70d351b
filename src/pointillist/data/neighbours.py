"""The neighbour relation between tables, on which every sensitivity and every privacy guarantee is based."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Relation"]


class Relation(StrEnum):
    """What one person can change in a table.

    ``REPLACE``: the values of one row. The number of rows n stays the same and is public.
    ``ADD_REMOVE``: whether one row is there. The number of rows n is private.
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
