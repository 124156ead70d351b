"""What fine columns and rules cost where they are not needed: the error of pairs of columns, with and without them.

Fine columns are compared with good fixed bins, on the pairs of these bins, and on tenths of the true numbers, which
neither was given. The rows of both are decoded to numbers and counted. In the fixed bins those are at home, while the
run has to find others by itself, for a part of the budget. Rules that all rows obey anyway are compared with none, on
the same model. Two tables have no pair of columns that are equal in most rows; the third one has, and shows what is
lost then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring.markdown import section
from measuring.raw import raw_acs, raw_adult

from pointillist import Categorical, Grid, Numeric, Rule, Schema, Table, synthesize
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions
from pointillist.queries.texts import parse_workload

EPSILON = 1.0
SEEDS = (0, 1)


@dataclass(frozen=True)
class Case:
    """A table with good bins, the same numbers without bins, and rules that its rows obey.

    Attributes:
        name: what it is called.
        table: the rows.
        bins: the columns with fixed bins, then the other columns.
        grids: for some columns their public bounds alone.
        rules: rules that hold.
    """

    name: str
    table: Any
    bins: Schema
    grids: tuple[Grid, ...]
    rules: tuple[Rule, ...]

    @property
    def fine(self) -> Schema:
        """The schema without fixed bins."""
        known = {one.name: one for one in self.grids}
        return Schema(tuple(known.get(column.name, column) for column in self.bins.columns))


def adult() -> Case:
    """ADULT: ages, hours, gains and losses, and eight other columns."""
    table = raw_adult()
    couples = 'marital-status` in ["Married-civ-spouse", "Married-AF-spouse"]'
    obeys = ~table["relationship"].isin(["Husband", "Wife"]) | table["marital-status"].str.contains("civ|AF")
    obeys &= (table["relationship"] != "Husband") | (table["sex"] == "Male")
    obeys &= (table["relationship"] != "Wife") | (table["sex"] == "Female")
    table = table[obeys].reset_index(drop=True)
    numbers = (
        Numeric("age", (0, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 75, 120), integer=True),
        Numeric("hours-per-week", (0, 20, 30, 35, 40, 41, 45, 50, 51, 60, 100), integer=True),
        Numeric("capital-gain", (0, 1, 3000, 5000, 10_000, 20_000, 100_000), integer=True),
        Numeric("capital-loss", (0, 1, 1500, 1900, 2500, 5000), integer=True),
    )
    names = ("education", "education-num", "workclass", "marital-status", "relationship", "race", "sex", "income>50K")
    pairs = table[["education", "education-num"]].drop_duplicates()
    mapping = {str(a): str(b) for a, b in pairs.itertuples(index=False)}
    rules = (
        Rule(determines=("education", "education-num"), mapping=mapping),
        Rule(if_='relationship in ["Husband", "Wife"]', then=f"`{couples}"),
        Rule(if_='relationship == "Husband"', then='sex == "Male"'),
        Rule(if_='relationship == "Wife"', then='sex == "Female"'),
    )
    return _case("ADULT", table, numbers, names, rules)


def acs(wages: bool = False) -> Case:
    """People in Pennsylvania who work: ages, hours and incomes, and three other columns.

    Args:
        wages: also their wages, which are the whole income for most of them. How two columns of numbers are equal is
            lost where their groups differ, so that fixed bins at the same edges are far better.
    """
    table = raw_acs(["AGEP", "WKHP", "PINCP", "WAGP", "SEX", "SCHL", "ESR"])
    table["PINCP"] = table["PINCP"].clip(lower=0)
    degree = (table["SCHL"] < 21) | (table["AGEP"] >= 18)
    table = table[degree & (table["WAGP"] <= table["PINCP"])].reset_index(drop=True)
    money = (0, 1, 10_000, 20_000, 30_000, 40_000, 50_000, 65_000, 80_000, 100_000, 150_000, 250_000, 10_000_000)
    numbers = (
        Numeric("AGEP", (0, 18, 21, 25, 30, 35, 40, 45, 50, 55, 60, 65, 75, 120), integer=True),
        Numeric("WKHP", (0, 20, 30, 35, 40, 41, 45, 50, 51, 60, 100), integer=True),
        Numeric("PINCP", money, integer=True),
        Numeric("WAGP", money, integer=True),
    )
    rules = (Rule(if_="SCHL >= 21", then="AGEP >= 18"), Rule(always="WAGP <= PINCP"))
    name = "ACS Pennsylvania, wages" if wages else "ACS Pennsylvania"
    return _case(name, table, numbers[: 3 + wages], ("SEX", "SCHL", "ESR"), rules[: 1 + wages])


def _case(name: str, table: Any, numbers: tuple[Numeric, ...], names: tuple[str, ...], rules: tuple[Rule, ...]) -> Case:
    others = tuple(Categorical(one, tuple(sorted(set(table[one].tolist())))) for one in names)
    grids = tuple(
        Grid(one.name, (one.edges[0], one.edges[-1]), integer=True, scale="log" if one.edges[-1] > 1e6 else "linear",
             points=(0,) if one.edges[1] == 1 else ())
        for one in numbers
    )  # fmt: skip
    kept = table[[*(one.name for one in numbers), *names]]
    return Case(name, kept, Schema((*numbers, *others)), grids, rules)


def neutral(case: Case) -> Schema:
    """Bins that nobody was given: tenths of the true numbers."""
    names = {one.name for one in case.grids}
    columns = []
    for column in case.bins.columns:
        if column.name in names:
            values = case.table[column.name].to_numpy(float)
            inner = np.unique(np.quantile(values, np.linspace(0, 1, 11)[1:-1], method="inverted_cdf")) + 1
            column = Numeric(column.name, (0, *inner[inner < 10_000_000].tolist(), 10_000_001), integer=True)
        columns.append(column)
    return Schema(tuple(columns))


def errors(case: Case, schema: Schema, seed: int) -> tuple[float, float]:
    """The mean total variation distance of all pairs of columns between the rows of a run and the real ones: in the
    fixed bins, and in tenths of the true numbers."""
    release = synthesize(
        case.table, schema=schema, epsilon=EPSILON, workload="marginals:2", insecure_noise_seed=seed, seed=seed,
        progress=False,
    )  # fmt: skip
    made = release.table.to_pandas(seed)
    return _tvd(case.table, made, case.bins), _tvd(case.table, made, neutral(case))


def _tvd(real: Any, made: Any, bins: Schema) -> float:
    workload = parse_workload("marginals:2", bins, len(real))
    truth, rows = (fractions(Table.encode(one, bins), workload) for one in (real, made))
    return compare(workload, truth, rows).tvd


def run() -> str:
    """Both tables, averaged over the seeds."""
    lines = []
    for case in (adult(), acs(), acs(wages=True)):
        ruled = Schema(case.bins.columns, rules=case.rules)
        schemas = {"fixed bins": case.bins, "fine columns": case.fine, "fixed bins, rules": ruled}
        found = {
            name: np.mean([errors(case, schema, seed) for seed in SEEDS], axis=0) for name, schema in schemas.items()
        }
        for name, error in found.items():
            more = error / found["fixed bins"] - 1
            figures = [cell for pair in zip(error, more, strict=True) for cell in (f"{pair[0]:.4f}", f"{pair[1]:+.1%}")]
            lines.append((case.name, f"{len(case.table):,}", name, *figures))
    note = (
        f"tvd of the rows of a release, over all pairs of columns: in the fixed bins, and in tenths of the true "
        f"numbers, which neither was given. epsilon = {EPSILON:g}, seeded noise, mean of {len(SEEDS)} seeds."
    )
    heads = (
        "table",
        "rows",
        "schema",
        "tvd in fixed bins",
        "against fixed bins",
        "tvd in tenths",
        "against fixed bins",
    )
    return section("What fine columns and rules cost where they are not needed", heads, lines, note)
