"""The schema of tables whose types list every value: pandas categories, polars enums and booleans.

Only types are read, never a cell, so there is nothing to review.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pointillist.data.columns import Categorical
from pointillist.data.messages import column_called
from pointillist.data.schema import Schema
from pointillist.errors import InputError, Shown

__all__ = ["declared_schema"]


def declared_schema(data: Any) -> Schema:
    """Return the schema that the types of a table declare; refuse a table with columns of other types.

    Args:
        data: A pandas data frame with category and boolean columns, or a polars one with enum and boolean columns.
    """
    columns = []
    listing = "enum" if type(data).__module__.partition(".")[0] == "polars" else "category"
    for name, values, ordered, missing in _declared(data):
        if values is None:
            hint = "draft one with draft_schema(table), review it, and pass it as schema"
            rule = f"must be given, since the type of {column_called(name)} does not list its values"
            raise InputError("schema", Shown("none"), rule, hint)
        dtype = "" if values == (False, True) else listing
        columns.append(Categorical(name, values, ordered=ordered, missing=missing, dtype=dtype))
    return Schema(tuple(columns))


def _declared(data: Any) -> Iterator[tuple[str, tuple[Any, ...] | None, bool, bool]]:
    """Yield name, values (None if the type does not list them), whether they are ordered, and may be missing."""
    kind = type(data).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(data, "columns"):
        yield from (_of_pandas(str(name), dtype) for name, dtype in zip(data.columns, data.dtypes, strict=True))
    elif kind == "polars" and hasattr(data, "schema"):
        yield from (_of_polars(name, dtype) for name, dtype in data.schema.items())
    else:
        hint = "pass schema=Schema.load(...), or draft one with draft_schema(table) and review it"
        raise InputError("schema", Shown("none"), "must be given with a table of this kind", hint)


def _of_pandas(name: str, dtype: Any) -> tuple[str, tuple[Any, ...] | None, bool, bool]:
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
        values = tuple(dtype.categories.tolist())
        good = len({type(one) for one in values}) == 1 and isinstance(values[0], (str, int))
        return name, values if good else None, bool(dtype.ordered), True
    if pd.api.types.is_bool_dtype(dtype):
        return name, (False, True), False, isinstance(dtype, pd.BooleanDtype)
    return name, None, False, False


def _of_polars(name: str, dtype: Any) -> tuple[str, tuple[Any, ...] | None, bool, bool]:
    import polars as pl

    if isinstance(dtype, pl.Enum):
        return name, tuple(dtype.categories.to_list()), False, True
    return name, (False, True) if dtype == pl.Boolean else None, False, True
