"""Asking for the queries one cares about: prefixes of fine columns, and halfspaces, on tasks of the ACS.

The protocol is that of Private-GSD: people of two states, tasks of folktables' kind (:mod:`measuring.tasks`), mean and
max error of the model's answers, in fractions of the rows. `auto` is asked for the queries themselves, and for
marginals only; other methods are asked for the queries themselves. Columns that are kept exactly and made independent
stand for what needs no dependency at all. The defaults of `auto` were tuned on Ohio.

Finished runs are in results/queries.csv, and new ones are appended to it. By default no run is made, and the
table shows what is finished. POINTILLIST_QUERIES_MAKE=1 makes missing runs; _STATES, _TASKS, _EPSILONS, _SEEDS, _KINDS
and _METHODS (all with this beginning, items with ";" between them) narrow them down.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from measuring.finished import Finished, Key, Values, chosen
from measuring.markdown import section
from measuring.runs import run_once
from measuring.tasks import STATES, TASKS

from pointillist import Table
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.queries.texts import parse_workload

ENVIRONMENT = "POINTILLIST_QUERIES_"
RUNS = Path(__file__).parent / "results" / "queries.csv"
KEYS = ("state", "task", "epsilon", "seed", "queries", "method", "asked")
VALUES = ("mean", "max", "seconds")

KINDS = ("prefixes:2", "halfspaces:200")
OTHER = "marginals:2"
EPSILONS = (0.07, 0.23, 0.52, 0.74, 1.0)
SEEDS = (0, 1, 2)
STATES_USED = ("42", "39")
JUDGED = ("income", "employment", "coverage", "mobility", "travel time")
METHODS = (OTHER, "auto", "gem", "rap_softmax", "gsd")
"""`auto` asked for marginals only, and methods asked for the queries."""
ALONE = "independent columns"


@cache
def table_of(state: str, task: str) -> Table:
    """The people of a task.

    Args:
        state: the code of the state.
        task: its name.
    """
    return TASKS[task].table(state)


def make(key: Key) -> Iterator[tuple[Key, Values]]:
    """One run, judged by the queries of its key; of marginals, by all kinds.

    Args:
        key: what names the run.
    """
    state, task, epsilon, seed, kind, method, asked = key
    table = table_of(state, task)
    if method == ALONE:
        found = independent_columns(table, parse_workload(kind, table.schema))
        yield key, (found.mean, found.max, 0.0)
        return
    judged = KINDS if asked == OTHER else (kind,)
    workload = parse_workload(asked, table.schema)
    made = run_once(table, workload, method, {}, float(epsilon), int(seed))
    for text in judged:
        wanted = parse_workload(text, table.schema)
        found = compare(wanted, fractions(table, wanted), made.answers(wanted))
        yield (state, task, epsilon, seed, text, method, asked), (found.mean, found.max, made.seconds)


def wanted_runs() -> Iterator[Key]:
    """All runs, or those that the environment chooses: first those that need no noise, then seed by seed."""
    states, tasks = (chosen(ENVIRONMENT + name, all) for name, all in (("STATES", STATES_USED), ("TASKS", JUDGED)))
    epsilons = [f"{float(text):g}" for text in chosen(ENVIRONMENT + "EPSILONS", EPSILONS)]
    kinds, methods = chosen(ENVIRONMENT + "KINDS", KINDS), chosen(ENVIRONMENT + "METHODS", METHODS)
    tables = [(state, task) for task in tasks for state in states]
    for one in tables:
        for kind in kinds:
            yield (*one, "", "", kind, ALONE, "")
    for seed in chosen(ENVIRONMENT + "SEEDS", SEEDS):
        for one in tables:
            for epsilon in epsilons:
                for method in methods:
                    for kind in kinds:
                        run = ("auto", OTHER) if method == OTHER else (method, kind)
                        yield (*one, epsilon, seed, kind, *run)


def run() -> str:
    """Make missing runs if that is asked for, and show those that are finished."""
    finished = Finished(RUNS, KEYS, VALUES)
    if os.environ.get(ENVIRONMENT + "MAKE"):
        finished.make(wanted_runs(), make)
    return "\n".join([summary(finished.found), *(report(finished.found, kind) for kind in KINDS)])


Found = dict[Key, Values]


def mean_of(found: Found, table: tuple[str, str], epsilon: str, kind: str, column: str) -> np.ndarray | None:
    """Mean and max error over the seeds that are finished, and the number of these.

    Args:
        found: finished runs.
        table: state and task.
        epsilon: the budget.
        kind: the queries that are judged.
        column: a member of ``METHODS``, or independent columns.
    """
    alone = column == ALONE
    asked = ("auto", OTHER) if column == OTHER else (column, "" if alone else kind)
    tail, budget = (kind, *asked), "" if alone else epsilon
    runs = [v[:2] for k, v in found.items() if k[:3] == (*table, budget) and k[4:] == tail]
    return np.array([*np.mean(runs, axis=0), len(runs)]) if runs else None


def cells_of(found: Found) -> list[tuple[tuple[str, str], str]]:
    """The tables and budgets of which something is finished."""
    every = {((key[0], key[1]), key[2]) for key in found if key[2]}
    return sorted(every, key=lambda one: (JUDGED.index(one[0][1]), one[0][0], float(one[1])))


HEADS = {OTHER: "auto, marginals only", "auto": "auto"}


def report(found: Found, kind: str) -> str:
    """Errors of every table, budget and method.

    Args:
        found: finished runs.
        kind: the queries that are judged.
    """
    columns = ["auto", OTHER, *METHODS[2:], ALONE]
    lines = []
    for table, epsilon in cells_of(found):
        errors = [mean_of(found, table, epsilon, kind, column) for column in columns]
        if any(one is not None for one in errors[:-1]):
            lines.append((table[1], STATES[table[0]], epsilon, *map(_shown, errors)))
    note = "Mean error, with the max error in brackets, in percent of the rows. An empty cell was not run."
    heads = ("task", "state", "epsilon", *(HEADS.get(column, column) for column in columns))
    return section(f"Errors on {kind}", heads, lines, note, level=3)


def _shown(errors: np.ndarray | None) -> str:
    return "" if errors is None else f"{100 * errors[0]:.3f} ({100 * errors[1]:.2f})"


def summary(found: Found) -> str:
    """How many times smaller the errors are than those of marginals only.

    Args:
        found: finished runs.
    """
    lines = []
    for kind in KINDS:
        for state in STATES_USED:
            for epsilon in EPSILONS:
                ratios = _ratios(found, kind, state, f"{epsilon:g}")
                if len(ratios):
                    mean, most = np.exp(np.log(ratios).mean(axis=0))
                    least = ratios[:, 0].min()
                    shown = (f"{mean:.2f}", f"{least:.2f}", f"{most:.2f}")
                    lines.append((kind, STATES[state], f"{epsilon:g}", len(ratios), *shown))
    heads = ("queries", "state", "epsilon", "tasks", "mean error", "smallest of a task", "max error")
    note = (
        "How many times larger the errors of `auto` are if it is asked for marginals:2 only: geometric means over the "
        f"tasks, with the same seeds of noise. {runs_made(found)}"
    )
    return section("Asked for, or marginals only", heads, lines, note)


def _ratios(found: Found, kind: str, state: str, epsilon: str) -> np.ndarray:
    """Tasks x (mean, max), of seeds that both have."""
    ratios = []
    for task in JUDGED:
        asked = [key for key in found if key[:3] == (state, task, epsilon) and key[4:] == (kind, "auto", kind)]
        both = [(found[key], found.get((*key[:5], "auto", OTHER))) for key in asked]
        pairs = [(own, other) for own, other in both if other is not None]
        if pairs:
            own, other = np.array(pairs)[:, :, :2].mean(axis=0)
            ratios.append(other / own)
    return np.array(ratios)


def runs_made(found: Found) -> str:
    """What was run, in words.

    Args:
        found: finished runs.
    """
    made = [key for key in found if key[2]]
    seeds = {cell: len({key[3] for key in made if key[:3] == cell}) for cell in {key[:3] for key in made}}
    many = " to ".join(map(str, sorted({min(seeds.values()), max(seeds.values())}))) if seeds else "0"
    tables = {key[:2] for key in made}
    sizes = "; ".join(
        f"{task}, {STATES[state]}: {len(table_of(state, task)):,} people" for state, task in sorted(tables)
    )
    whole = math.prod((len(JUDGED), len(STATES_USED), len(EPSILONS), len(SEEDS), len(KINDS), len(METHODS)))
    return (
        f"{len(made)} of {whole} errors of the whole protocol are there, with {many} seed(s) of noise for each table "
        f"and budget; delta = 1/n^2, replace. {sizes}. What `auto` measures was tuned on income in Ohio."
    )
