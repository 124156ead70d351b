"""What several runs on one table cost together, and a cap on their total that holds however they are chosen.

A run is booked with its kind and its rho: *zCDP* (any mechanism; it is rho-zCDP) or *Gaussian* (nothing but discrete
Gaussian noise of at least a least scale, with rho = mu^2 / 2, as in :mod:`pointillist.privacy.gaussian`). L is the
privacy loss between two neighbouring tables, l the part of it that has accumulated, and delta(epsilon) is
E[(e^L - e^epsilon)_+] under the second table. Let z be the rho of the zCDP runs, g that of the Gaussian runs, s the
smallest least scale, r = kappa(s)^2 - 1 and b = 2 g.

**Three bounds**, each for z, g and s that are fixed in advance. Which mechanism is asked next, and at which price, may
depend on all that came out before, and steps of different runs may alternate.

(a) *All as zCDP.* Gaussian noise of rho is rho-zCDP, so all runs together are (z + g)-zCDP. For each alpha > 1 the
expectation of e^(alpha l + alpha (alpha - 1) left) never grows from step to step, where "left" is what is left of
z + g: a step that costs rho' has E e^(alpha l') <= e^(alpha (alpha - 1) rho'). The conversion is `budget.epsilon_of`.

(b) *Gaussian alone* (z = 0): the proof in `gaussian.py`, with s as sigma_min.

(c) *Mixed.* Let psi_z(y) be the supremum of E(y e^L - e^epsilon)_+ over all ways to spend z on zCDP steps, and
W(l, b, z) = E psi_z(e^(l + N)) with N ~ N(-b/2, (1 + r) b), which is what is left to lose. As a supremum of functions
that are convex and grow in y, psi_z is convex and grows. So a Gaussian step does not increase W: the argument of
`gaussian.py` asks only for a convex, growing function of e^l. A zCDP step that costs rho' has
E psi_(z - rho')(y e^L') <= psi_z(y), because the step and the best way to go on are together one of the ways in the
supremum; N is independent of it, so W does not increase either. At the end W is (e^l - e^epsilon)_+, at the start

    delta <= W(0, b, z) = E psi_z(e^N) <= E e^N delta_z(epsilon - N) = e^(r b / 2) E delta_z(epsilon - N'),
    N' ~ N(b/2 + r b, (1 + r) b),

where delta_z(t) <= 1 is the delta that z-zCDP implies for epsilon = t. This is (b) if z = 0, and for every t it is at
most delta_z(epsilon - t) plus the delta of the Gaussian runs at t: the sum over the parts with the best split of
epsilon and delta. The integrand grows with N', so that an upper sum over small intervals is a bound.

**A cap that holds for adaptive choices.** An account does not know its runs in advance. That the smallest of (a), (b)
and (c) for the runs so far is below epsilon is *not* a valid rule for letting the next run in: by what came out, a user
could choose whether to go on with Gaussian or with zCDP runs, and the sets of total costs that the three bounds allow
are not one set fixed in advance. What is valid:

1. One bound with its totals fixed in advance. (a) needs only z + g <= rho_of(epsilon, delta); (b) needs z = 0, a fixed
   s and g <= gaussian_rho_of(epsilon, delta, s).
2. Two such rules at once, "z + g is allowed by (a) at delta_1, or z = 0 and g, s are allowed by (b) at delta_2", with
   delta_1 + delta_2 <= delta. To see it, split a set S of results into those that end with costs allowed by the first
   rule, S_1, and the others, S_2. Both rules allow every part of what they allow, so S_1 may be seen as results of a
   process that stops before it would break the first rule; hence P(S_1) <= e^epsilon Q(S_1) + delta_1. The same holds
   for S_2 and delta_2, and the sum is the claim for S.
3. The choice between these by the figures of the first run, which are known before anything is looked at.

:class:`Filter` does this. If the first run is zCDP, all of delta is for (a). If it is Gaussian, one half is for (a) and
one half for (b), which costs a few per cent of rho, unless that run alone needs more than one half: then (b) has all of
delta. The mixed bound is used for reporting what the runs so far cost, and never to let a run in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from pointillist.data.paid import Paid
from pointillist.privacy.budget import epsilon_of, rho_of
from pointillist.privacy.gaussian import gaussian_log_delta_of, gaussian_rho_of
from pointillist.privacy.ledger import Ledger, minus

__all__ = [
    "Booked",
    "Filter",
    "gaussian_epsilon_of",
    "mixed_epsilon_of",
    "mixed_log_delta_of",
    "round_up",
    "together_with",
]

USUAL_SCALE = 10.0
"""The least scale for which the Gaussian rule of an account is chosen where the first run allows for it: little is lost
by comparison with 100, and more of the later runs fit."""

STEPS = np.arange(-1600, 8001) / 200
"""Ends of the intervals of the upper sum, in standard deviations."""


@dataclass(frozen=True)
class Booked:
    """What some runs cost together.

    Attributes:
        zcdp: the rho of those that are accounted in zCDP.
        gaussian: the rho of those that add nothing but Gaussian noise.
        least_scale: the smallest least scale of the latter.
    """

    zcdp: Fraction = Fraction(0)
    gaussian: Fraction = Fraction(0)
    least_scale: float = math.inf

    @property
    def rho(self) -> Fraction:
        """The sum."""
        return self.zcdp + self.gaussian

    def plus(self, rho: Fraction, least_scale: float | None) -> Booked:
        """With one more run.

        Args:
            rho: what it costs.
            least_scale: its least scale if it is Gaussian; None for zCDP.
        """
        if rho == 0:
            return self
        if least_scale is None:
            return replace(self, zcdp=self.zcdp + rho)
        return replace(self, gaussian=self.gaussian + rho, least_scale=min(self.least_scale, least_scale))

    def epsilon(self, delta: float) -> tuple[float, str]:
        """The smallest epsilon that is known for these totals, and the name of the bound.

        It holds if the totals were fixed in advance.

        Args:
            delta: the delta of the guarantee.
        """
        zcdp, gaussian = round_up(self.zcdp), round_up(self.gaussian)
        found = [(epsilon_of(round_up(self.rho), delta), "zCDP")]
        if gaussian and not zcdp:
            found.append((gaussian_epsilon_of(gaussian, delta, self.least_scale), "Gaussian"))
        if gaussian and zcdp:
            found.append((mixed_epsilon_of(zcdp, gaussian, delta, self.least_scale), "mixed"))
        return min(found)


@dataclass(frozen=True)
class Filter:
    """Which totals are let in: a rule that is fixed before anything is looked at.

    Attributes:
        epsilon: the cap.
        zcdp_delta: the part of delta for totals that are allowed as zCDP; 0 where none is.
        gaussian_delta: the part of delta for totals of Gaussian runs alone; 0 where none is.
        least_scale: the smallest least scale of the latter.
    """

    epsilon: float
    zcdp_delta: float
    gaussian_delta: float
    least_scale: float

    @classmethod
    def opening(cls, epsilon: float, delta: float, first: Booked) -> Filter:
        """The filter for the first run of an account, and for all later ones.

        Args:
            epsilon, delta: the cap.
            first: what the first run costs.
        """
        scale, half = first.least_scale, delta / 2
        as_zcdp = cls(epsilon, delta, 0.0, math.inf)
        if first.zcdp or not first.gaussian:
            return as_zcdp
        wanted = [
            cls(epsilon, half, half, min(scale, USUAL_SCALE)),
            cls(epsilon, half, half, scale),
            as_zcdp,
            cls(epsilon, 0.0, delta, scale),
        ]
        return next((one for one in wanted if one.allows(first)), wanted[-1])

    def left(self, booked: Booked, least_scale: float | None) -> Fraction:
        """The largest rho that one more run may cost.

        Args:
            booked: what the other runs cost.
            least_scale: the least scale of the run if it is Gaussian; None for zCDP.
        """
        left = self._zcdp_limit() - booked.rho
        if least_scale is not None and not booked.zcdp and min(least_scale, booked.least_scale) >= self.least_scale:
            left = max(left, self._gaussian_limit() - booked.gaussian)
        return max(left, Fraction(0))

    def allows(self, booked: Booked) -> bool:
        """Whether runs may cost this together."""
        if booked.rho <= self._zcdp_limit():
            return True
        fits = not booked.zcdp and booked.least_scale >= self.least_scale
        return fits and booked.gaussian <= self._gaussian_limit()

    def _zcdp_limit(self) -> Fraction:
        return _limit(self.epsilon, self.zcdp_delta, None)

    def _gaussian_limit(self) -> Fraction:
        return _limit(self.epsilon, self.gaussian_delta, self.least_scale)


def together_with(paid: Paid, ledger: Ledger) -> tuple[float, float]:
    """The (epsilon, delta) of a run together with the schema that was paid for before it.

    delta is the sum of both. epsilon is the smaller one of the sum of both (basic composition) and what the bounds
    above give for their rho at this delta less the parts for showing values that only one unit has: by the lemma in
    :mod:`pointillist.privacy.thresholds` those parts are added to the delta of any bound on the noise. The whole limits
    count, not what was spent of them, since they were fixed in advance. It holds if the budget of the run was not
    chosen by what the schema shows.

    Args:
        paid: what the schema cost.
        ledger: the budget of the run, under the same relation and for the same unit.
    """
    budget = ledger.budget
    delta = round_up(Fraction(paid.delta) + Fraction(budget.delta))
    added = round_up(Fraction(paid.epsilon) + Fraction(budget.epsilon))
    both = Booked().plus(Fraction(paid.rho), paid.least_scale).plus(Fraction(ledger.limit), ledger.least_scale)
    noise = minus(delta, Fraction(paid.delta_shown) + Fraction(ledger.delta_shown))
    return min(added, both.epsilon(noise)[0]) if 0 < noise < 1 else added, delta


@lru_cache(1024)
def _limit(epsilon: float, delta: float, least_scale: float | None) -> Fraction:
    """The largest rho, of Gaussian noise if there is a least scale, else of zCDP; 0 if delta is."""
    if delta == 0:
        return Fraction(0)
    return Fraction(rho_of(epsilon, delta) if least_scale is None else gaussian_rho_of(epsilon, delta, least_scale))


def round_up(x: Fraction) -> float:
    """The smallest double that is not below x."""
    return -minus(0.0, x) + 0.0  # never -0.0


def gaussian_epsilon_of(rho: float, delta: float, least_scale: float) -> float:
    """The smallest epsilon for which Gaussian noise of total rho is known to be (epsilon, delta)-DP.

    Args:
        rho: mu^2 / 2 of all noise together.
        delta: the delta of the guarantee.
        least_scale: no noise is smaller.
    """
    return _least(lambda epsilon: gaussian_log_delta_of(rho, epsilon, least_scale) <= math.log(delta), rho)


def mixed_epsilon_of(zcdp: float, gaussian: float, delta: float, least_scale: float) -> float:
    """The smallest epsilon that the mixed bound gives.

    Args:
        zcdp: the rho of all zCDP steps.
        gaussian: the rho of all Gaussian noise.
        delta: the delta of the guarantee.
        least_scale: no Gaussian noise is smaller.
    """
    return _least(
        lambda epsilon: mixed_log_delta_of(zcdp, gaussian, epsilon, least_scale) <= math.log(delta), zcdp + gaussian
    )


def mixed_log_delta_of(zcdp: float, gaussian: float, epsilon: float, least_scale: float) -> float:
    """The logarithm of a delta for which zCDP steps and Gaussian noise together are (epsilon, delta)-DP.

    Args:
        zcdp: the rho of all zCDP steps.
        gaussian: the rho of all Gaussian noise.
        epsilon: the epsilon of the guarantee.
        least_scale: no Gaussian noise is smaller.
    """
    square = 2 * gaussian
    r = (1 - 1 / (4 * least_scale**2)) ** -2 - 1
    ends = square * (0.5 + r) + math.sqrt(square * (1 + r)) * STEPS
    tails = ndtr(-STEPS)  # P(N' > end), exact far out, where it matters
    mass = tails[:-1] - tails[1:]
    inside = float(mass @ _zcdp_delta(zcdp, epsilon - ends[1:]))
    below = float((1 - tails[0]) * _zcdp_delta(zcdp, epsilon - ends[:1])[0])
    # The margin covers rounding; the constant covers what underflows.
    return min(0.0, r * square / 2 + math.log(inside + below + float(tails[-1]) + 1e-300) + 1e-9)


def _zcdp_delta(rho: float, epsilons: np.ndarray) -> np.ndarray:
    """delta that rho-zCDP implies for each epsilon, which may be negative.

    The formula of `budget.log_delta_of` with b = alpha - 1 and ln(1 - 1/alpha) = -ln(1 + 1/b), which does not cancel.
    Every b gives a bound, so the bisection need not be exact.
    """
    low, high = np.full_like(epsilons, -40.0), np.full_like(epsilons, 40.0)
    for _ in range(30):
        log_b = (low + high) / 2
        falling = (2 * np.exp(log_b) + 1) * rho - epsilons - np.log1p(np.exp(-log_b)) < 0
        low, high = np.where(falling, log_b, low), np.where(falling, high, log_b)
    b = np.exp(high)
    log_delta = b * ((1 + b) * rho - epsilons) - high - (1 + b) * np.log1p(np.exp(-high))
    deltas: np.ndarray = np.exp(np.minimum(log_delta, 0.0))
    return deltas


def _least(holds: Callable[[float], bool], start: float) -> float:
    """The smallest epsilon that holds, by bisection; the end that is known to hold is returned."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, max(start, 1e-12)
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1e-8 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
