"""How RAP and RAP-softmax are put together."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from pointillist import load, synthesize
from pointillist.algorithms import Task, get_method
from pointillist.data.domain import Domain
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import ClippedRows
from pointillist.framework import most_rounds
from pointillist.privacy.facts import Facts
from pointillist.queries.candidates import Grouping
from pointillist.queries.kway import all_kway
from pointillist.queries.marginal import Marginal
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


def test_answers_of_clipped_rows_are_inside_the_unit_interval() -> None:
    """Rows of -1 have products of -1 and 1; the first would be a negative share."""
    domain = Domain(("a", "b", "c"), (2, 3, 2))
    family = Relaxed(ClippedRows(domain, 4))
    params = {"values": -jnp.ones((4, 7), jnp.float32)}
    answers = family.answers(params, [Marginal.of(domain, ["a"]), Marginal.of(domain, ["a", "b"])])
    assert np.array_equal(answers, np.repeat([0.0, 1.0], [2, 6]))


def test_the_answers_of_a_release_of_rap_are_inside_the_unit_interval() -> None:
    release = synthesize(load("demo").project(["district", "age", "commute"]), epsilon=0.2, workload="marginals:3",
                         method="rap", settings={"rows": 30, "rounds": 1, "picks": 1, "t_max": 20})  # fmt: skip
    values = np.asarray(release.family.to_arrays(release.params)["values"])
    assert values.min() < 0, "else there is nothing to clip"
    assert release.answers().min() >= 0
    assert release.answers().max() <= 1
