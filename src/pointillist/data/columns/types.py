"""The types that decoded columns can have, by the names that schema files use for them.

Names are those of Arrow (``int16``, ``date32``, ``timestamp[us, tz=Europe/Berlin]``, ``decimal(10, 2)``),
``category`` for values kept as positions in a list, ``enum`` for that of polars, and the names of the nullable types of
pandas (``Int64``, ``boolean``, ``string[python]``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pointillist.data.messages import fragment
from pointillist.errors import InputError, is_near, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DTYPES",
    "NULLABLE",
    "NUMBERS",
    "arrow_type",
    "check_dtype",
    "decimals_of",
    "dense",
    "dtype_of",
    "dtypes_of",
    "nullable",
]

NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
NULLABLE = {
    **{name.capitalize().replace("Uint", "UInt"): name for name in NUMBERS},
    "boolean": "bool",
    "string[python]": "string",
    "string[pyarrow]": "string",
}
"""The nullable types of pandas, and the Arrow type that holds their values."""
TEMPORAL = (
    "date32", "date64", "time32[s]", "time32[ms]", "time64[us]", "time64[ns]", "timestamp[s]", "timestamp[ms]",
    "timestamp[us]", "timestamp[ns]", "duration[s]", "duration[ms]", "duration[us]", "duration[ns]",
)  # fmt: skip
DTYPES = ("string", "large_string", "category", "enum", "bool", *NUMBERS, *NULLABLE, *TEMPORAL, "null")
"""The names of types, except those with a time zone or digits of their own."""
EXAMPLES = ("string", "category", "bool", "int64", "float64", "Int64", "date32", "timestamp[us]", "decimal(10, 2)")
ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")
DECIMAL = re.compile(r"decimal(?:128)?\(([0-9]{1,2}), ?([0-9]{1,2})\)")


def check_dtype(where: str, dtype: Any) -> None:
    """Refuse a type that is not known; an empty name stands for the usual type of a column.

    Args:
        where: The column and the key, for messages.
        dtype: The name of the type.
    """
    if not isinstance(dtype, str) or (dtype != "" and not _known(dtype)):
        word = str(fragment(dtype)).strip("'")
        hint = nearest(word, DTYPES) if is_near(word, DTYPES) else "docs/schema.md lists them"
        raise InputError(where, fragment(dtype), f"must be a type such as {', '.join(EXAMPLES)}", hint)


def _known(dtype: str) -> bool:
    return dtype in DTYPES or decimals_of(dtype) is not None or ZONED.fullmatch(dtype) is not None


def decimals_of(dtype: str) -> tuple[int, int] | None:
    """Return the number of digits of a type of decimals, and of those after the point; None for other types.

    Args:
        dtype: The name of a type, such as ``decimal(12, 2)``.
    """
    found = DECIMAL.fullmatch(dtype)
    digits, after = (int(found[1]), int(found[2])) if found else (0, 0)
    return (digits, after) if 1 <= digits <= 38 and after <= digits else None


def arrow_type(dtype: str) -> pa.DataType:
    """Return the Arrow type of a name; ``category`` and ``enum`` are dictionaries of texts.

    Args:
        dtype: A name that :func:`check_dtype` knows.
    """
    import pyarrow as pa

    dtype = NULLABLE.get(dtype, dtype)
    if (decimals := decimals_of(dtype)) is not None:
        return pa.decimal128(*decimals)
    if found := ZONED.fullmatch(dtype):
        return pa.timestamp(found[1], found[2])
    if dtype in ("category", "enum"):
        return pa.dictionary(pa.int32(), pa.string())
    if dtype in ("date32", "date64"):
        return pa.date32() if dtype == "date32" else pa.date64()
    return {"bool": pa.bool_(), "string": pa.string()}.get(dtype) or pa.type_for_alias(dtype)


def dtype_of(kind: pa.DataType) -> str:
    """Return the name of an Arrow type; empty if a schema has none for it.

    Args:
        kind: The type of a column of an Arrow table.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_string_view(kind):
        return "large_string"
    text = {"date32[day]": "date32", "date64[ms]": "date64", "float": "float32", "double": "float64"}
    name = text.get(str(kind), str(kind)).replace("decimal128", "decimal")
    return name if _known(name) else ""


def dtypes_of(data: Any) -> dict[str, str]:
    """Return the names of the types of a table's columns; empty where a schema has none. No cell is read.

    Args:
        data: A pandas, polars or Arrow table.
    """
    if type(data).__module__.partition(".")[0] == "pandas":
        import pyarrow as pa

        head = pa.Schema.from_pandas(dense(data.iloc[:0]), preserve_index=False)
        names = {one.name: _pandas_name(data[key].dtype) or dtype_of(one.type) for key, one in _by_key(data, head)}
        return {name: "" if dtype == "null" else dtype for name, dtype in names.items()}  # objects of any type
    if type(data).__module__.partition(".")[0] == "polars":
        import polars

        found = data.schema
        arrow = data.clear().to_arrow().schema
        return {
            name: "enum" if isinstance(found[name], polars.Enum) else dtype_of(arrow.field(name).type) for name in found
        }
    return {one.name: dtype_of(one.type) for one in data.schema}


def dense(data: Any) -> Any:
    """Return a pandas data frame without sparse columns, which Arrow does not know.

    Args:
        data: The data frame.
    """
    import pandas as pd

    kinds = zip(data.columns, data.dtypes, strict=True)
    sparse = {name: kind.subtype for name, kind in kinds if isinstance(kind, pd.SparseDtype)}
    return data.astype(sparse) if sparse else data


def _by_key(data: Any, head: pa.Schema) -> list[tuple[Any, pa.Field]]:
    return [(key, head.field(n)) for n, key in enumerate(data.columns)]


def _pandas_name(kind: Any) -> str:
    """Return the name of a nullable type of pandas; empty for others."""
    import pandas as pd

    if isinstance(kind, pd.StringDtype):
        return f"string[{kind.storage}]" if kind.na_value is pd.NA else "string"
    return str(kind) if str(kind) in NULLABLE else ""


def nullable(dtype: str, missing: bool) -> Any:
    """Return the nullable type of pandas that a decoded column has; None for the usual types of pandas.

    Args:
        dtype: The type of the decoded column.
        missing: Whether it has missing values, which the usual types for whole numbers and booleans cannot hold.
    """
    import pandas as pd

    if dtype in NULLABLE:
        return pd.api.types.pandas_dtype(dtype)
    whole = [
        name for name, plain in NULLABLE.items() if plain == dtype and plain not in ("string", "float32", "float64")
    ]
    return pd.api.types.pandas_dtype(whole[0]) if missing and whole else None
