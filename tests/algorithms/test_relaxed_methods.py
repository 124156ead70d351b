"""How RAP and RAP-softmax are put together."""

from __future__ import annotations

import pytest

from pointillist.algorithms import get_method
from pointillist.data.domain import Domain
from pointillist.privacy.schedule import EvenSchedule
from pointillist.queries.marginals import all_kway
from pointillist.queries.workload import Grouping


def schedule(method: str, attributes: int, grouping: Grouping, **settings: int) -> EvenSchedule:
    domain = Domain(tuple(f"x{i}" for i in range(attributes)), (3,) * attributes)
    chosen = get_method(method)
    found = chosen.algorithm(all_kway(domain, 3, grouping), chosen.configure(settings)).schedule
    assert isinstance(found, EvenSchedule)
    return found


@pytest.mark.parametrize("method", ["rap", "rap_softmax"])
def test_by_marginal_the_rounds_follow_the_budget_within_bounds(method: str) -> None:
    wide = schedule(method, 15, Grouping.MARGINAL)
    assert [wide.count(rho, 10_000) for rho in (1e-9, 0.01, 1.0)] == [10, 20, 30]  # n sqrt(rho) / 50, at most 2 d
    assert wide.picks == 2
    narrow = schedule(method, 4, Grouping.MARGINAL)  # has four groups only
    assert [narrow.count(rho, 10_000) for rho in (1e-9, 1.0)] == [2, 2]
    given = schedule(method, 15, Grouping.MARGINAL, rounds=7)
    assert [given.count(rho, 10_000) for rho in (1e-9, 1.0)] == [7, 7]


@pytest.mark.parametrize("method", ["rap", "rap_softmax"])
def test_by_query_the_rounds_are_fixed(method: str) -> None:
    by_query = schedule(method, 15, Grouping.QUERY)
    assert [by_query.count(rho, 10_000) for rho in (1e-9, 1.0)] == [10, 10]
    assert by_query.picks == 10
