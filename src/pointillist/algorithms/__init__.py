"""The registry of methods: an explicit table, no discovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.algorithms import (
    auto,
    dualquery,
    fem,
    gem,
    gem_pub,
    mwem,
    one_shot,
    pep,
    pep_pub,
    pmw_pub,
    public,
    rap,
    rap_softmax,
)
from pointillist.algorithms.parameters import read
from pointillist.data.domain import Domain
from pointillist.data.public import PublicTable
from pointillist.errors import InputError, Shown, check, nearest
from pointillist.families.histogram import Histogram
from pointillist.families.records import RecordList
from pointillist.families.relaxed import Relaxed
from pointillist.families.support import Support
from pointillist.framework import Algorithm, Family
from pointillist.queries.workload import Grouping, Workload

__all__ = ["METHODS", "Method", "get_method"]


@dataclass(frozen=True)
class Method:
    """A named method: its parts in words, its hyper-parameters, and how to build it."""

    name: str
    family: str
    selection: str
    measured: str
    update: str
    output: str
    parameters: type
    build: Callable[..., Algorithm[Any]]
    """From a workload and parameters, and for methods on public data from a public table."""
    groupings: tuple[Grouping, ...]
    fits: Callable[[Domain], bool]
    memory: Callable[[Domain], int]
    consistent: bool = True
    """Whether the model's answers are those of a distribution (RAP's clipped rows are not)."""
    revive: Callable[[Workload, Any, Mapping[str, np.ndarray]], Family[Any]] | None = None
    """For methods on public data: the family of a saved model, which is read without the public table."""

    optional_public: bool = False
    """Whether the method makes use of a public table but works without one."""

    @property
    def public(self) -> bool:
        """Whether the method needs a public table."""
        return self.revive is not None

    def grouping(self, word: str | None) -> Grouping:
        """The grouping asked for, or the method's default: the first of its groupings."""
        chosen = self.groupings[0] if word is None else Grouping.parse(word)
        known = ", ".join(self.groupings)
        check(chosen in self.groupings, "group", chosen.value, f"must be {known} for {self.name}", f"use {known}")
        return chosen

    def configure(self, settings: Mapping[str, Any]) -> Any:
        """Hyper-parameters of this method from names and values."""
        return read(self.parameters, self.name, settings)

    def algorithm(self, workload: Workload, parameters: Any, table: PublicTable | None = None) -> Algorithm[Any]:
        """The method over a workload and, if it uses one, a public table; refuses a domain that it cannot hold."""
        domain = workload.domain
        self.require_public(table is not None)
        if not self.fits(domain):
            gigabytes = self.memory(domain) / 1e9
            others = [m.name for m in METHODS.values() if m.fits(domain) and not m.public]
            hint = f"use one of {', '.join(others)}" if others else "use fewer columns or coarser bins"
            shown = Shown(f"{domain.cells:,} cells ({gigabytes:,.1f} GB of weights)")
            raise InputError("domain", shown, f"must be small enough for a histogram, as {self.name} needs", hint)
        return self.build(workload, parameters) if table is None else self.build(workload, parameters, table)

    def require_public(self, given: bool) -> None:
        """Refuse a method on public data without a public table, and the other way round."""
        if given == self.public or self.optional_public:
            return
        if self.public:
            raise InputError(
                "public", None, f"must be a public table for {self.name}", "give one, or use another method"
            )
        using = [m.name for m in METHODS.values() if m.public or m.optional_public]
        rule = f"must be left out for {self.name}, which makes no use of it"
        raise InputError("public", Shown("a table"), rule, f"leave it out or use one of {', '.join(using)}")

    def saved_family(self, workload: Workload, parameters: Any, arrays: Mapping[str, np.ndarray]) -> Family[Any]:
        """The family of a saved model."""
        if self.revive is None:
            return self.algorithm(workload, parameters).family
        return self.revive(workload, parameters, arrays)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="auto",
            family="relaxed rows, softmax per attribute",
            selection="none: one round, by public facts",
            measured="yes",
            update="gradient descent, squared error with shrinkage by the known noise",
            output="last",
            parameters=auto.Parameters,
            build=auto.build,
            groupings=(Grouping.MARGINAL,),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
            optional_public=True,
        ),
        Method(
            name="mwem",
            family="histogram over the whole domain",
            selection="1 per round, even budget",
            measured="yes",
            update="multiplicative weights, past measurements re-used (option: not)",
            output="last (option: average)",
            parameters=mwem.Parameters,
            build=mwem.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Histogram.fits,
            memory=Histogram.memory,
        ),
        Method(
            name="pep",
            family="histogram over the whole domain",
            selection="1 per round, even budget",
            measured="yes",
            update="entropy projection onto the worst past constraint, repeated",
            output="last",
            parameters=pep.Parameters,
            build=pep.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Histogram.fits,
            memory=Histogram.memory,
        ),
        Method(
            name="rap",
            family="relaxed rows, clipped to [-1, 1]",
            selection="K per round, even budget",
            measured="yes",
            update="gradient descent, squared error",
            output="last",
            parameters=rap.Parameters,
            build=rap.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
            consistent=False,
        ),
        Method(
            name="rap_softmax",
            family="relaxed rows, softmax per attribute",
            selection="K per round, even budget",
            measured="yes",
            update="gradient descent, squared error",
            output="last",
            parameters=rap_softmax.Parameters,
            build=rap_softmax.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
        ),
        Method(
            name="gem",
            family="generator network: noise to product distributions",
            selection="1 per round, even budget",
            measured="yes",
            update="gradient descent, L1 on past errors above a threshold (by marginal: squared error)",
            output="EMA of weights, 2nd half",
            parameters=gem.Parameters,
            build=gem.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
        ),
        Method(
            name="one-shot",
            family="relaxed rows, softmax per attribute",
            selection="none: all groups in one round",
            measured="yes",
            update="gradient descent, squared error",
            output="last",
            parameters=one_shot.Parameters,
            build=one_shot.build,
            groupings=(Grouping.MARGINAL,),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
        ),
        Method(
            name="pmw_pub",
            family="histogram over the public records, public weights",
            selection="1 per round, even budget",
            measured="yes",
            update="as mwem",
            output="last (option: average)",
            parameters=pmw_pub.Parameters,
            build=pmw_pub.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Support.fits,
            memory=Support.memory,
            revive=public.revive,
        ),
        Method(
            name="pep_pub",
            family="histogram over the public records, public weights",
            selection="1 per round, even budget",
            measured="yes",
            update="as pep",
            output="last",
            parameters=pep_pub.Parameters,
            build=pep_pub.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Support.fits,
            memory=Support.memory,
            revive=public.revive,
        ),
        Method(
            name="gem_pub",
            family="generator network, pretrained on public answers (free)",
            selection="1 per round, even budget",
            measured="yes",
            update="as gem",
            output="EMA of weights, 2nd half",
            parameters=gem_pub.Parameters,
            build=gem_pub.build,
            groupings=(Grouping.MARGINAL, Grouping.QUERY),
            fits=Relaxed.fits,
            memory=Relaxed.memory,
            revive=gem_pub.revive,
        ),
        Method(
            name="dualquery",
            family="list of records",
            selection="s signed queries per round, growing budget",
            measured="no",
            update="best response by integer program, appended",
            output="last",
            parameters=dualquery.Parameters,
            build=dualquery.build,
            groupings=(Grouping.QUERY,),
            fits=RecordList.fits,
            memory=RecordList.memory,
        ),
        Method(
            name="fem",
            family="list of records",
            selection="1 signed query per round, even budget",
            measured="no",
            update="s perturbed-leader records by integer program",
            output="average (union)",
            parameters=fem.Parameters,
            build=fem.build,
            groupings=(Grouping.QUERY,),
            fits=RecordList.fits,
            memory=RecordList.memory,
        ),
    )
}


def get_method(name: str) -> Method:
    """The method called ``name``."""
    if name not in METHODS:
        raise InputError("method", name, "must be one of the methods", nearest(name, METHODS))
    return METHODS[name]
