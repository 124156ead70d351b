"""Blocks of neighbouring values: sums of what was measured, and what they do to a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pointillist import Grid, Schema, Table, Workload, all_kway, prepare
from pointillist.data.columns import Categorical, Merged, Numeric
from pointillist.data.domain import Domain
from pointillist.framework import Replay, run
from pointillist.queries.product import Product
from pointillist.updates import coarser
from pointillist.updates.coarser import Coarser, blocks
from pointillist.updates.shrinkage import ShrunkenFit

DOMAIN = Domain(("x", "y", "label"), (9, 5, 3))


def test_blocks_have_the_same_width_and_cover_every_code_once() -> None:
    assert blocks(9, 8, 4).bounds == ((0, 4), (4, 8), (8, 9))
    assert blocks(9, 9, 4).bounds == ((0, 4), (4, 8), (8, 9))
    assert blocks(3, 0, 4).identity  # no order


@pytest.mark.parametrize(("length", "expected"), [(5, ((0, 3), (3, 5))), (2, ((0, 1), (1, 2))), (1, ((0, 1),))])
def test_a_short_line_keeps_two_blocks(length: int, expected: tuple[tuple[int, int], ...]) -> None:
    assert blocks(length, length, 8).bounds == expected


def test_only_marginals_of_several_attributes_with_an_order_have_coarser_views() -> None:
    x, pair, unordered = (Workload.of(DOMAIN, [scope]).queries[0] for scope in (["x"], ["x", "label"], ["label"]))
    cells = pair.take([0, 1])
    prefixes = Product.of(DOMAIN, {"x": "prefixes", "y": "values"})
    found = Coarser((x, pair, unordered, cells, prefixes), (8, 5, 0)).views
    assert [n for n, _ in found] == [1, 1]
    assert [view.grid for _, view in found] == [(5, 3), (3, 3)]
    assert Coarser((pair,), ()).views == ()


def test_blocks_are_sums_of_cells_with_the_variance_of_such_sums() -> None:
    rng = np.random.default_rng(0)
    queries = all_kway(DOMAIN, 2).queries
    views = Coarser(queries, (8, 5, 0))
    targets = rng.normal(size=sum(one.size for one in queries))
    precision = 1.0 + np.arange(len(queries))
    sums, weights = views.sums(targets), views.weights(precision)
    assert len(targets) + len(sums) == len(targets) + len(weights) == sum(one.size for one in views.all_queries)
    table = targets[: 9 * 5].reshape(9, 5)
    first = next(view for n, view in views.views if n == 0)
    assert first.grid == (5, 3)
    assert sums[0] == pytest.approx(table[:2, :2].sum())  # four cells of variance 1
    assert weights[0] == pytest.approx(coarser.WEIGHT / 4)
    assert weights[first.size - 1] == pytest.approx(coarser.WEIGHT)  # the code after the line, by the last one
    assert not views.weights(0 * precision).any()
    assert not len(Coarser(queries, ()).sums(targets))


def test_a_schema_knows_which_groups_lie_on_a_line() -> None:
    fine = Grid("number", (0, 9), step=1, missing=True)
    listed = Categorical("list", ("a", "b", "c"))
    merged = tuple(Merged(one, tuple(range(one.size)), (1.0,) * one.size) for one in (fine, listed))
    assert Schema((listed, Numeric("bins", (0.0, 1.0, 2.0)), fine)).lines == (0, 0, 0)
    assert Schema(merged).lines == (10, 0)


def rising(rows: int) -> Table:
    """Two columns of sixteen bins that rise together, and one that does not."""
    rng = np.random.default_rng(1)
    x = np.minimum(15, rng.exponential(3.0, rows).astype(int))
    y = np.clip(x + rng.integers(-1, 2, rows), 0, 15)
    columns = tuple(Numeric(name, tuple(float(edge) for edge in range(17))) for name in "xyz")
    return Table(Schema(columns), (x, y, rng.integers(16, size=rows)))


def test_a_correlation_is_nearer_to_the_truth_with_blocks() -> None:
    table = rising(20_000)
    true = correlation(np.bincount(table.codes[0].astype(int) * 16 + table.codes[1], minlength=256))
    off = np.zeros(2)
    for seed in (3, 4):
        settings = {"fits": 1, "t_max": 300}
        job = prepare(table, epsilon=0.7, workload="marginals:2", insecure_noise_seed=seed, settings=settings)
        update = job.algorithm.update
        assert isinstance(update, ShrunkenFit)
        assert update.lines == (0, 0, 0)  # bins that were given stand for themselves
        release = job.run()
        ordered = replace(job.algorithm, update=replace(update, lines=(16, 16, 16)))
        params, _ = run(ordered, Replay(release.log), seed=0)
        pair = job.task.workload.queries[:1]
        off += [abs(correlation(job.algorithm.family.answers(one, pair)) - true) for one in (params, release.params)]
    assert off[0] < 0.85 * off[1]


def correlation(counts: np.ndarray) -> float:
    """The correlation of two codes with these counts."""
    shares = counts.reshape(16, 16) / counts.sum()
    x, y = np.indices(shares.shape)
    mean = [float((shares * one).sum()) for one in (x, y)]
    covariance = float((shares * (x - mean[0]) * (y - mean[1])).sum())
    spread = [float((shares * (one - m) ** 2).sum()) for one, m in zip((x, y), mean, strict=True)]
    return covariance / float(np.sqrt(spread[0] * spread[1]))
