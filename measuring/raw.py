"""Real tables as people find them, with numbers instead of bins, as pandas frames."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pointillist.checks import check

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income>50K",
)  # fmt: skip
"""The columns of ADULT, whose files have no header."""


def raw_adult() -> Any:
    """ADULT, the training and the test part together: 48,842 rows."""
    import pandas as pd

    parts = [
        pd.read_csv(_file(f"adult/adult.{part}.gz"), header=None, names=ADULT, skipinitialspace=True, comment="|")
        for part in ("data", "test")
    ]
    both = pd.concat(parts, ignore_index=True)
    both["income>50K"] = both["income>50K"].str.rstrip(".")
    return both


def raw_acs(columns: list[str], state: str = "42", missing: list[str] | None = None) -> Any:
    """People of the American Community Survey 2024, without rows in which one of the columns is missing.

    Args:
        columns: the columns.
        state: the code of the state, by default Pennsylvania.
        missing: further columns, which may be missing.
    """
    import pandas as pd

    table = pd.read_parquet(_file(f"acs2024/p_{state}.parquet"), columns=[*columns, *(missing or [])])
    return table.dropna(subset=columns).astype(dict.fromkeys(columns, int)).reset_index(drop=True)


def _file(name: str) -> Path:
    path = Path(os.environ.get("POINTILLIST_DATA", ".")) / name
    hint = "set POINTILLIST_DATA to the folder of the datasets"
    check(path.is_file(), "POINTILLIST_DATA", str(path), "must be a folder with this file", hint)
    return path
