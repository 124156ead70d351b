"""The command line inside a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Result(NamedTuple):
    """How a command ended, and what it wrote."""

    code: Any
    out: str
    err: str


Run = Callable[..., Result]


def tree(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
