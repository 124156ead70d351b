"""Ends of lines, where noise hides the shape."""

from __future__ import annotations

import numpy as np
import pytest

from pointillist import Categorical, Grid, Schema, synthesize
from pointillist.refining.trees import (
    MOST_TAIL,
    TAIL,
    Tree,
    even_levels,
    smoothed_line,
    with_falling_tails,
    within_reach,
)


def bell(codes: int = 60) -> np.ndarray:
    places = np.arange(codes)
    return np.asarray(2_000 * np.exp(-0.5 * ((places - 30) / 5) ** 2))


def test_ends_fall_and_nothing_lies_far_out() -> None:
    counts = np.concatenate([bell(), np.full(140, 0.2)])
    found = with_falling_tails(counts, 10.0)
    assert found.sum() == pytest.approx(counts.sum())
    assert found.min() >= 0
    middle = slice(22, 39)
    assert found[middle] == pytest.approx(counts[middle])
    assert found[60:].sum() < 0.1 < counts[60:].sum()
    past = found[np.argmax(np.cumsum(counts[::-1])[::-1] <= TAIL * 10.0) :]
    assert (np.diff(past) <= 1e-9).all()


def test_both_ends_are_treated_alike() -> None:
    counts = np.concatenate([np.full(50, 0.3), bell(), np.full(70, 0.2)])
    assert with_falling_tails(counts[::-1], 10.0)[::-1] == pytest.approx(with_falling_tails(counts, 10.0), abs=1e-6)


@pytest.mark.parametrize("counts", [[0.0, 0.0, 0.0], [5.0], [0.0, 7.0, 0.0], [1.0, 1.0, 1.0], [9.0, 0.0, 0.0]])
def test_rows_are_kept_in_any_case(counts: list[float]) -> None:
    for sigma in (0.0, 0.1, 1.0, 100.0):
        found = with_falling_tails(np.array(counts), sigma)
        assert found.sum() == pytest.approx(sum(counts))
        assert (found >= 0).all()


def test_at_most_a_small_share_of_the_rows_is_moved() -> None:
    counts = bell()
    moved = np.abs(with_falling_tails(counts, 1e6) - counts).sum() / 2
    assert 0 < moved <= 2 * MOST_TAIL * counts.sum()


def test_values_that_lie_far_out_are_kept_if_there_are_more_of_them_than_noise_explains() -> None:
    counts = np.concatenate([bell(), np.zeros(140)])
    counts[-1] = 5 * TAIL * 10.0
    assert with_falling_tails(counts, 10.0)[-1] > 3 * TAIL * 10.0


def test_a_group_of_all_other_codes_is_not_spread_over_them() -> None:
    """Nearly all rows have one of the first codes, and the bound is a thousand times as far."""
    import pandas as pd

    rng = np.random.default_rng(0)
    values = ((rng.pareto(2.0, 20_000) + 1) * 10).astype(int)
    table = pd.DataFrame({"x": np.minimum(values, 100_000), "g": rng.integers(0, 2, 20_000)})
    schema = Schema((Grid("x", (0, 100_000), integer=True), Categorical("g", (0, 1))))
    quick = {"rows": 5, "t_max": 60, "fits": 1, "strength": 1.0}
    for seed in range(4):
        release = synthesize(
            table,
            schema=schema,
            epsilon=1.0,
            workload="marginals:1",
            seed=seed,
            insecure_noise_seed=seed,
            settings=quick,
        )
        assert release.table.to_pandas()["x"].mean() < 4 * values.mean()  # spread evenly, it is 500


def wide_line(last: float) -> tuple[Tree, np.ndarray]:
    """A tree of 1,024 codes, and an estimate: a bell among the first of them, and this number of rows in the last."""
    levels = (*even_levels(1_024), np.arange(1_024))
    counts = np.concatenate([bell(), np.zeros(964)])
    counts[-1] = last
    return Tree(levels, (10.0,) * len(levels), 0.0), counts


def test_rows_that_noise_explains_end_within_the_reach_of_those_that_are_seen() -> None:
    tree, counts = wide_line(0.0)
    smooth = counts + np.where(np.arange(1_024) >= 60, 100 / 964, 0.0)  # 100 rows, which is less than noise explains
    found = within_reach(tree, counts, np.arange(1_024), smooth)
    assert found[:60] == pytest.approx(smooth[:60])
    assert found[100:].sum() == 0
    turned = within_reach(tree, counts[::-1], np.arange(1_024), smooth[::-1])
    assert turned[::-1] == pytest.approx(found)


def test_rows_far_out_that_are_seen_are_kept() -> None:
    tree, counts = wide_line(100.0)
    assert within_reach(tree, counts, np.arange(1_024), counts) == pytest.approx(counts)


def test_a_line_on_which_nothing_is_seen_stays_as_it_is() -> None:
    tree, _ = wide_line(0.0)
    counts = np.full(1_024, 0.01)
    assert within_reach(tree, counts, np.arange(1_024), counts) == pytest.approx(counts)


def test_noise_of_many_empty_codes_puts_no_rows_far_out() -> None:
    """A sum over hundreds of empty codes has many times the noise of one of them."""
    tree, counts = wide_line(0.0)
    beyond = np.zeros((2, 40))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noisy = [np.bincount(level, counts) + rng.normal(0, 10.0, level.max() + 1) for level in tree.levels]
        estimate = tree.estimate(noisy, counts.sum())
        smooth = smoothed_line(tree, estimate, np.arange(1_024))
        kept = within_reach(tree, estimate, np.arange(1_024), smooth)
        beyond[:, seed] = smooth[200:].sum(), kept[200:].sum()
    assert (beyond[0] > 20.0).mean() > 0.1
    assert (beyond[1] > 20.0).mean() < 0.05
