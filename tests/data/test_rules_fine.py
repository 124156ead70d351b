"""Rules on grids, dates and merged columns: what codes can be decoded to, and rows on a condition that obey."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pointillist import Categorical, Grid, InputError, Numeric, Release, Rule, Schema, Temporal, evaluate, synthesize
from pointillist.attestation import verify
from pointillist.data.columns.merged import Merged
from pointillist.data.obeying import Group, spans_of
from pointillist.data.rules import column_cells
from pointillist.refining import Refining


def merged(column: Any, parts: int) -> Merged:
    groups = np.arange(column.size) * parts // column.size
    if column.missing:
        groups[-1] = groups[-2] + 1
    return Merged(column, tuple(groups.tolist()), tuple((1 / np.bincount(groups))[groups].tolist()))


GRIDS = [
    Grid("x", bounds=(0, 100), integer=True, cells=20),
    Grid("x", bounds=(0, 10), step=0.25, cells=15, missing=True),
    Grid("x", bounds=(-5, 5), cells=10, scale="signed-log", points=(0,)),
    Grid("x", bounds=(0, 1), cells=10, dtype="float32"),
    Grid("x", bounds=(0, 50), integer=True, cells=10, missing=True, missing_as="-9"),
    Grid("x", bounds=(0, 50), step=0.01, dtype="decimal(10,2)", cells=10),
]
TIMES = [
    Temporal("x", "date", ("2024-01-01", "2024-03-31")),
    Temporal("x", "date", ("2024-01-01", "2024-12-31"), bins="month", missing=True),
    Temporal("x", "timestamp", ("2024-03-30", "2024-04-01"), step="minute", zone="Europe/Berlin"),
    Temporal("x", "date", ("2024-01-01", "2024-12-31"), bins="weekday"),
    Temporal("x", "time", ("08:00", "17:59"), format="hhmm"),
    Temporal("x", "duration", ("0:00:00", "5:00:00"), unit="hour", step="second"),
]


@pytest.mark.parametrize("column", [*GRIDS, *TIMES], ids=lambda column: column.describe()[:40])
def test_the_range_of_a_code_is_that_of_its_values(column: Any) -> None:
    for one in (column, merged(column, 4)):
        spans = spans_of(one)
        codes = np.repeat(np.arange(one.size), 3000)
        cells = column_cells(one, one.decode(codes, np.random.default_rng(0)))
        assert spans.kind == cells.kind
        assert not spans.free.any()
        np.testing.assert_array_equal(cells.missing, spans.missing[codes])
        known = ~cells.missing
        values, low, high = (part[known] for part in (cells.values, spans.low[codes], spans.high[codes]))
        assert (low <= values).all()
        assert (values <= high).all()
        width = np.maximum(high - low, 1e-12)
        ends = pd.DataFrame({"code": codes[known], "low": (values - low) / width, "high": (high - values) / width})
        closest = ends.groupby("code").min()
        assert closest.to_numpy().max() < 0.05  # the ends are reached, or nearly so


def test_groups_of_texts_are_known_if_they_have_one_value() -> None:
    column = Merged(Categorical("c", ("a", "b", "d")), (0, 1, 1), (1.0, 0.5, 0.5))
    spans = spans_of(column)
    assert spans.free.tolist() == [False, True]
    assert spans.low[0] == "a"


PEOPLE = Schema.of(
    (
        Grid("age", bounds=(0, 119), integer=True),
        Categorical("marital", ("never", "married", "widowed")),
        Temporal("begin", "date", ("2020-01-01", "2024-12-31")),
        Temporal("finish", "date", ("2020-01-01", "2024-12-31"), missing=True),
        Grid("pay", bounds=(0, 1000), step=0.01),
        Grid("tax", bounds=(0, 1000), step=0.01),
    ),
    rules=(
        Rule(if_="age < 15", then='marital == "never"'),
        Rule(always="begin <= finish"),
        Rule(never='begin < "2020-06-15"'),
        Rule(always="tax <= pay"),
    ),
)


def people(rows: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, rows)
    begin = rng.integers(166, 1700, rows)
    finish = np.minimum(begin + rng.geometric(0.02, rows), 1826)
    pay = np.round(rng.gamma(2, 100, rows).clip(0, 1000), 2)
    days = np.datetime64("2020-01-01")
    return pd.DataFrame(
        {
            "age": age,
            "marital": np.where(age < 15, "never", rng.choice(["never", "married", "widowed"], rows)),
            "begin": pd.Series(days + begin).dt.date,
            "finish": pd.Series(days + finish).dt.date.where(rng.random(rows) < 0.8, None),
            "pay": pay,
            "tax": np.round(pay * rng.random(rows), 2),
        }
    )


@pytest.fixture(scope="module")
def release() -> Release:
    options: dict[str, Any] = {"method": "mwem", "workload": "marginals:1", "settings": {"rounds": 2}}
    columns = PEOPLE.project(["age", "marital", "begin", "finish"])
    table = people()[list(columns.names)]
    return synthesize(table, schema=columns, epsilon=5.0, insecure_noise_seed=3, **options)


def test_refined_columns_keep_the_rules() -> None:
    assert Refining(PEOPLE).planned.rules == PEOPLE.rules
    assert {one.names for one in Refining(PEOPLE).planned.rule_groups} == {
        ("age", "marital"), ("begin", "finish"), ("pay", "tax")
    }  # fmt: skip


def test_every_row_of_a_release_with_fine_columns_obeys(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "one-shot", "workload": "marginals:1", "settings": {"rows": 30, "t_max": 5}}
    release = synthesize(people(), schema=PEOPLE, epsilon=3.0, seed=2, out=tmp_path / "r", **options)
    assert all(isinstance(release.schema.columns[n], Merged) for n in (0, 2, 3, 4, 5))
    assert release.description.rules is not None
    assert release.description.rules.rejected > 0.1
    assert release.schema.rules == PEOPLE.rules
    for seed in range(3):
        assert set(PEOPLE.rules.violations(release.sample(800, seed)).values()) == {0}  # type: ignore[attr-defined]
    rows = release.to_arrow()
    assert set(PEOPLE.rules.violations(rows).values()) == {0}  # type: ignore[attr-defined]
    pay = rows["tax"].to_numpy()
    np.testing.assert_array_equal(pay, np.round(pay, 2))  # numbers that were moved are multiples of the step, too
    report = verify(tmp_path / "r", replay=True)
    assert report.ok, [one for one in report.checks if one.status == "failed"]
    again = Release.load(tmp_path / "r")
    assert again.to_arrow().equals(rows)
    spec = json.loads((tmp_path / "r" / "release.json").read_text())
    spec["schema"]["rule"].pop()  # a release that hides one of its rules
    (tmp_path / "r" / "release.json").write_text(json.dumps(spec))
    failed = [one.reason for one in verify(tmp_path / "r").checks if one.status == "failed"]
    assert any("other rules than those given" in one for one in failed)


def test_rows_on_a_condition_obey(release: Release) -> None:
    rules: Any = PEOPLE.project(["age", "marital", "begin", "finish"]).rules
    young = release.sample_values(300, given={"age": [3, 14, 15]})
    assert set(young["age"].to_pylist()) <= {3, 14, 15}
    assert set(rules.violations(young).values()) == {0}
    given = release.sample_values(300, given={"marital": "married", "finish": "2021-03-04"})
    assert set(given["marital"].to_pylist()) == {"married"}
    assert {str(day) for day in given["finish"].to_pylist()} == {"2021-03-04"}
    assert set(rules.violations(given).values()) == {0}
    assert max(map(str, given["begin"].to_pylist())) <= "2021-03-04"
    codes = release.sample(300, given={"age": [3, 14, 15]})
    assert set(rules.violations(codes).values()) == {0}


def test_numbers_that_are_given_obey_themselves() -> None:
    schema = Schema(
        (Numeric("first", (0, 10, 20), integer=True), Numeric("last", (0, 10, 20), integer=True)),
        rules=(Rule(always="first <= last"),),
    )
    table = pd.DataFrame({"first": [1, 2, 3, 11] * 20, "last": [5, 9, 15, 19] * 20})
    options: dict[str, Any] = {"workload": "marginals:2", "method": "mwem", "settings": {"rounds": 1}}
    release = synthesize(table, schema=schema, epsilon=1.0, **options)
    rows = release.sample_values(400, given={"first": 8})
    assert set(rows["first"].to_pylist()) == {8}
    assert min(rows["last"].to_pylist()) >= 8


def test_a_condition_that_contradicts_the_rules_is_refused(release: Release) -> None:
    with pytest.raises(InputError, match="given must be a condition under which the rules on"):
        release.sample(50, given={"age": 3, "marital": "widowed"})


def test_a_rule_that_allows_a_single_value_survives_any_groups() -> None:
    """The groups are chosen by noise: a run must not stop at them after its budget is spent."""
    columns = (Grid("x", bounds=(0, 999), integer=True), Categorical("c", tuple(f"{n:03d}" for n in range(300))))
    schema = Schema(columns, rules=(Rule(always='x == 437 and c == "123"'),))
    groups = tuple((np.arange(300) // 100).tolist())
    shares = np.where(np.arange(300) == 123, 0.0, 1.0)
    shares /= np.bincount(groups, shares)[list(groups)]
    coarse = replace(schema, columns=(merged(columns[0], 5), Merged(columns[1], groups, tuple(shares.tolist()))))
    (group,) = coarse.rule_groups
    assert group.allowed() == (2, 1)
    assert group.workable([np.array([2, 1]), np.array([1, 1])]).tolist() == [True, False]
    found, values = group.solved(np.array([[2, 1]]))
    assert found.tolist() == [True]
    assert [one[0].as_py() for one in values] == [437, "123"]


def test_what_stands_for_missing_is_missing() -> None:
    columns = (
        Numeric("age", (0, 15, 120), integer=True, missing=True, missing_as="-9"),
        Numeric("pay", (0, 10, 20), missing=True, missing_as="none"),
        Categorical("marital", ("never", "married"), missing=True, missing_as="?"),
    )
    rules = (Rule(if_="age < 15", then='marital == "never"'), Rule(never="pay > 12"))
    schema = Schema(columns, rules=rules)
    table = pd.DataFrame({"age": ["-9", "20", "3"], "pay": ["none", "5", "15"], "marital": ["married", "?", "married"]})
    table["age"] = table["age"].astype(int)
    assert list(schema.rules.violations(table).values()) == [1, 1]  # type: ignore[attr-defined]
    groups: tuple[Group, ...] = schema.rule_groups
    assert groups[0].workable([np.array([2, 0]), np.array([1, 2])]).all()
    assert groups[1].workable([np.array([0, 1, 2])]).tolist() == [True, True, True]


def test_an_evaluation_counts_broken_rules(release: Release) -> None:
    table = people()[list(release.schema.names)]
    table.loc[:9, "age"] = 3
    table.loc[:9, "marital"] = "widowed"
    found = {one.rule: (one.real, one.synthetic) for one in evaluate(table, release).rules}
    assert found.pop('age < 15 -> marital == "never"') == (10, 0)
    assert set(found.values()) == {(0, 0)}
