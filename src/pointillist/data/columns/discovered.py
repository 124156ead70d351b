"""Columns whose values nobody can list beforehand: a run discovers the frequent ones, and pays for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import (
    Column,
    Label,
    check_flag,
    check_keys,
    check_name,
    check_text,
    check_word,
    missing_dict,
    read_missing,
    without_none,
)
from pointillist.data.columns.categorical import check_prefixes
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DISCOVER", "MOST_DISCOVERED", "Discovered", "may_be_listed"]

DISCOVER = "discover"
"""What a schema file has as ``values`` of such a column."""

MOST_DISCOVERED = 1000
"""The most values that a run lists: those with the largest noisy counts."""

LONGEST_VALUE = 200
"""Longer texts are never discovered: they are no values that a column has."""

TEXTS = ("string", "large_string", "category", "enum", "string[python]", "string[pyarrow]")
"""The types that such a column can be decoded to."""

KEYS = ("other", "dtype", "missing_values", "missing_as", "merge", "prefixes")


@dataclass(frozen=True)
class Discovered:
    """A column of texts whose frequent values a run discovers from noisy counts. All others become one value.

    It has no codes of its own. When the values are known, a :class:`Categorical` takes its place
    (:func:`~pointillist.data.opening.listed_column`).

    Args:
        name: The name of the column in the table.
        other: The value that replaces every value that is not listed. By default "other", in brackets if there is a
            value of this name.
        dtype: The type of the decoded column: a type of texts, by default string.
        missing_values: What stands for missing in the table, apart from null and the empty text.
        missing_as: What missing values are decoded to, by default null.
        merge: Whether the run merges rare values of the list, as in other lists.
        prefixes: Lengths of the beginnings of the values that values are merged by.
        most: The number of values that a plan allows for. A run sets it; how many are listed does not follow from it.
    """

    name: str
    other: str | None = None
    dtype: str = ""
    missing_values: tuple[str, ...] = ()
    missing_as: str | None = None
    merge: bool | None = None
    prefixes: tuple[int, ...] = ()
    most: int = MOST_DISCOVERED

    def __post_init__(self) -> None:
        where = check_name(self.name)
        if self.other is not None:
            good = isinstance(self.other, str) and self.other != ""
            check(good, f"{where}: other", fragment(self.other), "must be a text", 'write for example other = "other"')
            check_text(f"{where}: other", self.other)
        if self.dtype != "":
            check_word(f"{where}: dtype", self.dtype, TEXTS)
        if self.merge is not None:
            check_flag(f"{where}: merge", self.merge)
        object.__setattr__(self, "prefixes", check_prefixes(where, self.prefixes))
        for key, value in zip(("missing_values", "missing_as"), read_missing(self), strict=True):
            object.__setattr__(self, key, value)
        both = self.other is not None and self.other in (*self.missing_values, self.missing_as)
        rule, hint = "must not be a spelling of missing, too", "remove it from one of the two"
        check(not both, f"{where}: other", fragment(self.other), rule, hint)

    @property
    def missing(self) -> bool:
        """True: nobody knows beforehand whether values are missing."""
        return True

    @property
    def ordered(self) -> bool:
        """False: the order of texts says nothing."""
        return False

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        return self.dtype or "string"

    @property
    def size(self) -> int:
        """The largest number of codes: those of the values, of ``other`` and of missing."""
        return self.most + 2

    @property
    def labels(self) -> tuple[Label, ...]:
        """None: the values are not known."""
        return ()

    @property
    def fine(self) -> bool:
        """False: the list that takes its place may be."""
        return False

    @property
    def own(self) -> tuple[int, ...]:
        """None: there are no codes yet."""
        return ()

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return no hierarchy: there are no codes yet."""
        return ()

    def encode(self, array: pa.Array) -> np.ndarray:
        """Refuse: the values are not known."""
        self._refuse()

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Refuse: the values are not known."""
        self._refuse()

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Refuse: the values are not known."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        rule = "must list its values here (those that a run discovers are not known before)"
        raise InputError(column_called(self.name), Shown("values to discover"), rule, "list them under values")

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.name}: values that a run discovers, or missing"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        out: dict[str, Any] = {"name": self.name, "type": "categorical", "values": DISCOVER} | missing_dict(self)
        more = {"merge": self.merge, "prefixes": list(self.prefixes) or None}
        return without_none(out | {"other": self.other, "dtype": self.dtype or None} | more)

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Discovered:
        """Create the column from a ``[[column]]`` table of a schema file."""
        where = check_name(spec["name"])
        check_keys(f"{where}: values = {DISCOVER!r}", spec, ("name", "type", "values", "missing", *KEYS))
        rule, hint = "must be true where values are discovered", "write missing = true, or leave it out"
        check(spec.get("missing", True) is True, f"{where}: missing", fragment(spec.get("missing")), rule, hint)
        return cls(spec["name"], **{key: spec[key] for key in KEYS if key in spec})


def may_be_listed(text: str | None) -> bool:
    """Return whether a text can be a value of a list: neither missing nor longer than values are.

    Args:
        text: The text; None if it is missing.
    """
    return bool(text) and len(text or "") <= LONGEST_VALUE
