"""Train on synthetic rows, test on real ones. NOT PRIVATE: uses the real data. Needs scikit-learn.

The real rows are split by a fixed seed. Models are trained on the synthetic rows and, for comparison, on one part of
the real rows; both are tested on the other part.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointillist.checks import check, one_of
from pointillist.errors import InputError, Shown
from pointillist.evaluation.columns import Both, finite
from pointillist.evaluation.values import MISSING, Labels, Numbers, Values

__all__ = ["Learning", "train_and_test"]

TEST_SHARE = 0.3
"""The share of the real rows on which models are tested."""
MOST_LABELS = 250
"""Labels that models tell apart; the others are one. The trees take at most 255."""
MOST_WIDE = 30
"""Labels of a column that get a column of their own for the linear models."""


@dataclass(frozen=True)
class Learning:
    """How well a column is predicted from the others.

    Attributes:
        target: the column.
        task: classification or regression.
        tested: the number of real rows in the test.
        scores: by the model and the name of the score: of the model trained on real rows, and on synthetic ones. AUC
            (of two classes) and accuracy, or R2. NaN where the training rows have one class only.
        baseline: the same scores without any model: of the most common class, or of the mean.
    """

    target: str
    task: str
    tested: int
    scores: dict[str, dict[str, Both]]
    baseline: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "target": self.target,
            "task": self.task,
            "tested": self.tested,
            "scores": {
                model: {score: both.to_dict() for score, both in found.items()} for model, found in self.scores.items()
            },
            "baseline": {score: finite(value) for score, value in self.baseline.items()},
        }


def train_and_test(values: tuple[Values, ...], target: str, seed: int = 0) -> Learning:
    """Train on synthetic and on real rows, test on other real rows.

    Args:
        values: the columns of both tables.
        target: the column to predict from all others.
        seed: decides which real rows are tested, and seeds the models.
    """
    _require_sklearn()
    names = [one.name for one in values]
    at = names.index(one_of("target", target, names, "must be a column of the table"))
    features = [one for n, one in enumerate(values) if n != at]
    check(len(features) > 0, "target", target, "must not be the only column", "add columns to predict it from")
    wanted = _two_classes(values[at])
    if isinstance(wanted, Labels):
        known = [code for code, label in enumerate(wanted.labels) if label != MISSING]
        there = np.isin(wanted.real, known), np.isin(wanted.synthetic, known)
    else:
        there = ~np.isnan(wanted.real), ~np.isnan(wanted.synthetic)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(there[0]))
    cut = round(TEST_SHARE * len(order))
    rule, hint = "must have rows with a known target in both tables", "choose another column"
    check(0 < cut < len(order) and bool(there[1].any()), "target", target, rule, hint)
    parts = {"test": (0, order[:cut]), "real": (0, order[cut:]), "synthetic": (1, np.flatnonzero(there[1]))}
    y = {name: (wanted.real, wanted.synthetic)[which][rows] for name, (which, rows) in parts.items()}
    models = _classifiers(seed) if isinstance(wanted, Labels) else _regressors(seed)
    scores = {}
    for kind, wide in (("gradient boosting", False), ("linear", True)):
        x = {name: _matrix(features, which, rows, wide) for name, (which, rows) in parts.items()}
        categorical = None if wide else np.array([isinstance(one, Labels) for one in features])
        trained = {name: _scores(models(kind, categorical), x, y, name) for name in ("real", "synthetic")}
        scores[kind] = {score: Both(trained["real"][score], trained["synthetic"][score]) for score in trained["real"]}
    task = "classification" if isinstance(wanted, Labels) else "regression"
    return Learning(target, task, cut, scores, _baseline(y["test"], isinstance(wanted, Labels)))


def _two_classes(column: Values) -> Values:
    """A column of numbers that takes two values, such as 0 and 1, as classes."""
    if isinstance(column, Labels):
        return column
    points = np.unique(column.real[~np.isnan(column.real)])
    if len(points) != 2:
        return column
    codes = (np.where(np.isnan(x), 2, (x > points[0]).astype(int)) for x in (column.real, column.synthetic))
    return Labels(column.name, (*map(str, points), MISSING), *codes)


def _require_sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        hint = "install it: pip install 'pointillist[ml]', or leave target out"
        raise InputError("target", Shown("no scikit-learn"), "needs scikit-learn to train models", hint) from None


def _classifiers(seed: int) -> Any:
    def make(kind: str, categorical: np.ndarray | None) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression

        if kind == "linear":
            return LogisticRegression(max_iter=300, tol=1e-3)
        return HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)

    return make


def _regressors(seed: int) -> Any:
    def make(kind: str, categorical: np.ndarray | None) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.linear_model import Ridge

        if kind == "linear":
            return Ridge(alpha=1.0)
        return HistGradientBoostingRegressor(categorical_features=categorical, random_state=seed)

    return make


def _matrix(features: list[Values], which: int, rows: np.ndarray, wide: bool) -> np.ndarray:
    """The features of some rows: codes and numbers for trees, indicators and standardised numbers for linear models."""
    columns: list[np.ndarray] = []
    for one in features:
        x = (one.real, one.synthetic)[which][rows]
        if isinstance(one, Numbers):
            columns.extend(_standardised(one, x) if wide else [x])
            continue
        common = np.argsort(-np.bincount(one.real, minlength=len(one.labels)), kind="stable")
        place = np.empty(len(one.labels), np.int64)
        place[common] = np.arange(len(common))
        codes = np.minimum(place[x], MOST_LABELS)
        if wide:
            columns.extend((codes == n).astype(float) for n in range(min(len(one.labels), MOST_WIDE)))
        else:
            columns.append(codes.astype(float))
    return np.stack(columns, axis=1)


def _standardised(column: Numbers, x: np.ndarray) -> list[np.ndarray]:
    """A number by the mean and the deviation of the real ones, and whether it is missing."""
    known = column.real[~np.isnan(column.real)]
    mean, std = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
    gone = np.isnan(x)
    return [np.where(gone, 0.0, (x - mean) / (std or 1.0)), gone.astype(float)]


def _scores(model: Any, x: dict[str, np.ndarray], y: dict[str, np.ndarray], trained_on: str) -> dict[str, float]:
    """The scores on the test rows of a model that is trained on the others."""
    from sklearn.base import is_classifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

    classes = np.unique(np.concatenate(list(y.values())))
    names = (["auc"] if len(classes) == 2 else []) + ["accuracy"] if is_classifier(model) else ["r2"]
    if is_classifier(model) and len(np.unique(y[trained_on])) < 2:
        return dict.fromkeys(names, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a score of a model that is nearly there is good enough
        model.fit(x[trained_on], y[trained_on])
    if not is_classifier(model):
        return {"r2": float(r2_score(y["test"], model.predict(x["test"])))}
    out = {"accuracy": float(accuracy_score(y["test"], model.predict(x["test"])))}
    if "auc" in names:
        both = len(np.unique(y["test"])) == 2
        chance = model.predict_proba(x["test"])[:, 1]
        out = {"auc": float(roc_auc_score(y["test"], chance)) if both else math.nan} | out
    return out


def _baseline(y: np.ndarray, labels: bool) -> dict[str, float]:
    return {"auc": 0.5, "accuracy": float(np.bincount(y).max() / len(y))} if labels else {"r2": 0.0}
