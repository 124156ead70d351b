"""k-way marginal workloads: all of them, or a random subset; and the sets of attributes that they are over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from pointillist.checks import at_least, between, check, whole
from pointillist.data.domain import Attributes, Domain
from pointillist.errors import InputError, Shown, brief
from pointillist.queries.base import is_direct
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload

__all__ = ["all_kway", "drawn", "random_kway", "require_carried", "scopes_of", "sized"]

MOST_QUERIES = 500_000_000  # an answer vector of 4 GB
MOST_MARGINALS = 5_000_000  # among which a draw is made
MOST_GROUPS = 200_000  # that a run can plan, count and fit


def all_kway(domain: Domain, k: int) -> Workload:
    """All marginals over k attributes.

    Args:
        domain: the attributes and their sizes.
        k: the number of attributes of each marginal.
    """
    k = _check_k(domain, k)
    require_carried(math.comb(len(domain), k))
    return _marginals(domain, itertools.combinations(range(len(domain)), k))


def random_kway(domain: Domain, k: int, count: int, seed: int = 0, max_cells: int | None = None) -> Workload:
    """``count`` marginals over k attributes, drawn as the paper's authors draw them (:func:`drawn`).

    Args:
        domain: the attributes and their sizes.
        k: the number of attributes of each marginal.
        count: the number of marginals.
        seed: the seed of the draw.
        max_cells: only marginals with at most this number of cells are candidates (the authors take the number of
            rows; it must be public).
    """
    return _marginals(domain, drawn(domain, scopes_of(domain, [k]), count, seed, max_cells))


def scopes_of(domain: Domain, orders: Sequence[int], target: int | None = None) -> list[Attributes]:
    """All sets of k attributes in domain order, for each k of ``orders``.

    Args:
        domain: the attributes and their sizes.
        orders: the numbers of attributes.
        target: an attribute that each set must have.
    """
    checked = [_check_k(domain, k) for k in orders]
    found = (scope for k in checked for scope in itertools.combinations(range(len(domain)), k))
    return [scope for scope in found if target is None or target in scope]


def drawn(
    domain: Domain, candidates: Sequence[Attributes], count: int, seed: int, max_cells: int | None
) -> list[Attributes]:
    """``count`` of some sets of attributes, drawn by the legacy generator ``RandomState(seed).choice`` without
    replacement. If there are no more candidates than ``count``, all are taken.

    Args:
        domain: the attributes and their sizes.
        candidates: the sets, in domain order.
        count: the number of sets to draw.
        seed: the seed of the draw.
        max_cells: only sets whose marginals have at most this number of cells are candidates.
    """
    count = at_least("workload: COUNT", whole("workload: COUNT", count), 1)
    seed = between("workload: SEED", whole("workload: SEED", seed), 0, 2**32 - 1, "use 0")
    small = [scope for scope in candidates if max_cells is None or domain.cells_of(scope) <= max_cells]
    rule = f"must have a marginal of at most {max_cells} cells"
    check(len(small) > 0, "workload", Shown("none"), rule, "use a smaller K or coarser bins")
    if len(small) > count:
        legacy = np.random.RandomState(seed)
        small = [small[i] for i in legacy.choice(len(small), count, replace=False)]
    return small


def _marginals(domain: Domain, scopes: Iterable[Attributes]) -> Workload:
    return sized(Workload(domain, tuple(Marginal(scope, domain.shape(scope)) for scope in scopes)))


def _check_k(domain: Domain, k: int) -> int:
    """A number of attributes that the domain has and whose marginals are not too many."""
    rule, hint = "must be a Domain", "give for example table.domain"
    check(isinstance(domain, Domain), "domain", brief(domain), rule, hint)
    d, k = len(domain), whole("workload: K", k)
    check(1 <= k <= d, "workload: K", k, f"must be in 1 .. {d}, the number of attributes", "use a smaller K")
    if math.comb(d, k) > MOST_MARGINALS:
        rule = f"must give at most {MOST_MARGINALS:,} marginals"
        raise InputError("workload: K", Shown(f"{math.comb(d, k):,}"), rule, "use a smaller K")
    return k


def require_carried(groups: int) -> None:
    """Refuse more groups of queries than a run can carry, before they are made.

    Args:
        groups: their number.
    """
    rule = f"must have at most {MOST_GROUPS:,} marginals or groups of queries"
    hint = "leave it out, which takes what fits, or draw some with marginals:K:COUNT"
    check(groups <= MOST_GROUPS, "workload", Shown(f"{groups:,}"), rule, hint)


def sized(workload: Workload) -> Workload:
    """The workload, if its answers and the marginals behind them fit the memory; refused before anything is spent."""
    require_carried(len(workload.queries))
    rule = f"must have at most {MOST_QUERIES:,} queries"
    hint = "draw fewer marginals with marginals:K:COUNT"
    check(workload.size <= MOST_QUERIES, "workload", Shown(workload.describe()), rule, hint)
    counted = {queries.scope for queries in workload.queries if not is_direct(queries)}
    cells = sum(workload.domain.cells_of(scope) for scope in counted)
    rule = f"must look at marginals of at most {MOST_QUERIES:,} cells in all"
    check(cells <= MOST_QUERIES, "workload", Shown(f"{cells:,}"), rule, "use fewer attributes in each group of queries")
    return workload
