"""The command `pointillist report`: pages about a release, and its record for a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pointillist import attestation
from pointillist.attestation.files import ATTESTATION, Folder
from pointillist.checks import check, share
from pointillist.cli_complete import data_names
from pointillist.cli_sample import check_file
from pointillist.cli_tables import Decimal, Encoding, Header, Separator, is_dataset, read_table
from pointillist.data import datasets
from pointillist.data.dialects import Dialect
from pointillist.data.files import EVERYONE, private_mode, write_text
from pointillist.errors import InputError, Shown, printable
from pointillist.release import Release
from pointillist.reports import Evidence, Statements, holder_report, public_report, registry_record, to_yaml, unfilled

__all__ = ["report"]

PARTLY = "Answers that no measurement determines have no interval on it."

screen = Console(highlight=False, soft_wrap=True)


def report(
    release: Annotated[Path, typer.Argument(help="The folder of a release.")],
    out: Annotated[Path | None, typer.Option("--out", help="The page: a new file that ends in .html.")] = None,
    about: Annotated[Path | None, typer.Option("--about", help="What the holder states, in TOML.")] = None,
    registry: Annotated[
        Path | None, typer.Option("--registry", help="Write the record for OpenDP's registry: a new .yaml file.")
    ] = None,
    holder: Annotated[
        str | None,
        typer.Option(
            "--holder", help="The real table: makes a NOT PRIVATE page, for you alone.", autocompletion=data_names
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="With --holder: a column that models learn to predict.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="The level of the intervals.")] = 0.95,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
) -> None:
    """Make a page about a release that may be published, from the release alone. Spends nothing."""
    _check_wanted(out, registry, holder, target)
    share("level", level, 0.95)
    for file, endings, name in ((out, (".html", ".htm"), "out"), (registry, (".yaml", ".yml"), "registry")):
        if file is not None:
            check_file(file, release, force, endings, name)
    words = None if about is None else Statements.load(about)
    found = Release.load(release)
    if holder is not None and out is not None:
        real = _real_table(holder, Dialect(separator, encoding, decimal, header))
        _write(out, holder_report(found, real, words, target, level), private_mode(None))
        screen.print(
            f"{printable(str(out))} shows the real data: it is NOT PRIVATE. Do not publish it.", style="bold red"
        )
        return
    record = None if registry is None else registry_record(found, words)
    html = None if out is None else public_report(found, words, _evidence(release), level)
    if registry is not None and record is not None:
        _write(registry, to_yaml(record))
        missing = unfilled(record)
        if missing:
            screen.print(f"fill in the fields marked TODO: {', '.join(missing)}", markup=False)
    if out is not None and html is not None:
        _write(out, html)
        if found.replicates is None:
            screen.print(
                printable(f"{PARTLY} `pointillist replicate {release}` before gives one to each."), markup=False
            )
    if not found.description.privacy.private:
        screen.print("NOT PRIVATE: this release was made with seeded noise. Do not publish it.", style="bold red")


def _check_wanted(out: Path | None, registry: Path | None, holder: str | None, target: str | None) -> None:
    check(out is not None or registry is not None, "out", out, "must be given", "add for example --out report.html")
    rule = "must be given together with --out"
    check(holder is None or out is not None, "holder", holder, rule, "add for example --out holder.html")
    rule, hint = "must not be given with --holder, whose page is private", "run the command twice"
    check(holder is None or registry is None, "registry", str(registry), rule, hint)
    rule = "must be given together with --holder"
    check(target is None or holder is not None, "target", target, rule, "add --holder, or leave it out")


def _real_table(data: str, dialect: Dialect) -> Any:
    return datasets.load(data) if is_dataset(data) else read_table(data, dialect, name="holder")


def _evidence(release: Path) -> Evidence:
    """The checks and the fingerprints of a release; refuses one that fails a check."""
    checked = attestation.verify(release)
    for one in checked.checks:
        if one.status == "failed":
            shown = Shown(f"{one.name}: {one.reason}")
            rule = "must pass the checks of `pointillist verify`"
            raise InputError("release", shown, rule, "make the release again, or restore it")
    folder = Folder(release)
    digests = {name: str(folder.digest(name)["sha256"]) for name in folder.content()}
    passed = [(one.name, one.reason) for one in checked.checks if one.status == "ok"]
    return Evidence(digests, passed, folder.has(ATTESTATION))


def _write(file: Path, text: str, mode: int = EVERYONE) -> None:
    write_text(file, text, mode)
    screen.print(printable(f"wrote {file}: {len(text.encode()) / 1000:,.0f} kB"), markup=False)
