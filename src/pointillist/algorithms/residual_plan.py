"""The best weights of residuals for a workload of marginals: the strategy of HDMM, and of ResidualPlanner.

Residuals R_A (:mod:`pointillist.queries.residuals`) are measured with weights w_A and noise of one scale sigma. Least
squares takes each marginal S of the workload together from the residuals of its subsets. The residual of A adds

    sigma^2 v_A / w_A^2,   v_A = prod_{i in A} (m_i - 1) / m_i^2  times  sum_{S >= A} 1 / prod_{i in S - A} m_i

to the sum of the variances of all cells of the workload. sigma^2 is the squared sensitivity over 2 rho. Under
add-remove that sensitivity is sum_A w_A^2 c_A with c_A = prod m_i (m_i - 1), so that the best weights are

    w_A^2 = sqrt(v_A / c_A),   and the error is   (sum_A sqrt(v_A c_A))^2 / (2 rho),

which is the least error of any strategy: the singular-value bound. Under replace it is the largest value over the ways
y in which two records can differ, max_y sum_A w_A^2 c_A(y). The best weights are those for a mixture of these ways, the
one for which the error is largest; it is found by multiplicative steps, from that of two random records. With more than
16 attributes they are those that would be best if each scope were charged for itself.

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

from pointillist.checks import check
from pointillist.data.domain import Attributes
from pointillist.data.neighbours import Relation
from pointillist.errors import Shown
from pointillist.queries.residuals import Residual, Residuals, over_patterns, rounded, square_before_rounding

__all__ = ["Plan", "plan_of"]

MOST_ATTRIBUTES = 16
"""Up to this number of attributes the best weights under replace are searched over all ways in which two records can
differ."""

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
    attributes = sorted({i for unit in units for i in unit.scope})
    if relation is Relation.REPLACE and len(attributes) <= MOST_ATTRIBUTES:
        return _under_replace(units, v, costs, attributes)
    if relation is Relation.REPLACE:
        smallest = np.array([min(unit.shape) for unit in units])
        costs *= smallest / (smallest - 1)
    squares: np.ndarray = np.sqrt(v / costs)
    return squares


def _under_replace(
    units: Sequence[Residual], v: np.ndarray, costs: np.ndarray, attributes: Sequence[int]
) -> np.ndarray:
    """The best weights against the worst way to differ: a saddle point over mixtures y of the 2^d ways."""
    by_attribute = {i: m for unit in units for i, m in zip(unit.scope, unit.shape, strict=True)}
    sizes = [by_attribute[i] for i in attributes]
    places = tuple(np.array([[int(i in unit.scope) for unit in units] for i in attributes]))
    shares = _random_pair(sizes)
    squares = np.sqrt(v / costs)
    for _ in range(MOST_STEPS):
        squares = np.sqrt(v / (costs - _products(shares, sizes)[places]))
        table = np.zeros(shares.shape)
        table[places] = squares
        changes = float(squares @ costs) - over_patterns(table, sizes)
        changes /= float((shares * changes).sum())
        if changes.max() <= 1 + CLOSE:
            break
        shares = shares * np.maximum(changes, 0.0)
        shares /= shares.sum()
    return np.asarray(squares)


def _random_pair(sizes: Sequence[int]) -> np.ndarray:
    """How often two random records differ in each of the possible ways, given that they differ."""
    shares = np.ones(())
    for m in sizes:
        shares = np.multiply.outer(shares, np.array([1 / m, 1 - 1 / m]))
    shares.flat[0] = 0.0
    mixture: np.ndarray = shares / shares.sum()
    return mixture


def _products(shares: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """For each set of attributes the mean inner product of the columns of two records: the transpose of
    :func:`~pointillist.queries.residuals.over_patterns`."""
    for axis, m in enumerate(sizes):
        same, other = np.moveaxis(shares, axis, 0)
        shares = np.asarray(np.stack([same + other, m * (m - 1) * same - m * other], axis=axis))
    return shares
