"""MWEM with and without its past measurements. Rerun it with ``python -m experiments run past``."""

from experiments import paper
from experiments.grid import Claim, Experiment, Panel, Sweep, points

SMALL = ("adult-reduced", "acs-pa-reduced")

EXPERIMENT = Experiment(
    title="MWEM with and without past queries",
    figure="the figure of MWEM without past queries in the appendix",
    panels=(Panel("ADULT (reduced)", "adult-reduced"), Panel("ACS-2024 PA (reduced)", "acs-pa-reduced")),
    sweeps=(
        Sweep("MWEM", "mwem", SMALL, grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(**paper.MWEM_PAST)),
        Sweep("MWEM, no past queries", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(**paper.MWEM), defaults=False),
        Sweep("MWEM, no past queries", "mwem", SMALL[1:], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(rounds=(100, 200, 500)), defaults=False),
    ),
    claims=(
        Claim("past queries lower the max error", "lower", "MWEM", "MWEM, no past queries"),
        Claim("past queries lower the mean error", "lower", "MWEM", "MWEM, no past queries", metric="mean"),
        Claim("past queries lower the root-mean-square error", "lower", "MWEM", "MWEM, no past queries",
              metric="rmse"),
    ),
)  # fmt: skip
