"""The curator: the only door to private data. It charges the ledger first, then looks and draws."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from pointillist.data.neighbours import Relation
from pointillist.data.sources import Source
from pointillist.errors import InputError, Shown, check
from pointillist.privacy.budget import Budget
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.ledger import GAUSSIAN, Entry, Ledger
from pointillist.privacy.mechanisms import Noise, OpenDPNoise, gaussian_scale, selection_scale
from pointillist.privacy.schedule import Schedule, Spend
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.counting import exact_counts
from pointillist.queries.workload import Workload

__all__ = ["Curator", "Door"]

TOTAL_SHARE = 0.02
"""Under add-remove: the share of rho that pays for the noisy number of rows, to which all answers are scaled."""

MOST_ROWS = 10**9
"""Under add-remove, where n is private: the size of table up to which a plan of rounds is judged to be useful."""


class Door(Protocol):
    """What the loop sees of the private side: a curator, or a stand-in that plays a transcript back."""

    @property
    def workload(self) -> Workload: ...

    @property
    def total_sigma(self) -> float:
        """The standard deviation of the noise on the number of rows; 0 where it is public."""
        ...

    def open(self) -> tuple[int, float]:
        """The (public or noisy) number of rows and the rho that is left for the rounds."""
        ...

    def select(
        self, estimate: np.ndarray, rule: ScoreRule, rho: float, count: int, taken: Collection[int] | None
    ) -> tuple[Pick, ...]:
        """``count`` different picks of badly answered groups outside ``taken``, each for ``rho``.

        None as ``taken`` lets any group be picked any number of times.
        """
        ...

    def measure(self, picks: Sequence[Pick], rho: float) -> tuple[tuple[np.ndarray, ...], float]:
        """Noisy integer counts of every pick's cells, each for ``rho``, and the noise's standard deviation."""
        ...


class Curator:
    """Holds the private source and answers only through charged mechanisms."""

    def __init__(
        self, source: Source, workload: Workload, budget: Budget, noise: Noise | None = None,
        least_scale: float | None = None,
    ) -> None:  # fmt: skip
        if source.domain != workload.domain:
            raise ValueError("the source and the workload have different domains")
        self.workload = workload
        self.relation = budget.relation
        self.noise: Noise = OpenDPNoise() if noise is None else noise
        self.ledger = Ledger(budget, least_scale)
        self._source = source
        self._opened: tuple[int, float] | None = None

    @classmethod
    def for_schedule(
        cls, source: Source, workload: Workload, budget: Budget, schedule: Schedule, noise: Noise | None = None
    ) -> Curator:
        """A curator with the larger budget of Gaussian accounting where the schedule allows for it: where it selects
        nothing by the data, and no noise is below one of the least scales. All of this is known from public facts."""
        plain = cls(source, workload, budget, noise)
        if all(spend.select_rho is None and spend.measure_rho > 0 for spend in plain._spends(schedule, MOST_ROWS)):
            for least_scale in LEAST_SCALES:
                curator = cls(source, workload, budget, noise, least_scale)
                if curator.ledger.limit > plain.ledger.limit and curator._smallest_scale(schedule) >= least_scale:
                    return curator
        return plain

    def _spends(self, schedule: Schedule, rows: int) -> Iterator[Spend]:
        """What the rounds of a schedule would spend on a table of so many rows (n, where it is public)."""
        rows = rows if self.public_rows is None else self.public_rows
        t = 0
        while (spend := schedule.spend(t, self.planned_rho, rows)) is not None:
            yield spend
            t += 1

    def _smallest_scale(self, schedule: Schedule) -> float:
        """The smallest noise of a schedule that only measures. Where n is private, a table of few rows may get fewer
        measurements with less noise each: then the smallest for 1, 2, 4, ... rows, and of the noisy n itself."""
        square = self.workload.l2_sensitivity_squared(self.relation)
        sizes = [MOST_ROWS] if self.public_rows is not None else [2**k for k in range(MOST_ROWS.bit_length())]
        scales = [gaussian_scale(s.measure_rho, square) for rows in sizes for s in self._spends(schedule, rows)]
        if self.public_rows is None:
            scales.append(gaussian_scale(self.ledger.limit * TOTAL_SHARE, 1))
        return min(scales, default=0.0)

    @property
    def public_rows(self) -> int | None:
        """n where it is public: under replace."""
        return self._source.rows if self.relation is Relation.REPLACE else None

    @property
    def total_sigma(self) -> float:
        return 0.0 if self.public_rows is not None else gaussian_scale(self._total_rho, 1)

    @property
    def _total_rho(self) -> float:
        """What the noisy number of rows costs."""
        return self._with_room(self.ledger.limit * TOTAL_SHARE, 1)

    def _with_room(self, rho: float, square: int) -> float:
        """rho, or less where its noise would be below the least scale of the account."""
        least = self.ledger.least_scale
        return rho if least is None else min(rho, square / (2 * least**2))

    @cached_property
    def _counts(self) -> np.ndarray:
        return exact_counts(self._source, self.workload)

    def open(self) -> tuple[int, float]:
        """The number of rows (n under replace; a measured count, paid for once, under add-remove) and the rho for
        the rounds."""
        if self._opened is None:
            if self.public_rows is not None:
                total = self.public_rows
            else:
                # One row more or less changes the count by 1.
                self._charge_gaussian("number of rows", self._total_rho, 1)
                total = max(1, int(self.noise.add_gaussian(np.array([self._source.rows]), self._total_rho, 1)[0]))
            self._opened = total, self.ledger.left
        return self._opened

    @property
    def planned_rho(self) -> float:
        """What the rounds will have, known before anything is spent."""
        return self.ledger.limit if self.public_rows is not None else self.ledger.limit - self._total_rho

    def require_useful(self, measure_rho: float, rounds: int) -> None:
        """Refuse a plan whose measurements would drown in noise; spends nothing."""
        rows = MOST_ROWS if self.public_rows is None else self.public_rows
        sigma = math.sqrt(self.workload.l2_sensitivity_squared(self.relation) / (2 * measure_rho))
        rule = f"must leave each measurement a noise below {rows:,} rows (it would be {sigma:,.0f})"
        if rounds > 1:
            check(sigma <= rows, "rounds", rounds, rule, "use fewer rounds or a larger epsilon")
        check(sigma <= rows, "epsilon", self.ledger.budget.epsilon, rule, "use a larger epsilon or a smaller workload")

    def select(
        self, estimate: np.ndarray, rule: ScoreRule, rho: float, count: int, taken: Collection[int] | None
    ) -> tuple[Pick, ...]:
        _require_finite(estimate, self.workload.queries)
        total, _ = self.open()
        rounded = np.rint(np.clip(estimate, -1.0, 2.0) * total).astype(np.int64)  # public
        free = np.ones(self.workload.groups, bool)
        free[list(taken or ())] = False
        check(taken is None or int(free.sum()) >= count, "rounds", Shown("more picks"),
              f"must pick at most {self.workload.groups:,} groups, each once",
              "use fewer rounds or picks, or group by query")  # fmt: skip
        sensitivity = rule.sensitivity(self.relation)
        scale = selection_scale(rho, sensitivity)
        picks: list[Pick] = []
        for _ in range(count):
            self.ledger.charge(Entry("selection", "exponential mechanism", rho, sensitivity, scale))
            if not picks:
                scores = rule.scores(self.workload, self._counts, rounded, scale)
                if scores.shape != (self.workload.groups * rule.candidates_per_group,):
                    raise ValueError("a score rule must give one score per candidate")
            candidates = np.flatnonzero(np.repeat(free, rule.candidates_per_group))
            pick = rule.decode(int(candidates[self.noise.select(scores[candidates], rho, sensitivity)]))
            free[pick.group] = taken is None
            picks.append(pick)
        return tuple(picks)

    def measure(self, picks: Sequence[Pick], rho: float) -> tuple[tuple[np.ndarray, ...], float]:
        square = self.workload.l2_sensitivity_squared(self.relation)
        # A plan that follows from the noisy number of rows may ask for less noise than the account allows.
        rho = self._with_room(rho, square)
        noisy = []
        for pick in picks:
            self._charge_gaussian("measurement", rho, square)
            cells = self.workload.group(pick.group).flat
            noisy.append(self.noise.add_gaussian(self._counts[cells], rho, square))
        return tuple(noisy), gaussian_scale(rho, square)

    def _charge_gaussian(self, label: str, rho: float, square: int) -> None:
        scale = gaussian_scale(rho, square)
        self.ledger.charge(Entry(label, GAUSSIAN, rho, math.sqrt(square), scale))


def _require_finite(estimate: np.ndarray, queries: int) -> None:
    """Checked before anything is charged."""
    if estimate.shape != (queries,) or not np.all(np.isfinite(estimate)):
        raise InputError("estimate", Shown("others"), f"must be {queries:,} finite answers", "use a smaller step")
