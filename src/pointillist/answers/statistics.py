"""Statistics of a table: shares, counts, means and quantiles, also on a condition, their differences and ratios.

Conditions are texts in the language of :mod:`pointillist.data.conditions`, such as ``age >= 65 and region == "N"``.
Missing values take part in no mean and in no quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pointillist.answers.views import Records
from pointillist.checks import check, share
from pointillist.data.conditions import NUMBER, TRUTH, Cells, parse
from pointillist.data.messages import fragment
from pointillist.data.schema import Schema
from pointillist.errors import InputError, Shown, nearest

__all__ = ["Count", "Difference", "Mean", "Quantile", "Ratio", "Share", "Statistic"]

Limits = tuple[float, float]


class Statistic(Protocol):
    """A number that follows from a table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""

    @property
    def text(self) -> str:
        """It in words."""

    def value(self, records: Records) -> float:
        """Its value for weighted records; NaN where there is none."""

    def limits(self, records: Records) -> Limits:
        """What no table goes below or above."""


class _Arithmetic:
    """Statistics can be subtracted and divided."""

    def __sub__(self, other: Statistic) -> Difference:
        return Difference(self, other)  # type: ignore[arg-type]

    def __truediv__(self, other: Statistic) -> Ratio:
        return Ratio(self, other)  # type: ignore[arg-type]


def columns_of(*conditions: str | None) -> tuple[str, ...]:
    """The columns of some conditions, each once.

    Args:
        conditions: texts; None for no condition.
    """
    found = [name for text in conditions if text is not None for name in parse(text).columns]
    return tuple(dict.fromkeys(found))


def _held(text: str | None, records: Records) -> np.ndarray:
    if text is None:
        return np.ones(len(records.weights), bool)
    return np.asarray(parse(text).truth(records.cells).true)


def _given(condition: str | None) -> str:
    return "" if condition is None else f" given {condition}"


def _over(top: float, bottom: float) -> float:
    return top / bottom if bottom != 0 else math.nan


@dataclass(frozen=True)
class Share(_Arithmetic):
    """The share of the rows for which a condition holds.

    Args:
        where: the condition.
        given: another condition: the share among the rows for which this one holds.
    """

    where: str
    given: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.where, self.given)

    @property
    def text(self) -> str:
        return f"share of {self.where}{_given(self.given)}"

    def value(self, records: Records) -> float:
        among = _held(self.given, records)
        both = records.weights @ (among & _held(self.where, records))
        return _over(float(both), float(records.weights @ among))

    def limits(self, records: Records) -> Limits:
        return 0.0, 1.0


@dataclass(frozen=True)
class Count(_Arithmetic):
    """The number of rows for which a condition holds.

    Args:
        where: the condition; None for all rows.
    """

    where: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.where)

    @property
    def text(self) -> str:
        return "number of rows" if self.where is None else f"number of rows with {self.where}"

    def value(self, records: Records) -> float:
        return records.total * float(records.weights @ _held(self.where, records))

    def limits(self, records: Records) -> Limits:
        return 0.0, math.inf


@dataclass(frozen=True)
class Mean(_Arithmetic):
    """The mean of a column of numbers.

    Args:
        column: the column.
        given: a condition: the mean over the rows for which it holds.
    """

    column: str
    given: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.column, *columns_of(self.given))))

    @property
    def text(self) -> str:
        return f"mean of {self.column}{_given(self.given)}"

    def value(self, records: Records) -> float:
        values, weights = _numbers(self.column, self.given, records)
        return _over(float(weights @ values), float(weights.sum()))

    def limits(self, records: Records) -> Limits:
        return _range(self.column, records)


@dataclass(frozen=True)
class Quantile(_Arithmetic):
    """A quantile of a column of numbers: the smallest value that is not below a share of the rows.

    Args:
        column: the column.
        at: the share, above 0 and below 1; 0.5 for the median.
        given: a condition: the quantile of the rows for which it holds.
    """

    column: str
    at: float = 0.5
    given: str | None = None

    def __post_init__(self) -> None:
        share("quantile", self.at, 0.5)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.column, *columns_of(self.given))))

    @property
    def text(self) -> str:
        return f"{self.at:g} quantile of {self.column}{_given(self.given)}"

    def below(self, value: float) -> Below:
        """The share of the rows with at most this value.

        Args:
            value: the value.
        """
        return Below(self.column, value, self.given)

    def moved(self, by: float) -> Quantile:
        """The quantile of another share, kept above 0 and below 1.

        Args:
            by: how much larger it is.
        """
        return Quantile(self.column, min(max(self.at + by, 1e-9), 1 - 1e-9), self.given)

    def value(self, records: Records) -> float:
        values, weights = _numbers(self.column, self.given, records)
        if not weights.sum() > 0:
            return math.nan
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[order])
        place = np.searchsorted(below, self.at * below[-1])
        return float(values[order[min(place, len(order) - 1)]])

    def limits(self, records: Records) -> Limits:
        return _range(self.column, records)


@dataclass(frozen=True)
class Below(_Arithmetic):
    """The share of the rows, without missing ones, whose number in a column is at most a value.

    Args:
        column: the column.
        most: the value.
        given: a condition: the share of the rows for which it holds.
    """

    column: str
    most: float
    given: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.column, *columns_of(self.given))))

    @property
    def text(self) -> str:
        return f"share of {self.column} <= {self.most:g}{_given(self.given)}"

    def value(self, records: Records) -> float:
        values, weights = _numbers(self.column, self.given, records)
        return _over(float(weights @ (values <= self.most)), float(weights.sum()))

    def limits(self, records: Records) -> Limits:
        return 0.0, 1.0


@dataclass(frozen=True)
class _OfTwo(_Arithmetic):
    """What follows from two statistics."""

    first: Statistic
    second: Statistic

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.first.columns, *self.second.columns)))


@dataclass(frozen=True)
class Difference(_OfTwo):
    """One statistic less another one.

    Args:
        first, second: the statistics.
    """

    @property
    def text(self) -> str:
        return f"{self.first.text} - {self.second.text}"

    def value(self, records: Records) -> float:
        return self.first.value(records) - self.second.value(records)

    def limits(self, records: Records) -> Limits:
        first, second = self.first.limits(records), self.second.limits(records)
        return first[0] - second[1], first[1] - second[0]


@dataclass(frozen=True)
class Ratio(_OfTwo):
    """One statistic over another one.

    Args:
        first, second: the statistics.
    """

    @property
    def text(self) -> str:
        return f"({self.first.text}) / ({self.second.text})"

    def value(self, records: Records) -> float:
        return _over(self.first.value(records), self.second.value(records))

    def limits(self, records: Records) -> Limits:
        positive = self.first.limits(records)[0] >= 0 and self.second.limits(records)[0] >= 0
        return (0.0 if positive else -math.inf), math.inf


def _column(name: str, records: Records) -> Cells:
    cells = records.cells[name]
    rule, hint = "must be a column of numbers", "ask for shares of its values"
    check(cells.kind in (NUMBER, TRUTH), "column", fragment(name), rule, hint)
    return cells


def _numbers(name: str, given: str | None, records: Records) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a column on a condition, and their weights."""
    cells = _column(name, records)
    kept = _held(given, records) & ~cells.missing
    return np.asarray(cells.values, np.float64)[kept], records.weights[kept]


def _range(name: str, records: Records) -> Limits:
    cells = _column(name, records)
    values = np.asarray(cells.values, np.float64)[~cells.missing]
    return (float(values.min()), float(values.max())) if len(values) else (-math.inf, math.inf)


def require_columns(statistic: Statistic, schema: Schema) -> None:
    """Refuse columns that a table does not have.

    Args:
        statistic: what is asked.
        schema: the columns.
    """
    names = schema.domain.names
    for name in statistic.columns:
        if name not in names:
            rule = "must be about columns of the release"
            raise InputError("query", fragment(Shown(repr(name))), rule, nearest(name, names))
