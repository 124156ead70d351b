"""Public data with sufficient support: a neighbouring state for ACS, and the public rows of ADULT.

Rerun it with ``python -m experiments run public_near``. In the paper the public
tables for Pennsylvania in 2018 are Pennsylvania in 2010 and Ohio in 2018; here they are Ohio and New York of the same
year. On ACS a run can take minutes: there PMW-Pub and PEP-Pub run with their defaults only, and GEM-Pub with few
settings.
"""

from experiments import paper
from experiments.grid import SOME_EPSILONS, Experiment, Panel, Sweep, in_every_error, points

ACS = ("acs-pa",)
GEM_PUB_ROUNDS = (2, 5, 10, 30, 60, 100)
"""6 of the 13 numbers of rounds that the paper tries on ADULT."""

EXPERIMENT = Experiment(
    title="Public data with sufficient support",
    figure="Figure 2a, right, and Figure 2b; the figures of ACS and ADULT with public data in the appendix",
    panels=(
        Panel("ACS-2024 PA,\npublic: Ohio", "acs-pa", ("acs-oh",)),
        Panel("ACS-2024 PA,\npublic: New York", "acs-pa", ("acs-ny",)),
        Panel("ADULT,\npublic: 10 % of the rows", "adult", ("adult-public",)),
    ),
    sweeps=(
        Sweep("GEM", "gem", ACS, grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS,
              subset=points(rounds=(100, 200)), epsilons=SOME_EPSILONS),
        Sweep("GEM", "gem", ("adult",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(**paper.GEM_ADULT)),
        Sweep("Auto", "auto", ("adult",), epsilons=SOME_EPSILONS),
        Sweep("Auto, public", "auto", ("adult",), "adult-public", epsilons=SOME_EPSILONS),
        Sweep("GEM-Pub", "gem_pub", ACS, "acs-oh", "query", paper.GEM_PUB_FIXED, paper.GEM_PUB_ACS,
              points(rounds=(30, 100)), epsilons=SOME_EPSILONS),
        Sweep("GEM-Pub", "gem_pub", ACS, "acs-ny", "query", paper.GEM_PUB_FIXED, paper.GEM_PUB_ACS,
              points(rounds=(30,)), epsilons=SOME_EPSILONS),
        Sweep("GEM-Pub", "gem_pub", ("adult",), "adult-public", "query", paper.GEM_PUB_FIXED, paper.GEM_PUB_ADULT,
              points(rounds=GEM_PUB_ROUNDS)),
        Sweep("PMW-Pub", "pmw_pub", ACS, "acs-oh", "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              epsilons=SOME_EPSILONS),
        Sweep("PMW-Pub", "pmw_pub", ACS, "acs-ny", "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              epsilons=SOME_EPSILONS),
        Sweep("PMW-Pub", "pmw_pub", ("adult",), "adult-public", "query", paper.MWEM_PAST_FIXED, paper.PMW_PUB,
              points(**paper.PMW_PUB)),
        Sweep("PEP-Pub", "pep_pub", ACS, "acs-oh", "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              epsilons=SOME_EPSILONS),
        Sweep("PEP-Pub", "pep_pub", ACS, "acs-ny", "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              epsilons=SOME_EPSILONS),
        Sweep("PEP-Pub", "pep_pub", ("adult",), "adult-public", "query", paper.PEP_PUB_FIXED, paper.PEP_PUB_ACS,
              points(**paper.PEP_PUB_ACS)),
    ),
    claims=(
        *in_every_error("GEM-Pub beats GEM without public data (our defaults)", "lower", "GEM-Pub (defaults)",
                        "GEM (defaults)"),
        *in_every_error("GEM-Pub beats GEM without public data, each at its best", "lower", "GEM-Pub", "GEM"),
        *in_every_error("PMW-Pub beats GEM without public data (our defaults)", "lower", "PMW-Pub (defaults)",
                        "GEM (defaults)"),
        *in_every_error("PMW-Pub beats GEM without public data on ADULT, each at its best", "lower", "PMW-Pub", "GEM",
                        datasets=("adult",)),
        *(
            claim
            for first in ("GEM-Pub", "PEP-Pub")
            for claim in (
                *in_every_error(f"{first} performs like PMW-Pub (our defaults)", "similar", f"{first} (defaults)",
                                "PMW-Pub (defaults)", value=1.5),
                *in_every_error(f"{first} performs like PMW-Pub on ADULT, each at its best", "similar", first,
                                "PMW-Pub", value=1.5, datasets=("adult",)),
            )
        ),
    ),
)  # fmt: skip
