"""Errors that say what is wrong in one sentence: parameter, rule, value, next step."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from typing import Any

__all__ = [
    "BudgetError",
    "InputError",
    "PointillistError",
    "RunStopped",
    "Shown",
    "brief",
    "in_short",
    "is_near",
    "nearest",
    "printable",
]


LONGEST = 300
"""Letters of a value that a message shows, at most."""


class PointillistError(Exception):
    """Base of every error that this package raises deliberately. Its message is one printable line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """A text on one line, with escapes for letters that a terminal would act on: names of files and columns may hold
    line breaks, colours or other commands.

    Args:
        text: any text.
    """
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


class InputError(PointillistError, ValueError):
    """A parameter, file or table that breaks a rule.

    The message reads ``<parameter> <rule>, got <value>; <hint>.``
    """

    def __init__(self, parameter: str, value: Any, rule: str, hint: str) -> None:
        self.parameter = parameter
        self.value = value
        self.rule = rule
        self.hint = hint
        shown = value if isinstance(value, Shown) else _repr(value)
        if len(shown) > LONGEST:
            shown = f"{shown[:LONGEST]}..."
        super().__init__(f"{parameter} {rule}, got {' '.join(shown.split())}; {hint}.")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, Any, str, str]]:
        """Errors pass between processes by their parts: their message alone cannot make them again."""
        return type(self), (self.parameter, self.value, self.rule, self.hint)


class Shown(str):
    """A value that is shown without quotation marks."""


def brief(value: Any) -> Any:
    """A value as messages show it: plain ones as they are, of all others only the type, since they may hold data."""
    if value is None or isinstance(value, (str, numbers.Real)):
        return value
    return Shown(f"an object of type {type(value).__name__}")


def _repr(value: Any) -> str:
    """``repr``, or the type where that fails: Python refuses to print integers of more than 4,300 digits."""
    try:
        return repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"


class BudgetError(PointillistError):
    """A charge, or several together, that would overdraw the privacy budget; the ledger is unchanged.

    Args:
        asked: the rho of all that was to be charged.
        left: the rho that is left.
        label: what it was for.
        of: what there is too little of: rho, or the part of delta for values that only one unit has.
    """

    def __init__(self, asked: float, left: float, label: str, of: str = "rho") -> None:
        self.asked = asked
        self.left = left
        super().__init__(
            f"{label} must cost at most the {of} that is left ({left:.6g}), got {asked:.6g}; "
            f"the ledger is unchanged: use fewer rounds or a larger {'epsilon' if of == 'rho' else of}."
        )


class RunStopped(PointillistError):
    """A run that stopped after budget was spent.

    ``log`` and ``ledger`` hold what it learned and spent; ``names`` are those of the attributes. ``before`` is the log
    of the stage that merged fine columns, and ``discovered`` the values that were discovered, if there were any.
    """

    def __init__(
        self,
        reason: str,
        log: Any,
        ledger: Any = None,
        noise: str = "",
        names: tuple[str, ...] = (),
        before: Any = None,
        discovered: Any = None,
    ) -> None:
        self.reason = reason
        self.log = log
        self.ledger = ledger
        self.noise = noise
        self.names = names
        self.before = before
        self.discovered = discovered
        spent = ""
        if ledger is not None:
            spent = f" (rho = {ledger.spent:.6g} of {ledger.limit:.6g} is spent; a new run spends it again)"
        super().__init__(f"{reason}{spent}")


def in_short(error: BaseException) -> str:
    """The kind of an error of another library and the beginning of its text, which might quote data, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"


def is_near(word: str, known: Iterable[str]) -> bool:
    """Whether a known word is this one or close to it."""
    return bool(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6))


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to ``word``, or lists them all."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}"
    return f"known are {', '.join(known)}"
