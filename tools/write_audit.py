"""Audit two runs with the real command, and write what was found into docs/audit.md: ``python tools/write_audit.py``.

It takes some minutes. ``--again`` only writes the page from the figures of the last time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from measuring.markdown import fill, table  # noqa: E402

FIGURES = ROOT / "benchmarks" / "results" / "audit.json"
PAGE = ROOT / "docs" / "audit.md"
COLUMNS = 4
COMMON = ("--workload", "marginals:1", "--rows", "100")
AUDITS = {
    "measurement": ("--method", "one-shot", "--epsilon", "3", *COMMON, "--runs", "20000"),
    "whole": ("--method", "mwem", "--epsilon", "6", *COMMON, "--rounds", "2", "--whole", "--runs", "12000"),
}
"""Options of the command: a single Gaussian measurement, and the whole of a method that selects."""
GOALS = {"measurement": ("one measurement", 0.9), "whole": ("the whole run", 0.6)}
"""The part of each audit whose bound must reach this share of the claim."""
HEADS = ("part", "runs on each table", "epsilon", "at least", "mu", "at least", "reached")


def schema_text() -> str:
    """A schema of a few columns with two values each."""
    parts = ["format = 1", "reviewed = true"]
    for n in range(COLUMNS):
        parts.append(f'[[column]]\nname = "c{n}"\ntype = "categorical"\nvalues = ["no", "yes"]')
    return "\n".join(parts) + "\n"


def audit(options: tuple[str, ...], processes: int | None = None) -> dict[str, Any]:
    """What the command finds, as it prints it in JSON.

    Args:
        options: of the command, after the schema.
        processes: parallel processes; by default one for each core.
    """
    more = () if processes is None else ("--processes", str(processes))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "yes-no.toml"
        path.write_text(schema_text(), encoding="utf-8")
        script = [sys.executable, "-c", "from pointillist.cli import main; main()", "audit", str(path)]
        done = subprocess.run([*script, *options, *more, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the audit failed with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def reached(name: str, found: dict[str, Any]) -> float:
    """The share of the claim that an audit reached, for the part that its goal is about."""
    return float(next(one["reached"] for one in found["findings"] if one["part"] == GOALS[name][0]))


def filled(text: str) -> str:
    """The text of the page with the recorded figures."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    return fill(text, PAGE.name, {name: _block(name, found) for name, found in kept.items()})


def _block(name: str, found: dict[str, Any]) -> str:
    rows = [
        (
            one["part"],
            f"{one['runs']:,}",
            f"{one['claimed_epsilon']:.4g}",
            f"{one['epsilon']:.4g}",
            *(("", "") if one["mu"] is None else (f"{one['claimed_mu']:.4g}", f"{one['mu']:.4g}")),
            f"{one['reached']:.0%}",
        )
        for one in found["findings"]
    ]
    verdict = "A violation was found." if found["violation"] else "No violation was found."
    return f"`pointillist audit yes-no.toml {' '.join(AUDITS[name])}`\n\n{table(HEADS, rows)}\n\n{verdict}"


def main() -> int:
    """Make the audits, keep their figures and write the page; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="only write the page")
    parser.add_argument("--only", choices=AUDITS, help="make only this audit")
    chosen = parser.parse_args()
    if not chosen.again:
        names = AUDITS if chosen.only is None else [chosen.only]
        kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
        kept |= {name: audit(AUDITS[name]) for name in names}
        FIGURES.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    return int(any(found["violation"] or reached(name, found) <= GOALS[name][1] for name, found in kept.items()))


if __name__ == "__main__":
    sys.exit(main())
