"""Files of SPSS, Stata and SAS, read by pyreadstat. Their value labels are the values of the columns.

A column whose values all have labels comes as positions in the list of its labels, unused ones included, in the order
of the file; declared missing values with a label are among them. In other columns declared missing values are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointillist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["STATISTICS_FILES", "Codebook", "read_codebook", "read_statistics"]

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
STATISTICS_FILES = tuple(READERS)
"""The endings of files of statistics packages."""
Value = float | int | str


@dataclass(frozen=True)
class Codebook:
    """What a file of a statistics package says about its columns, apart from their cells.

    Args:
        kinds: The type of each column: "string", "number", "date", "timestamp" or "time".
        labels: The label of each value, by the name of the column, in the order of the file.
        missing: The declared missing values of a column: pairs of the lowest and the highest one.
        descriptions: What the file says about a column.
    """

    kinds: Mapping[str, str]
    labels: Mapping[str, Mapping[Value, str]] = field(default_factory=dict)
    missing: Mapping[str, Sequence[tuple[Value, Value]]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def values_of(self, name: str) -> tuple[str, ...]:
        """Return the labels of a column as different texts; empty if at most declared missing values have labels.

        Args:
            name: The name of the column.
        """
        labels = self.labels.get(name, {})
        if all(self.is_declared_missing(name, value) for value in labels):
            return ()
        texts = [label.strip() or _plain_text(value) for value, label in labels.items()]
        return tuple(
            f"{text} ({_plain_text(value)})" if texts.count(text) > 1 else text
            for value, text in zip(labels, texts, strict=True)
        )

    def is_declared_missing(self, name: str, value: Any) -> bool:
        """Return whether a value is among the declared missing ones of a column.

        Args:
            name: The name of the column.
            value: The value.
        """
        return any(
            isinstance(value, str) == isinstance(low, str) and low <= value <= high
            for low, high in self.missing.get(name, ())
        )


def read_codebook(path: Path) -> Codebook:
    """Read what a file says about its columns; its cells are not read.

    Args:
        path: The file.
    """
    return _codebook(_read(path, metadataonly=True)[1])


def read_statistics(path: Path) -> pa.Table:
    """Read a file of SPSS, Stata or SAS. What it says about a column is the description in the metadata of its field.

    Args:
        path: The file.
    """
    import pyarrow as pa

    cells, meta = _read(path)
    book = _codebook(meta)
    columns = [_column(name, list(cells[name]), book) for name in meta.column_names]
    words = [{"description": book.descriptions[n]} if n in book.descriptions else None for n in meta.column_names]
    named = zip(meta.column_names, columns, words, strict=True)
    return pa.table(columns, pa.schema([pa.field(name, cell.type, metadata=about) for name, cell, about in named]))


def _read(path: Path, **more: Any) -> tuple[Mapping[str, Sequence[Any]], Any]:
    try:
        import pyreadstat
    except ImportError:
        hint = "install it with `pip install pointillist[statistics]`, or convert the file to Parquet"
        raise InputError("data", str(path), "needs the package pyreadstat", hint) from None
    if path.suffix in (".sav", ".zsav", ".dta", ".sas7bdat"):
        more["user_missing"] = True
    try:
        cells, meta = getattr(pyreadstat, READERS[path.suffix])(str(path), output_format="dict", **more)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        raise ValueError(f"damaged file of a statistics package ({type(error).__name__})") from None
    return cells, meta


def _codebook(meta: Any) -> Codebook:
    missing = {name: [(one["lo"], one["hi"]) for one in ranges] for name, ranges in (meta.missing_ranges or {}).items()}
    for name, values in (meta.missing_user_values or {}).items():
        missing[name] = [*missing.get(name, []), *((value, value) for value in values)]
    descriptions = {name: text for name, text in meta.column_names_to_labels.items() if text}
    kinds = {
        name: _kind(meta.readstat_variable_types.get(name, ""), str(meta.original_variable_types.get(name, "")))
        for name in meta.column_names
    }
    return Codebook(kinds, dict(meta.variable_value_labels or {}), missing, descriptions)


def _kind(stored: str, shown: str) -> str:
    """Return the kind of a column, from how it is stored and the format in which its program shows it."""
    shown = shown.upper().lstrip("%")
    if stored == "string":
        return "string"
    if shown.startswith(("DATETIME", "YMDHMS", "TC")):
        return "timestamp"
    if shown.startswith(("TIME", "HH", "TOD")):
        return "time"
    if shown.startswith(("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "TD", "YYMMDD", "MMDDYY", "DDMMYY", "D ")):
        return "date"
    return "number"


def _column(name: str, cells: list[Any], book: Codebook) -> pa.Array:
    import pyarrow as pa

    values = book.values_of(name)
    if values:
        place = {key: n for n, key in enumerate(book.labels[name])}
        if all(cell in place for cell in cells if not _is_gap(cell)):
            places = [None if _is_gap(cell) else place[cell] for cell in cells]
            return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(values, pa.string()))
    kept = [None if _is_gap(cell) or book.is_declared_missing(name, cell) else cell for cell in cells]
    if book.kinds[name] == "number" and all(isinstance(cell, str) for cell in kept if cell is not None):
        kept = [None] * len(kept)  # letters of missing values of Stata and SAS, and nothing else
    elif book.kinds[name] == "number":
        kept = [None if isinstance(cell, str) else cell for cell in kept]
        if all(float(cell).is_integer() and abs(cell) < 2**53 for cell in kept if cell is not None):
            return pa.array([None if cell is None else int(cell) for cell in kept], pa.int64())
        return pa.array(kept, pa.float64())
    return pa.array(kept, pa.string() if book.kinds[name] == "string" else None)


def _is_gap(cell: Any) -> bool:
    return cell is None or cell != cell


def _plain_text(value: Value) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
