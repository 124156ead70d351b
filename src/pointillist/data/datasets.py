"""The named datasets: ADULT, ADULT*, LOANS, ACS-2024, BR2000 and UK2011 from a folder of files, and the demo from code.

The environment variable ``POINTILLIST_DATA`` names the folder; ``docs/datasets.md`` lists the files in it. They are
not part of the package.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.acs import NAMES as ACS_NAMES
from pointillist.data.acs import SHARED, acs_table
from pointillist.data.csv_files import parsing
from pointillist.data.demo import demo_table
from pointillist.data.dialects import PLAIN
from pointillist.data.messages import reason
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "describe", "is_dataset", "load"]

FOLDER = "POINTILLIST_DATA"

# fmt: off
ADULT = ("sex", "income>50K", "race", "relationship", "marital-status", "workclass", "occupation",
         "education-num", "native-country", "capital-gain", "capital-loss", "hours-per-week", "age_10")
ADULT_REDUCED = ("sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10")
ADULT_PUBLIC_REDUCED = ("sex", "race", "relationship", "marital-status", "occupation", "education-num",
                        "age_10")
# The codes of education-num and capital-gain in adult.csv.gz follow the alphabet ("1", "10", "11", ..., "2"),
# so neighbours are not close there; in adult_orig.csv.gz they follow the numbers.
ADULT_ORDERED = ("capital-loss", "hours-per-week", "age_10")
ADULT_STAR_ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
# fmt: on
ADULT_ROWS = 48_813


def load(name: str) -> Table:
    """Load the dataset ``name``; :func:`describe` lists them all."""
    return DATASETS[one_of("dataset", name, NAMES, "must be the name of a dataset")][1]()


def is_dataset(name: str) -> bool:
    """Return whether ``name`` is the name of a dataset, even if its files are not there."""
    return name in DATASETS


def describe() -> list[tuple[str, str]]:
    """Return the name and a one-line description of every dataset."""
    return [(name, line) for name, (line, _) in DATASETS.items()]


def _adult(names: Sequence[str], private: bool = True) -> Table:
    """Return the private 90 % or the public 10 % of the rows, split as in the paper."""
    table = _coded(_read("adult/adult.csv.gz"), _sizes("adult/adult-domain.json"), names, ADULT_ORDERED)
    hint = "use the file of the paper's authors, which the split is defined for"
    check(len(table) == ADULT_ROWS, "adult/adult.csv.gz", len(table), f"must have {ADULT_ROWS:,} rows", hint)
    is_private = np.random.RandomState(0).binomial(1, 0.9, size=len(table)) == 1
    return table.take(is_private == private)


def _adult_star() -> Table:
    sizes = _sizes("adult/adult_orig-domain.json")
    return _coded(_read("adult/adult_orig.csv.gz"), sizes, tuple(sizes), ADULT_STAR_ORDERED)


def _loans() -> Table:
    """Return the table without ordered columns, because its codes are not documented."""
    import pyarrow as pa
    from pyarrow import csv

    sizes = _sizes("loans/loans-domain.json")
    path = _file("loans/loans.zip")
    try:
        with zipfile.ZipFile(path) as archive:
            data = csv.read_csv(pa.BufferReader(archive.read("loans.csv")), parse_options=parsing())
    except (zipfile.BadZipFile, KeyError, pa.ArrowInvalid, OSError) as error:
        rule = f"must be a zip file with a table loans.csv in it ({reason(error)})"
        raise InputError("data", str(path), rule, "fetch the file again") from None
    return _coded(data, sizes, tuple(sizes), ())


def _published(name: str) -> Table:
    """Return a table of codes as it was published: a CSV file and a file of column sizes, with no order of values."""
    sizes = _sizes(f"{name}/{name}-domain.json")
    return _coded(_read(f"{name}/{name}.csv.gz"), sizes, tuple(sizes), ())


def _acs(state: str, names: Sequence[str]) -> Table:
    person = "p_06_12cols" if state == "06" else f"p_{state}"
    return acs_table(_read(f"acs2024/{person}.parquet"), _read(f"acs2024/h_{state}.parquet"), names)


def _coded(data: pa.Table, sizes: dict[str, int], names: Sequence[str], ordered: Collection[str]) -> Table:
    """Return a table whose values already are the codes ``0 .. size - 1``."""
    absent = [name for name in names if name not in sizes]
    rule = "must have a size for every column (these are absent)"
    check(not absent, "file of column sizes", absent, rule, "use the file that belongs to the dataset")
    # The codes of the papers' tables are kept as they are, also where they are many.
    columns = [Categorical(name, tuple(range(sizes[name])), name in ordered, merge=False) for name in names]
    return Table.encode(data.select([name for name in names if name in data.column_names]), Schema(tuple(columns)))


def _file(relative: str) -> Path:
    """Return the path of a file in the folder, or say which variable to set and which file is missing."""
    folder = os.environ.get(FOLDER)
    if not folder:
        hint = "set this environment variable (docs/datasets.md says where the files come from)"
        raise InputError(FOLDER, Shown("no value"), f"must name the folder that holds {relative}", hint)
    path = Path(folder) / relative
    hint = "set this environment variable to another folder or put the file there"
    check(path.is_file(), FOLDER, folder, f"must name a folder that holds {relative}", hint)
    return path


def _read(relative: str) -> pa.Table:
    return read_file(_file(relative), dialect=PLAIN)


def _sizes(relative: str) -> dict[str, int]:
    """Read the number of values of each column, in the order of the file."""
    path = _file(relative)
    try:
        sizes = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): int(size) for name, size in sizes.items()}
    except (ValueError, AttributeError, TypeError, OSError, RecursionError) as error:
        rule = f"must be a JSON object of column names and sizes ({reason(error)})"
        raise InputError("data", str(path), rule, "fetch the file again") from None


DATASETS: dict[str, tuple[str, Callable[[], Table]]] = {
    "adult": ("UCI Adult, private 90 % of the rows, 13 attributes", partial(_adult, ADULT)),
    "adult-reduced": ("the private rows of adult over 7 attributes", partial(_adult, ADULT_REDUCED)),
    "adult-public": (
        "UCI Adult, public 10 % of the rows, 13 attributes",
        partial(_adult, ADULT, private=False),
    ),
    "adult-public-reduced": (
        "the public rows of adult over 7 attributes",
        partial(_adult, ADULT_PUBLIC_REDUCED, private=False),
    ),
    "adult-star": ("ADULT*: UCI Adult in fine bins, all rows, 14 attributes", _adult_star),
    "loans": ("LOANS: loans of a lending club, 48 attributes", _loans),
    "acs-pa": ("ACS-2024 Pennsylvania, persons with their households", partial(_acs, "42", ACS_NAMES)),
    "acs-oh": ("ACS-2024 Ohio, as acs-pa", partial(_acs, "39", ACS_NAMES)),
    "acs-ny": ("ACS-2024 New York, as acs-pa", partial(_acs, "36", ACS_NAMES)),
    "acs-ca": ("ACS-2024 California, over the columns of its short person file", partial(_acs, "06", SHARED)),
    "acs-pa-shared": ("acs-pa over the columns of acs-ca", partial(_acs, "42", SHARED)),
    "acs-ca-shared": ("the same table as acs-ca", partial(_acs, "06", SHARED)),
    "br2000": ("BR2000: an extract of Brazil's census of 2000, 14 attributes", partial(_published, "br2000")),
    "uk2011": ("UK2011: a sample of the census of England and Wales, 16 attributes", partial(_published, "uk2011")),
    "demo": ("a fictional town, drawn by code: 20,000 adults, 10 attributes; needs no files", demo_table),
}
NAMES = tuple(DATASETS)
