"""Ties: the distance of two attributes from independence, and what one row or unit can change in it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import InputError
from pointillist.privacy.facts import Facts
from pointillist.privacy.sensitivity import of_counts, square_of_counts
from pointillist.queries.tie import Tie
from pointillist.queries.workload import Workload, queries_of

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def tables(cells: int, most: int) -> list[np.ndarray]:
    """Every table of up to ``most`` rows, as the counts of its cells."""
    return [np.array(c) for c in itertools.product(range(most + 1), repeat=cells) if sum(c) <= most]


def ties(cells: int) -> list[Tie]:
    """Ties of small estimates, some of which do not add up to their total."""
    shapes = {4: (2, 2), 3: (1, 3), 1: (1, 1)}[cells]
    some = [tuple(itertools.product(range(3), repeat=size)) for size in shapes]
    return [Tie((0, 1), a, b, total) for a in some[0] for b in some[1] for total in (1, 3)]


def test_the_distance_from_the_product_of_the_estimates() -> None:
    tie = Tie((0, 2), (6, 4), (5, 3, 2), 10)
    assert tie.shape == (2, 3)
    assert tie.reference.tolist() == [3, 2, 1, 2, 1, 1]  # 3, 1.8, 1.2, 2, 1.2, 0.8
    assert tie.of_marginal(np.array([3, 2, 1, 2, 1, 1])).tolist() == [0]
    assert tie.of_marginal(np.array([5, 0, 1, 0, 4, 0])).tolist() == [2 + 2 + 0 + 2 + 3 + 1]
    assert tie.of_marginal(np.array([3, 2, 1, 2, 1, 1])).dtype == np.int64


def test_estimates_of_large_tables_do_not_overflow() -> None:
    half = 2**52
    tie = Tie((0, 1), (half, half), (half, half), 2 * half)
    assert tie.reference.tolist() == [half // 2] * 4
    for size in (7, 2**20, 2**31, 2**50):  # exact with and without 64 bits
        a, b = (size, size // 3), (size // 2, size // 5, 1)
        expected = [(2 * u * v + size + 5) // (2 * (size + 5)) for u in a for v in b]
        assert Tie((0, 1), a, b, size + 5).reference.tolist() == expected


@pytest.mark.parametrize("cells", [1, 3, 4])
def test_the_sensitivity_is_the_largest_change_by_a_row_or_a_unit(cells: int) -> None:
    """Over all tables of up to three rows and all their neighbours: none changes more, and one changes as much."""
    every = tables(cells, 3)
    bound = {Relation.ADD_REMOVE: 0, Relation.REPLACE: 0}
    of_unit = dict.fromkeys((1, 2, 3), 0)
    rows, some = np.eye(cells, dtype=np.int64), ties(cells)[::9]
    for tie in ties(cells):

        def distance(table: np.ndarray, tie: Tie = tie) -> int:
            return int(tie.of_marginal(table)[0])

        changes = [abs(distance(table + row) - distance(table)) for table in every for row in rows]
        assert max(changes) == min(changes) == tie.sensitivity(Relation.ADD_REMOVE).single == 1
        moves = [
            abs(distance(table + rows[there]) - distance(table + rows[here]))
            for table in every
            for here, there in itertools.product(range(cells), repeat=2)
        ]
        stated = tie.sensitivity(Relation.REPLACE)
        assert max(moves) <= stated.single == stated.l1 == (2 if cells > 1 else 0)
        assert stated.l2_squared == stated.single**2
        bound[Relation.REPLACE] = max(bound[Relation.REPLACE], *moves)
        for m in of_unit if tie in some else ():
            units = [row for row in every if 0 < row.sum() <= m]
            change = max(abs(distance(t + u) - distance(t)) for t in every for u in units)
            known = Facts(10, 1.0, Relation.ADD_REMOVE, 1.0, rows_per_unit=m)
            assert change <= of_counts(tie, known).single == m
            assert square_of_counts(tie, known) == m**2
            of_unit[m] = max(of_unit[m], change)
    assert bound[Relation.REPLACE] == (2 if cells > 1 else 0)
    assert of_unit == {1: 1, 2: 2, 3: 3}


def test_replacing_a_row_changes_the_most_if_any_cell_is_expected() -> None:
    """Unless r is 0 everywhere: then the distance is the number of rows, and the stated bound is not attained."""
    for tie in ties(4):
        place = int(tie.reference.argmax())
        rows = np.eye(4, dtype=np.int64)
        before = 9 * rows[place - 1]  # too many here, and too few where some are expected
        after = before - rows[place - 1] + rows[place]
        moved = int(tie.of_marginal(before)[0] - tie.of_marginal(after)[0])
        assert moved == (2 if tie.reference.any() else 0)
        assert not tie.sensitivity(Relation.REPLACE).exact
        assert tie.sensitivity(Relation.ADD_REMOVE).exact


def test_a_tie_comes_back_from_plain_data() -> None:
    tie = Tie((0, 2), (6, 4), (5, 3, 2, 0), 10)
    spec = json.loads(json.dumps(tie.to_dict(DOMAIN.names)))
    assert spec == {"kind": "tie", "attributes": ["a", "c"], "first": [6, 4], "second": [5, 3, 2, 0], "total": 10}
    again = queries_of(spec, DOMAIN)
    assert again == tie
    assert hash(again) == hash(tie)
    assert np.array_equal(again.of_marginal(np.arange(8)), tie.of_marginal(np.arange(8)))


def test_columns_in_another_order_keep_their_estimates() -> None:
    tie = Tie((0, 2), (6, 4), (5, 3, 2, 0), 10)
    other = Domain(("c", "b", "a"), (4, 3, 2))
    again = queries_of(tie.to_dict(DOMAIN.names), other)
    assert again == Tie((0, 2), (5, 3, 2, 0), (6, 4), 10)
    table = np.arange(8)
    assert again.of_marginal(table.reshape(2, 4).T.ravel()) == tie.of_marginal(table)


@pytest.mark.parametrize(
    "given",
    [
        {"scope": (1, 0)},
        {"scope": (0,)},
        {"scope": (0, 1, 2)},
        {"first": ()},
        {"second": ()},
        {"first": (-1, 2)},
        {"total": 0},
    ],
)
def test_what_is_no_tie_is_refused(given: dict[str, Any]) -> None:
    good: dict[str, Any] = {"scope": (0, 1), "first": (1, 2), "second": (2, 1), "total": 3}
    assert Tie(**good).size == 1
    with pytest.raises(ValueError, match="must be"):
        Tie(**(good | given))


def test_plain_data_of_other_columns_is_refused() -> None:
    spec = Tie((0, 2), (6, 4), (5, 3, 2, 0), 10).to_dict(DOMAIN.names)
    with pytest.raises(ValueError, match="must be for the codes of its attributes"):
        queries_of(spec | {"first": [6, 4, 0]}, DOMAIN)
    with pytest.raises(ValueError, match="must be for the codes of its attributes"):
        queries_of(spec | {"attributes": ["a"]}, DOMAIN)


def test_a_tie_is_no_predicate_and_no_linear_map() -> None:
    tie = Tie((0, 1), (1, 2), (2, 1), 3)
    assert tie.factors is None
    assert not tie.partition
    assert tie.take([0]) is tie
    assert tie.without(0) is None
    for refused in (
        lambda: tie.holds([np.zeros(1, int)] * 2),
        lambda: tie.to_marginal(np.ones(1)),
        lambda: tie.take([1]),
    ):
        with pytest.raises(ValueError, match="a tie is a"):
            refused()


def test_no_workload_has_ties() -> None:
    with pytest.raises(InputError, match="workload must hold queries that records satisfy, got a tie"):
        Workload(DOMAIN, (Tie((0, 1), (1, 2), (2, 1, 0), 3),))
