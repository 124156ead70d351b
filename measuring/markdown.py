"""Markdown tables, and the files and pages that show them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKER = re.compile(r"<!-- ([^\n]+?):(begin|end) -->")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = "", level: int = 1) -> str:
    """A heading, a table and a note below it."""
    return "\n\n".join(part for part in (f"{'#' * level} {title}", table(heads, rows), note) if part) + "\n"


def markers(name: str) -> tuple[str, str]:
    """The comments around the block ``name`` of a page."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def fill(text: str, page: str, blocks: Mapping[str, str]) -> str:
    """The text of a page with every block written between its two markers."""
    found = MARKER.findall(text)
    names = [name for name, _ in found[::2]]
    if not names or found != [(name, word) for name in names for word in ("begin", "end")]:
        raise SystemExit(f"{page}: each table must stand between a begin marker and an end marker")
    if len(set(names)) < len(names) or not set(names) <= blocks.keys():
        raise SystemExit(f"{page}: a table must appear once and be one of: {', '.join(blocks)}")
    for name in names:
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{blocks[name]}\n{end}{rest.partition(end)[2]}"
    return text


def write(files: Mapping[Path, str], command: str, check: bool) -> int:
    """Write the files that have changed, or with ``check`` only report them; the exit code."""
    stale = 0
    for path, new in files.items():
        if path.is_file() and path.read_text(encoding="utf-8") == new:
            continue
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if check:
            print(f"{shown}: a table is out of date; run {command}", file=sys.stderr)
            stale = 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{shown}: wrote the tables")
    return stale
