"""Sensitivities by brute force: every neighbour of small random tables, both relations, both groupings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.sources import count_batches
from pointillist.privacy.mechanisms import selection_scale
from pointillist.privacy.scores import MaxError, ScoreRule, SignedError, UsefulError
from pointillist.queries.workload import Grouping, Workload

Rows = tuple[tuple[int, ...], ...]
RELATIONS = tuple(Relation)
RULES: tuple[ScoreRule, ...] = (MaxError(), MaxError(prior=True), SignedError())


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    subsets = [s for k in range(1, len(sizes) + 1) for s in itertools.combinations(range(len(sizes)), k)]
    marginals = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=4, unique=True))
    domain = Domain(tuple("abc"[: len(sizes)]), tuple(sizes))
    return Workload(domain, tuple(marginals), draw(st.sampled_from(Grouping)))


@st.composite
def tables(draw: st.DrawFn, domain: Domain) -> Rows:
    record = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes))
    return tuple(draw(st.lists(record, min_size=1, max_size=5)))


def neighbours(rows: Rows, domain: Domain, relation: Relation) -> Iterator[Rows]:
    records = list(itertools.product(*(range(size) for size in domain.sizes)))
    if relation is Relation.ADD_REMOVE:
        yield from ((*rows, record) for record in records)
        yield from ((*rows[:i], *rows[i + 1 :]) for i in range(len(rows)))
    else:
        for i, record in itertools.product(range(len(rows)), records):
            yield (*rows[:i], record, *rows[i + 1 :])


def counts_of(rows: Rows, workload: Workload) -> np.ndarray:
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(workload.domain)).T
    return np.concatenate(count_batches([list(columns)], workload.domain, workload.marginals))


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_l2_sensitivity_is_an_upper_bound_that_is_attained(relation: Relation, data: st.DataObject) -> None:
    workload = data.draw(workloads())
    rows = data.draw(tables(workload.domain))
    counts = counts_of(rows, workload)
    worst = np.zeros(workload.groups, np.int64)
    for other in neighbours(rows, workload.domain, relation):
        squares = (counts_of(other, workload) - counts) ** 2
        for g in range(workload.groups):
            worst[g] = max(worst[g], squares[workload.group(g).flat].sum())
    bound = workload.l2_sensitivity_squared(relation)
    assert worst.max() <= bound
    for g in range(workload.groups):
        cells = workload.domain.cells_of(workload.marginals[workload.group(g).marginal])
        if cells > 1 and workload.grouping is Grouping.MARGINAL:
            assert worst[g] == bound
    if any(workload.domain.cells_of(m) > 1 for m in workload.marginals):
        assert worst.max() == bound


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_scores_change_by_at_most_their_sensitivity(rule: ScoreRule, relation: Relation, data: st.DataObject) -> None:
    workload = data.draw(workloads())
    if isinstance(rule, SignedError):  # for single queries only
        workload = workload.regroup(Grouping.QUERY)
    rows = data.draw(tables(workload.domain))
    scale = data.draw(st.floats(0.01, 1e6))
    whole = st.lists(st.integers(-3, 12), min_size=workload.queries, max_size=workload.queries)
    estimate = np.array(data.draw(whole), dtype=np.int64)
    scores = rule.scores(workload, counts_of(rows, workload), estimate, scale)
    assert scores.dtype == np.int64
    assert scores.shape == (workload.groups * rule.candidates_per_group,)
    worst = 0
    for other in neighbours(rows, workload.domain, relation):
        change = np.abs(rule.scores(workload, counts_of(other, workload), estimate, scale) - scores)
        worst = max(worst, int(change.max()))
    assert worst <= rule.sensitivity(relation)
    if workload.grouping is Grouping.QUERY and any(workload.domain.cells_of(m) > 1 for m in workload.marginals):
        assert worst == rule.sensitivity(relation)


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_useful_errors_change_by_at_most_their_sensitivity(relation: Relation, data: st.DataObject) -> None:
    workload = data.draw(workloads()).regroup(Grouping.MARGINAL)
    rows = data.draw(tables(workload.domain))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=workload.groups, max_size=workload.groups))
    rule = UsefulError(tuple(weights), data.draw(st.floats(0, 10)))
    scale = data.draw(st.floats(0.01, 1e30))
    whole = st.lists(st.integers(-3, 12), min_size=workload.queries, max_size=workload.queries)
    estimate = np.array(data.draw(whole), dtype=np.int64)
    scores = rule.scores(workload, counts_of(rows, workload), estimate, scale)
    assert scores.dtype == np.int64
    assert scores.shape == (workload.groups,)
    worst = 0
    for other in neighbours(rows, workload.domain, relation):
        change = np.abs(rule.scores(workload, counts_of(other, workload), estimate, scale) - scores)
        worst = max(worst, int(change.max()))
    assert worst <= rule.sensitivity(relation)
    heaviest = workload.marginals[int(np.argmax(weights))]
    if (estimate == -3).all() and relation is Relation.ADD_REMOVE:  # all errors have one sign: nothing cancels
        assert worst == rule.sensitivity(relation)
    if (estimate == 12).all() and relation is Relation.ADD_REMOVE:
        assert worst == max(weights) or workload.domain.cells_of(heaviest) == 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_sensitivity_of_useful_errors_is_attained(relation: Relation) -> None:
    workload = Workload(Domain(("a", "b"), (2, 3)), ((0,), (0, 1)))
    rule = UsefulError((1, 4), 0.5)
    rows = ((0, 0),)
    estimate = counts_of(((1, 2),), workload)  # replacing the row mends both of its errors
    scores = [
        rule.scores(workload, counts_of(table, workload), estimate, 3.0)
        for table in (rows, *neighbours(rows, workload.domain, relation))
    ]
    assert max(int(np.abs(score - scores[0]).max()) for score in scores) == rule.sensitivity(relation)


def test_a_useful_error_is_what_noise_would_not_leave() -> None:
    workload = Workload(Domain(("a", "b"), (2, 3)), ((0,), (0, 1)))
    counts, estimate = np.array([10, 0, 3, 3, 4, 0, 0, 0]), np.array([4, 6, 0, 0, 5, 5, 0, 0])
    scores = UsefulError((2, 3), 0.5).scores(workload, counts, estimate, 3.0)
    expected = [2 * (12 - round(np.sqrt(2 / np.pi) * 1.5 * 2)), 3 * (12 - round(np.sqrt(2 / np.pi) * 1.5 * 6))]
    assert scores.tolist() == expected


@given(st.data())
def test_scores_are_the_largest_error_of_each_group(data: st.DataObject) -> None:
    workload = data.draw(workloads())
    counts = counts_of(data.draw(tables(workload.domain)), workload)
    estimate = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(counts), max_size=len(counts))))
    scores = MaxError().scores(workload, counts, estimate, 1.0)
    expected = [np.abs(counts - estimate)[workload.group(g).flat].max() for g in range(workload.groups)]
    np.testing.assert_array_equal(scores, expected)


@given(st.data())
def test_the_prior_is_the_same_for_every_table(data: st.DataObject) -> None:
    workload = data.draw(workloads()).regroup(Grouping.QUERY)
    scale = data.draw(st.floats(0.01, 1e6))
    estimate = np.array(data.draw(st.lists(st.integers(0, 9), min_size=workload.queries, max_size=workload.queries)))
    offsets = []
    for _ in range(2):
        counts = counts_of(data.draw(tables(workload.domain)), workload)
        with_prior, without = (MaxError(p).scores(workload, counts, estimate, scale) for p in (True, False))
        offsets.append(with_prior - without)
    np.testing.assert_array_equal(*offsets)
    np.testing.assert_allclose(offsets[0], scale * np.log(estimate + 1.0), atol=0.5)


@pytest.mark.parametrize("scale", [1e17, 1e19, 1e30])
def test_a_huge_scale_does_not_wrap_the_scores_around(scale: float) -> None:
    """The offset of the prior must not overflow: a wrapped score would jump by far more than 1."""
    workload = Workload(Domain(("a",), (3,)), ((0,),), Grouping.QUERY)
    estimate = np.array([0, 1_000, 10**12])
    scores = [MaxError(True).scores(workload, estimate + c, estimate, scale) for c in (0, 2_000)]
    np.testing.assert_array_equal(scores[1] - scores[0], [2_000] * 3)
    assert np.all(np.diff(scores[0]) >= 0)


@given(st.data())
def test_the_number_of_rows_changes_by_at_most_one(data: st.DataObject) -> None:
    workload = data.draw(workloads())
    rows = data.draw(tables(workload.domain))
    changes = {len(other) - len(rows) for other in neighbours(rows, workload.domain, Relation.ADD_REMOVE)}
    assert changes == {-1, 1}
    assert {len(other) for other in neighbours(rows, workload.domain, Relation.REPLACE)} == {len(rows)}


def renyi(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    """The Rényi divergence of order alpha, in logarithms so that nothing overflows."""
    terms = alpha * np.log(p) + (1 - alpha) * np.log(q)
    return float(np.logaddexp.reduce(terms) / (alpha - 1))


def softmax(scores: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 1)), min_size=2, max_size=8),
    st.floats(1e-4, 2.0), st.sampled_from([1.01, 1.5, 2.0, 5.0, 20.0]),
)  # fmt: skip
def test_a_selection_costs_the_rho_that_is_charged(pairs: list[tuple[int, int]], rho: float, alpha: float) -> None:
    """The exact Rényi divergence of Pr[i] ∝ exp(score_i / s) between neighbours is at most alpha rho."""
    scores, shifts = (np.array(values) for values in zip(*pairs, strict=True))
    scale = selection_scale(rho, 1)
    p, q = softmax(scores, scale), softmax(scores + shifts, scale)
    assert max(renyi(p, q, alpha), renyi(q, p, alpha)) <= alpha * rho * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("rho", [1e-3, 0.01])
def test_the_constant_of_the_selection_is_tight(rho: float) -> None:
    scale = selection_scale(rho, 1)
    p, q = softmax(np.array([0, 0]), scale), softmax(np.array([1, -1]), scale)
    assert renyi(p, q, 2.0) >= 0.95 * 2 * rho
    too_small = softmax(np.array([1, -1]), scale * 0.9)
    assert renyi(p, too_small, 2.0) > 2 * rho  # a scale only 10 % smaller costs more than is charged
