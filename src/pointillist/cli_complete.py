"""Words that the shell completes: names of methods and datasets, and files that can be read."""

from __future__ import annotations

from pathlib import Path

from pointillist.algorithms import METHODS
from pointillist.data import datasets
from pointillist.data.table import SUFFIXES

__all__ = ["data_names", "method_names"]


def method_names(incomplete: str) -> list[str]:
    """The methods whose names begin with what was typed.

    Args:
        incomplete: what was typed.
    """
    return [name for name in METHODS if name.startswith(incomplete)]


def data_names(incomplete: str) -> list[str]:
    """The datasets, tables and folders whose names begin with what was typed.

    Args:
        incomplete: what was typed.
    """
    named = [name for name, _ in datasets.describe() if name.startswith(incomplete)]
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    start = incomplete[: len(incomplete) - len("" if incomplete.endswith("/") else Path(incomplete).name)]
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    good = [one for one in inside if one.is_dir() or one.name.endswith(SUFFIXES)]
    found = [f"{start}{one.name}{'/' if one.is_dir() else ''}" for one in good]
    return [*named, *(one for one in found if one.startswith(incomplete))]
