"""Numbers at their limits: noisy totals that saturate, scores of neighbours near 2^63, budgets too small to be of use.

A score that wraps around in 64 bits changes by far more than the sensitivity that is charged for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.brute_force import indicators

from pointillist import Workload, prepare
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.errors import InputError
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_PUBLIC_ROWS, MOST_ROWS, Curator, planned
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import Entry, Ledger
from pointillist.privacy.mechanisms import OpenDPNoise
from pointillist.privacy.scores import MOST_WEIGHT, MaxError, ScoreRule, SignedError, UsefulError
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates, Grouping, Single, Whole
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product

SCHEMA = Schema(tuple(Categorical(name, tuple(range(size))) for name, size in zip("ab", (2, 3), strict=True)))
DOMAIN = SCHEMA.domain
QUERIES: tuple[Queries, ...] = (
    Marginal.of(DOMAIN, ("a",)),
    Marginal.of(DOMAIN, ("a", "b")),
    Product.of(DOMAIN, {"b": "prefixes"}),
)
LIMITS = np.iinfo(np.int64)


class Rows:
    """A source with this number of rows of zeros."""

    schema = SCHEMA

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        return iter([[np.zeros(self.rows, np.int64)] * 2])


class Fixed:
    """Noise that makes every count the same number, and keeps the scores that it is shown."""

    description = "none"
    private = False

    def __init__(self, count: int) -> None:
        self.count = count
        self.scores: list[list[int]] = []

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        return np.full(counts.shape, self.count, np.int64)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        self.scores.append(scores.tolist())
        return 0


NOISY_TOTALS = (LIMITS.max, LIMITS.max - 1023, 2**62, 10**12, 0, LIMITS.min)


@pytest.mark.parametrize("noisy", NOISY_TOTALS)
def test_a_noisy_total_is_clamped(noisy: int) -> None:
    facts = Curator(Rows(5), Ledger(Budget(1.0, 1e-6, Relation.ADD_REMOVE)), Fixed(noisy)).open()
    assert facts.total == min(max(noisy, 1), 10**9)


@pytest.mark.parametrize("noisy", NOISY_TOTALS)
@pytest.mark.parametrize("share", [-5.0, -1.0, 0.5, 2.0])
@pytest.mark.parametrize("rule", [SignedError(), MaxError(), MaxError(base_measure=True)], ids=repr)
def test_neighbours_have_near_scores_whatever_the_noisy_total_is(rule: ScoreRule, share: float, noisy: int) -> None:
    """1,023 rows and 1,024 rows: next to an estimate of -(2^63 - 1024) rows the difference would wrap around."""
    candidates = Single(QUERIES)
    seen = []
    for rows in (1023, 1024, 1025):
        noise = Fixed(noisy)
        door = Curator(Rows(rows), Ledger(Budget(1.0, 1e-6, Relation.ADD_REMOVE)), noise)
        door.select(candidates, np.full(candidates.size, share), rule, 1e-6, 1, None)
        seen += noise.scores
    for one, other in itertools.pairwise(seen):
        assert max(abs(x - y) for x, y in zip(one, other, strict=True)) == rule.sensitivity(
            candidates, Relation.ADD_REMOVE
        )


def exact_scores(rule: ScoreRule, candidates: Candidates, counts: list[int], estimate: list[int]) -> list[int]:
    """The scores without any bound, in whole numbers of any size, up to a public offset."""
    errors = [c - e for c, e in zip(counts, estimate, strict=True)]
    if isinstance(rule, SignedError):
        return [score for error in errors for score in (error, -error)]
    sizes = [candidates[number].size for number in range(len(candidates))]
    parts = [[abs(error) for error in errors[end - size : end]] for size, end in _ends(sizes)]
    if isinstance(rule, UsefulError):
        return [w * sum(part) for w, part in zip(rule.weights, parts, strict=True)]
    return [max(part) for part in parts]


def _ends(sizes: list[int]) -> list[tuple[int, int]]:
    return list(zip(sizes, itertools.accumulate(sizes), strict=True))


def changes_of(relation: Relation, queries: Sequence[Queries]) -> np.ndarray:
    """What one person does to the counts of a list of queries: every possible change."""
    held = np.concatenate([indicators(one, DOMAIN) for one in queries], axis=1)
    if relation is Relation.REPLACE:
        return (held[:, None, :] - held).reshape(-1, held.shape[1])
    return np.concatenate([held, -held])


LARGE_COUNTS = st.sampled_from([1, 2, 1023, 10**9, 2 * 10**9, 2**40, 2**53 - 1])
LARGE_ESTIMATES = st.sampled_from([-1, 0, 1]).flatmap(
    lambda sign: st.sampled_from([0, 1, 10**9, 2 * 10**9, 2**40, 2**53, 2**54]).map(lambda size: sign * size)
)
SCALES = st.sampled_from([1e-3, 1.0, 1e9, 1e11, 1e17, 1e30, 1e300])


@given(st.data())
@pytest.mark.parametrize("relation", list(Relation))
def test_no_score_of_neighbours_differs_by_more_than_its_sensitivity(relation: Relation, data: st.DataObject) -> None:
    """Every change by one person, at counts and estimates up to their bounds, with weights up to theirs."""
    weights = data.draw(st.lists(st.sampled_from([1, 3, 2**20, MOST_WEIGHT]), min_size=3, max_size=3))
    noise = data.draw(st.sampled_from([0.0, 0.5, 1e6]))
    rules: list[tuple[ScoreRule, Candidates]] = [
        (SignedError(), Single(QUERIES)),
        (MaxError(), Whole(QUERIES)),
        (MaxError(base_measure=True), Single(QUERIES)),
        (UsefulError(tuple(weights), noise), Whole(QUERIES)),
    ]
    rule, candidates = data.draw(st.sampled_from(rules))
    size = candidates.size
    counts = np.array(data.draw(st.lists(LARGE_COUNTS, min_size=size, max_size=size)), np.int64)
    estimate = np.array(data.draw(st.lists(LARGE_ESTIMATES, min_size=size, max_size=size)), np.int64)
    scale = data.draw(SCALES)
    scores = rule.scores(candidates, counts, estimate, scale).tolist()
    assert max(map(abs, scores)) <= 2**62
    bound = rule.sensitivity(candidates, relation)
    for change in changes_of(relation, candidates.queries):
        other = rule.scores(candidates, counts + change, estimate, scale).tolist()
        assert max(abs(x - y) for x, y in zip(scores, other, strict=True)) <= bound


@given(st.data())
def test_bounds_change_no_score_of_a_usual_size(data: st.DataObject) -> None:
    """Up to a billion rows and a thousand attributes of weight, scores are those of unbounded whole numbers."""
    candidates = Whole(QUERIES)
    weights = data.draw(st.lists(st.integers(1, 1000), min_size=3, max_size=3))
    for rule in (UsefulError(tuple(weights), 0.0), MaxError()):
        counts = data.draw(st.lists(st.integers(0, 10**9), min_size=candidates.size, max_size=candidates.size))
        estimate = data.draw(
            st.lists(st.integers(-(10**9), 2 * 10**9), min_size=candidates.size, max_size=candidates.size)
        )
        scores = rule.scores(candidates, np.array(counts), np.array(estimate), 1.0).tolist()
        assert scores == exact_scores(rule, candidates, counts, estimate)


def test_a_useful_error_of_many_cells_does_not_wrap_around() -> None:
    """Four million cells, each wrong by 2^54: their sum leaves 64 bits unless each error is cut off."""
    domain = Domain(("a", "b"), (2048, 2048))
    candidates = Whole((Marginal.of(domain, ("a",)), Marginal.of(domain, ("a", "b"))))
    rule = UsefulError((1, 1000), 0.5)
    estimate = np.full(candidates.size, -(2**54))
    for rows in (0, 2**40):
        counts = np.zeros(candidates.size, np.int64)
        counts[[0, 2048]] = rows
        scores = [rule.scores(candidates, counts, estimate, 1.0).tolist()]
        counts[[0, 2048]] += 1
        scores.append(rule.scores(candidates, counts, estimate, 1.0).tolist())
        assert scores[0][0] > 0
        assert scores[0][1] > 0
        bound = rule.sensitivity(candidates, Relation.ADD_REMOVE)
        assert all(abs(x - y) <= bound for x, y in zip(*scores, strict=True))


def test_the_check_of_neighbours_finds_a_score_that_wraps_around() -> None:
    """The same comparison, with the estimate that an unclamped total leads to."""
    candidates = Single(QUERIES)
    estimate = np.full(candidates.size, -(2**63 - 1024))
    before, after = (np.full(candidates.size, rows) for rows in (1023, 1024))
    one, other = (SignedError().scores(candidates, c, estimate, 1.0).tolist() for c in (before, after))
    assert max(abs(x - y) for x, y in zip(one, other, strict=True)) > 1


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (1, MOST_WEIGHT + 1)])
def test_weights_out_of_range_are_refused(weights: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="weights must be in"):
        UsefulError(weights, 0.5)


def test_seeded_noise_of_any_scale_stays_within_64_bits() -> None:
    counts = np.full(1000, 2**53)
    noisy = InsecureSeededNoise(0).add_gaussian(counts, 1e-60, 1).tolist()
    assert {count - 2**53 for count in noisy} == {-(2**62), 2**62}
    drawn = OpenDPNoise().add_gaussian(counts[:20], 1e-60, 1).tolist()
    assert set(drawn) <= {LIMITS.min, LIMITS.max}


OPTIONS: dict[str, Any] = {"delta": 1e-9, "workload": Workload(DOMAIN, QUERIES[:2]), "relation": "add-remove"}


@pytest.mark.parametrize("zcdp", [False, True])
@pytest.mark.parametrize("method", ["fem", "dualquery", "mwem", "one-shot"])
def test_a_budget_that_cannot_count_the_rows_is_refused_for_free(method: str, zcdp: bool, charges: list[Entry]) -> None:
    with pytest.raises(InputError, match=r"must leave the number of rows a noise below 1,000,000,000 \(it would be"):
        prepare(Rows(50), epsilon=1e-8, method=method, zcdp=zcdp, **OPTIONS | {"delta": 1e-60})
    assert charges == []


def test_a_curator_refuses_such_a_budget_before_it_charges_or_looks() -> None:
    ledger = Ledger(Budget(1e-8, 1e-60, Relation.ADD_REMOVE))
    with pytest.raises(InputError, match="epsilon must leave the number of rows a noise below 1,000,000,000"):
        Curator(Rows(50), ledger).open()
    assert ledger.entries == ()
    with pytest.raises(InputError, match="use a larger epsilon or delta"):
        planned(ledger, MOST_ROWS, private=True)


def test_selections_that_are_as_good_as_random_are_refused_for_free(charges: list[Entry]) -> None:
    options = OPTIONS | {"relation": "replace", "method": "fem", "settings": {"rounds": 50}}
    rule = (
        r"epsilon must leave each of 50 selections a scale below 5,000 \(it would be .*\), got 0.001; with more, picks"
    )
    with pytest.raises(InputError, match=rule):
        prepare(Rows(50), epsilon=1e-3, **options)
    assert charges == []
    assert prepare(Rows(50), epsilon=0.1, **options).rounds == 50
    with pytest.raises(
        InputError, match=r"eta must be at least 0\.0005 for the last of 21 rounds to depend on the data"
    ):
        prepare(Rows(50), epsilon=1.0, **options | {"method": "dualquery", "settings": {"eta": 4e-4, "rounds": 21}})


def test_more_rows_than_are_exact_in_floating_point_are_refused() -> None:
    ledger = Ledger(Budget(1.0, 1e-9))
    assert planned(ledger, MOST_PUBLIC_ROWS, private=False).total == 2**53
    with pytest.raises(InputError, match="table must have at most 9,007,199,254,740,992 rows"):
        planned(ledger, MOST_PUBLIC_ROWS + 1, private=False)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("epsilon", [3e-7, 1e-3])
def test_a_small_budget_that_is_accepted_keeps_every_score_near(epsilon: float, grouping: Grouping) -> None:
    """The smallest budgets under add-remove, with noise of their real scale on the total."""
    candidates = grouping.candidates(QUERIES)
    for seed in range(20):
        ledger = Ledger(Budget(epsilon, 1e-9, Relation.ADD_REMOVE))
        total = Curator(Rows(9), ledger, InsecureSeededNoise(seed)).open().total
        assert 1 <= total <= 10**9
        estimate = np.rint(np.full(candidates.size, -1.0) * total).astype(np.int64)
        counts = np.full(candidates.size, 9)
        scores = [MaxError().scores(candidates, c, estimate, 1e9) for c in (counts, counts + 1)]
        np.testing.assert_array_equal(scores[1] - scores[0], 1)
