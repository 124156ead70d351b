"""Tables in pieces: the same counts as in memory, whatever holds the rows; nothing tells how many there are."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import csv, parquet

from pointillist import (
    Categorical,
    Grid,
    InputError,
    Numeric,
    RunStopped,
    Schema,
    Synthesizer,
    Table,
    Temporal,
    load,
    prepare,
    resume,
    synthesize,
)
from pointillist.data import parquet as parquet_files
from pointillist.data import scanning, streams
from pointillist.data.neighbours import Unit
from pointillist.data.scanning import scanned
from pointillist.data.sources import MergedSource, count
from pointillist.data.streams import Batches, Files, Once, stream_of
from pointillist.data.table import read_file
from pointillist.data.threads import cores, in_threads
from pointillist.data.units import bounded_table
from pointillist.job import Reading, source_of

OPTIONS: dict[str, Any] = {"epsilon": 1.0, "workload": "marginals:2", "method": "mwem", "insecure_noise_seed": 0}
ENOUGH = 10**9
SCOPES = [(0,), (0, 1), (2, 0), (0, 1, 2)]


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


@pytest.fixture(scope="module")
def cells(town: Table) -> pa.Table:
    return town.to_arrow(0)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parquet_files, streams):
        monkeypatch.setattr(module, "PIECE_ROWS", 101)


def folder(cells: pa.Table, path: Path) -> Path:
    """Three Parquet files, in folders that give a column."""
    third = len(cells) // 3
    for place, name in enumerate(("year=2023", "year=2024", f"year={streams.NO_VALUE}")):
        (path / name).mkdir(parents=True)
        part = cells.slice(place * third, third if place < 2 else None)
        parquet.write_table(part, path / name / "part.parquet", row_group_size=150)
    (path / "_SUCCESS").touch()
    (path / ".hidden.parquet").touch()
    return path


def csv_file(cells: pa.Table, path: Path, packed: str) -> Path:
    kinds = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
    with pa.output_stream(str(path), compression=kinds.get(packed)) as out:
        csv.write_csv(cells, out)
    return path


KINDS: dict[str, Callable[[pa.Table, Path], Any]] = {
    **{f"csv{packed}": lambda cells, path, packed=packed: csv_file(cells, path / f"t.csv{packed}", packed)
       for packed in ("", ".gz", ".zst", ".bz2")},
    "parquet": lambda cells, path: folder(cells, path / "f") / "year=2023" / ".." / "..",
    "pattern": lambda cells, path: str(folder(cells, path / "f") / "*" / "*.parquet"),
    "dataset": lambda cells, path: ds.dataset(folder(cells, path / "f"), format="parquet"),
    "lazy frame": lambda cells, path: pl.scan_parquet(
        folder(cells, path / "f") / "*/*.parquet", hive_partitioning=False
    ),
    "reader": lambda cells, path: cells.to_reader(97),
    "capsule": lambda cells, path: Capsule(cells),
}  # fmt: skip


class Capsule:
    """Nothing but an Arrow stream."""

    def __init__(self, cells: pa.Table) -> None:
        self._cells = cells

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._cells.__arrow_c_stream__(requested_schema)


def counts_of(source: Any) -> list[np.ndarray]:
    return count(source, SCOPES)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_table_in_memory(kind: str, town: Table, cells: pa.Table, tmp_path: Path) -> None:
    schema = replace(town.schema, ignore=("year",))
    stream = stream_of(KINDS[kind](cells, tmp_path))
    assert stream is not None
    source = scanned(stream, schema, ENOUGH)
    expected = counts_of(source_of(town, None))
    assert source.rows == len(town)
    assert source.memory.held == sum(codes.nbytes for codes in town.codes)
    for _ in range(2):
        assert all(np.array_equal(a, b) for a, b in zip(counts_of(source), expected, strict=True))
    assert source.memory.readings == 1


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("reader", "capsule")])
def test_rows_that_do_not_fit_are_read_again(kind: str, town: Table, cells: pa.Table, tmp_path: Path) -> None:
    schema = replace(town.schema, ignore=("year",))
    stream = stream_of(KINDS[kind](cells, tmp_path))
    assert stream is not None
    source = scanned(stream, schema, 2 * 3 * len(town) - 2)
    assert source.memory.held == 0
    expected = counts_of(source_of(town, None))
    for passes in (1, 2):
        assert all(np.array_equal(a, b) for a, b in zip(counts_of(source), expected, strict=True))
        assert source.memory.readings == 1 + passes
    merged = MergedSource(source, schema)
    assert merged.memory is source.memory


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["reader", "capsule"])
def test_a_stream_that_ends_must_fit(kind: str, town: Table, cells: pa.Table, tmp_path: Path) -> None:
    stream = stream_of(KINDS[kind](cells, tmp_path))
    assert stream == Once(stream.data)  # type: ignore[union-attr]
    with pytest.raises(InputError) as refused:
        scanned(stream, town.schema, 10_000)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "memory must fit into half of the memory for rows (10,000 bytes in all), encoded, since this stream can be "
        "read only once, got 10000; give a file or a dataset, or allow more with memory."
    )
    ages = replace(town.schema.project(["age"]), ignore=("district",))
    with pytest.raises(InputError, match="since the rows of a unit are chosen among all of them"):
        scanned(Batches(lambda: iter([cells.select(["age", "district"])])), ages, 100, unit=Unit("district", 2))


def test_what_is_in_memory_is_no_stream(cells: pa.Table) -> None:
    for table in (cells, cells.to_batches()[0], cells.to_pandas(), pl.from_arrow(cells), [1], {"a": [1]}, None):
        assert stream_of(table) is None


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_release_is_the_same(relation: str, town: Table, cells: pa.Table, tmp_path: Path) -> None:
    options = OPTIONS | {"relation": relation, "delta": 1e-9}
    path = csv_file(cells, tmp_path / "t.csv", "")
    expected = synthesize(town, **options)
    said: list[str] = []
    for memory in (None, "64MB"):
        made = synthesize(path, schema=town.schema, memory=memory, announce=said.append, **options)
        assert np.array_equal(made.answers(), expected.answers())
        assert made.statement == expected.statement
    assert Synthesizer(schema=town.schema, **options).fit(path).release_.statement == expected.statement
    assert ("the table was read once" in said) == (relation == "replace")


def test_fine_columns_are_counted_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(0, 20, 3000).clip(-99, 99), "y": rng.integers(0, 3, 3000)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema((Grid("x", (-100, 100)), Categorical("y", (0, 1, 2))))
    options = {
        "epsilon": 2.0,
        "insecure_noise_seed": 1,
        "workload": "marginals:2",
        "settings": {"rows": 20, "t_max": 5},
    }
    expected = synthesize(read_file(tmp_path / "t.csv"), schema=schema, **options)
    monkeypatch.setattr(scanning, "SHARE_OF_ROWS", 0.0)
    said: list[str] = []
    made = synthesize(tmp_path / "t.csv", schema=schema, announce=said.append, **options)
    assert np.array_equal(made.answers(), expected.answers())
    (times,) = [line for line in said if line.startswith("the table was read")]
    assert int(times.split()[4]) >= 3  # to check it, for the fine column, and for the marginals


def test_nothing_tells_a_private_number_of_rows(town: Table, cells: pa.Table, tmp_path: Path) -> None:
    said: list[list[str]] = []
    for rows in (200, len(cells)):
        path = csv_file(cells.slice(0, rows), tmp_path / f"{rows}.csv", "")
        for share in (0.0, 0.5):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(scanning, "SHARE_OF_ROWS", share)
                options = OPTIONS | {
                    "relation": "add-remove",
                    "delta": 1e-9,
                    "memory": "1GB",
                    "settings": {"rounds": 1},
                }
                job = prepare(path, schema=town.schema, **options)
            said.append([*job.describe(), str(job.peak_memory), str(job.curator.memory)])
    assert all(lines == said[0] for lines in said)
    assert said[0][0].endswith(", and up to 1 GB for rows")


# --- folders, patterns and dialects


def test_folders_give_columns(town: Table, cells: pa.Table, tmp_path: Path) -> None:
    years = Categorical("year", ("2023", "2024"), missing=True)
    schema = Schema((*town.schema.columns, years))
    path = folder(cells, tmp_path / "f")
    source = scanned(Files.find(path), schema, ENOUGH)
    third = len(cells) // 3
    assert count(source, [(3,)])[0].tolist() == [third, third, len(cells) - 2 * third]
    numbers = Schema((*town.schema.columns, Numeric("year", (2000, 2024, 2030), missing=True)))
    assert count(scanned(Files.find(path), numbers, ENOUGH), [(3,)])[0].tolist()[:2] == [third, third]
    one = Files.find(path / "year=2023" / "part.parquet")  # a single file has no folders
    assert scanned(one, town.schema, ENOUGH).rows == third
    within = Files.find(str(path / "year=2023" / "*.parquet"))
    assert [file.values for file in within.files] == [{}]
    odd = tmp_path / "a[1].csv"
    csv_file(cells, odd, "")
    assert len(Files.find(odd).files) == 1  # a name with brackets is a name


def test_files_of_several_kinds_make_one_table(town: Table, cells: pa.Table, tmp_path: Path) -> None:
    half = len(cells) // 2
    names = ["commute", "age", "district"]
    parquet.write_table(cells.slice(0, half).select(names), tmp_path / "a.parquet")
    pd.DataFrame(cells.slice(half).to_pandas()).to_csv(tmp_path / "b.csv", sep=";", index=False)
    files = Files.find(tmp_path)
    assert files.dialect is not None
    assert files.dialect.separator == ";"
    source = scanned(files, town.schema, ENOUGH)
    expected = counts_of(source_of(town, None))
    assert all(np.array_equal(a, b) for a, b in zip(counts_of(source), expected, strict=True))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("a,b\n1,x\n1,x\nsecret-row\n", "row 4, the header being row 1, has 1 cells, not 2"),
        ('a,b\n1,x\n1,"secret-row\n', "a quotation mark opens a cell that never ends"),
        (b"a,b\n1,x\n1,secret-row\xff\n", "it holds text that is not UTF-8"),
    ],
)
def test_pieces_are_refused_like_whole_files(content: str | bytes, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    schema = Schema((Categorical("a", (1, 2)), Categorical("b", ("x", "y"))))
    said = []
    for read in (
        lambda: read_file(path, dialect=streams.Dialect(encoding="utf-8")),
        lambda: scanned(Files.find(path, streams.Dialect(encoding="utf-8")), schema, ENOUGH),
    ):
        with pytest.raises(InputError, match=rule) as refused:
            read()
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert "secret" not in said[0]


def test_values_that_are_refused_show_a_fragment(tmp_path: Path, charges: list[Any]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "x\n" * 5000 + "s" * 500 + "\n")
    with pytest.raises(InputError, match="column 'a' must only hold values of the schema") as refused:
        prepare(path, schema=Schema((Categorical("a", ("x", "y")),)), epsilon=1.0, relation="add-remove", delta=1e-9)
    assert "s" * 61 not in str(refused.value)
    assert "5000" not in str(refused.value)
    assert charges == []
    for content, rule in (("a\n", "table must have rows"), ("a,b\nx,1\n", "must only have columns of the schema")):
        path.write_text(content)
        with pytest.raises(InputError, match=rule):
            prepare(path, schema=Schema((Categorical("a", ("x", "y")),)), epsilon=1.0)


def test_a_query_that_fails_tells_nothing_of_its_cells() -> None:
    frame = pl.LazyFrame({"a": ["1", "secret"]}).select(pl.col("a").cast(pl.Int64))
    with pytest.raises(InputError, match="table must be readable to its end") as refused:
        scanned(stream_of(frame), Schema((Categorical("a", (1, 2)),)), ENOUGH)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


def test_a_small_file_with_large_pieces_is_refused(tmp_path: Path) -> None:
    texts = pa.array(["x" * 1000 + str(n) for n in range(3000)])
    parquet.write_table(pa.table({"a": texts}), tmp_path / "t.parquet", use_dictionary=False)
    files = replace(Files.find(tmp_path / "t.parquet"), most_bytes=10**6)
    with pytest.raises(InputError, match="must take at most 1,000,000 bytes of memory"):
        list(files.pieces())


# --- values that the schema refuses

BAD: list[tuple[Any, list[Any], list[bool]]] = [
    (Categorical("c", ("a", "b"), missing=True), ["a", "?", None, "b"], [False, True, True, False]),
    (Categorical("c", (1, 2), missing=True), [1, 7, None, 2], [False, True, True, False]),
    (Categorical("c", ("a", "b"), missing=True, other="z"), ["a", "?", None], [False, False, True]),
    (Numeric("c", (0, 5, 10), missing=True), ["1", "x", "11", "-0.1", "10"], [False, True, True, True, False]),
    (Numeric("c", (0, 5, 10), integer=True, missing=True), [1.0, 1.5, np.nan, 9.0], [False, True, True, False]),
    (Numeric("c", (0, 5, 10), clip=True, missing=True), [99.0, -99.0], [False, False]),
    (Grid("c", (0, 10), missing=True), [1.0, 10.5, None], [False, True, True]),
    (
        Temporal("c", "date", ("2000-01-01", "2030-01-01"), missing=True),
        ["2020-02-29", "2021-02-29", "never", "1999-12-31"],
        [False, True, True, True],
    ),
    (
        Temporal("c", "date", ("2000-01-01", "2030-01-01"), missing=True),
        [date(2020, 2, 29), date(1999, 12, 31), None],
        [False, True, True],
    ),
]


@pytest.mark.parametrize(("column", "values", "missing"), BAD)
@pytest.mark.parametrize("dictionary", [False, True])
def test_bad_values_count_as_missing_cell_by_cell(
    column: Any, values: list[Any], missing: list[bool], dictionary: bool
) -> None:
    cells = pa.array(values, from_pandas=False)
    cells = cells.dictionary_encode() if dictionary else cells
    schema = Schema((column,))
    codes = Table.encode(pa.table({"c": cells}), schema, "missing").codes[0]
    assert (codes == column.size - 1).tolist() == missing
    for place in range(len(values)):  # what becomes of a cell does not depend on others
        alone = Table.encode(pa.table({"c": cells.slice(place, 1)}), schema, "missing").codes[0]
        assert alone.tolist() == [codes[place]]


def test_bad_values_are_errors_where_nothing_can_be_missing(tmp_path: Path) -> None:
    schema = Schema((Categorical("a", ("x", "y")), Categorical("b", ("x", "y"), missing=True)))
    good, bad = pa.table({"a": ["x"], "b": ["?"]}), pa.table({"a": ["?"], "b": ["x"]})
    assert Table.encode(good, schema, "missing").codes[1].tolist() == [2]
    for table, how in ((good, "error"), (bad, "missing"), (bad, "error")):
        with pytest.raises(InputError, match="must only hold values of the schema"):
            Table.encode(table, schema, how)
    dates = pa.table({"a": pa.array([1, 2], pa.date32())})
    with pytest.raises(InputError, match="must hold values of the kind that the schema says"):
        Table.encode(dates, Schema((Numeric("a", (0, 1, 2), missing=True),)), "missing")
    with pytest.raises(InputError, match="on_bad_value must be one of error, missing, got 'drop'"):
        Table.encode(good, schema, "drop")


def test_bad_values_in_every_kind_of_table(tmp_path: Path) -> None:
    schema = Schema((Categorical("a", ("x", "y"), missing=True), Categorical("b", ("1", "2"))))
    frame = pd.DataFrame({"a": ["x", "?", "y", "!"] * 50, "b": ["1", "2"] * 100, "who": [f"p{n}" for n in range(200)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = replace(schema, ignore=("who",))
    reading = Reading("missing", insecure_seed=3)
    for table in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame), tmp_path / "t.csv"):
        for unit in (None, Unit("who", 1)):
            source = source_of(table, schema, unit, reading)
            assert count(source, [(0,)])[0].tolist() == [50, 50, 100]
            assert getattr(source, "unit", None) == unit


# --- units, journals and files that change


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_units_are_bounded_as_in_memory(ending: str, town: Table, cells: pa.Table, tmp_path: Path) -> None:
    who = np.random.default_rng(0).integers(0, len(cells) // 4, len(cells))
    table = cells.append_column("who", pa.array([f"p{n}" for n in who]))
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path, row_group_size=333)
    schema, unit = replace(town.schema, ignore=("who",)), Unit("who", 2)
    source = scanned(Files.find(path), schema, ENOUGH, unit=unit, insecure_seed=5)
    expected = source_of(bounded_table(table, schema, unit, 5), None)
    assert source.unit == unit
    assert source.rows == expected.rows < len(cells)
    assert all(np.array_equal(a, b) for a, b in zip(counts_of(source), counts_of(expected), strict=True))
    with pytest.raises(InputError, match="unit must be a column of the table"):
        scanned(Files.find(path), replace(schema, ignore=("who", "x")), ENOUGH, unit=Unit("x", 1))
    with pytest.raises(InputError, match="unit must not be a column that is synthesized"):
        scanned(Files.find(path), schema, ENOUGH, unit=Unit("age", 1))
    options = OPTIONS | {"unit": "who", "max_rows": 2, "delta": 1e-9}
    assert synthesize(path, schema=schema, **options).description.privacy.unit == unit


def test_units_of_two_types_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": ["x", "y"], "who": [1, 2]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"a": ["x", "y"], "who": ["1", "2"]}), tmp_path / "2.parquet")
    schema = Schema((Categorical("a", ("x", "y")),), ignore=("who",))
    with pytest.raises(InputError, match="column 'who' must be of one type in all files"):
        scanned(Files.find(tmp_path), schema, ENOUGH, unit=Unit("who", 1))


def test_a_file_that_changes_is_refused(town: Table, cells: pa.Table, tmp_path: Path) -> None:
    path = csv_file(cells, tmp_path / "t.csv", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "SHARE_OF_ROWS", 0.0)
        job = prepare(path, schema=town.schema, **OPTIONS)
    stamp = path.stat()
    csv_file(cells.take(np.arange(len(cells))[::-1]), path, "")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    with pytest.raises(RunStopped, match="table must stay as it is while it is read"):
        job.run()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_an_interrupted_run_reads_the_files_again(
    relation: str, town: Table, cells: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = csv_file(cells, tmp_path / "t.csv", "")
    options = OPTIONS | {"relation": relation, "delta": 1e-9, "schema": town.schema, "on_bad_value": "missing"}
    expected = synthesize(path, **options)
    batches = scanning.ScannedSource.batches

    def stop(source: scanning.ScannedSource) -> Iterator[Any]:
        raise OSError("the disk is gone")

    monkeypatch.setattr(scanning.ScannedSource, "batches", stop)
    with pytest.raises(RunStopped, match="the disk is gone"):
        synthesize(path, out=tmp_path / "out", **options)
    monkeypatch.setattr(scanning.ScannedSource, "batches", batches)
    shorter = csv_file(cells.slice(1), tmp_path / "shorter.csv", "")
    if relation == "replace":
        with pytest.raises(InputError, match="must be the same as the one that was interrupted"):
            resume(tmp_path / "out", shorter)
    assert np.array_equal(resume(tmp_path / "out", path).answers(), expected.answers())


# --- threads


def test_threads_keep_the_order_and_do_not_run_far_ahead() -> None:
    taken = 0

    def given() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = in_threads(lambda number: number**2, given())
    assert next(results) == 0
    assert taken <= cores() + 1
    assert list(results) == [number**2 for number in range(1, 1000)]

    def fails(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(in_threads(fails, range(10)))


def test_a_folder_that_cannot_be_read_is_refused(
    cells: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows must not be left out without a word."""
    path, scandir = folder(cells, tmp_path / "people"), os.scandir

    def closed(place: Any) -> Any:
        if str(place).endswith("year=2024"):
            raise PermissionError(errno.EACCES, "no", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(InputError, match=r"must be a folder that can be read \(Permission denied\), got .*year=2024"):
        Files.find(path)


@pytest.mark.parametrize("pattern", ["people/*/*.parquet", "people/**/*.parquet"])
def test_a_folder_that_a_pattern_cannot_read_is_refused(
    pattern: str, cells: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``glob`` passes over it: its rows would be left out without a word."""
    folder(cells, tmp_path / "people")
    assert Files.find(tmp_path / pattern).files
    access = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: "year=2024" not in str(place) and access(place, mode))
    with pytest.raises(InputError, match=r"must be a folder that can be read \(permission denied\), got .*year=2024"):
        Files.find(tmp_path / pattern)


def test_links_are_not_left_out_without_a_word(cells: pa.Table, tmp_path: Path) -> None:
    path = folder(cells, tmp_path / "people")
    (path / "more.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"data must be an existing file or the name of a dataset, got .*more.csv"):
        Files.find(path)
    (path / "more.csv").unlink()
    (path / "more").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(InputError, match=r"data must not hold links to folders, got .*more"):
        Files.find(path)


def test_a_pattern_leaves_out_what_a_folder_does(cells: pa.Table, tmp_path: Path) -> None:
    path = folder(cells, tmp_path / "people")
    (path / "_temporary").mkdir()
    parquet.write_table(cells, path / "_temporary" / "part-0.parquet")
    in_folder = [file.path for file in Files.find(path).files]
    assert [file.path for file in Files.find(path / "*" / "*.parquet").files] == in_folder
