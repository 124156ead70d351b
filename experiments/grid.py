"""What is run, as plain data: a run, the sweeps that make runs, and the experiment that they belong to.

An experiment is a folder with a ``config.py`` (what is run), ``results.csv`` (a line per run) and ``figure.svg``. Every
figure is a row of panels, one for each table, and a curve in it is a method with its grid of hyper-parameters: at each
epsilon the best setting of the grid, as in the paper. Beside it stands the same method with its defaults, which is what
a user has who cannot look at the truth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

from pointillist.errors import InputError, nearest

NAMES = ("main", "public_near", "public_far", "rap", "batch", "resample", "marginal_trick", "past", "adult_loans")
EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
SEEDS = (0, 1, 2)
SOME_EPSILONS = (0.1, 0.25, 0.5, 1.0)
"""For runs that take long."""
MARGINALS = {"acs-pa": "3:4096", "adult-star": "3:64", "loans": "3:64"}
"""K:COUNT for tables of which only some three-way marginals are asked, as many as in the paper; else all are."""

KEYS = ("dataset", "public", "marginals", "grouping", "method", "parameters", "epsilon", "seed")
METRICS = ("max", "mean", "rmse", "tvd")
FIELDS = (*KEYS, *METRICS, "seconds", "error", "commit", "versions", "machine")
"""The columns of a results file: what was run, its errors, and where they come from."""

Key = tuple[str, ...]
Row = dict[str, str]
Point = Mapping[str, Any]
"""Values of hyper-parameters."""


def canonical(parameters: Point) -> str:
    """Hyper-parameters as text, the same for the same values: compact JSON in the order of the names."""
    return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Run:
    """One run: a method on a table at one epsilon with one seed. Delta is 1/n^2, the relation is ``replace``."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    parameters: str = "{}"
    grouping: str = ""
    """``query`` or ``marginal``; empty for the method's default."""
    public: str = ""
    marginals: str = "3"

    @property
    def key(self) -> Key:
        """What sets the run apart from all others, as it stands in a results file."""
        return tuple(f"{value:g}" if name == "epsilon" else str(value) for name, value in self._items())

    @property
    def program(self) -> Key:
        """The key without epsilon and seed: runs that agree in it share their compiled programs and their data."""
        return self.key[:-2]

    @property
    def settings(self) -> dict[str, Any]:
        """The hyper-parameters as values."""
        values: dict[str, Any] = json.loads(self.parameters)
        return values

    def _items(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in KEYS)


def key_of(row: Mapping[str, str]) -> Key:
    """The key of the run in a line of a results file."""
    return tuple(row[name] for name in KEYS)


def points(**values: Sequence[Any]) -> tuple[Point, ...]:
    """Every combination of the values."""
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


@dataclass(frozen=True)
class Sweep:
    """A curve: a method on some tables with a grid of hyper-parameters, and what of the grid is run.

    ``grid`` is the paper's, every combination of its values with ``fixed`` added; ``subset`` lists the combinations
    that are run here. With ``defaults`` the method also runs as it is, with no hyper-parameter set.
    """

    curve: str
    method: str
    datasets: tuple[str, ...]
    public: str = ""
    grouping: str = ""
    fixed: Point = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    subset: tuple[Point, ...] = ()
    defaults: bool = True
    epsilons: tuple[float, ...] = EPSILONS
    seeds: tuple[int, ...] = SEEDS

    def tuned(self, whole: bool = False) -> Iterator[Run]:
        """The runs of the subset, or of the whole grid."""
        chosen = points(**self.grid) if whole and self.grid else self.subset
        return (run for point in chosen for run in self._runs(self.grouping, {**self.fixed, **point}))

    def untuned(self) -> Iterator[Run]:
        """The runs with the method's defaults, its default grouping included."""
        return self._runs("", {}) if self.defaults else iter(())

    def _runs(self, grouping: str, parameters: Point) -> Iterator[Run]:
        for dataset, epsilon, seed in product(self.datasets, self.epsilons, self.seeds):
            yield Run(dataset, self.method, epsilon, seed, canonical(parameters), grouping, self.public,
                      MARGINALS.get(dataset, "3"))  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """One table of a figure, with the public tables whose methods are shown on it."""

    title: str
    dataset: str
    public: tuple[str, ...] = ()

    def shows(self, run: Run) -> bool:
        return run.dataset == self.dataset and (not run.public or run.public in self.public)


@dataclass(frozen=True)
class Claim:
    """What the paper says, as something that results can answer.

    ``lower``: the curve ``first`` has a smaller error than ``second``. ``similar``: their errors differ by no more than
    the factor ``value``. ``above``: the error of ``first`` stays above ``value``. It is asked for ``metric`` at every
    epsilon on every table of ``datasets`` (on all panels, if that is empty).
    """

    text: str
    kind: str
    first: str
    second: str = ""
    value: float = 0.0
    metric: str = "max"
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure: its panels, its curves, and what the paper claims with it."""

    title: str
    figure: str
    """Where it stands in the paper."""
    panels: tuple[Panel, ...]
    sweeps: tuple[Sweep, ...]
    claims: tuple[Claim, ...]

    def runs(self, whole: bool = False) -> dict[Key, Run]:
        """Every run by its key; with ``whole``, of all the paper's grids instead of their subsets."""
        sweeps = ((*sweep.tuned(whole), *sweep.untuned()) for sweep in self.sweeps)
        return {run.key: run for runs in sweeps for run in runs}


def load(name: str) -> Experiment:
    """The experiment called ``name``."""
    if name not in NAMES:
        raise InputError("experiment", name, "must be the name of an experiment", nearest(name, NAMES))
    experiment: Experiment = import_module(f"experiments.{name}.config").EXPERIMENT
    return experiment
