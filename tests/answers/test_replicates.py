"""Replicates: simulated runs that need no data, saved with the release and checked when they are read."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.answers.small import FAST, people, small_release

from pointillist import Grid, InputError, Release, Schema, Table
from pointillist.answers import Count, Original, Replicate
from pointillist.answers.pooling import Typical
from pointillist.answers.replicates import _workers, replicated
from pointillist.answers.simulating import SimulatedDoor
from pointillist.data.columns import Merged
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts
from pointillist.queries.marginal import Marginal
from pointillist.queries.tie import Tie
from pointillist.reporting import reporting_to, step
from pointillist.updates import descent


@pytest.fixture(scope="module")
def release() -> Release:
    return small_release().replicate(3, progress=False)


def model_of(release: Release, i: int) -> dict[str, np.ndarray]:
    assert release.replicates is not None
    one = release.replicates.models[i]
    return one.family.to_arrays(one.params)


def test_the_door_adds_noise_of_the_scale_that_rho_buys() -> None:
    marginal = Marginal((0, 1), (20, 50))
    truth = np.full(1000, 1 / 1000)
    door = SimulatedDoor(lambda queries: truth, 1e6, Facts(10**6, 1.0), np.random.default_rng(0))
    (found,) = door.measure([Ask(marginal, 0.005)])
    assert found.sigma == pytest.approx(np.sqrt(2 / 0.01), rel=1e-6)
    assert np.std(found.counts - 1000) == pytest.approx(found.sigma, rel=0.1)


def test_a_tie_follows_from_the_counts_of_its_pair() -> None:
    truth = np.array([0.5, 0.0, 0.0, 0.5])
    door = SimulatedDoor(lambda queries: truth, 1e6, Facts(10**6, 1.0), np.random.default_rng(0))
    tie = Tie((0, 1), (500_000, 500_000), (500_000, 500_000), 10**6)
    (found,) = door.measure([Ask(tie, 0.5)])
    assert found.counts[0] == pytest.approx(10**6, abs=30)


def test_a_noisy_number_of_rows_gets_new_noise() -> None:
    facts = Facts(1000, 1.0, total_sigma=50.0)
    totals = [
        SimulatedDoor(lambda queries: np.ones(1), 1000.0, facts, np.random.default_rng(seed)).open().total
        for seed in range(200)
    ]
    assert np.std(totals) == pytest.approx(50, rel=0.2)


def test_replicates_are_determined_by_their_seed(release: Release) -> None:
    again = replace(release, replicates=None).replicate(2, progress=False)
    other = replace(release, replicates=None).replicate(2, seed=1, progress=False)
    for i in range(2):
        assert all(np.array_equal(model_of(release, i)[name], own) for name, own in model_of(again, i).items())
    assert not np.array_equal(model_of(again, 0)["logits"], model_of(other, 0)["logits"])
    assert not np.array_equal(model_of(release, 0)["logits"], model_of(release, 1)["logits"])


def test_replicates_are_the_same_however_many_are_made_at_a_time(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(release, replicates=None)
    used, program = [], descent._program
    monkeypatch.setattr(descent, "_program", lambda *parts: used.append(program(*parts)) or used[-1])
    made = [bare.replicate(4, progress=False, workers=workers) for workers in (1, 2, 4)]
    for i in range(4):
        first, *others = (model_of(one, i) for one in made)
        assert all(np.array_equal(other[name], own) for other in others for name, own in first.items())
    assert len(used) >= 3 * (1 + 4)  # the pilot and the replicates, in each case
    assert {id(one) for one in used} == {id(used[0])}
    assert used[0].traces == 1
    with pytest.raises(InputError, match="workers"):
        bare.replicate(2, workers=0)


def test_a_replicate_that_fails_stops_the_others(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def failing(pilot: Original, source: np.random.SeedSequence) -> Replicate:
        started.append(source.spawn_key[-1])
        if source.spawn_key[-1] == 0:
            raise OSError("no space")
        while True:
            step("fitting", 1, 2)
            time.sleep(0.01)

    monkeypatch.setattr("pointillist.answers.replicates._simulated", failing)
    with pytest.raises(OSError, match="no space"):
        replace(release, replicates=None).replicate(8, progress=False, workers=2)
    assert len(started) < 8


def test_a_report_that_is_interrupted_stops_all_replicates(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def slow(pilot: Original, source: np.random.SeedSequence) -> Replicate:
        started.append(source.spawn_key[-1])
        for _ in range(200 if started[-1] else 1):  # the first one is made at once
            step("fitting", 1, 2)
            time.sleep(0.01)
        assert release.replicates is not None
        return release.replicates.pilot

    class Interrupted:
        def phase(self, name: str, total: int | None) -> None:
            pass

        def step(self, name: str, done: int, total: int | None, info: dict[str, float]) -> None:
            if done == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr("pointillist.answers.replicates._simulated", slow)
    with pytest.raises(KeyboardInterrupt) as caught, reporting_to(Interrupted()):
        replicated(release._original(), release.workload.queries, 24, 0, workers=3)
    time.sleep(0.3)
    assert caught.tb is not None  # which keeps the generator alive
    assert len(started) < 10


def test_no_more_replicates_are_made_at_a_time_than_fit_into_memory(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = release.workload.queries
    needed = release.family.working_set(queries)
    monkeypatch.setattr("pointillist.answers.replicates.cores", lambda: 16)
    for memory, most in ((100 * needed, 16), (6.5 * needed, 3), (0.1 * needed, 1)):
        monkeypatch.setattr("pointillist.answers.replicates.memory_here", lambda memory=memory: memory)
        assert _workers(release.family, queries) == most


def test_a_pilot_keeps_dependencies_that_a_strong_shrinkage_takes() -> None:
    made = small_release(settings=FAST | {"strength": 60.0}).replicate(2, progress=False)
    assert made.replicates is not None
    pair = Marginal.of(made.schema.domain, (1, 2))
    tables = [one.answers([pair]).reshape(2, 2) for one in (made.replicates.pilot, *made.replicates.models)]
    pilot, *others = [table[1, 1] - table[1].sum() * table[:, 1].sum() for table in tables]
    assert pilot > 0.02  # 0.04 in the table
    assert max(others) < 0.5 * pilot


def test_replicates_are_saved_with_the_release_and_need_nothing_else(release: Release, tmp_path: Path) -> None:
    replace(release, replicates=None).save(tmp_path / "bare")
    bare = Release.load(tmp_path / "bare")
    assert bare.replicates is None
    made = bare.replicate(3, progress=False)
    assert np.array_equal(model_of(made, 2)["logits"], model_of(release, 2)["logits"])
    made.save(tmp_path / "whole")
    loaded = Release.load(tmp_path / "whole")
    assert loaded.replicates is not None
    assert len(loaded.replicates) == 3
    assert loaded.answer("age >= 65") == release.answer("age >= 65")
    assert not list((tmp_path / "whole").glob(".*"))


@pytest.mark.parametrize("damage", ["cut", "totals", "errors", "model0_logits", "shares", "absent"])
def test_damaged_replicates_are_refused(release: Release, tmp_path: Path, damage: str) -> None:
    folder = release.save(tmp_path / "release")
    file = folder / "replicates.npz"
    with np.load(file) as found:
        arrays = dict(found)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:200])
    else:
        if damage == "absent":
            del arrays["sizes"]
        elif damage == "shares":
            arrays["shares0"] = np.ones(3)
        else:
            arrays[damage] = np.full_like(arrays[damage], np.nan)
        np.savez_compressed(file, **arrays)
    with pytest.raises(InputError, match=r"^replicates.*; remove replicates\.npz, and make the replicates again\.$"):
        Release.load(folder)


def test_a_private_number_of_rows_is_simulated() -> None:
    made = small_release(relation="add-remove", delta=1e-6).replicate(2, progress=False)
    assert made.replicates is not None
    assert len({one.total for one in made.replicates.models}) == 2
    found = made.answer(Count())
    assert found.low < found.estimate < found.high
    assert found.high - found.low < 300


def test_merged_columns_get_new_shares_in_the_same_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    plain = people()
    income = Grid("income", (0, 999), integer=True)
    schema = Schema((*plain.schema.columns[1:], income))
    codes = np.clip(rng.gamma(2, 150, len(plain)), 0, 999).astype(int)
    made = small_release(Table(schema, (*plain.codes[1:], codes))).replicate(2, progress=False)
    assert made.replicates is not None
    columns = [made.schema.columns[2], *(one.schema.columns[2] for one in made.replicates.models)]
    assert all(isinstance(column, Merged) for column in columns)
    assert len({column.groups for column in columns if isinstance(column, Merged)}) == 1
    assert len({column.shares for column in columns if isinstance(column, Merged)}) == 3
    loaded = Release.load(made.save(tmp_path / "release"))
    cutting = "income >= 123 and income < 321"
    found = loaded.answer(cutting)
    assert found == made.answer(cutting)
    assert found.low < np.mean((codes >= 123) & (codes < 321)) < found.high


def test_errors_are_pooled_by_size() -> None:
    rng = np.random.default_rng(0)
    answers = np.concatenate([np.full(500, 0.001), np.full(500, 0.1)])
    moved = np.concatenate([rng.normal(0, 1e-4, (8, 500)), rng.normal(0, 1e-2, (8, 500))], axis=1)
    typical = Typical.of(answers, moved)
    assert typical.at(np.array([0.001]))[0] == pytest.approx(1e-4, rel=0.1)
    assert typical.at(np.array([0.1, 0.9])) == pytest.approx(1e-2, rel=0.1)


def test_errors_are_pooled_over_the_same_attributes(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    found = release.replicates
    assert found is not None
    scopes = [(0, 1), (0, 1, 2)]
    for scope, typical in zip(scopes, found.typical_of(scopes), strict=True):
        marginal = Marginal.of(release.schema.domain, scope)
        own = Typical.of(found.pilot.answers([marginal]), found.moved([marginal]))
        assert np.allclose(typical.sizes, own.sizes, atol=1e-6)
        assert np.allclose(typical.errors, own.errors, atol=1e-6)
    monkeypatch.setattr("pointillist.answers.replicates.MOST_CELLS", 8)
    fresh = replace(found)
    assert fresh.typical_of([(0, 1, 2)])[0] is found.typical
    assert fresh.typical_of([(0, 1)])[0] is not found.typical


def test_the_number_of_replicates_is_checked() -> None:
    made = small_release()
    for wrong in (1, 101, 2.5):
        with pytest.raises(InputError, match="replicates"):
            made.replicate(wrong)  # type: ignore[arg-type]


def test_releases_of_before_can_be_replicated() -> None:
    """They do not tell how many fits were made: all of them."""
    old = Release.load(Path(__file__).parent.parent / "release_format1" / "auto")
    assert "fits" not in old.log.info[-1]
    assert len(old.replicate(2, progress=False).replicates or ()) == 2


def test_a_release_that_does_not_tell_how_it_was_fitted_is_refused(release: Release) -> None:
    log = replace(release.log, info=[{} for _ in release.log.rounds])
    with pytest.raises(InputError, match="release must tell how its model was fitted"):
        replace(release, log=log, replicates=None).replicate(2, progress=False)
