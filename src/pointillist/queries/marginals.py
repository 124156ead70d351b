"""k-way marginal workloads: all of them, or a random subset."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pointillist.data.domain import Domain
from pointillist.errors import InputError, Shown, check
from pointillist.queries.workload import Grouping, Workload

__all__ = ["all_kway", "parse_workload", "random_kway", "sized"]

MOST_QUERIES = 500_000_000  # an answer vector of 4 GB
MOST_MARGINALS = 5_000_000
FORM = "marginals:K[:COUNT[:SEED]]"


def all_kway(domain: Domain, k: int, grouping: Grouping = Grouping.MARGINAL) -> Workload:
    """All marginals over k attributes."""
    _check_k(domain, k)
    return sized(Workload(domain, tuple(itertools.combinations(range(len(domain)), k)), grouping))


def random_kway(
    domain: Domain, k: int, count: int, seed: int = 0, max_cells: int | None = None,
    grouping: Grouping = Grouping.MARGINAL,
) -> Workload:  # fmt: skip
    """``count`` marginals over k attributes, drawn as the paper's authors draw them.

    Candidates are the k-subsets of the attributes in domain order with at most ``max_cells`` cells (the authors
    take the number of rows; it must be public); ``count`` of them are drawn by the legacy generator
    ``RandomState(seed).choice`` without replacement. If there are no more candidates than ``count``, all are taken.
    """
    _check_k(domain, k)
    check(count >= 1, "workload: COUNT", count, "must be at least 1", f"write {FORM}")
    check(0 <= seed < 2**32, "workload: SEED", seed, "must be in 0 .. 2^32 - 1", "use 0")
    candidates = [
        marginal
        for marginal in itertools.combinations(range(len(domain)), k)
        if max_cells is None or domain.cells_of(marginal) <= max_cells
    ]
    check(len(candidates) > 0, "workload", Shown("none"), f"must have a marginal of at most {max_cells} cells",
          "use a smaller K or coarser bins")  # fmt: skip
    if len(candidates) > count:
        legacy = np.random.RandomState(seed)
        candidates = [candidates[i] for i in legacy.choice(len(candidates), count, replace=False)]
    return sized(Workload(domain, tuple(candidates), grouping))


def parse_workload(
    text: str, domain: Domain, max_cells: int | None = None, grouping: Grouping = Grouping.MARGINAL
) -> Workload:
    """A workload from ``marginals:K`` (all) or ``marginals:K:COUNT[:SEED]`` (a random subset)."""
    kind, *numbers = text.split(":")
    good = kind == "marginals" and 1 <= len(numbers) <= 3 and all(n.isdecimal() and len(n) < 19 for n in numbers)
    check(
        good,
        "workload",
        text,
        f"must have the form {FORM} with whole numbers",
        "write for example marginals:3",
    )
    k, *rest = (int(n) for n in numbers)
    if not rest:
        return all_kway(domain, k, grouping)
    count, seed = rest[0], rest[1] if len(rest) == 2 else 0
    return random_kway(domain, k, count, seed, max_cells, grouping)


def _check_k(domain: Domain, k: int) -> None:
    d = len(domain)
    check(1 <= k <= d, "workload: K", k, f"must be in 1 .. {d}, the number of attributes", "use a smaller K")
    if math.comb(d, k) > MOST_MARGINALS:
        rule = f"must give at most {MOST_MARGINALS:,} marginals"
        raise InputError("workload: K", Shown(f"{math.comb(d, k):,}"), rule, "use a smaller K")


def sized(workload: Workload) -> Workload:
    """The workload, if its answers fit the memory; refused before anything is counted or spent."""
    check(workload.queries <= MOST_QUERIES, "workload", Shown(workload.describe()),
          f"must have at most {MOST_QUERIES:,} queries", "draw fewer marginals with marginals:K:COUNT")  # fmt: skip
    return workload
