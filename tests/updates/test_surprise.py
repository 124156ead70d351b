"""A model is left as it is where a measurement says nothing new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pointillist import InputError
from pointillist.algorithms import get_method
from pointillist.framework import Log, Round, Updated
from pointillist.privacy.facts import Facts
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.updates.surprise import IfSurprised, surprise_of

TOTAL = 1000


def a_round(errors: list[float], sigma: float = 10.0) -> Round:
    """A round that measures one marginal, each cell off the model by this many sigma."""
    estimate = np.full(len(errors), 1 / len(errors))
    counts = TOTAL * estimate + sigma * np.array(errors)
    measured = Measurement(Marginal((0,), (len(errors),)), counts, sigma)
    return Round((), (measured,), True, estimates=(estimate,))


class Counted:
    """An update that counts its calls."""

    def init(self, params: Any) -> int:
        return 0

    def __call__(self, rng: np.random.Generator, params: Any, memory: int, log: Log) -> Updated:
        return Updated(params + 1, memory + 1, {"loss": 3.0})


def test_surprise_is_in_standard_deviations_of_noise() -> None:
    assert surprise_of(a_round([1.0, 1.0]), TOTAL) == pytest.approx(0)
    assert surprise_of(a_round([2.0] * 8), TOTAL) == pytest.approx(3 / np.sqrt(2 / 8))
    assert surprise_of(a_round([2.0]), TOTAL) == pytest.approx(3 / np.sqrt(2))


@pytest.mark.parametrize(("errors", "changed"), [([1.9], False), ([2.1], True), ([1.2] * 8, False), ([1.6] * 8, True)])
def test_only_what_contradicts_the_model_changes_it(errors: list[float], changed: bool) -> None:
    update = IfSurprised(Counted(), 2.0)
    log = Log(Facts(TOTAL, 1.0), [a_round(errors)])
    params, memory, info = update(np.random.default_rng(0), 5, update.init(5), log)
    assert (params, memory) == ((6, 1) if changed else (5, 0))
    assert info["changed"] == changed
    assert ("loss" in info) == changed


def test_noise_alone_seldom_surprises() -> None:
    """And twice the noise nearly always does."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((400, 30))
    assert np.mean([surprise_of(a_round(list(one)), TOTAL) > 2 for one in drawn]) < 0.07
    assert np.mean([surprise_of(a_round(list(2 * one)), TOTAL) > 2 for one in drawn]) > 0.95


def test_a_negative_surprise_is_refused() -> None:
    with pytest.raises(InputError, match="surprise must be a finite number, 0 or more"):
        get_method("gem_pub").configure({"surprise": -1.0})
