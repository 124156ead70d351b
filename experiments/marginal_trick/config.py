"""The marginal trick: GEM that selects and measures whole marginals, against GEM by query.

Rerun it with ``python -m experiments run marginal_trick``. By marginal the paper makes up to 10,000 steps per
round, which takes too long here: by marginal GEM runs with our defaults, whose rounds end when the residual looks like
noise, and after at most 100 steps. On the wide ACS table few settings and epsilons were run.
"""

from experiments import paper
from experiments.grid import EPSILONS, SOME_EPSILONS, Experiment, Panel, Sweep, in_every_error, points

EXPERIMENT = Experiment(
    title="The marginal trick",
    figure="the figure of the marginal trick in the appendix",
    panels=(
        Panel("ADULT (reduced)", "adult-reduced"),
        Panel("ACS-2024 PA (reduced)", "acs-pa-reduced"),
        Panel("ADULT", "adult"),
        Panel("ACS-2024 PA", "acs-pa"),
    ),
    sweeps=(
        Sweep("GEM", "gem", ("adult-reduced", "adult"), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(**paper.GEM_ADULT), defaults=False),
        Sweep("GEM", "gem", ("acs-pa-reduced",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS_REDUCED,
              subset=points(rounds=(50, 75, 100, 125, 150)), defaults=False),
        Sweep("GEM", "gem", ("acs-pa",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS,
              subset=points(rounds=(100, 200)), defaults=False, epsilons=SOME_EPSILONS),
        *(
            Sweep("GEM, by marginal", "gem", (name,), grouping="marginal", fixed=paper.GEM_BY_MARGINAL_FIXED, grid=grid,
                  epsilons=SOME_EPSILONS if name == "acs-pa" else EPSILONS)
            for name, grid in paper.GEM_BY_MARGINAL.items()
        ),
    ),
    claims=in_every_error("by marginal (our defaults) beats by query (at its best)", "lower",
                          "GEM, by marginal (defaults)", "GEM"),
)  # fmt: skip
