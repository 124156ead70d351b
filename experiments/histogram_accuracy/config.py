"""MWEM and PEP on ADULT (reduced) by query, next to the figures of the paper's own code.

Rerun it with ``python -m experiments run histogram_accuracy``. The runs without ``prior`` are those of the main
comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments import paper
from experiments.grid import SEEDS, SOME_EPSILONS, Experiment, Key, Point, Row, Sweep
from experiments.tables import against, made_on, spot_of
from measuring.markdown import section

RUNS = len(SEEDS)
REFERENCE = {
    ("mwem", 150): {0.1: (0.0558, 0.00419), 0.25: (0.0379, 0.00310), 0.5: (0.0299, 0.00274), 1.0: (0.0246, 0.00258)},
    ("pep", 20): {0.1: (0.0565, 0.00387), 0.25: (0.0433, 0.00316), 0.5: (0.0418, 0.00317), 1.0: (0.0425, 0.00326)},
    ("pep", 50): {0.1: (0.0717, 0.00416), 0.25: (0.0338, 0.00255), 0.5: (0.0245, 0.00199), 1.0: (0.0191, 0.00190)},
    ("pep", 100): {0.1: (0.0755, 0.00475), 0.25: (0.0362, 0.00297), 0.5: (0.0203, 0.00196), 1.0: (0.0129, 0.00132)},
}
"""Max error and root-mean-square error of the authors' code, one run each, same data, relation and delta."""
FIXED: dict[str, Point] = {"mwem": paper.MWEM_PAST_FIXED, "pep": paper.PEP_FIXED}
VARIANTS: dict[str, dict[str, Point]] = {
    "mwem": {
        "prior": {"prior": True},
        "no prior": {"prior": False},
        "no prior, may repeat (as the paper's code)": {"prior": False, "repeat": True},
    },
    "pep": {"prior": {"prior": True}, "no prior (as the paper's code)": {"prior": False}},
}
"""The selection of every method: with our prior, without, and by the rule of the paper's code."""
SWEEPS = {
    (method, rounds, variant): Sweep(
        f"{method}, T = {rounds}, {variant}", method, ("adult-reduced",), grouping="query",
        fixed={**FIXED[method], "rounds": rounds, **chosen}, subset=({},), defaults=False, epsilons=SOME_EPSILONS,
    )
    for method, rounds in REFERENCE
    for variant, chosen in VARIANTS[method].items()
}  # fmt: skip


def table(results: Mapping[Key, Row]) -> str:
    """One line per method, number of rounds, epsilon and selection."""
    rows = [
        (method, rounds, epsilon, variant,
         *against(spot_of(SWEEPS[method, rounds, variant], "adult-reduced", epsilon, results), reference))
        for (method, rounds), figures in REFERENCE.items()
        for epsilon, reference in figures.items()
        for variant in VARIANTS[method]
    ]  # fmt: skip
    return section(
        "Accuracy of the histogram methods on ADULT (reduced), max error / rmse",
        ("method", "T", "epsilon", "selection", "ours (runs)", "the paper's code (one run)", "ratio"),
        rows,
        "By query, replace, delta = 1/n^2. A ratio below 1 is better than the paper's code. "
        + made_on(tuple(SWEEPS.values()), results),
    )


EXPERIMENT = Experiment(title="Histogram methods next to the paper's code", sweeps=tuple(SWEEPS.values()), table=table)
