"""All that an evaluation found, and how it is shown. NOT PRIVATE: figures of the real data."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from pointillist.evaluation.accuracy import Errors
from pointillist.evaluation.columns import ColumnReport, LabelsReport, NumbersReport, finite
from pointillist.evaluation.learning import Learning
from pointillist.evaluation.marginals import WorstMarginal
from pointillist.evaluation.pairs import PairReport
from pointillist.evaluation.sections import Section
from pointillist.evaluation.values import show_number
from pointillist.release import Drawn

__all__ = ["NOTICE", "Comparison", "Evaluation", "Violations"]

NOTICE = "These figures use the real data: they are NOT private. Do not publish them with the release."

SHOWN = 20
"""Columns that a text shows, the worst ones; the dictionary has all."""
SHOWN_PAIRS = 8
SHOWN_MARGINALS = 5

T = TypeVar("T")


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


@dataclass(frozen=True)
class Violations:
    """How many rows break a rule of the schema."""

    rule: str
    real: int
    synthetic: int

    def to_dict(self) -> dict[str, Any]:
        """The rule and the numbers of rows."""
        return {"rule": self.rule, "real": self.real, "synthetic": self.synthetic}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A synthetic table against the real one: what :func:`~pointillist.evaluate` returns.

    Attributes:
        workload: the queries that were compared, in words.
        comparison: the errors over these queries.
        independent: the errors that a table of independent columns would have, for comparison.
        columns: each column: means, quantiles, distances, missing shares.
        pairs: each pair of columns: correlations and contingency.
        worst: the marginals with the largest errors.
        rules: how many rows break each rule of the schema.
        learning: how models do that are trained on synthetic and tested on real rows; None without a target.
        drawn: what the rules did to the rows when they were drawn; None without a release or rules.
    """

    workload: str
    comparison: Comparison
    independent: Errors
    columns: tuple[ColumnReport, ...]
    pairs: tuple[PairReport, ...]
    worst: tuple[WorstMarginal, ...]
    rules: tuple[Violations, ...]
    learning: Learning | None
    drawn: Drawn | None = None

    @property
    def n(self) -> int:
        """The number of real rows."""
        return self.comparison.n

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.comparison.queries

    @property
    def rows(self) -> Errors:
        """The errors of the synthetic rows over the queries."""
        return self.comparison.rows

    @property
    def model(self) -> Errors | None:
        """The errors of the model's own answers; None if only rows were given."""
        return self.comparison.model

    @property
    def summary(self) -> dict[str, float]:
        """The worst and the mean figures over all columns and pairs."""
        numbers = [one for one in self.columns if isinstance(one, NumbersReport)]
        return {
            "worst_mean": _largest(abs(one.mean_error) for one in numbers),
            "worst_quantile": _largest(abs(one.worst_quantile[2]) for one in numbers),
            "worst_wasserstein": _largest(one.wasserstein_std for one in numbers),
            "worst_correlation": _largest(one.correlation_error for one in self.pairs),
            "worst_missing": _largest(abs(one.missing.difference) for one in self.columns),
            "mean_column_tvd": sum(one.tvd for one in self.columns) / len(self.columns),
            "mean_pair_tvd": sum(one.tvd for one in self.pairs) / len(self.pairs) if self.pairs else math.nan,
        }

    def to_dict(self) -> dict[str, Any]:
        """All figures by name, as JSON can hold them."""
        out = self.comparison.to_dict() | {
            "independent_columns": self.independent.to_dict(),
            "summary": {name: finite(value) for name, value in self.summary.items()},
            "columns": {one.name: one.to_dict() for one in self.columns},
            "pairs": [one.to_dict() for one in self.pairs],
            "worst_marginals": [one.to_dict() for one in self.worst],
            "rules": [one.to_dict() for one in self.rules],
        }
        out |= {} if self.drawn is None else {"drawn": asdict(self.drawn)}
        return out if self.learning is None else out | {"target": self.learning.to_dict()}

    def sections(self) -> list[Section]:
        """The figures as small tables; long ones show the worst entries only."""
        every = [
            _errors([*self.comparison.lines(), ("independent columns", self.independent)]),
            _numbers([one for one in self.columns if isinstance(one, NumbersReport)]),
            _quantiles([one for one in self.columns if isinstance(one, NumbersReport)]),
            _missing(self.columns),
            _labels([one for one in self.columns if isinstance(one, LabelsReport)]),
            _correlations([one for one in self.pairs if not math.isnan(one.correlation_error)]),
            _contingency(self.pairs),
            _worst(self.worst),
            _rules(self.rules, self.drawn),
            *([] if self.learning is None else [_learning(self.learning)]),
        ]
        return [one for one in every if one.rows]

    def lines(self) -> list[str]:
        """The figures as text."""
        out = [f"{self.n:,} rows, {self.workload}"]
        for section in self.sections():
            out += ["", *section.lines()]
        return [*out, "", NOTICE]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Evaluation({self.n:,} rows, {len(self.columns)} columns, tvd={self.rows.tvd:.4g}, NOT private)"

    def _repr_html_(self) -> str:
        tables = "".join(section.to_html() for section in self.sections())
        return f"<div><p>{html.escape(f'{self.n:,} rows, {self.workload}')}</p>{tables}<p><b>{NOTICE}</b></p></div>"


def _largest(values: Iterable[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _worst_first(entries: Iterable[T], badness: Callable[[T], float], most: int) -> tuple[list[T], str]:
    """The worst entries, and a note on the others."""
    order = sorted(entries, key=lambda one: -math.inf if math.isnan(badness(one)) else badness(one), reverse=True)
    left = len(order) - most
    return order[:most], f"The worst {most} of {len(order)}; --json and to_dict() have all." if left > 0 else ""


def _errors(lines: list[tuple[str, Errors]]) -> Section:
    rows = tuple((name, *(f"{value:.5f}" for value in errors.to_dict().values())) for name, errors in lines)
    return Section(
        "Errors over the queries, in fractions of the rows", ("answers of", "max", "mean", "rmse", "tvd"), rows
    )


def _in_std(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.3f}"


def _share(value: float) -> str:
    return f"{100 * value:.2f} %"


def _numbers(columns: list[NumbersReport]) -> Section:
    shown, note = _worst_first(columns, lambda one: one.wasserstein_std, SHOWN)
    rows = tuple(
        (
            one.name,
            show_number(one.mean.real, one.kind),
            show_number(one.mean.synthetic, one.kind),
            _in_std(one.mean_error),
            _spread(one.std.real, one.kind),
            _spread(one.std.synthetic, one.kind),
            "-" if math.isnan(one.wasserstein_std) else f"{one.wasserstein_std:.3f}",
        )
        for one in shown
    )
    head = ("column", "mean", "synthetic", "off by", "std", "synthetic", "moved")
    more = (
        "off by: difference of the means; moved: Wasserstein distance; both in standard deviations of the real column."
    )
    return Section("Numbers", head, rows, f"{more} {note}".strip())


def _spread(value: float, kind: str) -> str:
    """A standard deviation; that of dates and times with a unit."""
    if kind == "number":
        return show_number(value)
    seconds = value * 86400 if kind == "date" else value
    size, unit = next((one for one in ((86400, "d"), (3600, "h"), (60, "min")) if seconds >= 2 * one[0]), (1, "s"))
    return f"{show_number(seconds / size)} {unit}"


def _quantiles(columns: list[NumbersReport]) -> Section:
    shown, note = _worst_first(columns, lambda one: abs(one.worst_quantile[2]), SHOWN)
    rows = []
    for one in shown:
        level, both, off = one.worst_quantile
        texts = [show_number(value, one.kind) for value in (*one.quantiles[0.5], *both)]
        rows.append((one.name, *texts[:2], f"{100 * level:g} %", *texts[2:], _in_std(off)))
    head = ("column", "median", "synthetic", "worst", "real", "synthetic", "off by")
    title = "Quantiles of the numbers: the median, and the quantile that is furthest off"
    return Section(title, head, tuple(rows), note)


def _missing(columns: Iterable[ColumnReport]) -> Section:
    some = [one for one in columns if max(one.missing) > 0]
    shown, note = _worst_first(some, lambda one: abs(one.missing.difference), SHOWN)
    rows = tuple((one.name, _share(one.missing.real), _share(one.missing.synthetic)) for one in shown)
    return Section("Missing values", ("column", "real", "synthetic"), rows, note)


def _labels(columns: list[LabelsReport]) -> Section:
    shown, note = _worst_first(columns, lambda one: one.tvd, SHOWN)
    rows = tuple(
        (one.name, f"{one.tvd:.4f}", one.worst, _share(one.share.real), _share(one.share.synthetic)) for one in shown
    )
    return Section(
        "Categories, and the one that is furthest off", ("column", "tvd", "category", "real", "synthetic"), rows, note
    )


def _correlations(pairs: list[PairReport]) -> Section:
    shown, note = _worst_first(pairs, lambda one: one.correlation_error, SHOWN_PAIRS)
    rows = []
    for one in shown:
        found = [both for both in (one.pearson, one.spearman) if both is not None]
        texts = ["-" if math.isnan(value) else f"{value:.3f}" for both in found for value in both]
        rows.append((" x ".join(one.names), *texts))
    head = ("pair", "Pearson", "synthetic", "Spearman", "synthetic")
    return Section("Correlations that are furthest off", head, tuple(rows), note)


def _contingency(pairs: Iterable[PairReport]) -> Section:
    shown, note = _worst_first(pairs, lambda one: one.tvd, SHOWN_PAIRS)
    rows = tuple(
        (" x ".join(one.names), f"{one.tvd:.4f}", f"{one.cramers_v.real:.3f}", f"{one.cramers_v.synthetic:.3f}")
        for one in shown
    )
    return Section("Pairs of columns that are furthest off", ("pair", "tvd", "Cramer's V", "synthetic"), rows, note)


def _worst(marginals: tuple[WorstMarginal, ...]) -> Section:
    rows = tuple(
        (
            " x ".join(one.names),
            f"{one.error:.4f}",
            ", ".join(one.cell.values()) if one.cell else f"query {one.query}",
            _share(one.share.real),
            _share(one.share.synthetic),
        )
        for one in marginals[:SHOWN_MARGINALS]
    )
    return Section("Worst marginals of the workload", ("marginal", "tvd", "worst cell", "real", "synthetic"), rows)


def _rules(rules: tuple[Violations, ...], drawn: Drawn | None) -> Section:
    rows = tuple((one.rule, f"{one.real:,}", f"{one.synthetic:,}") for one in rules)
    note = "" if drawn is None else f"When the rows were drawn, {drawn.describe()}."
    return Section("Rows that break a rule", ("rule", "real", "synthetic"), rows, note)


def _learning(found: Learning) -> Section:
    rows = tuple(
        (
            model,
            score,
            *("-" if math.isnan(value) else f"{value:.4f}" for value in both),
            f"{found.baseline[score]:.4f}" if score in found.baseline else "-",
        )
        for model, scores in found.scores.items()
        for score, both in scores.items()
    )
    title = f"Predicting {found.target} ({found.task}), tested on {found.tested:,} real rows"
    head = ("model", "score", "trained on real", "on synthetic", "no model")
    return Section(title, head, rows)
