"""The public names: each is documented, with all of its arguments by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from importlib import metadata
from typing import Any

import pytest

import pointillist
from pointillist import (
    About,
    Categorical,
    Constant,
    Discovered,
    Evaluation,
    Grid,
    Identifier,
    Intervals,
    Job,
    Marginal,
    Method,
    Numeric,
    Plan,
    Product,
    Release,
    Schema,
    Synthesizer,
    Table,
    Temporal,
    Workload,
    all_kway,
    draft_schema,
    evaluate,
    prepare,
    private_schema,
    random_kway,
    synthesize,
)

CALLS: list[Callable[..., Any]] = [
    prepare,
    synthesize,
    evaluate,
    draft_schema,
    private_schema,
    all_kway,
    random_kway,
    Job.plan,
    Job.run,
    Release.answers,
    Release.head,
    Release.load,
    Release.sample,
    Release.sample_values,
    Release.save,
    Schema.of,
    Synthesizer.fit,
    Synthesizer.get_params,
    Synthesizer.load,
    Synthesizer.sample,
    Synthesizer.save,
    Synthesizer.set_params,
    Table.head,
    Workload.of,
    Marginal.of,
    Product.of,
]
"""Where users begin."""

CLASSES: list[Any] = [
    About,
    Categorical,
    Constant,
    Discovered,
    Grid,
    Identifier,
    Evaluation,
    Intervals,
    Job,
    Marginal,
    Method,
    Numeric,
    Plan,
    Product,
    Release,
    Schema,
    Table,
    Temporal,
    Workload,
]
"""What users make or are given."""

METHODS_OF: list[Any] = [Evaluation, Job, Plan, Release, Workload, Method, Schema, Synthesizer, Table]
"""Classes with methods that users call."""


def documented(text: str | None) -> set[str]:
    """The names that a docstring explains under Args or Attributes, one to a line (``epsilon, delta:`` are two)."""
    found: set[str] = set()
    inside = False
    for line in (text or "").splitlines():
        if re.fullmatch(r"(Args|Attributes):", line):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and (named := re.match(r" {4}(\**\w+(?:, \w+)*): \S", line)):
            found |= set(named[1].lstrip("*").split(", "))
    return found


def test_names_are_read_from_docstrings() -> None:
    text = "Does it.\n\nArgs:\n    a: one: or two.\n        more: of it.\n    b, c: two.\n    **d: rest.\n\ne: no"
    assert documented(text) == {"a", "b", "c", "d"}
    assert documented(None) == set()


@pytest.mark.parametrize("name", pointillist.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    text = getattr(pointillist, name).__doc__
    assert text
    assert re.match(r"[A-Z`0-9]", text)
    assert not text.startswith(f"{name}(")  # what dataclass writes where there is none


def test_the_list_of_names_is_sorted_and_complete() -> None:
    assert pointillist.__all__ == sorted(pointillist.__all__)
    public = {
        name
        for name, value in vars(pointillist).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert public == set(pointillist.__all__)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
def test_every_argument_is_documented(call: Callable[..., Any]) -> None:
    names = {name for name in inspect.signature(call).parameters if name not in ("self", "cls")}
    text = inspect.getdoc(call) or ""
    if call is synthesize:
        names = {"table", "out", "force", "account", "progress", "announce", "options"}
        assert "the other arguments of :func:`prepare`" in text
    assert documented(text) == names


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_attribute_is_documented(kind: Any) -> None:
    names = {field.name for field in fields(kind) if not field.name.startswith("_")}
    assert documented(inspect.getdoc(kind)) == names


@pytest.mark.parametrize("kind", METHODS_OF, ids=lambda kind: kind.__name__)
def test_every_method_of_a_class_is_documented(kind: Any) -> None:
    members = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    calls = {
        name: getattr(kind, name)
        for name, value in members.items()
        if inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
    }
    assert calls
    assert [name for name, value in calls.items() if not inspect.getdoc(value)] == []


def test_synthesize_shows_all_options() -> None:
    """It hands most of them on, but help() and editors show each."""
    shown, options = inspect.signature(synthesize), inspect.signature(prepare)
    assert list(shown.parameters) == [*options.parameters, "out", "force", "account", "progress", "announce"]
    for name in ("epsilon", "delta", "schema", "public", "relation", "method", "workload", "group", "rows", "seed"):
        assert shown.parameters[name] == options.parameters[name]
    assert {"settings", "insecure_noise_seed", "zcdp"} <= set(shown.parameters)
    assert shown.parameters["epsilon"].default is inspect.Parameter.empty
    assert all(shown.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(shown.parameters)[1:])
    assert shown.return_annotation in (Release, "Release")


def test_synthesize_refuses_options_that_nobody_has() -> None:
    with pytest.raises(TypeError, match="epsilonn"):
        synthesize(None, epsilonn=1.0)
    with pytest.raises(TypeError, match="epsilon"):
        synthesize(None)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert pointillist.__version__ == metadata.version("pointillist")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", pointillist.__version__)
