"""The command that explains a workload. It reads a schema and no data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from pointillist.checks import check
from pointillist.cli_complete import data_names
from pointillist.cli_tables import is_dataset, schema_beside
from pointillist.data import datasets
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Schema
from pointillist.job import planned_workload
from pointillist.queries.explaining import Explained, explain
from pointillist.queries.workload import show_bytes

__all__ = ["workload"]

screen = Console(highlight=False, soft_wrap=True)


def workload(
    queries: Annotated[
        str, typer.Argument(help="A workload: a text such as prefixes:2 + halfspaces:50, or a TOML file.")
    ],
    data: Annotated[
        str, typer.Option("--data", help="A schema, a file that has one, or a dataset.", autocompletion=data_names)
    ],
    max_cells: Annotated[
        int | None, typer.Option("--max-cells", help="The largest marginal that a random draw takes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a workload: its queries, what one person can change in them, and memory. Reads no data."""
    asked = planned_workload(queries, _schema_of(data), max_cells)
    found = explain(asked)
    if as_json:
        print(
            json.dumps({"queries": asked.size, "groups": len(asked.queries), "kinds": [one.to_dict() for one in found]})
        )
        return
    screen.print(asked.describe(), markup=False)
    for one in found:
        grid = Grid("kind", one.kind)  # one below the other: side by side they do not fit a terminal
        for name, value in _rows(one):
            grid.add_row(name, value)
        screen.print(grid)
    screen.print("change: of one count / of all counts of a group together (L1) / of their length (L2), by one person")


def _rows(one: Explained) -> list[tuple[str, str]]:
    low, high = one.attributes
    by = "records" if one.direct == one.groups else "marginals" if not one.direct else "marginals and records"
    return [
        ("groups", f"{one.groups:,}"),
        ("queries", f"{one.queries:,}"),
        ("columns of a group", f"{low}" if low == high else f"{low} to {high}"),
        *((f"change ({relation.value})", one.change(relation)) for relation in Relation),
        ("counted by", by),
        ("memory", show_bytes(one.memory)),
    ]


def _schema_of(data: str) -> Schema:
    """The schema that is meant: its file, that of a table, or that of a dataset."""
    if is_dataset(data):
        return datasets.load(data).schema
    file = Path(data) if data.endswith(".toml") else schema_beside(data)
    check(file.is_file(), "data", data, "must be a schema, a file with one next to it, or a dataset", "check the path")
    return Schema.load(file)
