"""A public table: into the codes of the private schema, by names and labels, and counted."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError

SCHEMA = Schema(
    (
        Categorical("sex", ("f", "m")),
        Numeric("age", (0, 18, 65, 120), integer=True),
        Categorical("job", ("none", "some", "full"), missing=True),
    )
)
SEX = ["f", "m", "f", "f", "m", "f"]
AGE = [20, 70, 10, 20, 70, 64]
JOB = ["none", "some", None, "none", "some", "none"]
CODES = ([0, 1, 0, 0, 1, 0], [1, 2, 0, 1, 2, 1], [0, 1, 3, 0, 1, 0])


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({"sex": SEX, "age": AGE, "job": JOB} | more)


def rows_of(public: PublicTable) -> dict[tuple[int, ...], int]:
    """Each distinct record with its count."""
    codes = np.stack(public.codes, axis=1).tolist()
    found = {tuple(row): int(count) for row, count in zip(codes, public.counts, strict=True)}
    assert len(found) == len(codes)  # no record twice
    return found


def brute(*columns: list[int]) -> dict[tuple[int, ...], int]:
    rows = list(zip(*columns, strict=True))
    return {row: rows.count(row) for row in rows}


# --- in


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "Table", "csv"])
def test_a_table_of_any_kind(kind: str, tmp_path: Path) -> None:
    data: Any = frame()
    if kind == "polars":
        data = pl.from_pandas(data)
    elif kind == "arrow":
        data = pa.Table.from_pandas(data)
    elif kind == "Table":
        data = Table.encode(data, SCHEMA)
    elif kind == "csv":
        data.to_csv(tmp_path / "public.csv", index=False)
        data = read_file(tmp_path / "public.csv")
    public = PublicTable.encode(data, SCHEMA)
    assert public.domain == SCHEMA.domain
    assert (public.present, public.missing) == ((0, 1, 2), ())
    assert rows_of(public) == brute(*CODES)
    assert public.rows == 6
    assert public.digest == PublicTable.encode(frame(), SCHEMA).digest


@pytest.mark.parametrize("coded", [False, True])
def test_columns_in_another_order_and_columns_too_many(coded: bool) -> None:
    data: Any = frame(id=[f"p{i}" for i in range(6)], zip=[1, 2, 3, 4, 5, 6])[["zip", "job", "id", "sex", "age"]]
    if coded:
        columns = {c.name: c for c in SCHEMA.columns}
        zips, names = Categorical("zip", (1, 2, 3, 4, 5, 6)), Categorical("id", tuple(f"p{i}" for i in range(6)))
        data = Table.encode(data, Schema((zips, columns["job"], names, columns["sex"], columns["age"])))
    public = PublicTable.encode(data, SCHEMA)
    assert public.present == (0, 1, 2)
    assert rows_of(public) == brute(*CODES)
    assert public.digest == PublicTable.encode(frame(), SCHEMA).digest


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_too_many_may_be_of_any_type(kind: str) -> None:
    born = [datetime.date(2000, 1, 1 + i) for i in range(6)]
    seen = [datetime.datetime(2000, 1, 1 + i, 12) for i in range(6)]
    data: Any = frame(born=born, seen=seen, tags=[["a"], [], ["b", "c"], [], [], []], photo=[b"x"] * 6)
    if kind == "polars":
        data = pl.from_pandas(data)
    elif kind == "arrow":
        data = pa.Table.from_pandas(data)
        data = data.append_column("tags", data.column("born"))  # and may come twice
    public = PublicTable.encode(data, SCHEMA)
    assert public.missing == ()
    assert public.digest == PublicTable.encode(frame(), SCHEMA).digest


@pytest.mark.parametrize("coded", [False, True])
def test_columns_that_are_missing(coded: bool) -> None:
    data: Any = frame()[["job", "sex"]]
    if coded:
        data = Table.encode(data, SCHEMA.project(("job", "sex")))
    public = PublicTable.encode(data, SCHEMA)
    assert (public.present, public.missing) == ((0, 2), (1,))
    assert rows_of(public) == brute(CODES[0], CODES[2])
    assert public.to_dict() | {"sha256": ""} == {"rows": 6, "records": 3, "missing": ["age"], "sha256": ""}
    assert public.describe() == "public table: 6 rows, 3 distinct records, without 1 of the attributes"


def test_wide_columns_keep_their_codes() -> None:
    """Codes of 8 and of 16 bits side by side; two records that agree in the lower bytes are two records."""
    schema = Schema((Categorical("small", (0, 1)), Categorical("wide", tuple(range(70_000)))))
    small, wide = [0, 1, 1, 0, 0], [1, 257, 257, 65_537, 1]
    public = PublicTable.encode(Table(schema, (np.array(small), np.array(wide))), schema)
    assert rows_of(public) == brute(small, wide)


# --- refusals

REFUSED: list[tuple[Any, str]] = [
    (
        pd.DataFrame({"x": [1], "y": [2]}),
        "public must share at least one column with the schema, got ['x', 'y']; "
        "give a table with columns of the same names.",
    ),
    (
        Table(Schema((Categorical("x", (0, 1)),)), (np.array([0, 1]),)),
        "public must share at least one column with the schema, got ['x']; "
        "give a table with columns of the same names.",
    ),
    (
        frame(sex=["f", "x", "f", "m", "m", "m"]),
        "public, column 'sex' must only hold values of the schema, got 'x'; "
        'correct the table, list the value, or set other = "...".',
    ),
    (
        frame(age=[20, 121, 1, 1, 1, 1]),
        "public, column 'age' must lie between 0 and 120, got 121; "
        "correct the table, widen the bounds, or set clip = true.",
    ),
    (
        frame(sex=["f", None, "f", "m", "m", "m"]),
        "public, column 'sex' must not have missing values, got a missing value; "
        "set missing = true in the schema, or fill them.",
    ),
    (frame().head(0), "public must have rows, got 0 rows; check the file."),
    (Table(SCHEMA, (np.zeros(0, int),) * 3), "public must have rows, got 0 rows; check the file."),
    (
        "public.csv",
        "public must be a pandas, polars or Arrow table, or a pointillist.Table, got str; convert it to one of these.",
    ),
    (
        pd.DataFrame([["f", "f"]], columns=["sex", "sex"]),
        "public, column names must be different, got ['sex']; rename the repeated columns.",
    ),
    (
        pa.table([pa.array(["f"]), pa.array(["m"]), pa.array([20])], names=["sex", "sex", "age"]),
        "public, column names must be different, got ['sex']; rename the repeated columns.",
    ),
    (
        frame(sex=[datetime.date(2000, 1, 1)] * 6),
        "public, column 'sex' must only hold values of the schema, got '2000-01-01'; "
        'correct the table, list the value, or set other = "...".',
    ),
    (
        Table(Schema((Numeric("age", (0, 30, 120), integer=True),)), (np.array([0, 1]),)),
        "public, column 'age' must be binned as in the schema of the private table, got different bins; "
        "give the public table as a file or as a pandas, polars or Arrow table.",
    ),
    (
        Table(Schema((Categorical("age", ("young", "old")),)), (np.array([0, 1]),)),
        "public, column 'age' must be binned as in the schema of the private table, got different bins; "
        "give the public table as a file or as a pandas, polars or Arrow table.",
    ),
    (
        Table(Schema((Categorical("sex", ("m", "x", "f")),)), (np.array([0, 1, 2]),)),
        "public, column 'sex' must only hold values of the private schema, got 'x'; "
        "map the value to one of them, or drop its rows.",
    ),
    (
        Table(Schema((Categorical("sex", (0, 1)),)), (np.array([1, 0]),)),
        "public, column 'sex' must only hold values of the private schema, got 1; "
        "map the value to one of them, or drop its rows.",
    ),
    (
        Table(Schema((Categorical("sex", ("m", "f"), missing=True),)), (np.array([0, 2, 1]),)),
        "public, column 'sex' must only hold values of the private schema, got None; "
        "map the value to one of them, or drop its rows.",
    ),
]


@pytest.mark.parametrize(("data", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_are_one_sentence_about_the_public_table(data: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        PublicTable.encode(data, SCHEMA)
    assert str(refused.value) == sentence
    assert sentence.startswith("public")


# --- labels


def translated(own: Categorical, codes: list[int], column: Categorical) -> list[int]:
    """The codes in the order of the rows: a second column numbers them."""
    number = Categorical("row", tuple(range(max(2, len(codes)))))
    table = Table(Schema((own, number)), (np.array(codes), np.arange(len(codes))))
    public = PublicTable.encode(table, Schema((column, number)))
    assert public.counts.tolist() == [1] * len(codes)
    return public.codes[0][np.argsort(public.codes[1])].tolist()


def test_labels_in_another_order() -> None:
    own, column = Categorical("x", ("b", "c", "a")), Categorical("x", ("a", "b", "c"))
    assert translated(own, [0, 1, 2, 0], column) == [1, 2, 0, 1]


def test_labels_that_no_row_has_do_no_harm() -> None:
    assert translated(Categorical("x", ("z", "b", "a")), [1, 2, 2], Categorical("x", ("a", "b"))) == [1, 0, 0]


def test_other_and_missing_find_their_places() -> None:
    """Own codes: c 0, a 1, rest 2, missing 3. Private codes: a 0, b 1, else 2, missing 3."""
    own = Categorical("x", ("c", "a"), other="rest", missing=True)
    column = Categorical("x", ("a", "b"), other="else", missing=True)
    assert translated(own, [0, 1, 2, 3], column) == [2, 0, 2, 3]
    # The public "other" may be a value of its own in the private schema.
    assert translated(own, [0, 1, 2, 3], Categorical("x", ("rest", "a"), other="else", missing=True)) == [2, 1, 0, 3]
    # Without an "other" a strange value is refused, and so is a missing one without "missing".
    assert translated(own, [1, 1], Categorical("x", ("b", "a"))) == [1, 1]
    for codes, column in (([1, 0], Categorical("x", ("b", "a"))), ([1, 3], Categorical("x", ("b", "a"), other="else"))):
        with pytest.raises(InputError, match=r"^public, column 'x' must only hold values of the private schema"):
            translated(own, codes, column)


def test_the_type_of_the_output_and_the_order_of_values_make_no_difference() -> None:
    own = Categorical("x", (1, 2, 3), dtype="int8")
    assert translated(own, [2, 0, 1], Categorical("x", (1, 2, 3), ordered=True, dtype="float64")) == [2, 0, 1]


def test_the_type_of_the_private_column_is_not_asked_of_public_labels() -> None:
    """Public labels are matched by name, even if the type of the private column cannot hold them."""
    own = Categorical("x", ("2", "n/a", "1"))
    assert translated(own, [0, 2, 2], Categorical("x", ("1", "2"), dtype="int64")) == [1, 0, 0]


def test_labels_are_matched_as_strings() -> None:
    """A number matches the string that it is written as, as in a CSV file; "01" is not 1."""
    numbers, strings = Categorical("x", (1, 2, 3)), Categorical("x", ("3", "1", "2"))
    assert translated(numbers, [0, 1, 2], strings) == [1, 2, 0]
    assert translated(strings, [0, 1, 2], numbers) == [2, 0, 1]
    assert translated(Categorical("x", (True, False)), [0, 1], Categorical("x", ("False", "True"))) == [1, 0]
    # "Other" and missing, too: own codes 1 0, 2 1, 9 (other) 2, missing 3.
    own = Categorical("x", (1, 2), other=9, missing=True)
    assert translated(own, [0, 1, 2, 3], Categorical("x", ("2", "9"), other="else", missing=True)) == [2, 0, 1, 3]
    with pytest.raises(InputError, match=r"^public, column 'x' must only hold values .*, got '01';"):
        translated(Categorical("x", ("01", "2")), [0, 1], numbers)


# --- counts


def random_public(seed: int, rows: int = 60) -> tuple[list[np.ndarray], PublicTable]:
    """A table that lacks the second of four attributes, and its columns by attribute."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 4, 3)
    schema = Schema(tuple(Categorical(f"x{i}", tuple(range(size))) for i, size in enumerate(sizes)))
    columns = [rng.integers(0, size, rows) for size in sizes]
    table = Table(schema.project(("x3", "x0", "x2")), (columns[3], columns[0], columns[2]))
    return columns, PublicTable.encode(table, schema)


@pytest.mark.parametrize("seed", range(3))
def test_counts_weights_and_marginals_by_brute_force(seed: int) -> None:
    columns, public = random_public(seed)
    assert rows_of(public) == brute(*(columns[i].tolist() for i in (0, 2, 3)))
    assert np.array_equal(public.weights, public.counts / 60)
    assert np.isclose(public.weights.sum(), 1)
    every = [m for k in (1, 2, 3) for m in itertools.combinations(range(4), k)]
    covered = public.covered(every)
    assert covered == tuple(m for m in every if 1 not in m)
    for marginal, counts in zip(covered, public.count(covered), strict=True):
        shape = public.domain.shape(marginal)
        plain = np.zeros(shape, np.int64)
        np.add.at(plain, tuple(columns[i] for i in marginal), 1)
        assert counts.dtype == np.int64
        assert np.array_equal(counts, plain.ravel())


def test_the_covered_marginals_and_their_refusal() -> None:
    _, public = random_public(0)
    every = ((0, 1), (0, 2), (1, 2), (2, 3), (0, 2, 3))
    assert public.require_covered(every) == public.covered(every) == ((0, 2), (2, 3), (0, 2, 3))
    for marginals in (((0, 1), (1, 2, 3)), ()):
        with pytest.raises(InputError) as refused:
            public.require_covered(marginals)
        assert str(refused.value) == (
            "public must have all columns of at least one marginal of the workload, got x0, x2, x3; "
            "use a smaller K or a table with more columns."
        )


# --- the digest


def test_the_digest_is_that_of_the_content() -> None:
    data = frame()
    digest = PublicTable.encode(data, SCHEMA).digest
    assert len(digest) == 64
    assert PublicTable.encode(data.sample(frac=1, random_state=1), SCHEMA).digest == digest
    others = [
        frame(age=[20, 70, 10, 20, 70, 65]),  # one value in another bin
        pd.concat([data, data.tail(1)]),  # one row more
        data.drop_duplicates(),  # the same records with other counts
        data[["sex", "age"]],  # a column less
    ]
    digests = {PublicTable.encode(other, SCHEMA).digest for other in others}
    renamed = Schema((Categorical("gender", ("f", "m")), *SCHEMA.columns[1:]))
    digests.add(PublicTable.encode(data.rename(columns={"sex": "gender"}), renamed).digest)
    assert len(digests | {digest}) == 6
    # A value in the same bin is the same content: that is all that a method sees.
    assert PublicTable.encode(frame(age=[21, 71, 11, 21, 71, 63]), SCHEMA).digest == digest
