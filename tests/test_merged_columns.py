"""Releases whose fine columns were merged: rows on a condition, evaluation and the familiar form see fine values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pointillist import (
    Categorical,
    Constant,
    Grid,
    Release,
    Schema,
    Synthesizer,
    Table,
    Temporal,
    evaluate,
    synthesize,
)
from pointillist.data.columns.merged import Merged
from pointillist.evaluation.values import cell_name
from pointillist.release.given import condition_of

SCHEMA = Schema(
    (
        Categorical("code", tuple(f"{i:03d}" for i in range(200)), prefixes=(1, 2)),
        Categorical("age", tuple(range(100)), ordered=True, merge=True, missing=True),
        Categorical("sex", ("f", "m")),
    )
)


def frame(n: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    code = np.minimum(rng.geometric(0.05, n) - 1, 199)
    sex = np.where(rng.random(n) < np.where(code < 20, 0.9, 0.1), "f", "m")
    return pd.DataFrame({"code": [f"{i:03d}" for i in code], "age": rng.integers(0, 100, n), "sex": sex})


@pytest.fixture(scope="module")
def release() -> Release:
    options = {"method": "mwem", "settings": {"rounds": 2}, "workload": "marginals:2", "insecure_noise_seed": 1}
    return synthesize(frame(), schema=SCHEMA, epsilon=20.0, **options)


def test_the_columns_are_merged(release: Release) -> None:
    assert isinstance(release.schema.columns[0], Merged)
    assert isinstance(release.schema.columns[1], Merged)


def test_rows_have_the_given_values_not_others_of_their_groups(release: Release) -> None:
    one = release.sample_values(50, given={"code": "150", "age": 33}).to_pandas()
    assert set(one["code"]) == {"150"}
    assert set(one["age"]) == {33}
    several = release.sample_values(3000, given={"code": ["001", "002", "150", "151"]}).to_pandas()
    assert set(several["code"]) <= {"001", "002", "150", "151"}
    every = release.sample_values(60_000).to_pandas()
    inside = every[every["code"].isin(["001", "002", "150", "151"])]
    wanted = (inside["code"] <= "002").mean()  # conditional shares are those of the rows without a condition
    assert (several["code"] <= "002").mean() == pytest.approx(wanted, abs=0.03)


def test_values_whose_share_is_zero_are_like_their_group() -> None:
    column = Merged(Categorical("c", ("a", "b", "d", "e")), (0, 0, 1, 1), (1.0, 0.0, 0.5, 0.5))
    schema = Schema((column, Categorical("s", (0, 1))))
    allowed, decoding = condition_of(schema, {"c": "b"})
    assert allowed[0].tolist() == [1.0, 0.0]
    assert set(decoding.columns[0].decode(np.zeros(20, int), np.random.default_rng(0)).to_pylist()) == {"b"}
    allowed, decoding = condition_of(schema, {"c": ["a", "d"]})
    assert allowed[0].tolist() == [1.0, 0.5]
    assert set(decoding.columns[0].decode(np.repeat([0, 1], 9), np.random.default_rng(0)).to_pylist()) == {"a", "d"}


def test_an_evaluation_sees_the_fine_values(release: Release, tmp_path: Path) -> None:
    found = evaluate(frame(), release)
    code, age, sex = found.columns
    assert (code.size, sex.size) == (200, 2)  # type: ignore[union-attr]
    assert age.mean.real == pytest.approx(frame()["age"].mean())  # type: ignore[union-attr]
    assert found.queries == release.workload.size
    assert all(found.worst[0].cell.values())
    encoded = Table.encode(frame(), SCHEMA)
    assert evaluate(encoded, release).to_dict() == found.to_dict()
    assert evaluate(frame(), release, schema=SCHEMA).to_dict() == found.to_dict()
    release.save(tmp_path / "release")
    assert evaluate(frame(), Release.load(tmp_path / "release")).to_dict() == found.to_dict()


def test_groups_are_named_by_their_values() -> None:
    ordered = Merged(Categorical("c", (1, 2, 3, 4), ordered=True), (0, 0, 0, 1), (0.2, 0.5, 0.3, 1.0))
    assert [cell_name(ordered, code) for code in (0, 1)] == ["1 to 3", "4"]
    other = Merged(Categorical("c", tuple("abcd"), missing=True), (0, 0, 0, 1, 2), (0.2, 0.5, 0.3, 1.0, 1.0))
    assert [cell_name(other, code) for code in (0, 1, 2)] == ["b, c and 1 more", "d", "(missing)"]


def test_a_loaded_synthesizer_can_be_fitted_again(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    again = Synthesizer.load(tmp_path / "release")
    assert again.schema == SCHEMA
    again.set_params(insecure_noise_seed=1, rows=None)
    assert again.fit(frame()).release_.to_arrow().equals(release.to_arrow())


def test_grids_dates_and_constants(tmp_path: Path) -> None:
    """Given numbers and dates are in the rows as they were given, and constants keep their place."""
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2021-01-01") + pd.to_timedelta(rng.integers(0, 700, 500), "D")
    real = pd.DataFrame({"day": days.date, "unit": "EUR", "pay": rng.gamma(2, 300, 500).round(2).clip(0, 9000)})
    schema = Schema.of(
        [
            Temporal("day", kind="date", bounds=("2021-01-01", "2022-12-31")),
            Constant("unit", "EUR"),
            Grid("pay", bounds=(0, 10_000), step=0.01),
        ]
    )
    made = Synthesizer(20.0, schema=schema, workload="marginals:2", method="mwem", settings={"rounds": 1}).fit(real)
    rows = made.sample(8, given={"day": "2021-05-06", "pay": 250.25})
    assert list(rows.columns) == ["day", "unit", "pay"]
    assert set(rows["day"].astype(str)) == {"2021-05-06"}
    assert set(rows["unit"]) == {"EUR"}
    assert set(rows["pay"]) == {250.25}
    found = evaluate(real, made.release_, "marginals:1")
    assert [one.name for one in found.columns] == ["day", "pay"]
    assert found.columns[0].kind == "date"  # type: ignore[union-attr]
    assert found.columns[1].mean.real == pytest.approx(real["pay"].mean())  # type: ignore[union-attr]
    made.save(tmp_path / "release")
    assert Synthesizer.load(tmp_path / "release").sample(5).equals(made.sample(5))
