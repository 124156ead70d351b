"""Rows on a condition: every family draws the conditional distribution of its own answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.families.conditioning import Conditional, Joint, Mixture, draw_given
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.records import RecordList, Records
from pointillist.families.relaxed import Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.families.support import Support
from pointillist.queries.base import Queries
from pointillist.queries.marginal import Marginal

DOMAIN = Domain(("a", "b", "c"), (3, 4, 2))
WHOLE = Marginal.of(DOMAIN, ["a", "b", "c"])
ROWS = 40_000


class Stubborn:
    """A histogram that only draws rows without conditions."""

    def __init__(self) -> None:
        self.inner = Histogram(DOMAIN)
        self.domain = DOMAIN

    def footprint(self, queries: Sequence[Queries]) -> int:
        return self.inner.footprint(queries)

    def init(self, rng: np.random.Generator) -> np.ndarray:
        return self.inner.init(rng)

    def answers(self, params: np.ndarray, queries: Sequence[Queries]) -> np.ndarray:
        return self.inner.answers(params, queries)

    def sample(self, rng: np.random.Generator, params: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        return self.inner.sample(rng, params, rows)

    def to_arrays(self, params: np.ndarray) -> dict[str, np.ndarray]:
        return self.inner.to_arrays(params)

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.inner.from_arrays(arrays)

    def to_dict(self) -> dict[str, Any]:
        return self.inner.to_dict()


def models() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.full(24, 0.5))
    codes = np.stack([rng.integers(size, size=30) for size in DOMAIN.sizes])
    shares = rng.dirichlet(np.ones(30))
    softmax, network = Relaxed(SoftmaxRows(DOMAIN, 7, 3.0)), Relaxed(Generator(DOMAIN, 5, 4, (6,)))
    return {
        "histogram": (Histogram(DOMAIN), weights.reshape(DOMAIN.sizes)),
        "records": (RecordList(DOMAIN), Records(codes.T, shares)),
        "no records": (RecordList(DOMAIN), RecordList(DOMAIN).init(rng)),
        "support": (Support(DOMAIN, tuple(codes), shares), shares),
        "softmax": (softmax, softmax.init(rng)),
        "generator": (network, network.init(rng)),
        "by rejection": (Stubborn(), weights.reshape(DOMAIN.sizes)),
    }


def only(size: int, *codes: int) -> np.ndarray:
    shares = np.zeros(size)
    shares[list(codes)] = 1.0
    return shares


CONDITIONS = {
    "one": {0: only(3, 1)},
    "two": {1: only(4, 0, 3), 2: only(2, 1)},
    "shares": {0: np.array([0.1, 1.0, 0.0]), 1: np.array([1.0, 0.5, 0.2, 1.0])},
}


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("allowed", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_rows_follow_the_model_on_the_condition(name: str, allowed: dict[int, np.ndarray]) -> None:
    family, params = models()[name]
    assert isinstance(family, Conditional) == (name != "by rejection")
    joint = family.answers(params, [WHOLE]).reshape(DOMAIN.sizes).copy()
    for axis, shares in allowed.items():
        joint *= shares.reshape([-1 if n == axis else 1 for n in range(3)])
    wanted = joint / joint.sum()
    codes = draw_given(family, np.random.default_rng(1), params, ROWS, allowed)
    assert [len(one) for one in codes] == [ROWS] * 3
    for axis, shares in allowed.items():
        assert (shares[codes[axis]] > 0).all()
    drawn = np.bincount(np.ravel_multi_index(codes, DOMAIN.sizes), minlength=24).reshape(DOMAIN.sizes) / ROWS
    assert np.abs(drawn - wanted).max() < 0.02
    unconditional = family.answers(params, [WHOLE]).reshape(DOMAIN.sizes)
    assert np.abs(drawn - unconditional).max() > 0.02  # the test would notice a condition that is not met


def test_the_same_seed_gives_the_same_rows() -> None:
    family, params = models()["softmax"]
    first, second = (draw_given(family, np.random.default_rng(3), params, 50, {0: only(3, 2)}) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_rows_that_cannot_be_are_refused_in_one_sentence() -> None:
    records = Records(np.zeros((5, 3), np.int64), np.full(5, 0.2))
    point = np.zeros(DOMAIN.sizes)
    point[0, 0, 0] = 1.0
    support = Support(DOMAIN, tuple(np.zeros((3, 1), np.int64)), np.ones(1))
    clipped = Relaxed(ClippedRows(DOMAIN, 2))
    values = np.full((2, 9), -1.0)
    values[:, [0, 3, 7]] = 1.0
    impossible: list[tuple[Any, Any]] = [
        (RecordList(DOMAIN), records),
        (Histogram(DOMAIN), point),
        (support, np.ones(1)),
        (clipped, clipped.from_arrays({"values": values})),
        (Stubborn(), point),
    ]
    for family, params in impossible:
        with pytest.raises(InputError) as refused:
            draw_given(family, np.random.default_rng(0), params, 10, {0: only(3, 1), 1: only(4, 2)})
        assert str(refused.value).startswith("given must be a condition that the model gives a share of at least")
        assert str(refused.value).endswith("give more common values, or fewer of them.")


# --- masked products


MASK = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], bool)
"""Which codes of a and b go together."""


def masked_answers(model: SoftmaxRows, params: Any) -> np.ndarray:
    """The mixture in which a and b follow the product of each row, restricted to the mask."""
    probabilities = np.asarray(model.probabilities(params), np.float64)
    a, b, c = probabilities[:, :3], probabilities[:, 3:7], probabilities[:, 7:]
    both = a[:, :, None] * b[:, None, :] * MASK
    both /= both.sum(axis=(1, 2), keepdims=True)
    return np.asarray(np.einsum("rab,rc->abc", both, c).ravel() / len(probabilities))


def test_masked_products_are_those_of_the_rows_of_the_mixture() -> None:
    model = SoftmaxRows(DOMAIN, 5, 2.0)
    family = Relaxed(model)
    params = family.init(np.random.default_rng(3))
    assert isinstance(family, Mixture)
    assert not isinstance(Histogram(DOMAIN), Mixture)
    first, codes, _ = family.sample_masked(np.random.default_rng(0), params, ROWS, [Joint((0, 1), MASK)], None)
    assert MASK[codes[0], codes[1]].all()
    assert not MASK[first[0], first[1]].all()
    assert np.array_equal(codes[2], first[2])
    good = MASK[first[0], first[1]]
    assert all(np.array_equal(a[good], b[good]) for a, b in zip(first, codes, strict=True))
    found = np.bincount(np.ravel_multi_index(codes, DOMAIN.sizes), minlength=24) / ROWS
    assert np.abs(found - masked_answers(model, params)).sum() / 2 < 0.01
    plain = family.sample(np.random.default_rng(0), params, ROWS)
    assert all(np.array_equal(a, b) for a, b in zip(plain, first, strict=True))


def test_masked_products_keep_a_condition() -> None:
    family = Relaxed(SoftmaxRows(DOMAIN, 5, 2.0))
    params = family.init(np.random.default_rng(3))
    allowed = {1: np.array([0.0, 0.0, 1.0, 1.0])}
    _, codes, _ = family.sample_masked(np.random.default_rng(0), params, 2000, [Joint((0, 1), MASK)], allowed)
    assert MASK[codes[0], codes[1]].all()
    assert set(codes[1]) == {2, 3}


@pytest.mark.parametrize("mask", [np.zeros((3, 4), bool), np.eye(3, 4, 3, dtype=bool)])
def test_rows_of_the_mixture_that_allow_next_to_nothing_are_left(mask: np.ndarray) -> None:
    family = Relaxed(SoftmaxRows(DOMAIN, 2))
    import jax.numpy as jnp

    logits = jnp.zeros((2, 9)).at[:, 0].set(-50.0)  # a is never 0, and only 0 is allowed
    first, codes, _ = family.sample_masked(
        np.random.default_rng(0), {"logits": logits}, 100, [Joint((0, 1), mask)], None
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, codes, strict=True))
