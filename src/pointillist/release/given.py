"""Conditions on rows, as users give them: the values of some columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.columns import Column
from pointillist.data.columns.merged import Merged
from pointillist.data.messages import column_called, fragment
from pointillist.data.obeying import Held
from pointillist.data.schema import Schema
from pointillist.errors import InputError, brief, nearest
from pointillist.families.conditioning import Allowed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Given", "condition_of", "place_values"]


MOST_NAMED = 30
"""Columns with at most this many values have them named in messages: the schema is public."""


class Given(NamedTuple):
    """A condition on rows.

    Attributes:
        allowed: the probabilities with which codes are kept, by the position of the column.
        schema: the columns as rows on this condition are decoded: groups of values as those that are wanted.
    """

    allowed: Allowed
    schema: Schema


def condition_of(schema: Schema, given: Mapping[str, Any], exact: bool = False) -> Given:
    """A condition, as users give it.

    Args:
        schema: the columns.
        given: for some columns the value, or a list of values of which any will do; None means missing.
        exact: whether rules are to be obeyed by the given numbers themselves, not by any numbers of the same bins.
    """
    rule, hint = "must be a dictionary of columns and values", 'give for example {"region": "N"}'
    check(isinstance(given, Mapping), "given", brief(given), rule, hint)
    allowed: dict[int, np.ndarray] = {}
    columns = list(schema.columns)
    for name, value in given.items():
        rule = "must name columns of the release"
        at = schema.domain.index(one_of("given", name, schema.domain.names, rule))
        allowed[at], columns[at] = _restricted(columns[at], value)
        if any(name in rule.columns for rule in schema.rules):
            columns[at] = cast(Column, Held(columns[at], _single(columns[at], value) if exact else None))
    return Given(allowed, replace(schema, columns=tuple(columns)))


def _restricted(column: Column, value: Any) -> tuple[np.ndarray, Column]:
    """The probabilities with which the codes of a column are kept, and the column that decodes those that are."""
    base = column.base if isinstance(column, Merged) else column
    wanted = np.zeros(base.size, bool)
    wanted[_codes(base, _values(base, value))] = True
    if not isinstance(column, Merged):
        return wanted.astype(float), column
    shares = np.array(column.shares) * wanted
    kept = np.bincount(column.groups, shares, minlength=column.size)
    if not kept.any():  # no share of its groups is known for any of them: they are like their groups
        shares = wanted.astype(float)
        kept = (np.bincount(column.groups, shares, minlength=column.size) > 0).astype(float)
    total = np.bincount(column.groups, shares, minlength=column.size)[list(column.groups)]
    within = np.where(total > 0, shares / np.where(total > 0, total, 1.0), column.shares)
    return kept, replace(column, shares=tuple(within.tolist()))


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

    for name, value in given.items():
        cell = _single(schema.columns[schema.domain.index(name)], value)
        if cell is not None:
            field = table.schema.field(name)
            table = table.set_column(table.column_names.index(name), field, pa.repeat(cell, table.num_rows))
    return table


def _single(column: Column, value: Any) -> pa.Scalar | None:
    """The given number, date or time as it is decoded; None if there are several, or if it stands for a code."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _values(column, value)
    if (column.base if isinstance(column, Merged) else column).labels or len(values) != 1 or values[0] is None:
        return None
    kind = column.decode(np.zeros(1, np.int64), np.random.default_rng(0)).type
    try:
        cell = pc.cast(pa.array(values), kind)[0]
    except (pa.ArrowException, TypeError):  # written in a way that only the column itself can read
        return None
    return cell if cell.is_valid else None
