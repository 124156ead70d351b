"""Signals: one sentence, the right exit code, wherever the process is when they come."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, os, signal, sys, time
from pointillist.leaving import in_order

def hit(number=signal.SIG{name}):
    os.kill(os.getpid(), number)
    time.sleep(0.01)

with in_order():
    {body}
print("after")
"""
BODIES = {
    "at once": "hit()",
    "while another is handled": "try:\n        hit()\n    finally:\n        hit(); hit(signal.SIGTERM)",
    "in a callback of C": "ctypes.CFUNCTYPE(None)(hit)()\n    time.sleep(60)",
    "turned into an exit": "try:\n        hit()\n    except KeyboardInterrupt:\n        sys.exit(1)",
}


@pytest.mark.parametrize("name", ["INT", "TERM"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_signal_gives_one_sentence_and_its_exit_code(body: str, name: str) -> None:
    script = SCRIPT.format(name=name, body=body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    assert done.stderr.startswith(f"error: stopped by SIG{name}; if anything was spent, the folder of the release has")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_a_signal_nothing_changes() -> None:
    body = "before = signal.getsignal(signal.SIGTERM)\n    print(callable(before))"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name="INT", body=body) + "print(signal.getsignal(signal.SIGTERM))"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[:2] == ["True", "after"]


def test_there_are_no_core_dumps_of_the_table() -> None:
    script = SCRIPT.format(name="INT", body="import resource") + "print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=50)
    assert done.stdout.split() == ["after", "0"]
