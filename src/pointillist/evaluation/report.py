"""A synthetic table or release against the real table. NOT PRIVATE: uses the real data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.draft import draft_schema
from pointillist.data.parquet import memory_here
from pointillist.data.public import PublicTable
from pointillist.data.schema import Schema
from pointillist.data.sources import TableSource
from pointillist.data.table import Table
from pointillist.errors import Shown
from pointillist.evaluation.accuracy import Errors, compare
from pointillist.evaluation.columns import compare_columns
from pointillist.evaluation.judgement import Comparison, Evaluation, Violations
from pointillist.evaluation.learning import train_and_test
from pointillist.evaluation.marginals import worst_marginals
from pointillist.evaluation.pairs import compare_pairs
from pointillist.evaluation.values import Typed, made_under, plain_table, read_values, unmerged
from pointillist.families.support import Support
from pointillist.job import workload_of
from pointillist.privacy.facts import Facts
from pointillist.queries.base import Queries, is_direct, of_records
from pointillist.queries.counting import exact_counts
from pointillist.queries.measurement import Measurement
from pointillist.queries.suited import Limits, suited_workload
from pointillist.queries.workload import Workload
from pointillist.refining import Refining
from pointillist.release import Release
from pointillist.solvers.best_mixture import best_mixture

__all__ = [
    "Comparison",
    "Evaluation",
    "PublicFloor",
    "compare_public",
    "compare_tables",
    "default_workload",
    "evaluate",
    "fractions",
    "independent_columns",
    "true_answers",
]


def default_workload(schema: Schema) -> Workload:
    """The queries where none are given: as many marginals as can be looked at.

    Args:
        schema: the columns.
    """
    return suited_workload(schema.domain, Limits(memory_here() // 2)).workload


def fractions(table: Table, workload: Workload) -> np.ndarray:
    """A table's exact answers as fractions of its rows."""
    return exact_counts(TableSource(table), workload.queries) / len(table)


def true_answers(real: Any, release: Release, queries: Sequence[Queries]) -> np.ndarray:
    """The exact answers of the real table of a release, as fractions of its rows. NOT PRIVATE.

    Args:
        real: the table that the release was made from: a pandas, polars or Arrow table, or a
            :class:`~pointillist.Table`.
        release: the release, whose columns are used.
        queries: what is asked.
    """
    table = _as_table(real, plain_table(real), release.schema)
    return exact_counts(TableSource(table), tuple(queries)) / len(table)


def compare_tables(real: Table, synthetic: Table, workload: Workload, release: Release | None = None) -> Comparison:
    """Compare the rows, and the model of ``release`` if one is given, with the real table."""
    truth = fractions(real, workload)
    model = None if release is None else compare(workload, truth, release.answers(workload))
    return Comparison(len(real), workload.size, compare(workload, truth, fractions(synthetic, workload)), model)


def evaluate(
    real: Any,
    synthetic: Any,
    workload: Workload | str | None = None,
    *,
    schema: Schema | None = None,
    target: str | None = None,
) -> Evaluation:
    """Compare a release, or any synthetic table, with the real table. NOT PRIVATE: uses the real data.

    Values are compared as they are in the tables. So give the plain real table rather than a
    :class:`~pointillist.Table` if it has numbers: of these a :class:`~pointillist.Table` only knows the bins.

    Args:
        real: the table that the synthetic one was made from: a pandas, polars or Arrow table, or a
            :class:`~pointillist.Table`.
        synthetic: a release, or a table of any of these kinds.
        workload: the queries to compare; by default those of the release, or all three-way marginals (for wide
            tables all pairs, and what else fits).
        schema: the columns; by default those of the release or of a :class:`~pointillist.Table`. Without any of them,
            a schema is drafted from both tables.
        target: a column that models learn to predict, from synthetic and from real rows. Needs scikit-learn.
    """
    release = synthetic if isinstance(synthetic, Release) else None
    rows = plain_table(synthetic if release is None else release.to_arrow())
    plain = plain_table(real)
    table, other = _encoded(real, plain, synthetic, rows, schema)
    if workload is None:
        workload = default_workload(table.schema) if release is None else release.workload
    queries = workload_of(workload, table.schema, len(table))
    truth, answers = fractions(table, queries), fractions(other, queries)
    model = None if release is None else compare(queries, truth, release.answers(queries))
    typed = Typed.of(plain, table.schema), Typed.of(rows, table.schema)
    values = read_values(*typed)
    return Evaluation(
        queries.describe(),
        Comparison(len(table), queries.size, compare(queries, truth, answers), model),
        independent_columns(table, queries),
        compare_columns(values),
        compare_pairs(values),
        worst_marginals(queries, table.schema, truth, answers),
        _violations(table.schema, *typed),
        None if target is None else train_and_test(values, target),
        None if release is None else release.description.rules,
    )


def _encoded(real: Any, plain: Any, synthetic: Any, rows: Any, schema: Schema | None) -> tuple[Table, Table]:
    """Both tables in the codes of one schema."""
    own = synthetic.table if isinstance(synthetic, Release) else synthetic
    known = [one.schema for one in (own, real) if isinstance(one, Table)]
    if schema is None:
        schema = known[0] if known else _drafted(plain, rows)
    elif isinstance(synthetic, Release):
        known = known if made_under(synthetic, schema) else [*known, schema]
        schema = synthetic.schema  # which may have merged columns, and values that were discovered
    same = all(unmerged(one) == unmerged(schema) for one in known)
    rule, hint = "must have the schema of the real table", "give the table that the release was made from"
    check(same, "synthetic", Shown("another schema"), rule, hint)
    if any(column.fine for column in schema.columns):
        schema = _in_groups(_as_table(real, plain, schema))
    return _as_table(real, plain, schema), _as_table(own, rows, schema)


def _in_groups(real: Table) -> Schema:
    """The schema of a table with its fine columns in groups, by the exact counts of the real table."""
    refining, facts = Refining(real.schema), Facts(len(real), 1.0)
    asked = [one.queries for one in refining.asked(facts)]
    exact = [Measurement(queries, exact_counts(TableSource(real), [queries]), 1.0) for queries in asked]
    return refining.merged(exact, facts)


def _as_table(given: Any, plain: Any, schema: Schema) -> Table:
    """A table in the codes of a schema."""
    if isinstance(given, Table) and given.schema.columns == schema.columns:
        return given
    return Table.encode(plain, schema)


def _drafted(plain: Any, rows: Any) -> Schema:
    """A schema for tables that have none; it is used for nothing but this comparison."""
    import pyarrow as pa

    names = [name for name in plain.column_names if name in rows.column_names]
    rule, hint = "must have columns of the real table", "give a table that was made from it"
    check(len(names) > 0, "synthetic", Shown("none of them"), rule, hint)
    both = [one.select(names) for one in (plain, rows)]
    drafted = draft_schema(pa.concat_tables([_decoded(one) for one in both], promote_options="permissive"))
    left = {*plain.column_names, *rows.column_names} - {*names}
    return replace(drafted, ignore=tuple(sorted({*drafted.ignore, *left})))


def _decoded(table: Any) -> Any:
    """A table without dictionaries, which differ from table to table."""
    import pyarrow as pa

    columns = [one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _violations(schema: Schema, real: Typed, synthetic: Typed) -> tuple[Violations, ...]:
    """How many rows of both tables break each rule, if the schema has rules."""
    rules = getattr(schema, "rules", ())
    if not rules:
        return ()
    found = [rules.violations(one.to_arrow()) for one in (real, synthetic)]
    return tuple(Violations(rule, int(found[0][rule]), int(found[1][rule])) for rule in found[0])


def independent_columns(real: Table, workload: Workload) -> Errors:
    """The errors of a table with the real columns, made independent of each other, for comparison."""
    single = [np.bincount(c, minlength=size) / len(real) for c, size in zip(real.codes, real.domain.sizes, strict=True)]
    answers = [_of_product(queries, single, len(real)) for queries in workload.queries]
    return compare(workload, fractions(real, workload), np.concatenate(answers))


def _of_product(queries: Queries, ways: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """The answers of independent columns: by the kind's own way, from the marginal over the scope, or from rows that
    are drawn, if neither is possible."""
    own = getattr(queries, "of_product", lambda ways: None)(ways)
    if own is not None:
        return np.asarray(own)
    if is_direct(queries):
        rng = np.random.default_rng(0)
        drawn = [rng.choice(len(way), rows, p=way) for way in ways]
        return of_records(queries, drawn) / rows
    product = np.ones(1)
    for attribute in queries.scope:
        product = np.multiply.outer(product, ways[attribute]).ravel()
    return queries.of_marginal(product)


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
