"""Draft one column from its cells: which kind it is, and what a person has to check about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointillist.data.columns import Categorical, Constant
from pointillist.data.drafts.numbers import draft_numbers
from pointillist.data.drafts.parts import MOST_FEW, Drafted, first_that_fits, own_type
from pointillist.data.drafts.texts import MOST_CODES, draft_texts
from pointillist.data.drafts.times import draft_times
from pointillist.data.texts import declared, distinct, plain
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["draft_column"]


def draft_column(name: str, cells: pa.ChunkedArray, dtype: str) -> Drafted:
    """Draft a column of a table.

    Args:
        name: The name of the column.
        cells: Its cells, of any type.
        dtype: The name of its type; empty if a schema has none for it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        simple = plain(name, cells)
    except InputError as error:
        return Drafted(None, f"it {error.rule}, got {error.value}")
    if pa.types.is_dictionary(simple.type):
        return _draft_category(name, cells, simple, dtype)
    kind = simple.type
    if simple.null_count == len(simple):
        return Drafted(Constant(name, None, dtype), "Every cell is missing: kept as a constant.")
    if pa.types.is_string(kind):
        return draft_texts(name, simple, dtype)
    if simple.null_count == 0 and len(pc.unique(simple)) == 1 and not pa.types.is_temporal(kind):
        value = simple[0].as_py()
        if value != value:
            return Drafted(Constant(name, None, dtype), "Every cell is missing: kept as a constant.")
        value = value if isinstance(value, bool | int | float) else str(value)
        usual = {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
        note = "The same value in every row: kept as a constant. Check that it is public."
        return Drafted(Constant(name, value, own_type(dtype, usual)), note)
    if pa.types.is_boolean(kind):
        missing = simple.null_count > 0
        return Drafted(
            Categorical(name, (False, True), missing=missing, dtype=own_type(dtype, "bool")), "True or false."
        )
    if pa.types.is_temporal(kind):
        return draft_times(name, simple, dtype)
    return draft_numbers(name, simple, pc.cast(simple, pa.float64(), safe=False), dtype)


def _draft_category(name: str, given: pa.ChunkedArray, cells: pa.ChunkedArray, dtype: str) -> Drafted:
    """Draft a column whose type declares its values: those are its values, unused ones included."""
    import pyarrow as pa

    known = declared(given)
    if known is None:
        values = distinct(cells)[0]
        return draft_column(name, pa.chunked_array([values.take(pa.array(distinct(cells)[1]))]), dtype)
    values, ordered = known
    if values and isinstance(values[0], float) and all(value.is_integer() for value in values):
        values = [int(value) for value in values]
    if len(values) > max(MOST_FEW, min(MOST_CODES, len(cells) / 2)):
        return Drafted(None, f"it declares too many categories ({len(values):,})")
    missing = cells.null_count > 0 or any(value == "" for value in values)
    listed = tuple(value for value in values if value != "")
    column = first_that_fits(
        cells,
        lambda: Categorical(name, listed, ordered=ordered, missing=missing, dtype=dtype or "category"),
        lambda: Categorical(name, listed, ordered=ordered, missing=missing),
        lambda: Categorical(name, tuple(map(str, listed)), ordered=ordered, missing=missing),
    )
    if column is None and len(listed) == 1:
        return Drafted(Constant(name, listed[0], "category"), "The only category: kept as a constant.")
    note = (
        "The categories that the type of the column declares, also those that no row has. Check that they are public."
    )
    return Drafted(column, note if column is not None else "its categories cannot be listed")
