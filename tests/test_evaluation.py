"""Errors against the real table, on examples worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pointillist import evaluate, synthesize
from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Schema
from pointillist.data.table import Table
from pointillist.errors import InputError
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import compare_tables, fractions, independent_columns
from pointillist.queries.kway import all_kway
from pointillist.queries.product import Product
from pointillist.queries.workload import Workload

SCHEMA = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2))))


def table(*rows: tuple[int, int]) -> Table:
    return Table(SCHEMA, tuple(np.array(column) for column in zip(*rows, strict=True)))


REAL = table((0, 0), (0, 0), (0, 1), (1, 2))
"""a: 3/4, 1/4; b: 1/2, 1/4, 1/4; a and b: 1/2, 1/4, 0 | 0, 0, 1/4."""


def test_errors_by_hand() -> None:
    domain = Domain(("a", "b"), (2, 3))
    workload = Workload.of(domain, [("a",), ("b",)])
    truth = np.array([0.75, 0.25, 0.5, 0.25, 0.25])
    answers = np.array([0.65, 0.35, 0.5, 0.05, 0.45])
    errors = compare(workload, truth, answers)
    assert errors.max == pytest.approx(0.2)
    assert errors.mean == pytest.approx((0.1 + 0.1 + 0 + 0.2 + 0.2) / 5)
    assert errors.rmse == pytest.approx(np.sqrt((0.01 + 0.01 + 0 + 0.04 + 0.04) / 5))
    assert errors.tvd == pytest.approx((0.1 + 0.2) / 2)  # half the L1 error of each marginal, averaged
    assert list(errors.to_dict()) == ["max", "mean", "rmse", "tvd"]


def test_only_marginals_have_a_distance_of_distributions() -> None:
    domain = Domain(("a", "b"), (2, 3))
    prefixes = Product.of(domain, {"b": "prefixes"})
    truth, answers = np.array([0.5, 0.75, 1.0]), np.array([0.6, 0.95, 1.0])
    alone = compare(Workload.of(domain, [prefixes]), truth, answers)
    assert (alone.max, alone.mean) == (pytest.approx(0.2), pytest.approx(0.1))
    assert math.isnan(alone.tvd)
    with_marginal = Workload.of(domain, [prefixes, ("a",)])
    both = compare(with_marginal, np.append(truth, [0.75, 0.25]), np.append(answers, [0.65, 0.35]))
    assert both.tvd == pytest.approx(0.1)
    assert both.max == pytest.approx(0.2)


def test_fractions_by_hand() -> None:
    assert fractions(REAL, all_kway(REAL.domain, 2)).tolist() == [0.5, 0.25, 0, 0, 0, 0.25]
    assert fractions(REAL, all_kway(REAL.domain, 1)).tolist() == [0.75, 0.25, 0.5, 0.25, 0.25]


def test_independent_columns_by_hand() -> None:
    """Products of the columns: 3/8, 3/16, 3/16 | 1/8, 1/16, 1/16."""
    errors = independent_columns(REAL, all_kway(REAL.domain, 2))
    differences = np.array([1 / 8, 1 / 16, 3 / 16, 1 / 8, 1 / 16, 3 / 16])
    assert errors.max == pytest.approx(3 / 16)
    assert errors.mean == pytest.approx(differences.mean())
    assert errors.rmse == pytest.approx(np.sqrt((differences**2).mean()))
    assert errors.tvd == pytest.approx(differences.sum() / 2)
    assert independent_columns(REAL, all_kway(REAL.domain, 1)).max == 0
    prefixes = Workload.of(REAL.domain, [Product.of(REAL.domain, {"a": "values", "b": "prefixes"})])
    # real: 1/2, 3/4, 3/4 | 0, 0, 1/4; independent: 3/8, 9/16, 3/4 | 1/8, 3/16, 1/4
    assert independent_columns(REAL, prefixes).max == pytest.approx(3 / 16)
    assert independent_columns(REAL, prefixes).mean == pytest.approx((2 * 1 / 8 + 2 * 3 / 16) / 6)


def test_tables_are_compared_by_fractions() -> None:
    synthetic = table((0, 0), (1, 2))
    result = compare_tables(REAL, synthetic, all_kway(REAL.domain, 2))
    assert (result.n, result.queries, result.model) == (4, 6, None)
    assert result.rows.max == 0.25
    assert result.rows.tvd == 0.25
    assert sorted(result.to_dict()) == ["n", "queries", "rows"]
    assert compare_tables(REAL, REAL.take(np.array([3, 2, 1, 0])), all_kway(REAL.domain, 2)).rows.max == 0


def test_a_release_is_compared_with_its_model() -> None:
    rng = np.random.default_rng(0)
    real = Table(SCHEMA, (rng.integers(0, 2, 5000), rng.integers(0, 3, 5000)))
    release = synthesize(real, epsilon=5.0, workload="marginals:2")
    result = compare_tables(real, release.table, release.workload, release)
    assert result.model is not None
    assert result.model.max == pytest.approx(np.abs(release.answers() - fractions(real, release.workload)).max())
    assert result.model.max < 0.05
    assert [name for name, _ in result.lines()] == ["the synthetic rows", "the model"]
    assert list(result.to_dict()) == ["n", "queries", "rows", "model"]


def test_evaluate_takes_releases_and_tables() -> None:
    rng = np.random.default_rng(0)
    real = Table(SCHEMA, (rng.integers(0, 2, 500), rng.integers(0, 3, 500)))
    release = synthesize(real, epsilon=5.0, workload="marginals:1", method="mwem", settings={"rounds": 2})
    by_default = evaluate(real, release)
    assert by_default.comparison == compare_tables(real, release.table, release.workload, release)
    assert by_default.queries == 5
    pairs = all_kway(real.domain, 2)
    assert evaluate(real, release, "marginals:2") == evaluate(real, release, pairs)
    assert evaluate(real, release, pairs).comparison == compare_tables(real, release.table, pairs, release)
    assert evaluate(real, release.table, pairs).comparison == compare_tables(real, release.table, pairs)
    assert evaluate(real, real, pairs).rows.max == 0


def test_evaluate_refuses_other_columns() -> None:
    other = Table(Schema((Categorical("a", (0, 1)), Categorical("c", (0, 1, 2)))), REAL.codes)
    with pytest.raises(InputError) as refused:
        evaluate(REAL, other, "marginals:1")
    assert str(refused.value) == (
        "synthetic must have the schema of the real table, got another schema; "
        "give the table that the release was made from."
    )
    with pytest.raises(InputError) as refused:
        evaluate(REAL, REAL, all_kway(other.domain, 1))
    assert str(refused.value) == (
        "workload must be over the table's columns, got another domain; build it from table.domain."
    )
    with pytest.raises(InputError, match=r"workload: K must be in 1 \.\. 2, the number of attributes, got 3"):
        evaluate(REAL, REAL)  # by default all three-way marginals
