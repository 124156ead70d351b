"""What is public before a run looks at the data: facts, and the outline of what a strategy will spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pointillist.data.neighbours import Relation

__all__ = ["Facts", "Outline", "Phase"]


@dataclass(frozen=True)
class Facts:
    """What a run knows before its first step.

    Attributes:
        total: the number of rows; exact where it is public, else a measured count.
        rho: what the steps may spend in all.
        relation: which tables are neighbours.
        total_sigma: the standard deviation of the noise on ``total``; 0 where it is public.
        rows_per_unit: the largest number of rows that one unit adds or removes; 1 without a unit.
    """

    total: int
    rho: float
    relation: Relation = Relation.REPLACE
    total_sigma: float = 0.0
    rows_per_unit: int = 1

    @property
    def rho_per_row(self) -> float:
        """The rho that would buy the same noise if a unit were one row: what plans of rounds are judged by."""
        return self.rho / self.rows_per_unit**2


@dataclass(frozen=True)
class Phase:
    """Some equal rounds of a run, as far as they are known before it starts.

    Attributes:
        rounds: the number of rounds.
        picks: how many queries (or groups of them) a round selects or measures.
        selects: whether the data chooses the picks, at a price.
        noise: the smallest and the largest standard deviation of the measurements; None if nothing is measured.
        candidates: if no candidate may be selected twice, the number of candidates; else None.
        in_rows: the noise as a number of rows on a cell, the smallest and the largest, where what is measured is not
            a number of rows itself; None where it is.
        what: what is measured, in words; empty for queries of the workload.
    """

    rounds: int
    picks: int
    selects: bool
    noise: tuple[float, float] | None
    candidates: int | None = None
    in_rows: tuple[float, float] | None = None
    what: str = ""

    @property
    def noise_in_rows(self) -> tuple[float, float] | None:
        """The smallest and the largest noise on a cell, as a number of rows; None if nothing is measured."""
        return self.noise if self.in_rows is None else self.in_rows


Outline = Callable[[Facts], tuple[Phase, ...]]
"""The phases of a run under the given facts. Nothing in it depends on the data."""
