"""A run as far as public facts fix it, for any epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pointillist.planning.features import Features, features_of
from pointillist.privacy.account import ledger_for
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import planned
from pointillist.privacy.facts import Facts, Outline, Phase
from pointillist.privacy.ledger import Ledger
from pointillist.queries.workload import Workload

__all__ = ["Situation"]


@dataclass(frozen=True)
class Situation:
    """What is known of a run before it starts. The rows are a number that is public, or that somebody states.

    Attributes:
        method: the name of the method.
        workload: the queries that are wanted.
        outline: the phases of the run.
        after: what is left for it after the stage that discovers values and merges fine columns, if there is one.
        budget: what may be spent.
        rows: the number of rows.
        private: whether their true number is private, so that a share of the budget counts them.
        zcdp: whether the account is zCDP in any case.
        shares: one-way marginals of a public table, if there is one.
        shown: the part of delta for showing values that only one unit has.
        stages: what is done before the run, in words, by what is known before it.
    """

    method: str
    workload: Workload
    outline: Outline
    after: Callable[[Facts], Facts]
    budget: Budget
    rows: int
    private: bool
    zcdp: bool
    shares: tuple[np.ndarray, ...] | None = None
    shown: float = 0.0
    stages: Callable[[Facts], tuple[str, ...]] = lambda facts: ()

    def at(self, epsilon: float) -> Situation:
        """The same with another epsilon.

        Args:
            epsilon: the privacy loss.
        """
        return replace(self, budget=replace(self.budget, epsilon=epsilon))

    @cached_property
    def facts(self) -> Facts:
        """What the run knows at its start."""
        return self.after(self.facts_before)

    @cached_property
    def facts_before(self) -> Facts:
        """What is known before the stage."""
        known, plain = None if self.private else self.rows, Ledger(self.budget, None, self.shown)
        whole = plain if self.zcdp else ledger_for(self.budget, known, self._whole, self.shown)
        return planned(whole, self.rows, private=self.private)

    def _whole(self, facts: Facts) -> tuple[Phase, ...]:
        """The phases by what is known before the stage."""
        return self.outline(self.after(facts))

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the run."""
        return self.outline(self.facts)

    @cached_property
    def features(self) -> Features | None:
        """What a law looks at; None if no law holds for the workload."""
        return features_of(self.workload, self.facts, self.shares)
