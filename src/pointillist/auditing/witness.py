"""The auditor at the door: what each released value says about which of two known tables is behind it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from pointillist.auditing.tables import Neighbours
from pointillist.data.neighbours import Relation
from pointillist.privacy.curator import Ask, Door, Found, OpenDoor, Seek
from pointillist.privacy.facts import Facts
from pointillist.privacy.mechanisms import Noise
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates
from pointillist.queries.measurement import Measurement

__all__ = ["CountedNoise", "Witness"]


class Witness:
    """A door that hands everything on to another one and adds up the log-likelihood ratio of what comes out.

    It uses the released values, what the loop hands in (estimates, which follow from released values) and the true
    counts of both made-up tables. It does not matter which of the two is behind the door.

    Args:
        door: a curator, or a transcript that is played back.
        pair: the two tables.

    Attributes:
        ratio: the log-likelihood of the transcript under the second table minus that under the first.
        information: the sum over all steps of the expected ratio of the step, if the second table were the true one.
        likely: upper bounds of the log-likelihood of the transcript under each table.
        digest: a hash of everything that came out.
    """

    def __init__(self, door: Door, pair: Neighbours) -> None:
        self.ratio = 0.0
        self.information = 0.0
        self.likely = [0.0, 0.0]
        self.digest = hashlib.blake2b(digest_size=16)
        self._door = door
        self._pair = pair
        self._opened = False
        self._flat: tuple[tuple[Queries, ...], tuple[np.ndarray, np.ndarray]] | None = None

    def open(self) -> Facts:
        """The facts; a measured number of rows is a Gaussian measurement like any other."""
        facts = self._door.open()
        if not self._opened and facts.total_sigma:
            totals = [np.array([weights.sum()]) for weights in self._pair.weights]
            self._gaussian(np.array([facts.total]), totals[0], totals[1], facts.total_sigma)
        self._opened = True
        return facts

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """Noisy counts: (x - c)^2 / (2 sigma^2) is the log-likelihood, up to a constant."""
        measured = self._door.measure(asked)
        for one in measured:
            self._gaussian(one.counts, *self._pair.counts(one.queries), one.sigma)
        return measured

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        """Picks: each has the exact probabilities of the exponential mechanism, under either table."""
        self.open()
        heard = _Overheard(rule)
        found = self._door.select(candidates, estimate, heard, rho, picks, taken)
        counts = self._counts(candidates.queries)
        scores = [rule.scores(candidates, each, heard.estimate, heard.scale) / heard.scale for each in counts]
        free = np.ones(len(candidates), bool)
        free[[place for place in map(candidates.find, taken or ()) if place is not None]] = False
        for pick in found:
            chosen = candidates.find(pick.queries)
            if chosen is None:
                raise ValueError("a pick must be one of the candidates")
            open_places = np.repeat(free, rule.sides)
            first, second = (_log_shares(np.where(open_places, each, -np.inf)) for each in scores)
            place = chosen * rule.sides + (1 - pick.sign) // 2
            self._add(float(first[place]), float(second[place]), _divergence(second, first))
            self.digest.update(place.to_bytes(8, "little"))
            free[chosen] = taken is None
        return found

    def discover(self, asked: Sequence[Seek]) -> tuple[Found, ...]:
        """Thresholded noisy counts: a value that is shown has the likelihood of its noisy count, and one that is not
        shown that of all noisy counts below the threshold. A value that does not occur is never shown."""
        self.open()
        found = cast(OpenDoor, self._door).discover(asked)
        for one in found:
            noisy = dict(zip(one.values, one.counts, strict=True))
            for value, counts in self._pair.values(one.column).items():
                shown = noisy.pop(value, None)
                first, second = (_log_outcome(shown, count, one) for count in counts)
                change = 0 if shown is None else counts[1] - counts[0]
                self._add(first, second, change**2 / (2 * one.sigma**2))
            if noisy:
                raise ValueError("only values of the made-up tables can be shown")
            self.digest.update(repr((one.values, one.counts)).encode())
        return found

    def _gaussian(self, noisy: np.ndarray, first: np.ndarray, second: np.ndarray, sigma: float) -> None:
        # The discrete Gaussian has Pr[x] = exp(-x^2 / 2 sigma^2) / Z, with Z at least 1 and sigma sqrt(2 pi).
        constant = len(noisy) * math.log(max(1.0, sigma * math.sqrt(2 * math.pi)))
        square = 2 * sigma**2
        logs = [-float(((noisy - each) ** 2.0).sum()) / square - constant for each in (first, second)]
        self._add(logs[0], logs[1], float(((first - second) ** 2).sum()) / square)
        self.digest.update(noisy.tobytes())

    def _add(self, first: float, second: float, information: float) -> None:
        self.ratio += second - first
        self.likely[0] += first
        self.likely[1] += second
        self.information += information

    def _counts(self, queries: tuple[Queries, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The flat vectors of both tables; the last ones are kept for the next selection."""
        if self._flat is None or self._flat[0] is not queries:
            firsts, seconds = zip(*map(self._pair.counts, queries), strict=True)
            self._flat = queries, (np.concatenate(firsts), np.concatenate(seconds))
        return self._flat[1]


class _Overheard:
    """A score rule that keeps the public values that it is called with: the estimate in whole counts and the scale."""

    def __init__(self, rule: ScoreRule) -> None:
        self._rule = rule
        self.sides = rule.sides
        self.estimate = np.zeros(0, np.int64)
        self.scale = math.inf

    def sensitivity(self, candidates: Candidates, relation: Relation) -> int:
        return self._rule.sensitivity(candidates, relation)

    def scores(self, candidates: Candidates, counts: np.ndarray, estimate: np.ndarray, scale: float) -> np.ndarray:
        self.estimate, self.scale = estimate, scale
        return self._rule.scores(candidates, counts, estimate, scale)


@dataclass
class CountedNoise:
    """Noise that adds up what its draws cost, to be compared with what was charged.

    Attributes:
        inner: where the noise comes from.
        drawn: the sum of rho over all draws so far.
    """

    inner: Noise
    drawn: float = 0.0

    @property
    def description(self) -> str:
        """That of the noise itself."""
        return self.inner.description

    @property
    def private(self) -> bool:
        """That of the noise itself."""
        return self.inner.private

    @property
    def state(self) -> dict[str, Any] | None:
        """That of the noise itself."""
        return self.inner.state

    def add_gaussian(self, counts: np.ndarray, rho: float, sensitivity_squared: int) -> np.ndarray:
        """Noisy counts."""
        self.drawn += rho
        return self.inner.add_gaussian(counts, rho, sensitivity_squared)

    def select(self, scores: np.ndarray, rho: float, sensitivity: int) -> int:
        """The position of a large score."""
        self.drawn += rho
        return self.inner.select(scores, rho, sensitivity)


def _log_outcome(shown: int | None, count: int, found: Found) -> float:
    """The log-likelihood that a value with a count is shown with a noisy count, or that it is not shown."""
    if count == 0:
        return 0.0 if shown is None else -math.inf
    if shown is None:
        return _log_below(found.threshold - count, found.sigma)
    return -((shown - count) ** 2) / (2 * found.sigma**2) - math.log(max(1.0, found.sigma * math.sqrt(2 * math.pi)))


@lru_cache(maxsize=1024)
def _log_below(t: int, sigma: float) -> float:
    """The logarithm of Pr[noise < t] for the discrete Gaussian, summed up."""
    reach = math.ceil(40 * sigma) + 1
    noises = np.arange(-reach, reach + 1)
    logs = -(noises.astype(float) ** 2) / (2 * sigma**2)
    below = logs[noises < t]
    if not len(below):
        return -(float(t - 1) ** 2) / (2 * sigma**2)
    return float(np.logaddexp.reduce(below) - np.logaddexp.reduce(logs))


def _log_shares(scores: np.ndarray) -> np.ndarray:
    """The logarithms of the shares exp(score) / sum of all."""
    shifted = scores - scores.max()
    logs: np.ndarray = shifted - math.log(float(np.exp(shifted).sum()))
    return logs


def _divergence(second: np.ndarray, first: np.ndarray) -> float:
    """The expected log ratio under the second of two distributions, given as logarithms."""
    there = np.isfinite(second)
    return float((np.exp(second[there]) * (second[there] - first[there])).sum())
