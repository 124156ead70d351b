"""GEM with its noise z fixed or drawn again at every step, on ADULT.

Rerun it with ``python -m experiments run resample``.
"""

from experiments import paper
from experiments.grid import Claim, Experiment, Panel, Sweep, points

EXPERIMENT = Experiment(
    title="Resampling the noise of GEM",
    figure="the figure of resampling in the appendix",
    panels=(Panel("ADULT", "adult"),),
    sweeps=(
        Sweep("GEM", "gem", ("adult",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(rounds=(60,)), defaults=False),
        Sweep("GEM, resampled", "gem", ("adult",), grouping="query", fixed={**paper.GEM_FIXED, "resample": True},
              grid=paper.GEM_ADULT, subset=points(rounds=(60,)), defaults=False),
    ),
    claims=(
        Claim("resampling makes little difference to the max error", "similar", "GEM, resampled", "GEM", value=1.25),
        Claim("the same for the root-mean-square error", "similar", "GEM, resampled", "GEM", value=1.25, metric="rmse"),
    ),
)  # fmt: skip
