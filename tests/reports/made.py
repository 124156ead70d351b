"""Releases for tests of reports: hostile, fine, wide and seeded ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pointillist import (
    About,
    Categorical,
    Constant,
    Grid,
    Numeric,
    Release,
    Schema,
    Table,
    Temporal,
    Workload,
    synthesize,
)
from pointillist.families.records import RecordList, Records
from pointillist.framework import Log

SCRIPT = '<script>alert("x")</script>'
IMAGE = "\"><img src=x onerror=alert('y')>"
LONG = "a label that is far longer than any chart can show on a single line, " * 4

HOSTILE = Schema.of(
    (
        Categorical(SCRIPT, ("a", IMAGE, LONG, "</style>")),
        Numeric("age", (0, 18, 65, 120), integer=True, missing=True),
        Categorical("smoker", ("no", "yes")),
        Constant("country</title>", "DE"),
    ),
    ignore=("e-mail & name",),
    about={"age": About(description="<b>years</b> since birth", unit="years")},
)


def hostile_table(rows: int = 400) -> Table:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 4, rows)
    return Table(
        HOSTILE, (rng.choice(4, rows, p=[0.6, 0.3, 0.09, 0.01]), age, (rng.random(rows) < 0.2 + 0.2 * age) * 1)
    )


def hostile_release(**more: Any) -> Release:
    options: dict[str, Any] = {
        "method": "mwem",
        "settings": {"rounds": 3},
        "workload": "marginals:2",
        "group": "marginal",
    }
    return synthesize(hostile_table(), epsilon=1.0, **options | more)


def fine_frame(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, rows), unit="D")
    income = np.where(rng.random(rows) < 0.3, 0.0, np.round(rng.lognormal(7, 1, rows), 2).clip(0, 99_999))
    return pd.DataFrame({"born": born.date, "income": income, "place": rng.choice(30, rows)})


FINE = Schema(
    (
        Temporal("born", "date", ("1950-01-01", "2009-12-31")),
        Grid("income", (0.0, 100_000.0), step=0.01, points=(0.0,), scale="log"),
        Categorical("place", tuple(range(30))),
    )
)


def fine_release() -> Release:
    options: dict[str, Any] = {
        "method": "mwem",
        "settings": {"rounds": 2},
        "workload": "marginals:1",
        "group": "marginal",
    }
    return synthesize(fine_frame(), schema=FINE, epsilon=3.0, **options)


def wide_release(base: Release, columns: int = 42, rows: int = 300) -> Release:
    """A release of many columns that has measured nothing: its model is a list of records."""
    labels = ("no", "yes", LONG)
    schema = Schema(tuple(Categorical(f"question {n:02}", labels) for n in range(columns)))
    codes = np.random.default_rng(2).integers(0, 3, (rows, columns))
    workload = Workload.of(schema.domain, [(0, n) for n in range(1, columns)])  # type: ignore[arg-type]
    table = Table(schema, tuple(codes.T))
    about = replace(
        base.description,
        schema=schema.to_dict(),
        workload=workload.to_dict(),
        family=RecordList(schema.domain).to_dict(),
        rows=rows,
        matched=None,
        rules=None,
        privacy=replace(base.description.privacy, ledger=(), rho_spent=0.0),
    )
    return Release(table, RecordList(schema.domain), Records.even(codes), Log(about.facts, []), about)
