"""How the budget was spent: a section of the page of a release."""

from __future__ import annotations

import math

from pointillist.queries.residuals import Residuals
from pointillist.release import Release
from pointillist.reports.charts import parts_chart, percent
from pointillist.reports.markup import Html, data_table, disclosure, join, tag
from pointillist.reports.spending import Spent, spending

__all__ = ["ledger_shown"]

MOST_CHARGES = 300
"""Charges that are listed one by one."""
UNUSED = 1e-3
"""The least share of the budget that is worth a remark if it was not used."""
LISTED = (
    "Everything that it learned from the real table is listed here. The scale of the noise is its standard deviation, "
    "as a number of rows on a cell; for choices it is the scale of the scores."
)
AS_CHARGED = (
    "Sensitivities and scales are those of the whole numbers that noise was added to. Residuals are counts of rows "
    "times large whole numbers, so that their scales are as much larger than the noise in rows on a cell."
)
SCHEMA = (
    "The list of columns and values was made from the real table, too. What that cost is part of the promise above; "
    "its charges are in the schema of release.json."
)


def ledger_shown(release: Release) -> Html:
    """The charges by what they were for, and one by one.

    Args:
        release: the release.
    """
    privacy, groups = release.description.privacy, spending(release)
    total = sum(one.rho for one in groups) or 1.0
    left = privacy.rho - privacy.rho_spent
    rest = f", so that {left:.3g} was not used" if left > UNUSED * privacy.rho else ""
    intro = f"The run could spend rho = {privacy.rho:.6g} and has spent {privacy.rho_spent:.6g}{rest}. {LISTED}"
    if not groups:
        return tag("p", f"{intro} Nothing was charged.")
    more = [] if privacy.with_schema is None else [tag("p", SCHEMA)]
    return join((tag("p", intro), *more, _chart(groups, total), _table(groups, total), _every_charge(release)))


def _chart(groups: list[Spent], total: float) -> Html:
    shares = [(one.name, one.rho / total) for one in groups]
    words = "; ".join(f"{name}: {percent(share)}" for name, share in shares)
    return parts_chart("budget", "How the budget was spent", words, shares)


def _table(groups: list[Spent], total: float) -> Html:
    head = ("What was asked", "Mechanism", "Times", "Scale of the noise", "Rho", "Share")
    rows = [
        (one.name, one.mechanism, f"{len(one.entries):,}", _scales(one), f"{one.rho:.4g}", percent(one.rho / total))
        for one in groups
    ]
    return data_table("Charges by what they were for", head, rows, texts=2)


def _scales(one: Spent) -> str:
    low, high = one.noise
    return f"{low:,.4g}" if math.isclose(low, high) else f"{low:,.4g} to {high:,.4g}"


def _every_charge(release: Release) -> Html:
    entries = release.description.privacy.ledger
    rows = [
        (f"{n:,}", one.label, one.mechanism, f"{one.rho:.6g}", f"{one.sensitivity:.6g}", f"{one.scale:.6g}")
        for n, one in enumerate(entries[:MOST_CHARGES], 1)
    ]
    more = f"The first {MOST_CHARGES:,} of them are shown; release.json has all."
    notes = [more] if len(entries) > MOST_CHARGES else []
    notes += [AS_CHARGED] if any(isinstance(one.queries, Residuals) for one in release.log.measurements) else []
    shown = [tag("p", note, class_="note") for note in notes]
    head = ("No.", "Label", "Mechanism", "Rho", "Sensitivity", "Scale")
    return disclosure(f"All {len(entries):,} charges", *shown, data_table("Charges in order", head, rows, texts=3))
