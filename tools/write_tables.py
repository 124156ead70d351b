"""Write the table of methods into README.md and docs/framework.md, from the registry.

python tools/write_tables.py            writes
python tools/write_tables.py --check    changes nothing; exits 1 if a table is out of date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pointillist.algorithms import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/framework.md")
COLUMNS = ("name", "family", "selection", "measured", "update", "output")
HEADINGS = ("method", "family", "selection", "measured", "update", "output")
BEGIN, END = "<!-- methods:begin -->", "<!-- methods:end -->"


def table() -> str:
    """The registry as a Markdown table, one row per method."""
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    for method in METHODS.values():
        name, *words = (str(getattr(method, column)).replace("|", "\\|") for column in COLUMNS)
        rows.append((f"`{name}`", *words))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def filled(text: str, page: str) -> str:
    """``text`` with the table between its two markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"{page} must have one {BEGIN} and, after it, one {END}")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check every page; the number of the exit."""
    parser = argparse.ArgumentParser(description="Write the table of methods into the pages that show it.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a table is out of date")
    check = parser.parse_args(arguments).check
    stale = 0
    for page in PAGES:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        new = filled(text, page)
        if new == text:
            continue
        if check:
            print(f"{page}: the table of methods is out of date; run python tools/write_tables.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{page}: wrote the table of methods")
    return stale


if __name__ == "__main__":
    sys.exit(main())
