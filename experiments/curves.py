"""From lines to curves: at each epsilon the best setting of the grid and the defaults, as means over the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    edge: bool = False
    """Whether some hyper-parameter has the smallest or largest value of all settings that were compared."""

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
    return {name: curve for name, runs in runs_of(experiment, panel).items() if (curve := best(runs, results))}


def runs_of(experiment: Experiment, panel: Panel) -> dict[str, list[Run]]:
    """The runs of each curve of a panel. Every setting of the paper's grid counts that was run, also where no more than
    a part of the grid is asked for."""
    found: dict[str, list[Run]] = {}
    for sweep in experiment.sweeps:
        tuned = (*sweep.tuned(), *sweep.tuned(whole=True))
        found.setdefault(sweep.curve, []).extend(run for run in tuned if panel.shows(run))
        found.setdefault(sweep.curve + DEFAULTS, []).extend(run for run in sweep.untuned() if panel.shows(run))
    return found


def held_out(runs: Iterable[Run], results: Mapping[Key, Row], metric: str) -> dict[float, dict[int, float]]:
    """At each epsilon the error of each seed, with the setting that is best on the other seeds.

    "Best" is the smallest mean of the max error. A setting that is chosen and judged on the same seeds looks better
    than it is. With a single seed the only setting is taken, or none if there are several.
    """
    found: dict[float, dict[int, float]] = {}
    for epsilon, settings in _finished(runs, results).items():
        most = max(len(rows) for rows in settings.values())
        full = {setting: rows for setting, rows in settings.items() if len(rows) == most}
        if most == 1 and len(full) > 1:
            continue
        for seed in sorted({seed for rows in full.values() for seed in rows}):
            there = {setting: rows for setting, rows in full.items() if seed in rows}
            chosen = min(there, key=lambda setting: _mean_without(there[setting], seed))
            found.setdefault(epsilon, {})[seed] = float(there[chosen][seed][metric])
    return found


def _mean_without(rows: Mapping[int, Row], seed: int) -> float:
    """The mean of the max error over the other seeds; 0 if there are none."""
    others = [float(row["max"]) for other, row in rows.items() if other != seed]
    return fmean(others) if others else 0.0


def _finished(runs: Iterable[Run], results: Mapping[Key, Row]) -> dict[float, dict[str, dict[int, Row]]]:
    """The lines of the runs that worked: by epsilon, setting and seed."""
    found: dict[float, dict[str, dict[int, Row]]] = {}
    for run in dict.fromkeys(runs):
        row = results.get(run.key)
        if row is not None and not row["error"]:
            found.setdefault(run.epsilon, {}).setdefault(run.parameters, {})[run.seed] = row
    return dict(sorted(found.items()))


def best(runs: Iterable[Run], results: Mapping[Key, Row]) -> Curve:
    """At each epsilon the setting with the smallest mean of the max error, among those with the most runs.

    This looks at the truth, as the paper does: it shows what a method can do, not what a user gets.
    """
    curve = {}
    for epsilon, settings in _finished(runs, results).items():
        most = max(len(found) for found in settings.values())
        spots = [Spot(setting, tuple(found.values())) for setting, found in settings.items() if len(found) == most]
        chosen = min(spots, key=lambda spot: spot.mean("max"))
        curve[epsilon] = replace(chosen, edge=_at_edge(chosen, spots))
    return curve


def _at_edge(chosen: Spot, spots: Sequence[Spot]) -> bool:
    """Whether a number of the chosen setting is the smallest or the largest of those that were compared."""
    values = [json.loads(spot.setting) for spot in spots]
    for name, value in json.loads(chosen.setting).items():
        others = {one.get(name) for one in values}
        numbers = len(others) > 1 and all(type(one) in (int, float) for one in others)
        if numbers and value in (min(others), max(others)):
            return True
    return False
