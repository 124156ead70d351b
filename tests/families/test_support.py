"""Weights on public records: over the whole domain they are a histogram, over fewer records they stay on them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist import prepare
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.data.schema import Categorical, Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.errors import InputError
from pointillist.families.histogram import FLOOR, Histogram
from pointillist.families.saved import load_family
from pointillist.families.support import Support
from pointillist.framework import Replay, run
from pointillist.queries.candidates import Grouping
from pointillist.queries.counting import exact_counts
from pointillist.queries.kway import all_kway

shapes = st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple)


def schema_of(sizes: tuple[int, ...]) -> Schema:
    return Schema(tuple(Categorical(f"x{i}", tuple(range(size))) for i, size in enumerate(sizes)))


def whole_domain(sizes: tuple[int, ...], seed: int = 0) -> Table:
    """Every record twice, in a random order."""
    codes = np.indices(sizes).reshape(len(sizes), -1)
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(codes.shape[1]), 2))
    return Table(schema_of(sizes), tuple(codes[:, order]))


def support_of(table: Table) -> Support:
    return Support.of(PublicTable.encode(table, table.schema), "a test")


def on_records(support: Support, weights: np.ndarray) -> np.ndarray:
    """The weights of a histogram on the records of a support."""
    return weights[tuple(support.codes)]


# --- against the histogram


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 100), st.sampled_from(list(Grouping)), st.data())
def test_over_the_whole_domain_it_is_a_histogram(
    sizes: tuple[int, ...], seed: int, grouping: Grouping, data: st.DataObject
) -> None:
    """Answers, sums of queries and scaling agree with those of the histogram, whatever the weights."""
    table = whole_domain(sizes, seed)
    support, histogram = support_of(table), Histogram(table.domain)
    queries = all_kway(table.domain, data.draw(st.integers(1, 2))).queries
    candidates = grouping.candidates(queries)
    rng = np.random.default_rng(seed)
    cells = rng.random(sizes)
    mine = on_records(support, cells)
    assert np.allclose(support.answers(mine, queries), histogram.answers(cells, queries))

    drawn = data.draw(st.lists(st.integers(0, len(candidates) - 1), min_size=1, max_size=5, unique=True))
    asked = [candidates[number] for number in drawn]
    sums, cell_sums = support.sums(mine, asked), histogram.sums(cells, asked)
    mass = cell_mass = float(cells.sum())
    for step in range(4):
        assert all(np.allclose(a, b) for a, b in zip(sums, cell_sums, strict=True))
        at = int(rng.integers(len(asked)))
        factors = rng.uniform(0.2, 3, len(sums[at]))
        if step % 2:
            mass = support.rescale(mine, asked, at, factors, sums, mass)
            cell_mass = histogram.rescale(cells, asked, at, factors, cell_sums, cell_mass)
        else:
            support.scale(mine, asked[at], factors)
            histogram.scale(cells, asked[at], factors)
            sums, cell_sums = support.sums(mine, asked), histogram.sums(cells, asked)
            mass, cell_mass = float(mine.sum()), float(cells.sum())
        assert np.allclose(mine, on_records(support, cells))
        assert np.isclose(mass, cell_mass)
        assert np.isclose(mass, mine.sum())
    assert all(np.allclose(a, b) for a, b in zip(sums, cell_sums, strict=True))


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize(("method", "plain"), [("pmw_pub", "mwem"), ("pep_pub", "pep")])
def test_over_the_whole_domain_a_run_is_that_of_the_plain_method(method: str, plain: str, grouping: Grouping) -> None:
    """Public records that are the whole domain, evenly: the same transcript leads to the same distribution."""
    sizes = (3, 2, 4)
    table = whole_domain(sizes)
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, 600)
    private = Table(table.schema, (a, a % 2, rng.integers(0, 4, 600)))
    queries = all_kway(table.domain, 2).queries
    rounds = {"rounds": 3 if grouping is Grouping.MARGINAL else 8}
    options: dict[str, Any] = {
        "epsilon": 1.0, "delta": 1e-6, "workload": "marginals:2", "group": grouping, "insecure_noise_seed": 2,
        "settings": rounds | ({"slack": 1.0} if plain == "pep" else {}),
    }  # fmt: skip
    release = prepare(private, method=method, public=table, seed=4, **options).run()
    assert len(release.log.rounds) == rounds["rounds"]
    histogram = prepare(private, method=plain, **options).algorithm
    cells, _ = run(histogram, Replay(release.log), seed=4)
    assert isinstance(release.family, Support)
    weights = release.params
    assert np.abs(weights - 1 / 24).max() > 0.01  # something was learned
    assert np.allclose(weights, on_records(release.family, cells), rtol=1e-8)
    assert np.allclose(release.family.answers(weights, queries), histogram.family.answers(cells, queries))


# --- on fewer records


def few_records(seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    return Table(schema_of((3, 4, 2)), (rng.integers(0, 3, 40), rng.integers(0, 4, 40), rng.integers(0, 2, 40)))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_it_starts_with_the_answers_of_the_public_table(k: int) -> None:
    table = few_records()
    support = support_of(table)
    queries = all_kway(table.domain, k).queries
    start = support.init(np.random.default_rng(0))
    counted = exact_counts(TableSource(table), queries) / len(table)
    assert np.allclose(support.answers(start, queries), counted)
    before = start.copy()
    start *= 0  # an update may change its parameters in place: the start must stay
    assert np.array_equal(support.init(np.random.default_rng(0)), before)


@pytest.mark.parametrize("grouping", list(Grouping))
def test_scaling_by_brute_force(grouping: Grouping) -> None:
    table = few_records()
    support = support_of(table)
    candidates = grouping.candidates(all_kway(table.domain, 2).queries)
    rng = np.random.default_rng(3)
    for queries in (candidates[number] for number in range(len(candidates))):
        params = rng.random(len(support.public_weights))
        (sums,) = support.sums(params, [queries])
        keys = np.ravel_multi_index([support.codes[i] for i in queries.scope], table.domain.shape(queries.scope))
        keys = keys - (0 if queries.cells is None else queries.cells[0])
        inside = (keys >= 0) & (keys < len(sums))
        assert np.allclose(sums, [params[inside & (keys == c)].sum() for c in range(len(sums))])
        factors = rng.uniform(0.2, 3, len(sums))
        plain = np.array([p * factors[k] if i else p for p, k, i in zip(params, keys, inside, strict=True)])
        support.scale(params, queries, factors)
        assert np.allclose(params, plain)


@pytest.mark.parametrize("grouping", list(Grouping))
def test_weights_never_vanish(grouping: Grouping) -> None:
    support = support_of(whole_domain((2, 2)))
    first = grouping.candidates(all_kway(support.domain, 2).queries)[0]
    params = support.init(np.random.default_rng(0))
    for _ in range(100):
        support.scale(params, first, np.full(first.size, 1e-12))
    assert FLOOR <= params.min() <= 2 * FLOOR


def test_a_table_that_lacks_columns_is_refused_with_the_number_of_cells() -> None:
    table = few_records()
    schema = Schema((*table.schema.columns, Categorical("extra", tuple(range(5))), Categorical("more", (0, 1, 2))))
    public = PublicTable.encode(table, schema)
    records = len(set(zip(*(c.tolist() for c in table.codes), strict=True)))
    with pytest.raises(InputError) as refused:
        Support.of(public, "pmw_pub")
    assert str(refused.value) == (
        "public must have every column of the schema for pmw_pub (it lacks extra, more), "
        f"got a table whose records would have to be extended to {records * 5 * 3:,} cells; "
        "use gem_pub, or leave these columns out of the private table."
    )


# --- rows and files


def test_sampling_is_stratified_and_stays_on_the_records() -> None:
    """Every record gets its expected number of rows up to two, and no other record appears."""
    support = support_of(few_records())
    params = np.random.default_rng(1).dirichlet(np.ones(len(support.public_weights)))
    codes = support.sample(np.random.default_rng(2), params, 10_000)
    drawn = list(zip(*(c.tolist() for c in codes), strict=True))
    records = list(zip(*(c.tolist() for c in support.codes), strict=True))
    assert set(drawn) <= set(records)
    assert np.abs(np.array([drawn.count(record) for record in records]) - 10_000 * params).max() <= 2
    assert not np.all(np.diff(codes[0].astype(int)) >= 0)  # shuffled


def test_a_mixture_is_that_of_the_weights() -> None:
    support = support_of(few_records())
    queries = all_kway(support.domain, 2).queries
    first, second = np.random.default_rng(0).dirichlet(np.ones(len(support.public_weights)), 2)
    before = first.copy()
    mixed = support.answers(support.mix(first, second, 0.25), queries)
    assert np.allclose(mixed, 0.75 * support.answers(first, queries) + 0.25 * support.answers(second, queries))
    assert np.array_equal(first, before)


def test_a_model_comes_back_without_the_public_table(tmp_path: Path) -> None:
    """Codes of 8 and of 16 bits; the arrays alone give the family and the parameters back."""
    schema = Schema((Categorical("a", (0, 1)), Categorical("b", tuple(range(300))), Categorical("c", (0, 1, 2))))
    rng = np.random.default_rng(0)
    table = Table(schema, (rng.integers(0, 2, 50), rng.integers(0, 300, 50), rng.integers(0, 3, 50)))
    support = support_of(table)
    params = rng.dirichlet(np.ones(len(support.public_weights)))
    np.savez_compressed(tmp_path / "model.npz", **support.to_arrays(params))
    with np.load(tmp_path / "model.npz") as arrays:
        back = load_family(support.to_dict(), schema.domain, arrays)
        again = back.from_arrays(arrays)
    assert np.array_equal(again, params)
    queries = all_kway(schema.domain, 2).queries
    assert np.array_equal(back.answers(again, queries), support.answers(params, queries))
    rows: list[Any] = [s.sample(np.random.default_rng(1), p, 200) for s, p in ((support, params), (back, again))]
    assert all(np.array_equal(one, two) for one, two in zip(*rows, strict=True))


def test_a_domain_of_any_size_will_do() -> None:
    """Only the records are stored, so nothing grows with the domain; the memory is known beforehand."""
    domain = Domain(tuple(f"x{i}" for i in range(30)), (100,) * 30)
    assert Support.fits(domain)
    schema = Schema(tuple(Categorical(name, tuple(range(100))) for name in domain.names))
    table = Table(schema, tuple(np.arange(50) for _ in range(30)))
    support = support_of(table)
    queries = all_kway(domain, 1).queries
    small, large = (support_of(table.take(np.arange(rows))).footprint(queries) for rows in (10, 50))
    assert 40 * (30 + 8) <= large - small <= 40 * (30 + 8 * 8)
    assert np.allclose(support.answers(support.public_weights, queries), np.tile(np.repeat([0.02, 0], 50), 30))


def test_keys_of_wide_marginals_do_not_overflow() -> None:
    """The code of a record in a marginal needs more bits than the codes of its attributes."""
    sizes = (200, 200, 200)
    codes = np.array(list(itertools.product((0, 199), repeat=3))).T
    support = support_of(Table(schema_of(sizes), tuple(codes)))
    (queries,) = all_kway(support.domain, 3).queries
    params = np.arange(1.0, 9.0)
    factors = np.ones(200**3)
    factors[-1] = 10.0
    support.scale(params, queries, factors)
    at = int(np.flatnonzero(np.all(np.stack(support.codes) == 199, axis=0))[0])
    assert params[at] == 10 * (at + 1)
    assert params.sum() == 36 + 9 * (at + 1)
