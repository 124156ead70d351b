"""Best responses: the record x that maximises a weighted sum of conjunctions, by integer programming.

    maximise   sum_c w_c [x satisfies c]  -  sum_i eta_i[x_i]      over records x of the domain,

with weights of either sign and optional costs eta on single values. The problem is NP-hard; solvers stand behind
one small protocol, take a time limit and a gap, and say whether they proved their answer optimal.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pointillist.checks import one_of, positive, share
from pointillist.data.domain import Domain
from pointillist.errors import InputError, Shown
from pointillist.privacy.scores import Pick
from pointillist.queries.cells import box_of
from pointillist.reporting import Tally

__all__ = [
    "SOLVERS",
    "Conjunction",
    "IntegerProgram",
    "Limits",
    "MaxSat",
    "Milp",
    "Solution",
    "Solver",
    "best_response",
    "local_search",
    "solve_many",
    "solver",
]


@dataclass(frozen=True)
class Conjunction:
    """The predicate x_i = y_i for all attributes i, with a weight."""

    attributes: tuple[int, ...]
    values: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class IntegerProgram:
    """Conjunctions over attributes of the given sizes, and the costs eta (one array per attribute, or none)."""

    sizes: tuple[int, ...]
    conjunctions: tuple[Conjunction, ...]
    costs: tuple[np.ndarray, ...] | None = None
    defaults: tuple[int, ...] | None = None
    """Where many values are equally good, because no conjunction names them: the one to take, or the next such one."""

    def value(self, record: Sequence[int]) -> float:
        """The objective at a record."""
        met = (c for c in self.conjunctions if all(record[i] == y for i, y in zip(c.attributes, c.values, strict=True)))
        paid = 0.0 if self.costs is None else sum(costs[x] for costs, x in zip(self.costs, record, strict=True))
        return float(sum(c.weight for c in met) - paid)

    @cached_property
    def choices(self) -> list[list[int]]:
        """For each attribute the values worth considering: those in a conjunction, and the cheapest of the others."""
        named: list[set[int]] = [set() for _ in self.sizes]
        for c in self.conjunctions:
            for attribute, value in zip(c.attributes, c.values, strict=True):
                named[attribute].add(value)
        choices = []
        for i, size in enumerate(self.sizes):
            first = 0 if self.defaults is None else self.defaults[i]
            rest = [v % size for v in range(first, first + size) if v % size not in named[i]]
            best = min(rest, key=lambda v: 0.0 if self.costs is None else float(self.costs[i][v]), default=None)
            choices.append(sorted(named[i]) + ([] if best is None else [best]))
        if not all(choices):
            rule, hint = "must have a value for every attribute", "check the schema: no record is feasible"
            raise InputError("record", Shown("an attribute without values"), rule, hint)
        return choices


@dataclass(frozen=True)
class Limits:
    """When a solver may stop: after ``seconds``, or within a relative ``gap`` of the best possible value."""

    seconds: float = 10.0
    gap: float = 0.0

    def __post_init__(self) -> None:
        positive("time_limit", self.seconds, 10)
        share("gap", self.gap, "0, for proven optima", zero=True)


@dataclass(frozen=True)
class Solution:
    """A record, its value, and whether it is proven to be the best (within the gap asked for)."""

    record: tuple[int, ...]
    value: float
    optimal: bool


class Solver(Protocol):
    """Finds the best record."""

    def solve(self, problem: IntegerProgram, limits: Limits) -> Solution: ...


class MaxSat:
    """Weighted MaxSAT by RC2 (python-sat): core-guided, exact, fastest here up to some hundred conjunctions.

    Each attribute takes one of its choices. A conjunction of positive weight is a new variable that implies its
    literals, softly true; one of negative weight is a softly violated clause; a cost is a soft unit clause.
    Weights are rounded to multiples of 2^-20 of the largest, so the arithmetic inside is exact.
    """

    def solve(self, problem: IntegerProgram, limits: Limits) -> Solution:
        from pysat.examples.rc2 import RC2Stratified
        from pysat.formula import WCNF

        start = time.monotonic()
        formula, literals, unit = self._encode(problem, WCNF())
        guess = local_search(problem)
        guess_value = problem.value(guess)
        if not formula.soft:
            return Solution(guess, guess_value, True)
        total = sum(formula.wght)
        floor = self._constant(problem)
        # Without the detection of at-most-one constraints and core exhaustion, RC2 is hundreds of times slower here.
        with RC2Stratified(formula, solver="g3", adapt=True, exhaust=True, minz=True, blo="div") as rc2:
            done = threading.Event()

            def watch() -> None:
                """Interrupt at the time limit, or when RC2's lower bound on the cost proves the guess good enough."""
                while not done.wait(0.002):
                    bound = (total - rc2.cost) * unit + floor
                    close = limits.gap > 0 and guess_value >= bound - limits.gap * abs(bound)
                    if close or time.monotonic() - start > limits.seconds:
                        rc2.interrupt()
                        return

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                model = rc2.compute(expect_interrupt=True)
            finally:
                done.set()
                watcher.join()
            if model is None:
                bound = (total - rc2.cost) * unit + floor
                return Solution(guess, guess_value, guess_value >= bound - limits.gap * abs(bound))
            true = {literal for literal in model if literal > 0}
        record = tuple(next(v for v, lit in choice.items() if lit in true) for choice in literals)
        return Solution(record, problem.value(record), True)

    @staticmethod
    def _constant(problem: IntegerProgram) -> float:
        """The value of a record that satisfies no soft clause."""
        lost = sum(c.weight for c in problem.conjunctions if c.weight < 0)
        return float(lost - sum(max(costs[c] for c in choice) for costs, choice in _priced(problem)))

    @staticmethod
    def _encode(problem: IntegerProgram, formula: Any) -> tuple[Any, list[dict[int, int]], float]:
        top = 0
        literals: list[dict[int, int]] = []
        for choice in problem.choices:
            literals.append({value: top + n for n, value in enumerate(choice, start=1)})
            lits = list(literals[-1].values())
            top += len(lits)
            formula.append(lits)
            top = _at_most_one(formula, lits, top)
        soft: list[tuple[list[int], float]] = []
        for c in problem.conjunctions:
            terms = [literals[i][y] for i, y in zip(c.attributes, c.values, strict=True)]
            if c.weight > 0:
                top += 1
                for term in terms:
                    formula.append([-top, term])
                soft.append(([top], c.weight))
            elif c.weight < 0:
                soft.append(([-term for term in terms], -c.weight))
        for i, (costs, choice) in enumerate(_priced(problem)):
            dearest = max(costs[v] for v in choice)
            soft.extend(([literals[i][v]], dearest - costs[v]) for v in choice if costs[v] < dearest)
        unit = max((w for _, w in soft), default=1.0) * 2.0**-20
        for clause, weight in soft:
            if round(weight / unit) > 0:
                formula.append(clause, weight=round(weight / unit))
        return formula, literals, unit


def _priced(problem: IntegerProgram) -> Iterator[tuple[np.ndarray, list[int]]]:
    return zip(problem.costs or (), problem.choices, strict=problem.costs is not None)


def _at_most_one(formula: Any, lits: list[int], top: int) -> int:
    """At most one of ``lits``: pairwise for few, sequential counter for many; returns the last variable used."""
    if len(lits) <= 6:
        for n, first in enumerate(lits):
            for second in lits[n + 1 :]:
                formula.append([-first, -second])
        return top
    previous = 0
    for lit in lits[:-1]:  # the new variable says: some literal up to here is true
        top += 1
        formula.append([-lit, top])
        if previous:
            formula.append([-previous, top])
            formula.append([-lit, -previous])
        previous = top
    formula.append([-lits[-1], -previous])
    return top


class Milp:
    """Mixed-integer programming by HiGHS (SciPy): slower, but needs nothing beyond SciPy and takes any gap."""

    def solve(self, problem: IntegerProgram, limits: Limits) -> Solution:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        columns: list[dict[int, int]] = []
        at = 0
        for choice in problem.choices:
            columns.append({value: at + n for n, value in enumerate(choice)})
            at += len(choice)
        n_binary = at
        objective = [0.0] * n_binary
        for i, (costs, choice) in enumerate(_priced(problem)):
            for v in choice:
                objective[columns[i][v]] = float(costs[v])
        entries: list[tuple[int, int, float]] = []
        low: list[float] = []
        high: list[float] = []

        def constrain(terms: list[tuple[int, float]], least: float, most: float) -> None:
            entries.extend((len(low), column, factor) for column, factor in terms)
            low.append(least)
            high.append(most)

        for options in columns:
            constrain([(column, 1.0) for column in options.values()], 1, 1)
        for c in problem.conjunctions:  # z = 1 iff all its literals are 1; the objective pushes z one way
            terms = [columns[i][y] for i, y in zip(c.attributes, c.values, strict=True)]
            objective.append(-c.weight)
            if c.weight > 0:
                for term in terms:
                    constrain([(at, 1.0), (term, -1.0)], -np.inf, 0)
            else:
                constrain([(at, 1.0), *((term, -1.0) for term in terms)], 1 - len(terms), np.inf)
            at += 1
        rows, cols, data = zip(*entries, strict=True)
        matrix = coo_array((data, (rows, cols)), shape=(len(low), at)).tocsr()
        integer = np.arange(at) < n_binary
        result = milp(
            objective, integrality=integer.astype(int), bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, low, high),
            options={"time_limit": limits.seconds, "mip_rel_gap": limits.gap},
        )  # fmt: skip
        if result.x is None:
            guess = local_search(problem)
            return Solution(guess, problem.value(guess), False)
        record = tuple(max(options, key=lambda v: result.x[options[v]]) for options in columns)
        return Solution(record, problem.value(record), result.status == 0)


SOLVERS: dict[str, type[MaxSat] | type[Milp]] = {"maxsat": MaxSat, "milp": Milp}


def solver(name: str) -> Solver:
    """The solver called ``name``."""
    return SOLVERS[one_of("solver", name, SOLVERS, "must be one of the solvers")]()


def local_search(problem: IntegerProgram, starts: int = 16, seed: int = 0) -> tuple[int, ...]:
    """A good record without proof: best single changes from several random starts."""
    choices = problem.choices
    rng = np.random.default_rng(seed)
    touching: list[list[int]] = [[] for _ in choices]
    for n, c in enumerate(problem.conjunctions):
        for i in c.attributes:
            touching[i].append(n)
    best: tuple[float, tuple[int, ...]] | None = None
    for _ in range(starts):
        record = [choice[int(rng.integers(len(choice)))] for choice in choices]
        improved = True
        while improved:
            improved = False
            for i in rng.permutation(len(choices)):
                gains = dict.fromkeys(choices[i], 0.0)
                if problem.costs is not None:
                    gains = {v: -float(problem.costs[i][v]) for v in choices[i]}
                for n in touching[i]:
                    c = problem.conjunctions[n]
                    others = zip(c.attributes, c.values, strict=True)
                    if all(j == i or record[j] == y for j, y in others):
                        gains[c.values[c.attributes.index(int(i))]] += c.weight
                top = max(gains, key=lambda v: gains[v])
                if gains[top] > gains[record[i]] + 1e-12:
                    record[i], improved = top, True
        value = problem.value(record)
        if best is None or value > best[0]:
            best = (value, tuple(record))
    assert best is not None
    return best[1]


def best_response(
    domain: Domain,
    picks: Mapping[Pick, int],
    costs: tuple[np.ndarray, ...] | None = None,
    defaults: tuple[int, ...] | None = None,
) -> IntegerProgram:
    """argmax over x of sum_i sign_i q_i(x) - <x, costs>, each pick counted as often as it was drawn."""
    conjunctions = []
    for pick, times in picks.items():
        box = box_of(pick.queries)
        if box is None or any(high > low + 1 for low, high in box.values()):
            raise ValueError("an integer program needs single cells of marginals")
        values = tuple(low for low, _ in box.values())
        conjunctions.append(Conjunction(tuple(box), values, float(pick.sign * times)))
    return IntegerProgram(domain.sizes, tuple(conjunctions), costs, defaults)


def solve_many(name: str, problems: Sequence[IntegerProgram], limits: Limits) -> list[Solution]:
    """Solve several problems, in parallel processes where there are cores for it; answers in order."""
    chosen = solver(name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    tally, solved = Tally(len(problems)), []
    for solution in _solutions(chosen, problems, limits, cores):
        solved.append(solution)
        tally.made(len(solved))
    tally.end(len(solved))
    return solved


def _solutions(chosen: Solver, problems: Sequence[IntegerProgram], limits: Limits, cores: int) -> Iterator[Solution]:
    """The solutions in order, as they are found."""
    if cores == 1 or len(problems) < 4:
        return (chosen.solve(problem, limits) for problem in problems)
    from joblib import Parallel, delayed

    found: Iterator[Solution] = Parallel(n_jobs=cores, return_as="generator")(
        delayed(chosen.solve)(problem, limits) for problem in problems
    )
    return found
