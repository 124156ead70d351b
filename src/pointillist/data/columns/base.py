"""The interface of a column, and the parts that the kinds of columns share.

A column has the codes ``0 .. size - 1``: its values or bins in order, then ``other`` if it has one, then missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.types import NUMBERS, check_dtype
from pointillist.data.messages import MOST_SHOWN, column_called, fragment
from pointillist.errors import InputError, Shown, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NUMBERS", "Column", "Label", "code_dtype"]

Label = str | int | bool
"""A value that a schema can list."""
MOST_ORDERED = 32
"""An ordered column with more values or bins is fine, unless it says otherwise: a run merges them from noisy counts."""

MISSING_NUMBERS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Strings that mean "missing" in a numeric column of a CSV file; in other columns only the empty string does."""


class Column(Protocol):
    """A column of a schema: how its values become the codes ``0 .. size - 1`` and back."""

    @property
    def name(self) -> str:
        """The name of the column in the table."""

    @property
    def missing(self) -> bool:
        """Whether values may be missing; missing then has the last code."""

    @property
    def ordered(self) -> bool:
        """Whether neighbouring codes stand for similar values."""

    @property
    def dtype(self) -> str:
        """The type of the decoded column, as set in the schema; empty for the default."""

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""

    @property
    def size(self) -> int:
        """The number of codes."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """The value that each code except missing stands for; empty if codes stand for bins."""

    @property
    def fine(self) -> bool:
        """Whether the codes are finer than a model should carry. A run then merges them, from noisy counts."""

    @property
    def own(self) -> tuple[int, ...]:
        """Codes that are never merged with others, such as declared points and missing."""

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return coarser groupings of the codes, the coarsest first: the number of the group of each code.

        Groups of a level are unions of groups of the next one. Empty if the column has no such hierarchy.
        """

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the code of each value, in the smallest type; refuse values that the column does not allow."""

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return a value for each code, of the type ``output_dtype``; draw from ``rng`` if a code has several."""

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source`` as codes of this one; refuse those that have no equivalent."""

    def describe(self) -> str:
        """Return a one-line description."""

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file, which :meth:`from_dict` reads."""

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Self:
        """Create the column from a ``[[column]]`` table that has a name."""


def code_dtype(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the codes ``0 .. size - 1``."""
    return np.min_scalar_type(size - 1)


# --- the entries of a schema file


def check_keys(where: str, spec: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a table of a schema file that has an unknown key."""
    for key in spec:
        if key not in known:
            hint = nearest(str(key)[:MOST_SHOWN], known)
            raise InputError(where, fragment(key), f"must only have the keys {', '.join(known)}", hint)


def check_flag(where: str, value: Any) -> None:
    """Refuse a value other than true and false."""
    check(isinstance(value, bool), where, fragment(value), "must be true or false", "write true or false")


def check_word(where: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value other than the known words."""
    if not isinstance(value, str) or value not in known:
        hint = nearest(str(fragment(value)).strip("'"), known)
        raise InputError(where, fragment(value), f"must be one of {', '.join(known)}", hint)


def check_text(where: str, value: str) -> None:
    """Refuse a text that no file can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "replace the lone surrogate in it"
        raise InputError(where, fragment(value), "must be valid Unicode text", hint) from None


def check_name(name: Any) -> str:
    """Return how messages call a column; refuse a name that is no text."""
    rule, hint = "must be a text", "give the name of the column in the table"
    check(isinstance(name, str), "column: name", fragment(name), rule, hint)
    check_text("column: name", name)
    return column_called(name)


def listed(where: str, given: Any, what: str) -> tuple[Any, ...]:
    """Return the entries of a list, with NumPy's numbers and texts as those of Python.

    Args:
        where: The column, for messages.
        given: A list, a tuple, a range or an array of one dimension.
        what: What the entries are, for messages.
    """
    good = isinstance(given, list | tuple | range) or (isinstance(given, np.ndarray) and given.ndim == 1)
    check(good, where, fragment(given), f"must have a list of {what}", f"write {what} = [...]")
    return tuple(one.item() if isinstance(one, np.generic) else one for one in given)


def read_keys(spec: dict[str, Any], keys: Mapping[str, type]) -> dict[str, Any]:
    """Return the entries of a ``[[column]]`` table except ``type``, with lists as tuples.

    ``keys`` are the other keys of the kind of column. Lists are required, booleans are checked, and keys of the type
    ``object`` are left to the column.
    """
    where = check_name(spec["name"])
    check_keys(where, spec, ("name", "type", *keys))
    for key, kind in keys.items():
        if kind is list:
            listed(where, spec.get(key), key)
        elif kind is bool:
            check_flag(f"{where}: {key}", spec.get(key, False))
    return {key: tuple(v) if keys.get(key) is list else v for key, v in spec.items() if key != "type"}


def without_none(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the entries that are set."""
    return {key: value for key, value in spec.items() if value is not None}


def check_column(column: Column) -> None:
    """Refuse a column with fewer than two codes or with an unknown type."""
    where = column_called(column.name)
    hint = "drop the column, or list every value that it could take"
    check(column.size >= 2, where, column.size, "must have at least two values", hint)
    check_dtype(f"{where}: dtype", column.dtype)


# --- missing values


class Gapped(Protocol):
    """A column that can have spellings of its own for missing values."""

    @property
    def name(self) -> str:
        """The name of the column in the table."""

    @property
    def missing(self) -> bool:
        """Whether values may be missing."""

    @property
    def missing_values(self) -> tuple[str, ...]:
        """What stands for missing in the table, apart from what always does: texts, and numbers as texts."""

    @property
    def missing_as(self) -> str | None:
        """What missing values are decoded to; None for null."""


def read_missing(column: Gapped) -> tuple[tuple[str, ...], str | None]:
    """Return ``missing_values`` and ``missing_as`` of a column as texts; refuse what cannot be a spelling.

    Numbers may be given as numbers. Both need ``missing = true``.
    """
    where, given, shown = column_called(column.name), column.missing_values, column.missing_as
    spellings = tuple(_spelling(f"{where}: missing_values", one) for one in listed(where, given, "missing_values"))
    rule, hint = "must not be given twice", "remove the repeated ones"
    check(len(set(spellings)) == len(spellings), f"{where}: missing_values", fragment(list(given)), rule, hint)
    spelled = None if shown is None else _spelling(f"{where}: missing_as", shown)
    rule, hint = "must be true where missing_values or missing_as are given", "set missing = true, or remove them"
    check(column.missing or (not spellings and spelled is None), f"{where}: missing", column.missing, rule, hint)
    return spellings, spelled


def _spelling(where: str, value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    good = isinstance(value, str | int | float) and not isinstance(value, bool)
    check(good, where, fragment(value), "must be texts or numbers", 'write for example "NA" or -9')
    if isinstance(value, str):
        check_text(where, value)
        return value
    small = isinstance(value, float) or -(2**63) <= value < 2**63
    check(small, where, fragment(value), "must be numbers of 64 bits", "write it as a text")
    return repr(value)


def missing_strings(column: Gapped, usual: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that mean "missing" in a column: the usual ones, those declared, and that of the output."""
    own = column.missing_values if column.missing_as is None else (*column.missing_values, column.missing_as)
    return (*usual, *(text for text in own if text not in usual))


def number_in(text: str) -> float | None:
    """Return the finite number that a text spells, or None."""
    if not re.fullmatch(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*", text[:400]):
        return None
    number = float(text)
    return number if np.isfinite(number) else None


def missing_dict(column: Gapped) -> dict[str, Any]:
    """Return the entries of a ``[[column]]`` table about missing values, None where they are not set."""
    return {
        "missing": column.missing or None,
        "missing_values": list(column.missing_values) or None,
        "missing_as": column.missing_as,
    }


def fill_missing(column: Gapped, array: pa.Array) -> pa.Array:
    """Return decoded values with nulls as ``missing_as``: of the same type if it can be, otherwise as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.missing_as is None:
        return array
    try:
        return pc.fill_null(array, pa.scalar(column.missing_as).cast(array.type))
    except pa.ArrowException:
        return pc.fill_null(pc.cast(array, pa.string()), column.missing_as)


# --- encoding


def is_missing(array: pa.Array, strings: Sequence[str]) -> np.ndarray:
    """Return where an array is null or NaN or, if it holds strings, one of ``strings``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False)
    if strings and pa.types.is_string(array.type):
        nulls = nulls | pc.is_in(array, value_set=pa.array(strings)).to_numpy(zero_copy_only=False)
    return np.asarray(nulls)


def refuse_strays(
    column: Column, array: pa.Array, stray: np.ndarray, setting: str, bounds: Sequence[float] = ()
) -> None:
    """Refuse an array with values outside the schema.

    Args:
        column: The column.
        array: Its cells.
        stray: Where values are outside.
        setting: What would allow them.
        bounds: The smallest and the largest number of the column, if it is one of numbers.
    """
    if stray.any():
        value = array[int(np.flatnonzero(stray)[0])].as_py()
        rule, change = "must only hold values of the schema", "list the value"
        if bounds:
            rule, change = f"must lie between {bounds[0]:.17g} and {bounds[-1]:.17g}", "widen the bounds"
        hint = f"correct the table, {change}, or set {setting}"
        raise InputError(column_called(column.name), fragment(value), rule, hint)


def place_missing(column: Column, codes: np.ndarray, nulls: np.ndarray) -> np.ndarray:
    """Return the codes in the smallest type, with missing values (``nulls``) at the last code, or refuse these."""
    if nulls.any():
        hint = "set missing = true in the schema, or fill them"
        shown = Shown("a missing value")
        check(column.missing, column_called(column.name), shown, "must not have missing values", hint)
        codes = np.where(nulls, column.size - 1, codes)
    return codes.astype(code_dtype(column.size))


# --- translating


def same_codes(column: Column, source: Column) -> bool:
    """Return whether two columns have the same codes: whether they differ in their spellings and output at most."""
    apart = dict.fromkeys(("dtype", "decode", "missing_values", "missing_as"))
    return source.to_dict() | apart == column.to_dict() | apart


def different_bins(column: Column) -> InputError:
    """Return the error for codes that cannot be translated because they stand for different bins."""
    rule = "must be binned as in the schema of the private table"
    hint = "give the public table as a file or as a pandas, polars or Arrow table"
    return InputError(column_called(column.name), Shown("different bins"), rule, hint)
