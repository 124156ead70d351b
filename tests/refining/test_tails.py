"""Ends of lines, where noise hides the shape."""

from __future__ import annotations

import numpy as np
import pytest

from pointillist import Categorical, Grid, Schema, synthesize
from pointillist.refining.trees import MOST_TAIL, TAIL, with_falling_tails


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
