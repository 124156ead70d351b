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
    received: list[int] = []
    done: list[bool] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1 and not done:  # a second one does not disturb what the first has begun
            raise Signal(number)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before: dict[int, Any] = {}
    try:
        for asking in (signal.SIGINT, signal.SIGTERM):
            before[asking] = signal.signal(asking, interrupt)
        yield
    except Signal as stop:
        print(f"error: stopped by {stop}; {KEPT}.", file=sys.stderr, flush=True)
    except SystemExit as end:
        if received and end.code != REFUSED:  # else the command has said why
            print(f"error: stopped by {signal.Signals(received[0]).name}; {KEPT}.", file=sys.stderr, flush=True)
        raise
    finally:
        done.append(True)
        _leave(received)
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()


def _leave(received: list[int]) -> None:
    """End the process if it was told to stop: tearing down while a compiled program runs may crash."""
    if received:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + received[0])


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
