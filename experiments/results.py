"""The results file: one line per run, shared by all experiments.

While runs are made, a line is appended under a lock as soon as its run is done, and forced to the disk. So several
drivers may write to one file, and a kill can only damage the last line, which the next writer removes. Afterwards
:meth:`Results.sort` puts the lines in order. It and :meth:`Results.drop` replace the file as a whole: a reader never
sees half of it.
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

from experiments.grid import FIELDS, KEYS, Experiment, Key, Row, key_of
from pointillist.errors import InputError, Shown

FOLDER = Path(__file__).parent


def store() -> Results:
    """The committed results of all experiments."""
    return Results(FOLDER / "results.csv")


def lines_of(experiment: Experiment, results: dict[Key, Row] | None = None) -> dict[Key, Row]:
    """The lines of an experiment: those of its programs, at any epsilon and seed."""
    programs = experiment.programs()
    found = store().read() if results is None else results
    return {key: row for key, row in found.items() if key[:-2] in programs}


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
        """Add the lines of runs that the file does not have, and return their number.

        A run that worked replaces one that failed.
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
            file.write((b"" if text else HEADER) + _encode(new))
            _flush(file)
        return len(new)

    def drop(self, keys: Collection[Key]) -> int:
        """Remove the lines of runs that must be made again, and return their number."""
        with self._locked() as file:
            known = self._parse(file.read())
            kept = {key: row for key, row in known.items() if key not in keys}
            self._replace(kept.values())
        return len(known) - len(kept)

    def sort(self) -> None:
        """Put the lines in the order of their keys, one line per run."""
        with self._locked() as file:
            self._replace(self._parse(file.read()).values())

    def _replace(self, rows: Iterable[Row]) -> None:
        """Write a new file, sorted, in place of this one."""
        new = self.path.with_name(f"{self.path.name}.new")
        with new.open("wb") as file:
            file.write(HEADER + _encode(sorted(rows, key=_order)))
            _flush(file)
        new.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file at its beginning, with no other writer."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with self.path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue  # another writer replaced the file while this one waited
                file.seek(0)
                yield file
                return

    def _is_current(self, file: BinaryIO) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def _parse(self, data: bytes) -> dict[Key, Row]:
        found: dict[Key, Row] = {}
        for number, cells in enumerate(csv.reader(io.StringIO(_whole(data).decode("utf-8"), newline="")), 1):
            if len(cells) != len(FIELDS) or (number == 1 and tuple(cells) != FIELDS):
                rule = f"must be a results file: {len(FIELDS)} columns from {FIELDS[0]} to {FIELDS[-1]}"
                raise InputError(f"line {number} of {self.path}", Shown(f"{len(cells)} columns"), rule,
                                 "repair the file or choose another one")  # fmt: skip
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


HEADER = _encode([dict(zip(FIELDS, FIELDS, strict=True))])


def _order(row: Row) -> tuple[Key, float, int]:
    """Lines are sorted by their program, then by epsilon and seed as numbers."""
    return tuple(row[name] for name in KEYS[:-2]), float(row["epsilon"]), int(row["seed"])


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
