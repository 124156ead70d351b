"""Campaigns: many cases at random points, from a seed. Their figures are in the lab."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.faults import fuzzing
from tests.faults.cases import Case, Lab, case_of
from tests.faults.configs import CONFIGS
from tests.faults.fuzzed_books import make_books
from tests.faults.injecting import ERRORS
from tests.faults.processes import Process

__all__ = ["FAULTS", "faults", "fuzz", "kills"]

SIGNALS = ("KILL", "KILL", "TERM", "INT")
LATEST = 0.5
"""Seconds: the latest moment of a fault."""
DISK = 2 << 20
"""Bytes of a small disk."""
NOBODY = 65534
BATCH = 400
"""Fuzzed inputs in one process."""
MEMORY = 4 << 30
HOUR = 3600.0
Say = Callable[[str], None]


def _quiet(text: str) -> None:
    """Say nothing."""


def kills(lab: Lab, wanted: int, seed: int, first: int = 0, say: Say = _quiet) -> None:
    """Kill runs until ``wanted`` processes were hit; every case is hit once to five times, then finished.

    Args:
        lab: where to; its figures are added to.
        wanted: the number of processes to hit.
        seed: of the random choices; each case has its own, from it and its number.
        first: the number of the first case.
        say: gets a line now and then.
    """
    counts, number = lab.figures.counts, first
    goal = counts["kills"] + wanted
    while counts["kills"] < goal:
        chance = random.Random(f"kills {seed} {number}")
        with case_of(lab, chance.choice(CONFIGS), f"kills {seed} {number}") as case:
            for _ in range(chance.choice([1, 1, 2, 3, 5])):
                if not case.done:
                    _kill(case, chance)
            case.finish()
        counts["runs that were killed"] += 1
        number += 1
        if number % 25 == 0:
            say(f"{number - first} runs, {counts['kills']} kills, {len(lab.figures.violations)} violations")


def _kill(case: Case, chance: random.Random) -> None:
    """Hit the next command: at a random file operation, or after a random time."""
    name = chance.choice(SIGNALS)
    if chance.random() < 0.6:
        struck = case.step({"at": chance.randint(1, case.reference.operations), "do": name}).code != 0
    else:
        hits: list[bool] = []
        number = getattr(signal, f"SIG{name}")
        case.step(meanwhile=_later(chance, lambda process: hits.append(process.hit(number))))
        struck = hits == [True]
    if struck:
        case.figures.counts["kills"] += 1
        case.figures.counts[f"kills by SIG{name}"] += 1
        case.figures.counts["kills after a charge"] += bool(case.state.charges)


def _later(chance: random.Random, act: Callable[[Process], object]) -> Callable[[Process], None]:
    """Do something to a process after a random time, unless it has ended."""
    delay = chance.uniform(0.0, LATEST)

    def wait(process: Process) -> None:
        if not process.ends_within(delay):
            act(process)

    return wait


def faults(lab: Lab, wanted: int, seed: int, first: int = 0, say: Say = _quiet) -> None:
    """Hit runs with faults of all kinds, in turn; see :func:`kills` for the arguments."""
    kinds = list(FAULTS)
    for number in range(first, first + wanted):
        name = kinds[number % len(kinds)]
        chance = random.Random(f"faults {seed} {number}")
        FAULTS[name](lab, chance, f"faults {seed} {number} ({name})")
        lab.figures.counts["faults"] += 1
        lab.figures.counts[f"faults: {name}"] += 1
        if number % 25 == 24:
            say(f"{number - first + 1} faults, {len(lab.figures.violations)} violations")


def _errors(lab: Lab, chance: random.Random, name: str) -> None:
    """One or two file operations fail; half of the time all that follow do, too."""
    with case_of(lab, chance.choice(CONFIGS), name) as case:
        for _ in range(chance.choice([1, 2])):
            if not case.done:
                at, error = chance.randint(1, case.reference.operations), chance.choice(list(ERRORS))
                case.step({"at": at, "do": error, "hold": chance.random() < 0.5})
        case.finish()


@contextlib.contextmanager
def _small_disk(lab: Lab) -> Iterator[Path | None]:
    """A file system of a few megabytes; None where none may be mounted."""
    folder = lab.new("disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    mounted = shutil.which("mount") is not None and subprocess.run(mount, capture_output=True, check=False)
    try:
        yield folder if mounted and mounted.returncode == 0 else None
    finally:
        if mounted and mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def _fill(disk: Path) -> Path:
    """Use up the space of a disk to the last page."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass  # writing is all that is wanted
    return path


def _full_disk(lab: Lab, chance: random.Random, name: str) -> None:
    """The disk is full from the beginning or from some moment on; then there is space again."""
    with _small_disk(lab) as disk:
        if disk is None:
            return _limited_files(lab, chance, name)
        with case_of(lab, chance.choice(CONFIGS), name, disk) as case:
            if chance.random() < 0.2:
                filler = _fill(disk)
                case.planted["filler"] = filler.read_bytes()
                ended = case.step()
                if ended.code != 2 or case.state.charges:
                    case.found("bad messages", f"a full disk was not refused: {ended.code} {ended.err}")
                del case.planted["filler"]
                filler.unlink()
            case.step(meanwhile=_later(chance, lambda process: _fill(disk)))
            (disk / "filler").unlink(missing_ok=True)
            case.finish()
    return None


def _limited_files(lab: Lab, chance: random.Random, name: str) -> None:
    """From some moment on no file may grow beyond a few kilobytes: a quota."""
    size = chance.randint(0, 9000)
    limit = _limiting(resource.RLIMIT_FSIZE, lambda process: size)
    with case_of(lab, chance.choice(CONFIGS), name) as case:
        case.step(meanwhile=_later(chance, limit))
        case.finish()


def _limited_memory(lab: Lab, chance: random.Random, name: str) -> None:
    """From some moment on there is hardly any memory left."""
    more = chance.choice([0, 1 << 12, 1 << 16, 1 << 20, 1 << 22])

    def size(process: Process) -> int:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
        return pages * resource.getpagesize() + more

    with case_of(lab, chance.choice(CONFIGS), name) as case:
        case.no_memory = True
        case.step(meanwhile=_later(chance, _limiting(resource.RLIMIT_AS, size)))
        case.no_memory = False
        case.finish()


def _limiting(kind: int, size: Callable[[Process], int]) -> Callable[[Process], None]:
    def limit(process: Process) -> None:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            resource.prlimit(process.pid, kind, (size(process), resource.RLIM_INFINITY))

    return limit


def _read_only(lab: Lab, chance: random.Random, name: str) -> None:
    """The folder of the release, or the one that holds it, cannot be written to for a while."""
    with case_of(lab, chance.choice(CONFIGS), name) as case:
        fault = {}
        if os.getuid() == 0:
            fault["uid"] = NOBODY
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(case.home)], check=True)
        folders = chance.choice([[case.work], [case.out, case.beside]])

        def forbid(process: Process | None = None, mode: int = 0o555) -> None:
            for folder in folders:
                with contextlib.suppress(FileNotFoundError):
                    folder.chmod(mode)

        if chance.random() < 0.2:
            forbid()
            case.step(fault)
            forbid(mode=0o755)
        case.step(fault, _later(chance, forbid))
        forbid(mode=0o755)
        case.finish()


def _clocks(lab: Lab, chance: random.Random, name: str) -> None:
    """The clocks jump, by hours and by years, back and forth; some runs are killed as well."""
    with case_of(lab, chance.choice(CONFIGS), name) as case:
        case.step({"clock": chance.randint(0, 10**6)} | {"at": chance.randint(1, 200), "do": chance.choice(SIGNALS)})
        if not case.done:
            case.step({"clock": chance.randint(0, 10**6)})
        case.finish()


def _writers(lab: Lab, chance: random.Random, name: str) -> None:
    """Several processes want the same place at the same moment, some of them after a run that was killed early. One
    gets it, the others are refused and spend nothing."""
    with case_of(lab, chance.choice([one for one in CONFIGS if one.noise is not None and not one.force]), name) as case:
        if chance.random() < 0.5:
            case.step({"at": chance.randint(1, 40), "do": "KILL"})
        before, command, gate = case.state, case.next_command(), case.home / "gate"
        faults = [{"gate": str(gate)} for _ in range(chance.choice([2, 2, 3, 5]))]
        started = []
        for fault in faults:
            started.append((case.start(fault, command), case.lab.server.number))
        gate.touch()
        ends = [(process.end(), case.drawn(number)) for process, number in started]
        for ended, drawn in ends:
            case.look(before, ended, drawn)
        drew = [drawn for _, drawn in ends if drawn]
        won = [ended for ended, _ in ends if ended.code == 0]
        if len(won) != 1 or len(drew) > 1 or not all(end.code == 2 for end, _ in ends if end is not won[0]):
            case.found("double spends", f"{[(end.code, drawn, end.err[-200:]) for end, drawn in ends]}")
        case.figures.counts["writers at the same moment"] += len(ends)
        case.figures.counts["writers that won"] += len(won)
        case.finish()


def _visitor(lab: Lab, chance: random.Random, name: str) -> None:
    """Somebody puts a file into the folder of the release while the run lasts."""
    path = "out/only_copy.txt"

    def visit(process: Process | None = None) -> None:
        case.out.mkdir(exist_ok=True)
        (case.work / path).write_bytes(b"precious")
        case.planted[path] = b"precious"

    with case_of(lab, chance.choice(CONFIGS), name) as case:
        if chance.random() < 0.3:
            visit()
            case.step()
        else:
            case.step(meanwhile=_later(chance, visit))
        if path in case.planted and not case.done:  # refused: the visitor takes the file away
            (case.work / path).unlink()
            del case.planted[path]
        case.finish()


def fuzz(lab: Lab, wanted: int, seed: int, first: int = 0, say: Say = _quiet, kinds: Sequence[str] = ()) -> None:
    """Fuzz all kinds (or some ``kinds``) of :mod:`tests.faults.fuzzing`: ``wanted`` cases of each, or a multiple of it
    where they are quick. A batch runs in a process of its own, as many at a time as there are cores."""
    started: list[tuple[str, int, int, Path, Process]] = []
    for start in range(first, first + wanted, BATCH):
        count = min(BATCH, first + wanted - start)
        for kind in kinds or fuzzing.KINDS:
            weight = fuzzing.WEIGHTS.get(kind, 1)
            for one in range(weight * start, weight * (start + count), BATCH):
                size = min(BATCH, weight * (start + count) - one)
                if len(started) >= (os.cpu_count() or 1):
                    _ended(lab, seed, *started.pop(0))
                started.append((kind, one, size, *_start_batch(lab, [kind, seed, one, size])))
        say(f"{start - first + count} inputs of each kind, {len(lab.figures.violations)} violations")
    while started:
        _ended(lab, seed, *started.pop(0))


def _start_batch(lab: Lab, batch: list[Any]) -> tuple[Path, Process]:
    """A process with its own copy of what is damaged, and without privileges where there are any."""
    if lab.fuzzed is None:
        lab.fuzzed = _fuzzed(lab)
    folder = lab.new("batch")
    shutil.copytree(lab.fuzzed, folder, dirs_exist_ok=True)
    fault: dict[str, Any] = {"limits": {"RLIMIT_AS": MEMORY, "RLIMIT_FSIZE": MEMORY}}
    if os.getuid() == 0:
        fault["uid"] = NOBODY
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(folder)], check=True)
    return folder, lab.server.start([], folder, folder, fault, fuzz=batch)


def _ended(lab: Lab, seed: int, kind: str, start: int, count: int, folder: Path, process: Process) -> None:
    ended = process.end(HOUR)
    shutil.rmtree(folder)
    for line in ended.out.splitlines():
        text = json.loads(line)
        lab.figures.found("hangs" if "Hang" in text else "tracebacks", text)
    if ended.code != 0:
        lab.figures.found("crashes", f"fuzz {kind} {seed} {start}: code {ended.code}: {ended.err[-500:]}")
    lab.figures.counts["fuzzed inputs"] += count
    lab.figures.counts[f"fuzzed inputs: {kind}"] += count


def _fuzzed(lab: Lab) -> Path:
    """A folder with data, a release, the same run interrupted in the middle, an account and a signed release."""
    folder = lab.new("fuzz")
    with case_of(lab, fuzzing.SEEDED, "fuzz") as case:
        case.step({"at": case.reference.operations // 2, "do": "KILL"})
        assert len(case.state.charges) > 3
        shutil.copytree(case.out, folder / "interrupted")
        shutil.copytree(case.reference.folder, folder / "release")
        fuzzing.SEEDED.write_data(folder)
    make_books(folder)
    return folder


FAULTS: dict[str, Callable[[Lab, random.Random, str], None]] = {
    "file operations that fail": _errors,
    "full disk": _full_disk,
    "limit on the size of files": _limited_files,
    "limit on memory": _limited_memory,
    "read-only folder": _read_only,
    "jumping clocks": _clocks,
    "several writers": _writers,
    "files that appear meanwhile": _visitor,
}
"""Every kind of fault, by its name."""
