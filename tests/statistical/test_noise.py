"""The noise against its exact distributions, with a power check: a scale wrong by x0.7 or x1.3 is rejected.

The operating system's randomness cannot be seeded, so a test rejects at 1e-6: false alarms do not occur in practice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from pointillist.privacy import mechanisms
from pointillist.privacy.insecure import InsecureSeededNoise
from pointillist.privacy.mechanisms import PIECE, Noise, OpenDPNoise, gaussian_scale, selection_scale

LEVEL = 1e-6
WRONG = (0.7, 1.3)
NOISES: dict[str, Callable[[], Noise]] = {"opendp": OpenDPNoise, "seeded": lambda: InsecureSeededNoise(20_24)}
SCORES = np.array([40, 42, 44, 46, 41])


def p_value(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """Pearson's chi-square test of counts against the probabilities of all outcomes."""
    expected = observed.sum() * probabilities
    assert expected.min() >= 20
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def gaussian_p_value(draws: np.ndarray, sigma: float) -> float:
    """Whole-number draws against the discrete Gaussian, Pr[x] ∝ exp(-x^2 / (2 sigma^2)), tails pooled."""
    reach = math.ceil(15 * sigma)
    support = np.arange(-reach, reach + 1)
    pmf = np.exp(-(support**2) / (2 * sigma**2))
    pmf /= pmf.sum()
    inner = support[pmf * len(draws) >= 50]
    low, high = int(inner[0]), int(inner[-1])
    bins = np.bincount(np.clip(support, low, high) - low, weights=pmf)
    return p_value(np.bincount(np.clip(draws, low, high) - low, minlength=len(bins)), bins)


def softmax(scores: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def frequencies(noise: Noise, rho: float, draws: int) -> np.ndarray:
    return np.bincount([noise.select(SCORES, rho, 1) for _ in range(draws)], minlength=len(SCORES))


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("square", [1, 2])
def test_gaussian_has_its_exact_distribution(name: str, square: int) -> None:
    """The seeded noise is a rounded Gaussian, which at this scale cannot be told from the discrete one."""
    sigma = 6.0
    counts = np.full(100_000, 1_000, np.int64)
    noisy = NOISES[name]().add_gaussian(counts, square / (2 * sigma**2), square)
    assert noisy.dtype == np.int64
    assert gaussian_p_value(noisy - 1_000, sigma) > LEVEL


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("factor", WRONG)
def test_gaussian_of_a_wrong_scale_is_rejected(name: str, factor: float) -> None:
    sigma = 6.0
    noisy = NOISES[name]().add_gaussian(np.zeros(20_000, np.int64), 1 / (2 * (factor * sigma) ** 2), 1)
    assert gaussian_p_value(noisy, sigma) < LEVEL


def test_gaussian_of_a_small_scale_is_discrete() -> None:
    """Where rounding would show: a rounded Gaussian of this scale is rejected, OpenDP's is not."""
    sigma = 0.6
    draws = OpenDPNoise().add_gaussian(np.zeros(50_000, np.int64), 1 / (2 * sigma**2), 1)
    assert gaussian_p_value(draws, sigma) > LEVEL
    rounded = InsecureSeededNoise(1).add_gaussian(np.zeros(50_000, np.int64), 1 / (2 * sigma**2), 1)
    assert gaussian_p_value(rounded, sigma) < LEVEL


@pytest.mark.parametrize("name", NOISES)
def test_gaussian_draws_are_uncorrelated_between_cells(name: str) -> None:
    noisy = NOISES[name]().add_gaussian(np.zeros(40_000, np.int64), 0.02, 1).reshape(-1, 2)
    assert stats.pearsonr(noisy[:, 0], noisy[:, 1]).pvalue > LEVEL


def test_pieces_that_threads_draw_stay_in_place_and_have_noise_of_their_own() -> None:
    size, sigma = 6 * PIECE + 17, 50.0
    counts = 10_000 * np.arange(size, dtype=np.int64)
    noise = OpenDPNoise().add_gaussian(counts, 1 / (2 * sigma**2), 1) - counts
    assert noise.dtype == np.int64
    assert np.abs(noise).max() < 10 * sigma
    pieces = [noise[at : at + PIECE] for at in range(0, size - PIECE, PIECE)]
    for one, other in itertools.combinations(pieces, 2):
        assert np.mean(one == other) < 0.02  # 1 / (2 sqrt(pi) sigma) = 0.006 by chance
        assert stats.pearsonr(one, other).pvalue > LEVEL / 100  # there are 15 pairs


@pytest.mark.parametrize("name", NOISES)
def test_selection_has_its_exact_distribution(name: str) -> None:
    rho = 0.125  # scale 2
    assert p_value(frequencies(NOISES[name](), rho, 6_000), softmax(SCORES, selection_scale(rho, 1))) > LEVEL


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("factor", WRONG)
def test_selection_of_a_wrong_scale_is_rejected(name: str, factor: float) -> None:
    rho = 0.125
    drawn = frequencies(NOISES[name](), rho / factor**2, 6_000)
    assert p_value(drawn, softmax(SCORES, selection_scale(rho, 1))) < LEVEL


@pytest.mark.parametrize("name", NOISES)
def test_ties_are_broken_evenly(name: str) -> None:
    noise = NOISES[name]()
    drawn = np.bincount([noise.select(np.array([5, 5, 5]), 0.5, 1) for _ in range(3_000)], minlength=3)
    assert p_value(drawn, np.full(3, 1 / 3)) > LEVEL


@pytest.mark.slow
def test_selection_with_many_draws() -> None:
    rho = 0.125
    assert p_value(frequencies(OpenDPNoise(), rho, 30_000), softmax(SCORES, selection_scale(rho, 1))) > LEVEL
    drawn = frequencies(OpenDPNoise(), rho / 1.15**2, 30_000)
    assert p_value(drawn, softmax(SCORES, selection_scale(rho, 1))) < LEVEL  # 15 % are seen


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.4, 3.0, 40.0])
def test_gaussian_with_many_draws(sigma: float) -> None:
    rho = 1 / (2 * sigma**2)
    assert gaussian_p_value(OpenDPNoise().add_gaussian(np.zeros(300_000, np.int64), rho, 1), sigma) > LEVEL
    wrong = OpenDPNoise().add_gaussian(np.zeros(300_000, np.int64), rho / 1.06**2, 1)
    assert gaussian_p_value(wrong, sigma) < LEVEL  # 6 % are seen


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 0.003, 0.1, 1.0, 7.3])
@pytest.mark.parametrize("square", [1, 2])
def test_opendp_reports_the_cost_that_is_charged(monkeypatch: pytest.MonkeyPatch, rho: float, square: int) -> None:
    seen: list[tuple[float, float]] = []
    monkeypatch.setattr(mechanisms, "_require_cost", lambda cost, charged: seen.append((cost, charged)))
    OpenDPNoise().add_gaussian(np.array([3, 4]), rho, square)
    OpenDPNoise().select(np.array([3, 4]), rho, square)
    assert [charged for _, charged in seen] == [rho, rho]
    for cost, _ in seen:
        assert rho * (1 - 1e-9) <= cost <= rho


def test_a_mechanism_that_costs_more_than_its_charge_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "gaussian_scale", lambda rho, square: gaussian_scale(rho, square) * 0.999)
    monkeypatch.setattr(mechanisms, "selection_scale", lambda rho, square: selection_scale(rho, square) * 0.999)
    with pytest.raises(AssertionError, match="too much for the"):
        OpenDPNoise().add_gaussian(np.array([3, 4]), 0.1, 1)
    with pytest.raises(AssertionError, match="too much for the"):
        OpenDPNoise().select(np.array([3, 4]), 0.1, 1)


def test_only_integers_get_noise() -> None:
    with pytest.raises(TypeError, match="integers only"):
        OpenDPNoise().add_gaussian(np.array([0.5]), 0.1, 1)
    with pytest.raises(TypeError, match="integers only"):
        OpenDPNoise().select(np.array([0.5]), 0.1, 1)


def test_only_the_seeded_noise_can_be_repeated_and_says_so() -> None:
    counts = np.zeros(50, np.int64)
    first, second = (InsecureSeededNoise(4).add_gaussian(counts, 1e-4, 1) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not InsecureSeededNoise(4).private
    assert "NOT PRIVATE" in InsecureSeededNoise(4).description
    np.random.seed(0)  # noqa: NPY002 - the global generator must have no say
    third = OpenDPNoise().add_gaussian(counts, 1e-4, 1)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(third, OpenDPNoise().add_gaussian(counts, 1e-4, 1))
    assert OpenDPNoise().private
