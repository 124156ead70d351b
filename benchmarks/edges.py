"""Edges that a run finds by itself, against bins from the true quantiles: the Wasserstein error of single columns.

Both go through the same run at the same epsilon: private edges with a part of it, while the oracle's edges are free.
The oracle has as many bins as the run found groups, and decodes them along the shape of their counts. Numbers that fill
more than a bin's share are bins of their own. So the noise of the counts is the same for both, and what differs are the
edges and what is known inside of the bins. The last columns have the oracle's bins with exact counts, which no private
method has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring.markdown import section
from measuring.raw import raw_acs, raw_adult

from pointillist import Categorical, Grid, Numeric, Schema, Table, synthesize

EPSILON = 1.0
SEEDS = tuple(range(6))


@dataclass(frozen=True)
class Case:
    """A table, and public facts about its columns.

    Attributes:
        name: what it is called.
        table: the rows.
        grids: the columns without edges.
        others: the other columns.
    """

    name: str
    table: Any
    grids: tuple[Grid, ...]
    others: tuple[Categorical, ...]


def cases() -> list[Case]:
    """ADULT, people in Pennsylvania, and a heavy tail that is made up."""
    import pandas as pd

    adult = raw_adult()
    sexes = Categorical("sex", ("Female", "Male"))
    numbers = (
        Grid("age", (0, 120), integer=True),
        Grid("hours-per-week", (0, 100), integer=True),
        Grid("capital-gain", (0, 100_000), integer=True, points=(0,)),
        Grid("fnlwgt", (0, 2_000_000), integer=True),
    )
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 50_000)
    heavy = np.clip(np.exp(rng.normal(8 + 0.5 * group, 1.5)), 1, 1e8).round(2)
    incomes = tuple(Grid(name, (0, 10_000_000), integer=True, scale="log", points=(0,)) for name in ("PINCP", "WAGP"))
    people = raw_acs(["PINCP", "WAGP", "SEX"]).clip(lower=0)
    return [
        Case("ADULT", adult[[*(one.name for one in numbers), "sex"]], numbers, (sexes,)),
        Case("ACS Pennsylvania", people, incomes, (Categorical("SEX", (1, 2)),)),
        Case(
            "log-normal",
            pd.DataFrame({"amount": heavy, "group": group}),
            (Grid("amount", (1, 100_000_000), step=0.01, scale="log"),),
            (Categorical("group", (0, 1, 2)),),
        ),
    ]


def oracle(values: np.ndarray, bins: int, integer: bool) -> list[float]:
    """Edges of at most as many bins with equally many rows, in which common numbers are bins of their own.

    Args:
        values: the true numbers.
        bins: the number of bins.
        integer: whether they are whole.
    """
    width = 1.0 if integer else 0.01
    found, counts = np.unique(values, return_counts=True)
    low, high = float(found[0]), float(found[-1]) + (0 if integer else width)
    edges, common = {low, high}, np.zeros(len(found), bool)
    while True:
        left = bins + 1 - len(edges)
        fresh = ~common & (counts > counts[~common].sum() / max(1, left))
        if not fresh.any() or left <= 2:
            break
        largest = int(np.flatnonzero(fresh)[np.argmax(counts[fresh])])
        common[largest] = True
        edges |= {max(low, float(found[largest])), min(high, float(found[largest]) + width)}
    rest = np.repeat(found[~common], counts[~common])
    for share in _inner(max(0, bins + 1 - len(edges))) if len(rest) else ():
        edges.add(float(np.quantile(rest, share, method="inverted_cdf")))
    return sorted(edges)


def _inner(count: int) -> np.ndarray:
    return np.linspace(0, 1, count + 2)[1:-1]


def wasserstein(a: np.ndarray, b: np.ndarray) -> float:
    """The mean distance between the numbers of two tables, in order."""
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(a, b))


def numbers_of(table: Any, schema: Schema, seed: int) -> tuple[Schema, Any]:
    """A run with seeded noise: the schema that it worked with, and its rows."""
    release = synthesize(
        table,
        schema=schema,
        epsilon=EPSILON,
        workload="marginals:2",
        insecure_noise_seed=seed,
        seed=seed,
        progress=False,
    )
    return release.schema, release.table.to_pandas(seed)


def measured(case: Case, seed: int) -> list[tuple[str, int, float, float, float]]:
    """For each column: its name, the number of groups, and the errors of private edges, of the oracle's under the same
    noise, and of the oracle's with exact counts."""
    schema, made = numbers_of(case.table, Schema((*case.grids, *case.others)), seed)
    true = {one.name: case.table[one.name].to_numpy(float) for one in case.grids}
    best = tuple(
        Numeric(one.name, tuple(oracle(true[one.name], schema.columns[n].size, one.integer)), integer=one.integer)
        for n, one in enumerate(case.grids)
    )
    _, other = numbers_of(case.table, Schema((*best, *case.others)), seed)
    exact = Table.encode(case.table[[one.name for one in best]], Schema(best)).to_pandas(seed)
    found = []
    for n, one in enumerate(case.grids):
        far = [wasserstein(true[one.name], table[one.name].to_numpy(float)) for table in (made, other, exact)]
        found.append((one.name, schema.columns[n].size, far[0], far[1], far[2]))
    return found


def run() -> str:
    """All columns, averaged over the seeds."""
    lines = []
    for case in cases():
        every = [measured(case, seed) for seed in SEEDS]
        for n, one in enumerate(case.grids):
            bins = np.mean([found[n][1] for found in every])
            private, noisy, exact = np.mean([found[n][2:] for found in every], axis=0)
            spread = float(case.table[one.name].std())
            figures = [f"{private / spread:.4f}", f"{noisy / spread:.4f}", f"{exact / spread:.4f}"]
            ratios = [f"{private / noisy:.2f}", f"{private / exact:.2f}"]
            lines.append((case.name, one.name, f"{len(case.table):,}", f"{bins:.0f}", *figures, *ratios))
    heads = ("table", "column", "rows", "groups", "private edges", "oracle, same noise", "oracle, exact counts",
             "private / oracle", "private / exact")  # fmt: skip
    note = (
        f"Wasserstein distance from the true column, in its standard deviations; epsilon = {EPSILON:g}, seeded noise, "
        f"mean of {len(SEEDS)} seeds. The oracle has as many bins, from the true quantiles. With the same noise, its "
        "counts come from a run at the same epsilon, which pays nothing for edges: this is the fair comparison."
    )
    return section("Private edges against oracle quantile bins", heads, lines, note)
