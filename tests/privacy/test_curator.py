"""The curator: charges before it reads, reads only what it is asked, and lets nothing out but what went through
noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from pointillist import Source, Workload, all_kway, prepare
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.errors import BudgetError, InputError
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import TOTAL_SHARE, Ask, Curator, planned
from pointillist.privacy.facts import Facts
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry, Ledger
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.scores import MaxError, Pick, SignedError
from pointillist.queries import counting
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates, Grouping
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product

SCHEMA = Schema(tuple(Categorical(name, tuple(range(size))) for name, size in zip("abc", (2, 3, 2), strict=True)))
DOMAIN = SCHEMA.domain
MARGINALS = Workload.of(DOMAIN, [("a",), ("b",), ("a", "b"), ("b", "c")]).queries
PREFIXES = Product.of(DOMAIN, {"b": "prefixes"})
PRODUCTS: tuple[Queries, ...] = (
    PREFIXES,
    Product.of(DOMAIN, {"a": "values", "b": "prefixes"}),
    Product.of(DOMAIN, {"b": Intervals(3, ((0, 2), (1, 2), (1, 2))), "c": "prefixes"}),
)
KINDS: dict[str, tuple[Queries, ...]] = {
    "marginals": MARGINALS,
    "products": PRODUCTS,
    "both": (*MARGINALS, *PRODUCTS, PRODUCTS[1].take([0, 3, 4])),
}
RELATIONS = tuple(Relation)


class Spy:
    """A source that notes how often it is read and, if asked to, fails when it is."""

    schema = SCHEMA

    def __init__(self, codes: Sequence[Sequence[int]], fails: bool = False) -> None:
        self._codes = [np.array(column) for column in codes]
        self._fails = fails
        self.rows_read = 0
        self.passes = 0

    @property
    def rows(self) -> int:
        self.rows_read += 1
        return len(self._codes[0])

    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        self.passes += 1
        if self._fails:
            raise OSError("the source is gone")
        half = len(self._codes[0]) // 2
        return iter([[column[:half] for column in self._codes], [column[half:] for column in self._codes]])


class Silent:
    """Noise that ignores the data altogether: what comes out with it cannot depend on the table."""

    description = "none"
    private = False

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return np.full(counts.shape, 7, np.int64)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        return 0


class Offset(Silent):
    """Noise that adds a known number, and keeps the scores and sensitivities that it was shown."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.seen: list[np.ndarray] = []
        self.sensitivities: list[int] = []

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        self.sensitivities.append(sensitivity_squared)
        shifted: np.ndarray = counts + self.offset
        return shifted

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        self.seen.append(scores.copy())
        self.sensitivities.append(sensitivity)
        return int(np.argmax(scores))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[list[Attributes]]:
    """The scopes of every pass over a source, as the curator asks for them."""
    found: list[list[Attributes]] = []
    count = counting.count

    def spy(source: Source, scopes: Sequence[Attributes], seen: Any) -> list[np.ndarray]:
        found.append(list(scopes))
        return count(source, scopes, seen)

    monkeypatch.setattr(counting, "count", spy)
    return found


def columns(rows: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(size, size=rows).tolist() for size in DOMAIN.sizes]


def curator(source: Any, relation: Relation = Relation.REPLACE, noise: Any = None) -> Curator:
    ledger = Ledger(Budget(1.0, 1e-6, relation))
    return Curator(source, ledger, InsecureSeededNoise(0) if noise is None else noise)


def candidates_of(grouping: Grouping = Grouping.MARGINAL, queries: tuple[Queries, ...] = MARGINALS) -> Candidates:
    return grouping.candidates(queries)


def members(candidates: Candidates) -> list[Queries]:
    return [candidates[number] for number in range(len(candidates))]


def flat_estimate(candidates: Candidates) -> np.ndarray:
    return np.full(candidates.size, 0.25)


def by_definition(codes: Sequence[Sequence[int]], queries: Queries) -> np.ndarray:
    """The counts without any marginal: the rows for which each query holds."""
    return queries.holds([np.array(column) for column in codes]).sum(axis=0)


def spend(door: Curator, use: str, rho: float, queries: tuple[Queries, ...] = MARGINALS) -> None:
    if use == "select":
        candidates = candidates_of(queries=queries)
        door.select(candidates, flat_estimate(candidates), MaxError(), rho, 1, ())
    else:
        door.measure([Ask(queries[0], rho)])


def test_the_spy_is_a_source() -> None:
    assert isinstance(Spy(columns(4)), Source)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("use", ["select", "measure"])
def test_a_charge_precedes_the_read(use: str, relation: Relation) -> None:
    source = Spy(columns(40), fails=True)
    door = curator(source, relation)
    door.open()
    before = len(door.ledger.entries)
    with pytest.raises(OSError, match="gone"):
        spend(door, use, 1e-4)
    assert source.passes == 1
    assert [entry.rho for entry in door.ledger.entries[before:]] == [1e-4]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_measured_together_is_charged_before_any_batch_is_read(kind: str, relation: Relation) -> None:
    source = Spy(columns(40), fails=True)
    door = curator(source, relation)
    door.open()
    before = len(door.ledger.entries)
    asked = [Ask(queries, 1e-4 * (n + 1)) for n, queries in enumerate(KINDS[kind])]
    with pytest.raises(OSError, match="gone"):
        door.measure(asked)
    assert source.passes == 1
    assert [entry.rho for entry in door.ledger.entries[before:]] == [rho for _, rho in asked]


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
    assert source.passes == 0
    assert door.ledger.entries == before


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_overdraft_by_several_measurements_charges_and_reads_nothing(kind: str, relation: Relation) -> None:
    """Each of them would fit alone; together they do not."""
    source = Spy(columns(40))
    door = curator(source, relation)
    door.open()
    before, left = door.ledger.entries, door.ledger.left
    rho = left / len(KINDS[kind]) * 1.001
    with pytest.raises(BudgetError, match=rf"^{len(KINDS[kind])} x measurement together must cost") as refusal:
        door.measure([Ask(queries, rho) for queries in KINDS[kind]])
    assert refusal.value.asked == pytest.approx(left * 1.001)
    assert source.passes == 0
    assert (door.ledger.entries, door.ledger.left) == (before, left)
    door.measure([Ask(queries, rho) for queries in KINDS[kind][1:]])  # and what fits can still be measured
    assert len(door.ledger.entries) == len(before) + len(KINDS[kind]) - 1


def test_a_selection_that_runs_out_of_budget_gives_out_nothing() -> None:
    """The picks that were drawn before the budget ran out stay charged."""
    door = curator(Spy(columns(40)))
    candidates = candidates_of()
    with pytest.raises(BudgetError):
        door.select(candidates, flat_estimate(candidates), MaxError(), door.ledger.limit * 0.4, 3, ())
    assert [entry.label for entry in door.ledger.entries] == ["selection", "selection"]


def test_a_refused_charge_never_reads_the_number_of_rows() -> None:
    source = Spy(columns(40))
    door = curator(source, Relation.ADD_REMOVE)
    door.ledger.charge(Entry("other", "other", door.ledger.limit, 1, 1))
    with pytest.raises(BudgetError, match=r"^number of rows must cost at most the rho that is left \(0\), got "):
        door.open()
    assert source.rows_read == 0


def test_the_number_of_rows_is_charged_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Spy(columns(40))
    door = curator(source, Relation.ADD_REMOVE)

    def refuse(ledger: Ledger, *entries: Entry) -> None:
        raise BudgetError(1.0, 0.0, "number of rows")

    monkeypatch.setattr(Ledger, "charge", refuse)
    with pytest.raises(BudgetError):
        door.open()
    assert source.rows_read == 0


def test_building_a_curator_reads_and_spends_nothing() -> None:
    source = Spy(columns(40), fails=True)
    door = curator(source, Relation.ADD_REMOVE)
    assert (source.passes, source.rows_read, door.ledger.entries) == (0, 0, ())


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_counted_once_however_often_they_are_used(kind: str, relation: Relation) -> None:
    source = Spy(columns(40))
    door = curator(source, relation)
    candidates = candidates_of(queries=KINDS[kind])
    for _ in range(3):
        picks = door.select(candidates, flat_estimate(candidates), MaxError(), 1e-4, 2, ())
        door.measure([Ask(pick.queries, 1e-4) for pick in picks])
    assert source.passes == 1
    assert sum(entry.label == "selection" for entry in door.ledger.entries) == 6
    assert sum(entry.label == "measurement" for entry in door.ledger.entries) == 6
    assert sum(entry.label == "number of rows" for entry in door.ledger.entries) == (relation is Relation.ADD_REMOVE)


@pytest.mark.parametrize("relation", RELATIONS)
def test_only_what_is_asked_is_counted(counted: list[list[Attributes]], relation: Relation) -> None:
    door = curator(Spy(columns(40)), relation)
    door.open()
    assert counted == []
    door.measure([Ask(MARGINALS[1], 1e-4)])
    assert counted == [[(1,)]]
    door.measure([Ask(MARGINALS[1], 1e-4), Ask(PREFIXES, 1e-4), Ask(MARGINALS[1].take([2]), 1e-4)])
    assert counted == [[(1,)]]  # other queries over the same attributes need no other count
    door.measure([Ask(PRODUCTS[1], 1e-4), Ask(MARGINALS[0], 1e-4), Ask(MARGINALS[2], 1e-4)])
    assert counted == [[(1,)], [(0, 1), (0,)]]  # one pass for all that is missing, each scope once
    candidates = candidates_of(Grouping.QUERY)
    door.select(candidates, flat_estimate(candidates), MaxError(), 1e-4, 2, ())
    assert counted == [[(1,)], [(0, 1), (0,)], [(1, 2)]]
    door.select(candidates, flat_estimate(candidates), SignedError(), 1e-4, 2, ())
    door.measure([Ask(queries, 1e-4) for queries in (*MARGINALS, *PRODUCTS)])
    assert len(counted) == 3


def test_nothing_is_counted_if_nothing_is_asked(counted: list[list[Attributes]]) -> None:
    door = curator(Spy(columns(40)))
    assert door.measure([]) == ()
    assert (counted, door.ledger.entries) == ([], ())


def test_a_source_that_delivers_its_rows_only_once_is_refused() -> None:
    """The second pass would find no rows, and measurements of nothing but noise."""

    class Once(Spy):
        def batches(self) -> Iterator[Sequence[np.ndarray]]:
            return iter([]) if self.passes else super().batches()

    door = curator(Once(columns(40)))
    door.measure([Ask(MARGINALS[0], 1e-4)])
    with pytest.raises(ValueError, match="must deliver all of its rows"):
        door.measure([Ask(MARGINALS[1], 1e-4)])


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("most_noise", [1.2, 1e-3])
def test_auto_counts_and_measures_only_what_it_releases(
    counted: list[list[Attributes]], relation: Relation, most_noise: float
) -> None:
    """Where noise would hide a marginal, smaller ones are measured in its place: then it is not even counted."""
    job = prepare(
        Spy(columns(60)), epsilon=1.0, delta=1e-6, relation=relation, method="auto", workload=all_kway(DOMAIN, 2),
        settings={"rows": 10, "fits": 1, "t_max": 2, "strength": 1, "most_noise": most_noise}, insecure_noise_seed=1,
    )  # fmt: skip
    assert counted == []
    release = job.run()
    measured = [m.queries.scope for m in release.log.measurements]
    assert counted == [measured]
    assert {len(scope) for scope in measured} == ({2} if most_noise > 1 else {1})
    assert sum(entry.label == "measurement" for entry in job.curator.ledger.entries) == len(measured)


@pytest.mark.parametrize("relation", RELATIONS)
def test_two_curators_can_share_one_ledger(relation: Relation) -> None:
    """The second one may spend what the first one has left, and no more."""
    ledger = Ledger(Budget(1.0, 1e-6, relation))
    first, second = (Curator(Spy(columns(40, seed)), ledger, InsecureSeededNoise(seed)) for seed in (0, 1))
    first.open()
    first.measure([Ask(PREFIXES, ledger.limit / 2)])
    before = planned(ledger, 40, private=relation is Relation.ADD_REMOVE)
    facts = second.open()
    assert before.rho <= facts.rho == pytest.approx(before.rho, rel=1e-12)  # what was planned is rounded down
    assert facts == dataclasses.replace(before, total=facts.total, rho=facts.rho)
    assert facts.rho == ledger.left <= ledger.limit / 2
    with pytest.raises(BudgetError):
        second.measure([Ask(MARGINALS[0], facts.rho * 1.001)])
    second.measure([Ask(MARGINALS[0], facts.rho)])
    for door in (first, second):
        with pytest.raises(BudgetError):
            door.measure([Ask(MARGINALS[0], 1e-9)])
    labels = ["measurement", "measurement"]
    if relation is Relation.ADD_REMOVE:
        labels = ["number of rows", "measurement", "number of rows", "measurement"]
    assert [entry.label for entry in ledger.entries] == labels
    assert first.ledger is second.ledger


def test_n_is_free_under_replace() -> None:
    door = curator(Spy(columns(40)))
    assert door.public_rows == 40
    assert door.open() == Facts(40, door.ledger.limit, Relation.REPLACE, 0.0)
    assert door.ledger.entries == ()


@pytest.mark.parametrize("offset", [-100, -1, 0, 13])
def test_n_is_only_seen_through_noise_under_add_remove(offset: int) -> None:
    source = Spy(columns(40))
    door = curator(source, Relation.ADD_REMOVE, Offset(offset))
    assert door.public_rows is None
    facts = door.open()
    assert facts.total == max(1, 40 + offset)
    assert door.open() == facts
    assert source.rows_read == 1
    (entry,) = door.ledger.entries
    assert (entry.label, entry.sensitivity) == ("number of rows", 1)
    assert entry.rho == door.ledger.limit * TOTAL_SHARE
    assert entry.scale == facts.total_sigma == gaussian_scale(entry.rho, 1)
    assert facts.rho + entry.rho <= door.ledger.limit
    assert facts.relation is Relation.ADD_REMOVE


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_facts_are_as_planned_but_for_the_noisy_number_of_rows(relation: Relation) -> None:
    door = curator(Spy(columns(40)), relation)
    before = planned(door.ledger, 40, private=relation is Relation.ADD_REMOVE)
    assert door.ledger.entries == ()
    facts = door.open()
    assert facts == dataclasses.replace(before, total=facts.total)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("kind", KINDS)
def test_scores_use_the_noisy_total_and_not_n(kind: str, grouping: Grouping) -> None:
    """The tables have 40 and 41 rows; noise makes both totals 50, and the scores differ by the row alone."""
    codes = columns(40)
    more = [[*column, 0] for column in codes]
    noises = Offset(10), Offset(9)
    candidates = candidates_of(grouping, KINDS[kind])
    for c, noise in zip((codes, more), noises, strict=True):
        door = curator(Spy(c), Relation.ADD_REMOVE, noise)
        assert door.open().total == 50
        door.select(candidates, np.full(candidates.size, 0.5), MaxError(), 1e-4, 1, ())
    first, second = (noise.seen[0] for noise in noises)
    assert np.abs(first - second).max() == 1
    expected = [np.abs(by_definition(codes, one) - 25).max() for one in members(candidates)]
    np.testing.assert_array_equal(first, expected)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("kind", ["marginals", "products"])
def test_select_respects_taken_and_never_picks_twice(kind: str, grouping: Grouping) -> None:
    door = curator(Spy(columns(40)))
    candidates = candidates_of(grouping, KINDS[kind])
    groups = len(candidates)
    taken = {candidates[0], candidates[groups - 1]}
    free = set(members(candidates)) - taken
    assert len(free) == groups - 2
    for _ in range(20):
        picks = door.select(candidates, flat_estimate(candidates), MaxError(), 1e-5, groups - 2, taken)
        assert len(picks) == len(free)
        assert {pick.queries for pick in picks} == free
    before = door.ledger.entries
    with pytest.raises(InputError, match="must pick at most"):
        door.select(candidates, flat_estimate(candidates), MaxError(), 1e-5, groups - 1, taken)
    assert door.ledger.entries == before


def test_select_never_picks_the_single_queries_of_some_cells_twice() -> None:
    door = curator(Spy(columns(40)))
    candidates = candidates_of(Grouping.QUERY, (PRODUCTS[1].take([4, 0, 3]),))
    for number in range(3):
        picks = door.select(candidates, flat_estimate(candidates), MaxError(), 1e-5, 2, {candidates[number]})
        assert {pick.queries for pick in picks} == set(members(candidates)) - {candidates[number]}


def test_what_is_no_candidate_may_be_taken_too() -> None:
    door = curator(Spy(columns(40)))
    candidates = candidates_of()
    taken = {PREFIXES, MARGINALS[0].take([0]), MARGINALS[3]}
    picks = door.select(candidates, flat_estimate(candidates), MaxError(), 1e-5, len(candidates) - 1, taken)
    assert {pick.queries for pick in picks} == set(MARGINALS[:3])


def test_select_may_repeat_where_nothing_is_taken() -> None:
    door = curator(Spy(columns(40)))
    candidates = candidates_of()
    picks = door.select(candidates, flat_estimate(candidates), MaxError(), 1e-5, 3 * len(candidates), None)
    assert len(picks) == len(door.ledger.entries) == 3 * len(candidates)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pick_says_on_which_side_the_estimate_errs(kind: str) -> None:
    codes = columns(40)
    candidates = candidates_of(Grouping.QUERY, KINDS[kind])
    counts = np.concatenate([by_definition(codes, queries) for queries in KINDS[kind]])
    worst = len(counts) // 2
    for sign in (1, -1):
        estimate = counts / 40
        estimate[worst] -= sign * 0.5
        noise = Offset(0)
        door = curator(Spy(codes), noise=noise)
        (pick,) = door.select(candidates, estimate, SignedError(), 1e-4, 1, ())
        assert pick == Pick(candidates[worst], sign)
        assert len(noise.seen[0]) == 2 * len(counts)


@pytest.mark.parametrize("first", ["select", "measure"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("kind", KINDS)
def test_measure_gives_integers_of_the_right_cells(
    kind: str, grouping: Grouping, relation: Relation, first: str
) -> None:
    """With the noise of their own sensitivity, whether or not a selection counted them before."""
    codes, noise = columns(40), Offset(3)
    door = curator(Spy(codes), relation, noise)
    candidates = candidates_of(grouping, KINDS[kind])
    if first == "select":
        door.select(candidates, flat_estimate(candidates), MaxError(), 1e-4, 1, ())
    door.open()
    before = len(door.ledger.entries)
    noise.sensitivities.clear()
    asked = [Ask(queries, 1e-4 * (1 + n % 3)) for n, queries in enumerate(members(candidates))]
    measured = door.measure(asked)
    assert [m.queries for m in measured] == [queries for queries, _ in asked]
    entries = door.ledger.entries[before:]
    for (queries, rho), m, entry, given in zip(asked, measured, entries, noise.sensitivities, strict=True):
        assert m.counts.dtype == np.int64
        np.testing.assert_array_equal(m.counts, by_definition(codes, queries) + 3)
        square = max(1, queries.sensitivity(relation).l2_squared)  # a count that nobody can change gets noise, too
        assert m.sigma == pytest.approx(np.sqrt(square / (2 * rho)))
        assert (entry.label, entry.rho, entry.scale) == ("measurement", rho, m.sigma)
        assert entry.sensitivity**2 == pytest.approx(square)
        assert given == square
        assert square / (2 * m.sigma**2) <= rho
    np.testing.assert_array_equal(door.measure(asked[:1])[0].counts, measured[0].counts)


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_that_nobody_can_change_still_get_noise(relation: Relation) -> None:
    """Under replace a query that holds for every record has the sensitivity 0; it is treated as if it were 1."""
    noise = Offset(0)
    door = curator(Spy(columns(40)), relation, noise)
    only = Product.of(DOMAIN, {"a": Intervals(2, ((0, 2),))})
    assert only.sensitivity(relation).l2_squared == (relation is Relation.ADD_REMOVE)
    (measured,) = door.measure([Ask(only, 1e-4)])
    assert measured.sigma == gaussian_scale(1e-4, 1)
    door.select(Grouping.MARGINAL.candidates((only,)), np.array([1.0]), MaxError(), 1e-4, 1, ())
    assert set(noise.sensitivities) == {1}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_estimate_that_is_no_number_is_refused_before_any_charge(bad: float, relation: Relation) -> None:
    source = Spy(columns(40))
    door = curator(source, relation)
    candidates = candidates_of()
    estimate = flat_estimate(candidates)
    estimate[3] = bad
    with pytest.raises(ValueError, match="finite answers"):
        door.select(candidates, estimate, MaxError(), 1e-4, 1, ())
    with pytest.raises(ValueError, match="finite answers"):
        door.select(candidates, flat_estimate(candidates)[1:], MaxError(), 1e-4, 1, ())
    assert door.ledger.entries == ()
    assert source.passes == 0


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("use", ["select", "measure"])
def test_a_rho_that_is_no_cost_is_refused_before_any_read(use: str, rho: float) -> None:
    source = Spy(columns(40))
    door = curator(source)
    with pytest.raises((ValueError, ArithmeticError)):
        spend(door, use, rho)
    assert source.passes == 0
    assert door.ledger.entries == ()


def test_a_plan_that_drowns_in_noise_is_refused_for_free(charges: list[Entry]) -> None:
    source = Spy(columns(40))
    options: dict[str, Any] = {"delta": 1e-6, "workload": Workload(DOMAIN, MARGINALS)}
    for parameter, rounds in (("rounds", 4), ("epsilon", 1)):
        with pytest.raises(InputError, match="must leave each measurement a noise below 40 rows") as refused:
            prepare(source, epsilon=0.1, method="mwem", settings={"rounds": rounds}, **options)
        assert refused.value.parameter == parameter
    prepare(source, epsilon=5.0, method="mwem", settings={"rounds": 4}, **options)
    assert (charges, source.passes) == ([], 0)


def test_a_workload_over_another_domain_is_refused(charges: list[Entry]) -> None:
    source = Spy(columns(4))
    for domain in (Domain(("a",), (2,)), Domain(("a", "b", "c"), (2, 3, 3))):
        with pytest.raises(ValueError, match="must be over the table's columns"):
            prepare(source, epsilon=1.0, workload=all_kway(domain, 1))
    assert (charges, source.passes) == ([], 0)


@pytest.mark.parametrize("use", ["select", "measure"])
@pytest.mark.parametrize(
    "foreign", [Marginal((1,), (1,)), Marginal((3,), (2,)), Product((1,), (Intervals.prefixes(2),))]
)
def test_queries_over_another_domain_are_refused_before_any_charge(foreign: Queries, use: str) -> None:
    """Their sensitivity would be that of other counts: a marginal of one cell claims that nobody can change it."""
    source = Spy(columns(40))
    door = curator(source)
    with pytest.raises(ValueError, match="domain"):
        spend(door, use, 1e-4, (foreign,))
    assert (door.ledger.entries, source.passes) == ((), 0)


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
@pytest.mark.parametrize("kind", KINDS)
def test_no_public_name_tells_what_did_not_go_through_noise(kind: str, grouping: Grouping, relation: Relation) -> None:
    """With noise that ignores the data, two very different tables give the same answers and attributes."""
    sizes = (40, 40) if relation is Relation.REPLACE else (40, 90)
    candidates = candidates_of(grouping, KINDS[kind])
    rule = MaxError(base_measure=grouping is Grouping.QUERY)
    told = []
    for seed, rows in enumerate(sizes):
        door = curator(Spy(columns(rows, seed)), relation, Silent())
        results: list[Any] = [door.open()]
        picks = door.select(candidates, flat_estimate(candidates), rule, 1e-4, 2, {candidates[1]})
        results += [list(picks), door.measure([Ask(pick.queries, 1e-4) for pick in picks])]
        results.append(planned(door.ledger, 40, private=relation is Relation.ADD_REMOVE))
        results.append(door.ledger.statement(door.public_rows))
        told.append((visible(results), visible(door)))
    assert told[0] == told[1]
    assert {"ledger", "noise", "public_rows", "relation"} <= set(told[0][1])


def test_the_walk_over_public_names_would_find_a_leak() -> None:
    class Leaky(Curator):
        @property
        def truth(self) -> np.ndarray:
            return self._counts(MARGINALS)

    budget = Budget(1.0, 1e-6)
    doors = [Leaky(Spy(columns(40, seed)), Ledger(budget), Silent()) for seed in (0, 1)]
    assert visible(doors[0]) != visible(doors[1])
