"""Graphical models against the joint distribution, cell by cell, and against mbi."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointillist import InputError
from pointillist.data.domain import Domain
from pointillist.families.junction import JunctionTree, cliques_of, maximal, tree_cells
from pointillist.families.markov import Field, Markov
from pointillist.queries.kway import all_kway
from pointillist.queries.product import Product


@pytest.fixture(scope="module")
def mbi() -> Any:
    """An independent implementation of the same models. It warns about settings of JAX when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("mbi")


def domain_of(sizes: tuple[int, ...]) -> Domain:
    return Domain(tuple(f"x{i}" for i in range(len(sizes))), sizes)


@st.composite
def fields(draw: st.DrawFn, spread: float = 2.0) -> Field:
    """Up to six attributes and six potentials, over any scopes of which no one contains another."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    scope = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3).map(lambda s: tuple(sorted(s)))
    scopes = maximal(draw(st.lists(scope, max_size=6)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    domain = domain_of(sizes)
    return Field(domain, {s: spread * rng.standard_normal(domain.shape(s)) for s in scopes})


def joint(field: Field) -> np.ndarray:
    """The definition: the exponential of the sum of all potentials, cell by cell."""
    sizes = field.domain.sizes
    logs = np.zeros(sizes)
    for scope, potential in field.potentials.items():
        logs += potential.reshape([size if i in scope else 1 for i, size in enumerate(sizes)])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def summed(table: np.ndarray, scope: tuple[int, ...]) -> np.ndarray:
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in scope))


@settings(max_examples=150, deadline=None)
@given(fields())
def test_all_marginals_are_those_of_the_joint_distribution(field: Field) -> None:
    d = len(field.domain)
    scopes = [s for k in range(1, d + 1) for s in itertools.combinations(range(d), k)]
    whole = joint(field)
    for scope, found in zip(scopes, field.beliefs.marginals(scopes), strict=True):
        np.testing.assert_allclose(found, summed(whole, scope), atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(fields())
def test_cliques_that_share_an_attribute_are_connected(field: Field) -> None:
    """The running intersection property, and a home for every potential."""
    sizes = field.domain.sizes
    tree = JunctionTree.of(sizes, field.potentials)
    assert tree.parents[0] == -1
    assert all(0 <= parent < node for node, parent in enumerate(tree.parents) if node)
    for attribute in range(len(sizes)):
        holding = {n for n, clique in enumerate(tree.cliques) if attribute in clique}
        links = [n for n in holding if n and tree.parents[n] in holding]
        assert len(links) == len(holding) - 1
    for scope in field.potentials:
        assert tree.home(scope, sizes) is not None
    assert sum(math.prod(sizes[i] for i in clique) for clique in tree.cliques) == tree_cells(sizes, field.potentials)


@settings(max_examples=60, deadline=None)
@given(fields())
def test_products_of_intervals_are_answered_from_marginals(field: Field) -> None:
    domain = field.domain
    queries = [Product.of(domain, dict.fromkeys(domain.names[:2], "prefixes"))]
    whole = summed(joint(field), queries[0].scope).ravel()
    np.testing.assert_allclose(Markov(domain).answers(field, queries), queries[0].of_marginal(whole), atol=1e-12)


def test_potentials_may_be_far_apart() -> None:
    """Potentials that no floating-point number could hold as factors, and that cancel each other."""
    domain = domain_of((2, 2, 2))
    far = np.array([[0.0, 5000.0], [2500.0, -9000.0]])
    field = Field(domain, {(0, 1): far, (1, 2): -far.T, (0, 2): far / 2})
    np.testing.assert_allclose(field.beliefs.marginal((0, 1, 2)), joint(field), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(fields(), st.integers(0, 1000))
def test_rows_follow_the_model(field: Field, seed: int) -> None:
    rows = 20_000
    codes = field.beliefs.draw(np.random.default_rng(seed), rows)
    whole = joint(field)
    counts = np.zeros_like(whole)
    np.add.at(counts, codes, 1)
    assert np.all(np.abs(counts / rows - whole) <= 7 * np.sqrt(whole / rows) + 3e-4)


def test_a_column_alone_is_drawn_as_often_as_expected() -> None:
    """Strata: the values of the first clique come up their expected number of times, up to one at either end."""
    field = Field(domain_of((5, 3)), {(0, 1): np.random.default_rng(0).standard_normal((5, 3))})
    codes = field.beliefs.draw(np.random.default_rng(1), 1000)
    found = np.bincount(codes[0], minlength=5)
    assert np.all(np.abs(found - 1000 * field.beliefs.marginal((0,))) <= 2)


@settings(max_examples=40, deadline=None)
@given(fields(), st.integers(0, 1000))
def test_a_condition_is_met_exactly(field: Field, seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(field.domain))[:2]
    allowed = {int(i): rng.choice([0.0, 0.5, 1.0], field.domain.sizes[i]) for i in some}
    for shares in allowed.values():
        shares[rng.integers(len(shares))] = 1.0
    kept = joint(field)
    for i, shares in allowed.items():
        kept = kept * shares.reshape([-1 if n == i else 1 for n in range(kept.ndim)])
    beliefs, share = field.beliefs.given(allowed)
    assert share == pytest.approx(kept.sum(), rel=1e-9)
    everything = tuple(range(len(field.domain)))
    np.testing.assert_allclose(beliefs.marginal(everything), kept / kept.sum(), atol=1e-9)


def test_an_impossible_condition_is_refused() -> None:
    domain = domain_of((2, 2))
    field = Field(domain, {(0, 1): np.array([[50.0, 0.0], [0.0, 50.0]])})
    allowed = {0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}
    with pytest.raises(InputError, match="must be a condition that the model gives a share"):
        Markov(domain).sample_given(np.random.default_rng(0), field, 10, allowed)


def test_no_potentials_are_the_uniform_distribution() -> None:
    family = Markov(domain_of((2, 5)))
    answers = family.answers(family.init(np.random.default_rng(0)), all_kway(family.domain, 2).queries)
    np.testing.assert_allclose(answers, 0.1)


def test_a_chain_stays_small_and_a_ring_does_not() -> None:
    sizes = (10,) * 6
    chain = [(i, i + 1) for i in range(5)]
    assert cliques_of(sizes, chain) == tuple(chain)
    assert tree_cells(sizes, chain) == 500
    assert tree_cells(sizes, [*chain, (0, 5)]) == 4000


@settings(max_examples=25, deadline=None)
@given(fields())
def test_marginals_and_sizes_are_those_of_mbi(mbi: Any, field: Field) -> None:
    sizes, scopes = field.domain.sizes, list(field.potentials)
    theirs = mbi.Domain(list(range(len(sizes))), list(sizes))
    tables = {s: mbi.Factor(theirs.project(s), np.asarray(field.potentials[s], np.float32)) for s in scopes}
    if not scopes:
        return
    vector = mbi.CliqueVector(theirs, scopes, tables)
    found = mbi.marginal_oracles.message_passing_hugin(vector)
    for scope in scopes:
        np.testing.assert_allclose(found[scope].values, field.beliefs.marginal(scope), atol=1e-4)
    megabytes = mbi.junction_tree.hypothetical_model_size(theirs, scopes)
    assert tree_cells(sizes, scopes) * 8 / 2**20 <= megabytes * 1.5 + 1e-9
