"""The familiar form: fit, sample, save, load, and what scikit-learn expects of an estimator."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from pointillist import Categorical, InputError, Numeric, Release, Schema, Synthesizer, Table, prepare, synthesize
from pointillist.privacy.ledger import Entry

SCHEMA = Schema(
    (
        Categorical("region", ("N", "S", "W"), missing=True),
        Numeric("age", (0, 18, 40, 65, 100), integer=True),
        Categorical("job", ("none", "some"), other="else"),
    )
)
FAST = {"method": "mwem", "workload": "marginals:2", "settings": {"rounds": 2}, "epsilon": 5.0}


def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    region = rng.choice(["N", "S", "W"], n, p=[0.5, 0.3, 0.2])
    age = np.where(region == "N", rng.integers(0, 18, n), rng.integers(40, 100, n))
    return pd.DataFrame({"region": region, "age": age, "job": rng.choice(["none", "some", "else"], n)})


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    options = FAST | {"settings": {"rounds": 3}, "insecure_noise_seed": 1}
    return Synthesizer(schema=SCHEMA, **options).fit(frame())  # type: ignore[arg-type]


def test_clone_and_params_as_scikit_learn_has_them(fitted: Synthesizer) -> None:
    params = fitted.get_params()
    assert (params["epsilon"], params["method"], params["schema"]) == (5.0, "mwem", SCHEMA)
    copy = clone(fitted)
    assert isinstance(copy, Synthesizer)
    assert copy is not fitted
    assert copy.get_params() == params
    assert not hasattr(copy, "release_")
    assert copy.set_params(epsilon=2, rows=7) is copy
    assert (copy.epsilon, copy.rows, fitted.epsilon) == (2, 7, 5.0)
    with pytest.raises(ValueError, match=r"params must name arguments of Synthesizer, got 'epsilonn'; did you mean"):
        copy.set_params(epsilonn=1, rows=9)
    assert copy.rows == 7


def test_the_constructor_only_stores() -> None:
    strange = object()
    made = Synthesizer(strange, strange, method=strange, workload=strange, output=strange)  # type: ignore[arg-type]
    assert made.epsilon is made.delta is made.method is made.workload is made.output is strange
    options = set(inspect.signature(prepare).parameters) - {"table"}
    assert set(made.get_params()) == options | {"output"}


def test_fit_is_synthesize() -> None:
    options = {"schema": SCHEMA, "insecure_noise_seed": 3, "seed": 2, **FAST}
    made = Synthesizer(**options).fit(frame())  # type: ignore[arg-type]
    release = synthesize(frame(), **options)
    assert made.release_.to_arrow().equals(release.to_arrow())
    assert made.release_.description == release.description
    assert made.fit(frame(), frame()["age"]) is made  # scikit-learn passes a target


def test_sampling_spends_nothing(fitted: Synthesizer, charges: list[Entry]) -> None:
    assert len(fitted.sample(10)) == 10
    assert len(fitted.sample()) == 300
    assert charges == []
    assert fitted.sample(20).equals(fitted.sample(20))
    assert not fitted.sample(20).equals(fitted.sample(20, seed=1))


def test_rows_come_as_the_table_went_in(fitted: Synthesizer) -> None:
    assert isinstance(fitted.sample(3), pd.DataFrame)
    other = Synthesizer(schema=SCHEMA, **FAST).fit(pl.from_pandas(frame()))  # type: ignore[arg-type]
    assert isinstance(other.sample(3), pl.DataFrame)
    encoded = Synthesizer(**FAST).fit(Table.encode(frame(), SCHEMA))  # type: ignore[arg-type]
    assert isinstance(encoded.sample(3), Table)
    assert isinstance(encoded.set_params(output="arrow").sample(3), pa.Table)
    with pytest.raises(InputError, match="output must be one of pandas, polars, arrow, table, got 'dask'"):
        encoded.set_params(output="dask").sample(3)


def test_rows_on_a_condition(fitted: Synthesizer) -> None:
    north = fitted.sample(400, given={"region": "N"})
    assert set(north["region"]) == {"N"}
    assert (north["age"] < 18).mean() > 0.7 > (fitted.sample(400)["age"] < 18).mean()
    both = fitted.sample(200, given={"region": ["S", "W"], "age": 50})
    assert set(both["region"]) == {"S", "W"}
    assert set(both["age"]) == {50}  # the number itself, not one of its bin
    gone = fitted.sample(5, given={"region": None})
    assert gone["region"].isna().all()


CONDITIONS = [
    ({"regionn": "N"}, "given must name columns of the release, got 'regionn'; did you mean 'region'."),
    (
        {"region": "n"},
        "given: column 'region' must be a value of the column (region: 3 unordered values or missing), got 'n'; "
        "known are N, S, W.",
    ),
    (
        {"age": 101},
        "given: column 'age' must be a value of the column (age: 4 bins from 0 to 100), got 101; see release.schema.",
    ),
    (
        {"job": "astronaut"},
        "given: column 'job' must be a value of the column (job: 3 unordered values), got ['astronaut']; "
        "give 'else' for all values that are not listed.",
    ),
    ({"age": []}, "given: column 'age' must have a value, got []; give one, or leave it out."),
    ([("age", 3)], "given must be a dictionary of columns and values, got an object of type list; "),
]


@pytest.mark.parametrize(("given", "sentence"), CONDITIONS, ids=[str(given) for given, _ in CONDITIONS])
def test_wrong_conditions(fitted: Synthesizer, given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        fitted.sample(5, given=given)
    assert str(refused.value).startswith(sentence)


def test_save_and_load(fitted: Synthesizer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "release")
    again = Synthesizer.load(tmp_path / "release")
    assert again.sample(50, given={"region": "S"}).equals(fitted.sample(50, given={"region": "S"}))
    assert (again.epsilon, again.method, again.relation) == (5.0, "mwem", "replace")
    assert again.schema == SCHEMA
    assert isinstance(clone(again).fit(frame()).release_, Release)


def test_a_folder_keeps_the_release(tmp_path: Path) -> None:
    made = Synthesizer(schema=SCHEMA, **FAST).fit(frame(), out=tmp_path / "kept")  # type: ignore[arg-type]
    assert Release.load(tmp_path / "kept").description == made.release_.description


def test_types_that_list_their_values_need_no_schema() -> None:
    n = 200
    rng = np.random.default_rng(1)
    size = pd.CategoricalDtype(["S", "M", "L", "XL"], ordered=True)
    table = pd.DataFrame(
        {"size": pd.Categorical(rng.choice(["S", "M", "L"], n), dtype=size), "new": rng.random(n) < 0.5}
    )
    single = FAST | {"workload": "marginals:1"}
    made = Synthesizer(**single).fit(table)  # type: ignore[arg-type]
    assert made.release_.schema.columns == (
        Categorical("size", ("S", "M", "L", "XL"), ordered=True, missing=True, dtype="category"),
        Categorical("new", (False, True)),
    )
    assert list(made.sample(9).dtypes) == list(table.dtypes)
    enum = pl.DataFrame(
        {"size": ["a", "b"] * 9, "new": [True, False] * 9}, schema_overrides={"size": pl.Enum(["b", "a"])}
    )
    made = Synthesizer(**single).fit(enum)  # type: ignore[arg-type]
    assert made.sample(5).schema == enum.schema
    assert made.release_.schema.columns == (
        Categorical("size", ("b", "a"), missing=True, dtype="enum"),
        Categorical("new", (False, True), missing=True),
    )


@pytest.mark.parametrize(
    "table",
    [
        frame(9),
        pl.DataFrame({"region": ["a", "b"]}, schema_overrides={"region": pl.Categorical}),
        pl.DataFrame({"region": ["a", "b"]}),
    ],
    ids=["strings", "polars categories hold the values of the data", "polars strings"],
)
def test_other_types_need_a_schema(table: pd.DataFrame, charges: list[Entry]) -> None:
    with pytest.raises(InputError) as refused:
        Synthesizer().fit(table)
    assert str(refused.value) == (
        "schema must be given, since the type of column 'region' does not list its values, got none; "
        "draft one with draft_schema(table), review it, and pass it as schema."
    )
    with pytest.raises(InputError, match="schema must be given with a table of this kind, got none; pass schema="):
        Synthesizer().fit(pa.table({"a": [1, 2]}))
    assert charges == []


def test_before_fit() -> None:
    for call in (lambda: Synthesizer().sample(3), lambda: Synthesizer().save("x")):
        with pytest.raises(InputError) as refused:
            call()
        assert str(refused.value) == (
            "synthesizer must be fitted before it is used, got no release; "
            "call fit(table), or use Synthesizer.load(path)."
        )


def test_shown_in_short() -> None:
    assert repr(Synthesizer()) == "Synthesizer()"
    assert repr(Synthesizer(0.5, method="mwem", schema=SCHEMA)) == (
        "Synthesizer(epsilon=0.5, method='mwem', schema=Schema(...))"
    )


def test_a_unit_is_protected_and_kept(tmp_path: Path) -> None:
    table = frame().assign(person=np.arange(300) // 4)
    schema = Schema(SCHEMA.columns, ignore=("person",))
    made = Synthesizer(schema=schema, delta=1e-6, unit="person", max_rows=2, **FAST)  # type: ignore[arg-type]
    assert "all rows of one 'person' (at most 2 rows of each are used)" in made.fit(table).release_.statement
    made.save(tmp_path / "r")
    again = Synthesizer.load(tmp_path / "r")
    assert (again.unit, again.max_rows, again.relation) == ("person", 2, "add-remove")
    assert (
        again.set_params(rows=50).fit(table).release_.description.privacy.unit == made.release_.description.privacy.unit
    )
