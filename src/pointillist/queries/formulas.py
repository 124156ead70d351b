"""Formulas over attributes: ``and`` and ``or`` of tables of 0 and 1 over few attributes each.

A :class:`Leaf` is a predicate on the codes of some attributes, as a table of all their combinations. Negations are
inside the leaves. Parts of an ``and`` or ``or`` that share attributes are made one leaf, if its table is small: then no
attribute occurs twice, and the probability of the formula for independent attributes is exact,

    P(a and b) = P(a) P(b),      P(a or b) = 1 - (1 - P(a)) (1 - P(b)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from pointillist.checks import check
from pointillist.data.conditions import Cells, Condition, Spans, parse
from pointillist.data.domain import Attributes, Domain
from pointillist.data.obeying import spans_of
from pointillist.data.rules import column_cells
from pointillist.data.schema import Schema
from pointillist.errors import InputError, Shown
from pointillist.queries.enumerating import combinations

__all__ = [
    "Formula",
    "Leaf",
    "Several",
    "Undecided",
    "columns_of",
    "formula_of",
    "from_dict",
    "joined",
    "of_function",
    "tabulated",
]

MOST_JOINED = 20_000
"""Parts that share attributes are made one table up to this number of combinations."""

MOST_LEAF = 10_000_000
"""The largest table: a comparison of more combinations is refused."""


class Undecided(InputError):
    """A condition that holds for some values of a code and not for others."""


@dataclass(frozen=True)
class Leaf:
    """A predicate as a table.

    Attributes:
        scope: increasing positions of attributes.
        shape: their sizes.
        table: a byte, 0 or 1, for each combination of codes in C order.
    """

    scope: Attributes
    shape: tuple[int, ...]
    table: bytes

    @cached_property
    def bits(self) -> np.ndarray:
        """The table as numbers."""
        return np.frombuffer(self.table, np.uint8)

    @property
    def single(self) -> bool:
        """Whether no attribute occurs in two leaves."""
        return True

    @cached_property
    def open(self) -> bool:
        """Whether it holds for some records and not for others."""
        return 0 < int(self.bits.sum()) < len(self.table)

    def holds(self, codes: Any) -> Any:
        """Where it holds, for codes of each attribute by position: arrays of NumPy or JAX."""
        keys = reduce(lambda key, n: key * self.shape[n] + codes[self.scope[n]], range(len(self.scope)), 0)
        return self._like(keys)[keys] > 0

    def probability(self, columns: Mapping[int, Any]) -> Any:
        """Its probability in each of B product distributions, given B x size arrays by position."""
        found = columns[self.scope[0]] @ self._like(columns[self.scope[0]]).reshape(self.shape[0], -1)
        for n, attribute in enumerate(self.scope[1:], start=1):
            own = columns[attribute]
            found = (found.reshape(len(own), self.shape[n], -1) * own[:, :, None]).sum(axis=1)
        return found[:, 0]

    def _like(self, array: Any) -> Any:
        """The bits, in the library of an array and, for probabilities, in its type."""
        kind = array.dtype if array.dtype.kind == "f" else np.uint8
        return array.__array_namespace__().asarray(self.bits.astype(kind))

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        packed = np.packbits(self.bits).tobytes().hex()
        return {"attributes": [names[i] for i in self.scope], "table": packed}


@dataclass(frozen=True)
class Several:
    """``and`` of some formulas, or ``or`` if ``either``."""

    parts: tuple[Formula, ...]
    either: bool

    @cached_property
    def scope(self) -> Attributes:
        return tuple(sorted({i for part in self.parts for i in part.scope}))

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = {i: s for part in self.parts for i, s in zip(part.scope, part.shape, strict=True)}
        return tuple(sizes[i] for i in self.scope)

    @cached_property
    def single(self) -> bool:
        apart = sum(len(part.scope) for part in self.parts) == len(self.scope)
        return apart and all(part.single for part in self.parts)

    @property
    def open(self) -> bool:
        return all(part.open for part in self.parts)

    def holds(self, codes: Any) -> Any:
        found = [part.holds(codes) for part in self.parts]
        return reduce(lambda a, b: a | b if self.either else a & b, found)

    def probability(self, columns: Mapping[int, Any]) -> Any:
        found = [part.probability(columns) for part in self.parts]
        return 1 - _product([1 - one for one in found]) if self.either else _product(found)

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        return {"or" if self.either else "and": [part.to_dict(names) for part in self.parts]}


Formula = Leaf | Several


def _product(many: Sequence[Any]) -> Any:
    return reduce(lambda a, b: a * b, many)


def tabulated(formula: Formula) -> Leaf:
    """The formula as one table."""
    if isinstance(formula, Leaf):
        return formula
    found = [formula.holds(codes) for codes in combinations(formula.scope, formula.shape)]
    return Leaf(formula.scope, formula.shape, np.concatenate(found).astype(np.uint8).tobytes())


def joined(parts: Sequence[Formula], either: bool) -> Formula:
    """``and`` or ``or`` of some formulas; those that share attributes in one table, if it is small."""
    groups: list[list[Formula]] = []
    for part in parts:
        near = [group for group in groups if any(set(part.scope) & set(one.scope) for one in group)]
        groups = [group for group in groups if group not in near] + [[one for group in near for one in group] + [part]]
    found: list[Formula] = []
    for group in groups:
        together = Several(tuple(group), either)
        small = len(group) > 1 and math.prod(together.shape) <= MOST_JOINED
        found.extend([tabulated(together)] if small else group)
    decides = [one for one in found if _always(one, either)]
    open_ones = [one for one in found if not _always(one, not either)] or found[:1]
    kept = decides[:1] or open_ones
    return kept[0] if len(kept) == 1 else Several(tuple(kept), either)


def _always(formula: Formula, truth: bool) -> bool:
    """Whether a table says the same for every combination."""
    return isinstance(formula, Leaf) and bool((formula.bits == truth).all())


def formula_of(text: str, schema: Schema) -> Formula:
    """A condition on rows as a formula of the codes of a schema.

    What a rule must not compare either, such as the order of texts, is refused. So is a condition that a code leaves
    open, such as ``age < 20`` for a bin from 18 to 30: no count of the codes would be its count.

    Args:
        text: a condition, in the language of :mod:`pointillist.data.conditions`.
        schema: the columns.
    """
    condition = parse(text)
    condition.truth({name: _first(schema, name) for name in condition.columns})  # refuses what cannot be compared
    return _formula(condition, schema, {}, False)


def _first(schema: Schema, name: str) -> Cells:
    """The value of the first code of a column."""
    column = schema.columns[schema.domain.index(name)]
    return column_cells(column, column.decode(np.zeros(1, np.int64), np.random.default_rng(0)))


def _formula(condition: Condition, schema: Schema, spans: dict[str, Spans], negated: bool) -> Formula:
    word, inside = condition.parts()
    if word == "not":
        return _formula(inside[0], schema, spans, not negated)
    if word:
        return joined([_formula(one, schema, spans, negated) for one in inside], (word == "or") != negated)
    return _comparison(condition, schema, spans, negated)


def _comparison(condition: Condition, schema: Schema, spans: dict[str, Spans], negated: bool) -> Leaf:
    """The codes for which a comparison is true; with ``negated`` those for which it is false."""
    domain = schema.domain
    text = condition.to_text()
    rule, hint = "must compare columns with values or with each other", 'write for example "age >= 65"'
    check(len(condition.columns) > 0, "condition", text, rule, hint)
    scope = domain.attributes(condition.columns)
    shape = domain.shape(scope)
    rule = f"must compare columns with at most {MOST_LEAF:,} combinations of codes"
    check(math.prod(shape) <= MOST_LEAF, "condition", text, rule, "use coarser columns")
    for i in scope:
        name = domain.names[i]
        if name not in spans:
            spans[name] = spans_of(schema.columns[i])
    found = []
    for codes in combinations(scope, shape):
        known = {domain.names[i]: _narrowed(spans[domain.names[i]], codes[i]) for i in scope}
        may = condition.possible(known)
        wanted, others = (may.false, may.true) if negated else (may.true, may.false)
        if np.any(wanted & (others | may.unknown)):
            rule = "must hold for all values of a code or for none, so that codes can be counted"
            hint = "compare with an edge of the bins, or give the column such edges and merge = false"
            raise Undecided("condition", Shown(repr(text)), rule, hint)
        found.append(wanted)
    return Leaf(scope, shape, np.concatenate(found).astype(np.uint8).tobytes())


def _narrowed(spans: Spans, codes: np.ndarray) -> Spans:
    return Spans(spans.kind, *(one[codes] for one in spans[1:]))


def from_dict(spec: Mapping[str, Any], domain: Domain) -> Formula:
    """The formula behind ``Formula.to_dict``."""
    for word, either in (("or", True), ("and", False)):
        if word in spec:
            return Several(tuple(from_dict(one, domain) for one in spec[word]), either)
    places = [domain.index(name) for name in spec["attributes"]]
    written = domain.shape(places)
    packed, count = bytes.fromhex(spec["table"]), math.prod(written)
    if len(packed) != -(-count // 8):
        raise ValueError("the table of a condition must have a bit for each combination of codes")
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=count)
    order = np.argsort(places)
    table = bits.reshape(written).transpose(order)
    return Leaf(tuple(sorted(places)), table.shape, table.tobytes())


def columns_of(spec: Mapping[str, Any]) -> Iterator[str]:
    """The names of the columns in what ``Formula.to_dict`` gives.

    Args:
        spec: the formula as plain data.
    """
    yield from spec.get("attributes", ())
    for part in (*spec.get("or", ()), *spec.get("and", ())):
        yield from columns_of(part)


def of_function(function: Callable[..., Any], columns: Sequence[str], schema: Schema) -> Leaf:
    """A function of the values of some columns as a table: it is called on all combinations of their codes.

    Args:
        function: gets one array of values for each column, by name, and returns as many truth values.
        columns: the names of the columns.
        schema: the columns; each code stands for one value, or for the middle of its bin.
    """
    scope = schema.domain.attributes(columns)
    shape = schema.domain.shape(scope)
    rule = f"must have at most {MOST_LEAF:,} combinations of codes"
    hint = "use fewer columns, or a condition"
    check(math.prod(shape) <= MOST_LEAF, "columns", Shown(f"{math.prod(shape):,}"), rule, hint)
    values = {schema.columns[i].name: _values(schema, i) for i in scope}
    found = []
    for codes in combinations(scope, shape):
        given = {schema.columns[i].name: values[schema.columns[i].name][codes[i]] for i in scope}
        truth = np.asarray(function(**given))
        good = truth.shape == (len(codes[scope[0]]),) and truth.dtype == bool
        rule, hint = "must return one truth value for each row", "return for example age >= 65"
        check(good, "function", Shown(f"{truth.dtype} of shape {truth.shape}"), rule, hint)
        found.append(truth)
    return Leaf(scope, shape, np.concatenate(found).astype(np.uint8).tobytes())


def _values(schema: Schema, attribute: int) -> np.ndarray:
    """The value that each code of a column stands for; the middle of a bin; None or NaN for missing."""
    column = schema.columns[attribute]
    spans = spans_of(column)
    if spans.kind == "number":
        return np.where(spans.missing, np.nan, (spans.low + spans.high) / 2)
    decoded = column.decode(np.arange(column.size), np.random.default_rng(0))
    return np.array(decoded.to_pylist(), object)
