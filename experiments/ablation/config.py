"""What each ingredient of the default contributes: the default, and the default without one ingredient at a time.

Rerun it with ``python -m experiments run ablation``. With adaptive rounds each round is a fit of its own, so that
variant only runs on the small table.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from experiments.grid import Experiment, Key, Point, Row, Sweep
from experiments.tables import made_on, older_auto, spot_of, three_errors
from measuring.markdown import section

BOTH = ("adult-reduced", "adult")
ENDS = (0.1, 1.0)
WITHOUT: dict[str, Point] = {
    "no shrinkage": {"strength": 0.0},
    "no ties, all at once": {"ties": False},
    "one fit of 600 rows": {"rows": 600, "fits": 1},
    "one fit of 200 rows": {"fits": 1},
}
SWEEPS = (
    Sweep("the default", "auto", BOTH, epsilons=ENDS),
    *(
        Sweep(name, "auto", BOTH, fixed=settings, subset=({},), defaults=False, epsilons=ENDS)
        for name, settings in WITHOUT.items()
    ),
    Sweep("zCDP account", "auto", BOTH, epsilons=ENDS, account="zcdp"),
    Sweep("12 adaptive rounds", "auto", BOTH[:1], fixed={"adaptive_rounds": 12}, subset=({},), defaults=False,
          epsilons=ENDS),
    *(
        Sweep(f"the default, public: {public}", "auto", BOTH, public, epsilons=ENDS)
        for public in ("adult-public", "adult-public shuffled")
    ),
)  # fmt: skip


def table(results: Mapping[Key, Row]) -> str:
    """One line per variant."""
    cells = tuple(product(BOTH, ENDS))
    return section(
        "The default without one ingredient at a time, max / rmse / tvd (runs)",
        ("variant", *(f"{name}, epsilon {epsilon:g}" for name, epsilon in cells)),
        [(sweep.curve, *(three_errors(spot_of(sweep, *cell, results)) for cell in cells)) for sweep in SWEEPS],
        "Replace, delta = 1/n^2, the model's answers. The last two lines add a public table instead of removing "
        "something; the columns of the shuffled one are shuffled independently of each other. With adaptive rounds the "
        "Gaussian account does not apply. An empty cell was not run. "
        + older_auto(SWEEPS, results)
        + made_on(SWEEPS, results),
    )


EXPERIMENT = Experiment(title="Ablation of the default", sweeps=SWEEPS, table=table)
