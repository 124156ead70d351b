"""Workloads: layout of the answer vector, candidates, sensitivities, and their text form."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data import datasets
from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.errors import InputError
from pointillist.queries import kway
from pointillist.queries.base import Sensitivity
from pointillist.queries.candidates import Grouping, Single, Whole
from pointillist.queries.cells import box_of
from pointillist.queries.counting import exact_counts, weighted_answers
from pointillist.queries.intervals import Intervals
from pointillist.queries.kway import all_kway, random_kway
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.queries.texts import FORMS, parse_workload
from pointillist.queries.workload import Workload

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))


def schema_of(domain: Domain) -> Schema:
    """Columns without an order."""
    pairs = zip(domain.names, domain.sizes, strict=True)
    return Schema(tuple(Categorical(name, tuple(map(str, range(size)))) for name, size in pairs))


@st.composite
def workloads(draw: st.DrawFn, least: int = 1) -> Workload:
    """Marginals and products with prefixes."""
    sizes = tuple(draw(st.lists(st.integers(least, 5), min_size=1, max_size=5)))
    domain = Domain(tuple(f"a{i}" for i in range(len(sizes))), sizes)
    every = [m for k in range(1, len(sizes) + 1) for m in itertools.combinations(range(len(sizes)), k)]
    chosen = draw(st.lists(st.tuples(st.sampled_from(every), st.booleans()), min_size=1, max_size=8, unique=True))
    kinds = [
        Marginal.of(domain, m) if plain else Product.of(domain, dict.fromkeys(m, "prefixes")) for m, plain in chosen
    ]
    return Workload(domain, tuple(dict.fromkeys(kinds)))  # prefixes of a single code are its values


@settings(max_examples=100, deadline=None)
@given(workloads(), st.sampled_from(Grouping))
def test_candidates_tile_the_answer_vector(workload: Workload, grouping: Grouping) -> None:
    candidates = grouping.candidates(workload.queries)
    at, member, cell = 0, 0, 0
    for g in range(len(candidates)):
        one, whole = candidates[g], workload.queries[member]
        if grouping is Grouping.QUERY:
            assert one == whole.take([cell])
            assert one.size == 1
        else:
            assert one == whole
        assert candidates.find(one) == g
        assert at == workload.offsets[member] + cell
        at, cell = at + one.size, cell + one.size
        if cell == whole.size:
            member, cell = member + 1, 0
    assert at == workload.size == candidates.size == workload.offsets[-1]
    assert (member, cell) == (len(workload.queries), 0)
    assert candidates.queries == workload.queries
    assert [queries.scope for queries in workload.queries] == list(workload.scopes)


@settings(max_examples=50, deadline=None)
@given(workloads(least=2), st.integers(0, 99))
def test_a_box_names_the_rows_that_a_query_counts(workload: Workload, seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = workload.domain
    schema = Schema(tuple(Categorical(n, tuple(range(s))) for n, s in zip(domain.names, domain.sizes, strict=True)))
    table = Table(schema, tuple(rng.integers(0, s, 20) for s in domain.sizes))
    counts = exact_counts(TableSource(table), workload.queries)
    assert counts.dtype == np.int64
    for n, query in enumerate(map(Single(workload.queries).__getitem__, range(workload.size))):
        box = box_of(query)
        assert box is not None
        hits = np.ones(len(table), bool)
        for attribute, (low, high) in box.items():
            hits &= (low <= table.codes[attribute]) & (table.codes[attribute] < high)
        assert counts[n] == hits.sum()
    weights = rng.random(20)
    weighted = weighted_answers(table.codes, weights, domain, workload.queries)
    for queries, sums in zip(workload.queries, weighted, strict=True):
        assert np.allclose(sums, weights @ queries.holds(table.codes), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(workloads(), st.sampled_from(Grouping), st.integers(0, 99))
def test_largest_entry_and_sum_per_candidate(workload: Workload, grouping: Grouping, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-50, 50, workload.size)
    candidates = grouping.candidates(workload.queries)
    ends = np.cumsum([candidates[g].size for g in range(len(candidates))])
    parts = [values[end - candidates[g].size : end] for g, end in enumerate(ends)]
    assert candidates.largest(values).tolist() == [part.max() for part in parts]
    assert candidates.sums(values).tolist() == [part.sum() for part in parts]


def test_candidates_are_found_in_their_own_grouping_only() -> None:
    queries = all_kway(DOMAIN, 2).queries
    whole, single = Whole(queries), Single(queries)
    assert (len(whole), len(single)) == (6, single.size)
    assert whole.find(queries[1].take([0])) is None
    assert single.find(queries[1]) is None
    assert single.find(queries[1].take([0, 1])) is None
    assert single.find(Marginal.of(DOMAIN, ("a",)).take([0])) is None
    assert whole.find(Marginal.of(DOMAIN, ("a",))) is None


def test_sensitivity_of_a_candidate() -> None:
    queries = all_kway(DOMAIN, 2).queries
    by_marginal, by_query = Whole(queries), Single(queries)
    assert by_marginal.sensitivity(Relation.REPLACE) == Sensitivity(1, 2, 2)
    assert by_marginal.sensitivity(Relation.ADD_REMOVE) == Sensitivity(1, 1, 1)
    assert by_query.sensitivity(Relation.REPLACE) == Sensitivity(1, 1, 1)
    assert by_query.sensitivity(Relation.ADD_REMOVE) == Sensitivity(1, 1, 1)
    assert (len(by_marginal), len(by_query)) == (6, all_kway(DOMAIN, 2).size)
    mixed = Whole((*queries, Product.of(DOMAIN, {"d": "prefixes"})))  # the largest over all candidates
    assert mixed.sensitivity(Relation.ADD_REMOVE) == Sensitivity(1, 5, 5)


def test_sizes_are_stated() -> None:
    workload = all_kway(DOMAIN, 3)
    assert workload.size == 2 * 3 * 4 + 2 * 3 * 5 + 2 * 4 * 5 + 3 * 4 * 5 == 154
    assert workload.describe() == "4 marginals, 154 queries (1.23 kB of answers)"
    other = Workload.of(DOMAIN, [("a",), Product.of(DOMAIN, {"d": "prefixes"})])
    assert other.describe() == "2 groups of queries, 7 queries (56 B of answers)"


def test_random_draws_equal_the_authors() -> None:
    domain = Domain(tuple(f"a{i}" for i in range(12)), tuple(range(2, 14)))
    candidates = [m for m in itertools.combinations(range(12), 3) if domain.cells_of(m) <= 300]
    picks = np.random.RandomState(7).choice(len(candidates), 20, replace=False)
    drawn = random_kway(domain, 3, 20, seed=7, max_cells=300)
    assert drawn.scopes == tuple(candidates[i] for i in picks)
    assert drawn == parse_workload("marginals:3:20:7", schema_of(domain), 300)
    assert random_kway(domain, 3, 20, max_cells=300).scopes != drawn.scopes
    assert random_kway(domain, 3, 1000, max_cells=300).scopes == tuple(candidates)


def test_all_marginals_of_adult(real_data: None) -> None:
    workload = all_kway(datasets.load("adult").domain, 3)
    assert (len(workload.queries), workload.size) == (286, 334_128)
    assert exact_counts(TableSource(datasets.load("adult")), workload.queries).sum() == 286 * len(
        datasets.load("adult")
    )


def test_texts_that_are_understood() -> None:
    schema = schema_of(DOMAIN)
    assert parse_workload("marginals:2", schema) == all_kway(DOMAIN, 2)
    assert parse_workload("marginals:4", schema).scopes == ((0, 1, 2, 3),)
    assert parse_workload("marginals:2:3", schema) == random_kway(DOMAIN, 2, 3, 0)
    assert len(Grouping.QUERY.candidates(parse_workload("marginals:1", schema).queries)) == 14


FORM = "must have the form marginals:K[@COLUMN][:COUNT[:SEED]] with whole numbers"
ANY = f"must have the form {', '.join(FORMS.values())}, or several of them joined by +"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *((text, f"workload {ANY}, got {text!r}; write for example marginals:3.") for text in ("", "marginal:3", "3")),
        *(
            (text, f"workload {FORM}, got {text!r}; write for example marginals:3.")
            for text in (
                "marginals",
                "marginals:",
                "marginals:x",
                "marginals:-1",
                "marginals:1.5",
                "marginals:3:1:0:0",
                "marginals:3::1",
                "marginals: 3",
                "marginals:1,",
                "marginals:2@",
            )
        ),
        (
            "marginals:" + 5000 * "9",
            f"workload {FORM}, got {repr('marginals:' + 5000 * '9')[:300]}...; write for example marginals:3.",
        ),
        ("marginals:0", "workload: K must be in 1 .. 4, the number of attributes, got 0; use a smaller K."),
        ("marginals:9", "workload: K must be in 1 .. 4, the number of attributes, got 9; use a smaller K."),
        (
            "marginals:2:0",
            "workload: COUNT must be at least 1, got 0; give for example 1.",
        ),
        ("marginals:2:1:4294967296", "workload: SEED must be in 0 .. 4,294,967,295, got 4294967296; use 0."),
        (
            "marginals:3:2",
            "workload must have a marginal of at most 10 cells, got none; use a smaller K or coarser bins.",
        ),
    ],
)
def test_texts_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(text, schema_of(DOMAIN), max_cells=10)
    assert str(caught.value) == sentence


def test_workloads_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Domain(tuple(f"a{i}" for i in range(100)), (2,) * 100)
    with pytest.raises(InputError) as caught:
        all_kway(wide, 50)
    assert str(caught.value).startswith(
        "workload: K must give at most 5,000,000 marginals, got 100,891,344,545,564,193,"
    )
    with pytest.raises(InputError, match="must give at most 5,000,000 marginals"):
        random_kway(wide, 50, 3)
    with pytest.raises(InputError, match="workload must have at most 500,000,000 queries, got 1 marginals, 1,267,6"):
        all_kway(wide, 100)
    sentence = (
        "workload must have at most 200,000 marginals or groups of queries, got 1,313,400; "
        "leave it out, which takes what fits, or draw some with marginals:K:COUNT."
    )
    wider = Domain(tuple(f"a{i}" for i in range(200)), (2,) * 200)
    for refused in (lambda: all_kway(wider, 3), lambda: parse_workload("marginals:3", schema_of(wider))):
        with pytest.raises(InputError) as caught:
            refused()
        assert str(caught.value) == sentence
    assert len(parse_workload("marginals:3:7", schema_of(wider), 100).queries) == 7
    monkeypatch.setattr(kway, "MOST_QUERIES", 100)
    with pytest.raises(InputError) as caught:
        all_kway(DOMAIN, 3)
    assert str(caught.value) == (
        "workload must have at most 100 queries, got 4 marginals, 154 queries (1.23 kB of answers); "
        "draw fewer marginals with marginals:K:COUNT."
    )


def test_groupings_by_name() -> None:
    assert Grouping.parse("query") is Grouping.QUERY
    with pytest.raises(InputError, match=r"group must be one of query, marginal, got 'marginals'; did you mean 'mar"):
        Grouping.parse("marginals")


# --- members


@pytest.mark.parametrize("wrong", [(1, 0), (0, 0), (0, 4), (-1, 0)])
def test_scopes_must_be_increasing_positions(wrong: tuple[int, ...]) -> None:
    sizes = [(*DOMAIN.sizes, 2, 5)[i] for i in wrong]  # those that the domain has there, where it has any
    refusal = r"must be increasing positions|are not over the domain"
    with pytest.raises(ValueError, match=refusal):
        Workload(DOMAIN, (Marginal(wrong, tuple(sizes)),))
    with pytest.raises(ValueError, match=refusal):
        Workload(DOMAIN, (Product(wrong, tuple(map(Intervals.prefixes, sizes))),))


@pytest.mark.parametrize("weights", [(1e308, 1e-308), (1.0, 2e6), (5e-324, 1.0)])
def test_weights_that_are_too_far_apart_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="weights must be at most 1,000,000 times as large as the smallest, got"):
        Workload.of(DOMAIN, ["a", "b"], weights)


def test_a_workload_must_not_be_empty() -> None:
    with pytest.raises(InputError, match="workload must have at least one query, got 0; name some attributes"):
        Workload(DOMAIN, ())


def test_queries_twice_or_without_attributes_are_refused() -> None:
    domain = Domain(("a", "b"), (2, 3))
    with pytest.raises(ValueError, match="twice"):
        Workload.of(domain, [(0, 1), (0, 1)])
    with pytest.raises(ValueError, match="twice"):
        Workload.of(domain, [("a", "b"), ("b", "a")])
    with pytest.raises(ValueError, match="twice"):
        Workload.of(domain, [Product.of(domain, {"a": "prefixes"}), Product.of(domain, {0: "prefixes"})])
    with pytest.raises(InputError, match=r"attributes must be different positions below 2, got \[\]"):
        Workload.of(domain, [()])
    with pytest.raises(ValueError, match="must be increasing positions"):
        Workload(domain, (Marginal((), ()),))


def test_queries_of_another_domain_are_refused() -> None:
    other = Domain(("a", "b"), (2, 4))
    for queries in (
        Marginal.of(other, ("b",)),
        Product.of(other, {"b": "prefixes"}),
        Marginal.of(other, ("b",)).take([3]),
    ):
        with pytest.raises(ValueError, match=r"queries over \(1,\) of sizes \(4,\) are not over the domain"):
            Workload(DOMAIN, (queries,))
    with pytest.raises(ValueError, match="are not over the domain"):
        Workload(Domain(("a",), (2,)), (Marginal.of(other, ("a", "b")),))


def test_workloads_by_the_names_of_their_attributes() -> None:
    product = Product.of(DOMAIN, {"a": "values", "d": "prefixes"})
    workload = Workload.of(DOMAIN, [("d", "a"), ["b"], (2, 1), product.take([0, 1]), product.take([3])])
    assert workload.scopes == ((0, 3), (1,), (1, 2), (0, 3), (0, 3))
    assert workload.queries[:3] == tuple(Marginal.of(DOMAIN, names) for names in (("a", "d"), ("b",), ("b", "c")))
    assert workload.queries[3:] == (product.take([0, 1]), product.take([3]))
    for twice in ([product, product.take([3])], [product.take([0, 3]), product.take([3])]):
        with pytest.raises(ValueError, match="twice"):
            Workload.of(DOMAIN, twice)
    assert workload.offsets.tolist() == [0, 10, 13, 25, 27, 28]
    assert Workload.of(DOMAIN, itertools.combinations(DOMAIN.names, 2)) == all_kway(DOMAIN, 2)
    with pytest.raises(InputError, match="attribute must be a column of the schema, got 'e'; known are a, b, c, d"):
        Workload.of(DOMAIN, [("a", "e")])


@settings(max_examples=50, deadline=None)
@given(workloads())
def test_workloads_come_back_from_plain_data(workload: Workload) -> None:
    spec = json.loads(json.dumps(workload.to_dict()))
    assert spec["size"] == workload.size
    assert Workload.from_dict(spec, workload.domain) == workload
