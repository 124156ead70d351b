"""GEM and one-shot by marginal on ADULT, all three-way marginals, next to the figures of the paper's own code.

Rerun it with ``python -m experiments run relaxed_accuracy``. The runs of GEM are those of the main comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.grid import SOME_EPSILONS, Experiment, Key, Row, Sweep
from experiments.tables import against, made_on, spot_of
from measuring.markdown import section

BEST_GEM = {0.1: (0.0801, 0.00253), 0.25: (0.0474, 0.00175), 0.5: (0.0295, 0.00117), 1.0: (0.0206, 0.00087)}
"""Max error and root-mean-square error of the authors' GEM by query, the best over T in 30, 60, 100 and 200: same data,
relation and delta."""


SWEEPS = tuple(Sweep("defaults", method, ("adult",), epsilons=SOME_EPSILONS) for method in ("gem", "one-shot"))


def table(results: Mapping[Key, Row]) -> str:
    """One line per method and epsilon."""
    rows = []
    for sweep in SWEEPS:
        for epsilon, reference in BEST_GEM.items():
            spot = spot_of(sweep, "adult", epsilon, results)
            tvd = "" if spot is None else f"{spot.mean('tvd'):.4f}"
            rows.append((sweep.method, "marginal", sweep.curve, epsilon, *against(spot, reference), tvd))
    return section(
        "Accuracy of the relaxed methods on ADULT, max error / rmse",
        ("method", "group", "settings", "epsilon", "ours (runs)", "the paper's code", "ratio", "tvd"),
        rows,
        "Replace, delta = 1/n^2, the model's answers. The paper's code is its best GEM by query over T. "
        + made_on(SWEEPS, results),
    )


EXPERIMENT = Experiment(title="Relaxed methods next to the paper's code", sweeps=SWEEPS, table=table)
