"""Which tables are neighbours: the relation that every sensitivity and every promise refers to."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Relation"]


class Relation(StrEnum):
    """What one person can change.

    ``REPLACE``: the values of one row; the number of rows n stays the same and is public.
    ``ADD_REMOVE``: the presence of one row; n is private.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @property
    def meaning(self) -> str:
        return {
            Relation.REPLACE: "two tables are neighbours if they differ in the values of one row; "
            "the number of rows is public",
            Relation.ADD_REMOVE: "two tables are neighbours if one is the other plus one row; "
            "the number of rows is private",
        }[self]
