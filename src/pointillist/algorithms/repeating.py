"""The method of a release, built again from what the release says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointillist.algorithms import METHODS, Method, Public, Task
from pointillist.checks import check, one_of
from pointillist.data.public import PublicTable
from pointillist.data.schema import Schema
from pointillist.errors import Shown
from pointillist.framework import Algorithm
from pointillist.queries.candidates import Grouping
from pointillist.queries.workload import Workload

__all__ = ["repeated_method"]


def repeated_method(
    name: str,
    settings: Mapping[str, Any],
    grouping: str,
    workload: Workload,
    schema: Schema,
    digest: str | None = None,
    public: Any = None,
) -> Algorithm[Any]:
    """The algorithm that made a release.

    Args:
        name: the name of its method.
        settings: its hyper-parameters.
        grouping: its grouping.
        workload: the queries that were wanted.
        schema: the columns, merged if some of them were fine.
        digest: the SHA-256 of the public table that was used, if there was one.
        public: that table.
    """
    method = METHODS[one_of("release: method", name, METHODS, "must be a method of this version")]
    task = Task(workload, Grouping(grouping), _public(method, schema, digest, public), schema.places)
    rule = f"must be a grouping of {method.name}"
    check(task.grouping in method.groupings, "release: grouping", grouping, rule, "make the release again")
    return method.algorithm(task, method.configure(settings))


def _public(method: Method, schema: Schema, digest: str | None, public: Any) -> PublicTable | None:
    """The public table, which must be the one that the release was made with."""
    if digest is None:
        rule, hint = "must name a public table, which its method needs", "make the release again"
        check(method.public is not Public.NEEDED, "release", Shown("none"), rule, hint)
        return None
    rule, hint = "must be the public table that the release was made with", "give it with --public FILE"
    check(public is not None, "public", None, rule, hint)
    table = PublicTable.encode(public, schema)
    check(table.digest == digest, "public", Shown("another table"), rule, hint)
    return table
