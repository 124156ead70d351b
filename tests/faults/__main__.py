"""Run a campaign and print its figures: ``python -m tests.faults kills 1000 1``.

The exit code is 1 if anything was violated. A violation names its case, for example ``kills 1 158``; that case alone is
run again by ``python -m tests.faults kills 1 1 --first 158``.
"""

from __future__ import annotations

import argparse
import sys

from tests.faults.campaigns import faults, fuzz, kills
from tests.faults.cases import Lab
from tests.faults.recording import record, rows_of

CAMPAIGNS = {"kills": kills, "faults": faults, "fuzz": fuzz}


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Run a campaign of faults.")
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("number", type=int, help="processes to kill, faults, or fuzzed inputs of each kind")
    parser.add_argument("seed", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--record", action="store_true", help="keep the figures, and write them into docs/faults.md")
    parser.add_argument("--kind", action="append", help="fuzz only this kind; repeatable")
    chosen = parser.parse_args()
    more = {"kinds": chosen.kind} if chosen.kind else {}
    with Lab() as lab:
        say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
        CAMPAIGNS[chosen.campaign](lab, chosen.number, chosen.seed, chosen.first, say, **more)
    for name, count in rows_of(chosen.campaign, lab.figures):
        print(f"{count:>9,}  {name}")
    for text in lab.figures.violations:
        print(text)
    if chosen.record:
        record(chosen.campaign, chosen.number, chosen.seed, lab.figures)
    return int(bool(lab.figures.violations))


if __name__ == "__main__":
    sys.exit(main())
