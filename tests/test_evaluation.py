"""Errors against the real table, on examples worked by hand."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pointillist import evaluate, synthesize
from pointillist.data.columns import Temporal
from pointillist.data.domain import Domain
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table
from pointillist.errors import InputError
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.columns import LabelsReport, NumbersReport, compare_columns
from pointillist.evaluation.judgement import NOTICE
from pointillist.evaluation.report import compare_tables, fractions, independent_columns
from pointillist.evaluation.values import Numbers, show_number
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
        evaluate(REAL, REAL, "marginals:3")
    assert evaluate(REAL, REAL).rows.max == 0  # without a workload, what suits the columns is taken


# --- values


NUMBERS = Schema(
    (
        Numeric("x", (0, 10, 20), integer=True, missing=True),
        Numeric("y", (0.0, 50.0, 100.0)),
        Categorical("g", ("u", "v"), missing=True),
    )
)


def numbers(x: list[float | None], y: list[float], g: list[str | None]) -> pd.DataFrame:
    return pd.DataFrame({"x": x, "y": y, "g": g})


FIRST = numbers([0, 0, 10, 20], [1.0, 2.0, 3.0, 4.0], ["u", "u", "v", None])
SECOND = numbers([0, 10, 10, None], [1.0, 2.0, 3.0, 8.0], ["u", "v", "v", "v"])


def test_columns_by_hand() -> None:
    found = evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS)
    x, y, g = found.columns
    assert isinstance(x, NumbersReport)
    assert isinstance(y, NumbersReport)
    assert isinstance(g, LabelsReport)
    assert x.mean == (pytest.approx(7.5), pytest.approx(20 / 3))
    assert x.std.real == pytest.approx(np.std([0, 0, 10, 20]))
    assert x.mean_error == pytest.approx((20 / 3 - 7.5) / x.std.real)
    assert x.missing == (0, 0.25)
    assert x.quantiles[0.5] == (0, 10)  # always one of the values
    assert (x.quantiles[0.01], x.quantiles[0.99]) == ((0, 0), (20, 10))
    # the shares up to 0 are 1/2 and 1/3, those up to 10 are 3/4 and 1
    assert x.wasserstein == pytest.approx(10 / 6 + 10 / 4)
    assert x.tvd == pytest.approx((0.25 + 0.25 + 0.25 + 0.25) / 2)  # 0, 10, 20 and missing
    assert y.wasserstein == pytest.approx(1.0)
    assert y.wasserstein_std == pytest.approx(1 / np.std([1, 2, 3, 4]))
    assert y.to_dict()["wasserstein_range"] == pytest.approx(1 / 3)
    assert y.worst_quantile[1] == (4, 8)
    assert (g.tvd, g.worst, g.share, g.missing) == (0.5, "v", (0.25, 0.75), (0.25, 0))


def test_wasserstein_is_that_of_scipy() -> None:
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(0)
    first, second = rng.normal(50, 10, 400), rng.gamma(4, 10, 700)
    tables = [pd.DataFrame({"y": np.clip(values, 0, 99), "g": "u"}) for values in (first, second)]
    found = evaluate(*tables, "marginals:1", schema=NUMBERS.project(["y", "g"])).columns[0]
    assert isinstance(found, NumbersReport)
    assert found.wasserstein == pytest.approx(wasserstein_distance(tables[0]["y"], tables[1]["y"]))


def test_correlations_are_those_of_pandas() -> None:
    rng = np.random.default_rng(0)
    tables = []
    for slope in (1.0, 0.4):
        x = rng.integers(0, 21, 500).astype(float)
        y = np.clip(50 + slope * x + rng.normal(0, 5, 500), 0, 100)
        x[rng.random(500) < 0.1] = np.nan
        tables.append(pd.DataFrame({"x": x, "y": y, "g": rng.choice(["u", "v"], 500)}))
    pairs = {one.names: one for one in evaluate(*tables, "marginals:2", schema=NUMBERS).pairs}
    assert set(pairs) == {("x", "y"), ("x", "g"), ("y", "g")}
    one = pairs["x", "y"]
    assert one.pearson is not None
    assert one.spearman is not None
    assert np.allclose(one.pearson, [t["x"].corr(t["y"]) for t in tables])
    assert np.allclose(one.spearman, [t["x"].corr(t["y"], method="spearman") for t in tables], atol=0.01)
    assert one.correlation_error > 0.2
    assert pairs["x", "g"].pearson is None
    assert math.isnan(pairs["x", "g"].correlation_error)


def test_contingency_by_hand() -> None:
    both = Schema((Categorical("a", ("0", "1")), Categorical("b", ("0", "1"))))
    same = pd.DataFrame({"a": ["0", "1"] * 10, "b": ["0", "1"] * 10})
    free = pd.DataFrame({"a": ["0", "0", "1", "1"] * 5, "b": ["0", "1"] * 10})
    (pair,) = evaluate(same, free, "marginals:1", schema=both).pairs
    assert pair.cramers_v == (pytest.approx(1), pytest.approx(0))
    assert pair.tvd == pytest.approx(0.5)


def test_bad_decoding_shows() -> None:
    """Errors of the bins are 0 in both cases; only the values tell them apart."""
    real = pd.DataFrame({"y": np.full(200, 1.0), "g": "u"}, index=range(200))
    real.loc[:50, "y"] = 99.0
    schema = NUMBERS.project(["y", "g"])
    flat = Table.encode(real, schema)
    found = evaluate(real, flat, "marginals:1")
    assert found.rows.max == 0
    assert abs(found.columns[0].mean_error) > 0.05  # type: ignore[union-attr]
    assert found.columns[0].wasserstein > 10  # type: ignore[union-attr]
    assert evaluate(real, real, "marginals:1", schema=schema).summary["worst_wasserstein"] == 0


def test_texts_of_a_csv_file_are_read_as_the_schema_says() -> None:
    texts = FIRST.astype(object).where(FIRST.notna(), "").astype(str)
    texts["x"] = [" 0", "0.0", "10", "20"]
    found = evaluate(texts, FIRST, "marginals:1", schema=NUMBERS)
    assert found.summary["worst_wasserstein"] == 0
    assert found.summary["worst_missing"] == 0


def test_every_kind_of_table_gives_the_same_figures() -> None:
    want = evaluate(FIRST, SECOND, "marginals:2", schema=NUMBERS).to_dict()
    kinds = [pl.from_pandas, pa.Table.from_pandas, lambda t: t]
    for first, second in itertools.product(kinds, kinds):
        assert evaluate(first(FIRST), second(SECOND), "marginals:2", schema=NUMBERS).to_dict() == want
    assert json.loads(json.dumps(want, allow_nan=False)) == want


def test_without_any_schema_one_is_drafted() -> None:
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({"x": rng.normal(0, 1, 300), "g": rng.choice(["u", "v"], 300), "more": 1}) for _ in range(2)]
    found = evaluate(tables[0], tables[1].drop(columns="more"), "marginals:2")
    assert [one.name for one in found.columns] == ["x", "g"]
    assert 0 < found.rows.tvd < 0.5
    with pytest.raises(InputError, match="synthetic must have columns of the real table, got none of them"):
        evaluate(tables[0], tables[1].rename(columns=str.upper), "marginals:2")


def test_the_worst_marginal_is_named_with_its_cell() -> None:
    found = evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS).worst
    assert [one.names for one in found] == [("g",), ("x",), ("y",)]
    assert found[0].cell == {"g": "v"}
    assert (found[0].error, found[0].share) == (0.5, (0.25, 0.75))
    assert found[1].cell == {"x": "(missing)"} or found[1].cell["x"].startswith("[")
    products = Workload.of(NUMBERS.domain, [Product.of(NUMBERS.domain, {"x": "prefixes"})])
    (other,) = evaluate(FIRST, SECOND, products, schema=NUMBERS).worst
    assert (other.cell, other.names) == ({}, ("x",))


class Adults(tuple):  # type: ignore[type-arg]
    """Rules as a schema may have them."""

    def violations(self, table: pa.Table) -> dict[str, int]:
        return {"x < 15": int((table["x"].to_pandas() >= 15).sum())}


def test_rules_of_the_schema_are_counted() -> None:
    assert evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS).rules == ()
    schema = replace(NUMBERS)
    object.__setattr__(schema, "rules", Adults([1]))
    found = evaluate(FIRST.astype({"x": str}), SECOND, "marginals:1", schema=schema)
    assert [one.to_dict() for one in found.rules] == [{"rule": "x < 15", "real": 1, "synthetic": 0}]
    assert "x < 15" in str(found)


# --- models


def town(n: int, seed: int, noise: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 21, n)
    y = np.clip(4 * x + noise * rng.normal(0, 5, n), 0, 100)
    return pd.DataFrame({"x": x, "y": y, "g": np.where(x + rng.normal(0, 2, n) > 10, "u", "v")})


@pytest.mark.usefixtures("one_thread")
def test_models_trained_on_synthetic_rows() -> None:
    real, good = town(400, 0), town(400, 1)
    bad = good.assign(g=good["g"].sample(frac=1, random_state=0).to_numpy())
    better, worse = (evaluate(real, one, "marginals:1", schema=NUMBERS, target="g").learning for one in (good, bad))
    assert better is not None
    assert worse is not None
    assert (better.task, better.tested) == ("classification", 120)
    assert set(better.scores) == {"gradient boosting", "linear"}
    for model in better.scores:
        auc = better.scores[model]["auc"]
        assert auc.real > 0.9
        assert auc.synthetic > 0.9
        assert worse.scores[model]["auc"].synthetic < 0.8
        assert worse.scores[model]["auc"].real == auc.real
    number = evaluate(real, good, "marginals:1", schema=NUMBERS, target="y").learning
    assert number is not None
    assert number.task == "regression"
    assert number.scores["linear"]["r2"].synthetic > 0.8


@pytest.mark.usefixtures("one_thread")
def test_a_target_without_classes_has_no_score() -> None:
    one_class = town(100, 1).assign(g="u")
    found = evaluate(town(100, 0), one_class, "marginals:1", schema=NUMBERS, target="g")
    assert found.to_dict()["target"]["scores"]["linear"]["auc"]["synthetic"] is None
    zero_one = Schema((Numeric("y", (0.0, 50.0, 100.0)), Categorical("t", (0, 1), ordered=True)))
    tables = [town(100, n)[["y", "g"]].assign(t=lambda t: (t["g"] == "u").astype(int))[["y", "t"]] for n in (0, 1)]
    found = evaluate(*tables, "marginals:1", schema=zero_one, target="t")
    assert found.learning is not None
    assert found.learning.task == "classification"


def test_wrong_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="target must be a column of the table, got 'z'"):
        evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS, target="z")
    alone = NUMBERS.project(["g"])
    with pytest.raises(InputError, match="target must not be the only column, got 'g'"):
        evaluate(FIRST[["g"]], SECOND[["g"]], "marginals:1", schema=alone, target="g")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError) as refused:
        evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS, target="g")
    assert str(refused.value) == (
        "target needs scikit-learn to train models, got no scikit-learn; "
        "install it: pip install 'pointillist[ml]', or leave target out."
    )


# --- what is shown


def test_an_evaluation_as_text_and_in_a_notebook() -> None:
    found = evaluate(FIRST, SECOND.assign(g=["u", "v", "v", "v"]), "marginals:2", schema=NUMBERS)
    text = str(found)
    assert text.splitlines() == found.lines()
    assert text.endswith(NOTICE)
    for title in ("Numbers", "Missing values", "Categories", "Correlations", "Pairs of columns", "Worst marginals"):
        assert title in text
    shown = found._repr_html_()
    assert shown.count("<table>") == len(found.sections())
    assert NOTICE in shown
    assert repr(found) == f"Evaluation(4 rows, 3 columns, tvd={found.rows.tvd:.4g}, NOT private)"
    tagged = Schema((Categorical("<b>", ("<i>", "j")), Categorical("c", ("0", "1"))))
    html = evaluate(
        *[pd.DataFrame({"<b>": ["<i>", "j"], "c": ["0", "1"]})] * 2, "marginals:1", schema=tagged
    )._repr_html_()
    assert "<b>" not in html.replace(f"<b>{NOTICE}</b>", "")
    assert "&lt;i&gt;" in html


def test_only_the_worst_columns_are_shown() -> None:
    n = 25
    schema = Schema(tuple(Categorical(f"c{i}", ("0", "1")) for i in range(n)))
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({f"c{i}": rng.choice(["0", "1"], 30) for i in range(n)}) for _ in range(2)]
    found = evaluate(*tables, "marginals:1", schema=schema)
    assert "The worst 20 of 25; --json and to_dict() have all." in str(found)
    assert len(found.to_dict()["columns"]) == n
    assert len(found.to_dict()["pairs"]) == n * (n - 1) // 2


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 1234.5678, "1,235"),
        ("number", 1234567.8, "1,234,568"),
        ("number", math.nan, "-"),
        ("date", 19000.4, "2022-01-08"),
        ("timestamp", 86400.0, "1970-01-02 00:00:00"),
        ("time", 3661.0, "01:01:01"),
    ],
)
def test_numbers_as_people_read_them(kind: str, value: float, text: str) -> None:
    assert show_number(value, kind) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 12.5, "12.5"),
        ("date", 30.0, "30 d"),
        ("timestamp", 86400.0 * 3, "3 d"),
        ("time", 7200.0, "2 h"),
        ("duration", 150.0, "2.5 min"),
        ("duration", 9.0, "9 s"),
    ],
)
def test_spreads_of_times_have_a_unit(kind: str, value: float, text: str) -> None:
    numbers = np.array([0.0, 2 * value])  # their standard deviation is the value
    (report,) = compare_columns((Numbers("t", kind, numbers, numbers),))
    found = evaluate(FIRST, SECOND, "marginals:1", schema=NUMBERS)
    assert text in next(line for line in replace(found, columns=(report,)).lines() if line.startswith("  t "))


def test_dates_and_durations_that_are_written_as_text_are_judged() -> None:
    """A CSV file has texts; they have means and quantiles all the same, and are not missing."""
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=k % 300) for k in range(200)]
    schema = Schema(
        (
            Temporal("day", "date", ("2020-01-01", "2020-12-31"), format="%d.%m.%Y", dtype="string", missing=True),
            Temporal("took", "duration", ("0", "2 days"), format="clock", dtype="string"),
            Temporal("at", "time", ("00:00", "24:00"), format="hhmm"),
        )
    )
    texts = ["" if k % 10 == 0 else day.strftime("%d.%m.%Y") for k, day in enumerate(days)]
    table = pa.table(
        {"day": texts, "took": [f"{k % 40}:30:00" for k in range(200)], "at": [100 * (k % 24) + 30 for k in range(200)]}
    )
    release = synthesize(table, schema=schema, epsilon=5.0, workload="marginals:1", insecure_noise_seed=0)
    found = evaluate(table, release).to_dict()["columns"]
    assert (found["day"]["kind"], found["took"]["kind"], found["at"]["kind"]) == ("date", "duration", "time")
    assert found["day"]["missing"]["real"] == pytest.approx(0.1)
    assert found["took"]["missing"] == {"real": 0.0, "synthetic": 0.0}
    assert found["took"]["mean"]["real"] == pytest.approx(20 * 3600)
    assert all(abs(one["mean"]["difference"]) < 1 for one in found.values())
