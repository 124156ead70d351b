"""The registry of methods: an explicit table, no discovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pointillist.algorithms import dualquery, fem, gem, mwem, one_shot, pep, rap, rap_softmax
from pointillist.algorithms.parameters import read
from pointillist.data.domain import Domain
from pointillist.errors import InputError, Shown, check, nearest
from pointillist.families.histogram import Histogram
from pointillist.families.records import RecordList
from pointillist.families.relaxed import Relaxed
from pointillist.framework import Algorithm
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
    build: Callable[[Workload, Any], Algorithm[Any]]
    groupings: tuple[Grouping, ...]
    fits: Callable[[Domain], bool]
    memory: Callable[[Domain], int]
    consistent: bool = True
    """Whether the model's answers are those of a distribution (RAP's clipped rows are not)."""

    def grouping(self, word: str | None) -> Grouping:
        """The grouping asked for, or the method's default: the first of its groupings."""
        chosen = self.groupings[0] if word is None else Grouping.parse(word)
        known = ", ".join(self.groupings)
        check(chosen in self.groupings, "group", chosen.value, f"must be {known} for {self.name}", f"use {known}")
        return chosen

    def configure(self, settings: Mapping[str, Any]) -> Any:
        """Hyper-parameters of this method from names and values."""
        return read(self.parameters, self.name, settings)

    def algorithm(self, workload: Workload, parameters: Any) -> Algorithm[Any]:
        """The method over a workload; refuses a domain that it cannot hold."""
        domain = workload.domain
        if not self.fits(domain):
            gigabytes = self.memory(domain) / 1e9
            others = [m.name for m in METHODS.values() if m.fits(domain)]
            hint = f"use one of {', '.join(others)}" if others else "use fewer columns or coarser bins"
            shown = Shown(f"{domain.cells:,} cells ({gigabytes:,.1f} GB of weights)")
            raise InputError("domain", shown, f"must be small enough for a histogram, as {self.name} needs", hint)
        return self.build(workload, parameters)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
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
