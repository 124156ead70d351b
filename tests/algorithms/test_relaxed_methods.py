"""How RAP and RAP-softmax are put together."""

from __future__ import annotations

import pytest

from pointillist.algorithms import Task, get_method
from pointillist.data.domain import Domain
from pointillist.framework import most_rounds
from pointillist.privacy.facts import Facts
from pointillist.queries.candidates import Grouping
from pointillist.queries.kway import all_kway
from pointillist.strategies import SelectEvenly


def strategy(method: str, attributes: int, grouping: Grouping, **settings: int) -> SelectEvenly:
    domain = Domain(tuple(f"x{i}" for i in range(attributes)), (3,) * attributes)
    chosen = get_method(method)
    found = chosen.algorithm(Task(all_kway(domain, 3), grouping), chosen.configure(settings)).strategy
    assert isinstance(found, SelectEvenly)
    return found


def rounds(found: SelectEvenly, rho: float) -> int:
    return most_rounds(found, Facts(10_000, rho))


@pytest.mark.parametrize("method", ["rap", "rap_softmax"])
def test_by_marginal_the_rounds_follow_the_budget_within_bounds(method: str) -> None:
    wide = strategy(method, 15, Grouping.MARGINAL)
    assert [rounds(wide, rho) for rho in (1e-9, 0.01, 1.0)] == [10, 20, 30]  # n sqrt(rho) / 50, at most 2 d
    assert wide.picks == 2
    narrow = strategy(method, 4, Grouping.MARGINAL)  # has four groups only
    assert [rounds(narrow, rho) for rho in (1e-9, 1.0)] == [2, 2]
    given = strategy(method, 15, Grouping.MARGINAL, rounds=7)
    assert [rounds(given, rho) for rho in (1e-9, 1.0)] == [7, 7]


@pytest.mark.parametrize("method", ["rap", "rap_softmax"])
def test_by_query_the_rounds_are_fixed(method: str) -> None:
    by_query = strategy(method, 15, Grouping.QUERY)
    assert [rounds(by_query, rho) for rho in (1e-9, 1.0)] == [10, 10]
    assert by_query.picks == 10
