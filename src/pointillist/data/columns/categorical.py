"""Categorical columns: a list of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.checks import check
from pointillist.data.columns.base import (
    MISSING_NUMBERS,
    MOST_ORDERED,
    Column,
    Label,
    check_column,
    check_flag,
    check_name,
    check_text,
    code_dtype,
    different_bins,
    fill_missing,
    is_missing,
    listed,
    missing_dict,
    missing_strings,
    number_in,
    place_missing,
    read_keys,
    read_missing,
    refuse_strays,
    same_codes,
    without_none,
)
from pointillist.data.columns.types import arrow_type
from pointillist.data.mappings import expanded
from pointillist.data.messages import column_called, fragment
from pointillist.errors import InputError, Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Categorical"]

KEYS = {
    "values": list,
    "ordered": bool,
    "missing": bool,
    "other": object,
    "dtype": object,
    "missing_values": object,
    "missing_as": object,
    "merge": object,
    "prefixes": object,
    "parents": object,
    "shares": object,
    "hierarchy": object,
}

MOST_CARRIED = 128
"""A list with more values is fine, unless it says otherwise: a run merges values from noisy counts."""


@dataclass(frozen=True)
class Categorical:
    """A column that takes one of the listed values.

    Args:
        name: The name of the column in the table.
        values: The values: all strings, all integers or all booleans. Value ``i`` has code ``i``.
        ordered: Whether neighbouring values are similar, as in "low", "medium", "high".
        missing: Whether values may be missing. Missing is then a value of its own, with the last code.
        other: The value that replaces every value that is not listed. Without it, such values are refused.
        dtype: The type of the decoded column. By default string, int64 or bool, depending on the values.
        missing_values: What stands for missing in the table, such as "?" or -9, apart from null and the empty text.
        missing_as: What missing values are decoded to, by default null. Other values become texts if it is a text.
        merge: Whether a run merges rare values, from noisy counts. By default it does if there are more than 128,
            or more than 32 in an ordered column.
        prefixes: Lengths of the beginnings of the values that values are merged by: (2, 3) merges rare postcodes that
            begin with the same three characters, and if these are too rare those with the same two.
        parents: The place of each value in a hierarchy, such as "north/hills", by which rare values are merged.
        shares: A public share of each value, such as its population. They need not add up to 1. Where values are
            merged, they say how common a value is as far as the noisy counts do not tell otherwise.
    """

    name: str
    values: tuple[Label, ...]
    ordered: bool = False
    missing: bool = False
    other: Label | None = None
    dtype: str = ""
    missing_values: tuple[str, ...] = ()
    missing_as: str | None = None
    merge: bool | None = None
    prefixes: tuple[int, ...] = ()
    parents: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = check_name(self.name)
        object.__setattr__(self, "values", listed(where, self.values, "values"))
        self._check_hierarchy(where)
        if isinstance(self.other, np.generic):
            object.__setattr__(self, "other", self.other.item())
        for flag in ("ordered", "missing"):
            check_flag(f"{where}: {flag}", getattr(self, flag))
        self._check_labels(where)
        for key, value in zip(("missing_values", "missing_as"), read_missing(self), strict=True):
            object.__setattr__(self, key, value)
        labels = {str(label) for label in self.labels}
        both = [text for text in missing_strings(self, ()) if text in labels]
        rule, hint = "must not be among the values", "remove it from one of the two"
        check(not both, f"{where}: missing_values", fragment(both), rule, hint)
        check_column(self)
        rule, hint = "must be a type that holds every value of the column", "choose another, or leave dtype out"
        check(self.dtype == "" or self._survives(), f"{where}: dtype", self.dtype, rule, hint)

    def _check_hierarchy(self, where: str) -> None:
        if self.merge is not None:
            check_flag(f"{where}: merge", self.merge)
        for key in ("parents", "shares"):
            object.__setattr__(self, key, listed(where, getattr(self, key), key))
        object.__setattr__(self, "prefixes", check_prefixes(where, self.prefixes))
        texts = all(isinstance(path, str) for path in self.parents) and len(self.parents) in (0, len(self.values))
        rule, hint = "must be a text for each value", 'write for example parents = ["north/hills", "south/coast"]'
        check(texts, f"{where}: parents", fragment(list(self.parents)), rule, hint)
        hint = "leave one of them out"
        check(
            not (self.prefixes and self.parents), f"{where}: parents", Shown("both"), "must be without prefixes", hint
        )
        self._check_shares(where)

    def _check_shares(self, where: str) -> None:
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in self.shares)
        good = numbers and all(0 <= one < math.inf for one in self.shares) and len(self.shares) in (0, len(self.values))
        good = good and (not self.shares or 0 < sum(self.shares) < math.inf)
        rule, hint = "must be a number of 0 or more for each value, not all of them 0", "write for example [0.7, 0.3]"
        check(good, f"{where}: shares", fragment(list(self.shares)), rule, hint)

    def _check_labels(self, where: str) -> None:
        values, labels = list(self.values), list(self.labels)
        small = all(-(2**63) <= value < 2**63 for value in labels if isinstance(value, int))
        check(small, where, fragment(labels), "must list whole numbers of 64 bits", "write them as strings")
        texts = [str(fragment(value)) if not isinstance(value, str) else value for value in values]
        check(
            len(set(texts)) == len(values),
            where,
            fragment(values),
            "must list different values",
            "remove the repeated ones",
        )
        some = len(values) > 0 or self.other is not None
        check(some, where, [], "must list its values", "write values = [...]")
        kinds = {type(value) for value in labels}
        rule = "must list values of one type (strings, whole numbers or true/false, 'other' included)"
        names = Shown(sorted(kind.__name__ for kind in kinds))
        check(len(kinds) == 1 and kinds <= {str, int, bool}, where, fragment(names), rule, "write them as strings")
        rule, hint = "must not list 'other' among its values", "remove one of the two"
        check(self.other not in self.values, where, fragment(self.other), rule, hint)
        for label in labels:
            if isinstance(label, str):
                check_text(f"{where}: value", label)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The values, followed by ``other`` if there is one."""
        return self.values if self.other is None else (*self.values, self.other)

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.labels) + self.missing

    @property
    def output_dtype(self) -> str:
        """The type of the decoded column."""
        dtype = self.dtype or {str: "string", int: "int64", bool: "bool"}[self._kind]
        return dtype if self.missing_as is None or _can_be(self.missing_as, dtype) else "string"

    @property
    def _kind(self) -> type:
        return type(self.labels[0])

    @property
    def fine(self) -> bool:
        """Whether a run merges rare values."""
        most = MOST_ORDERED if self.ordered else MOST_CARRIED
        return len(self.values) > most if self.merge is None else self.merge

    @property
    def own(self) -> tuple[int, ...]:
        """The codes of ``other`` and of missing, if there are such values."""
        return tuple(range(len(self.values), self.size))

    def levels(self) -> tuple[np.ndarray, ...]:
        """Return the groups of values by their prefixes or parents; ``other`` and missing are groups of their own."""
        paths = [path.split("/") for path in self.parents]
        names = [["/".join(path[: k + 1]) for path in paths] for k in range(max(map(len, paths), default=0))]
        names += [[str(value)[:k] for value in self.values] for k in self.prefixes]
        own = list(range(self.size - len(self.values)))
        found = []
        for level in names:
            groups = np.unique(level, return_inverse=True)[1]
            found.append(np.concatenate([groups, groups.max(initial=-1) + 1 + np.array(own, np.intp)]))
        return tuple(found)

    def encode(self, array: pa.Array) -> np.ndarray:
        """Return the code of each value. Numbers and booleans may also be given as strings."""
        usual = [text for text in (MISSING_NUMBERS if self._kind is int else ("",)) if text not in self.labels]
        strings = missing_strings(self, usual)
        nulls = is_missing(array, strings)
        array, values = self._comparable(array)
        nulls = nulls | is_missing(array, strings) | _is_number(array, strings)
        codes = _positions(array, values)
        stray = (codes < 0) & ~nulls
        if self.other is None:
            refuse_strays(self, array, stray, 'other = "..."')
        return place_missing(self, np.where(stray, len(self.values), codes), nulls)

    def _comparable(self, array: pa.Array) -> tuple[pa.Array, list[Any]]:
        """Return the array and the values of the column in a form in which equal values compare equal."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind, values = self._kind, list(self.values)
        if pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        if pa.types.is_string(array.type):
            if kind is bool:
                return pc.utf8_lower(array), [str(value).lower() for value in values]
            if kind is int:  # pandas writes integers with missing values as 1.0
                array = pc.utf8_trim_whitespace(array)
                array = pc.replace_substring_regex(array, r"^(-?[0-9]+)(\.0*)?$", r"\1")
                array = pc.replace_substring_regex(array, "^-0$", "0")
            return array, [str(value) for value in values]
        if kind is str:
            array = pc.cast(array, pa.string())
        elif kind is int and pa.types.is_boolean(array.type):
            array = pc.cast(array, pa.int8())
        elif kind is int and pa.types.is_floating(array.type):
            array = pc.add(array, pa.scalar(0.0, array.type))  # turns -0.0 into 0.0, which compares as different
        return array, values

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
        """Return the value of each code; ``rng`` is not used."""
        import pyarrow as pa
        import pyarrow.compute as pc

        labels, nulls = pa.array(list(self.labels)), codes >= len(self.labels)
        if self.output_dtype in ("category", "enum"):
            if self.missing_as is not None:
                labels, nulls = pa.array([*map(str, self.labels), self.missing_as]), nulls & False
            places = pa.array(codes.astype(np.int32), mask=nulls)
            return pa.DictionaryArray.from_arrays(places, labels, ordered=self.ordered)
        cells = labels.take(pa.array(codes.astype(np.int32), mask=nulls))
        kind = arrow_type(self.output_dtype)
        if self._kind is int and pa.types.is_decimal(kind):
            cells = cells.cast(pa.string())
        return fill_missing(self, pc.cast(cells, kind, safe=False))

    def _survives(self) -> bool:
        """Return whether every value survives a round trip through the output type."""
        import pyarrow as pa

        plain = replace(
            self, dtype="", other=None, values=self.labels, missing_as=None, prefixes=(), parents=(), shares=()
        )
        codes = np.arange(len(self.labels))
        try:
            out = self.decode(codes, np.random.default_rng(0))
            back = plain.encode(out.dictionary_decode() if pa.types.is_dictionary(out.type) else out)
        except (pa.ArrowException, InputError):
            return False
        return np.array_equal(back, codes)

    def translate(self, codes: np.ndarray, source: Column) -> np.ndarray:
        """Return codes of the column ``source`` as codes of this one, matched by their labels as strings."""
        if same_codes(self, source):
            return codes
        if not source.labels:
            raise different_bins(self)
        place = {str(label): code for code, label in enumerate(self.labels)}
        unknown = -1 if self.other is None else len(self.values)
        missing = len(self.labels) if self.missing else -1
        lookup = np.array([*(place.get(str(label), unknown) for label in source.labels), missing])
        translated: np.ndarray = lookup[codes]
        if (translated < 0).any():
            code = int(codes[translated < 0][0])
            label = source.labels[code] if code < len(source.labels) else None
            rule, hint = "must only hold values of the private schema", "map the value to one of them, or drop its rows"
            raise InputError(column_called(self.name), fragment(label), rule, hint)
        return translated.astype(code_dtype(self.size))

    def describe(self) -> str:
        """Return a one-line description."""
        order = "ordered" if self.ordered else "unordered"
        return f"{self.name}: {len(self.labels):,} {order} values{' or missing' if self.missing else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ``[[column]]`` table of a schema file."""
        out: dict[str, Any] = {"name": self.name, "type": "categorical", "values": list(self.values)}
        out |= {"ordered": self.ordered or None} | missing_dict(self)
        more: dict[str, Any] = {
            "merge": self.merge,
            "prefixes": list(self.prefixes) or None,
            "parents": list(self.parents) or None,
            "shares": list(self.shares) or None,
        }
        return without_none(out | {"other": self.other, "dtype": self.dtype or None} | more)

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Categorical:
        """Create the column from a ``[[column]]`` table of a schema file; a file of its hierarchy is read."""
        return cls(**read_keys(expanded(spec), KEYS))


def check_prefixes(where: str, given: Any) -> tuple[int, ...]:
    """Return the lengths of beginnings by which values are merged; refuse what cannot be such lengths.

    Args:
        where: The column, for messages.
        given: The lengths.
    """
    prefixes = listed(where, given, "prefixes")
    whole = all(isinstance(k, int) and not isinstance(k, bool) and k > 0 for k in prefixes)
    rule, hint = "must be increasing lengths of 1 or more", "write for example prefixes = [2, 3]"
    good = whole and list(prefixes) == sorted(set(prefixes))
    check(good, f"{where}: prefixes", fragment(list(prefixes)), rule, hint)
    return prefixes


def _can_be(text: str, dtype: str) -> bool:
    """Return whether a text can be a cell of a type."""
    import pyarrow as pa

    kind = arrow_type(dtype)
    if pa.types.is_dictionary(kind):
        return True
    if pa.types.is_boolean(kind):
        return False
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowException:
        return False
    return True


def _is_number(array: pa.Array, strings: Sequence[str]) -> np.ndarray:
    """Return where an array of numbers holds one that ``strings`` spell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = [number for text in strings if (number := number_in(text)) is not None]
    if not numbers or not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return np.zeros(len(array), bool)
    found = pc.is_in(array.cast(pa.float64(), safe=False), value_set=pa.array(numbers))
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _positions(array: pa.Array, values: list[Any]) -> np.ndarray:
    """Return the position of each entry of ``array`` in ``values``, -1 if it is not there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.index_in(array, value_set=pa.array(values).cast(array.type))
    except pa.ArrowInvalid:  # for example the value 300 and an array of 8-bit integers
        exact = pa.types.is_integer(array.type) and array.type != pa.uint64()
        wide = pa.int64() if exact else pa.float64()
        found = pc.index_in(array.cast(wide, safe=False), value_set=pa.array(values).cast(wide, safe=False))
    positions: np.ndarray = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return positions
