"""Columns of Arrow tables in plain types: numbers, booleans, dates and times, text in UTF-8, or positions in a list of
these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import Column
from pointillist.data.messages import column_called, fragment, reason
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bad_cells", "declared", "different", "distinct", "encode", "encode_or_missing", "plain"]

MOST_TEXT = 2**30
"""The most bytes of text that are handled in one array; those of Arrow's usual type end at 2 GiB."""
VIEWED = 2**16
"""The number of cells that are copied at a time from arrays whose cells may share their letters."""


def plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text, numbers, booleans, dates or times, or as positions in a list of these.

    Other types are refused.

    Args:
        name: The name of the column, for messages.
        column: A column of any type.
    """
    import pyarrow as pa

    where = column_called(name)
    try:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)
            parts = [_plain_dictionary(where, chunk) for chunk in column.chunks]
            kind = parts[0].type if parts else pa.dictionary(pa.int32(), pa.string())
            return pa.chunked_array(parts, kind)
        return _plain(where, column)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        shown = fragment(Shown(column.type))
        raise InputError(where, shown, f"must be readable ({reason(error)})", "write the column again") from None


def _plain_dictionary(where: str, chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    import pyarrow as pa

    values = _plain(where, pa.chunked_array([chunk.dictionary])).combine_chunks()
    return pa.DictionaryArray.from_arrays(chunk.indices, values)


def _plain(where: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        column.validate(full=True)  # UTF-8, which files do not guarantee
        return pa.chunked_array(list(_texts(where, column)), pa.string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind):
        return column.cast(pa.decimal128(38 if pa.types.is_decimal256(kind) else kind.precision, kind.scale))
    good = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    good = good or pa.types.is_decimal128(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    rule, hint = "must hold strings, numbers, booleans, dates or times", "convert it, or name it under ignore"
    check(good, where, fragment(Shown(kind)), rule, hint)
    return column


def _texts(where: str, column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Return the cells of a text column in arrays of at most ``MOST_TEXT`` bytes each."""
    import pyarrow as pa

    waiting: list[pa.Array] = []
    size = 0
    for chunk in column.chunks:
        for part in _small(where, chunk):
            more = _bytes(part)
            if waiting and size + more > MOST_TEXT:
                yield pa.concat_arrays(waiting)
                waiting, size = [], 0
            waiting.append(part)
            size += more
    if waiting:
        yield pa.concat_arrays(waiting)


def _small(where: str, array: pa.Array) -> Iterator[pa.Array]:
    """Return the cells of a text array of any type in arrays of the usual one, none of them too large."""
    import pyarrow as pa

    if pa.types.is_string_view(array.type):
        for start in range(0, len(array), VIEWED):
            yield from _small(where, array.slice(start, VIEWED).cast(pa.large_string()))
    elif _bytes(array) <= MOST_TEXT:
        yield pa.concat_arrays([array]).cast(pa.string())  # a copy, whose positions begin at 0
    else:
        hint = "leave the column out"
        check(len(array) > 1, where, Shown("a longer one"), f"must have cells of at most {MOST_TEXT:,} bytes", hint)
        half = len(array) // 2
        yield from _small(where, array.slice(0, half))
        yield from _small(where, array.slice(half))


def _bytes(array: pa.Array) -> int:
    import pyarrow.compute as pc

    return pc.sum(pc.binary_length(array)).as_py() or 0


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """Return the different values of a column of positions, and where among them the value of each row is.

    Args:
        column: A column of a dictionary type, as :func:`plain` returns it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    positions = [chunk.indices for chunk in column.chunks]
    used = [pc.unique(part) for part in positions]
    values = [chunk.dictionary.take(part) for chunk, part in zip(column.chunks, used, strict=True)]
    starts = np.cumsum([0, *(len(part) for part in used)])
    rows = [
        start + pc.index_in(part, value_set=found).to_numpy(zero_copy_only=False)
        for start, part, found in zip(starts, positions, used, strict=False)
    ]
    every = pa.concat_arrays(values)
    different = pc.unique(every)
    places = pc.index_in(every, value_set=different).to_numpy(zero_copy_only=False)
    return different, places[np.concatenate(rows)]


def different(column: pa.ChunkedArray) -> pa.Array:
    """Return the different values of a column, missing included.

    Args:
        column: A column, as :func:`plain` returns it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    return distinct(column)[0] if pa.types.is_dictionary(column.type) else pc.unique(column)


def encode(column: Column, cells: pa.ChunkedArray) -> np.ndarray:
    """Return the codes of the cells of a table's column. Texts of any size are encoded part by part.

    Args:
        column: The column of the schema.
        cells: The cells, as :func:`plain` returns them.
    """
    import pyarrow as pa

    try:
        if pa.types.is_dictionary(cells.type):
            values, places = distinct(cells)
            codes: np.ndarray = column.encode(values)[places]
            return codes
        parts = cells.chunks if pa.types.is_string(cells.type) else [cells.combine_chunks()]
        found: np.ndarray = np.concatenate([column.encode(part) for part in parts])
        return found
    except pa.ArrowNotImplementedError:  # how Arrow says that no conversion exists, as from dates to numbers: bad input
        rule, hint = "must hold values of the kind that the schema says", "give the column another type in the schema"
        raise InputError(column_called(column.name), fragment(Shown(cells.type)), rule, hint) from None


def encode_or_missing(column: Column, cells: pa.ChunkedArray) -> np.ndarray:
    """Return the codes of the cells of a table's column, with the code of missing for values that it does not allow.

    What becomes of a cell depends on this cell alone. A column that has no code for missing refuses bad values, and
    cells of a type that the column cannot hold are refused by any column.

    Args:
        column: The column of the schema.
        cells: The cells, as :func:`plain` returns them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return encode(column, cells)
    except InputError:
        if not column.missing:
            raise
    encode(column, cells.slice(0, 0))
    values, places = distinct(cells if pa.types.is_dictionary(cells.type) else pc.dictionary_encode(cells))
    kept = pc.if_else(pa.array(_allowed(column, values)), values, pa.scalar(None, values.type))
    codes: np.ndarray = column.encode(kept)[places]
    return codes


def bad_cells(column: Column, cells: pa.ChunkedArray) -> int:
    """Return the number of cells that a column refuses; all of them if they are of a type that it cannot hold.

    Args:
        column: The column of the schema.
        cells: The cells, as :func:`plain` returns them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        encode(column, cells)
        return 0
    except InputError:
        values, places = distinct(cells if pa.types.is_dictionary(cells.type) else pc.dictionary_encode(cells))
    try:
        return int((~_allowed(column, values))[places].sum())
    except pa.ArrowNotImplementedError:  # as above: no cell can be converted, so all of them are bad
        return len(cells)


def _allowed(column: Column, values: pa.Array) -> np.ndarray:
    """Return which of some different values a column allows; the others are found by halving."""
    try:
        column.encode(values)
        return np.ones(len(values), bool)
    except InputError:
        if len(values) == 1:
            return np.zeros(1, bool)
        half = len(values) // 2
        return np.concatenate([_allowed(column, part) for part in (values.slice(0, half), values.slice(half))])


def declared(column: pa.ChunkedArray) -> tuple[list[Any], bool] | None:
    """Return the list of values that a column declares, those that no row has included, and whether it is in order.

    A pandas categorical, a polars Enum and an Arrow dictionary declare such a list: it is part of their type. None for
    other columns, and where the parts of a column declare different lists.

    Args:
        column: A column of an Arrow table.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.chunks:
        return None
    lists = [chunk.dictionary for chunk in column.chunks]
    if any(not one.equals(lists[0]) for one in lists):
        return None
    return [value for value in lists[0].to_pylist() if value is not None], bool(column.type.ordered)
