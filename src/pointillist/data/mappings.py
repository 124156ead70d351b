"""CSV files that a schema file names: mappings of rules, and hierarchies of long lists of values.

They are read when the schema file is read, so that a schema, and every release, holds all of them itself.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pointillist.checks import check
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

__all__ = ["expanded", "read_csv", "with_hierarchies"]

MOST_BYTES = 100_000_000
"""The largest file."""

SHARES = ("share", "shares", "population")
"""Names of the column of a hierarchy that has public shares."""


def read_csv(what: str, path: Path) -> tuple[list[str], list[list[str]]]:
    """The names of the columns of a CSV file, and its other lines, all of the same length.

    Args:
        what: what the file is, for messages, such as "rule: mapping".
        path: the file.
    """
    try:
        size = path.stat().st_size
        rule, hint = f"must be a file of at most {MOST_BYTES:,} bytes", "give the mapping, not the table"
        check(size <= MOST_BYTES, what, str(path), rule, hint)
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, ValueError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        rule = f"must be a readable CSV file ({type(error).__name__})"
        raise InputError(what, str(path), rule, "check the path, from the folder of the schema") from None
    check(len(lines) > 0, what, str(path), "must name its columns in the first line", "add a first line")
    names, rows = lines[0], lines[1:]
    ragged = next((n for n, row in enumerate(rows, 2) if len(row) != len(names)), None)
    rule = f"must have {len(names)} cells in every line, as in the first"
    check(ragged is None, what, Shown(f"line {ragged}"), rule, "correct the file")
    return names, rows


def with_hierarchies(specs: Any, folder: Path) -> Any:
    """The ``[[column]]`` tables of a schema file with the names of hierarchies as paths, which columns read.

    A text there is never a path to a column: only whoever reads a schema *file* says where files are.

    Args:
        specs: the tables.
        folder: where the schema file is, from which the names are resolved.
    """
    if not isinstance(specs, list):
        return specs
    return [
        spec | {"hierarchy": folder / spec["hierarchy"]}
        if isinstance(spec, dict) and isinstance(spec.get("hierarchy"), str)
        else spec
        for spec in specs
    ]


def expanded(spec: dict[str, Any]) -> dict[str, Any]:
    """A ``[[column]]`` table with ``values``, ``parents`` and ``shares`` in place of the file of its hierarchy.

    The first column of the file has the values, the others levels, from the coarsest to the finest or the reverse. A
    column named share, shares or population has public shares.

    Args:
        spec: the table.
    """
    path = spec.get("hierarchy")
    if path is None:
        return spec
    where = f"{column_called(spec['name'])}: hierarchy"
    hint = 'write for example hierarchy = "postcodes.csv" in a schema file'
    check(isinstance(path, Path), where, fragment(path), "must be the name of a CSV file, in a schema file", hint)
    names, rows = read_csv(where, path)
    values = [row[0] for row in rows]
    check(all(values), where, Shown("an empty value"), "must have a value in every line", "correct the file")
    places = dict(zip(values, range(len(values)), strict=True))
    twice = [value for n, value in enumerate(values) if places[value] != n]
    check(not twice, where, fragment(twice[:1]), "must list every value once", "remove the repeated lines")
    asked = spec.get("values", values)
    wanted = [str(value) for value in asked] if isinstance(asked, list | tuple) else values
    unknown = [value for value in wanted if value not in places]
    rule, hint = "must list all values of the column", "add lines for the others, or leave values out"
    check(not unknown, where, fragment(unknown[:1]), rule, hint)
    chosen = [rows[places[value]] for value in wanted]
    found: dict[str, Any] = {"values": asked, **_columns(where, names[1:], [row[1:] for row in chosen])}
    both = sorted(spec.keys() & found.keys() - {"values"})
    rule, hint = "must not be given twice", "leave it out of the schema, or of the file"
    check(not both, where, Shown(", ".join(both)), rule, hint)
    return {key: value for key, value in spec.items() if key != "hierarchy"} | found


def _columns(where: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, list[Any]]:
    """The levels as ``parents`` and the shares as ``shares``, where there are any."""
    shares = [n for n, name in enumerate(names) if name.strip().lower() in SHARES]
    rule = f"must have one column of shares ({', '.join(SHARES)})"
    check(len(shares) <= 1, where, fragment([names[n] for n in shares]), rule, "remove the others")
    levels = {name: [row[n] for row in rows] for n, name in enumerate(names) if n not in shares}
    check(len(levels) + len(shares) == len(names), where, fragment(list(names)), "must have different names", "rename")
    found: dict[str, list[Any]] = {}
    if levels:
        found["parents"] = ["/".join(path) for path in zip(*_nested(where, levels).values(), strict=True)]
    if shares:
        found["shares"] = [_share(where, row[shares[0]]) for row in rows]
    return found


def _nested(where: str, levels: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The levels with the coarsest first; refuses those that are not nested."""
    for name, groups in levels.items():
        gap, slash = any(not one for one in groups), next((one for one in groups if "/" in one), None)
        rule, hint = "must name a group for each value", "fill the empty cells"
        check(not gap, where, Shown(f"an empty cell in {fragment(name)}"), rule, hint)
        rule, hint = f"must not have a / in a group of {fragment(name)}", "write another character"
        check(slash is None, where, fragment(slash), rule, hint)
    turned = dict(reversed(list(levels.items())))
    if _crossing(levels) is not None and _crossing(turned) is None:
        return turned
    crossing = _crossing(levels)
    rule = "must be nested: each group of a level in one group of the coarser one"
    hint = "order the levels from the coarsest to the finest, and give different groups different names"
    check(crossing is None, where, Shown(crossing), rule, hint)
    return levels


def _crossing(levels: Mapping[str, Sequence[str]]) -> str | None:
    """A group that lies in two groups of the level before, in words."""
    items = list(levels.items())
    for (coarse, above), (fine, below) in pairwise(items):
        known: dict[str, str] = {}
        for up, group in zip(above, below, strict=True):
            if known.setdefault(group, up) != up:
                return f"{fragment(group)} of {fragment(fine)} in two of {fragment(coarse)}"
    return None


def _share(where: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    good = math.isfinite(share) and share >= 0
    check(good, where, fragment(text), "must have shares that are numbers of 0 or more", "correct the file")
    return int(share) if share.is_integer() else share
