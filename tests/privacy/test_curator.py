"""The curator: charges before it reads, and lets nothing out but what went through noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.data.sources import count_batches
from pointillist.errors import BudgetError, InputError
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import TOTAL_SHARE, Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry
from pointillist.privacy.scores import MaxError, Pick
from pointillist.queries.workload import Grouping, Workload

DOMAIN = Domain(("a", "b", "c"), (2, 3, 2))
MARGINALS = ((0,), (1,), (0, 1), (1, 2))
RELATIONS = tuple(Relation)


class Spy:
    """A source that counts how often it is read and, if asked to, fails when it is."""

    def __init__(self, codes: Sequence[Sequence[int]], fails: bool = False) -> None:
        self.domain = DOMAIN
        self._codes = [np.array(column) for column in codes]
        self._fails = fails
        self.rows_read = 0
        self.counted = 0

    @property
    def rows(self) -> int:
        self.rows_read += 1
        return len(self._codes[0])

    def count(self, marginals: Sequence[Attributes]) -> list[np.ndarray]:
        self.counted += 1
        if self._fails:
            raise OSError("the source is gone")
        return count_batches([self._codes], self.domain, marginals)


class Silent:
    """Noise that ignores the data altogether: what comes out with it cannot depend on the table."""

    description = "none"
    private = False

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return np.full(counts.shape, 7, np.int64)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return 0


class Offset(Silent):
    """Noise that adds a known number and keeps the scores that it was shown."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.seen: list[np.ndarray] = []

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        shifted: np.ndarray = counts + self.offset
        return shifted

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        self.seen.append(scores.copy())
        return int(np.argmax(scores))


def columns(rows: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(size, size=rows).tolist() for size in DOMAIN.sizes]


def curator(
    source: Any, relation: Relation = Relation.REPLACE, noise: Any = None, grouping: Grouping = Grouping.MARGINAL
) -> Curator:
    workload = Workload(DOMAIN, MARGINALS, grouping)
    return Curator(source, workload, Budget(1.0, 1e-6, relation), InsecureSeededNoise(0) if noise is None else noise)


def flat_estimate(door: Curator) -> np.ndarray:
    return np.full(door.workload.queries, 0.25)


def spend(door: Curator, use: str, rho: float) -> None:
    if use == "select":
        door.select(flat_estimate(door), MaxError(), rho, 1, ())
    else:
        door.measure([Pick(0)], rho)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("use", ["select", "measure"])
def test_a_charge_precedes_the_read(use: str, relation: Relation) -> None:
    source = Spy(columns(40), fails=True)
    door = curator(source, relation)
    door.open()
    before = len(door.ledger.entries)
    with pytest.raises(OSError, match="gone"):
        spend(door, use, 1e-4)
    assert source.counted == 1
    assert [entry.rho for entry in door.ledger.entries[before:]] == [1e-4]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("use", ["select", "measure"])
def test_a_refused_charge_never_reads(use: str, relation: Relation) -> None:
    source = Spy(columns(40))
    door = curator(source, relation)
    door.open()
    before = door.ledger.entries
    too_much = door.ledger.left * 1.001
    with pytest.raises(BudgetError):
        spend(door, use, too_much)
    assert source.counted == 0
    assert door.ledger.entries == before


def test_a_refused_charge_never_reads_the_number_of_rows() -> None:
    source = Spy(columns(40))
    door = curator(source, Relation.ADD_REMOVE)
    door.ledger.charge(Entry("other", "other", door.ledger.limit * (1 - TOTAL_SHARE / 2), 1, 1))
    with pytest.raises(BudgetError):
        door.open()
    assert source.rows_read == 0


def test_building_a_curator_reads_and_spends_nothing() -> None:
    source = Spy(columns(40), fails=True)
    door = curator(source, Relation.ADD_REMOVE)
    assert (source.counted, source.rows_read, door.ledger.entries) == (0, 0, ())


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_rows_are_counted_once_however_often_they_are_used(relation: Relation) -> None:
    source = Spy(columns(40))
    door = curator(source, relation)
    for _ in range(3):
        picks = door.select(flat_estimate(door), MaxError(), 1e-4, 2, ())
        door.measure(picks, 1e-4)
    assert source.counted == 1
    assert sum(entry.label == "selection" for entry in door.ledger.entries) == 6
    assert sum(entry.label == "measurement" for entry in door.ledger.entries) == 6
    assert sum(entry.label == "number of rows" for entry in door.ledger.entries) == (relation is Relation.ADD_REMOVE)


def test_n_is_free_under_replace() -> None:
    door = curator(Spy(columns(40)))
    assert door.public_rows == 40
    assert door.open() == (40, door.ledger.limit)
    assert door.ledger.entries == ()


@pytest.mark.parametrize("offset", [-100, -1, 0, 13])
def test_n_is_only_seen_through_noise_under_add_remove(offset: int) -> None:
    source = Spy(columns(40))
    door = curator(source, Relation.ADD_REMOVE, Offset(offset))
    assert door.public_rows is None
    total, left = door.open()
    assert total == max(1, 40 + offset)
    assert door.open() == (total, left)
    (entry,) = door.ledger.entries
    assert (entry.label, entry.sensitivity) == ("number of rows", 1)
    assert entry.rho == door.ledger.limit * TOTAL_SHARE
    assert left + entry.rho <= door.ledger.limit


@pytest.mark.parametrize("grouping", list(Grouping))
def test_scores_use_the_noisy_total_and_not_n(grouping: Grouping) -> None:
    """The tables have 40 and 41 rows; noise makes both totals 50, and the scores differ by the row alone."""
    codes = columns(40)
    more = [[*column, 0] for column in codes]
    noises = Offset(10), Offset(9)
    doors = [
        curator(Spy(c), Relation.ADD_REMOVE, noise, grouping) for c, noise in zip((codes, more), noises, strict=True)
    ]
    for door in doors:
        assert door.open()[0] == 50
        door.select(np.full(door.workload.queries, 0.5), MaxError(), 1e-4, 1, ())
    first, second = (noise.seen[0] for noise in noises)
    assert np.abs(first - second).max() == 1
    workload = doors[0].workload
    counts = np.concatenate(Spy(codes).count(MARGINALS))
    expected = [np.abs(counts - 25)[workload.group(g).flat].max() for g in range(workload.groups)]
    np.testing.assert_array_equal(first, expected)


@pytest.mark.parametrize("grouping", list(Grouping))
def test_select_respects_taken_and_never_picks_twice(grouping: Grouping) -> None:
    door = curator(Spy(columns(40)), grouping=grouping)
    groups = door.workload.groups
    taken = {0, groups - 1}
    for _ in range(20):
        picks = [pick.group for pick in door.select(flat_estimate(door), MaxError(), 1e-5, groups - 2, taken)]
        assert sorted(picks) == sorted(set(range(groups)) - taken)
    before = door.ledger.entries
    with pytest.raises(InputError, match="must pick at most"):
        door.select(flat_estimate(door), MaxError(), 1e-5, groups - 1, taken)
    assert door.ledger.entries == before


def test_select_may_repeat_where_nothing_is_taken() -> None:
    door = curator(Spy(columns(40)))
    picks = door.select(flat_estimate(door), MaxError(), 1e-5, 3 * door.workload.groups, None)
    assert len(picks) == len(door.ledger.entries) == 3 * door.workload.groups


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grouping", list(Grouping))
def test_measure_gives_integers_of_the_right_cells(grouping: Grouping, relation: Relation) -> None:
    door = curator(Spy(columns(40)), relation, Offset(3), grouping)
    counts = np.concatenate(Spy(columns(40)).count(MARGINALS))
    rho = 1e-4
    for g in range(door.workload.groups):
        (noisy,), sigma = door.measure([Pick(g)], rho)
        assert noisy.dtype == np.int64
        np.testing.assert_array_equal(noisy, counts[door.workload.group(g).flat] + 3)
    square = door.workload.l2_sensitivity_squared(relation)
    assert sigma == pytest.approx(np.sqrt(square / (2 * rho)))
    assert {entry.scale for entry in door.ledger.entries} == {sigma}
    assert square / (2 * sigma**2) <= rho


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_estimate_that_is_no_number_is_refused_before_any_charge(bad: float, relation: Relation) -> None:
    source = Spy(columns(40))
    door = curator(source, relation)
    estimate = flat_estimate(door)
    estimate[3] = bad
    with pytest.raises(ValueError, match="finite answers"):
        door.select(estimate, MaxError(), 1e-4, 1, ())
    with pytest.raises(ValueError, match="finite answers"):
        door.select(flat_estimate(door)[1:], MaxError(), 1e-4, 1, ())
    assert door.ledger.entries == ()
    assert source.counted == 0


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("use", ["select", "measure"])
def test_a_rho_that_is_no_cost_is_refused_before_any_read(use: str, rho: float) -> None:
    source = Spy(columns(40))
    door = curator(source)
    with pytest.raises((ValueError, ArithmeticError)):
        spend(door, use, rho)
    assert source.counted == 0
    assert door.ledger.entries == ()


def test_a_plan_that_drowns_in_noise_is_refused_for_free() -> None:
    source = Spy(columns(40))
    door = curator(source)
    with pytest.raises(InputError, match="must leave each measurement a noise below 40 rows"):
        door.require_useful(1e-6, 100)
    door.require_useful(1.0, 1)
    assert (door.ledger.entries, source.counted) == ((), 0)


def test_a_source_over_another_domain_is_refused() -> None:
    workload = Workload(Domain(("a",), (2,)), ((0,),))
    with pytest.raises(ValueError, match="different domains"):
        Curator(Spy(columns(4)), workload, Budget(1.0, 1e-6))


def visible(value: Any, depth: int = 0) -> Any:
    """All that public attributes tell, as nested plain data."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | set):
        return [visible(item, depth) for item in value]
    if depth > 4 or callable(value):
        return type(value).__name__
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: visible(getattr(value, name), depth + 1) for name in names}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grouping", list(Grouping))
def test_no_public_name_tells_what_did_not_go_through_noise(grouping: Grouping, relation: Relation) -> None:
    """With noise that ignores the data, two very different tables give the same answers and attributes."""
    sizes = (40, 40) if relation is Relation.REPLACE else (40, 90)
    told = []
    for seed, rows in enumerate(sizes):
        door = curator(Spy(columns(rows, seed)), relation, Silent(), grouping)
        results: list[Any] = [door.open()]
        picks = door.select(flat_estimate(door), MaxError(True), 1e-4, 2, {1})
        results += [[dataclasses.astuple(pick) for pick in picks], door.measure(picks, 1e-4)]
        door.require_useful(1e-3, 1)
        results.append(door.ledger.statement(door.public_rows))
        told.append((visible(results), visible(door)))
    assert told[0] == told[1]
    assert {"ledger", "noise", "public_rows", "relation", "workload"} <= set(told[0][1])


def test_the_walk_over_public_names_would_find_a_leak() -> None:
    class Leaky(Curator):
        @property
        def truth(self) -> np.ndarray:
            return self._counts

    workload = Workload(DOMAIN, MARGINALS)
    doors = [Leaky(Spy(columns(40, seed)), workload, Budget(1.0, 1e-6), Silent()) for seed in (0, 1)]
    assert visible(doors[0]) != visible(doors[1])
