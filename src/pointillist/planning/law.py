"""The fitted laws: error and time as functions of what is known before a run.

The logarithm of an error (max, rmse or tvd of the synthetic rows, over the workload) is a sum of terms of
:mod:`pointillist.planning.features`. The coefficients are in ``law.json``, which ``python -m benchmarks forecast
--write`` fits to measured runs. So is the band: the factor within which nine in ten of the measured errors were of the
forecast, where neither the terms nor the factors of the law were chosen by tables of the same origin. The time is a
law of the same form, in seconds of one core, scaled by a short probe of this machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from pointillist.planning.features import TERMS, Features

__all__ = ["METRICS", "Estimate", "Law", "Laws", "laws", "probe"]

METRICS = ("max", "rmse", "tvd")
"""The errors that are forecast: the largest and the root mean square of all answers, as fractions of the rows, and the
mean total variation distance of the marginals."""

FILE = "law.json"

NAMES = {
    "noise": "noise",
    "cells": "cells of a marginal",
    "narrow": "values of columns",
    "binary": "values of columns",
    "columns": "number of columns",
    "order": "columns of a marginal",
    "marginals": "number of marginals",
    "size": "cells in all",
    "rows": "rows",
}
"""What the features are, for people."""


@dataclass(frozen=True)
class Estimate:
    """A forecast with a band.

    Attributes:
        value: the forecast.
        low, high: its band.
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The three numbers, to four digits."""
        return {name: float(f"{getattr(self, name):.4g}") for name in ("value", "low", "high")}


@dataclass(frozen=True)
class Law:
    """A sum of terms that forecasts a logarithm.

    Attributes:
        coefficients: that of every term, by its name.
        band: the factor within which nine in ten forecasts were right.
    """

    coefficients: Mapping[str, float]
    band: float

    def value(self, features: Features) -> float:
        """The forecast.

        Args:
            features: of the run.
        """
        return math.exp(sum(factor * TERMS[name](features) for name, factor in self.coefficients.items()))

    def estimate(self, features: Features, most: float = math.inf, scale: float = 1.0) -> Estimate:
        """The forecast with its band.

        Args:
            features: of the run.
            most: what cannot be exceeded: 1 for an error.
            scale: multiplies the forecast.
        """
        value = scale * self.value(features)
        return Estimate(*(min(most, one) for one in (value, value / self.band, value * self.band)))


@dataclass(frozen=True)
class Laws:
    """All laws, and what they were fitted on.

    Attributes:
        errors: for every method that was measured, the law of each error.
        shaped: the same where a public table tells the shape of the columns.
        seconds: the law of the time, by method.
        ranges: the smallest and the largest value of every feature among the measured runs.
        probe: what the probe took where times were measured, in seconds.
        runs: the number of measured cases: tables, workloads and budgets.
        tables: the number of tables and parts of tables.
        within: the share of forecasts of the default within a factor of 1.5, by error, on tables that were left out.
    """

    errors: Mapping[str, Mapping[str, Law]]
    shaped: Mapping[str, Mapping[str, Law]]
    seconds: Mapping[str, Law]
    ranges: Mapping[str, tuple[float, float]]
    probe: float
    runs: int
    tables: int
    within: Mapping[str, float]

    def of(self, method: str, features: Features) -> Mapping[str, Law]:
        """The laws of the errors of a method; none if it was not measured.

        Args:
            method: its name.
            features: of the run.
        """
        return (self.shaped if features.shaped else self.errors).get(method, {})

    def time_of(self, method: str, features: Features, scale: float) -> Estimate | None:
        """The seconds of a run; None if no run of the method was measured. Less noise than in the measured runs takes
        no longer: there are bounds on the number of descents of a fit.

        Args:
            method: its name.
            features: of the run.
            scale: multiplies the forecast.
        """
        law = self.seconds.get(method)
        if law is None:
            return None
        least = self.ranges["noise"][0]
        return law.estimate(replace(features, noise=max(features.noise, least)), scale=scale)

    def outside(self, features: Features) -> list[str]:
        """In what a run is outside of what the laws were fitted on, in words.

        Args:
            features: of the run.
        """
        found = ((name, getattr(features, name), *limits) for name, limits in self.ranges.items())
        names = [NAMES[name] for name, value, low, high in found if not low - 1e-9 <= value <= high + 1e-9]
        return list(dict.fromkeys(names))


@cache
def laws() -> Laws:
    """The laws that come with the package."""
    return read_laws(json.loads((files("pointillist.planning") / FILE).read_text(encoding="utf-8")))


def read_laws(spec: Mapping[str, Any]) -> Laws:
    """The laws behind plain data.

    Args:
        spec: what ``law.json`` holds.
    """
    errors, shaped = (
        {name: {metric: Law(**law) for metric, law in found.items()} for name, found in spec[kind].items()}
        for kind in ("errors", "shaped")
    )
    seconds = {name: Law(**law) for name, law in spec["seconds"].items()}
    ranges = {name: (low, high) for name, (low, high) in spec["ranges"].items()}
    return Laws(errors, shaped, seconds, ranges, spec["probe"], spec["runs"], spec["tables"], spec["within"])


@cache
def probe() -> float:
    """Seconds of the processor for a fixed small piece of work: the shortest of a few tries.

    The work is of one thread: a matrix product would be of several, and what these wait for each other counts as
    seconds of the processor, up to ten times as many on a busy machine.
    """
    values = np.random.default_rng(0).random(200_000)
    return min(_seconds_of(values) for _ in range(5))


def _seconds_of(values: np.ndarray) -> float:
    started = time.process_time()
    for _ in range(4):
        np.exp(-values).sum()
        np.sort(values)
        np.bincount((values * 1000).astype(np.int64))
    return time.process_time() - started
