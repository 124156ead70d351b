"""The counting kernel: exact for any marginals, however they are put together, and parts that add up."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.data import kernel
from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import count_cells, in_passes, joints_of, partial_counts, split_counts


def domain_of(sizes: Any) -> Domain:
    return Domain(tuple(f"x{place}" for place in range(len(sizes))), tuple(sizes))


def rows_of(domain: Domain, rows: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, rows).astype(np.min_scalar_type(size - 1)) for size in domain.sizes]


def one_by_one(columns: list[np.ndarray], domain: Domain, marginal: Attributes) -> np.ndarray:
    key = np.ravel_multi_index([columns[a].astype(np.intp) for a in marginal], domain.shape(marginal))
    return np.bincount(key, minlength=domain.cells_of(marginal))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Domain, list[Attributes], int]:
    sizes = draw(st.lists(st.integers(2, 9), min_size=1, max_size=7))
    orders = st.permutations(range(len(sizes))).flatmap(
        lambda order: st.integers(1, len(order)).map(lambda k: order[:k])
    )
    marginals = draw(st.lists(orders.map(tuple), min_size=1, max_size=25))
    return domain_of(sizes), marginals, draw(st.sampled_from([4, 64, 1024]))


@given(problems())
def test_joints_cover_every_marginal_once(problem: tuple[Domain, list[Attributes], int]) -> None:
    domain, marginals, room = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "FEW_ROWS", 1)
        joints = joints_of(domain, marginals, room)
    members = sorted(member for joint in joints for member in joint.members)
    assert members == list(range(len(marginals)))
    for joint in joints:
        assert all(set(marginals[member]) <= set(joint.attributes) for member in joint.members)
        cells = domain.cells_of(joint.attributes)
        assert cells <= max(room, *(domain.cells_of(marginals[member]) for member in joint.members))


@given(problems(), st.sampled_from([1, 500]))
def test_counts_equal_those_of_each_marginal(problem: tuple[Domain, list[Attributes], int], threaded: int) -> None:
    domain, marginals, room = problem
    columns = rows_of(domain, 1500)
    batches = [[codes[start : start + 600] for codes in columns] for start in (0, 600, 1200)]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FEW_ROWS", 1), ("THREADED_ROWS", threaded), ("JOINT_CELLS", room)):
            patch.setattr(kernel, name, value)
        counts = count_cells(batches, domain, marginals)
    for marginal, found in zip(marginals, counts, strict=True):
        assert found.dtype == np.int64
        assert np.array_equal(found, one_by_one(columns, domain, marginal))


def test_many_columns_are_put_together() -> None:
    domain = domain_of((2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10))
    triples = list(combinations(range(len(domain)), 3))
    joints = joints_of(domain, triples, 1 << 16)
    assert len(joints) < len(triples) / 5
    assert len(joints_of(domain, triples, 100)) == len(triples)  # few rows: not worth it
    columns = rows_of(domain, 70_000)
    counts = count_cells([columns], domain, triples)
    for place in (0, 100, 285):
        assert np.array_equal(counts[place], one_by_one(columns, domain, triples[place]))


def test_joints_do_not_take_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of([15] * 60)
    pairs = list(combinations(range(60), 2))
    monkeypatch.setattr(kernel, "ALL_JOINT_CELLS", 1)
    joints = joints_of(domain, pairs, 1 << 16)
    assert sum(domain.cells_of(joint.attributes) for joint in joints) <= sum(map(domain.cells_of, pairs))
    assert sorted(member for joint in joints for member in joint.members) == list(range(len(pairs)))


def test_keys_of_large_marginals_do_not_overflow() -> None:
    domain = domain_of((50_000, 50_000, 2))  # 2.5e9 cells: they are not counted here
    columns = [np.array([49_999], np.intp)] * 2 + [np.array([1], np.intp)]
    (_, key), *_ = kernel.visit_keys(columns, domain, [(0, 1, 2)])
    assert key.tolist() == [50_000 * 50_000 * 2 - 1]


def test_codes_outside_of_the_domain_are_refused() -> None:
    domain = domain_of((3, 3))
    for code in (-1, 3):
        with pytest.raises(ValueError, match="must deliver codes in 0"):
            count_cells([[np.array([0, code]), np.array([0, 0])]], domain, [(0,), (0, 1)])


@given(problems(), st.integers(1, 200))
def test_parts_add_up_and_passes_keep_the_order(problem: tuple[Domain, list[Attributes], int], most: int) -> None:
    domain, marginals, _ = problem
    columns = rows_of(domain, 300)
    parts = [
        partial_counts([[codes[part] for codes in columns]], domain, marginals) for part in (slice(99), slice(99, None))
    ]
    counts = split_counts(parts[0] + parts[1], domain, marginals)
    for marginal, found in zip(marginals, counts, strict=True):
        assert np.array_equal(found, one_by_one(columns, domain, marginal))
    groups = in_passes(domain, marginals, most)
    assert [marginal for group in groups for marginal in group] == marginals
    assert all(len(group) == 1 or sum(map(domain.cells_of, group)) <= most for group in groups)


def test_nothing_is_counted_without_rows() -> None:
    domain = domain_of((2, 3))
    assert [one.tolist() for one in count_cells([], domain, [(1,), (0, 1)])] == [[0] * 3, [0] * 6]
    assert partial_counts([], domain, []).tolist() == []
