"""Fuzzed accounts and signatures: damaged SQLite files through ``pointillist account``, and signed releases in which
something was changed through ``verify``. A change of what was signed must be found."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.damage import HUGE, Wrong, command, edit, flip, to_json
from tests.faults.fuzzed_tables import require_sentence

from pointillist import Account
from pointillist.attestation import make_keys, sign, verify
from pointillist.privacy.budget import Budget
from pointillist.privacy.ledger import Ledger

__all__ = ["accounts", "make_books", "signatures"]

ACCOUNT, SIGNED, KEY = "account.sqlite", "signed", "key.pem"


def make_books(folder: Path) -> None:
    """An account with four runs, and a signed copy of the release, for the cases to damage."""
    account = Account.create(folder / ACCOUNT, 10.0, 1e-6)
    for number, (epsilon, scale) in enumerate([(1.0, None), (0.5, 100.0), (2.0, None), (0.1, 3.0)]):
        ledger = Ledger(Budget(epsilon, 1e-7), scale)
        account.reserve(f"run{number}", "a run", ledger)
        if number < 3:
            account.settle(f"run{number}", ledger.limit / (number + 1), done=number < 2)
    shutil.copytree(folder / "release", folder / SIGNED)
    make_keys(folder / KEY)
    sign(folder / SIGNED, folder / KEY)


# --- accounts

VALUES = (
    None, 0, 1, -1, 2, 10**18, 0.5, -0.5, 1e308, float("inf"), float("-inf"), "", "x", "0", "1/0", "-1/3", "1/3", "nan",
    "inf", "1e400", "9" * 5000, "1/" + "9" * 5000, "1e999999999", "zCDP", b"", b"\xff",
    "a\nb", "\x1b[31m", "\udcff", "replace",
    "add-remove",
)  # fmt: skip
"""Values of all types that SQLite keeps in any column."""
COLUMNS = {
    "account": ("epsilon", "delta", "relation", "created", "zcdp_delta", "gaussian_delta", "least_scale"),
    "runs": (
        "number", "run", "label", "epsilon", "delta", "least_scale", "rho", "spent", "done", "reserved", "settled"
    ),
}  # fmt: skip
STATEMENTS = (
    "DROP TABLE runs", "DROP TABLE account", "DELETE FROM account", "DELETE FROM runs", "PRAGMA user_version = 7",
    "PRAGMA application_id = 1", "ALTER TABLE runs RENAME TO others", "ALTER TABLE runs DROP COLUMN label",
    "CREATE TABLE more (x)", "CREATE VIEW v AS SELECT * FROM runs", "PRAGMA journal_mode = DELETE",
    "DROP TABLE runs; CREATE VIEW runs AS SELECT * FROM account",
    "INSERT INTO account SELECT 1, epsilon, delta, relation, created, 0, 0, 0 FROM account",
)  # fmt: skip


def accounts(chance: random.Random, folder: Path) -> None:
    """A damaged account, which is opened, shown, charged or settled."""
    path = folder / "fuzzed.sqlite"
    shutil.copyfile(folder / ACCOUNT, path)
    try:
        kind = chance.random()
        if kind < 0.4:
            path.write_bytes(flip(path.read_bytes(), chance))
        elif kind < 0.9:
            _edit_rows(path, chance)
        else:
            beside = chance.choice(["-wal", "-shm", "-journal"])
            path.with_name(path.name + beside).write_bytes(chance.randbytes(chance.choice([0, 10, 32, 4096, 70_000])))
        _use_account(path, chance)
    finally:
        for left in folder.glob("fuzzed.sqlite*"):
            left.unlink()


def _edit_rows(path: Path, chance: random.Random) -> None:
    """Other values, tables or marks, as a program would write them that knows SQLite and no accounts."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(chance.choice([1, 1, 2])):
            with contextlib.suppress(sqlite3.Error, UnicodeError, OverflowError):
                if chance.random() < 0.15:
                    db.executescript(chance.choice(STATEMENTS))
                    continue
                table = chance.choice(["account", "runs", "runs"])
                column = chance.choice(COLUMNS[table])
                where = "" if table == "account" else f" WHERE number = {chance.randint(1, 4)}"
                db.execute(f"UPDATE {table} SET {column} = ?{where}", (chance.choice(VALUES),))
        with contextlib.suppress(sqlite3.Error):
            db.commit()


def _use_account(path: Path, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.3:
        name, more = chance.choice([("show", []), ("history", []), ("settle", ["run2", "--spent", "0.5"])])
        json_too = ["--json"] if name != "settle" and chance.random() < 0.5 else []
        require_sentence(["account", name, str(path), *more, *json_too])
        return
    account = Account.open(path)
    budget = account.budget
    ledger = Ledger(Budget(chance.choice([0.1, 1.0, 9.0]), 1e-7, budget.relation), chance.choice([None, 100.0]))
    if kind < 0.6:
        account.reserve(chance.choice(["run3", "new"]), "fuzzed", ledger)
    elif kind < 0.8:
        account.settle(chance.choice(["run2", "run3"]), chance.choice([0.0, 1e-3, 0.5]), done=chance.random() < 0.5)
    _ = [one.to_dict() for one in account.history()]
    if kind > 0.8:  # slow: it converts
        _ = account.total().to_dict()


# --- signatures

FILES = ("model.npz", "release.json", "synthetic.csv", "synthetic.parquet", "transcript.npz", "manifest.json")


def signatures(chance: random.Random, folder: Path) -> None:
    """A signed release in which something was changed; all that was signed must be as it was."""
    copy = folder / "copy"
    shutil.copytree(folder / SIGNED, copy)
    key = folder / "fuzzed.pub"
    shutil.copyfile(folder / (KEY + ".pub"), key)
    try:
        harm, found = chance.choice(HARM)
        harm(copy, key, chance)
        if chance.random() < 0.1:
            more = chance.choice([[], ["--replay"], ["--json"]])
            _verify_by_command(["verify", str(copy), "--public-key", str(key), *more])
            return
        report = verify(copy, key, replay=chance.random() < 0.05)
        for one in report.checks:
            if not one.reason.isprintable():
                raise Wrong(f"a reason with letters that are none: {one.reason!r}")
        if found and report.ok:
            raise Wrong(f"{harm.__name__}: nothing was found")
    finally:
        shutil.rmtree(copy)
        key.unlink()


def _verify_by_command(arguments: list[str]) -> None:
    """Exit code 0, or 2 with the list of checks on stdout or one line on stderr."""
    code, err = command(arguments)
    if code not in (0, 2) or "Traceback" in err or len(err.splitlines()) > 1:
        raise Wrong(f"{arguments}: exit code {code}: {err[-800:]}")


def _change_a_file(copy: Path, key: Path, chance: random.Random) -> None:
    path = copy / chance.choice(FILES)
    before = path.read_bytes()
    while path.read_bytes() == before:
        path.write_bytes(flip(before, chance))


def _edit_the_description(copy: Path, key: Path, chance: random.Random) -> None:
    path = copy / chance.choice(["release.json", "manifest.json"])
    before = path.read_text(encoding="utf-8")
    while path.read_text(encoding="utf-8") == before:
        path.write_text(to_json(edit(json.loads(before), chance)), encoding="utf-8")


def _damage_the_attestation(copy: Path, key: Path, chance: random.Random) -> None:
    path = copy / "attestation.json"
    path.write_bytes(flip(path.read_bytes(), chance))


def _edit_the_envelope(copy: Path, key: Path, chance: random.Random) -> None:
    path = copy / "attestation.json"
    path.write_text(to_json(edit(json.loads(path.read_bytes()), chance)), encoding="utf-8")


def _edit_the_statement(copy: Path, key: Path, chance: random.Random) -> None:
    """Another statement under the old signature."""
    path = copy / "attestation.json"
    envelope = json.loads(path.read_bytes())
    before = base64.b64decode(envelope["payload"])
    body = before
    while body == before:
        body = to_json(edit(json.loads(before), chance)).encode()
    path.write_bytes(to_json(envelope | {"payload": base64.b64encode(body).decode()}).encode())


def _damage_the_key(copy: Path, key: Path, chance: random.Random) -> None:
    key.write_bytes(flip(key.read_bytes(), chance))


def _add_a_file(copy: Path, key: Path, chance: random.Random) -> None:
    name = chance.choice(["more.txt", ".hidden", "a\nb", "\x1b[31m", "replaced.json", "journal", "\udcff", "x" * 200])
    (copy / name).write_bytes(chance.choice([b"", b"[]", b"{", b"x"]))


def _put_something_else(copy: Path, key: Path, chance: random.Random) -> None:
    """A link, a folder or a pipe in the place of a file."""
    path = copy / chance.choice([*FILES, "attestation.json"])
    content = path.read_bytes()
    path.unlink()
    kind: Callable[[], Any] = chance.choice(
        [
            lambda: path.symlink_to("/dev/zero"),
            lambda: path.symlink_to(path.name),
            lambda: (copy.parent / "people.csv").is_file() and path.symlink_to(copy.parent / "people.csv"),
            lambda: path.mkdir(),
            lambda: os.mkfifo(path),
            lambda: None,
            lambda: path.write_bytes(content + b"\n"),
            lambda: path.write_text(HUGE),
        ]
    )
    kind()


HARM: tuple[tuple[Callable[[Path, Path, random.Random], None], bool], ...] = (
    (_change_a_file, True),
    (_edit_the_description, True),
    (_damage_the_attestation, False),
    (_edit_the_envelope, False),
    (_edit_the_statement, True),
    (_damage_the_key, False),
    (_add_a_file, True),
    (_put_something_else, False),
)
"""What is done to a signed release, and whether it must be found."""
