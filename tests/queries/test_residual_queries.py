"""Residuals: what they are, their sensitivity by brute force over all neighbours, and how they are saved."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.contract.test_contract import small_table

from pointillist import InputError, Workload
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.sources import TableSource
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import Ask, Curator
from pointillist.privacy.ledger import Ledger
from pointillist.queries import residuals
from pointillist.queries.residuals import Residual, Residuals
from pointillist.queries.workload import queries_of

DOMAINS = [(2,), (3,), (2, 2), (2, 3), (3, 4), (2, 2, 2), (2, 3, 4), (4, 2, 3, 2)]


def every(sizes: tuple[int, ...], seed: int = 0, most: int = 3) -> Residuals:
    """The residuals of all sets of up to three attributes, with random weights; some are left out."""
    rng = np.random.default_rng(seed)
    scopes = [s for k in range(1, most + 1) for s in itertools.combinations(range(len(sizes)), k)]
    kept = [s for n, s in enumerate(scopes) if n == 0 or rng.random() < 0.8]
    return Residuals(tuple(Residual(s, tuple(sizes[i] for i in s), int(rng.integers(1, 9))) for s in kept))


def columns_of(queries: Residuals) -> np.ndarray:
    """What one record adds to the residuals, for every record of the domain: by the definition as a Kronecker
    product."""
    columns = []
    for record in itertools.product(*map(range, queries.shape)):
        parts = []
        for part in queries.parts:
            column = np.ones(1, int)
            for i, m in zip(part.scope, part.shape, strict=True):
                code = record[queries.scope.index(i)]
                column = np.kron(column, m * np.eye(m, dtype=int)[code] - 1)
            parts.append(part.weight * column)
        columns.append(np.concatenate(parts))
    return np.array(columns)


@pytest.mark.parametrize("sizes", DOMAINS)
def test_residuals_are_what_the_definition_says(sizes: tuple[int, ...]) -> None:
    queries = every(sizes)
    columns = columns_of(queries)
    table = np.random.default_rng(1).integers(0, 50, len(columns))
    assert np.array_equal(queries.of_marginal(table), table @ columns)
    values = np.random.default_rng(2).standard_normal(queries.size)
    assert np.allclose(queries.to_marginal(values), columns @ values)


@pytest.mark.parametrize("limit", [18, 4, 3, 2, 0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", DOMAINS)
def test_sensitivities_hold_for_all_neighbours(
    sizes: tuple[int, ...], seed: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under both relations; the squared length is attained as long as all ways to differ are compared."""
    monkeypatch.setattr(residuals, "MOST_ATTRIBUTES", limit)
    residuals._sensitivity.cache_clear()
    queries = every(sizes, seed)
    columns = columns_of(queries)
    for relation in Relation:
        changes = columns if relation is Relation.ADD_REMOVE else (columns[:, None] - columns).reshape(-1, queries.size)
        claimed = queries.sensitivity(relation)
        square = int((changes**2).sum(axis=1).max())
        assert claimed.single >= np.abs(changes).max()
        assert claimed.l1 >= np.abs(changes).sum(axis=1).max()
        assert claimed.l2_squared >= square
        if relation is Relation.ADD_REMOVE or limit >= len(sizes):
            assert claimed.l2_squared == square
        if relation is Relation.ADD_REMOVE:
            assert claimed.exact
            assert (claimed.single, claimed.l1) == (np.abs(changes).max(), np.abs(changes).sum(axis=1).max())
    residuals._sensitivity.cache_clear()


def test_groups_of_scopes_bound_the_sensitivity_better_than_scopes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is in one group, and no group has too many attributes."""
    queries = every((2, 3, 4, 2, 5, 2, 3, 4, 2, 3), 1)
    found = {}
    for limit in (10, 6, 0):
        monkeypatch.setattr(residuals, "MOST_ATTRIBUTES", limit)
        residuals._sensitivity.cache_clear()
        found[limit] = queries.sensitivity(Relation.REPLACE).l2_squared
        groups, alone = residuals._groups(queries.parts)
        together = [part for group in groups for part in group] + alone
        assert sorted(part.scope for part in together) == sorted(part.scope for part in queries.parts)
        assert all(len({i for part in group for i in part.scope}) <= limit for group in groups)
    residuals._sensitivity.cache_clear()
    assert found[10] < found[6] < found[0]
    monkeypatch.setattr(residuals, "MOST_ATTRIBUTES", 6)
    monkeypatch.setattr(residuals, "MOST_GROUPS", 2)
    assert found[6] < queries.sensitivity(Relation.REPLACE).l2_squared < found[0]
    residuals._sensitivity.cache_clear()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_rounded_weights_are_as_the_roots_of_what_was_given(scale: float) -> None:
    units = [Residual((i,), (m,), 1) for i, m in enumerate((2, 3, 40))]
    squares = scale * np.array([1.0, 4.0, 9.0])
    weights = np.array([part.weight for part in residuals.rounded(units, squares).parts])
    assert np.allclose(weights / weights[0], [1, 2, 3], rtol=1e-5)
    found = residuals.rounded(units, squares).sensitivity(Relation.ADD_REMOVE).l2_squared
    assert found == pytest.approx(residuals.square_before_rounding(units), rel=1e-5)


def test_large_marginals_have_weights_of_several_digits() -> None:
    """Squares stay within 64 bits."""
    units = [Residual((0, 1), (3, 5_000), 1), Residual((1, 2), (5_000, 5_000), 1), Residual((0,), (3,), 1)]
    shares = np.array([0.07, 0.9, 0.03])
    found = residuals.rounded(units, shares / np.array([float(unit.square) for unit in units]))
    square = found.sensitivity(Relation.ADD_REMOVE).l2_squared
    assert [part.square / square for part in found.parts] == pytest.approx(shares.tolist(), rel=0.05)
    assert square < 2**62
    assert residuals.square_before_rounding(units) > residuals.square_before_rounding(units[:1])


def test_large_weights_are_compared_in_whole_numbers() -> None:
    """Also where numpy would make a float of two Python integers."""
    part = Residual((0,), (3,), 2**40 + 1)
    expected = 2 * (part.square + part.weight**2 * 3)
    assert Residuals((part,)).sensitivity(Relation.REPLACE).l2_squared == expected


@pytest.mark.parametrize(
    "changed", [{"weights": [3.5]}, {"weights": ["3"]}, {"weights": [True]}, {"scopes": [["b", "a"]]}]
)
def test_a_description_has_one_form(changed: dict[str, list[Any]]) -> None:
    domain = Domain(("a", "b"), (2, 3))
    spec = Residuals((Residual((0, 1), (2, 3), 3),)).to_dict(domain.names)
    assert queries_of(spec, domain)
    with pytest.raises(ValueError, match=r"whole numbers|increasing"):
        queries_of(spec | changed, domain)


def test_too_many_rows_are_refused_in_one_sentence() -> None:
    part = Residual((0,), (2,), 10**9)
    part.of_marginal(np.array([10**9, 10**9]))
    with pytest.raises(InputError, match="must be small enough for residuals in 64 bits"):
        part.of_marginal(np.array([10**10, 10**10]))


def test_residuals_whose_weights_round_to_nothing_are_left_out_but_for_the_largest() -> None:
    units = [Residual((0, 1), (10**6, 10**6), 1), Residual((0, 2), (10**6, 10**6), 1), Residual((0,), (10**6,), 1)]
    squares = np.array([2.0, 1.0, 1e-6])
    assert [part.scope for part in residuals.rounded(units, squares).parts] == [(0, 1)]
    assert [part.weight for part in residuals.rounded(units, squares).parts] == [1]
    assert [part.weight for part in residuals.rounded(units, squares, least=1).parts] == [1, 1, 1]
    assert [part.scope for part in residuals.rounded(units[1:], np.array([0.0, 1.0])).parts] == [(0,)]


def test_residuals_survive_saving() -> None:
    domain = Domain(("a", "b", "c"), (2, 3, 4))
    queries = every(domain.sizes)
    assert queries_of(queries.to_dict(domain.names), domain) == queries


def test_the_curator_counts_the_parts_and_charges_once() -> None:
    """One charge for all residuals, at their common sensitivity; without the marginal over all attributes."""
    table = small_table()
    queries = every(table.domain.sizes)
    ledger = Ledger(Budget(1.0, 1e-6, Relation.REPLACE))
    (measured,) = Curator(TableSource(table), ledger).measure([Ask(queries, ledger.left)])
    (entry,) = ledger.entries
    assert round(entry.sensitivity**2) == queries.sensitivity(Relation.REPLACE).l2_squared
    assert measured.sigma == entry.scale
    whole = np.zeros(table.domain.sizes, int)
    np.add.at(whole, tuple(table.codes), 1)
    truth = queries.of_marginal(whole.ravel())
    assert np.abs(measured.counts - truth).max() < 8 * entry.scale
    assert np.std(measured.counts - truth) == pytest.approx(entry.scale, rel=0.3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Residual((0,), (1,), 1), "two values or more"),
        (lambda: Residual((0,), (3,), 0), "weight of 1 or more"),
        (lambda: Residuals(()), "at least one scope"),
        (lambda: Residuals((Residual((0,), (3,), 1), Residual((0,), (3,), 2))), "of each once"),
        (lambda: Residuals((Residual((0,), (3,), 1), Residual((0, 1), (4, 2), 2))), "same size"),
        (lambda: every((2, 3)).holds([]), "no single record satisfies"),
        (lambda: every((2, 3)).take([0]), "measured together"),
    ],
)
def test_what_is_no_residual_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_residuals_are_not_wanted_for_themselves() -> None:
    with pytest.raises(InputError, match="must hold queries that records satisfy"):
        Workload(Domain(("a", "b"), (2, 3)), (every((2, 3)),))
