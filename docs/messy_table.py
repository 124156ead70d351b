"""A made-up table of customers, written as spreadsheets write them: the messy table of the page your-table.md."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path

import numpy as np

__all__ = ["messy_columns", "write_messy_table"]

REMARKS = (
    "called twice, wants to hear from us again in spring",
    "asked about the price of the large one; said it is too much",
    "no answer; try again in the evening, not before six o'clock",
)


def german(number: float) -> str:
    """A number with two decimals, as German spreadsheets write it."""
    return f"{number:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def messy_columns(rows: int = 400, seed: int = 0) -> dict[str, list[str]]:
    """The columns of the table as texts."""
    rng = np.random.default_rng(seed)
    born = [dt.date(1940, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 365 * 60, rows)]
    age = np.array([2024 - day.year for day in born])
    income = np.round(rng.lognormal(7.6, 0.4, rows) * np.where(age > 65, 0.7, 1), 2)
    debt = np.where(rng.random(rows) < 0.7, 0, np.round(rng.lognormal(7, 1.6, rows), 2))
    called = [dt.datetime(2024, 1, 2, 8) + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 400_000, rows)]
    happy = rng.choice(["low", "medium", "high", "NA"], rows, p=[0.2, 0.4, 0.3, 0.1])
    return {
        "row": [str(n + 1) for n in range(rows)],
        "customer_id": [str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(rows)],
        "email": [f"person{n}@example.com" for n in range(rows)],
        "country": ["DE"] * rows,
        "born": [day.strftime("%d.%m.%Y") for day in born],
        "postcode": [f"0{code}" for code in rng.choice([1067, 1069, 1097, 4103, 4105, 9111], rows)],
        "income": ["" if gap else german(x) for gap, x in zip(rng.random(rows) < 0.05, income, strict=True)],
        "debt": [german(x) for x in debt],
        "children": [str(n) for n in rng.choice([0, 1, 2, 3, -9], rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])],
        "satisfaction": list(happy),
        "called": [moment.strftime("%d.%m.%Y %H:%M") for moment in called],
        "visits": [str(n) for n in rng.poisson(12, rows)],
        "remark": [f"{rng.choice(REMARKS)} (Müller, {n})" for n in range(rows)],
    }


def write_messy_table(path: str | Path, rows: int = 400, seed: int = 0) -> None:
    """Write the table: semicolons, decimal commas, cp1252, gaps, dates, codes, free text."""
    columns = messy_columns(rows, seed)
    lines = [";".join(columns)]
    for cells in zip(*columns.values(), strict=True):
        lines.append(";".join(f'"{cell}"' if ";" in cell else cell for cell in cells))
    Path(path).write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
