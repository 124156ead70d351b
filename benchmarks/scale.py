"""Counting large tables: the kernel against other ways to count, the cost per row, and files that are read in pieces.

The rows are made up: 13 columns with the numbers of values of ADULT, whose values depend on each other, and all 286
marginals over three of them. ``POINTILLIST_SCALE_ROWS`` has the numbers of rows, such as ``100000,1000000,100000000``;
rows are made and counted in batches, and files are written and read in pieces, so that 10^8 rows fit into 4 GiB.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measuring.markdown import section

from pointillist import Categorical, Schema
from pointillist.data.domain import Attributes
from pointillist.data.kernel import Columns, count_cells
from pointillist.data.spark import FAN_IN

SIZES = (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)
TRIPLES = list(combinations(range(len(SIZES)), 3))
BATCH = 1 << 16
COMPARED_ROWS = 1_000_000
"""The number of rows at which ways to count are compared, at most."""
MEMORY = "4GB"
SCHEMA = Schema(tuple(Categorical(f"x{i}", tuple(f"v{k}" for k in range(n))) for i, n in enumerate(SIZES)))
PLANNED_ROWS, PARTITION_ROWS, EXECUTOR_CORES = 10**10, 4_000_000, 400
"""The run on a cluster that is planned on paper."""

READ = """
import json, sys, time
from pathlib import Path
from benchmarks.scale import SCHEMA, TRIPLES
from pointillist.data.sources import count
from pointillist.data.streams import Files
from pointillist.job import Reading, source_of
from pointillist.memory import peak_memory

path, memory = sys.argv[1:]
start = time.perf_counter()
source = source_of(Files.find(path), SCHEMA, None, Reading(memory=memory))
read = time.perf_counter()
counts = count(source, TRIPLES)
end = time.perf_counter()
assert all(int(one.sum()) == source.rows for one in counts)
print(json.dumps([read - start, end - read, peak_memory(), source.memory.readings]))
"""


def sizes_wanted() -> list[int]:
    """The numbers of rows, in order."""
    return sorted(int(float(text)) for text in os.environ.get("POINTILLIST_SCALE_ROWS", "1e5,1e6").split(","))


def batches(rows: int) -> Iterator[Columns]:
    """Made-up rows: every column follows the one before it in half of the rows, and prefers small codes."""
    for start in range(0, rows, BATCH):
        rng = np.random.default_rng([0, start])
        many = min(BATCH, rows - start)
        columns: list[np.ndarray] = []
        for size in SIZES:
            codes = (size * rng.random(many, np.float32) ** 2).astype(np.uint8)
            if columns:
                codes = np.where(rng.random(many, np.float32) < 0.5, columns[-1] % size, codes)
            columns.append(codes.astype(np.uint8))
        yield columns


def by_kernel(rows: Sequence[Columns]) -> list[np.ndarray]:
    """The kernel of this package."""
    return count_cells(rows, SCHEMA.domain, TRIPLES)


def by_prefixes(rows: Sequence[Columns]) -> list[np.ndarray]:
    """The kernel before this one: one bincount per marginal, with 64-bit keys that marginals share by their prefix."""
    counts = [np.zeros(SCHEMA.domain.cells_of(one), np.int64) for one in TRIPLES]
    for batch in rows:
        columns = [codes.astype(np.intp) for codes in batch]
        pairs: dict[Attributes, np.ndarray] = {}
        for place, (i, j, k) in enumerate(TRIPLES):
            if (i, j) not in pairs:
                pairs = {(i, j): columns[i] * SIZES[j] + columns[j]}
            counts[place] += np.bincount(pairs[i, j] * SIZES[k] + columns[k], minlength=len(counts[place]))
    return counts


def by_bincount(rows: Sequence[Columns]) -> list[np.ndarray]:
    """One numpy.bincount per marginal and batch, each with its own keys."""
    counts = [np.zeros(SCHEMA.domain.cells_of(one), np.int64) for one in TRIPLES]
    for batch in rows:
        for place, scope in enumerate(TRIPLES):
            keys = np.zeros(len(batch[0]), np.intp)
            for attribute in scope:
                keys = keys * SIZES[attribute] + batch[attribute]
            counts[place] += np.bincount(keys, minlength=len(counts[place]))
    return counts


def _whole(rows: Sequence[Columns]) -> Any:
    import pyarrow as pa

    return pa.table({f"x{n}": np.concatenate([batch[n] for batch in rows]) for n in range(len(SIZES))})


def _dense(scope: Attributes, keys: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    found = np.zeros(SCHEMA.domain.cells_of(scope), np.int64)
    found[np.ravel_multi_index([key.astype(np.intp) for key in keys], SCHEMA.domain.shape(scope))] = counts
    return found


def by_duckdb(rows: Any) -> list[np.ndarray]:
    """A group-by of DuckDB per marginal, over codes in a table of its own."""
    found = []
    for scope in TRIPLES:
        names = ", ".join(f"x{n}" for n in scope)
        cells = rows.query("t", f"SELECT {names}, count(*) AS n FROM t GROUP BY {names}").fetchnumpy()
        found.append(_dense(scope, [cells[f"x{n}"] for n in scope], cells["n"]))
    return found


def by_polars(rows: Any) -> list[np.ndarray]:
    """A group-by of polars per marginal, over codes in a data frame."""
    import polars as pl

    lazy = [rows.lazy().group_by([f"x{n}" for n in scope]).agg(pl.len().alias("n")) for scope in TRIPLES]
    frames = pl.collect_all(lazy)
    return [
        _dense(scope, [frame[f"x{n}"].to_numpy() for n in scope], frame["n"].to_numpy())
        for scope, frame in zip(TRIPLES, frames, strict=True)
    ]


def seconds(count: Callable[[Any], list[np.ndarray]], rows: Any, repeats: int = 2) -> tuple[float, list[np.ndarray]]:
    """The shortest time of a few runs, and the counts."""
    best, found = math.inf, []
    for _ in range(repeats):
        start = time.perf_counter()
        found = count(rows)
        best = min(best, time.perf_counter() - start)
    return best, found


def compared(rows: int) -> str:
    """The kernel next to other ways to count the same rows."""
    import duckdb
    import polars as pl

    made = list(batches(rows))
    table = _whole(made)
    relation = duckdb.connect().from_arrow(table)
    ways: list[tuple[str, Callable[[Any], list[np.ndarray]], Any]] = [
        ("this package", by_kernel, made),
        ("one bincount per marginal, shared 64-bit keys (the kernel before)", by_prefixes, made),
        ("one numpy.bincount per marginal", by_bincount, made),
        ("DuckDB, a group-by per marginal", by_duckdb, relation),
        ("polars, a group-by per marginal", by_polars, pl.from_arrow(table)),
    ]
    times, lines = {}, []
    _, expected = seconds(by_kernel, made, 1)
    for name, count, given in ways:
        times[name], found = seconds(count, given)
        if not all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True)):
            raise ValueError(f"{name} counts other rows")
        ratio = times[name] / times["this package"]
        lines.append((name, f"{times[name]:.2f}", f"{1e9 * times[name] / rows / len(TRIPLES):.2f}", f"{ratio:.1f}"))
    heads = ("way to count", "seconds", "ns per row and marginal", "time / this package")
    note = f"{rows:,} rows in memory, {len(SIZES)} columns, {len(TRIPLES)} marginals; all ways give the same counts."
    return section("Counting", heads, lines, note)


def growing(rows: Sequence[int]) -> tuple[str, float]:
    """The cost per row for growing tables, and the last one, in seconds."""
    lines, cost = [], math.nan
    for many in rows:
        spent = min(_counting_seconds(many) for _ in range(3 if many <= COMPARED_ROWS else 1))
        cost = spent / many
        lines.append((f"{many:,}", f"{spent:.2f}", f"{1e9 * cost:.0f}"))
    note = "The time of making the rows is taken off. Up to a million rows, it is the shortest of three runs."
    return section("The cost per row", ("rows", "seconds", "ns per row"), lines, note, level=2), cost


def _counting_seconds(rows: int) -> float:
    timed = Timed(batches(rows))
    start = time.perf_counter()
    counts = count_cells(timed, SCHEMA.domain, TRIPLES)
    spent = time.perf_counter() - start - timed.seconds
    if any(int(one.sum()) != rows for one in counts):
        raise ValueError("rows are missing")
    return spent


class Timed:
    """An iterable that knows how long its entries took to make."""

    def __init__(self, given: Iterator[Columns]) -> None:
        self._given = given
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Columns]:
        while True:
            start = time.perf_counter()
            one = next(self._given, None)
            self.seconds += time.perf_counter() - start
            if one is None:
                return
            yield one


def write_files(folder: Path, rows: int) -> dict[str, Path]:
    """The same made-up rows as a CSV and as a Parquet file, written in pieces."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    values = [pa.array(column.values) for column in SCHEMA.columns]  # type: ignore[attr-defined]
    kind = pa.schema([(column.name, pa.string()) for column in SCHEMA.columns])
    paths = {"CSV": folder / "t.csv", "Parquet": folder / "t.parquet"}
    with csv.CSVWriter(paths["CSV"], kind) as text, parquet.ParquetWriter(paths["Parquet"], kind) as packed:
        for batch in batches(rows):
            cells = [labels.take(pa.array(codes)) for labels, codes in zip(values, batch, strict=True)]
            piece = pa.table(cells, schema=kind)
            text.write_table(piece)
            packed.write_table(piece)
    return paths


def files(rows: int) -> str:
    """Reading, checking, encoding and counting files, each in a fresh process."""
    lines = []
    with TemporaryDirectory() as folder:
        for name, path in write_files(Path(folder), rows).items():
            for memory in (MEMORY, "64MB"):
                process = [sys.executable, "-c", READ, str(path), memory]
                done = subprocess.run(process, capture_output=True, text=True, check=True)
                first, counting, peak, readings = json.loads(done.stdout)
                size = f"{path.stat().st_size / 1e6:,.0f} MB"
                lines.append((name, size, memory, f"{first:.1f}", f"{counting:.1f}", readings, f"{peak / 1e6:,.0f} MB"))
    heads = ("file", "size", "memory", "first reading, s", "counting, s", "readings", "peak of the process")
    note = f"{rows:,} rows. The first reading checks and encodes; counting reads again where the codes do not fit."
    return section("Files", heads, lines, note, level=2)


def planned(cost: float) -> str:
    """A run on a cluster, on paper: how long it counts, and what it shuffles."""
    cells = sum(map(SCHEMA.domain.cells_of, TRIPLES))
    partitions = math.ceil(PLANNED_ROWS / PARTITION_ROWS)
    vectors, level = 0, partitions
    while level > FAN_IN:
        vectors, level = vectors + level, math.ceil(level / FAN_IN)
    lines = [
        ("rows", f"{PLANNED_ROWS:,}"),
        ("partitions", f"{partitions:,} of {PARTITION_ROWS:,} rows"),
        ("the vector of a partition", f"{8 * cells / 1e6:.1f} MB ({cells:,} cells)"),
        ("vectors that are shuffled", f"{vectors:,} on {math.ceil(math.log(partitions / FAN_IN, FAN_IN))} levels"),
        ("shuffle volume", f"{8 * cells * vectors / 1e9:.1f} GB"),
        ("vectors that the driver gets", f"{level:,}: {8 * cells * level / 1e6:.1f} MB"),
        ("counting", f"{PLANNED_ROWS * cost * (os.cpu_count() or 1) / EXECUTOR_CORES / 60:.1f} minutes"),
        ("rows that grouping sets would make", f"{PLANNED_ROWS * len(TRIPLES):.2g}"),
    ]
    note = (
        f"Computed, not measured: one pass with {EXECUTOR_CORES} cores of the speed of this machine, without reading "
        "and encoding the rows. A run makes one pass to check them and one for each round that asks for new marginals."
    )
    title = f"A plan for {PLANNED_ROWS:,} rows on Spark"
    return section(title, ("what", "how much"), lines, note, level=2)


def run() -> str:
    """All of it, at the sizes that are wanted."""
    rows = sizes_wanted()
    cost_table, cost = growing(rows)
    return "\n".join([compared(min(COMPARED_ROWS, rows[-1])), cost_table, files(rows[-1]), planned(cost)])
