"""The loader of IPUMS extracts, on a small made-up one."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from pointillist.data.ipums import REDUCED, read_ipums
from pointillist.errors import InputError

CODES = {name: one.codes for name, one in REDUCED.items()}


def extract(folder: Path, drop: str = "", **changed: object) -> Path:
    """A made-up extract: 40 rows of 2010 and 2018 in two states, with some columns that are not wanted."""
    rng = np.random.default_rng(0)
    columns = {"YEAR": np.repeat([2010, 2018], 20), "SERIAL": np.arange(40), "STATEFIP": np.tile([42, 39], 20)}
    columns |= {name: rng.choice([int(c) for c in codes], 40) for name, codes in CODES.items()}  # type: ignore[arg-type]
    for name, code in changed.items():
        columns[name] = np.full(40, code)
    columns.pop(drop, None)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"
    path = folder / "usa_00001.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_an_extract_is_read(tmp_path: Path) -> None:
    table = read_ipums(extract(tmp_path, SEX=2, EMPSTAT=3), state=42, year=2018)
    assert len(table) == 10
    assert table.domain.names == tuple(REDUCED)
    assert set(table.codes[0].tolist()) == {1}
    assert table.schema.columns[0].to_dict()["values"] == ["male", "female"]
    assert set(table.codes[-1].tolist()) == {3}


def test_all_rows_are_kept_without_a_state_and_a_year(tmp_path: Path) -> None:
    assert len(read_ipums(extract(tmp_path))) == 40


@pytest.mark.parametrize(
    ("drop", "changed", "options", "message"),
    [
        ("RACWHT", {}, {}, r"IPUMS extract must have the columns of the paper's reduced table.*RACWHT"),
        ("YEAR", {}, {"year": 2018}, r"these are absent.*YEAR"),
        ("", {"SEX": 9}, {}, r"column 'SEX' must only hold codes of the code book, got 9"),
        ("", {"SEX": "male"}, {}, r"column 'SEX' must hold the whole-number codes of the code book"),
        ("", {}, {"state": 6}, r"IPUMS extract must have rows"),
    ],
)
def test_what_is_no_such_extract_is_refused(
    tmp_path: Path, drop: str, changed: dict[str, object], options: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_ipums(extract(tmp_path, drop, **changed), **options)


def test_the_sizes_are_those_of_the_papers_domain() -> None:
    folder = Path(os.environ.get("POINTILLIST_DATA") or "nowhere")
    path = folder / "acs2024" / "paper_acs_PA-domain.json"
    if not path.is_file():
        pytest.skip("needs the paper's domain file: set POINTILLIST_DATA")
    sizes = json.loads(path.read_text())
    assert {name: one.column.size for name, one in REDUCED.items()} == {name: sizes[name] for name in REDUCED}
