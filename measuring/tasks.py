"""Tasks on people of the American Community Survey 2024, of the kind of folktables: who, which columns, which label.

Each task has six to nine columns, fewer than in folktables. Ages, hours, incomes, minutes and ratios are fine ordered
grids, which are public; education is ordered. Rows with a missing value are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from measuring.raw import raw_acs
from pointillist import Categorical, Numeric, Schema, Table

STATES = {"39": "Ohio", "42": "Pennsylvania", "36": "New York"}


def _money() -> tuple[int, ...]:
    return tuple(np.unique(np.rint(np.geomspace(100, 2_000_000, 65)).astype(int)).tolist())


GRIDS = {
    "AGEP": tuple(range(101)),
    "WKHP": tuple(range(1, 101)),
    "JWMNP": tuple(range(1, 202, 2)),
    "POVPIP": tuple(range(0, 507, 5)),
}
CODES = {"SCHL": 24, "SEX": 2, "MAR": 5, "CIT": 5, "DIS": 2, "MIL": 4, "RAC1P": 9, "ESR": 6, "COW": 9, "JWTRNS": 12}
"""The number of the codes of a column, which begin at 1."""


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        columns: those of the table besides the label.
        label: the name of the label.
        is_positive: the label of each row.
        who: which rows are in it.
        grids: the edges of fine columns, where they differ from the usual ones.
        others: columns that only the label and the choice of rows need.
        missing: the same, for columns that may be missing.
    """

    columns: tuple[str, ...]
    label: str
    is_positive: Callable[[Any], Any]
    who: Callable[[Any], Any]
    grids: dict[str, tuple[int, ...]]
    others: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """The columns: what is public about them."""
        return Schema((*(self._column(name) for name in self.columns), Categorical(self.label, (False, True))))

    def _column(self, name: str) -> Numeric | Categorical:
        edges = self.grids.get(name) or GRIDS.get(name)
        if edges:
            return Numeric(name, edges, integer=True, merge=False)
        return Categorical(name, tuple(range(1, CODES[name] + 1)), ordered=name == "SCHL")

    def table(self, state: str) -> Table:
        """The people of a state.

        Args:
            state: its code.
        """
        raw = raw_acs([*self.columns, *self.others], state, list(self.missing))
        raw = raw[self.who(raw)].reset_index(drop=True)
        raw[self.label] = self.is_positive(raw).astype(bool)
        return Table.encode(raw[[*self.columns, self.label]], self.schema)


ADULTS = tuple(range(17, 101))
TASKS = {
    "income": Task(
        ("AGEP", "WKHP", "PINCP", "SCHL", "SEX", "MAR"),
        "high",
        lambda raw: raw["PINCP"] > 50_000,
        lambda raw: (raw["AGEP"] > 16) & (raw["PINCP"] > 100) & (raw["WKHP"] > 0),
        {"AGEP": ADULTS, "PINCP": _money()},
    ),
    "income, learned": Task(
        ("AGEP", "WKHP", "SCHL", "SEX", "MAR", "COW", "RAC1P"),
        "high",
        lambda raw: raw["PINCP"] > 50_000,
        lambda raw: (raw["AGEP"] > 16) & (raw["PINCP"] > 100) & (raw["WKHP"] > 0),
        {"AGEP": ADULTS},
        others=("PINCP",),
    ),
    "coverage": Task(
        ("AGEP", "PINCP", "SCHL", "SEX", "MAR", "CIT", "ESR", "DIS"),
        "public",
        lambda raw: raw["PUBCOV"] == 1,
        lambda raw: (raw["AGEP"] < 65) & (raw["PINCP"] <= 30_000),
        {"AGEP": tuple(range(15, 66)), "PINCP": tuple(range(-20_000, 30_501, 500))},
        others=("PUBCOV",),
    ),
    "employment": Task(
        ("AGEP", "SCHL", "SEX", "MAR", "CIT", "DIS", "MIL", "RAC1P"),
        "works",
        lambda raw: raw["ESR"] == 1,
        lambda raw: (raw["AGEP"] > 16) & (raw["AGEP"] < 90),
        {"AGEP": tuple(range(17, 91))},
        others=("ESR",),
    ),
    "mobility": Task(
        ("AGEP", "WKHP", "JWMNP", "PINCP", "SCHL", "SEX", "MAR"),
        "stayed",
        lambda raw: raw["MIGSP"].isna(),
        lambda raw: (raw["AGEP"] > 18) & (raw["AGEP"] < 35) & (raw["PINCP"] > 100),
        {"AGEP": tuple(range(19, 36)), "PINCP": _money()},
        missing=("MIGSP",),
    ),
    "travel time": Task(
        ("AGEP", "POVPIP", "WKHP", "SCHL", "SEX", "MAR", "JWTRNS"),
        "long",
        lambda raw: raw["JWMNP"] > 20,
        lambda raw: raw["AGEP"] > 16,
        {"AGEP": ADULTS},
        others=("JWMNP",),
    ),
}
