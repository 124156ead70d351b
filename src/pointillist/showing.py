"""How a run is shown to people: as bars in a terminal, as a small table in a notebook, as log lines elsewhere.

:func:`shown` chooses among them. Everything goes through :mod:`pointillist.reporting`: a run does not know who watches.
"""

from __future__ import annotations

import html
import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pointillist.checks import check
from pointillist.errors import brief
from pointillist.reporting import Reporter, heard, reporting_to

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

__all__ = ["Asked", "Bars", "Lines", "Notebook", "Several", "Track", "asked", "in_notebook", "shown", "watched"]

logger = logging.getLogger("pointillist")

LINE_SECONDS = 10.0
"""Seconds between two log lines of one phase, at least."""
CELL_SECONDS = 0.25
"""Seconds between two changes of what a notebook shows, at least."""
UNITS = {"measuring": "rounds"}
"""What the steps of a phase are called, if not steps."""


@dataclass
class Asked:
    """The options of the whole command line that say how much it shows.

    Attributes:
        quiet: results and errors only.
        verbose: log lines, even where there are bars.
    """

    quiet: bool = False
    verbose: bool = False


asked = Asked()


@dataclass
class Track:
    """What is known of a phase: steps, figures, and how fast it is.

    The time left follows from the pace since the first report, which leaves out what it takes to compile a program. It
    is an estimate: a fit may end early, or may have to be repeated.

    Attributes:
        name: the phase.
        done: the steps made.
        total: the number of steps, at most, if it is known.
        info: figures such as a loss.
        began: when the phase began, in seconds.
        first: when the first steps were reported, and their number.
        latest: when the last ones were reported.
    """

    name: str
    done: int = 0
    total: int | None = None
    info: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=lambda: time.monotonic())
    first: tuple[float, int] | None = None
    latest: float = 0.0

    def update(self, done: int, total: int | None, info: dict[str, float]) -> None:
        """What a report says."""
        self.latest = time.monotonic()
        if self.first is None or done < self.done:  # the steps of another round
            self.first = self.latest, done
        self.done, self.total, self.info = done, self.total if total is None else total, info

    @property
    def left(self) -> float | None:
        """Seconds until the last step, at the pace so far; None if nothing is known."""
        if self.first is None or self.total is None or self.done <= self.first[1]:
            return None
        pace = (self.latest - self.first[0]) / (self.done - self.first[1])
        return max(0.0, pace * (self.total - self.done) - (time.monotonic() - self.latest))

    @property
    def figures(self) -> str:
        """The figures in words, separated by commas: steps, budget, loss, time left."""
        parts = []
        if self.total is not None and self.first is not None:
            parts.append(f"{self.done:,} of {self.total:,} {UNITS.get(self.name, 'steps')}")
        for name, value in self.info.items():
            parts.append(f"{value:.0%} of the budget spent" if name == "spent" else f"{name} {_number(value)}")
        left = self.left
        if left is not None and self.done < (self.total or 0):
            parts.append(f"about {_clock(left)} left")
        return ", ".join(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.3g}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Watcher(Reporter, Protocol):
    """A reporter that is told when the run is over."""

    def close(self) -> None:
        """Nothing more comes."""
        ...


class Bars:
    """Bars in a terminal, one for each phase. They stay on the screen.

    Args:
        console: the terminal.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[track].figures}", markup=False),
        )
        self._bar = Progress(*columns, console=console, refresh_per_second=4)
        self._tasks: dict[str, tuple[TaskID, Track]] = {}
        self._running = ""

    def phase(self, name: str, total: int | None) -> None:
        """A new bar, or an earlier one goes on; the clocks of the others stand still."""
        self._bar.start()
        if self._running not in (name, ""):
            self._pause(self._running)
        self._running = name
        if name not in self._tasks:
            track = Track(name, total=total)
            self._tasks[name] = self._bar.add_task(name, total=total, track=track), track

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """The figures of the phase, next to its bar."""
        self.phase(name, total)
        task, track = self._tasks[name]
        track.update(done, total, info)
        self._bar.update(task, completed=done, total=track.total)

    def _pause(self, name: str) -> None:
        """A phase without a number of steps is over when another one begins."""
        task, track = self._tasks[name]
        if track.total is None:
            self._bar.update(task, total=1, completed=1)

    def close(self) -> None:
        """Leave the bars on the screen."""
        if self._running:
            self._pause(self._running)
        if self._bar.live.is_started:
            self._bar.stop()


class Lines:
    """Lines of the logger ``pointillist``: one when a phase begins, then one every few seconds.

    Args:
        seconds: between two lines of one phase, at least.
    """

    def __init__(self, seconds: float = LINE_SECONDS) -> None:
        self._seconds = seconds
        self._tracks: dict[str, Track] = {}
        self._next: dict[str, float] = {}
        self._waiting: dict[str, None] = {}

    def phase(self, name: str, total: int | None) -> None:
        """A line when a phase begins for the first time, after the last figures of the phases before it."""
        if name not in self._tracks:
            self._flush()
            self._tracks[name] = Track(name, total=total)
            self._next[name] = time.monotonic() + self._seconds
            logger.info("%s", name)

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """A line, unless the phase had one a moment ago."""
        self.phase(name, total)
        self._tracks[name].update(done, total, info)
        self._waiting[name] = None
        if time.monotonic() >= self._next[name]:
            self._say(name)

    def _say(self, name: str) -> None:
        self._waiting.pop(name, None)
        self._next[name] = time.monotonic() + self._seconds
        logger.info("%s: %s", name, self._tracks[name].figures)

    def _flush(self) -> None:
        for name in list(self._waiting):
            self._say(name)

    def close(self) -> None:
        """The last figures of every phase."""
        self._flush()


class Notebook:
    """A small table below the cell of a notebook, which is brought up to date in place.

    It needs neither widgets nor scripts: it is HTML with a plain text for those who do not show that.

    Args:
        display: IPython's function of this name.
    """

    def __init__(self, display: Callable[..., Any] | None = None) -> None:
        self._display = display
        self._handle: Any = None
        self._tracks: dict[str, Track] = {}
        self._ends: dict[str, float] = {}
        self._running = ""
        self._next = 0.0

    def phase(self, name: str, total: int | None) -> None:
        """A new line of the table, or an earlier one goes on."""
        new = name != self._running
        if new and self._running:
            self._ends[self._running] = time.monotonic()
        self._running = name
        self._ends.pop(name, None)
        self._tracks.setdefault(name, Track(name, total=total))
        self._show(always=new and name not in self._ends)

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """The figures of the phase in its line."""
        self.phase(name, total)
        self._tracks[name].update(done, total, info)
        self._show()

    def close(self) -> None:
        """The last figures stay."""
        if self._tracks:
            self._ends.setdefault(self._running, time.monotonic())
            self._running = ""
            self._show(always=True)

    def _show(self, always: bool = False) -> None:
        now = time.monotonic()
        if not always and now < self._next:
            return
        self._next = now + CELL_SECONDS
        content = {"text/plain": self.text(), "text/html": self.html()}
        if self._handle is not None:
            self._handle.update(content, raw=True)
            return
        if self._display is None:
            self._display = importlib.import_module("IPython.display").display
        self._handle = self._display(content, raw=True, display_id=True)

    def _seconds(self, track: Track) -> float:
        return self._ends.get(track.name, time.monotonic()) - track.began

    def text(self) -> str:
        """The table as lines of text."""
        return "\n".join(
            f"{track.name} {_clock(self._seconds(track))} {track.figures}".rstrip() for track in self._tracks.values()
        )

    def html(self) -> str:
        """The table as HTML."""
        rows = []
        for track in self._tracks.values():
            over = track.name != self._running
            value, most = (track.done, track.total) if track.total else (int(over), 1)
            state = f'value="{value}" ' if track.total or over else ""  # a bar without a value is one that moves
            cells = (
                html.escape(track.name),
                f'<progress {state}max="{most}"></progress>',
                _clock(self._seconds(track)),
                html.escape(track.figures),
            )
            rows.append("<tr>" + "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) + "</tr>")
        return f"<table>{''.join(rows)}</table>"


class Several:
    """Passes every report on to several watchers. One that fails is left alone from then on: a screen that is gone must
    not stop a run.

    Args:
        watchers: who gets the reports.
    """

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = list(watchers)

    def phase(self, name: str, total: int | None) -> None:
        """A phase begins or goes on."""
        self._tell(lambda watcher: watcher.phase(name, total))

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        """Steps are made."""
        self._tell(lambda watcher: watcher.step(name, done, total, info))

    def close(self) -> None:
        """Nothing more comes."""
        self._tell(lambda watcher: watcher.close())

    def _tell(self, call: Callable[[Watcher], None]) -> None:
        for watcher in list(self._watchers):
            try:
                call(watcher)
            except Exception:
                self._watchers.remove(watcher)


def in_notebook() -> bool:
    """Whether this is a cell of a notebook: IPython runs, with a kernel."""
    found = sys.modules.get("IPython")
    shell = None if found is None else found.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _watchers(progress: bool | None, console: Console | None, verbose: bool) -> list[Watcher]:
    """Who watches a run: see :func:`shown`."""
    if progress is False:
        return []
    lines: list[Watcher] = [Lines()] if logger.isEnabledFor(logging.INFO) else []
    if in_notebook():
        return [Notebook()] + (lines if verbose else [])
    if progress is None:
        return lines
    if console is None:
        from rich.console import Console

        console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        return [Bars(console)] + (lines if verbose else [])
    return lines


@contextmanager
def shown(progress: bool | None = None, console: Console | None = None, verbose: bool = False) -> Iterator[None]:
    """Show what the runs inside are doing.

    Args:
        progress: True shows bars in a terminal, a table in a notebook, and log lines elsewhere. None, the default,
            does the same but leaves terminals alone: there it only logs. False shows nothing and logs nothing.
        console: the terminal; by default that of the standard error.
        verbose: whether log lines are written where bars or a table are shown, too.
    """
    watchers = _watchers(progress, console, verbose)
    if heard() or not watchers:  # somebody watches already, or nobody wants to
        yield
        return
    watcher = Several(*watchers)
    try:
        with reporting_to(watcher):
            yield
    finally:
        watcher.close()


Call = Callable[[int, int, float], None]


@contextmanager
def watched(progress: bool | Call | None) -> Iterator[Call]:
    """What a user gives as ``progress``: shows the runs inside, and gives a function to be called after every round.

    Args:
        progress: as in :func:`shown`; or a function, which is called and nothing else is shown.
    """
    rule, hint = "must be True, False, None or a function", "give True to see bars"
    check(progress is None or isinstance(progress, bool) or callable(progress), "progress", brief(progress), rule, hint)
    own = progress if callable(progress) else None
    with shown(False if own is not None else progress):  # type: ignore[arg-type]
        yield own or (lambda done, rounds, spent: None)
