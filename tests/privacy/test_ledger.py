"""The ledger: exact sums, no overdraft, and schedules that never ask for one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.data.neighbours import Relation
from pointillist.errors import BudgetError, InputError
from pointillist.privacy.budget import Budget
from pointillist.privacy.ledger import Entry, Ledger, minus, split
from pointillist.privacy.schedule import EvenSchedule, GrowingSchedule, select_share

positive = st.floats(1e-12, 1e6)


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
def test_an_even_schedule_spends_all_and_no_more(
    epsilon: float, delta: float, rounds: int, picks: int, alpha: float, before: float
) -> None:
    book = Ledger(Budget(epsilon, delta))
    book.charge(entry(book.limit * before, "number of rows"))
    schedule, rho = EvenSchedule(rounds, picks, alpha), book.left
    exact = Fraction(book.limit * before)
    t = 0
    while (spend := schedule.spend(t, rho, 100)) is not None:
        for _ in range(spend.picks):
            book.charge(entry(spend.select_rho, "selection"))
            book.charge(entry(spend.measure_rho))
            exact += Fraction(spend.select_rho) + Fraction(spend.measure_rho)
        assert spend.select_rho / (spend.select_rho + spend.measure_rho) == pytest.approx(select_share(alpha))
        t += 1
    assert t == rounds
    assert exact <= Fraction(book.limit)
    assert exact >= Fraction(book.limit) * Fraction(1 - 1e-12)


@given(st.floats(0.1, 20), st.floats(0.1, 10), st.integers(1, 60), st.integers(100, 10**6), st.integers(2, 200))
def test_a_growing_schedule_stops_before_an_overdraft(
    epsilon: float, eta: float, picks: int, total: int, most: int
) -> None:
    book = Ledger(Budget(epsilon, 1e-9))
    schedule, rho = GrowingSchedule(eta, picks, most), book.limit
    try:
        rounds = schedule.count(rho, total)
    except InputError:
        assert Fraction(schedule.cost(1, total)) * picks > Fraction(rho)  # not one paid round would fit
        return
    t = 0
    while (spend := schedule.spend(t, rho, total)) is not None:
        assert spend.measure_rho == 0
        for _ in range(spend.picks):
            book.charge(entry(spend.select_rho or 0.0, "selection"))
        t += 1
    assert t == rounds
    assert t == most or Fraction(schedule.cost(t, total)) * picks > Fraction(book.limit) - Fraction(book.spent)


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


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0000004, 1e-9), (1.0, 1.0049e-9), (2.3456784, 4.1914e-10)])
def test_the_statement_never_promises_more_than_is_kept(epsilon: float, delta: float) -> None:
    printed = Ledger(Budget(epsilon, delta)).statement(None).split(")")[0].strip("(").split(",")
    assert float(printed[0]) >= epsilon
    assert float(printed[1]) >= delta


def test_entries_are_plain_data() -> None:
    book = ledger()
    book.charge(entry(0.001))
    assert book.to_list() == [
        {"label": "measurement", "mechanism": "discrete Gaussian", "rho": 0.001, "sensitivity": 1.0, "scale": 1.0}
    ]
