"""Rows that are brought nearer to the model's answers: they get there, and lose nothing else on the way."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Categorical, Release, Rule, Schema, Table, load, synthesize
from pointillist.attestation import verify
from pointillist.data.domain import Attributes, Domain
from pointillist.data.sources import sum_weights
from pointillist.families.conditioning import Joint
from pointillist.families.histogram import Histogram
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.queries.base import Queries
from pointillist.queries.groups import Groups
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.release import draw_rows, drawn_rows, matching
from pointillist.release.matching import Limits, match_rows, scopes_for

SIZES = (3, 4, 5, 2, 6)
DOMAIN = Domain(tuple("abcde"), SIZES)
SCHEMA = Schema(tuple(Categorical(name, tuple(range(size))) for name, size in zip("abcde", SIZES, strict=True)))
ROWS = 3000


def mixture(rows: int = 20, spread: float = 2.0) -> tuple[Relaxed, Any]:
    family = Relaxed(SoftmaxRows(DOMAIN, rows, spread))
    return family, family.init(np.random.default_rng(1))


def marginals(order: int) -> list[Marginal]:
    return [Marginal.of(DOMAIN, scope) for scope in itertools.combinations(range(len(SIZES)), order)]


def far(codes: Sequence[np.ndarray], order: int) -> float:
    """The mean total variation distance of all marginals of an order between rows and the model."""
    family, params = mixture()
    rows, queries = len(codes[0]), marginals(order)
    counts = sum_weights(codes, np.ones(rows), DOMAIN, [one.scope for one in queries])
    return float(np.abs(np.concatenate(counts) / rows - family.answers(params, queries)).sum() / 2 / len(queries))


def search(rows: int = 300, joints: tuple[Joint, ...] = ()) -> tuple[matching._Search, matching._Targets, np.ndarray]:
    family, params = mixture(4)
    codes, labels = family.sample_labelled(np.random.default_rng(0), params, rows)
    scopes: list[Attributes] = [(0, 1, 2), (1, 3), (2, 4), (0, 3, 4)]
    targets = matching._Targets.of(DOMAIN, scopes, family, params, rows)
    return matching._Search(targets, codes, Limits(joints)), targets, labels


@pytest.mark.parametrize("wanted", [2, 3])
def test_rows_get_much_nearer_to_the_model_in_all_orders(wanted: int) -> None:
    family, params = mixture()
    plain = [draw_rows(family, params, SCHEMA, ROWS, seed).codes for seed in range(5)]
    matched = [drawn_rows(family, params, SCHEMA, ROWS, seed, wanted=marginals(wanted)) for seed in range(5)]
    for order, most in ((1, 0.2), (2, 0.4), (3, 0.9), (4, 1.0), (5, 1.0)):
        before = np.mean([far(codes, order) for codes in plain])
        after = np.mean([far(one.table.codes, order) for one in matched])
        assert after < most * before, order
    found = matched[0].matched
    assert found is not None
    assert found.marginals == len(marginals(wanted))
    assert found.before == pytest.approx(far(plain[0], wanted), rel=1e-3)
    assert found.after == pytest.approx(far(matched[0].table.codes, wanted), rel=1e-2)
    assert f"{found.after:.4f} from the model" in found.describe()


def test_every_value_is_as_frequent_as_in_the_model_up_to_rounding() -> None:
    family, params = mixture()
    codes = draw_rows(family, params, SCHEMA, ROWS, 0, wanted=marginals(3)).codes
    for column, expected in zip(codes, family.expected(params, [(i,) for i in range(5)]), strict=True):
        assert np.abs(np.bincount(column, minlength=len(expected)) - ROWS * expected).max() < 2


def test_rows_without_mates_keep_their_values() -> None:
    """A row that is the only one of its row of the mixture has none to exchange with."""
    family, params = mixture(50)
    codes, labels = family.sample_labelled(np.random.default_rng(0), params, 60)
    new, found = match_rows(family, params, DOMAIN, codes, labels, marginals(3), Limits(), np.random.default_rng(0))
    single = np.bincount(labels, minlength=50)[labels] == 1
    assert single.any()
    assert found is not None
    assert all(np.array_equal(a[single], b[single]) for a, b in zip(codes, new, strict=True))
    few, none = match_rows(
        family, params, DOMAIN, [c[single] for c in codes], labels[single], marginals(3), Limits(),
        np.random.default_rng(0),
    )  # fmt: skip
    assert none is None
    assert all(np.array_equal(a[single], b) for a, b in zip(codes, few, strict=True))


def test_changes_of_the_distance_are_exact() -> None:
    found, targets, labels = search()
    mates = np.flatnonzero(labels == labels[0])[:2]
    weights = np.array([matching.ONE_WAY if len(scope) == 1 else 1.0 for scope in targets.scopes])
    by_cell = np.repeat(weights, np.diff(targets.offsets))
    tried = 0
    for attribute in range(len(SIZES)):
        table = np.stack(found.codes, axis=1)
        first, second = table[mates, attribute]
        if first == second:
            continue
        tried += 1
        of = found._of[attribute]
        cells = np.array([[_cell(table[row], scope) for row in mates] for scope in targets.scopes])
        cells = (cells + targets.offsets[:-1, None])[of.marginals]
        step = of.strides * np.array([second - first, first - second])
        changes = found._changes(cells, cells + step, of)[:, 0]
        for values, half in zip(((second, first), (second, second), (first, first)), changes, strict=True):
            changed = table.copy()
            changed[mates, attribute] = values
            distance = float((by_cell * targets.residuals(tuple(changed.T)) ** 2).sum())
            assert distance - found.distance == 2 * half
    assert tried >= 2


def _cell(row: np.ndarray, scope: Attributes) -> int:
    return int(np.ravel_multi_index([row[i] for i in scope], [SIZES[i] for i in scope]))


def test_residuals_are_those_of_the_rows_after_many_exchanges() -> None:
    found, targets, labels = search()
    before, first = found.distance, found.codes
    rng = np.random.default_rng(3)
    for _ in range(3):
        for pairs in matching._batches(labels, rng):
            assert (labels[pairs[0]] == labels[pairs[1]]).all()
            found.improve(pairs, rng)
    assert found.distance < before / 2
    assert np.array_equal(found._residuals, targets.residuals(found.codes))
    assert any(not np.array_equal(a, b) for a, b in zip(first, found.codes, strict=True))


def test_every_row_is_in_one_pair_at_most() -> None:
    labels = np.random.default_rng(0).integers(0, 7, 501)
    rows = np.concatenate([pairs.ravel() for pairs in matching._batches(labels, np.random.default_rng(0))])
    assert len(np.unique(rows)) == len(rows)
    assert len(rows) == sum(n // 2 * 2 for n in np.bincount(labels))


def test_a_pass_that_makes_it_worse_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found, targets, labels = search()
    before, distance = found.codes, found.far

    def worse(pairs: np.ndarray, rng: np.random.Generator) -> None:
        found._table[:] = 0
        found._residuals = targets.residuals(found.codes)

    monkeypatch.setattr(found, "improve", worse)
    kept, far = matching._searched(found, labels, 3, np.random.default_rng(0))
    assert far == distance
    assert all(np.array_equal(a, b) for a, b in zip(before, kept, strict=True))


def rare_rules() -> tuple[Rule, ...]:
    """Rules that forbid the rarest combinations of two pairs of columns."""
    family, params = mixture()
    rules = []
    for scope, part in zip(((0, 1), (2, 3)), family.expected(params, [(0, 1), (2, 3)]), strict=True):
        first, second = np.unravel_index(part.argmin(), DOMAIN.shape(scope))
        rules.append(Rule(never=f"{'abcde'[scope[0]]} == {first} and {'abcde'[scope[1]]} == {second}"))
    return tuple(rules)


@pytest.mark.parametrize("most", [0, 10, 10_000])
def test_rules_are_obeyed(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointillist.release.drawing.MOST_COMBINATIONS", most)
    family, params = mixture()
    schema = Schema(SCHEMA.columns, rules=rare_rules())
    plain = drawn_rows(family, params, schema, ROWS, 0)
    found = drawn_rows(family, params, schema, ROWS, 0, wanted=marginals(3))
    assert set(schema.rules.violations(found.table).values()) == {0}  # type: ignore[attr-defined]
    assert found.rules == plain.rules
    assert far(found.table.codes, 3) < 0.9 * far(plain.table.codes, 3)
    changed = [not np.array_equal(a, b) for a, b in zip(plain.table.codes, found.table.codes, strict=True)]
    in_rules = [False, False, False, False] if most == 0 else [False, False, True, True] if most == 10 else [True] * 4
    assert changed == [*in_rules, True]  # columns of rules with many combinations stay as they were drawn


def test_the_same_seed_gives_the_same_rows() -> None:
    family, params = mixture()
    one, two, other = (draw_rows(family, params, SCHEMA, 500, seed, wanted=marginals(2)) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one.codes, two.codes, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(one.codes, other.codes, strict=True))


def test_rows_on_a_condition_and_of_other_families_stay_as_drawn() -> None:
    family, params = mixture()
    allowed = {0: np.array([1.0, 0.0, 1.0])}
    given = drawn_rows(family, params, SCHEMA, 500, 0, allowed=allowed, wanted=marginals(2))
    plain = draw_rows(family, params, SCHEMA, 500, 0, allowed=allowed)
    assert given.matched is None
    assert all(np.array_equal(a, b) for a, b in zip(given.table.codes, plain.codes, strict=True))
    weights = Histogram(DOMAIN).init(np.random.default_rng(0))
    assert drawn_rows(Histogram(DOMAIN), weights, SCHEMA, 500, 0, wanted=marginals(2)).matched is None


ODD: dict[str, list[Queries]] = {
    "single cells": [Marginal.of(DOMAIN, (0, 1)).take([3]), Marginal.of(DOMAIN, (2, 4)).take([0, 7])],
    "prefixes": [Product.of(DOMAIN, {"b": "prefixes", "e": "prefixes"})],
    "groups": [Groups((2,), (0, 0, 1, 1, 2))],
    "one column": [Marginal.of(DOMAIN, (4,))],
    "all columns": [Marginal.of(DOMAIN, range(5))],
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_odd_workloads_and_few_rows(name: str, rows: int) -> None:
    family, params = mixture(2)
    table, _, found = drawn_rows(family, params, SCHEMA, rows, 0, wanted=ODD[name])
    assert len(table) == rows
    assert (found is None) == (rows <= 2)
    assert found is None or found.after <= found.before


def test_a_table_of_one_column() -> None:
    family = Relaxed(SoftmaxRows(Domain(("a",), (4,)), 10))
    params = family.init(np.random.default_rng(0))
    schema = Schema((Categorical("a", tuple("wxyz")),))
    table = draw_rows(family, params, schema, 1000, 0, wanted=[Marginal((0,), (4,))])
    (expected,) = family.expected(params, [(0,)])
    assert np.abs(np.bincount(table.codes[0], minlength=4) - 1000 * expected).max() <= 1


def test_what_is_expected_is_what_the_model_answers() -> None:
    family, params = mixture()
    queries = [*marginals(1), *marginals(3), *marginals(5)]
    expected = np.concatenate(list(family.expected(params, [one.scope for one in queries])))
    assert np.abs(expected - family.answers(params, queries)).max() < 1e-6


def test_large_products_are_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    family, params = mixture()
    (whole,) = family.expected(params, [(0, 1, 2, 4)])
    monkeypatch.setattr("pointillist.families.relaxed.MOST_PRODUCT", 150)
    (parts,) = family.expected(params, [(0, 1, 2, 4)])
    assert np.allclose(whole, parts, rtol=1e-12, atol=0)


def test_rows_of_clipped_models_are_matched_to_what_is_drawn_from_them() -> None:
    """Clipped rows are no distributions: rows are drawn from what is above 0, divided by its sum."""
    family = Relaxed(ClippedRows(DOMAIN, 10))
    params = family.init(np.random.default_rng(0))
    assert all(part.sum() == pytest.approx(1) for part in family.expected(params, [(0,), (1, 2), (0, 3, 4)]))
    found = drawn_rows(family, params, SCHEMA, ROWS, 0, wanted=marginals(2)).matched
    assert found is not None
    assert found.after < found.before / 2


def test_what_costs_too_much_is_replaced_by_smaller_marginals() -> None:
    pairs = set(itertools.combinations(range(5), 2))
    triples = [Marginal.of(DOMAIN, scope) for scope in itertools.combinations(range(5), 3)]
    assert set(scopes_for(triples, DOMAIN, 1000)) == {one.scope for one in triples}
    wide = Domain(("a", "b", "c", "d"), (10_000, 10_000, 10_000, 2))
    mixed = [Marginal.of(wide, (0, 1, 2)), Marginal.of(wide, (0, 3))]  # the first has 10^12 cells
    assert set(scopes_for(mixed, wide, 100_000)) == {(0,), (1,), (2,), (0, 3)}
    rows = matching.MOST_WORK // (2 * (5 + 2 * len(pairs))) - 10**6
    assert set(scopes_for(triples, DOMAIN, rows)) <= pairs | {(i,) for i in range(5)}
    assert scopes_for(triples, DOMAIN, 10**9) == ()


@pytest.mark.parametrize(("columns", "rows"), [(13, 44_000), (40, 300_000), (100, 20_000), (200, 1_000_000)])
def test_the_work_is_bounded(columns: int, rows: int) -> None:
    domain = Domain(tuple(map(str, range(columns))), (10,) * columns)
    every = [Marginal.of(domain, scope) for scope in itertools.combinations(range(columns), 2 if columns > 50 else 3)]
    scopes = scopes_for(every, domain, rows)
    passes = matching._passes(scopes, domain, rows)
    assert (passes >= 2) == (len(scopes) > 0)
    assert passes * rows * (columns + sum(map(len, scopes))) <= matching.MOST_WORK
    assert sum(map(domain.cells_of, scopes)) <= matching.MOST_CELLS
    assert len(scopes) <= matching.MOST_SCOPES


def test_a_marginal_over_many_columns_is_replaced_by_pairs() -> None:
    domain = Domain(tuple(map(str, range(26))), (2,) * 26)
    scopes = scopes_for([Marginal.of(domain, range(26))], domain, 1000)
    assert set(scopes) == set(itertools.combinations(range(26), 2))


def test_a_workload_of_very_many_marginals_is_replaced_by_pairs() -> None:
    domain = Domain(tuple(map(str, range(60))), (2,) * 60)
    every = [Marginal.of(domain, scope) for scope in itertools.combinations(range(60), 3)]
    assert len(every) > matching.MOST_SCOPES
    assert {len(scope) for scope in scopes_for(every, domain, 100)} == {2}


def release_of() -> Release:
    town = load("demo").project(["district", "age", "commute", "income"])
    return synthesize(
        town, epsilon=1.0, workload="marginals:2", method="one-shot", settings={"rows": 20, "t_max": 20}, rows=2000
    )


def test_a_release_says_how_near_its_rows_are_and_replays(tmp_path: Path) -> None:
    release = release_of()
    found = release.description.matched
    assert found is not None
    assert found.after < found.before / 2
    again = Release.load(release.save(tmp_path / "release"))
    assert again.description.matched == found
    assert verify(tmp_path / "release", replay=True).ok
    sampled = again.sample(2000, seed=3)
    assert _distance(again, sampled) < _distance(again, _as_drawn(again, 3, stream=1)) / 2


def test_a_release_of_rows_as_they_were_drawn_still_replays(tmp_path: Path) -> None:
    """As those of earlier versions, which do not mention a match."""
    release = release_of()
    table = _as_drawn(release, release.description.seed)
    old = replace(release, table=table, description=replace(release.description, matched=None))
    folder = old.save(tmp_path / "old")
    assert '"matched"' not in (folder / "release.json").read_text()
    assert verify(folder, replay=True).ok
    wrong = replace(release, description=replace(release.description, matched=None)).save(tmp_path / "wrong")
    assert verify(wrong, replay=True)["replayed rows"].status == "failed"


def _as_drawn(release: Release, seed: int, stream: int = 0) -> Table:
    return draw_rows(release.family, release.params, release.schema, 2000, seed, stream)


def _distance(release: Release, table: Table) -> float:
    queries = release.workload.queries
    counts = sum_weights(table.codes, np.ones(len(table)), release.schema.domain, [one.scope for one in queries])
    return float(np.abs(np.concatenate(counts) / len(table) - release.answers()).sum())
