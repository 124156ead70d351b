"""Runs that are hit at random points lose nothing and spend nothing twice: a fast part here, the long one under slow.

The harness itself is tested as well: each kind of harm, done by hand, must be found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults.campaigns import FAULTS, faults, fuzz, kills
from tests.faults.cases import Case, Figures, Lab, case_of, same_release
from tests.faults.configs import Config
from tests.faults.fuzzing import KINDS, WEIGHTS
from tests.faults.processes import Ended
from tests.faults.recording import FIGURES, PAGE, filled

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched as on Linux")


@pytest.fixture(scope="module")
def everything() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture
def lab(everything: Lab) -> Lab:
    """The laboratory with new figures."""
    everything.figures = Figures()
    return everything


def test_killed_runs(lab: Lab) -> None:
    kills(lab, 12, seed=0)
    assert lab.figures.violations == []
    assert lab.figures.counts["kills"] >= 12  # the last run may be hit several times
    assert lab.figures.counts["draws"] >= lab.figures.counts["charges"] > 100


def test_every_kind_of_fault(lab: Lab) -> None:
    faults(lab, len(FAULTS), seed=0)
    assert lab.figures.violations == []
    assert lab.figures.counts["writers at the same moment"] > lab.figures.counts["writers that won"] == 1


def test_fuzzed_inputs(lab: Lab) -> None:
    fuzz(lab, 6, seed=0)
    assert lab.figures.violations == []
    assert lab.figures.counts["fuzzed inputs"] == 6 * sum(WEIGHTS.get(kind, 1) for kind in KINDS)


@pytest.mark.slow
def test_a_thousand_kills(lab: Lab) -> None:
    kills(lab, 1000, seed=2)
    assert lab.figures.violations == []


@pytest.mark.slow
def test_many_faults(lab: Lab) -> None:
    faults(lab, 20 * len(FAULTS), seed=2)
    assert lab.figures.violations == []


@pytest.mark.slow
def test_many_fuzzed_inputs(lab: Lab) -> None:
    fuzz(lab, 250, seed=2)
    assert lab.figures.violations == []


def test_a_whole_process(lab: Lab, tmp_path: Path) -> None:
    """With its imports and its interpreter: killed when some charges are on disk, then resumed."""
    config = Config(rounds=40)
    config.write_data(tmp_path)
    script = [sys.executable, "-c", "from pointillist.cli import main; main()"]
    out = tmp_path / "out"
    process = subprocess.Popen([*script, *config.command(tmp_path, out)], stderr=subprocess.DEVNULL)
    while process.poll() is None and not ((out / "journal").is_file() and (out / "journal").stat().st_size > 20_000):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = (out / "journal").read_bytes()
    assert before.count(b'{"kind": "charge"') > 5
    done = subprocess.run([*script, "resume", str(out)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("wrote ")) == (0, 1)
    assert same_release(out, lab.reference(config).folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_fit_with_jax_is_left_in_order(name: str, tmp_path: Path) -> None:
    """Stopped at some moments, the fit of the default method among them: one sentence, no crash, and it resumes."""
    script = [sys.executable, "-c", "from pointillist.cli import main; main()"]
    number, stopped = getattr(signal, f"SIG{name}"), 0
    for step in range(6):
        out = tmp_path / f"out{step}"
        process = subprocess.Popen([*script, "demo", "--out", str(out)], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not (out / "journal").is_file():
            time.sleep(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(step * 0.7)
        process.send_signal(number)
        _, err = process.communicate()
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        assert (process.returncode, len(lines)) in ((0, 0), (128 + number, 1)), err[-2000:]
        assert "Traceback" not in err
        stopped += process.returncode != 0
    assert stopped > 0


# --- the harness finds what it is there to find


def hurt(case: Case, harm: Callable[[Case], None]) -> list[str]:
    """A run that is killed in the middle, and the violations after some harm was done."""
    case.step({"at": case.reference.operations // 2, "do": "KILL"})
    assert case.figures.violations == []
    assert len(case.state.charges) > 3
    before = case.state
    harm(case)
    case.look(before, None, 0)
    return case.figures.violations


def forget(case: Case) -> None:
    (case.out / "journal").unlink()


def draw_again(case: Case) -> None:
    """The last result is taken out of the journal: it would be drawn a second time."""
    path = case.out / "journal"
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b'{"kind": "result"') - 9])


def charge_twice(case: Case) -> None:
    """One more charge would be open; another one is none of the run's."""
    path = case.out / "journal"
    content = path.read_bytes()
    first = content.index(b'{"kind": "charge"') - 9
    path.write_bytes(content + 2 * content[first : content.index(b"\n", first) + 1])


def delete_a_neighbour(case: Case) -> None:
    (case.work / "precious.txt").unlink()


def change_the_data(case: Case) -> None:
    (case.data / "people.csv").write_text("town\n")


def write_half_a_release(case: Case) -> None:
    (case.out / "release.json").write_bytes((case.reference.folder / "release.json").read_bytes())


HARM = {
    forget: "lost ledgers",
    draw_again: "lost ledgers",
    charge_twice: "double spends",
    delete_a_neighbour: "changed files",
    change_the_data: "changed files",
    write_half_a_release: "half releases",
}


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_harm_is_found(harm: Callable[[Case], None], lab: Lab) -> None:
    with case_of(lab, Config(), "harm") as case:
        found = hurt(case, harm)
    assert found
    assert all(text.startswith(f"{HARM[harm]}: harm: ") for text in found[:1])


def test_a_draw_without_a_charge_is_found(lab: Lab) -> None:
    with case_of(lab, Config(), "harm") as case:
        case.look(case.state, None, 1)
    assert lab.figures.violations == ["lost ledgers: harm: 0 + 1 draws under 0 charges on disk"]


def test_another_release_and_leftovers_are_found(lab: Lab) -> None:
    with case_of(lab, Config(), "harm") as case:
        command = case.config.command(case.data, case.out, noise=8)
        assert case.start(command=command).end().code == 0
        (case.work / ".pointillist-left").mkdir()
        case.look(case.state, None, 0)
        case.finish()
    assert lab.figures.violations == [
        "double spends: harm: another release than without a fault",
        "leftovers: harm: ['.pointillist-left']",
    ]


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Ended(1, "", "Traceback (most recent call last):\n"), "bad messages"),
        (Ended(2, "", "error: one\nerror: two\n"), "bad messages"),
        (Ended(2, "", ""), "bad messages"),
        (Ended(143, "", "error: one\nmore\n"), "bad messages"),
        (Ended(-11, "", ""), "bad messages"),
        (Ended(0, "", "error: but it went well\n"), "bad messages"),
        (Ended(-9, "", "", hung=True), "hangs"),
    ],
)
def test_wrong_ends_are_found(ended: Ended, kind: str, lab: Lab) -> None:
    with case_of(lab, Config(), "harm") as case:
        case.look(case.state, ended, 0)
    assert [text.partition(":")[0] for text in lab.figures.violations] == [kind]


def test_the_page_shows_the_recorded_figures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert FIGURES.is_file()
    assert filled(text) == text
