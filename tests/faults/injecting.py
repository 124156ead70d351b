"""Faults inside the process under test: at its n-th file operation it is killed, gets a signal or an error; its clocks
jump; and every draw of noise is noted in a file that outlives it. All of it is put around the package from outside.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue  # noqa: F401  (see make_clocks_jump)
import random
import signal
import sys
import threading  # noqa: F401
import time
from collections.abc import Callable
from typing import Any

__all__ = ["ERRORS", "install", "make_clocks_jump"]

ERRORS = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EROFS", "EACCES", "EDQUOT", "EMFILE")}
"""The errors that a file operation may be made to fail with."""

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.listdir", "os.scandir"}
"""The file operations that the interpreter tells its audit hooks about, with a path; fsync and flock are added."""

CLOCKS = ("time", "monotonic", "perf_counter")
_skews: list[Callable[[], float]] = []


def make_clocks_jump() -> None:
    """Let the clocks of the time module go through this module: before anything is imported that binds them.

    The locks of Python keep the true clock, since threading and queue are imported already: they wait until a time on a
    monotonic clock, for years if that one goes back, which no system's clock does.
    """
    for name in CLOCKS:
        setattr(time, name, _jumping(getattr(time, name)))


def _jumping(clock: Callable[[], float]) -> Callable[[], float]:
    return lambda: clock() + (_skews[0]() if _skews else 0.0)


def install(fault: dict[str, Any], folder: str, draws: str) -> None:
    """Prepare this process, which then runs the command.

    Args:
        fault: ``at``: the number of the file operation (from 1); ``do``: KILL, TERM, INT or a name of :data:`ERRORS`,
            or ``hold`` for an error that lasts from then on; ``clock``: a seed of jumping clocks; ``count``: a file
            for the number of operations of a run that ends by itself; ``gate``: a file to wait for.
        folder: only operations under it count.
        draws: a file that gets a letter for each draw of noise.
    """
    if "clock" in fault:
        chance = random.Random(fault["clock"])
        _skews.append(lambda: chance.choice([0.0, 0.0, 1e-3, -3600.0, 86400.0 * 365 * 40, -5e8]))
    _note_draws(os.open(draws, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
    if "at" in fault or "count" in fault:
        _count_operations(fault, folder)
    while "gate" in fault and not os.path.exists(fault["gate"]):
        pass  # busy, so that all who wait begin at the same moment


def _note_draws(handle: int) -> None:
    """Write down each draw when it begins; the page cache survives the process."""
    from pointillist.privacy.insecure import InsecureSeededNoise
    from pointillist.privacy.mechanisms import OpenDPNoise

    for kind in (InsecureSeededNoise, OpenDPNoise):
        for name, letter in (("add_gaussian", b"m"), ("select", b"s")):
            setattr(kind, name, _noted(getattr(kind, name), handle, letter))


def _noted(draw: Any, handle: int, letter: bytes) -> Any:
    def noted(*arguments: Any) -> Any:
        os.write(handle, letter)
        return draw(*arguments)

    return noted


def _count_operations(fault: dict[str, Any], folder: str) -> None:
    done, at, what = 0, fault.get("at", 0), fault.get("do", "")
    busy = False

    def operation() -> None:
        nonlocal done
        done += 1
        if done == at or (fault.get("hold") and done > at > 0):
            if what in ERRORS:
                raise OSError(ERRORS[what], os.strerror(ERRORS[what]))
            os.kill(os.getpid(), getattr(signal, f"SIG{what}"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        if event not in EVENTS or busy or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        busy = True
        try:
            inside = os.fsdecode(arguments[0]).startswith(folder)
        finally:
            busy = False
        if inside:
            operation()

    def wrapped(call: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            operation()
            return call(*arguments)

        return counting

    sys.addaudithook(hook)
    os.fsync = wrapped(os.fsync)
    fcntl.flock = wrapped(fcntl.flock)
    if "count" in fault:
        leave = os._exit

        def counted(code: int) -> None:
            handle = os.open(fault["count"], os.O_WRONLY | os.O_CREAT)
            os.write(handle, str(done).encode())
            leave(code)

        os._exit = counted  # type: ignore[assignment]
