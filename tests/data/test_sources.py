"""Exact counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist.data import sources
from pointillist.data.domain import Attributes
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import BATCH_ROWS, TableSource, count_batches
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
    counts = TableSource(table).count(marginals)
    for marginal, found in zip(marginals, counts, strict=True):
        assert found.dtype == np.int64
        assert np.array_equal(found, naive(table, marginal))


@pytest.mark.parametrize("rows", [BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS + 3])
def test_batches_add_up(rows: int) -> None:
    table = table_of((3, 300, 2), rows, 1)
    marginals = [(0, 1, 2), (1,), (0, 2)]
    keys = np.ravel_multi_index(tuple(c.astype(int) for c in table.codes), table.domain.sizes)
    expected = np.bincount(keys, minlength=table.domain.cells).reshape(table.domain.sizes)
    full, one, two = TableSource(table).count(marginals)
    assert np.array_equal(full, expected.ravel())
    assert np.array_equal(one, expected.sum((0, 2)))
    assert np.array_equal(two, expected.sum(1).ravel())
    assert full.sum() == TableSource(table).rows == rows


def test_small_batches_give_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TableSource(table_of((4, 5, 3, 2), 1000, 2))
    marginals = list(itertools.combinations(range(4), 2))
    once = source.count(marginals)
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)
    assert all(np.array_equal(a, b) for a, b in zip(once, source.count(marginals), strict=True))


def test_order_of_marginals_does_not_matter() -> None:
    table = table_of((4, 5, 3, 2), 500, 3)
    marginals = [m for k in (1, 2, 3) for m in itertools.combinations(range(4), k)]
    counts = dict(zip(marginals, TableSource(table).count(marginals), strict=True))
    shuffled = [marginals[i] for i in np.random.default_rng(0).permutation(len(marginals))]
    for marginal, found in zip(shuffled, TableSource(table).count(shuffled), strict=True):
        assert np.array_equal(found, counts[marginal])


def test_codes_of_small_types_do_not_overflow() -> None:
    """Keys are far above the 255 that the codes' type holds."""
    table = table_of((200, 200, 200), 400, 4)
    assert all(c.dtype == np.uint8 for c in table.codes)
    (counts,) = TableSource(table).count([(0, 1, 2)])
    cells = {tuple(int(c[i]) for c in table.codes) for i in range(len(table))}
    assert {tuple(map(int, np.unravel_index(k, (200, 200, 200)))) for k in np.flatnonzero(counts)} == cells


def test_no_batch_counts_nothing() -> None:
    table = table_of((2, 3), 5, 0)
    (counts,) = count_batches([], table.domain, [(0, 1)])
    assert counts.tolist() == [0] * 6
