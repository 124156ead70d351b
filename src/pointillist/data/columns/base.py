"""The interface of a column, and the parts that the kinds of columns share.

A column has the codes ``0 .. size - 1``: its values or bins in order, then ``other`` if it has one, then missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from pointillist.checks import check
from pointillist.data.messages import MOST_SHOWN, column_called, fragment
from pointillist.errors import InputError, Shown, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Column", "Label", "code_dtype"]

Label = str | int | bool
"""A value that a schema can list."""
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
DTYPES = ("string", "category", "bool", *NUMBERS)
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
    if not isinstance(column.dtype, str) or column.dtype != "":
        check_word(f"{where}: dtype", column.dtype, DTYPES)


# --- encoding


def is_missing(array: pa.Array, strings: Sequence[str]) -> np.ndarray:
    """Return where an array is null or NaN or, if it holds strings, one of ``strings``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False)
    if strings and pa.types.is_string(array.type):
        nulls = nulls | pc.is_in(array, value_set=pa.array(strings)).to_numpy(zero_copy_only=False)
    return np.asarray(nulls)


def refuse_strays(column: Column, array: pa.Array, stray: np.ndarray, setting: str) -> None:
    """Refuse an array with values outside the schema; ``setting`` is what would allow them."""
    if stray.any():
        value = array[int(np.flatnonzero(stray)[0])].as_py()
        hint = f"correct the table, list the value, or set {setting}"
        rule = "must only hold values of the schema"
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
    """Return whether two columns have the same codes: whether they differ in the output type at most."""
    return source.to_dict() | {"dtype": ""} == column.to_dict() | {"dtype": ""}


def different_bins(column: Column) -> InputError:
    """Return the error for codes that cannot be translated because they stand for different bins."""
    rule = "must be binned as in the schema of the private table"
    hint = "give the public table as a file or as a pandas, polars or Arrow table"
    return InputError(column_called(column.name), Shown("different bins"), rule, hint)
