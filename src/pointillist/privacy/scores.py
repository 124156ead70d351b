"""Score rules: how badly each candidate is answered. Each states its own sensitivity.

Scores are integers. The estimate is rounded to whole counts first (it is public), so that a rule's sensitivity is
an exact integer too.

**Magnitudes.** A score that wrapped around in int64 would change by far more than its sensitivity. So every rule keeps
its scores within +-2^62:

- A count is at most the number of rows that were counted, one by one: below 2^53, which would take years.
- An estimate is a fraction clipped to [-1, 2], times the number of rows: a public one of at most 2^53, or a noisy one
  that was clamped to 1 .. 10^9. So it is at most 2^54, and an error |count - estimate| is below 2^55.
- Offsets are public. They are bounded by 2^61.
- Sums and products are bounded before they are formed, by public limits: min(error, limit) changes by no more than the
  error does, so a bound never raises a sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pointillist.checks import between
from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates

__all__ = ["MaxError", "Pick", "ScoreRule", "SignedError", "UsefulError"]

LIMIT = 2**61
"""The bound on sums, products and public offsets. Two of them, and an error, still fit into int64."""

MOST_WEIGHT = 2**31
"""The largest weight of a candidate."""


@dataclass(frozen=True)
class Pick:
    """A selected candidate; ``sign`` says on which side the estimate errs, for rules that score both sides."""

    queries: Queries
    sign: int = 1


class ScoreRule(Protocol):
    """Integer scores of candidates, from exact counts and a public estimate."""

    @property
    def sides(self) -> int:
        """The scores per candidate: 1, or 2 if its two signs are scored apart (+1 first, then -1)."""
        ...

    def sensitivity(self, candidates: Candidates, relation: Relation) -> int:
        """How much one person can change any score."""
        ...

    def scores(self, candidates: Candidates, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        """``sides`` int64 scores per candidate, candidate by candidate.

        ``counts`` are private; ``estimate`` (whole counts) and the ``scale`` of the selection are public. Both vectors
        hold the answers of ``candidates.queries``, one after the other.
        """
        ...


def _require_single(candidates: Candidates) -> None:
    """Checked before anything is charged."""
    if len(candidates) != candidates.size:
        raise ValueError("this rule scores single queries")


@dataclass(frozen=True)
class MaxError:
    """The paper's score n |q(P) - q(D)|; for a candidate of several queries the largest of them.

    Its sensitivity is the largest change of a single count: a maximum of absolute values changes by no more than the
    largest change of its terms.

    With ``base_measure``, single queries are drawn as Pr[q] ∝ pi(q) exp(score / scale) with the base measure
    pi(q) = q(D) + 1/n instead of the uniform one: most of a large workload's queries are close to 0 in the data
    and in D, and drawing one of them by chance wastes a round. pi is public, and ln pi enters the score as an
    offset that no person can change, so the sensitivity and the cost stay the same.
    """

    base_measure: bool = False
    sides = 1

    def sensitivity(self, candidates: Candidates, relation: Relation) -> int:
        if self.base_measure:
            _require_single(candidates)
        return candidates.sensitivity(relation).single

    def scores(self, candidates: Candidates, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        errors = candidates.largest(np.abs(counts - estimate))
        if not self.base_measure:
            return errors
        # Below 2^55 + 2^61. A scale for which the bound matters selects at random anyway.
        wanted = scale * np.log(np.maximum(estimate, 0) + 1.0)
        offset = np.rint(np.minimum(wanted, float(LIMIT))).astype(np.int64)
        scores: np.ndarray = errors + offset
        return scores


@dataclass(frozen=True)
class SignedError:
    """n (q(P) - q(D)) for every query and n (q(D) - q(P)) for its negation: shows on which side D errs.

    For single queries. Its sensitivity is the largest change of a single count.
    """

    sides = 2

    def sensitivity(self, candidates: Candidates, relation: Relation) -> int:
        _require_single(candidates)
        return candidates.sensitivity(relation).single

    def scores(self, candidates: Candidates, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        errors = counts - estimate  # below 2^55 on either side
        both: np.ndarray = np.stack([errors, -errors], axis=1).ravel()
        return both


@dataclass(frozen=True)
class UsefulError:
    """AIM's score of a marginal: w (sum of its absolute errors - the sum that noise alone would leave), in counts.

    A marginal of c cells, measured with noise of standard deviation sigma, is left with about sqrt(2 / pi) sigma c. An
    error beyond that is worth measuring. ``weights`` are whole numbers, one per candidate: how much of the workload
    it informs. ``noise`` is sigma over the scale of the selection, which the strategy fixes.

    Its sensitivity is max(w) times the L1 sensitivity of the candidates. The expected noise is a public offset, which
    no person can change. Each error, and the sum of a candidate's errors, is cut off where it could leave 64 bits.
    """

    weights: tuple[int, ...] = field(repr=False)  # thousands of them
    noise: float
    sides = 1

    def __post_init__(self) -> None:
        between("weights", min(self.weights), 0, MOST_WEIGHT, "give whole numbers such as 1")
        between("weights", max(self.weights), 1, MOST_WEIGHT, "give whole numbers such as 1")

    def sensitivity(self, candidates: Candidates, relation: Relation) -> int:
        return max(self.weights) * candidates.sensitivity(relation).l1

    def scores(self, candidates: Candidates, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        cells = candidates.sums(np.ones(len(counts), np.int64))
        each, most = LIMIT // int(cells.max()), LIMIT // max(self.weights)
        # A sum of c errors of at most 2^61 / c is at most 2^61; a weight w times at most 2^61 / w is, too.
        errors = np.minimum(candidates.sums(np.minimum(np.abs(counts - estimate), each)), most)
        # A scale for which the bound on the expected noise matters selects at random anyway.
        wanted = math.sqrt(2 / math.pi) * self.noise * scale * cells
        expected = np.rint(np.minimum(wanted, min(2.0**40, most))).astype(np.int64)
        # Both are within 0 .. 2^61 / w, so that a score is within +-2^61.
        scores: np.ndarray = np.array(self.weights, np.int64) * (errors - expected)
        return scores
