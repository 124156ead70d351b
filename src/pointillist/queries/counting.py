"""Exact integer answers to queries, from a source or from weighted records (host side).

Most queries are sums of cells of the marginal over their scope, which many of them share. Queries over too many
attributes for such a marginal are counted record by record, in the same pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.data.kernel import Columns
from pointillist.data.public import PublicTable
from pointillist.data.sources import Seen, Source, count, sum_weights
from pointillist.queries.base import Queries, answers_of, is_direct, of_records, parts_of

__all__ = ["Counts", "count_rows", "exact_counts", "public_counts", "weighted_answers"]

Look: TypeAlias = "Callable[[list[Attributes], Seen | None], list[np.ndarray]]"
"""Returns marginals over the given scopes, and shows every batch of records, if it is asked to."""


@dataclass
class Counts:
    """What was counted.

    Attributes:
        tables: marginals, by their attributes.
        answers: those of queries that were counted record by record.
    """

    tables: dict[Attributes, np.ndarray] = field(default_factory=dict)
    answers: dict[Queries, np.ndarray] = field(default_factory=dict)

    def missing(self, asked: Iterable[Queries]) -> tuple[Queries, ...]:
        """Those of some queries that do not follow from what was counted."""
        return tuple(one for one in asked if not self._known(one))

    def _known(self, queries: Queries) -> bool:
        if is_direct(queries):
            return queries in self.answers
        return all(part.scope in self.tables for part in parts_of(queries))

    def of(self, queries: Queries) -> np.ndarray:
        """The answers to queries that follow from what was counted."""
        return self.answers[queries] if is_direct(queries) else answers_of(queries, self.tables)

    def add(self, asked: Sequence[Queries], look: Look) -> set[int]:
        """Count what some queries need, in one pass.

        Args:
            asked: the queries.
            look: returns marginals of records, and shows the records batch by batch if they must be looked at.

        Returns the number of records, as each part of the pass has found it.
        """
        by_tables = (one for one in asked if not is_direct(one))
        scopes = list(dict.fromkeys(part.scope for one in by_tables for part in parts_of(one)))
        wide = dict.fromkeys(one for one in asked if is_direct(one))
        found: dict[Queries, np.ndarray] = {}
        rows = 0

        def seen(batch: Columns, weights: np.ndarray | None) -> None:
            nonlocal rows
            rows += len(batch[0])
            for one in wide:
                part = of_records(one, batch, weights)
                found[one] = found[one] + part if one in found else part

        tables = look(scopes, seen if wide else None)
        self.tables.update(zip(scopes, tables, strict=True))
        nothing = {one: np.zeros(one.size, np.int64) for one in wide if one not in found}  # there was no batch
        self.answers.update(found | nothing)
        return {int(table.sum()) for table in tables} | ({rows} if wide else set())


def count_rows(source: Source, asked: Sequence[Queries], counts: Counts) -> set[int]:
    """Count what some queries need of the rows of a source.

    Args:
        source: the rows.
        asked: the queries.
        counts: gets what was counted.

    Returns the number of rows that the source delivered, as each part of the pass has found it.
    """
    return counts.add(asked, lambda scopes, seen: count(source, scopes, seen))


def exact_counts(source: Source, queries: Sequence[Queries]) -> np.ndarray:
    """The flat vector n q(P) of all queries, as int64."""
    counts = Counts()
    count_rows(source, queries, counts)
    return np.concatenate([counts.of(one) for one in queries])


def weighted_answers(
    codes: Sequence[np.ndarray], weights: np.ndarray, domain: Domain, queries: Sequence[Queries]
) -> list[np.ndarray]:
    """For each of the queries, the sums of the weights of the records for which they hold."""
    counts = Counts()
    counts.add(queries, lambda scopes, seen: sum_weights(codes, weights, domain, scopes, seen))
    return [counts.of(one) for one in queries]


def public_counts(public: PublicTable, queries: Sequence[Queries]) -> list[np.ndarray]:
    """For each of the queries, the exact counts of the rows of a public table.

    Args:
        public: the table, which has all attributes that the queries look at.
        queries: the queries.
    """
    present = dict(zip(public.present, public.codes, strict=True))
    nothing = np.zeros(len(public.counts), np.intp)
    codes = [present.get(i, nothing) for i in range(len(public.domain))]
    found = weighted_answers(codes, public.counts.astype(np.float64), public.domain, queries)
    return [np.rint(one).astype(np.int64) for one in found]
