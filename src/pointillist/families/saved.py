"""Families of saved models: a family describes itself, so a model is read back without the method that made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pointillist.data.domain import Domain
from pointillist.errors import InputError
from pointillist.families.components import Components
from pointillist.families.generator import Generator
from pointillist.families.histogram import Histogram
from pointillist.families.markov import Markov
from pointillist.families.records import RecordList
from pointillist.families.relaxed import Model, Relaxed
from pointillist.families.rows import ClippedRows, SoftmaxRows
from pointillist.families.support import Support
from pointillist.framework import Family

__all__ = ["FAMILIES", "MODELS", "load_family"]

Loader = Callable[[Mapping[str, Any], Domain, Mapping[str, np.ndarray]], Family[Any]]


def _relaxed(spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Relaxed:
    return Relaxed(MODELS[spec["model"]["kind"]](spec["model"], domain))


MODELS: dict[str, Callable[[Mapping[str, Any], Domain], Model]] = {
    SoftmaxRows.kind: lambda spec, domain: SoftmaxRows(domain, spec["rows"]),
    ClippedRows.kind: lambda spec, domain: ClippedRows(domain, spec["rows"]),
    Generator.kind: lambda spec, domain: Generator(domain, spec["rows"], spec["inputs"], tuple(spec["hidden"])),
}
"""What makes the rows of a relaxed family, by the word in its description."""

FAMILIES: dict[str, Loader] = {
    Components.kind: Components.from_dict,
    Histogram.kind: Histogram.from_dict,
    Markov.kind: Markov.from_dict,
    RecordList.kind: RecordList.from_dict,
    Support.kind: Support.from_dict,
    Relaxed.kind: _relaxed,
}
"""How a family is made from its description, the domain and the saved arrays, by the word in its description."""


def load_family(spec: Mapping[str, Any], domain: Domain, arrays: Mapping[str, np.ndarray]) -> Family[Any]:
    """The family that described itself as ``spec``."""
    kind = spec["kind"]
    if kind not in FAMILIES:
        raise InputError("family", kind, f"must be one of {', '.join(FAMILIES)}", "import the module that defines it")
    return FAMILIES[kind](spec, domain, arrays)
