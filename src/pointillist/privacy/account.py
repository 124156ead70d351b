"""Which account a run can have: the tighter one for Gaussian noise where its outline allows for it, else zCDP."""

from __future__ import annotations

from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, planned
from pointillist.privacy.facts import Outline
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.ledger import Ledger

__all__ = ["ledger_for"]


def ledger_for(budget: Budget, rows: int | None, outline: Outline) -> Ledger:
    """A ledger with the larger budget of Gaussian accounting if the run selects nothing by the data and no noise is
    below one of the least scales.

    Where the number of ``rows`` is private (None), a table with few rows may get fewer measurements with less noise
    each, so that the outline is checked for 1, 2, 4, ... rows. All of this is known from public facts.
    """
    plain = Ledger(budget)
    phases = outline(planned(plain, rows or MOST_ROWS, private=rows is None))
    if any(phase.selects or phase.noise is None for phase in phases):
        return plain
    for least_scale in LEAST_SCALES:
        ledger = Ledger(budget, least_scale)
        if ledger.limit > plain.limit and _smallest_noise(ledger, rows, outline) >= least_scale:
            return ledger
    return plain


def _smallest_noise(ledger: Ledger, rows: int | None, outline: Outline) -> float:
    """The smallest noise of a run that only measures, including the noise on the number of rows."""
    sizes = [2**k for k in range(MOST_ROWS.bit_length())] if rows is None else [rows]
    facts = [planned(ledger, total, private=rows is None) for total in sizes]
    scales = [known.total_sigma for known in facts if known.total_sigma]
    for known in facts:
        phases = outline(known)
        if any(phase.selects or phase.noise is None for phase in phases):
            return 0.0
        scales += [phase.noise[0] for phase in phases if phase.noise]
    return min(scales, default=0.0)
