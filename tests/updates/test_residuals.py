"""Residuals in units of the noise, and rows that start where a fit has missed something."""

from __future__ import annotations

import numpy as np
import pytest

from pointillist import Categorical, Schema, Table, synthesize
from pointillist.data.domain import Domain
from pointillist.queries.marginal import Marginal
from pointillist.updates import shrinkage
from pointillist.updates.residuals import given_back, most_by_chance, reseeded

DOMAIN = Domain(("a", "b", "c"), (3, 4, 2))


def rows_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of 0, and the probabilities that belong to them."""
    shares = np.concatenate([np.full(size, 1 / size) for size in DOMAIN.sizes])
    return np.zeros((count, 9)), np.tile(shares, (count, 1))


@pytest.mark.parametrize("cells", [10, 1000, 100_000])
def test_noise_alone_stays_below_the_bound(cells: int) -> None:
    rng = np.random.default_rng(cells)
    largest = [np.abs(rng.standard_normal(cells)).max() for _ in range(20)]
    assert np.mean(np.array(largest) < most_by_chance(cells)) > 0.8
    assert most_by_chance(cells) < 1.5 * np.mean(largest) + 1.5


def test_what_noise_explains_is_not_given_back() -> None:
    assert given_back(np.array([-3.4, 3.5, 6.5, -5.5, 0.0])).tolist() == pytest.approx([0.0, 0.0, 3.0, -2.0, 0.0])


def tails(rows: int) -> Table:
    """Five columns of twelve values, the first two of which agree in their rare last values."""
    rng = np.random.default_rng(0)
    shares = 0.75 ** np.arange(12)
    codes = rng.choice(12, (5, rows), p=shares / shares.sum())
    codes[1] = np.where(codes[0] > 7, codes[0], np.minimum(codes[1], 7))
    return Table(Schema(tuple(Categorical(name, tuple(range(12)), merge=False) for name in "abcde")), tuple(codes))


def test_ties_of_rare_values_that_the_penalty_weakens_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest residual becomes one that noise explains, and the cells of the tie come nearer to the truth."""
    table, found = tails(40_000), {}
    truth = np.array([np.mean((table.codes[0] == value) & (table.codes[1] == value)) for value in range(8, 12)])
    for most in (0, shrinkage.MOST_GIVEN):
        monkeypatch.setattr(shrinkage, "MOST_GIVEN", most)
        release = synthesize(
            table, epsilon=1.0, workload="marginals:2", seed=0, insecure_noise_seed=0, progress=False,
            settings={"strength": 2.0, "fits": 1, "rows": 400},
        )  # fmt: skip
        pair = next(iter(release.family.expected(release.params, [(0, 1)]))).reshape(12, 12)
        found[most] = release.log.info[-1]["worst"], float(np.abs(np.diag(pair)[8:] - truth).sum())
    without, with_it = found[0], found[shrinkage.MOST_GIVEN]
    assert without[0] > most_by_chance(10 * 144)
    assert with_it[0] < most_by_chance(10 * 144)
    assert with_it[1] < 0.6 * without[1]


def test_rows_start_at_the_cell_that_lacks_most() -> None:
    logits, rows = rows_of(10)
    pair = Marginal.of(DOMAIN, ["a", "b"])
    residuals, deficits = np.zeros(12), np.zeros(12)
    residuals[[6, 1]], deficits[[6, 1]] = (20.0, 2.0), (0.2, 0.1)  # cell 6 is a = 1, b = 2; cell 1 may be noise
    found = reseeded(logits, rows, DOMAIN, [pair], residuals, deficits)
    moved = np.flatnonzero((found != logits).any(axis=1))
    assert len(moved) == 2  # a fifth of the rows
    assert np.all(found[moved][:, [1, 5]] > 5)
    assert np.count_nonzero(found) == 4
    assert np.array_equal(logits, np.zeros((10, 9)))  # a copy is changed


def test_no_row_is_used_twice() -> None:
    logits, rows = rows_of(3)
    queries = [Marginal.of(DOMAIN, ["a"])]
    sizes = sum(one.size for one in queries)
    found = reseeded(logits, rows, DOMAIN, queries, np.full(sizes, 50.0), np.full(sizes, 0.4))
    assert np.count_nonzero(found[:, 3:]) == 0
    assert (np.count_nonzero(found, axis=1) <= 1).all()
    assert np.count_nonzero(found) == 3


def test_strong_ties_of_many_values_are_fitted_together_and_the_worst_residual_is_reported() -> None:
    """A column of 40 values and its copy: 20 rows carry about half of it, 60 rows most."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 40, 50_000)
    table = Table(
        Schema(tuple(Categorical(name, tuple(range(40)), merge=False) for name in "ab")), (first, first.copy())
    )
    said: list[str] = []
    release = synthesize(
        table, epsilon=10.0, workload="marginals:2", seed=0, insecure_noise_seed=0, announce=said.append,
        settings={"rows": 20, "fits": 3, "t_max": 400},
    )  # fmt: skip
    info = release.log.info[-1]
    assert info["fits"] == 1
    assert any(text.startswith(f"fit: worst residual {info['worst']:.1f} sd") for text in said)
    answers = release.answers().reshape(40, 40)
    assert np.trace(answers) > 0.75
    few = synthesize(
        table, epsilon=10.0, workload="marginals:2", seed=0, insecure_noise_seed=0, announce=said.append,
        settings={"rows": 5, "fits": 1, "t_max": 100},
    )  # fmt: skip
    assert few.log.info[-1]["worst"] > 2 * few.log.info[-1]["worst_by_chance"]
    assert any(text.startswith("warning: the model misses a measured cell") for text in said)
