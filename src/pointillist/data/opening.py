"""Private rows with columns whose values nobody could list beforehand, before and after their values are discovered.

Until then, every different text of such a column has a number of its own, which nobody but the curator sees. When the
frequent values are known, a list takes the place of the column, and numbers are translated to its codes: by the same
code that encodes a table under a declared list. Rows that stay where they are get such numbers piece by piece: partial
counts by text are added up (:func:`counted_texts`), and pieces are encoded under the lists (:func:`listed_codes`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns import Categorical, Column, Discovered
from pointillist.data.columns.base import is_missing, missing_strings
from pointillist.data.columns.discovered import LONGEST_VALUE, may_be_listed
from pointillist.data.drafts.texts import gaps_among
from pointillist.data.messages import column_called
from pointillist.data.schema import Schema
from pointillist.data.sources import Columns, SameRows, Source, in_groups
from pointillist.data.table import Table
from pointillist.data.texts import distinct, encode, plain
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MOST_DIFFERENT",
    "ListedSource",
    "Numbered",
    "OpenRows",
    "counted_texts",
    "discovered_in",
    "listed_codes",
    "listed_column",
    "numbered",
    "require_few",
    "values_among",
]

MOST_DIFFERENT = 20_000_000
"""The most different texts of a column: they are held in memory."""

OTHER = "other"
"""The label of all values that are not listed, unless one of them has this name."""


def discovered_in(schema: Schema) -> tuple[int, ...]:
    """Return the positions of the columns whose values are discovered.

    Args:
        schema: The columns.
    """
    return tuple(n for n, column in enumerate(schema.columns) if isinstance(column, Discovered))


def listed_column(column: Discovered, values: Sequence[str]) -> Categorical:
    """Return the list that takes the place of a column when its frequent values are known.

    Spellings of missing among the values are missing, as in a draft. ``other`` stands for all values that are not
    listed, and for itself.

    Args:
        column: The column as it was declared.
        values: Its frequent values, each once.
    """
    declared = missing_strings(column, ())
    gaps = tuple(text for text in gaps_among(list(values)) if text not in declared and text != column.other)
    brackets = (f"{'(' * n}{OTHER}{')' * n}" for n in range(len(values) + len(declared) + 1))
    other = column.other or next(label for label in brackets if label not in (*values, *declared))
    return Categorical(
        column.name,
        tuple(text for text in values if text not in (*declared, *gaps, other)),
        missing=True,
        other=other,
        dtype=column.dtype,
        missing_values=(*column.missing_values, *gaps),
        missing_as=gaps[0] if len(gaps) == 1 and not declared else column.missing_as,
        merge=column.merge,
        prefixes=column.prefixes,
    )


class Numbered:
    """A column to be discovered, with a number for each of its different texts, in the order in which they come.

    Args:
        column: The column as it was declared.
    """

    size = 2**32
    """More than there can be texts."""

    missing = False
    """No cell is refused that could be taken as missing instead."""

    def __init__(self, column: Discovered) -> None:
        self.column = column
        self._longest = max(LONGEST_VALUE, *map(len, missing_strings(column, ("",))))
        self._numbers: dict[str | None, int] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        """Return what else the column has."""
        return getattr(self.column, name)

    @property
    def texts(self) -> list[str | None]:
        """The different texts by their numbers; None is missing. They are cut off behind the longest that can be listed
        or that means missing."""
        return list(self._numbers)

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the number of each value; those of new ones are the next."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(array):
            return np.zeros(0, np.uint32)
        values, places = distinct(pa.chunked_array([pc.dictionary_encode(array)]))
        gone = is_missing(values, ())
        cells: list[str | None] = pc.cast(values, pa.string()).to_pylist()
        texts = [None if gone[n] or cell is None else cell[: self._longest + 1] for n, cell in enumerate(cells)]
        with self._lock:
            numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in texts]
        require_few(self.column.name, len(self._numbers))
        found: np.ndarray = np.array(numbers, np.uint32)[places]
        return found


def require_few(name: str, different: int) -> None:
    """Refuse a column with too many different texts.

    Args:
        name: The name of the column.
        different: How many it has, those included that stand for missing.
    """
    rule, hint = f"must have at most {MOST_DIFFERENT:,} different values", "name it under ignore: it is free text"
    check(different <= MOST_DIFFERENT, column_called(name), Shown("more"), rule, hint)


def counted_texts(piece: pa.Table, schema: Schema) -> Iterator[tuple[int, list[str | None], np.ndarray]]:
    """Count the different texts of some rows: partial counts, which add up by text.

    Args:
        piece: The rows.
        schema: The columns as they were declared.

    Returns for each column to be discovered its position, its texts, and how many of the rows have each.
    """
    for place, column in enumerate(numbered(schema).columns):
        if isinstance(column, Numbered):
            numbers = encode(column, plain(column.name, piece.column(column.name)))
            yield place, column.texts, np.bincount(numbers, minlength=len(column.texts)).astype(np.int64)


def values_among(texts: Sequence[str | None], counts: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the texts that can be listed, in the order of their letters, with their counts.

    Args:
        texts: The different texts of a column; None is missing.
        counts: How many rows have each.
    """
    kept = sorted((str(text), n) for n, text in enumerate(texts) if may_be_listed(text) and counts[n])
    return [text for text, _ in kept], counts[[n for _, n in kept]]


def listed_codes(piece: pa.Table, given: Schema, listed: Schema, on_bad_value: str) -> Columns:
    """Return the codes of some rows under lists of the values that were discovered.

    Args:
        piece: The rows.
        given: The columns as they were declared.
        listed: The same columns, with lists in place of those that were to be discovered.
        on_bad_value: What is done with values that the schema does not allow, as in ``Table.encode``.
    """
    read = numbered(given)
    codes = Table.encode(piece, read, on_bad_value).codes
    return next(in_groups([codes], _lookups(read, listed)))


def numbered(schema: Schema) -> Schema:
    """Return the schema with which rows are read: columns to be discovered have numbers for their texts.

    Args:
        schema: The columns as they were declared. Without any to be discovered, it is returned itself.
    """
    if not discovered_in(schema):
        return schema
    columns: list[Any] = [Numbered(one) if isinstance(one, Discovered) else one for one in schema.columns]
    return replace(schema, columns=tuple(columns))


@dataclass(frozen=True)
class OpenRows(SameRows):
    """Private rows whose values are still to be discovered.

    Attributes:
        source: the rows, read with a :func:`numbered` schema.
        schema: the columns as they were declared.
    """

    source: Source
    schema: Schema

    def batches(self) -> Iterator[Columns]:
        """Refuse: there are no codes yet."""
        raise ValueError("the values of some columns must be discovered before rows are counted")

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        """Return the different texts of a column, and how many rows have each. Missing and long ones are left out.

        Args:
            column: The name of the column.
        """
        place = self.schema.domain.index(column)
        return values_among(self._read[place].texts, self._counts[place])

    @cached_property
    def _read(self) -> dict[int, Numbered]:
        """The columns to be discovered, by their positions."""
        return {n: one for n, one in enumerate(self.source.schema.columns) if isinstance(one, Numbered)}

    @cached_property
    def _counts(self) -> dict[int, np.ndarray]:
        """How many rows have each text: all columns in one pass."""
        found = {place: np.zeros(len(one.texts), np.int64) for place, one in self._read.items()}
        for batch in self.source.batches():
            for place, counts in found.items():
                counts += np.bincount(batch[place], minlength=len(counts))
        return found

    def listed(self, schema: Schema) -> Source:
        """Return the same rows under lists of values.

        Args:
            schema: The same columns, with lists in place of those that were to be discovered.
        """
        return ListedSource(self.source, schema)


@dataclass(frozen=True)
class ListedSource(SameRows):
    """Private rows whose values were discovered.

    Attributes:
        source: the rows, read with a :func:`numbered` schema.
        schema: the same columns, with lists of the values.
    """

    source: Source
    schema: Schema

    @cached_property
    def _codes(self) -> list[np.ndarray | None]:
        return _lookups(self.source.schema, self.schema)

    def batches(self) -> Iterator[Columns]:
        """The rows, in the codes of the lists."""
        return in_groups(self.source.batches(), self._codes)


def _lookups(read: Schema, listed: Schema) -> list[np.ndarray | None]:
    """The code of each number, by column; None where codes stay as they are."""
    pairs = zip(read.columns, listed.columns, strict=True)
    return [_codes_of(one.texts, column) if isinstance(one, Numbered) else None for one, column in pairs]


def _codes_of(texts: Sequence[str | None], column: Column) -> np.ndarray:
    import pyarrow as pa

    return column.encode(pa.array(texts, pa.string()))
