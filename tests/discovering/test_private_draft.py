"""Private drafts: made of public facts and charged measurements, and of nothing else."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pointillist import InputError, Relation, Schema, Table
from pointillist.data.columns import Categorical, Grid, Identifier, Temporal
from pointillist.data.probes import CODES, KINDS
from pointillist.data.schema import read_spec
from pointillist.discovering import prepare_draft, private_schema
from pointillist.discovering.draft import DraftJob
from pointillist.errors import BudgetError
from pointillist.privacy.curator import DISCOVERY, NUMBER_OF_ROWS
from pointillist.privacy.gaussian import LEAST_SCALES

SECRET = "Zsuzsanna the only one"


def texts(rows: int = 4000, seed: int = 0) -> pa.Table:
    """A table as a CSV file gives it: every cell is a text."""
    rng = np.random.default_rng(seed)
    day = dt.date(2010, 1, 1)
    cells: dict[str, list[str | None]] = {
        "row_id": [str(n) for n in range(rows)],
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "city": [SECRET if n == 7 else str(rng.choice(["Bonn", "Köln", "?"], p=[0.6, 0.3, 0.1])) for n in range(rows)],
        "age": [str(n) for n in rng.integers(20, 80, rows)],
        "pay": [f"{x:.2f}" for x in rng.lognormal(3, 1, rows)],
        "since": [(day + dt.timedelta(int(n))).strftime("%d.%m.%Y") for n in rng.integers(0, 3000, rows)],
        "seen": [f"2021-03-{n % 28 + 1:02d} {n % 24:02d}:30:00" for n in range(rows)],
        "at": [f"{n % 24}:{n % 60:02d}" for n in range(rows)],
        "comment": [f"words of person {n}" for n in range(rows)],
        "gone": [None] * rows,
        "both": rng.choice(["1", "2", "none"], rows).tolist(),
    }
    return pa.table({name: pa.array(column, pa.string()) for name, column in cells.items()})


class Blind:
    """Noise that ignores the counts: what comes out with it cannot depend on the cells."""

    description, private, state = "blind", True, None

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, len(counts)])
        high: np.ndarray = np.where(rng.random(len(counts)) < 0.3, 10**6, 0)
        return high

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        raise AssertionError("nothing is selected")


def drafted(table: Any, **options: Any) -> tuple[DraftJob, Schema]:
    job = prepare_draft(table, **{"epsilon": 1.0, "delta": 1e-6, "insecure_noise_seed": 3} | options)
    return job, job.run(job.curator).schema


def test_a_file_of_texts_becomes_a_schema_that_fits_it() -> None:
    table = texts()
    schema = drafted(table)[1]
    kinds = {column.name: type(column) for column in schema.everything}
    assert kinds == {
        "row_id": Identifier, "sex": Categorical, "city": Categorical, "age": Grid, "pay": Grid, "since": Temporal,
        "seen": Temporal, "at": Temporal, "both": Categorical,
    }  # fmt: skip
    assert schema.ignore == ("comment", "gone")
    assert len(Table.encode(table, schema)) == 4000
    by_name = {column.name: column.to_dict() for column in schema.everything}
    assert by_name["sex"]["values"] == ["f", "m"]
    assert by_name["city"]["values"] == ["Bonn", "Köln"]
    assert by_name["city"]["missing_values"] == ["?"]
    assert by_name["age"]["bounds"] == [0, 200] or by_name["age"]["bounds"] == [10, 200]
    assert by_name["age"]["integer"]
    assert not by_name["pay"]["integer"]
    assert by_name["since"]["format"] == "%d.%m.%Y"
    assert by_name["since"]["bounds"] == ["2009-01-01", "2019-12-31"]
    assert by_name["seen"]["format"] == "%Y-%m-%d %H:%M:%S"
    assert by_name["at"]["format"] == "%H:%M"
    assert by_name["both"]["values"] == ["1", "2", "none"]
    assert all(column.missing for column in schema.columns)
    assert SECRET not in schema.to_toml()
    assert "words of" not in schema.to_toml()


def test_what_is_charged_is_what_the_schema_says() -> None:
    job, schema = drafted(texts())
    ledger, paid = job.curator.ledger, schema.paid
    assert paid is not None
    assert (paid.epsilon, paid.delta, paid.relation, paid.unit) == (1.0, 1e-6, Relation.REPLACE, None)
    assert [dict(charge) for charge in paid.ledger] == [entry.to_dict() for entry in ledger.entries]
    assert paid.rho_spent == ledger.spent <= ledger.limit == paid.rho
    assert ledger.spent > 0.999 * ledger.limit
    shown = [entry.delta for entry in ledger.entries if entry.label == DISCOVERY]
    assert len(shown) == 4  # sex, city, comment and both
    assert sum(map(Fraction, shown)) <= Fraction(paid.delta_shown) == Fraction(5e-7)
    assert paid.delta_spent <= paid.delta_shown
    assert (paid.accounting, paid.least_scale in LEAST_SCALES) == ("Gaussian", True)
    assert all(entry.scale >= (paid.least_scale or 0) for entry in ledger.entries)
    assert schema.reviewed is False  # seeded noise


def test_a_schema_with_real_noise_counts_as_reviewed_and_survives_a_file(tmp_path: Any) -> None:
    job = prepare_draft(texts(), epsilon=1.0, delta=1e-6)
    draft = job.run(job.curator)
    path = tmp_path / "x.toml"
    path.write_text(draft.to_toml())
    assert Schema.load(path) == draft.schema
    assert draft.schema.reviewed
    assert read_spec(path)["privacy"] == draft.schema.to_dict()["privacy"]
    assert "no review is needed for privacy" in draft.to_toml()
    assert "# left out 'comment': no value is frequent enough" in draft.to_toml()
    assert Schema.from_dict(draft.schema.project(["sex"]).to_dict()).paid == draft.schema.paid


@pytest.mark.parametrize("seed", range(6))
def test_with_blind_noise_a_draft_is_the_same_for_all_tables(seed: int) -> None:
    """Values of texts apart, which only noisy counts above the threshold show; here none of them is."""

    class Below(Blind):
        def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
            known = len(counts) in (len(KINDS), CODES)
            return super().add_gaussian(counts, rho, sensitivity_squared) if known else np.zeros(len(counts), np.int64)

    one = texts(seed=1)
    other = pa.table({name: pa.array(["5"] * 4000, pa.string()) for name in one.column_names})
    found = []
    for table in (one, other):
        job = prepare_draft(table, epsilon=1.0, delta=1e-6)
        job.curator.noise = Below(seed)
        try:
            found.append((job.run(job.curator).to_toml(), job.curator.ledger.entries))
        except InputError as error:
            found.append((str(error), job.curator.ledger.entries))
    assert found[0] == found[1]


def test_types_are_public_and_free() -> None:
    rows = 3000
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "b": rng.random(rows) < 0.5,
            "n": pa.array(rng.integers(0, 50, rows), pa.int16()),
            "x": pa.array(rng.normal(size=rows), pa.float32()),
            "d": pa.array([dt.date(2020, 1, 1)] * rows),
            "t": pa.array([dt.time(1, 2)] * rows),
            "s": pa.array(["v"] * rows),
            "bad": pa.array([[1]] * rows),
        }
    )
    job, schema = drafted(table)
    assert not job.untyped
    assert [column.name for column in schema.everything] == ["b", "n", "x", "d", "t", "s"]
    assert schema.ignore == ("bad",)
    labels = [entry.label for entry in job.curator.ledger.entries]
    assert labels == ["measurement"] * 4 + [DISCOVERY]  # the kinds of s, then n, x and d
    assert {column.name: column.dtype for column in schema.columns}["n"] == "int16"
    assert len(Table.encode(table, schema)) == rows


def test_texts_of_typed_tables_may_be_dates_but_stay_texts_otherwise() -> None:
    table = pa.table({"n": [1, 2] * 2000, "d": ["2020-01-31", "2021-02-01"] * 2000, "code": ["101", "205"] * 2000})
    schema = drafted(table)[1]
    assert [column.to_dict()["type"] for column in schema.columns] == ["numeric", "date", "categorical"]
    assert schema.columns[2].labels == ("101", "205", "other")
    assert Table.encode(table, schema).to_arrow().schema.field("code").type == pa.string()


@pytest.mark.parametrize("make", [lambda t: t.to_pandas(), pl.from_arrow, lambda t: t])
def test_all_kinds_of_tables(make: Any) -> None:
    table = pa.table({"n": [1, 2, 3] * 500, "s": ["a", "b", "c"] * 500})
    schema = private_schema(make(table), epsilon=1.0, delta=1e-6, insecure_noise_seed=0)
    assert [column.name for column in schema.columns] == ["n", "s"]
    assert schema.columns[1].labels == ("a", "b", "c", "other")


def test_columns_of_python_objects() -> None:
    cells = {"v": ["a", None] * 1500, "gone": [None] * 3000, "d": [dt.date(2020, 1, 1)] * 3000, "n": [1, 2] * 1500}
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})
    schema = drafted(frame)[1]
    assert [column.name for column in schema.columns] == ["v", "d", "n"]
    assert schema.columns[0].labels == ("a", "other")
    assert schema.ignore == ("gone",)
    assert len(Table.encode(frame, schema)) == 3000


def test_units_are_bounded_and_left_out() -> None:
    rows = 6000
    frame = pd.DataFrame({"who": np.arange(rows) // 3, "v": ["a", "b", "c"] * (rows // 3)})
    job, schema = drafted(frame, unit="who", max_rows=2)
    assert job.curator.relation is Relation.ADD_REMOVE
    assert schema.ignore == ("who",)
    entries = job.curator.ledger.entries
    assert entries[0].label == NUMBER_OF_ROWS
    assert all(entry.sensitivity >= 2 for entry in entries)
    assert schema.paid is not None
    assert schema.paid.unit is not None
    assert (schema.paid.unit.name, schema.paid.unit.max_rows) == ("who", 2)
    assert "(n =" not in job.curator.ledger.statement(job.curator.public_rows)


def test_ignored_columns_cost_nothing_and_are_never_read() -> None:
    table = texts().append_column("list", pa.array([[1]] * 4000))
    asked = ["comment", "list", "gone", "both", "at", "seen", "since"]
    job, schema = drafted(table, ignore=asked)
    assert schema.ignore == tuple(asked)
    assert [hint.name for hint in job.probed] == ["sex", "city", "age", "pay"]
    assert len(job.curator.ledger.entries) == 8


def test_nothing_is_looked_at_before_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    from pointillist.data import probes

    events: list[str] = []
    monkeypatch.setattr(probes, "codes_of", _noted(probes.codes_of, events, "codes"))
    values_of = probes.ProbedSource.values_of
    monkeypatch.setattr(probes.ProbedSource, "values_of", _noted(values_of, events, "values"))
    job = prepare_draft(texts(), epsilon=1.0, delta=1e-6)
    assert events == []
    job.curator.ledger.witness = lambda entries: events.append(f"charge {entries[0].label}")
    job.run(job.curator)
    assert events[0] == "charge measurement"
    assert events.index("charge discovery") < events.index("values")
    assert events.count("values") == 4


def _noted(call: Any, events: list[str], word: str) -> Any:
    def noted(*arguments: Any) -> Any:
        events.append(word)
        return call(*arguments)

    return noted


def test_an_overdraft_is_refused() -> None:
    job = prepare_draft(texts(), epsilon=1.0, delta=1e-6)
    job.run(job.curator)
    with pytest.raises(BudgetError, match="the ledger is unchanged"):
        job.run(job.curator)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"delta": 1.0}, "delta must be"),
        ({"relation": "other"}, "relation must be one of"),
        ({"relation": "add-remove", "delta": None}, "delta must be given under add-remove"),
        ({"unit": "sex"}, "unit must be given together with max_rows"),
        ({"unit": "nobody", "max_rows": 2}, "unit must be a column of the table"),
        ({"unit": "sex", "max_rows": 0}, "max_rows must be in"),
        ({"unit": "sex", "max_rows": 2, "relation": "replace"}, "relation must be add-remove with a unit"),
        ({"ignore": ["nothing"]}, "ignore must be a column of the table"),
        (
            {"ignore": ["sex", "city", "age", "pay", "since", "seen", "at", "comment", "gone", "both"]},
            "something can be",
        ),
        ({"epsilon": 1e-9, "relation": "add-remove", "delta": 1e-9}, "must leave the number of rows a noise below"),
        ({"epsilon": 0.001}, "epsilon must leave a column a noise that 50 rows stand out from"),
        ({"insecure_noise_seed": -1}, "insecure_noise_seed must be in"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as refusal:
        prepare_draft(texts(50), **{"epsilon": 1.0, "delta": 1e-6} | options)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("table", [pa.table({"a": pa.array([], pa.string())}), pa.table({"a": ["x"]}), 5, {"a": [1]}])
def test_tables_that_are_none(table: Any) -> None:
    with pytest.raises(InputError):
        prepare_draft(table, epsilon=1.0, delta=1e-6)


def test_a_budget_that_tells_nothing_is_said_to_be_spent() -> None:
    unique = pa.table({"v": [f"unique {n}" for n in range(3000)]})
    job = prepare_draft(unique, epsilon=1.0, delta=1e-6)
    with pytest.raises(InputError, match="what was spent is spent"):
        job.run(job.curator)
    assert job.curator.ledger.spent > 0


@pytest.mark.parametrize("seed", range(8))
def test_real_noise_never_shows_a_unique_value_and_always_the_frequent_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unique = [f"unique {n}" for n in range(500)]
    cells = unique + rng.choice(["left", "right"], 4500).tolist()
    schema = private_schema(pa.table({"v": cells}), epsilon=1.0, delta=1e-6)
    assert schema.columns[0].labels == ("left", "right", "other")
