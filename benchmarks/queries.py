"""Asking for the queries one cares about: prefixes of fine columns, and halfspaces, on an income task of the ACS.

People at work of one state, as in the income task of folktables: ages, hours and incomes as fine ordered grids,
education in order, sex, marital status, and whether the income is above 50,000 dollars. `auto` is asked for the
queries themselves and for marginals; columns that are kept exactly and made independent stand for what needs no
dependency at all. Errors are those of the model's answers, in fractions of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring.markdown import section
from measuring.raw import raw_acs

from pointillist import Categorical, Numeric, Schema, Table, synthesize
from pointillist.evaluation.accuracy import compare
from pointillist.evaluation.report import fractions, independent_columns
from pointillist.queries.texts import parse_workload

STATE, NAME = "39", "Ohio"
EPSILONS = (0.23, 1.0)
SEED = 0
WANTED = ("prefixes:2", "halfspaces:200")
OTHER = "marginals:2"


def people(state: str = STATE) -> Table:
    """The table, encoded.

    Args:
        state: the code of the state.
    """
    raw = raw_acs(["AGEP", "WKHP", "PINCP", "SCHL", "SEX", "MAR"], state)
    raw = raw[(raw["AGEP"] > 16) & (raw["PINCP"] > 100) & (raw["WKHP"] > 0)].reset_index(drop=True)
    raw["high"] = raw["PINCP"] > 50_000
    return Table.encode(raw, schema())


def schema() -> Schema:
    """Fine ordered grids: what is public about these columns."""
    money = tuple(np.unique(np.rint(np.geomspace(100, 2_000_000, 65)).astype(int)).tolist())
    return Schema(
        (
            Numeric("AGEP", tuple(range(17, 101)), integer=True, merge=False),
            Numeric("WKHP", tuple(range(1, 101)), integer=True, merge=False),
            Numeric("PINCP", money, integer=True, merge=False),
            Categorical("SCHL", tuple(range(1, 25)), ordered=True),
            Categorical("SEX", (1, 2)),
            Categorical("MAR", (1, 2, 3, 4, 5)),
            Categorical("high", (False, True)),
        )
    )


def rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """One row of the result for every epsilon, kind of queries and way to ask.

    Args:
        table: the private table.
    """
    wanted = {text: parse_workload(text, table.schema) for text in WANTED}
    truth = {text: fractions(table, workload) for text, workload in wanted.items()}
    alone = {text: independent_columns(table, workload) for text, workload in wanted.items()}
    for epsilon in EPSILONS:
        for asked in (*WANTED, OTHER):
            started = time.perf_counter()
            release = synthesize(
                table, epsilon=epsilon, workload=asked, seed=SEED, insecure_noise_seed=SEED, progress=False
            )
            seconds = time.perf_counter() - started
            for text in WANTED if asked == OTHER else (asked,):
                found = compare(wanted[text], truth[text], release.answers(wanted[text]))
                yield epsilon, text, f"auto, {asked}", f"{found.mean:.5f}", f"{found.max:.5f}", f"{seconds:.0f}"
        for text, errors in alone.items():
            yield epsilon, text, "independent columns", f"{errors.mean:.5f}", f"{errors.max:.5f}", ""


def run() -> str:
    """The section."""
    table = people()
    heads = ("epsilon", "queries", "asked for", "mean error", "max error", "seconds")
    ordered = sorted(rows(table), key=lambda row: (WANTED.index(row[1]), row[0]))
    note = f"{len(table):,} people of {NAME}, {len(table.domain)} columns, one seed of noise."
    return section("Prefixes and halfspaces", heads, ordered, note)
