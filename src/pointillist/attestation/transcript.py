"""The transcript against the ledger: everything that was learned was paid for, at the sensitivity that it has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest

from pointillist.attestation.findings import require
from pointillist.attestation.ledger import BEFORE, COUNTED, MEASURED, SELECTED
from pointillist.data.neighbours import Relation
from pointillist.framework import Log
from pointillist.privacy.ledger import Entry, minus
from pointillist.privacy.mechanisms import gaussian_scale
from pointillist.privacy.sensitivity import of_counts, of_total
from pointillist.queries.base import Queries, Sensitivity
from pointillist.queries.measurement import Measurement
from pointillist.release import Description

__all__ = ["check_facts", "check_sensitivities", "check_transcript"]


def _charged_for(log: Log) -> Iterator[tuple[str, Queries, Measurement | None]]:
    """What the rounds must have paid for, in order: first the selections of a round, then its measurements."""
    for entry in log.rounds:
        if entry.selected:
            yield from ((SELECTED, pick.queries, None) for pick in entry.picks)
        yield from ((MEASURED, one.queries, one) for one in entry.measurements)


def _paid(about: Description) -> list[Entry]:
    """The charges of the rounds."""
    return [entry for entry in about.privacy.ledger if entry.label not in BEFORE]


def check_transcript(about: Description, log: Log) -> str:
    """Each selection and measurement has its charge, and each charge its result: in order, and with the same noise."""
    picks = measured = 0
    for n, (learned, entry) in enumerate(zip_longest(_charged_for(log), _paid(about)), 1):
        require(entry is not None, "the transcript holds more than was charged")
        require(learned is not None, "the ledger holds more charges than the transcript shows results")
        label, _, measurement = learned
        require(entry.label == label, f"result {n:,} of the transcript is a {label}, but the charge is for another")
        if measurement is None:
            picks += 1
            continue
        measured += 1
        reason = f"measurement {measured:,} has a sigma of {measurement.sigma:.6g}, but {entry.scale:.6g} was charged"
        require(measurement.sigma == entry.scale, reason)
        whole = measurement.counts.dtype.kind in "iu"
        require(whole, f"measurement {measured:,} does not hold whole numbers")
    return f"{picks:,} selections and {measured:,} measurements, each with its charge"


def check_sensitivities(about: Description, log: Log) -> str:
    """No charge is for less than what one person can change, recomputed from the queries.

    A score can be more sensitive than the queries that were picked by it: the replay checks that. Roots are compared as
    the ledger writes them. Those of different whole numbers below 2^51 differ; beyond that, as the squares of residuals
    are, what rounding takes off is far below the share by which every scale is rounded up.
    """
    facts = about.facts
    known: dict[Queries, Sensitivity] = {}
    for n, ((label, queries, _), entry) in enumerate(zip(_charged_for(log), _paid(about), strict=True), 1):
        if queries not in known:
            known[queries] = of_counts(queries, facts)
        found = known[queries]
        square = max(of_total(facts), found.single**2 if label == SELECTED else found.l2_squared)
        paid = entry.sensitivity
        reason = f"{label} {n:,} can change by the root of {square:,}, but was charged for that of {paid**2:g}"
        require(paid >= math.sqrt(square), reason)
    return f"recomputed for {len(known):,} different queries under {facts.relation.value}"


def check_facts(about: Description, run_charges: Sequence[Entry]) -> str:
    """The number of rows: public and free, or measured once, before anything else.

    Args:
        about: the description.
        run_charges: the charges of the run itself, without those of the stage before it.
    """
    ledger = about.privacy.ledger
    counted = [entry for entry in ledger if entry.label == COUNTED]
    require(about.total >= 1 and about.rows >= 1, "the numbers of rows must be at least 1")
    if about.privacy.relation == Relation.REPLACE.value:
        require(not counted, "the number of rows is public under replace, but was charged for")
        require(about.total_sigma == 0, "the number of rows is public under replace, but has noise")
    else:
        require(len(counted) == 1 and ledger[0] == counted[0], "the number of rows must be the first charge, once")
        same = counted[0].scale == about.total_sigma == gaussian_scale(counted[0].rho, of_total(about.facts))
        require(same, "the noise of the number of rows is not what was charged")
    before = ledger[: len(ledger) - len(run_charges)]
    left = minus(about.privacy.rho, sum((Fraction(entry.rho) for entry in before), Fraction(0)))
    require(about.rho == left, f"the rounds had rho = {left!r}, but release.json says {about.rho!r}")
    if counted:
        return f"measured with a noise of {about.total_sigma:.4g}"
    return f"{about.total:,}, which is public"
