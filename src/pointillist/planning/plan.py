"""The plan of a run for its owner: what will be measured, and what error, time and memory to expect.

Everything follows from schema, workload, budget and a number of rows that is public or stated. No data is read and
nothing is spent. What the errors will be is a forecast by fitted laws (:mod:`pointillist.planning.law`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from pointillist.data.parquet import memory_here
from pointillist.errors import PointillistError
from pointillist.planning.law import Estimate, laws, probe
from pointillist.planning.situation import Situation
from pointillist.privacy.budget import LEAST_EPSILON, MOST_EPSILON
from pointillist.privacy.facts import Phase
from pointillist.queries.workload import Workload, show_bytes

__all__ = ["Advice", "Expected", "Peak", "Plan", "Point", "Target", "advise", "expected", "make_plan", "show_seconds"]

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The epsilons of the curve."""
LONG = 2 * 3600.0
"""More seconds than this are asked about before a run starts."""
USEFUL = 0.1
"""Marginals whose forecast total variation distance is above this are not recommended."""
AS_ASKED = "the workload as it is"
PRECISION = 1.01
"""The smallest epsilon for a target is found within this factor."""


class Peak(NamedTuple):
    """The memory of a run.

    Attributes:
        about: about how many bytes the process takes at its peak.
        texts: how many more, at most, for different texts of columns whose values are discovered.
    """

    about: int
    texts: int = 0

    @property
    def more(self) -> str:
        """What is added to the first in words."""
        return f", and up to {show_bytes(self.texts)} for different texts" if self.texts else ""


@dataclass(frozen=True)
class Expected:
    """What a run is expected to give and to take.

    Attributes:
        errors: a forecast of max, rmse and tvd of the synthetic rows; empty if no law holds for the run.
        seconds: of its time on this machine; None if no law is known.
        memory: about how many bytes the process takes at its peak.
        outside: in what the run is outside of what the laws were fitted on, in words.
        texts: how many more bytes, at most, for different texts of columns whose values are discovered.
    """

    errors: Mapping[str, Estimate]
    seconds: Estimate | None
    memory: int
    outside: tuple[str, ...] = ()
    texts: int = 0

    def describe(self) -> str:
        """The forecast in one line."""
        memory = f"peak memory about {show_bytes(self.memory)}{Peak(self.memory, self.texts).more}"
        time = "" if self.seconds is None else f"about {show_seconds(self.seconds.value)}, "
        if not self.errors:
            return f"forecast: {time}{memory}; no forecast of errors for this method and workload"
        shown = ", ".join(f"{name} {_number(one.value)} ({_range(one)})" for name, one in self.errors.items())
        outside = f"; outside of what was measured in {', '.join(self.outside)}" if self.outside else ""
        return f"forecast: {shown}; {time}{memory}{outside}"

    @property
    def absurd(self) -> str:
        """What speaks against starting the run, in words; empty if nothing does."""
        if self.memory > memory_here():
            return f"about {show_bytes(self.memory)} of memory, and this machine has {show_bytes(memory_here())}"
        if self.seconds is not None and self.seconds.value > LONG:
            return f"about {show_seconds(self.seconds.value)} on this machine"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "errors": {name: one.to_dict() for name, one in self.errors.items()},
            "seconds": None if self.seconds is None else self.seconds.to_dict(),
            "memory": self.memory,
            "memory_of_texts": self.texts,
            "outside": list(self.outside),
        }


@dataclass(frozen=True)
class Point:
    """A point of the curve.

    Attributes:
        epsilon: the privacy loss.
        errors: the forecast for it.
    """

    epsilon: float
    errors: Mapping[str, Estimate]


@dataclass(frozen=True)
class Target:
    """The smallest epsilon for which an error is forecast to be small enough.

    Attributes:
        metric: which error.
        error: how large it may be.
        epsilon: the smallest epsilon whose forecast is not above it; None if there is none.
        surely: the smallest one whose whole band is not above it; None if there is none.
    """

    metric: str
    error: float
    epsilon: float | None
    surely: float | None

    def describe(self) -> str:
        """The answer in a sentence."""
        wanted = f"{self.metric} error of {_number(self.error)}"
        if self.epsilon is None:
            return f"no epsilon up to {MOST_EPSILON:g} reaches a {wanted}: use fewer or narrower marginals"
        sure = "no epsilon is" if self.surely is None else f"epsilon {_number(self.surely)} is"
        return f"smallest epsilon for a {wanted}: {_number(self.epsilon)} ({sure} enough for the whole band)"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"metric": self.metric, "error": self.error, "epsilon": self.epsilon, "surely": self.surely}


@dataclass(frozen=True)
class Advice:
    """What is recommended, and why.

    Attributes:
        method: the method.
        workload: the workload.
        why: the reasons, one sentence each.
    """

    method: str
    workload: str
    why: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What a run would measure, and what is expected of it. Making it reads no data and spends nothing.

    Attributes:
        method: the method.
        workload: the queries in words.
        wanted: the wanted groups of queries, by their number of columns.
        rows: the number of rows that it is for.
        epsilon, delta: the budget.
        relation: which tables are neighbours.
        rho: what the measurements may spend in all.
        phases: what is measured, as far as it is known before the run.
        expected: errors, time and memory.
        curve: errors by epsilon.
        target: the smallest epsilon for a target, if one was asked for.
        advice: what is recommended; None if no law holds for the run.
        basis: what the forecast is based on.
        stages: what is done before the first round, and what it costs, in words.
    """

    method: str
    workload: str
    wanted: Mapping[int, int]
    rows: int
    epsilon: float
    delta: float
    relation: str
    rho: float
    phases: tuple[Phase, ...]
    expected: Expected
    curve: tuple[Point, ...]
    target: Target | None
    advice: Advice | None
    basis: str
    stages: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """The plan in lines."""
        lines = [
            f"{self.method}, {self.rows:,} rows, epsilon {self.epsilon:g}, delta {self.delta:.3g}, {self.relation}",
            f"wanted: {self.workload}; {_orders(self.wanted)}",
            *(f"first: {text}" for text in self.stages),
            *(f"round {text}" for text in _rounds(self.phases, self.rows)),
        ]
        if self.expected.errors:
            lines.append("forecast of the errors of the synthetic rows, with a band for nine in ten cases:")
            lines += [
                f"  {name:<5}{_number(one.value):>9}  ({_range(one)})" for name, one in self.expected.errors.items()
            ]
        else:
            lines.append("no forecast of errors: the laws are for marginals and for methods that were measured")
        seconds = self.expected.seconds
        time = "time not known" if seconds is None else f"about {show_seconds(seconds.value)}"
        have = show_bytes(memory_here())
        about, more = self.expected.memory, Peak(self.expected.memory, self.expected.texts).more
        lines.append(f"on this machine: {time}, peak memory about {show_bytes(about)} of {have}{more}")
        if self.target is not None:
            lines.append(self.target.describe())
        if self.advice is not None:
            lines.append(f"recommended: {self.advice.method}, {self.advice.workload}")
            lines += [f"  {reason}" for reason in self.advice.why]
        return [*lines, self.basis, "nothing was read and nothing was spent"]

    def __repr__(self) -> str:
        return "\n".join(self.describe())

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data; times and memory are of this machine."""
        return {
            "method": self.method,
            "workload": self.workload,
            "wanted": {str(order): count for order, count in self.wanted.items()},
            "rows": self.rows,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "rho": self.rho,
            "phases": [_phase(phase, self.rows) for phase in self.phases],
            "expected": self.expected.to_dict(),
            "curve": [
                {"epsilon": point.epsilon} | {name: one.to_dict() for name, one in point.errors.items()}
                for point in self.curve
            ],
            "target": None if self.target is None else self.target.to_dict(),
            "advice": None
            if self.advice is None
            else {"method": self.advice.method, "workload": self.advice.workload, "why": list(self.advice.why)},
            "basis": self.basis,
            "stages": list(self.stages),
        }


def errors_of(situation: Situation) -> dict[str, Estimate]:
    """The forecast of each error; none if no law holds.

    Args:
        situation: the run.
    """
    features = situation.features
    if features is None:
        return {}
    found = {name: law.estimate(features, 1.0) for name, law in laws().of(situation.method, features).items()}
    if {"max", "rmse"} <= found.keys():  # each law is fitted by itself, and a mean is not above the largest
        found["rmse"] = Estimate(*map(min, astuple(found["rmse"]), astuple(found["max"])))
    return found


def expected(situation: Situation, peak: Peak) -> Expected:
    """What a run is expected to give and to take.

    Args:
        situation: the run.
        peak: its memory.
    """
    features = situation.features
    if features is None:
        return Expected({}, None, peak.about, texts=peak.texts)
    seconds = laws().time_of(situation.method, features, probe() / laws().probe)
    return Expected(errors_of(situation), seconds, peak.about, tuple(laws().outside(features)), peak.texts)


def make_plan(
    situation: Situation,
    peak: Peak,
    others: Sequence[Situation] = (),
    orders: Sequence[tuple[str, Situation]] = (),
    target: tuple[str, float] | None = None,
) -> Plan:
    """The whole plan.

    Args:
        situation: the run.
        peak: its memory.
        others: the same with other methods.
        orders: the same with other workloads, by their text.
        target: an error and how large it may be.
    """
    facts, budget = situation.facts, situation.budget
    found = expected(situation, peak)
    return Plan(
        method=situation.method,
        workload=situation.workload.describe(),
        wanted=_by_order(situation.workload),
        rows=situation.rows,
        epsilon=budget.epsilon,
        delta=budget.delta,
        relation=budget.relation.value,
        rho=facts.rho,
        phases=situation.phases,
        expected=found,
        curve=tuple(_curve(situation)) if found.errors else (),
        target=None if target is None or not found.errors else reached(situation, *target),
        advice=advise(situation, others, orders) if found.errors else None,
        basis=_basis(found, situation),
        stages=situation.stages,
    )


def _curve(situation: Situation) -> Iterable[Point]:
    for epsilon in sorted({*EPSILONS, situation.budget.epsilon}):
        try:
            yield Point(epsilon, errors_of(situation.at(epsilon)))
        except PointillistError:  # a budget with which nothing can be learned
            continue


def reached(situation: Situation, metric: str, error: float) -> Target:
    """The smallest epsilon for a target.

    Args:
        situation: the run.
        metric: which error.
        error: how large it may be.
    """

    def enough(pick: Callable[[Estimate], float]) -> Callable[[float], bool]:
        def reaches(epsilon: float) -> bool:
            try:
                return pick(errors_of(situation.at(epsilon))[metric]) <= error
            except PointillistError:
                return False

        return reaches

    value, high = (_smallest(enough(pick)) for pick in (lambda one: one.value, lambda one: one.high))
    return Target(metric, error, value, high)


def _smallest(reaches: Callable[[float], bool]) -> float | None:
    """The smallest epsilon that reaches something, by halving; errors fall with epsilon. Rounded up to three digits."""
    low, high = LEAST_EPSILON, MOST_EPSILON
    if not reaches(high):
        return None
    low = max(low, 1e-4)
    while high / low > PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    digits = 10.0 ** (2 - math.floor(math.log10(high)))
    return min(MOST_EPSILON, math.ceil(high * digits) / digits)


def advise(situation: Situation, others: Sequence[Situation], orders: Sequence[tuple[str, Situation]]) -> Advice:
    """The method and the workload to use.

    Args:
        situation: the run as it is asked for.
        others: the same with other methods.
        orders: the same with other workloads, by their text.
    """
    method, why = _best_method([situation, *others])
    workload, because = _widest([*orders, (AS_ASKED, situation)])
    return Advice(method, workload, (why, because))


def _best_method(situations: Sequence[Situation]) -> tuple[str, str]:
    """The method with the smallest forecast, and why."""
    found = sorted((errors_of(one)["tvd"].value, one.method) for one in situations if errors_of(one))
    beside = ", ".join(f"{name} {_number(value)}" for value, name in found)
    return found[0][1], f"method: the smallest forecast tvd ({beside})"


def _widest(situations: Sequence[tuple[str, Situation]]) -> tuple[str, str]:
    """The workload with the widest marginals that are useful, and why; the last one is that which is asked for."""
    known = [(text, one.features.order, errors_of(one)["tvd"].value) for text, one in situations if one.features]
    orders = {order for _, order, _ in known[:-1]}
    known = [one for one in known if one[0] != AS_ASKED or one[1] not in orders or len(known) == 1]
    told = ", ".join(f"{text} {_number(value)}" for text, _, value in known)
    good = [(order, text) for text, order, value in known if value <= USEFUL]
    if not good:
        least = min(known, key=lambda one: one[2])[0]
        return least, f"workload: none has a forecast tvd of at most {USEFUL:g}; take a larger epsilon ({told})"
    return max(good)[1], f"workload: the widest marginals with a forecast tvd of at most {USEFUL:g} ({told})"


def _by_order(workload: Workload) -> dict[int, int]:
    return dict(sorted(Counter(len(scope) for scope in workload.scopes).items()))


def _orders(wanted: Mapping[int, int]) -> str:
    return ", ".join(f"{count:,} of {order} column{'s' if order > 1 else ''}" for order, count in wanted.items())


def _rounds(phases: Sequence[Phase], rows: int) -> Iterable[str]:
    """Each phase in a line."""
    first = 1
    for phase in phases:
        last = first + phase.rounds - 1
        when = f"{first}" if phase.rounds == 1 else f"{first} to {last}"
        verb = "selects" if phase.selects else "measures"
        what = phase.what or ("group of queries" if phase.picks == 1 else "groups of queries")
        yield f"{when} {verb} {phase.picks:,} {what}{_noise(phase, rows)}"
        first = last + 1


def _noise(phase: Phase, rows: int) -> str:
    if phase.noise_in_rows is None:
        return ""
    low, high = phase.noise_in_rows
    several = f"{_number(low)} to {_number(high)}" if high > 1.01 * low else _number(low)
    share = f"{_number(low / rows)} to {_number(high / rows)}" if high > 1.01 * low else _number(low / rows)
    return f", each with a noise of {several} rows on a cell ({share} of all)"


def _phase(phase: Phase, rows: int) -> dict[str, Any]:
    noise = None if phase.noise_in_rows is None else [float(f"{scale:.6g}") for scale in phase.noise_in_rows]
    return {"rounds": phase.rounds, "picks": phase.picks, "selects": phase.selects, "what": phase.what, "noise": noise}


def _basis(found: Expected, situation: Situation) -> str:
    """What the forecast rests on."""
    known = laws()
    shape = "schema, rows and budget" if situation.shares is None else "schema, rows, budget and a public table"
    text = f"based on {shape}: laws fitted to {known.runs} measured cases of {known.tables} tables; "
    text += "the time on a probe of this machine"
    if not found.outside:
        return text
    return f"{text}; outside of these tables in {', '.join(found.outside)}, so trust it less"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _range(one: Estimate) -> str:
    return f"{_number(one.low)} to {_number(one.high)}"


def show_seconds(seconds: float) -> str:
    """A time in a readable unit.

    Args:
        seconds: the time.
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
