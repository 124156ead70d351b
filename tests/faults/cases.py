"""A case: a run that is hit again and again, and what must hold after every hit and at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tests.command import tree
from tests.faults.configs import Config
from tests.faults.processes import Ended, Process, Server

from pointillist.errors import PointillistError
from pointillist.release import Release
from pointillist.release.journal import Record, read_journal
from pointillist.release.place import FILES

__all__ = ["Case", "Figures", "Lab", "Reference"]

PLANTED = {
    "precious.txt": b"the only copy",
    "precious/release.json": b"{}",
    "precious/journal": b"mine",
    ".hidden": b"also mine",
    ".pointillist-mine/notes.txt": b"not yours",
    ".other.new/keep.txt": b"keep",
    "out.txt": b"a name that begins like the release",
}
"""Files next to the release: nothing may happen to them."""

NO_THREAD = "Resource temporarily unavailable"
"""What C++ says before it aborts because there is no memory for a thread."""
ENDS = {0, 2, 130, 143, -9, -2, -15}
"""How a command may end: well, refused, by a signal with (128 + number) or, before it has handlers, without a word."""


@dataclass
class Figures:
    """What was done, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def found(self, kind: str, text: str) -> None:
        """Note a violation of one kind."""
        self.counts[kind] += 1
        self.violations.append(f"{kind}: {text}")


VIOLATIONS: Sequence[str] = (
    "double spends",
    "half releases",
    "lost ledgers",
    "changed files",
    "bad messages",
    "leftovers",
    "hangs",
)


@dataclass(frozen=True)
class Reference:
    """An uninterrupted run: its release, its ledger, its file operations; and the release that it replaced, if any."""

    folder: Path
    ledger: list[dict[str, Any]]
    limit: float
    operations: int
    old: Path | None


class Lab:
    """A folder in memory, the server, one reference per configuration, and what is damaged by fuzzing."""

    def __init__(self, figures: Figures | None = None) -> None:
        self.figures = Figures() if figures is None else figures
        self._references: dict[Config, Reference] = {}
        self.fuzzed: Path | None = None
        self._cases = 0

    def __enter__(self) -> Lab:
        memory = Path("/dev/shm")  # fsync costs nothing there
        good = memory.is_dir() and os.access(memory, os.W_OK)
        self.folder = Path(tempfile.mkdtemp(prefix="pointillist-faults-", dir=memory if good else None))
        self.folder.chmod(0o755)
        self.server = Server().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()
        shutil.rmtree(self.folder)

    def new(self, name: str) -> Path:
        """A new folder."""
        self._cases += 1
        folder = self.folder / f"{name}{self._cases}"
        folder.mkdir()
        return folder

    def run(self, arguments: list[str], home: Path, fault: dict[str, Any] | None = None) -> Ended:
        """Run a command to its end."""
        return self.server.start(arguments, home, home, fault).end()

    def reference(self, config: Config) -> Reference:
        """The uninterrupted run of a configuration."""
        if config not in self._references:
            home = self.new("reference")
            config.write_data(home)
            old = None
            if config.force:
                made = self.run(config.command(home, home / "out", noise=99), home)
                assert made.code == 0, made.err
                old = home / "old"
                shutil.copytree(home / "out", old)
            made = self.run(config.command(home, home / "out"), home, {"count": str(home / "count")})
            assert made.code == 0, made.err
            privacy = json.loads((home / "out" / "release.json").read_text())["privacy"]
            count = int((home / "count").read_text())
            self._references[config] = Reference(home / "out", privacy["ledger"], privacy["rho"], count, old)
        return self._references[config]


@dataclass(frozen=True)
class State:
    """What is on disk."""

    records: list[Record]
    journal: bytes
    complete: bool

    @property
    def charges(self) -> list[dict[str, Any]]:
        """Every charge of the journal."""
        return [entry for record in self.records if record.kind == "charge" for entry in record.data["entries"]]

    @property
    def booked(self) -> int:
        """The number of charges whose result is there."""
        last = max((n for n, record in enumerate(self.records) if record.kind == "result"), default=-1)
        return sum(len(r.data["entries"]) for r in self.records[: last + 1] if r.kind == "charge")


class Case:
    """One run in a folder of its own, with files planted around it.

    Args:
        lab: where to.
        config: the run.
        name: how violations name this case.
        work: the folder that holds the release; by default one in the case's own.
    """

    def __init__(self, lab: Lab, config: Config, name: str, work: Path | None = None) -> None:
        self.lab, self.config, self.name, self.figures = lab, config, name, lab.figures
        self.reference = lab.reference(config)
        self.home = lab.new("case")
        self.work = self.home / "work" if work is None else work
        self.out, self.beside = self.work / "out", self.work / ".out.new"
        self.data = self.home / "data"
        self.data.mkdir()
        config.write_data(self.data)
        self.planted = dict(PLANTED)
        for path, content in PLANTED.items():
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_bytes(content)
        if self.reference.old is not None:
            shutil.copytree(self.reference.old, self.out)
        self._inputs = tree(self.data)
        self.state = self._read()
        self.draws = 0
        self.no_memory = False

    def close(self) -> None:
        """Delete the folder of the case."""
        shutil.rmtree(self.home)

    def found(self, kind: str, text: str) -> None:
        """A violation."""
        self.figures.found(kind, f"{self.name}: {text}")

    @property
    def _inside(self) -> set[str]:
        """Files that were planted in the folder of the release."""
        return {path.removeprefix("out/") for path in self.planted if path.startswith("out/")}

    # --- commands

    @property
    def done(self) -> bool:
        """Whether the new release is there and its run needs nothing more."""
        return self.state.complete and not self.state.journal

    def next_command(self) -> list[str]:
        """What a user would do now: begin, or resume."""
        if self.state.records:
            return ["resume", str(self.out)]
        return self.config.command(self.data, self.out)

    def start(self, fault: dict[str, Any] | None = None, command: list[str] | None = None) -> Process:
        """Start the next command."""
        return self.lab.server.start(command or self.next_command(), self.home, self.work, fault)

    def step(self, fault: dict[str, Any] | None = None, meanwhile: Callable[[Process], object] | None = None) -> Ended:
        """Run the next command, let something happen meanwhile, and look at what is left."""
        before = self.state
        process = self.start(fault)
        number = self.lab.server.number
        if meanwhile is not None:
            meanwhile(process)
        ended = process.end()
        self.look(before, ended, self.drawn(number))
        return ended

    def drawn(self, number: int) -> int:
        """How many draws of noise a command began."""
        path = self.home / f"draws.{number}"
        return path.stat().st_size if path.exists() else 0

    # --- what must hold

    def look(self, before: State, ended: Ended | None, drawn: int) -> None:
        """Check everything that must hold after a command, whatever happened to it."""
        self.state = state = self._read()
        self.draws += drawn
        if ended is not None:
            self._check_messages(ended)
        self._check_spending(before, state, drawn)
        self._check_folders(state)
        self._check_planted()

    def _read(self) -> State:
        path = next((p / "journal" for p in (self.beside, self.out) if (p / "journal").is_file()), None)
        records: list[Record] = []
        content, end = b"", 0
        if path is not None:
            content = path.read_bytes()
            with contextlib.suppress(PointillistError):
                records, end = read_journal(path)
        old = self.reference.old
        spec = self.out / "release.json"
        complete = spec.is_file() and (old is None or spec.read_bytes() != (old / "release.json").read_bytes())
        return State(records, content[:end], complete)

    def _check_messages(self, ended: Ended) -> None:
        said = [line for line in ended.err.splitlines() if line.strip()]
        errors = [line for line in said if line.startswith("error: ")]
        text = f"code {ended.code}: {ended.err[-600:]!r}"
        if self.no_memory and ended.code == -signal.SIGABRT and NO_THREAD in ended.err:
            self.figures.counts["commands that a library aborted, without memory for a thread"] += 1
            return
        wanted = 0 if ended.code in (0, -9, -2, -15) else 1
        good = ended.code in ENDS and "Traceback" not in ended.err and len(errors) == wanted
        if ended.hung:
            self.found("hangs", text)
        elif not good or (errors and said[-1] != errors[0]):
            self.found("bad messages", text)

    def _check_spending(self, before: State, after: State, drawn: int) -> None:
        """The journal only grows; its charges are those of the reference; and noise is drawn under them only."""
        ledger = self.reference.ledger
        done = after.complete and not after.records
        charges = ledger if done else after.charges
        if not done and not after.journal.startswith(before.journal):
            self.found("lost ledgers", f"a journal of {len(before.charges)} charges is gone or was changed")
        if charges != ledger[: len(charges)]:
            self.found("double spends", f"the journal's charges are not those of the run: {len(charges)}")
        if before.booked + drawn > len(charges):
            self.found("lost ledgers", f"{before.booked} + {drawn} draws under {len(charges)} charges on disk")

    def _check_folders(self, state: State) -> None:
        """The release is complete, or an interrupted run, or not there; an older one is whole until then."""
        old, entries = self.reference.old, set(os.listdir(self.out)) if self.out.is_dir() else set()
        if state.complete:
            self._load()
        elif old is not None:
            found = {name: content for name, content in tree(self.out).items() if name not in self._inside}
            if found != tree(old):
                self.found("half releases", f"the older release was changed: {sorted(entries)}")
        elif entries and "journal" not in entries and not entries - self._inside <= {"lock", "reserve"}:
            self.found("half releases", f"files without a journal: {sorted(entries)}")

    def _load(self) -> Release | None:
        try:
            return Release.load(self.out)
        except PointillistError as error:
            self.found("half releases", str(error))
            return None

    def _check_planted(self) -> None:
        for path, content in self.planted.items():
            file = self.work / path
            if not file.is_file() or file.read_bytes() != content:
                self.found("changed files", path)
        if tree(self.data) != self._inputs:
            self.found("changed files", "the data")

    def finish(self) -> None:
        """Run what is left without a fault, and check the release against an uninterrupted one."""
        measured = [r.arrays["counts"] for r in self.state.records if r.data.get("operation") == "measure"]
        for _ in range(3):
            if self.done:
                break
            ended = self.step()
            if ended.code != 0:
                return self.found("half releases", f"it does not resume: {ended.err[-400:]!r}")
        release = self._load() if self.done else None
        if release is None:
            return self.found("half releases", "the run does not come to its end")
        self._check_account(release)
        self._check_same(measured)
        self._check_left()
        self.figures.counts["draws"] += self.draws
        self.figures.counts["charges"] += len(self.reference.ledger)
        return None

    def _check_account(self, release: Release) -> None:
        ledger, limit = [entry.to_dict() for entry in release.description.privacy.ledger], self.reference.limit
        if ledger != self.reference.ledger:
            self.found("double spends", f"{len(ledger)} charges, {len(self.reference.ledger)} without a fault")
        if sum(Fraction(entry["rho"]) for entry in ledger) > Fraction(limit):
            self.found("double spends", "more than the limit")
        if self.reference.old is not None:
            old = json.loads((self.reference.old / "release.json").read_text())["privacy"]
            path = self.out / "replaced.json"
            kept = json.loads(path.read_text()) if path.is_file() else []
            if [one["privacy"] for one in kept] != [old]:
                self.found("lost ledgers", "the ledger of the release that was replaced")

    def _check_same(self, measured: list[np.ndarray]) -> None:
        """With seeded noise the same release; else the values that were measured before the last hit are in it."""
        if self.config.noise is not None:
            if not same_release(self.out, self.reference.folder):
                self.found("double spends", "another release than without a fault")
            return
        with np.load(self.out / "transcript.npz") as transcript:
            counts = transcript["counts"].tolist()
        seen = [value for part in measured for value in part.tolist()]
        if counts[: len(seen)] != seen:
            self.found("double spends", "values were drawn again that had been measured")

    def _check_left(self) -> None:
        top = {path.split("/")[0] for path in self.planted} | {"out"}
        extra = {*os.listdir(self.work)} - top | {*os.listdir(self.out)} - {*FILES} - self._inside
        if extra:
            self.found("leftovers", f"{sorted(extra)}")


def same_release(first: Path, second: Path) -> bool:
    """Whether two folders hold the same rows, model, transcript and description."""
    for name in ("synthetic.csv", "synthetic.parquet", "release.json"):
        if (first / name).read_bytes() != (second / name).read_bytes():
            return False
    for name in ("model.npz", "transcript.npz"):
        with np.load(first / name) as one, np.load(second / name) as other:
            if sorted(one) != sorted(other) or not all(np.array_equal(one[n], other[n], equal_nan=False) for n in one):
                return False
    return True


@contextlib.contextmanager
def case_of(lab: Lab, config: Config, name: str, work: Path | None = None) -> Iterator[Case]:
    """A case whose folder is deleted at the end."""
    case = Case(lab, config, name, work)
    try:
        yield case
    finally:
        case.close()
