"""A synthetic table or release against the real table. NOT PRIVATE: uses the real data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.public import PublicTable
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.errors import Shown
from pointillist.evaluation.accuracy import Errors, compare
from pointillist.families.support import Support
from pointillist.job import workload_of
from pointillist.queries.counting import exact_counts
from pointillist.queries.workload import Workload
from pointillist.release import Release
from pointillist.solvers.best_mixture import best_mixture

__all__ = [
    "Comparison",
    "PublicFloor",
    "compare_public",
    "compare_tables",
    "evaluate",
    "fractions",
    "independent_columns",
]


@dataclass(frozen=True)
class Comparison:
    """Errors of the synthetic rows and, for a release, of the model's own answers."""

    n: int
    queries: int
    rows: Errors
    model: Errors | None

    def lines(self) -> list[tuple[str, Errors]]:
        """Each comparison with its name."""
        model = [] if self.model is None else [("the model", self.model)]
        return [("the synthetic rows", self.rows), *model]

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        out: dict[str, Any] = {"n": self.n, "queries": self.queries, "rows": self.rows.to_dict()}
        return out if self.model is None else out | {"model": self.model.to_dict()}


def fractions(table: Table, workload: Workload) -> np.ndarray:
    """A table's exact answers as fractions of its rows."""
    return exact_counts(TableSource(table), workload.queries) / len(table)


def compare_tables(real: Table, synthetic: Table, workload: Workload, release: Release | None = None) -> Comparison:
    """Compare the rows, and the model of ``release`` if one is given, with the real table."""
    truth = fractions(real, workload)
    model = None if release is None else compare(workload, truth, release.answers(workload))
    return Comparison(len(real), workload.size, compare(workload, truth, fractions(synthetic, workload)), model)


def evaluate(real: Table, synthetic: Release | Table, workload: Workload | str | None = None) -> Comparison:
    """Compare a release, or any synthetic table, with the real table. NOT PRIVATE: uses the real data.

    Args:
        real: the table that the synthetic one was made from.
        synthetic: a release, or a table with the same schema.
        workload: the queries to compare; by default those of the release, or all three-way marginals.
    """
    release = synthetic if isinstance(synthetic, Release) else None
    table = synthetic.table if isinstance(synthetic, Release) else synthetic
    same = table.schema.columns == real.schema.columns
    rule, hint = "must have the schema of the real table", "give the table that the release was made from"
    check(same, "synthetic", Shown("another schema"), rule, hint)
    if workload is None and release is not None:
        workload = release.workload
    return compare_tables(
        real, table, workload_of("marginals:3" if workload is None else workload, real.domain, len(real)), release
    )


def independent_columns(real: Table, workload: Workload) -> Errors:
    """The errors of a table with the real columns, made independent of each other, for comparison."""
    single = [np.bincount(c, minlength=size) / len(real) for c, size in zip(real.codes, real.domain.sizes, strict=True)]
    answers = []
    for queries in workload.queries:
        product = np.ones(1)
        for attribute in queries.scope:
            product = np.multiply.outer(product, single[attribute]).ravel()
        answers.append(queries.of_marginal(product))
    return compare(workload, fractions(real, workload), np.concatenate(answers))


@dataclass(frozen=True)
class PublicFloor:
    """How close the records of a public table can come to the real one: as they are, and reweighted at best.

    The best-mixture error, the smallest max error of any reweighting, lies between ``lower`` and ``best.max``.
    """

    records: int
    public: Errors
    best: Errors
    lower: float
    exact: bool

    def lines(self) -> list[tuple[str, Errors]]:
        """Each comparison with its name."""
        return [("the public table", self.public), ("its best reweighting", self.best)]

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        bounds = {"lower": self.lower, "upper": self.best.max, "exact": self.exact}
        return {"records": self.records, "public": self.public.to_dict(), "best": self.best.to_dict()} | bounds


def compare_public(
    real: Table, public: PublicTable, workload: Workload, progress: Callable[[int, float, float], None] | None = None
) -> PublicFloor:
    """The errors of a public table and its best-mixture error, to within a duality gap."""
    support = Support.of(public, "the best-mixture error")
    truth = fractions(real, workload)
    best = best_mixture(support.codes, workload, truth, start=support.public_weights, progress=progress)
    as_it_is = compare(workload, truth, support.answers(support.public_weights, workload.queries))
    reweighted = compare(workload, truth, support.answers(best.weights, workload.queries))
    return PublicFloor(len(support.public_weights), as_it_is, reweighted, min(best.lower, reweighted.max), best.exact)
