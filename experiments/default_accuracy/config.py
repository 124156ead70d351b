"""The default on ADULT, next to its targets and to other systems, and next to other methods on five tables.

Rerun it with ``python -m experiments run default_accuracy``. MWEM only runs where a histogram of the domain fits. These
runs also measure synthetic rows, so they are not the runs of the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from experiments.grid import SOME_EPSILONS, Experiment, Key, Row, Sweep
from experiments.tables import made_on, older_auto, spot_of, three_errors
from measuring.markdown import section

ENDS = (0.1, 1.0)
FIVE = ("adult-reduced", "loans", "adult-star", "acs-oh", "acs-pa")
TARGETS = {0.1: (0.035, 0.0011), 0.25: (0.018, 0.00065), 0.5: (0.011, 0.00045), 1.0: (0.0065, 0.00027)}
"""Max error and root-mean-square error under ``replace`` that the default was built to reach."""
TVD_TARGETS = {0.1: (0.098, 0.113), 0.25: (0.070, 0.078), 0.5: (0.052, 0.059), 1.0: (0.036, 0.0425)}
"""Total variation distance under ``add-remove`` that it was built to reach, and that of the best other system."""

REPLACE = Sweep("replace", "auto", ("adult",), epsilons=SOME_EPSILONS, output="rows")
ADD_REMOVE = replace(REPLACE, curve="add-remove", relation="add-remove")
METHODS = (
    *(Sweep(method, method, FIVE, epsilons=ENDS, output="rows") for method in ("auto", "one-shot", "gem")),
    Sweep("mwem", "mwem", FIVE[:1], epsilons=ENDS, output="rows"),
)
SWEEPS = (REPLACE, ADD_REMOVE, *METHODS)


def on_adult(results: Mapping[Key, Row]) -> list[tuple[object, ...]]:
    """The default under both relations, with the targets."""
    rows: list[tuple[object, ...]] = []
    for epsilon in SOME_EPSILONS:
        first, second = (spot_of(sweep, "adult", epsilon, results) for sweep in (REPLACE, ADD_REMOVE))
        target, (tvd, other) = TARGETS[epsilon], TVD_TARGETS[epsilon]
        if first is None or second is None:
            continue
        rows.append((
            f"{epsilon:g}", f"{first.mean('max'):.4f} / {first.mean('rmse'):.5f} ({len(first.runs)})",
            f"{target[0]} / {target[1]}", f"{second.mean('tvd'):.4f} ({len(second.runs)})", tvd, other,
            f"{first.mean('rows_max'):.4f} / {second.mean('rows_tvd'):.4f}",
        ))  # fmt: skip
    return rows


def table(results: Mapping[Key, Row]) -> str:
    """Both tables."""
    others = [
        (name, f"{epsilon:g}", *(three_errors(spot_of(sweep, name, epsilon, results)) for sweep in METHODS))
        for name, epsilon in product(FIVE, ENDS)
    ]
    return section(
        "The default on ADULT, all three-way marginals (runs)",
        ("epsilon", "replace: max / rmse", "target", "add-remove: tvd", "target", "best other system",
         "rows: max / tvd"),
        on_adult(results),
        "Errors of the model's answers; in the last column those of as many synthetic rows as the table has (max under "
        "replace, tvd under add-remove). The figures of the other systems are those of their rows.",
    ) + "\n" + section(
        "The default against other methods, max / rmse / tvd (runs)",
        ("table", "epsilon", *(sweep.curve for sweep in METHODS)),
        others,
        "Replace, delta = 1/n^2, default settings, the model's answers. An empty cell was not run. "
        + older_auto(SWEEPS, results)
        + made_on(SWEEPS, results),
        level=2,
    )  # fmt: skip


EXPERIMENT = Experiment(title="Accuracy of the default", sweeps=SWEEPS, table=table)
