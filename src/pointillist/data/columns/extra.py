"""Columns that are no part of the domain: constants, and identifiers that are made again.

No query is about them and no model carries them. A schema keeps them with their places, so that the decoded table has
the columns of the original one, in their order.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import check_keys, check_name, check_text, check_word, is_missing, without_none
from pointillist.data.columns.types import arrow_type, check_dtype
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Constant", "Extra", "Identifier"]

MOST_DIGITS = 18
"""The most digits to which a number in a sequence is filled up with zeros."""


class Extra(Protocol):
    """A column that is no part of the domain."""

    @property
    def name(self) -> str:
        """The name of the column in the table."""

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""

    @property
    def width(self) -> int:
        """The most bytes of a cell as text."""

    def check_cells(self, values: pa.Array) -> None:
        """Refuse values that the column does not allow; ``values`` are the different ones of the table's column."""

    def make(self, rows: int, rng: np.random.Generator) -> pa.Array:
        """Return the cells of a decoded table of ``rows`` rows, of the type ``output_dtype``."""

    def describe(self) -> str:
        """Return a one-line description."""

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file, which :meth:`from_dict` reads."""

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Self:
        """Create the column from a ``[[column]]`` table that has a name."""


@dataclass(frozen=True)
class Constant:
    """A column with the same value in every row.

    Args:
        name: The name of the column in the table.
        value: The value: a text, a number or true/false. None for a column whose values are all missing. Dates and
            times are given as texts, with their type under ``dtype``.
        dtype: The type of the decoded column. By default string, int64, float64 or bool, depending on the value.
    """

    name: str
    value: str | int | float | bool | None = None
    dtype: str = ""

    def __post_init__(self) -> None:
        import pyarrow as pa

        where = check_name(self.name)
        if isinstance(self.value, np.generic):
            object.__setattr__(self, "value", self.value.item())
        rule, hint = "must be a text, a number or true/false", "write it as a text"
        good = self.value is None or isinstance(self.value, str | int | float | bool)
        check(good, f"{where}: value", fragment(self.value), rule, hint)
        if isinstance(self.value, str):
            check_text(f"{where}: value", self.value)
        check_dtype(f"{where}: dtype", self.dtype)
        try:
            self._scalar()
        except (pa.ArrowException, OverflowError):
            rule, hint = "must be a type that holds the value of the column", "choose another, or leave dtype out"
            raise InputError(f"{where}: dtype", self.dtype, rule, hint) from None

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        kinds = {str: "string", bool: "bool", int: "int64", float: "float64"}
        return self.dtype or kinds.get(type(self.value), "string")

    @property
    def width(self) -> int:
        """The most bytes of a cell as text."""
        return len(str(self.value).encode())

    def _scalar(self) -> pa.Scalar:
        """Return the value in the output type, without a dictionary."""
        import pyarrow as pa

        kind = arrow_type(self.output_dtype)
        return pa.scalar(self.value).cast(kind.value_type if pa.types.is_dictionary(kind) else kind)

    def check_cells(self, values: pa.Array) -> None:
        """Refuse values other than the constant.

        Args:
            values: The different values of the table's column.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        nulls = is_missing(values, [""] if self.value != "" else [])
        if self.value is None:
            stray = ~nulls
        else:
            wanted = self._scalar()
            try:
                same = pc.equal(values.cast(wanted.type), wanted).fill_null(False)
                stray = nulls | ~same.to_numpy(zero_copy_only=False)
            except pa.ArrowException:
                stray = np.array([not _equal(value, wanted) for value in values])
        if stray.any():
            found = values[int(np.flatnonzero(stray)[0])].as_py()
            hint = "correct the table, or give the column another type in the schema"
            rule = "must only hold the constant of the schema"
            raise InputError(column_called(self.name), fragment(found), rule, hint)

    def make(self, rows: int, rng: np.random.Generator) -> pa.Array:
        """Return the value ``rows`` times; ``rng`` is not used."""
        import pyarrow as pa

        cells = pa.repeat(self._scalar(), rows)
        return cells.dictionary_encode() if self.output_dtype in ("category", "enum") else cells

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.name}: always {'missing' if self.value is None else fragment(self.value)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        out = {"name": self.name, "type": "constant", "value": self.value, "dtype": self.dtype or None}
        return without_none(out)

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Constant:
        """Create the column from a ``[[column]]`` table of a schema file."""
        check_keys(check_name(spec["name"]), spec, ("name", "type", "value", "dtype"))
        return cls(**{key: value for key, value in spec.items() if key != "type"})


def _equal(value: pa.Scalar, wanted: pa.Scalar) -> bool:
    import pyarrow as pa

    try:
        return bool(value.is_valid and value.cast(wanted.type).equals(wanted))
    except pa.ArrowException:
        return False


@dataclass(frozen=True)
class Identifier:
    """A column of identifiers, which are never read and made again when a table is decoded.

    Args:
        name: The name of the column in the table.
        kind: "sequence" for numbers that count up by one, "uuid" for random identifiers of version 4, which follow
            from the seed of the decoding.
        start: The first number of a sequence.
        prefix: A text before each number of a sequence.
        digits: The least number of digits of a number in a sequence; shorter ones are filled up with zeros.
        dtype: The type of the decoded column. By default int64 for a sequence of plain numbers, otherwise string.
    """

    name: str
    kind: str = "sequence"
    start: int = 1
    prefix: str = ""
    digits: int = 0
    dtype: str = ""

    def __post_init__(self) -> None:
        where = check_name(self.name)
        check_word(f"{where}: kind", self.kind, ("sequence", "uuid"))
        for key, low, high in (("start", 0, 2**62), ("digits", 0, MOST_DIGITS)):
            value = getattr(self, key)
            value = value.item() if isinstance(value, np.generic) else value
            good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
            rule = f"must be a whole number in {low} .. {high}"
            check(good, f"{where}: {key}", fragment(value), rule, "write a number without quotes")
            object.__setattr__(self, key, value)
        text = isinstance(self.prefix, str)
        check(text, f"{where}: prefix", fragment(self.prefix), "must be a text", 'write prefix = "..."')
        check_text(f"{where}: prefix", self.prefix)
        plain = self.kind == "sequence" or (self.start, self.prefix, self.digits) == (1, "", 0)
        rule, hint = "must not have start, prefix or digits with kind = uuid", "leave them out"
        check(plain, where, Shown("one of them"), rule, hint)
        check_dtype(f"{where}: dtype", self.dtype)
        numbers = ("int32", "int64", "uint32", "uint64", "Int32", "Int64", "UInt32", "UInt64", "float64")
        texts = ("string", "large_string", "string[python]", "string[pyarrow]")
        rule, hint = "must be a type that holds the identifiers", "leave dtype out"
        good = self.output_dtype in (texts if self._is_text else (*numbers, *texts))
        check(good, f"{where}: dtype", self.output_dtype, rule, hint)

    @property
    def _is_text(self) -> bool:
        return self.kind == "uuid" or self.prefix != "" or self.digits > 0

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        return self.dtype or ("string" if self._is_text else "int64")

    @property
    def width(self) -> int:
        """The most bytes of a cell as text."""
        return 36 if self.kind == "uuid" else len(self.prefix.encode()) + 20

    def check_cells(self, values: pa.Array) -> None:
        """Return without looking at anything."""

    def make(self, rows: int, rng: np.random.Generator) -> pa.Array:
        """Return ``rows`` different identifiers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.kind == "uuid":
            drawn = rng.bytes(16 * rows)
            parts = (drawn[16 * row : 16 * row + 16] for row in range(rows))
            return pa.array([str(uuid.UUID(bytes=part, version=4)) for part in parts], arrow_type(self.output_dtype))
        numbers = pa.array(np.arange(self.start, self.start + rows, dtype=np.int64))
        kind = arrow_type(self.output_dtype)
        if not self._is_text:
            return numbers.cast(kind)
        texts = pc.utf8_lpad(numbers.cast(pa.string()), self.digits, "0")
        return pc.binary_join_element_wise(pa.scalar(self.prefix), texts, pa.scalar("")).cast(kind)

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.name}: identifiers, made again ({self.kind})"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        out: dict[str, Any] = {"name": self.name, "type": "id", "kind": self.kind}
        if self.kind == "sequence":
            out |= {"start": self.start, "prefix": self.prefix or None, "digits": self.digits or None}
        return without_none(out | {"dtype": self.dtype or None})

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Identifier:
        """Create the column from a ``[[column]]`` table of a schema file."""
        check_keys(check_name(spec["name"]), spec, ("name", "type", "kind", "start", "prefix", "digits", "dtype"))
        return cls(**{key: value for key, value in spec.items() if key != "type"})
