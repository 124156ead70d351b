"""What is run, as plain data: a run, the sweeps that make runs, and the experiment that they belong to.

An experiment is a folder with a ``config.py``, which says what is run. All runs of all experiments are lines of one
file, ``experiments/results.csv``. An experiment is shown in one of two ways. A figure (``figure.svg``) is a row of
panels, one for each table, and a curve in it is a method with its grid of hyper-parameters: at each epsilon the best
setting of the grid, as in the paper. Next to it is the same method with its defaults, which is what a user gets who
cannot look at the truth. A table (``table.md``) shows the means of chosen runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from itertools import product
from typing import Any

from pointillist.errors import InputError, nearest

FIGURES = ("main", "public_near", "public_far", "support", "rap", "batch", "resample", "marginal_trick", "past",
           "adult_loans", "hdmm")  # fmt: skip
"""The experiments of the paper: each has a figure and claims."""
TABLES = ("default_accuracy", "ablation", "histogram_accuracy", "relaxed_accuracy", "public_average")
"""Other experiments on accuracy: each has a table."""
NAMES = (*FIGURES, *TABLES)
EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
SEEDS = (0, 1, 2)
SOME_EPSILONS = (0.1, 0.25, 0.5, 1.0)
"""For runs that take long."""
MARGINALS = {"acs-pa": "3:4096", "acs-oh": "3:4096", "adult-star": "3:64", "loans": "3:64"}
"""K:COUNT for tables with a random subset of the three-way marginals, as large as in the paper; the others have all."""

KEYS = ("dataset", "public", "marginals", "relation", "account", "output", "grouping", "method", "parameters",
        "epsilon", "seed")  # fmt: skip
METRICS = ("max", "mean", "rmse", "tvd")
ROW_METRICS = ("rows_max", "rows_rmse", "rows_tvd")
FIELDS = (*KEYS, *METRICS, *ROW_METRICS, "seconds", "error", "commit", "versions", "machine", "noise")
"""The columns of a results file: what was run, its errors, and where they come from.

``noise`` is ``own`` where the noise of the run is independent of that of all others, and ``shared`` in older lines:
all runs with the same seed began with the same random numbers there, whatever their method and epsilon. In some old
lines the mean error and the commit were not recorded: they are empty and ``unknown`` there.
"""
FLOOR = "best_mixture"
"""Stands for a method: the best reweighting of the records of the public table. It uses the truth, and no budget."""

Key = tuple[str, ...]
Row = dict[str, str]
Point = Mapping[str, Any]
"""Values of hyper-parameters."""


def canonical(parameters: Point) -> str:
    """Hyper-parameters as text, the same for the same values: compact JSON in the order of the names."""
    return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Run:
    """One run: a method on a table at one epsilon with one seed. Delta is 1/n^2."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    parameters: str = "{}"
    grouping: str = ""
    """``query`` or ``marginal``; empty for the method's default."""
    public: str = ""
    marginals: str = "3"
    relation: str = "replace"
    account: str = ""
    """``zcdp``; empty for the tightest account of the method."""
    output: str = ""
    """``rows`` to measure the errors of synthetic rows as well; empty for those of the model's answers alone."""

    @property
    def key(self) -> Key:
        """What identifies the run in a results file."""
        return tuple(f"{value:g}" if name == "epsilon" else str(value) for name, value in self._items())

    @property
    def program(self) -> Key:
        """The key without epsilon and seed: runs with the same one share their compiled programs and their data."""
        return self.key[:-2]

    @property
    def settings(self) -> dict[str, Any]:
        """The hyper-parameters as values."""
        values: dict[str, Any] = json.loads(self.parameters)
        return values

    @property
    def noise(self) -> int:
        """The seed of the noise: another one for every run, so that the noise of no two runs is related.

        Measuring synthetic rows as well does not make it another run.
        """
        return int.from_bytes(sha256("/".join(replace(self, output="").key).encode()).digest()[:4], "big")

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
    """A curve: a method on some tables with a grid of hyper-parameters, and the part of the grid that is run.

    ``grid`` is the paper's, every combination of its values with ``fixed`` added; ``subset`` lists the combinations
    that are run here. With ``defaults`` the method also runs with no hyper-parameter set.
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
    relation: str = "replace"
    account: str = ""
    output: str = ""

    def tuned(self, whole: bool = False) -> Iterator[Run]:
        """The runs of the subset, or of the whole grid at all of the paper's epsilons."""
        if whole and self.grid:
            return replace(self, subset=points(**self.grid), epsilons=EPSILONS).tuned()
        return (run for point in self.subset for run in self._runs(self.grouping, {**self.fixed, **point}))

    def untuned(self) -> Iterator[Run]:
        """The runs with the method's defaults, its default grouping included."""
        return self._runs("", {}) if self.defaults else iter(())

    def _runs(self, grouping: str, parameters: Point) -> Iterator[Run]:
        for dataset, epsilon, seed in product(self.datasets, self.epsilons, self.seeds):
            yield Run(dataset, self.method, epsilon, seed, canonical(parameters), grouping, self.public,
                      MARGINALS.get(dataset, "3"), self.relation, self.account, self.output)  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """One table of a figure, with the public tables whose methods are shown on it."""

    title: str
    dataset: str
    public: tuple[str, ...] = ()

    def shows(self, run: Run) -> bool:
        """Whether the run belongs to this panel."""
        return run.dataset == self.dataset and (not run.public or run.public in self.public)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that the results can confirm or refute.

    ``lower``: the curve ``first`` has a smaller error than ``second``. ``times``: it is smaller by the factor ``value``
    at least. ``not below``: it is nowhere smaller. ``similar``: their errors differ by no more than the factor
    ``value``. ``above``: the error of ``first`` stays above ``value``. It is tested for ``metric`` at every epsilon on
    every table of ``datasets`` (on all panels if that is empty).
    """

    text: str
    kind: str
    first: str
    second: str = ""
    value: float = 0.0
    metric: str = "max"
    datasets: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    """Where it is tested; everywhere if that is empty."""


ERRORS = {"max": "max", "mean": "mean", "rmse": "root-mean-square"}
"""The errors in which the paper makes its comparisons, and their names."""


def in_every_error(text: str, kind: str, first: str, second: str, **options: Any) -> tuple[Claim, ...]:
    """The same claim in each of the paper's errors.

    Args:
        text: the claim, without the error.
        kind: of the claims.
        first: a curve.
        second: another one.
        options: the other attributes of the claims.
    """
    return tuple(
        Claim(f"{text}: {told} error", kind, first, second, metric=metric, **options) for metric, told in ERRORS.items()
    )


@dataclass(frozen=True)
class Experiment:
    """What is run and how it is shown: a figure with the paper's claims, or a table."""

    title: str
    sweeps: tuple[Sweep, ...]
    figure: str = ""
    """Where the figure is in the paper."""
    panels: tuple[Panel, ...] = ()
    claims: tuple[Claim, ...] = ()
    apart: bool = False
    """Whether the methods with our defaults have a figure of their own, ``defaults.svg``."""
    table: Callable[[Mapping[Key, Row]], str] | None = None
    """Writes ``table.md`` from the lines of the runs."""

    def runs(self, whole: bool = False) -> dict[Key, Run]:
        """Every run by its key; with ``whole``, of all the paper's grids instead of their subsets."""
        sweeps = ((*sweep.tuned(whole), *sweep.untuned()) for sweep in self.sweeps)
        return {run.key: run for runs in sweeps for run in runs}

    def programs(self) -> set[Key]:
        """The programs of all runs, those of the whole grids included; any epsilon and seed of them belongs here."""
        return {run.program for whole in (False, True) for run in self.runs(whole).values()}


def load(name: str) -> Experiment:
    """The experiment called ``name``."""
    if name not in NAMES:
        raise InputError("experiment", name, "must be the name of an experiment", nearest(name, NAMES))
    experiment: Experiment = import_module(f"experiments.{name}.config").EXPERIMENT
    return experiment
