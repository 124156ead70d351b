"""Settings of methods: every whole number has an upper bound, and every wrong type is refused in a sentence."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

import numpy as np
import pytest

from pointillist.algorithms import METHODS
from pointillist.algorithms.settings import describe
from pointillist.errors import InputError

HUGE = ["1e300", "2147483648", 2147483648, 1e308, 10**5000, np.float64(1e18), np.int64(2**62)]
WRONG = [None, [], [3], {}, b"3", 3 + 0j, object(), True, np.bool_(True), "", "nan", "0x10"]
WHOLE = [(name, key) for name, m in METHODS.items() for key, kind, _, _ in describe(m.settings) if kind == "int"]


@pytest.mark.parametrize(("name", "key"), WHOLE)
@pytest.mark.parametrize("value", HUGE, ids=range(len(HUGE)))
def test_whole_numbers_have_an_upper_bound(name: str, key: str, value: Any) -> None:
    """Rounds that never end, and sizes that overflow, are refused before anything is prepared."""
    with pytest.raises(InputError, match=rf"^{key} must be (at most 1[,0]+|a whole number), got ") as caught:
        METHODS[name].configure({key: value})
    assert len(str(caught.value)) < 200


def test_the_bounds_are_in_reach() -> None:
    assert len(WHOLE) > 30
    assert METHODS["fem"].configure({"rounds": 100_000}).rounds == 100_000
    assert METHODS["auto"].configure({"fits": "1000"}).fits == 1000
    assert METHODS["gem_pub"].configure({"pretrain_steps": 1_000_000.0}).pretrain_steps == 1_000_000
    for method in METHODS.values():
        for one in dataclasses.fields(method.settings):
            assert not isinstance(one.default, int) or one.default <= one.metadata["most"]


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize(("name", "key"), [("fem", "rounds"), ("auto", "rows"), ("fem", "sigma"), ("gem", "batch")])
def test_wrong_types_are_refused(name: str, key: str, value: Any) -> None:
    word = "a number" if get_type_hints(METHODS[name].settings)[key] is float else "a whole number"
    with pytest.raises(InputError, match=rf"^{key} must be {word}, got "):
        METHODS[name].configure({key: value})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([("rounds", 3)], "settings must be a table of names and values"),
        ("rounds=3", "settings must be a table of names and values, got 'rounds=3'"),
        ({3: 3}, "setting of fem must be one of its settings, got 3"),
        ({"x" * 1000: 3}, "setting of fem must be one of its settings, got 'xxx"),
        ({"solver": []}, "solver must be a text, got []"),
    ],
)
def test_settings_that_are_none(settings: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        METHODS["fem"].configure(settings)
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 300


def test_numbers_of_any_kind_are_read() -> None:
    for value in (7, "7", " 7 ", "7.0", 7.0, np.int8(7), np.float32(7)):
        assert METHODS["fem"].configure({"rounds": value}).rounds == 7
    assert METHODS["one-shot"].configure({"slack": "inf"}).slack == float("inf")
    assert METHODS["mwem"].configure({"rounds": "auto", "past": np.bool_(False)}).past is False


@pytest.mark.parametrize("hidden", ["1000000000000-4", "9" * 5000])
def test_layers_have_an_upper_bound(hidden: str) -> None:
    with pytest.raises(InputError, match="hidden must be whole numbers below 100,000 joined by '-'"):
        METHODS["gem"].configure({"hidden": hidden})
