"""How a check ends: with a reason, or by raising that it failed or was left out."""

from __future__ import annotations

from pointillist.errors import PointillistError

__all__ = ["Failed", "Skipped", "one_line", "require"]

LONGEST = 300
"""Reasons are one line of at most this many characters, whatever a file says."""


class Failed(PointillistError):
    """A check that found something wrong; the message says what."""


class Skipped(PointillistError):
    """A check that does not apply; the message says why."""


def require(condition: bool, reason: str) -> None:
    """Fail with ``reason`` unless ``condition`` holds."""
    if not condition:
        raise Failed(reason)


def one_line(text: object) -> str:
    """A text of unknown origin as one printable line of bounded length."""
    words = " ".join(str(text)[: 4 * LONGEST].split())
    printable = "".join(letter if letter.isprintable() else "?" for letter in words)
    return printable if len(printable) <= LONGEST else printable[: LONGEST - 3] + "..."
