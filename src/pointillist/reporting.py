"""What a run is doing: phases and steps, for whoever shows them.

A run reports to the current :class:`Reporter`, if there is one. Reports hold public facts and diagnostics of the
post-processing only; nothing that depends on private data other than through the transcript.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["Reporter", "phase", "reporting_to", "step"]


class Reporter(Protocol):
    """Shows what a run is doing."""

    def phase(self, name: str, total: int | None) -> None:
        """A new phase begins, with ``total`` steps if their number is known."""
        ...

    def step(self, name: str, done: int, info: dict[str, float]) -> None:
        """``done`` steps of a phase are made; ``info`` has figures such as the budget spent or a loss."""
        ...


_current: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def reporting_to(reporter: Reporter) -> Iterator[None]:
    """Send the reports of the runs inside to ``reporter``."""
    token = _current.set(reporter)
    try:
        yield
    finally:
        _current.reset(token)


def phase(name: str, total: int | None = None) -> None:
    """Report that a phase begins."""
    reporter = _current.get()
    if reporter is not None:
        reporter.phase(name, total)


def step(name: str, done: int, **info: float) -> None:
    """Report that ``done`` steps of a phase are made."""
    reporter = _current.get()
    if reporter is not None:
        reporter.step(name, done, info)
