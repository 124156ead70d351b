"""What a method is: its parts in words, its settings, and how it is built for a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pointillist.algorithms.settings import read
from pointillist.checks import check
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.errors import InputError, Shown
from pointillist.framework import Algorithm
from pointillist.queries.base import is_direct
from pointillist.queries.candidates import Candidates, Grouping
from pointillist.queries.marginal import Marginal
from pointillist.queries.workload import Workload

__all__ = ["Method", "Public", "Task"]


@dataclass(frozen=True)
class Task:
    """What a method is built for: public facts only.

    Attributes:
        workload: the queries whose answers are wanted.
        grouping: whether queries are selected and measured one by one, or as whole marginals.
        public: a public table, if there is one.
        places: for every attribute where its codes, the first ones, lie on a line; none without an order. Empty if
            nothing is known about orders.
    """

    workload: Workload
    grouping: Grouping = Grouping.MARGINAL
    public: PublicTable | None = None
    places: tuple[tuple[float, ...], ...] = ()

    @property
    def domain(self) -> Domain:
        """The domain of the workload."""
        return self.workload.domain

    @property
    def lines(self) -> tuple[int, ...]:
        """For every attribute the number of its codes, the first ones, that lie on a line; 0 without an order."""
        return tuple(map(len, self.places))

    @property
    def by_query(self) -> bool:
        """Whether queries are asked one by one."""
        return self.grouping is Grouping.QUERY

    @property
    def candidates(self) -> Candidates:
        """What a selection chooses among: the queries of the workload, in the grouping of the task."""
        return self.grouping.candidates(self.workload.queries)

    def require_public(self) -> PublicTable:
        """The public table."""
        if self.public is None:
            raise InputError("public", None, "must be a public table", "give one, or use another method")
        return self.public

    def require_disjoint(self) -> None:
        """Refuse groups of queries that overlap, for methods that cannot measure them together."""
        if not self.by_query and not all(queries.partition for queries in self.workload.queries):
            rule = "must be 'query' for this method on queries that overlap"
            raise InputError("group", self.grouping.value, rule, "use group query, or another method")

    def require_marginals(self) -> None:
        """Refuse queries other than whole marginals, for methods that split these into their parts."""
        if not all(isinstance(queries, Marginal) for queries in self.workload.queries):
            rule = "must be of whole marginals for this method"
            raise InputError("workload", Shown("other queries"), rule, "use mwem, rap_softmax, gem or auto")

    def require_tables(self) -> None:
        """Refuse queries over more attributes than a marginal in memory can have, for graphical models."""
        wide = sum(map(is_direct, self.workload.queries))
        rule = "must be over few columns each for a graphical model"
        check(not wide, "workload", Shown(f"{wide:,} wide groups"), rule, "use auto, rap_softmax, gem or mwem")

    def require_cells(self) -> None:
        """Refuse queries that are not cells of marginals, for methods that solve integer programs."""
        factors = [queries.factors for queries in self.workload.queries]
        if not all(many is not None and all(factor.identity for factor in many) for many in factors):
            rule = "must be cells of marginals for an integer program"
            raise InputError("workload", Shown("other queries"), rule, "use mwem, rap_softmax, gem or auto")


class Public(Enum):
    """What a method does with a public table."""

    UNUSED = "unused"
    OPTIONAL = "optional"
    NEEDED = "needed"


@dataclass(frozen=True)
class Method:
    """A named method. The words describe the parts of :class:`~pointillist.framework.Algorithm`.

    Attributes:
        name: what users call it.
        family: the family of distributions.
        strategy: what is selected and measured.
        update: how the distribution follows the measurements.
        output: the output rule.
        settings: a frozen dataclass of hyper-parameters.
        build: makes the algorithm for a task and settings.
        groupings: the groupings that it knows; the first one is its default.
        fits: whether a domain is small enough.
        memory: bytes that the model of a domain takes, or one row of it.
        consistent: whether the model's answers are those of a distribution (RAP's clipped rows are not).
        public: what it does with a public table.
        weighted: whether it spends more on what has a larger weight in the workload.
    """

    name: str
    family: str
    strategy: str
    update: str
    output: str
    settings: type
    build: Callable[[Task, Any], Algorithm[Any]]
    groupings: tuple[Grouping, ...]
    fits: Callable[[Domain], bool]
    memory: Callable[[Domain], int]
    consistent: bool = True
    public: Public = Public.UNUSED
    weighted: bool = False

    def grouping(self, word: str | None) -> Grouping:
        """The grouping asked for, or the method's default."""
        chosen = self.groupings[0] if word is None else Grouping.parse(word)
        known = ", ".join(self.groupings)
        check(chosen in self.groupings, "group", chosen.value, f"must be {known} for {self.name}", f"use {known}")
        return chosen

    def configure(self, settings: Mapping[str, Any]) -> Any:
        """Settings of this method from names and values, which may be texts as on the command line."""
        return read(self.settings, self.name, settings)

    def algorithm(self, task: Task, settings: Any = None) -> Algorithm[Any]:
        """The method for a task; refuses a domain that it cannot hold."""
        self.require_public(task.public is not None)
        if not self.weighted:
            rule = f"must be left out for {self.name}, which makes no use of them"
            shown = Shown(f"{len(set(task.workload.weights))} different ones")
            check(not task.workload.weights, "weights", shown, rule, "leave them out, or use auto")
        if not self.fits(task.domain):
            gigabytes = self.memory(task.domain) / 1e9
            shown = Shown(f"{task.domain.cells:,} cells ({gigabytes:,.1f} GB of weights)")
            rule = f"must be small enough for a histogram, as {self.name} needs"
            raise InputError("domain", shown, rule, "use auto, rap_softmax or gem, or coarser bins")
        return self.build(task, self.settings() if settings is None else settings)

    def require_public(self, given: bool) -> None:
        """Refuse a method on public data without a public table, and a public table that would not be used."""
        if self.public is Public.NEEDED and not given:
            rule = f"must be a public table for {self.name}"
            raise InputError("public", None, rule, "give one, or use another method")
        if self.public is Public.UNUSED and given:
            rule = f"must be left out for {self.name}, which makes no use of it"
            raise InputError("public", Shown("a table"), rule, "leave it out, or use auto, gem_pub, pmw_pub or pep_pub")
