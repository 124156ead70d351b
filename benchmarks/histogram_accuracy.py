"""MWEM and PEP on ADULT (reduced) next to the figures of the paper's own code."""

from __future__ import annotations

import numpy as np

from benchmarks.common import markdown, run_method
from pointillist import Grouping, all_kway
from pointillist.data.datasets import load

RUNS = 3
REFERENCE = {  # max error / rmse of the authors' code, one run each, same data, relation and delta
    ("mwem", 150): {0.1: (0.0558, 0.00419), 0.25: (0.0379, 0.00310), 0.5: (0.0299, 0.00274), 1.0: (0.0246, 0.00258)},
    ("pep", 20): {0.1: (0.0565, 0.00387), 0.25: (0.0433, 0.00316), 0.5: (0.0418, 0.00317), 1.0: (0.0425, 0.00326)},
    ("pep", 50): {0.1: (0.0717, 0.00416), 0.25: (0.0338, 0.00255), 0.5: (0.0245, 0.00199), 1.0: (0.0191, 0.00190)},
    ("pep", 100): {0.1: (0.0755, 0.00475), 0.25: (0.0362, 0.00297), 0.5: (0.0203, 0.00196), 1.0: (0.0129, 0.00132)},
}


def run() -> str:
    table = load("adult-reduced")
    workload = all_kway(table.domain, 3, Grouping.QUERY)
    rows = []
    for (method, rounds), figures in REFERENCE.items():
        for epsilon, (max_error, rmse) in figures.items():
            for prior in (True, False):
                settings = {"rounds": rounds, "prior": prior}
                runs = [run_method(table, workload, method, settings, epsilon, seed)[0] for seed in range(RUNS)]
                ours = np.mean([(e.max, e.rmse) for e in runs], axis=0)
                ratio = (ours[0] / max_error, ours[1] / rmse)
                cells = (
                    f"{ours[0]:.4f} / {ours[1]:.5f}",
                    f"{max_error:.4f} / {rmse:.5f}",
                    f"{ratio[0]:.2f} / {ratio[1]:.2f}",
                )
                rows.append((method, rounds, epsilon, "on" if prior else "off", *cells))
    return markdown(
        "Accuracy of the histogram methods on ADULT (reduced), max error / rmse",
        ("method", "T", "epsilon", "prior", f"ours, mean of {RUNS}", "the paper's code", "ratio"),
        rows,
        "By query, replace, delta = 1/n^2. A ratio below 1 is better than the paper's code.",
    )
