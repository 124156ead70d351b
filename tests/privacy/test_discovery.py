"""Values that nobody could list beforehand: thresholds that keep their delta, and a curator that charges first."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from pointillist.data.neighbours import Relation, Unit
from pointillist.data.schema import Categorical, Schema
from pointillist.errors import BudgetError
from pointillist.privacy.budget import Budget, rho_of
from pointillist.privacy.curator import DISCOVERY, Curator, Seek
from pointillist.privacy.gaussian import gaussian_rho_of
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import GAUSSIAN, Entry, Ledger
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import square_of_values
from pointillist.privacy.thresholds import log_shown, log_tail, threshold_of

SCHEMA = Schema((Categorical("a", (0, 1)),))
SIGMAS = [0.4, 1.0, 3.0, 7.5, 40.0, 400.0]


def pmf(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """The discrete Gaussian: whole numbers and their probabilities."""
    x = np.arange(-int(60 * sigma) - 60, int(60 * sigma) + 61)
    p = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
    return x, p / p.sum()


def exact_tail(t: int, sigma: float) -> float:
    x, p = pmf(sigma)
    return float(np.sum(p[x >= t][::-1]))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_bound_on_the_tail_is_never_below_the_truth_and_close_to_it(sigma: float) -> None:
    for t in range(-3, int(12 * sigma) + 12):
        exact = exact_tail(t, sigma)
        assert exact <= math.exp(log_tail(t, sigma)) * (1 + 1e-12) + 1e-300
        if sigma >= 3 and sigma + 1 <= t <= 10 * sigma:
            assert math.exp(log_tail(t, sigma)) <= 2 * exact


def compositions(m: int) -> Iterator[tuple[int, ...]]:
    """All ways in which m rows can have values: the counts of the different ones."""
    for k in range(1, m + 1):
        for cuts in itertools.combinations(range(1, m), k - 1):
            yield tuple(np.diff([0, *cuts, m]).tolist())


@pytest.mark.parametrize("m", [1, 2, 3, 6])
@pytest.mark.parametrize("sigma", [3.0, 7.5, 40.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_a_unit_alone_is_shown_with_a_probability_of_at_most_delta(m: int, sigma: float, delta: float) -> None:
    """Exactly, over all ways in which its rows can have values; and the next smaller threshold would be too small."""
    threshold = threshold_of(delta, sigma, m)
    tails = {c: exact_tail(threshold - c, sigma) for c in range(1, m + 1)}
    worst = max(-math.expm1(sum(math.log1p(-tails[c]) for c in counts)) for counts in compositions(m))
    assert worst <= delta
    assert worst >= delta / 6  # whole thresholds cost a part of it
    assert log_shown(threshold - 1, sigma, m) > math.log(delta)


@pytest.mark.parametrize("m", [1, 4, 1000])
def test_the_threshold_grows_with_less_delta_and_more_noise_and_is_above_the_rows_of_a_unit(m: int) -> None:
    thresholds = [[threshold_of(delta, sigma, m) for sigma in (1, 10, 100)] for delta in (1e-3, 1e-9, 1e-290)]
    assert np.all(np.diff(thresholds, axis=0) > 0)
    assert np.all(np.diff(thresholds, axis=1) > 0)
    assert np.min(thresholds) > m
    assert log_shown(m, 10.0, m) == 0.0
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta must be above 0"):
            threshold_of(delta, 1.0, m)


def test_a_noise_that_leaves_no_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no threshold"):
        threshold_of(1e-9, 1e19, 1)


# --- the sensitivity of the values that both tables have


def neighbours(relation: Relation, m: int) -> Iterator[tuple[str, str]]:
    """Pairs of small tables, as words: a letter is the value of a row."""
    for shared in itertools.product("ab", repeat=3):
        for one in itertools.product("abc", repeat=m):
            if relation is Relation.ADD_REMOVE:
                yield "".join(shared), "".join(shared + one)
            else:
                for other in itertools.product("abc", repeat=m):
                    yield "".join(shared + other), "".join(shared + one)


@pytest.mark.parametrize(("relation", "m"), [(Relation.REPLACE, 1), (Relation.ADD_REMOVE, 1), (Relation.ADD_REMOVE, 3)])
def test_the_counts_of_shared_values_change_by_their_sensitivity_at_most(relation: Relation, m: int) -> None:
    budget = Budget(1.0, 1e-9, relation, Unit("p", m) if m > 1 else None)
    found = []
    for first, second in neighbours(relation, m):
        before, after = Counter(first), Counter(second)
        shared = Counter(first[:3])
        found.append(sum((before[v] - after[v]) ** 2 for v in shared))
        for table in (before, after):  # what a table has alone is at most m rows
            assert sum(count for value, count in table.items() if value not in shared) <= m
    assert max(found) == square_of_values(budget)


@pytest.mark.parametrize(("relation", "m"), [(Relation.REPLACE, 1), (Relation.ADD_REMOVE, 1), (Relation.ADD_REMOVE, 2)])
@pytest.mark.parametrize("sigma", [3.0, 4.0])
def test_the_whole_mechanism_keeps_its_epsilon_and_delta(relation: Relation, m: int, sigma: float) -> None:
    """Exact hockey-stick divergences of discoveries on small tables, in both directions, against the proof's sum.

    The noisy counts of different values are independent, so that the privacy loss is a sum over the values: a value
    that is not shown is one outcome, with the probability of staying below the threshold.
    """
    budget = Budget(1.0, 1e-9, relation, Unit("p", m) if m > 1 else None)
    shown, epsilon = 1e-3, 0.9
    threshold = threshold_of(shown, sigma, m)
    rho = square_of_values(budget) / (2 * sigma**2)
    low, high = 1e-12, 0.5
    while high / low > 1.001:  # the smallest delta of the Gaussian account for this rho
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian_rho_of(epsilon, middle, 3.0) > rho else (middle, high)
    x, p = pmf(sigma)

    def outcomes(count: int) -> np.ndarray:
        """Of one value: below the threshold, then each noisy count; of a value that does not occur only the first."""
        if count == 0:
            return np.eye(1, 1 + len(x) + 40)[0]
        noisy = np.zeros(len(x) + 40)
        noisy[20 + count : 20 + count + len(x)] = p
        passed = np.arange(len(noisy)) + x[0] - 20 >= threshold
        return np.concatenate([[noisy[~passed].sum()], np.where(passed, noisy, 0.0)])

    worst = 0.0
    for first, second in neighbours(relation, m):
        before, after = Counter(first), Counter(second)
        changed = [v for v in "abc" if before[v] != after[v]]
        pairs = [(outcomes(before[v]), outcomes(after[v])) for v in changed]
        ps, qs = np.ones(1), np.ones(1)
        for one, other in pairs[:2]:
            keep = (one > 1e-13) | (other > 1e-13)
            ps, qs = np.outer(ps, one[keep]).ravel(), np.outer(qs, other[keep]).ravel()
        for left, right in ((ps, qs), (qs, ps)):
            worst = max(worst, float(np.maximum(left - math.exp(epsilon) * right, 0).sum()))
    assert worst <= high + shown + 1e-9
    assert worst >= shown / 20  # the threshold is felt


# --- the curator


class Open:
    """A source with a column of any values, which notes when it is read."""

    schema = SCHEMA

    def __init__(self, values: Sequence[str], unit: Unit | None = None) -> None:
        self._values = list(values)
        self.unit = unit
        self.read: list[str] = []

    @property
    def rows(self) -> int:
        self.read.append("rows")
        return len(self._values)

    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        return iter([[np.zeros(len(self._values), np.uint8)]])

    def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
        self.read.append(column)
        counts = Counter(self._values)
        return list(counts), np.array(list(counts.values()), np.int64)


class Blind:
    """Noise that ignores the counts."""

    description, private, state = "none", False, None

    def __init__(self, value: int) -> None:
        self.value = value
        self.asked: list[tuple[int, float, int]] = []

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        self.asked.append((len(counts), rho, sensitivity_squared))
        return np.full(counts.shape, self.value, np.int64)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        raise AssertionError("nothing is selected")


def ledger(shown: float = 1e-7, relation: Relation = Relation.REPLACE, unit: Unit | None = None) -> Ledger:
    return Ledger(Budget(1.0, 1e-6, relation, unit), None, shown)


def test_a_discovery_is_charged_in_rho_and_delta_before_the_source_is_read() -> None:
    source, book = Open(["x"] * 500 + ["y"]), ledger()
    seen: list[int] = []
    book.witness = lambda entries: seen.append(len(source.read))
    found = Curator(source, book, InsecureSeededNoise(0)).discover([Seek("v", book.limit / 2, 1e-7)])
    assert seen == [0]
    (entry,) = book.entries
    assert (entry.label, entry.mechanism, entry.delta) == (DISCOVERY, GAUSSIAN, 1e-7)
    assert entry.rho == book.limit / 2
    assert entry.sensitivity == math.sqrt(2)
    assert entry.scale == found[0].sigma == gaussian_scale(entry.rho, 2)
    assert found[0].values == ("x",)
    assert abs(found[0].counts[0] - 500) < 6 * entry.scale
    assert found[0].threshold == threshold_of(1e-7, entry.scale, 1)
    assert book.delta_spent == 1e-7
    assert book.delta_left == 0.0


def test_an_overdraft_in_rho_or_delta_reads_nothing_and_changes_nothing() -> None:
    source, book = Open(["x"] * 50), ledger()
    curator = Curator(source, book, InsecureSeededNoise(0))
    with pytest.raises(
        BudgetError, match=r"discovery must cost at most the delta that is left .* use .* a larger delta"
    ):
        curator.discover([Seek("v", book.limit / 2, 1.0000001e-7)])
    with pytest.raises(BudgetError, match="2 x discovery together must cost at most the delta that is left"):
        curator.discover([Seek("v", book.limit / 4, 6e-8)] * 2)
    with pytest.raises(BudgetError, match="the rho that is left"):
        curator.discover([Seek("v", book.limit * 1.01, 1e-8)])
    with pytest.raises(BudgetError, match="delta"):
        Curator(source, ledger(0.0), InsecureSeededNoise(0)).discover([Seek("v", book.limit / 2, 1e-12)])
    assert source.read == []
    assert book.unused
    assert book.delta_spent == 0.0


def test_what_is_kept_for_showing_values_is_missing_for_the_noise() -> None:
    budget = Budget(1.0, 1e-6)
    assert Ledger(budget, None, 4e-7).limit == rho_of(1.0, 6e-7) < Ledger(budget).limit
    assert Ledger(budget, 10.0, 4e-7).limit == gaussian_rho_of(1.0, 6e-7, 10.0)
    for shown in (-1e-9, 1e-6, 2e-6, math.nan):
        with pytest.raises(ValueError, match="the part of delta"):
            Ledger(budget, None, shown)
    with pytest.raises(ValueError, match="not negative, got delta"):
        ledger().charge(Entry(DISCOVERY, GAUSSIAN, 1e-6, 1.0, 1e4, -1e-9))


def test_the_statement_names_both() -> None:
    book = ledger(2.5e-7)
    book.charge(Entry(DISCOVERY, GAUSSIAN, 1e-4, 1.0, 100.0, 1e-7))
    lines = book.statement(100).splitlines()
    assert lines[0].startswith("(1, 1e-06)-differential privacy, relation replace")
    assert "Part of delta for showing a value that only one unit has: 2.5e-07, spent 1e-07." in lines
    assert "only one unit" not in ledger(0.0).statement(100)


def test_an_entry_without_delta_is_written_as_before() -> None:
    plain = Entry("measurement", GAUSSIAN, 1e-4, 1.0, 100.0)
    assert list(plain.to_dict()) == ["label", "mechanism", "rho", "sensitivity", "scale"]
    paid = Entry(DISCOVERY, GAUSSIAN, 1e-4, 1.0, 100.0, 1e-7)
    assert Entry(**paid.to_dict()) == paid
    assert Entry(**plain.to_dict()) == plain


def test_with_blind_noise_nothing_comes_out_but_what_the_noise_says() -> None:
    """Below the threshold nothing is shown, whatever the counts are; order and figures come from the noise alone."""
    tables = (["b"] * 1000 + ["a"], ["a"] * 1000 + ["b"], ["a", "b"])
    for value, shown in ((0, ()), (10**6, ("a", "b"))):
        found = [Curator(Open(t), ledger(), Blind(value)).discover([Seek("v", 1e-4, 1e-8)])[0] for t in tables]
        assert len(set(found)) == 1
        assert found[0].values == shown
        assert found[0].counts == (value,) * len(shown)


def test_noise_is_asked_for_at_the_sensitivity_of_the_relation_and_the_unit() -> None:
    unit = Unit("p", 3)
    cases = ((Relation.REPLACE, None, 2, 1), (Relation.ADD_REMOVE, None, 1, 1), (Relation.ADD_REMOVE, unit, 9, 3))
    for relation, bound, square, m in cases:
        noise, book = Blind(0), ledger(1e-7, relation, bound)
        (found,) = Curator(Open(["x", "y", "y"], bound), book, noise).discover([Seek("v", 1e-4, 1e-8)])
        assert noise.asked == [(2, 1e-4, square)]
        assert found.threshold == threshold_of(1e-8, gaussian_scale(1e-4, square), m)


def test_a_column_without_values_and_a_source_that_has_none() -> None:
    (found,) = Curator(Open([]), ledger(), InsecureSeededNoise(0)).discover([Seek("v", 1e-4, 1e-8)])
    assert found.values == found.counts == ()

    class Closed:
        schema, rows, unit = SCHEMA, 3, None

        def batches(self) -> Iterator[Sequence[np.ndarray]]:
            return iter([])

    book = ledger()
    with pytest.raises(ValueError, match="in a source that has them"):
        Curator(Closed(), book).discover([Seek("v", 1e-4, 1e-8)])
    assert book.unused


def test_a_source_that_counts_a_row_twice_is_refused() -> None:
    class Twice(Open):
        def values_of(self, column: str) -> tuple[list[str], np.ndarray]:
            return ["x", "y"], np.array([len(self._values)] * 2)

    with pytest.raises(ValueError, match="a row must have one value"):
        Curator(Twice(["x"] * 5), ledger(), InsecureSeededNoise(0)).discover([Seek("v", 1e-4, 1e-8)])


def test_the_gaussian_account_gives_a_discovery_no_less_than_its_least_noise() -> None:
    book = Ledger(Budget(8.0, 1e-3), 10.0, 1e-4)
    (found,) = Curator(Open(["x"] * 500), book, InsecureSeededNoise(0)).discover([Seek("v", book.limit, 1e-4)])
    assert found.sigma >= 10.0
    assert book.entries[0].rho < book.limit


def test_real_noise_shows_frequent_values_and_never_a_unique_one() -> None:
    """At epsilon 1 with OpenDP's noise: 400 unique values, 3 rows of a rare one, 2,000 of a frequent one."""
    values = [f"u{i}" for i in range(400)] + ["rare"] * 3 + ["frequent"] * 2000
    for _ in range(25):
        book = Ledger(Budget(1.0, 1e-6), 10.0, 1e-7)
        (found,) = Curator(Open(values), book).discover([Seek("v", book.limit / 4, 1e-7)])
        assert found.values == ("frequent",)


@pytest.mark.slow
def test_a_unique_value_is_shown_about_as_often_as_delta_says() -> None:
    """With a delta of 2 %, so that it can be counted: 20,000 unique values, each with its own noise."""
    book = Ledger(Budget(1.0, 0.5), None, 0.4)
    seek = Seek("v", rho := 1 / (2 * 5.0**2), 0.02)
    (found,) = Curator(Open([f"u{i}" for i in range(20_000)]), book).discover([seek])
    expected = 20_000 * exact_tail(found.threshold - 1, gaussian_scale(rho, 2))
    assert expected <= 400
    assert abs(len(found.values) - expected) < 6 * math.sqrt(expected)
