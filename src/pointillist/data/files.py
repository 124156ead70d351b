"""Files: paths that exist, and text files that are written whole and no more readable than they should be."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Any

from pointillist.checks import check
from pointillist.data.messages import fragment, reason
from pointillist.errors import InputError

__all__ = ["path_of", "private_mode", "write_text"]

EVERYONE, OWNER = 0o666, 0o600


def path_of(parameter: str, path: Any) -> Path:
    """Return a path; refuse what is none.

    Args:
        parameter: The name of the parameter in error messages.
        path: What was given.
    """
    good = isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str) and "\0" not in os.fspath(path)
    check(good, parameter, fragment(path), "must be a path", "give the path of a file as a text")
    return Path(path)


def private_mode(like: Path | None) -> int:
    """Return the mode of a file that holds values of another one: who may not read that may not read this.

    Args:
        like: The file whose values it holds; None if there is none, for the owner alone.
    """
    if like is None:
        return OWNER
    there = like.stat()
    mode = stat.S_IMODE(there.st_mode) & EVERYONE | OWNER
    return mode if there.st_gid == os.getegid() else mode & ~0o060  # the group of a new file is another one


def write_text(path: Path, text: str, mode: int = EVERYONE) -> None:
    """Write a text file, all of it or nothing. A file that is there already is replaced, its mode included.

    Args:
        path: Where to.
        text: The content.
        mode: The mode of the file, from which the umask is taken away.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():  # a pipe or a terminal
        path.write_text(text, encoding="utf-8")
        return
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        rule = f"must be a file that can be written ({reason(error)})"
        raise InputError("path", str(path), rule, "choose another file, or make room") from None
