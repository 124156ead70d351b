"""Audit some runs with the real command, and write what was found into docs/audit.md: ``python tools/write_audit.py``.

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
    "discovery": (
        *("--method", "one-shot", "--epsilon", "1", "--delta", "0.01"),
        *("--workload", "marginals:1", "--rows", "200", "--runs", "100000"),
    ),
}
"""Options of the command: a single Gaussian measurement, the whole of a method that selects, and the discovery of
values with a delta that is large enough to be seen."""
SCHEMAS = {"measurement": "yes-no.toml", "whole": "yes-no.toml", "discovery": "towns.toml"}
"""The schema of each audit."""
GOALS = {
    "measurement": {"one measurement": 0.9},
    "whole": {"the whole run": 0.6},
    "discovery": {"one discovery": 0.85, "a value of one unit": 0.3},
}
"""The parts of each audit whose bounds must reach these shares of the claims."""
HEADS = ("part", "runs on each table", "epsilon", "at least", "mu", "at least", "reached")
OF_DELTA = ("delta", "at least")
"""Further heads for audits of a discovery."""


def schema_text(name: str) -> str:
    """A schema of a few columns with two values each, and for an audit of a discovery one with values to discover.

    Args:
        name: the name of its file.
    """
    parts = ["format = 1", "reviewed = true"]
    if name == SCHEMAS["discovery"]:
        parts.append('[[column]]\nname = "town"\ntype = "categorical"\nvalues = "discover"')
    for n in range(COLUMNS):
        parts.append(f'[[column]]\nname = "c{n}"\ntype = "categorical"\nvalues = ["no", "yes"]')
    return "\n".join(parts) + "\n"


def audit(name: str) -> dict[str, Any]:
    """What the command finds, as it prints it in JSON.

    Args:
        name: the audit.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SCHEMAS[name]
        path.write_text(schema_text(path.name), encoding="utf-8")
        script = [sys.executable, "-c", "from pointillist.cli import main; main()", "audit", str(path)]
        done = subprocess.run([*script, *AUDITS[name], "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the audit failed with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def missed(name: str, found: dict[str, Any]) -> list[str]:
    """The parts of an audit that miss their goals."""
    reached = {one["part"]: one["reached"] for one in found["findings"]}
    return [part for part, least in GOALS[name].items() if not reached[part] > least]


def filled(text: str) -> str:
    """The text of the page with the recorded figures."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    return fill(text, PAGE.name, {name: _block(name, found) for name, found in kept.items()})


def _block(name: str, found: dict[str, Any]) -> str:
    figures = ["epsilon", "mu", *["delta"] * (name == "discovery")]
    rows = [
        (
            one["part"],
            f"{one['runs']:,}",
            *(number for figure in figures for number in _pair(one, figure)),
            f"{one['reached']:.0%}",
        )
        for one in found["findings"]
    ]
    heads = (*HEADS[:-1], *OF_DELTA, HEADS[-1]) if name == "discovery" else HEADS
    verdict = "A violation was found." if found["violation"] else "No violation was found."
    return f"`pointillist audit {SCHEMAS[name]} {' '.join(AUDITS[name])}`\n\n{table(heads, rows)}\n\n{verdict}"


def _pair(finding: dict[str, Any], figure: str) -> tuple[str, str]:
    """The claim and the bound of a finding, which are empty where it has none."""
    if finding[figure] is None:
        return "", ""
    return f"{finding[f'claimed_{figure}']:.4g}", f"{finding[figure]:.4g}"


def main() -> int:
    """Make the audits, keep their figures and write the page; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="only write the page")
    parser.add_argument("--only", choices=AUDITS, help="make only this audit")
    chosen = parser.parse_args()
    if not chosen.again:
        names = AUDITS if chosen.only is None else [chosen.only]
        kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
        kept |= {name: audit(name) for name in names}
        FIGURES.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    return int(any(found["violation"] or missed(name, found) for name, found in kept.items()))


if __name__ == "__main__":
    sys.exit(main())
