"""Public tables with insufficient support, built for the purpose, on ADULT (reduced).

Rerun it with ``python -m experiments run support``. The three public tables are parts of the public rows of ADULT
(``measuring/data.py``): 200 of them, those without a high income, and those of people born outside the United States.
"Best mixture" is the smallest max error that any weights on the public records can have. It is computed from the truth
and does not depend on epsilon. By query GEM-Pub runs with a smaller network
than the paper's, because one run with the paper's takes minutes on two cores.
"""

from typing import Any

from experiments import paper
from experiments.grid import FLOOR, Claim, Experiment, Panel, Sweep, in_every_error, points

TABLE = ("adult-reduced",)
PUBLIC = {
    "adult-few": "200 rows",
    "adult-low-income": "no high incomes",
    "adult-foreign-born": "born abroad",
}
"""The public tables, and what they have."""
MIXTURE = "Best mixture (defaults)"
BEST_RATIO = 9.23
"""How many times smaller than that of PMWPub the paper finds the max error of GEMPub at epsilon 1."""
SMALL = "GEM-Pub, small network"


SMALL_ROUNDS = (10, 30, 100)
"""3 of the 13 numbers of rounds that the paper tries for GEMPub on ADULT."""


def sweeps_on(public: str) -> tuple[Sweep, ...]:
    """The methods with one public table."""
    return (
        Sweep("Best mixture", FLOOR, TABLE, public),
        Sweep("PMW-Pub", "pmw_pub", TABLE, public, "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              points(rounds=(50, 100, 200))),
        Sweep("PEP-Pub", "pep_pub", TABLE, public, "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              points(rounds=(20, 60, 100))),
        Sweep("GEM-Pub", "gem_pub", TABLE, public),
        *(
            Sweep(SMALL, "gem_pub", TABLE, public, "query",
                  {**paper.GEM_PUB_FIXED, **paper.SMALL_NETWORK, "rounds": rounds}, subset=({},), defaults=False)
            for rounds in SMALL_ROUNDS
        ),
    )  # fmt: skip


def defaults(label: str) -> str:
    """The curve of a method with our defaults."""
    return f"{label} (defaults)"


def both_ways(text: str, kind: str, first: str, second: str, **options: Any) -> tuple[Claim, ...]:
    """A claim on GEM-Pub or PEP-Pub and another method: by query at their best, and with our defaults."""
    at_best = SMALL if first == "GEM-Pub" else first
    return (
        *in_every_error(f"{text} (by query, at its best)", kind, at_best, second, **options),
        *in_every_error(f"{text} (our defaults)", kind, defaults(first), defaults(second), **options),
    )


EXPERIMENT = Experiment(
    title="Insufficient support, constructed",
    figure="Figure 2a, left, on tables that were built to show it",
    panels=tuple(Panel(f"ADULT (reduced),\npublic: {told}", TABLE[0], (public,)) for public, told in PUBLIC.items()),
    sweeps=(
        Sweep("GEM", "gem", TABLE, grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(**paper.GEM_ADULT)),
        *(sweep for public in PUBLIC for sweep in sweeps_on(public)),
    ),
    claims=(
        *(
            Claim(f"{label} cannot get below the best mixture ({told})", "lower", MIXTURE, curve)
            for label in ("PMW-Pub", "PEP-Pub")
            for curve, told in ((label, "by query, at its best"), (defaults(label), "our defaults"))
        ),
        Claim("GEM-Pub gets below the best mixture (by query, at its best)", "lower", SMALL, MIXTURE),
        Claim("GEM-Pub gets below the best mixture (our defaults)", "lower", defaults("GEM-Pub"), MIXTURE),
        *both_ways("GEM-Pub beats PMW-Pub", "lower", "GEM-Pub", "PMW-Pub"),
        *both_ways("GEM-Pub beats GEM without public data", "lower", "GEM-Pub", "GEM"),
        *both_ways("PEP-Pub performs like PMW-Pub", "similar", "PEP-Pub", "PMW-Pub", value=1.5),
        *(
            Claim(f"at epsilon 1 GEM-Pub has a max error {BEST_RATIO} times smaller than PMW-Pub ({told})", "times",
                  *curves, value=BEST_RATIO, epsilons=(1.0,))
            for curves, told in (((SMALL, "PMW-Pub"), "by query, at its best"),
                                 ((defaults("GEM-Pub"), defaults("PMW-Pub")), "our defaults"))
        ),
    ),
)  # fmt: skip
