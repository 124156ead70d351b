"""Train on synthetic rows, test on real ones: tasks of the ACS, for workloads that `auto` may be asked for.

Logistic regression and gradient boosting are trained on the rows of a release, and on 70 % of the real rows; both are
tested on the other 30 % of the real rows. The release is made from all real rows, those of the test included, as in the
evaluation of a release.

Finished runs are in results/learning.csv, and new ones are appended to it. By default no run is made, and the table
shows what is finished. POINTILLIST_LEARNING_MAKE=1 makes missing runs; _STATES, _TASKS, _EPSILONS, _SEEDS and
_WORKLOADS (all with this beginning, items with ";" between them) narrow them down.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring.finished import Finished, Key, Values, chosen
from measuring.markdown import section
from measuring.runs import run_once
from measuring.tasks import STATES, TASKS

from pointillist.evaluation.learning import train_and_test
from pointillist.evaluation.values import Typed, read_values
from pointillist.queries.texts import parse_workload

ENVIRONMENT = "POINTILLIST_LEARNING_"
RUNS = Path(__file__).parent / "results" / "learning.csv"
KEYS = ("state", "task", "epsilon", "seed", "asked", "model")
VALUES = ("real_auc", "auc", "real_accuracy", "accuracy", "seconds")

MODELS = ("gradient boosting", "linear")
LEARNED = ("income, learned", "employment", "coverage", "mobility", "travel time")
WORKLOADS = ("marginals:2", "marginals:3@LABEL", "conditionals:LABEL:100", "prefixes:2")
EPSILONS, SEEDS, STATES_USED = (1.0,), (0,), ("42", "39")


def make(key: Key) -> Iterator[tuple[Key, Values]]:
    """One release, and all models trained on its rows.

    Args:
        key: what names the run.
    """
    state, name, epsilon, seed, asked, _ = key
    task = TASKS[name]
    table = task.table(state)
    workload = parse_workload(asked.replace("LABEL", task.label), table.schema)
    made = run_once(table, workload, "auto", {}, float(epsilon), int(seed))
    real, synthetic = (Typed.of(one.to_arrow(int(seed)), table.schema) for one in (table, made.rows()))
    found = train_and_test(read_values(real, synthetic), task.label, int(seed))
    for model in MODELS:
        auc, accuracy = found.scores[model]["auc"], found.scores[model]["accuracy"]
        yield (*key[:5], model), (*auc, *accuracy, made.seconds)


def wanted_runs() -> Iterator[Key]:
    """All runs, or those that the environment chooses."""
    for seed in chosen(ENVIRONMENT + "SEEDS", SEEDS):
        for task in chosen(ENVIRONMENT + "TASKS", LEARNED):
            for state in chosen(ENVIRONMENT + "STATES", STATES_USED):
                for epsilon in chosen(ENVIRONMENT + "EPSILONS", EPSILONS):
                    for asked in chosen(ENVIRONMENT + "WORKLOADS", WORKLOADS):
                        yield state, task, f"{float(epsilon):g}", seed, asked, MODELS[0]


def run() -> str:
    """Make missing runs if that is asked for, and show those that are finished."""
    finished = Finished(RUNS, KEYS, VALUES)
    if os.environ.get(ENVIRONMENT + "MAKE"):
        finished.make(wanted_runs(), make)
    return report(finished.found)


def report(found: dict[Key, Values]) -> str:
    """AUC and accuracy of both models, for every workload.

    Args:
        found: finished runs.
    """
    lines = []
    cells = dict.fromkeys((task, state, epsilon) for state, task, epsilon, *_ in found)
    for task, state, epsilon in sorted(cells, key=lambda cell: (LEARNED.index(cell[0]), *cell[1:])):
        for model in MODELS:
            own = {k: v for k, v in found.items() if k[:3] == (state, task, epsilon) and k[5] == model}
            real = np.mean([v[:4:2] for v in own.values()], axis=0)
            asked = [_mean([v for k, v in own.items() if k[4] == text]) for text in WORKLOADS]
            lines.append((task.split(",")[0], STATES[state], epsilon, model, _shown(real), *map(_shown, asked)))
    heads = ("task", "state", "epsilon", "model", "real rows", *WORKLOADS)
    seeds = sorted({key[3] for key in found})
    note = (
        "AUC, with the accuracy in brackets, on real rows. LABEL is the column that is predicted. Linear is logistic "
        f"regression. Seeds of noise: {', '.join(seeds)}. An empty cell was not run. The release was made from all "
        "real rows, those of the test included, which favours synthetic rows."
    )
    return section("Train on synthetic, test on real", heads, lines, note)


def _mean(runs: list[Values]) -> np.ndarray | None:
    return np.mean([run[1:4:2] for run in runs], axis=0) if runs else None


def _shown(scores: np.ndarray | None) -> str:
    return "" if scores is None else f"{scores[0]:.4f} ({scores[1]:.4f})"
