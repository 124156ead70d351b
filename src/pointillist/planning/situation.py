"""A run as far as public facts fix it, for any epsilon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from pointillist.planning.features import Features, features_of
from pointillist.planning.made_up import Wanted
from pointillist.privacy.account import ledger_for
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import planned
from pointillist.privacy.facts import Facts, Outline, Phase
from pointillist.privacy.ledger import Ledger
from pointillist.queries.workload import Workload

__all__ = ["Situation"]


class Before(Protocol):
    """What comes before the rounds of a run, as far as public facts fix it."""

    @property
    def shown(self) -> float:
        """The part of delta for showing values that only one unit has."""

    def after(self, facts: Facts) -> Facts:
        """What is left for the rounds, by what is known before."""

    def before(self, outline: Outline) -> Outline:
        """The phases of all together, by those of the rounds alone."""

    def describe(self, facts: Facts) -> tuple[str, ...]:
        """What is done and what it costs, in words, by what is known before."""


@dataclass(frozen=True)
class Situation:
    """What is known of a run before it starts. The rows are a number that is public, or that somebody states.

    Attributes:
        method: the name of the method.
        wanted: the queries that are wanted, and what is known of the shape of columns.
        outline: the phases of the run.
        stage: what comes before it, if values are discovered or fine columns merged; else None.
        budget: what may be spent.
        rows: the number of rows.
        private: whether their true number is private, so that a share of the budget counts them.
        zcdp: whether the account is zCDP in any case.
    """

    method: str
    wanted: Wanted
    outline: Outline
    stage: Before | None
    budget: Budget
    rows: int
    private: bool
    zcdp: bool

    @property
    def workload(self) -> Workload:
        """The queries that are wanted."""
        return self.wanted.workload

    @property
    def shares(self) -> tuple[np.ndarray, ...] | None:
        """One-way marginals of a public table, if there is one."""
        return self.wanted.shares

    def at(self, epsilon: float) -> Situation:
        """The same with another epsilon.

        Args:
            epsilon: the privacy loss.
        """
        return replace(self, budget=replace(self.budget, epsilon=epsilon))

    @cached_property
    def facts(self) -> Facts:
        """What the run knows at its start."""
        return self.facts_before if self.stage is None else self.stage.after(self.facts_before)

    @cached_property
    def facts_before(self) -> Facts:
        """What is known before the stage."""
        known, shown = None if self.private else self.rows, 0.0 if self.stage is None else self.stage.shown
        outline = self.outline if self.stage is None else self.stage.before(self.outline)
        plain = Ledger(self.budget, None, shown)
        whole = plain if self.zcdp else ledger_for(self.budget, known, outline, shown)
        return planned(whole, self.rows, private=self.private)

    @property
    def stages(self) -> tuple[str, ...]:
        """What comes before the rounds, in words."""
        return () if self.stage is None else self.stage.describe(self.facts_before)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the run."""
        return self.outline(self.facts)

    @cached_property
    def features(self) -> Features | None:
        """What a law looks at; None if no law holds for the workload."""
        return features_of(self.wanted, self.facts)
