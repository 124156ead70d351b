"""The named datasets, and the figures about them in docs/datasets.md."""

from __future__ import annotations

import functools
import gzip
import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pointillist.data import acs
from pointillist.data.datasets import NAMES, describe, is_dataset, load
from pointillist.data.demo import demo_frame, demo_schema, demo_table
from pointillist.data.domain import Attributes, Domain
from pointillist.data.schema import Categorical, Numeric, Schema
from pointillist.data.sources import TableSource, count
from pointillist.data.table import Table, read_file
from pointillist.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[2]
BESIDE = REPOSITORY.parent / "shared" / "data"
DOCS = REPOSITORY / "docs" / "datasets.md"
STATES = {"acs-pa": "42", "acs-oh": "39", "acs-ny": "36"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The folder of the real files; tests that need it are skipped where there is none."""
    path = Path(os.environ.get("POINTILLIST_DATA") or BESIDE)
    if not path.is_dir():
        pytest.skip("needs the data files: set POINTILLIST_DATA to their folder (docs/datasets.md)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTILLIST_DATA", str(path))
        yield path


@pytest.fixture(scope="module")
def get(folder: Path) -> Callable[[str], Table]:
    """Each dataset is read once."""
    return functools.cache(load)


def three_way(domain: Domain) -> list[Attributes]:
    return list(itertools.combinations(range(len(domain)), 3))


def three_way_queries(domain: Domain) -> int:
    """The third elementary symmetric polynomial of the sizes, by Newton's identities."""
    p1, p2, p3 = (sum(size**k for size in domain.sizes) for k in (1, 2, 3))
    return (p1**3 - 3 * p1 * p2 + 2 * p3) // 6


def drawn_marginals(table: Table) -> tuple[list[Attributes], int]:
    """The 64 marginals that the paper draws for ADULT* and LOANS, and from how many."""
    candidates = [m for m in three_way(table.domain) if table.domain.cells_of(m) <= len(table)]
    picks = np.random.RandomState(0).choice(len(candidates), 64, replace=False)
    return [candidates[i] for i in picks], len(candidates)


def answers(table: Table, marginals: list[Attributes]) -> np.ndarray:
    return np.concatenate(count(TableSource(table), marginals)) / len(table)


# --- names and errors


def test_every_name_is_described() -> None:
    assert [name for name, _ in describe()] == list(NAMES)
    assert all(line and "\n" not in line for _, line in describe())
    assert all(is_dataset(name) for name in NAMES)
    assert not is_dataset("people.csv")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("aduld", "dataset must be the name of a dataset, got 'aduld'; did you mean 'adult'."),
        ("acs-pb", "dataset must be the name of a dataset, got 'acs-pb'; did you mean 'acs-pa'."),
        ("zzz", f"dataset must be the name of a dataset, got 'zzz'; known are {', '.join(NAMES)}."),
    ],
)
def test_unknown_name(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load(name)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", [name for name in NAMES if name != "demo"])
def test_no_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    with pytest.raises(
        InputError, match=r"^POINTILLIST_DATA must name the folder that holds \w+/[\w.-]+, got no value; "
    ):
        load(name)


def test_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTILLIST_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        load("acs-ca")
    assert str(caught.value) == (
        f"POINTILLIST_DATA must name a folder that holds acs2024/p_06_12cols.parquet, got {str(tmp_path)!r}; "
        "set this environment variable to another folder or put the file there."
    )


def test_demo_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    assert len(load("demo")) == 20_000


def fake_folder(path: Path, rows: int = 3, sizes: str = '{"a": 2, "b": 3}', loans: bytes = b"not a zip") -> None:
    (path / "adult").mkdir()
    (path / "loans").mkdir()
    names = ["sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10"]
    with gzip.open(path / "adult" / "adult.csv.gz", "wt") as file:
        file.write("\n".join([",".join(names), *(["0,0,0,0,0,0,0"] * rows)]))
    domain = "{" + ", ".join(f'"{name}": 2' for name in names) + "}"
    (path / "adult" / "adult-domain.json").write_text(domain)
    (path / "loans" / "loans-domain.json").write_text(sizes)
    (path / "loans" / "loans.zip").write_bytes(loans)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("adult-reduced", {}, "adult/adult.csv.gz must have 48,813 rows, got 3; "),
        (
            "adult",
            {},
            "must have a size for every column (these are absent), got ['relationship', 'workclass'",
        ),
        ("loans", {}, "must be a zip file with a table loans.csv in it"),
        ("loans", {"sizes": "[1, 2"}, "must be a JSON object of column names and sizes"),
        ("loans", {"sizes": "[1, 2]"}, "must be a JSON object of column names and sizes"),
    ],
)
def test_wrong_files(name: str, options: dict, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_folder(tmp_path, **options)
    monkeypatch.setenv("POINTILLIST_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        load(name)
    assert words in str(caught.value)


# --- ADULT, ADULT*, LOANS


def test_adult_is_the_papers(get: Callable[[str], Table]) -> None:
    """Rows, queries, and the paper's numbers of large answers: 487 above 0.1 and 181 above 0.2."""
    table = get("adult")
    assert len(table) == 43_944
    assert table.domain.sizes == (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)
    truth = answers(table, three_way(table.domain))
    assert len(truth) == three_way_queries(table.domain) == 334_128
    assert ((truth > 0.1).sum(), (truth > 0.2).sum()) == (487, 181)


def test_adult_reduced(get: Callable[[str], Table]) -> None:
    table = get("adult-reduced")
    names = "sex income>50K race marital-status occupation education-num age_10"
    assert table.domain.names == tuple(names.split())
    assert len(table) == 43_944
    assert len(three_way(table.domain)) == 35
    assert three_way_queries(table.domain) == 14_955
    whole = get("adult").project(table.domain.names)
    assert all(np.array_equal(a, b) for a, b in zip(table.codes, whole.codes, strict=True))


def test_adult_public_is_the_rest(get: Callable[[str], Table], folder: Path) -> None:
    private, public = get("adult"), get("adult-public")
    assert public.schema == private.schema
    assert len(public) + len(private) == 48_813
    file = read_file(folder / "adult" / "adult.csv.gz")
    for name in private.domain.names:
        total = np.bincount(np.array(file.column(name).to_pylist(), int), minlength=200)
        i = private.domain.index(name)
        parts = np.bincount(private.codes[i], minlength=200) + np.bincount(public.codes[i], minlength=200)
        assert np.array_equal(parts, total)


def test_adult_public_reduced(get: Callable[[str], Table]) -> None:
    table = get("adult-public-reduced")
    names = "sex race relationship marital-status occupation education-num age_10"
    assert table.domain.names == tuple(names.split())
    assert len(table) == 4_869


def test_adult_keeps_the_codes_of_the_file(get: Callable[[str], Table]) -> None:
    table = get("adult")
    for column, codes in zip(table.schema.columns, table.codes, strict=True):
        decoded = column.decode(codes[:500], np.random.default_rng(0))
        assert decoded.type == pa.int64()
        assert decoded.to_pylist() == codes[:500].tolist()
    ordered = [column.name for column in table.schema.columns if column.ordered]
    assert ordered == ["capital-loss", "hours-per-week", "age_10"]


def test_adult_star_is_the_papers(get: Callable[[str], Table]) -> None:
    """458,996 queries in 64 drawn marginals, 71 answers above 0.1 and 28 above 0.2, as the paper reports."""
    table = get("adult-star")
    assert len(table) == 48_842
    assert table.domain.sizes == (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    marginals, candidates = drawn_marginals(table)
    truth = answers(table, marginals)
    assert (candidates, len(truth)) == (278, 458_996)
    assert ((truth > 0.1).sum(), (truth > 0.2).sum()) == (71, 28)


def test_loans(get: Callable[[str], Table]) -> None:
    table = get("loans")
    assert len(table) == 42_535
    assert len(table.domain) == 48
    assert table.domain.names[:3] == ("loan_amnt", "funded_amnt", "funded_amnt_inv")
    marginals, candidates = drawn_marginals(table)
    assert (candidates, sum(table.domain.cells_of(m) for m in marginals)) == (5_721, 1_200_008)
    subgrade, grade = (table.codes[table.domain.index(name)].astype(int) for name in ("sub_grade", "grade"))
    assert np.array_equal(subgrade // 5, grade)


@pytest.mark.parametrize(("name", "rows", "attributes"), [("br2000", 38_000, 14), ("uk2011", 50_000, 16)])
def test_published_tables_keep_the_codes_of_their_files(
    get: Callable[[str], Table], name: str, rows: int, attributes: int
) -> None:
    table = get(name)
    assert (len(table), len(table.domain)) == (rows, attributes)
    for column, codes in zip(table.schema.columns, table.codes, strict=True):
        assert not column.ordered
        decoded = column.decode(codes[:200], np.random.default_rng(0))
        assert decoded.to_pylist() == codes[:200].tolist()


# --- ACS-2024


def test_acs_code_lists_are_sound() -> None:
    for name, attribute in acs.ATTRIBUTES.items():
        assert attribute.column.name == name
        assert attribute.column.size <= 25
        assert bool(attribute.codes) == isinstance(attribute.column, Categorical)
        spans = [s for codes in attribute.codes for s in (codes if isinstance(codes, list) else [codes])]
        pairs = sorted(s if isinstance(s, tuple) else (s, s) for s in spans)
        assert all(first <= last for first, last in pairs)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(pairs)), f"{name}: codes overlap"


def test_acs_schema_survives_toml(tmp_path: Path) -> None:
    acs.acs_schema().save(tmp_path / "acs.toml")
    assert Schema.load(tmp_path / "acs.toml") == acs.acs_schema()


def test_acs_states_have_one_domain(get: Callable[[str], Table]) -> None:
    assert get("acs-pa").schema == get("acs-oh").schema == get("acs-ny").schema == acs.acs_schema()
    assert get("acs-ca").schema == get("acs-pa-shared").schema == get("acs-ca-shared").schema
    assert [len(get(n)) for n in ("acs-pa", "acs-oh", "acs-ny", "acs-ca")] == [
        134_347,
        122_052,
        210_150,
        393_725,
    ]
    assert (len(get("acs-pa").domain), len(get("acs-ca").domain)) == (51, 25)
    assert {"SERIALNO", "SPORDER", "STATE", "PUMA", "PWGTP", "WGTP", "VACS"}.isdisjoint(acs.NAMES)


def test_acs_shared_is_a_projection(get: Callable[[str], Table]) -> None:
    shared, whole = get("acs-pa-shared"), get("acs-pa").project(acs.SHARED)
    assert shared.schema == whole.schema
    assert all(np.array_equal(a, b) for a, b in zip(shared.codes, whole.codes, strict=True))
    assert list(acs.SHARED) == [name for name in acs.NAMES if name in acs.SHARED]


def test_acs_join_is_right(get: Callable[[str], Table], folder: Path) -> None:
    """Against a join by a dictionary, row by row."""
    person = pq.read_table(folder / "acs2024" / "p_42.parquet").slice(60_000, 300).to_pylist()
    homes = {home["SERIALNO"]: home for home in pq.read_table(folder / "acs2024" / "h_42.parquet").to_pylist()}
    decoded = get("acs-pa").take(np.arange(60_000, 60_300)).to_arrow().to_pylist()
    tenure = {1: "owned with a mortgage", 2: "owned free and clear", 3: "rented", 4: "occupied without rent"}
    income = acs.ATTRIBUTES["HINCP"].column
    assert isinstance(income, Numeric)
    for raw, row in zip(person, decoded, strict=True):
        home = homes[raw["SERIALNO"]]
        assert row["SEX"] == {1: "male", 2: "female"}[raw["SEX"]]
        assert row["TEN"] == tenure.get(home["TEN"])
        assert (row["HINCP"] is None) == (home["HINCP"] is None)
        if home["HINCP"] is not None:
            bins = np.searchsorted(income.edges, [row["HINCP"], min(home["HINCP"], 999_999)], side="right")
            assert bins[0] == bins[1]


@pytest.mark.parametrize("state", ["42", "39", "36", "06"])
def test_acs_clips_only_the_ends_of_money(state: str, folder: Path) -> None:
    clipped = {n for n, a in acs.ATTRIBUTES.items() if isinstance(a.column, Numeric) and a.column.clip}
    assert clipped == {"PINCP", "WAGP", "VALP", "RNTP", "HINCP", "FINCP"}
    files = [f"p_{state}{'_12cols' if state == '06' else ''}.parquet", f"h_{state}.parquet"]
    for file in files:
        data = pq.read_table(folder / "acs2024" / file)
        for name in clipped & set(data.column_names):
            column = acs.ATTRIBUTES[name].column
            assert isinstance(column, Numeric)
            values = data.column(name).drop_null().to_numpy()
            assert np.mean(values > column.edges[-1]) < 0.015, name
            assert np.mean(values < column.edges[0]) == 0, name


def test_acs_values_are_used(get: Callable[[str], Table]) -> None:
    """Every attribute has weight on several values; three states together leave few listed values unused."""
    unused = []
    for i, column in enumerate(acs.acs_schema().columns):
        counts = sum(np.bincount(get(name).codes[i], minlength=column.size) for name in STATES)
        assert counts.max() < 0.999 * counts.sum(), column.name
        unused += [(column.name, code) for code in np.flatnonzero(counts == 0)]
    assert unused == []


def test_acs_answers_make_sense(get: Callable[[str], Table]) -> None:
    """What the questionnaire implies holds exactly after binning."""
    table = get("acs-pa")
    rows = {name: table.codes[table.domain.index(name)].astype(int) for name in table.domain.names}
    last = {name: table.domain.sizes[table.domain.index(name)] - 1 for name in table.domain.names}
    missing = {name: rows[name] == last[name] for name, a in acs.ATTRIBUTES.items() if a.column.missing}
    ages = acs.ATTRIBUTES["AGEP"].column
    assert isinstance(ages, Numeric)
    oldest = np.array(ages.edges[1:])[rows["AGEP"]]
    for name, begin in {"SCHL": 3, "LANX": 5, "DREM": 5, "PINCP": 15, "WAGP": 15, "MIL": 17}.items():
        assert np.array_equal(missing[name], oldest <= begin), name
    assert np.array_equal(rows["NATIVITY"] == 1, rows["CIT"] >= 3)
    assert np.array_equal(missing["ENG"], rows["LANX"] != 0)
    assert np.array_equal(missing["TEN"], rows["TYPEHUGQ"] > 0)
    assert np.all(rows["NP"][rows["MULTG"] == 1] >= 2)
    assert np.all(rows["HICOV"][(rows["PRIVCOV"] == 0) | (rows["PUBCOV"] == 0)] == 0)


def test_acs_refuses_strange_codes() -> None:
    cells = pa.array([1, 2, 7])
    with pytest.raises(InputError, match=r"^column 'SEX' must only hold codes of the code book, got 7; "):
        acs.ATTRIBUTES["SEX"].encode(cells)
    with pytest.raises(InputError, match="got an empty cell"):
        acs.ATTRIBUTES["SEX"].encode(pa.array([1, None]))
    with pytest.raises(InputError, match="got -3"):
        acs.ATTRIBUTES["MIGSP"].encode(pa.array([42, None, -3]))
    assert acs.ATTRIBUTES["MIGSP"].encode(pa.array([42, None, 39])).tolist() == [1, 16, 2]


def test_acs_refuses_files_that_do_not_fit() -> None:
    person = pa.table({"SERIALNO": ["a", "b"], "SEX": [1, 2]})
    with pytest.raises(InputError, match=r"must have every column of the schema \(these are absent\), got \['NP'\]"):
        acs.acs_table(person, pa.table({"SERIALNO": ["a", "b"]}), ("SEX", "NP"))
    with pytest.raises(InputError, match="must have a household for every person, got 1 without one"):
        acs.acs_table(person, pa.table({"SERIALNO": ["a"], "NP": [1]}), ("SEX", "NP"))
    table = acs.acs_table(person, pa.table({"SERIALNO": ["b", "a"], "NP": [2, 9]}), ("SEX", "NP"))
    assert table.to_arrow().to_pylist() == [{"SEX": "male", "NP": "8 or more"}, {"SEX": "female", "NP": "2"}]


# --- the demo


def mutual_information(table: Table, one: str, two: str) -> float:
    a, b = table.domain.index(one), table.domain.index(two)
    [joint] = count(TableSource(table), [(a, b)])
    p = joint.reshape(table.domain.shape((a, b))) / len(table)
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    inside = p > 0
    return float(np.sum(p[inside] * np.log(p[inside] / independent[inside])))


def test_demo_is_always_the_same() -> None:
    table = demo_table()
    digest = hashlib.sha256(b"".join(codes.tobytes() for codes in table.codes)).hexdigest()
    assert digest == "97c7602acb928c711dfa546bc4e13f4d3a1bfd763dd852ebba2fe97e0f284926"
    assert demo_frame().equals(demo_frame())


def test_demo_shape() -> None:
    table = load("demo")
    assert (len(table), len(table.domain)) == (20_000, 10)
    assert 300_000 <= table.domain.cells <= 1_500_000
    assert table.schema.reviewed
    kinds = [type(column).__name__ for column in table.schema.columns]
    assert (kinds.count("Categorical"), kinds.count("Numeric")) == (8, 2)
    assert [column.name for column in table.schema.columns if column.missing] == ["income"]
    for column, codes in zip(table.schema.columns, table.codes, strict=True):
        assert np.bincount(codes, minlength=column.size).min() > 300, column.name


def test_demo_reads_like_a_file(tmp_path: Path) -> None:
    frame, schema = demo_frame(), demo_schema()
    from pyarrow import csv

    csv.write_csv(frame, tmp_path / "town.csv")
    schema.save(tmp_path / "town.toml")
    table = Table.read(tmp_path / "town.csv", Schema.load(tmp_path / "town.toml"))
    assert all(np.array_equal(a, b) for a, b in zip(table.codes, demo_table().codes, strict=True))
    assert 0.04 < frame.column("income").null_count / len(frame) < 0.10


@pytest.mark.parametrize(
    ("one", "two", "low", "high"),
    [
        ("occupation", "commute", 0.5, 1.0),
        ("occupation", "income", 0.25, 0.5),
        ("age", "occupation", 0.2, 0.4),
        ("district", "commute", 0.15, 0.3),
        ("education", "occupation", 0.1, 0.3),
        ("district", "tenure", 0.05, 0.2),
        ("sex", "district", 0.0, 0.001),
        ("sex", "smoker", 0.0, 0.001),
    ],
)
def test_demo_dependence(one: str, two: str, low: float, high: float) -> None:
    assert low <= mutual_information(demo_table(), one, two) < high


def test_demo_rules() -> None:
    rows = demo_frame().to_pylist()
    assert all((row["commute"] == "none") == (row["occupation"] == "none") for row in rows)
    assert {row["district"] for row in rows if row["commute"] == "ferry"} == {"Gull Island"}


# --- the figures of the documentation


def size_row(name: str, table: Table) -> str:
    domain = table.domain
    cells = f"{domain.cells:,}" if domain.cells < 10**7 else f"{domain.cells:.1e}".replace("e+", "e")
    return (
        f"| `{name}` | {len(table):,} | {len(domain)} | {max(domain.sizes):,} | {cells} "
        f"| {math.comb(len(domain), 3):,} | {three_way_queries(domain):,} |"
    )


def acs_row(attribute: acs.Attribute) -> str:
    column = attribute.column
    if isinstance(column, Numeric):
        how = "bins at " + ", ".join(f"{edge:,}" if abs(edge) >= 10_000 else str(edge) for edge in column.edges)
    else:
        how = "as listed" if all(isinstance(code, int) for code in attribute.codes) else "grouped"
    shared = "yes" if column.name in acs.SHARED else ""
    empty = "yes" if column.missing else ""
    return f"| `{column.name}` | {attribute.meaning} | {column.size} | {empty} | {shared} | {how} |"


def demo_row(column: Categorical | Numeric) -> str:
    if isinstance(column, Numeric):
        text = "bins at " + ", ".join(f"{edge:g}" for edge in column.edges) + (", not given" if column.missing else "")
    else:
        text = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in column.values)
    return f"| `{column.name}` | {column.size} | {text} |"


def docs_rows(heading: str) -> list[str]:
    """The body of the first table under a heading."""
    section = DOCS.read_text(encoding="utf-8").split(f"\n{heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return lines[2:]


def test_docs_sizes(get: Callable[[str], Table]) -> None:
    assert docs_rows("## Sizes") == [size_row(name, get(name)) for name in NAMES]


def test_docs_acs_columns() -> None:
    assert docs_rows("## ACS-2024") == [acs_row(attribute) for attribute in acs.ATTRIBUTES.values()]


def test_docs_demo_columns() -> None:
    assert docs_rows("## The demo") == [demo_row(column) for column in demo_schema().columns]


def test_docs_prose_figures(get: Callable[[str], Table]) -> None:
    text = " ".join(DOCS.read_text(encoding="utf-8").split())
    for name in ("adult-star", "loans"):
        marginals, candidates = drawn_marginals(get(name))
        total = sum(get(name).domain.cells_of(m) for m in marginals)
        assert f"{candidates:,} candidates, {total:,} queries" in text
    assert "43,944 private rows and 4,869 public ones" in text
