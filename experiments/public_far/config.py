"""Public data with insufficient support, or without some of the attributes.

Rerun it with ``python -m experiments run public_far``. The data of California are far from those of
Pennsylvania. Its person file is short and lacks most columns, so it is used in two ways: over the columns that both
states have, and as a public table that lacks columns. For ADULT the public table has 7 of the 13 attributes, as in the
paper. On ACS the methods for public data run with their defaults only.
"""

from experiments import paper
from experiments.grid import SOME_EPSILONS, Claim, Experiment, Panel, Sweep, in_every_error, points
from experiments.public_near.config import GEM_PUB_ROUNDS

SHARED = ("acs-pa-shared",)

EXPERIMENT = Experiment(
    title="Public data that is far or lacks attributes",
    figure="Figure 2a, left, and Figure 2b; the figures of ACS and ADULT with public data in the appendix",
    panels=(
        Panel("ACS-2024 PA, shared columns,\npublic: California", "acs-pa-shared", ("acs-ca-shared",)),
        Panel("ACS-2024 PA, all columns,\npublic: California", "acs-pa", ("acs-ca",)),
        Panel("ADULT, public: 10 % of the\nrows, 7 or all attributes", "adult",
              ("adult-public-reduced", "adult-public")),
    ),
    sweeps=(
        Sweep("GEM", "gem", SHARED, grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS,
              epsilons=SOME_EPSILONS),
        Sweep("GEM", "gem", ("acs-pa",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS,
              subset=points(rounds=(100, 200)), epsilons=SOME_EPSILONS),
        Sweep("GEM", "gem", ("adult",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(**paper.GEM_ADULT)),
        Sweep("GEM-Pub", "gem_pub", SHARED, "acs-ca-shared", "query", paper.GEM_PUB_FIXED, paper.GEM_PUB_ACS,
              epsilons=SOME_EPSILONS),
        Sweep("GEM-Pub (lacks columns)", "gem_pub", ("acs-pa",), "acs-ca", "query", paper.GEM_PUB_FIXED,
              paper.GEM_PUB_ACS, epsilons=SOME_EPSILONS),
        Sweep("GEM-Pub (lacks columns)", "gem_pub", ("adult",), "adult-public-reduced", "query", paper.GEM_PUB_FIXED,
              paper.GEM_PUB_ADULT, points(rounds=GEM_PUB_ROUNDS)),
        Sweep("GEM-Pub", "gem_pub", ("adult",), "adult-public", "query", paper.GEM_PUB_FIXED, paper.GEM_PUB_ADULT,
              points(rounds=GEM_PUB_ROUNDS)),
        Sweep("PMW-Pub", "pmw_pub", SHARED, "acs-ca-shared", "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              epsilons=SOME_EPSILONS),
        Sweep("PEP-Pub", "pep_pub", SHARED, "acs-ca-shared", "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              epsilons=SOME_EPSILONS),
    ),
    claims=(
        Claim("far public data: the max error of PMW-Pub stays above 0.1", "above", "PMW-Pub (defaults)", value=0.1,
              datasets=SHARED),
        *in_every_error("far public data: GEM-Pub beats GEM without public data (our defaults)", "lower",
                        "GEM-Pub (defaults)", "GEM (defaults)", datasets=SHARED),
        *in_every_error("far public data: GEM-Pub beats PMW-Pub (our defaults)", "lower", "GEM-Pub (defaults)",
                        "PMW-Pub (defaults)", datasets=SHARED),
        *in_every_error("far public data: PEP-Pub performs like PMW-Pub (our defaults)", "similar",
                        "PEP-Pub (defaults)", "PMW-Pub (defaults)", value=1.5, datasets=SHARED),
        *in_every_error("missing attributes: GEM-Pub still beats GEM, on ADULT and ACS (our defaults)", "lower",
                        "GEM-Pub (lacks columns) (defaults)", "GEM (defaults)"),
        *in_every_error("missing attributes: GEM-Pub still beats GEM on ADULT, each at its best", "lower",
                        "GEM-Pub (lacks columns)", "GEM", datasets=("adult",)),
        *in_every_error("missing attributes: complete public data helps more on ADULT (our defaults)", "lower",
                        "GEM-Pub (defaults)", "GEM-Pub (lacks columns) (defaults)", datasets=("adult",)),
        *in_every_error("missing attributes: complete public data helps more on ADULT, each at its best", "lower",
                        "GEM-Pub", "GEM-Pub (lacks columns)", datasets=("adult",)),
    ),
)  # fmt: skip
