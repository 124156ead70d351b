"""Compiled programs are kept in the user's cache folder, so that the next process need not compile them again.

What is kept is JAX's persistent compilation cache: machine code, named by a hash of the program. A program depends on
the numbers of values of the columns, the settings, and on which marginals are fitted; what was counted or measured is
given to it as an argument, and is not in the folder.

Whoever can write to the folder can have code run. So it is the user's own: it is created for the user alone, and used
only if it belongs to the user and nobody else can write to it. Machines with other processors, which may share a home
folder, and other versions of JAX have folders of their own. A folder that cannot be used, an entry that is damaged and
a full disk are no errors: programs are compiled as if there were no cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path

__all__ = ["cache_folder", "keep_programs"]

LEAST_SECONDS = 0.1
"""Programs that compile faster are not kept."""

MOST_BYTES = 500_000_000
"""Programs that were not used for the longest time are deleted beyond this."""


@cache
def keep_programs() -> None:
    """Use the cache, unless it is turned off, cannot be used, or the user has given JAX another one."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    base = cache_folder()
    folder = None if base is None else base / "programs" / _machine()
    if folder is None or not _own(folder):
        return
    _prune(folder)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)


def cache_folder() -> Path | None:
    """The folder for all that is kept between runs: ``POINTILLIST_CACHE`` if that is set (empty: None, nothing is
    kept), else ``pointillist`` under ``XDG_CACHE_HOME`` or ``~/.cache``."""
    chosen = os.environ.get("POINTILLIST_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pointillist"
    except RuntimeError:  # no home
        return None


def _machine() -> str:
    """A name for the processor and the compiler: programs of others may not run here."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    text = "\n".join((platform.system(), platform.machine(), features, version("jaxlib")))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _own(folder: Path) -> bool:
    """Whether the folder is there or can be created, and nobody else can write to it."""
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for one in (folder.parent, folder):
            one.mkdir(mode=0o700, exist_ok=True)
        found = [one.lstat() for one in (folder.parent, folder)]
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # folders below a user's own are the user's own
        return True
    return all(
        stat.S_ISDIR(one.st_mode) and one.st_uid == os.getuid() and not one.st_mode & 0o022 for one in found
    ) and os.access(folder, os.W_OK | os.X_OK)


def _prune(folder: Path) -> None:
    """Delete what was not used for the longest time; other processes may be doing the same."""
    entries = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                about = path.stat()
                entries.append((max(about.st_atime, about.st_mtime), about.st_size, path))
    left = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if left <= MOST_BYTES:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        left -= size
