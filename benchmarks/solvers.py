"""Integer-program solvers on random conjunctions over ADULT's attributes, with and without costs on values."""

from __future__ import annotations

import numpy as np

from benchmarks.common import markdown, seconds
from pointillist.updates.oracle import ORACLES, Conjunction, Limits, Problem, local_search, solver

SIZES = (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10)
LIMIT = 20.0


def random_problem(rng: np.random.Generator, conjunctions: int, costs: bool) -> Problem:
    parts = []
    for _ in range(conjunctions):
        attributes = tuple(sorted(rng.choice(len(SIZES), 3, replace=False).tolist()))
        values = tuple(int(rng.integers(SIZES[i])) for i in attributes)
        parts.append(Conjunction(attributes, values, float(rng.choice([-1.0, 1.0]))))
    return Problem(SIZES, tuple(parts), tuple(rng.exponential(1.0, s) for s in SIZES) if costs else None)


def run() -> str:
    rng = np.random.default_rng(0)
    rows = []
    for costs in (False, True):
        for conjunctions in (50, 100, 250, 500):
            problems = [random_problem(rng, conjunctions, costs) for _ in range(3)]
            cells: list[str] = []
            for name in ORACLES:
                solutions = []
                spent = seconds(
                    lambda n=name, p=problems, s=solutions: s.extend(solver(n).solve(x, Limits(LIMIT)) for x in p)
                )
                cells.append(f"{spent / 3:.3f} ({sum(s.optimal for s in solutions)}/3)")
            guesses = []
            spent = seconds(lambda p=problems, g=guesses: g.extend(local_search(x) for x in p))
            cells.append(f"{spent / 3:.3f}")
            rows.append((conjunctions, "yes" if costs else "no", *cells))
    return markdown(
        "Solvers, seconds per problem (proven optima)",
        ("conjunctions", "costs", *ORACLES, "local search"),
        rows,
        f"Mean of 3 random problems, half of the conjunctions negated, time limit {LIMIT:g} s.",
    )
