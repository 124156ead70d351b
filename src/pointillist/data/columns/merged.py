"""Merged columns: groups of the codes of another column, which a run has chosen from noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import Column, Label, check_keys, code_dtype, same_codes
from pointillist.data.columns.numbers import increasing_numbers
from pointillist.data.messages import column_called, fragment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Merged"]

KEYS = ("name", "type", "groups", "shares", "column")


@dataclass(frozen=True)
class Merged:
    """A column whose codes are groups of the codes of a finer column.

    A group is decoded by drawing one of its fine codes, each with its share, and decoding that one. Both come from
    noisy counts, so they are public like everything else that a run releases.

    Args:
        base: The finer column.
        groups: The group of each of its codes: 0, 1, 2, ..., with missing alone in the last one.
        shares: The share of each code within its group; they add up to 1 in each group.
    """

    base: Column
    groups: tuple[int, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        where = column_called(self.base.name)
        groups = np.asarray(self.groups)
        fits = groups.shape == (self.base.size,) and groups.dtype.kind in "iu"
        rule, hint = f"must give the group of each of {self.base.size:,} codes", "take the schema of a release"
        check(fits, f"{where}: groups", fragment(list(self.groups)[:5]), rule, hint)
        good = bool(np.array_equal(np.unique(groups), np.arange(groups.max() + 1)))
        check(good, f"{where}: groups", fragment(list(self.groups)[:5]), "must be 0, 1, 2, ... without gaps", hint)
        last = not self.base.missing or bool((groups[:-1] < groups[-1]).all())
        check(last, f"{where}: groups", int(groups[-1]), "must have missing alone in the last group", hint)
        shares = np.asarray(self.shares, np.float64)
        good = shares.shape == groups.shape and bool(np.isfinite(shares).all()) and bool((shares >= 0).all())
        good = good and bool(np.allclose(np.bincount(groups, shares), 1.0, atol=1e-6))
        rule = "must be shares that add up to 1 in each group"
        check(good, f"{where}: shares", fragment(list(self.shares)[:5]), rule, hint)
        object.__setattr__(self, "groups", tuple(groups.tolist()))
        object.__setattr__(self, "shares", tuple(shares.tolist()))

    @property
    def name(self) -> str:
        """The name of the column in the table."""
        return self.base.name

    @property
    def missing(self) -> bool:
        """Whether values may be missing."""
        return self.base.missing

    @property
    def ordered(self) -> bool:
        """Whether neighbouring groups stand for similar values."""
        return self.base.ordered

    @property
    def dtype(self) -> str:
        """The type that the schema sets."""
        return self.base.dtype

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        return self.base.output_dtype

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return max(self.groups) + 1

    @property
    def labels(self) -> tuple[Label, ...]:
        """Empty: the codes stand for groups."""
        return ()

    @property
    def fine(self) -> bool:
        """False: the codes are merged already."""
        return False

    @property
    def own(self) -> tuple[int, ...]:
        """Missing, if values may be missing."""
        return (self.size - 1,) if self.missing else ()

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return nothing: there is no hierarchy of groups."""
        return ()

    @cached_property
    def lookup(self) -> np.ndarray:
        """The group of each fine code, in the smallest type."""
        return np.array(self.groups, code_dtype(self.size))

    @cached_property
    def places(self) -> tuple[float, ...]:
        """Where the groups before missing lie on a line: at the means of their numbers, or 1 apart from each other if
        they hold no numbers; empty for groups without an order."""
        if not self.ordered:
            return ()
        count, codes = self.size - self.missing, np.arange(self.base.size - self.missing)
        values = increasing_numbers(self.base, codes)
        if values is None:
            return tuple(map(float, range(count)))
        shares = np.array(self.shares)[codes]
        return tuple(np.bincount(self.lookup[codes], shares * values, count).tolist())

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the group of each value."""
        return np.asarray(self.lookup[self.base.encode(array)])

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return a value for each group: a fine code is drawn by the shares, then decoded."""
        return self.base.decode(self.drawn(codes, rng), rng)

    def drawn(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a fine code for each group, drawn by the shares."""
        order = np.argsort(self.lookup, kind="stable")
        # Group g owns the interval [g, g + 1), divided by the shares of its codes.
        ends = np.cumsum(np.array(self.shares)[order])
        ends += np.repeat(np.arange(self.size) - ends[self._lasts] + 1, np.diff(self._lasts, prepend=-1))
        ends[self._lasts] = np.arange(1, self.size + 1)
        at = np.searchsorted(ends, codes + rng.random(len(codes)), side="right")
        return np.asarray(order[np.minimum(at, self._lasts[codes])], code_dtype(self.base.size))

    @cached_property
    def _lasts(self) -> np.ndarray:
        """The position of the last code of each group, when codes are sorted by group."""
        return np.cumsum(np.bincount(self.lookup, minlength=self.size)) - 1

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source``, merged alike or not at all, as codes of this one."""
        if same_codes(self, source):
            return codes
        return np.asarray(self.lookup[self.base.translate(codes, source)])

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.base.describe()}, merged into {self.size:,} groups"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        spec = {"name": self.name, "type": "merged", "groups": list(self.groups), "shares": list(self.shares)}
        return spec | {"column": self.base.to_dict()}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Merged:
        """Create the column from a ``[[column]]`` table of a schema file."""
        from pointillist.data.columns import column_of

        where = column_called(spec["name"])
        check_keys(where, spec, KEYS)
        base, hint = spec.get("column"), "take the schema of a release"
        named = isinstance(base, dict) and base.get("name") == spec["name"] and base.get("type") != "merged"
        check(named, f"{where}: column", fragment(base), "must be the table of the finer column of this name", hint)
        for key, kinds in (("groups", int), ("shares", (int, float))):
            given = spec.get(key)
            good = isinstance(given, list) and all(isinstance(x, kinds) and not isinstance(x, bool) for x in given)
            check(good, f"{where}: {key}", fragment(given), "must be a list of numbers", hint)
        small = all(0 <= group < len(spec["groups"]) for group in spec["groups"])
        check(small, f"{where}: groups", fragment(spec["groups"][:5]), "must be 0, 1, 2, ... without gaps", hint)
        return cls(column_of(base), tuple(spec["groups"]), tuple(spec["shares"]))
