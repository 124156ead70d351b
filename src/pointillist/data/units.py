"""Bounding what one unit contributes: at most some rows of each, chosen at random before anything else happens.

The choice is uniform among the rows of a unit. It depends on which rows belong to the unit and on fresh randomness of
the operating system, on nothing else: not on the values of other columns, and not on other units. So tables that differ
in all rows of one unit become, for the same randomness, tables that differ in at most ``max_rows`` rows.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.messages import column_called, fragment
from pointillist.data.neighbours import Unit
from pointillist.data.schema import Schema
from pointillist.data.table import Table, as_arrow
from pointillist.data.texts import distinct, plain
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bounded_rows", "bounded_table", "chosen_positions", "chosen_rows", "require_unpublished"]


def bounded_table(
    data: Any, schema: Schema, unit: Unit, insecure_seed: int | None = None, on_bad_value: str = "error"
) -> Table:
    """Encode a table with at most ``unit.max_rows`` rows of each unit.

    Args:
        data: A pandas, polars or Arrow table with the column of the unit.
        schema: The columns to encode. That of the unit is none of them: it is only read here.
        unit: What is protected as a whole.
        insecure_seed: Replaces the randomness of the choice by a seed: for experiments only.
        on_bad_value: What is done with values that the schema does not allow, as in ``Table.encode``.
    """
    require_unpublished(unit, schema)
    arrow = as_arrow(data, [name for name in schema.ignore if name != unit.name])
    return Table.encode(bounded_rows(arrow, unit, insecure_seed), schema, on_bad_value)


def require_unpublished(unit: Unit, schema: Schema) -> None:
    """Refuse a unit whose column would be in the synthetic table.

    Args:
        unit: What is protected as a whole.
        schema: The columns of the synthetic table.
    """
    rule = "must not be a column that is synthesized, since it would be published"
    hint = "take it out of the schema's columns and name it under ignore"
    check(unit.name not in schema.domain.names, "unit", fragment(unit.name), rule, hint)


def bounded_rows(arrow: pa.Table, unit: Unit, insecure_seed: int | None = None) -> pa.Table:
    """Return at most ``unit.max_rows`` rows of each unit.

    Args:
        arrow: A table with the column of the unit.
        unit: What is protected as a whole.
        insecure_seed: Replaces the randomness of the choice by a seed: for experiments only.
    """
    rule, hint = "must be a column of the table", "give the column that says to whom a row belongs"
    check(unit.name in arrow.column_names, "unit", fragment(unit.name), rule, hint)
    return _without_views(arrow).take(chosen_positions(arrow.column(unit.name), unit, insecure_seed))


def _without_views(arrow: pa.Table) -> pa.Table:
    """Return a table whose texts Arrow can choose from: those of polars are views."""
    import pyarrow as pa

    for place, field in enumerate(arrow.schema):
        if pa.types.is_string_view(field.type):
            arrow = arrow.set_column(place, field.name, arrow.column(place).cast(pa.large_string()))
    return arrow


def chosen_positions(column: pa.ChunkedArray, unit: Unit, insecure_seed: int | None = None) -> np.ndarray:
    """Choose at most ``unit.max_rows`` rows of each unit; return their positions, in their order.

    Args:
        column: The column of the unit.
        unit: What is protected as a whole.
        insecure_seed: Replaces the randomness of the choice by a seed: for experiments only.
    """
    units = units_of(unit.name, column)
    randomness = secrets.token_bytes if insecure_seed is None else np.random.default_rng([insecure_seed, 1]).bytes
    priorities = np.frombuffer(randomness(8 * len(units)), dtype=np.uint64)
    return chosen_rows(units, priorities, unit.max_rows)


def units_of(name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Number the units: rows with equal values have equal numbers. A missing value belongs to nobody and is refused.

    Args:
        name: The name of the column, for messages.
        column: Text, numbers or booleans. Values are compared as they are: in a CSV file " 7" and "07" are not "7".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = plain(name, column)
    if pa.types.is_dictionary(cells.type) and pa.types.is_floating(cells.type.value_type):
        cells = cells.cast(cells.type.value_type)
    if pa.types.is_floating(cells.type):
        cells = pc.add(cells, pa.scalar(0.0, cells.type))  # -0.0 is 0.0
    if not pa.types.is_dictionary(cells.type):
        cells = pc.dictionary_encode(cells)
    values, places = distinct(cells) if cells.num_chunks else (pa.array([], pa.string()), np.zeros(0, np.int64))
    gone = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    if pa.types.is_string(values.type):
        gone = gone | pc.fill_null(pc.equal(values, ""), False).to_numpy(zero_copy_only=False)
    rule, hint = "must name the unit of every row", "fill the empty cells, or leave their rows out"
    check(not gone[places].any(), column_called(name), Shown("an empty cell"), rule, hint)
    numbers: np.ndarray = places
    return numbers


def chosen_rows(units: np.ndarray, priorities: np.ndarray, max_rows: int) -> np.ndarray:
    """The positions of the rows that are used, in their order: of each unit those with the smallest priorities.

    Args:
        units: The number of the unit of each row.
        priorities: An independent random number for each row.
        max_rows: The rows of each unit, at most.
    """
    order = np.lexsort((priorities, units))
    ordered = units[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    rank = np.arange(len(ordered)) - starts[np.cumsum(first) - 1]
    kept: np.ndarray = np.sort(order[rank < max_rows])
    return kept
