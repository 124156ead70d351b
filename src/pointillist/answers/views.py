"""A model seen through a few columns: weighted records that statistics are computed from.

The marginal over the columns has a weight for every combination of codes. A code that stands for several values, a bin
or a group of merged values, is decoded several times and its weight split, so that conditions that cut through a bin
are answered as the decoded rows would. It is decoded in proportion to its weight, since the shape inside of a bin
depends on how frequent its neighbours are. If there are too many combinations, records are drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.data.columns import Column
from pointillist.data.conditions import Cells
from pointillist.data.domain import Attributes, Domain
from pointillist.data.rules import column_cells
from pointillist.data.schema import Schema
from pointillist.framework import Family
from pointillist.queries.marginal import Marginal

__all__ = ["Records", "View", "marginals_of"]

MOST_RECORDS = 200_000
"""The largest number of weighted records."""

LEAST_DRAWS = 8
"""Codes with several values are decoded this often on average; with more combinations, records are drawn."""

STREAM = 0x76696577
"""Separates these draws from everything else."""


@dataclass(frozen=True)
class Records:
    """Weighted records.

    Attributes:
        cells: the values of each column, by name.
        weights: those of the records; they add up to 1.
        total: the number of rows that they stand for.
    """

    cells: Mapping[str, Cells]
    weights: np.ndarray
    total: float


@dataclass(frozen=True)
class View:
    """A model with its columns.

    Attributes:
        family, params: the model.
        schema: the columns.
        total: the number of rows that it stands for.
    """

    family: Family[Any]
    params: Any
    schema: Schema
    total: float

    def records(self, columns: tuple[str, ...]) -> Records:
        """The model as weighted records of some columns. The same random numbers decode the records of every model.

        Args:
            columns: their names.
        """
        domain = self.schema.domain
        if not columns:
            return Records({}, np.ones(1), self.total)
        scope = domain.attributes(columns)
        cells = domain.cells_of(scope)
        several = any(_several(self.schema.columns[i]) for i in scope)
        if cells * (LEAST_DRAWS if several else 1) > MOST_RECORDS:
            codes, weights = self._drawn(scope)
        else:
            grid = np.indices(domain.shape(scope)).reshape(len(scope), -1)
            weights = next(marginals_of(self.family, self.params, domain, [scope]))
            times = _in_proportion(weights) if several else np.ones(cells, np.intp)
            codes = [np.repeat(one, times) for one in grid]
            weights = np.repeat(weights / np.maximum(times, 1), times)
        found = {}
        for i, own in zip(scope, codes, strict=True):
            column = self.schema.columns[i]
            decoded = column.decode(own, np.random.default_rng([STREAM, i]))
            found[column.name] = column_cells(column, decoded)
        return Records(found, weights / weights.sum(), self.total)

    def _drawn(self, scope: Attributes) -> tuple[list[np.ndarray], np.ndarray]:
        drawn = self.family.sample(np.random.default_rng(STREAM), self.params, MOST_RECORDS)
        return [drawn[i] for i in scope], np.full(MOST_RECORDS, 1 / MOST_RECORDS)


def marginals_of(
    family: Family[Any], params: Any, domain: Domain, scopes: Sequence[Attributes]
) -> Iterator[np.ndarray]:
    """The flat marginals of a model over some scopes.

    Args:
        family, params: the model.
        domain: its attributes.
        scopes: the attributes of each marginal.
    """
    expected = getattr(family, "expected", None)
    if expected is not None:  # without compiling anything
        yield from map(np.asarray, expected(params, scopes))
    elif scopes:
        answers = family.answers(params, [Marginal(scope, domain.shape(scope)) for scope in scopes])
        yield from np.split(np.maximum(answers, 0.0), np.cumsum([domain.cells_of(scope) for scope in scopes])[:-1])


def _in_proportion(weights: np.ndarray) -> np.ndarray:
    """How often each combination is decoded: whole numbers in proportion to the weights."""
    ends = np.rint(np.cumsum(weights) / weights.sum() * MOST_RECORDS)
    return np.asarray(np.diff(ends, prepend=0.0), np.intp)


def _several(column: Column) -> bool:
    """Whether a code of a column may stand for several values."""
    return not column.labels
