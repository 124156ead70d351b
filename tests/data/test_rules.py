"""Rules of a schema: which combinations are allowed, values that obey them, and rows of a release that all do."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pointillist import (
    Categorical,
    InputError,
    Numeric,
    Release,
    Schema,
    Table,
    Temporal,
    evaluate,
    prepare,
    synthesize,
)  # fmt: skip
from pointillist.attestation import verify
from pointillist.data.conditions import cells_of
from pointillist.data.obeying import Group
from pointillist.data.rules import Rule
from pointillist.release import drawing
from pointillist.release.drawing import draw_rows, drawn_rows

AGE = Numeric("age", (0, 10, 18, 65, 120), integer=True)
MARITAL = Categorical("marital", ("never", "married", "widowed"))
SEX = Categorical("sex", ("f", "m"))
PREGNANT = Categorical("pregnant", (True, False), missing=True)
START = Numeric("start", (0, 10, 20, 30), integer=True)
END = Numeric("end", (0, 10, 20, 30), integer=True)
CITY = Categorical("city", ("Berlin", "Munich", "Nuremberg", "Elsewhere"))
REGION = Categorical("region", ("Berlin", "Bavaria", "Hesse"), missing=True)
CITIES = {"Berlin": "Berlin", "Munich": "Bavaria", "Nuremberg": "Bavaria"}
YOUNG = Rule(if_="age < 15", then='marital == "never"')
MEN = Rule(never='sex == "m" and pregnant == true')
ORDER = Rule(always="start <= end")
PLACE = Rule(determines=("city", "region"), mapping=CITIES)


def schema_of(*rules: Rule, columns: tuple[Any, ...] = ()) -> Schema:
    every = (AGE, MARITAL, SEX, PREGNANT, START, END, CITY, REGION)
    return Schema(columns or every, ignore=("id",), rules=rules)


def group_of(schema: Schema) -> Group:
    (group,) = schema.rule_groups
    return group


def every_row(schema: Schema) -> tuple[np.ndarray, ...]:
    return tuple(np.indices(schema.domain.sizes).reshape(len(schema.domain.sizes), -1))


def test_rules_go_through_a_file(tmp_path: Path) -> None:
    schema = schema_of(YOUNG, MEN, ORDER, PLACE)
    schema.save(tmp_path / "s.toml")
    again = Schema.load(tmp_path / "s.toml")
    assert again == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert [rule.text for rule in again.rules] == [
        'age < 15 -> marital == "never"',
        'never sex == "m" and pregnant == true',
        "always start <= end",
        "city determines region",
    ]
    assert "rule" not in schema_of().to_dict()


def test_a_mapping_is_read_from_a_file_next_to_the_schema(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("region,city,people\n" + "".join(f"{r},{c},1\n" for c, r in CITIES.items()))
    text = schema_of().to_toml() + '\n[[rule]]\ndetermines = { city = "region" }\nmapping = "cities.csv"\n'
    (tmp_path / "s.toml").write_text(text)
    assert Schema.load(tmp_path / "s.toml").rules == (PLACE,)
    (tmp_path / "cities.csv").write_text("region,city\nA,Berlin\nB,Berlin\n")
    with pytest.raises(InputError, match="rule: mapping must have one value for each"):
        Schema.load(tmp_path / "s.toml")
    (tmp_path / "cities.csv").write_text("region,town\nA,Berlin\n")
    with pytest.raises(InputError, match="must have the columns 'city' and 'region'"):
        Schema.load(tmp_path / "s.toml")
    (tmp_path / "cities.csv").unlink()
    with pytest.raises(InputError, match="rule: mapping must be a readable CSV file"):
        Schema.load(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "rule must have exactly one of"),
        ({"if": "age < 3"}, "must have then with if"),
        ({"never": "age < 3", "always": "age > 1"}, "exactly one"),
        ({"never": "age <"}, "condition must be well-formed"),
        ({"never": "ages < 3"}, "rule must be about columns of the schema, got .'ages'.; did you mean 'age'"),
        ({"never": "age == 'x'"}, "compares numbers with texts"),
        ({"always": "marital < 'never'"}, "compares the order of numbers"),
        ({"determines": {"city": "region"}}, "mapping with determines"),
        ({"determines": {"city": "region", "a": "b"}, "mapping": {"x": "y"}}, "must be one pair of columns"),
        ({"determines": {"city": "region"}, "mapping": "file.csv"}, "mapping must be a table of values"),
        ({"sometimes": "age < 3"}, "sometimes"),
        ({"never": 3}, "rule: never must be a text"),
    ],
)
def test_rules_that_make_no_sense_are_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Schema.from_dict(schema_of().to_dict() | {"rule": [spec]})


@pytest.mark.parametrize(
    "rules",
    [
        (Rule(never="age >= 0"),),
        (Rule(always="age < 10"), Rule(always="age >= 65")),
        (Rule(always="age in [11, 12]"), Rule(never="age == 11 or age == 12")),
        (Rule(always='marital == "nevr"'),),
        (ORDER, Rule(always="start >= end + 1")),
        (Rule(always="start + end == 100"),),
    ],
)
def test_rules_that_contradict_each_other_are_refused(rules: tuple[Rule, ...]) -> None:
    with pytest.raises(InputError, match="rules must allow at least one row together"):
        schema_of(*rules)


def test_what_is_missing_breaks_no_rule() -> None:
    table = pa.table({"sex": ["m", "m", "m"], "pregnant": [True, None, False]})
    assert schema_of(MEN).rules.violations(table) == {MEN.text: 1}  # type: ignore[attr-defined]


def allowed_by_values(schema: Schema) -> np.ndarray:
    """Which combinations of codes have some values that obey all rules, by trying every whole number."""
    group = group_of(schema)
    options = []
    for column in group.columns:
        if isinstance(column, Numeric):
            whole = range(int(column.edges[0]), int(column.edges[-1]) + 1)
            codes = column.encode(pa.array(whole))
            inside = [[v for v, c in zip(whole, codes, strict=True) if c == n] for n in range(column.size)]
            options.append([some or [None] for some in inside])
        else:
            options.append([[label] for label in column.labels] + [[None]] * column.missing)
    shape = tuple(column.size for column in group.columns)
    found = []
    for codes in itertools.product(*map(range, shape)):
        rows = list(itertools.product(*(some[code] for some, code in zip(options, codes, strict=True))))
        cells = {name: cells_of(pa.array([row[n] for row in rows])) for n, name in enumerate(group.names)}
        found.append(bool((~group.broken(cells)).any()))
    return np.array(found).reshape(shape)


SMALL_AGE = Numeric("age", (0, 3, 5, 9), integer=True)
SMALL_START, SMALL_END = (Numeric(name, (0, 3, 5, 9), integer=True) for name in ("start", "end"))
SMALL_TOTAL = Numeric("total", (0, 2, 6, 12), integer=True, missing=True)
SMALL = (SMALL_AGE, MARITAL, SEX, PREGNANT, SMALL_START, SMALL_END, SMALL_TOTAL, CITY, REGION)


@pytest.mark.parametrize(
    "rules",
    [
        (Rule(if_="age < 4", then='marital == "never"'),),
        (MEN,),
        (ORDER,),
        (Rule(always="start < end"),),
        (PLACE,),
        (Rule(always="start + end == total"),),
        (Rule(always="start + end == total"), Rule(always="total is not missing")),
        (Rule(always="start + end <= total - 1"), ORDER),
        (Rule(never="age == 4"), Rule(if_="age >= 5", then='marital != "never" or sex == "f"')),
        (Rule(always="age == 4 or age == 7"),),
    ],
    ids=lambda rules: "; ".join(rule.text for rule in rules),
)
def test_a_combination_is_workable_if_and_only_if_some_of_its_values_obey(rules: tuple[Rule, ...]) -> None:
    schema = schema_of(*rules, columns=SMALL)
    group, wanted = group_of(schema), allowed_by_values(schema)
    codes = [one.ravel() for one in np.indices(wanted.shape)]
    found = group.workable(codes)
    np.testing.assert_array_equal(found, wanted.ravel())
    forbidden, sure = group.judged(codes)
    assert not (forbidden & found).any()
    assert not (sure & ~found).any()
    assert found[np.ravel_multi_index(group.allowed() or (), wanted.shape)]


@pytest.mark.parametrize(
    "rules",
    [
        (ORDER, Rule(if_="age < 4", then='marital == "never"'), PLACE),
        (Rule(always="start + end == total"),),
        (Rule(always="start + end <= total"), ORDER, MEN),
    ],
    ids=lambda rules: "; ".join(rule.text for rule in rules),
)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_workable_row_is_decoded_to_values_that_obey(rules: tuple[Rule, ...], seed: int) -> None:
    schema = schema_of(*rules, columns=SMALL)
    rng = np.random.default_rng(seed)
    codes = tuple(rng.integers(0, size, 3000) for size in schema.domain.sizes)
    good = np.logical_and.reduce([g.workable([codes[n] for n in g.positions]) for g in schema.rule_groups])
    table = Table(schema, tuple(one[good] for one in codes))
    assert len(table) > 100
    arrow = table.to_arrow(seed)
    assert set(schema.rules.violations(arrow).values()) == {0}  # type: ignore[attr-defined]
    again = Table.encode(arrow, schema)
    for first, second in zip(table.codes, again.codes, strict=True):
        np.testing.assert_array_equal(first, second)
    assert arrow.schema == Table(Schema(SMALL), table.codes).to_arrow(seed).schema


def test_real_numbers_that_add_up(tmp_path: Path) -> None:
    parts = tuple(Numeric(name, (0.0, 10.0, 50.0, 100.0)) for name in ("a", "b"))
    total = Numeric("total", (0.0, 20.0, 100.0, 200.0))
    schema = Schema((*parts, total), rules=(Rule(always="a + b == total"),))
    group = group_of(schema)
    codes = every_row(schema)
    good = group.workable(codes)
    table = Table(schema, tuple(one[good] for one in codes))
    assert 8 <= len(table) < 27
    table.write(tmp_path / "t.csv")
    again = pa.table(Table.read(tmp_path / "t.csv", schema).to_arrow())
    assert schema.rules.violations(again) == {"always a + b == total": 0}  # type: ignore[attr-defined]


def test_types_stay_as_they_are() -> None:
    low = Numeric("low", (0.0, 0.1, 0.3), dtype="float32")
    high = Numeric("high", (0.0, 0.1, 0.3), dtype="float32", missing=True)
    kind = Categorical("kind", ("a", "b"), dtype="category")
    size = Categorical("size", (1, 2, 3), dtype="int8")
    rules = (Rule(always="low <= high"), Rule(if_='kind == "a"', then="size < 3 and low < 0.2"))
    schema = Schema((low, high, kind, size), rules=rules)
    codes = every_row(schema)
    good = np.logical_and.reduce([g.workable([codes[n] for n in g.positions]) for g in schema.rule_groups])
    table = Table(schema, tuple(np.repeat(one[good], 50) for one in codes))
    arrow = table.to_arrow(3)
    assert [str(one.type) for one in arrow.schema][:2] == ["float", "float"]
    assert pa.types.is_dictionary(arrow.schema.field("kind").type)
    assert arrow.schema.field("size").type == pa.int8()
    assert set(schema.rules.violations(arrow).values()) == {0}  # type: ignore[attr-defined]
    for first, second in zip(table.codes, Table.encode(arrow, schema).codes, strict=True):
        np.testing.assert_array_equal(first, second)


def test_mappings_are_about_decoded_values() -> None:
    """Labels that are decoded to another type are compared as what they are decoded to."""
    code = Categorical("code", ("1", "2"), dtype="int8")
    name = Categorical("name", ("one", "two"), missing=True)
    schema = Schema((code, name), rules=(Rule(determines=("code", "name"), mapping={"1": "one", "2": "two"}),))
    codes = every_row(schema)
    good = group_of(schema).workable(codes)
    table = Table(schema, tuple(one[good] for one in codes))
    pairs = list(zip(*(one.to_pylist() for one in table.to_arrow().columns), strict=True))
    assert pairs == [(1, "one"), (1, None), (2, "two"), (2, None)]


def test_a_table_that_breaks_rules_is_encoded_as_it_is() -> None:
    """Nothing is refused or dropped: that would depend on private values."""
    schema = schema_of(YOUNG, columns=(AGE, MARITAL))
    data = pa.table({"age": [3, 30], "marital": ["widowed", "never"]})
    table = Table.encode(data, schema)
    assert [codes.tolist() for codes in table.codes] == [[0, 2], [2, 0]]
    assert schema.rules.violations(data) == {YOUNG.text: 1}  # type: ignore[attr-defined]
    assert prepare(table, epsilon=90.0, delta=0.1, workload="marginals:2").schema == schema


def test_projections_keep_the_rules_about_their_columns() -> None:
    schema = schema_of(YOUNG, MEN, ORDER, PLACE)
    assert schema.project(["marital", "age", "sex"]).rules == (YOUNG,)
    assert schema.project(["sex"]).rules == ()


class Uniform:
    """A model that draws every row with the same probability, or a fixed row."""

    def __init__(self, schema: Schema, fixed: tuple[int, ...] | None = None) -> None:
        self.sizes, self.fixed = schema.domain.sizes, fixed

    def sample(self, rng: np.random.Generator, params: Any, rows: int) -> tuple[np.ndarray, ...]:
        if self.fixed is not None:
            return tuple(np.full(rows, code) for code in self.fixed)
        return tuple(rng.integers(0, size, rows) for size in self.sizes)


def test_rows_are_drawn_again_until_they_are_allowed() -> None:
    schema = schema_of(YOUNG, ORDER, PLACE, MEN)
    table, drawn, _ = drawn_rows(Uniform(schema), None, schema, 4000, 0)  # type: ignore[arg-type]
    assert drawn is not None
    assert 0.5 < drawn.rejected < 0.9
    assert drawn.repaired == 0
    assert set(schema.rules.violations(table).values()) == {0}  # type: ignore[attr-defined]
    # given the rules, combinations without a preference stay equally likely
    same, _, _ = drawn_rows(Uniform(schema), None, schema, 4000, 0)  # type: ignore[arg-type]
    assert all(np.array_equal(a, b) for a, b in zip(table.codes, same.codes, strict=True))
    ages = np.bincount(table.codes[0][table.codes[1] == 0], minlength=4)
    assert ages.min() > 0.7 * ages.max()


def test_rows_that_are_never_allowed_are_changed_as_little_as_possible() -> None:
    schema = schema_of(YOUNG, columns=(AGE, MARITAL, SEX))
    table, drawn, _ = drawn_rows(Uniform(schema, (0, 1, 1)), None, schema, 50, 0)  # type: ignore[arg-type]
    assert drawn is not None
    assert (drawn.rejected, drawn.repaired) == (1.0, 1.0)
    changed = (table.codes[0] != 0).astype(int) + (table.codes[1] != 1)
    assert changed.tolist() == [1] * 50
    assert (table.codes[2] == 1).all()
    assert schema.rules.violations(table) == {YOUNG.text: 0}  # type: ignore[attr-defined]


def test_where_one_column_is_not_enough_more_are_changed() -> None:
    three = tuple(Categorical(name, (0, 1)) for name in "abc")
    schema = Schema(three, rules=(Rule(always="a == 1 and b == 1 and c == 1"),))
    table, drawn, _ = drawn_rows(Uniform(schema, (0, 0, 0)), None, schema, 5, 0)  # type: ignore[arg-type]
    assert [codes.tolist() for codes in table.codes] == [[1] * 5] * 3
    assert drawn is not None
    assert drawn.repaired == 1


def people(rows: int = 400) -> tuple[pa.Table, Schema]:
    rng = np.random.default_rng(5)
    age = rng.integers(0, 121, rows)
    marital = np.where(age < 15, "never", rng.choice(["never", "married", "widowed"], rows))
    start = rng.integers(0, 31, rows)
    city = rng.choice(["Berlin", "Munich", "Elsewhere"], rows)
    region = [CITIES.get(one, "Hesse") for one in city]
    table = {"age": age, "marital": marital, "start": start, "end": np.minimum(30, start + 2), "city": city}
    columns = (AGE, MARITAL, START, END, CITY, REGION)
    return pa.table(table | {"region": region}), schema_of(YOUNG, ORDER, PLACE, columns=columns)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("mwem", {"rounds": 5}),
        ("one-shot", {"rows": 30, "t_max": 20}),
        pytest.param("fem", {"rounds": 3, "samples": 4}, marks=pytest.mark.slow),
        pytest.param(
            "gem", {"rounds": 2, "batch": 20, "inputs": 8, "hidden": "16", "t_max": 5}, marks=pytest.mark.slow
        ),
    ],
)
def test_every_row_of_a_release_obeys_every_rule(tmp_path: Path, method: str, settings: dict[str, Any]) -> None:
    data, schema = people()
    group = "query" if method == "fem" else None
    release = synthesize(data, schema=schema, epsilon=1.0, method=method, settings=settings, group=group,
                         workload="marginals:2")  # fmt: skip
    drawn = release.description.rules
    assert drawn is not None
    assert 0 <= drawn.repaired <= drawn.rejected <= 1
    folder = release.save(tmp_path / "r")
    again = Release.load(folder)
    assert again.description.rules == drawn
    written = parquet.read_table(folder / "synthetic.parquet")
    for table in (release.table, again.table, release.sample(300, seed=4), written):
        assert set(schema.rules.violations(table).values()) == {0}  # type: ignore[attr-defined]
    report = verify(folder, replay=True)
    assert report.ok, [one for one in report.checks if one.status == "failed"]


@pytest.mark.parametrize("most", [0, 10_000])
def test_a_release_says_what_the_rules_did_to_its_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_COMBINATIONS", most)
    data, schema = people()
    plain = Schema(schema.columns, ignore=schema.ignore)
    release = synthesize(
        data, schema=schema, epsilon=1.0, settings={"rows": 30, "t_max": 20}, method="one-shot", workload="marginals:2"
    )
    drawn = release.description.rules
    assert drawn is not None
    assert drawn.rejected > 0.05
    assert (drawn.masked > 0) == (most > 0)
    before, after = (
        draw_rows(release.family, release.params, one, len(release.table), release.description.seed)
        for one in (plain, schema)
    )
    far = {}
    for n, column in enumerate(schema.columns):
        counts = [np.bincount(one.codes[n], minlength=column.size) for one in (before, after)]
        far[column.name] = float(np.abs(counts[0] - counts[1]).sum()) / 2 / len(before)
    assert drawn.column == max(far, key=lambda name: far[name])
    assert drawn.moved == pytest.approx(far[drawn.column])
    found = evaluate(data, release)
    assert found.drawn == drawn
    assert found.to_dict()["drawn"]["moved"] == drawn.moved
    assert f"{drawn.rejected:.2%} of the rows broke one at first" in str(found)


def test_a_release_without_rules_says_nothing_about_them(tmp_path: Path) -> None:
    data, schema = people()
    plain = Schema(schema.columns, ignore=schema.ignore)
    release = synthesize(data, schema=plain, epsilon=1.0, method="mwem", settings={"rounds": 2}, workload="marginals:2")
    assert release.description.rules is None
    assert '"rules"' not in (release.save(tmp_path / "r") / "release.json").read_text()


@dataclass(frozen=True)
class Months:
    """A kind of column that the rules know nothing about: a code is a month of 2024, decoded to one of its days."""

    name: str
    missing: bool = False
    dtype: str = ""
    ordered: bool = True
    labels: tuple[Any, ...] = ()
    output_dtype: str = "date32"
    fine: bool = False
    own: tuple[int, ...] = ()
    size: int = 12

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        first = np.datetime64("2024-01") + codes.astype("timedelta64[M]")
        days = (first + np.timedelta64(1, "M")).astype("datetime64[D]") - first.astype("datetime64[D]")
        drawn = np.floor(rng.random(len(codes)) * days.astype(int)).astype("timedelta64[D]")
        return pa.array(first.astype("datetime64[D]") + drawn)

    def encode(self, array: pa.Array) -> np.ndarray:
        days = array.to_numpy(zero_copy_only=False).astype("datetime64[M]")
        return (days - np.datetime64("2024-01")).astype(int)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": "months"}


def test_other_kinds_of_columns_obey_by_their_values() -> None:
    rules = (
        Rule(always="begin <= finish"),
        Rule(never='begin < "2024-03-10"'),
        Rule(if_='kind == "short"', then='finish < "2024-04-02"'),
    )
    columns = (Months("begin"), Months("finish"), Categorical("kind", ("short", "long")))
    schema = Schema(columns, rules=rules)  # type: ignore[arg-type]
    table, drawn, _ = drawn_rows(Uniform(schema), None, schema, 2000, 0)  # type: ignore[arg-type]
    assert drawn is not None
    assert drawn.rejected > 0.5
    begin, finish, kind = table.codes
    assert begin.min() == 2  # the rest of March
    assert (begin <= finish).all()
    assert set(finish[kind == 0]) <= {2, 3}
    for seed in range(3):
        arrow = table.to_arrow(seed)
        assert set(schema.rules.violations(arrow).values()) == {0}  # type: ignore[attr-defined]
        np.testing.assert_array_equal(columns[1].encode(arrow["finish"].combine_chunks()), finish)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y"])
def test_dates_that_are_written_as_text_have_an_order(pattern: str) -> None:
    """As a CSV file has them: compared as dates, with each other and with ISO 8601, and never as texts."""
    first = Temporal("start", "date", ("2020-01-01", "2021-12-31"), format=pattern, dtype="string")
    last = replace(first, name="end", missing=True, missing_as="open")
    schema = Schema((first, last), rules=(Rule(always="start <= end"), Rule(never='start < "2020-03-01"')))
    days = [dt.date(2020, 12, 31), dt.date(2021, 2, 1), dt.date(2020, 2, 1)]
    starts = [one.strftime(pattern) for one in days]
    ends = [dt.date(2021, 1, 1).strftime(pattern), dt.date(2021, 1, 15).strftime(pattern), "open"]
    table = pa.table({"start": starts, "end": ends})
    assert schema.rules.violations(table) == {"always start <= end": 1, 'never start < "2020-03-01"': 1}
    joined = Temporal("start", "date", ("2020-01-01", "2021-12-31"), bins="year", format=pattern, dtype="string")
    coarse = Schema((joined, replace(joined, name="end")), rules=schema.rules[:1])
    drawn = Table(coarse, (np.zeros(500, int), np.zeros(500, int))).to_arrow(1)
    assert coarse.rules.violations(drawn) == {"always start <= end": 0}
    dates = [
        [dt.datetime.strptime(one, pattern) for one in drawn.column(name).to_pylist()] for name in ("start", "end")
    ]
    assert all(one <= other for one, other in zip(*dates, strict=True))
    assert len(set(dates[0])) > 100
