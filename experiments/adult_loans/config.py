"""ADULT* and LOANS with 64 random three-way marginals. Rerun it with ``python -m experiments run adult_loans``.

The domains of these tables are large and a run takes long: few settings of the grids are run, GEM's defaults on ADULT*
only, and those of RAP-softmax on neither table.
"""

from experiments import paper
from experiments.grid import Claim, Experiment, Panel, Sweep, points
from experiments.main.config import ERRORS, FEW, MANY

BOTH = ("adult-star", "loans")

EXPERIMENT = Experiment(
    title="ADULT* and LOANS",
    figure="the figure of ADULT* and LOANS in the appendix",
    panels=(Panel("ADULT*", "adult-star"), Panel("LOANS", "loans")),
    sweeps=(
        Sweep("Auto", "auto", BOTH),
        Sweep("GEM", "gem", BOTH[:1], grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(rounds=(30, 60, 100))),
        Sweep("GEM", "gem", BOTH[1:], grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(rounds=(30, 60, 100)), defaults=False),
        Sweep("RAP-softmax", "rap_softmax", BOTH, grouping="query", fixed=paper.RAP_SOFTMAX_FIXED,
              grid=paper.RAP_SOFTMAX, subset=(FEW, MANY), defaults=False),
        Sweep("RAP", "rap", BOTH, grouping="query", fixed=paper.RAP_FIXED, grid=paper.RAP, subset=(FEW,),
              defaults=False),
    ),
    claims=tuple(
        Claim(f"{first} beats {second}: {told} error", "lower", first, second, metric=metric)
        for first, second in (("GEM", "RAP-softmax"), ("GEM", "RAP"), ("RAP-softmax", "RAP"))
        for metric, told in ERRORS.items()
    ),
)  # fmt: skip
