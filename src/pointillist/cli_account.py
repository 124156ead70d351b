"""The commands of an account, `pointillist account ...`: each one call of :mod:`pointillist.accounts`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from pointillist.accounts import Account, Booking
from pointillist.errors import printable
from pointillist.privacy.composition import round_up

__all__ = ["account_app"]

account_app = typer.Typer(
    help="A lasting account of all privacy budget spent on one table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
screen = Console(highlight=False, soft_wrap=True)

File = Annotated[Path, typer.Argument(help="The file of the account.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@account_app.command()
def create(
    file: File,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss of all runs together, above 0.")],
    delta: Annotated[float, typer.Option("--delta", help="Probability that the loss is larger, below 1/n.")],
    relation: Annotated[
        str | None, typer.Option("--relation", help="replace or add-remove; default replace, with --unit add-remove.")
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Column of what is protected; default: rows.")] = None,
) -> None:
    """Make a new account with a cap on all runs together."""
    account = Account.create(file, epsilon, delta, relation, unit)
    screen.print(printable(f"wrote {account.path}"), markup=False)
    screen.print(account.total().statement, markup=False)


@account_app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """The guarantee over all runs, and what is left."""
    total = Account.open(file).total()
    if as_json:
        print(json.dumps(total.to_dict()))
        return
    screen.print(total.statement, markup=False, style="bold red" if total.exceeded else None)
    grid = Grid("left for one more run", "rho", f"epsilon at delta {total.delta:g}")
    rhos = {"zCDP": total.left_zcdp, "Gaussian": total.left_gaussian}
    for kind, epsilon in total.left.items():
        grid.add_row(kind, f"{rhos[kind]:.6g}", f"{epsilon:g}")
    screen.print(grid)


@account_app.command()
def history(file: File, as_json: AsJson = False) -> None:
    """Every run, with what it reserved and spent."""
    bookings = Account.open(file).history()
    if as_json:
        print(json.dumps([one.to_dict() for one in bookings]))
        return
    for one in bookings:  # one below the other: side by side they do not fit a terminal
        grid = Grid(f"run {one.number}", show_header=True)
        grid.add_column("")
        for name, value in _lines(one):
            grid.add_row(name, printable(value))
        screen.print(grid, markup=False)
    screen.print(f"{len(bookings):,} {'run' if len(bookings) == 1 else 'runs'}")


@account_app.command()
def settle(
    file: File,
    run: Annotated[str, typer.Argument(help="The id of the run, from `account history`.")],
    spent: Annotated[float, typer.Option("--spent", help="The rho that its journal or ledger shows, in full digits.")],
) -> None:
    """Close a run that died: from now on it counts with what it really spent."""
    account = Account.open(file)
    account.settle(run, spent, done=True)
    screen.print(f"settled {run}: rho = {spent!r}", markup=False)
    screen.print(account.total().statement, markup=False)


def _lines(one: Booking) -> list[tuple[str, str]]:
    """A booking as the lines of a table."""
    scale = "" if one.least_scale is None else f", noise of scale {one.least_scale:g} or more"
    state = "done" if one.done else "open: counted in full until it is settled"
    return [
        ("id", one.run),
        ("label", one.label),
        ("guarantee", f"epsilon {one.epsilon:g}, delta {one.delta:g}"),
        ("accounting", f"{one.accounting}{scale}"),
        *([("delta of values", f"{one.delta_shown:g}, for values that only one unit has")] if one.delta_shown else []),
        ("rho reserved", repr(round_up(one.rho))),
        ("rho spent", "not known" if one.spent is None else repr(round_up(one.spent))),
        ("rho that counts", repr(round_up(one.counts))),
        ("state", state),
        ("reserved", one.reserved),
        ("settled", one.settled or "never"),
    ]
