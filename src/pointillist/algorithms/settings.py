"""Settings (hyper-parameters) of methods as frozen dataclasses, readable from the command line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args, get_type_hints

import numpy as np

from pointillist.checks import check
from pointillist.data.messages import fragment
from pointillist.errors import InputError, nearest

__all__ = ["MOST_ROUNDS", "describe", "read", "setting"]

T = TypeVar("T")

SIMPLE = (str, int, float, bool, np.number, np.bool_)
"""The types that a value of a setting can have."""


MOST = 1_000_000
"""The largest whole number that a setting takes, unless it says otherwise."""
MOST_ROUNDS = 100_000
"""The largest number of rounds, and of what is drawn in each."""


def setting(default: Any, text: str, most: int = MOST) -> Any:
    """A setting of a method.

    Args:
        default: Its default; None for one that the method chooses.
        text: A line of documentation.
        most: The largest value, for whole numbers.
    """
    return dataclasses.field(default=default, metadata={"help": text, "most": most})


def describe(kind: type) -> list[tuple[str, str, str, str]]:
    """(name, type, default, help) of each setting."""
    hints = get_type_hints(kind)
    defaults = {f.name: "auto" if f.default is None else str(f.default) for f in dataclasses.fields(kind)}
    return [
        (f.name, _plain(hints[f.name]).__name__, defaults[f.name], f.metadata["help"]) for f in dataclasses.fields(kind)
    ]


def _plain(hint: Any) -> type:
    """The type behind ``T`` or ``T | None``."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    return cast(type, kinds[0])


def read(kind: type[T], method: str, settings: Mapping[str, Any]) -> T:
    """Settings from names and values; values may be strings, as on the command line."""
    rule, hint = "must be a table of names and values", 'write for example {"rounds": 50}'
    check(isinstance(settings, Mapping), "settings", fragment(settings), rule, hint)
    hints = get_type_hints(kind)
    most = {f.name: f.metadata.get("most", MOST) for f in dataclasses.fields(cast(Any, kind))}
    values = {}
    for name, value in settings.items():
        if not isinstance(name, str) or name not in most:
            hint = nearest(str(fragment(name)).strip("'"), most)
            raise InputError(f"setting of {method}", fragment(name), "must be one of its settings", hint)
        plain = _plain(hints[name])
        text = _text(value)
        unset = type(None) in get_args(hints[name]) and (value is None or text == "auto")
        values[name] = None if unset else _read_value(name, value, text, plain)
        if plain is int and values[name] is not None:
            hint = f"write for example {name}={_EXAMPLES[int]}"
            check(values[name] <= most[name], name, fragment(value), f"must be at most {most[name]:,}", hint)
    return kind(**values)


def _text(value: Any) -> str:
    """A value as the command line would give it."""
    try:
        return str(value).strip() if isinstance(value, SIMPLE) else ""
    except ValueError:  # a whole number of more than 4,300 digits
        return "inf" if value > 0 else "-inf"


def _read_value(name: str, value: Any, text: str, kind: type) -> Any:
    rules = {bool: "must be true or false", int: "must be a whole number", float: "must be a number"}
    if kind is bool and text.lower() in ("true", "false", "1", "0", "yes", "no"):
        return text.lower() in ("true", "1", "yes")
    if kind is str and isinstance(value, SIMPLE):
        return text
    try:
        number = float(text)
        if kind is float and not math.isnan(number):
            return number
        if kind is int and number.is_integer() and not isinstance(value, bool | np.bool_):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InputError(
        name, fragment(value), rules.get(kind, "must be a text"), f"write for example {name}={_EXAMPLES[kind]}"
    )


_EXAMPLES: dict[type, str] = {bool: "true", int: "50", float: "0.5", str: "auto"}
