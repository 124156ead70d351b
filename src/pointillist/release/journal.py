"""The journal of a run: what is spent is on disk before noise is drawn, and what was drawn before it is used.

A journal is a file of records, appended one after the other. A record is a line of JSON, which says the number of bytes
of the arrays that follow it, and their CRC. A crash can only cut the last record off; reading stops there. The records:

    job       what is needed to make the run again: method, settings, workload, schema, budget, seed; never any data
    charge    entries of the ledger, written before the noise is drawn
    result    what the curator returned for the charges before it, written before it is used

Charges without a result are *open*: the process died before anyone could see what was drawn. A resumed run draws under
the same charges again and spends nothing twice, since the lost draw left no trace.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from pointillist.errors import InputError, PointillistError

__all__ = ["NAME", "Journal", "Record", "is_blank", "read_journal", "sync_folder", "undamaged"]

NAME = "journal"
"""The name of the file in the folder of a run."""

BACKUP = "bring the file back from a backup: what it lists is spent"

HEAD = re.compile(rb"(?=([0-9a-f]{8}) (\{[^\n]*\})\n)")  # matches may overlap where a line end is damaged


@dataclass(frozen=True)
class Record:
    """One record: its kind, plain data, and named arrays."""

    kind: str
    data: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Journal:
    """An open journal. Every record is on disk when :meth:`append` returns."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @classmethod
    def create(cls, folder: Path) -> Journal:
        """A new journal in ``folder``."""
        journal = cls((folder / NAME).open("xb", buffering=0))
        sync_folder(folder)
        return journal

    @classmethod
    def reopen(cls, folder: Path) -> tuple[Journal, list[Record]]:
        """A journal that a run left behind, and its records. A record that was cut off is removed."""
        records, end = read_journal(folder / NAME)
        file = (folder / NAME).open("r+b", buffering=0)
        file.truncate(end)
        file.seek(end)
        return cls(file), records

    def append(self, kind: str, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
        """Write a record and wait until it is on disk."""
        blocks = [(name, np.asarray(array, order="C")) for name, array in (arrays or {}).items()]
        body = b"".join(array.tobytes() for _, array in blocks)
        shapes = [[name, array.dtype.str, list(array.shape)] for name, array in blocks]
        head = {"kind": kind, "data": dict(data), "arrays": shapes, "crc": zlib.crc32(body)}
        line = json.dumps(head).encode()
        rest = memoryview(b"%08x %s\n%s" % (zlib.crc32(line), line, body))
        while rest:  # a disk that is nearly full takes a part
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> tuple[list[Record], int]:
    """All whole records of a journal, and where they end. A record that was cut off by a crash is the last one: where
    others follow, the journal is damaged, and going on could spend twice."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        rule = "must exist (the run may just have ended)"
        raise InputError("journal", str(path), rule, "look for release.json in its folder") from None
    records, at = [], 0
    try:
        for record, end in _records(content):
            records.append(record)
            at = end
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, at) from error
    if _is_record(content, at + 1):  # the one that begins at the end may have been cut off behind its line
        raise _damaged(path, at)
    if not records or records[0].kind != "job":
        raise InputError("journal", str(path), "must begin with the job of a run", "nothing was spent: run again")
    return records, at


def is_blank(path: Path) -> bool:
    """Whether not even the first record of a journal is whole: its run has spent nothing."""
    content = path.read_bytes()
    return content.count(b"\n") <= 1 and not _is_record(content, 0)


def _is_record(content: bytes, start: int) -> bool:
    """Whether a record begins at ``start`` or anywhere behind it."""
    lines = HEAD.finditer(content, start)
    return any(found[1] == b"%08x" % zlib.crc32(found[2]) for found in lines)


@contextlib.contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Use the content of a journal; whatever is wrong with it is told in one sentence."""
    try:
        yield
    except PointillistError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        rule = f"must be undamaged ({type(error).__name__} in its content)"
        raise InputError("journal", str(path), rule, BACKUP) from error


def _damaged(path: Path, at: int) -> InputError:
    rule = f"must be undamaged (the record at byte {at:,} is not, and it is not the last one)"
    return InputError("journal", str(path), rule, BACKUP)


def _records(content: bytes) -> Iterator[tuple[Record, int]]:
    """Records one after the other, until one is cut off or damaged."""
    at = 0
    while (end := content.find(b"\n", at)) >= 0:
        crc, _, line = content[at:end].partition(b" ")
        if crc != b"%08x" % zlib.crc32(line):
            return
        head = json.loads(line)
        start = at = end + 1
        arrays = {}
        for name, kind, shape in head["arrays"]:
            dtype = np.dtype(kind)
            size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            if at + size > len(content):
                return
            arrays[name] = np.frombuffer(content[at : at + size], dtype).reshape(shape)
            at += size
        if zlib.crc32(content[start:at]) != head["crc"]:
            return
        yield Record(head["kind"], head["data"], arrays), at


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
