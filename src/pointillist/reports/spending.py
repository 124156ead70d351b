"""The ledger of a release, in groups: what was asked, how often, with how much noise, and at what price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from pointillist.privacy.curator import NUMBER_OF_ROWS
from pointillist.privacy.ledger import Entry
from pointillist.queries.base import Queries
from pointillist.queries.cells import Cells
from pointillist.release import Release

__all__ = ["Spent", "spending"]


@dataclass(frozen=True)
class Spent:
    """Charges for the same kind of questions.

    Attributes:
        name: what was asked.
        mechanism: how it was answered.
        entries: the charges.
    """

    name: str
    mechanism: str
    entries: tuple[Entry, ...]

    @property
    def rho(self) -> float:
        """What they cost together."""
        return sum(entry.rho for entry in self.entries)

    @property
    def noise(self) -> tuple[float, float]:
        """The smallest and the largest scale of the noise."""
        scales = [entry.scale for entry in self.entries]
        return min(scales), max(scales)


def spending(release: Release) -> list[Spent]:
    """The charges of a release by what they were for, in the order of the run.

    Args:
        release: the release.
    """
    found: dict[tuple[str, str], list[Entry]] = {}
    ledger = release.description.privacy.ledger
    counted = [entry for entry in ledger if entry.label == NUMBER_OF_ROWS]
    others = [entry for entry in ledger if entry.label != NUMBER_OF_ROWS]
    for entry in counted:
        found.setdefault(("the number of rows", entry.mechanism), []).append(entry)
    for name, one in zip_longest(_asked(release), others):
        if one is not None:
            found.setdefault((one.label if name is None else name, one.mechanism), []).append(one)
    return [Spent(name, mechanism, tuple(entries)) for (name, mechanism), entries in found.items()]


def _asked(release: Release) -> Iterator[str]:
    """What was charged for, in order: to discover values and of fine columns first, then by the run, selections before
    measurements."""
    yield from ("values of columns that nobody could list beforehand" for _ in release.description.discovered or ())
    if release.refined is not None:
        yield from ("counts of fine columns, for their groups" for _ in release.refined.log.measurements)
    for entry in release.log.rounds:
        if entry.selected:
            yield from ("choices of what to measure" for _ in entry.picks)
        yield from (_called(one.queries) for one in entry.measurements)


def _called(queries: Queries) -> str:
    kind = getattr(queries.whole if isinstance(queries, Cells) else queries, "kind", "")
    columns = f"{len(queries.scope)} column{'s' if len(queries.scope) > 1 else ''}"
    words = {
        "marginal": f"counts of {columns}",
        "groups": f"counts of groups of {columns}",
        "tie": "how far two columns are from independent",
        "product": f"ranges of {columns}",
        "halfspaces": "halfspaces",
        "predicates": "conditions",
        "residuals": "residuals of many columns together",
    }
    return words.get(kind, kind or "queries")
