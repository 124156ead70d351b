"""The figures of the campaigns: kept as JSON, and shown in the tables of ``docs/faults.md``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measuring.markdown import fill, table
from tests.faults.cases import VIOLATIONS, Figures

__all__ = ["FIGURES", "PAGE", "filled", "record", "rows_of"]

ROOT = Path(__file__).resolve().parents[2]
FIGURES = Path(__file__).with_name("figures.json")
PAGE = ROOT / "docs" / "faults.md"

LABELS = {
    "draws": "draws of noise, with those that were lost and drawn again under the same charge",
    "charges": "charges in the ledgers of the finished releases",
}
"""Longer names of some figures."""

CHECKED = {"fuzz": ("tracebacks", "crashes", "hangs")}
"""What counts as a violation, where it is not :data:`VIOLATIONS`."""


def rows_of(campaign: str, figures: Figures) -> list[tuple[str, int]]:
    """Every figure of a campaign with its name, the violations last; those that never happened are 0."""
    kinds = CHECKED.get(campaign, VIOLATIONS)
    done = sorted((name, count) for name, count in figures.counts.items() if name not in kinds)
    return [
        *((LABELS.get(name, name), count) for name, count in done),
        *((kind, figures.counts[kind]) for kind in kinds),
    ]


def record(campaign: str, wanted: int, seed: int, figures: Figures) -> None:
    """Keep the figures of a campaign, and write them into the page."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
    kept[campaign] = {"command": f"{campaign} {wanted} {seed}", "figures": rows_of(campaign, figures)}
    FIGURES.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def filled(text: str) -> str:
    """The text of the page with the recorded figures."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    return fill(text, PAGE.name, {campaign: _block(**found) for campaign, found in kept.items()})


def _block(command: str, figures: list[Any]) -> str:
    return f"`python -m tests.faults {command}`\n\n" + table(("", "count"), ((name, f"{n:,}") for name, n in figures))
