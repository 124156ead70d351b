"""Fuzzing, from a seed and bounded: damaged releases and journals, options of the command line, arguments in Python;
tables and schemas (:mod:`tests.faults.fuzzed_tables`); accounts and signatures (:mod:`tests.faults.fuzzed_books`).

Whatever is given, the answer is a result or one :class:`~pointillist.PointillistError` (on the command line a sentence
and exit code 2); never another exception, and never a hang. A batch runs in a process of its own, without privileges.
"""

from __future__ import annotations

import codecs
import contextlib
import html.parser  # noqa: F401
import http.client  # noqa: F401
import json
import os
import random
import shutil
import signal
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from tests.faults.configs import Config
from tests.faults.damage import NONSENSE, WORDS, Wrong, command, edit, flip, to_json
from tests.faults.fuzzed_books import accounts, signatures
from tests.faults.fuzzed_tables import csv_files, parquet_files, schemas

from pointillist import InputError, PointillistError, Release, Schema, Table, Workload, cli, prepare, resume, synthesize
from pointillist.release.journal import HEAD

for _name in (
    "cp437",
    "cp1252",
    "latin-1",
    "ascii",
    "idna",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "utf-32-le",
    "utf-32-be",
):
    codecs.lookup(_name)  # loaded now: a process without privileges may not find it

__all__ = ["KINDS", "SEEDED", "WEIGHTS", "batch"]

SECONDS = 30
"""A case that takes longer hangs."""

LONGEST = 1500
"""Letters of a message, at most."""

SEEDED = Config(rounds=6)
"""The run whose release and journal are damaged."""

DAMAGED = ("release.json", "model.npz", "transcript.npz", "synthetic.parquet")
Case = Callable[[random.Random, Path], None]


class Hang(BaseException):
    """A case took too long."""


def batch(kind: str, seed: int, numbers: range, folder: Path) -> Iterator[str]:
    """Run cases; a text for each that went wrong.

    Args:
        kind: a key of :data:`KINDS`.
        seed: of the random choices, with the number of the case.
        numbers: of the cases.
        folder: with ``release``, ``interrupted`` and the data in it; the batch may write to it.
    """
    os.chdir(folder)
    signal.signal(signal.SIGALRM, _hang)
    for number in numbers:
        chance = random.Random(f"{kind} {seed} {number}")
        signal.alarm(SECONDS)
        try:
            KINDS[kind](chance, folder)
        except PointillistError as error:
            if not str(error).isprintable() or len(str(error)) > LONGEST:
                yield f"fuzz {kind} {seed} {number}: not one short, printable line: {str(error)[:1500]!r}"
        except (Exception, Hang):
            yield f"fuzz {kind} {seed} {number}: {traceback.format_exc()[-1500:]}"
        finally:
            signal.alarm(0)


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


UNUSABLE = ("/nowhere/x", "/", "x" * 300, "/dev/null", "release/release.json", "people.csv", ".", "release", "..")
"""Places for a release that are refused: the demo takes long."""


# --- damaged files


def _arrays(path: Path, chance: random.Random) -> None:
    """Other numbers, shapes or types in one of the arrays of a file."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found}
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    others: list[Callable[[], Any]] = [
        lambda: array[:-1] if array.ndim else array,
        lambda: array.reshape(-1, 1, order="C"),
        lambda: np.array(chance.choice([0, "x", 1.5, b"x"])),
        lambda: array.astype(chance.choice(["U3", "i1", "f2", "c16", "?"])),
        lambda: np.full(array.shape, chance.choice([-1, 10**9, 0])),
        lambda: np.full(array.shape, chance.choice([np.nan, np.inf, -1.0])),
        lambda: np.concatenate([array.ravel()] * 2),
    ]
    with contextlib.suppress(ValueError, TypeError):  # some arrays have no such change
        arrays[name] = chance.choice(others)()
    if chance.random() < 0.1:
        del arrays[name]
    np.savez(path, **arrays)


def _release(chance: random.Random, folder: Path) -> None:
    """A damaged release, which is loaded and, if that works, asked for answers and rows."""
    copy = folder / "copy"
    shutil.copytree(folder / "release", copy)
    try:
        name = chance.choice(DAMAGED)
        path = copy / name
        kind = chance.random()
        if name == "release.json" and kind < 0.7:
            path.write_text(to_json(edit(json.loads(path.read_text()), chance)), encoding="utf-8")
        elif name.endswith(".npz") and kind < 0.5:
            with np.errstate(all="ignore"):
                _arrays(path, chance)
        else:
            path.write_bytes(flip(path.read_bytes(), chance))
        Release.load(copy)
    finally:
        shutil.rmtree(copy)


def _journal(chance: random.Random, folder: Path) -> None:
    """A damaged journal, which is resumed. Damage by chance gives a refusal or the release of the unharmed run; edits
    with the right checksum give a refusal, or a release within the budget."""
    copy = folder / "copy"
    shutil.copytree(folder / "interrupted", copy)
    path = copy / "journal"
    try:
        content = path.read_bytes()
        edited = chance.random() < 0.3
        path.write_bytes(_edited(content, chance) if edited else flip(content, chance))
        kept = path.read_bytes()
        try:
            release = resume(copy, Table.read(folder / "people.csv", Schema.load(folder / "people.schema.toml")))
        except InputError:
            if path.read_bytes() != kept:
                raise Wrong("a journal that was refused was changed") from None
            raise
        privacy = release.description.privacy
        if privacy.rho_spent > privacy.rho:
            raise Wrong("more than the limit")
        if not edited and not _same(release, Release.load(folder / "release")):
            raise Wrong("another release than that of the unharmed run")
    finally:
        shutil.rmtree(copy)


def _same(first: Release, second: Release) -> bool:
    rows = all(map(np.array_equal, first.table.codes, second.table.codes))
    return rows and first.description.privacy == second.description.privacy


def _edited(content: bytes, chance: random.Random) -> bytes:
    """A journal with one record edited, and the right checksum."""
    found = chance.choice(list(HEAD.finditer(content)))
    line = to_json(edit(json.loads(found[2]), chance)).encode()
    return content[: found.start()] + b"%08x %s" % (zlib.crc32(line), line) + content[found.end(2) :]


# --- options and arguments

COMMANDS: dict[str, list[str]] = {
    "synth": SEEDED.command(Path(), Path("made"))[1:-2],
    "resume": ["interrupted"],
    "evaluate": ["people.csv", "release", "--workload", "marginals:1"],
    "sample": ["release", "--rows", "5", "--out", "made.csv"],
    "schema": ["people.csv", "--out", "made.toml"],
    "methods": [],
    "version": [],
    "demo": ["--out", "/nowhere/demo"],
}
"""Every command with arguments that are good."""


def _options(chance: random.Random, folder: Path) -> None:
    """A command with one to three options or arguments that are nonsense."""
    import typer

    group: Any = typer.main.get_command(cli.app)
    name = chance.choice([*COMMANDS, "synth", "synth", chance.choice([*group.commands, "nonsense"])])
    words = WORDS if name != "demo" else UNUSABLE
    arguments = [name, *COMMANDS.get(name, [])]
    known = [option for one in group.commands[name].params for option in one.opts] if name in group.commands else []
    options = [option for option in known if option.startswith("--")] or ["--nonsense"]
    for _ in range(chance.choice([1, 1, 2, 3])):
        if chance.random() < 0.8:
            arguments += [chance.choice(options), chance.choice(words)]
        else:
            arguments.insert(chance.randrange(1, len(arguments) + 1), chance.choice(words))
    before = sorted(os.listdir(folder))
    code, err = command(arguments)
    if code not in (0, 2) or "Traceback" in err:
        raise Wrong(f"{arguments}: exit code {code}: {err[-800:]}")
    if code == 2 and sorted(os.listdir(folder)) != before:
        raise Wrong(f"{arguments}: refused, and yet it wrote something: {sorted(os.listdir(folder))}")
    for path in set(os.listdir(folder)) - set(before):
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


PARAMETERS = (
    "table", "epsilon", "delta", "schema", "public", "relation", "method", "workload", "group", "rows", "seed",
    "settings", "insecure_noise_seed", "zcdp", "out", "force",
)  # fmt: skip


def _arguments(chance: random.Random, folder: Path) -> None:
    """``prepare`` or ``synthesize`` with one to three arguments that are nonsense."""
    table = Table.read(folder / "people.csv", Schema.load(folder / "people.schema.toml"))
    plain = {"epsilon": 10.0, "method": "mwem", "workload": "marginals:2", "settings": {"rounds": 3}, "rows": 50}
    given: dict[str, Any] = {"table": table, **plain, "insecure_noise_seed": 1}
    call: Callable[..., Any] = chance.choice([prepare, synthesize])
    for _ in range(chance.choice([1, 1, 2, 3])):
        name = chance.choice(PARAMETERS if call is synthesize else PARAMETERS[:-2])
        good = (Workload.of(table.domain, [(0, 1)]), table.schema, table)
        given[name] = chance.choice(NONSENSE + good)
    if given["method"] is None or "public" in given:
        call = prepare  # another method: it may take long
    if call is prepare:
        given = {name: value for name, value in given.items() if name not in ("out", "force")}
    before = set(os.listdir(folder))
    table = given.pop("table")
    try:
        call(table, **given)
    finally:
        for path in set(os.listdir(folder)) - before:
            shutil.rmtree(path)


KINDS: dict[str, Case] = {
    "releases": _release,
    "journals": _journal,
    "options": _options,
    "arguments": _arguments,
    "CSV files": csv_files,
    "Parquet files": parquet_files,
    "schemas": schemas,
    "accounts": accounts,
    "signatures": signatures,
}
"""What is fuzzed, by its name."""

WEIGHTS = {"CSV files": 20, "Parquet files": 15, "schemas": 40}
"""How often a kind is run for each case of the others, where it is quick."""
