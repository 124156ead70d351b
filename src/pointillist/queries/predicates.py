"""Predicates of one's own: conditions on some columns, asked together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.domain import Attributes, Domain
from pointillist.data.neighbours import Relation
from pointillist.data.schema import Schema
from pointillist.queries.base import Sensitivity
from pointillist.queries.cells import Cells
from pointillist.queries.enumerating import combinations, overlaps, sensitivity_by_enumeration
from pointillist.queries.formulas import Formula, formula_of, from_dict, of_function

__all__ = ["Predicates"]

MOST_TABLE = 1_000_000
"""Records are counted one by one where the marginal over the scope has more cells."""


@dataclass(frozen=True)
class Predicates:
    """The queries that hold where each of some formulas does.

    Attributes:
        formulas: the predicates.
    """

    formulas: tuple[Formula, ...]

    kind = "predicates"
    factors = None
    cells = None

    def __post_init__(self) -> None:
        check(len(self.formulas) > 0, "predicates", 0, "must be at least one", "write a condition")
        _ = self.shape  # refuses formulas over different domains

    @classmethod
    def of(cls, schema: Schema, *conditions: str) -> Predicates:
        """Conditions such as ``age >= 65 and region in ["N", "S"]``, asked together.

        Args:
            schema: the columns that they are about.
            conditions: in the language of :mod:`pointillist.data.conditions`. They are parsed, never run.
        """
        made = cls(tuple(formula_of(text, schema) for text in conditions))
        for text, formula in zip(conditions, made.formulas, strict=True):
            rule = "must hold for some records and not for others"
            check(_open(formula), "condition", text, rule, "check the spelling of its values")
        return made

    @classmethod
    def of_function(cls, schema: Schema, columns: Sequence[str], function: Callable[..., Any]) -> Predicates:
        """A function of the values of a few columns, called on all combinations of their codes, part by part.

        Args:
            schema: the columns.
            columns: the names of those that the function looks at.
            function: gets one array of values per column, by name, and returns as many truth values. A bin is given as
                its middle, a missing number as NaN and another missing value as None.
        """
        return cls((of_function(function, columns, schema),))

    @cached_property
    def scope(self) -> Attributes:
        return tuple(sorted({i for formula in self.formulas for i in formula.scope}))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        pairs = {pair for one in self.formulas for pair in zip(one.scope, one.shape, strict=True)}
        if len(pairs) != len(self.scope):
            raise ValueError("the formulas must be over the same domain")
        return tuple(size for _, size in sorted(pairs))

    @property
    def size(self) -> int:
        return len(self.formulas)

    @property
    def direct(self) -> bool:
        """Whether records are counted one by one."""
        return math.prod(self.shape) > MOST_TABLE

    @property
    def exact(self) -> bool:
        """Whether independent attributes answer them exactly: no formula has an attribute twice."""
        return all(formula.single for formula in self.formulas)

    @cached_property
    def partition(self) -> bool:
        """Whether exactly one of them holds for every combination of codes."""
        found = overlaps(self)
        if found is None or found.patterns is None:
            return False
        return bool((found.patterns.sum(axis=1) == 1).all())

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        wide = {i: np.asarray(codes[i], np.intp) for i in self.scope}
        return np.stack([formula.holds(wide) for formula in self.formulas], axis=1)

    def of_product(self, ways: Sequence[np.ndarray]) -> np.ndarray | None:
        """The answers of independent attributes, given the distribution of each; None if they are not exact."""
        if not self.exact:
            return None
        columns = {i: np.asarray(ways[i], np.float64)[None, :] for i in self.scope}
        return np.array([float(formula.probability(columns)[0]) for formula in self.formulas])

    def of_marginal(self, table: np.ndarray) -> np.ndarray:
        sums, start = np.zeros(self.size, table.dtype), 0
        for codes in combinations(self.scope, self.shape, self.size):
            held = self.holds(codes)
            sums += table[start : start + len(held)] @ held.astype(table.dtype)
            start += len(held)
        return sums

    def to_marginal(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([self.holds(c) @ values for c in combinations(self.scope, self.shape, self.size)])

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """A predicate changes by 1 at most, and does if it holds for some records and not for others. For several, all
        records are enumerated (:func:`~pointillist.queries.enumerating.sensitivity_by_enumeration`), or else no more
        than all of them change."""
        if self.size == 1 and self.exact and self.formulas[0].open:
            return Sensitivity.of_indicators(1)
        return sensitivity_by_enumeration(self, relation)

    def take(self, cells: Sequence[int]) -> Cells:
        return Cells(self, tuple(map(int, cells)))

    def without(self, attribute: int) -> None:
        """Nothing of this kind follows from predicates over more attributes."""

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"kind": self.kind, "formulas": [formula.to_dict(names) for formula in self.formulas]}

    @classmethod
    def from_dict(cls, spec: dict[str, Any], domain: Domain) -> Predicates:
        return cls(tuple(from_dict(one, domain) for one in spec["formulas"]))


def _open(formula: Formula) -> bool:
    """Whether a formula holds for some records and not for others, as far as it can be told."""
    if formula.single:
        return formula.open
    found = overlaps(Predicates((formula,)))
    return found is None or found.patterns is None or len(found.patterns) == 2
