"""Long comparisons that can go on where they stopped: finished runs in a CSV file, and choices from the environment."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Key = tuple[str, ...]
Values = tuple[float, ...]


def chosen(name: str, default: Iterable[object]) -> list[str]:
    """A narrower choice from an environment variable: items with ";" between them.

    Args:
        name: the variable.
        default: all items, for a variable that is not set.
    """
    return [item.strip() for item in os.environ.get(name, "").split(";") if item.strip()] or list(map(str, default))


class Finished:
    """Runs by their keys, read from a CSV file and appended to it.

    Args:
        path: the file; it need not be there yet.
        keys: the columns that name a run, as texts.
        values: the columns with its figures.
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path, self.keys, self.values = path, tuple(keys), tuple(values)
        self.found: dict[Key, Values] = {}
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    self.found[tuple(row[k] for k in keys)] = tuple(float(row[v]) for v in values)

    def add(self, key: Key, values: Values) -> None:
        """Keep a finished run, and print it.

        Args:
            key: its name.
            values: its figures.
        """
        new = not self.path.is_file()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow((*self.keys, *self.values))
            writer.writerow((*key, *(f"{value:.6g}" for value in values)))
        self.found[key] = values
        print(*key, *(f"{value:.4g}" for value in values), file=sys.stderr, flush=True)

    def make(self, wanted: Iterable[Key], run: Callable[[Key], Iterable[tuple[Key, Values]]]) -> None:
        """Make the runs that are missing.

        Args:
            wanted: the names of runs.
            run: makes one, and returns it with others that it leads to.
        """
        for key in wanted:
            if key not in self.found:
                for one, values in run(key):
                    self.add(one, values)
