"""Write the tables of the pages from the registry: the methods, and the hyper-parameters of each.

python tools/write_tables.py            writes
python tools/write_tables.py --check    changes nothing; exits 1 if a table is out of date

A table stands between two comments, ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``. NAME is ``methods`` or
``parameters METHOD``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pointillist.algorithms import METHODS, Method
from pointillist.algorithms.parameters import describe

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/framework.md", "docs/methods.md")
COLUMNS = ("name", "family", "selection", "measured", "update", "output")
HEADINGS = ("method", "family", "selection", "measured", "update", "output")
MARKER = re.compile(r"<!-- ([^\n]+?):(begin|end) -->")


def markers(name: str) -> tuple[str, str]:
    """The comments around the table ``name``."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def tables() -> dict[str, str]:
    """Every table that a page may show, by name."""
    return {"methods": methods_table()} | {f"parameters {m.name}": parameters_table(m) for m in METHODS.values()}


def methods_table() -> str:
    """The registry, one row per method."""
    return _markdown(HEADINGS, ([str(getattr(m, column)) for column in COLUMNS] for m in METHODS.values()))


def parameters_table(method: Method) -> str:
    """The hyper-parameters of a method, one row each."""
    return _markdown(("parameter", "type", "default", "meaning"), describe(method.parameters))


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first cell of each row is set as code."""
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        first, *rest = (cell.replace("|", "\\|") for cell in row)
        lines.append([f"`{first}`", *rest])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, page: str, known: Mapping[str, str] | None = None) -> str:
    """``text`` with every table between its two markers; ``known`` are those of the registry unless given."""
    known = tables() if known is None else known
    found = MARKER.findall(text)
    names = [name for name, _ in found[::2]]
    if not names or found != [(name, word) for name in names for word in ("begin", "end")]:
        raise SystemExit(f"{page}: each table must stand between one begin and, after it, one end")
    if len(set(names)) < len(names) or not set(names) <= known.keys():
        raise SystemExit(f"{page}: every table must be there once and be one of: {', '.join(known)}")
    for name in names:
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{known[name]}\n{end}{rest.partition(end)[2]}"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check every page; the number of the exit."""
    parser = argparse.ArgumentParser(description="Write the tables of the registry into the pages that show them.")
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
            print(f"{page}: a table is out of date; run python tools/write_tables.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{page}: wrote the tables")
    return stale


if __name__ == "__main__":
    sys.exit(main())
