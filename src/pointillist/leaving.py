"""How a command leaves when it is told to stop: in order, soon, and without a core dump of private data.

SIGTERM (docker stop, systemd, SLURM) is treated like Ctrl-C: it raises in the main thread. A compiled program of JAX
cannot be interrupted, and tearing the interpreter down while one is running may crash, so a watching thread ends the
process a few seconds after the signal in any case. Nothing is lost by that: what was spent and measured is in the
journal before it is used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["REFUSED", "in_order"]

REFUSED = 2
"""The exit code of a command that has said in one sentence why it does not go on."""

PATIENCE = 5.0
"""Seconds between a signal and the end of the process."""

LITTLE = 0.01
"""Seconds until a signal that was lost is raised again."""

KEPT = "if anything was spent, the folder of the release has it (an interrupted run: `pointillist resume OUT`)"


class Signal(KeyboardInterrupt):
    """A signal that asks the process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def in_order() -> Iterator[None]:
    """Handle SIGINT and SIGTERM while a command runs; only in the main thread."""
    _no_core_dumps()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = _Stop()
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    wakeup, unraisable = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False), sys.unraisablehook
    before: dict[int, Any] = {}
    try:
        sys.unraisablehook = lambda found: stop.again(found) or unraisable(found)
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, stop)
        yield
    except Signal as asked:
        print(f"error: stopped by {asked}; {KEPT}.", file=sys.stderr, flush=True)
    except SystemExit as end:
        if stop.received and end.code != REFUSED:  # else the command has said why
            print(f"error: stopped by {stop.received[0].name}; {KEPT}.", file=sys.stderr, flush=True)
        raise
    finally:
        stop.armed = False
        if stop.received:  # tearing down while a compiled program runs may crash
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + stop.received[0])
        signal.set_wakeup_fd(wakeup)
        sys.unraisablehook = unraisable
        for asking, handler in before.items():
            signal.signal(asking, handler)
        writer.close()


class _Stop:
    """A handler that raises at the first signal; a second one does not disturb what the first has begun."""

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self.armed = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.received.append(signal.Signals(number))
        if self.armed:
            self.armed = False
            raise Signal(number)

    def again(self, found: sys.UnraisableHookArgs) -> bool:
        """A signal that came within a callback of a library, from which no error gets out, is raised a little later."""
        if not isinstance(found.exc_value, Signal):
            return False
        self.armed = True
        where = threading.main_thread().ident
        later = threading.Timer(LITTLE, signal.pthread_kill, [where, found.exc_value.number])
        later.daemon = True
        later.start()
        return True


def _watch(reader: socket.socket) -> None:
    """End the process some time after a signal, if it has not ended by itself."""
    found = reader.recv(1)
    if not found:  # the command is done
        reader.close()
        return
    time.sleep(PATIENCE)
    print(f"error: stopped; {KEPT}.", file=sys.stderr, flush=True)
    os._exit(128 + found[0])


def _no_core_dumps() -> None:
    """A core holds the private table."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
