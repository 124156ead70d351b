"""A process that has imported the package and forks a command for each request: a case costs no import.

It reads requests and writes answers as lines of JSON:

    {"argv": [...], "cwd": ..., "stdout": ..., "stderr": ..., "fault": {...}, "folder": ..., "draws": ...} -> pid
    {"wait": pid} -> exit status, negative for a signal

With ``"fuzz": [kind, seed, first, count]`` the child runs a batch of :mod:`tests.faults.fuzzing` instead.

A command that leaves by an exception prints its traceback, as an interpreter would.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tests.faults import injecting
from tests.faults.configs import Config

__all__ = ["main"]


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    injecting.make_clocks_jump()
    _imports()
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _command(request)
        print(answer, flush=True)


def _imports() -> None:
    """All modules of a command without JAX, but no thread: a child runs one, and tells what it has imported."""
    import opendp.measurements
    import opendp.mod
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    from tests.faults import fuzzing  # noqa: F401

    opendp.mod.enable_features("contrib")
    reader, writer = os.pipe()
    if (scout := os.fork()) == 0:
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            config = Config()
            config.write_data(Path(folder))
            sys.argv = ["pointillist", *config.command(Path(folder), Path(folder) / "out")]
            _outcome()
        os.write(writer, " ".join(name for name in sys.modules if name.isascii()).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as found:
        names = found.read().split()
    os.waitpid(scout, 0)
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _command(request: dict[str, Any]) -> None:
    """The child: the command, as its entry point runs it. It does not return."""
    code: Any = 1
    try:
        os.chdir(request["cwd"])
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(request[name], os.O_WRONLY), number)
        os.close(0)
        if "uid" in request["fault"]:
            os.setgroups([])
            os.setresgid(*[request["fault"]["uid"]] * 3)
            os.setresuid(*[request["fault"]["uid"]] * 3)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)  # before the command has handlers of its own
        for name, size in request["fault"].get("limits", {}).items():
            resource.setrlimit(getattr(resource, name), (size, resource.RLIM_INFINITY))
        injecting.install(request["fault"], request["folder"], request["draws"])
        if "fuzz" in request:
            _fuzz(*request["fuzz"], Path(request["folder"]))
            code = 0
        else:
            sys.argv = ["pointillist", *request["argv"]]
            code = _outcome()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _fuzz(kind: str, seed: int, first: int, count: int, folder: Path) -> None:
    """A batch of cases; a line of JSON for each that went wrong."""
    from tests.faults.fuzzing import batch

    for text in batch(kind, seed, range(first, first + count), folder):
        os.write(1, json.dumps(text).encode() + b"\n")


def _outcome() -> int:
    from pointillist import cli

    try:
        cli.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main()
