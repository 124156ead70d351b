"""Densities inside of bins: masses are kept, they are nowhere negative, and they follow the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from pointillist.data.columns.shapes import density_inside
from pointillist.data.schema import Numeric

ROWS = 20_000
DRAWS: dict[str, Any] = {
    "exponential": lambda rng: rng.exponential(10, ROWS),
    "lognormal": lambda rng: rng.lognormal(3, 1, ROWS),
    "normal": lambda rng: rng.normal(0, 1, ROWS),
    "rising": lambda rng: np.sqrt(rng.random(ROWS)),
    "falling from both sides": lambda rng: rng.laplace(0, 5, ROWS),
    "whole": lambda rng: np.floor(rng.exponential(200, ROWS)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("even", [False, True])
def test_shapes_are_closer_than_flat_bins(name: str, even: bool) -> None:
    x = DRAWS[name](np.random.default_rng(7))
    integer = name == "whole"
    ends = (x.min(), x.max() + 3 * x.std())  # bounds are wider than the data
    edges = np.linspace(*ends, 17) if even else np.append(np.quantile(x, np.linspace(0, 1, 13))[:-1], ends[1])
    edges = np.unique(np.round(edges)) if integer else edges
    errors = {}
    for how in ("uniform", "shape"):
        column = Numeric("x", tuple(edges), integer=integer, decode_as=how)
        codes = column.encode(pa.array(x))
        back = column.decode(codes, np.random.default_rng(8)).to_numpy()
        assert np.array_equal(column.encode(pa.array(back)), codes)
        errors[how] = wasserstein_distance(x, back)
    assert errors["shape"] < 0.8 * errors["uniform"]


def test_the_mean_of_a_long_tail_is_kept() -> None:
    x = np.random.default_rng(1).exponential(30, 50_000)
    column = Numeric("delay", (0, 5, 10, 20, 40, 80, 1500))
    back = column.decode(column.encode(pa.array(x)), np.random.default_rng(2)).to_numpy()
    assert back.mean() == pytest.approx(30, rel=0.05)
    assert back.std() == pytest.approx(30, rel=0.15)


def test_even_counts_give_an_even_density() -> None:
    density = density_inside(np.array([0.0, 1, 3, 4, 8]), np.array([1000, 2000, 1000, 4000]))
    u = np.linspace(0, 1, 101)[:-1]
    for place, (low, high) in enumerate([(0, 1), (1, 3), (3, 4), (4, 8)]):
        drawn = density.draw(np.full(100, place), u)
        assert np.allclose(drawn, low + u * (high - low), atol=1e-3 * (high - low))


def test_a_spike_of_one_value_does_not_pull_its_neighbours() -> None:
    column = Numeric("gain", (0, 1, 5000), integer=True)
    codes = np.repeat([0, 1], [94_000, 6000])
    back = column.decode(codes, np.random.default_rng(3)).to_numpy()
    assert np.all(back[:94_000] == 0)
    assert back[94_000:].mean() == pytest.approx(2500, rel=0.05)


edges_of = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)


@settings(max_examples=300, deadline=None)
@given(edges_of, st.data())
def test_draws_stay_in_their_bins_in_order(widths: list[float], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 10**6), min_size=len(widths), max_size=len(widths)))
    edges = np.concatenate([[0.0], np.cumsum(widths)]) - data.draw(st.floats(-1e6, 1e6))
    if np.any(np.diff(edges) <= 0):
        return
    density = density_inside(edges, np.array(counts), data.draw(st.sampled_from([0.0, 1.0])))
    assert np.all(density.heights >= 0)
    assert np.all(density.mass >= 0)
    u = np.append(np.linspace(0, 1, 50)[:-1], np.nextafter(1, 0))
    for place in range(len(widths)):
        drawn = density.draw(np.full(len(u), place), u)
        slack = 1e-9 * np.abs(edges).max()
        assert np.all(np.diff(drawn) >= -slack)
        assert drawn[0] >= edges[place] - slack
        assert drawn[-1] <= edges[place + 1] + slack
        mass = density.mass[density.offsets[place] : density.offsets[place + 1]]
        assert mass.sum() == pytest.approx(1)


def test_the_density_is_continuous_where_counts_are_smooth() -> None:
    edges = np.linspace(-3, 3, 25)
    middle = (edges[:-1] + edges[1:]) / 2
    density = density_inside(edges, np.round(1e6 * np.exp(-(middle**2) / 2)))
    pieces = np.exp(-(middle**2) / 2)  # heights are relative to the average of the bin
    for place in range(1, 22):
        last, first = density.offsets[place + 1] - 1, density.offsets[place + 1]
        above = density.heights[1, last] * pieces[place]
        below = density.heights[0, first] * pieces[place + 1]
        assert above == pytest.approx(below, rel=1e-3)


def test_schemas_that_say_uniform_are_decoded_as_before() -> None:
    column = Numeric("x", (0, 10, 20, 100), decode_as="uniform")
    codes, u = np.array([0, 1, 2, 2]), np.random.default_rng(5).random(4)
    low, high = np.array([0, 10, 20, 20]), np.array([10, 20, 100, 100])
    assert np.array_equal(column.decode(codes, np.random.default_rng(5)).to_numpy(), low + u * (high - low))
    assert Numeric("x", (0, 1, 2)).decode_as == "shape"
    assert Numeric("x", (0, 1, 2)).to_dict()["decode"] == "shape"
