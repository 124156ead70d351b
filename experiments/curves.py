"""From lines to curves: at each epsilon the best setting of the grid and the defaults, as means over the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from experiments.grid import Experiment, Key, Panel, Row, Run

SHOWN = {"max": "max error", "mean": "mean error", "rmse": "root-mean-square error"}
DEFAULTS = " (defaults)"
"""The suffix of a curve that shows a method with its defaults."""


@dataclass(frozen=True)
class Spot:
    """One method at one epsilon: the runs of one setting."""

    setting: str
    runs: tuple[Row, ...]

    def mean(self, metric: str) -> float:
        """The mean over the runs."""
        return fmean(float(row[metric]) for row in self.runs)

    def error(self, metric: str) -> float:
        """The standard error of the mean; not a number for a single run."""
        values = [float(row[metric]) for row in self.runs]
        return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


Curve = dict[float, Spot]


def curves_of(experiment: Experiment, panel: Panel, results: Mapping[Key, Row]) -> dict[str, Curve]:
    """The curves of a panel by name, in the order of the sweeps; those without a run are left out."""
    tuned: dict[str, list[Run]] = {}
    untuned: dict[str, list[Run]] = {}
    for sweep in experiment.sweeps:
        tuned.setdefault(sweep.curve, []).extend(run for run in sweep.tuned() if panel.shows(run))
        untuned.setdefault(sweep.curve, []).extend(run for run in sweep.untuned() if panel.shows(run))
    found = {}
    for name in tuned:
        found[name] = best(tuned[name], results)
        found[name + DEFAULTS] = best(untuned[name], results)
    return {name: curve for name, curve in found.items() if curve}


def best(runs: Iterable[Run], results: Mapping[Key, Row]) -> Curve:
    """At each epsilon the setting with the smallest mean of the max error, among those with the most runs.

    This looks at the truth, as the paper does: it shows what a method can do, not what a user gets.
    """
    rows: dict[float, dict[str, list[Row]]] = {}
    for run in dict.fromkeys(runs):
        row = results.get(run.key)
        if row is not None and not row["error"]:
            rows.setdefault(run.epsilon, {}).setdefault(run.parameters, []).append(row)
    curve = {}
    for epsilon in sorted(rows):
        most = max(len(found) for found in rows[epsilon].values())
        spots = [Spot(setting, tuple(found)) for setting, found in rows[epsilon].items() if len(found) == most]
        curve[epsilon] = min(spots, key=lambda spot: spot.mean("max"))
    return curve
