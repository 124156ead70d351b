"""The workload of a user who names none."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pointillist import Categorical, Schema, Table, prepare
from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.queries import suited
from pointillist.queries.kway import all_kway
from pointillist.queries.suited import Limits, suited_workload

PLENTY = Limits(1 << 36)


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(f"a{i}" for i in range(len(sizes))), sizes)


def of_order(found: suited.Suited, order: int) -> list[tuple[int, ...]]:
    return [scope for scope in found.workload.scopes if len(scope) == order]


@pytest.mark.parametrize("sizes", [(3, 4, 5), (2,) * 20, (40, 30, 50, 2, 9)])
def test_small_tables_get_all_triples_in_the_same_order_as_when_asked_for(sizes: tuple[int, ...]) -> None:
    found = suited_workload(domain_of(*sizes), Limits(1 << 36, budget=1e-9))
    assert found.workload == all_kway(domain_of(*sizes), 3)
    assert found.reason == f"all triples of the {len(sizes)} columns"


@pytest.mark.parametrize(("sizes", "order"), [((4,), 1), ((4, 5), 2)])
def test_tables_with_less_than_three_columns(sizes: tuple[int, ...], order: int) -> None:
    assert suited_workload(domain_of(*sizes), PLENTY).workload == all_kway(domain_of(*sizes), order)


def test_a_table_that_is_a_little_wider_gets_all_triples_too() -> None:
    assert suited_workload(domain_of(*(3,) * 25), PLENTY).workload == all_kway(domain_of(*(3,) * 25), 3)


def test_a_wide_table_gets_all_pairs() -> None:
    found = suited_workload(domain_of(*(3,) * 200), PLENTY)
    assert found.workload == all_kway(domain_of(*(3,) * 200), 2)
    assert found.reason.startswith("all pairs of the 200 columns: all 1,313,400 triples are more than")


def test_triples_that_fit_are_added_the_smallest_first() -> None:
    domain = domain_of(*(2, 9) * 30)
    found = suited_workload(domain, PLENTY)
    pairs, triples = of_order(found, 2), of_order(found, 3)
    assert pairs == list(combinations(range(60), 2))
    assert len(triples) > 1000
    assert len(set(triples)) == len(triples)
    left = set(combinations(range(0, 60, 2), 3)) - set(triples)  # those of two values each have the fewest cells
    assert not left
    assert sum(map(domain.cells_of, found.workload.scopes)) <= suited.TRIPLE_CELLS
    assert f"all pairs of the 60 columns and {len(triples):,} of the triples:" in found.reason


def test_triples_around_a_target() -> None:
    found = suited_workload(domain_of(*(3,) * 80), PLENTY, "a7")
    triples = of_order(found, 3)
    assert len(of_order(found, 2)) == math.comb(80, 2)
    assert len(triples) == math.comb(79, 2)
    assert all(7 in scope for scope in triples)
    assert "triples with a7" in found.reason
    with pytest.raises(InputError, match="target"):
        suited_workload(domain_of(2, 2), PLENTY, "b")


def test_a_part_of_the_pairs_where_memory_or_the_budget_ends() -> None:
    domain = domain_of(*(2, 50) * 40)
    every = math.comb(80, 2)
    by_memory = suited_workload(domain, Limits(200 * 100_000))
    by_budget = suited_workload(domain, Limits(1 << 36, budget=100 * every / suited.MOST_NOISE / 2))
    for found in (by_memory, by_budget):
        pairs, cells = of_order(found, 2), domain.cells_of
        assert 0 < len(pairs) < every
        assert not of_order(found, 3)
        assert {i for scope in found.workload.scopes for i in scope} == set(range(80))
        largest = max(map(cells, pairs))
        assert all(cells(pair) >= largest for pair in set(combinations(range(80), 2)) - set(pairs))
        assert f"{len(pairs):,} of the {every:,} pairs of columns" in found.reason
    around = suited_workload(domain, Limits(200 * 150_000), "a1")
    assert {(1, j) for j in range(2, 80)} <= set(around.workload.scopes)


def test_no_budget_for_any_pair_leaves_single_columns() -> None:
    found = suited_workload(domain_of(*(5,) * 30), Limits(1 << 36, budget=1.0))
    assert found.workload.scopes == tuple((i,) for i in range(30))


def wide_table(rows: int) -> Table:
    schema = Schema(tuple(Categorical(f"a{i}", tuple(range(2 + i % 7))) for i in range(30)))
    rng = np.random.default_rng(0)
    return Table(schema, tuple(rng.integers(0, size, rows) for size in schema.domain.sizes))


def test_a_private_number_of_rows_decides_nothing() -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    private = [prepare(wide_table(rows), relation="add-remove", **options) for rows in (200, 5000)]
    assert private[0].task.workload == private[1].task.workload
    assert private[0].describe() == private[1].describe()
    public = [prepare(wide_table(rows), **options) for rows in (200, 5000)]
    assert len(public[0].task.workload.queries) < len(public[1].task.workload.queries)


def test_a_job_says_what_was_chosen_and_takes_no_target_with_a_workload() -> None:
    job = prepare(wide_table(500), epsilon=1.0, target="a3")
    assert job.describe()[0] == f"workload: {job.reason}"
    assert prepare(wide_table(500), epsilon=1.0, workload="marginals:1").reason is None
    with pytest.raises(InputError, match="target must not be given with a workload"):
        prepare(wide_table(500), epsilon=1.0, workload="marginals:2", target="a3")
