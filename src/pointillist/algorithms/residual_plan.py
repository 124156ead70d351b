"""The best weights of residuals for a workload of marginals: the strategy of HDMM, and of ResidualPlanner.

Residuals R_A (:mod:`pointillist.queries.residuals`) are measured with weights w_A and noise of one scale sigma. Least
squares takes each marginal S of the workload together from the residuals of its subsets. The residual of A adds

    sigma^2 v_A / w_A^2,   v_A = prod_{i in A} (m_i - 1) / m_i^2  times  sum_{S >= A} 1 / prod_{i in S - A} m_i

to the sum of the variances of all cells of the workload. sigma^2 is the squared sensitivity over 2 rho. Under
add-remove that sensitivity is sum_A w_A^2 c_A with c_A = prod m_i (m_i - 1), so that the best weights are

    w_A^2 = sqrt(v_A / c_A),   and the error is   (sum_A sqrt(v_A c_A))^2 / (2 rho),

which is the least error of any strategy: the singular-value bound. Under replace it is the largest value over the ways
y in which two records can differ, max_y sum_A w_A^2 c_A(y). The best weights are those for a mixture of these ways, the
one for which the error is largest (:mod:`pointillist.algorithms.ways`). With more than 16 attributes they are those
that would be best if each scope were charged for itself.

No whole residual of no attributes (the number of rows) is measured: it is known, or was measured before.

McKenna, Miklau, Hay and Machanavajjhala, Optimizing error of high-dimensional statistical queries under differential
privacy, 2018. Xiao, He, Zhang and Kifer, An Optimal and Scalable Matrix Mechanism for Noisy Marginals under Convex Loss
Functions, 2023.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pointillist.algorithms.ways import Ways
from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.errors import Shown
from pointillist.queries.residuals import Residual, Residuals, rounded, square_before_rounding

__all__ = ["Plan", "plan_of"]

MOST_TIMES = 2.0
"""By how much rounding weights up to 1 may raise the squared sensitivity."""

MOST_RESIDUALS = 1_000_000
"""The largest number of subsets of all scopes: a marginal over k attributes has 2^k."""

CLOSE, MOST_STEPS = 1e-5, 5000
"""The mixture of differences is good enough when its weights lose no more than this share."""


@dataclass(frozen=True)
class Plan:
    """What is measured for a workload, and how far its answers will be off.

    Attributes:
        queries: the residuals with their weights.
        spread: v_A of each: what it adds to the sum of all variances for w_A = sigma = 1.
        cells: the number of cells of the workload.
    """

    queries: Residuals
    spread: tuple[float, ...]
    cells: int

    @property
    def unit(self) -> float:
        """sigma over the root-mean-square error of the least-squares counts."""
        pairs = zip(self.spread, self.queries.parts, strict=True)
        return math.sqrt(self.cells / math.fsum(spread / part.weight**2 for spread, part in pairs))


@lru_cache(maxsize=16)
def plan_of(sizes: tuple[int, ...], scopes: tuple[Attributes, ...], relation: Relation) -> Plan | None:
    """The best plan for marginals; None where all of their attributes have one value, and nothing is to be learned.

    Args:
        sizes: the number of values of each attribute of the domain.
        scopes: the attributes of each marginal of the workload.
        relation: which tables are neighbours.
    """
    subsets = sum(2 ** len(scope) for scope in scopes)
    rule = f"must have marginals with at most {MOST_RESIDUALS:,} subsets of their columns in all"
    check(subsets <= MOST_RESIDUALS, "workload", Shown(f"{subsets:,}"), rule, "use marginals of fewer columns")
    spread = _spread(sizes, scopes)
    if not spread:
        return None
    units = [Residual(scope, tuple(sizes[i] for i in scope), 1) for scope in spread]
    v = np.array(list(spread.values()))
    squares = _squares(units, v, relation)
    residuals = rounded(units, squares, least=1)
    rule, hint = "must be of marginals small enough for residuals in whole numbers", "use marginals of fewer cells"
    square = sum(part.square for part in residuals.parts)
    check(square <= MOST_TIMES * square_before_rounding(units), "workload", Shown("larger marginals"), rule, hint)
    return Plan(residuals, tuple(spread.values()), sum(math.prod(sizes[i] for i in one) for one in scopes))


def _spread(sizes: Sequence[int], scopes: Iterable[Attributes]) -> dict[Attributes, float]:
    """v_A for each set of attributes inside a scope; those with an attribute of one value have no residual."""
    found: dict[Attributes, float] = {}
    for scope in scopes:
        free = [i for i in scope if sizes[i] > 1]
        for k in range(1, len(free) + 1):
            for inside in itertools.combinations(free, k):
                outside = math.prod(sizes[i] for i in scope if i not in inside)
                found[inside] = found.get(inside, 0.0) + 1 / outside
    own = {scope: math.prod((sizes[i] - 1) / sizes[i] ** 2 for i in scope) for scope in found}
    return {scope: own[scope] * found[scope] for scope in sorted(found, key=lambda one: (len(one), one))}


def _squares(units: Sequence[Residual], v: np.ndarray, relation: Relation) -> np.ndarray:
    """The best w_A^2, up to a factor."""
    costs = np.array([float(unit.square) for unit in units])
    if relation is Relation.REPLACE and Ways.few(units):
        return _under_replace(units, v, costs)
    if relation is Relation.REPLACE:
        smallest = np.array([min(unit.shape) for unit in units])
        costs *= smallest / (smallest - 1)
    squares: np.ndarray = np.sqrt(v / costs)
    return squares


def _under_replace(units: Sequence[Residual], v: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The best weights against the worst way to differ: a saddle point over mixtures y of the 2^d ways."""
    ways = Ways(units)
    squares = np.sqrt(v / costs)
    for _ in range(MOST_STEPS):
        squares = np.sqrt(v / ways.costs)
        if ways.shift(ways.changes(squares)) <= 1 + CLOSE:
            break
    return np.asarray(squares)
