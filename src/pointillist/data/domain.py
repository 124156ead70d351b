"""The data domain X = X_1 x ... x X_d: attribute names and the number of values of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pointillist.checks import check, one_of
from pointillist.data.messages import column_called, fragment

__all__ = ["Attributes", "Domain"]

Attributes = tuple[int, ...]
"""A set of attributes, as increasing positions in the domain."""


@dataclass(frozen=True)
class Domain:
    """The attributes of a table, in column order.

    Args:
        names: The names of the attributes.
        sizes: The number of values |X_i| of each attribute.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        twice = sorted(name for name, count in Counter(self.names).items() if count > 1)
        check(not twice, "column names", fragment(twice), "must be different", "rename the repeated columns")
        if len(self.names) != len(self.sizes):
            raise ValueError("names and sizes differ in length")
        for name, size in zip(self.names, self.sizes, strict=True):
            check(size >= 1, column_called(name), size, "must have at least one value", "list its values")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def cells(self) -> int:
        """The number of possible records |X|."""
        return math.prod(self.sizes)

    def cells_of(self, attributes: Iterable[int]) -> int:
        """Return the number of cells of the marginal over ``attributes``."""
        return math.prod(self.sizes[i] for i in attributes)

    def shape(self, attributes: Iterable[int]) -> tuple[int, ...]:
        """Return the sizes of ``attributes``: the shape of their marginal as an array."""
        return tuple(self.sizes[i] for i in attributes)

    def index(self, name: str) -> int:
        """Return the position of the attribute ``name``."""
        return self.names.index(one_of("attribute", name, self.names, "must be a column of the schema"))

    def attributes(self, given: Iterable[str | int]) -> Attributes:
        """Return attributes given by name or position, in any order, as increasing positions."""
        found = [self.index(one) if isinstance(one, str) else int(one) for one in given]
        good = len(found) > 0 and len(set(found)) == len(found) and all(0 <= i < len(self) for i in found)
        check(good, "attributes", found, f"must be different positions below {len(self)}", "name each column once")
        return tuple(sorted(found))

    def project(self, names: Sequence[str]) -> Domain:
        """Return the domain of the attributes ``names``, in that order."""
        return Domain(tuple(names), tuple(self.sizes[self.index(name)] for name in names))
