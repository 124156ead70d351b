"""The parts that columns of numbers share: numbers from any array, and the spellings of missing ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import (
    MISSING_NUMBERS,
    Column,
    Gapped,
    is_missing,
    missing_strings,
    number_in,
)
from pointillist.data.columns.types import arrow_type
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "as_numbers",
    "check_missing_as",
    "float32_above",
    "increasing_numbers",
    "missing_numbers",
    "text_for_missing",
]


def as_numbers(column: Gapped, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of an array as 64-bit floats, 0 where one is missing, and where they are missing.

    Args:
        column: The column, for the spellings of missing values and for messages.
        array: Numbers, or texts that spell numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(array.type):
        array = pc.utf8_trim_whitespace(array)
    nulls = is_missing(array, missing_strings(column, MISSING_NUMBERS))
    if nulls.any():
        array = pc.if_else(pa.array(nulls), pa.scalar(None, array.type), array)
    try:
        numbers = pc.cast(array, pa.float64(), safe=False)
    except pa.ArrowInvalid:
        value = next(v.as_py() for v in array if not _is_number(v))
        hint = "correct the file, list it under missing_values, or make the column categorical"
        raise InputError(column_called(column.name), fragment(value), "must hold numbers", hint) from None
    nulls = is_missing(numbers, ())  # NaN can be written in many ways
    x = numbers.to_numpy(zero_copy_only=False)
    single = pa.types.is_float32(array.type)
    for gap in missing_numbers(column):
        nulls = nulls | (x.astype(np.float32) == np.float32(gap) if single else x == gap)
    return np.where(nulls, 0.0, x), nulls


def missing_numbers(column: Gapped) -> tuple[float, ...]:
    """Return the numbers that stand for missing in a column."""
    found = {number_in(text) for text in missing_strings(column, ())}
    return tuple(sorted(number for number in found if number is not None))


def text_for_missing(column: Gapped) -> bool:
    """Return whether missing values are decoded to a text that is no number, so that all numbers become texts."""
    return column.missing_as is not None and number_in(column.missing_as) is None


def check_missing_as(column: Gapped, dtype: str) -> None:
    """Refuse a number for missing values that the type of the column cannot hold."""
    if column.missing_as is None or number_in(column.missing_as) is None:
        return
    import pyarrow as pa

    try:
        pa.scalar(column.missing_as).cast(arrow_type(dtype))
        fits = True
    except pa.ArrowException:
        fits = False
    rule, hint = f"must be a number that {dtype} holds, or a text", "change it, or the dtype of the column"
    check(fits, f"{column_called(column.name)}: missing_as", fragment(column.missing_as), rule, hint)


def float32_above(x: np.ndarray) -> np.ndarray:
    """Return the smallest 32-bit numbers that are not below ``x``."""
    near = x.astype(np.float32)
    return np.where(near < x, np.nextafter(near, np.float32(np.inf)), near)


def _is_number(value: pa.Scalar) -> bool:
    import pyarrow as pa

    try:
        value.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def increasing_numbers(column: Column, codes: np.ndarray) -> np.ndarray | None:
    """Return a number that each code stands for; None if they do not stand for increasing numbers.

    Args:
        column: The column.
        codes: Some of its codes, in order, without that of missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plain: Any = column
    if getattr(plain, "missing_as", None) is not None:  # numbers become texts next to a missing value that is one
        plain = replace(plain, missing_as=None)
    decoded = plain.decode(codes, np.random.default_rng(0))
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(is_kind(decoded.type) for is_kind in kinds):
        return None
    values = pc.cast(decoded, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    increasing = bool(np.isfinite(values).all()) and bool((np.diff(values) > 0).all())
    return values if increasing else None
