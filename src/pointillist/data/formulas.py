"""Text cells that a spreadsheet would run as a formula, made harmless in CSV files.

A cell is *risky* if it begins with ``=``, ``+``, ``-``, ``@`` (also in full width), a tab or a line break, after any
number of apostrophes, and is not just a number such as ``-1.5``. Risky cells are written with one apostrophe before
them, and read with one less. So every text comes back as it was: ``=A1`` is written as ``'=A1``, and ``'=A1`` as
``''=A1``. Cells of numeric columns are never text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["escape", "unescape"]

Change: TypeAlias = "Callable[[pa.Array], pa.Array]"

RISKY = "^'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]"
NUMBER = r"^'*[+-]([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def escape(table: pa.Table) -> pa.Table:
    """Return a table as it is written to a CSV file: risky names and text cells have one apostrophe more.

    Args:
        table: The table, with columns of any type.
    """
    return _changed(table, _escaped)


def unescape(table: pa.Table) -> pa.Table:
    """Return a table as it was before :func:`escape`.

    Args:
        table: What was read from a CSV file.
    """
    return _changed(table, _unescaped)


def _changed(table: pa.Table, change: Change) -> pa.Table:
    import pyarrow as pa

    names = change(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.table([_text(column, change) for column in table.columns], names=names)


def _text(column: pa.ChunkedArray, change: Change) -> pa.ChunkedArray:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return change(column) if text else column


def _escaped(cells: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(cells, RISKY)).as_py():
        return cells
    mark, nothing = pa.scalar("'", cells.type), pa.scalar("", cells.type)
    return pc.if_else(_risky(cells), pc.binary_join_element_wise(mark, cells, nothing), cells)


def _unescaped(cells: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    marked = pc.starts_with(cells, "'")
    if not pc.any(marked).as_py():
        return cells
    return pc.if_else(pc.and_(marked, _risky(cells)), pc.utf8_slice_codeunits(cells, 1), cells)


def _risky(cells: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.and_not(pc.match_substring_regex(cells, RISKY), pc.match_substring_regex(cells, NUMBER))
