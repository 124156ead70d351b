"""Workloads as TOML files: a list of queries, each a text form or conditions, with a weight.

::

    format = 1

    [[queries]]
    workload = "marginals:2"                             # any text of a workload

    [[queries]]
    where = 'age >= 65 and region in ["N", "S"]'         # a condition on the columns
    weight = 4                                           # it matters four times as much as what has no weight

    [[queries]]
    where = ["age < 18", "age >= 18 and smoker == true"] # asked together
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pointillist.checks import check, positive, real
from pointillist.data.columns.base import check_keys
from pointillist.data.messages import fragment
from pointillist.data.schema import Schema, read_toml
from pointillist.errors import Shown
from pointillist.queries.base import Queries
from pointillist.queries.kway import sized
from pointillist.queries.predicates import Predicates
from pointillist.queries.texts import parse_workload
from pointillist.queries.workload import Workload

__all__ = ["is_file", "load_workload"]

SUFFIX = ".toml"


def is_file(text: str) -> bool:
    """Whether a text names a workload file.

    Args:
        text: the text.
    """
    return text.endswith(SUFFIX)


def load_workload(path: str | Path, schema: Schema, max_cells: int | None = None) -> Workload:
    """A workload from a TOML file.

    Args:
        path: the file.
        schema: the columns.
        max_cells: a random draw takes marginals with at most this number of cells.
    """
    spec = read_toml("workload", path, "write one, or give a text such as marginals:3")
    check_keys("workload file", spec, ("format", "queries"))
    rule, hint = "must be 1", "write format = 1 in the first line"
    check(spec.get("format") == 1, "workload file: format", fragment(spec.get("format")), rule, hint)
    tables = spec.get("queries")
    rule, hint = "must be a list of tables", 'write [[queries]] and where = "age >= 65"'
    good = isinstance(tables, list) and len(tables) > 0 and all(isinstance(one, dict) for one in tables)
    check(good, "workload file: queries", fragment(tables), rule, hint)
    weights: dict[Queries, float] = {}
    for table in tables or ():
        weight = _weight(table)
        for queries in _queries(table, schema, max_cells):
            rule, hint = "must have the same queries once", "drop one of the tables, or name fewer queries in it"
            check(queries not in weights, "workload file: queries", Shown("some of them twice"), rule, hint)
            weights[queries] = weight
    return sized(Workload(schema.domain, tuple(weights), tuple(weights.values())))


def _weight(table: dict[str, Any]) -> float:
    check_keys("workload file: queries", table, ("workload", "where", "weight"))
    return positive("workload file: weight", real("workload file: weight", table.get("weight", 1.0), 2))


def _queries(table: dict[str, Any], schema: Schema, max_cells: int | None) -> Iterable[Queries]:
    rule, hint = "must have either workload or where", 'write where = "age >= 65"'
    check(("workload" in table) != ("where" in table), "workload file: queries", fragment(table), rule, hint)
    if "workload" in table:
        text = table["workload"]
        good = isinstance(text, str) and not is_file(text)
        check(good, "workload file: workload", fragment(text), "must be a text", 'write for example "marginals:2"')
        return parse_workload(text, schema, max_cells).queries
    where = [table["where"]] if isinstance(table["where"], str) else table["where"]
    good = isinstance(where, list) and len(where) > 0 and all(isinstance(one, str) for one in where)
    rule, hint = "must be a condition, or a list of them", 'write for example "age >= 65"'
    check(good, "workload file: where", fragment(where), rule, hint)
    return [Predicates.of(schema, *where)]
