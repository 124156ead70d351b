"""Workloads: layout of the answer vector, groups, sensitivities, and their text form."""

from __future__ import annotations

import itertools

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
from pointillist.queries import marginals
from pointillist.queries.counting import exact_counts
from pointillist.queries.marginals import all_kway, parse_workload, random_kway
from pointillist.queries.workload import Grouping, Workload

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    domain = Domain(tuple(f"a{i}" for i in range(len(sizes))), sizes)
    every = [m for k in range(1, len(sizes) + 1) for m in itertools.combinations(range(len(sizes)), k)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=8, unique=True))
    return Workload(domain, tuple(chosen), draw(st.sampled_from(Grouping)))


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_groups_tile_the_answer_vector(workload: Workload) -> None:
    at = 0
    for g in range(workload.groups):
        group = workload.group(g)
        assert group.flat.start == at
        at = group.flat.stop
        offset = int(workload.offsets[group.marginal])
        assert (group.flat.start - offset, group.flat.stop - offset) == (group.cells.start, group.cells.stop)
        size = workload.domain.cells_of(workload.marginals[group.marginal])
        assert group.cells.stop <= size
        assert group.cells.stop - group.cells.start == (1 if workload.grouping is Grouping.QUERY else size)
    assert at == workload.queries == workload.offsets[-1]


@settings(max_examples=50, deadline=None)
@given(workloads(), st.integers(0, 99))
def test_values_name_the_rows_that_a_cell_counts(workload: Workload, seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(workload.domain.names, tuple(max(s, 2) for s in workload.domain.sizes))
    workload = Workload(domain, workload.marginals, Grouping.QUERY)
    schema = Schema(tuple(Categorical(n, tuple(range(s))) for n, s in zip(domain.names, domain.sizes, strict=True)))
    table = Table(schema, tuple(rng.integers(0, s, 20) for s in domain.sizes))
    counts = exact_counts(TableSource(table), workload)
    assert counts.dtype == np.int64
    for query in range(workload.queries):
        group = workload.group(query)
        hits = np.ones(len(table), bool)
        for attribute, value in zip(
            workload.marginals[group.marginal],
            workload.values(group.marginal, group.cells.start),
            strict=True,
        ):
            hits &= table.codes[attribute] == value
        assert counts[query] == hits.sum()


@settings(max_examples=50, deadline=None)
@given(workloads(), st.integers(0, 99))
def test_largest_entry_per_group(workload: Workload, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-50, 50, workload.queries)
    expected = [values[workload.group(g).flat].max() for g in range(workload.groups)]
    assert workload.max_per_group(values).tolist() == expected


def test_sensitivity_of_a_group() -> None:
    by_marginal = all_kway(DOMAIN, 2)
    by_query = by_marginal.regroup(Grouping.QUERY)
    assert by_marginal.l2_sensitivity_squared(Relation.REPLACE) == 2
    assert by_marginal.l2_sensitivity_squared(Relation.ADD_REMOVE) == 1
    assert by_query.l2_sensitivity_squared(Relation.REPLACE) == 1
    assert by_query.l2_sensitivity_squared(Relation.ADD_REMOVE) == 1
    assert (by_marginal.groups, by_query.groups) == (6, by_query.queries)


def test_sizes_are_stated() -> None:
    workload = all_kway(DOMAIN, 3)
    assert workload.queries == 2 * 3 * 4 + 2 * 3 * 5 + 2 * 4 * 5 + 3 * 4 * 5 == 154
    assert workload.describe() == "4 marginals, 154 queries (1.23 kB an answer vector)"


def test_random_draws_equal_the_authors() -> None:
    domain = Domain(tuple(f"a{i}" for i in range(12)), tuple(range(2, 14)))
    candidates = [m for m in itertools.combinations(range(12), 3) if domain.cells_of(m) <= 300]
    picks = np.random.RandomState(7).choice(len(candidates), 20, replace=False)
    drawn = random_kway(domain, 3, 20, seed=7, max_cells=300)
    assert drawn.marginals == tuple(candidates[i] for i in picks)
    assert drawn == parse_workload("marginals:3:20:7", domain, 300)
    assert random_kway(domain, 3, 20, max_cells=300).marginals != drawn.marginals
    assert random_kway(domain, 3, 1000, max_cells=300).marginals == tuple(candidates)


def test_all_marginals_of_adult(real_data: None) -> None:
    workload = all_kway(datasets.load("adult").domain, 3)
    assert (len(workload.marginals), workload.queries) == (286, 334_128)
    assert exact_counts(TableSource(datasets.load("adult")), workload).sum() == 286 * len(datasets.load("adult"))


def test_texts_that_are_understood() -> None:
    assert parse_workload("marginals:2", DOMAIN) == all_kway(DOMAIN, 2)
    assert parse_workload("marginals:4", DOMAIN).marginals == ((0, 1, 2, 3),)
    assert parse_workload("marginals:2:3", DOMAIN) == random_kway(DOMAIN, 2, 3, 0)
    assert parse_workload("marginals:1", DOMAIN, grouping=Grouping.QUERY).groups == 14


FORM = "must have the form marginals:K[:COUNT[:SEED]] with whole numbers"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *(
            (text, f"workload {FORM}, got {text!r}; write for example marginals:3.")
            for text in (
                "",
                "marginals",
                "marginals:",
                "marginals:x",
                "marginals:-1",
                "marginals:1.5",
                "marginal:3",
                "marginals:3:1:0:0",
                "marginals:3::1",
                "marginals: 3",
                "3",
                "marginals:" + 5000 * "9",
            )
        ),
        ("marginals:0", "workload: K must be in 1 .. 4, the number of attributes, got 0; use a smaller K."),
        ("marginals:9", "workload: K must be in 1 .. 4, the number of attributes, got 9; use a smaller K."),
        (
            "marginals:2:0",
            "workload: COUNT must be at least 1, got 0; write marginals:K[:COUNT[:SEED]].",
        ),
        ("marginals:2:1:4294967296", "workload: SEED must be in 0 .. 2^32 - 1, got 4294967296; use 0."),
        (
            "marginals:3:2",
            "workload must have a marginal of at most 10 cells, got none; use a smaller K or coarser bins.",
        ),
    ],
)
def test_texts_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(text, DOMAIN, max_cells=10)
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
    monkeypatch.setattr(marginals, "MOST_QUERIES", 100)
    with pytest.raises(InputError) as caught:
        all_kway(DOMAIN, 3)
    assert str(caught.value) == (
        "workload must have at most 100 queries, got 4 marginals, 154 queries (1.23 kB an answer vector); "
        "draw fewer marginals with marginals:K:COUNT."
    )


def test_groupings_by_name() -> None:
    assert Grouping.parse("query") is Grouping.QUERY
    with pytest.raises(InputError, match=r"group must be one of query, marginal, got 'marginals'; did you mean 'mar"):
        Grouping.parse("marginals")


def test_marginals_must_be_increasing_positions() -> None:
    for wrong in ((1, 0), (0, 0), (0, 4), (-1, 0)):
        with pytest.raises(ValueError, match="is not an increasing tuple of attribute positions below 4"):
            Workload(DOMAIN, (wrong,))
    with pytest.raises(InputError, match="workload must have at least one marginal"):
        Workload(DOMAIN, ())


def test_a_marginal_twice_or_without_attributes_is_refused() -> None:
    domain = Domain(("a", "b"), (2, 3))
    with pytest.raises(ValueError, match="twice"):
        Workload(domain, ((0, 1), (0, 1)))
    with pytest.raises(ValueError, match="not an increasing tuple"):
        Workload(domain, ((),))
