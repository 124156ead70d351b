"""Probes: the code of a cell follows from that cell alone, by rules that are fixed beforehand."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.data import probes
from pointillist.data.probes import (
    CENTRE,
    CODES,
    EITHER,
    KIND_OF_CODE,
    KINDS,
    ProbedSource,
    code_of_text,
    codes_of,
    codes_of_kind,
    number_cell,
    years_of,
)


def kind_of(text: str | None) -> str:
    return KINDS[KIND_OF_CODE[code_of_text(text)]]


def place_of(text: str) -> int:
    code = code_of_text(text)
    return code - codes_of_kind(KINDS[KIND_OF_CODE[code]]).start


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (None, "missing"), ("", "missing"), (" ? ", "missing"), ("NA", "missing"), (".", "missing"),
        ("5", "integer"), ("-12", "integer"), ("5.0", "integer"), (" 7 ", "integer"), ("0", "integer"),
        ("0.25", "number"), ("-1e-3", "number"), ("1e300", "number"), ("99999999999999999999", "number"),
        ("007", "text"), ("1e999", "text"), ("inf", "text"), ("1,5", "text"), ("hello", "text"), ("1.2.3", "text"),
        ("2020-02-29", "%Y-%m-%d"), ("2021-02-29", "text"), ("31.12.1999", "%d.%m.%Y"), ("31/12/1999", "%d/%m/%Y"),
        ("12/31/1999", "%m/%d/%Y"), ("01/02/1999", EITHER), ("2020/01/02", "%Y/%m/%d"), ("02-01-2020", "%d-%m-%Y"),
        ("2020-01-02T03:04", "%Y-%m-%dT%H:%M"), ("2020-01-02 03:04:05", "%Y-%m-%d %H:%M:%S"),
        ("9:05", "%H:%M"), ("23:59:59", "%H:%M:%S"), ("24:00", "text"),
    ],
)  # fmt: skip
def test_kinds(text: str | None, kind: str) -> None:
    assert kind_of(text) == kind


def test_codes_are_a_partition() -> None:
    assert len(KIND_OF_CODE) == CODES
    assert [code for kind in KINDS for code in range(CODES)[codes_of_kind(kind)]] == list(range(CODES))


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**14), 10**14))
def test_a_number_lies_in_its_cell(number: float) -> None:
    low, high = number_cell(place_of(repr(number)))
    if abs(number) < 1e-6:
        assert low == high == 0.0
    elif abs(number) < 1e15:
        assert (low <= number < high) if number > 0 else (low < number <= high)
    else:
        assert math.copysign(1e15, number) in (low, high)


@given(st.dates(dt.date(1000, 1, 1)))
def test_a_date_lies_in_its_years(date: dt.date) -> None:
    first, last = years_of(place_of(date.isoformat()))
    assert first <= date.year <= last


def test_years_are_single_from_1900_to_2099() -> None:
    assert all(years_of(place_of(f"{year}-06-01")) == (year, year) for year in range(1900, 2100))
    assert years_of(0) == (1, 999)
    assert years_of(len(probes.YEARS))[1] == 9999


@given(st.text(max_size=12))
def test_every_text_has_a_code(text: str) -> None:
    assert 0 <= code_of_text(text) < CODES


@pytest.mark.parametrize(
    ("cells", "kinds"),
    [
        (pa.array([1, None, -5], pa.int16()), ["integer", "missing", "integer"]),
        (pa.array([1.5, float("nan"), None, float("inf")]), ["number", "missing", "missing", "number"]),
        (pa.array([Decimal("1.25"), None]), ["number", "missing"]),
        (pa.array([dt.date(2020, 1, 1), None]), ["%Y-%m-%d", "missing"]),
        (pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("ns", "UTC")), ["%Y-%m-%dT%H:%M", "missing"]),
        (pa.array([60, None], pa.duration("s")), ["number", "missing"]),
        (pa.array([True, None]), ["text", "missing"]),
        (pa.array(["x", None, "3"]).dictionary_encode(), ["text", "missing", "integer"]),
        (pa.array([], pa.string()), []),
    ],
)
def test_typed_columns(cells: pa.Array, kinds: list[str]) -> None:
    codes = codes_of("c", pa.chunked_array([cells]))
    assert [KINDS[KIND_OF_CODE[code]] for code in codes] == kinds


def test_a_duration_is_counted_in_seconds() -> None:
    codes = codes_of("c", pa.chunked_array([pa.array([90_000_000], pa.duration("us"))]))
    assert number_cell(int(codes[0]) - codes_of_kind("number").start) == (50.0, 100.0)


def test_the_values_of_a_column_are_counted_without_missing_and_long_ones() -> None:
    cells = ["b", "a", None, "", "b", "x" * 200, "y" * 201, "?"]
    source = ProbedSource(pa.table({"v": cells, "w": [1] * 8}), ("v", "w"))
    values, counts = source.values_of("v")
    assert dict(zip(values, counts.tolist(), strict=True)) == {"b": 2, "a": 1, "x" * 200: 1, "?": 1}
    assert source.rows == 8
    assert source.schema.domain.sizes == (CODES, CODES)
    (batch,) = source.batches()
    assert [len(codes) for codes in batch] == [8, 8]
    assert np.all(np.asarray(batch[1]) == codes_of_kind("integer").start + CENTRE + 19)


def test_the_codes_of_a_row_do_not_depend_on_other_rows() -> None:
    """As the sensitivity asks for: one row more changes nothing about the others."""
    cells = ["5", "2020-01-01", "x", None, "1.5", "03/04/2020"]
    whole = codes_of("c", pa.chunked_array([cells]))
    for n in range(1, len(cells)):
        assert np.array_equal(codes_of("c", pa.chunked_array([cells[:n]])), whole[:n])
