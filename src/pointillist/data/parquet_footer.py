"""The footer of a Parquet file, read without the library: it aborts the whole process for some damaged footers.

The footer is a Thrift structure in the compact protocol. It is read as plain dictionaries by the numbers of the fields;
what it claims is not trusted, and no claim makes this code take more memory than a multiple of the footer.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Chunk", "chunks_of"]

MAGIC = b"PAR1"
DEEPEST = 32
"""Structures in structures; a footer has fewer."""
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
DELTA_BYTE_ARRAY, REPEATED = 7, 2
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""The types of the compact protocol."""


@dataclass(frozen=True)
class Chunk:
    """What a footer claims about the cells of one column in one group of rows.

    Attributes:
        kind: the physical type.
        length: the bytes of a cell of the type FIXED_LEN_BYTE_ARRAY.
        repeated: whether a row may have several cells.
        deltas: whether a cell may repeat letters of the one before it.
        cells: the number of cells, or of rows if that is larger.
        size: the bytes of all pages, not compressed.
    """

    kind: str
    length: int
    repeated: bool
    deltas: bool
    cells: int
    size: int


def chunks_of(path: Path) -> list[Chunk]:
    """Return all chunks of a Parquet file, as its footer claims. Raises ValueError for a damaged footer.

    Args:
        path: The file.
    """
    content = _footer(path)
    try:
        return list(_chunks(_Thrift(content).structure()))
    except (TypeError, LookupError, AttributeError) as error:  # entries of other types than they should have
        raise ValueError("damaged footer") from error


def _chunks(footer: dict[int, Any]) -> Iterator[Chunk]:
    leaves = list(_leaves(footer[2]))
    for group in footer.get(4, []):
        if len(group[1]) != len(leaves):
            raise ValueError("damaged footer: other columns in a group of rows")
        for (length, repeated), column in zip(leaves, group[1], strict=True):
            about = column[3]
            kind, cells, size, rows = about[1], about[5], about[6], group[3]
            if not 0 <= kind < len(TYPES) or min(cells, size, rows, length) < 0:
                raise ValueError("damaged footer: a type or a size that cannot be")
            yield Chunk(TYPES[kind], length, repeated, DELTA_BYTE_ARRAY in about[2], max(cells, rows), size)


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        if end < 12:
            raise ValueError("file is smaller than a footer")
        file.seek(end - 8)
        size, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or size > end - 12:
            raise ValueError("no magic bytes of Parquet in the footer")
        file.seek(end - 8 - size)
        return file.read(size)


def _leaves(elements: list[dict[int, Any]]) -> Iterator[tuple[int, bool]]:
    """The length and whether it is repeated of every column without parts, from the list of all, parents first."""
    open_parents: list[list[Any]] = []  # how many children are to come, and whether they are repeated
    for n, element in enumerate(elements):
        repeated = element.get(3) == REPEATED or (bool(open_parents) and open_parents[-1][1])
        if open_parents:
            open_parents[-1][0] -= 1
        if (children := element.get(5, 0)) > 0 or n == 0:
            open_parents.append([children, repeated])
        else:
            yield element.get(2, 0), repeated
        while open_parents and open_parents[-1][0] <= 0:
            open_parents.pop()


class _Thrift:
    """A reader of the compact protocol. Damage raises ValueError or another LookupError."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """A structure, by the numbers of its fields."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            found[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind == BINARY:
            return self._take(self._varint())
        if depth > DEEPEST:
            raise ValueError("damaged footer: nested too deeply")
        if kind == STRUCT:
            return self.structure(depth + 1)
        if kind in (LIST, SET):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            self._require(size)
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind in (TRUE, FALSE, BYTE):  # in a list, a boolean takes a byte
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        raise ValueError("damaged footer: a value of an unknown type")

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError("damaged footer: a number of more than 64 bits")

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _take(self, size: int) -> bytes:
        self._require(size)
        self._at += size
        return self._content[self._at - size : self._at]

    def _require(self, size: int) -> None:
        if size > len(self._content) - self._at:
            raise ValueError("damaged footer: it ends too early")
