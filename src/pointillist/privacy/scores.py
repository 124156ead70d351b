"""Score rules: how badly each candidate is answered. Each states its own sensitivity.

Scores are integers. The estimate is rounded to whole counts first (it is public), so that a rule's sensitivity is
an exact integer too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pointillist.data.neighbours import Relation
from pointillist.queries.workload import Grouping, Workload

__all__ = ["MaxError", "Pick", "ScoreRule", "SignedError", "UsefulError"]


@dataclass(frozen=True)
class Pick:
    """A selected group; ``sign`` says on which side the estimate errs, for rules that tell."""

    group: int
    sign: int = 1


class ScoreRule(Protocol):
    """Integer scores of candidates, from exact counts and a public estimate."""

    def sensitivity(self, relation: Relation) -> int:
        """How much one person can change any score."""
        ...

    def scores(self, workload: Workload, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        """One int64 score per candidate; candidates are numbered group by group.

        ``counts`` are private; ``estimate`` (whole counts) and the ``scale`` of the selection are public.
        """
        ...

    @property
    def candidates_per_group(self) -> int: ...

    def decode(self, candidate: int) -> Pick:
        """The group (and sign) behind a candidate's number."""
        ...


@dataclass(frozen=True)
class MaxError:
    """The paper's score n |q(P) - q(D)|; for a group of queries the largest of its cells.

    Sensitivity 1 under both relations: replacing, adding or removing one row changes each count by at most 1, and
    a maximum of absolute values changes by no more than the largest change of its terms.

    With ``prior``, single queries are drawn as Pr[q] ∝ pi(q) exp(score / scale) with the base measure
    pi(q) = q(D) + 1/n instead of the uniform one: most of a large workload's queries are close to 0 in the data
    and in D, and drawing one of them by chance wastes a round. pi is public, and ln pi enters the score as an
    offset that no person can change, so the sensitivity and the cost stay the same.
    """

    prior: bool = False
    candidates_per_group = 1

    def sensitivity(self, relation: Relation) -> int:
        return 1

    def scores(self, workload: Workload, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        errors = workload.max_per_group(np.abs(counts - estimate))
        if not self.prior or workload.grouping is Grouping.MARGINAL:
            return errors
        # The bound keeps the sum inside 64 bits; a scale for which it matters selects at random anyway.
        offset = np.rint(np.minimum(scale * np.log(np.maximum(estimate, 0) + 1.0), 2.0**61)).astype(np.int64)
        scores: np.ndarray = errors + offset
        return scores

    def decode(self, candidate: int) -> Pick:
        return Pick(candidate)


@dataclass(frozen=True)
class SignedError:
    """n (q(P) - q(D)) for every query and n (q(D) - q(P)) for its negation: tells on which side D errs.

    Sensitivity 1 under both relations, since one person changes a count by at most 1. For single queries only.
    """

    candidates_per_group = 2

    def sensitivity(self, relation: Relation) -> int:
        return 1

    def scores(self, workload: Workload, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        errors = counts - estimate
        both: np.ndarray = np.stack([errors, -errors], axis=1).ravel()
        return both

    def decode(self, candidate: int) -> Pick:
        return Pick(candidate // 2, 1 - 2 * (candidate % 2))


@dataclass(frozen=True)
class UsefulError:
    """AIM's score of a marginal: w (sum of its absolute errors - the sum that noise alone would leave), in counts.

    A marginal of c cells, measured with noise of standard deviation sigma, is left with about sqrt(2 / pi) sigma c. An
    error beyond that is worth measuring. ``weights`` are whole numbers, one per marginal: how much of the workload
    it informs. ``noise`` is sigma over the scale of the selection, which the schedule fixes.

    Sensitivity max(w) under add-remove, where one row changes one cell of a marginal by 1, and 2 max(w) under replace,
    where it changes two. The expected noise is a public offset, which no person can change.
    """

    weights: tuple[int, ...] = field(repr=False)  # thousands of them
    noise: float
    candidates_per_group = 1

    def sensitivity(self, relation: Relation) -> int:
        return max(self.weights) * (2 if relation is Relation.REPLACE else 1)

    def scores(self, workload: Workload, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        errors = np.add.reduceat(np.abs(counts - estimate), workload.offsets[:-1])
        cells = np.diff(workload.offsets)
        # The bound keeps the products inside 64 bits; a scale for which it matters selects at random anyway.
        expected = np.rint(np.minimum(math.sqrt(2 / math.pi) * self.noise * scale * cells, 2.0**40)).astype(np.int64)
        scores: np.ndarray = np.array(self.weights, np.int64) * (errors - expected)
        return scores

    def decode(self, candidate: int) -> Pick:
        return Pick(candidate)
