"""Random and damaged files: each works, or is refused in one sentence that shows no more than a fragment of a cell."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.planted import SECRET, shows_too_much

from pointillist.data.draft import draft_schema
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table, read_file
from pointillist.errors import PointillistError

CASES = 150
SCHEMA = Schema(
    (Categorical("a", ("x", "y"), missing=True), Numeric("n", (0, 10, 20), clip=True), Categorical("s", ("u", SECRET)))
)
ROWS = {"a": ["x", "y", None, "x"] * 5, "n": [1.5, 12.0, 3.0, 19.0] * 5, "s": ["u", SECRET, SECRET, "u"] * 5}


def valid_csv() -> bytes:
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in zip(*ROWS.values(), strict=True)]
    return ("a,n,s\n" + "\n".join(lines) + "\n").encode()


def valid_parquet() -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table(ROWS), out, row_group_size=7)
    return out.getvalue()


VALID: dict[str, Callable[[], bytes]] = {
    "csv": valid_csv,
    "csv.gz": lambda: gzip.compress(valid_csv(), mtime=0),
    "parquet": valid_parquet,
    "toml": lambda: SCHEMA.to_toml().encode(),
}
PIECES = (b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"'", b"=", b"[", b"]]", b"{", b"\\u", b"9" * 5000, SECRET.encode())


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, pieces put in, parts cut out or repeated."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(out) + 1))
        match int(rng.integers(5)):
            case 0 if at < len(out):
                out[at] = int(rng.integers(256))
            case 1:
                out[at:at] = PIECES[int(rng.integers(len(PIECES)))]
            case 2:
                del out[at : at + int(rng.integers(1, 60))]
            case 3:
                out[at:at] = out[at : at + int(rng.integers(1, 200))]
            case _:
                del out[max(at, 1) :]
        out = out or bytearray(b"x")
    return bytes(out)


def attempts(path: Path) -> list[Callable[[], Any]]:
    if path.suffix == ".toml":
        return [lambda: Schema.load(path)]
    return [lambda: Table.read(path, SCHEMA), lambda: draft_schema(read_file(path))]


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except PointillistError as error:
        message = str(error)
        assert not shows_too_much(message)
        assert message.isprintable(), message
        assert len(message) < 1000
        return "refused"
    return "worked"


@pytest.mark.parametrize("ending", list(VALID))
def test_a_valid_file_works(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(VALID[ending]())
    assert [outcome(attempt) for attempt in attempts(path)] == ["worked"] * len(attempts(path))


@pytest.mark.parametrize("ending", list(VALID))
def test_damaged_files_are_refused_in_a_sentence(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(20240607)
    path, valid = tmp_path / f"t.{ending}", VALID[ending]()
    found = []
    for _ in range(CASES):
        path.write_bytes(mutated(valid, rng))
        found += [outcome(attempt) for attempt in attempts(path)]
    assert len(found) >= CASES
    assert found.count("refused") > CASES / 10


@pytest.mark.parametrize("ending", list(VALID))
def test_random_bytes_are_refused_in_a_sentence(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    path = tmp_path / f"t.{ending}"
    for _ in range(CASES // 3):
        content = rng.bytes(int(rng.integers(1, 400)))
        if ending == "parquet" and rng.random() < 0.5:
            content = b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1"
        path.write_bytes(content)
        for attempt in attempts(path):
            outcome(attempt)
        if ending == "csv.gz":
            path.write_bytes(gzip.compress(content, mtime=0))
            assert outcome(lambda: read_file(path)) in ("worked", "refused")
