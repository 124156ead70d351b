"""Tables of multiple imputation: rows of the model, moved by the error that a simulated run shows.

If f are the answers of the model, p those of the pilot and r those of a replicate, r - p is an error like that of the
model, in bias as well as in spread. Rows are drawn from the model and matched (:mod:`pointillist.release.matching`) to
f + w (r - p) or f - w (r - p), in turn, instead of its own answers. So the mean of the tables is near the model, and
their variance is w^2 times the mean of (r - p)^2, which counts bias: in which direction the model is off is known too
badly to move all tables that way. The factor w is above 1 because a simulated run has less to lose than the real one:
the pilot is a model, and smoother than the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.answers.replicates import Replicate
from pointillist.data.columns import Column, Merged
from pointillist.data.domain import Attributes
from pointillist.data.schema import Schema
from pointillist.families.conditioning import Allowed, Joint, Mixture

__all__ = ["Imputed"]

WIDENED = 1.4
"""w. Chosen on the tables of the coverage benchmark with other seeds, so that intervals of regression slopes hold."""


@dataclass(frozen=True)
class Imputed:
    """A model whose answers are moved by the error of a replicate.

    Attributes:
        model: the model of the release.
        pilot: the model that the replicate repeats.
        replicate: the replicate.
        sign: 1 or -1, the direction.
    """

    model: Replicate
    pilot: Replicate
    replicate: Replicate
    sign: int

    @property
    def step(self) -> float:
        """By how many times the error of the replicate the answers are moved."""
        return WIDENED * self.sign

    @property
    def family(self) -> Any:
        """The family that rows are drawn from. Other families than mixtures have no rows that could be matched."""
        return Moved(self) if isinstance(self.model.family, Mixture) else self.replicate.family

    @property
    def params(self) -> Any:
        """The parameters that rows are drawn with."""
        return (self.model if isinstance(self.model.family, Mixture) else self.replicate).params

    @property
    def schema(self) -> Schema:
        """The columns, with the shares inside of merged groups moved alike."""
        pairs = zip(self.model.schema.columns, self.replicate.schema.columns, strict=True)
        return replace(self.model.schema, columns=tuple(_moved(own, other, self.step) for own, other in pairs))


def _moved(own: Column, other: Column, step: float) -> Column:
    if not isinstance(own, Merged) or not isinstance(other, Merged):
        return own
    before = np.array(own.shares)
    shares = np.maximum(before + step * (np.array(other.shares) - before), 0.0)
    sums = np.bincount(own.lookup, shares)[own.lookup]
    kept = np.where(sums > 0, shares / np.where(sums > 0, sums, 1.0), own.shares)
    return replace(own, shares=tuple(kept.tolist()))


@dataclass(frozen=True)
class Moved:
    """A :class:`~pointillist.families.conditioning.Mixture` that draws the rows of the model, and expects moved answers
    of them. All that a mixture has is written out here: what `__getattr__` returns does not make one since Python 3.12.

    Attributes:
        imputed: the model and what it is moved by.
    """

    imputed: Imputed

    @property
    def base(self) -> Any:
        """The family of the model."""
        return self.imputed.model.family

    def sample_labelled(
        self, rng: np.random.Generator, params: Any, rows: int
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Rows of the model, and from which row of the mixture each of them comes."""
        found: tuple[tuple[np.ndarray, ...], np.ndarray] = self.base.sample_labelled(rng, params, rows)
        return found

    def sample_masked(
        self, rng: np.random.Generator, params: Any, rows: int, joints: Sequence[Joint], allowed: Allowed | None
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]:
        """The same, and with some attributes drawn again where their combination is not allowed."""
        found: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]
        found = self.base.sample_masked(rng, params, rows, joints, allowed)
        return found

    def expected(self, params: Any, scopes: Iterable[Attributes]) -> Iterator[np.ndarray]:
        """The flat marginals, moved and made possible."""
        wanted = tuple(scopes)
        every = (self.imputed.model, self.imputed.pilot, self.imputed.replicate)
        parts = [one.family.expected(one.params, wanted) for one in every]  # type: ignore[attr-defined]
        for own, pilot, other in zip(*parts, strict=True):
            moved = np.maximum(own + self.imputed.step * (other - pilot), 0.0)
            yield moved / moved.sum()
