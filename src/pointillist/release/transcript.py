"""The transcript as named arrays: one entry per pick and per measurement, noisy counts one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from pointillist.data.domain import Domain
from pointillist.framework import Log, Round
from pointillist.privacy.facts import Facts
from pointillist.privacy.scores import Pick
from pointillist.queries.base import Queries
from pointillist.queries.cells import Cells
from pointillist.queries.measurement import Measurement
from pointillist.queries.workload import queries_of

__all__ = ["log_arrays", "log_of"]

WHOLE = -1
"""In place of the position of a single query: all of the queries."""

INFO = "info_"


def log_arrays(log: Log, names: Sequence[str]) -> dict[str, np.ndarray]:
    """A log as arrays; ``names`` are those of the attributes.

    ``asked`` lists the queries as JSON; picks are rows (round, position in that list, position of the single query or
    -1, sign), measurements rows (round, position in that list, position of the single query or -1).
    """
    asked: dict[Queries, int] = {}

    def place(queries: Queries) -> tuple[int, int]:
        single = isinstance(queries, Cells) and queries.size == 1
        whole, cell = (queries.whole, queries.taken[0]) if isinstance(queries, Cells) and single else (queries, WHOLE)
        return asked.setdefault(whole, len(asked)), cell

    picks = [(t, *place(pick.queries), pick.sign) for t, entry in enumerate(log.rounds) for pick in entry.picks]
    measured = [(t, m) for t, entry in enumerate(log.rounds) for m in entry.measurements]
    found = {name for info in log.info for name in info}
    every = [
        *log.info,
        *({} for _ in range(len(log.rounds) - len(log.info))),
    ]  # a stopped run has none for its last round
    info = {INFO + name: np.array([one.get(name, np.nan) for one in every]) for name in sorted(found)}
    counts = [m.counts for _, m in measured]
    return info | {
        "picks": np.array(picks, np.int64).reshape(-1, 4),
        "measured": np.array([(t, *place(m.queries)) for t, m in measured], np.int64).reshape(-1, 3),
        "sigmas": np.array([m.sigma for _, m in measured]),
        "counts": np.concatenate(counts) if counts else np.zeros(0, np.int64),
        "selected": np.array([entry.selected for entry in log.rounds], bool),
        "asked": np.array(json.dumps([queries.to_dict(names) for queries in asked])),
    }


def log_of(arrays: Mapping[str, np.ndarray], domain: Domain, facts: Facts) -> Log:
    """The log behind :func:`log_arrays`."""
    asked = [queries_of(spec, domain) for spec in json.loads(str(arrays["asked"]))]

    def queries(n: int, cell: int) -> Queries:
        return asked[n] if cell == WHOLE else asked[n].take([cell])

    rounds = len(arrays["selected"])
    picks: list[list[Pick]] = [[] for _ in range(rounds)]
    measured: list[list[Measurement]] = [[] for _ in range(rounds)]
    for t, n, cell, sign in arrays["picks"].tolist():
        picks[t].append(Pick(queries(n, cell), sign))
    counts, at = arrays["counts"], 0
    for (t, n, cell), sigma in zip(arrays["measured"].tolist(), arrays["sigmas"].tolist(), strict=True):
        one = queries(n, cell)
        measured[t].append(Measurement(one, counts[at : at + one.size], sigma))
        at += one.size
    if at != len(counts):
        raise ValueError(f"the transcript holds {len(counts):,} noisy counts, {at:,} expected")
    parts = zip(picks, measured, arrays["selected"].tolist(), strict=True)
    log = Log(facts, [Round(tuple(p), tuple(m), selected) for p, m, selected in parts], [{} for _ in range(rounds)])
    read_info(log, arrays, INFO)
    return log


def read_info(log: Log, arrays: Mapping[str, np.ndarray], prefix: str) -> None:
    """Fill in the diagnostics of the rounds."""
    for name in arrays:
        if name.startswith(prefix):
            for info, value in zip(log.info, arrays[name].tolist(), strict=True):
                if not np.isnan(value):
                    info[name.removeprefix(prefix)] = value
