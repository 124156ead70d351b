"""A door that keeps a journal: it plays back what is in it, then asks the curator and writes down what it returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import asdict
from fractions import Fraction

import numpy as np

from pointillist.data.domain import Domain
from pointillist.data.neighbours import Relation
from pointillist.errors import PointillistError
from pointillist.framework import Log, Round
from pointillist.privacy.curator import Ask, Curator, Found, Seek
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Entry
from pointillist.privacy.scores import Pick, ScoreRule
from pointillist.queries.base import Queries
from pointillist.queries.candidates import Candidates
from pointillist.queries.measurement import Measurement
from pointillist.release.journal import Journal, Record
from pointillist.release.transcript import log_arrays, log_of

__all__ = ["RecordedDoor", "charged_in"]


class RecordedDoor:
    """A curator behind a journal.

    Args:
        curator: the private side. Its ledger writes every charge into the journal before the noise is drawn.
        journal: where charges and results go.
        domain: the attributes, for the names of the queries.
        records: what the journal holds already, if the run was interrupted.
    """

    def __init__(self, curator: Curator, journal: Journal, domain: Domain, records: Sequence[Record] = ()) -> None:
        self._curator, self._journal, self._domain = curator, journal, domain
        self._played = deque(record for record in records if record.kind == "result")
        booked, unseen = _charges(records)
        curator.ledger.restore(booked, unseen)
        states = [record.data["noise"] for record in self._played if record.data["noise"] is not None]
        if states:
            curator.noise.state = states[-1]  # type: ignore[misc]
        curator.ledger.witness = self._write_charge

    def onto(self, curator: Curator, domain: Domain) -> RecordedDoor:
        """The door to a curator of the same rows in other codes, with the same journal.

        Args:
            curator: the private side from now on, with the same ledger and noise.
            domain: its attributes.
        """
        after = copy(self)
        after._curator, after._domain = curator, domain
        return after

    def open(self) -> Facts:
        """The facts of the run."""
        record = self._next("open")
        if record is None:
            facts = self._curator.open()
            self._journal.append("result", self._result("open") | {"facts": asdict(facts)})
            return facts
        found = record.data["facts"]
        facts = Facts(**found | {"relation": Relation(found["relation"])})
        self._curator.take_up(facts)
        return facts

    def select(
        self,
        candidates: Candidates,
        estimate: np.ndarray,
        rule: ScoreRule,
        rho: float,
        picks: int,
        taken: Collection[Queries] | None,
    ) -> tuple[Pick, ...]:
        """Recorded picks, or new ones."""
        record = self._next("select")
        if record is not None:
            return self._round(record).picks
        found = self._curator.select(candidates, estimate, rule, rho, picks, taken)
        self._write("select", Round(found, selected=True))
        return found

    def measure(self, asked: Sequence[Ask]) -> tuple[Measurement, ...]:
        """Recorded measurements, or new ones."""
        record = self._next("measure")
        if record is not None:
            return self._round(record).measurements
        found = self._curator.measure(asked)
        self._write("measure", Round(measurements=found))
        return found

    def discover(self, asked: Sequence[Seek]) -> tuple[Found, ...]:
        """Recorded discoveries, or new ones."""
        record = self._next("discover")
        if record is None:
            found = self._curator.discover(asked)
            self._journal.append("result", self._result("discover") | {"found": [asdict(one) for one in found]})
            return found
        lists = ("values", "counts")
        return tuple(Found(**one | {name: tuple(one[name]) for name in lists}) for one in record.data["found"])

    def _next(self, operation: str) -> Record | None:
        if not self._played:
            return None
        record = self._played.popleft()
        if record.data["operation"] != operation:
            found = record.data["operation"]
            text = f"the journal has the result of {found!r:.60} where the run needs {operation}"
            raise PointillistError(f"{text}; use the version of pointillist that began it")
        return record

    def _round(self, record: Record) -> Round:
        return log_of(record.arrays, self._domain, self.open_facts).rounds[0]

    @property
    def open_facts(self) -> Facts:
        """The facts, which are known by now."""
        return self._curator.open()

    def _result(self, operation: str) -> dict[str, object]:
        return {"operation": operation, "noise": self._curator.noise.state}

    def _write(self, operation: str, entry: Round) -> None:
        log = Log(self.open_facts, [entry], [{}])
        self._journal.append("result", self._result(operation), log_arrays(log, self._domain.names))

    def _write_charge(self, entries: tuple[Entry, ...]) -> None:
        self._journal.append("charge", {"entries": [entry.to_dict() for entry in entries]})


def charged_in(records: Sequence[Record]) -> Fraction:
    """The rho of all charges of a journal, those without a result included.

    Args:
        records: the records of the journal.
    """
    booked, unseen = _charges(records)
    return sum((Fraction(entry.rho) for entry in (*booked, *unseen)), Fraction(0))


def _charges(records: Sequence[Record]) -> tuple[list[Entry], list[Entry]]:
    """The charges whose results are there, and those that are open."""
    booked: list[Entry] = []
    unseen: list[Entry] = []
    for record in records:
        if record.kind == "charge":
            unseen += [Entry(**entry) for entry in record.data["entries"]]
        elif record.kind == "result":
            booked, unseen = booked + unseen, []
    return booked, unseen
