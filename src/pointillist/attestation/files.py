"""The files of a release folder that nobody has vouched for: read within bounds, never through a link, written whole.

A hostile folder may hold links to other places, pipes, files of any size and archives that grow when they are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pointillist.attestation.findings import Failed, one_line, require
from pointillist.checks import check
from pointillist.queries.workload import show_bytes
from pointillist.release.folder import MODEL, ROWS_CSV, ROWS_PARQUET, TRANSCRIPT
from pointillist.release.place import REPLACED, REPLICATES, SPEC

__all__ = [
    "ADDED_FILES",
    "ATTESTATION",
    "MANIFEST",
    "OPTIONAL_FILES",
    "RELEASE_FILES",
    "Folder",
    "canonical",
    "read_json",
]

RELEASE_FILES = tuple(sorted((MODEL, ROWS_CSV, ROWS_PARQUET, SPEC, TRANSCRIPT)))
"""What a release consists of."""
OPTIONAL_FILES = (REPLACED,)
"""What a release may have besides."""
ADDED_FILES = (REPLICATES,)
"""What may be added later, since it follows from the others. It is signed if it is there when the release is signed."""

MANIFEST, ATTESTATION = "manifest.json", "attestation.json"

MOST_JSON = 1 << 26
"""The largest description that is read: 64 MiB."""

MOST_SIGNED_JSON = 1 << 20
"""The largest manifest or attestation that is read: 1 MiB."""

MOST_ARRAYS = 1 << 31
"""The most that the arrays of a file may take in memory: 2 GiB."""

MOST_ROWS_FILE = 1 << 36
"""The largest table that is read: 64 GiB."""

MOST_MEMBERS = 10_000
"""The most files in a folder, and arrays in a file, that are looked at."""


class Folder:
    """A folder whose content is not trusted.

    Args:
        path: where it is.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        good = self.path.is_dir()
        check(good, "release", str(path), "must be an existing folder", "give the folder that synth wrote")

    def names(self) -> list[str]:
        """The names of everything in the folder, sorted."""
        found: list[str] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                found.append(entry.name)
                require(len(found) <= MOST_MEMBERS, f"the folder holds more than {MOST_MEMBERS:,} files")
        return sorted(found)

    def content(self, added: bool = True) -> tuple[str, ...]:
        """The files that make up the release and are signed: all that it must have, and the optional ones it has.

        Args:
            added: whether with those that may be added later.
        """
        optional = (*OPTIONAL_FILES, *(ADDED_FILES if added else ()))
        return (*RELEASE_FILES, *(name for name in optional if self.has(name)))

    def has(self, name: str) -> bool:
        """Whether there is anything called ``name``, be it a file or not."""
        return os.path.lexists(self.path / name)

    @contextlib.contextmanager
    def open(self, name: str, most: int = MOST_ROWS_FILE) -> Iterator[BinaryIO]:
        """A plain file of the folder, for reading; refuses links, pipes, devices and files above ``most`` bytes."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        self.plain(name)
        try:
            handle = os.open(self.path / name, flags)
        except OSError as error:
            raise Failed(f"{name} cannot be opened ({error.strerror})") from None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            require(stat.S_ISREG(found.st_mode), f"{name} is not a plain file")
            size = show_bytes(found.st_size)
            require(found.st_size <= most, f"{name} has {size}, more than the {show_bytes(most)} that are read")
            yield file

    def plain(self, name: str) -> Path:
        """The path of a file, after a look at what it is."""
        path = self.path / name
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            raise Failed(f"{name} is missing" if not self.has(name) else f"{name}: {error.strerror}") from None
        require(not stat.S_ISLNK(mode), f"{name} is a link, which is not followed")
        require(stat.S_ISREG(mode), f"{name} is not a plain file")
        return path

    def read(self, name: str, most: int = MOST_JSON) -> bytes:
        """The content of a small file."""
        with self.open(name, most) as file:
            content = file.read(most + 1)
        require(len(content) <= most, f"{name} grew while it was read")
        return content

    def digest(self, name: str) -> dict[str, Any]:
        """The SHA-256 and the size of a file."""
        content, size = hashlib.sha256(), 0
        with self.open(name) as file:
            while block := file.read(1 << 20):
                content.update(block)
                size += len(block)
        return {"sha256": content.hexdigest(), "size": size}

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of an ``.npz`` file, after a look at the memory that they would take."""
        with self.open(name, MOST_ARRAYS) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    members = archive.infolist()
            except zipfile.BadZipFile:
                raise Failed(f"{name} is not a file of arrays") from None
            require(len(members) <= MOST_MEMBERS, f"{name} holds more than {MOST_MEMBERS:,} arrays")
            different = len({member.filename for member in members}) == len(members)
            require(different, f"{name} holds two arrays of the same name")
            size = sum(member.file_size for member in members)
            rule = f"more than the {show_bytes(MOST_ARRAYS)} that are read"
            require(size <= MOST_ARRAYS, f"the arrays of {name} take {show_bytes(size)} of memory, {rule}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {key: arrays[key] for key in arrays}

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, with the permissions of the release's description."""
        mode = stat.S_IMODE(self.plain(SPEC).stat().st_mode) & 0o666
        temporary = self.path / f".{name}.{secrets.token_hex(8)}"
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                os.chmod(temporary, mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(self.path)


def _sync(folder: Path) -> None:
    """Make a new name in a folder outlast a power cut, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted names, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def read_json(content: bytes, name: str) -> Any:
    """The value of a JSON text; refuses what readers disagree on: names that come twice, and numbers such as NaN."""

    def different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        require(len(found) == len(pairs), f"{name} has an entry twice")
        return found

    def refuse(constant: str) -> None:
        raise Failed(f"{name} holds {constant}, which is no JSON number")

    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=different, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Failed(f"{name} is not valid JSON ({one_line(error)})") from None
