"""The ledger: every use of private data, charged before it happens.

Sums are exact (fractions of the floating-point charges), so no rounding can hide an overdraft.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from pointillist.errors import BudgetError, InputError, Shown
from pointillist.privacy.budget import Budget, require_range, rho_of
from pointillist.privacy.gaussian import gaussian_rho_of

__all__ = ["GAUSSIAN", "Entry", "Ledger", "minus", "rounded_up", "split"]

GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True)
class Entry:
    """One charge: what was done, with which mechanism, and what it costs in rho.

    ``delta`` is what it costs beside that: the probability that a value is shown which only one unit has
    (:mod:`pointillist.privacy.thresholds`). It is 0 for all charges but those of a discovery.
    """

    label: str
    mechanism: str
    rho: float
    sensitivity: float
    scale: float
    delta: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The charge as plain data; a delta of 0 is left out."""
        return {name: value for name, value in asdict(self).items() if name != "delta" or value}


class Ledger:
    """A budget in rho and the charges against it.

    Args:
        budget: what may be spent.
        least_scale: if given, the limit is that of :mod:`pointillist.privacy.gaussian`, which is larger than the zCDP
            budget, and nothing but Gaussian noise of at least that scale may be charged.
        delta_shown: the part of delta that charges may use up for showing values that only one unit has. The limit of
            rho follows from the rest of delta.
    """

    def __init__(self, budget: Budget, least_scale: float | None = None, delta_shown: float = 0.0) -> None:
        self.budget = budget
        self.least_scale = least_scale
        self.delta_shown = delta_shown
        if not 0 <= delta_shown < budget.delta:
            raise ValueError(f"the part of delta must be at least 0 and below {budget.delta!r}, got {delta_shown!r}")
        delta = minus(budget.delta, delta_shown)
        require_range(budget.epsilon, delta)
        if least_scale is None:
            self.limit = rho_of(budget.epsilon, delta)
        else:
            self.limit = gaussian_rho_of(budget.epsilon, delta, least_scale)
        self.witness: Callable[[tuple[Entry, ...]], None] | None = None
        """Called with every charge before it is booked: a journal, which must have it on disk when it returns."""
        self._entries: list[Entry] = []
        self._open: list[Entry] = []
        self._spent = Fraction(0)
        self._shown = Fraction(0)

    @property
    def accounting(self) -> str:
        """The name of the account."""
        return "zCDP" if self.least_scale is None else "Gaussian"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every charge, oldest first."""
        return tuple(self._entries)

    @property
    def pending(self) -> tuple[Entry, ...]:
        """The open charges of an interrupted run, which are spent, and under which the next noise is drawn."""
        return tuple(self._open)

    @property
    def unused(self) -> bool:
        """Whether nothing was ever charged, not even by an interrupted run."""
        return not self._entries and not self._open

    @property
    def spent(self) -> float:
        """What was charged, rounded up."""
        return _round_up(self._spent)

    @property
    def left(self) -> float:
        """What may still be spent, rounded down."""
        return minus(self.limit, self._spent)

    @property
    def delta_spent(self) -> float:
        """What was charged of :attr:`delta_shown`, rounded up."""
        return _round_up(self._shown)

    @property
    def delta_left(self) -> float:
        """What may still be charged of :attr:`delta_shown`, rounded down."""
        return minus(self.delta_shown, self._shown)

    def charge(self, *entries: Entry) -> None:
        """Book all ``entries``, or raise :class:`BudgetError` and change nothing."""
        after, shown = self._spent, self._shown
        for entry in entries:
            for name, value in (("rho", entry.rho), ("delta", entry.delta)):
                if not (math.isfinite(value) and value >= 0):
                    raise ValueError(f"a charge must be finite and not negative, got {name} = {value}")
            if self.least_scale is not None:
                self._require_gaussian(entry, self.least_scale)
            after += Fraction(entry.rho)
            shown += Fraction(entry.delta)
        if after > Fraction(self.limit):
            raise BudgetError(_round_up(after - self._spent), self.left, _called(entries))
        if shown > Fraction(self.delta_shown):
            raise BudgetError(_round_up(shown - self._shown), self.delta_left, _called(entries), "delta")
        again = self._again(entries)
        if self.witness is not None and again < len(entries):
            self.witness(entries[again:])
        self._open = self._open[again:]
        self._spent, self._shown = after, shown
        self._entries.extend(entries)

    def restore(self, entries: Sequence[Entry], open_entries: Sequence[Entry] = ()) -> None:
        """Book the charges of an interrupted run, which the witness has seen already. For those that are open, the
        noise was lost before anyone could see it: the next charges must be equal to them, and take their place."""
        self.charge(*entries)
        self._open = list(open_entries)

    def _again(self, entries: tuple[Entry, ...]) -> int:
        """How many of the entries are open charges of an interrupted run, which must come first."""
        again = self._open[: len(entries)]
        if list(entries[: len(again)]) != again:
            rule = "must begin with the charges that its journal left open"
            hint = "resume it with the version of pointillist that began the run"
            raise InputError("resumed run", Shown("other charges"), rule, hint)
        return len(again)

    @staticmethod
    def _require_gaussian(entry: Entry, least_scale: float) -> None:
        """The account holds for Gaussian noise of the least scale or more that costs what is charged."""
        if not (entry.mechanism == GAUSSIAN and entry.scale >= least_scale):
            rule = f"this budget is for Gaussian noise of scale {least_scale:g} or more"
            raise ValueError(f"{rule}, got {entry.mechanism} of scale {entry.scale:g}")
        square = max(1, round(entry.sensitivity**2))  # sensitivities are roots of whole numbers
        if 2 * Fraction(entry.rho) * Fraction(entry.scale) ** 2 < square:
            raise ValueError(f"noise of scale {entry.scale!r} costs more than the {entry.rho!r} charged for it")

    def statement(self, n: int | None, noisy_total: int | None = None) -> str:
        """The guarantee in words, with a warning if delta is not below 1/n.

        Args:
            n: the number of rows, where it is public.
            noisy_total: the measured number of rows, where n is private: the warning is then judged by it.
        """
        budget = self.budget
        rows = f" (n = {n:,})" if n is not None else ""
        kinds: dict[str, tuple[int, Fraction]] = {}
        for entry in self._entries:
            count, rho = kinds.get(entry.mechanism, (0, Fraction(0)))
            kinds[entry.mechanism] = (count + 1, rho + Fraction(entry.rho))
        kind_of_budget = "zCDP" if self.least_scale is None else "of Gaussian noise"
        lines = [
            f"({rounded_up(budget.epsilon)}, {rounded_up(budget.delta)})-differential privacy, "
            f"relation {budget.relation.value}: "
            f"{budget.meaning}{rows}.",
            f"Budget {self.limit:.6g} {kind_of_budget} (rho), spent {self.spent:.6g}:",
            *(f"  {count:,} x {kind}: {float(rho):.6g}" for kind, (count, rho) in kinds.items()),
        ]
        if self.delta_shown:
            part, spent = rounded_up(self.delta_shown), rounded_up(self.delta_spent)
            lines.append(f"Part of delta for showing a value that only one unit has: {part}, spent {spent}.")
        if (warning := self._warning(n, noisy_total)) is not None:
            lines.append(warning)
        return "\n".join(lines)

    @staticmethod
    def with_schema(epsilon: float, delta: float, together: tuple[float, float]) -> str:
        """What a schema adds that was paid for, in words.

        Args:
            epsilon, delta: what the schema cost.
            together: the (epsilon, delta) of the schema and the run.
        """
        return (
            f"The schema was made from the same table for ({rounded_up(epsilon)}, {rounded_up(delta)}) of its own. "
            f"Together they are ({rounded_up(together[0])}, {rounded_up(together[1])})-differentially private, if the "
            "schema did not decide on the budget of this run."
        )

    def _warning(self, n: int | None, noisy_total: int | None) -> str | None:
        """What is wrong with a delta that is not below 1 over the number of rows."""
        total = n if n is not None else noisy_total
        if total is None or self.budget.delta * total < 1:
            return None
        rows = "1/n" if n is not None else f"1/n for the noisy number of rows ({total:,})"
        return f"Warning: delta is not below {rows}, so it allows the values of some person to be published."


def _called(entries: tuple[Entry, ...]) -> str:
    """What some charges are for: one by its label, several by their number and labels."""
    if len(entries) == 1:
        return entries[0].label
    counts = Counter(entry.label for entry in entries)
    return " and ".join(f"{count:,} x {label}" for label, count in counts.items()) + " together"


def rounded_up(x: float) -> str:
    """Four significant digits, rounded up: a statement must not claim more than holds.

    Args:
        x: an epsilon or a delta.
    """
    context = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(decimal.Decimal(repr(x)))):g}"


def split(rho: float, parts: int | Fraction) -> float:
    """The largest double x with parts * x <= rho, exactly. With a fraction of parts, x is its inverse share of rho."""
    return -_round_up(-Fraction(rho) / parts) + 0.0  # never -0.0


def minus(rho: float, part: float | Fraction) -> float:
    """The largest double x with part + x <= rho, exactly."""
    return -_round_up(Fraction(part) - Fraction(rho)) + 0.0  # never -0.0


def _round_up(x: Fraction) -> float:
    y = float(x)
    return math.nextafter(y, math.inf) if Fraction(y) < x else y
