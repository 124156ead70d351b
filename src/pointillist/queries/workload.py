"""A workload Q: the queries whose answers are to be kept. What is measured for them is the strategy's affair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.checks import check, positive
from pointillist.data.domain import Attributes, Domain
from pointillist.errors import InputError, Shown
from pointillist.queries.base import Queries
from pointillist.queries.cells import Cells
from pointillist.queries.groups import Groups
from pointillist.queries.halfspaces import Halfspaces
from pointillist.queries.marginal import Marginal
from pointillist.queries.predicates import Predicates
from pointillist.queries.product import Product
from pointillist.queries.residuals import Residuals
from pointillist.queries.tie import Tie

__all__ = ["KINDS", "Workload", "offsets_of", "queries_of", "show_bytes"]

KINDS: dict[str, Any] = {
    kind.kind: kind for kind in (Marginal, Product, Halfspaces, Predicates, Groups, Tie, Residuals)
}
"""The kinds of queries that can be read back from plain data, by name."""

MOST_TIMES = 1e6
"""The largest weight is at most this multiple of the smallest: what matters less is not worth a measurement."""


@dataclass(frozen=True)
class Workload:
    """Queries over a domain, answered one after the other in one flat vector.

    Attributes:
        domain: the attributes and their sizes.
        queries: marginals and other queries, each of them once.
        weights: how much each member of ``queries`` matters; empty if all matter alike.
    """

    domain: Domain
    queries: tuple[Queries, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check(len(self.queries) > 0, "workload", 0, "must have at least one query", "name some attributes")
        for queries in self.queries:
            if max(queries.scope) >= len(self.domain) or self.domain.shape(queries.scope) != queries.shape:
                raise ValueError(f"queries over {queries.scope} of sizes {queries.shape} are not over the domain")
        if any(isinstance(queries, Tie | Residuals) for queries in self.queries):
            rule, hint = "must hold queries that records satisfy", "measure these, and want marginals"
            raise InputError("workload", Shown("a tie or residuals"), rule, hint)
        members = set(self.queries)
        some = [queries for queries in self.queries if isinstance(queries, Cells)]
        cells = [(queries.whole, cell) for queries in some for cell in queries.taken]
        twice = len(set(cells)) < len(cells) or any(queries.whole in members for queries in some)
        if twice or len(members) < len(self.queries):
            raise ValueError("a workload must not hold the same queries twice: they would be paid for twice")
        self._check_weights()

    def _check_weights(self) -> None:
        """Weights are above 0, one for each member; if all are equal, they say nothing."""
        rule, hint = f"must be {len(self.queries)} numbers, one for each member of queries", "leave them out"
        check(len(self.weights) in (0, len(self.queries)), "weights", len(self.weights), rule, hint)
        for weight in set(self.weights):
            positive("weights", weight)
        times = max(self.weights, default=1.0) / min(self.weights, default=1.0)
        rule, hint = f"must be at most {MOST_TIMES:,.0f} times as large as the smallest", "leave out the least"
        check(times <= MOST_TIMES, "weights", Shown(f"{times:.3g} times"), rule, hint)
        if len(set(self.weights)) == 1:
            object.__setattr__(self, "weights", ())

    @classmethod
    def of(
        cls, domain: Domain, queries: Iterable[Queries | str | Sequence[str | int]], weights: Sequence[float] = ()
    ) -> Workload:
        """A workload of queries, and of marginals given by the names (or positions) of their attributes.

        Args:
            domain: the attributes and their sizes, for example ``schema.domain``.
            queries: for example ``[("sex", "age"), "region"]``; attributes in any order.
            weights: how much each of them matters; all alike without.
        """
        lists = ([one] if isinstance(one, str) else one for one in queries)
        members = tuple(Marginal.of(domain, q) if isinstance(q, Sequence) else q for q in lists)
        return cls(domain, members, tuple(weights))

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the answers of each member of ``queries`` begin in the flat vector; one more entry holds the end."""
        return offsets_of(self.queries)

    @property
    def size(self) -> int:
        """|Q|, the number of single queries."""
        return sum(one.size for one in self.queries)  # of any size: what is too large is refused by it

    @property
    def scopes(self) -> tuple[Attributes, ...]:
        """The attributes of each member of ``queries``."""
        return tuple(queries.scope for queries in self.queries)

    def describe(self) -> str:
        """The size of the workload in words."""
        marginals = all(queries.partition for queries in self.queries)
        groups = "marginals" if marginals else "groups of queries"
        answers = show_bytes(8 * self.size)
        return f"{len(self.queries):,} {groups}, {self.size:,} queries ({answers} of answers)"

    def to_dict(self) -> dict[str, Any]:
        """The workload as plain data, by attribute names."""
        weights = {"weights": list(self.weights)} if self.weights else {}
        return {"size": self.size, "queries": [one.to_dict(self.domain.names) for one in self.queries]} | weights

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Workload:
        """The workload behind :meth:`to_dict`."""
        weights = tuple(map(float, spec.get("weights", ())))
        return cls(domain, tuple(queries_of(one, domain) for one in spec["queries"]), weights)


def offsets_of(queries: Iterable[Queries]) -> np.ndarray:
    """Where the answers of each of the queries begin in their flat vector; one more entry holds the end."""
    return np.concatenate([[0], np.cumsum([one.size for one in queries], dtype=np.int64)])


def queries_of(spec: dict[str, Any], domain: Domain) -> Queries:
    """The queries behind ``Queries.to_dict``."""
    if spec["kind"] == Cells.kind:
        return Cells(queries_of(spec["of"], domain), tuple(map(int, spec["taken"])))
    kind = spec["kind"]
    if kind not in KINDS:
        raise InputError(
            "kind of queries", kind, f"must be one of {', '.join(KINDS)}", "import the module that defines it"
        )
    queries: Queries = KINDS[kind].from_dict(spec, domain)
    return queries


def show_bytes(count: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
