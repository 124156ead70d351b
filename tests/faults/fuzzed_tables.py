"""Fuzzed tables and schemas: CSV and Parquet files with nasty cells, odd types and damage, and TOML of all kinds.

They are read by ``Table.read``, ``draft_schema`` and ``Schema.load``, and some of them by the command. Where a file was
not damaged after it was made, its rows must all be there; and a draft is the same after it was written and read.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import decimal
import gzip
import io
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from tests.faults.damage import HUGE, Wrong, command, edit, flip

from pointillist import Schema, Table, draft_schema, prepare
from pointillist.data.dialects import Dialect
from pointillist.data.table import read_file

__all__ = ["csv_files", "parquet_files", "require_sentence", "schemas"]

CELLS = (
    "", " ", "  a ", "a", "b", "c", "0", "1", "2", "3", "-1", "007", "1.5", "-0.0", "1e5", "1e308", "1.7e308", "1e400",
    "-1e400", "1e-400", "9" * 30, "9" * 400, "nan", "NaN", "NA", "N/A", "null", "inf", "-inf", "Infinity", "0x1F",
    "1_000", "1,000", "1;2", "true", "False", "2020-01-01", "2020-02-30", "12:34:56", "2020-01-01T00:00:00Z", '"', '""',
    'a"b', "'", "=cmd()", "+1", "@x", "'=x", "\t", "a\tb", "a\nb", "a\r\nb", "\\", "\\N", "é", "\u202e", "\ufeff", "😀",
    "ﷺ", "\u0661", "a\0b", "x" * 61, "y" * 5000, "\x1b[31m", "%s", "{}", "$(x)", "None", "[]", "{1: 2}",
)  # fmt: skip
"""Cells that some reader has once misread."""

NAMES = ("a", "b", "town", "work", "age", "A", " a", "", "1", "é", "a b", 'q"q', "n\nl", "x" * 1200, "type", "\x1b[1m")


def csv_files(chance: random.Random, folder: Path) -> None:
    """A CSV file, made up or that of the fuzzed run, and damaged half of the time."""
    rows, content = _made_csv(chance) if chance.random() < 0.7 else (None, (folder / "people.csv").read_bytes())
    name = "fuzzed.csv"
    if chance.random() < 0.5:
        rows, content = None, _damaged_csv(content, chance)
    if chance.random() < 0.15:
        name, content = "fuzzed.csv.gz", gzip.compress(content, 1)
        if chance.random() < 0.4:
            rows, content = None, flip(content, chance)
    _read(folder / name, content, rows, chance)


def _made_csv(chance: random.Random) -> tuple[int, bytes]:
    """A CSV file by the writer of Python, and its number of rows."""
    names = chance.sample(NAMES, chance.randint(1, 5))
    rows = chance.choice([1, 2, 3, 10, 60])
    pools = [chance.sample(CELLS, chance.choice([1, 2, 3, 8])) for _ in names]
    out = io.StringIO()
    ends = chance.choice(["\n", "\n", "\r\n"])
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(out, lineterminator=ends, quoting=quoting)
    writer.writerow(names)
    writer.writerows([chance.choice(pool) for pool in pools] for _ in range(rows))
    return rows, out.getvalue().encode()


def _damaged_csv(content: bytes, chance: random.Random) -> bytes:
    """Bytes as disks damage them, or texts as people and other programs do."""
    if not content or chance.random() < 0.4:
        return flip(content or b"x", chance)
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    cut = chance.randrange(len(text))
    harm: list[Callable[[], bytes]] = [
        lambda: text.encode("utf-16"),
        lambda: text.encode("latin-1", "replace"),
        lambda: b"\xef\xbb\xbf" + content,
        lambda: text.replace("\n", "\r").encode(),
        lambda: text.replace(",", chance.choice([";", "\t", ", ", ",,"])).encode(),
        lambda: (text[:cut] + chance.choice(['"', ",", "\n", "\0", "\r", "\udcff", "x" * 70_000]) + text[cut:]).encode(
            "utf-8", "surrogateescape"
        ),
        lambda: "\n".join([*lines[:at], chance.choice(["", " ", ",", '"', "a,b,c,d,e,f,g,h"]), *lines[at:]]).encode(),
        lambda: "\n".join([*lines[:at], lines[at] + chance.choice([",", ",x", '"']), *lines[at + 1 :]]).encode(),
        lambda: lines[0].encode(),
        lambda: (lines[0] + "," + lines[0] + "\n" + "\n".join(f"{line},{line}" for line in lines[1:])).encode(),
        lambda: b"\n" * chance.randint(1, 5) + content,
        lambda: content.rstrip(b"\n") + b"\n" * chance.randint(0, 5),
        lambda: chance.choice([b"", b"\0" * 100, b"PAR1" + content, b"\n", b",", b'"', b"\xff\xfe"]),
        lambda: chance.randbytes(chance.randint(1, 2000)),
    ]
    return chance.choice(harm)()


# --- Parquet

DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)
TYPES: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    *((getattr(pa, f"int{n}")(), (0, 1, 2, -1, 2 ** (n - 1) - 1, -(2 ** (n - 1)))) for n in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{n}")(), (0, 1, 2, 2**n - 1)) for n in (8, 16, 32, 64)),
    *((kind, (0.0, -0.0, 1.5, float("nan"), float("inf"), -1e30)) for kind in (pa.float32(), pa.float64())),
    (pa.float64(), (1e308, -1.7e308, 5e-324, 1.0)),
    (pa.float16(), tuple(np.array([0.0, 1.5, np.nan, np.inf], np.float16))),
    (pa.bool_(), (True, False)),
    (pa.null(), (None,)),
    *((kind, CELLS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, (b"", b"a", b"\xff\xfe", b"x" * 99)) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary(2), (b"ab", b"\xff\xff")),
    (pa.decimal128(9, 2), (decimal.Decimal("1.25"), decimal.Decimal("-9999999.99"))),
    (pa.decimal256(60, 0), (decimal.Decimal(10**50), decimal.Decimal(0))),
    (pa.date32(), (DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    (pa.date64(), (DAY,)),
    *((pa.timestamp(unit), (NOON, NOON.replace(year=1970))) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "Europe/Berlin"), (NOON,)),
    (pa.time32("s"), (NOON.time(),)),
    (pa.time64("us"), (NOON.time(), datetime.time(23, 59, 59, 999_999))),
    (pa.duration("us"), (datetime.timedelta(1), datetime.timedelta(-1))),
    (pa.list_(pa.int64()), ([], [1, 2], [None])),
    (pa.list_(pa.list_(pa.string())), ([[]], [["a"], None])),
    (pa.struct([("x", pa.int64())]), ({"x": 1}, {"x": None})),
    (pa.map_(pa.string(), pa.int64()), ([("a", 1)], [])),
    (pa.dictionary(pa.int8(), pa.string()), ("a", "b", "")),
    (pa.dictionary(pa.int32(), pa.int64()), (1, 2)),
    (pa.dictionary(pa.int32(), pa.float64()), (1.5, float("nan"))),
)
"""Types of Arrow with some of their values."""


def parquet_files(chance: random.Random, folder: Path) -> None:
    """A Parquet file of odd types, or the rows of the fuzzed release, and damaged half of the time."""
    path = folder / "fuzzed.parquet"
    if chance.random() < 0.75:
        table = _made_arrow(chance)
        try:
            parquet.write_table(
                table,
                path,
                compression=chance.choice(["snappy", "none", "gzip", "zstd"]),
                use_dictionary=chance.random() < 0.7,
                row_group_size=chance.choice([1, 7, 1000]),
                version=chance.choice(["1.0", "2.6"]),
                data_page_version=chance.choice(["1.0", "2.0"]),
                write_statistics=chance.random() < 0.7,
            )
        except (pa.ArrowException, ValueError):  # types that Parquet does not have
            return
        rows, content = table.num_rows, path.read_bytes()
    else:
        rows, content = None, (folder / "release" / "synthetic.parquet").read_bytes()
    if chance.random() < 0.5:
        rows, content = None, flip(content, chance)
    _read(path, content, rows, chance)


def _made_arrow(chance: random.Random) -> pa.Table:
    rows, columns = chance.choice([0, 1, 2, 10, 60]), []
    names = [chance.choice(NAMES) for _ in range(chance.randint(0, 5))]
    for _ in names:
        kind, values = chance.choice(TYPES)
        pool = [
            *chance.sample(values, min(len(values), chance.choice([1, 2, 5]))),
            *([None] * chance.choice([0, 0, 1])),
        ]
        columns.append(pa.array([chance.choice(pool) for _ in range(rows)], kind))
    return pa.Table.from_arrays(columns, names=names)


# --- what is done with a table


def _read(path: Path, content: bytes, rows: int | None, chance: random.Random) -> None:
    """Read a file in one of the ways that there are; ``rows`` is its number of rows, if it was not damaged."""
    path.write_bytes(content)
    try:
        kind = chance.random()
        if kind < 0.03:
            _by_command(path, chance)
        elif kind < 0.3:
            _sized(Table.encode(_cells(path), Schema.load(path.parent / "people.schema.toml")), rows)
        else:
            _drafted(path, rows)
    finally:
        path.unlink()


def _cells(path: Path) -> pa.Table:
    """The cells of a file. That the first row has the names is said: nasty ones may look like data."""
    return read_file(path, dialect=Dialect(header=True) if ".csv" in path.name else None)


def _drafted(path: Path, rows: int | None) -> None:
    arrow = _cells(path)
    schema = draft_schema(arrow)
    if Schema.from_dict(tomllib.loads(schema.to_toml())) != schema:
        raise Wrong("a draft is another one after it was written and read")
    table = Table.encode(arrow, dataclasses.replace(schema, reviewed=True))
    _sized(table, rows)
    table.to_arrow()


def _sized(table: Table, rows: int | None) -> None:
    if rows is not None and len(table) != rows:
        raise Wrong(f"{len(table):,} rows were read of {rows:,}")


def _by_command(path: Path, chance: random.Random) -> None:
    made = path.parent / "made.toml"
    arguments = ["schema", str(path), "--out", str(made)]
    if chance.random() < 0.3:
        schema = str(path.parent / "people.schema.toml")
        arguments = ["evaluate", str(path), str(path), "--schema", schema, "--workload", "marginals:1"]
    try:
        require_sentence(arguments)
    finally:
        made.unlink(missing_ok=True)


def require_sentence(arguments: list[str]) -> None:
    """A command gives a result, or one line and exit code 2."""
    code, err = command(arguments)
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    if code not in (0, 2) or "Traceback" in err or (code == 2 and len(lines) != 1):
        raise Wrong(f"{arguments}: exit code {code}: {err[-800:]}")


# --- schemas

PIECES = (
    "9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "1e400", "nan", "-inf", "[" * 20_000, "[[" * 500 + "]]" * 500,
    "{a = 1}", "{" * 2000, '"""', "'''", '"\\uD800"', '"\\U0010FFFF"', "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z",
    "true", "[]", "[1, [2, [3]]]", '"x"', "''", "[true, 1]", '["a", 1]', "1.0", "0", "-1", "[0, 1, 1]", "[1, 0]",
    '[""]', '["a", "a"]', '["a", "b"]', "[1.5, 2.5]", "[nan, 1]", "[0, inf]", "[-1e308, 1e308]", '["\\u0000", "a"]',
)  # fmt: skip
"""Values of TOML."""
KEYS = (
    "format", "reviewed", "ignore", "column", "name", "type", "values", "edges", "integer", "decode", "clip", "missing",
    "dtype", "other", "ordered", "bounds", "step", "scale", "points", "outside", "cells", "unit", "zone", "bins",
    "start", "prefix", "kind", "value", "missing_values", "missing_as", "nonsense", '"a.b"', "a.b.c",
    "[column]", "[[column]]",
)  # fmt: skip
"""Keys that a schema has, or may once have, and others."""
KINDS = ("categorical", "numeric", "date", "time", "timestamp", "duration", "constant", "id", "text", "")


def schemas(chance: random.Random, folder: Path) -> None:
    """A schema with edited entries, other lines or damaged bytes; if it loads, it is written, read and used."""
    path = folder / "fuzzed.toml"
    content = (folder / "people.schema.toml").read_bytes()
    kind = chance.random()
    if kind < 0.45:
        content = _toml_of(edit(tomllib.loads(content.decode()), chance)).encode("utf-8", "surrogatepass")
    elif kind < 0.85:
        content = _other_lines(content.decode(), chance).encode()
    else:
        content = flip(content, chance)
    path.write_bytes(content)
    try:
        if chance.random() < 0.03:
            arguments = ["evaluate", str(folder / "people.csv"), str(folder / "people.csv"), "--schema", str(path)]
            require_sentence([*arguments, "--workload", "marginals:1"])
        else:
            _used(Schema.load(path), folder, chance)
    finally:
        path.unlink()


def _other_lines(text: str, chance: random.Random) -> str:
    """Lines that are replaced, added, repeated or taken out."""
    lines = text.splitlines()
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(lines) + 1)
        value = f'"{chance.choice(KINDS)}"' if chance.random() < 0.2 else chance.choice(PIECES)
        line = f"{chance.choice(KEYS)} = {value}"
        kind = chance.random()
        if kind < 0.5 and at < len(lines) and " = " in lines[at]:
            lines[at] = f"{lines[at].partition(' = ')[0]} = {value}"
        elif kind < 0.8:
            lines.insert(at, line)
        elif kind < 0.9:
            lines[at:at] = lines[at : at + 3]
        else:
            del lines[at : at + 1]
    return chance.choice(["\n", "\n", "\r\n"]).join(lines)


def _toml_of(value: Any, top: bool = True) -> str:
    """TOML as a careless program writes it: some of it is none."""
    if isinstance(value, dict):
        if top:
            return "\n".join(f"{_key(key)} = {_toml_of(one, False)}" for key, one in value.items())
        return "{" + ", ".join(f"{_key(key)} = {_toml_of(one, False)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_of(one, False) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if value == HUGE:
        return "9" * 5000
    return _quoted(value) if isinstance(value, str) else repr(value)


def _key(key: Any) -> str:
    return _quoted(str(key))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\0", "\\u0000")
    return f'"{escaped}"'


def _used(schema: Schema, folder: Path, chance: random.Random) -> None:
    again = Schema.from_dict(tomllib.loads(schema.to_toml()))
    if again != schema:
        raise Wrong("a schema is another one after it was written and read")
    table = Table.read(folder / "people.csv", schema)
    table.to_arrow()
    if chance.random() < 0.3:
        prepare(table, epsilon=10.0, method="mwem", workload="marginals:1", settings={"rounds": 2})
