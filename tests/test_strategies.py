"""Strategies: how many rounds, what each asks for, and that all of it together stays within the budget, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spending import cost_of, spent, steps_of

from pointillist import Categorical, Grouping, InputError, Method, Relation, Schema, Table, prepare, synthesize
from pointillist.algorithms import Task
from pointillist.algorithms.pep import EntropyProjection
from pointillist.data.domain import Domain
from pointillist.families.histogram import Histogram
from pointillist.framework import Algorithm, Draw, Last, Log, Measure, Replay, Round, Select, Step, most_rounds, run
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Ask
from pointillist.privacy.facts import Facts, Phase
from pointillist.privacy.ledger import Entry, Ledger, minus, split
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.scores import MaxError, Pick, SignedError
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Single, Whole
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.strategies import (
    MeasureAll,
    Rounds,
    SelectEvenly,
    SelectGrowing,
    Then,
    growing_cost,
    noise_of,
    select_share,
)

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
PAIRS = all_kway(DOMAIN, 2).queries
WHOLE, SINGLE = Whole(PAIRS), Single(PAIRS)


def even(rounds: Rounds | int, picks: int = 1, alpha: float = 0.5, **options: Any) -> SelectEvenly:
    count = Rounds(rounds) if isinstance(rounds, int) else rounds
    return SelectEvenly(WHOLE, MaxError(), count, picks, alpha, **options)


# --- the number of rounds


def test_rounds_that_are_given_do_not_follow_the_budget() -> None:
    given = Rounds.of(7, least=1, most=50, candidates=3, unit=10.0)
    assert given == Rounds(7)
    assert given.fewest == 7
    assert [given.count(Facts(1000, rho)) for rho in (1e-9, 1.0, 1e9)] == [7, 7, 7]


def test_rounds_follow_the_budget_within_bounds() -> None:
    """n sqrt(rho) / unit, from the least to the most."""
    rounds = Rounds.of(None, least=5, most=30, candidates=100, unit=50.0)
    assert [rounds.count(Facts(10_000, rho)) for rho in (1e-9, 0.0025, 0.01, 1.0)] == [5, 10, 20, 30]
    assert rounds.count(Facts(20_000, 0.0025)) == 20
    assert (rounds.fewest, rounds.most) == (5, 30)


def test_there_are_no_more_rounds_than_candidates() -> None:
    assert Rounds.of(None, 5, 30, candidates=12, unit=50.0) == Rounds(12, 5, 50.0)
    assert Rounds.of(None, 5, 30, candidates=12, unit=50.0, picks=4) == Rounds(3, 3, 50.0)
    assert Rounds.of(None, 5, 30, candidates=2, unit=50.0, picks=4) == Rounds(1, 1, 50.0)
    assert Rounds.of(None, 5, 3, candidates=12, unit=50.0).count(Facts(10_000, 1.0)) == 5  # the least is kept


def test_rounds_that_were_made_before_are_left_out() -> None:
    for facts in (Facts(10_000, 1e-9), Facts(10_000, 1.0)):
        for rounds in (Rounds(30), Rounds(30, 5, 50.0)):
            assert replace(rounds, done=3).count(facts) == rounds.count(facts) - 3


@given(st.integers(1, 10**6), st.floats(1e-9, 1e3), st.floats(0.001, 0.999), st.floats(1, 500))
def test_a_share_of_the_budget_with_a_scaled_unit_gives_the_same_rounds(
    total: int, rho: float, part: float, unit: float
) -> None:
    """What a gate does: the rounds after it follow from all of the budget."""
    rounds = Rounds(10**9, 1, unit)
    scaled = replace(rounds, unit=unit * math.sqrt(part))
    difference = abs(rounds.count(Facts(total, rho)) - scaled.count(Facts(total, rho * part)))
    near = abs(total * math.sqrt(rho) / unit - round(total * math.sqrt(rho) / unit)) < 1e-6
    assert difference <= (1 if near else 0)


def test_no_rounds_are_refused() -> None:
    with pytest.raises(InputError, match="rounds must be at least 1, got 0; give for example 50"):
        Rounds(0)


# --- equal rounds


@given(
    st.floats(0.01, 20), st.sampled_from([1e-12, 1e-9, 1e-5]), st.integers(1, 300), st.integers(1, 7),
    st.floats(0.01, 0.99), st.floats(0, 0.1),
)  # fmt: skip
def test_equal_rounds_spend_all_and_no_more(
    epsilon: float, delta: float, rounds: int, picks: int, alpha: float, before: float
) -> None:
    """The ledger takes every charge, and nearly nothing is left."""
    book = Ledger(Budget(epsilon, delta))
    book.charge(Entry("number of rows", "test", book.limit * before, 1, 1.0))
    exact = Fraction(book.limit * before)
    facts = Facts(100, book.left)
    steps = list(steps_of(even(rounds, picks, alpha), facts))
    for step in steps:
        assert isinstance(step, Select)
        for _ in range(step.picks):
            book.charge(Entry("selection", "test", step.select_rho, 1, 1.0))
            book.charge(Entry("measurement", "test", step.measure_rho, 1, 1.0))
        exact += cost_of(step)
        assert step.select_rho / (step.select_rho + step.measure_rho) == pytest.approx(select_share(alpha))
    assert len(steps) == rounds
    assert exact <= Fraction(book.limit)
    assert exact >= Fraction(book.limit) * Fraction(1 - 1e-12)


def test_select_share_is_that_of_squares() -> None:
    assert select_share(0.5) == 0.5
    assert select_share(0.2) == pytest.approx(0.04 / (0.04 + 0.64))


@given(st.floats(1e-9, 1e3), st.integers(1, 40), st.integers(1, 3))
def test_without_measuring_all_goes_to_selecting(rho: float, rounds: int, picks: int) -> None:
    strategy = even(rounds, picks, measure=False, repeat=True)
    (phase,) = strategy.outline(Facts(100, rho))
    assert phase == Phase(rounds, picks, True, None)
    steps = list(steps_of(strategy, Facts(100, rho)))
    assert all(isinstance(step, Select) and step.measure_rho == 0 for step in steps)
    assert Fraction(rho) * Fraction(1 - 1e-12) <= spent(strategy, rho, 100) <= Fraction(rho)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_outline_of_equal_rounds_is_what_the_steps_do(relation: Relation) -> None:
    """As many rounds, as many picks, and the noise between that of a single query and that of the widest candidate."""
    facts = Facts(1000, 0.3, relation)
    products = Whole((Product.of(DOMAIN, {"c": "prefixes"}), *PAIRS))
    for candidates in (WHOLE, SINGLE, products):
        strategy = SelectEvenly(candidates, MaxError(), Rounds(2), 2, 0.3)
        (phase,) = strategy.outline(facts)
        steps = list(steps_of(strategy, facts))
        assert (phase.rounds, phase.picks, phase.selects) == (len(steps), 2, True)
        assert phase.candidates == len(candidates)
        assert replace(strategy, repeat=True).outline(facts)[0].candidates is None
        assert all(step == steps[0] for step in steps)
        step = steps[0]
        assert isinstance(step, Select)
        assert step.candidates is candidates
        squares = [candidates[n].sensitivity(relation).l2_squared for n in range(len(candidates))]
        assert phase.noise is not None
        assert phase.noise[0] <= gaussian_scale(step.measure_rho, min(squares))
        assert phase.noise[1] == gaussian_scale(step.measure_rho, max(squares))


def test_what_was_taken_is_not_taken_again_unless_it_may_be() -> None:
    log = Log(Facts(100, 1.0), [Round((Pick(PAIRS[1]),), selected=True)])
    for repeat, taken in ((False, {PAIRS[1]}), (True, None)):
        step = even(3, repeat=repeat).step(1, log.facts, log, None, None)
        assert isinstance(step, Select)
        assert step.taken == taken


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"picks": 0}, "picks must be at least 1, got 0"),
        *(({"alpha": alpha}, "alpha must be above 0 and below 1") for alpha in (0.0, 1.0, -0.1, math.nan)),
        *(({"alpha": alpha}, "alpha must leave both parts a share") for alpha in (0.0009, 0.9991)),
    ],
)
def test_wrong_equal_rounds(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        even(1, **options)
    even(1, alpha=0.001)
    even(1, alpha=0.999)


# --- growing rounds


@given(st.floats(0.1, 20), st.floats(0.1, 10), st.integers(1, 60), st.integers(100, 10**6), st.integers(2, 200))
def test_growing_rounds_stop_before_an_overdraft(epsilon: float, eta: float, picks: int, total: int, most: int) -> None:
    book = Ledger(Budget(epsilon, 1e-9))
    facts = Facts(total, book.limit)
    strategy = SelectGrowing(SINGLE, SignedError(), eta, picks, most)
    try:
        (phase,) = strategy.outline(facts)
    except InputError:
        assert Fraction(growing_cost(eta, 1, total)) * picks > Fraction(book.limit)  # not one paid round would fit
        return
    first, *paid = list(steps_of(strategy, facts))
    assert isinstance(first, Draw)  # uniform and free
    assert first.picks == picks
    for t, step in enumerate(paid, start=1):
        assert isinstance(step, Select)
        assert (step.picks, step.measure_rho, step.taken) == (picks, 0, None)
        assert step.select_rho == (eta * t / total) ** 2 / 2
        for _ in range(step.picks):
            book.charge(Entry("selection", "test", step.select_rho, 1, 1.0))
    rounds = 1 + len(paid)
    assert phase == Phase(rounds, picks, True, None)
    left = Fraction(book.limit) - sum(Fraction(entry.rho) for entry in book.entries)
    assert rounds == most or Fraction(growing_cost(eta, rounds, total)) * picks > left


@pytest.mark.parametrize(
    ("eta", "picks", "most", "sentence"),
    [
        (0.0, 5, 30, "eta must be a finite number above 0, got 0.0"),
        (math.inf, 5, 30, "eta must be a finite number above 0, got inf"),
        (1.0, 0, 30, "samples must be at least 1, got 0"),
        (1.0, 5, 1, "rounds must be at least 2, the first one being free, got 1"),
    ],
)
def test_wrong_growing_rounds(eta: float, picks: int, most: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SelectGrowing(SINGLE, SignedError(), eta, picks, most)


def test_a_step_that_no_budget_pays_for_is_refused_with_the_largest_that_is() -> None:
    facts = Facts(1000, 0.1)
    strategy = SelectGrowing(SINGLE, SignedError(), 1000.0, 5, 30)
    with pytest.raises(InputError, match=r"eta must be at most 200 for one paid round of 5 samples to fit the budget"):
        strategy.outline(facts)
    assert replace(strategy, eta=199.9).outline(facts)[0].rounds == 2


# --- one round


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("rho", [1e-9, 0.1, 7.3])
def test_all_is_measured_once_with_equal_shares(rho: float, relation: Relation) -> None:
    queries = (*PAIRS, Product.of(DOMAIN, {"b": "prefixes", "c": "prefixes"}))
    facts = Facts(1000, rho, relation)
    strategy = MeasureAll(queries)
    (step,) = steps_of(strategy, facts)
    assert isinstance(step, Measure)
    assert tuple(ask.queries for ask in step.asked) == queries
    assert {ask.rho for ask in step.asked} == {split(rho, 4)}
    assert Fraction(rho) * Fraction(1 - 1e-12) <= cost_of(step) <= Fraction(rho)
    scales = [gaussian_scale(ask.rho, ask.queries.sensitivity(relation).l2_squared) for ask in step.asked]
    assert strategy.outline(facts) == (Phase(1, 4, False, (min(scales), max(scales))),)
    assert noise_of(step.asked, facts) == (min(scales), max(scales))
    assert max(scales) > min(scales)


# --- one after another


@settings(max_examples=150, deadline=None)
@given(
    st.floats(1e-9, 1e3), st.floats(1e-3, 0.999), st.integers(1, 40), st.integers(1, 40), st.integers(1, 3),
    st.floats(0.001, 0.999),
)  # fmt: skip
def test_one_strategy_after_another_never_exceeds_rho(
    rho: float, share: float, first: int, second: int, picks: int, alpha: float
) -> None:
    strategy = Then(share, even(first, picks, alpha), even(second, picks, alpha))
    assert most_rounds(strategy, Facts(100, rho)) == first + second
    before = spent(strategy, rho, 100, stop=first)
    assert before <= Fraction(rho * share)
    assert float(before) >= rho * share * (1 - 1e-12)
    whole = spent(strategy, rho, 100)
    assert whole <= Fraction(rho)
    assert float(whole) >= rho * (1 - 1e-12)


def test_other_strategies_one_after_another() -> None:
    growing, once = SelectGrowing(SINGLE, SignedError(), 3.0, 5, 30), MeasureAll(PAIRS * 2)
    facts = Facts(500, 0.1)
    parts = Facts(500, 0.1 * 0.3), Facts(500, minus(0.1, 0.1 * 0.3))
    for strategy in (Then(0.3, growing, once), Then(0.3, once, growing)):
        assert strategy.outline(facts) == strategy.first.outline(parts[0]) + strategy.second.outline(parts[1])
        assert most_rounds(strategy, facts) > 3
        assert Fraction(0) < spent(strategy, 0.1, 500) <= Fraction(0.1)
        kinds = [type(step) for step in steps_of(strategy, facts)]
        at = kinds.index(Measure)
        assert at == (len(kinds) - 1 if strategy.first is growing else 0)
        assert kinds.index(Draw) == (0 if strategy.first is growing else 1)  # the first of its own rounds
    for share in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="share must be above 0 and below 1"):
            Then(share, once, once)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-9, 1e3), st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(2, 30))
def test_three_strategies_one_after_another(rho: float, one: float, two: float, rounds: int) -> None:
    inner = Then(two, even(rounds), MeasureAll(PAIRS))
    strategy = Then(one, MeasureAll(PAIRS), inner)
    kinds = [type(step) for step in steps_of(strategy, Facts(100, rho))]
    assert kinds == [Measure, *[Select] * rounds, Measure]
    assert Fraction(rho) * Fraction(1 - 1e-12) <= spent(strategy, rho, 100) <= Fraction(rho)


def test_a_strategy_says_what_it_is_without_its_thousands_of_queries() -> None:
    text = repr(Then(0.3, MeasureAll(PAIRS), even(7)))
    assert "Marginal" not in text
    assert text == (
        "Then(share=0.3, first=MeasureAll(), second=SelectEvenly(rule=MaxError(base_measure=False), "
        "rounds=Rounds(most=7, least=1, unit=0.0, done=0), picks=1, alpha=0.5, measure=True, repeat=False))"
    )


# --- strategies of one's own


@dataclass(frozen=True)
class NoSettings:
    """A method without settings."""


def method_of(name: str, strategy: Any) -> Method:
    """A method that fits a histogram to all measurements, whatever the strategy asks for."""

    def build(task: Task, settings: Any) -> Algorithm[Any]:
        family = Histogram(task.domain)
        return Algorithm(family, strategy(task), EntropyProjection(family, 0.3, 100), Last())

    return Method(
        name, "histogram", name, "entropy projections", "last", NoSettings, build, (Grouping.MARGINAL,),
        Histogram.fits, Histogram.memory,
    )  # fmt: skip


def chain(rows: int = 5000) -> Table:
    """Each column but the last follows the one before it in nine rows of ten; the last one stands alone."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(3, size=rows)]
    for _ in range(3):
        codes.append(np.where(rng.random(rows) < 0.9, codes[-1], rng.integers(3, size=rows)))
    codes.append(rng.integers(3, size=rows))
    return Table(Schema(tuple(Categorical(name, (0, 1, 2)) for name in "abcde")), tuple(codes))


@dataclass
class Annealing:
    """AIM's rounds. After a measurement that changed the model by no more than noise would, the noise is halved; only
    marginals that leave the model small enough, for what is spent by then, are candidates."""

    queries: tuple[Queries, ...] = field(repr=False)
    rounds: int
    most_bytes: int
    changes: list[bool] = field(default_factory=list)

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        each = split(facts.rho, self.rounds)
        return (Phase(self.rounds, 1, True, (gaussian_scale(facts.rho, 1), gaussian_scale(0.9 * each, 2))),)

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        if t == 0:
            self.left, self.each, self.changes = facts.rho, split(facts.rho, self.rounds), []
        else:
            last = log.measurements[-1]
            change = np.abs(family.answers(params, [last.queries]) - self.before[last.queries]).sum() * facts.total
            self.changes.append(bool(change > math.sqrt(2 / math.pi) * last.sigma * last.queries.size))
            self.each *= 1 if self.changes[-1] else 4
        if self.left <= 0:
            return None
        rho = self.left if self.left < 2 * self.each else self.each
        self.left = minus(self.left, rho)
        limit = self.most_bytes * (1 - self.left / facts.rho)
        measured = [one.queries for one in log.measurements]
        small = [q for q in self.queries if len(q.scope) == 1 or self.size([*measured, q], family) <= limit]
        self.before = {q: family.answers(params, [q]) for q in small}
        return Select(Whole(tuple(small)), MaxError(), 1, 0.1 * rho, minus(rho, 0.1 * rho))

    def size(self, asked: list[Queries], family: Any) -> int:
        """What the answers to some queries add to the model."""
        return int(family.footprint(list(dict.fromkeys(asked))) - family.footprint([]))


def annealing_of(task: Task) -> Annealing:
    singles = all_kway(task.domain, 1).queries
    return Annealing((*singles, *task.workload.queries), rounds=16, most_bytes=3000)


@pytest.mark.parametrize("seed", range(3))
def test_aims_annealing_and_its_filter_by_size_are_a_strategy(seed: int) -> None:
    table, method = chain(), method_of("annealing", annealing_of)
    job = prepare(table, epsilon=2.0, method=method, workload="marginals:3", insecure_noise_seed=seed)
    release = job.run()
    strategy, log, ledger = job.algorithm.strategy, release.log, job.curator.ledger
    assert isinstance(strategy, Annealing)
    sigmas = [one.sigma for one in log.measurements]
    assert sum(strategy.changes) < len(strategy.changes)  # some measurements changed little
    assert len(log.rounds) < 16  # so that fewer rounds spent all of the budget
    assert ledger.limit * (1 - 1e-9) < ledger.spent <= ledger.limit
    # The last round takes whatever is left.
    for changed, before, after in zip(strategy.changes[:-2], sigmas[:-2], sigmas[1:-1], strict=True):
        assert after == pytest.approx(before if changed else before / 2)
    assert sigmas[-1] < sigmas[0]
    # Where little is spent, wide marginals are not yet candidates.
    spent_by = np.cumsum([1 / one.sigma**2 for one in log.measurements]) / sum(
        1 / one.sigma**2 for one in log.measurements
    )
    for t, one in enumerate(log.measurements):
        asked = list(dict.fromkeys(m.queries for m in log.measurements[: t + 1]))
        size = 8 * sum(q.size for q in asked)
        assert len(one.queries.scope) == 1 or size <= 3000 * spent_by[t] * (1 + 1e-6)
    free = method_of("annealing", lambda task: replace(annealing_of(task), most_bytes=10**9))
    wide = prepare(table, epsilon=2.0, method=free, workload="marginals:3", insecure_noise_seed=seed).run().log
    assert [len(found.measurements[0].queries.scope) for found in (log, wide)] == [1, 3]
    again, _ = run(job.algorithm, Replay(log), seed=0)
    assert np.array_equal(again, release.params)


@dataclass(frozen=True)
class Tree:
    """MST's rounds: all one-way marginals are measured; then d - 1 pairs are selected, edge by edge, each between two
    parts of the tree that are not yet joined; then all of them are measured. Each part has a third of the budget."""

    domain: Domain

    def outline(self, facts: Facts) -> tuple[Phase, ...]:
        d, third = len(self.domain), split(facts.rho, 3)
        noise = [gaussian_scale(split(third, m), 2) for m in (d, d - 1)]
        return (
            Phase(1, d, False, (noise[0],) * 2),
            Phase(d - 1, 1, True, None),
            Phase(1, d - 1, False, (noise[1],) * 2),
        )

    def step(self, t: int, facts: Facts, log: Log, family: Any, params: Any) -> Step | None:
        d, third = len(self.domain), split(facts.rho, 3)
        if t == 0:
            return self.measure(all_kway(self.domain, 1).queries, third)
        edges = [pick.queries for entry in log.rounds for pick in entry.picks]
        if t < d:
            pairs = [q for q in all_kway(self.domain, 2).queries if len({self.part(i, edges) for i in q.scope}) == 2]
            return Select(Whole(tuple(pairs)), MaxError(), 1, split(third, d - 1), 0.0)
        return self.measure(edges, third) if t == d else None

    def measure(self, queries: Any, rho: float) -> Step:
        return Measure(tuple(Ask(one, split(rho, len(queries))) for one in queries))

    def part(self, attribute: int, edges: list[Queries]) -> frozenset[int]:
        """The attributes that some edges join to one."""
        joined = {attribute}
        while more := {i for edge in edges if joined & set(edge.scope) for i in edge.scope} - joined:
            joined |= more
        return frozenset(joined)


@pytest.mark.parametrize("relation", list(Relation))
def test_msts_choice_edge_by_edge_is_a_strategy(relation: Relation) -> None:
    table, method = chain(), method_of("tree", lambda task: Tree(task.domain))
    release = synthesize(
        table, epsilon=5.0, delta=1e-9, relation=relation, method=method, workload="marginals:2", insecure_noise_seed=0
    )
    first, *edges, last = release.log.rounds
    assert [one.queries for one in first.measurements] == list(all_kway(table.domain, 1).queries)
    assert [(len(entry.picks), len(entry.measurements), entry.selected) for entry in edges] == [(1, 0, True)] * 4
    measured = [one.queries for one in last.measurements]
    assert measured == [entry.picks[0].queries for entry in edges]
    # d - 1 pairs that join all attributes form a tree.
    assert all(isinstance(pair, Marginal) and len(pair.scope) == 2 for pair in measured)
    assert Tree(table.domain).part(0, measured) == frozenset(range(5))
    assert {pair.scope for pair in measured} > {(0, 1), (1, 2), (2, 3)}  # the ties that there are
    privacy = release.description.privacy
    assert privacy.rho * (1 - 1e-9) < privacy.rho_spent <= privacy.rho
    kinds = [entry.label for entry in privacy.ledger if entry.label != "number of rows"]
    assert kinds == ["measurement"] * 5 + ["selection"] * 4 + ["measurement"] * 4
    truth = np.concatenate([one.holds(table.codes).mean(axis=0) for one in release.workload.queries])
    assert np.abs(release.answers() - truth).max() < 0.05


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 1e3), st.integers(2, 6))
def test_the_steps_of_the_tree_never_exceed_rho(rho: float, attributes: int) -> None:
    """With whatever is selected: here always the first candidate."""
    domain = Domain(tuple(f"x{i}" for i in range(attributes)), (3,) * attributes)
    facts, strategy = Facts(1000, rho), Tree(domain)
    log, total = Log(facts), Fraction(0)
    while (step := strategy.step(len(log.rounds), facts, log, None, None)) is not None:
        total += cost_of(step)
        picks = (Pick(step.candidates[0]),) if isinstance(step, Select) else ()
        log.rounds.append(Round(picks, selected=bool(picks)))
    assert len(log.rounds) == most_rounds(strategy, facts) == attributes + 1
    assert Fraction(rho) * Fraction(1 - 1e-9) <= total <= Fraction(rho)
