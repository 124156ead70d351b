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
from pointillist.data.neighbours import Relation
from pointillist.data.schema import problems_of, read_spec, sound_part
from pointillist.data.table import problems_in
from pointillist.discovering import prepare_draft
from pointillist.discovering.spending import resumed_options, write_draft
from pointillist.errors import Shown, printable

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
    private: Annotated[
        bool, typer.Option("--private", help="Spend a budget instead: noisy counts and discovered values, no review.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="With --private: privacy loss, above 0.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="With --private: default 1/n^2 under replace.")] = None,
    relation: Annotated[
        str | None, typer.Option("--relation", help="With --private: replace or add-remove, as in synth.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="With --private: column of the person or thing to be protected.")
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", help="With --private: rows of each unit that are used, at most.")
    ] = None,
    account: Annotated[
        Path | None, typer.Option("--account", help="With --private: account that the budget is booked in.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --private: finish an interrupted draft, spending nothing twice.")
    ] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
) -> None:
    """Draft a schema from a file. It is NOT public knowledge until a person has reviewed it, unless it is --private."""
    target = out or schema_beside(data)
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "relation": relation,
        "unit": unit,
        "max_rows": max_rows,
    }
    given = [name for name, value in (options | {"account": account}).items() if value is not None]
    _check_private(private, resume, given, from_types)
    hint = "choose another file, or overwrite it with --force"
    hint += "; what it cost stays spent, and the new one is paid for again" if private else ""
    check(force or resume or not target.exists(), "out", str(target), "must not exist already", hint)
    good = target.absolute().parent.is_dir() and not target.is_dir()
    hint = "make the folder first, or choose another file"
    check(good, "out", str(target), "must be a file in an existing folder", hint)
    dialect = Dialect(separator, encoding, decimal, header)
    if private:
        rule, hint = "must be a file with --private: named datasets have a public schema", "leave --private out"
        check(not is_dataset(data), "data", data, rule, hint)
        options["ignore"] = list(ignore or ())
        _draft_privately(data, target, read_table(data, dialect), options, force, resume, account)
        return
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


def _check_private(private: bool, resume: bool, given: list[str], from_types: bool) -> None:
    """Refuse options that do not go together."""
    for name in given:
        check(private, name, Shown("one"), "must be given with --private only", "add --private, or leave it out")
    rule = "must be given with --private only"
    check(private or not resume, "resume", True, rule, "add --private, or leave it out")
    rule, hint = "must not be given with --private", "leave one of them out: --private reads types, too"
    check(not (private and from_types), "from_types", True, rule, hint)
    rule = "must not be given with --resume, which goes on with the budget of the interrupted draft"
    check(not (resume and given), "resume", Shown(f"with {', '.join(given)}"), rule, "leave them out")
    rule, hint = "must be given with --private", "add for example --epsilon 0.1"
    check(not private or resume or "epsilon" in given, "epsilon", Shown("none"), rule, hint)


def _draft_privately(
    data: str, target: Path, table: Any, options: dict[str, Any], force: bool, resume: bool, account: Path | None
) -> None:
    """Spend a budget on a schema, and say what it is for."""
    options = resumed_options(target) if resume else options | {"insecure_noise_seed": None}
    job = prepare_draft(table, **options)

    def announce(text: str) -> None:
        screen.print(text, markup=False)

    draft = write_draft(job, target, options, force=force, resume=resume, account=account, announce=announce)
    screen.print(printable(f"wrote {target}: {_kinds(draft.schema.to_dict()['column'])}"), markup=False)
    for column in draft.schema.everything:
        note = draft.schema.notes[column.name].splitlines()[0].partition(". ")[0].rstrip(".")
        screen.print(printable(f"  {fragment(column.name)}: {note}"), markup=False)
    for name, why in draft.left_out.items():
        screen.print(printable(f"left out {fragment(name)}: {why}"), markup=False)
    n = job.curator.public_rows
    screen.print(job.curator.ledger.statement(n), markup=False)
    screen.print(
        printable(f"The charges are in {target.name}.ledger.json. A release made with this schema counts them:")
    )
    more = "" if job.curator.relation is Relation.REPLACE else f" --relation {job.curator.relation.value}"
    bound = job.curator.ledger.budget.unit
    more = more if bound is None else f" --unit {bound.name} --max-rows {bound.max_rows}"
    delta = "" if n is not None else f" --delta {job.curator.ledger.budget.delta:g}"
    line = f"  pointillist synth {data} --schema {target} --epsilon 1{delta}{more}"
    screen.print(printable(line), markup=False)


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
