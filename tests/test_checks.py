"""The named checks: what each lets through, and its sentence (parameter, rule, value, next step) for the rest."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pointillist import checks
from pointillist.checks import at_least, between, check, not_negative, one_of, positive, present, share, whole
from pointillist.errors import InputError, PointillistError, Shown, is_near, nearest

WORDS = ("replace", "add-remove")

REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (check, (False, "seed", -1, "must not be negative", "use 0"), "seed must not be negative, got -1; use 0."),
    (
        check,
        (False, "out", Shown("a folder"), "must be a file", "give one"),
        "out must be a file, got a folder; give one.",
    ),
    (check, (False, "out", "a", "must be a file", "give one"), "out must be a file, got 'a'; give one."),
    (
        present,
        ("schema", None, "must be given with a plain table", "pass schema=..."),
        "schema must be given with a plain table, got None; pass schema=....",
    ),
    (at_least, ("rounds", 0, 1), "rounds must be at least 1, got 0; give for example 1."),
    (at_least, ("rounds", 0, 1, 50), "rounds must be at least 1, got 0; give for example 50."),
    (at_least, ("rounds", -3, 0), "rounds must be at least 0, got -3; give for example 0."),
    (at_least, ("gain", math.nan, 1.0), "gain must be at least 1.0, got nan; give for example 1.0."),
    (
        between,
        ("rows", 0, 1, 1_000_000, "give for example 1000"),
        "rows must be in 1 .. 1,000,000, got 0; give for example 1000.",
    ),
    (between, ("rows", 11, 1, 10, "use 10"), "rows must be in 1 .. 10, got 11; use 10."),
    (between, ("gap", math.nan, 0.0, 1.0, "use 0"), "gap must be in 0.0 .. 1.0, got nan; use 0."),
    (positive, ("epsilon", 0), "epsilon must be a finite number above 0, got 0; give for example 1."),
    (positive, ("epsilon", -1.5, 0.5), "epsilon must be a finite number above 0, got -1.5; give for example 0.5."),
    (positive, ("epsilon", math.inf), "epsilon must be a finite number above 0, got inf; give for example 1."),
    (positive, ("epsilon", math.nan), "epsilon must be a finite number above 0, got nan; give for example 1."),
    (not_negative, ("gate", -0.1), "gate must be a finite number, 0 or more, got -0.1; give 0."),
    (not_negative, ("gate", math.inf, "give 1"), "gate must be a finite number, 0 or more, got inf; give 1."),
    (not_negative, ("gate", math.nan), "gate must be a finite number, 0 or more, got nan; give 0."),
    (share, ("alpha", 0), "alpha must be above 0 and below 1, got 0; give for example 0.5."),
    (share, ("alpha", 1.0, 0.1), "alpha must be above 0 and below 1, got 1.0; give for example 0.1."),
    (share, ("alpha", math.nan), "alpha must be above 0 and below 1, got nan; give for example 0.5."),
    (share, ("beta", 1, 0.9, True), "beta must be at least 0 and below 1, got 1; give for example 0.9."),
    (share, ("beta", -0.1, 0.9, True), "beta must be at least 0 and below 1, got -0.1; give for example 0.9."),
    (
        one_of,
        ("relation", "replce", WORDS),
        "relation must be one of replace, add-remove, got 'replce'; did you mean 'replace'.",
    ),
    (
        one_of,
        ("relation", "x", WORDS),
        "relation must be one of replace, add-remove, got 'x'; known are replace, add-remove.",
    ),
    (
        one_of,
        ("method", "addremove", iter(WORDS), "must be a known word"),
        "method must be a known word, got 'addremove'; did you mean 'add-remove'.",
    ),
    (
        one_of,
        ("relation", 3, WORDS),
        "relation must be one of replace, add-remove, got 3; known are replace, add-remove.",
    ),
]
REFUSED += [
    (whole, ("rows", value), f"rows must be a whole number, got {value!r}; write it without a decimal point.")
    for value in (10.0, "10", None, True, np.float64(3))
]


@pytest.mark.parametrize(("call", "arguments", "sentence"), REFUSED, ids=[s[:60] for _, _, s in REFUSED])
def test_what_is_refused(call: Callable[..., Any], arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        call(*arguments)
    assert str(refused.value) == sentence
    assert re.fullmatch(r".+ must .+, got .+; .+\.", sentence)
    assert isinstance(refused.value, PointillistError)
    assert isinstance(refused.value, ValueError)
    value = arguments[1]
    assert call is check or refused.value.value is value
    assert sentence.startswith(f"{refused.value.parameter} {refused.value.rule}, got ")
    assert sentence.endswith(f"; {refused.value.hint}.")


ALLOWED: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (present, ("schema", 0, "must be given", "pass one")),
    (present, ("schema", "", "must be given", "pass one")),
    (whole, ("rows", 12)),
    (at_least, ("rounds", 1, 1)),
    (at_least, ("rounds", 2.5, 1)),
    (at_least, ("rounds", math.inf, 1)),
    (between, ("rows", 1, 1, 10, "use 10")),
    (between, ("rows", 10, 1, 10, "use 10")),
    (positive, ("epsilon", 1e-300)),
    (positive, ("epsilon", 7)),
    (not_negative, ("gate", 0)),
    (not_negative, ("gate", 1e300)),
    (share, ("alpha", 1e-300)),
    (share, ("alpha", math.nextafter(1, 0))),
    (share, ("beta", 0, 0.9, True)),
    (one_of, ("relation", "replace", WORDS)),
    (one_of, ("relation", "add-remove", iter(WORDS), "must be a known word")),
]


@pytest.mark.parametrize(("call", "arguments"), ALLOWED)
def test_what_is_let_through_is_returned(call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    assert call(*arguments) is arguments[1]


def test_check_returns_nothing() -> None:
    assert check(True, "seed", -1, "must not be negative", "use 0") is None  # type: ignore[func-returns-value]


def test_every_check_is_in_these_tables() -> None:
    named = {getattr(checks, name) for name in checks.__all__}
    functions = {
        value for _, value in inspect.getmembers(checks, inspect.isfunction) if value.__module__ == checks.__name__
    }
    assert named == functions == {call for call, _, _ in REFUSED} == {call for call, _ in ALLOWED} | {check}
    assert all(inspect.getdoc(call) for call in named)


def test_words_that_are_close() -> None:
    assert nearest("replce", WORDS) == "did you mean 'replace'"
    assert nearest("zzz", WORDS) == "known are replace, add-remove"
    assert is_near("round", ["rounds", "alpha"])
    assert is_near("rounds", iter(["rounds"]))
    assert not is_near("speed", ["rounds", "alpha"])
