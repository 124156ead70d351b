"""The best-mixture error against linear programming and cases worked by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from pointillist import Intervals, Marginal, Product
from pointillist.data.domain import Domain
from pointillist.queries.base import Queries
from pointillist.queries.counting import weighted_answers
from pointillist.queries.kway import all_kway
from pointillist.queries.workload import Workload
from pointillist.solvers import best_mixture as mixture
from pointillist.solvers.best_mixture import best_mixture


def predicates(codes: list[np.ndarray], workload: Workload) -> np.ndarray:
    """q(x_i), a row per query and a column per record."""
    rows = []
    for queries in workload.queries:
        assert queries.factors is not None
        cells = list(itertools.product(*(factor.bounds for factor in queries.factors)))
        for bounds in cells if queries.cells is None else [cells[cell] for cell in queries.cells]:
            inside = zip(queries.scope, bounds, strict=True)
            rows.append(np.all([(low <= codes[i]) & (codes[i] < high) for i, (low, high) in inside], axis=0))
    return np.asarray(rows, float)


def answers(codes: list[np.ndarray], workload: Workload, weights: np.ndarray) -> np.ndarray:
    return np.asarray(predicates(codes, workload) @ weights)


def optimum(codes: list[np.ndarray], workload: Workload, targets: np.ndarray) -> float:
    """The best-mixture error by a dense linear program over all asked queries, without any preparation."""
    from scipy.optimize import linprog

    asked, n = np.isfinite(targets), len(codes[0])
    a, matrix, t = targets[asked], predicates(codes, workload)[asked], np.ones((int(asked.sum()), 1))
    result = linprog(
        np.append(np.zeros(n), 1.0), A_ub=np.block([[matrix, -t], [-matrix, -t]]), b_ub=np.append(a, -a),
        A_eq=np.append(np.ones(n), 0.0)[None], b_eq=[1.0], method="highs",
    )  # fmt: skip
    return float(result.fun)


def problem(
    seed: int, sizes: tuple[int, ...], records: int, noise: float = 0.0
) -> tuple[list[np.ndarray], Workload, np.ndarray]:
    """Distinct records, all two-way marginals, and the answers of an unrelated table."""
    rng = np.random.default_rng(seed)
    workload = all_kway(Domain(tuple(f"a{i}" for i in range(len(sizes))), sizes), 2)
    table = np.unique(np.stack([rng.choice(s, records, p=rng.dirichlet(np.ones(s))) for s in sizes], 1), axis=0)
    private = [rng.choice(s, 500, p=rng.dirichlet(3 * np.ones(s))) for s in sizes]
    private[1] = np.where(rng.random(500) < 0.5, private[0] % sizes[1], private[1])
    targets = answers(private, workload, np.full(500, 1 / 500))
    return list(table.T), workload, targets + noise * rng.normal(size=len(targets))


@pytest.fixture(params=["program", "raking"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to solve a problem."""
    monkeypatch.setattr(mixture, "PROGRAM_ENTRIES", 10**9 if request.param == "program" else 0)
    return str(request.param)


@pytest.mark.parametrize(
    ("sizes", "records", "noise"),
    [
        ((3, 4, 2, 5), 10, 0.0),
        ((3, 4, 2, 5), 60, 0.02),
        ((2,) * 6, 20, 0.0),
        ((2,) * 6, 64, 0.05),
        ((4,) * 4, 60, 0.01),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_optimum(way: str, sizes: tuple[int, ...], records: int, noise: float, seed: int) -> None:
    codes, workload, targets = problem(seed, sizes, records, noise)
    found = best_mixture(codes, workload, targets)
    true = optimum(codes, workload, targets)
    assert found.exact == (way == "program")
    assert found.lower <= true + 1e-9
    assert found.upper >= true - 1e-9
    assert found.upper - found.lower <= (1e-6 if way == "program" else 0.05 * found.upper + 1e-6)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    reached = np.abs(answers(codes, workload, found.weights) - targets).max()
    assert reached == pytest.approx(found.upper, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_smaller_gap_can_be_asked_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "PROGRAM_ENTRIES", 0)
    codes, workload, targets = problem(seed, (2,) * 6, 40, 0.02)
    found = best_mixture(codes, workload, targets, gap=0.01)
    assert found.upper - found.lower <= 0.01 * found.upper + 1e-6
    assert found.lower <= optimum(codes, workload, targets) + 1e-9 <= found.upper + 2e-9


@pytest.mark.parametrize("records", [10, 500])
def test_a_linear_program_finds_the_lower_bound_of_the_active_queries(
    records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cell is empty and no target outside [0, 1], so that the bound needs many queries at once."""
    monkeypatch.setattr(mixture, "CERTIFIED_RECORDS", records)
    monkeypatch.setattr(mixture, "CERTIFIED_TRIES", 50)
    rng = np.random.default_rng(0)
    workload = all_kway(Domain(tuple("abcdefg"), (2,) * 7), 2)
    codes = list(np.unique(rng.integers(0, 2, (90, 7)), axis=0).T)
    targets = 1 / 4 + 0.02 * rng.normal(size=workload.size)
    game, group = mixture._collapse(codes, workload, targets, np.full(len(codes[0]), 1 / len(codes[0])))
    assert (group == np.arange(len(group))).all()
    assert game.floor == 0
    raking = mixture._Raking(game)
    raking.activate(np.ones(workload.size))
    _, bound = raking.round(0.02, 0.001, 40)
    used = np.full(workload.size, np.nan)
    used[raking.queries[raking.multipliers != 0]] = targets[raking.queries[raking.multipliers != 0]]
    true = optimum(codes, workload, used)
    assert true > 0.01
    assert bound <= true + 1e-9
    assert 0.98 * true <= raking.certify() <= true + 1e-9


def test_the_same_table_has_no_error(way: str) -> None:
    rng = np.random.default_rng(1)
    workload = all_kway(Domain(("a", "b", "c"), (3, 4, 2)), 2)
    table, counts = np.unique(rng.integers(0, (3, 4, 2), (200, 3)), axis=0, return_counts=True)
    targets = answers(list(table.T), workload, counts / 200)
    assert best_mixture(list(table.T), workload, targets, start=counts / 200).upper == pytest.approx(0, abs=1e-9)
    found = best_mixture(list(table.T), workload, targets)  # from uniform weights
    assert 0 <= found.lower <= found.upper < 2e-6


def test_a_missing_value_leaves_its_share(way: str) -> None:
    """One attribute: the share 0.3 of the missing value is the error of its query, and can be spread over the rest."""
    workload = all_kway(Domain(("a",), (4,)), 1)
    targets = np.array([0.3, 0.4, 0.2, 0.1])
    found = best_mixture([np.array([1, 2, 3])], workload, targets, gap=0.001)
    assert found.lower == pytest.approx(0.3)
    assert found.upper == pytest.approx(0.3, rel=0.002)


def test_a_single_record_has_the_error_it_has(way: str) -> None:
    workload = all_kway(Domain(("a",), (3,)), 1)
    found = best_mixture([np.array([2])], workload, np.array([0.1, 0.1, 0.8]))
    assert (found.lower, found.upper) == pytest.approx((0.2, 0.2))
    assert found.weights == pytest.approx([1])


def test_impossible_targets_are_a_floor(way: str) -> None:
    workload = all_kway(Domain(("a", "b"), (2, 2)), 1)
    codes = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    found = best_mixture(codes, workload, np.array([-0.2, 1.1, np.nan, 0.5]))
    assert found.lower == pytest.approx(0.2)
    assert found.upper == pytest.approx(0.2, rel=0.05)


def test_queries_that_are_not_asked_do_not_count(way: str) -> None:
    codes, workload, targets = problem(5, (3, 4, 2, 5), 30)
    asked = np.random.default_rng(0).random(workload.size) < 0.3
    some = np.where(asked, targets, np.nan)
    found = best_mixture(codes, workload, some)
    true = optimum(codes, workload, some)
    assert found.lower <= true + 1e-9 <= found.upper + 2e-9
    assert true < optimum(codes, workload, targets)


def test_marginals_without_an_asked_query_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the 12 cells of the first marginal are ever counted."""
    counted: list[int] = []

    def listen(
        codes: Sequence[np.ndarray], weights: np.ndarray, domain: Domain, queries: Sequence[Queries]
    ) -> list[np.ndarray]:
        sums = weighted_answers(codes, weights, domain, queries)
        counted.append(sum(map(len, sums)))
        return sums

    monkeypatch.setattr(mixture, "weighted_answers", listen)
    codes, workload, targets = problem(0, (3, 4, 2, 5), 40)
    first = np.where(np.arange(workload.size) < workload.offsets[1], targets, np.nan)
    best_mixture(codes, workload, first)
    assert set(counted) == {12}


def test_merged_records_share_their_weight_in_proportion(way: str) -> None:
    """Only (a, b) is asked, so that records that differ in c alone are one."""
    rng = np.random.default_rng(3)
    domain = Domain(("a", "b", "c"), (3, 3, 300))
    workload = Workload.of(domain, [(0, 1), (0, 2)])
    codes = [rng.integers(0, size, 400) for size in domain.sizes]
    start = rng.exponential(size=400)
    targets = np.full(workload.size, np.nan)
    targets[:9] = rng.dirichlet(np.ones(9))
    found = best_mixture(codes, workload, targets, start=start)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    sums = answers(codes[:2], all_kway(domain.project(["a", "b"]), 2), found.weights)
    assert np.abs(sums - targets[:9]).max() == pytest.approx(found.upper, abs=1e-12)
    ratio = found.weights / start
    for cell in range(9):
        same = ratio[3 * codes[0] + codes[1] == cell]
        assert same == pytest.approx(np.full(len(same), same[0]))


def test_few_active_queries_fit_a_small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries without a multiplier make room for worse ones, and the bounds stay bounds."""
    codes, workload, targets = problem(2, (2,) * 6, 64, 0.05)
    monkeypatch.setattr(mixture, "PROGRAM_ENTRIES", 0)
    monkeypatch.setattr(mixture, "ACTIVE_ENTRIES", 150)
    listed: list[int] = []
    activate = mixture._Raking.activate

    def listen(self: mixture._Raking, errors: np.ndarray) -> None:
        activate(self, errors)
        listed.append(sum(map(len, self.rows)))

    monkeypatch.setattr(mixture._Raking, "activate", listen)
    found = best_mixture(codes, workload, targets, most_steps=400)
    assert 0 < max(listed) <= 150
    assert found.lower <= optimum(codes, workload, targets) + 1e-9 <= found.upper + 2e-9


def test_raking_takes_over_where_the_program_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "PROGRAM_SECONDS", 0.0)
    codes, workload, targets = problem(1, (4, 4, 4, 4), 200)
    found = best_mixture(codes, workload, targets)
    assert not found.exact
    assert found.lower <= optimum(codes, workload, targets) + 1e-9 <= found.upper + 2e-9


def test_progress_narrows_the_bounds_and_steps_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "PROGRAM_ENTRIES", 0)
    codes, workload, targets = problem(1, (2,) * 6, 40, 0.02)
    seen: list[tuple[int, float, float]] = []
    found = best_mixture(codes, workload, targets, gap=0, most_steps=90, progress=lambda *bounds: seen.append(bounds))
    steps, lower, upper = map(list, zip(*seen, strict=True))
    assert found.steps == steps[-1] <= 90
    assert lower == sorted(lower)
    assert upper == sorted(upper, reverse=True)
    assert (found.lower, found.upper) == (lower[-1], upper[-1])


def test_the_start_is_not_changed(way: str) -> None:
    codes, workload, targets = problem(1, (3, 4, 2, 5), 40)
    start = np.random.default_rng(0).exponential(size=len(codes[0]))
    kept = start.copy()
    best_mixture(codes, workload, targets, start=start)
    assert (start == kept).all()


# --- queries that overlap


ORDERED = Domain(("a", "b", "c"), (5, 3, 4))
RANGES = Intervals(5, ((0, 2), (1, 4), (2, 5)))
KINDS: dict[str, list[Queries]] = {
    "prefixes": [Product.of(ORDERED, {"a": "prefixes", "c": "prefixes"})],
    "ranges": [Product.of(ORDERED, {"a": RANGES, "b": "values"}), Product.of(ORDERED, {"c": "prefixes"})],
    "a partition": [Product.of(ORDERED, {"a": Intervals(5, ((0, 2), (2, 5))), "b": "values", "c": "values"})],
    "single queries": [Product.of(ORDERED, {"a": RANGES, "c": "prefixes"}).take([cell]) for cell in range(12)],
    "all kinds": [
        Marginal.of(ORDERED, ("a", "b")),
        Product.of(ORDERED, {"b": "prefixes", "c": Intervals(4, ((0, 2), (2, 4)))}),
        Product.of(ORDERED, {"a": RANGES, "b": "prefixes", "c": "values"}).take([30, 4, 17]),
    ],
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seed", range(3))
def test_products_by_brute_force(way: str, kind: str, seed: int) -> None:
    """Few records of a small domain, and answers of another table with noise."""
    rng = np.random.default_rng(seed)
    workload = Workload(ORDERED, tuple(KINDS[kind]))
    codes = list(np.unique(rng.integers(0, ORDERED.sizes, (12, 3)), axis=0).T)
    private = [rng.binomial(size - 1, 0.3 + 0.2 * i, 300) for i, size in enumerate(ORDERED.sizes)]
    targets = answers(private, workload, np.full(300, 1 / 300)) + 0.03 * rng.normal(size=workload.size)
    targets[rng.random(workload.size) < 0.2] = np.nan
    found, true = best_mixture(codes, workload, targets), optimum(codes, workload, targets)
    assert true > 0.005
    assert found.exact == (way == "program")
    assert found.lower <= true + 1e-9 <= found.upper + 2e-9
    assert found.upper - found.lower <= (1e-6 if way == "program" else 0.05 * found.upper + 1e-6)
    reached = np.nanmax(np.abs(answers(codes, workload, found.weights) - targets))
    assert reached == pytest.approx(found.upper, abs=1e-12)


CODES = [np.array([0, 1, 1]), np.array([0, 0, 2])]
EVEN = np.full(6, 1 / 6)


@pytest.mark.parametrize(
    ("codes", "targets", "start", "gap", "says"),
    [
        (CODES[:1], EVEN, None, 0.05, "codes must be 2 arrays, one per attribute"),
        ([CODES[0], CODES[1][:2]], EVEN, None, 0.05, "codes of 'b' must be one array of 3 entries"),
        ([CODES[0], CODES[1] + 1], EVEN, None, 0.05, "codes of 'b' must be from 0 to 2, got 1 to 3"),
        ([CODES[0][:0], CODES[1][:0]], EVEN, None, 0.05, "codes must hold at least one record"),
        (CODES, EVEN[:5], None, 0.05, "targets must be one array of 6 entries"),
        (CODES, EVEN * np.nan, None, 0.05, "targets must be finite for at least one query"),
        (CODES, EVEN * np.inf, None, 0.05, "targets must be finite for at least one query and infinite for none"),
        (CODES, EVEN, np.ones(2), 0.05, "start must be one array of 3 entries"),
        (CODES, EVEN, np.array([1.0, 0.0, 1.0]), 0.05, "start must be positive"),
        (CODES, EVEN, None, 1.0, "gap must be at least 0 and below 1"),
    ],
)
def test_arguments_that_do_not_fit(
    codes: list[np.ndarray], targets: np.ndarray, start: np.ndarray | None, gap: float, says: str
) -> None:
    workload = all_kway(Domain(("a", "b"), (2, 3)), 2)
    with pytest.raises(ValueError, match=says):
        best_mixture(codes, workload, targets, start=start, gap=gap)
