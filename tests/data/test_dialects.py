"""CSV files as other programs write them: recognised, overridden, and never with a row less."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.planted import SECRET, shows_too_much

from pointillist.data.dialects import PLAIN, Dialect
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table, dialect_of, read_file
from pointillist.errors import InputError

ROWS = [("Zoë", "1.5", "x,y"), ("Ada", "-20.25", 'say "hi"'), ("Bo", "", "two\nlines"), ("Cy", "3", "a;b|c")]


def written(separator: str, decimal: str = ".", header: bool = True) -> str:
    rows = [("name", "height", "note"), *ROWS] if header else ROWS
    lines = []
    for row in rows:
        cells = [row[0], row[1].replace(".", decimal), '"' + row[2].replace('"', '""') + '"']
        if decimal == separator:
            cells[1] = f'"{cells[1]}"'
        lines.append(separator.join(cells))
    return "\n".join(lines) + "\n"


def saved(folder: Path, text: str, name: str = "t.csv", encoding: str = "utf-8") -> Path:
    """A file in an encoding, compressed as its name says."""
    content = text.encode(encoding)
    if name.endswith(".zst"):
        content = pa.compress(content, "zstd", asbytes=True)
    packers = {".gz": gzip.compress, ".bz2": bz2.compress}
    (folder / name).write_bytes(packers.get(Path(name).suffix, bytes)(content))
    return folder / name


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_dialects_are_recognised(separator: str, encoding: str, decimal: str, tmp_path: Path) -> None:
    path = saved(tmp_path, written(separator, decimal), encoding=encoding)
    given = Dialect(decimal=",") if (separator, decimal) == (",", ",") else None  # "1,500" could be thousands
    found = dialect_of(path, given)
    assert found is not None
    assert (found.separator, found.decimal, found.header) == (separator, decimal, True)
    assert read_file(path, dialect=given).to_pylist() == [
        {"name": name, "height": height, "note": note} for name, height, note in ROWS
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.tsv.bz2", "t.txt.zst", "t.csv.zst"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_names_and_compression(name: str, encoding: str, tmp_path: Path) -> None:
    path = saved(tmp_path, written("\t"), name, encoding)
    assert [tuple(row.values()) for row in read_file(path).to_pylist()] == ROWS


def test_what_is_printed_has_no_cells(tmp_path: Path) -> None:
    text = f"{SECRET};{SECRET}b\n" + f"{SECRET};1,5\n" * 5 + "é;2,5\n"
    found = dialect_of(saved(tmp_path, text, encoding="cp1252"))
    assert found is not None
    assert found.describe() == "semicolon, cp1252, decimal comma"
    assert PLAIN.describe() == "comma, UTF-8"
    assert Dialect("\t", "utf-16", ".", False).describe() == "tab, UTF-16, no header"
    assert Dialect("~", "utf-8").describe() == "separator '~', UTF-8"


def test_files_without_a_header(tmp_path: Path) -> None:
    path = saved(tmp_path, "x,1.5\ny,2\nz,3\n")
    assert read_file(path).to_pydict() == {"column1": ["x", "y", "z"], "column2": ["1.5", "2", "3"]}
    assert read_file(path, dialect=Dialect(header=True)).to_pydict() == {"x": ["y", "z"], "1.5": ["2", "3"]}
    texts = saved(tmp_path, "x,y\nu,v\nu,w\n", "texts.csv")
    assert read_file(texts).column_names == ["x", "y"]
    assert read_file(texts, dialect=Dialect(header=False)).num_rows == 3
    years = saved(tmp_path, "town,2019,2020,2021\n" + "x,1,2,3\n" * 4, "years.csv")
    assert read_file(years).column_names == ["town", "2019", "2020", "2021"]


def test_every_setting_can_be_overridden(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b,c\n1;2,3\n4;5,6\n")
    assert read_file(path).column_names == ["a", "b,c"]
    assert read_file(path, dialect=Dialect("comma")).column_names == ["a;b", "c"]
    assert read_file(path).column("b,c").to_pylist() == ["2.3", "5.6"]
    assert read_file(path, dialect=Dialect(decimal=".")).column("b,c").to_pylist() == ["2,3", "5,6"]
    accents = saved(tmp_path, "a,b\né,1\n", "accents.csv")
    assert read_file(accents, dialect=Dialect(encoding="latin1")).column("a").to_pylist() == ["Ã©"]


def test_thousands_with_decimal_commas(tmp_path: Path) -> None:
    path = saved(tmp_path, "pay;day;code\n1.234,50;01.02.2020;0.123\n-1.000.000,5;31.12.2020;1.2345\n2.500;1,5e3;,5\n")
    assert read_file(path).to_pydict() == {
        "pay": ["1234.50", "-1000000.5", "2500"],
        "day": ["01.02.2020", "31.12.2020", "1.5e3"],
        "code": ["0.123", "1.2345", ".5"],
    }


def test_decimal_commas_change_a_cell_whatever_the_others_are(tmp_path: Path) -> None:
    for other in ("x", "2,5", ""):
        path = saved(tmp_path, f"a;b\n1,5;3,5\n{other};3,5\n")
        assert read_file(path).column("a")[0].as_py() == "1.5"


def test_rows_that_are_too_long_are_refused_not_dropped(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b\n" + "1;2\n" * 9 + f"1;2;{SECRET}\n" + "1;2\n" * 9)
    with pytest.raises(InputError, match=r"row 11, the header being row 1, has 3 cells, not 2") as caught:
        read_file(path)
    assert not shows_too_much(str(caught.value))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.bz2"])
def test_quotes_that_never_end_are_seen_in_every_encoding(encoding: str, name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, 'a;b\n1;é\n1;"x\n2;y\n', name, encoding)
    with pytest.raises(InputError, match="a quotation mark opens a cell that never ends"):
        read_file(path)
    closed = saved(tmp_path, 'a;b\n1;é\n1;"x\n2;y"\n', name, encoding)
    assert read_file(closed).num_rows == 2


def test_text_in_another_encoding_after_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 50_000 + b"\xe9,2\n")
    with pytest.raises(InputError, match=r"\(it holds text that is not UTF-8\), .*; check the file, or name its encod"):
        read_file(path)
    assert read_file(path, dialect=Dialect(encoding="cp1252")).num_rows == 50_001
    path.write_bytes(b"a,b\n\xe9,1\n" + b"x,1\n" * 50_000 + b"\x81,2\n")
    with pytest.raises(InputError, match=r"\(it holds text that is not cp1252\)"):
        read_file(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"separator": ";;"}, "separator must be one character, or one of comma, semicolon, tab, pipe, got ';;'"),
        ({"separator": '"'}, "separator must be one character"),
        ({"separator": 3}, "separator must be one character"),
        ({"encoding": "klingon"}, "encoding must be an encoding that Python knows, got 'klingon'; give for example"),
        ({"encoding": "base64"}, "encoding must be an encoding that Python knows"),
        ({"encoding": 8}, "encoding must be an encoding that Python knows"),
        ({"decimal": "comma"}, 'decimal must be "." or ",", got \'comma\''),
        ({"header": 1}, "header must be true or false, got 1"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Dialect(**settings)
    assert str(caught.value).startswith(message)


def test_words_for_separators() -> None:
    marks = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", r"\t": "\t", "~": "~"}
    assert {word: Dialect(word).separator for word in marks} == marks
    assert Dialect().is_set is False
    assert Dialect("tab").is_set


def test_own_files_come_back(tmp_path: Path) -> None:
    """Names and cells with other separators are read as they were written."""
    schema = Schema((Categorical("a;b", ("x;y", "u;v")), Categorical("c|d", ("1;5", "2;5"))))
    table = Table(schema, (np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])))
    table.write(tmp_path / "t.csv")
    back = Table.read(tmp_path / "t.csv", schema)
    assert [codes.tolist() for codes in back.codes] == [[0, 1, 1, 0], [0, 1, 0, 1]]
