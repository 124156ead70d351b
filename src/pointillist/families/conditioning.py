"""Rows drawn on a condition: some attributes have one of the given values, the others follow the model.

A condition gives each code of such an attribute the probability with which it is kept: 1 or 0, or something between for
a code that stands for several values of which some are wanted.

A family that is :class:`Conditional` draws such rows exactly, however rare they are. For any other family rows are
drawn and those that do not meet the condition are thrown away, which is exact, too, but finds common rows only.
Nothing is spent: the model is already private.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.errors import Shown
from pointillist.framework import Family

__all__ = ["LEAST", "Allowed", "Conditional", "Joint", "Mixture", "draw_given", "kept_shares", "require_possible"]

Allowed = Mapping[int, np.ndarray]
"""For some attributes, by position: the probability with which each of their codes is kept, 0 to 1."""

LEAST = 1e-9
"""Conditions to which the model gives a smaller share are refused: it knows nothing about such rows."""

BATCH = 10_000
MOST_BATCHES = 300
"""Rows that are drawn at a time, and how often, where a family cannot draw on a condition by itself."""


@runtime_checkable
class Conditional(Protocol):
    """A family that draws rows on a condition by itself."""

    def sample_given(
        self, rng: np.random.Generator, params: Any, rows: int, allowed: Allowed
    ) -> tuple[np.ndarray, ...]:
        """Rows drawn from D and kept with the probabilities of the condition: one array of codes per attribute."""
        ...


@dataclass(frozen=True)
class Joint:
    """Some attributes, and which of their codes go together.

    Attributes:
        positions: the attributes.
        mask: whether each combination of their codes is allowed: one axis per attribute.
    """

    positions: tuple[int, ...]
    mask: np.ndarray


@runtime_checkable
class Mixture(Protocol):
    """A family of mixtures of product distributions: attributes are independent within a row of the mixture."""

    def sample_labelled(
        self, rng: np.random.Generator, params: Any, rows: int
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Rows drawn from D, and from which row of the mixture each of them comes."""
        ...

    def sample_masked(
        self, rng: np.random.Generator, params: Any, rows: int, joints: Sequence[Joint], allowed: Allowed | None
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]:
        """Rows drawn from D, on a condition or on none; the same rows with the attributes of each joint drawn again,
        from the same row of the mixture, where their combination is not allowed; and from which row each comes."""
        ...

    def expected(self, params: Any, scopes: Iterable[Attributes]) -> Iterator[np.ndarray]:
        """The flat marginal of D over each scope, which rows that are drawn have on average."""
        ...


def draw_given(
    family: Family[Any], rng: np.random.Generator, params: Any, rows: int, allowed: Allowed
) -> tuple[np.ndarray, ...]:
    """Rows of a model on a condition: one array of codes per attribute.

    Args:
        family: the family of the model.
        rng: where randomness comes from.
        params: the model.
        rows: the number of rows.
        allowed: the condition.
    """
    if isinstance(family, Conditional):
        return family.sample_given(rng, params, rows, allowed)
    kept: list[tuple[np.ndarray, ...]] = []
    found = 0
    for _ in range(MOST_BATCHES):
        codes = family.sample(rng, params, BATCH)
        good = rng.random(BATCH) < kept_shares(codes, allowed)
        kept.append(tuple(one[good] for one in codes))
        found += int(good.sum())
        if found >= rows:
            return tuple(np.concatenate(parts)[:rows] for parts in zip(*kept, strict=True))
    require_possible(found / (BATCH * MOST_BATCHES), rows / (BATCH * MOST_BATCHES))
    raise AssertionError("too few rows were found, and yet enough")


def kept_shares(codes: tuple[np.ndarray, ...], allowed: Allowed) -> np.ndarray:
    """The probability with which each record is kept, for records given as one array of codes per attribute."""
    kept: np.ndarray = np.ones(len(codes[0]))
    for attribute, shares in allowed.items():
        kept *= shares[codes[attribute]]
    return kept


def require_possible(share: float, least: float = LEAST) -> None:
    """Refuse a condition that (almost) no row of the model meets.

    Args:
        share: the share of the model's rows that meet it.
        least: the smallest share for which rows can be drawn.
    """
    rule = f"must be a condition that the model gives a share of at least {least:.2g}"
    check(share >= least, "given", Shown(f"a share of {share:.2g}"), rule, "give more common values, or fewer of them")
