"""The commands that sign and verify releases. The main command line registers them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pointillist import attestation
from pointillist.attestation.keys import PASSWORD
from pointillist.checks import check
from pointillist.cli_tables import load_public
from pointillist.errors import InputError, printable

__all__ = ["keygen", "sign", "verify"]

screen = Console(highlight=False, soft_wrap=True)

ReleaseFolder = Annotated[Path, typer.Argument(help="The folder of a release.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", help=f"A file with the password of the key; default: the variable {PASSWORD}."),
]
STYLES = {"ok": "green", "failed": "bold red", "skipped": "dim"}


def keygen(
    key: Annotated[Path, typer.Argument(help="The file of the private key; the public one gets the ending .pub.")],
    password_file: PasswordFile = None,
) -> None:
    """Make an Ed25519 key pair for signing releases."""
    password = _password(password_file)
    private, public = attestation.make_keys(key, password)
    hidden = "with a password" if password else "without a password"
    wrote = f"wrote {private} (private, {hidden}: keep it) and {public} (give it to those who verify)"
    screen.print(printable(wrote), markup=False)


def sign(
    release: ReleaseFolder,
    key: Annotated[Path, typer.Option("--key", help="The private key (see `pointillist keygen`).")],
    password_file: PasswordFile = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier signature.")] = False,
) -> None:
    """Sign a release: add a manifest and an attestation of its files and privacy facts."""
    signed = attestation.sign(release, key, _password(password_file), force)
    screen.print(printable(f"signed {signed.folder} with the key {signed.keyid}"), markup=False)
    if not signed.private:
        screen.print("The release is NOT PRIVATE, and the signature says so.", style="bold red")


def verify(
    release: ReleaseFolder,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="The key that must have signed the release.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Make the model and the rows again, from the transcript.")
    ] = False,
    public: Annotated[
        str | None, typer.Option("--public", help="The public table of the release, for --replay: a file or a dataset.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a release without the private data: files, signature, ledger, budget, transcript, tables and model."""
    rule = "must be given together with --replay"
    check(replay or public is None, "public", public, rule, "add --replay, or leave it out")
    report = attestation.verify(release, public_key, replay, load_public(public))
    if as_json:
        print(json.dumps({"release": str(release)} | report.to_dict()))
    else:
        _show(report, release)
    if not report.ok:
        raise typer.Exit(2)


def _show(report: attestation.Report, release: Path) -> None:
    width = max(len(one.name) for one in report.checks)
    for one in report.checks:
        screen.print(f"{one.status:8}{one.name:{width}}  {one.reason}", markup=False, style=STYLES[one.status])
    failed, done = (sum(one.status == word for one in report.checks) for word in ("failed", "ok"))
    if report.private is False:
        screen.print("NOT PRIVATE: this release was made with seeded noise. Do not publish it.", style="bold red")
    if failed:
        text = f"NOT verified: {failed} of {failed + done} checks of {release} failed"
        screen.print(printable(text), markup=False, style="bold red")
    else:
        screen.print(printable(f"verified: all {done} checks that apply to {release} passed"), markup=False)


def _password(file: Path | None) -> bytes | None:
    """The password from a file, without the end of its line, or from the environment."""
    if file is None:
        text = os.environ.get(PASSWORD)
        return text.encode("utf-8") if text else None
    try:
        with file.open("rb") as opened:
            found = opened.read(4097).rstrip(b"\r\n")
    except OSError as error:
        rule = f"must be a file that can be read ({error.strerror})"
        raise InputError("password_file", str(file), rule, "check the path") from None
    rule = "must hold a password of 1 to 1,000 bytes"
    check(0 < len(found) <= 1000, "password_file", str(file), rule, "write it into the first line")
    return found
