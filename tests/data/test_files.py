"""Files as they come: no row is lost, no row is shown, nothing takes more memory than it may."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.planted import SECRET, shows_too_much

from pointillist.data import texts
from pointillist.data.draft import draft_schema
from pointillist.data.files import private_mode, write_text
from pointillist.data.messages import MOST_SHOWN, fragment, reason
from pointillist.data.parquet import promised_bytes
from pointillist.data.parquet_footer import Chunk, chunks_of
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table, read_file, write_file
from pointillist.errors import InputError, PointillistError


def csv(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    content = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


# --- messages


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("short", "'short'"),
        ("x" * 60, repr("x" * 60)),
        ("x" * 61, repr("x" * 57) + "..."),
        ("\ud800" * 100, repr("\ud800" * 9) + "..."),
        (10**5000, "a value of type int"),
        ([1, 2], "[1, 2]"),
        (["y" * 100], "['" + "y" * 55 + "..."),
        (None, "None"),
    ],
    ids=range(8),
)
def test_fragments_are_short(value: Any, shown: str) -> None:
    assert fragment(value) == shown
    assert len(fragment(value)) <= MOST_SHOWN + 5
    assert fragment(value).isprintable()


def test_reasons_never_repeat_what_a_library_says() -> None:
    assert reason(pa.ArrowInvalid(f"CSV parse error: Row #7: Expected 2 columns, got 3: {SECRET}")) == (
        "row 7, the header being row 1, has 3 cells, not 2"
    )
    for error in (ValueError(SECRET), OSError(SECRET), pa.ArrowInvalid(SECRET), MemoryError(SECRET), KeyError(SECRET)):
        assert "<00" not in reason(error)
    assert reason(PermissionError(13, SECRET)) == "Permission denied"


ROW = "1," + SECRET + ",3\n"


@pytest.mark.parametrize(
    "content",
    [
        "a,b,c\n" + ROW * 3 + '1,"' + SECRET + ",3\n" + ROW * 400,  # one stray quote, never closed
        "a,b,c\n" + ROW * 3 + '1,"' + SECRET + ",3\n" + ROW * 400 + '2",x,3\n' + ROW,  # closed by another one
        "a,b,c\n" + ROW * 3 + '1,"' + SECRET + ",3\n" + ROW * 3000,  # longer than a block
        '"a,b,c\n' + ROW * 400 + '",b,c\n' + ROW,  # in the header
        'a,b,"c\n' + ROW * 400,
        "a,b,c\n" + ROW + SECRET + "\n" + ROW,  # too few cells
        "a,b,c\n" + ROW + f"{SECRET},{SECRET},{SECRET},{SECRET}\n",
        f"a,{SECRET},c\n" + ROW,
        f"a,{SECRET},{SECRET}\n" + ROW,
        b"a,b,c\n1," + SECRET.encode() + b"\xff,3\n",
        b"a,b,\xff" + SECRET.encode() + b"\n1,2,3\n",
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_stray_quote_shows_no_rows(content: str | bytes, ending: str, tmp_path: Path) -> None:
    schema = Schema((Categorical("a", (1, 2)), Categorical("b", ("x", "y")), Numeric("c", (0, 1, 9))))
    path = csv(tmp_path, content, f"t.{ending}")
    with pytest.raises(InputError) as caught:
        Table.read(path, schema)
    message = str(caught.value)
    assert not shows_too_much(message)
    assert message.isprintable()
    assert len(message) < 400 + len(str(path))


def test_the_row_of_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n" + "1,2\n" * 5 + "secret\n")
    with pytest.raises(InputError) as caught:
        read_file(path)
    assert str(caught.value) == (
        "data must be a readable table (row 7, the header being row 1, has 1 cells, not 2), "
        f"got {str(path)!r}; check the file."
    )


def test_cells_of_frames_are_not_shown() -> None:
    for frame in (pd.DataFrame({"c": [SECRET, 1]}), pd.DataFrame({SECRET: [SECRET, 1]})):
        with pytest.raises(InputError, match="must have columns of one type each") as caught:
            draft_schema(frame)
        assert not shows_too_much(str(caught.value))


# --- rows


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a\nx\n\ny\n", ["x", "", "y"]),
        ("a\n\nx\n", ["", "x"]),
        ("a\nx\n\n", ["x", ""]),
        ("a\nx\n\n\n", ["x", "", ""]),
        ("a\r\nx\r\n\r\ny\r\n", ["x", "", "y"]),
        ("a\nx\ny", ["x", "y"]),
        ("a\nx\ny\n", ["x", "y"]),
        ('a\nx\n""', ["x", ""]),
        ('a\nx\n""""', ["x", '"']),
        ('a\n"x\ny"\n', ["x\ny"]),
        ('a\n"x\n"', ["x\n"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_every_line_is_a_row(content: str, rows: list[str], ending: str, tmp_path: Path) -> None:
    """Two tables that differ in one value have the same number of rows, also if that value is missing."""
    assert read_file(csv(tmp_path, content, f"t.{ending}")).column("a").to_pylist() == rows


def test_a_blank_line_among_several_columns_is_a_row(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n1,x\n\n2,y\n")
    columns = Categorical("a", (1, 2), missing=True), Categorical("b", ("x", "y"), missing=True)
    assert [codes.tolist() for codes in Table.read(path, Schema(columns)).codes] == [[0, 2, 1], [0, 2, 1]]
    with pytest.raises(InputError, match="column 'a' must not have missing values"):
        Table.read(path, Schema((Categorical("a", (1, 2)), columns[1])))


def test_one_column_with_gaps_survives_a_csv(tmp_path: Path) -> None:
    schema = Schema((Categorical("a", ("x", "y"), missing=True),))
    table = Table(schema, (np.array([0, 2, 1, 2, 2]),))
    table.write(tmp_path / "t.csv")
    assert Table.read(tmp_path / "t.csv", schema).codes[0].tolist() == [0, 2, 1, 2, 2]


def test_a_blank_line_among_many_blocks_is_a_row(tmp_path: Path) -> None:
    path = csv(tmp_path, "a\n" + "1\n" * 700_000 + "\n" + "2\n" * 700_000)
    assert path.stat().st_size > 2**21
    assert read_file(path).num_rows == 1_400_001


@pytest.mark.parametrize("content", ['a,b\n1,"x\n2,y\n', 'a\n1\n"2', 'a\n1\n"', 'a\n1\n"2\n', 'a\n1\n"""'])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_quote_that_never_ends_is_refused(content: str, ending: str, tmp_path: Path) -> None:
    """Arrow takes what follows for one cell, and the rows in it are lost."""
    with pytest.raises(InputError, match=r"\(a quotation mark opens a cell that never ends\)"):
        read_file(csv(tmp_path, content, f"t.{ending}"))


# --- formulas


RISKY = ("=A1", "+x", "-cmd|x", "@sum", "\tx", "\rx", "'=A1", "''=A1", "\uff1dA1", "-", "=1", "\n=x")
HARMLESS = ("'", "'x", "-1", "+1.5e3", "'-1", "x=1", " =A1", "")


@pytest.mark.parametrize("dtype", ["", "category"])
def test_formulas_are_made_harmless_and_come_back(dtype: str, tmp_path: Path) -> None:
    labels = RISKY + HARMLESS
    schema = Schema((Categorical("=name", labels, dtype=dtype), Categorical("n", (-1, 0)), Numeric("x", (-2, -1, 0))))
    codes = np.arange(len(labels))
    table = Table(schema, (codes, codes % 2, codes % 2))
    table.write(tmp_path / "t.csv")
    raw = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False, lineterminator="\n")
    assert list(raw.columns) == ["'=name", "n", "x"]
    assert raw["'=name"].tolist() == ["'" + label for label in RISKY] + list(HARMLESS)
    assert set(raw["n"]) == {"-1", "0"}  # numbers are no text
    assert all(float(number) <= 0 for number in raw["x"])
    back = Table.read(tmp_path / "t.csv", schema)
    assert all(np.array_equal(a, b) for a, b in zip(back.codes, table.codes, strict=True))
    table.write(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").column("=name").to_pylist() == list(labels)  # as they are


def test_large_texts_are_escaped_too(tmp_path: Path) -> None:
    for kind in (pa.large_string(), pa.string_view()):
        write_file(pa.table({"a": pa.array(["=A1", None, "x"], kind)}), tmp_path / "t.csv")
        assert (tmp_path / "t.csv").read_text().split("\n")[1].strip('"') == "'=A1"
        assert read_file(tmp_path / "t.csv").column("a").to_pylist() == ["=A1", "", "x"]


# --- modes of files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("data", "umask", "expected"), [
    (0o600, 0o022, 0o600),
    (0o640, 0o022, 0o640),
    (0o644, 0o022, 0o644),
    (0o666, 0o077, 0o600),
    (0o755, 0o027, 0o640),
    (0o400, 0o022, 0o600),
])  # fmt: skip
def test_a_draft_is_as_private_as_the_data(data: int, umask: int, expected: int, tmp_path: Path) -> None:
    path, target = csv(tmp_path, "a\nx\ny\n"), tmp_path / "t.schema.toml"
    draft = draft_schema(read_file(path))
    path.chmod(data)
    before = os.umask(umask)
    try:
        draft.save(target, path)
        assert mode(target) == expected
        target.chmod(0o666)  # a wider one that is there already is replaced
        draft.save(target, path)
        assert mode(target) == expected
        draft.save(tmp_path / "alone.toml")  # made from data that nobody names
        assert mode(tmp_path / "alone.toml") == 0o600
        Schema(draft.columns).save(tmp_path / "public.toml")
        assert mode(tmp_path / "public.toml") == 0o666 & ~umask
    finally:
        os.umask(before)
    assert Schema.load(target) == draft
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone.toml", "public.toml", "t.csv", "t.schema.toml"]


def test_another_group_does_not_read_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv(tmp_path, "a\n")
    path.chmod(0o664)
    monkeypatch.setattr(os, "getegid", lambda: path.stat().st_gid + 1)
    assert private_mode(path) == 0o604


def test_a_schema_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "s.toml", "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"must be a file that can be written \(No space left on device\)"):
        write_text(tmp_path / "s.toml", "new")
    assert (tmp_path / "s.toml").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["s.toml"]


# --- Parquet


def damaged_text() -> pa.Array:
    places = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    return pa.StringArray.from_buffers(2, places, pa.py_buffer(b"\xff\xfe"))


def test_damaged_text_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"c": damaged_text()}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"must be a readable table \(it holds text that is not UTF-8\)"):
        read_file(tmp_path / "t.parquet")
    for array in (damaged_text(), pa.DictionaryArray.from_arrays(pa.array([0, 1]), damaged_text())):
        with pytest.raises(InputError, match=r"column 'c': it must be readable \(it holds text that is not UTF-8\)"):
            draft_schema(pa.table({"c": array}))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(np.zeros(2_000_000)),
        pa.array(["x" * 5000] * 20_000),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 5000])),
        pa.array([["x" * 5000]] * 20_000),
    ],
    ids=["numbers", "texts", "category", "lists"],
)
def test_a_small_parquet_file_that_takes_much_memory(array: pa.Array, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"c": array}), path)
    size = path.stat().st_size
    assert size < 100_000
    if not pa.types.is_dictionary(array.type):
        with pytest.raises(
            InputError, match=r"data must take at most 9,000,000 bytes of memory \('t\.parquet'\), got a"
        ):
            read_file(path, most_bytes=9_000_000)
    if pa.types.is_dictionary(array.type):  # read as positions in a list, and never written out
        schema = Schema((Categorical("c", ("x" * 5000, "y")),))
        assert np.array_equal(Table.read(path, schema, most_bytes=9_000_000).codes[0], np.zeros(20_000))
    assert promised_bytes(path) >= 20_000 * 4


def test_parquet_types_come_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["b", None, "", "b"],
            "large": pa.array(["b", None, "", "b"], pa.large_string()),
            "view": pa.array(["b", None, "", "b"], pa.string_view()),
            "category": pa.array(["b", None, "a", "b"]).dictionary_encode(),
            "number": [1.5, None, 2.0, 3.0],
            "whole": pa.array([1, 2, 3, None], pa.int8()),
            "flag": [True, False, None, True],
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    back = read_file(tmp_path / "t.parquet")
    assert back.to_pydict() == table.to_pydict()
    kinds = {field.name: str(field.type) for field in back.schema}
    assert (kinds["text"], kinds["large"], kinds["view"]) == ("string", "string", "string")
    assert kinds["category"].startswith("dictionary")
    assert [c.dtype for c in draft_schema(back).columns if c.name == "category"] == ["category"]


def test_a_file_in_a_folder_that_looks_like_a_value(tmp_path: Path) -> None:
    """Readers of whole folders would add a column "year"."""
    (tmp_path / "year=2020").mkdir()
    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "year=2020" / "t.parquet")
    assert read_file(tmp_path / "year=2020" / "t.parquet").column_names == ["a"]


# --- texts of any size


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_large_texts_are_encoded_in_parts(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST_TEXT", 100)
    monkeypatch.setattr(texts, "VIEWED", 7)
    rng = np.random.default_rng(0)
    labels = ("x" * 30, "y" * 50, "z")
    codes = rng.integers(0, 4, 500)
    cells = pa.chunked_array(
        [pa.array([None if c == 3 else labels[c] for c in part], kind) for part in (codes[:200], codes[200:])]
    )
    table = pa.table({"c": cells})
    plain = texts.plain("c", cells)
    assert plain.num_chunks > 100
    column = Categorical("c", labels, missing=True)
    assert np.array_equal(Table.encode(table, Schema((column,))).codes[0], codes)
    drafted = draft_schema(table).columns[0]
    assert (drafted.labels, drafted.missing) == (tuple(sorted(labels)), True)
    monkeypatch.setattr(texts, "MOST_TEXT", 40)
    with pytest.raises(InputError, match="column 'c' must have cells of at most 40 bytes, got a longer one"):
        Table.encode(table, Schema((column,)))


def test_more_than_two_gibibytes_of_text(tmp_path: Path) -> None:
    """The letters of all cells are one hole in a file, so that they take neither memory nor disk."""
    import mmap

    rows, width = 2200, 1 << 20
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(rows * width)
    with (tmp_path / "hole").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as letters:
        places = pa.py_buffer(np.arange(0, (rows + 1) * width, width, dtype=np.int64).tobytes())
        cells = pa.LargeStringArray.from_buffers(rows, places, pa.py_buffer(letters))
        assert texts._bytes(cells) > 2**31
        parts = list(texts._small("column 'c'", cells.slice(0, 2)))
        assert [len(part) for part in parts] == [2]
        parts = list(texts._small("column 'c'", cells.slice(rows - 2)))  # positions above 2 GiB
        assert [str(part.type) for part in parts] == ["string"]
        del parts, cells, places


# --- frames and Python objects


def test_sparse_columns_of_pandas() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 1]), "b": pd.arrays.SparseArray([0.5, np.nan, 1.0])})
    schema = Schema((Categorical("a", (0, 1)), Numeric("b", (0, 0.7, 1), missing=True)))
    assert [codes.tolist() for codes in Table.encode(frame, schema).codes] == [[0, 0, 1], [0, 2, 1]]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Series(["a", "\ud800"], dtype=object)}),
        pd.DataFrame([["a"]], columns=pd.Index(["\ud800"], dtype=object)),
    ],
)
def test_lone_surrogates_in_frames(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="table must hold valid Unicode text, got DataFrame"):
        Table.encode(frame, Schema((Categorical("c", ("a", "b")),)))


@pytest.mark.parametrize("cells", [[2**70, 1], [1 + 2j], [object()], [{1}], [b"\xff"]])
def test_cells_that_no_column_holds(cells: list[Any]) -> None:
    with pytest.raises(InputError):
        draft_schema(pd.DataFrame({"c": pd.Series(cells, dtype=object)}))


@pytest.mark.parametrize("path", [None, 3, b"a.csv", "a\0.csv", "x" * 300 + ".csv", "\ud800.csv"])
def test_paths_that_are_none(path: Any) -> None:
    with pytest.raises(PointillistError):
        read_file(path)
    with pytest.raises(PointillistError):
        Schema.load(path)


def test_unreadable_files(tmp_path: Path) -> None:
    path = csv(tmp_path, "a\n1\n")
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(InputError, match=r"must be a readable table \(Permission denied\)"):
            read_file(path)
    (tmp_path / "s.toml").write_bytes(b"a" * 10)
    os.truncate(tmp_path / "s.toml", 100_000_001)
    with pytest.raises(InputError, match="must be a file of at most 100,000,000 bytes"):
        Schema.load(tmp_path / "s.toml")


def test_the_footer_says_what_the_library_reads(tmp_path: Path) -> None:
    """For all types and several groups of rows, against the library's own reader of footers."""
    columns = {
        "small": pa.array([1, 2, None], pa.int8()),
        "text": pa.array(["a", "", "é"]),
        "fixed": pa.array([b"ab", b"cd", None], pa.binary(2)),
        "flag": pa.array([True, False, None]),
        "nested": pa.array([[["x"], []], None, [["y", "z"]]], pa.list_(pa.list_(pa.string()))),
        "parts": pa.array([{"p": 1, "q": [1.5]}, None, {"p": 2, "q": []}]),
        "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "number": pa.array([1.5, 2.5, 3.5]),
    }
    path = tmp_path / "t.parquet"
    deltas = {"text": "DELTA_BYTE_ARRAY"}
    table = pa.table(columns)
    parquet.write_table(table, path, row_group_size=2, use_dictionary=False, column_encoding=deltas)
    metadata = parquet.ParquetFile(path).metadata
    wanted = []
    for group in range(metadata.num_row_groups):
        for n in range(metadata.num_columns):
            chunk, kind = metadata.row_group(group).column(n), metadata.schema.column(n)
            cells = max(chunk.num_values, metadata.row_group(group).num_rows)
            repeated, deltas_too = kind.max_repetition_level > 0, "DELTA_BYTE_ARRAY" in chunk.encodings
            size = chunk.total_uncompressed_size
            wanted.append(Chunk(chunk.physical_type, max(0, kind.length), repeated, deltas_too, cells, size))
    assert chunks_of(path) == wanted
    assert {chunk.repeated for chunk in wanted} == {chunk.deltas for chunk in wanted} == {True, False}


def test_no_damage_of_a_footer_ends_the_process(tmp_path: Path) -> None:
    """Every bit of a footer: for some of them the library's own reader of footers aborts."""
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": pa.array([1, None, 2], pa.int16())}), path, write_statistics=False)
    good = path.read_bytes()
    size = int.from_bytes(good[-8:-4], "little")
    refused = []
    for bit in range(8 * (len(good) - 8 - size), 8 * (len(good) - 8)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            read_file(path)
        except InputError as error:
            refused.append(error.rule)
    assert len(refused) > size
    assert all(rule.startswith(("must be a readable table", "must take at most")) for rule in refused)
