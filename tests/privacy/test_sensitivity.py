"""Sensitivities by brute force: every neighbour of small tables, both relations, every kind of queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.brute_force import Rows, indicators, records_of, true_sensitivity

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.sources import count_batches
from pointillist.privacy.mechanisms import selection_scale
from pointillist.privacy.scores import MaxError, ScoreRule, SignedError, UsefulError
from pointillist.queries import cells, enumerating, product
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.candidates import Candidates, Grouping, Single, Whole
from pointillist.queries.cells import Cells
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product

RELATIONS = tuple(Relation)
WHOLE_RULES: tuple[ScoreRule, ...] = (MaxError(),)
SINGLE_RULES: tuple[ScoreRule, ...] = (MaxError(), MaxError(base_measure=True), SignedError())
RULES = [(Grouping.MARGINAL, rule) for rule in WHOLE_RULES] + [(Grouping.QUERY, rule) for rule in SINGLE_RULES]


def ranges(size: int) -> list[tuple[int, int]]:
    """Every interval of the codes of an attribute."""
    return [(low, high) for low in range(size) for high in range(low + 1, size + 1)]


@st.composite
def domains(draw: st.DrawFn, most: int = 3) -> Domain:
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    return Domain(tuple("abc"[: len(sizes)]), tuple(sizes))


@st.composite
def factors(draw: st.DrawFn, size: int) -> Intervals:
    """Values, prefixes, or any intervals: they may overlap, repeat, and leave codes out."""
    some = st.lists(st.sampled_from(ranges(size)), min_size=1, max_size=4).map(lambda b: Intervals(size, tuple(b)))
    return draw(st.one_of(st.sampled_from([Intervals.values(size), Intervals.prefixes(size)]), some))


def scopes(domain: Domain) -> st.SearchStrategy[tuple[int, ...]]:
    positions = range(len(domain))
    return st.sampled_from([s for k in range(1, len(domain) + 1) for s in itertools.combinations(positions, k)])


@st.composite
def whole_queries(draw: st.DrawFn, domain: Domain) -> Queries:
    """A marginal or a product."""
    scope = draw(scopes(domain))
    if draw(st.booleans()):
        return Marginal.of(domain, scope)
    return Product(scope, tuple(draw(factors(domain.sizes[i])) for i in scope))


@st.composite
def some_queries(draw: st.DrawFn, domain: Domain) -> Queries:
    """A marginal or a product, whole or in part: one cell, several or all, in any order."""
    whole = draw(whole_queries(domain))
    if draw(st.booleans()):
        return whole
    most = 1 if draw(st.booleans()) else whole.size
    return whole.take(draw(st.lists(st.integers(0, whole.size - 1), min_size=1, max_size=most, unique=True)))


@st.composite
def lists_of_queries(draw: st.DrawFn, domain: Domain) -> tuple[Queries, ...]:
    return tuple(draw(st.lists(some_queries(domain), min_size=1, max_size=4, unique=True)))


@st.composite
def tables(draw: st.DrawFn, domain: Domain) -> Rows:
    record = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes))
    return tuple(draw(st.lists(record, min_size=1, max_size=5)))


def neighbours(rows: Rows, domain: Domain, relation: Relation) -> Iterator[Rows]:
    records = records_of(domain)
    if relation is Relation.ADD_REMOVE:
        yield from ((*rows, record) for record in records)
        yield from ((*rows[:i], *rows[i + 1 :]) for i in range(len(rows)))
    else:
        for i, record in itertools.product(range(len(rows)), records):
            yield (*rows[:i], record, *rows[i + 1 :])


def counts_of(rows: Rows, domain: Domain, queries: Sequence[Queries]) -> np.ndarray:
    """The counts as the curator makes them: by way of marginals."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(domain)).T
    counted = count_batches([list(columns)], domain, [one.scope for one in queries])
    return np.concatenate([one.of_marginal(table) for one, table in zip(queries, counted, strict=True)])


def is_above(claimed: Sensitivity, true: Sensitivity) -> bool:
    return claimed.single >= true.single and claimed.l1 >= true.l1 and claimed.l2_squared >= true.l2_squared


def changes_for_some(queries: Queries, domain: Domain) -> bool:
    """Whether some query holds for one record and not for another."""
    return bool(np.ptp(indicators(queries, domain), axis=0).any())


def check_sensitivity(queries: Queries, domain: Domain, relation: Relation) -> None:
    claimed, true = queries.sensitivity(relation), true_sensitivity(queries, domain, relation)
    assert claimed.exact
    assert claimed == true


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_sensitivities_are_those_of_brute_force(relation: Relation, data: st.DataObject) -> None:
    domain = data.draw(domains())
    check_sensitivity(data.draw(some_queries(domain)), domain, relation)


WIDE = Domain(("a", "b", "c"), (5, 4, 2))
"""Large enough for overlaps that differ from code to code."""


def kinds() -> Iterator[tuple[str, Queries]]:
    every, gaps = Intervals(5, tuple(ranges(5))), Intervals(5, ((1, 3), (2, 4), (2, 3)))
    far = Intervals(4, ((0, 2), (0, 1), (3, 4), (3, 4)))
    yield "marginal", Marginal.of(WIDE, ("a", "b"))
    yield "prefixes", Product.of(WIDE, {"a": "prefixes"})
    yield "values", Product.of(WIDE, {"a": "values", "c": "values"})
    yield "prefixes of two", Product.of(WIDE, {"a": "prefixes", "b": "prefixes"})
    yield "prefixes of three", Product.of(WIDE, {"a": "prefixes", "b": "prefixes", "c": "prefixes"})
    yield "prefixes and values", Product.of(WIDE, {"a": "prefixes", "b": "values", "c": "prefixes"})
    yield "every range", Product.of(WIDE, {"a": every})
    yield "every range and prefixes", Product.of(WIDE, {"a": every, "b": "prefixes"})
    yield "codes in no interval", Product.of(WIDE, {"a": gaps})
    yield "codes in no interval of two", Product.of(WIDE, {"a": gaps, "b": far})
    yield "codes in no interval and values", Product.of(WIDE, {"a": "values", "b": far, "c": "prefixes"})
    yield "a partition into ranges", Product.of(WIDE, {"a": Intervals(5, ((0, 2), (2, 5))), "c": "values"})
    yield "what always holds", Product.of(WIDE, {"a": Intervals(5, ((0, 5), (0, 5))), "c": Intervals(2, ((0, 2),))})


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("queries", [pytest.param(queries, id=name) for name, queries in kinds()])
def test_sensitivities_of_larger_queries_are_those_of_brute_force(queries: Queries, relation: Relation) -> None:
    check_sensitivity(queries, WIDE, relation)
    rng = np.random.default_rng(0)
    for size in {1, 2, queries.size // 2 or 1, queries.size - 1 or 1, queries.size}:
        if size <= queries.size:
            taken = rng.choice(queries.size, size, replace=False).tolist()
            check_sensitivity(queries.take(taken), WIDE, relation)
            check_sensitivity(queries.take(taken).take(range(size)), WIDE, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("queries", [pytest.param(queries, id=name) for name, queries in kinds()])
def test_bounds_that_are_not_exact_are_above_the_truth(
    monkeypatch: pytest.MonkeyPatch, queries: Queries, relation: Relation
) -> None:
    """Where there is too much to compare, sensitivities are upper bounds, and say so."""
    monkeypatch.setattr(product, "_most_changed", product._most_changed.__wrapped__)  # nothing from the cache
    for most in (4, 40):  # some attributes are compared, the others are not
        monkeypatch.setattr(product, "MOST_PAIRS", most)
        assert is_above(queries.sensitivity(relation), true_sensitivity(queries, WIDE, relation))
    monkeypatch.setattr(product, "MOST_PAIRS", 0)
    by_enumeration = enumerating.sensitivity_by_enumeration.__wrapped__  # nothing from the cache
    monkeypatch.setattr(cells, "sensitivity_by_enumeration", by_enumeration)
    monkeypatch.setattr(enumerating, "MOST_PATTERNS", 0)
    whole = queries.sensitivity(relation)
    assert is_above(whole, true_sensitivity(queries, WIDE, relation))
    assert whole.exact == (isinstance(queries, Marginal) or relation is Relation.ADD_REMOVE)
    several = queries.take(range(0, queries.size, 2))
    if several.size > 1:
        some = several.sensitivity(relation)
        assert is_above(some, true_sensitivity(several, WIDE, relation))
        assert some.exact == (queries.partition or relation is Relation.ADD_REMOVE)
        monkeypatch.setattr(enumerating, "MOST_ENUMERATED", 0)
        bound = several.sensitivity(relation)
        assert is_above(bound, some)
        assert bound.exact == queries.partition


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_change_by_the_record_alone(relation: Relation, data: st.DataObject) -> None:
    """Counts are linear in the rows: what one person changes is the same in every table, so that brute force over the
    records covers all tables."""
    domain = data.draw(domains())
    queries = data.draw(some_queries(domain))
    rows = data.draw(tables(domain))
    held = dict(zip(records_of(domain), indicators(queries, domain), strict=True))
    counts = counts_of(rows, domain, [queries])
    np.testing.assert_array_equal(counts, sum(held[row] for row in rows))
    for other in neighbours(rows, domain, relation):
        gone = next((row for row in rows if rows.count(row) > other.count(row)), None)
        come = next((row for row in other if other.count(row) > rows.count(row)), None)
        change = (0 if come is None else held[come]) - (0 if gone is None else held[gone])
        np.testing.assert_array_equal(counts_of(other, domain, [queries]) - counts, np.zeros(len(counts)) + change)


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grouping", list(Grouping))
def test_the_l2_sensitivity_of_a_candidate_is_an_upper_bound_that_is_attained(
    grouping: Grouping, relation: Relation, data: st.DataObject
) -> None:
    domain = data.draw(domains())
    queries = data.draw(lists_of_queries(domain))
    candidates = grouping.candidates(queries)
    rows = data.draw(tables(domain))
    counts = counts_of(rows, domain, queries)
    worst = np.zeros(len(candidates), np.int64)
    for other in neighbours(rows, domain, relation):
        squares = (counts_of(other, domain, queries) - counts) ** 2
        worst = np.maximum(worst, candidates.sums(squares))
    asked = [candidates[number] for number in range(len(candidates))]
    own = np.array([one.sensitivity(relation).l2_squared for one in asked])
    bound = candidates.sensitivity(relation).l2_squared
    assert np.all(worst <= own)
    assert np.all(own <= bound)
    if relation is Relation.ADD_REMOVE:  # any record may be added, so that the worst one is among the neighbours
        np.testing.assert_array_equal(worst, own)
        assert worst.max() == bound
    several = [isinstance(one, Marginal) and one.size > 1 for one in queries]
    if grouping is Grouping.MARGINAL:  # a replaced row leaves its cell for another one, whatever the table is
        np.testing.assert_array_equal(worst[several], own[several])
        if all(several):
            assert worst.max() == bound
    elif any(several):
        assert worst.max() == bound


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_candidates_state_the_largest_sensitivity_of_any_of_them(relation: Relation, data: st.DataObject) -> None:
    domain = data.draw(domains())
    queries = data.draw(lists_of_queries(domain))
    true = [true_sensitivity(one, domain, relation) for one in queries]
    claimed = Whole(queries).sensitivity(relation)
    assert is_above(claimed, Sensitivity.largest(true))
    if not any(isinstance(one, Cells) and one.size == 1 for one in queries):
        assert claimed == Sensitivity.largest(true)
    single = Single(queries)
    one_by_one = [true_sensitivity(single[number], domain, relation) for number in range(len(single))]
    assert is_above(single.sensitivity(relation), Sensitivity.largest(one_by_one))
    assert single.sensitivity(relation) == Sensitivity(1, 1, 1)
    if relation is Relation.ADD_REMOVE or any(changes_for_some(one, domain) for one in queries):
        assert Sensitivity.largest(one_by_one) == Sensitivity(1, 1, 1)


def worst_change(
    rule: ScoreRule, candidates: Candidates, domain: Domain, rows: Rows, relation: Relation, estimate: np.ndarray,
    scale: float,
) -> int:  # fmt: skip
    """By how much one person changes a score, at most; also checks the kind and number of the scores."""
    scores = rule.scores(candidates, counts_of(rows, domain, candidates.queries), estimate, scale)
    assert scores.dtype == np.int64
    assert scores.shape == (len(candidates) * rule.sides,)
    worst = 0
    for other in neighbours(rows, domain, relation):
        counts = counts_of(other, domain, candidates.queries)
        worst = max(worst, int(np.abs(rule.scores(candidates, counts, estimate, scale) - scores).max()))
    return worst


def estimates(size: int, low: int = -3, high: int = 12) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.integers(low, high), min_size=size, max_size=size).map(lambda e: np.array(e, dtype=np.int64))


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("grouping", "rule"), RULES, ids=repr)
def test_scores_change_by_at_most_their_sensitivity(
    grouping: Grouping, rule: ScoreRule, relation: Relation, data: st.DataObject
) -> None:
    domain = data.draw(domains())
    queries = data.draw(lists_of_queries(domain))
    candidates = grouping.candidates(queries)
    rows = data.draw(tables(domain))
    scale = data.draw(st.floats(0.01, 1e6))
    worst = worst_change(rule, candidates, domain, rows, relation, data.draw(estimates(candidates.size)), scale)
    bound = rule.sensitivity(candidates, relation)
    assert worst <= bound
    if grouping is Grouping.QUERY and relation is Relation.ADD_REMOVE:
        assert worst == bound
    several = any(isinstance(one, Marginal) and one.size > 1 for one in queries)
    if grouping is Grouping.QUERY and several:  # a replaced row leaves its cell for another one
        assert worst == bound


@given(st.data())
@pytest.mark.parametrize("relation", RELATIONS)
def test_useful_errors_change_by_at_most_their_sensitivity(relation: Relation, data: st.DataObject) -> None:
    domain = data.draw(domains())
    candidates = Whole(data.draw(lists_of_queries(domain)))
    rows = data.draw(tables(domain))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(candidates), max_size=len(candidates)))
    rule = UsefulError(tuple(weights), data.draw(st.floats(0, 10)))
    scale = data.draw(st.floats(0.01, 1e30))
    flat = st.sampled_from([-3, 12]).map(lambda value: np.full(candidates.size, value))
    estimate = data.draw(st.one_of(flat, estimates(candidates.size)))
    worst = worst_change(rule, candidates, domain, rows, relation, estimate, scale)
    bound = rule.sensitivity(candidates, relation)
    assert worst <= bound
    one_sided = (estimate == -3).all() or (estimate == 12).all()  # all errors have one sign: nothing cancels
    if one_sided and relation is Relation.ADD_REMOVE:
        overlaps = [true_sensitivity(one, domain, relation).l1 for one in candidates.queries]
        assert worst == max(w * overlap for w, overlap in zip(weights, overlaps, strict=True))
        if len(set(weights)) == 1:
            assert worst == bound


PAIR = Domain(("a", "b"), (2, 3))
OVER_BOTH = {"marginal": Marginal.of(PAIR, (0, 1)), "product": Product.of(PAIR, {"a": "prefixes", "b": "values"})}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", OVER_BOTH)
def test_the_sensitivity_of_useful_errors_is_attained(kind: str, relation: Relation) -> None:
    domain, queries = PAIR, OVER_BOTH[kind]
    candidates = Whole((Marginal.of(domain, (0,)), queries))
    rule = UsefulError((1, 4), 0.5)
    worst = 0
    for rows in (((0, 0),), ((0, 1),), ((1, 2),)):
        for other in records_of(domain):  # replacing the row mends all of its errors
            estimate = counts_of((other,), domain, candidates.queries)
            worst = max(worst, worst_change(rule, candidates, domain, rows, relation, estimate, 3.0))
    assert worst == rule.sensitivity(candidates, relation)
    assert worst == 4 * true_sensitivity(queries, domain, relation).l1


def test_a_useful_error_is_what_noise_would_not_leave() -> None:
    candidates = Whole((Marginal.of(PAIR, (0,)), Marginal.of(PAIR, (0, 1))))
    counts, estimate = np.array([10, 0, 3, 3, 4, 0, 0, 0]), np.array([4, 6, 0, 0, 5, 5, 0, 0])
    scores = UsefulError((2, 3), 0.5).scores(candidates, counts, estimate, 3.0)
    expected = [2 * (12 - round(np.sqrt(2 / np.pi) * 1.5 * 2)), 3 * (12 - round(np.sqrt(2 / np.pi) * 1.5 * 6))]
    assert scores.tolist() == expected


@given(st.data())
@pytest.mark.parametrize("grouping", list(Grouping))
def test_scores_are_the_largest_error_of_each_candidate(grouping: Grouping, data: st.DataObject) -> None:
    domain = data.draw(domains())
    queries = data.draw(lists_of_queries(domain))
    candidates = grouping.candidates(queries)
    rows = data.draw(tables(domain))
    estimate = data.draw(estimates(candidates.size, 0, 5))
    scores = MaxError().scores(candidates, counts_of(rows, domain, queries), estimate, 1.0)
    asked = [candidates[number] for number in range(len(candidates))]
    parts = np.split(estimate, np.cumsum([one.size for one in asked])[:-1])
    expected = [np.abs(counts_of(rows, domain, [one]) - part).max() for one, part in zip(asked, parts, strict=True)]
    np.testing.assert_array_equal(scores, expected)


@given(st.data())
def test_the_base_measure_is_the_same_for_every_table(data: st.DataObject) -> None:
    domain = data.draw(domains())
    candidates = Single(data.draw(lists_of_queries(domain)))
    scale = data.draw(st.floats(0.01, 1e6))
    estimate = data.draw(estimates(candidates.size, 0, 9))
    offsets = []
    for _ in range(2):
        counts = counts_of(data.draw(tables(domain)), domain, candidates.queries)
        with_measure, without = (MaxError(m).scores(candidates, counts, estimate, scale) for m in (True, False))
        offsets.append(with_measure - without)
    np.testing.assert_array_equal(*offsets)
    np.testing.assert_allclose(offsets[0], scale * np.log(estimate + 1.0), atol=0.5)


@pytest.mark.parametrize("scale", [1e17, 1e19, 1e30])
def test_a_huge_scale_does_not_wrap_the_scores_around(scale: float) -> None:
    """The offset of the base measure must not overflow: a wrapped score would jump by far more than 1."""
    candidates = Single((Marginal((0,), (3,)),))
    estimate = np.array([0, 1_000, 10**12])
    scores = [MaxError(True).scores(candidates, estimate + c, estimate, scale) for c in (0, 2_000)]
    np.testing.assert_array_equal(scores[1] - scores[0], [2_000] * 3)
    assert np.all(np.diff(scores[0]) >= 0)


@given(st.data())
def test_the_number_of_rows_changes_by_at_most_one(data: st.DataObject) -> None:
    domain = data.draw(domains())
    rows = data.draw(tables(domain))
    changes = {len(other) - len(rows) for other in neighbours(rows, domain, Relation.ADD_REMOVE)}
    assert changes == {-1, 1}
    assert {len(other) for other in neighbours(rows, domain, Relation.REPLACE)} == {len(rows)}


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
