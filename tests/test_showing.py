"""How runs are shown: bars in a terminal, a table in a notebook, log lines elsewhere; options of the whole command."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbclient
import nbformat
import pytest
from rich.console import Console
from tests.command import Run

import pointillist
from pointillist import InputError, load, showing, synthesize
from pointillist.reporting import heard, phase, reporting_to, step
from pointillist.showing import Bars, Lines, Notebook, Several, Track, in_notebook, shown, watched

SMALL: dict[str, Any] = {"epsilon": 1.0, "method": "mwem", "workload": "marginals:2", "settings": {"rounds": 2}}


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(showing, "time", found)
    return found


@pytest.fixture
def quiet_logger() -> Iterator[None]:
    """The logger as a program without any set-up has it."""
    before = showing.logger.level
    showing.logger.setLevel(logging.WARNING)
    yield
    showing.logger.setLevel(before)


# --- the figures of a phase


def test_the_time_left_follows_from_the_pace_after_the_first_report(clock: Clock) -> None:
    track = Track("fitting")
    clock.now += 60  # it compiles
    track.update(1, 101, {"loss": 0.12345})
    assert track.left is None
    assert track.figures == "1 of 101 steps, loss 0.123"
    clock.now += 10
    track.update(51, 101, {"loss": 2.0, "fit": 1234.0})
    assert track.left == pytest.approx(10.0)
    clock.now += 4
    assert track.left == pytest.approx(6.0)
    assert track.figures == "51 of 101 steps, loss 2, fit 1,234, about 0:00:06 left"
    clock.now += 4000
    assert track.left == 0.0
    track.update(101, 101, {})
    assert track.figures == "101 of 101 steps"


def test_another_round_has_a_pace_of_its_own(clock: Clock) -> None:
    track = Track("fitting")
    track.update(1, 100, {})
    clock.now += 100
    track.update(100, 100, {})
    clock.now += 1
    track.update(1, 100, {})
    assert track.left is None
    clock.now += 3 * 3600
    track.update(51, 100, {})
    assert track.figures == "51 of 100 steps, about 2:56:24 left"


def test_the_budget_is_shown_in_words() -> None:
    track = Track("measuring")
    track.update(3, 8, {"spent": 0.375})
    assert track.figures == "3 of 8 rounds, 38% of the budget spent"


# --- a terminal


def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=150, color_system=None)


def lines_of(console: Console) -> list[str]:
    text = console.file.getvalue()  # type: ignore[attr-defined]
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return [" ".join(line.split()) for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_shows_one_bar_for_each_phase() -> None:
    console = screen()
    bars = Bars(console)
    bars.phase("counting", None)
    bars.step("measuring", 1, 2, {"spent": 0.5})
    bars.step("fitting", 20, 40, {"loss": 1.5})
    bars.step("measuring", 2, 2, {"spent": 1.0})
    bars.step("fitting", 40, 40, {"loss": 1.25})
    bars.close()
    *_, counting, measuring, fitting = lines_of(console)
    assert re.fullmatch(r"counting ━+ 0:00:00", counting)
    assert re.fullmatch(r"measuring ━+ 0:00:0\d 2 of 2 rounds, 100% of the budget spent", measuring)
    assert re.fullmatch(r"fitting ━+ 0:00:0\d 40 of 40 steps, loss 1.25", fitting)


def test_without_a_phase_nothing_is_shown() -> None:
    console = screen()
    Bars(console).close()
    assert lines_of(console) == []


# --- log lines


def test_log_lines_come_seldom(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pointillist")
    lines = Lines(seconds=10)
    lines.phase("counting", None)
    lines.step("measuring", 1, 1, {"spent": 1.0})
    for done in range(1, 1001):
        clock.now += 0.025
        lines.step("fitting", done, 1000, {"loss": 3.0})
    lines.phase("drawing", None)
    lines.close()
    assert caplog.messages == [
        "counting",
        "measuring",
        "measuring: 1 of 1 rounds, 100% of the budget spent",
        "fitting",
        "fitting: 402 of 1,000 steps, loss 3, about 0:00:15 left",
        "fitting: 803 of 1,000 steps, loss 3, about 0:00:05 left",
        "fitting: 1,000 of 1,000 steps, loss 3",
        "drawing",
    ]
    assert {record.name for record in caplog.records} == {"pointillist"}


def test_a_library_logs_and_shows_nothing_by_default(
    caplog: pytest.LogCaptureFixture, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("pointillist"), "handlers", [])  # those of commands in other tests
    caplog.set_level(logging.INFO, "pointillist")
    synthesize(load("demo").project(["district", "age"]), **SMALL | {"settings": {"rounds": 1}})
    assert caplog.messages[:3] == ["counting", "measuring", "measuring: 1 of 1 rounds, 100% of the budget spent"]
    assert caplog.messages[-1] == "drawing"
    caplog.clear()
    synthesize(load("demo").project(["district", "age"]), **SMALL | {"settings": {"rounds": 1}}, progress=False)
    assert caplog.messages == []
    assert capsys.readouterr() == ("", "")


# --- a notebook


class Cell:
    """Stands in for IPython's display."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, content: dict[str, str], raw: bool, display_id: bool) -> Cell:
        assert raw
        assert display_id
        self.shown.append(content)
        return self

    def update(self, content: dict[str, str], raw: bool) -> None:
        self.shown.append(content)


def test_a_notebook_shows_a_table_that_changes_in_place(clock: Clock) -> None:
    cell = Cell()
    notebook = Notebook(cell)
    notebook.phase("counting", None)
    assert cell.shown[-1]["text/plain"] == "counting 0:00:00"
    assert '<progress max="1"></progress>' in cell.shown[-1]["text/html"]
    clock.now += 2
    notebook.step("fitting", 1, 50, {"<b>": 1.0})
    for done in range(2, 50):
        clock.now += 0.1
        notebook.step("fitting", done, 50, {"<b>": 1.0})
    notebook.close()
    assert 10 < len(cell.shown) < 25
    assert cell.shown[-1]["text/plain"].splitlines() == [
        "counting 0:00:02",
        "fitting 0:00:05 49 of 50 steps, <b> 1, about 0:00:00 left",
    ]
    page = cell.shown[-1]["text/html"]
    assert '<progress value="1" max="1"></progress>' in page
    assert '<progress value="49" max="50"></progress>' in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


@pytest.mark.filterwarnings("ignore")  # of the packages that run notebooks
def test_a_real_notebook_shows_progress_by_default() -> None:
    code = (
        "from pointillist import load, synthesize\n"
        "table = load('demo').project(['district', 'age', 'commute'])\n"
        f"made = synthesize(table, **{SMALL!r})\n"
        f"made = synthesize(table, progress=False, **{SMALL!r})\n"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (output,) = book.cells[0].outputs  # one, brought up to date in place; the second run shows none
    assert output.output_type == "display_data"
    lines = output.data["text/plain"].splitlines()
    assert [line.split()[0] for line in lines] == ["counting", "measuring", "fitting", "drawing"]
    assert "2 of 2 rounds, 100% of the budget spent" in lines[1]
    assert output.data["text/html"].count("<progress value=") == 4


# --- who is shown what


def notebook(monkeypatch: pytest.MonkeyPatch, shell: Any) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]


def test_a_notebook_is_an_ipython_with_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    notebook(monkeypatch, None)
    assert not in_notebook()
    notebook(monkeypatch, SimpleNamespace())  # IPython in a terminal
    assert not in_notebook()
    notebook(monkeypatch, SimpleNamespace(kernel=object()))
    assert in_notebook()


@pytest.mark.usefixtures("quiet_logger")
def test_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds(progress: bool | None, console: Console | None = None, verbose: bool = False) -> list[type]:
        return [type(watcher) for watcher in showing._watchers(progress, console, verbose)]

    plain = Console(file=io.StringIO(), force_terminal=False)
    assert kinds(None) == kinds(True, plain) == kinds(False, screen()) == []
    assert kinds(True, screen()) == [Bars]
    showing.logger.setLevel(logging.INFO)
    assert kinds(None, screen()) == kinds(True, plain) == [Lines]
    assert kinds(True, screen()) == [Bars]
    assert kinds(True, screen(), verbose=True) == [Bars, Lines]
    notebook(monkeypatch, SimpleNamespace(kernel=object()))
    assert kinds(None) == kinds(True) == [Notebook]
    assert kinds(True, verbose=True) == [Notebook, Lines]
    assert kinds(False) == []


def test_python_users_may_ask_for_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    console = screen()
    monkeypatch.setattr("rich.console.Console", lambda **options: console)
    synthesize(load("demo").project(["district", "age"]), **SMALL | {"settings": {"rounds": 1}}, progress=True)
    found = {line.split()[0] for line in lines_of(console)}
    assert {"counting", "measuring", "fitting", "drawing"} == found


def test_somebody_who_watches_already_is_not_disturbed() -> None:
    class Mine:
        def phase(self, name: str, total: int | None) -> None:
            seen.append(name)

        def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
            seen.append(name)

    seen: list[str] = []
    with reporting_to(Mine()), shown(True, screen()):
        phase("counting")
    assert seen == ["counting"]
    assert not heard()


def test_a_screen_that_is_gone_does_not_stop_a_run() -> None:
    class Gone:
        def phase(self, name: str, total: int | None) -> None:
            raise BrokenPipeError

        step = close = phase  # type: ignore[assignment]

    cell = Cell()
    several = Several(Gone(), Notebook(cell))  # type: ignore[arg-type]
    with reporting_to(several):
        phase("counting")
        step("fitting", 1, 2)
    several.close()
    assert "fitting" in cell.shown[-1]["text/plain"]


def test_progress_is_a_choice_or_a_function() -> None:
    calls: list[tuple[int, int, float]] = []
    with watched(lambda *call: calls.append(call)) as call:
        call(1, 2, 0.5)
        assert not heard()
    assert calls == [(1, 2, 0.5)]
    with pytest.raises(InputError, match=r"progress must be True, False, None or a function, got 'yes'; give True"):
        synthesize(load("demo").project(["district", "age"]), **SMALL | {"settings": {"rounds": 1}}, progress="yes")


# --- the command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ("synth", "demo", "--epsilon", "1", "--method", "mwem", "--workload", "marginals:1", "--rounds", "2")


def test_the_version(run: Run) -> None:
    assert run("--version") == run("version") == (0, f"{pointillist.__version__}\n", "")


def test_without_a_terminal_there_are_log_lines(run: Run, home: Path) -> None:
    result = run(*COMMAND)
    assert result.code == 0
    assert "mwem: 10 marginals" in result.err
    found = [line for line in ("counting", "measuring", "fitting", "drawing", "writing") if line in result.err]
    assert found == ["counting", "measuring", "fitting", "drawing", "writing"]
    assert re.search(r"measuring: 2 of 2 rounds, 100% of the budget\s+spent", result.err)
    assert re.search(r"peak memory about [\d.]+ [MG]B\n", result.err)
    assert re.search(r"^peak memory of this process: [\d.]+ [MG]B\n$", result.err.splitlines(keepends=True)[-1])
    assert not [path for path in (home / "release").iterdir() if b"peak" in path.read_bytes()]


def test_quiet_shows_results_and_errors_only(run: Run, home: Path) -> None:
    loud = run(*COMMAND, "--out", "loud", "--insecure-noise-seed", "1")
    quiet = run("-q", *COMMAND, "--out", "quiet", "--insecure-noise-seed", "1")
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out == loud.out.replace("/loud:", "/quiet:")
    refused = run("--quiet", *COMMAND, "--out", "quiet")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: out must ")


def test_quiet_and_verbose_exclude_each_other(run: Run, home: Path) -> None:
    result = run("-q", "-v", *COMMAND)
    assert result == (2, "", "error: quiet must not be given with --verbose, got True; leave one of them out.\n")
    assert list(home.iterdir()) == []


def in_terminal(*arguments: str) -> tuple[int, list[str]]:
    """The command in a terminal of its own: the exit code, and the lines that it wrote."""
    code = "from pointillist.cli import main; main()"
    end, other = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=other,
        stdout=other,
        stderr=other,
        env=os.environ | {"COLUMNS": "150", "TERM": "xterm"},
    )
    os.close(other)
    found = b""
    with contextlib.suppress(OSError):  # the terminal is closed
        while part := os.read(end, 1 << 16):
            found += part
    os.close(end)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())
    lines = [" ".join(line.split()) for line in re.split(r"[\r\n]+", plain) if line.strip()]
    return child.wait(), lines


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("verbose", [False, True])
def test_a_terminal_shows_bars_and_log_lines_only_if_asked(verbose: bool) -> None:
    code, lines = in_terminal(*(["-v"] if verbose else []), *COMMAND)
    assert code == 0
    last = max(n for n, line in enumerate(lines) if line.startswith("writing ━"))
    words = [line.split()[0] for line in lines[last - 4 : last + 1]]
    assert words == ["counting", "measuring", "fitting", "drawing", "writing"]
    assert any(re.match(r"measuring ━+ 0:00:\d\d 2 of 2 rounds, 100% of the budget spent", line) for line in lines)
    logged = [line for line in lines if re.match(r"\[[\d/]+ [\d:]+\] counting$", line)]
    assert len(logged) == verbose
