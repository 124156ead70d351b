"""Seeded results of every method, grouping and relation on the demo, recorded before the core was rebuilt.

The picks, the noisy counts, the ledger and the model's answers must stay the same, up to the rounding of sums. A change
that is meant to change results records them again: ``python -m tests.test_recorded``, or only those of some methods:
``python -m tests.test_recorded auto``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointillist import Release, Table, load, synthesize
from pointillist.algorithms import METHODS, Public
from pointillist.queries.cells import Cells

RECORDED = Path(__file__).parent / "recorded.npz"
SMALL_GEM = {"rounds": 4, "batch": 50, "inputs": 16, "hidden": "32-32", "t_max": 10}
SETTINGS: dict[str, dict[str, Any]] = {
    "mwem": {},
    "aim": {},
    "mst": {},
    "hdmm": {},
    "pep": {},
    "dualquery": {"samples": 5, "eta": 5.0, "rounds": 6},
    "fem": {"rounds": 3, "samples": 4},
    "rap": {"rows": 50, "t_max": 20},
    "rap_softmax": {"rows": 50, "t_max": 20},
    "gem": SMALL_GEM,
    "gsd": {"records": 50, "generations": 30},
    "one-shot": {"rows": 50, "t_max": 30},
    "auto": {"rows": 50, "t_max": 30},
    "pmw_pub": {},
    "pep_pub": {"gate": 0.9},
    "gem_pub": SMALL_GEM | {"pretrain_steps": 10},
}


def cases() -> Iterator[tuple[str, str, str]]:
    for method in METHODS.values():
        for grouping in method.groupings:
            for relation in ("replace", "add-remove"):
                yield method.name, grouping.value, relation


def make(method: str, grouping: str, relation: str) -> Release:
    town = load("demo")
    public = Table(town.schema, tuple(codes[::7] for codes in town.codes))
    return synthesize(
        town,
        epsilon=1.0,
        delta=1e-9,
        relation=relation,
        method=method,
        workload="marginals:2",
        group=grouping,
        rows=2000,
        seed=5,
        settings=SETTINGS[method],
        insecure_noise_seed=7,
        public=public if METHODS[method].public is Public.NEEDED else None,
    )


def digest(release: Release) -> str:
    """What was asked and answered, and what was charged for it."""
    rounds = []
    for entry in release.log.rounds:
        asked = [(p.queries, p.sign) for p in entry.picks] or [(m.queries, 1) for m in entry.measurements]
        picks = [[list(q.scope), q.taken[0] if isinstance(q, Cells) else -1, sign] for q, sign in asked]
        rounds.append([picks, entry.selected, [m.counts.tolist() for m in entry.measurements]])
    ledger = [[e.mechanism, e.rho, e.sensitivity, e.scale] for e in release.description.privacy.ledger]
    return hashlib.sha256(json.dumps([rounds, ledger, release.log.total]).encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "grouping", "relation"), list(cases()))
def test_results_are_those_recorded(method: str, grouping: str, relation: str) -> None:
    release = make(method, grouping, relation)
    with np.load(RECORDED) as recorded:
        name = f"{method} {grouping} {relation}"
        assert digest(release) == str(recorded[f"{name} digest"])
        assert np.abs(release.answers() - recorded[f"{name} answers"]).max() < 1e-6


if __name__ == "__main__":
    found: dict[str, Any] = {}
    if sys.argv[1:]:
        with np.load(RECORDED) as kept:
            found |= {name: kept[name] for name in kept.files}
    for case in (case for case in cases() if case[0] in (sys.argv[1:] or METHODS)):
        made = make(*case)
        found |= {f"{' '.join(case)} digest": digest(made), f"{' '.join(case)} answers": made.answers()}
    np.savez_compressed(RECORDED, **{k: np.asarray(v, None if "digest" in k else np.float32) for k, v in found.items()})
