"""The ledger of a release, in groups: what was asked, how often, with how much noise, and at what price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from pointillist.privacy.curator import NUMBER_OF_ROWS
from pointillist.privacy.ledger import Entry
from pointillist.queries.base import Queries
from pointillist.queries.cells import Cells
from pointillist.queries.residuals import Residuals
from pointillist.release import Release

__all__ = ["Spent", "spending"]


@dataclass(frozen=True)
class Spent:
    """Charges for the same kind of questions.

    Attributes:
        name: what was asked.
        mechanism: how it was answered.
        entries: the charges.
        noise: the smallest and the largest standard deviation of the noise, as a number of rows on a cell; for choices,
            the scale of the scores.
    """

    name: str
    mechanism: str
    entries: tuple[Entry, ...]
    noise: tuple[float, float]

    @property
    def rho(self) -> float:
        """What they cost together."""
        return sum(entry.rho for entry in self.entries)


def spending(release: Release) -> list[Spent]:
    """The charges of a release by what they were for, in the order of the run.

    Args:
        release: the release.
    """
    found: dict[tuple[str, str], list[tuple[Entry, Queries | None]]] = {}
    ledger = release.description.privacy.ledger
    counted = [entry for entry in ledger if entry.label == NUMBER_OF_ROWS]
    others = [entry for entry in ledger if entry.label != NUMBER_OF_ROWS]
    for entry in counted:
        found.setdefault(("the number of rows", entry.mechanism), []).append((entry, None))
    for asked, one in zip_longest(_asked(release), others):
        if one is not None:
            name, queries = asked or (one.label, None)
            found.setdefault((name, one.mechanism), []).append((one, queries))
    return [
        Spent(name, mechanism, tuple(entry for entry, _ in charges), _noise(charges))
        for (name, mechanism), charges in found.items()
    ]


def _noise(charges: list[tuple[Entry, Queries | None]]) -> tuple[float, float]:
    """The smallest and the largest noise on a cell. Residuals are counts times a whole number, so that their noise is
    divided by it."""
    scales = [
        entry.scale / times
        for entry, queries in charges
        for times in ({part.times for part in queries.parts} if isinstance(queries, Residuals) else (1,))
    ]
    return min(scales), max(scales)


def _asked(release: Release) -> Iterator[tuple[str, Queries | None]]:
    """What was charged for, in order: to discover values and of fine columns first, then by the run, selections before
    measurements; and the queries of a measurement of the run."""
    for _ in release.description.discovered or ():
        yield "values of columns that nobody could list beforehand", None
    if release.refined is not None:
        yield from (("counts of fine columns, for their groups", None) for _ in release.refined.log.measurements)
    for entry in release.log.rounds:
        if entry.selected:
            yield from (("choices of what to measure", None) for _ in entry.picks)
        yield from ((_called(one.queries), one.queries) for one in entry.measurements)


def _called(queries: Queries) -> str:
    kind = getattr(queries.whole if isinstance(queries, Cells) else queries, "kind", "")
    columns = f"{len(queries.scope)} column{'s' if len(queries.scope) > 1 else ''}"
    words = {
        "marginal": f"counts of {columns}",
        "groups": f"counts of groups of {columns}",
        "tie": "how far two columns are from independent",
        "product": f"ranges or blocks of {columns}",
        "halfspaces": "halfspaces",
        "predicates": "conditions",
        "residuals": "residuals of many columns together",
    }
    return words.get(kind, kind or "queries")
