"""The memory of a run: an estimate before it starts, from public facts, and what the process took in the end.

The estimate is that of the largest resident memory of the whole process on a CPU. Most of it is not the model: Python
and its libraries, JAX, and above all the compiler take hundreds of megabytes. The constants were fitted to measured
runs; a slow test compares the estimate with what fresh processes take.
"""

from __future__ import annotations

import re
from pathlib import Path

from pointillist.checks import at_least, whole
from pointillist.errors import InputError, brief

__all__ = ["bytes_of", "compiled", "estimate", "of_texts", "peak_memory"]

MB = 1_000_000
LIBRARIES = 200 * MB
"""Python, NumPy, SciPy, pyarrow and OpenDP, as a run loads them."""
JAX = 110 * MB
"""JAX and its libraries."""
COMPILER, PER_BATCH = 160 * MB, 30 * MB
"""What compiling a descent takes, and what each batch of matrix products in it adds."""
PER_CELL = 25
"""Bytes for each cell of a table that is read and encoded."""
PER_ANSWER = 64
"""Bytes for each query of a workload: its counts, its measurements, the answers of the model, and what is fitted."""
PER_TEXT = 500
"""Bytes for each different text of a column whose values are discovered, if it has some 20 letters: itself, its number,
and what counting and sorting takes. Longer ones take up to a dozen bytes more for each letter."""
PER_ROW, PER_VALUE = 100, 48
"""Bytes for each synthetic row, and for each value in it, while it is drawn, matched and written."""


LEAST = 64 * MB
"""The least memory that can be allowed for rows and counts."""
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
MEMORY = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE | re.ASCII)
READING = 150 * MB
"""Bytes for the pieces of a table that are read and encoded at one time."""


def bytes_of(name: str, memory: int | str) -> int:
    """Return a number of bytes that may be written with a unit, such as "4GB" or "512 MiB".

    Args:
        name: The name of the parameter in error messages.
        memory: The number, or a text.
    """
    if isinstance(memory, str):
        found = MEMORY.fullmatch(memory)
        if found is None:
            rule = "must be a number of bytes with a unit (kB, MB, GB, TB)"
            raise InputError(name, brief(memory), rule, "give for example 4GB")
        memory = int(float(found[1]) * (1024 if found[3] else 1000) ** POWERS[found[2].lower()])
    return at_least(name, whole(name, memory), LEAST, "4GB")


def compiled(batches: int) -> int:
    """Bytes that JAX takes with the programs of a descent that has this number of batches of matrix products."""
    return JAX + COMPILER + PER_BATCH * batches


def estimate(
    working_set: int, queries: int, columns: int, table_rows: int | None, rows: int | None, held: int | None = None
) -> int:
    """About how many bytes a whole process takes at its peak.

    Args:
        working_set: bytes that the model takes while it is fitted.
        queries: the number of single queries of the workload.
        columns: the number of columns of the table.
        table_rows: the number of rows of the private table; None where that is private, and nothing is added for it.
        rows: the number of synthetic rows; None as well, where it follows from a private number.
        held: bytes of the rows of a table that is read in pieces; None for one that is given as a whole.
    """
    table = PER_CELL * columns * (table_rows or 0) if held is None else held + READING
    drawn = (PER_ROW + PER_VALUE * columns) * (rows or 0)
    return LIBRARIES + working_set + PER_ANSWER * queries + table + drawn


def of_texts(columns: int, different: int) -> int:
    """About how many bytes the different texts of columns take whose values are discovered.

    How many there are is private, and only known when the data are read. The number of rows bounds it.

    Args:
        columns: the number of such columns.
        different: the number of different texts of each.
    """
    return PER_TEXT * columns * different


def peak_memory() -> int:
    """The largest resident memory that this process had so far, in bytes; 0 where the system does not tell.

    It may depend on private data (the number of rows, under add-remove): it is for the screen of the person who has
    the table, and goes into no release and no log.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError):
        return _most_resident()


def _most_resident() -> int:
    """The same by another way, which counts the process that started this one as well."""
    try:
        import resource
        import sys
    except ImportError:
        return 0
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024
