"""MWEM with and without its past measurements. Rerun it with ``python -m experiments run past``.

In the paper a query may be selected again: the curves "may repeat" and "no past queries". The curve "MWEM" is our
default, which selects no query twice; so it is in the main comparison.
"""

from experiments import paper
from experiments.grid import Claim, Experiment, Panel, Sweep, points
from experiments.main.config import ERRORS

SMALL = ("adult-reduced", "acs-pa-reduced")

EXPERIMENT = Experiment(
    title="MWEM with and without past queries",
    figure="the figure of MWEM without past queries in the appendix",
    panels=(Panel("ADULT (reduced)", "adult-reduced"), Panel("ACS-2024 PA (reduced)", "acs-pa-reduced")),
    sweeps=(
        Sweep("MWEM", "mwem", SMALL, grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(**paper.MWEM_PAST)),
        Sweep("MWEM, may repeat", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_REPEAT_FIXED,
              grid=paper.MWEM_PAST, subset=points(**paper.MWEM_PAST), defaults=False),
        Sweep("MWEM, no past queries", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(**paper.MWEM), defaults=False),
        Sweep("MWEM, no past queries", "mwem", SMALL[1:], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(rounds=(100, 200, 500)), defaults=False),
    ),
    claims=tuple(
        Claim(f"{first} has a smaller {told} error than {second}", "lower", first, second, metric=metric)
        for first, second in (("MWEM, may repeat", "MWEM, no past queries"), ("MWEM", "MWEM, no past queries"),
                              ("MWEM, may repeat", "MWEM"))
        for metric, told in ERRORS.items()
    ),
)  # fmt: skip
