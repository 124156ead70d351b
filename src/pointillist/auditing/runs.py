"""Many runs of a part on two neighbouring tables, in parallel processes where there are cores."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import os
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pointillist.auditing.bounds import Gaussian
from pointillist.auditing.parts import Part
from pointillist.auditing.tables import Neighbours
from pointillist.auditing.witness import CountedNoise, Witness
from pointillist.data.sources import Source
from pointillist.data.table import Table
from pointillist.privacy.curator import Curator
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.ledger import GAUSSIAN, Entry
from pointillist.privacy.mechanisms import Noise

__all__ = ["Batch", "Laboratory", "NoiseOf", "cores", "repeated"]

NoiseOf = Callable[[int], Noise]
"""The noise of the run with a number."""

UNLIKELY = math.log(1e-12)
"""Equal outputs that are less likely than this are no coincidence."""

ROUNDING = 1e-9
"""Relative difference up to which two sums of rho count as equal."""


class Audited(Protocol):
    """What is audited."""

    def source(self, table: Table) -> Source:
        """The rows of a made-up table."""

    def parts(self, table: Table) -> dict[str, Part]:
        """The parts that can be audited, by name; a made-up table is needed to build them."""


@dataclass(frozen=True)
class Batch:
    """Some runs on one of the two tables.

    Attributes:
        table: 0 or 1.
        ratios: the statistic of each run.
        spent: the largest rho that a run charged.
        shown: the largest delta that a run charged for values that only one unit has.
        gaussian: the noise, if nothing but Gaussian noise was charged; else None.
        uncharged: the largest rho that a run drew noise for without charging it.
        digest: a hash of all outputs, in order.
        likely: an upper bound of the log-likelihood of all outputs.
        equal: whether all outputs are the same, though that is very unlikely.
        seconds: how long the runs took.
    """

    table: int
    ratios: np.ndarray
    spent: float
    shown: float
    gaussian: Gaussian | None
    uncharged: float
    digest: bytes
    likely: float
    equal: bool
    seconds: float


@dataclass(frozen=True)
class Laboratory:
    """Where runs are made: in this process, or in others, which build the parts once each.

    Attributes:
        case: the run whose promise is audited.
        pair: the tables.
        noise_of: the noise of each run; by default a copy of the job's noise.
        token: under which a process keeps the parts of this audit.
    """

    case: Audited
    pair: Neighbours
    noise_of: NoiseOf | None = None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def part(self, name: str) -> Part:
        """The part called ``name``."""
        return self.parts()[name]

    def parts(self) -> dict[str, Part]:
        """All parts, built once in a process."""
        if self.token not in _built:
            _built.clear()  # a process audits one case at a time
            _built[self.token] = self.case.parts(self.pair.tables()[0])
        return _built[self.token]

    def information(self, name: str, runs: int) -> float:
        """How much a run tells about which table it is, on average over some simulated runs with seeded noise."""
        part, source = self.part(name), self.case.source(self.pair.tables()[1])
        found = []
        for number in range(runs):
            curator = Curator(source, copy.deepcopy(part.ledger), InsecureSeededNoise(number))
            witness = Witness(curator, self.pair)
            part.ask(witness)
            found.append(witness.information)
        return float(np.mean(found))

    def batch(self, name: str, table: int, start: int, count: int) -> Batch:
        """The runs with the numbers ``start``, ``start + 1``, ... of a part, on one of the tables."""
        part, source = self.part(name), self.case.source(self.pair.tables()[table])
        ratios, digests = np.empty(count), []
        spent = shown = uncharged = likely = 0.0
        charges: set[tuple[Entry, ...]] = set()
        began = time.perf_counter()
        for number in range(count):
            inner = copy.deepcopy(part.noise) if self.noise_of is None else self.noise_of(start + number)
            noise = CountedNoise(inner)
            curator = Curator(source, copy.deepcopy(part.ledger), noise)
            witness = Witness(curator, self.pair)
            part.ask(witness)
            ratios[number] = witness.ratio
            digests.append(witness.digest.digest())
            likely += witness.likely[table]
            charged = curator.ledger.spent
            spent, shown = max(spent, charged), max(shown, curator.ledger.delta_spent)
            charges.add(curator.ledger.entries)
            missing = noise.drawn - charged
            uncharged = max(uncharged, missing if missing > ROUNDING * noise.drawn else 0.0)
        return Batch(
            table,
            ratios,
            spent,
            shown,
            _gaussian(charges),
            uncharged,
            hashlib.blake2b(b"".join(digests), digest_size=16).digest(),
            likely,
            len(set(digests)) == 1 and likely * (count - 1) / count < UNLIKELY,
            time.perf_counter() - began,
        )

    def many(self, name: str, start: int, runs: int, size: int, processes: int) -> Iterator[Batch]:
        """Runs on each table, in batches, in any order.

        Args:
            name: the part.
            start: the number of the first run.
            runs: the number of runs on each table.
            size: the number of runs of a batch, at most.
            processes: the number of parallel processes.
        """
        firsts = range(0, runs, size)
        batches = [
            (name, table, start + table * runs + first, min(size, runs - first)) for first in firsts for table in (0, 1)
        ]
        if processes == 1:
            return (self.batch(*one) for one in batches)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=processes, return_as="generator_unordered", batch_size=1)
        found: Iterator[Batch] = parallel(delayed(self.batch)(*one) for one in batches)
        return found


_built: dict[str, dict[str, Part]] = {}


def _gaussian(charges: Collection[tuple[Entry, ...]]) -> Gaussian | None:
    """The noise that was charged in some runs, if all of it is Gaussian."""
    entries = [entry for run in charges for entry in run]
    if {entry.mechanism for entry in entries} != {GAUSSIAN}:
        return None
    single = max(map(len, charges)) == 1
    changed = max(round(entry.sensitivity**2) for entry in entries) if single else None
    return Gaussian(min(entry.scale for entry in entries), changed)


def repeated(batches: Iterable[Batch]) -> bool:
    """Whether runs repeat each other: all runs of a batch are equal, or two batches on the same table are."""
    found = list(batches)
    twins = any(
        a.table == b.table and a.digest == b.digest and a.likely < UNLIKELY for a, b in itertools.combinations(found, 2)
    )
    return twins or any(batch.equal for batch in found)


def cores() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
