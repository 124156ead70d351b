"""A column with 5,000 values next to three small ones: what a release keeps of it, against independent columns.

The table is made up: postcodes with Zipf-like sizes, and an income that depends on their first digit, on two digits
and on the postcode itself. Public shares are the true sizes, each off by a log-normal factor of 0.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring.markdown import section

from pointillist import Categorical, Release, Schema, Table, synthesize
from pointillist.data.columns import Merged
from pointillist.evaluation.report import fractions
from pointillist.queries.texts import parse_workload

EPSILON = 1.0
VALUES = 5_000
ROWS = (20_000, 200_000)
WIDTHS = (8, 10, 3)
"""The numbers of values of the other columns."""


def postcodes() -> tuple[str, ...]:
    """Five digits each, in increasing order."""
    drawn = np.random.default_rng(7).choice(100_000, VALUES, replace=False)
    return tuple(f"{code:05d}" for code in np.sort(drawn))


def made_up(rows: int, seed: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The codes of the four columns, and public shares of the postcodes.

    Args:
        rows: the number of rows.
        seed: that of the rows; the postcodes, their sizes and public shares are always the same.
    """
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(3)
    names = postcodes()
    sizes = fixed.permutation(1 / np.arange(1, VALUES + 1))
    sizes /= sizes.sum()
    place = rng.choice(VALUES, rows, p=sizes)
    one, two = ([int(name[:k]) for name in names] for k in (1, 2))
    wealth = fixed.normal(0, 1, 10)[one] + fixed.normal(0, 0.7, 100)[two] + fixed.normal(0, 0.5, VALUES)
    own = wealth[place] + rng.normal(0, 1, rows)
    income = np.digitize(own, [-2, -1, -0.5, 0, 0.5, 1, 2])
    age = np.clip((rng.normal(5, 2.3, rows) - 0.3 * own).astype(int), 0, 9)
    cars = (rng.random(rows) < 1 / (1 + np.exp(-own))).astype(int) + (rng.random(rows) < 0.3)
    return (place, income, age, cars), sizes * np.exp(fixed.normal(0, 0.3, VALUES))


def schema_of(**known: Any) -> Schema:
    """The four columns.

    Args:
        known: what is known about the postcodes, as arguments of the column.
    """
    others = [
        Categorical(name, tuple(range(size))) for name, size in zip(("income", "age", "cars"), WIDTHS, strict=True)
    ]
    return Schema((Categorical("postcode", postcodes(), **known), *others))


def pairs(schema: Schema, rows: int, answers: np.ndarray) -> list[np.ndarray]:
    """Answers to all pairs of columns as matrices over the values, merged ones spread by their shares.

    Args:
        schema: the columns, merged or not.
        rows: the number of rows.
        answers: the answers to all two-way marginals of the schema.
    """
    queries = parse_workload("marginals:2", schema, rows).queries
    found = []
    for part, one in zip(np.split(answers, np.cumsum([q.size for q in queries])[:-1]), queries, strict=True):
        first, second = (schema.columns[n] for n in one.scope)
        found.append(_spread(second, _spread(first, part.reshape(first.size, second.size)).T).T)
    return found


def _spread(column: Any, matrix: np.ndarray) -> np.ndarray:
    """The lines of a matrix of groups as lines of values."""
    if not isinstance(column, Merged):
        return matrix
    return np.asarray(matrix[column.lookup] * np.array(column.shares)[:, None])


def independent(codes: tuple[np.ndarray, ...], rho: float | None) -> list[np.ndarray]:
    """The pairs of independent columns: of the true ones, or of noisy ones at the same budget.

    Args:
        codes: the columns.
        rho: the budget, of which every column gets the same; None for the true columns.
    """
    sizes, rows = (VALUES, *WIDTHS), len(codes[0])
    ones = [np.bincount(one, minlength=size).astype(float) for one, size in zip(codes, sizes, strict=True)]
    if rho is not None:
        rng = np.random.default_rng(0)
        sigma = 1 / np.sqrt(rho / len(ones))  # a replaced row moves two counts by one: sqrt(2) / sqrt(2 rho)
        ones = [_possible(one + rng.normal(0, sigma, len(one)), rows) for one in ones]
    every = [(a, b) for a in range(len(ones)) for b in range(a + 1, len(ones))]
    return [np.outer(ones[a], ones[b]) / rows**2 for a, b in every]


def _possible(counts: np.ndarray, total: float) -> np.ndarray:
    """The nearest counts that are not negative and have the right sum."""
    falling = np.sort(counts)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - over[np.flatnonzero(falling > over)[-1]], 0.0))


def errors(found: list[np.ndarray], truth: list[np.ndarray]) -> tuple[float, float]:
    """The mean total variation distance of all pairs, and of those with the postcode, which come first."""
    far = [float(np.abs(a - b).sum() / 2) for a, b in zip(found, truth, strict=True)]
    return float(np.mean(far)), float(np.mean(far[: len(WIDTHS)]))


def release_of(table: Table, seed: int) -> Release:
    """A release of all pairs with seeded noise."""
    return synthesize(
        table, epsilon=EPSILON, workload="marginals:2", insecure_noise_seed=seed, seed=seed, progress=False
    )


def measured(rows: int, seed: int) -> dict[str, tuple[float, float]]:
    """Errors by what is known about the postcodes, and those of independent columns.

    Args:
        rows: the number of rows.
        seed: that of the table and of the noise.
    """
    codes, shares = made_up(rows, seed)
    kinds: dict[str, dict[str, Any]] = {
        "a list": {},
        "with prefixes": {"prefixes": (1, 2, 3)},
        "with public shares": {"shares": tuple(shares)},
        "with both": {"prefixes": (1, 2, 3), "shares": tuple(shares)},
    }
    whole = schema_of(merge=False)
    truth = pairs(whole, rows, fractions(Table(whole, codes), parse_workload("marginals:2", whole, rows)))
    found = {"independent, true columns": errors(independent(codes, None), truth)}
    for name, known in kinds.items():
        release = release_of(Table(schema_of(**known), codes), seed)
        answers = release.answers(parse_workload("marginals:2", release.schema, rows))
        found[name] = errors(pairs(release.schema, rows, answers), truth)
        if name == "a list":
            rho = release.description.privacy.rho_spent
            found["independent, private"] = errors(independent(codes, rho), truth)
    return found


def run() -> str:
    """The table, for two numbers of rows, averaged over two seeds."""
    lines = []
    for rows in ROWS:
        every = [measured(rows, seed) for seed in (0, 1)]
        mean = {name: np.mean([one[name] for one in every], axis=0) for name in every[0]}
        bases = [mean[f"independent, {one}"] for one in ("private", "true columns")]
        for name, error in mean.items():
            ratios = [f"{error[0] / base[0]:.2f}" for base in bases] + [f"{error[1] / bases[0][1]:.2f}"]
            lines.append((f"{rows:,}", name, f"{error[0]:.4f}", f"{error[1]:.4f}", *ratios))
    heads = ("rows", "postcodes", "tvd", "of pairs with the postcode", "tvd / private independent",
             "tvd / true independent", "with the postcode / private independent")  # fmt: skip
    note = (
        f"epsilon = {EPSILON:g}, seeded noise, two seeds; tvd of all pairs of four columns, over single postcodes: the "
        "model's answers, spread inside groups by their shares. Private independent columns spend the same budget on "
        "the columns one by one; true ones are not private."
    )
    return section("A column with 5,000 values", heads, lines, note)
