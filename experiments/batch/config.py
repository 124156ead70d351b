"""GEM with different batch sizes B on ADULT. Rerun it with ``python -m experiments run batch``.

The paper does not list the batch sizes that it compares; these are around its choice of 1,000.
"""

from experiments import paper
from experiments.grid import Experiment, Panel, Sweep, in_every_error, points

SIZES = (100, 300, 1000, 3000)

EXPERIMENT = Experiment(
    title="Batch size of GEM",
    figure="the figure of batch sizes in the appendix",
    panels=(Panel("ADULT", "adult"),),
    sweeps=tuple(
        Sweep(f"GEM, B = {size:,}", "gem", ("adult",), grouping="query", fixed={**paper.GEM_FIXED, "batch": size},
              grid=paper.GEM_ADULT, subset=points(rounds=(60,)), defaults=False)
        for size in SIZES
    ),
    claims=in_every_error("B = 1,000 beats B = 100", "lower", "GEM, B = 1,000", "GEM, B = 100"),
)  # fmt: skip
