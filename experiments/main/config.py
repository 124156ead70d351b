"""The main comparison: max, mean and root-mean-square error on four tables.

Rerun it with ``python -m experiments run main``. DualQuery only runs on the two small tables: it has hundreds of
rounds, and each draws from all queries one by one. Runs on the wide ACS table take long: there every method runs at
four epsilons and with few settings. On the table with the columns nearest to the paper's reduced ACS table
(``measuring/acs_paper.py``) only MWEM and PEP run, which need no GPU. "MWEM" selects no query twice, "MWEM, may repeat"
is the paper's.
"""

from typing import Any

from experiments import paper
from experiments.grid import EPSILONS, SOME_EPSILONS, Claim, Experiment, Panel, Sweep, in_every_error, points

SMALL = ("adult-reduced", "acs-pa-reduced")
FEW, MANY = {"picks": 5, "rounds": 10}, {"picks": 5, "rounds": 25}
EIGHT = (*points(picks=(5, 10), rounds=(5, 10, 25)), *points(picks=(25,), rounds=(5, 10)))
"""8 of the 35 settings of RAP-softmax."""

PAPER_COLUMNS = "acs-pa-paper"
THREE = {"MWEM": (100, 200, 300), "PEP": (30, 75, 150)}
"""3 of the 7 and of the 10 numbers of rounds of MWEM and PEP."""

REDUCED_ACS = ("acs-pa-reduced", PAPER_COLUMNS)
ALIKE = (0.1, 0.15)
"""Where the paper finds PEP and MWEM alike on its reduced ACS table."""
BOTH_MWEM = ("MWEM", "MWEM, may repeat")


def beats(first: str, second: str, where: str, tables: tuple[str, ...], **options: Any) -> tuple[Claim, ...]:
    """That a method has the smaller errors."""
    return in_every_error(f"{first} beats {second} {where}", "lower", first, second, datasets=tables, **options)


CLAIMS = (
    *(beats("PEP", mwem, "on ADULT (reduced)", SMALL[:1]) for mwem in BOTH_MWEM),
    *(beats("PEP", mwem, "on the reduced ACS from epsilon 0.2 on", REDUCED_ACS,
            epsilons=tuple(epsilon for epsilon in EPSILONS if epsilon not in ALIKE)) for mwem in BOTH_MWEM),
    *(in_every_error(f"PEP performs like {mwem} on the reduced ACS at epsilon 0.1 and 0.15", "similar", "PEP", mwem,
                     value=1.5, datasets=REDUCED_ACS, epsilons=ALIKE) for mwem in BOTH_MWEM),
    *(beats("GEM", mwem, "on the small tables", SMALL) for mwem in BOTH_MWEM),
    *(beats(first, second, "on the small tables", SMALL)
      for first in ("PEP", "GEM") for second in ("RAP-softmax", "DualQuery")),
    beats("GEM", "RAP-softmax", "on ADULT and ACS", ("adult", "acs-pa")),
)  # fmt: skip
"""The comparisons that the paper makes, in each of its three errors."""

EXPERIMENT = Experiment(
    title="Main comparison",
    apart=True,
    figure="Figure 1, and the figure of all errors in the appendix",
    panels=(
        Panel("ADULT (reduced)", "adult-reduced"),
        Panel("ACS-2024 PA (reduced)", "acs-pa-reduced"),
        Panel("ACS-2024 PA\n(the paper's columns)", PAPER_COLUMNS),
        Panel("ADULT", "adult"),
        Panel("ACS-2024 PA", "acs-pa"),
    ),
    sweeps=(
        Sweep("Auto", "auto", ("adult-reduced", "acs-pa-reduced", "adult")),
        Sweep("Auto", "auto", ("acs-pa",), epsilons=SOME_EPSILONS),
        Sweep("GEM", "gem", ("adult-reduced", "adult"), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ADULT,
              subset=points(**paper.GEM_ADULT)),
        Sweep("GEM", "gem", ("acs-pa-reduced",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS_REDUCED,
              subset=points(rounds=(50, 75, 100, 125, 150))),
        Sweep("GEM", "gem", ("acs-pa",), grouping="query", fixed=paper.GEM_FIXED, grid=paper.GEM_ACS,
              subset=points(rounds=(100, 200)), epsilons=SOME_EPSILONS),
        Sweep("PEP", "pep", SMALL, grouping="query", fixed=paper.PEP_FIXED, grid=paper.PEP,
              subset=points(**paper.PEP)),
        Sweep("MWEM", "mwem", SMALL, grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(**paper.MWEM_PAST)),
        Sweep("MWEM, may repeat", "mwem", SMALL[:1], grouping="query", fixed=paper.MWEM_REPEAT_FIXED,
              grid=paper.MWEM_PAST, subset=points(**paper.MWEM_PAST), defaults=False),
        Sweep("PEP", "pep", (PAPER_COLUMNS,), grouping="query", fixed=paper.PEP_FIXED, grid=paper.PEP,
              subset=points(rounds=THREE["PEP"])),
        Sweep("MWEM", "mwem", (PAPER_COLUMNS,), grouping="query", fixed=paper.MWEM_PAST_FIXED, grid=paper.MWEM_PAST,
              subset=points(rounds=THREE["MWEM"])),
        Sweep("MWEM, may repeat", "mwem", (PAPER_COLUMNS,), grouping="query", fixed=paper.MWEM_REPEAT_FIXED,
              grid=paper.MWEM_PAST, subset=points(rounds=THREE["MWEM"]), defaults=False),
        Sweep("RAP-softmax", "rap_softmax", (*SMALL, "adult"), grouping="query", fixed=paper.RAP_SOFTMAX_FIXED,
              grid=paper.RAP_SOFTMAX, subset=EIGHT),
        Sweep("RAP-softmax", "rap_softmax", ("acs-pa",), grouping="query", fixed=paper.RAP_SOFTMAX_FIXED,
              grid=paper.RAP_SOFTMAX, subset=(FEW, MANY), defaults=False, epsilons=SOME_EPSILONS),
        Sweep("DualQuery", "dualquery", SMALL[:1], grouping="query", grid=paper.DUALQUERY,
              subset=points(**paper.DUALQUERY)),
        Sweep("DualQuery", "dualquery", SMALL[1:], grouping="query", grid=paper.DUALQUERY,
              subset=points(eta=(2.0, 3.0, 4.0, 5.0), samples=(25, 50, 100))),
    ),
    claims=tuple(claim for claims in CLAIMS for claim in claims),
)  # fmt: skip
