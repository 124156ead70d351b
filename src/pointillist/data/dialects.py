"""Dialects of CSV files: separator, encoding, decimal mark and header, recognised from the beginning of a file.

What is recognised can be overridden, one setting at a time. Nothing here is shown except the names of the settings.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pointillist.checks import check
from pointillist.data.messages import fragment
from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COMPRESSED", "PLAIN", "TEXT_FILES", "Dialect", "decimal_points", "recognise"]

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
TEXT_FILES = tuple(f"{kind}{packed}" for kind in (".csv", ".tsv", ".txt") for packed in ("", *COMPRESSED))
"""The endings of files that are read as CSV."""
BEGINNING = 100_000
"""The number of bytes from which a dialect is recognised."""
POINT_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?|[-+]?[1-9]\d{0,2}(\.\d{3})+,\d+")
THOUSANDS = r"^\s*[-+]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?\s*$"
DECIMAL_COMMA = r"^(\s*[-+]?[0-9]*),([0-9]+([eE][-+]?[0-9]+)?\s*)$"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written. Settings that are left out are recognised from the beginning of the file.

    Args:
        separator: What separates cells: one character, or one of "comma", "semicolon", "tab" and "pipe".
        encoding: The encoding, by a name that Python knows, such as "utf-8", "utf-16" or "cp1252".
        decimal: The decimal mark of numbers, "." or ",". With ",", points between groups of three digits are
            thousands separators.
        header: Whether the first row holds the names of the columns. Without it they are column1, column2, ...
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.separator is not None:
            mark = SEPARATORS.get(self.separator, "\t" if self.separator == r"\t" else self.separator)
            rule = f"must be one character, or one of {', '.join(SEPARATORS)}"
            good = isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n\0'
            check(good, "separator", fragment(self.separator), rule, "give for example semicolon")
            object.__setattr__(self, "separator", mark)
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))
        good = self.decimal in (None, ".", ",")
        check(good, "decimal", fragment(self.decimal), 'must be "." or ","', 'give "," for a decimal comma')
        good = self.header is None or isinstance(self.header, bool)
        check(good, "header", fragment(self.header), "must be true or false", "leave it out to have it recognised")

    @property
    def is_set(self) -> bool:
        """Whether any setting was given."""
        return self != Dialect()

    def describe(self) -> str:
        """Return the dialect in words, such as "semicolon, cp1252, decimal comma"."""
        names = {mark: name for name, mark in SEPARATORS.items()}
        encoding = (self.encoding or "").removesuffix("-sig")
        parts = [
            names.get(self.separator or "", f"separator {self.separator!r}"),
            encoding.upper() if encoding.startswith("utf") else encoding,
            "decimal comma" if self.decimal == "," else "",
            "no header" if self.header is False else "",
        ]
        return ", ".join(part for part in parts if part)


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
        "a".encode(found)
    except (LookupError, TypeError, ValueError):
        rule, hint = "must be an encoding that Python knows", "give for example utf-8, utf-16 or cp1252"
        raise InputError("encoding", fragment(name), rule, hint) from None
    return found.replace("_", "-").replace("iso8859-1", "latin-1")


PLAIN = Dialect(",", "utf-8", ".", True)
"""The dialect of the files that this package writes."""


def recognise(path: Path, given: Dialect | None = None) -> Dialect:
    """Return the dialect of a CSV file, every setting of it.

    Args:
        path: The file; it may be compressed.
        given: Settings that are known already.
    """
    import pyarrow as pa

    given = given or Dialect()
    with pa.input_stream(str(path), compression="detect") as stream:
        beginning = stream.read(BEGINNING)
        whole = not stream.read(1)
    encoding = given.encoding or _encoding_of(beginning, whole)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(beginning, whole).removeprefix("\ufeff")
    separator = given.separator or _separator_of(text, whole, path.name.partition(".")[2].startswith("tsv"))
    rows = _records(text, separator, whole)
    decimal = given.decimal or _decimal_of(rows, separator)
    header = _has_header(rows, decimal) if given.header is None else given.header
    return replace(given, separator=separator, encoding=encoding, decimal=decimal, header=header)


def _encoding_of(beginning: bytes, whole: bool) -> str:
    """Return UTF-16 or UTF-8 if a mark or the bytes say so, else the usual encoding of Western spreadsheets."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if beginning.startswith(mark):
            return encoding
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = beginning[start::2]
        if len(half) > 4 and half.count(0) > 0.6 * len(half) and beginning[1 - start :: 2].count(0) == 0:
            return encoding
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)("strict").decode(beginning, whole)
            return encoding
        except UnicodeDecodeError:
            pass  # the next encoding is tried
    return "latin-1"


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Return the rows of the beginning of a file, without blank ones and without one that is cut off."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        return []
    return [row for row in (rows if whole or len(rows) < 2 else rows[:-1]) if row]


def _separator_of(text: str, whole: bool, is_tsv: bool) -> str:
    """Return the separator that gives every row the same number of cells, or else most rows."""
    best, best_score = "\t" if is_tsv else ",", (0.0, 0)
    for mark in ("\t", ";", "|", ","):
        widths = [len(row) for row in _records(text, mark, whole)]
        if not widths or widths[0] < 2:
            continue
        share = sum(width == widths[0] for width in widths) / len(widths)
        if share == 1 and len(widths) > 1:  # commas inside may be decimal ones
            return mark
        if (share, widths[0]) >= best_score:
            best, best_score = mark, (share, widths[0])
    return best


def _decimal_of(rows: list[list[str]], separator: str) -> str:
    """Return "," if more numbers have a comma than a point. Between commas, "1,234" has a thousands separator."""
    if separator == ",":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    commas = sum(COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
    points = sum("." in cell and POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return false if the columns of numbers have a number in the first row too."""
    if len(rows) < 3:
        return True
    numeric = [
        place
        for place in range(len(rows[0]))
        if any(_is_number(row[place], decimal) for row in rows[1:] if place < len(row))
        and all(_is_number(row[place], decimal) or not row[place].strip() for row in rows[1:] if place < len(row))
    ]
    first = [rows[0][place] for place in numeric]
    if not first or not all(_is_number(cell, decimal) for cell in first):
        return True
    return len(first) > 1 and _evenly_spaced(first, decimal)  # years as names of columns


def _is_number(cell: str, decimal: str) -> bool:
    patterns = (POINT_NUMBER, COMMA_NUMBER) if decimal == "," else (POINT_NUMBER,)
    return any(pattern.fullmatch(cell.strip()) for pattern in patterns)


def _evenly_spaced(cells: list[str], decimal: str) -> bool:
    numbers = [float(cell.replace(".", "").replace(",", ".") if decimal == "," else cell) for cell in cells]
    steps = {b - a for a, b in pairwise(numbers)}
    return len(steps) == 1 and steps.pop() != 0


def decimal_points(table: pa.Table) -> pa.Table:
    """Return a table of texts with every number in it written with a decimal point, cell by cell.

    Args:
        table: What was read from a file with decimal commas.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def changed(cells: pa.ChunkedArray) -> pa.ChunkedArray:
        grouped = pc.match_substring_regex(cells, THOUSANDS)
        if pc.any(grouped).as_py():
            cells = pc.if_else(grouped, pc.replace_substring(cells, ".", ""), cells)
        return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")

    return pa.table([changed(column) for column in table.columns], names=table.column_names)
