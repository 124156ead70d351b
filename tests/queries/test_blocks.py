"""Answers of relaxed rows to halfspaces and predicates: against enumeration, with their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.queries.small import DOMAIN, SCHEMA, conditions, halfspaces, records
from tests.queries.test_halfspaces import Given

from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import SoftmaxRows, softmax_per_attribute
from pointillist.queries import blocks, formulas
from pointillist.queries.answering import Layout
from pointillist.queries.base import Queries
from pointillist.queries.blocks import SampledBlock
from pointillist.queries.formulas import formula_of
from pointillist.queries.groups import Groups
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.marginal import Marginal
from pointillist.queries.predicates import Predicates
from pointillist.queries.product import Product
from pointillist.queries.random_halfspaces import random_halfspaces

ENTANGLED = '(age < 10 and sex == "f") or (sex == "m" and smoker == true) or (smoker == false and size > 1)'


def rows_of(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.ones(size), count) for size in DOMAIN.sizes], axis=1).astype(np.float32)


def enumerated(queries: Sequence[Queries], rows: Any) -> jax.Array:
    """The answers by the probability of every record: slow, exact and differentiable."""
    starts = np.cumsum([0, *DOMAIN.sizes])
    every = [rows[:, starts[i] + codes] for i, codes in enumerate(records())]
    share = (every[0] * every[1] * every[2] * every[3]).mean(axis=0)
    held = np.concatenate([one.holds(records()) for one in queries], axis=1)
    return share @ jnp.asarray(held.astype(np.float32))


def laid(layout: Layout, rows: Any, key: Any = None) -> jax.Array:
    return jnp.concatenate([part.ravel() for part in layout.answers(rows, key)])


def agrees(queries: Sequence[Queries], seed: int) -> None:
    layout, rows = Layout(DOMAIN, queries), jnp.asarray(rows_of(5, seed))
    assert not layout.sampled
    np.testing.assert_allclose(layout.to_flat(laid(layout, rows)), enumerated(queries, rows), atol=2e-6)
    assert not layout.repeats
    slope = np.random.default_rng(seed).normal(size=sum(one.size for one in queries)).astype(np.float32)
    weights = jnp.asarray(layout.from_flat(slope))
    logits = jnp.log(rows)  # of distributions: enumeration would notice columns that do not sum to 1
    found = jax.grad(lambda x: laid(layout, softmax_per_attribute(x, DOMAIN)) @ weights)(logits)
    exact = jax.grad(lambda x: enumerated(queries, softmax_per_attribute(x, DOMAIN)) @ jnp.asarray(slope))(logits)
    np.testing.assert_allclose(found, exact, atol=2e-5)


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(st.lists(halfspaces(), min_size=1, max_size=3), st.integers(0, 99))
def test_halfspaces_and_their_gradients_are_exact(cases: list[Given], seed: int) -> None:
    agrees(tuple(dict.fromkeys(Halfspaces.of(DOMAIN, *case) for case in cases)), seed)


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(st.lists(conditions(), min_size=1, max_size=3), st.integers(0, 99))
def test_predicates_and_their_gradients_are_exact(texts: list[str], seed: int) -> None:
    agrees([Predicates(tuple(formula_of(text, SCHEMA) for text in texts))], seed)


def test_all_kinds_in_one_layout() -> None:
    spaces = random_halfspaces(SCHEMA, 7) + random_halfspaces(SCHEMA, 3, crossed="sex")
    wide = Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 3]}, [0, 1, 2])
    mixed: list[Queries] = [
        spaces[0],
        Marginal.of(DOMAIN, ("age", "sex")),
        *spaces[1:],
        Predicates.of(SCHEMA, "age < 10 or smoker == true", 'sex == "f"'),
        Product.of(DOMAIN, {"age": "prefixes", "size": "values"}),
        Groups((0,), (0, 1, 1, 0)),
        wide.take([2, 0]),
    ]
    agrees(mixed, 0)


def test_halfspaces_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces, rows = random_halfspaces(SCHEMA, 7), jnp.asarray(rows_of(5, 0))
    whole = laid(Layout(DOMAIN, spaces), rows)
    monkeypatch.setattr(blocks, "MOST_NUMBERS", 5 * 40 * 3)
    np.testing.assert_allclose(laid(Layout(DOMAIN, spaces), rows), whole, atol=1e-6)


def test_many_halfspaces_are_answered_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers in the same order, next to other queries."""
    family = Relaxed(SoftmaxRows(DOMAIN, 5, 0.5))
    params = family.init(np.random.default_rng(0))
    spaces = (*random_halfspaces(SCHEMA, 7), *random_halfspaces(SCHEMA, 5, crossed="sex"))
    mixed = [spaces[0], Marginal.of(DOMAIN, ("age", "sex")), *spaces[1:]]
    whole = family.answers(params, mixed)
    monkeypatch.setattr(blocks, "MOST_COMPILED", 3)
    monkeypatch.setattr(blocks, "MOST_NUMBERS", 5 * 25 * 2)
    np.testing.assert_allclose(family.answers(params, mixed), whole, atol=1e-6)


def test_rows_that_are_no_distributions_are_answered_as_products_are() -> None:
    """RAP's clipped rows: an attribute that a halfspace does not look at must not count."""
    rows = np.random.default_rng(0).uniform(-1, 1, (3, sum(DOMAIN.sizes))).astype(np.float32)
    queries = [Halfspaces.of(DOMAIN, {"sex": [0, 1]}, 0), Halfspaces.of(DOMAIN, {"age": [0, 1, 2, 3]}, 1)]
    layout = Layout(DOMAIN, queries)
    wanted = [rows[:, 4].mean(), rows[:, :2].sum(axis=1).mean()]
    np.testing.assert_allclose(layout.to_flat(laid(layout, jnp.asarray(rows))), wanted, atol=1e-6)


@dataclass(frozen=True)
class Wide:
    """A kind of its own, over too many combinations."""

    scope: tuple[int, ...] = (0, 1)
    shape: tuple[int, ...] = (200, 200)
    size = 1
    factors = None
    cells = None


def test_other_kinds_over_many_combinations_are_refused() -> None:
    with pytest.raises(InputError, match="queries must be products, halfspaces, or over at most 20,000 combinations"):
        Layout(Domain(("a", "b"), (200, 200)), [Wide()])  # type: ignore[list-item]


# --- the score function


@pytest.fixture
def entangled(monkeypatch: pytest.MonkeyPatch) -> Predicates:
    """A formula with an attribute in two leaves, which is not made one table."""
    monkeypatch.setattr(formulas, "MOST_JOINED", 0)
    found = Predicates.of(SCHEMA, ENTANGLED)
    assert not found.exact
    return found


def estimates(queries: Predicates, rows: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Answers and gradients by many keys."""
    layout = Layout(DOMAIN, [queries])
    assert layout.sampled

    def one(key: Any) -> Any:
        return jax.value_and_grad(lambda r: laid(layout, r, key)[0])(rows)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), count)))


def test_the_score_function_gradient_has_no_bias(entangled: Predicates) -> None:
    """The mean over many draws is within four standard errors of the gradient by enumeration, on the simplex: a
    gradient may add the same number to all values of an attribute, whose probabilities sum to 1."""
    rows = jnp.asarray(rows_of(2, 3))
    values, slopes = estimates(entangled, rows, 4000)
    exact = float(enumerated([entangled], rows)[0])
    assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values)) + 1e-6
    wanted = np.asarray(jax.grad(lambda r: enumerated([entangled], r)[0])(rows))
    starts = np.cumsum([0, *DOMAIN.sizes])
    for first, last in itertools.pairwise(starts):
        centred, true = (x[..., first:last] - x[..., first : first + 1] for x in (slopes, wanted))
        error = centred.std(axis=0) / np.sqrt(len(slopes))
        assert (np.abs(centred.mean(axis=0) - true) <= 4 * error + 1e-6).all()
    assert np.abs(wanted - wanted[:, :1]).max() > 0.05  # there is something to find


def test_slices_and_the_baseline_reduce_the_variance(entangled: Predicates) -> None:
    """Against independent draws without a baseline, of the same number."""
    rows = jnp.asarray(rows_of(2, 3))
    values, slopes = estimates(entangled, rows, 2000)
    rng, draws = np.random.default_rng(0), blocks.DRAWS
    plain_rows = np.asarray(rows, np.float64)
    starts = np.cumsum([0, *DOMAIN.sizes])
    plain, slope = [], []
    for _ in range(2000):
        codes = {
            i: np.stack(
                [
                    rng.choice(s, draws, p=r[starts[i] : starts[i + 1]] / r[starts[i] : starts[i + 1]].sum())
                    for r in plain_rows
                ]
            )
            for i, s in enumerate(DOMAIN.sizes)
        }
        held = entangled.formulas[0].holds(codes)
        plain.append(held.mean())
        slope.append(((held * (codes[1] == 0)).mean(axis=1) / plain_rows[:, starts[1]])[0] / len(plain_rows))
    assert values.std() < 0.8 * np.std(plain)
    assert slopes[:, 0, starts[1]].std() < 0.8 * np.std(slope)


def test_draws_repeat_without_a_key(entangled: Predicates) -> None:
    layout, rows = Layout(DOMAIN, [entangled]), jnp.asarray(rows_of(4, 0))
    np.testing.assert_array_equal(laid(layout, rows), laid(layout, rows))
    assert isinstance(layout.blocks[0], SampledBlock)
