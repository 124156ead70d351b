"""What GEMPub returns: the moving average of its networks with different factors, and the rounds that change them.

Rerun it with ``python -m experiments run public_average``. The paper gives no factor beta for the moving average; its
authors' code tries the last network (0), 0.5, 0.9 and 0.99. ``surprise`` 0 changes the network in every round, as in
the paper; 2 is our default. The network is smaller than the paper's, so that a run takes seconds on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from experiments import paper
from experiments.grid import Experiment, Key, Row, Sweep
from experiments.tables import made_on, spot_of, three_errors
from measuring.markdown import section

TABLE, PUBLIC = "adult-reduced", "adult-public"
BETAS = (0.0, 0.5, 0.9, 0.99)
SURPRISES = (0.0, 2.0, 4.0)
SOME = (0.1, 0.25, 1.0)
ROUNDS = 30
FIVE = (0, 1, 2, 3, 4)
SWEEPS = {
    (beta, surprise): Sweep(
        f"beta {beta:g}, surprise {surprise:g}", "gem_pub", (TABLE,), PUBLIC, "query",
        {**paper.GEM_PUB_FIXED, **paper.SMALL_NETWORK, "rounds": ROUNDS, "beta": beta, "surprise": surprise},
        subset=({},), defaults=False, epsilons=SOME, seeds=FIVE,
    )
    for beta, surprise in product(BETAS, SURPRISES)
}  # fmt: skip


def table(results: Mapping[Key, Row]) -> str:
    """One line per factor and rule."""
    rows = [
        (f"{beta:g}" if beta else "0 (the last network)", f"{surprise:g}",
         *(three_errors(spot_of(sweep, TABLE, epsilon, results)) for epsilon in SOME))
        for (beta, surprise), sweep in SWEEPS.items()
    ]  # fmt: skip
    return section(
        "GEMPub by the factor of its moving average, max / rmse / tvd (runs)",
        ("beta", "surprise", *(f"epsilon {epsilon:g}" for epsilon in SOME)),
        rows,
        f"ADULT (reduced), public: 10 % of the rows of ADULT. By query, {ROUNDS} rounds, replace, delta = 1/n^2, the "
        "model's answers; a network with two hidden layers of 256. " + made_on(tuple(SWEEPS.values()), results),
    )


EXPERIMENT = Experiment(title="What GEMPub returns", sweeps=tuple(SWEEPS.values()), table=table)
