"""The named checks: what each lets through, and its sentence (parameter, rule, value, next step) for the rest."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pointillist import checks
from pointillist.checks import (
    at_least,
    between,
    check,
    flag,
    not_negative,
    one_of,
    path_of,
    positive,
    present,
    real,
    share,
    whole,
)
from pointillist.errors import InputError, PointillistError, RunStopped, Shown, is_near, nearest, printable

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
REFUSED += [
    (real, ("epsilon", "1", 1.0), "epsilon must be a number, got '1'; give for example 1.0."),
    (flag, ("force", 1), "force must be True or False, got 1; give one of them."),
    (path_of, ("out", 7), "out must be a path, got 7; give a text or a pathlib.Path."),
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
    (real, ("epsilon", 0.5, 1.0)),
    (flag, ("force", False)),
    (path_of, ("out", Path("a"))),
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


def test_numbers_flags_and_paths_of_any_type() -> None:
    """Python's and NumPy's own are taken; of all others a message shows the type and never the content."""
    assert checks.real("epsilon", np.float32(0.5), 1.0) == 0.5
    assert checks.real("epsilon", Fraction(1, 2), 1.0) == 0.5
    assert checks.real("epsilon", 10**400, 1.0) == math.inf
    assert checks.whole("rows", np.int64(3)) == 3
    assert checks.flag("force", np.bool_(True)) is True
    assert checks.path_of("out", "a/b") == Path("a/b")
    secret = pd.DataFrame({"name": ["Ada"]})
    for call in (
        lambda value: checks.real("x", value, 1.0),
        lambda value: checks.whole("x", value),
        lambda value: checks.flag("x", value),
        lambda value: checks.path_of("x", value),
        lambda value: checks.one_of("x", value, ["a", "b"]),
    ):
        for value in (secret, [1], np.array([1, 2]), 1j, b"1", object()):
            with pytest.raises(InputError, match=rf"^x must .*got an object of type {type(value).__name__}; .*\.$"):
                call(value)
    for value in (True, "1", None):
        with pytest.raises(InputError, match=r"^epsilon must be a number, got"):
            checks.real("epsilon", value, 1.0)
    for value in (True, 3.0, "3", np.float64(3)):
        with pytest.raises(InputError, match=r"^rows must be a whole number, got"):
            checks.whole("rows", value)
    with pytest.raises(InputError, match=r"^out must be a path, got 'a\\x00'"):
        checks.path_of("out", "a\0")


def test_a_message_shows_a_part_of_a_long_value_in_one_line() -> None:
    text = str(InputError("x", "y" * 5000, "must be short", "cut it"))
    assert len(text) < 400
    assert "\n" not in str(InputError("x", np.zeros((30, 30)), "must be flat", "flatten it"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 😀 'x'", "plain é 😀 'x'"),
        ("two\nlines\r\ttab", "two\\nlines\\r\\ttab"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\u202eback\u2028\udcff\x00", "\\u202eback\\u2028\\udcff\\x00"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_messages_hold_nothing_that_a_terminal_would_act_on(text: str, shown: str) -> None:
    assert printable(text) == shown
    for error in (PointillistError(text), InputError(text, 1, text, text), RunStopped(text, None)):
        assert str(error).isprintable()
        assert shown in str(error)
