"""``python -m tests.faults kills|faults|fuzz N SEED``: run a campaign and print its figures."""

from __future__ import annotations

import sys

from tests.faults.campaigns import faults, fuzz, kills
from tests.faults.cases import Lab

with Lab() as lab:
    {"kills": kills, "faults": faults, "fuzz": fuzz}[sys.argv[1]](
        lab, int(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:5]), say=lambda t: print(t, flush=True)
    )
    print(dict(lab.figures.counts))
    for v in lab.figures.violations[:400]:
        print(v)
