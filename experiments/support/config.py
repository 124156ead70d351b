"""Public tables with insufficient support, built for the purpose, on ADULT (reduced).

Rerun it with ``python -m experiments run support``. The three public tables are parts of the public rows of ADULT
(``measuring/data.py``): 200 of them, those without a high income, and those of people born outside the United States.
"Best mixture" is the smallest max error that any weights on the public records can have. It is computed from the truth
and does not depend on epsilon. GEM-Pub runs with its defaults only: a run takes a minute or more on two cores.
"""

from experiments import paper
from experiments.grid import FLOOR, Claim, Experiment, Panel, Sweep, points
from experiments.main.config import ERRORS

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
REWEIGHTING = ("PMW-Pub", "PEP-Pub")


def sweeps_on(public: str) -> tuple[Sweep, ...]:
    """The methods with one public table."""
    return (
        Sweep("Best mixture", FLOOR, TABLE, public),
        Sweep("PMW-Pub", "pmw_pub", TABLE, public, "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              points(rounds=(50, 100, 200, 300))),
        Sweep("PEP-Pub", "pep_pub", TABLE, public, "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              points(rounds=(20, 60, 100, 200))),
        Sweep("GEM-Pub", "gem_pub", TABLE, public),
    )  # fmt: skip


def defaults(label: str) -> str:
    """The curve of a method with our defaults."""
    return f"{label} (defaults)"


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
            for label in REWEIGHTING
            for curve, told in ((label, "at its best"), (defaults(label), "our defaults"))
        ),
        *(
            Claim(f"GEM-Pub gets below the best mixture (our defaults): {told} error", "lower", defaults("GEM-Pub"),
                  MIXTURE, metric=metric)
            for metric, told in ERRORS.items()
        ),
        *(
            Claim(f"GEM-Pub beats {other} (our defaults): {told} error", "lower", defaults("GEM-Pub"), defaults(other),
                  metric=metric)
            for other in (*REWEIGHTING, "GEM")
            for metric, told in ERRORS.items()
        ),
        *(
            Claim(f"PEP-Pub performs like PMW-Pub ({told})", "similar", *curves, value=1.5)
            for curves, told in ((("PEP-Pub", "PMW-Pub"), "each at its best"),
                                 ((defaults("PEP-Pub"), defaults("PMW-Pub")), "our defaults"))
        ),
    ),
)  # fmt: skip
