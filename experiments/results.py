"""A results file: one line per run, appended as soon as the run is done.

A line is written at once, under a lock, and forced to the disk. So several drivers may write to one file, and a kill
can spoil the last line only: whoever writes next takes the spoilt rest off.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from experiments.grid import FIELDS, NAMES, Key, Row, key_of
from pointillist.errors import InputError, Shown

FOLDER = Path(__file__).parent


def results_of(name: str) -> Results:
    """The committed results of an experiment."""
    return Results(FOLDER / name / "results.csv")


def all_results() -> dict[Key, Row]:
    """The runs of all experiments; one that worked goes before one that failed."""
    found: dict[Key, Row] = {}
    for name in NAMES:
        for key, row in results_of(name).read().items():
            if key not in found or found[key]["error"]:
                found[key] = row
    return found


class Results:
    """The lines of one file, by the key of their run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[Key, Row]:
        """Every run in the file. An unfinished last line is left out."""
        if not self.path.is_file():
            return {}
        return self._parse(self.path.read_bytes())

    def append(self, rows: Iterable[Row]) -> int:
        """Add the lines of runs that the file does not have; how many these were.

        A run that worked takes the place of one that failed.
        """
        with self._locked() as file:
            text = _whole(file.read())
            known = self._parse(text)
            file.truncate(len(text))
            new = []
            for row in rows:
                old = known.get(key_of(row))
                if old is None or (old["error"] and not row["error"]):
                    new.append(row)
                    known[key_of(row)] = row
            file.write(_encode([] if text else [dict(zip(FIELDS, FIELDS, strict=True))]) + _encode(new))
            file.flush()
            os.fsync(file.fileno())
        return len(new)

    def drop(self, keys: Collection[Key]) -> int:
        """Take lines out, those of runs that must be made again; how many these were."""
        with self._locked() as file:
            known = self._parse(_whole(file.read()))
            kept = [row for key, row in known.items() if key not in keys]
            if len(kept) < len(known):
                file.truncate(0)
                file.write(_encode([dict(zip(FIELDS, FIELDS, strict=True)), *kept]))
                file.flush()
                os.fsync(file.fileno())
        return len(known) - len(kept)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file

    def _parse(self, data: bytes) -> dict[Key, Row]:
        found: dict[Key, Row] = {}
        for number, cells in enumerate(csv.reader(io.StringIO(_whole(data).decode("utf-8"), newline="")), 1):
            if len(cells) != len(FIELDS) or (number == 1 and tuple(cells) != FIELDS):
                rule = f"must be a results file: {len(FIELDS)} columns from {FIELDS[0]} to {FIELDS[-1]}"
                raise InputError(f"line {number} of {self.path}", Shown(f"{len(cells)} columns"), rule,
                                 "mend the file or take another one")  # fmt: skip
            row = dict(zip(FIELDS, cells, strict=True))
            if number > 1 and (key_of(row) not in found or not row["error"]):
                found[key_of(row)] = row
        return found


def _whole(data: bytes) -> bytes:
    """The lines that were written to their end."""
    return data[: data.rfind(b"\n") + 1]


def _encode(rows: Iterable[Row]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.DictWriter(buffer, FIELDS, restval="", lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode("utf-8")
