"""Files of SPSS, Stata and SAS, written by pyreadstat: types, labels and declared missing values."""

from __future__ import annotations

import builtins
import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from pointillist.data.statistics_files import read_codebook
from pointillist.data.table import read_file
from pointillist.errors import InputError

LABELS = {"sex": {1: "male", 2: "female", 3: "other", 9: "refused"}, "age": {99: "unknown"}, "part": {1: "one"}}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": [1.0, 2.0, 9.0, None],
            "age": [20.0, 30.0, 99.0, 41.0],
            "part": [1.0, 2.0, 3.0, 1.0],
            "height": [1.5, 1.75, None, 2.0],
            "name": ["a", "b", "", "d"],
            "day": [datetime.date(2020, 1, n + 1) for n in range(4)],
        }
    )


def spss(path: Path) -> Path:
    missing: Any = {"sex": [9], "age": [{"lo": 90, "hi": 100}]}
    about = {"sex": "Sex of the person"}
    pyreadstat.write_sav(people(), path, column_labels=about, variable_value_labels=LABELS, missing_ranges=missing)
    return path


def test_spss_labels_are_the_values(tmp_path: Path) -> None:
    table = read_file(spss(tmp_path / "t.sav"))
    assert table.column("sex").to_pylist() == ["male", "female", "refused", None]
    assert table.column("sex").chunk(0).dictionary.to_pylist() == ["male", "female", "other", "refused"]
    assert table.column("age").to_pylist() == [20, 30, None, 41]  # declared missing, with a label for that alone
    assert table.column("part").to_pylist() == [1, 2, 3, 1]  # some values have no label
    assert table.column("height").to_pylist() == [1.5, 1.75, None, 2.0]
    assert table.column("name").to_pylist() == ["a", "b", "", "d"]
    assert table.column("day").type == pa.date32()
    assert table.schema.field("sex").metadata == {b"description": b"Sex of the person"}
    assert table.schema.field("age").metadata is None


def test_stata_labels_and_missing_letters(tmp_path: Path) -> None:
    frame = people().astype({"age": object})
    frame.loc[2, "age"] = "a"  # written .a
    labels = {"sex": LABELS["sex"]}
    pyreadstat.write_dta(frame, tmp_path / "t.dta", variable_value_labels=labels, missing_user_values={"age": ["a"]})
    table = read_file(tmp_path / "t.dta")
    assert table.column("sex").to_pylist() == ["male", "female", "refused", None]
    assert table.column("age").to_pylist() == [20, 30, None, 41]
    assert table.column("day")[0].as_py() == datetime.date(2020, 1, 1)


def test_sas_transport_files(tmp_path: Path) -> None:
    pyreadstat.write_xport(people(), tmp_path / "t.xpt")
    table = read_file(tmp_path / "t.xpt")
    assert table.column("sex").to_pylist() == [1, 2, 9, None]
    assert table.column("height").to_pylist() == [1.5, 1.75, None, 2.0]
    assert table.column("day")[3].as_py() == datetime.date(2020, 1, 4)


def test_equal_labels_are_told_apart(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels={"x": {1: "yes", 2: "yes", 3: "no"}})
    assert read_file(tmp_path / "t.sav").column("x").to_pylist() == ["yes (1)", "yes (2)", "no"]


def test_a_code_book_is_read_without_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spss(tmp_path / "t.sav")
    asked: list[bool] = []
    real = pyreadstat.read_sav
    monkeypatch.setattr(pyreadstat, "read_sav", lambda *a, **k: asked.append(k["metadataonly"]) or real(*a, **k))
    book = read_codebook(path)
    assert asked == [True]
    kinds = {"sex": "number", "age": "number", "part": "number", "height": "number", "name": "string", "day": "date"}
    assert book.kinds == kinds
    assert book.values_of("sex") == ("male", "female", "other", "refused")
    assert book.values_of("age") == ()
    assert book.descriptions == {"sex": "Sex of the person"}
    assert book.is_declared_missing("age", 95)
    assert not book.is_declared_missing("age", "95")


@pytest.mark.parametrize("ending", ["sav", "dta", "sas7bdat", "xpt", "por", "zsav"])
def test_damaged_files_are_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(b"$FL2" + b"secret" * 100)
    with pytest.raises(InputError, match="must be a readable table") as caught:
        read_file(path)
    assert "secret" not in str(caught.value)


def test_the_package_is_named_if_it_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spss(tmp_path / "t.sav")
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "pyreadstat":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"needs the package pyreadstat, .* `pip install pointillist\[statistics\]`"):
        read_file(path)
