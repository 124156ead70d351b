"""Fuzzing, from a seed and bounded: damaged releases and journals, options of the command line, arguments in Python.

Whatever is given, the answer is a result or one :class:`~pointillist.PointillistError` (on the command line a sentence
and exit code 2); never another exception, and never a hang. A batch runs in a process of its own, without privileges.
"""

from __future__ import annotations

import contextlib
import encodings.cp437  # noqa: F401  what is imported late: a process without privileges may not find it
import html.parser  # noqa: F401
import http.client  # noqa: F401
import io
import json
import os
import random
import shutil
import signal
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from tests.faults.configs import Config

from pointillist import InputError, PointillistError, Release, Schema, Table, Workload, cli, prepare, resume, synthesize
from pointillist.release.journal import HEAD

__all__ = ["KINDS", "SEEDED", "batch"]

SECONDS = 30
"""A case that takes longer hangs."""

SEEDED = Config(rounds=6)
"""The run whose release and journal are damaged."""

DAMAGED = ("release.json", "model.npz", "transcript.npz", "synthetic.parquet")
Case = Callable[[random.Random, Path], None]


class Hang(BaseException):
    """A case took too long."""


class Wrong(Exception):
    """A case gave an answer that it must not give."""


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
            if "\n" in str(error):
                yield f"fuzz {kind} {seed} {number}: more than one line: {str(error)[:300]!r}"
        except (Exception, Hang):
            yield f"fuzz {kind} {seed} {number}: {traceback.format_exc()[-1500:]}"
        finally:
            signal.alarm(0)


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


# --- values

NONSENSE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 5, 10**30, 1e5, 0.5, -0.0, 1e-300, 1e308, float("nan"), float("inf"),
    float("-inf"), "", "x", "1", "0.5", "nan", "marginals:2", "marginals:0", "marginals:99", "marginals:x",
    "mwem", "query", "é\u202e", "a" * 5000, "\udcff", "\0", "two\nlines", b"1", b"", [], [1], ["a"], (), (1, 2),
    {}, {"rounds": 3}, {"rounds": "x"}, {1: 2}, {"rounds": -1}, {"rounds": 1e300}, {"rounds": None},
    {"eta": "nan"}, {"alpha": 2}, {"output": 7}, {"past": "maybe"}, set(), np.float64(500), np.float32(0.5),
    np.int64(3), np.int8(-3), np.bool_(True), np.array([1, 2]), np.array(3), np.array("x"),
    np.datetime64("2020-01-01"), Fraction(1, 3), Decimal("0.5"), Decimal("NaN"), 1j, object(), int, len,
    Ellipsis, Path("x"), range(3), iter([]), NotImplemented, memoryview(b"x"), slice(1), lambda: 1,
)  # fmt: skip
"""Values of all kinds for arguments in Python."""

WORDS = (
    "", " ", "-", "--", "-1", "0", "1", "2", "0.5", "1e3", "1e400", "1e-400", "nan", "inf", "-inf",
    "99999999999999999999", "0x10", "1_000", "\u0661\u0662", "True", "None", "null", "x", "x" * 300, "x" * 5000,
    "\u202e", "\udcff", "\t", "a\nb", "'", '"', ";", "$(x)", "{}", "[1]", "%s", "*", "?", "/", ".", "..", "~",
    "/dev/null", "/dev/zero", "/proc/self/mem", "/nowhere/x", "people.csv", "people.schema.toml", "release",
    "release/release.json", "interrupted", "replace", "add-remove", "add_remove", "query", "marginal",
    "marginals:2", "marginals:", "marginals:0", "marginals:3:2:1", "marginals:9", "marginals:2:-1",
    "marginals:99999999999999999999", "mwem", "MWEM", "dualquery", "=", "=1", "rounds=", "rounds=0",
    "rounds=-1", "rounds=1e300", "rounds=nan", "rounds=2", "rounds=99999999", "eta=inf", "eta=-1", "eta=nan",
    "eta=1e308", "alpha=0", "alpha=2", "past=maybe", "output=first", "repeat=1", "nonsense=1", "--force",
    "--json", "--help",
)  # fmt: skip
"""Values of all kinds for options."""

UNUSABLE = ("/nowhere/x", "/", "x" * 300, "/dev/null", "release/release.json", "people.csv", ".", "release", "..")
"""Places for a release that are refused: the demo takes long."""


# --- damaged files


def _flip(content: bytes, chance: random.Random) -> bytes:
    """Damage as disks and copies make it: changed bytes, zeros, a missing or a foreign end."""
    damaged = bytearray(content)
    kind = chance.choice(["flip", "flip", "flip", "cut", "zeros", "tail"])
    at = chance.randrange(len(damaged))
    if kind == "flip":
        for _ in range(chance.choice([1, 1, 2, 8])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del damaged[at:]
    elif kind == "zeros":
        damaged[at : at + 512] = bytes(len(damaged[at : at + 512]))
    else:
        damaged += chance.randbytes(chance.randint(1, 600))
    return bytes(damaged)


def _edit(value: Any, chance: random.Random) -> Any:
    """Plain data with one entry replaced by nonsense, taken out or added."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = chance.choice(keys)
        changed = value.copy()
        if chance.random() < 0.15:
            del changed[key]
        else:
            changed[key] = _edit(value[key], chance)
        if isinstance(changed, dict) and chance.random() < 0.05:
            changed["more"] = 1
        return changed
    plain = [one for one in NONSENSE if isinstance(one, (type(None), bool, int, float, str, list, dict))]
    near = [value + 1, -value, value * 1.5] if isinstance(value, (int, float)) and not isinstance(value, bool) else []
    return chance.choice(plain + near * 10)


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
            path.write_text(json.dumps(_edit(json.loads(path.read_text()), chance)), encoding="utf-8")
        elif name.endswith(".npz") and kind < 0.5:
            with np.errstate(all="ignore"):
                _arrays(path, chance)
        else:
            path.write_bytes(_flip(path.read_bytes(), chance))
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
        path.write_bytes(_edited(content, chance) if edited else _flip(content, chance))
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
    line = json.dumps(_edit(json.loads(found[2]), chance)).encode()
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
    code, err = _command(arguments)
    if code not in (0, 2) or "Traceback" in err:
        raise Wrong(f"{arguments}: exit code {code}: {err[-800:]}")
    if code == 2 and sorted(os.listdir(folder)) != before:
        raise Wrong(f"{arguments}: refused, and yet it wrote something: {sorted(os.listdir(folder))}")
    for path in set(os.listdir(folder)) - set(before):
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def _command(arguments: list[str]) -> tuple[Any, str]:
    """The exit code of a command in this process, and what it wrote to stderr."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["pointillist", *arguments]
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    return code, err.getvalue()


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
}
"""What is fuzzed, by its name."""
