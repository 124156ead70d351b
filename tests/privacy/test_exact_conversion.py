"""Both conversions against 60 digits: never optimistic, nearly exact, and errors that are planted are found.

A claim about charges of rho is held against what the mechanisms cost that were charged: less by the share ``KEPT``,
which OpenDP's privacy maps confirm before each draw.
"""

from __future__ import annotations

import itertools
import math
import platform
import sys
from collections.abc import Callable, Iterable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from tests.privacy import exact

from pointillist.errors import InputError
from pointillist.privacy import budget as module
from pointillist.privacy import gaussian
from pointillist.privacy.budget import (
    LEAST_DELTA,
    LEAST_EPSILON,
    MOST_DELTA,
    MOST_EPSILON,
    delta_of,
    epsilon_of,
    rho_of,
)
from pointillist.privacy.gaussian import LEAST_SCALES, gaussian_log_delta_of, gaussian_rho_of
from pointillist.privacy.mechanisms import KEPT

Pair = tuple[float, float]
Conversion = Callable[[float, float], float]

EXTREMES: list[Pair] = list(
    itertools.product(
        (LEAST_EPSILON, 1e-7, 1e-5, 1e-3, 0.02, 1.0, MOST_EPSILON), (LEAST_DELTA, 1e-100, 1e-30, 1e-9, 1e-3, MOST_DELTA)
    )
)
USUAL: list[Pair] = list(itertools.product((0.01, 0.1, 0.37, 1.0, 3.0, 10.0), (1e-20, 1e-12, 4.2e-10, 1e-6, 1e-4)))
CHARGED: list[Pair] = list(
    itertools.product((1e-300, 1e-22, 1e-12, 1e-6, 0.01, 1.0, 50.0, 1e4), (1e-300, 1e-30, 1e-9, 1e-3, 0.5))
)
"""Charges in all, and a delta."""


def log_range(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(lambda x: min(max(math.exp(x), low), high))


epsilons, deltas = log_range(LEAST_EPSILON, MOST_EPSILON), log_range(LEAST_DELTA, MOST_DELTA)
rhos = log_range(1e-30, 1e4)


def spent(rho: float) -> mpf:
    """The most that mechanisms cost which are charged rho."""
    return mpf(rho) * (1 - mpf(KEPT))


def rho_excess(convert: Conversion, epsilon: float, delta: float) -> mpf:
    """ln of the delta that holds over the one that is claimed; above 0 if the claim is too good."""
    return exact.log_delta(spent(convert(epsilon, delta)), epsilon) - mpmath.log(mpf(delta))


def epsilon_excess(convert: Conversion, rho: float, delta: float) -> mpf:
    return exact.log_delta(spent(rho), convert(rho, delta)) - mpmath.log(mpf(delta))


def delta_excess(convert: Conversion, rho: float, epsilon: float) -> mpf:
    claimed = convert(rho, epsilon)
    return exact.log_delta(spent(rho), epsilon) - mpmath.log(mpf(claimed))


def gaussian_excess(convert: Conversion, least_scale: float, epsilon: float, delta: float) -> mpf:
    return exact.gaussian_log_delta(convert(epsilon, delta), epsilon, least_scale) - mpmath.log(mpf(delta))


def is_optimistic(excess: Callable[..., mpf], convert: Conversion, points: Iterable[Pair]) -> bool:
    return any(excess(convert, *point) > 0 for point in points)


def times(convert: Conversion, factor: float) -> Conversion:
    return lambda first, second: convert(first, second) * factor


def test_rho_is_never_optimistic_and_nearly_all_of_it() -> None:
    assert not is_optimistic(rho_excess, rho_of, EXTREMES + USUAL)
    assert all(rho_excess(times(rho_of, 1 + 1e-8), *point) > 0 for point in EXTREMES + USUAL)


def test_epsilon_is_never_optimistic() -> None:
    assert not is_optimistic(epsilon_excess, epsilon_of, CHARGED)
    usual = [(rho_of(*point), point[1]) for point in USUAL]
    assert not is_optimistic(epsilon_excess, epsilon_of, usual)
    assert all(epsilon_excess(times(epsilon_of, 1 - 1e-9), *point) > 0 for point in usual)


def test_delta_is_never_optimistic() -> None:
    pairs = list(itertools.product((1e-22, 1e-9, 1e-4, 0.01, 1.0, 50.0, 1e4), (0.0, 1e-9, 1e-3, 1.0, 100.0)))
    assert not is_optimistic(delta_excess, delta_of, pairs)
    usual = [(rho_of(*point), point[0]) for point in USUAL]
    assert not is_optimistic(delta_excess, delta_of, usual)
    assert all(delta_excess(times(delta_of, 1 - 1e-9), *point) > 0 for point in usual)


@settings(max_examples=60)
@given(epsilons, deltas, rhos)
def test_none_of_them_is_optimistic_anywhere(epsilon: float, delta: float, rho: float) -> None:
    assert rho_excess(rho_of, epsilon, delta) <= 0
    assert rho_excess(times(rho_of, 1 + 1e-8), epsilon, delta) > 0
    assert epsilon_excess(epsilon_of, rho, delta) <= 0
    assert delta_excess(delta_of, rho, epsilon) <= 0


@pytest.mark.parametrize("least_scale", LEAST_SCALES)
def test_the_gaussian_conversion_is_never_optimistic(least_scale: float) -> None:
    def convert(epsilon: float, delta: float) -> float:
        return gaussian_rho_of(epsilon, delta, least_scale)

    points = EXTREMES + USUAL
    assert all(gaussian_excess(convert, least_scale, *point) <= 0 for point in points)
    assert all(gaussian_excess(times(convert, 1 + 1e-6), least_scale, *point) > 0 for point in USUAL)
    for rho, epsilon in itertools.product((1e-22, 1e-12, 1e-4, 0.01, 1.0, 50.0), (1e-9, 1e-3, 1.0, 100.0)):
        truth = exact.gaussian_log_delta(rho, epsilon, least_scale)
        if truth > -1000:  # smaller deltas are not accepted
            assert gaussian_log_delta_of(rho, epsilon, least_scale) >= truth


@settings(max_examples=60)
@given(epsilons, deltas, st.sampled_from(LEAST_SCALES))
def test_the_gaussian_conversion_is_optimistic_nowhere(epsilon: float, delta: float, least_scale: float) -> None:
    rho = gaussian_rho_of(epsilon, delta, least_scale)
    assert exact.gaussian_log_delta(rho, epsilon, least_scale) <= mpmath.log(mpf(delta))


def test_the_definition_with_many_digits_is_the_minimum_over_the_orders() -> None:
    """The reference itself, against orders on both sides of the one that it finds."""
    for rho, epsilon in ((1e-26, 1e-12), (0.01, 1.0), (50.0, 100.0)):
        found = exact.log_delta(rho, epsilon)
        for log_b in np.linspace(-8, 40, 200):
            b = mpmath.exp(mpf(float(log_b)))
            at = b * ((1 + b) * mpf(rho) - mpf(epsilon)) - mpf(float(log_b)) - (1 + b) * mpmath.log1p(1 / b)
            assert found <= at


@pytest.mark.parametrize("factor", [1.02, 1 + 1e-7])
def test_a_planted_error_is_found(factor: float) -> None:
    """A conversion that is optimistic by 2 %, or by a ten-millionth, does not pass the checks above."""
    usual_charges = [(rho_of(*point), point[1]) for point in USUAL]
    assert is_optimistic(rho_excess, times(rho_of, factor), USUAL)
    assert is_optimistic(epsilon_excess, times(epsilon_of, 1 / factor), usual_charges)
    assert is_optimistic(delta_excess, times(delta_of, 1 / factor), [(rho_of(*p), p[0]) for p in USUAL])
    if factor > 1.01:
        for least_scale in LEAST_SCALES:
            wrong = times(lambda e, d, s=least_scale: gaussian_rho_of(e, d, s), factor)
            assert any(gaussian_excess(wrong, least_scale, *point) > 0 for point in USUAL)


def test_the_formula_that_cancels_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written as ln b - ln(1 + b) for all orders and without its error bound, the conversion is optimistic."""
    monkeypatch.setattr(module, "LARGE_ORDER", math.inf)
    monkeypatch.setattr(module, "ROUNDING", 0.0)
    points = [(epsilon, delta) for epsilon, delta in EXTREMES if epsilon < 1e-4]
    assert is_optimistic(rho_excess, rho_of, points)


def test_a_gaussian_conversion_without_its_margin_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "ROUNDING", 0.0)
    pairs = [(epsilon**2 / over, epsilon) for epsilon in (1e-9, 1e-7, 1e-5) for over in (3, 10, 30, 100)]
    assert any(gaussian_log_delta_of(*pair, 10.0) < exact.gaussian_log_delta(*pair, 10.0) for pair in pairs)


def test_what_is_kept_back_covers_the_rounding_of_usual_budgets() -> None:
    """So the root is taken as it is; without what is kept back, rounding shows in the last digits alone."""
    excesses = [exact.log_delta(rho_of(*p), p[0]) - mpmath.log(mpf(p[1])) for p in USUAL]
    assert max(excesses) < 1e-10
    assert max(exact.log_delta(rho_of(*p), p[0]) - mpmath.log(mpf(p[1])) for p in EXTREMES) < 2e-9
    assert max(excesses) > 0  # why something is kept back


@pytest.mark.parametrize(("epsilon", "delta"), USUAL)
def test_a_round_trip_gives_the_same_epsilon_or_less(epsilon: float, delta: float) -> None:
    assert epsilon * (1 - 1e-8) <= epsilon_of(rho_of(epsilon, delta), delta) <= epsilon
    assert delta * (1 - 1e-6) <= delta_of(rho_of(epsilon, delta), epsilon) <= delta


@pytest.mark.parametrize("epsilon", [1e-300, 1e-30, 1e-12, 9.9e-10])
def test_an_epsilon_too_small_is_refused_and_does_not_hang(epsilon: float) -> None:
    sentence = "epsilon must be at least 1e-09, got .*; nothing can be learned with a smaller one: give for example 1."
    with pytest.raises(InputError, match=sentence):
        rho_of(epsilon, 1e-9)
    with pytest.raises(InputError, match=sentence):
        gaussian_rho_of(epsilon, 1e-9, 10.0)


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 9e-301, 0.51, 1 - 1e-12])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match=r"delta must be in 1e-300 \.\. 0\.5, got .*; give for example 1e-9, a number"):
        rho_of(1.0, delta)
    with pytest.raises(InputError, match=r"delta must be in 1e-300 \.\. 0\.5"):
        gaussian_rho_of(1.0, delta, 10.0)


BITS: dict[Pair, tuple[str, str]] = {
    (0.1, 1e-09): ("0x1.737c7accfede8p-13", "0x1.9fe950fcfd04cp-13"),
    (0.1, 4.1919213087971103e-10): ("0x1.5f39150d1b54bp-13", "0x1.878b5f437de10p-13"),
    (0.15, 1e-09): ("0x1.9653ba614a871p-12", "0x1.c5ef5b58ebf93p-12"),
    (0.5, 2.9623051631860096e-12): ("0x1.7ff2e7e4a995ep-9", "0x1.a1c4a0e74fa9ep-9"),
    (1.0, 1e-09): ("0x1.eaa31c7b810f8p-7", "0x1.0f433f52c6342p-6"),
    (1.0, 1e-06): ("0x1.8f0c580353396p-6", "0x1.caf70e9c3acc6p-6"),
    (1.0, 4.1919213087971103e-10): ("0x1.d39c4fd9790e0p-7", "0x1.01ab1c853853bp-6"),
    (2.0, 1e-06): ("0x1.6912cb1a57718p-4", "0x1.9ba234bae1ddcp-4"),
    (10.0, 1e-09): ("0x1.173dbb5aa505ap+0", "0x1.2eb59ee477ec3p+0"),
}
"""rho by zCDP, and for Gaussian noise of scale 100 or more, as they were before the error bounds were added."""


@pytest.mark.parametrize("point", BITS)
def test_the_rho_of_usual_budgets_stays_as_it_was(point: Pair) -> None:
    """Seeded results depend on every bit of it. Another library of elementary functions may round differently."""
    found = rho_of(*point), gaussian_rho_of(*point, 100.0)
    before = tuple(float.fromhex(bits) for bits in BITS[point])
    if sys.platform == "linux" and platform.machine() == "x86_64":
        assert found == before
    assert found == pytest.approx(before, rel=1e-8)
