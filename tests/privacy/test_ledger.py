"""The ledger: exact sums, no overdraft, and strategies that never ask for one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pointillist.data.neighbours import Relation
from pointillist.errors import BudgetError, InputError
from pointillist.framework import Draw, Log, Measure, Select, most_rounds
from pointillist.privacy.budget import Budget
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Entry, Ledger, minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.scores import MaxError, SignedError
from pointillist.queries.candidates import Single, Whole
from pointillist.queries.intervals import Intervals
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.strategies import MeasureAll, Rounds, SelectEvenly, SelectGrowing, Then, growing_cost, select_share

positive = st.floats(1e-12, 1e6)

QUERIES = (Marginal((0,), (4,)), Product((0,), (Intervals.prefixes(4),)), Product((0, 1), (Intervals.prefixes(4),) * 2))
"""Of different sensitivities."""


def entry(rho: float, label: str = "measurement") -> Entry:
    return Entry(label, "discrete Gaussian", rho, 1.0, 1.0)


def ledger() -> Ledger:
    return Ledger(Budget(1.0, 1e-9))


def test_charges_add_up() -> None:
    book = ledger()
    part = split(book.limit, 4)
    for done in range(4):
        book.charge(entry(part))
        assert len(book.entries) == done + 1
        assert Fraction(book.spent) >= Fraction(part) * (done + 1)
    assert book.spent <= book.limit


def test_an_overdraft_is_refused_and_changes_nothing() -> None:
    book = ledger()
    book.charge(entry(book.limit / 2))
    before = book.entries, book.spent, book.left
    with pytest.raises(BudgetError, match=r"selection must cost at most the rho that is left .* the ledger is unch"):
        book.charge(entry(book.left * (1 + 1e-12), "selection"))
    assert (book.entries, book.spent, book.left) == before
    book.charge(entry(book.left))  # and the rest can still be spent
    with pytest.raises(BudgetError):
        book.charge(entry(5e-324))  # but not the smallest number more


def test_several_charges_are_booked_together_or_not_at_all() -> None:
    book = ledger()
    part = book.limit * 0.4
    book.charge(entry(part), entry(part, "selection"))
    assert [one.label for one in book.entries] == ["measurement", "selection"]
    before = book.entries, book.spent, book.left
    with pytest.raises(BudgetError, match="the ledger is unchanged"):
        book.charge(entry(book.left / 2), entry(book.left / 2), entry(book.left / 2))  # the first two would fit
    with pytest.raises(ValueError, match="finite and not negative"):
        book.charge(entry(book.left / 2), entry(math.nan))
    assert (book.entries, book.spent, book.left) == before
    book.charge()
    assert (book.entries, book.spent, book.left) == before
    book.charge(*[entry(split(book.left, 3))] * 3)
    assert len(book.entries) == 5


def test_a_sum_that_floats_would_hide_is_refused() -> None:
    book = ledger()
    book.charge(entry(book.limit))
    tiny = book.limit * 1e-18
    assert book.limit + tiny == book.limit  # in floating point nothing would be added
    with pytest.raises(BudgetError):
        book.charge(entry(tiny))


@pytest.mark.parametrize("rho", [-1e-9, -math.inf, math.inf, math.nan])
def test_charges_that_are_no_cost_are_refused(rho: float) -> None:
    book = ledger()
    with pytest.raises(ValueError, match="finite and not negative"):
        book.charge(entry(rho))
    assert book.entries == ()
    assert book.spent == 0


@given(positive, st.integers(1, 10**6))
def test_split_never_overdraws_and_wastes_nothing(rho: float, parts: int) -> None:
    share = split(rho, parts)
    assert Fraction(share) * parts <= Fraction(rho)
    assert Fraction(math.nextafter(share, math.inf)) * parts > Fraction(rho)


@given(positive, st.floats(0, 1))
def test_minus_never_overdraws_and_wastes_nothing(rho: float, fraction: float) -> None:
    part = rho * fraction
    rest = minus(rho, part)
    assert rest >= 0
    assert Fraction(part) + Fraction(rest) <= Fraction(rho)
    assert Fraction(part) + Fraction(math.nextafter(rest, math.inf)) > Fraction(rho)


TINY, HUGE = 5e-324, 1.7976931348623157e308
anything = st.one_of(
    st.floats(0, HUGE), st.floats(0, 1e-300), st.integers(0, 100).map(lambda n: n * TINY),
    st.sampled_from([0.0, TINY, 2.0**-1022, math.nextafter(2.0**-1022, 0), 1.0, math.nextafter(1.0, 0), HUGE]),
)  # fmt: skip
"""Denormal numbers, huge ones, and those around a power of two."""


def is_largest(found: float, fits: Callable[[Fraction], bool]) -> bool:
    above = math.nextafter(found, math.inf)
    return fits(Fraction(found)) and (above == math.inf or not fits(Fraction(above)))


@given(anything, st.one_of(st.integers(1, 10), st.integers(1, 2**70), st.sampled_from([2**53 + 1, 10**30, 10**400])))
def test_split_is_exact_for_tiny_and_huge_numbers(rho: float, parts: int) -> None:
    share = split(rho, parts)
    assert math.copysign(1, share) == 1
    assert is_largest(share, lambda x: x * parts <= Fraction(rho))


@given(anything, anything)
def test_minus_is_exact_for_tiny_and_huge_numbers(rho: float, part: float) -> None:
    rest = minus(rho, part)
    assert rest != 0 or math.copysign(1, rest) == 1
    assert is_largest(rest, lambda x: Fraction(part) + x <= Fraction(rho))
    assert rest == minus(rho, Fraction(part))


@given(anything, st.lists(anything, max_size=5))
def test_minus_is_exact_for_sums_that_no_double_holds(rho: float, parts: list[float]) -> None:
    total = sum(map(Fraction, parts), Fraction(0))
    assume(total <= Fraction(rho))
    assert is_largest(minus(rho, total), lambda x: total + x <= Fraction(rho))


@pytest.mark.parametrize("wrong", [lambda rho, part: rho - part, lambda rho, part: math.nextafter(rho - part, 0)])
def test_a_difference_that_is_not_exact_is_found(wrong: Callable[[float, float], float]) -> None:
    """Rounding to the nearest is too much for some numbers, and rounding down always is too little for others."""
    pairs = [(1.0, 2.0**-54), (1.0, 0.25), (0.3, 0.1), (HUGE, 1.0)]
    assert not all(is_largest(wrong(*p), lambda x, p=p: Fraction(p[1]) + x <= Fraction(p[0])) for p in pairs)


@given(st.lists(st.floats(0, 1e-3), max_size=30))
def test_left_and_spent_are_rounded_to_the_safe_side(charges: list[float]) -> None:
    book = ledger()
    exact = Fraction(0)
    for rho in charges:
        if exact + Fraction(rho) <= Fraction(book.limit):
            exact += Fraction(rho)
            book.charge(entry(rho))
    assert Fraction(book.spent) >= exact
    assert exact + Fraction(book.left) <= Fraction(book.limit)
    assert book.left >= 0


@given(
    st.floats(0.01, 20), st.sampled_from([1e-12, 1e-9, 1e-5]), st.integers(1, 300), st.integers(1, 7),
    st.floats(0.01, 0.99), st.floats(0, 0.1),
)  # fmt: skip
def test_a_strategy_of_even_rounds_spends_all_and_no_more(
    epsilon: float, delta: float, rounds: int, picks: int, alpha: float, before: float
) -> None:
    book = Ledger(Budget(epsilon, delta))
    book.charge(entry(book.limit * before, "number of rows"))
    facts = Facts(100, book.left)
    strategy = SelectEvenly(Whole(QUERIES), MaxError(), Rounds(rounds), picks, alpha)
    exact = Fraction(book.limit * before)
    t = 0
    while (step := strategy.step(t, facts, Log(facts), None, None)) is not None:
        assert isinstance(step, Select)
        for _ in range(step.picks):
            book.charge(entry(step.select_rho, "selection"), entry(step.measure_rho))
            exact += Fraction(step.select_rho) + Fraction(step.measure_rho)
        assert step.select_rho / (step.select_rho + step.measure_rho) == pytest.approx(select_share(alpha))
        t += 1
    assert t == rounds == most_rounds(strategy, facts)
    assert exact <= Fraction(book.limit)
    assert exact >= Fraction(book.limit) * Fraction(1 - 1e-12)


@given(st.floats(0.1, 20), st.floats(0.1, 10), st.integers(1, 60), st.integers(100, 10**6), st.integers(2, 200))
def test_a_strategy_of_growing_rounds_stops_before_an_overdraft(
    epsilon: float, eta: float, picks: int, total: int, most: int
) -> None:
    book = Ledger(Budget(epsilon, 1e-9))
    strategy, facts = SelectGrowing(Single(QUERIES), SignedError(), eta, picks, most), Facts(total, book.limit)
    try:
        rounds = most_rounds(strategy, facts)
    except InputError:
        assert Fraction(growing_cost(eta, 1, total)) * picks > Fraction(book.limit)  # not one paid round would fit
        return
    t = 0
    while (step := strategy.step(t, facts, Log(facts), None, None)) is not None:
        assert isinstance(step, Draw if t == 0 else Select)  # the first round is drawn at random, for free
        assert step.picks == picks
        if isinstance(step, Select):
            assert step.measure_rho == 0
            assert step.select_rho == growing_cost(eta, t, total)
            for _ in range(step.picks):
                book.charge(entry(step.select_rho, "selection"))
        t += 1
    assert t == rounds
    assert t == most or Fraction(growing_cost(eta, t, total)) * picks > Fraction(book.limit) - Fraction(book.spent)


@given(st.floats(0.01, 20), st.floats(0.01, 0.99), st.integers(1, 50), st.integers(1, 7), st.sampled_from(Relation))
def test_a_strategy_of_two_parts_spends_all_and_no_more(
    epsilon: float, share: float, rounds: int, picks: int, relation: Relation
) -> None:
    book = Ledger(Budget(epsilon, 1e-9, relation))
    facts = Facts(100, book.left, relation)
    strategy = Then(share, MeasureAll(QUERIES), SelectEvenly(Whole(QUERIES), MaxError(), Rounds(rounds), picks))
    t, exact = 0, Fraction(0)
    while (step := strategy.step(t, facts, Log(facts), None, None)) is not None:
        if isinstance(step, Measure):
            assert t == 0
            assert [queries for queries, _ in step.asked] == list(QUERIES)
            charges = [entry(rho) for _, rho in step.asked]
        else:
            assert isinstance(step, Select)
            charges = [entry(step.select_rho, "selection"), entry(step.measure_rho)] * step.picks
        book.charge(*charges)
        exact += sum(Fraction(charge.rho) for charge in charges)
        if t == 0:
            assert float(exact) == pytest.approx(share * book.limit)
        t += 1
    assert t == 1 + rounds == most_rounds(strategy, facts)
    assert Fraction(book.limit) * Fraction(1 - 1e-12) <= exact <= Fraction(book.limit)


@pytest.mark.parametrize("relation", list(Relation))
def test_an_outline_states_the_noise_that_the_rounds_will_have(relation: Relation) -> None:
    """The least and the largest of it, for queries of different sensitivities."""
    facts = Facts(100, 0.1, relation)
    squares = {queries.sensitivity(relation).l2_squared for queries in QUERIES}
    assert len(squares) == 3
    strategy = MeasureAll(QUERIES)
    (phase,) = strategy.outline(facts)
    step = strategy.step(0, facts, Log(facts), None, None)
    assert isinstance(step, Measure)
    scales = [gaussian_scale(rho, queries.sensitivity(relation).l2_squared) for queries, rho in step.asked]
    assert phase.noise == (min(scales), max(scales))
    assert not phase.selects
    even = SelectEvenly(Whole(QUERIES), MaxError(), Rounds(2))
    (phase,) = even.outline(facts)
    select = even.step(0, facts, Log(facts), None, None)
    assert isinstance(select, Select)
    assert phase.selects
    assert phase.noise is not None
    scales = [gaussian_scale(select.measure_rho, square) for square in squares]
    assert phase.noise[0] <= min(scales)
    assert phase.noise[1] == max(scales)


def test_the_statement_can_be_read() -> None:
    book = Ledger(Budget(1.0, 1e-9, Relation.REPLACE))
    book.charge(Entry("selection", "exponential mechanism", 0.001, 1, 22.4))
    for _ in range(2):
        book.charge(entry(0.002))
    text = book.statement(1234)
    assert text.startswith("(1, 1e-09)-differential privacy, relation replace: two tables are neighbours if")
    assert "(n = 1,234)" in text
    assert "1 x exponential mechanism: 0.001" in text
    assert "2 x discrete Gaussian: 0.004" in text
    assert "spent 0.005" in text


def test_the_statement_hides_a_private_n() -> None:
    text = Ledger(Budget(1.0, 1e-9, Relation.ADD_REMOVE)).statement(None)
    assert "relation add-remove" in text
    assert "n =" not in text


WARNING = "so it allows the values of some person to be published."


@pytest.mark.parametrize(
    ("delta", "n", "warned"),
    [(1e-6, 999_999, False), (1e-6, 1_000_000, True), (1e-6, 10**7, True), (0.25, 3, False), (0.25, 4, True)],
)
def test_the_statement_warns_of_a_delta_that_is_not_below_one_over_n(delta: float, n: int, warned: bool) -> None:
    assert (WARNING in Ledger(Budget(1.0, delta)).statement(n)) == warned
    private = Ledger(Budget(1.0, delta, Relation.ADD_REMOVE))
    assert (WARNING in private.statement(None, n)) == warned
    assert WARNING not in private.statement(None)
    if warned:
        assert f"delta is not below 1/n for the noisy number of rows ({n:,}), so" in private.statement(None, n)
        assert "delta is not below 1/n, so" in Ledger(Budget(1.0, delta)).statement(n, 7)


def test_a_public_n_decides_where_both_are_given() -> None:
    assert WARNING not in Ledger(Budget(1.0, 1e-3)).statement(10, 10**6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0000004, 1e-9), (1.0, 1.0049e-9), (2.3456784, 4.1914e-10)])
def test_the_statement_never_promises_more_than_is_kept(epsilon: float, delta: float) -> None:
    printed = Ledger(Budget(epsilon, delta)).statement(None).split(")")[0].strip("(").split(",")
    assert float(printed[0]) >= epsilon
    assert float(printed[1]) >= delta


def test_entries_are_plain_data() -> None:
    book = ledger()
    book.charge(entry(0.001))
    assert [one.to_dict() for one in book.entries] == [
        {"label": "measurement", "mechanism": "discrete Gaussian", "rho": 0.001, "sensitivity": 1.0, "scale": 1.0}
    ]
