"""Sources, exact counts and distinct rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data import sources
from pointillist.data.domain import Attributes
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import BATCH_ROWS, Source, TableSource, count, count_batches, distinct_rows
from pointillist.data.table import Table


def table_of(sizes: tuple[int, ...], rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Categorical(f"a{i}", tuple(range(size))) for i, size in enumerate(sizes)))
    return Table(schema, tuple(rng.integers(0, size, rows) for size in sizes))


def naive(table: Table, marginal: Attributes) -> np.ndarray:
    counts = np.zeros(table.domain.shape(marginal), np.int64)
    for row in zip(*table.codes, strict=True):
        counts[tuple(int(row[i]) for i in marginal)] += 1
    return counts.ravel()


@st.composite
def problems(draw: st.DrawFn) -> tuple[Table, list[Attributes]]:
    sizes = tuple(draw(st.lists(st.integers(2, 6), min_size=1, max_size=5)))
    table = table_of(sizes, draw(st.integers(0, 60)), draw(st.integers(0, 99)))
    every = [m for k in range(1, len(sizes) + 1) for m in itertools.combinations(range(len(sizes)), k)]
    return table, draw(st.lists(st.sampled_from(every), min_size=1, max_size=12))  # in any order, repeats too


@settings(max_examples=150, deadline=None)
@given(problems())
def test_counts_equal_a_naive_count(problem: tuple[Table, list[Attributes]]) -> None:
    table, marginals = problem
    counts = count(TableSource(table), marginals)
    for marginal, found in zip(marginals, counts, strict=True):
        assert found.dtype == np.int64
        assert np.array_equal(found, naive(table, marginal))


@pytest.mark.parametrize("rows", [BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS + 3])
def test_batches_add_up(rows: int) -> None:
    table = table_of((3, 300, 2), rows, 1)
    marginals = [(0, 1, 2), (1,), (0, 2)]
    keys = np.ravel_multi_index(tuple(c.astype(int) for c in table.codes), table.domain.sizes)
    expected = np.bincount(keys, minlength=table.domain.cells).reshape(table.domain.sizes)
    full, one, two = count(TableSource(table), marginals)
    assert np.array_equal(full, expected.ravel())
    assert np.array_equal(one, expected.sum((0, 2)))
    assert np.array_equal(two, expected.sum(1).ravel())
    assert full.sum() == TableSource(table).rows == rows


def test_small_batches_give_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TableSource(table_of((4, 5, 3, 2), 1000, 2))
    marginals = list(itertools.combinations(range(4), 2))
    once = count(source, marginals)
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)
    assert all(np.array_equal(a, b) for a, b in zip(once, count(source, marginals), strict=True))


def test_order_of_marginals_does_not_matter() -> None:
    table = table_of((4, 5, 3, 2), 500, 3)
    marginals = [m for k in (1, 2, 3) for m in itertools.combinations(range(4), k)]
    counts = dict(zip(marginals, count(TableSource(table), marginals), strict=True))
    shuffled = [marginals[i] for i in np.random.default_rng(0).permutation(len(marginals))]
    for marginal, found in zip(shuffled, count(TableSource(table), shuffled), strict=True):
        assert np.array_equal(found, counts[marginal])


def test_codes_of_small_types_do_not_overflow() -> None:
    """Keys are far above the 255 that the codes' type holds."""
    table = table_of((200, 200, 200), 400, 4)
    assert all(c.dtype == np.uint8 for c in table.codes)
    (counts,) = count(TableSource(table), [(0, 1, 2)])
    cells = {tuple(int(c[i]) for c in table.codes) for i in range(len(table))}
    assert {tuple(map(int, np.unravel_index(k, (200, 200, 200)))) for k in np.flatnonzero(counts)} == cells


def test_no_batch_counts_nothing() -> None:
    table = table_of((2, 3), 5, 0)
    (counts,) = count_batches([], table.domain, [(0, 1)])
    assert counts.tolist() == [0] * 6


def test_a_table_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of((2, 300), 10, 5)
    source = TableSource(table)
    assert isinstance(source, Source)
    assert not isinstance(table, Source)
    assert (source.schema, source.rows) == (table.schema, 10)
    monkeypatch.setattr(sources, "BATCH_ROWS", 4)
    batches = list(source.batches())
    assert [[len(codes) for codes in batch] for batch in batches] == [[4, 4], [4, 4], [2, 2]]
    for n, codes in enumerate(table.codes):
        assert np.array_equal(np.concatenate([batch[n] for batch in batches]), codes)
    assert len(list(source.batches())) == 3  # again from the start


class Stream:
    """Rows that are made batch by batch."""

    schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2))))
    rows = 6

    def batches(self) -> Iterator[list[np.ndarray]]:
        yield [np.array([0, 1]), np.array([2, 0])]
        yield [np.array([], int), np.array([], int)]
        yield [np.array([0, 0, 1, 1]), np.array([2, 1, 0, 0])]


def test_a_source_needs_no_table() -> None:
    stream = Stream()
    assert isinstance(stream, Source)
    both, first = count(stream, [(0, 1), (0,)])
    assert both.tolist() == [0, 1, 2, 3, 0, 0]
    assert first.tolist() == [3, 3]


@settings(max_examples=100, deadline=None)
@given(problems())
def test_distinct_rows_by_brute_force(problem: tuple[Table, list[Attributes]]) -> None:
    table, _ = problem
    distinct, inverse, counts = distinct_rows(table.codes)
    rows = list(zip(*(codes.tolist() for codes in table.codes), strict=True))
    found = list(zip(*(codes.tolist() for codes in distinct), strict=True))
    assert found == sorted(set(rows))  # codes of one byte each sort as numbers
    assert [found[i] for i in inverse] == rows
    assert counts.tolist() == [rows.count(row) for row in found]
    assert counts.dtype == np.int64
    assert [codes.dtype for codes in distinct] == [codes.dtype for codes in table.codes]


def test_distinct_rows_of_different_types_keep_their_order() -> None:
    """The order is that of the bytes of the common type, low byte first on most machines: results depend on it."""
    narrow, wide = np.array([1, 0, 1, 0, 1], np.uint8), np.array([256, 1, 1, 255, 256], np.uint16)
    distinct, inverse, counts = distinct_rows([narrow, wide])
    rows = np.stack([narrow, wide], axis=1)
    expected = sorted({row.tobytes() for row in rows})
    assert [row.tobytes() for row in np.stack(distinct, axis=1)] == expected
    assert [expected[i] for i in inverse] == [row.tobytes() for row in rows]
    assert sorted(counts.tolist()) == [1, 1, 1, 2]
    assert [codes.dtype for codes in distinct] == [np.uint8, np.uint16]
