"""Conditions on rows, as users give them: the values of some columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.columns import Column
from pointillist.data.messages import column_called, fragment
from pointillist.data.schema import Schema
from pointillist.errors import InputError, brief, nearest
from pointillist.families.conditioning import Allowed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["allowed_codes", "place_values"]


MOST_NAMED = 30
"""Columns with at most this many values have them named in messages: the schema is public."""


def allowed_codes(schema: Schema, given: Mapping[str, Any]) -> Allowed:
    """The codes that a condition allows, by the position of the column.

    Args:
        schema: the columns.
        given: for some columns the value, or a list of values of which any will do; None means missing.
    """
    rule, hint = "must be a dictionary of columns and values", 'give for example {"region": "N"}'
    check(isinstance(given, Mapping), "given", brief(given), rule, hint)
    found: dict[int, np.ndarray] = {}
    for name, value in given.items():
        rule = "must name columns of the release"
        at = schema.domain.index(one_of("given", name, schema.domain.names, rule))
        column = schema.columns[at]
        mask = np.zeros(column.size, bool)
        mask[_codes(column, _values(column, value))] = True
        found[at] = mask
    return found


def _values(column: Column, value: Any) -> list[Any]:
    several = isinstance(value, (list, tuple, set, frozenset, range, np.ndarray))
    values = [one.item() if isinstance(one, np.generic) else one for one in value] if several else [value]
    check(len(values) > 0, f"given: {column_called(column.name)}", [], "must have a value", "give one, or leave it out")
    return values


def _codes(column: Column, values: list[Any]) -> np.ndarray:
    """The codes of some values; a value that the column cannot have is refused, not replaced by ``other``."""
    import pyarrow as pa

    where = f"given: {column_called(column.name)}"
    rule = f"must be a value of the column ({column.describe()})"
    try:
        codes = column.encode(pa.array(values, pa.string() if all(one is None for one in values) else None))
    except InputError as error:
        raise InputError(where, error.value, rule, _hint(column, values)) from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError(where, fragment(values), rule, _hint(column, values)) from None
    other = getattr(column, "other", None)
    if other is not None:
        texts = [str(label) for label in column.labels]
        unknown = [one for one in values if one is not None and str(one) not in texts]
        check(not unknown, where, fragment(unknown), rule, f"give {other!r} for all values that are not listed")
    return codes


def _hint(column: Column, values: list[Any]) -> str:
    few = 0 < len(column.labels) <= MOST_NAMED
    return nearest(str(values[0]), map(str, column.labels)) if few else "see release.schema"


def place_values(table: pa.Table, schema: Schema, given: Mapping[str, Any]) -> pa.Table:
    """Decoded rows that meet a condition, with the given numbers themselves instead of others from the same bins.

    Inside a bin, a value does not depend on the other columns, so these rows follow the model on the condition.

    Args:
        table: rows that were drawn on the condition and decoded.
        schema: the columns.
        given: the condition.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, value in given.items():
        column = schema.columns[schema.domain.index(name)]
        values = _values(column, value)
        if column.labels or len(values) != 1 or values[0] is None:
            continue
        field = table.schema.field(name)
        try:
            cell = pc.cast(pa.array(values), field.type)[0]
        except (pa.ArrowException, TypeError):  # written in a way that only the column itself can read
            continue
        if cell.is_valid:
            table = table.set_column(table.column_names.index(name), field, pa.repeat(cell, table.num_rows))
    return table
