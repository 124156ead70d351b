"""Integer-program solvers on random conjunctions over ADULT's attributes, with and without costs on values."""

from __future__ import annotations

import numpy as np
from measuring.data import ADULT_SIZES as SIZES
from measuring.machine import seconds
from measuring.markdown import section

from pointillist.solvers.integer_programs import (
    SOLVERS,
    Conjunction,
    IntegerProgram,
    Limits,
    Solution,
    local_search,
    solver,
)

LIMIT = 20.0
PROBLEMS = 3


def random_problem(rng: np.random.Generator, conjunctions: int, costs: bool) -> IntegerProgram:
    """Conjunctions of three random values, each negated with probability one half."""
    parts = []
    for _ in range(conjunctions):
        attributes = tuple(sorted(rng.choice(len(SIZES), 3, replace=False).tolist()))
        values = tuple(int(rng.integers(SIZES[i])) for i in attributes)
        parts.append(Conjunction(attributes, values, float(rng.choice([-1.0, 1.0]))))
    return IntegerProgram(SIZES, tuple(parts), tuple(rng.exponential(1.0, s) for s in SIZES) if costs else None)


def timed(name: str, problems: list[IntegerProgram]) -> str:
    """Seconds per problem of a solver, and how many optima it proved."""
    solutions: list[Solution] = []
    spent = seconds(lambda: solutions.extend(solver(name).solve(problem, Limits(LIMIT)) for problem in problems))
    return f"{spent / len(problems):.3f} ({sum(s.optimal for s in solutions)}/{len(problems)})"


def searched(problems: list[IntegerProgram]) -> str:
    """Seconds per problem of the local search."""
    return f"{seconds(lambda: [local_search(problem) for problem in problems]) / len(problems):.3f}"


def run() -> str:
    """Every solver on the same problems."""
    rng = np.random.default_rng(0)
    rows = []
    for costs in (False, True):
        for conjunctions in (50, 100, 250, 500):
            problems = [random_problem(rng, conjunctions, costs) for _ in range(PROBLEMS)]
            cells = [timed(name, problems) for name in SOLVERS]
            rows.append((conjunctions, "yes" if costs else "no", *cells, searched(problems)))
    return section(
        "Solvers, seconds per problem (proven optima)",
        ("conjunctions", "costs", *SOLVERS, "local search"),
        rows,
        f"Mean of {PROBLEMS} random problems, half of the conjunctions negated, time limit {LIMIT:g} s.",
    )
