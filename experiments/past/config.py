"""MWEM with and without its past measurements. Rerun it with ``python -m experiments run past``.

In the paper a query may be selected again: the curves "may repeat" and "no past queries". The curve "MWEM" is our
default, which selects no query twice; so it is in the main comparison.
"""

from experiments import paper
from experiments.grid import Experiment, Panel, Sweep, in_every_error, points
from experiments.main.config import PAPER_COLUMNS, THREE

SMALL = ("adult-reduced", "acs-pa-reduced")

EXPERIMENT = Experiment(
    title="MWEM with and without past queries",
    figure="the figure of MWEM without past queries in the appendix",
    panels=(
        Panel("ADULT (reduced)", "adult-reduced"),
        Panel("ACS-2024 PA (reduced)", "acs-pa-reduced"),
        Panel("ACS-2024 PA\n(the paper's columns)", PAPER_COLUMNS),
    ),
    sweeps=(
        Sweep("MWEM", "mwem", SMALL, grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(**paper.MWEM_PAST)),
        Sweep("MWEM, may repeat", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_REPEAT_FIXED,
              grid=paper.MWEM_PAST, subset=points(**paper.MWEM_PAST), defaults=False),
        Sweep("MWEM, no past queries", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(**paper.MWEM), defaults=False),
        Sweep("MWEM, no past queries", "mwem", SMALL[1:], grouping="query", fixed=paper.MWEM_FIXED, grid=paper.MWEM,
              subset=points(rounds=(100, 200, 500)), defaults=False),
        Sweep("MWEM", "mwem", (PAPER_COLUMNS,), grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(rounds=THREE["MWEM"])),
        Sweep("MWEM, may repeat", "mwem", (PAPER_COLUMNS,), grouping="query", fixed=paper.MWEM_REPEAT_FIXED,
              grid=paper.MWEM_PAST, subset=points(rounds=THREE["MWEM"]), defaults=False),
        Sweep("MWEM, no past queries", "mwem", (PAPER_COLUMNS,), grouping="query", fixed=paper.MWEM_FIXED,
              grid=paper.MWEM, subset=points(rounds=THREE["MWEM"]), defaults=False),
    ),
    claims=tuple(
        claim
        for first, second in (("MWEM, may repeat", "MWEM, no past queries"), ("MWEM", "MWEM, no past queries"),
                              ("MWEM, may repeat", "MWEM"))
        for claim in in_every_error(f"{first} beats {second}", "lower", first, second)
    ),
)  # fmt: skip
