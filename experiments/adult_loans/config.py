"""ADULT* and LOANS with 64 random three-way marginals. Rerun it with ``python -m experiments run adult_loans``.

The domains of these tables are large and a run takes long: few settings of the grids are run, GEM's defaults on ADULT*
only, and those of RAP-softmax on neither table.
"""

from experiments import paper
from experiments.grid import Claim, Experiment, Panel, Sweep, in_every_error, points
from experiments.main.config import FEW, MANY

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
    claims=(
        *(
            claim
            for first, second in (("GEM", "RAP-softmax"), ("GEM", "RAP"), ("RAP-softmax", "RAP"))
            for claim in in_every_error(f"{first} beats {second}", "lower", first, second)
        ),
        Claim("RAP performs reasonably well in the max error (read as: within a factor of 2 of RAP-softmax)", "similar",
              "RAP", "RAP-softmax", value=2.0),
    ),
)  # fmt: skip
