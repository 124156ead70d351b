"""The place of a release: a folder of its own, locked from before the first charge until the release is complete.

A run claims its place before it spends anything: a folder is made and locked under a name of its own and gets its place
by one rename, which fails if something is there. While the run lasts the folder holds the journal and a reserve of disk
space. A release is complete when ``release.json`` is in the folder: it is written last, and by a rename. To replace an
older release, the new one is made next to it and the two folders change places at the end.

Nothing is ever deleted but files that this package has written, by their names.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pointillist.checks import check, flag, path_of
from pointillist.errors import InputError, PointillistError
from pointillist.release.journal import NAME as JOURNAL
from pointillist.release.journal import is_blank, sync_folder

__all__ = ["FILES", "REPLACED", "REPLICATES", "SPEC", "Place", "check_target", "is_release", "lock_file"]

SPEC = "release.json"
LOCK, RESERVE, REPLACED, PART = "lock", "reserve", "replaced.json", ".part"
REPLICATES = "replicates.npz"
FILES = ("synthetic.csv", "synthetic.parquet", SPEC, "model.npz", "transcript.npz", REPLACED, REPLICATES)
"""The files of a complete release; the last two are not in all of them."""
EXTRAS = ("manifest.json", "attestation.json")
"""Files that may be added to a release later."""
OURS = (*FILES, *EXTRAS, *(name + PART for name in FILES), JOURNAL, LOCK, RESERVE, "ledger.json")
TEMPORARY, NEW = ".pointillist-", ".new"
ATTEMPTS = 100


@dataclass(frozen=True)
class Place:
    """A claimed place.

    Attributes:
        target: where the release is to be.
        work: the folder in which it is made: the target itself, or one next to it while it replaces an older release.
    """

    target: Path
    work: Path
    _lock: IO[bytes]

    @classmethod
    def claim(cls, folder: str | Path, force: bool = False, inputs: Sequence[Path] = (), need: int = 0) -> Place:
        """Claim a place, or refuse; nothing that exists is touched.

        Args:
            folder: where the release is to be.
            force: whether a release that is there may be replaced.
            inputs: files that must not lie in the folder: the private table, its schema, the public table.
            need: bytes of disk space to reserve until the release is written.
        """
        target = check_target(folder, force, inputs)
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        # Only a release is replaced: a run that has come first in the meantime is none.
        work = _beside(target) if force and is_release(target) else target
        _clear(work)
        made, lock = _locked_folder(target.parent)
        try:
            _reserve(made, need)
            try:
                made.rename(work)
            except OSError:
                raise _occupied(work, target) from None
        except BaseException:
            _remove(made)
            lock.close()
            raise
        sync_folder(target.parent)
        return cls(target, work, lock)

    @classmethod
    def reopen(cls, folder: str | Path) -> Place:
        """The place of an interrupted run, if no other process has it."""
        target = path_of("release", folder).resolve()
        if _is_ours(target.name) and (target / JOURNAL).is_file():
            target = target.with_name(target.name.removeprefix(".").removesuffix(NEW))
        places = (_beside(target), target) if target.name else ()
        work = next((path for path in places if (path / JOURNAL).is_file()), None)
        if work is None:
            raise _no_journal(folder, target)
        lock = lock_file(work / LOCK)
        if lock is None:
            raise InputError("release", str(folder), "must not be in use by another run", "wait until that run ends")
        if not (work / JOURNAL).is_file():  # that run has just ended
            _unlink(work / LOCK)
            lock.close()
            raise _no_journal(folder, target)
        return cls(target, work, lock)

    def publish(self, write: Callable[[Path], None]) -> Path:
        """Write the files of the release and make it complete: all or nothing. ``write`` is given the folder, and
        writes every file but :data:`SPEC` under its name, and that one with :data:`PART` behind it."""
        _unlink(self.work / RESERVE)
        if self.work != self.target:
            _keep_ledgers(self.target, self.work)
        write(self.work)
        for name in FILES:
            for path in (self.work / name, self.work / (name + PART)):
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
        sync_folder(self.work)
        (self.work / (SPEC + PART)).rename(self.work / SPEC)
        sync_folder(self.work)
        mask = os.umask(0)
        os.umask(mask)
        self.work.chmod(0o777 & ~mask)
        return self.finish()

    @property
    def complete(self) -> bool:
        """Whether the release was written, though its place may not be in order yet."""
        return (self.work / SPEC).is_file()

    @property
    def interrupted(self) -> bool:
        """Whether the journal is still in the folder in which the release is made."""
        return (self.work / JOURNAL).is_file()

    @property
    def finished(self) -> bool:
        """Whether the release is at its target, and nothing is left to do."""
        left = any((folder / JOURNAL).is_file() for folder in (self.work, self.target))
        return (self.target / SPEC).is_file() and not left

    def finish(self) -> Path:
        """Bring a complete release to its target, and remove what only the run needed: the journal last, so that
        whatever stops this, it can be done again."""
        if self.work != self.target:
            self._change_places()
        _clear(_beside(self.target))
        for name in (RESERVE, "ledger.json", LOCK, JOURNAL):
            _unlink(self.target / name)
        sync_folder(self.target)
        self.close()
        return self.target

    def _change_places(self) -> None:
        """Put the new release in the place of the old one, and delete the files of the old one."""
        if not self.target.exists():
            self.work.rename(self.target)
        elif is_release(self.target):
            _exchange(self.work, self.target)
            sync_folder(self.target.parent)
            _remove(self.work)
        else:
            text = f"{self.target} is not the release any more that was to be replaced"
            raise PointillistError(f"{text}; the new release is complete in {self.work}")

    def abandon(self) -> None:
        """Leave the place as if it had never been claimed: for runs that have spent nothing."""
        _remove(self.work)
        self.close()

    def close(self) -> None:
        """Let go of the lock. That of a run which another process has just ended is removed: it was made again between
        the last two steps of :meth:`finish`."""
        if self.complete and not self.interrupted:
            _unlink(self.work / LOCK)
        self._lock.close()


def check_target(folder: str | Path, force: bool, inputs: Sequence[Path] = ()) -> Path:
    """Refuse a target that cannot be written or would overwrite something."""
    target = path_of("out", folder).resolve()
    for path in inputs:
        inside = Path(path).exists() and target in Path(path).resolve().parents
        rule = f"must not hold {Path(path).name}, which the run reads"
        check(not inside, "out", str(folder), rule, "choose another folder")
    check(bool(target.name), "out", str(folder), "must be a folder with a name", "choose another folder")
    readable = str(target).encode("utf-8", "replace").decode() == str(target)
    check(readable, "out", str(folder), "must have a path in UTF-8", "choose another folder")
    rule = "must not be the working folder, which would be another one afterwards"
    check(target != Path.cwd(), "out", str(folder), rule, "choose another folder")
    parent = next(path for path in target.parents if path.exists())
    good = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    rule = f"must be in a folder that can be written to (not {parent})"
    check(good, "out", str(folder), rule, "choose another folder")
    longest = os.pathconf(parent, "PC_NAME_MAX") - len(NEW) - 1
    rule = f"must have a name of at most {longest} bytes"
    check(len(os.fsencode(target.name)) <= longest, "out", str(folder)[:60], rule, "choose a shorter name")
    rule = "must not have a name that runs use for themselves"
    check(not _is_ours(target.name), "out", str(folder)[:60], rule, "choose another name")
    if (_beside(target) / JOURNAL).is_file() and not is_blank(_beside(target) / JOURNAL):
        raise _occupied(_beside(target), target)
    _clear(target)
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty:
        if (target / LOCK).is_file() and (not (target / SPEC).is_file() or _is_held(target / LOCK)):
            raise _occupied(target, target)
        check(flag("force", force), "out", str(folder), "must not exist already", _hint(target, target))
        rule = "must be a release with no other files in it to be replaced"
        check(is_release(target), "out", str(folder), rule, "choose another folder")
    return target


def _beside(target: Path) -> Path:
    """The folder in which the successor of a release is made."""
    return target.with_name(f".{target.name}{NEW}")


def _is_ours(name: str) -> bool:
    """Whether a name is one of those that runs give to folders of their own."""
    return name.startswith(TEMPORARY) or (name.startswith(".") and name.endswith(NEW) and len(name) > len(NEW) + 1)


def _no_journal(folder: str | Path, target: Path) -> InputError:
    hint = "it is complete" if (target / SPEC).is_file() else "give the folder that synth named"
    return InputError("release", str(folder), "must be the folder of an interrupted run", hint)


def _hint(work: Path, target: Path) -> str:
    if (work / JOURNAL).is_file() and (work != target or not (work / SPEC).is_file()):
        return f"it holds a run that was interrupted: finish it with `pointillist resume {target}`"
    return "choose another folder, or replace the release with --force"


def is_release(folder: Path) -> bool:
    """Whether a folder is one of our releases and holds nothing else."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    entries = list(folder.iterdir())
    if not all(path.is_file() and not path.is_symlink() and path.name in OURS for path in entries):
        return False
    try:
        spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(spec, dict) and {"format", "privacy", "schema", "workload", "versions"} <= spec.keys()


def _locked_folder(parent: Path) -> tuple[Path, IO[bytes]]:
    """A new folder with a lock in it, under a name that nobody else uses."""
    for _ in range(ATTEMPTS):
        made = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
        lock = lock_file(made / LOCK)
        if lock is not None:
            return made, lock  # else another run has swept it away before it was locked
    raise PointillistError(f"no folder can be made in {parent}: other runs delete it; run again.")


def lock_file(path: Path) -> IO[bytes] | None:
    """The lock of a folder, held until it is closed or the process dies; None if another process has it. A file that
    was deleted while it was being locked is no lock."""
    try:
        lock = path.open("ab")
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass  # another process holds or has removed it: told by the result
    except BaseException:
        lock.close()
        raise
    lock.close()
    return None


def _is_held(path: Path) -> bool:
    """Whether another process has the lock of a folder."""
    lock = lock_file(path)
    if lock is not None:
        lock.close()
    return lock is None


def _reserve(folder: Path, need: int) -> None:
    """Set disk space aside, so that a full disk shows before anything is spent."""
    if need <= 0:
        return
    with (folder / RESERVE).open("xb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, need)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return  # a file system that cannot reserve
            rule = f"must be on a disk with {need / 1e6:,.0f} MB free"
            raise InputError("out", str(folder.parent), rule, "free some space or choose another folder") from None


def _occupied(work: Path, target: Path) -> InputError:
    if (work / LOCK).is_file() and _is_held(work / LOCK):
        return InputError("out", str(target), "must not be in use by another run", "wait until that run ends")
    return InputError("out", str(work), "must not exist already", _hint(work, target))


def _clear(folder: Path) -> None:
    """Delete what a killed process left in a folder of ours, if no other process uses it."""
    if _is_ours(folder.name) and not _names(folder):
        with contextlib.suppress(OSError):
            folder.rmdir()
    lock = lock_file(folder / LOCK) if _is_left(folder) else None
    if lock is None:
        return
    with lock:
        if _is_left(folder):  # still, now that nobody else can change it
            _remove(folder)


def _is_left(folder: Path) -> bool:
    """Whether a folder of ours holds nothing that counts: no journal that has begun, and no release but one that was
    replaced."""
    names = _names(folder)
    if not names <= set(OURS) or (JOURNAL in names and not is_blank(folder / JOURNAL)):
        return False
    if SPEC in names:
        return _is_ours(folder.name) and is_release(folder)
    return LOCK in names


def _names(folder: Path) -> set[str]:
    """What is in a folder; nothing if it is none, or a link to one."""
    try:
        return set() if folder.is_symlink() else set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _sweep(parent: Path) -> None:
    """Delete folders that processes killed in the middle of a claim left behind."""
    for folder in parent.glob(f"{TEMPORARY}????????"):
        _clear(folder)


def _exchange(first: Path, second: Path) -> None:
    """Let two folders change places, in one step where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        if libc.renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0:
            return
    aside = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=second.parent))
    second.rename(aside)  # onto an empty folder of our own
    try:
        first.rename(second)
    except OSError:
        aside.rename(second)
        raise
    aside.rename(first)


def _keep_ledgers(target: Path, work: Path) -> None:
    """Copy the account of the release that is replaced, and of those before it: what was spent stays spent."""
    if not (target / SPEC).is_file():
        return  # it was taken away
    spec = json.loads((target / SPEC).read_text(encoding="utf-8"))
    text = json.dumps(
        [*_earlier(target / REPLACED), {"privacy": spec["privacy"], "total": spec.get("total")}], indent=1
    )
    (work / REPLACED).write_text(text + "\n", encoding="utf-8")


def _earlier(path: Path) -> list[Any]:
    """The accounts that a release has kept; if somebody has damaged them, their text as it is."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, list) else [{"unreadable": text}]


def _remove(folder: Path) -> None:
    """Delete our own files in a folder, and the folder if nothing else is in it. What shows that it is ours goes last,
    so that whatever stops this, the next run can do it again."""
    last = (JOURNAL, SPEC, LOCK)
    for name in (*(name for name in OURS if name not in last), *last):
        _unlink(folder / name)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _unlink(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
