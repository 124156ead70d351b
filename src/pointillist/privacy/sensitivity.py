"""What one unit can change: the one place where the sensitivity of a row becomes that of all rows of a unit.

Queries and score rules state what one row can change. A unit adds or removes at most m rows. They can be added one
after the other, so that a count or a score changes by at most m times as much, and the squared length of a vector of
counts by m^2 times as much; m equal rows attain it. Without a unit m is 1.
"""

from __future__ import annotations

from typing import Protocol

from pointillist.data.neighbours import Relation
from pointillist.privacy.scores import ScoreRule
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.candidates import Candidates
from pointillist.queries.marginal import Marginal

__all__ = ["Neighbourhood", "of_counts", "of_score", "of_total", "square_of_counts", "square_of_values"]


class Neighbourhood(Protocol):
    """Which tables are neighbours: a budget, or the facts of a run."""

    @property
    def relation(self) -> Relation:
        """The relation."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """m, the largest number of rows that one unit adds or removes; 1 without a unit."""
        ...


def of_counts(queries: Queries | Candidates, known: Neighbourhood) -> Sensitivity:
    """What one unit can change in the counts of queries, or in those of any one candidate.

    Args:
        queries: the queries or candidates.
        known: which tables are neighbours.
    """
    return queries.sensitivity(known.relation).of_rows(known.rows_per_unit)


def square_of_counts(queries: Queries | Candidates, known: Neighbourhood) -> int:
    """The squared L2 sensitivity that noise on these counts is scaled to: never below that of a single count.

    Args:
        queries: the queries or candidates.
        known: which tables are neighbours.
    """
    return max(of_total(known), of_counts(queries, known).l2_squared)


def of_score(rule: ScoreRule, candidates: Candidates, known: Neighbourhood) -> int:
    """What one unit can change in any score, at least the change of a single count.

    Args:
        rule: how candidates are scored.
        candidates: the candidates.
        known: which tables are neighbours.
    """
    return max(1, rule.sensitivity(candidates, known.relation)) * known.rows_per_unit


def of_total(known: Neighbourhood) -> int:
    """The squared change of the number of rows.

    Args:
        known: which tables are neighbours.
    """
    return known.rows_per_unit**2


def square_of_values(known: Neighbourhood) -> int:
    """The squared L2 change of the counts of different values: a row has one value, as in a one-way marginal.

    It is that of the values which both of two neighbouring tables have (:mod:`pointillist.privacy.thresholds`).

    Args:
        known: which tables are neighbours.
    """
    return square_of_counts(Marginal((0,), (2,)), known)
