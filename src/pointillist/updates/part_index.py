"""The parts inside of a few attributes at a time, from many measurements.

A part of A is told by all marginals that hold A and by the residuals over A (:mod:`pointillist.updates.parts`). Of k
measured marginals few hold an attribute, and very few hold two: they are found by their attributes, and nothing of the
others is looked at. What tells about a part is added up when the part is asked for. The parts of fewer attributes than
were asked for are kept, since those of many marginals have them in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pointillist.data.domain import Attributes, Domain
from pointillist.queries.marginal import Marginal
from pointillist.queries.measurement import Measurement
from pointillist.queries.residuals import Residuals
from pointillist.updates.parts import PartEstimates, Told, free_of, of_marginal, of_residuals, subsets

__all__ = ["PartIndex"]


class PartIndex:
    """What was measured, by its attributes.

    Args:
        domain: the attributes.
        measured: noisy marginals and residuals; others are passed over.
        total: the number of rows.
        most_cells: larger marginals are passed over, and so are attributes with more cells: it bounds the memory.
    """

    def __init__(self, domain: Domain, measured: Iterable[Measurement], total: float, most_cells: int) -> None:
        self._domain, self._total, self._most_cells = domain, total, most_cells
        self._marginals: list[Measurement] = []
        self._holding: list[set[int]] = [set() for _ in domain.sizes]
        self._residuals: dict[Attributes, list[Callable[[], Told]]] = {}
        self._kept: dict[Attributes, Told] = {}
        for one in measured:
            if isinstance(one.queries, Residuals):
                for scope, told in of_residuals(one, total):
                    self._residuals.setdefault(scope, []).append(told)
            elif isinstance(one.queries, Marginal) and one.queries.size <= most_cells:
                for i in one.queries.scope:
                    self._holding[i].add(len(self._marginals))
                self._marginals.append(one)

    def inside(self, scope: Attributes) -> PartEstimates | None:
        """The estimates of all parts inside of some attributes; None if one of these is not told.

        Args:
            scope: the attributes.
        """
        whole = free_of(self._domain, scope)
        if self._domain.cells_of(whole) > self._most_cells or (whole and not self._is_told(whole)):
            return None
        parts = subsets(whole)
        if not all(part in self._kept or self._is_told(part) for part in parts):
            return None
        found = {part: self._part(part) for part in parts}
        self._kept |= {part: found[part] for part in parts[:-1]}
        values = {part: told for part, (told, _) in found.items()}
        return PartEstimates(self._domain, values, {part: precision for part, (_, precision) in found.items()})

    def _is_told(self, scope: Attributes) -> bool:
        return scope in self._residuals or bool(self._holders(scope))

    def _holders(self, scope: Attributes) -> set[int]:
        """The marginals that have all of some attributes."""
        return set.intersection(*(self._holding[i] for i in scope))

    def _part(self, scope: Attributes) -> Told:
        """The mean of all that tell about a part, weighted by their precisions, and the sum of these."""
        if scope in self._kept:
            return self._kept[scope]
        found = [of_marginal(self._marginals[n], scope, self._total) for n in sorted(self._holders(scope))]
        found += [told() for told in self._residuals.get(scope, ())]
        precision = sum(told for _, told in found)
        return np.asarray(sum(told * values for values, told in found) / precision), precision
