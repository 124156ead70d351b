"""Best responses against enumeration, and DualQuery and FEM against cases worked by hand."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist import Categorical, Intervals, Marginal, Product, Schema, Table, prepare
from pointillist.algorithms import dualquery, fem
from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.families.records import RecordList
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Entry
from pointillist.privacy.scores import Pick
from pointillist.queries.workload import Workload
from pointillist.solvers.integer_programs import (
    SOLVERS,
    Conjunction,
    IntegerProgram,
    Limits,
    Solution,
    best_response,
    local_search,
    solve_many,
    solver,
)


@st.composite
def problems(draw: st.DrawFn, most_conjunctions: int = 8) -> IntegerProgram:
    sizes = tuple(draw(st.lists(st.integers(1, 8), min_size=2, max_size=4)))
    conjunctions = []
    for _ in range(draw(st.integers(0, most_conjunctions))):
        attributes = tuple(sorted(draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3))))
        values = tuple(draw(st.integers(0, sizes[i] - 1)) for i in attributes)
        conjunctions.append(Conjunction(attributes, values, draw(st.sampled_from([-2.5, -1.0, 1.0, 3.0]))))
    costs = None
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        costs = tuple(rng.exponential(1.0, size) for size in sizes)
    return IntegerProgram(sizes, tuple(conjunctions), costs)


def best_by_enumeration(problem: IntegerProgram) -> float:
    return max(problem.value(record) for record in itertools.product(*map(range, problem.sizes)))


@pytest.mark.parametrize("name", list(SOLVERS))
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_solvers_agree_with_enumeration(name: str, problem: IntegerProgram) -> None:
    solution = solver(name).solve(problem, Limits())
    assert solution.optimal
    assert solution.value == pytest.approx(problem.value(solution.record))
    assert solution.value == pytest.approx(best_by_enumeration(problem), abs=1e-4)


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_local_search_gives_a_record_that_no_single_change_improves(problem: IntegerProgram) -> None:
    record = local_search(problem)
    value = problem.value(record)
    for i, size in enumerate(problem.sizes):
        for v in range(size):
            changed = (*record[:i], v, *record[i + 1 :])
            assert problem.value(changed) <= value + 1e-9


def hard_problem(conjunctions: int = 900) -> IntegerProgram:
    rng = np.random.default_rng(0)
    sizes = (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)
    parts = []
    for _ in range(conjunctions):
        attributes = tuple(sorted(rng.choice(13, 3, replace=False).tolist()))
        values = tuple(int(rng.integers(sizes[i])) for i in attributes)
        parts.append(Conjunction(attributes, values, float(rng.choice([-1.0, 1.0]))))
    return IntegerProgram(sizes, tuple(parts))


@pytest.mark.parametrize("name", list(SOLVERS))
def test_a_time_limit_gives_a_record_without_proof(name: str) -> None:
    """The answer comes, flagged as unproven, long before the proof would."""
    problem = hard_problem()
    start = time.monotonic()
    solution = solver(name).solve(problem, Limits(seconds=0.3))
    assert not solution.optimal
    assert solution.value == problem.value(solution.record)
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("name", list(SOLVERS))
def test_a_gap_is_kept(name: str) -> None:
    problem = hard_problem(150)
    best = solver(name).solve(problem, Limits(60))
    loose = solver(name).solve(problem, Limits(60, gap=0.5))
    assert best.optimal
    assert loose.optimal
    assert loose.value >= best.value - 0.5 * max(best.value, loose.value) - 1e-6


def test_solutions_in_parallel_keep_their_order() -> None:
    tasks = [IntegerProgram((6,), (Conjunction((0,), (k % 6,), 1.0),)) for k in range(12)]
    assert [s.record for s in solve_many("maxsat", tasks, Limits())] == [(k % 6,) for k in range(12)]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'maxsat'"):
        solver("maxsatt")
    with pytest.raises(InputError, match="time_limit must be a finite number above 0"):
        Limits(seconds=0)
    with pytest.raises(InputError, match="gap must be at least 0 and below 1"):
        Limits(gap=1)
    with pytest.raises(InputError, match="no record is feasible"):
        solver("milp").solve(IntegerProgram((2, 0), ()), Limits())


DOMAIN = Domain(("a", "b"), (2, 3))
PAIR = Marginal.of(DOMAIN, ("a", "b"))


def pick(cell: int, sign: int) -> Pick:
    """A cell of the marginal over both attributes."""
    return Pick(PAIR.take([cell]), sign)


def log_with(*picks: tuple[Pick, ...]) -> Log:
    return Log(Facts(100, 1.0), [Round(chosen, selected=True) for chosen in picks])


def test_one_dualquery_round_by_hand() -> None:
    """(0, 1) is wanted twice, (1, 2) once, (0, 0) unwanted: the response is (0, 1), appended to the list."""
    picks = (pick(1, 1), pick(1, 1), pick(5, 1), pick(0, -1))
    problem = best_response(DOMAIN, Counter(picks))
    assert set(problem.conjunctions) == {
        Conjunction((0, 1), (0, 1), 2.0),
        Conjunction((0, 1), (1, 2), 1.0),
        Conjunction((0, 1), (0, 0), -1.0),
    }
    family = RecordList(DOMAIN)
    update = dualquery.BestResponse(family, solver("maxsat"), Limits())
    log = log_with(picks)
    params, _, info = update(np.random.default_rng(0), family.init(np.random.default_rng(0)), None, log)
    assert params.codes.tolist() == [[0, 1]]
    assert info["optimal"] == 1.0
    log.rounds.append(Round((pick(5, 1),), selected=True))
    params, *_ = update(np.random.default_rng(0), params, None, log)
    assert params.codes.tolist() == [[0, 1], [1, 2]]
    assert params.weights.tolist() == [0.5, 0.5]


def test_one_fem_draw_by_hand() -> None:
    """Values of least perturbation win, unless the signed queries so far outweigh them."""
    rng = np.random.default_rng(4)
    a, b = np.random.default_rng(4).exponential(2.0, 2), np.random.default_rng(4).exponential(2.0, 5)[2:]
    objective = {
        (x, y): a[x] + b[y] - 2 * (x == 1 and y == 2) + (x == 0 and y == 0) for x in range(2) for y in range(3)
    }
    update = fem.PerturbedLeader(RecordList(DOMAIN), 1, 2.0, "milp", Limits())
    log = log_with((pick(5, 1),), (pick(0, -1),), (pick(5, 1),))
    params, *_ = update(rng, RecordList(DOMAIN).init(rng), None, log)
    assert tuple(params.codes[0]) == min(objective, key=lambda record: objective[record])


def test_an_unproven_response_is_flagged_in_the_transcript() -> None:
    class Guess:
        def solve(self, problem: IntegerProgram, limits: Limits) -> Solution:
            return Solution((0, 0), 0.0, False)

    family = RecordList(DOMAIN)
    log = log_with((pick(1, 1),))
    update, rng = dualquery.BestResponse(family, Guess(), Limits()), np.random.default_rng(0)
    assert update(rng, family.init(rng), None, log).info["optimal"] == 0.0


def test_dualquery_and_fem_answer_by_query_only() -> None:
    from pointillist.algorithms import get_method

    for name in ("dualquery", "fem"):
        with pytest.raises(InputError, match="group must be query"):
            get_method(name).grouping("marginal")


def test_records_without_a_round_are_uniform() -> None:
    family = RecordList(DOMAIN)
    empty = family.init(np.random.default_rng(0))
    workload = Workload.of(DOMAIN, [(0,), (0, 1)])
    assert np.allclose(family.answers(empty, workload.queries), [0.5, 0.5, *[1 / 6] * 6])
    codes = family.sample(np.random.default_rng(0), empty, 6000)
    assert np.abs(np.bincount(codes[1]) - 2000).max() < 300


def test_products_of_single_values_are_conjunctions_and_ranges_are_refused() -> None:
    """A program knows x_i = y_i only. A range of a single value is one."""
    narrow = Product.of(DOMAIN, {"a": "values", "b": Intervals(3, ((0, 2), (1, 2)))})
    assert best_response(DOMAIN, {Pick(narrow.take([3]), -1): 2}).conjunctions == (Conjunction((0, 1), (1, 1), -2.0),)
    for wide in (narrow.take([0]), Product.of(DOMAIN, {"b": "prefixes"}).take([2]), PAIR):
        with pytest.raises(ValueError, match="single cells of marginals"):
            best_response(DOMAIN, {Pick(wide): 1})


@pytest.mark.parametrize("method", ["dualquery", "fem"])
def test_ranges_are_refused_before_anything_is_spent(method: str, charges: list[Entry]) -> None:
    columns = (Categorical("a", (0, 1)), Categorical("b", (0, 1, 2)))
    table = Table(Schema(columns), (np.repeat([0, 1], 50), np.arange(100) % 3))
    workload = Workload.of(DOMAIN, [PAIR, Product.of(DOMAIN, {"b": "prefixes"})])
    with pytest.raises(InputError, match="workload must be cells of marginals for an integer program"):
        prepare(table, epsilon=1.0, method=method, workload=workload)
    assert charges == []
    cells = Workload.of(DOMAIN, [PAIR.take([0, 3]), ("b",)])
    release = prepare(table, epsilon=1.0, method=method, workload=cells, settings={"rounds": 2, "samples": 2}).run()
    assert len(release.answers()) == 5
