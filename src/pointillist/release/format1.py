"""Releases of format 1, read as what they are now. Nothing writes this format any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import minus
from pointillist.privacy.scores import Pick
from pointillist.queries.candidates import Candidates, Grouping
from pointillist.queries.measurement import Measurement
from pointillist.queries.workload import Workload
from pointillist.release.transcript import read_info

__all__ = ["family_of", "log_of", "upgraded"]


def upgraded(spec: Mapping[str, Any], family: dict[str, Any]) -> dict[str, Any]:
    """The entries of ``release.json`` in the present format, given the description of the family."""
    method, privacy = spec["method"], spec["privacy"]
    counted = sum(entry["rho"] for entry in privacy["ledger"] if entry["label"] == "number of rows")
    return {
        "format": 2,
        "method": {
            "name": method["name"],
            "settings": method["parameters"],
            "grouping": spec["workload"]["grouping"],
            "strategy": method["schedule"],
            "start": method["start"],
        },
        "workload": _workload(spec["workload"]),
        "family": family,
        "privacy": privacy | {"private": spec["private"]},
        "public": spec["public"],
        "total": spec["total"],
        "total_sigma": spec["total_sigma"],
        "rho": minus(privacy["rho"], counted),
        "rows": spec["rows"],
        "seed": spec["seed"],
        "schema": spec["schema"],
        "versions": spec["versions"],
    }


def _workload(spec: Mapping[str, Any]) -> dict[str, Any]:
    marginals = [{"kind": "marginal", "attributes": names} for names in spec["marginals"]]
    return {"size": spec["queries"], "queries": marginals}


def family_of(spec: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The family, which format 1 did not describe: it follows from the names and shapes of the saved arrays."""
    if "logits" in arrays:
        return {"kind": "relaxed", "model": {"kind": "softmax", "rows": len(arrays["logits"])}}
    if "values" in arrays:
        return {"kind": "relaxed", "model": {"kind": "clipped", "rows": len(arrays["values"])}}
    if "z" in arrays:
        layers = sum(name.startswith("scale") for name in arrays)
        hidden = [len(arrays[f"scale{n}"]) for n in range(layers)]
        rows, inputs = arrays["z"].shape
        return {"kind": "relaxed", "model": {"kind": "generator", "rows": rows, "inputs": inputs, "hidden": hidden}}
    if "codes" not in arrays:
        return {"kind": "histogram"}
    return {"kind": "records" if spec["method"]["name"] in ("dualquery", "fem") else "public records"}


def log_of(arrays: Mapping[str, np.ndarray], spec: Mapping[str, Any], domain: Domain, facts: Facts) -> Log:
    """The transcript, in which queries were named by their number in the workload (or in what was measurable)."""
    asked = spec["measurable"] or spec["workload"]
    queries = Workload.from_dict(_workload(asked), domain).queries
    candidates: Candidates = Grouping(asked["grouping"]).candidates(queries)
    log, at, picks, noisy = Log(facts), 0, arrays["picks"], arrays["noisy"]
    for t, (sigma, measured, selected) in enumerate(
        zip(arrays["sigmas"].tolist(), arrays["measured"].tolist(), arrays["selected"].tolist(), strict=True)
    ):
        chosen = [Pick(candidates[group], sign) for _, group, sign in picks[picks[:, 0] == t].tolist()]
        measurements = []
        for pick in chosen if measured else ():
            counts = noisy[at : at + pick.queries.size]
            measurements.append(Measurement(pick.queries, counts, sigma))
            at += len(counts)
        fixed = bool(measured) and not selected  # queries that were fixed before the round are no picks now
        log.rounds.append(Round(() if fixed else tuple(chosen), tuple(measurements), selected))
        log.info.append({})
    if at != len(noisy):
        raise ValueError(f"the transcript holds {len(noisy):,} noisy counts, {at:,} expected")
    read_info(log, arrays, "note_")
    return log
