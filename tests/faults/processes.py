"""Commands as processes that can be hit: started by a server that forks, watched through file descriptors of theirs."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Ended", "Process", "Server"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds after which a command counts as hanging."""


class Ended(NamedTuple):
    """How a command ended: its exit status (negative for a signal), what it wrote, and whether it hung."""

    code: int
    out: str
    err: str
    hung: bool = False


@dataclass
class Process:
    """A running command."""

    server: Server
    pid: int
    pipes: Sequence[int]
    handle: int = field(init=False)

    def __post_init__(self) -> None:
        self.handle = os.pidfd_open(self.pid)

    def ends_within(self, seconds: float) -> bool:
        """Wait; whether the process has ended by then."""
        return bool(select.select([self.handle], [], [], seconds)[0])

    def hit(self, number: int) -> bool:
        """Send a signal; false if the process has ended already."""
        if self.ends_within(0.0):
            return False
        signal.pidfd_send_signal(self.handle, number)
        return True

    def end(self, patience: float = PATIENCE) -> Ended:
        """Wait for the end. A process that hangs is killed."""
        hung = not self.ends_within(patience)
        if hung:
            self.hit(signal.SIGKILL)
        code = self.server.ask(wait=self.pid)
        os.close(self.handle)
        texts = [b"".join(iter(lambda pipe=pipe: os.read(pipe, 1 << 16), b"")).decode() for pipe in self.pipes]
        for pipe in self.pipes:
            os.close(pipe)
        return Ended(code, *texts, hung)


def _pipe(path: str) -> int:
    """A named pipe that holds what a command prints: no limit on files and no full disk concerns it."""
    os.mkfifo(path)
    os.chmod(path, 0o666)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
    return pipe


class Server:
    """The forking server, as a context manager."""

    def __enter__(self) -> Server:
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | one | {"PYTHONPATH": path, "COLUMNS": "200"},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self._number = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, **request: Any) -> int:
        """One request and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def start(
        self, arguments: Sequence[str], home: Path, folder: Path, fault: dict[str, Any] | None = None, **more: Any
    ) -> Process:
        """Start ``pointillist ARGUMENTS``.

        Args:
            arguments: the command line.
            home: a folder for what the command prints (and ``draws``, its draws of noise); its working folder.
            folder: where file operations count.
            fault: see :func:`tests.faults.injecting.install`; also ``uid`` and ``limits``.
            **more: further entries of the request.
        """
        self._number += 1
        where = {name: str(home / f"{name}.{self._number}") for name in ("stdout", "stderr")}
        pipes = [_pipe(path) for path in where.values()]
        marks = {"folder": str(folder), "draws": str(home / f"draws.{self._number}")}
        pid = self.ask(argv=list(arguments), fault=fault or {}, cwd=str(home), **where, **marks, **more)
        return Process(self, pid, pipes)

    @property
    def number(self) -> int:
        """The number of the last command."""
        return self._number
