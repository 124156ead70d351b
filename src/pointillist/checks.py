"""Rules that many parameters share, each under its name. A check raises :class:`~pointillist.errors.InputError` in one
sentence (parameter, rule, value, next step), or returns the value with the type that it was shown to have."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pointillist.errors import InputError, brief, nearest

__all__ = [
    "at_least",
    "between",
    "check",
    "flag",
    "not_negative",
    "one_of",
    "path_of",
    "positive",
    "present",
    "real",
    "share",
    "whole",
]

T = TypeVar("T")
Number = TypeVar("Number", int, float)


def check(condition: bool, parameter: str, value: Any, rule: str, hint: str) -> None:
    """Refuse ``value`` unless ``condition`` holds: for rules that no other function here has."""
    if not condition:
        raise InputError(parameter, value, rule, hint)


def present(parameter: str, value: T | None, rule: str, hint: str) -> T:
    """A value that is there."""
    if value is None:
        raise InputError(parameter, value, rule, hint)
    return value


def whole(parameter: str, value: Any) -> int:
    """A whole number, of Python or NumPy; True and 3.0 are none."""
    try:
        if not isinstance(value, (bool, np.bool_)):
            return operator.index(value)
    except TypeError:
        pass  # refused below, with every other value that is no whole number
    raise InputError(parameter, brief(value), "must be a whole number", "write it without a decimal point")


def real(parameter: str, value: Any, example: Any) -> float:
    """A number, of Python or NumPy; True and "1" are none."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return float(value)
        except (OverflowError, ValueError):
            return math.inf
    raise InputError(parameter, brief(value), "must be a number", f"give for example {example}")


def flag(parameter: str, value: Any) -> bool:
    """True or false, of Python or NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(parameter, brief(value), "must be True or False", "give one of them")
    return bool(value)


def path_of(parameter: str, value: Any) -> Path:
    """A path, or a text that can be one."""
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise InputError(parameter, brief(value), "must be a path", "give a text or a pathlib.Path")
    return value if isinstance(value, Path) else Path(value)


def at_least(parameter: str, value: Number, least: Number, example: Any = None) -> Number:
    """A number that is not below ``least``."""
    hint = f"give for example {least if example is None else example}"
    check(value >= least, parameter, value, f"must be at least {least}", hint)
    return value


def between(parameter: str, value: Number, low: Number, high: Number, hint: str) -> Number:
    """A number in ``low .. high``, both included."""
    check(low <= value <= high, parameter, value, f"must be in {low:,} .. {high:,}", hint)
    return value


def positive(parameter: str, value: float, example: Any = 1) -> float:
    """A finite number above 0."""
    rule = "must be a finite number above 0"
    check(0 < value < math.inf, parameter, value, rule, f"give for example {example}")
    return value


def not_negative(parameter: str, value: float, hint: str = "give 0") -> float:
    """A finite number, 0 or more."""
    check(0 <= value < math.inf, parameter, value, "must be a finite number, 0 or more", hint)
    return value


def share(parameter: str, value: float, example: Any = 0.5, zero: bool = False) -> float:
    """A number above 0 (or, with ``zero``, at least 0) and below 1."""
    rule = "must be at least 0 and below 1" if zero else "must be above 0 and below 1"
    check((value >= 0 if zero else value > 0) and value < 1, parameter, value, rule, f"give for example {example}")
    return value


def one_of(parameter: str, value: str, known: Iterable[str], rule: str | None = None) -> str:
    """A known word; the hint names the one that is closest to what was given."""
    known = list(known)
    if not isinstance(value, str) or value not in known:
        rule = f"must be one of {', '.join(known)}" if rule is None else rule
        raise InputError(parameter, brief(value), rule, nearest(value if isinstance(value, str) else "", known))
    return value
