"""Extracts of IPUMS USA that a user brings: the paper's reduced ACS table.

The extracts of the paper (Pennsylvania 2010 and 2018, Ohio and California 2018) need a free account at
https://usa.ipums.org and may not be passed on. Choose the samples "2018 ACS" and "2010 ACS" and the variables below, in
the format CSV. The codes are those of the IPUMS code book; none is taken from the data, so that every state and year
has the same domain. The sizes of all columns are those of the paper's domain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pointillist.checks import check
from pointillist.data.acs import Attribute
from pointillist.data.dialects import PLAIN
from pointillist.data.messages import column_called
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["REDUCED", "ipums_table", "read_ipums"]


def _attribute(name: str, meaning: str, **codes: int) -> Attribute:
    return Attribute(meaning, Categorical(name, tuple(codes)), tuple(codes.values()))


def _yes_no(name: str, meaning: str) -> Attribute:
    return _attribute(name, meaning, no=1, yes=2)


REDUCED: dict[str, Attribute] = {
    one.column.name: one
    for one in (
        _attribute("SEX", "sex", male=1, female=2),
        _yes_no("FOODSTMP", "food stamps in the household"),
        _yes_no("RACAMIND", "race: American Indian or Alaska Native"),
        _yes_no("RACASIAN", "race: Asian"),
        _yes_no("RACBLK", "race: Black or African American"),
        _yes_no("RACOTHER", "race: some other race"),
        _yes_no("RACPACIS", "race: Pacific Islander"),
        _yes_no("RACWHT", "race: White"),
        _yes_no("DIFFEYE", "vision difficulty"),
        _yes_no("DIFFHEAR", "hearing difficulty"),
        _yes_no("HCOVPRIV", "private health insurance"),
        _yes_no("HINSCAID", "Medicaid"),
        _yes_no("HINSCARE", "Medicare"),
        _attribute("OWNERSHP", "ownership of the dwelling", not_applicable=0, owned=1, rented=2),
        _attribute("EMPSTAT", "employment", not_applicable=0, employed=1, unemployed=2, not_in_labor_force=3),
    )
}
"""The columns of the paper's reduced ACS table, in this order."""


def read_ipums(path: str | Path, state: int | None = None, year: int | None = None) -> Table:
    """The reduced table from a CSV extract, which may be compressed.

    Args:
        path: the file.
        state: keep the rows with this STATEFIP, for example 42 for Pennsylvania; all rows if it is left out.
        year: keep the rows with this YEAR; all rows if it is left out.
    """
    return ipums_table(read_file(Path(path), dialect=PLAIN), state, year)


def ipums_table(data: pa.Table, state: int | None = None, year: int | None = None) -> Table:
    """The reduced table from the columns of an extract.

    Args:
        data: the extract.
        state: as in :func:`read_ipums`.
        year: as in :func:`read_ipums`.
    """
    wanted = {name: value for name, value in (("STATEFIP", state), ("YEAR", year)) if value is not None}
    absent = [name for name in (*REDUCED, *wanted) if name not in data.column_names]
    rule = "must have the columns of the paper's reduced table (these are absent)"
    check(not absent, "IPUMS extract", absent, rule, "add these variables to the extract")
    kept = np.ones(data.num_rows, bool)
    for name, value in wanted.items():
        kept &= _numbers(data, name).to_numpy(zero_copy_only=False) == value
    shown = Shown(f"none with {wanted}")
    check(bool(kept.any()), "IPUMS extract", shown, "must have rows", "check the state, the year and the samples")
    codes = tuple(one.encode(_numbers(data, name))[kept] for name, one in REDUCED.items())
    return Table(Schema(tuple(one.column for one in REDUCED.values())), codes)


def _numbers(data: pa.Table, name: str) -> pa.Array:
    """A column as whole numbers, which a CSV file has as texts."""
    import pyarrow as pa

    try:
        return data[name].combine_chunks().cast(pa.int64())
    except pa.ArrowInvalid:
        rule, hint = "must hold the whole-number codes of the code book", "choose CSV and no labels for the extract"
        raise InputError(column_called(name), Shown("other values"), rule, hint) from None
