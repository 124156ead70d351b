"""Which account a run can have: the tighter one for Gaussian noise where its outline allows for it, else zCDP.

A budget with which a run would learn nothing has no account: it is refused.
"""

from __future__ import annotations

from pointillist.checks import check
from pointillist.privacy.budget import Budget
from pointillist.privacy.curator import MOST_ROWS, TOTAL_SHARE, planned, total_rho
from pointillist.privacy.facts import Facts, Outline, Phase
from pointillist.privacy.gaussian import LEAST_SCALES
from pointillist.privacy.ledger import Ledger, split
from pointillist.privacy.mechanisms import selection_scale

__all__ = ["LEAST_EFFECT", "ledger_for", "require_effect"]

LEAST_EFFECT = 0.01
"""The least that data must be able to do to a selection: an error of all rows multiplies the odds of a pick by e to
this power. With less, a run that measures nothing learns nothing."""


def ledger_for(budget: Budget, rows: int | None, outline: Outline, shown: float = 0.0) -> Ledger:
    """A ledger with the larger budget of Gaussian accounting if the run selects nothing by the data and no noise is
    below one of the least scales.

    Where the number of rows is private, a table with few rows may get fewer measurements with less noise each, so
    that the outline is checked for 1, 2, 4, ... rows. A larger least scale buys little: none is taken that would raise
    the noise on the number of rows, except the smallest one. All of this is known from public facts.

    Args:
        budget: what may be spent.
        rows: the number of rows; None where it is private.
        outline: the phases of the run.
        shown: the part of delta for showing values that only one unit has.
    """
    plain = Ledger(budget, None, shown)
    facts = planned(plain, rows or MOST_ROWS, private=rows is None)
    phases = outline(facts)
    require_effect(budget, facts, phases)
    if any(phase.selects or phase.noise is None for phase in phases):
        return plain
    for least_scale in LEAST_SCALES:
        ledger = Ledger(budget, least_scale, shown)
        if rows is None and least_scale > min(LEAST_SCALES) and total_rho(ledger) < ledger.left * TOTAL_SHARE:
            continue
        if ledger.limit > plain.limit and _smallest_noise(ledger, rows, outline) >= least_scale:
            return ledger
    return plain


def require_effect(budget: Budget, facts: Facts, phases: tuple[Phase, ...]) -> None:
    """Refuse a run that measures nothing and whose selections would be as good as random.

    Args:
        budget: what may be spent.
        facts: what is known before the run; the largest table where the number of rows is private.
        phases: what the run will do.
    """
    picks = sum(phase.rounds * phase.picks for phase in phases)
    if any(phase.noise is not None for phase in phases) or not any(phase.selects for phase in phases):
        return
    scale, most = selection_scale(split(facts.rho, picks), facts.rows_per_unit), facts.total / LEAST_EFFECT
    rule = f"must leave each of {picks:,} selections a scale below {most:,.0f} (it would be {scale:,.3g})"
    hint = "with more, picks are random: use a larger epsilon or fewer rounds"
    check(scale <= most, "epsilon", budget.epsilon, rule, hint)


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
