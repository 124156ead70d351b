"""Settings (hyper-parameters) of methods as frozen dataclasses, readable from the command line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args, get_type_hints

from pointillist.errors import InputError, nearest

__all__ = ["describe", "read", "setting"]

T = TypeVar("T")


def setting(default: Any, text: str) -> Any:
    """A setting with its default and a line of documentation."""
    return dataclasses.field(default=default, metadata={"help": text})


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
    hints = get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(cast(Any, kind))]
    values = {}
    for name, value in settings.items():
        if name not in names:
            raise InputError(f"setting of {method}", name, "must be one of its settings", nearest(name, names))
        optional = type(None) in get_args(hints[name])
        unset = optional and (value is None or str(value).strip() == "auto")
        values[name] = None if unset else _read_value(name, value, _plain(hints[name]))
    return kind(**values)


def _read_value(name: str, value: Any, kind: type) -> Any:
    rules = {bool: "must be true or false", int: "must be a whole number", float: "must be a number"}
    text = str(value).strip()
    if kind is bool and text.lower() in ("true", "false", "1", "0", "yes", "no"):
        return text.lower() in ("true", "1", "yes")
    if kind is str:
        return text
    try:
        number = float(text)
        if kind is float and not math.isnan(number):
            return number
        if kind is int and number.is_integer() and not isinstance(value, bool):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InputError(name, value, rules[kind], f"write for example {name}={_EXAMPLES[kind]}")


_EXAMPLES: dict[type, str] = {bool: "true", int: "50", float: "0.5"}
