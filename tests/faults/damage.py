"""What fuzzing is made of: values of all kinds, damage to bytes and to plain data, and commands in this process."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from pointillist import cli

__all__ = ["HUGE", "NONSENSE", "PLAIN", "WORDS", "Wrong", "command", "edit", "flip", "to_json"]


class Wrong(Exception):
    """A case gave an answer that it must not give."""


NONSENSE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 5, 10**30, 10**5000, -(10**5000), 1e5,
    0.5, -0.0, 1e-300, 1e308, float("nan"), float("inf"),
    float("-inf"), "", "x", "1", "0.5", "nan", "marginals:2", "marginals:0", "marginals:99", "marginals:x",
    "mwem", "query", "é\u202e", "a" * 5000, "\udcff", "\0", "two\nlines", b"1", b"", [], [1], ["a"], (), (1, 2),
    {}, {"rounds": 3}, {"rounds": "x"}, {1: 2}, {"rounds": -1}, {"rounds": 1e300}, {"rounds": None},
    {"eta": "nan"}, {"alpha": 2}, {"output": 7}, {"past": "maybe"}, set(), np.float64(500), np.float32(0.5),
    np.int64(3), np.int8(-3), np.bool_(True), np.array([1, 2]), np.array(3), np.array("x"),
    np.datetime64("2020-01-01"), Fraction(1, 3), Fraction(10**5000),
    Decimal("1e5000"), Decimal("0.5"), Decimal("NaN"), 1j, object(), int, len,
    Ellipsis, Path("x"), range(3), iter([]), NotImplemented, memoryview(b"x"), slice(1), lambda: 1,
)  # fmt: skip
"""Values of all kinds for arguments in Python."""

HUGE = "@huge@"
"""Stands for a whole number of 5,000 digits, which Python does not print; see :func:`to_json`."""

PLAIN: tuple[Any, ...] = (
    HUGE,
    *(
        one
        for one in NONSENSE
        if isinstance(one, (type(None), bool, float, str, list, dict)) or (isinstance(one, int) and abs(one) < 10**1000)
    ),
)
"""Those that JSON has."""

WORDS = (
    "", " ", "-", "--", "-1", "0", "1", "2", "0.5", "1e3", "1e400", "1e-400", "nan", "inf", "-inf",
    "99999999999999999999", "9" * 5000, "0x10",
    "1_000", "\u0661\u0662", "True", "None", "null", "x", "x" * 300, "x" * 5000,
    "\u202e", "\udcff", "\t", "a\nb", "'", '"', ";", "$(x)", "{}", "[1]", "%s", "*", "?", "/", ".", "..", "~",
    "/dev/null", "/dev/zero", "/proc/self/mem", "/nowhere/x", "people.csv", "people.schema.toml", "release",
    "release/release.json", "interrupted", "replace", "add-remove", "add_remove", "query", "marginal",
    "marginals:2", "marginals:", "marginals:0", "marginals:3:2:1", "marginals:9", "marginals:2:-1",
    "marginals:99999999999999999999", "mwem", "MWEM", "dualquery", "=", "=1", "rounds=", "rounds=0",
    "rounds=-1", "rounds=1e300", "rounds=nan", "rounds=2", "rounds=99999999", "eta=inf", "eta=-1", "eta=nan",
    "eta=1e308", "alpha=0", "alpha=2", "past=maybe", "output=first", "repeat=1", "nonsense=1", "--force",
    "--json", "--help", "\x1b[31mred\x1b[0m",
)  # fmt: skip
"""Values of all kinds for options."""


def flip(content: bytes, chance: random.Random) -> bytes:
    """Damage as disks and copies make it: changed bytes, zeros, a missing or a foreign end."""
    damaged = bytearray(content)
    kind = chance.choice(["flip", "flip", "flip", "cut", "zeros", "tail"])
    at = chance.randrange(len(damaged))
    if kind == "flip":
        for _ in range(chance.choice([1, 1, 2, 8])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del damaged[at:]
    elif kind == "zeros":
        damaged[at : at + 512] = bytes(len(damaged[at : at + 512]))
    else:
        damaged += chance.randbytes(chance.randint(1, 600))
    return bytes(damaged)


def edit(value: Any, chance: random.Random) -> Any:
    """Plain data with one entry replaced by nonsense, taken out or added."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = chance.choice(keys)
        changed = value.copy()
        if chance.random() < 0.15:
            del changed[key]
        else:
            changed[key] = edit(value[key], chance)
        if isinstance(changed, dict) and chance.random() < 0.05:
            changed["more"] = 1
        return changed
    near = _near(value)
    return chance.choice([*PLAIN, *near * 10])


def to_json(value: Any) -> str:
    """JSON, with numbers of 5,000 digits in the places of :data:`HUGE`."""
    return json.dumps(value).replace(f'"{HUGE}"', "9" * 5000)


def _near(value: Any) -> list[Any]:
    """Other numbers that are close to a number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return []
    return [value + 1, -value, value + value // 2 if isinstance(value, int) else value * 1.5]


def command(arguments: list[str]) -> tuple[Any, str]:
    """The exit code of a command in this process, and what it wrote to stderr."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["pointillist", *arguments]
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    return code, err.getvalue()
