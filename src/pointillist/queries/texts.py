"""Workloads as texts, such as ``marginals:2`` or ``prefixes:1,2@income + halfspaces:200``.

Terms are joined by ``+``. COLUMN is a name, in backticks if it has other characters than letters, digits and ``_``.
K stands for one number of attributes or several, such as ``1,2,3``; ``@COLUMN`` keeps the sets that have that column.
Without COUNT all sets are taken, else COUNT of them, drawn by SEED (0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pointillist.checks import check, one_of
from pointillist.data.domain import Attributes
from pointillist.data.schema import Schema
from pointillist.errors import Shown
from pointillist.queries.base import Queries
from pointillist.queries.intervals import Intervals
from pointillist.queries.kway import drawn, require_carried, scopes_of, sized
from pointillist.queries.marginal import Marginal
from pointillist.queries.product import Product
from pointillist.queries.random_halfspaces import random_halfspaces
from pointillist.queries.workload import Workload

__all__ = ["FORMS", "parse_workload"]

SETS = "K[@COLUMN][:COUNT[:SEED]]"
FORMS = {
    "marginals": f"marginals:{SETS}",
    "prefixes": f"prefixes:{SETS}",
    "ranges": f"ranges:{SETS}",
    "halfspaces": "halfspaces:COUNT[:SEED]",
    "conditionals": "conditionals:COLUMN[:COUNT[:SEED]]",
}
"""How each kind of term is written."""

CONDITIONALS = 100
"""The number of directions if none is given."""

PARTS = 8
"""Ranges begin and end where an ordered column is cut into at most this number of equal parts."""

NUMBER = r"[0-9]{1,18}"
NAME = r"(?:\w+|`[^`]+`)"
PATTERNS = {
    "sets": re.compile(
        rf"(?P<k>{NUMBER}(?:,{NUMBER})*)(?:@(?P<name>{NAME}))?(?::(?P<count>{NUMBER})(?::(?P<seed>{NUMBER}))?)?"
    ),
    "halfspaces": re.compile(rf"(?P<count>{NUMBER})(?::(?P<seed>{NUMBER}))?"),
    "conditionals": re.compile(rf"(?P<name>{NAME})(?::(?P<count>{NUMBER})(?::(?P<seed>{NUMBER}))?)?"),
}
JOINED = re.compile(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)")  # outside of backticks

LONGEST = 10_000
"""The longest text, in characters."""


@dataclass(frozen=True)
class Term:
    """A parsed term.

    Attributes:
        orders: the numbers of attributes.
        name: a column, if one is named.
        count: how many are drawn; None for all.
        seed: the seed of the draw.
        max_cells: a draw takes sets whose marginals have at most this number of cells.
    """

    orders: tuple[int, ...]
    name: str | None
    count: int | None
    seed: int
    max_cells: int | None

    def scopes(self, schema: Schema, keep: Callable[[Attributes], bool] = lambda scope: True) -> list[Attributes]:
        """The sets of attributes that it asks for, of those to ``keep``."""
        domain = schema.domain
        target = None if self.name is None else domain.index(self.name)
        every = [scope for scope in scopes_of(domain, self.orders, target) if keep(scope)]
        rule, hint = "must have sets with an ordered column for prefixes and ranges", "use a larger K, or marginals"
        check(len(every) > 0, "workload", Shown("none"), rule, hint)
        if self.count is None:
            require_carried(len(every))
            return every
        return drawn(domain, every, self.count, self.seed, self.max_cells)


def parse_workload(text: str, schema: Schema, max_cells: int | None = None) -> Workload:
    """A workload from its text.

    Args:
        text: terms joined by ``+``, each in one of the ``FORMS``.
        schema: the columns.
        max_cells: a random draw takes marginals with at most this number of cells.
    """
    rule, hint = f"must have at most {LONGEST:,} characters", "use fewer terms, or a file with several texts"
    check(len(text) <= LONGEST, "workload", Shown(f"{len(text):,}"), rule, hint)
    queries: dict[Queries, None] = {}
    for term in JOINED.split(text):
        queries.update(dict.fromkeys(_queries(term.strip(), schema, max_cells)))
    return sized(Workload(schema.domain, tuple(queries)))


def _queries(term: str, schema: Schema, max_cells: int | None) -> Iterable[Queries]:
    kind, _, rest = term.partition(":")
    if kind not in FORMS:
        rule = f"must have the form {', '.join(FORMS.values())}, or several of them joined by +"
        check(False, "workload", term, rule, "write for example marginals:3")
    match = PATTERNS.get(kind, PATTERNS["sets"]).fullmatch(rest)
    example = {"halfspaces": "halfspaces:200", "conditionals": "conditionals:income"}.get(kind, f"{kind}:3")
    if match is None:
        rule = f"must have the form {FORMS[kind]} with whole numbers"
        check(False, "workload", term, rule, f"write for example {example}")
    found = match.groupdict() if match is not None else {}
    name, count = found.get("name"), found.get("count")
    return MAKERS[kind](
        Term(
            tuple(dict.fromkeys(int(k) for k in (found.get("k") or "1").split(","))),
            None if name is None else name.strip("`"),
            None if count is None else int(count),
            int(found.get("seed") or 0),
            max_cells,
        ),
        schema,
    )


def _marginals(term: Term, schema: Schema) -> Iterable[Queries]:
    domain = schema.domain
    return [Marginal(scope, domain.shape(scope)) for scope in term.scopes(schema)]


def _products(intervals: Callable[[int], Intervals]) -> Callable[[Term, Schema], Iterable[Queries]]:
    """Products with these intervals on ordered columns, and single values of the others."""

    def make(term: Term, schema: Schema) -> Iterable[Queries]:
        ordered = {n for n, column in enumerate(schema.columns) if column.ordered and column.size > 1}
        rule = "must have ordered columns for prefixes and ranges"
        check(len(ordered) > 0, "schema", Shown("none"), rule, "use marginals")
        sizes = schema.domain.sizes
        for scope in term.scopes(schema, lambda scope: not ordered.isdisjoint(scope)):
            yield Product(scope, tuple((intervals if i in ordered else Intervals.values)(sizes[i]) for i in scope))

    return make


def ladder(size: int) -> Intervals:
    """All intervals between the cuts of a column into at most ``PARTS`` equal parts.

    Args:
        size: the number of its codes.
    """
    cuts: Sequence[int] = np.unique(np.rint(np.linspace(0, size, PARTS + 1)).astype(int)).tolist()
    return Intervals(size, tuple((low, high) for n, low in enumerate(cuts) for high in cuts[n + 1 :]))


def _halfspaces(term: Term, schema: Schema) -> Iterable[Queries]:
    return random_halfspaces(schema, term.count or 0, term.seed)


def _conditionals(term: Term, schema: Schema) -> Iterable[Queries]:
    name = one_of("workload: COLUMN", term.name or "", schema.domain.names)
    return random_halfspaces(schema, CONDITIONALS if term.count is None else term.count, term.seed, name)


MAKERS: dict[str, Callable[[Term, Schema], Iterable[Queries]]] = {
    "marginals": _marginals,
    "prefixes": _products(Intervals.prefixes),
    "ranges": _products(ladder),
    "halfspaces": _halfspaces,
    "conditionals": _conditionals,
}
