"""Discovered values: each was paid for, and none is shown below the threshold that its charge allows for."""

from __future__ import annotations

import math

from pointillist.attestation.findings import one_line, require
from pointillist.attestation.ledger import COUNTED, DISCOVERED
from pointillist.data.opening import discovered_in
from pointillist.data.schema import Schema
from pointillist.privacy.curator import Found
from pointillist.privacy.facts import Facts
from pointillist.privacy.ledger import Entry
from pointillist.privacy.sensitivity import square_of_values
from pointillist.privacy.thresholds import threshold_of
from pointillist.release import Description

__all__ = ["check_discovered"]


def check_discovered(about: Description) -> str:
    """Each column to be discovered has its charge and its values, and each threshold follows from its charge."""
    charges = [entry for entry in about.privacy.ledger if entry.label == DISCOVERED]
    given = Schema.from_dict(about.schema if about.given is None else about.given)
    names = [given.columns[place].name for place in discovered_in(given)]
    require(not discovered_in(Schema.from_dict(about.schema)), "the columns of the release have no values")
    found = about.discovered or ()
    require([one.column for one in found] == names, "other columns were discovered than were to be")
    require(len(charges) == len(found), "the ledger has another number of discoveries")
    if not found:
        return "there were none to discover"
    counted = sum(entry.label == COUNTED for entry in about.privacy.ledger)
    first = [entry.label for entry in about.privacy.ledger[counted : counted + len(found)]]
    require(set(first) == {DISCOVERED}, "values must be discovered before anything is measured")
    for one, entry in zip(found, charges, strict=True):
        _check_one(one, entry, about.facts)
    return f"{sum(len(one.values) for one in found):,} values of {len(found):,} columns, none below its threshold"


def _check_one(found: Found, entry: Entry, facts: Facts) -> None:
    where = f"column {one_line(found.column)[:60]!r}"
    require(found.sigma == entry.scale, f"{where} was discovered with other noise than was charged")
    wanted = math.sqrt(square_of_values(facts))
    require(entry.sensitivity >= wanted, f"{where} can change by {wanted:g}, but less was charged")
    least = threshold_of(entry.delta, found.sigma, facts.rows_per_unit)
    same = least <= found.threshold <= least + 1  # a bound that is computed elsewhere may round the other way
    require(same, f"{where} has a threshold of {found.threshold:,}, but its delta needs {least:,}")
    require(len(found.values) == len(found.counts), f"{where} has values without counts")
    require(list(found.values) == sorted(set(found.values)), f"{where} has values twice, or out of order")
    require(all(count >= found.threshold for count in found.counts), f"{where} has a value below its threshold")
