"""Schemas: TOML round trips, encoding and decoding, every refusal, and the kinds of columns."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data.columns import COLUMN_KINDS, EXTRA_KINDS
from pointillist.data.columns.types import EXAMPLES, NUMBERS
from pointillist.data.messages import fragment
from pointillist.data.public import PublicTable
from pointillist.data.schema import DRAFT_NOTICE, Categorical, Column, Numeric, Schema, code_dtype
from pointillist.data.table import Table
from pointillist.errors import InputError

RNG = np.random.default_rng(0)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
whole = st.integers(-(2**63), 2**63 - 1)


def dtypes_of(kind: type) -> st.SearchStrategy[str]:
    return st.sampled_from({str: ("", "string", "category"), int: ("", "string", "category"), bool: ("", "bool")}[kind])


@st.composite
def categoricals(draw: st.DrawFn, name: str) -> Categorical:
    kind = draw(st.sampled_from([str, int, bool]))
    if kind is bool:
        values = draw(st.permutations([False, True]))
        return Categorical(name, tuple(values), draw(st.booleans()), draw(st.booleans()), dtype=draw(dtypes_of(bool)))
    some: st.SearchStrategy[Any] = texts if kind is str else whole
    labels = draw(st.lists(some, min_size=3, max_size=6, unique=True))
    other = labels.pop() if draw(st.booleans()) else None
    return Categorical(name, tuple(labels), draw(st.booleans()), draw(st.booleans()), other, draw(dtypes_of(kind)))


@st.composite
def numerics(draw: st.DrawFn, name: str) -> Numeric:
    integer = draw(st.booleans())
    number: st.SearchStrategy[Any] = (
        st.integers(-(2**40), 2**40) if integer else st.floats(-1e12, 1e12, allow_subnormal=False)
    )
    edges = tuple(sorted(draw(st.lists(number, min_size=3, max_size=6, unique=True))))
    how = draw(st.sampled_from(["midpoint", "shape", "uniform"]))
    return Numeric(name, edges, integer, how, draw(st.booleans()), draw(st.booleans()))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(texts, min_size=2, max_size=5, unique=True))
    left_out = names.pop()
    columns: list[Column] = [draw(st.one_of(categoricals(name), numerics(name))) for name in names]
    return Schema(tuple(columns), draw(st.booleans()), (left_out,) if draw(st.booleans()) else ())


# --- TOML


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_toml_round_trip(schema: Schema) -> None:
    text = schema.to_toml()
    assert Schema.from_dict(tomllib.loads(text)) == schema
    assert text.startswith(DRAFT_NOTICE) == (not schema.reviewed)


def test_a_file_round_trip_keeps_awkward_labels(tmp_path: Path) -> None:
    values = (
        'say "no"',
        "back\\slash",
        "two\nlines\r\n",
        "tab\t",
        "\x00\x1f\x7f",
        "naïve ☃ 𝄞",
        "",
        " ",
        "# no comment",
    )
    schema = Schema((Categorical('a "b"\n= [c]', values, dtype="category"),), ignore=("x\ny",))
    schema.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == schema


def test_a_schema_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        """
        reviewed = true   # checked
        format = 1
        ignore = [ 'id', ]

        [[column]]
        type = 'categorical'
        values = ['01', "02",
                  '''a
b''']
        name = "code"
        other = "else"

        [[column]]
        name = "age"
        type = "numeric"
        edges = [0, 17.5, 1e2]
        clip = true
        missing = true
        """
    )
    schema = Schema.load(tmp_path / "s.toml")
    code, age = schema.columns
    assert code == Categorical("code", ("01", "02", "a\nb"), other="else")
    assert age == Numeric("age", (0, 17.5, 100), clip=True, missing=True)
    assert (schema.reviewed, schema.ignore) == (True, ("id",))
    assert (schema.domain.names, schema.domain.sizes) == (("code", "age"), (4, 3))


def test_a_schema_that_does_not_say_so_is_not_reviewed() -> None:
    spec = {"format": 1, "column": [{"name": "a", "type": "categorical", "values": [1, 2]}]}
    with pytest.raises(InputError, match="must be reviewed by a person before use, got reviewed = false; check that"):
        Schema.from_dict(spec).require_reviewed("x")


KINDS = ", ".join([*COLUMN_KINDS, *EXTRA_KINDS])
TYPES = ", ".join(EXAMPLES)
AGE = {"name": "age", "type": "numeric", "edges": [0, 10, 20]}
SEX = {"name": "sex", "type": "categorical", "values": ["f", "m"]}


def spec_of(*columns: Any, **top: Any) -> dict[str, Any]:
    return {"format": 1, "reviewed": True, "column": list(columns)} | top


WRONG: list[tuple[dict[str, Any], str]] = [
    (spec_of(SEX, format=2), "schema: format must be 1, got 2; write format = 1."),
    ({}, "schema: format must be 1, got None; write format = 1."),
    ({"format": 1}, "schema must have at least one column, got no [[column]]; add [[column]] tables."),
    (spec_of(), "schema must have at least one column, got no column; add columns."),
    (
        spec_of(SEX, reviewd=True),
        "schema must only have the keys format, reviewed, ignore, privacy, column, rule, got 'reviewd'; "
        "did you mean 'reviewed'.",
    ),
    (spec_of(SEX, reviewed="yes"), "schema: reviewed must be true or false, got 'yes'; write true or false."),
    (spec_of(SEX, ignore="id"), "schema: ignore must be a list of names, got 'id'; write [\"name\"]."),
    (spec_of(SEX, ignore=[["id"]]), "schema: ignore must be a list of names, got [['id']]; write [\"name\"]."),
    (
        spec_of(SEX, ignore=["sex"]),
        "schema: ignore must not name columns of the schema, got ['sex']; remove one of the two.",
    ),
    (spec_of(SEX, SEX), "column names must be different, got ['sex']; rename the repeated columns."),
    (
        spec_of({"type": "numeric"}),
        "schema: column must have a name, got {'type': 'numeric'}; write name = \"...\".",
    ),
    (spec_of(3), 'schema: column must have a name, got 3; write name = "...".'),
    (
        spec_of(SEX | {"type": "number"}),
        f"column 'sex': type must be one of {KINDS}, got 'number'; did you mean 'numeric'.",
    ),
    (
        spec_of({"name": "sex"}),
        f"column 'sex': type must be one of {KINDS}, got None; known are {KINDS}.",
    ),
    (
        spec_of(SEX | {"order": True}),
        "column 'sex' must only have the keys name, type, values, ordered, missing, other, dtype, "
        "missing_values, missing_as, merge, prefixes, parents, shares, hierarchy, got 'order'; "
        "did you mean 'ordered'.",
    ),
    (
        spec_of({"name": "sex", "type": "categorical"}),
        "column 'sex' must have a list of values, got None; write values = [...].",
    ),
    (spec_of(SEX | {"values": "f"}), "column 'sex' must have a list of values, got 'f'; write values = [...]."),
    (spec_of(SEX | {"values": []}), "column 'sex' must list its values, got []; write values = [...]."),
    (
        spec_of(SEX | {"values": ["f"]}),
        "column 'sex' must have at least two values, got 1; drop the column, or list every value that it could take.",
    ),
    (
        spec_of(SEX | {"values": ["f", "f"]}),
        "column 'sex' must list different values, got ['f', 'f']; remove the repeated ones.",
    ),
    (
        spec_of(SEX | {"values": ["f", 1]}),
        "column 'sex' must list values of one type (strings, whole numbers or true/false, 'other' included), "
        "got ['int', 'str']; write them as strings.",
    ),
    (
        spec_of(SEX | {"values": [1.5, 2.5]}),
        "column 'sex' must list values of one type (strings, whole numbers or true/false, 'other' included), "
        "got ['float']; write them as strings.",
    ),
    (
        spec_of(SEX | {"other": 3}),
        "column 'sex' must list values of one type (strings, whole numbers or true/false, 'other' included), "
        "got ['int', 'str']; write them as strings.",
    ),
    (
        spec_of(SEX | {"other": "f"}),
        "column 'sex' must not list 'other' among its values, got 'f'; remove one of the two.",
    ),
    (
        spec_of(SEX | {"values": [0, 2**63]}),
        f"column 'sex' must list whole numbers of 64 bits, got [0, {2**63}]; write them as strings.",
    ),
    (spec_of(SEX | {"missing": 1}), "column 'sex': missing must be true or false, got 1; write true or false."),
    (
        spec_of(SEX | {"dtype": "strng"}),
        f"column 'sex': dtype must be a type such as {TYPES}, got 'strng'; did you mean 'string'.",
    ),
    (
        spec_of(SEX | {"dtype": 8}),
        f"column 'sex': dtype must be a type such as {TYPES}, got 8; docs/schema.md lists them.",
    ),
    (
        spec_of(SEX | {"dtype": "int8"}),
        "column 'sex': dtype must be a type that holds every value of the column, got 'int8'; "
        "choose another, or leave dtype out.",
    ),
    (spec_of(AGE | {"edges": 3}), "column 'age' must have a list of edges, got 3; write edges = [...]."),
    (
        spec_of(AGE | {"edges": ["0", "1"]}),
        "column 'age': edges must be numbers, got ['0', '1']; write numbers without quotes.",
    ),
    (
        spec_of(AGE | {"edges": [0, True]}),
        "column 'age': edges must be numbers, got [0, True]; write numbers without quotes.",
    ),
    *(
        (
            spec_of(AGE | {"edges": edges}),
            f"column 'age' must have two or more finite, increasing bin edges, got {fragment(edges)}; "
            "sort them, and use clip = true for open ends.",
        )
        for edges in ([], [1], [0, 2, 1], [0, 0, 1], [0, float("inf")], [float("nan"), 1, 2], [0, 10**400])
    ),
    (
        spec_of(AGE | {"edges": [0, 1]}),
        "column 'age' must have at least two values, got 1; drop the column, or list every value that it could take.",
    ),
    (
        spec_of(AGE | {"edges": [0, 0.5, 2], "integer": True}),
        "column 'age' must have whole bin edges because integer = true, got [0, 0.5, 2]; round the edges.",
    ),
    (
        spec_of(AGE | {"decode": "mid"}),
        "column 'age': decode must be one of midpoint, uniform, shape, got 'mid'; did you mean 'midpoint'.",
    ),
    (
        spec_of(AGE | {"decode": 5}),
        "column 'age': decode must be one of midpoint, uniform, shape, got 5; known are midpoint, uniform, shape.",
    ),
    *(
        (
            spec_of(AGE | more),
            "column 'age': dtype must be a numeric type that has a number in every bin of the column, "
            f"got {more['dtype']!r}; choose float64, or int64 for an integer column.",
        )
        for more in (
            {"dtype": "string"},
            {"dtype": "int64"},  # not integer
            {"dtype": "int8", "integer": True, "edges": [0, 100, 200]},
            {"dtype": "uint8", "integer": True, "edges": [-1, 0, 1]},
            {"dtype": "float32", "edges": [0.0, 1.0 + 1e-12, 1.0 + 2e-12]},
            {"dtype": "float32", "edges": [0.0, 1.0, 1e39]},
            {"dtype": "float32", "integer": True, "edges": [0, 10, 2**25]},
        )
    ),
    (
        spec_of(AGE | {"other": "x"}),
        "column 'age' must only have the keys name, type, edges, integer, decode, clip, missing, dtype, "
        "missing_values, missing_as, merge, got 'other'; did you mean 'integer'.",
    ),
]


@pytest.mark.parametrize(("spec", "sentence"), WRONG, ids=range(len(WRONG)))
def test_refusals(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Schema.from_dict(spec)
    assert str(caught.value) == sentence


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be an existing file, .* draft one with `pointillist schema DATA`"):
        Schema.load(tmp_path / "none.toml")
    for content in (b"format = = 1", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(InputError, match="must be valid TOML"):
            Schema.load(tmp_path / "bad.toml")


# --- encoding and decoding


def codes_of(column: Column, values: list[Any], kind: pa.DataType | None = None) -> list[int]:
    codes = column.encode(pa.array(values, kind))
    assert codes.dtype == code_dtype(column.size)
    return codes.tolist()


@pytest.mark.parametrize(
    ("column", "values", "kind", "codes"),
    [
        (Categorical("c", ("b", "a")), ["a", "b", "a"], None, [1, 0, 1]),
        (Categorical("c", ("b", "a"), missing=True), ["a", None, ""], None, [1, 2, 2]),
        (Categorical("c", ("b", ""), missing=True), ["", None], None, [1, 2]),
        (Categorical("c", ("b", "a"), other="z"), ["a", "q", "z", "NA"], None, [1, 2, 2, 2]),
        (Categorical("c", ("b", "a"), other="z", missing=True), ["q", None, "b"], None, [2, 3, 0]),
        (Categorical("c", ("01", "1")), ["1", "01"], None, [1, 0]),
        (Categorical("c", ("1", "2")), [2, 1], None, [1, 0]),
        (Categorical("c", ("true", "false")), [True, False], None, [0, 1]),
        (Categorical("c", (3, -1)), [-1, 3], pa.int8(), [1, 0]),
        (Categorical("c", (3, 300), other=-1), [3, 4], pa.uint8(), [0, 2]),
        (Categorical("c", (3, -1), missing=True), [3.0, float("nan"), None], None, [0, 2, 2]),
        (Categorical("c", (3, -1), missing=True), ["3.0", "-1", " 3 ", "", "NA", "nan"], None, [0, 1, 0, 2, 2, 2]),
        (Categorical("c", (0, 1)), [True, False], None, [1, 0]),
        (Categorical("c", (5, 1), other=-1), [True, False], None, [1, 2]),
        (Categorical("c", (5, -1), other=0), [2**63 + 1, 5], pa.uint64(), [2, 0]),
        (Categorical("c", (False, True)), ["True", "false", "TRUE"], None, [1, 0, 1]),
        (Categorical("c", (True, False), missing=True), [True, None], None, [0, 2]),
        (Categorical("c", (False, True)), [1, 0], None, [1, 0]),
        (Categorical("c", (False, True)), [1.0, 0.0], None, [1, 0]),
        (Numeric("x", (0, 1, 2)), [0, 0.5, 1, 2], None, [0, 0, 1, 1]),
        (Numeric("x", (0, 1, 2)), ["0", " 1.5 ", "2e0"], None, [0, 1, 1]),
        (Numeric("x", (0, 1, 2), clip=True), [-9, 9, float("inf"), float("-inf")], None, [0, 1, 1, 0]),
        (Numeric("x", (0, 1, 2), missing=True), ["1", "", "NA", "nan", "-nan", "NAN", None], None, [1] + 6 * [2]),
        (Numeric("x", (0, 1, 2), missing=True), [1.0, float("nan"), None], None, [1, 2, 2]),
        (Numeric("x", (0, 10, 20), integer=True), [9, 10, 20], pa.int16(), [0, 1, 1]),
    ],
)
def test_encode(column: Column, values: list[Any], kind: pa.DataType | None, codes: list[int]) -> None:
    assert codes_of(column, values, kind) == codes


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        (
            Categorical("c", ("b", "a")),
            ["a", "B"],
            "column 'c' must only hold values of the schema, got 'B'; "
            'correct the table, list the value, or set other = "...".',
        ),
        (
            Categorical("c", (1, 2)),
            [1.5],
            "column 'c' must only hold values of the schema, got 1.5; "
            'correct the table, list the value, or set other = "...".',
        ),
        (
            Categorical("c", ("b", "a")),
            ["a", None],
            "column 'c' must not have missing values, got a missing value; "
            "set missing = true in the schema, or fill them.",
        ),
        (
            Numeric("x", (0, 1, 2)),
            [0.0, float("nan")],
            "column 'x' must not have missing values, got a missing value; "
            "set missing = true in the schema, or fill them.",
        ),
        (
            Numeric("x", (0, 1, 2)),
            ["-nan"],
            "column 'x' must not have missing values, got a missing value; "
            "set missing = true in the schema, or fill them.",
        ),
        (
            Numeric("x", (0, 1, 2)),
            [3.0],
            "column 'x' must lie between 0 and 2, got 3.0; correct the table, widen the bounds, or set clip = true.",
        ),
        *(
            (
                Numeric("x", (0, 1, 2)),
                ["1", text],
                f"column 'x' must hold numbers, got {text!r}; "
                "correct the file, list it under missing_values, or make the column categorical.",
            )
            for text in ("one", "1_000", "1,5")
        ),
        (
            Numeric("x", (0, 1, 2), integer=True),
            [1.0, 0.5],
            "column 'x' must hold whole numbers because integer = true, got 0.5; set integer = false in the schema.",
        ),
    ],
)
def test_values_outside_the_schema(column: Column, values: list[Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        column.encode(pa.array(values))
    assert str(caught.value) == sentence


@settings(max_examples=200, deadline=None)
@given(st.one_of(categoricals("c"), numerics("x")), st.integers(0, 1000))
def test_decode_then_encode_keeps_the_code(column: Column, seed: int) -> None:
    codes = np.tile(np.arange(column.size), 20).astype(code_dtype(column.size))
    array = column.decode(codes, np.random.default_rng(seed))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    assert np.array_equal(column.encode(array), codes)


@pytest.mark.parametrize("how", ["midpoint", "shape", "uniform"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bins_of_real_numbers_survive_rounding(how: str, dtype: str) -> None:
    edges = (-0.1, 0.1, 0.1 + 1e-8, 1 / 3, 0.7, 16777217.0)
    column = Numeric("x", edges, decode_as=how, dtype=dtype)
    codes = np.repeat(np.arange(5), 2000)
    array = column.decode(codes, RNG)
    assert str(array.type) == {"float32": "float", "float64": "double"}[dtype]
    assert np.array_equal(column.encode(array), codes)


@pytest.mark.parametrize("u", [0.0, float(np.nextafter(1.0, 0.0))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", ["shape", "uniform"])
@pytest.mark.parametrize("edges", [(0.0, 0.7, 1.0, 2.0), (1e7, 1e7 + 1, 1e7 + 2), (-0.7, -0.1, 0.1)])
def test_the_ends_of_bins_survive_rounding(edges: tuple[float, ...], how: str, dtype: str, u: float) -> None:
    class Stuck:
        def random(self, size: int) -> np.ndarray:
            return np.full(size, u)

    column = Numeric("x", edges, decode_as=how, dtype=dtype)
    codes = np.arange(column.size)
    assert np.array_equal(column.encode(column.decode(codes, Stuck())), codes)  # type: ignore[arg-type]


def test_integer_bins_are_filled_evenly() -> None:
    column = Numeric("x", (0, 3, 5), integer=True, decode_as="uniform")
    drawn = column.decode(np.repeat([0, 1], 6000), np.random.default_rng(1)).to_numpy()
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4, 5]  # [0, 3) and [3, 5]
    assert np.all(np.abs(counts - 2000) < 250)
    middle = Numeric("x", (0, 3, 5), integer=True, decode_as="midpoint")
    assert middle.decode(np.array([0, 1]), RNG).to_pylist() == [1, 4]
    assert Numeric("x", (0, 3, 5), decode_as="midpoint").decode(np.array([0, 1]), RNG).to_pylist() == [1.5, 4.0]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_number_types_are_restored(dtype: str) -> None:
    listed = Categorical("c", (0, 1, 100), missing=True, dtype=dtype)
    binned = Numeric("x", (0, 50, 100), integer=True, missing=True, dtype=dtype)
    for column in (listed, binned):
        array = column.decode(np.arange(column.size), RNG)
        assert array.type == pa.from_numpy_dtype(np.dtype(dtype))
        assert array.null_count == 1
        assert array[column.size - 1].as_py() is None


def test_other_types_are_restored() -> None:
    codes = np.array([1, 0, 2])
    assert Categorical("c", (True, False), missing=True).decode(codes, RNG).equals(pa.array([False, True, None]))
    assert Categorical("c", ("x", "y"), missing=True).decode(codes, RNG).equals(pa.array(["y", "x", None]))
    assert Categorical("c", (7, 8), missing=True).decode(codes, RNG).equals(pa.array([8, 7, None]))
    category = Categorical("c", ("low", "mid", "high"), ordered=True, dtype="category").decode(codes, RNG)
    assert category.to_pylist() == ["mid", "low", "high"]
    assert category.dictionary.to_pylist() == ["low", "mid", "high"]
    assert category.type.ordered


def test_code_types_are_the_smallest() -> None:
    sizes = {2: np.uint8, 256: np.uint8, 257: np.uint16, 65536: np.uint16, 65537: np.uint32}
    assert {size: code_dtype(size) for size in sizes} == {size: np.dtype(kind) for size, kind in sizes.items()}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_minus_zero_is_zero(kind: pa.DataType) -> None:
    column = Categorical("c", (0, 1))
    assert column.encode(pa.array([1.0, -0.0, 0.0], kind)).tolist() == [1, 0, 0]
    assert column.encode(pa.array(["1", "-0", "-0.0"])).tolist() == [1, 0, 0]


# --- kinds of columns


def test_kinds_are_registered_under_the_name_that_they_write() -> None:
    assert list(COLUMN_KINDS) == ["categorical", "numeric", "date", "time", "timestamp", "duration"]
    day = {"name": "day", "type": "date", "bounds": ["2020-01-01", "2020-12-31"]}
    for kind, spec in (("categorical", SEX), ("numeric", AGE), ("date", day)):
        column = COLUMN_KINDS[kind].from_dict(spec)
        assert column.to_dict()["type"] == kind
        assert COLUMN_KINDS[kind].from_dict(column.to_dict()) == column


def test_neighbouring_codes_are_close_in_bins_and_where_the_schema_says_so() -> None:
    assert Numeric("x", (0, 1, 2)).ordered
    assert not Categorical("c", ("a", "b")).ordered
    assert Categorical("c", ("a", "b"), ordered=True).ordered


def test_descriptions_have_one_line() -> None:
    columns = [Categorical("c", ("a", "b"), missing=True), Categorical("d", (1, 2), True, other=9)]
    columns += [Numeric("x", (0, 1.5, 3)), Numeric("y", (0, 1), missing=True)]
    assert [column.describe() for column in columns] == [
        "c: 2 unordered values or missing",
        "d: 3 ordered values",
        "x: 2 bins from 0 to 3",
        "y: 1 bin from 0 to 1 or missing",
    ]


@dataclass(frozen=True)
class Parity:
    """A kind of column that is not part of the package: whole numbers, of which only the last bit counts."""

    name: str
    missing: bool = False
    dtype: str = ""
    output_dtype = "int64"
    ordered = False
    size = 2
    labels = ("even", "odd")

    def encode(self, array: pa.Array) -> np.ndarray:
        return (array.to_numpy() % 2).astype(np.uint8)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        return pa.array(2 * rng.integers(0, 100, len(codes)) + codes)

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        return codes

    def describe(self) -> str:
        return f"{self.name}: even or odd"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": "parity"}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Parity:
        return cls(spec["name"])


def test_a_kind_is_added_by_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(COLUMN_KINDS, "parity", Parity)
    schema = Schema((Parity("n"), Categorical("c", ("a", "b"))))
    schema.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == schema
    table = Table.encode(pa.table({"n": [4, 7, 1], "c": ["a", "b", "b"]}), schema)
    assert table.codes[0].tolist() == [0, 1, 1]
    assert Table.encode(table.to_arrow(), schema).codes[0].tolist() == [0, 1, 1]
    assert PublicTable.encode(table, schema).rows == 3
    with pytest.raises(InputError, match=r"type must be one of categorical, numeric, .*parity, .*got 'party'"):
        Schema.from_dict(spec_of({"name": "n", "type": "party"}))


# --- wrong types, and files that no one writes


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Numeric("a", None), "column 'a' must have a list of edges, got None"),  # type: ignore[arg-type]
        (lambda: Numeric("a", "012"), "column 'a' must have a list of edges, got '012'"),  # type: ignore[arg-type]
        (lambda: Numeric("a", 5), "column 'a' must have a list of edges, got 5"),  # type: ignore[arg-type]
        (lambda: Numeric("a", ("0", "1")), "column 'a': edges must be numbers"),  # type: ignore[arg-type]
        (lambda: Numeric("a", (0, None, 1)), "column 'a': edges must be numbers"),  # type: ignore[arg-type]
        (lambda: Numeric("a", (0, 1j)), "column 'a': edges must be numbers"),  # type: ignore[arg-type]
        (lambda: Numeric("a", (0, 1, 2), missing=1), "column 'a': missing must be true or false"),  # type: ignore[arg-type]
        (lambda: Numeric("a", (0, 1, 2), dtype=None), "column 'a': dtype must be a type such as"),  # type: ignore[arg-type]
        (lambda: Numeric("a", (0, 1, 2), decode_as=[]), "column 'a': decode must be one of"),  # type: ignore[arg-type]
        (lambda: Numeric(3, (0, 1, 2)), "column: name must be a text, got 3"),  # type: ignore[arg-type]
        (lambda: Categorical("a", None), "column 'a' must have a list of values, got None"),  # type: ignore[arg-type]
        (lambda: Categorical("a", "xy"), "column 'a' must have a list of values, got 'xy'"),  # type: ignore[arg-type]
        (lambda: Categorical("a", ("x", None)), "column 'a' must list values of one type"),  # type: ignore[arg-type]
        (lambda: Categorical("a", ([1], [2])), "column 'a' must list values of one type"),  # type: ignore[arg-type]
        (lambda: Categorical("a", (1, 10**5000)), "column 'a' must list whole numbers of 64 bits"),
        (lambda: Categorical("a", ("x", "\ud800")), "column 'a': value must be valid Unicode text"),
        (lambda: Categorical("a", ("x", "y"), other="\ud800"), "column 'a': value must be valid Unicode text"),
        (lambda: Categorical("\ud800", ("x", "y")), "column: name must be valid Unicode text"),
        (lambda: Schema(None), "schema: columns must be a list of columns"),  # type: ignore[arg-type]
        (lambda: Schema((1,)), "schema: columns must be a list of columns"),  # type: ignore[arg-type]
        (lambda: Schema((Categorical("a", (1, 2)),), ignore="id"), "schema: ignore must be a list"),  # type: ignore[arg-type]
        (lambda: Schema((Categorical("a", (1, 2)),), ignore=("\ud800",)), "schema: ignore must be valid Unicode"),
        (lambda: Schema.from_dict(None), "schema must be a table of entries, got NoneType"),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_are_refused(build: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


def test_numpy_values_and_lists_are_taken() -> None:
    assert Numeric("a", np.array([0, 1.5, 2])) == Numeric("a", (0.0, 1.5, 2.0))  # type: ignore[arg-type]
    assert Categorical("a", np.array(["x", "y"])) == Categorical("a", ("x", "y"))  # type: ignore[arg-type]
    assert Categorical("a", [1, np.int64(2)], other=np.int8(3)) == Categorical("a", (1, 2), other=3)  # type: ignore[arg-type]
    schema = Schema([Categorical("a", range(3)), Numeric("b", [0, 1, 2])], ignore=["id"])  # type: ignore[arg-type]
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    assert hash(schema.columns[0])


HEAD = 'format = 1\nreviewed = true\n[[column]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "type = []", f"column 'a': type must be one of {KINDS}, got []"),
        (HEAD + 'type = "numeric"\nedges = [0, ' + "9" * 5000 + "]", "must be valid TOML (a number is too long)"),
        (HEAD + 'type = "numeric"\nedges = [0, 0x' + "9" * 5000 + "]", "column 'a' must have two or more finite"),
        (HEAD + 'type = "categorical"\nvalues = [0, 0x' + "9" * 5000 + "]", "must list whole numbers of 64 bits"),
        ("format = 0x" + "9" * 5000, "schema: format must be 1"),
        ("a = " + "[" * 20_000, "must be valid TOML (its lists are nested too deeply)"),
        ("a = " + "{a = " * 20_000, "must be valid TOML (its lists are nested too deeply)"),
        (HEAD + 'type = "categorical"\nvalues = [1979-05-27, 07:32:00]', "must list values of one type"),
        (f'"{"secret" * 50}" = {{ a = 1, a = 2 }}', "must be valid TOML (Duplicate inline table key ... (at line 1"),
        (f'format = 1\n"{"secret" * 50}" = 2', "schema must only have the keys"),
        (f'format = 1\ncolumn = ["{"secret" * 50}"]', "schema: column must have a name"),
    ],
)
def test_files_that_no_one_writes(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        Schema.load(tmp_path / "s.toml")
    assert words in str(caught.value)
    assert "secret" * 11 not in str(caught.value)
