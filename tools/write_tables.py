"""Write the tables of the pages from the registry: the methods, and the settings of each.

python tools/write_tables.py            writes
python tools/write_tables.py --check    changes nothing; exits with 1 if a table is out of date

A table stands between two comments, ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``. NAME is ``methods`` or
``settings METHOD``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds its own folder only

from measuring.markdown import fill, markers, table, write  # noqa: E402

from pointillist.algorithms import METHODS, Method  # noqa: E402
from pointillist.algorithms.settings import describe  # noqa: E402

__all__ = ["filled", "main", "markers", "methods_table", "settings_table", "tables"]

PAGES = ("README.md", "docs/framework.md", "docs/methods.md")
COLUMNS = ("name", "family", "strategy", "update", "output")
HEADINGS = ("method", "family", "strategy", "update", "output")


def tables() -> dict[str, str]:
    """Every table that a page may show, by name."""
    return {"methods": methods_table()} | {f"settings {m.name}": settings_table(m) for m in METHODS.values()}


def methods_table() -> str:
    """The registry, one row per method."""
    return _with_code(HEADINGS, ([str(getattr(m, column)) for column in COLUMNS] for m in METHODS.values()))


def settings_table(method: Method) -> str:
    """The settings of a method, one row each."""
    return _with_code(("setting", "type", "default", "meaning"), describe(method.settings))


def _with_code(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first cells are set as code."""
    return table(headings, ((f"`{first}`", *rest) for first, *rest in rows))


def filled(text: str, page: str) -> str:
    """The text of a page with the tables of the registry between their markers."""
    return fill(text, page, tables())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check every page; the exit code."""
    parser = argparse.ArgumentParser(description="Write the tables of the registry into the pages that show them.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table is out of date")
    check = parser.parse_args(arguments).check
    pages = {ROOT / page: filled((ROOT / page).read_text(encoding="utf-8"), page) for page in PAGES}
    return write(pages, "python tools/write_tables.py", check)


if __name__ == "__main__":
    sys.exit(main())
