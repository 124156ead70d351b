"""Public tables with insufficient support, built for the purpose, on ADULT (reduced).

Rerun it with ``python -m experiments run support``. The three public tables are parts of the public rows of ADULT
(``measuring/data.py``): 200 of them, those without a high income, and those of people born outside the United States.
"Best mixture" is the smallest max error that any weights on the public records can have. It is computed from the truth
and does not depend on epsilon. By query GEM and GEM-Pub run with a smaller network than the paper's, because one run
with the paper's takes minutes on two cores.
"""

from typing import Any

from experiments import paper
from experiments.grid import FLOOR, Claim, Experiment, Panel, Point, Sweep, in_every_error, points

TABLE = ("adult-reduced",)
PUBLIC = {
    "adult-few": "200 rows",
    "adult-low-income": "no high incomes",
    "adult-foreign-born": "born abroad",
}
"""The public tables, and what they have."""
MIXTURE = "Best mixture"
BEST_RATIO = 9.23
"""How many times smaller than that of PMWPub the paper finds the max error of GEMPub at epsilon 1."""
SMALL = {"gem": "GEM, small network", "gem_pub": "GEM-Pub, small network"}
SMALL_ROUNDS = {"gem": (30, 60, 100), "gem_pub": (10, 30, 100)}
"""3 of the numbers of rounds that the paper tries on ADULT."""


def small_network(method: str, fixed: Point, public: str = "") -> tuple[Sweep, ...]:
    """GEM or GEMPub by query with a small network."""
    return tuple(
        Sweep(SMALL[method], method, TABLE, public, "query", {**fixed, **paper.SMALL_NETWORK, "rounds": rounds},
              subset=({},), defaults=False)
        for rounds in SMALL_ROUNDS[method]
    )  # fmt: skip


def sweeps_on(public: str) -> tuple[Sweep, ...]:
    """The methods with one public table."""
    return (
        Sweep(MIXTURE, FLOOR, TABLE, public, subset=({},), defaults=False),
        Sweep("PMW-Pub", "pmw_pub", TABLE, public, "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              points(rounds=(50, 100, 200))),
        Sweep("PEP-Pub", "pep_pub", TABLE, public, "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              points(rounds=(20, 60, 100))),
        Sweep("GEM-Pub", "gem_pub", TABLE, public),
        *small_network("gem_pub", paper.GEM_PUB_FIXED, public),
    )  # fmt: skip


def defaults(label: str) -> str:
    """The curve of a method with our defaults."""
    return f"{label} (defaults)"


def both_ways(text: str, kind: str, first: str, second: str, **options: Any) -> tuple[Claim, ...]:
    """A claim on two methods: by query at their best, with the same network, and with our defaults."""
    small = {"GEM": SMALL["gem"], "GEM-Pub": SMALL["gem_pub"]}
    at_best = [small.get(label, label) for label in (first, second)]
    return (
        *in_every_error(f"{text} (by query, each at its best)", kind, *at_best, **options),
        *in_every_error(f"{text} (our defaults)", kind, defaults(first), defaults(second), **options),
    )


EXPERIMENT = Experiment(
    title="Insufficient support, constructed",
    figure="Figure 2a, left, on tables that were built to show it",
    panels=tuple(Panel(f"ADULT (reduced),\npublic: {told}", TABLE[0], (public,)) for public, told in PUBLIC.items()),
    sweeps=(
        Sweep("GEM", "gem", TABLE),
        *small_network("gem", paper.GEM_FIXED),
        *(sweep for public in PUBLIC for sweep in sweeps_on(public)),
    ),
    claims=(
        *(
            Claim(f"{label} cannot get below the best mixture ({told})", "not below", curve, MIXTURE)
            for label in ("PMW-Pub", "PEP-Pub")
            for curve, told in ((label, "by query, at its best"), (defaults(label), "our defaults"))
        ),
        Claim("GEM-Pub gets below the best mixture (by query, at its best)", "lower", SMALL["gem_pub"],
              MIXTURE),
        Claim("GEM-Pub gets below the best mixture (our defaults)", "lower", defaults("GEM-Pub"), MIXTURE),
        *both_ways("GEM-Pub beats PMW-Pub", "lower", "GEM-Pub", "PMW-Pub"),
        *both_ways("GEM-Pub beats GEM without public data", "lower", "GEM-Pub", "GEM"),
        *both_ways("PEP-Pub performs like PMW-Pub", "similar", "PEP-Pub", "PMW-Pub", value=1.5),
        *(
            Claim(f"at epsilon 1 GEM-Pub has a max error {BEST_RATIO} times smaller than PMW-Pub ({told})", "times",
                  *curves, value=BEST_RATIO, epsilons=(1.0,))
            for curves, told in (((SMALL["gem_pub"], "PMW-Pub"), "by query, each at its best"),
                                 ((defaults("GEM-Pub"), defaults("PMW-Pub")), "our defaults"))
        ),
    ),
)  # fmt: skip
