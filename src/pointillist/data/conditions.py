"""Conditions on rows, such as ``age < 15 and marital != "never"``: parsed by hand, never run as Python.

The language, from loosest to tightest::

    condition   ->  condition or condition | condition and condition | not condition | (condition) | comparison
    comparison  ->  sum == sum | != | < | <= | > | >=
                    sum in [literal, ...] | sum not in [literal, ...]
                    column is missing | column is not missing
    sum         ->  term + term - term ...
    term        ->  column | `column with spaces` | "text" | 'text' | 12.5 | true | false

Sums are of numbers, and order comparisons of numbers and of dates and times, which are written as texts
(``start < "2024-01-31"``).

**Missing values.** A comparison with a missing value is neither true nor false, but unknown; ``not`` keeps it unknown,
``and`` is false if one side is, ``or`` is true if one side is (as in SQL). :meth:`Condition.holds` says where a
condition is true, so a comparison with a missing value does not hold, and :meth:`Condition.fails` where it is false.

**Rounding.** Two sides of which one is a sum of real numbers are equal if they differ by a share of at most 1e-9.

A condition can also be asked what is *possible* where only a range of each value is known (:class:`Spans`).
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from pointillist.data.messages import fragment
from pointillist.errors import InputError, Shown

__all__ = ["Cells", "Condition", "Possible", "Spans", "Truth", "cells_of", "moment_of", "parse", "texts_of"]

NEAR = 1e-9
"""Sums of real numbers are compared up to this share."""

DEEPEST = 50
"""Parentheses and ``not`` can be nested this deep."""

LONGEST = 10_000
"""The longest condition, in characters."""

NUMBER, TEXT, TRUTH, ANY = "number", "text", "true or false", "anything"
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
KEYWORDS = ("and", "or", "not", "in", "is", "missing", "true", "false")
TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)
    |(?P<text>"([^"\\]|\\.)*"|'([^'\\]|\\.)*')
    |(?P<quoted>`[^`]+`)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,|\+|-)""",
    re.VERBOSE,
)


ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Cells(NamedTuple):
    """The values of a column.

    Attributes:
        kind: ``"number"``, ``"text"``, ``"true or false"``, the Arrow type of dates and times, or ``"anything"`` if all
            of them are missing.
        values: numbers, texts or truth values; dates and times as whole numbers of their unit.
        missing: where there is none.
    """

    kind: str
    values: np.ndarray
    missing: np.ndarray


class Truth(NamedTuple):
    """Where a condition is true, and where it is false; elsewhere it is unknown."""

    true: np.ndarray
    false: np.ndarray


class Spans(NamedTuple):
    """What is known of the values of a column.

    Attributes:
        kind: as in :class:`Cells`, or ``"anything"`` if nothing is known.
        low, high: the smallest and largest possible number, date or time; for texts and truth values twice the value
            itself.
        missing: where there is none.
        free: where nothing is known, not even whether there is a value.
    """

    kind: str
    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    free: np.ndarray


class Possible(NamedTuple):
    """Whether a condition may be true, false or unknown. What is not possible here never happens."""

    true: np.ndarray
    false: np.ndarray
    unknown: np.ndarray


@dataclass(frozen=True)
class _Name:
    name: str
    at: int

    def cells(self, table: Mapping[str, Cells]) -> Cells:
        return table[self.name]

    def spans(self, table: Mapping[str, Spans]) -> Spans:
        return table[self.name]

    def to_text(self) -> str:
        plain = re.fullmatch(r"[^\W\d]\w*", self.name) and self.name not in KEYWORDS
        return self.name if plain else f"`{self.name}`"

    def names(self) -> Iterator[str]:
        yield self.name


@dataclass(frozen=True)
class _Literal:
    value: str | bool | float
    at: int

    @property
    def kind(self) -> str:
        return TRUTH if isinstance(self.value, bool) else TEXT if isinstance(self.value, str) else NUMBER

    def cells(self, table: Mapping[str, Cells]) -> Cells:
        no = np.zeros(1, bool)
        return Cells(self.kind, np.array([self.value], object if self.kind == TEXT else None), no)

    def spans(self, table: Mapping[str, Spans]) -> Spans:
        kind, values, no = self.cells({})
        return Spans(kind, values, values, no, no)

    def to_text(self) -> str:
        return json.dumps(self.value, ensure_ascii=False)

    def names(self) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class _Sum:
    parts: tuple[tuple[int, _Name | _Literal], ...]
    at: int

    def cells(self, table: Mapping[str, Cells]) -> Cells:
        found = [(sign, part.cells(table)) for sign, part in self.parts]
        total: Any = 0
        missing = np.zeros(1, bool)
        for sign, one in found:
            _require(one.kind in (NUMBER, ANY), self.at, f"adds up numbers only, not {_called(one.kind)}")
            total = total + sign * one.values
            missing = missing | one.missing
        return Cells(NUMBER, total, missing)

    def spans(self, table: Mapping[str, Spans]) -> Spans:
        low: Any = 0.0
        high: Any = 0.0
        missing = free = np.zeros(1, bool)
        for sign, part in self.parts:
            one = part.spans(table)
            if one.kind != NUMBER:
                return Spans(ANY, one.low, one.high, one.missing, np.ones(len(one.free), bool))
            low = low + (one.low if sign > 0 else -one.high)
            high = high + (one.high if sign > 0 else -one.low)
            missing, free = missing | one.missing, free | one.free
        return Spans(NUMBER, low, high, missing, free)

    def to_text(self) -> str:
        first, *others = ((" + " if sign > 0 else " - ", part.to_text()) for sign, part in self.parts)
        return ("-" if first[0] == " - " else "") + first[1] + "".join(sign + part for sign, part in others)

    def names(self) -> Iterator[str]:
        for _, part in self.parts:
            yield from part.names()


_Value = _Name | _Literal | _Sum


@dataclass(frozen=True)
class _Compare:
    word: str
    left: _Value
    right: _Value
    at: int

    def truth(self, table: Mapping[str, Cells]) -> Truth:
        left, right = _alike(self.left.cells(table), self.right.cells(table), self.at)
        known = ~(left.missing | right.missing)
        if self.word in ORDERS:
            order = f"compares the order of numbers, dates and times only, not of {_called(left.kind)}"
            _require(left.kind not in (TEXT, TRUTH), self.at, order)
        equal, below = self._equal(left.values, right.values), self.word
        if below in ORDERS:
            with np.errstate(invalid="ignore"):
                found = ORDERS[below](left.values, right.values)
            found = (found | equal) if below.endswith("=") else (found & ~equal)
        else:
            found = equal if self.word == "==" else ~equal
        return Truth(known & found, known & ~found)

    def _equal(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        added = isinstance(self.left, _Sum) or isinstance(self.right, _Sum)
        if added and "f" in (left.dtype.kind, right.dtype.kind):
            size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
            near: np.ndarray = np.abs(left - right) <= NEAR * size
            return near
        same: np.ndarray = np.asarray(left == right, bool)
        return same

    def possible(self, table: Mapping[str, Spans]) -> Possible:
        left, right = _alike_spans(self.left.spans(table), self.right.spans(table))
        free, missing = left.free | right.free, left.missing | right.missing
        if left.kind != right.kind or ANY in (left.kind, right.kind):
            free = np.ones(len(free), bool)
            true, false = free, free
        elif left.kind not in (TEXT, TRUTH):
            true, false = self._ranges(left, right)
        else:
            true = np.asarray(left.low == right.low, bool) == (self.word == "==")
            false = ~true
        return Possible(free | (~missing & true), free | (~missing & false), free | missing)

    def _ranges(self, left: Spans, right: Spans) -> tuple[np.ndarray, np.ndarray]:
        slack: Any = 0.0
        if isinstance(self.left, _Sum) or isinstance(self.right, _Sum):
            sizes = [np.where(np.isfinite(x), np.abs(x), 0) for x in (left.low, left.high, right.low, right.high)]
            slack = 2 * NEAR * np.maximum(1.0, np.maximum.reduce(np.broadcast_arrays(*sizes)))
        meet = (left.low <= right.high + slack) & (right.low <= left.high + slack)
        single = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
        if self.word == "==":
            return meet, ~single
        if self.word == "!=":
            return ~single, meet
        if self.word in (">", ">="):
            left, right = right, left
        some_below = left.low < right.high if self.word in ("<", ">") else left.low <= right.high + slack
        some_above = left.high >= right.low - slack if self.word in ("<", ">") else left.high > right.low
        return some_below, some_above

    def to_text(self) -> str:
        return f"{self.left.to_text()} {self.word} {self.right.to_text()}"

    def names(self) -> Iterator[str]:
        yield from self.left.names()
        yield from self.right.names()


@dataclass(frozen=True)
class _Missing:
    column: _Name
    at: int

    def truth(self, table: Mapping[str, Cells]) -> Truth:
        missing = table[self.column.name].missing
        return Truth(missing, ~missing)

    def possible(self, table: Mapping[str, Spans]) -> Possible:
        one = table[self.column.name]
        return Possible(one.free | one.missing, one.free | ~one.missing, np.zeros(len(one.free), bool))

    def to_text(self) -> str:
        return f"{self.column.to_text()} is missing"

    def names(self) -> Iterator[str]:
        yield self.column.name


@dataclass(frozen=True)
class _Not:
    inner: _Node

    def truth(self, table: Mapping[str, Cells]) -> Truth:
        true, false = self.inner.truth(table)
        return Truth(false, true)

    def possible(self, table: Mapping[str, Spans]) -> Possible:
        true, false, unknown = self.inner.possible(table)
        return Possible(false, true, unknown)

    def to_text(self) -> str:
        return f"not ({self.inner.to_text()})"

    def names(self) -> Iterator[str]:
        return self.inner.names()


@dataclass(frozen=True)
class _Several:
    """``and``, or ``or`` if ``either``: that is ``and`` of the opposites, negated."""

    parts: tuple[_Node, ...]
    either: bool

    def truth(self, table: Mapping[str, Cells]) -> Truth:
        found = [part.truth(table) for part in self.parts]
        trues, falses = [one.true for one in found], [one.false for one in found]
        if self.either:
            return Truth(np.logical_or.reduce(np.broadcast_arrays(*trues)), _all(falses))
        return Truth(_all(trues), np.logical_or.reduce(np.broadcast_arrays(*falses)))

    def possible(self, table: Mapping[str, Spans]) -> Possible:
        found = [part.possible(table) for part in self.parts]
        decides = [one.true if self.either else one.false for one in found]
        others = [one.false if self.either else one.true for one in found]
        unknown = _all([a | one.unknown for a, one in zip(others, found, strict=True)]) & np.logical_or.reduce(
            np.broadcast_arrays(*(one.unknown for one in found))
        )
        one_decides, all_others = np.logical_or.reduce(np.broadcast_arrays(*decides)), _all(others)
        true, false = (one_decides, all_others) if self.either else (all_others, one_decides)
        return Possible(true, false, unknown)

    def to_text(self) -> str:
        word = " or " if self.either else " and "
        return word.join(f"({one.to_text()})" if isinstance(one, _Several) else one.to_text() for one in self.parts)

    def names(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.names()


_Node = _Compare | _Missing | _Not | _Several


def _all(masks: Sequence[np.ndarray]) -> np.ndarray:
    found: np.ndarray = np.logical_and.reduce(np.broadcast_arrays(*masks))
    return found


@dataclass(frozen=True)
class Condition:
    """A parsed condition. Make one with :func:`parse`.

    Attributes:
        root: the parsed form.
    """

    root: _Node

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it is about, each once."""
        return tuple(dict.fromkeys(self.root.names()))

    def truth(self, table: Mapping[str, Cells]) -> Truth:
        """Where the condition is true and where it is false.

        Args:
            table: the values of its columns, as :func:`cells_of` returns them.
        """
        rows = max((len(table[name].missing) for name in self.columns), default=1)
        true, false = self.root.truth(table)
        return Truth(np.broadcast_to(true, rows), np.broadcast_to(false, rows))

    def holds(self, table: Any) -> np.ndarray:
        """The rows for which the condition is true.

        Args:
            table: an Arrow or pandas table, or a dictionary of arrays.
        """
        return self.truth({name: cells_of(table[name]) for name in self.columns}).true

    def fails(self, table: Any) -> np.ndarray:
        """The rows for which the condition is false: those for which it is unknown are not among them.

        Args:
            table: an Arrow or pandas table, or a dictionary of arrays.
        """
        return self.truth({name: cells_of(table[name]) for name in self.columns}).false

    def possible(self, table: Mapping[str, Spans]) -> Possible:
        """What the condition may be, given what is known of the values.

        Args:
            table: what is known of its columns.
        """
        rows = max((len(table[name].missing) for name in self.columns), default=1)
        return Possible(*(np.broadcast_to(one, rows) for one in self.root.possible(table)))

    def parts(self) -> tuple[str, tuple[Condition, ...]]:
        """What it is made of: ``"and"``, ``"or"`` or ``"not"`` with the conditions inside; ``""`` and nothing for a
        single comparison."""
        if isinstance(self.root, _Several):
            return "or" if self.root.either else "and", tuple(map(Condition, self.root.parts))
        if isinstance(self.root, _Not):
            return "not", (Condition(self.root.inner),)
        return "", ()

    def comparisons(self) -> Iterator[tuple[dict[str, int], float]]:
        """The comparisons of sums in it: the coefficient of each column and the constant of left minus right."""
        waiting: list[_Node] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, _Several):
                waiting.extend(node.parts)
            elif isinstance(node, _Not):
                waiting.append(node.inner)
            elif isinstance(node, _Compare) and (found := _linear(node)) is not None:
                yield found

    def literals(self, column: str) -> Iterator[str | bool | float]:
        """The values that a column is compared with directly.

        Args:
            column: the name of the column.
        """
        waiting: list[_Node] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, _Several):
                waiting.extend(node.parts)
            elif isinstance(node, _Not):
                waiting.append(node.inner)
            elif isinstance(node, _Compare):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    if isinstance(one, _Name) and one.name == column and isinstance(other, _Literal):
                        yield other.value

    def to_text(self) -> str:
        """The condition as text, which :func:`parse` reads."""
        return self.root.to_text()


def _linear(node: _Compare) -> tuple[dict[str, int], float] | None:
    weights: dict[str, int] = {}
    constant = 0.0
    for side, value in ((1, node.left), (-1, node.right)):
        parts = value.parts if isinstance(value, _Sum) else ((1, value),)
        for sign, part in parts:
            if isinstance(part, _Name):
                weights[part.name] = weights.get(part.name, 0) + side * sign
            elif part.kind == NUMBER:
                constant += side * sign * float(part.value)
            else:
                return None
    return weights, constant


def _alike(left: Cells, right: Cells, at: int) -> tuple[Cells, Cells]:
    """Both sides of a comparison in one kind: a text that is compared with a date or time is read as one."""
    if ANY in (left.kind, right.kind):  # all of it is missing, so that the kind does not matter
        nothing = [Cells(NUMBER, np.zeros(len(one.missing)), one.missing) for one in (left, right)]
        return nothing[0], nothing[1]
    for one, other in ((left, right), (right, left)):
        if one.kind == TEXT and other.kind not in (TEXT, NUMBER, TRUTH) and len(one.values) == 1:
            moment = moment_of(one.values[0], other.kind)
            if moment is None:
                raise _wrong(at, f"compares a column of type {other.kind} with a text that is none")
            read = Cells(other.kind, np.array([moment]), one.missing)
            return (read, other) if one is left else (other, read)
    _require(left.kind == right.kind, at, f"compares {_called(left.kind)} with {_called(right.kind)}")
    return left, right


def _alike_spans(left: Spans, right: Spans) -> tuple[Spans, Spans]:
    """What is known of both sides of a comparison: a text that is compared with a date or time is read as one."""
    for one, other in ((left, right), (right, left)):
        if one.kind == TEXT and other.kind not in (TEXT, NUMBER, TRUTH, ANY) and len(one.low) == 1:
            moment = moment_of(one.low[0], other.kind)
            if moment is not None:
                read = Spans(other.kind, np.array([moment]), np.array([moment]), one.missing, one.free)
                return (read, other) if one is left else (other, read)
    return left, right


@lru_cache(1024)
def moment_of(text: str, kind: str) -> int | None:
    """A date or time that is written as text, as a whole number of its unit; None if it is none.

    Args:
        text: the text.
        kind: the Arrow type of the date or time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return int(cells_of(pc.cast(pa.array([text]), _type_called(kind))).values[0])
    except (pa.ArrowException, ValueError):
        return None


def texts_of(values: np.ndarray, kind: str) -> np.ndarray:
    """Dates or times as texts in ISO 8601.

    Args:
        values: whole numbers of the unit of their type.
        kind: the Arrow type.
    """
    import pyarrow as pa

    found = _type_called(kind)
    whole = pa.array(values.astype(np.int32 if found.bit_width == 32 else np.int64)).cast(found)
    if pa.types.is_duration(found):
        return np.array([str(one) for one in whole.to_pylist()], object)
    texts: np.ndarray = whole.cast(pa.string()).to_numpy(zero_copy_only=False)
    return texts


def _type_called(name: str) -> Any:
    import pyarrow as pa

    found = re.fullmatch(r"(\w+)\[(\w+)(?:, tz=(.+))?\]", name)
    kinds = {"date32": pa.date32, "date64": pa.date64}
    if found is None or found[1] in kinds:
        return kinds[name.partition("[")[0]]()
    return getattr(pa, found[1])(found[2], *([found[3]] if found[3] else []))


def _called(kind: str) -> str:
    return {NUMBER: "numbers", TEXT: "texts", TRUTH: "truth values"}.get(kind, f"values of type {kind}")


def cells_of(array: Any) -> Cells:
    """The values of a column, for conditions.

    Args:
        array: an Arrow or NumPy array, or a pandas column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(array, pa.Array | pa.ChunkedArray):
        array = pa.array(np.asarray(array).tolist() if isinstance(array, np.ndarray) else array, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunk, in older versions
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, array.type.value_type)
    missing = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_boolean(kind):
        return Cells(TRUTH, pc.fill_null(array, False).to_numpy(zero_copy_only=False), missing)
    if pa.types.is_null(kind):
        return Cells(ANY, np.zeros(len(array)), missing)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Cells(TEXT, pc.fill_null(array.cast(pa.string()), "").to_numpy(zero_copy_only=False), missing)
    if pa.types.is_temporal(kind):
        whole = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        return Cells(str(kind), pc.fill_null(whole, 0).to_numpy(zero_copy_only=False).astype(np.int64), missing)
    if pa.types.is_decimal(kind) or pa.types.is_uint64(kind) or pa.types.is_float16(kind):
        array = array.cast(pa.float64())
    good = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if not good:
        rule, hint = "must be numbers, texts, truth values, dates or times", "leave the column out"
        raise InputError("condition", fragment(Shown(kind)), rule, hint)
    wide = np.int64 if pa.types.is_integer(array.type) else np.float64
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(wide)
    return Cells(NUMBER, np.where(missing, 0, values).astype(wide), missing)


def _wrong(at: int, rule: str, text: str = "") -> InputError:
    shown = Shown(f"{fragment(text[at : at + 40])} at character {at + 1}") if text else Shown(f"character {at + 1}")
    hint = 'write for example age < 15 and sex == "f"'
    return InputError("condition", shown, f"must be well-formed; it {rule}", hint)


def _require(good: bool, at: int, rule: str) -> None:
    if not good:
        raise _wrong(at, rule)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise _wrong(at, "has a character that means nothing here", text)
        kind = str(match.lastgroup)
        if kind == "name" and match[0] in KEYWORDS:
            kind = "word"
        if kind != "space":
            found.append(_Token(kind, match[0], at))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    """Recursive descent: one method for each level of the language."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.place, self.depth = text, _tokens(text), 0, 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def wrong(self, wanted: str) -> InputError:
        where = "ends where" if self.next.kind == "end" else "has this where"
        return _wrong(self.next.at, f"{where} {wanted} is needed", self.text)

    def take(self, *texts: str) -> _Token | None:
        token = self.next
        if token.kind in ("word", "sign") and token.text in texts:
            self.place += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            raise self.wrong(repr(text))

    def either(self) -> _Node | _Value:
        return self.several("or", self.both, True)

    def both(self) -> _Node | _Value:
        return self.several("and", self.negated, False)

    def several(self, word: str, inner: Callable[[], _Node | _Value], either: bool) -> _Node | _Value:
        first = inner()
        if not (self.next.kind == "word" and self.next.text == word):
            return first
        parts = [self.condition(first)]
        while self.take(word):
            parts.append(self.condition(inner()))
        return _Several(tuple(parts), either)

    def negated(self) -> _Node | _Value:
        if self.take("not") is None:
            return self.comparison()
        with_depth = self.deeper(self.negated)
        return _Not(self.condition(with_depth))

    def deeper(self, inner: Callable[[], _Node | _Value]) -> _Node | _Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _wrong(self.next.at, f"is nested deeper than {DEEPEST} times", self.text)
        found = inner()
        self.depth -= 1
        return found

    def condition(self, found: _Node | _Value) -> _Node:
        if isinstance(found, _Name | _Literal | _Sum):
            raise self.wrong("a comparison")
        return found

    def comparison(self) -> _Node | _Value:
        left, at = self.sum(), self.next.at
        if not isinstance(left, _Name | _Literal | _Sum):
            return left
        if (token := self.take("==", "!=", *ORDERS)) is not None:
            return _Compare(token.text, left, self.value(self.sum()), at)
        if self.take("is"):
            opposite = self.take("not") is not None
            self.expect("missing")
            if not isinstance(left, _Name):
                raise _wrong(left.at, "can ask of columns only whether they are missing", self.text)
            missing = _Missing(left, at)
            return _Not(missing) if opposite else missing
        if self.next.text == "not" and self.tokens[self.place + 1].text == "in":
            self.place += 2
            return _Several(tuple(_Compare("!=", left, one, at) for one in self.options()), False)
        if self.take("in"):
            return _Several(tuple(_Compare("==", left, one, at) for one in self.options()), True)
        return left

    def value(self, found: _Node | _Value) -> _Value:
        if not isinstance(found, _Name | _Literal | _Sum):
            raise self.wrong("a value")
        return found

    def options(self) -> list[_Literal]:
        self.expect("[")
        found = [self.literal()]
        while self.take(","):
            found.append(self.literal())
        self.expect("]")
        return found

    def literal(self) -> _Literal:
        negative = self.take("-") is not None
        found = self.term()
        good = isinstance(found, _Literal) and (not negative or found.kind == NUMBER)
        if not isinstance(found, _Literal) or not good:
            raise self.wrong("a value")
        return _Literal(-_number(found), found.at) if negative else found

    def sum(self) -> _Node | _Value:
        at = self.next.at
        sign = -1 if self.take("-") else 1
        first = self.term()
        if not isinstance(first, _Name | _Literal):
            if sign < 0:
                raise self.wrong("a number or a column")
            return first
        parts: list[tuple[int, _Name | _Literal]] = [(sign, first)]
        while (token := self.take("+", "-")) is not None:
            more = self.term()
            if not isinstance(more, _Name | _Literal):
                raise self.wrong("a number or a column")
            parts.append((1 if token.text == "+" else -1, more))
        if len(parts) == 1 and sign > 0:
            return first
        if len(parts) == 1 and isinstance(first, _Literal) and first.kind == NUMBER:
            return _Literal(-_number(first), at)
        return _Sum(tuple(parts), at)

    def term(self) -> _Node | _Value:
        token = self.next
        if self.take("("):
            found = self.deeper(self.either)
            self.expect(")")
            if isinstance(found, _Sum):
                raise _wrong(token.at, "has parentheses around a sum, which are not needed", self.text)
            return found
        if (word := self.take("true", "false")) is not None:
            return _Literal(word.text == "true", token.at)
        if token.kind not in ("number", "text", "name", "quoted"):
            raise self.wrong("a column or a value")
        self.place += 1
        if token.kind == "number":
            whole = token.text.isdigit() and len(token.text) < 16
            return _Literal(int(token.text) if whole else float(token.text), token.at)
        if token.kind == "text":
            return _Literal(ESCAPE.sub(_unescaped, token.text[1:-1]), token.at)
        return _Name(token.text.strip("`"), token.at)


def _number(literal: _Literal) -> float:
    if isinstance(literal.value, str):
        raise TypeError("a text is no number")
    return literal.value


def _unescaped(found: re.Match[str]) -> str:
    """What an escape in a text stands for: those of JSON, and any other character for itself."""
    letter = found[1]
    if len(letter) == 5:
        return chr(int(letter[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(letter, letter)


def parse(text: str) -> Condition:
    """A condition from its text. What is wrong with it is said with the position.

    Args:
        text: a condition, in the language of this module.
    """
    if not isinstance(text, str):
        raise InputError("condition", fragment(text), "must be a text", "write for example age < 15")
    if len(text) > LONGEST:
        rule = f"must have at most {LONGEST:,} characters"
        raise InputError("condition", Shown(f"{len(text):,}"), rule, "write several rules")
    parser = _Parser(text)
    root = parser.condition(parser.either())
    if parser.next.kind != "end":
        raise parser.wrong("'and', 'or' or the end")
    return Condition(root)
