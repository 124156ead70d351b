"""What a run is doing: phases and steps, for whoever shows them.

A run reports to the current :class:`Reporter`, if there is one. Reports hold public facts and diagnostics of the
post-processing only; nothing that depends on private data other than through the transcript.

The phases of a run, in their order, are counting, measuring, choosing, fitting, drawing and writing; a method that
starts from a public table has pretraining before them. Rounds go through some of them again and again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["Reporter", "Steps", "Tally", "heard", "phase", "reporting_to", "step", "steps_of"]

EVERY = 0.1
"""Seconds between two reports of steps, at least: what steps report costs nothing then."""


class Reporter(Protocol):
    """Shows what a run is doing."""

    def phase(self, name: str, total: int | None) -> None:
        """A phase begins or goes on, with ``total`` steps if their number is known."""
        ...

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """``done`` steps of a phase are made, of ``total`` at most; ``info`` has figures such as the budget spent or a
        loss."""
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


def heard() -> bool:
    """Whether somebody gets the reports."""
    return _current.get() is not None


def phase(name: str, total: int | None = None) -> None:
    """Report that a phase begins or goes on."""
    reporter = _current.get()
    if reporter is not None:
        reporter.phase(name, total)


def step(name: str, done: int, total: int | None = None, **info: float) -> None:
    """Report that ``done`` steps of a phase are made, of ``total`` at most."""
    reporter = _current.get()
    if reporter is not None:
        reporter.step(name, done, total, info)


class Steps:
    """The steps of a phase that are made in several parts, such as the descents of several fits.

    Args:
        name: the phase.
        expected: the number of steps in all, as far as it is known; it grows where a part takes more.
        info: figures that go with every report.
    """

    def __init__(self, name: str, expected: int = 0, **info: float) -> None:
        self._name = name
        self._expected = expected
        self._before = 0
        self._next = 0.0
        self.info: dict[str, float] = info

    def expect(self, left: int) -> None:
        """The number of steps that are left, where it turned out to be another one."""
        self._expected = self._before + left

    def made(self, taken: int, most: int, info: dict[str, float], last: bool) -> None:
        """Report ``taken`` of the ``most`` steps of the present part, but not too often."""
        now = time.monotonic()
        if now >= self._next or last:
            self._next = now + EVERY
            total = max(self._expected, self._before + most)
            if last:  # what it did not take is not to be made any more
                total = max(self._before + taken, self._expected - (most - taken))
            step(self._name, self._before + taken, total, **self.info, **info)
        if last:
            self._expected = max(0, self._expected - (most - taken))
            self._before += taken


_steps: ContextVar[Steps | None] = ContextVar("steps", default=None)


@contextmanager
def steps_of(name: str, expected: int = 0, **info: float) -> Iterator[Steps]:
    """The steps that are made inside are those of this phase, which is reported with the first of them."""
    made = Steps(name, expected, **info)
    token = _steps.set(made)
    try:
        yield made
    finally:
        _steps.reset(token)


class Tally:
    """Counts the steps of one part of a phase.

    Attributes:
        heard: whether somebody gets the reports: else there is no need to stop for them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._steps = _steps.get() if heard() else None
        self.heard = self._steps is not None

    def made(self, taken: int, **info: float) -> None:
        """``taken`` steps are made so far; this may be called as often as one likes."""
        if self._steps is not None:
            self._steps.made(taken, self._most, info, last=False)

    def end(self, taken: int, **info: float) -> None:
        """No more steps are made than ``taken``."""
        if self._steps is not None:
            self._steps.made(taken, self._most, info, last=True)
