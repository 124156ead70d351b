"""Rules that every row must obey, as ``[[rule]]`` tables of a schema. They are public, so that they cost nothing::

    [[rule]]
    if = "age < 15"
    then = 'marital == "never"'

    [[rule]]
    never = 'sex == "m" and pregnant == true'

    [[rule]]
    always = "start <= end"

    [[rule]]
    determines = { city = "region" }
    mapping = { Berlin = "Berlin", Munich = "Bavaria" }     # or the name of a CSV file with the columns city and region

:mod:`pointillist.data.conditions` has the language. A rule is broken by a row for which it is definitely false: where a
missing value leaves it unknown, it is obeyed (write ``is not missing`` to ask for a value). A value that a mapping does
not list determines nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pointillist.checks import check
from pointillist.data.columns import Column, Grid, Numeric, Temporal
from pointillist.data.columns.base import check_keys, number_in
from pointillist.data.conditions import (
    ANY,
    NUMBER,
    TEXT,
    TRUTH,
    Cells,
    Condition,
    Spans,
    cells_of,
    moment_of,
    parse,
    texts_of,
)
from pointillist.data.mappings import read_csv
from pointillist.data.messages import fragment
from pointillist.errors import Shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MayBe", "Rule", "Rules", "column_cells", "with_mappings"]

KEYS = ("if", "then", "never", "always", "determines", "mapping")


class MayBe(NamedTuple):
    """Whether rows of which only a range of each value is known may obey a rule, and whether they may break it."""

    obey: np.ndarray
    broken: np.ndarray


@dataclass(frozen=True)
class Rule:
    """One rule. Give exactly one of ``if_`` with ``then``, ``never``, ``always`` and ``determines`` with ``mapping``.

    Args:
        if_: a condition; rows for which it holds must not fail ``then``.
        then: a condition.
        never: a condition that must hold for no row.
        always: a condition that must fail for no row.
        determines: two columns: the value of the first determines that of the second.
        mapping: the value of the second column for each value of the first, as texts.
    """

    if_: str = ""
    then: str = ""
    never: str = ""
    always: str = ""
    determines: tuple[str, str] | None = None
    mapping: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        kinds = [bool(self.if_ or self.then), bool(self.never), bool(self.always), self.determines is not None]
        rule = "must have exactly one of if with then, never, always, and determines with mapping"
        check(sum(kinds) == 1, "rule", fragment(self.to_dict()), rule, 'write for example never = "age < 0"')
        whole = bool(self.if_) == bool(self.then) and bool(self.determines) == bool(self.mapping)
        hint = "give both parts"
        check(whole, "rule", fragment(self.to_dict()), "must have then with if, and mapping with determines", hint)
        _ = self.columns  # refuses what cannot be parsed

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the rule, in order; none for a mapping."""
        return tuple(parse(text) for text in (self.if_, self.then, self.never, self.always) if text)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule is about."""
        named = self.determines or [name for one in self.conditions for name in one.columns]
        return tuple(dict.fromkeys(named))

    def broken(self, table: Mapping[str, Cells]) -> np.ndarray:
        """The rows that break the rule.

        Args:
            table: the values of its columns.
        """
        if self.determines is not None:
            first, second = (table[name] for name in self.determines)
            wanted, listed = self._mapped(_texts(first.kind, first.values))
            known = listed & ~first.missing & ~second.missing
            wrong: np.ndarray = known & (wanted != _texts(second.kind, second.values))
            return wrong
        found = [one.truth(table) for one in self.conditions]
        if self.if_:
            both: np.ndarray = found[0].true & found[1].false
            return both
        return found[0].true if self.never else found[0].false

    def possible(self, table: Mapping[str, Spans]) -> MayBe:
        """Whether rows may obey the rule, and whether they may break it.

        Args:
            table: what is known of the values of its columns.
        """
        if self.determines is not None:
            return self._possible_pair(*(table[name] for name in self.determines))
        found = [one.possible(table) for one in self.conditions]
        if self.if_:
            first, then = found
            obeys = first.false | first.unknown | then.true | then.unknown
            return MayBe(obeys, first.true & then.false)
        (one,) = found
        true, false = (one.false, one.true) if self.never else (one.true, one.false)
        return MayBe(true | one.unknown, false)

    def _mapped(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the mapping says for some values, and whether it lists them."""
        found, places = np.unique(texts.astype(str), return_inverse=True)
        wanted = np.array([self.mapping.get(one, "") for one in found.tolist()], object)
        listed = np.array([one in self.mapping for one in found.tolist()], bool)
        return wanted[places], listed[places]

    def _possible_pair(self, first: Spans, second: Spans) -> MayBe:
        free, gone = first.free | second.free, first.missing | second.missing
        single = all(one.kind in (TEXT, TRUTH) or np.array_equal(one.low, one.high) for one in (first, second))
        if not single or ANY in (first.kind, second.kind):
            return MayBe(np.ones(len(free), bool), np.ones(len(free), bool))
        wanted, listed = self._mapped(_texts(first.kind, first.low))
        wrong = listed & (wanted != _texts(second.kind, second.low)) & ~gone
        return MayBe(free | ~wrong, free | wrong)

    @property
    def text(self) -> str:
        """The rule in one line."""
        if self.determines is not None:
            return "{} determines {}".format(*self.determines)
        conditions = [one.to_text() for one in self.conditions]
        return " -> ".join(conditions) if self.if_ else f"{'never' if self.never else 'always'} {conditions[0]}"

    def to_dict(self) -> dict[str, Any]:
        """The ``[[rule]]`` table of a schema file."""
        texts = {"if": self.if_, "then": self.then, "never": self.never, "always": self.always}
        out: dict[str, Any] = {key: value for key, value in texts.items() if value}
        if self.determines is not None:
            out |= {"determines": dict([self.determines]), "mapping": dict(self.mapping)}
        return out

    @classmethod
    def from_dict(cls, spec: Any) -> Rule:
        """A rule from a ``[[rule]]`` table of a schema file."""
        check(isinstance(spec, dict), "rule", fragment(spec), "must be a table of entries", "write [[rule]]")
        check_keys("rule", spec, KEYS)
        for key in ("if", "then", "never", "always"):
            good = isinstance(spec.get(key, ""), str)
            check(good, f"rule: {key}", fragment(spec.get(key)), "must be a text", 'write for example "age < 15"')
        pair, mapping = spec.get("determines", {}), spec.get("mapping", {})
        good = isinstance(pair, dict) and len(pair) <= 1 and all(isinstance(one, str) for one in pair.values())
        hint = 'write for example determines = { city = "region" }'
        check(good, "rule: determines", fragment(pair), "must be one pair of columns", hint)
        good = isinstance(mapping, dict) and all(isinstance(one, str | int | bool) for one in mapping.values())
        hint = 'write for example mapping = { Berlin = "Berlin" }, or the name of a CSV file in a schema file'
        check(good, "rule: mapping", fragment(mapping), "must be a table of values", hint)
        texts = {str(key): _text(value) for key, value in mapping.items()}
        plain = {("if_" if key == "if" else key): spec[key] for key in ("if", "then", "never", "always") if key in spec}
        return cls(**plain, determines=next(iter(pair.items()), None), mapping=texts)


class Rules(tuple[Rule, ...]):
    """The rules of a schema."""

    columns: tuple[Column, ...]

    def __new__(cls, rules: Iterable[Rule] = (), columns: Iterable[Column] = ()) -> Rules:
        """The rules of some columns.

        Args:
            rules: the rules.
            columns: the columns, if they are known: they say what stands for missing.
        """
        made = super().__new__(cls, rules)
        made.columns = tuple(columns)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Rules, (tuple(self), self.columns)

    def violations(self, table: Any) -> dict[str, int]:
        """The number of rows that break each rule, by the rule's text.

        Args:
            table: a :class:`~pointillist.Table`, which is decoded, or a pandas or Arrow table.
        """
        if hasattr(table, "codes"):
            table = table.to_arrow()
        names = dict.fromkeys(name for rule in self for name in rule.columns)
        known = {column.name: column for column in self.columns}
        cells = {name: column_cells(known.get(name), table[name]) for name in names}
        return {rule.text: int(rule.broken(cells).sum()) for rule in self}


def column_cells(column: Column | None, array: Any) -> Cells:
    """The values of a column, for conditions, with what the column writes for missing values as missing.

    Args:
        column: the column, or None if it is not known.
        array: its decoded values.
    """
    base = getattr(column, "base", column)
    if isinstance(base, Temporal) and (given := _written(array)) is not None:
        return cells_of(base.moments(given))
    kind, values, missing = cells_of(array)
    mark = getattr(base, "missing_as", None)
    if mark is None or kind in (ANY, TRUTH):
        return Cells(kind, values, missing)
    if kind == TEXT:
        gone = values == mark
        if not isinstance(base, Numeric | Grid):
            return Cells(kind, values, missing | gone)
        return Cells(NUMBER, np.where(missing | gone, "0", values).astype(np.float64), missing | gone)
    number = number_in(mark) if kind == NUMBER else moment_of(mark, kind)
    return Cells(kind, values, missing if number is None else missing | (values == number))


def _written(array: Any) -> pa.Array | None:
    """The cells of a column of texts; None for other types."""
    import pyarrow as pa

    if not isinstance(array, pa.Array | pa.ChunkedArray):
        array = pa.array(array, from_pandas=True)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return array if pa.types.is_string(array.type) or pa.types.is_large_string(array.type) else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(kind: str, values: np.ndarray) -> np.ndarray:
    """Values as texts, in which 7.0 is "7", True is "true", and dates and times are in ISO 8601."""
    if kind == TEXT:
        return values.astype(object)
    if kind not in (NUMBER, TRUTH, ANY):
        return texts_of(values, kind)
    return np.array([_text(int(v) if isinstance(v, float) and v.is_integer() else v) for v in values.tolist()], object)


def with_mappings(specs: Any, folder: Path) -> Any:
    """The ``[[rule]]`` tables of a schema file with mapping files read.

    Args:
        specs: the tables.
        folder: where the schema file is, from which the names of mapping files are resolved.
    """
    if not isinstance(specs, list):
        return specs
    return [
        spec | {"mapping": _read_mapping(folder / spec["mapping"], spec.get("determines"))}
        if isinstance(spec, dict) and isinstance(spec.get("mapping"), str)
        else spec
        for spec in specs
    ]


def _read_mapping(path: Path, pair: Any) -> dict[str, str]:
    """The pairs of values in two columns of a CSV file."""
    good = isinstance(pair, dict) and len(pair) == 1
    check(good, "rule: determines", fragment(pair), "must be one pair of columns", 'write { city = "region" }')
    ((first, second),) = pair.items()
    names, rows = read_csv("rule: mapping", path)
    rule = f"must have the columns {first!r} and {second!r} (it is the file of a mapping)"
    check({first, second} <= set(names), "rule: mapping", str(path), rule, "name them in the first line")
    mapping: dict[str, str] = {}
    for row in rows:
        key, value = row[names.index(first)], row[names.index(second)]
        same = mapping.setdefault(key, value) == value
        rule = "must have one value for each that determines it"
        check(same, "rule: mapping", Shown(f"two for {fragment(key)}"), rule, "correct the file")
    return mapping
