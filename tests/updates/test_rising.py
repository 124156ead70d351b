"""How far two ordered attributes rise together: its noise, and that what a penalty took of it is given back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pointillist import Numeric, Schema, Table
from pointillist.data.columns import Grid, Merged
from pointillist.data.domain import Domain
from pointillist.framework import Replay, run
from pointillist.job import prepare
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.updates.parts import PartEstimates
from pointillist.updates.rising import directions
from pointillist.updates.shrinkage import ShrunkenFit
from pointillist.updates.target import Cells, Measured, Ties

DOMAIN = Domain(("x", "y", "z"), (5, 4, 3))
PLACES = ((0.0, 1.0, 5.0, 20.0), (1.0, 2.0, 3.0, 4.0), ())
WAYS = [np.full(size, 1 / size) for size in DOMAIN.sizes]


def parts(sigma: float, seed: int = 0) -> PartEstimates:
    """The parts of three pairs of an empty table of a thousand rows, with noise."""
    rng = np.random.default_rng(seed)
    pairs = [Marginal.of(DOMAIN, scope) for scope in ([0, 1], [0, 2], [1, 2])]
    return PartEstimates.of(DOMAIN, [Measurement(one, rng.normal(0, sigma, one.size), sigma) for one in pairs], 1000.0)


def test_directions_are_those_of_pairs_on_lines() -> None:
    found = directions(parts(1.0), WAYS, PLACES)
    assert list(found) == [(0, 1)]
    table = found[0, 1]
    assert np.sum(table**2) == pytest.approx(1)
    assert table.sum(axis=0) == pytest.approx(np.zeros(4))
    assert table.sum(axis=1) == pytest.approx(np.zeros(5))
    assert not table[4].any()  # a code after the line
    assert (np.diff(table[3]) > 0).all()
    assert directions(parts(1.0), WAYS, ()) == {}


def test_pairs_are_left_out_where_noise_hides_their_correlation() -> None:
    assert directions(parts(30.0), WAYS, PLACES) == {}
    rare = [np.array([1 - 4e-4, 1e-4, 1e-4, 1e-4, 1e-4]), *WAYS[1:]]
    assert directions(parts(1.0), rare, PLACES) == {}


def test_places_may_be_as_far_apart_as_numbers_go() -> None:
    found = directions(parts(1.0), WAYS, ((-1e300, 0.0, 1e300), *PLACES[1:]))
    assert np.sum(found[0, 1] ** 2) == pytest.approx(1)


def test_the_contrast_has_noise_of_variance_1() -> None:
    found = []
    for seed in range(400):
        known = parts(3.0, seed)
        measured = Measured(known, Cells((), np.zeros(0), np.zeros(0)), Ties.of((), 1000.0))
        on = measured.on(measured.queries)
        along = directions(known, WAYS, PLACES)
        nothing = np.zeros(on.size)
        found.append(on.along(nothing, along)[0, 1])
        moved = measured.along({(0, 1): 2.0 * along[0, 1]}).on(measured.queries)
        assert moved.along(nothing, along)[0, 1] == pytest.approx(found[-1] + 2)
        assert on.along(nothing, {}) == {}
    assert np.mean(np.square(found)) == pytest.approx(1, abs=0.25)


def test_groups_lie_at_the_means_of_their_numbers() -> None:
    grid = Grid("x", (0, 3), integer=True, missing=True, points=(0,))
    merged = Merged(grid, (0, 1, 1, 2, 3), (1.0, 0.75, 0.25, 1.0, 1.0))
    assert merged.places == pytest.approx((0.0, 1.25, 3.0))  # the point is among them, missing is not
    assert Schema((merged,)).lines == (3,)
    assert Schema((grid, Numeric("y", (0.0, 1.0, 2.0)))).places == ((), ())


def rising(rows: int) -> Table:
    """Two columns of sixteen bins that rise together, and four that do not."""
    rng = np.random.default_rng(1)
    x = np.minimum(15, rng.exponential(3.0, rows).astype(int))
    y = np.clip(x + rng.integers(-2, 3, rows), 0, 15)
    columns = tuple(Numeric(name, tuple(float(edge) for edge in range(17))) for name in "xyabcd")
    return Table(Schema(columns), (x, y, *rng.integers(16, size=(4, rows))))


def test_a_correlation_that_the_penalty_weakens_is_given_back() -> None:
    table, places = rising(20_000), tuple(float(code) for code in range(16))
    true = float(np.corrcoef(*table.codes[:2])[0, 1])
    off = np.zeros(2)
    for seed in (0, 1):
        settings = {"fits": 1, "t_max": 300, "strength": 3.0}
        job = prepare(table, epsilon=1.0, workload="marginals:2", insecure_noise_seed=seed, settings=settings)
        update = job.algorithm.update
        assert isinstance(update, ShrunkenFit)
        assert not any(update.places)  # bins that were given stand for themselves
        release = job.run()
        ordered = replace(job.algorithm, update=replace(update, places=(places,) * 6))
        params, _ = run(ordered, Replay(release.log), seed=0)
        pair = job.task.workload.queries[:1]
        found = [job.algorithm.family.answers(one, pair).reshape(16, 16) for one in (params, release.params)]
        off += [true - _correlation(one) for one in found]
    assert (off > 0).all()
    assert off[0] < 0.7 * off[1]


def _correlation(shares: np.ndarray) -> float:
    """The correlation of two codes with these shares."""
    x, y = np.indices(shares.shape).reshape(2, -1)
    covariance = np.cov(x, y, aweights=np.maximum(shares.ravel(), 0))
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
