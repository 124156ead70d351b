"""The registry of methods: an explicit table, no discovery."""

from __future__ import annotations

from pointillist.algorithms import (
    aim,
    auto,
    dualquery,
    fem,
    gem,
    gem_pub,
    gsd,
    hdmm,
    mst,
    mwem,
    one_shot,
    pep,
    pep_pub,
    pmw_pub,
    rap,
    rap_softmax,
)
from pointillist.algorithms.method import Method, Public, Task
from pointillist.checks import one_of

__all__ = ["METHODS", "Method", "Public", "Task", "get_method"]

FILES = (
    auto,
    mwem,
    pep,
    rap,
    rap_softmax,
    gem,
    gsd,
    one_shot,
    pmw_pub,
    pep_pub,
    gem_pub,
    dualquery,
    fem,
    aim,
    mst,
    hdmm,
)

METHODS: dict[str, Method] = {file.METHOD.name: file.METHOD for file in FILES}
"""Every method by name, in the order in which it is listed."""


def get_method(name: str) -> Method:
    """The method called ``name``."""
    return METHODS[one_of("method", name, METHODS, "must be one of the methods")]
