"""GEM with its noise z fixed or drawn again at every step, on ADULT.

Rerun it with ``python -m experiments run resample``.
"""

from experiments import paper
from experiments.grid import Experiment, Panel, Sweep, in_every_error, points

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
    claims=in_every_error("resampling makes little difference (read as: a factor of 1.25)", "similar", "GEM, resampled",
                          "GEM", value=1.25),
)  # fmt: skip
