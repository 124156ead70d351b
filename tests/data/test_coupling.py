"""Values are exchanged inside of groups: tied columns go together, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pointillist import Categorical, Grid, Numeric, Rule, Schema, Table, Temporal
from pointillist.data import coupling
from pointillist.data.columns.merged import Merged

ROWS = 20_000
"""More than models are fitted to."""


def merged(column: Any, values: np.ndarray, parts: int = 16) -> Merged:
    """Groups with about the same number of rows, and the shares of their codes."""
    import pyarrow as pa

    counts = np.bincount(column.encode(pa.array(values)), minlength=column.size) + 1e-6
    middle = np.cumsum(counts) - counts / 2
    groups = np.unique((middle / counts.sum() * parts).astype(int), return_inverse=True)[1]
    if column.missing:
        groups[-1] = groups[-2] + 1
    return Merged(column, tuple(groups.tolist()), tuple((counts / np.bincount(groups, counts)[groups]).tolist()))


def pair(r: float, rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(rows)
    b = r * a + np.sqrt(1 - r**2) * rng.standard_normal(rows)
    return pd.DataFrame({"a": a.clip(-4, 4), "b": b.clip(-4, 4)})


def encoded(frame: pd.DataFrame) -> Table:
    columns = [merged(Grid(name, bounds=(-4, 4)), frame[name].to_numpy()) for name in frame]
    return Table.encode(frame, Schema(tuple(columns)))


def by_itself(table: Table, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> pd.DataFrame:
    """The table decoded column by column."""
    with monkeypatch.context() as patch:
        patch.setattr(coupling, "FEWEST", len(table) + 1)
        return table.to_pandas(seed)


def correlation(frame: pd.DataFrame) -> float:
    return float(np.corrcoef(frame["a"], frame["b"])[0, 1])


@pytest.mark.parametrize("rows", [2000, ROWS])
def test_codes_and_the_values_of_each_group_stay(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = encoded(pair(0.9, rows))
    alone, coupled = by_itself(table, monkeypatch), table.to_pandas()
    again = Table.encode(coupled, table.schema)
    for name, codes, other in zip(coupled, table.codes, again.codes, strict=True):
        assert np.array_equal(codes, other)
        first, second = (frame[name].to_numpy() for frame in (alone, coupled))
        assert not np.array_equal(first, second)
        assert np.array_equal(first[np.lexsort((first, codes))], second[np.lexsort((second, codes))])


def test_one_column_follows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pair(1.0)
    frame["b"] = np.exp(frame["a"]) / 20
    table = encoded(frame)
    assert correlation(by_itself(table, monkeypatch)) < correlation(frame) - 0.03
    assert correlation(table.to_pandas()) == pytest.approx(correlation(frame), abs=0.005)
    assert table.to_pandas().corr("spearman")["a"]["b"] > 0.998


@pytest.mark.parametrize("r", [0.0, 0.3, 0.6, -0.6, 0.9, 0.99])
def test_ties_are_those_of_the_table_and_not_closer(r: float, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pair(r)
    table = encoded(frame)
    error = correlation(table.to_pandas()) - correlation(frame)
    assert abs(error) <= max(abs(correlation(by_itself(table, monkeypatch)) - correlation(frame)), 0.005)
    assert abs(error) < (0.02 if abs(r) < 0.5 else 0.01)


def test_a_column_of_two_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of two columns stays the sum, and does not tie them to each other."""
    frame = pair(0.0)
    frame["sum"] = (frame["a"] + frame["b"]) / 2
    table = encoded(frame)
    off, alone = ((one["a"] + one["b"]) / 2 - one["sum"] for one in (table.to_pandas(), by_itself(table, monkeypatch)))
    assert off.std() < 0.7 * alone.std()
    assert abs(correlation(table.to_pandas()) - correlation(frame)) < 0.02


def test_strays_do_not_hide_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pair(0.999)
    frame.loc[frame.index % 20 == 0, "b"] *= -1
    table = encoded(frame)
    follow = frame.index % 20 != 0
    alone, coupled = by_itself(table, monkeypatch), table.to_pandas()
    assert correlation(coupled[follow]) > 0.99 > correlation(alone[follow])
    assert correlation(coupled) == pytest.approx(correlation(frame), abs=0.02)


def test_missing_values_and_point_masses_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pair(0.95)
    frame["b"] = frame["b"].mask(frame["b"].between(-0.4, 0.4), 0.0).mask(frame.index % 7 == 0)
    a = merged(Grid("a", bounds=(-4, 4)), frame["a"].to_numpy())
    b = merged(Grid("b", bounds=(-4, 4), points=(0.0,), missing=True), frame["b"].to_numpy())
    table = Table.encode(frame, Schema((a, b)))
    coupled = table.to_pandas()
    assert np.array_equal(coupled["b"].isna(), frame["b"].isna())
    assert np.array_equal(coupled["b"] == 0, frame["b"] == 0)
    kept = coupled.dropna()
    assert correlation(kept) > correlation(by_itself(table, monkeypatch).dropna()) + 0.01
    assert correlation(kept) == pytest.approx(correlation(frame.dropna()), abs=0.01)


def test_bins_and_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins with given edges and months of a date are coupled; weekdays, labels and single values stay as they are."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 3650, ROWS)
    date = np.datetime64("2010-01-01") + days
    frame = pd.DataFrame(
        {"size": days / 36.5, "when": date, "weekday": date, "month": days % 365 // 31, "label": days % 3}
    )
    columns = (
        Numeric("size", edges=tuple(range(0, 106, 7))),
        Temporal("when", kind="date", bounds=("2010-01-01", "2020-12-31"), bins="quarter"),
        Temporal("weekday", kind="date", bounds=("2010-01-01", "2020-12-31"), bins="weekday"),
        Categorical("month", tuple(range(12)), ordered=True),
        Categorical("label", (0, 1, 2)),
    )
    table = Table.encode(frame, Schema(columns))
    alone, coupled = by_itself(table, monkeypatch), table.to_pandas()

    def off(made: pd.DataFrame) -> float:
        passed = (pd.to_datetime(made["when"]) - pd.Timestamp("2010-01-01")).dt.days / 36.5
        return float((made["size"] - passed).std())

    assert off(coupled) < 0.5 * off(alone)
    for name in ("weekday", "month", "label"):
        assert coupled[name].equals(alone[name])


def test_rows_still_obey_rules() -> None:
    frame = pair(0.9)
    frame["b"] = (frame["a"] + frame["b"].abs() / 10).clip(-4, 4)
    columns = tuple(merged(Grid(name, bounds=(-4, 4)), frame[name].to_numpy()) for name in frame)
    table = Table.encode(frame, Schema(columns, rules=(Rule(always="a <= b"),)))
    made = table.to_pandas()
    assert (made["a"] <= made["b"]).all()
    assert correlation(made) == pytest.approx(correlation(frame), abs=0.01)


def test_the_same_seed_gives_the_same_rows() -> None:
    table = encoded(pair(0.9))
    assert table.to_arrow(3).equals(table.to_arrow(3))
    assert not table.to_arrow(3).equals(table.to_arrow(4))


def test_a_few_rows_stay_as_they_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    table = encoded(pair(0.9)).take(np.arange(coupling.FEWEST - 1))
    assert table.to_pandas().equals(by_itself(table, monkeypatch))
