"""The commands of schemas: `pointillist schema DATA` drafts one, `pointillist schema check` lists its problems."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from pointillist.checks import check
from pointillist.cli_complete import data_names
from pointillist.cli_tables import Decimal, Encoding, Header, Separator, is_dataset, read_table, schema_beside
from pointillist.data import datasets
from pointillist.data.dialects import Dialect
from pointillist.data.draft import Draft, draft_from
from pointillist.data.drafts.types import draft_from_types
from pointillist.data.messages import fragment
from pointillist.data.schema import problems_of, read_spec, sound_part
from pointillist.data.table import problems_in
from pointillist.errors import printable

__all__ = ["schema_app"]

PROBLEMS = 2
"""The exit code where there are problems."""


class WithDefault(TyperGroup):
    """A group that runs one of its commands if no command is named, as in `pointillist schema people.csv`."""

    default_command = "draft"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default_command, *args]
        return super().parse_args(ctx, args)


schema_app = typer.Typer(
    cls=WithDefault,
    help="Draft a schema from a file (`pointillist schema DATA`), or list the problems of one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
screen = Console(highlight=False, soft_wrap=True)

SchemaFile = Annotated[Path, typer.Argument(help="A schema in TOML.")]


@schema_app.command("draft")
def draft(
    data: Annotated[
        str, typer.Argument(help="A file with a table, or the name of a dataset.", autocompletion=data_names)
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Default: DATA's name with .schema.toml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="A column to leave out, repeatable.")] = None,
    from_types: Annotated[
        bool, typer.Option("--from-types", help="From types, labels or a code book alone; reads no value of the data.")
    ] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
) -> None:
    """Draft a schema from a file. It is NOT public knowledge until a person has reviewed it."""
    target = out or schema_beside(data)
    hint = "choose another file, or overwrite it with --force"
    check(force or not target.exists(), "out", str(target), "must not exist already", hint)
    good = target.absolute().parent.is_dir() and not target.is_dir()
    hint = "make the folder first, or choose another file"
    check(good, "out", str(target), "must be a file in an existing folder", hint)
    dialect = Dialect(separator, encoding, decimal, header)
    if is_dataset(data):
        known = datasets.load(data).schema
        known.save(target)
        screen.print(printable(f"wrote {target}: {_kinds(known.to_dict()['column'])}"), markup=False)
        return
    made = (
        draft_from_types(data, ignore or (), dialect)
        if from_types
        else draft_from(read_table(data, dialect), ignore or ())
    )
    made.save(target, data)
    _show(made, data, target)


def _show(made: Draft, data: str, target: Path) -> None:
    screen.print(printable(f"wrote {target}: {_kinds(made.tables)}"), markup=False)
    for name, why in made.left_out.items():
        screen.print(f"left out {fragment(name)}: {why}", markup=False)
    for name in made.unfinished:
        screen.print(f"to complete {fragment(name)}: see its TODO in the file", markup=False)
    if made.from_types:
        screen.print("No value of the data was read. Complete and review every column, then set reviewed = true.")
        return
    screen.print("It was drafted from the data: review every column and its comments, then set reviewed = true and run")
    screen.print(printable(f"  pointillist synth {data} --schema {target} --epsilon 1"), markup=False)


def _kinds(tables: Any) -> str:
    counts = Counter(str(one.get("type")) for one in tables)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f"{len(tables)} {'column' if len(tables) == 1 else 'columns'} ({kinds})"


@schema_app.command("check")
def check_schema(
    schema: SchemaFile,
    data: Annotated[str | None, typer.Argument(help="A file with a table that should fit it.")] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
) -> None:
    """List every problem of a schema, and of a table under it. Uses the table: the output is NOT private."""
    dialect = Dialect(separator, encoding, decimal, header)
    spec = read_spec(schema)
    problems = problems_of(spec)
    part = sound_part(spec)
    if data is not None and part is not None:
        table = datasets.load(data).to_arrow() if is_dataset(data) else read_table(data, dialect)
        problems += problems_in(table, part)
    for problem in problems:
        screen.print(problem, markup=False)
    if problems:
        screen.print(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}", markup=False)
        raise typer.Exit(PROBLEMS)
    fits = "" if data is None else f", and {data} fits it"
    screen.print(f"{schema} has no problems{fits}: {_kinds(spec['column'])}", markup=False)
    if not spec.get("reviewed", False):
        screen.print("It is not reviewed yet: check that all of it is public knowledge, then set reviewed = true.")
