"""Times, and facts about the code and the machine behind a figure."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """The best time of several calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def peak_memory() -> str:
    """The largest memory of this process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"


@cache
def commit() -> str:
    """The commit of the package, or ``POINTILLIST_COMMIT`` where there is no repository.

    The suffix ``-changed`` means that the package differs from the commit.
    """
    given = os.environ.get("POINTILLIST_COMMIT")
    if given:
        return given
    try:
        found = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                               check=True).stdout.strip()  # fmt: skip
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{found}-changed" if changed else found


def machine() -> str:
    """``POINTILLIST_MACHINE``, or the number of cores."""
    return os.environ.get("POINTILLIST_MACHINE") or f"{os.cpu_count()} CPU cores"


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
