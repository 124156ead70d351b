"""How the folders here were made: by the code at commit 08e7bb1, the last one that wrote format 1. Nothing runs it now.

Run: PYTHONPATH=<checkout of that commit>/src python tests/release_format1/make.py tests/release_format1
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pointillist import Categorical, Numeric, Schema, Table, all_kway, synthesize

SCHEMA = Schema(
    (
        Categorical("sex", ("f", "m")),
        Numeric("age", (0, 18, 65, 120), integer=True),
        Categorical("job", ("none", "some", "full"), missing=True),
    )
)
ROWS = {"rows": 40, "seed": 3, "insecure_noise_seed": 1}
NETWORK = {"rounds": 2, "batch": 5, "inputs": 3, "hidden": "4-6", "t_max": 3}
NOISY_ROWS = {"relation": "add-remove", "delta": 1e-6}
RELEASES: dict[str, dict[str, Any]] = {
    "mwem": {"group": "query", "settings": {"rounds": 4}},
    "auto": {"settings": {"rows": 4, "fits": 2, "t_max": 5}},
    "adaptive": {"method": "auto", "settings": {"rows": 4, "fits": 1, "t_max": 5, "adaptive_rounds": 2}} | NOISY_ROWS,
    "gem": {"settings": NETWORK},
    "gem_pub": {"public": True, "settings": NETWORK | {"pretrain_steps": 5}},
    "rap": {"settings": {"rounds": 2, "picks": 1, "rows": 5, "t_max": 3}},
    "pmw_pub": {"public": True, "settings": {"rounds": 2}},
    "dualquery": {"settings": {"rounds": 3, "samples": 4, "eta": 2.0}},
}


def table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return Table(SCHEMA, tuple(rng.integers(0, size, rows) for size in SCHEMA.domain.sizes))


def transcript(release: Any) -> list[dict[str, Any]]:
    """The rounds as plain data: picks as (attributes, their values or None for all of them, sign)."""
    workload, rounds = release.log.workload, []
    for entry, notes in zip(release.log.rounds, release.log.notes, strict=True):
        picks = []
        for pick in entry.picks:
            group = workload.group(pick.group)
            names = [SCHEMA.domain.names[i] for i in workload.marginals[group.marginal]]
            single = workload.grouping == "query"
            picks.append((names, workload.values(group.marginal, group.cells.start) if single else None, pick.sign))
        counts = [counts.tolist() for counts in entry.noisy]
        rounds.append(
            {"picks": picks, "counts": counts, "sigma": entry.sigma, "selected": entry.selected, "notes": notes}
        )
    return rounds


def main(target: Path) -> None:
    for name, options in RELEASES.items():
        given: dict[str, Any] = {"method": name} | options
        if "public" in given:
            given["public"] = table(30, 9)
        release = synthesize(table(500, 5), epsilon=2.0, workload="marginals:2", **ROWS, **given)
        folder = release.save(target / name, force=True)
        workloads = [all_kway(SCHEMA.domain, k) for k in (1, 2, 3)]
        np.save(folder / "answers.npy", np.concatenate([release.answers(workload) for workload in workloads]))
        expected = {
            "table": [codes.tolist() for codes in release.table.codes],
            "sample": [codes.tolist() for codes in release.sample(9, seed=2).codes],
            "rounds": transcript(release),
        }
        (folder / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
