"""What runs report: phases in order, steps, figures; and that it changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pointillist import Release, Table, load, prepare, reporting
from pointillist.algorithms import METHODS, Public
from pointillist.reporting import Tally, reporting_to, steps_of
from pointillist.updates import descent

SETTINGS: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 3},
    "pep": {"rounds": 3},
    "fem": {"rounds": 2, "samples": 3},
    "dualquery": {"rounds": 2, "samples": 3},
    "rap": {"rows": 20, "t_max": 30, "rounds": 2, "picks": 1},
    "rap_softmax": {"rows": 20, "t_max": 30, "rounds": 2, "picks": 1},
    "auto": {"rows": 20, "t_max": 30},
    "gsd": {"rounds": 2, "picks": 1, "records": 20, "generations": 30},
    "gem": {"rounds": 2, "batch": 20, "inputs": 8, "hidden": "16", "t_max": 30},
    "gem_pub": {"rounds": 2, "batch": 20, "inputs": 8, "hidden": "16", "t_max": 30, "pretrain_steps": 40},
}


class Recorded:
    """Keeps all reports."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps: list[tuple[str, int, int | None, dict[str, float]]] = []

    def phase(self, name: str, total: int | None) -> None:
        self.phases.append(name)

    def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
        self.phases.append(name)
        self.steps.append((name, done, total, info))

    def of(self, name: str) -> list[tuple[int, int | None, dict[str, float]]]:
        return [(done, total, info) for found, done, total, info in self.steps if found == name]


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is reported, and descents come back after each."""
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    monkeypatch.setattr(descent, "PART_SECONDS", 0.0)


@pytest.fixture(scope="module")
def town() -> Table:
    return load("demo").project(["district", "age", "commute"])


def make(town: Table, method: str, group: str | None = None) -> Release:
    public = Table(town.schema, tuple(codes[::7] for codes in town.codes))
    options: dict[str, Any] = {"public": public} if METHODS[method].public is Public.NEEDED else {}
    job = prepare(
        town, epsilon=1.0, method=method, workload="marginals:2", group=group, rows=50, settings=SETTINGS[method],
        insecure_noise_seed=3, **options,
    )  # fmt: skip
    return job.run(progress=False)


@pytest.mark.parametrize("method", sorted(SETTINGS))
@pytest.mark.usefixtures("every_step")
def test_phases_come_in_their_order_and_change_nothing(
    town: Table, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTILLIST_CACHE", "")
    plain = make(town, method)
    seen = Recorded()
    with reporting_to(seen):
        watched = make(town, method)
    order = ["pretraining", "counting", "measuring", "choosing", "fitting", "drawing", "writing"]
    found = list(dict.fromkeys(seen.phases))
    if method == "dualquery":  # its first round draws at random and looks at nothing
        found.remove("measuring")
        found.insert(1, "measuring")
    assert found == [name for name in order if name in found]
    assert {"counting", "measuring", "drawing"} <= set(found)
    assert ("pretraining" in found) == (method == "gem_pub")
    assert ("choosing" in found) == (method == "auto")
    assert ("fitting" in found) == (method != "dualquery")  # one integer program a round has no steps
    one, two = (release.family.to_arrays(release.params) for release in (plain, watched))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert plain.log.info == watched.log.info


def test_rounds_are_counted_when_they_have_measured(town: Table) -> None:
    seen = Recorded()
    with reporting_to(seen):
        make(town, "auto")
    rounds = seen.of("measuring")[::2]  # when they have measured, and when they have fitted
    assert [(done, total) for done, total, _ in seen.of("measuring")[:1]] == [(1, 3)]
    spent = [info["spent"] for _, _, info in rounds]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(1.0, abs=1e-4)
    assert seen.phases.index("measuring") < seen.phases.index("fitting")


@pytest.mark.usefixtures("every_step")
@pytest.mark.parametrize("group", ["marginal", "query"])
def test_a_descent_reports_steps_and_loss(town: Table, group: str) -> None:
    seen = Recorded()
    with reporting_to(seen):
        release = make(town, "gem", group)
    for t, log in enumerate(release.log.info, start=1):
        mine = [(done, total, info) for done, total, info in seen.of("fitting") if info["round"] == t]
        steps = int(log["steps"])
        assert [done for done, _, _ in mine] == [*range(1, steps + 1), steps]
        assert {total for _, total, _ in mine[:-1]} == {30}
        assert mine[-1][1] == steps  # an early end is the end
        assert mine[-1][2]["loss"] == pytest.approx(log["loss"])


@pytest.mark.usefixtures("every_step")
def test_the_fits_of_auto_are_one_phase(town: Table) -> None:
    seen = Recorded()
    with reporting_to(seen):
        release = make(town, "auto")
    fitting, choosing = seen.of("fitting"), seen.of("choosing")
    assert [info["fit"] for _, _, info in fitting] == sorted(info["fit"] for _, _, info in fitting)
    assert {info["fit"] for _, _, info in fitting} == {1, 2, 3}
    assert fitting[0][:2] == (1, 3 * int(release.log.info[-1]["descents"]) * 30)
    assert fitting[-1][0] == fitting[-1][1]
    for name in (fitting, choosing):
        assert all(done <= (total or 0) for done, total, _ in name)
        assert [done for done, _, _ in name] == sorted(done for done, _, _ in name)
    assert {"trial", "strength", "loss"} == set(choosing[0][2])


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(reporting, "time", found)
    return found


def test_steps_are_not_reported_too_often(clock: Clock) -> None:
    seen = Recorded()
    with reporting_to(seen), steps_of("fitting"):
        tally = Tally(10_000)
        for taken in range(1, 10_001):
            clock.now += 0.001
            tally.made(taken)
        tally.end(10_000)
    assert 90 <= len(seen.steps) <= 102
    assert seen.steps[-1][1:3] == (10_000, 10_000)


def test_the_parts_of_a_phase_add_up(clock: Clock) -> None:
    seen = Recorded()
    with reporting_to(seen), steps_of("fitting", 300, kind=7.0) as made:
        first = Tally(100)
        first.made(60, loss=2.0)
        first.end(80, loss=1.0)
        second = Tally(300)  # longer than what was expected
        clock.now += 1
        second.made(50)
        second.end(300)
        made.expect(20)
        clock.now += 1
        Tally(20).made(5)
    assert seen.steps == [
        ("fitting", 60, 300, {"kind": 7.0, "loss": 2.0}),
        ("fitting", 80, 280, {"kind": 7.0, "loss": 1.0}),
        ("fitting", 130, 380, {"kind": 7.0}),
        ("fitting", 380, 380, {"kind": 7.0}),
        ("fitting", 385, 400, {"kind": 7.0}),
    ]


def test_nobody_is_told_without_a_reporter_or_a_phase() -> None:
    with steps_of("fitting"):
        assert not Tally(3).heard
    with reporting_to(Recorded()):
        assert not Tally(3).heard
        with steps_of("fitting"):
            assert Tally(3).heard
