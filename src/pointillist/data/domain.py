"""The data domain X = X_1 x ... x X_d: attribute names and the number of values of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pointillist.errors import InputError, check, nearest

__all__ = ["Attributes", "Domain"]

Attributes = tuple[int, ...]
"""A set of attributes, as increasing positions in the domain."""


@dataclass(frozen=True)
class Domain:
    """Attribute names with their sizes |X_i|, in column order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        check(not twice, "column names", twice, "must be different", "rename the repeated columns")
        if len(self.names) != len(self.sizes):
            raise ValueError("names and sizes differ in length")
        for name, size in zip(self.names, self.sizes, strict=True):
            if size < 1:
                raise InputError(f"column {name!r}", size, "must have at least one value", "list its values")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def cells(self) -> int:
        """|X|, the number of distinct records."""
        return math.prod(self.sizes)

    def cells_of(self, attributes: Iterable[int]) -> int:
        """The number of cells of the marginal over ``attributes``."""
        return math.prod(self.sizes[i] for i in attributes)

    def shape(self, attributes: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in attributes)

    def index(self, name: str) -> int:
        """The position of the attribute called ``name``."""
        if name not in self.names:
            raise InputError("attribute", name, "must be a column of the schema", nearest(name, self.names))
        return self.names.index(name)

    def project(self, names: Sequence[str]) -> Domain:
        """The domain over ``names``, in that order."""
        return Domain(tuple(names), tuple(self.sizes[self.index(name)] for name in names))
