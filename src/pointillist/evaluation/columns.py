"""Each column of a synthetic table against the real one. NOT PRIVATE: uses the real data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pointillist.evaluation.values import MISSING, Labels, Numbers, Values, coarse

__all__ = ["QUANTILES", "Both", "ColumnReport", "LabelsReport", "NumbersReport", "compare_columns", "finite"]

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def finite(value: float) -> float | None:
    """A number as JSON can hold it: None where it is not defined."""
    return float(value) if math.isfinite(value) else None


class Both(NamedTuple):
    """A figure of the real and of the synthetic table."""

    real: float
    synthetic: float

    @property
    def difference(self) -> float:
        """Synthetic minus real."""
        return self.synthetic - self.real

    def to_dict(self, unit: float | None = None) -> dict[str, float | None]:
        """Both figures by name; with a ``unit``, also their difference in it."""
        out = {"real": finite(self.real), "synthetic": finite(self.synthetic)}
        return out if unit is None else out | {"difference": finite(_over(self.difference, unit))}


@dataclass(frozen=True)
class NumbersReport:
    """A column of numbers.

    Attributes:
        name: the name of the column.
        kind: number, date, time, timestamp or duration. Dates are in days, the others in seconds, since 1970.
        mean, std: of the values that are there.
        quantiles: by their levels.
        missing: the shares of missing values.
        wasserstein: the mean distance by which values must be moved to make one distribution the other.
        span: the range of the real values.
        tvd: the total variation distance over bins with equal shares of the real values (over the values themselves
            where they are few), missing included.
    """

    name: str
    kind: str
    mean: Both
    std: Both
    quantiles: dict[float, Both]
    missing: Both
    wasserstein: float
    span: float
    tvd: float

    @property
    def mean_error(self) -> float:
        """The difference of the means in real standard deviations."""
        return _over(self.mean.difference, self.std.real)

    @property
    def wasserstein_std(self) -> float:
        """The Wasserstein distance in real standard deviations."""
        return _over(self.wasserstein, self.std.real)

    @property
    def worst_quantile(self) -> tuple[float, Both, float]:
        """The level of the quantile that is furthest off, both values, and their difference in standard deviations."""
        level = max(self.quantiles, key=lambda q: abs(np.nan_to_num(self.quantiles[q].difference)))
        both = self.quantiles[level]
        return level, both, _over(both.difference, self.std.real)

    def to_dict(self) -> dict[str, Any]:
        """All figures by name; differences are in real standard deviations."""
        unit = self.std.real
        return {
            "kind": self.kind,
            "mean": self.mean.to_dict(unit),
            "std": self.std.to_dict(unit),
            "quantiles": {f"{level:g}": both.to_dict(unit) for level, both in self.quantiles.items()},
            "wasserstein": finite(self.wasserstein),
            "wasserstein_std": finite(self.wasserstein_std),
            "wasserstein_range": finite(_over(self.wasserstein, self.span)),
            "tvd": self.tvd,
            "missing": self.missing.to_dict(),
        }


@dataclass(frozen=True)
class LabelsReport:
    """A column of categories.

    Attributes:
        name: the name of the column.
        size: the number of categories, missing included.
        tvd: the total variation distance: half the sum of the differences of the shares.
        worst: the category whose share is furthest off.
        share: its share.
        missing: the shares of missing values.
    """

    name: str
    size: int
    tvd: float
    worst: str
    share: Both
    missing: Both

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        worst = {"label": self.worst} | self.share.to_dict()
        return {
            "kind": "category",
            "values": self.size,
            "tvd": self.tvd,
            "worst": worst,
            "missing": self.missing.to_dict(),
        }


ColumnReport = NumbersReport | LabelsReport


def compare_columns(values: tuple[Values, ...]) -> tuple[ColumnReport, ...]:
    """A report for each column.

    Args:
        values: the columns of both tables.
    """
    return tuple(_numbers(one) if isinstance(one, Numbers) else _labels(one) for one in values)


def _numbers(column: Numbers) -> NumbersReport:
    missing = Both(*(float(np.isnan(x).mean()) for x in (column.real, column.synthetic)))
    real, synthetic = (np.sort(x[~np.isnan(x)]) for x in (column.real, column.synthetic))
    there = len(real) > 0 and len(synthetic) > 0
    nothing = Both(math.nan, math.nan)
    return NumbersReport(
        column.name,
        column.kind,
        Both(float(real.mean()), float(synthetic.mean())) if there else nothing,
        Both(float(real.std()), float(synthetic.std())) if there else nothing,
        {level: Both(_quantile(real, level), _quantile(synthetic, level)) if there else nothing for level in QUANTILES},
        missing,
        _wasserstein(real, synthetic) if there else math.nan,
        float(real[-1] - real[0]) if there else math.nan,
        _tvd(*_shares(column)),
    )


def _labels(column: Labels) -> LabelsReport:
    shares = [np.bincount(x, minlength=len(column.labels)) / len(x) for x in (column.real, column.synthetic)]
    worst = int(np.argmax(np.abs(shares[1] - shares[0])))
    last = len(column.labels) - 1
    missing = Both(*(float(one[last]) for one in shares)) if column.labels[last] == MISSING else Both(0.0, 0.0)
    share = Both(*(float(one[worst]) for one in shares))
    return LabelsReport(column.name, len(column.labels), _tvd(*shares), column.labels[worst], share, missing)


def _shares(column: Values) -> tuple[np.ndarray, np.ndarray]:
    real, synthetic, names = coarse(column)
    return tuple(np.bincount(x, minlength=len(names)) / len(x) for x in (real, synthetic))  # type: ignore[return-value]


def _tvd(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).sum() / 2)


def _quantile(ordered: np.ndarray, level: float) -> float:
    """The smallest value that at least this share of the values does not exceed: always one of the values."""
    return float(ordered[max(math.ceil(level * len(ordered) - 1e-9), 1) - 1])


def _wasserstein(first: np.ndarray, second: np.ndarray) -> float:
    """The area between the distribution functions of two sorted samples."""
    every = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(x, every[:-1], side="right") / len(x) for x in (first, second)]
    return float(np.sum(np.abs(shares[0] - shares[1]) * np.diff(every)))


def _over(value: float, unit: float) -> float:
    """A quotient; 0/0 is 0, anything else over 0 is not defined."""
    if unit == 0:
        return 0.0 if value == 0 else math.nan
    return value / unit
