"""What a workload asks, kind by kind: its size, what one person can change in it, and the memory of its counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pointillist.data.neighbours import Relation
from pointillist.queries.base import Queries, Sensitivity, is_direct
from pointillist.queries.workload import Workload

__all__ = ["Explained", "explain"]


@dataclass(frozen=True)
class Explained:
    """The queries of one kind.

    Attributes:
        kind: its name.
        groups: the number of groups of queries, each of them asked together.
        queries: the number of single queries.
        attributes: the smallest and the largest number of attributes of a group.
        sensitivities: for each relation the largest of all groups.
        direct: the number of groups whose queries are counted record by record.
        memory: the bytes of the marginals and answers that are held when all are counted.
    """

    kind: str
    groups: int
    queries: int
    attributes: tuple[int, int]
    sensitivities: dict[Relation, Sensitivity]
    direct: int
    memory: int

    def change(self, relation: Relation) -> str:
        """What one person can change in a group, in words.

        Args:
            relation: which tables are neighbours.
        """
        found = self.sensitivities[relation]
        length = math.sqrt(found.l2_squared)
        return f"{'' if found.exact else 'at most '}{found.single} / {found.l1:,} / {length:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        changes = {relation.value: asdict(found) for relation, found in self.sensitivities.items()}
        return asdict(self) | {"sensitivities": changes}


def explain(workload: Workload) -> tuple[Explained, ...]:
    """A workload in a few lines, one for each kind of queries. It needs no data.

    Args:
        workload: the queries.
    """
    kinds: dict[str, list[Queries]] = {}
    for queries in workload.queries:
        kinds.setdefault(str(getattr(queries, "kind", type(queries).__name__)), []).append(queries)
    return tuple(_explained(kind, members) for kind, members in kinds.items())


def _explained(kind: str, members: Sequence[Queries]) -> Explained:
    widths = [len(one.scope) for one in members]
    shapes = {one.scope: math.prod(one.shape) for one in members if not is_direct(one)}
    size = sum(one.size for one in members)
    found = {r: Sensitivity.largest(one.sensitivity(r) for one in members) for r in Relation}
    direct = sum(map(is_direct, members))
    return Explained(
        kind, len(members), size, (min(widths), max(widths)), found, direct, 8 * (size + sum(shapes.values()))
    )
